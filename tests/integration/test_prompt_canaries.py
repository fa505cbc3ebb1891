"""Which kinds of text a model is sent: in each prompt of ours, unasked in blocks and snapshots, and to be embedded.

Whoever adds a prompt has to say here what it may hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from backstory import prompts as prompts_package
from backstory.domain.ids import SessionId
from backstory.domain.scope import Audience
from backstory.services.query import Query
from tests.canaries import BLOCKS, ELSEWHERE, KEYS, NIGHT, OPEN, PRIVATE, TALK, Boathouse, digested, heard

IN_PROMPTS: Mapping[str, set[str]] = {
    "rerank": {OPEN, PRIVATE},  # of what a search found; that of a block is asked with offerable ones alone
    "dream": {OPEN},
    "dream_duplicates": {OPEN},
    "dream_summary": {OPEN},
    "observe": set(),
    "reflect": set(),
    "tree_leaf": set(),
    "tree_merge": set(),
}


def test_every_prompt_stands_in_the_table() -> None:
    folder = Path(prompts_package.__file__ or "").parent
    assert {path.stem for path in folder.glob("*.md")} | {"rerank"} == set(IN_PROMPTS)


def test_a_prompt_holds_no_more_than_it_may(house: Boathouse, tmp_path: Path) -> None:
    sent = _asked_of_models(house, tmp_path)
    for name, may in IN_PROMPTS.items():
        system = _beginning(name)
        asked = [text for text in sent if system in text]
        assert asked, f"nothing was asked by the prompt {name}"
        assert heard("\n".join(asked)) <= may, name
    assert [text[:80] for text in sent if not any(_beginning(name) in text for name in IN_PROMPTS)] == []


SOON = {
    "observation__message_tokens": 1000, "reflection__observation_tokens": 1000,
    "tree__min_batch": 2, "tree__max_raw": 2, "tree__compact_threshold": 2, "tree__compact_branch": 2,
}  # fmt: skip
"""Settings with which a short session is condensed twice."""


def _beginning(name: str) -> str:
    path = Path(prompts_package.__file__ or "").parent / f"{name}.md"
    return path.read_text(encoding="utf-8").splitlines()[0]


def _asked_of_models(house: Boathouse, folder: Path) -> list[str]:
    """Everything that is asked when all that asks is done: searches, dreams, both strategies of long sessions."""
    sent: list[str] = []
    for number, flags in enumerate(
        ({"recall__rerank": "auto"}, {"session__strategy": "tree"}, {"session__strategy": "observations"})
    ):
        (folder / str(number)).mkdir()
        own = house.copied(folder / str(number), **SOON, **flags)
        digested(own)
        if number == 0:
            for text in ("lamp oil", *KEYS.values()):
                anyio.run(own.app.recall.recall, Query(text=text, viewer=own.viewer(), limit=20))
                anyio.run(own.app.blocks.for_prompt, text, own.viewer())
            for _ in range(2):
                anyio.run(_dream, own)
        sent += own.model.sent
        own.close()
    return sent


async def _dream(house: Boathouse) -> None:
    await house.app.truth.dreaming.work(NIGHT, at_once=True)
    await house.app.truth.dreaming.work(TALK, at_once=True)


@pytest.mark.parametrize("selection", ["relevance", "recency"])
def test_blocks_and_snapshots_hold_what_is_open_and_nothing_else(
    house: Boathouse, tmp_path: Path, selection: str
) -> None:
    own = house.copied(tmp_path, context__selection=selection)
    asked = ["lamp oil", "What did we decide about the lamp?", *(f"What oil is at the {key}?" for key in KEYS.values())]
    shown = [anyio.run(own.app.blocks.for_prompt, text, own.viewer()).text or "" for text in asked]
    shown += [anyio.run(_snapshot, own, SessionId("ses_new")), anyio.run(_snapshot, own, TALK)]
    assert heard("\n".join(shown)) == BLOCKS
    own.close()


async def _snapshot(house: Boathouse, session: SessionId) -> str:
    viewer = await house.app.viewer(house.folder, audience=Audience.MODEL, session=session)
    return await house.app.blocks.snapshot(viewer, session=session) or ""


def test_what_is_local_only_is_sent_to_no_embedder(house: Boathouse, tmp_path: Path) -> None:
    own = house.copied(tmp_path)
    anyio.run(own.app.maintenance.embed_missing)
    anyio.run(own.app.truth.consolidate.plan, own.viewer())
    assert own.embedder.sent
    assert heard("\n".join(own.embedder.sent)) <= {OPEN, PRIVATE, ELSEWHERE}
    own.close()
