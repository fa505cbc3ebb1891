"""Exports line by line: headers, bad lines, and marks that editors leave."""

from __future__ import annotations

import json

import pytest

from backstory.codecs.jsonl import MAX_LINE_CHARS, decode_lines, encode_lines
from backstory.domain.project import Project
from backstory.errors import InputError
from backstory.testing.fakes import ORCHARD, START, sample_memory

SHOP = Project(id=ORCHARD, name="shop", root="/shop")


def exported(*contents: str) -> list[str]:
    return list(encode_lines(map(sample_memory, contents), projects={ORCHARD: SHOP}, exported_at=START))


def test_an_export_opens_with_its_format() -> None:
    header, line = exported("a")
    assert json.loads(header) == {"format": "backstory-memories", "version": 1, "exported_at": "2026-03-02T12:00:00Z"}
    assert json.loads(line)["project_name"] == "shop"


def test_a_record_is_one_line_to_every_reader() -> None:
    text = "\n".join(exported("a\nb\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029c"))
    assert len(text.splitlines()) == 2
    (line,) = decode_lines(text.splitlines())
    assert line.memory is not None
    assert line.memory.content == "a\nb\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029c"


def test_text_stays_readable() -> None:
    assert "naïve 日本 🚀" in exported("naïve 日本 🚀")[1]


def test_an_editors_mark_and_empty_lines_do_not_matter() -> None:
    header, line = exported("a")
    lines = list(decode_lines(["\ufeff" + header + "\r\n", "\n", "  ", line + "\r\n"]))
    assert [(item.number, item.error) for item in lines] == [(4, None)]


def test_half_a_character_is_written_as_an_escape_and_refused_when_read() -> None:
    half = sample_memory("plain", area="half \ud83d")
    lines = list(encode_lines([half], projects={}, exported_at=START))
    assert "\\ud83d" in lines[1]
    lines[1].encode()
    (line,) = decode_lines(lines)
    assert "half a character" in (line.error or "")


def test_a_bad_line_is_reported_with_its_number() -> None:
    header, good = exported("a")
    bad = ["{", "5", '{"id": 1}', "x" * (MAX_LINE_CHARS + 1), "[" * 100_000, '{"n": ' + "9" * 5000 + "}"]
    lines = list(decode_lines([header, *bad, good]))
    assert [line.error is None for line in lines] == [False] * len(bad) + [True]
    assert [line.number for line in lines] == list(range(2, len(bad) + 3))


@pytest.mark.parametrize("first", ["", "{}", "[]", "null", "x", '{"format": "backstory-memories"}', "[" * 100_000])
def test_a_file_without_our_header_is_refused(first: str) -> None:
    with pytest.raises(InputError) as caught:
        list(decode_lines([first]))
    assert caught.value.field == "file"


def test_glued_records_are_each_read_and_the_line_is_reported() -> None:
    lines = list(encode_lines([sample_memory("one"), sample_memory("two")], projects={}, exported_at=START))
    first, second, report = decode_lines([lines[0], f"{lines[1]} {lines[2]}"])
    assert (first.number, second.number, report.number) == (2, 2, 2)
    assert [line.memory.content for line in (first, second) if line.memory] == ["one", "two"]
    assert report.error == "2 records stand on one line; each was read"


def test_very_many_glued_records_take_linear_time() -> None:
    header = next(iter(encode_lines([], projects={}, exported_at=START)))
    *refused, report = decode_lines([header, "{} " * 200_000])
    assert len(refused) == 200_000
    assert "200000 records" in (report.error or "")
