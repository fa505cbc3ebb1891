"""Files that hold everything: as their schema says, and read back as they were, whatever is wrong beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from importlib.resources import files
from typing import Any

import pytest

from backstory.codecs.jsonl import encode_line, encode_lines
from backstory.codecs.jsonl_records import (
    Object,
    change_object,
    digest_objects,
    foreign_records,
    header_object,
    keepsake_object,
    memory_object,
    message_objects,
    session_object,
)
from backstory.domain.blob import make_blob
from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.digest import DigestState, Piece, SessionDigest, Strategy
from backstory.domain.history import Edit
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.interchange import (
    ForeignDigest,
    ForeignHistory,
    ForeignMemory,
    ForeignMessages,
    ForeignRecord,
    ForeignSession,
    Keepsake,
    Remark,
    Unreadable,
)
from backstory.domain.memory import Conflicted, Counters, Deleted, Memory, Superseded
from backstory.domain.project import Project
from backstory.domain.provenance import Provenance
from backstory.errors import InputError
from backstory.testing.fakes import ORCHARD, START, sample_change, sample_memory, ulid

jsonschema: Any = import_module("jsonschema")  # it brings no types
SCHEMA = json.loads(files("backstory.codecs").joinpath("jsonl.schema.json").read_text(encoding="utf-8"))
SESSION = Session(
    id=SessionId("ses_a"), project=ORCHARD, host="import:opencode", directory="/orchard", title="Pruning",
    created_at=START, updated_at=START + timedelta(hours=1),
)  # fmt: skip
PICTURE = make_blob(b"\x89PNG" + bytes(range(256)))
NOTES = make_blob("a long, long talk \u2028".encode() * 50)
SAID = Message(
    id=MessageId("msg_1"), session=SESSION.id, role=Role.USER, agent="build", created_at=START, completed_at=START,
    parts=(
        Part(id=PartId("p1"), kind="text", text=f"see {PICTURE.hash}", blobs=(PICTURE.ref("image/png"),)),
        Part(id=PartId("p2"), kind="tool", tool="bash", detail='{"a": 1}', synthetic=True),
    ),
)  # fmt: skip
DIGEST = SessionDigest(
    state=DigestState(session=SESSION.id, strategy=Strategy.TREE, shown=("node0_001",), updated_at=START),
    pieces=(
        Piece(
            session=SESSION.id, id="node0_001", strategy=Strategy.TREE, level=0, text="Prune in March", start=0, end=0,
            sources=(SAID.id,), made_by="m", prompt="p/1", source_tokens=4, created_at=START,
        ),
    ),
)  # fmt: skip
MEMORIES = (
    sample_memory("plain", tags=("a", "ü"), area="x/y", issue="#5", counters=Counters(helpful=2)),
    sample_memory("replaced", status=Superseded(by=sample_memory("plain").id, since=START)),
    sample_memory("doubted", status=Conflicted(evidence="e", since=START)),
    sample_memory("gone", status=Deleted(since=START, reason="old")),
    sample_memory("with its source", provenance=Provenance(session=SESSION.id, origin_system="x", raw={"k": "v"})),
)
SHOP = Project(id=ORCHARD, name="orchard", root="/orchard")


def objects() -> Iterator[Object]:
    yield header_object(exported_at="2026-03-02T12:00:00Z", holds=["memories", "sessions"], projects=[SHOP])
    yield change_object(sample_change(1, *(Edit(before=None, after=memory) for memory in MEMORIES)))
    yield change_object(sample_change(2, Edit(before=MEMORIES[0], after=replace(MEMORIES[0], pinned=True))))
    yield from map(memory_object, MEMORIES)
    yield session_object(SESSION)
    yield from message_objects(SAID, [PICTURE])
    yield from message_objects(replace(SAID, id=MessageId("msg_2"), parts=()), [])
    yield from digest_objects(DIGEST)
    yield keepsake_object(Keepsake(format="notebook", store="left", key="k", text="{}", session=SESSION.id))


def read(*lines: str) -> list[ForeignRecord]:
    return list(foreign_records(lines))


def wrong(*changed: dict[str, Any]) -> list[str]:
    """The file with lines put after its header."""
    header, *rest = map(encode_line, objects())
    return [header, *(json.dumps(line) for line in changed), *rest]


def test_every_line_is_as_the_schema_says() -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for line in map(encode_line, objects()):
        assert list(validator.iter_errors(json.loads(line))) == []
    for line in encode_lines(MEMORIES, projects={ORCHARD: SHOP}, exported_at=START):
        assert list(validator.iter_errors(json.loads(line))) == []


@pytest.mark.parametrize("line", [{"type": "poem"}, {"type": "memory"}, {"type": "session", "id": 7}, []])
def test_the_schema_refuses_what_an_import_refuses(line: object) -> None:
    assert list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(line))


def test_everything_is_read_back_as_it_was() -> None:
    records = read(*map(encode_line, objects()))
    assert [type(record) for record in records] == [
        ForeignHistory, ForeignHistory, *(ForeignMemory for _ in MEMORIES), ForeignSession, ForeignMessages,
        ForeignMessages, ForeignDigest, Keepsake,
    ]  # fmt: skip
    memories = [record.memory for record in records if isinstance(record, ForeignMemory)]
    assert memories == list(MEMORIES)
    assert {record.place for record in records if isinstance(record, ForeignMemory | ForeignSession)} == {"/orchard"}
    said = [record for record in records if isinstance(record, ForeignMessages)]
    assert (said[0].messages, said[0].blobs, said[1].blobs) == ((SAID,), (PICTURE,), ())
    assert [record.digest for record in records if isinstance(record, ForeignDigest)] == [DIGEST]
    assert [record.session for record in records if isinstance(record, ForeignSession)] == [SESSION]


def test_a_large_message_takes_several_lines_and_is_one_again() -> None:
    parts = tuple(Part(id=PartId(f"p{n}"), kind="text", text=f"{n}" * 400_000) for n in range(5))
    large = replace(SAID, parts=parts)
    lines = list(map(encode_line, message_objects(large, [])))
    assert len(lines) == 3
    header = encode_line(next(objects()))
    (record,) = read(header, *lines)
    assert isinstance(record, ForeignMessages)
    assert record.messages == (large,)


def test_contents_that_are_no_text_and_those_that_are_come_back() -> None:
    ref = (PICTURE.ref("image/png"), NOTES.ref("text/plain"))
    message = replace(SAID, parts=(Part(id=PartId("p"), kind="file", blobs=ref),))
    header = encode_line(next(objects()))
    (record,) = read(header, *map(encode_line, message_objects(message, [PICTURE, NOTES])))
    assert isinstance(record, ForeignMessages)
    assert set(record.blobs) == {PICTURE, NOTES}


BAD: dict[str, dict[str, Any]] = {
    "a session without a date": {"type": "session", "id": "s", "host": "h"},
    "a message of nobody": {"type": "message", "id": "m", "session": "s", "created_at": "2026-01-01T00:00:00Z"},
    "parts that are no list": {
        "type": "message", "id": "m", "session": "s", "role": "user", "created_at": "2026-01-01T00:00:00Z", "parts": 7
    },
    "a content under another name": {"type": "blob", "blob": "0" * 64, "size": 1, "text": "x"},
    "base64 that is none": {"type": "blob", "blob": "0" * 64, "size": 1, "base64": "#"},
    "a piece outside of its digest": {
        "type": "piece", "session": "s", "id": "node0_001", "strategy": "tree", "level": 0, "start": 0, "end": 0,
        "created_at": "2026-01-01T00:00:00Z",
    },
    "a digest that lacks pieces": {
        "type": "digest", "session": "s", "strategy": "tree", "updated_at": "2026-01-01T00:00:00Z", "pieces": 2
    },
    "a change of nothing": {
        "type": "change", "id": ulid(1), "at": "2026-01-01T00:00:00Z", "author": "user", "action": "add", "edits": []
    },
    "an author that there is not": {
        "type": "change", "id": ulid(1), "at": "2026-01-01T00:00:00Z", "author": "king", "action": "add",
        "edits": [{"before": None, "after": {}}],
    },
    "a keepsake without its key": {"type": "keepsake", "format": "x", "text": "{}"},
    "half a character": {"type": "keepsake", "format": "x", "key": "\ud83d", "text": "{}"},
    "nested too deeply": {"type": "session", "id": json.loads("[" * 900 + "]" * 900)},
}  # fmt: skip


@pytest.mark.parametrize("line", BAD.values(), ids=BAD)
def test_a_bad_line_is_told_with_its_number_and_the_others_are_read(line: dict[str, Any]) -> None:
    good = read(*map(encode_line, objects()))
    records = read(*wrong(line))
    bad = [record for record in records if isinstance(record, Unreadable)]
    assert [record.where for record in bad] == ["line 2"]
    assert len(records) - 1 == len(good)


def test_a_kind_of_line_that_a_later_version_may_have_is_left_out_with_a_remark() -> None:
    (remark,) = [record for record in read(*wrong({"type": "poem", "text": "x"})) if isinstance(record, Remark)]
    assert "poem" in remark.text


def test_a_file_of_a_later_version_is_refused() -> None:
    with pytest.raises(InputError, match="version 3"):
        read('{"format": "backstory-memories", "version": 3}')


def test_version_1_knows_no_types() -> None:
    line = json.dumps(memory_object(MEMORIES[0]))
    (record,) = read('{"format": "backstory-memories", "version": 1}', line)
    assert isinstance(record, Unreadable)


def test_a_header_with_odd_projects_is_read_as_far_as_it_makes_sense() -> None:
    header = {"format": "backstory-memories", "version": 2, "projects": [7, {"id": ORCHARD, "root": ["x"]}, {"id": 8}]}
    memory: Memory = MEMORIES[0]
    (record,) = read(json.dumps(header), json.dumps(memory_object(memory)))
    assert isinstance(record, ForeignMemory)
    assert (record.memory.project, record.place) == (ORCHARD, None)
