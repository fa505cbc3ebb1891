"""Messages cut into passages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from backstory.domain.conversation import Part, Role
from backstory.domain.evidence_passages import PASSAGE_CHARS, PassageLimits, cut, indexed_text, passages_of
from backstory.domain.ids import PartId
from backstory.testing.fakes import START

LIMITS = PassageLimits()


def part(text: str = "", kind: str = "text", **fields: Any) -> Part:  # Any: the fields of Part
    return Part(id=PartId("p"), kind=kind, text=text, **fields)


def test_a_short_text_is_one_passage() -> None:
    assert cut("  It rains.\n", at_most=9) == ["It rains."]
    assert cut(" \n\t ", at_most=9) == cut("", at_most=9) == []


def test_a_long_text_is_cut_between_paragraphs_lines_or_sentences() -> None:
    paragraph = "word " * 20
    assert cut(f"{paragraph}\n\n{paragraph}", size=120, at_most=9) == [paragraph.strip()] * 2
    assert cut(f"{paragraph}\n{paragraph}", size=120, at_most=9) == [paragraph.strip()] * 2
    assert cut("One is here. Two is there.", size=14, at_most=9) == ["One is here.", "Two is there."]
    assert cut("今日は雨です。明日は晴れます。", size=9, at_most=9) == ["今日は雨です。", "明日は晴れます。"]


def test_a_text_without_borders_is_cut_all_the_same() -> None:
    pieces = cut("x" * 2500, at_most=9)
    assert [len(piece) for piece in pieces] == [800, 800, 900]
    assert "".join(pieces) == "x" * 2500


def test_nothing_is_lost_between_passages() -> None:
    text = " ".join(f"Sentence number {n} says {n}." for n in range(400))
    assert "".join("".join(cut(text, at_most=99)).split()) == "".join(text.split())
    assert all(len(piece) <= PASSAGE_CHARS * 5 // 4 for piece in cut(text, at_most=99))


def test_only_so_many_passages_are_kept() -> None:
    assert len(cut("x" * 100_000, at_most=3)) == 3
    assert cut("x", at_most=0) == []


@pytest.mark.parametrize("unit", ["a", " ", "\n", "\n\n", ". ", "界", "😀"])
def test_cutting_a_huge_text_ends(unit: str) -> None:
    pieces = cut(unit * 1_000_000, at_most=10_000_000)
    assert all(len(piece) <= PASSAGE_CHARS * 5 // 4 for piece in pieces)


def test_what_was_said_and_thought_becomes_passages() -> None:
    assert passages_of(part("hello"), LIMITS) == ["hello"]
    assert passages_of(part("hm", "reasoning"), LIMITS) == ["hm"]


def test_what_a_program_put_there_does_not() -> None:
    assert passages_of(part("a pasted file", synthetic=True), LIMITS) == []
    assert passages_of(part("bytes", "file"), LIMITS) == []
    assert passages_of(part("what we know", "tool", tool="memory_recall"), LIMITS) == []


def test_a_tool_call_gives_its_arguments_and_the_beginning_of_its_output() -> None:
    detail = json.dumps({"state": {"input": {"command": "make check", "timeout": 5, "env": {"A": 1}}}})
    found = passages_of(part("ok\n" * 5000, "tool", tool="bash", detail=detail), LIMITS)
    assert found[0].startswith("bash: make check 5\nok")
    assert len(found) == 2
    assert len(passages_of(part("ok\n" * 5000, "tool", tool="bash"), PassageLimits(tool=5))) == 5
    assert passages_of(part("ok", "tool", tool="bash"), PassageLimits(tool=0)) == []
    assert passages_of(part("", "tool", tool="bash"), LIMITS) == []


@pytest.mark.parametrize("detail", [None, "", "{", "[]", "1", '{"state": 5}', '{"state": {"input": []}}', "[" * 9000])
def test_a_tool_call_told_in_another_shape_gives_its_output(detail: str | None) -> None:
    assert passages_of(part("done", "tool", tool="bash", detail=detail), LIMITS) == ["bash: \ndone"]


def test_words_are_indexed_with_the_day_and_the_speaker() -> None:
    assert indexed_text("Rain.", role=Role.USER, at=START) == "2 March 2026 user: Rain."
