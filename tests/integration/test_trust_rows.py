"""Hard rows (break-outs, private passages, secrets) through what is made of sessions, and through what explains it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from backstory.domain.context_block import SNAPSHOT_TAG, quote
from backstory.domain.ids import MessageId
from backstory.entrypoints.drive import drive
from backstory.ports.text_models import TextRequest
from tests.integration.test_store_cases import OUR_BREAKOUTS, need, rows, text_of
from tests.poisoned import NIGHT, Farm, Obedient, told, used

OUR_SECRETS = (
    (["deploy with ", "ghp_", "q7Lm2Xz9" * 4 + "b4Tn", " tonight"], 2),
    (["DATABASE_URL=postgres://mole:", "dIg-", "th3-b4nk!", "@db.example.invalid/x"], 2),
)
OUR_PRIVATE = ("The vet is <private>doctor heron-pass-77</private> again.", "My pin is <private>heron-pass-77")
PRIVATE = "heron-pass-77"


class Parrot(Obedient):
    """A model that proposes, and says, just these texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__()
        self._texts = texts

    def _proposals(self, prompt: str) -> str:
        new = [
            {"text": text, "type": "fact", "scope": "project", "confidence": 1, "sources": [1]} for text in self._texts
        ]
        return json.dumps({"new": new, "update": [], "delete": [], "conflicts": []})

    def _answer(self, request: TextRequest) -> str:
        if "<conversation>" in request.prompt or "<new>" in request.prompt:
            return super()._answer(request)
        return "\n".join(self._texts)


def breakouts() -> Iterator[Any]:
    for number, text in enumerate(OUR_BREAKOUTS):
        yield pytest.param({"memory": text, "must_survive": []}, id=f"our {number}")
    for row in rows("injection-escape.jsonl"):
        yield pytest.param(row, id=row["id"])


@pytest.mark.parametrize("row", list(breakouts()))
def test_a_break_out_stays_in_its_line_wherever_it_is_told(tmp_path: Path, row: dict[str, Any]) -> None:
    """In a fact that is distilled, the summary of a project, a report, a story, and an old session."""
    need(row)
    hostile = text_of(row, "memory")
    farm = Farm(tmp_path, model=Parrot([hostile]), limits__content_max_chars=100_000)
    for text in ("The north gate opens at seven.", "The south gate opens at eight.", hostile, f"{hostile} "):
        farm.state(text, pinned=True)
    farm.talk(
        told(farm, f"We decided: {hostile}"), told(farm, used("bash", hostile), hostile, user=False), title=hostile
    )
    farm.dream()
    _check_prompt(farm)
    snapshot = farm.snapshot()
    assert snapshot.count(f"<{SNAPSHOT_TAG}>") == snapshot.count(f"</{SNAPSHOT_TAG}>") == 1
    assert all(line.startswith("- [") for line in snapshot.splitlines()[2:-1])
    for said in _told(farm):
        assert [line for line in said.splitlines() if quote(line) != line.strip()] == []
        assert _forged(said, hostile) == []
    farm.close()


def _check_prompt(farm: Farm) -> None:
    """Each frame in a request is opened and closed once, and nobody else's line begins a message in it."""
    assert farm.model
    for request in farm.model.requests:
        for name in ("memories", "conversation", "known", "new"):
            opened, closed = (len(re.findall(f"^<{sign}{name}>$", request.prompt, re.MULTILINE)) for sign in ("", "/"))
            assert opened == closed <= 1, name


def _told(farm: Farm) -> Iterator[str]:
    """What tools tell a model of all this."""
    for n in range(1, 6):
        yield farm.tool("memory_inspect", view="why", id=n).text
    for view in ("recent", "conflicts", "project", "shown", "silent", "tags"):
        yield farm.tool("memory_inspect", view=view).text
    yield farm.tool("memory_consolidate").text
    yield farm.tool("memory_recall", where="all").text
    yield farm.tool("session_recall").text
    yield farm.tool("session_recall", session=NIGHT).text


def _forged(said: str, hostile: str) -> list[str]:
    """Later lines of a hostile text that stand at the margin, as if we had written them."""
    later = {line.strip() for line in hostile.splitlines()[1:] if len(line.strip()) > 3}
    return [line for line in said.splitlines() if line in later]


def test_no_private_passage_leaves_a_session_by_any_way(tmp_path: Path) -> None:
    texts = [*OUR_PRIVATE, *(row["text"] for row in rows("private-tags.jsonl") if "text" in row)]
    _check_gone(tmp_path, texts, [PRIVATE])


def test_no_secret_leaves_a_session_by_any_way(tmp_path: Path) -> None:
    found = [row for row in rows("secrets.jsonl") if row.get("expect") == "redact"]
    texts = ["".join(parts) for parts, _ in OUR_SECRETS] + ["".join(row["text_parts"]) for row in found]
    gone = [parts[place] for parts, place in OUR_SECRETS]
    for row in found:
        gone += ["".join(row["secret_parts"]), *(row["secret_parts"][place] for place in row.get("vanish_parts", ()))]
    _check_gone(tmp_path, texts, [part for part in gone if len(set(part)) > 2])  # zeros stand in our own ids


def _check_gone(folder: Path, texts: Sequence[str], gone: Sequence[str]) -> None:
    """The texts are typed, answered, printed by a tool and proposed by a model; then neither what models were asked nor
    any byte of the store has what must be gone, nor does anything that tells of it."""
    model = Parrot(texts)
    farm = Farm(folder, model=model, session__strategy="tree", tree__max_raw=2, tree__min_batch=2)
    messages = []
    for text in texts:
        messages += [told(farm, text), told(farm, used("bash", text, command=text), text, user=False)]
    farm.talk(*messages, title=" ".join(texts))
    for number, text in enumerate(texts):
        farm.prompt(f"Remember that it is so: {text}")
        farm.tool("memory_remember", content=f"Number {number}. {text}", tags=["row"])
    sessions = farm.app.long_sessions
    assert sessions is not None
    farm.run(sessions.work.force, NIGHT)
    farm.run(sessions.work.work, NIGHT)
    farm.dream()
    said = [model.asked(), *_told(farm), *(json.dumps(line, ensure_ascii=False) for line in farm.exported())]
    blocks = drive(farm.app.backend.conversations.blocks([MessageId(f"msg_prompt_{n}") for n in range(len(texts) + 1)]))
    said += [block.text for block in blocks.values()]
    farm.close()
    stored = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    for secret in gone:
        assert not any(secret in text for text in said), secret
        assert not any(secret.encode() in data or json.dumps(secret)[1:-1].encode() in data for data in stored), secret
