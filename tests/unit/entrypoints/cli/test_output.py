"""Tables and tones, without a terminal."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stdout

import pytest

from backstory.entrypoints.cli import output
from backstory.entrypoints.cli.output import Output
from backstory.entrypoints.tables import Column, Table

TABLE = Table(
    columns=(Column("#", is_number=True), Column("memory", is_wide=True), Column("tags")),
    rows=[("7", "first\nline\tand more", "a b"), ("12", "梨の木が三本ある", "")],
    empty="Nothing.",
)


class Terminal(io.StringIO):
    """What standard output is at a terminal, for what is written to it."""

    takes = "utf-8"

    @property
    def encoding(self) -> str:  # type: ignore[override]  # StringIO has none
        return self.takes

    def isatty(self) -> bool:
        return True


@pytest.fixture
def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def printed(show: Callable[[Output], None], *, takes: str = "utf-8") -> str:
    """What a person sees."""
    terminal = Terminal()
    terminal.takes = takes
    with redirect_stdout(terminal):
        show(Output(as_json=False))
    return terminal.getvalue()


def test_a_pipe_gets_one_line_a_row_with_tabs_and_no_head(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False).table(TABLE)
    assert capsys.readouterr().out == "7\tfirst line and more\ta b\n12\t梨の木が三本ある\t\n"


@pytest.mark.usefixtures("at_a_terminal")
def test_a_terminal_gets_a_head_and_columns_that_line_up() -> None:
    assert printed(lambda out: out.table(TABLE)).splitlines() == [
        "\x1b[1m #  memory               tags\x1b[0m",
        " 7  first line and more  a b",
        "12  梨の木が三本ある",
    ]


@pytest.mark.usefixtures("at_a_terminal")
def test_the_wide_column_is_cut_at_whole_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "22")
    assert printed(lambda out: out.table(TABLE)).splitlines()[1:] == [" 7  first line …  a b", "12  梨の木が三 …"]


def test_an_empty_table_is_said_to_a_person_only() -> None:
    assert "Nothing." in printed(lambda out: out.table(Table(columns=TABLE.columns, rows=[], empty="Nothing.")))


def test_an_empty_table_is_nothing_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False).table(Table(columns=TABLE.columns, rows=[], empty="Nothing."))
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("at_a_terminal")
def test_text_cannot_command_a_terminal() -> None:
    assert printed(lambda out: out.lines([("a\x1b[2J\x07b\tc", "plain")])) == "a[2Jb\tc\n"


@pytest.mark.usefixtures("at_a_terminal")
@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colour_can_be_declined(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    assert printed(lambda out: out.lines([("x", "strong")])) == "\x1b[1mx\x1b[0m\n"
    monkeypatch.setenv(variable, value)
    assert printed(lambda out: out.lines([("x", "strong")])) == "x\n"


def test_json_keeps_characters_where_the_output_takes_them() -> None:
    assert printed(lambda out: out.json({"a": "süß"})) == '{\n  "a": "süß"\n}\n'
    assert printed(lambda out: out.json({"a": "süß"}), takes="ascii") == '{\n  "a": "s\\u00fc\\u00df"\n}\n'


def test_nothing_is_counted_out_loud_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with output.counting("Importing", "lines", shown=True) as advance:
        advance(3)
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("at_a_terminal")
def test_a_terminal_shows_what_turns_the_direction_or_stands_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = "\u202e\u200b\U000e0041d\u200de"
    shown = "\\u202e\\u200b\\U000e0041d\\u200de"
    assert printed(lambda out: out.lines([(hidden, "plain")])) == shown + "\n"
    monkeypatch.setenv("COLUMNS", "60")
    assert shown in printed(
        lambda out: out.table(Table(columns=[Column("x", is_wide=True)], rows=[[hidden]], empty=""))
    )
    needed = "👩\u200d🔧 می\u200cخواهم"
    assert printed(lambda out: out.lines([(needed, "plain")])) == needed + "\n"


@pytest.mark.usefixtures("at_a_terminal")
def test_json_at_a_terminal_has_them_in_its_own_escapes() -> None:
    value = {"a": "x\u202ey\U000e0041é"}
    text = printed(lambda out: out.json(value))
    assert "\\u202ey\\udb40\\udc41é" in text
    assert json.loads(text) == value


LONG = "The deployment of the payments service is announced in the channel #deploys ten minutes before it begins."
WIDE = Table(
    columns=(
        Column("#", is_number=True),
        Column("memory", is_wide=True),
        Column("learned"),
        Column("why", is_wide=True),
    ),
    rows=[("7", LONG, "2026-03-02", "asked"), ("12", "short", "2026-03-03", "")],
    empty="Nothing.",
)


def laid_out(monkeypatch: pytest.MonkeyPatch, columns: int) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    return printed(lambda out: out.table(WIDE)).splitlines()


@pytest.mark.parametrize("columns", [40, 60, 65])
def test_on_a_narrow_terminal_a_long_text_stands_below_its_row(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    lines = laid_out(monkeypatch, columns)
    assert lines[0] == " #  learned     why"
    assert lines[1] == " 7  2026-03-02  asked"
    assert lines[2] == "    " + LONG[: columns - 5] + "…"
    assert lines[3:] == ["12  2026-03-03", "    short"]


def test_what_is_too_much_is_taken_from_the_longest_text_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    head, first, *_ = laid_out(monkeypatch, 100)
    assert first.endswith("…  2026-03-02  asked")
    assert len(first) == 100
    assert head.endswith("why")


def test_two_long_texts_stand_below_each_other_or_share_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    other = "It was said in the session of Monday, by the user."
    columns = (Column("#", is_number=True), Column("memory", is_wide=True), Column("why", is_wide=True))
    table = Table(columns=columns, rows=[("7", LONG, other), ("12", "short", "")], empty="-")
    monkeypatch.setenv("COLUMNS", "30")
    assert printed(lambda out: out.table(table)).splitlines() == [
        " #", " 7", "    " + LONG[:25] + "…", "    why: " + other[:20] + "…", "12", "    short"
    ]  # fmt: skip
    monkeypatch.setenv("COLUMNS", "100")
    assert printed(lambda out: out.table(table)).splitlines()[1] == f" 7  {LONG[:46]}…  {other[:46]}…"
    monkeypatch.setenv("COLUMNS", "120")
    assert printed(lambda out: out.table(table)).splitlines()[1] == f" 7  {LONG[:63]}…  {other}", "it needs no more"


def test_a_table_of_long_texts_alone_keeps_one_beside_the_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    columns = (Column("said", is_wide=True), Column("kept", is_wide=True))
    table = Table(columns=columns, rows=[("梨" * 60, "b" * 60)], empty="-")
    assert printed(lambda out: out.table(table)).splitlines() == ["kept", "b" * 39 + "…", "    " + "梨" * 17 + " …"]


def test_a_column_without_anything_in_it_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    table = Table(
        columns=(Column("#", is_number=True), Column("reason"), Column("tag")), rows=[("1", "", "a")], empty="-"
    )
    assert printed(lambda out: out.table(table)).splitlines() == ["#  tag", "1  a"]
