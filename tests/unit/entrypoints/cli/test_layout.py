"""Tables on terminals of any width: nothing overflows, nothing is lost without a sign."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.entrypoints.cli.layout import laid_out
from backstory.entrypoints.tables import Column, Table

ID = "01M8PZA584R46ZQSDQHWH7YG1M"
PROJECTS = Table(
    columns=(
        Column("project"),
        Column("id"),
        Column("folder", is_wide=True),
        Column("memories", is_number=True),
        Column("candidates", is_number=True),
        Column("last seen"),
    ),
    rows=[("alpha", ID, "/home/ada/work/alpha", "12", "0", "2026-11-30"), ("be", ID, "", "3", "", "2026-11-29")],
    empty="",
)


def shown(cells: int) -> list[str]:
    return list(laid_out(PROJECTS, terminal_cells=cells))


def test_with_room_every_column_stands_beside_the_others() -> None:
    assert shown(120)[0].split() == ["project", "id", "folder", "memories", "candidates", "last", "seen"]
    assert len(shown(120)) == 3


def test_a_short_text_that_would_be_cut_goes_below_when_the_others_overflow() -> None:
    assert shown(72)[1:3] == [
        f"alpha    {ID}        12           0  2026-11-30",
        "    /home/ada/work/alpha",
    ]


def test_columns_that_do_not_fit_go_below_by_name_and_empty_cells_are_left_out() -> None:
    assert shown(40) == [
        "project  id",
        f"alpha    {ID}",
        "    /home/ada/work/alpha",
        "    memories 12 · candidates 0",
        "    last seen 2026-11-30",
        f"be       {ID}",
        "    memories 3 · last seen 2026-11-29",
    ]


def test_of_several_texts_below_a_row_all_but_the_first_say_what_they_are() -> None:
    columns = (Column("#", is_number=True), Column("memory", is_wide=True), Column("check", is_wide=True))
    table = Table(columns=columns, rows=[("7", "m" * 60, "c" * 50), ("8", "", "d" * 50)], empty="")
    assert list(laid_out(table, terminal_cells=40)) == [
        "#",
        "7",
        "    " + "m" * 35 + "…",
        "    check: " + "c" * 28 + "…",
        "8",
        "    check: " + "d" * 28 + "…",
    ]


@pytest.mark.parametrize("cells", range(36, 130))
def test_the_table_of_projects_fits_any_terminal_that_holds_an_id(cells: int) -> None:
    assert max(map(len, shown(cells))) <= cells


words = st.text(alphabet="ab cd", max_size=60).map(lambda text: " ".join(text.split()))


@given(
    rows=st.lists(st.tuples(words, words, words, words), min_size=1, max_size=4),
    wide=st.tuples(*[st.booleans()] * 4),
    cells=st.integers(40, 140),
)
def test_no_line_is_wider_than_the_terminal(rows: list[tuple[str, ...]], wide: tuple[bool, ...], cells: int) -> None:
    columns = [Column(title, is_wide=is_wide) for title, is_wide in zip("wxyz", wide, strict=True)]
    lines = laid_out(Table(columns=columns, rows=rows, empty=""), terminal_cells=cells)
    assert max(map(len, lines)) <= cells
