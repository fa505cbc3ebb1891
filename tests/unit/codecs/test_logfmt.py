"""The line format: byte for byte as its own tool writes it, every line accounted for."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backstory.codecs.logfmt import (
    Deletion,
    Line,
    Record,
    encode_deletion,
    encode_record,
    parse_ancestor,
    parse_line,
    parse_lines,
    render_lines,
    without_duplicates,
)
from backstory.errors import InputError

SHARED = Path(__file__).parents[4] / "shared"
CASES = SHARED / "cases" / "logfmt-roundtrip.jsonl"
SEED = SHARED / "seed-stores" / "git-memory"

RECORD = Record(ts="2026-01-02T03:04:05.000Z", type="learning", scope="build win", content='use "-O2"\nand C:\\tools')


def record(**fields: Any) -> Record:
    return Record(**({"ts": "2026-05-01T06:00:00.000Z", "type": "context", "scope": "pond", "content": "x"} | fields))


def cases(*kinds: str) -> list[Any]:
    if not CASES.exists():
        return [pytest.param({}, marks=pytest.mark.skip(reason=f"{CASES.name} is not here"))]
    rows = [json.loads(line) for line in CASES.read_text(encoding="utf-8").split("\n") if line]
    return [pytest.param(row, id=row["id"]) for row in rows if row["kind"] in kinds]


def test_a_record_is_written_as_its_own_tool_writes_it() -> None:
    line = encode_record(record(issue="#12", tags=("ci", "two words")))
    assert line == 'ts=2026-05-01T06:00:00.000Z type=context scope=pond content="x" issue=#12 tags="ci,two words"'
    assert encode_record(RECORD).endswith(r'scope="build win" content="use \"-O2\"\nand C:\\tools"')


def test_a_deletion_is_written_as_its_own_tool_writes_it() -> None:
    deletion = Deletion(ts="2026-06-01T00:00:00.000Z", record=record(tags=("ci",)), reason="dry\nnow")
    line = encode_deletion(deletion)
    assert line == (
        "ts=2026-06-01T00:00:00.000Z action=deleted original_ts=2026-05-01T06:00:00.000Z type=context scope=pond "
        r'content="x" reason="dry\nnow" tags=ci'
    )
    assert parse_line(line).deletion == deletion


@pytest.mark.parametrize(
    "content",
    ["", "a=b", "\\n", "\\\\", "tail\\", '\\"', "a\u2028b\x85c\x0bd", "\r\n", 'ts=1 type=context scope=x content="y"'],
)
def test_any_text_comes_back_from_one_line(content: str) -> None:
    line = encode_record(record(content=content))
    assert "\n" not in line
    assert [found.record for found in parse_lines(line + "\n")] == [record(content=content)]


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "rumour"},
        {"scope": ""},
        {"ts": ""},
        {"content": "a\0b"},
        {"content": "half \ud83d"},
        {"tags": ("a,b",)},
        {"tags": ("",)},
    ],
)
def test_what_could_not_be_read_back_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        encode_record(record(**fields))


def test_an_unknown_backslash_pair_is_kept_as_it_is() -> None:
    assert parse_line(r'ts=1 type=context scope=x content="C:\temp \\srv"').record == Record(
        ts="1", type="context", scope="x", content=r"C:\temp \srv"
    )


def test_a_line_that_is_no_record_is_handed_back_with_what_is_wrong() -> None:
    text = "# by hand\nts=1 type=gossip scope=x\n<<<<<<< ours\nts=1 ty\n"
    assert parse_lines(text) == [
        Line(text="# by hand"),
        Line(text="ts=1 type=gossip scope=x", problem="the type is 'gossip'"),
        Line(text="<<<<<<< ours"),
        Line(text="ts=1 ty", problem="type is missing"),
    ]


def test_writing_the_lines_back_changes_no_byte() -> None:
    text = "# note\n" + encode_record(RECORD) + "\nts=odd  type=x\n"
    assert render_lines(line.text for line in parse_lines(text)) == text


def test_an_empty_file_is_a_single_line_end() -> None:
    assert render_lines([]) == "\n"
    assert parse_lines("\n") == []


def test_a_text_with_many_backslashes_is_read_in_a_moment() -> None:
    assert parse_line('ts=1 type=context scope=x content="' + "\\" * 100_001).record is not None


def test_records_of_the_older_tool_may_take_several_lines() -> None:
    text = (
        'ts=1 type=context scope=x content="first\nsecond \\"quoted\\" C:\\new" issue=#1 tags=a,b\n'
        'ts=2 type=learning scope=y content="plain"\n'
    )
    assert [line.record for line in parse_ancestor(text)] == [
        Record(
            ts="1", type="context", scope="x", content='first\nsecond "quoted" C:\\new', issue="#1", tags=("a", "b")
        ),
        Record(ts="2", type="learning", scope="y", content="plain"),
    ]


def test_a_sample_of_the_older_tool_is_read_whole() -> None:
    path = SEED / "legacy-worktree" / ".opencode" / "memory"
    if not path.exists():
        pytest.skip("the sample store is not here")
    files = {file.name: parse_ancestor(file.read_text(encoding="utf-8")) for file in path.iterdir()}
    contents = [line.record.content for line in files["2026-11-29.logfmt"] if line.record]
    assert contents == [r"UNC share \\srv\cache needs trailing slash", "first line\nsecond line", "Prefers 2 spaces"]
    reasons = [line.deletion.reason for line in files["deletions.logfmt"] if line.deletion]
    assert reasons == ["Updated to: Prefers 2 spaces", 'moved to "docs"']


# --- the shared cases -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", cases("roundtrip"))
def test_a_shared_record_comes_back_or_is_refused(row: dict[str, Any]) -> None:
    fields = dict(row["memory"])
    generated = "".join(part["s"] * part["n"] for part in fields.pop("content_gen", []))
    wanted = Record(**(fields | {"content": fields.get("content", generated), "tags": tuple(fields.get("tags", ()))}))
    try:
        line = encode_record(wanted)
    except InputError:
        assert "reject" in row["expect"]
        return
    assert "\n" not in line
    [found] = parse_lines(line + "\n")
    assert found.record == wanted


@pytest.mark.parametrize("row", cases("parse_line"))
def test_a_shared_line_is_read(row: dict[str, Any]) -> None:
    line = parse_line(row["line"])
    expect = row["expect"]
    wanted = None if expect is None else Record(**(expect | {"tags": tuple(expect.get("tags", ()))}))
    assert line.record == wanted
    assert line.text == row["line"].rstrip("\r")


@pytest.mark.parametrize("row", cases("parse_file"))
def test_a_shared_file_is_read_and_nothing_in_it_is_lost(row: dict[str, Any]) -> None:
    lines = parse_lines(base64.b64decode(row["bytes_b64"]).decode())
    records = [line.record for line in lines if line.record]
    assert [record.content for record in records] == row["expect_contents"]
    rewritten = render_lines(line.text for line in without_duplicates(lines))
    assert all(text in rewritten for text in row.get("preserve_on_rewrite", []))
    assert {line.record for line in parse_lines(rewritten) if line.record} == set(records)


def test_a_time_with_an_offset_stays_the_same_instant() -> None:
    [line] = parse_lines(encode_record(record(ts="2026-03-02T12:00:00+02:00")))
    assert line.record is not None
    assert datetime.fromisoformat(line.record.ts) == datetime(2026, 3, 2, 10, tzinfo=UTC)


def test_the_exports_of_the_original_tool_are_written_byte_for_byte() -> None:
    path = SEED / "export-with-deletions.logfmt"
    if not path.exists():
        pytest.skip("the sample store is not here")
    text = path.read_text(encoding="utf-8")
    written = [
        encode_record(line.record) if line.record else encode_deletion(line.deletion) if line.deletion else line.text
        for line in parse_lines(text)
    ]
    assert render_lines(written) == text.rstrip("\n") + "\n"
