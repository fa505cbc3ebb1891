"""Explained results, reviewed as text: order, scores, reasons and reasons for silence; renewed with
BACKSTORY_RENEW_GOLDEN=1."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from backstory.domain.memory import Visibility
from backstory.domain.relevance import REQUESTED, UNASKED, Relevance, Threshold
from backstory.services.query import Recalled
from backstory.testing.fakes import HashEmbedder

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop

GOLDEN = Path(__file__).parents[2] / "golden" / "recall"
STORIES = sorted(path.stem for path in GOLDEN.glob("*.json"))
RENEW = os.environ.get("BACKSTORY_RENEW_GOLDEN") == "1"
MODES = ("words", "meaning")
THRESHOLDS: Mapping[str, Threshold] = {
    "asked for": REQUESTED,
    "offered unasked": UNASKED[Relevance.BALANCED],
}
LIMIT = 4


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("story", STORIES)
def test_results_are_explained_as_reviewed(shop: Shop, story: str, mode: str) -> None:
    """``meaning`` uses vectors made of words, so that it is the same everywhere; their nearness means little."""
    told = json.loads((GOLDEN / f"{story}.json").read_text(encoding="utf-8"))
    fill(shop, told)
    if mode == "meaning":
        shop.embedder = HashEmbedder(dimension=256)
        shop.do(shop.maintenance.embed_missing())
    text = "".join(f"{line}\n" for line in answers(shop, told["prompts"], lexical_only=mode == "words"))
    file = GOLDEN / f"{story}-{mode}.txt"
    if RENEW:
        file.write_text(text, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text, f"renew {file.name} with BACKSTORY_RENEW_GOLDEN=1, and review it"


def test_no_reviewed_results_are_left_of_a_story_that_is_gone() -> None:
    expected = {f"{story}-{mode}.txt" for story in STORIES for mode in MODES}
    assert STORIES
    assert {file.name for file in GOLDEN.glob("*.txt")} == expected


def fill(shop: Shop, told: Mapping[str, Any]) -> None:  # Any: the parts of a story
    for content in told["memories"]:
        shop.say(content)
    for content in told["global"]:
        shop.say(content, visibility=Visibility.GLOBAL)
    for content in told["elsewhere"]:
        shop.say(content, viewer=shop.elsewhere)
    for old, new in told["superseded"]:
        before = shop.say(old).memory
        shop.say(new, supersedes=f"#{before.n}")


def answers(shop: Shop, prompts: list[str], *, lexical_only: bool) -> Iterator[str]:
    for name, threshold in THRESHOLDS.items():
        yield f"# {name}"
        for prompt in prompts:
            yield ""
            yield f"> {prompt}"
            yield from explained(shop.ask(prompt, threshold=threshold, limit=LIMIT, lexical_only=lexical_only))
        yield ""


def explained(recalled: Recalled) -> Iterator[str]:
    for result in recalled.results:
        yield f"  {result.score.total:.2f}  #{result.memory.n} {result.memory.content}"
        for reason in result.reasons:
            yield f"        {reason}"
    if recalled.silent_because is not None:
        yield f"  silent: {recalled.silent_because}"
    for skipped in recalled.skipped:
        yield f"  without {skipped.part}: {skipped.reason}"
