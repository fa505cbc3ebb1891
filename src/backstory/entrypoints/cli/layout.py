"""How a table is laid out for a person's terminal: which columns stand side by side, which go below, how wide each is.

Imported only where there is a terminal: counting the cells of a text needs ``rich``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size  # some characters take two cells, some none

from backstory.entrypoints.tables import Column, Table

_NARROW_CELLS = 32
"""The widest a narrow column gets on a terminal: an id or the name of a setting fits."""
_LEAST_CELLS = 12
"""The narrowest a wide column gets; on a terminal too small for that, lines wrap."""
_READABLE_CELLS = 44
"""With less room than this, a long text that would lose much gets a line of its own."""
_GAP = 2
_INDENT = 4
_BETWEEN = " · "


def laid_out(table: Table, *, terminal_cells: int) -> Iterator[str]:
    """The lines of a table, head first; its cells are clean already: one line each, no signs that show nothing.

    Narrow columns keep their width up to a limit; the wide ones share the rest. Where that leaves too little to read,
    a wide column goes on a line of its own below each row, the widest first; where there are several, all but the first
    say what they are. What still does not fit goes there too, the last column first, each cell with the name of its
    column; the first column always stays. Columns that are empty in all rows are left out.
    """
    arranged = _arranged(table.columns, table.rows, terminal_cells)
    yield arranged.line([column.title for column in table.columns])
    for row in table.rows:
        yield arranged.line(row)
        for at in arranged.below:
            if row[at]:
                name = "" if at == arranged.below[0] else f"{table.columns[at].title}: "
                yield _indented(name + row[at], terminal_cells)
        for line in _packed(arranged.named(row), terminal_cells):
            yield _indented(line, terminal_cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arranged:
    """Where each column goes: the positions of those side by side, of those with a line of their own below, and of
    those named below; and every width in cells."""

    columns: Sequence[Column]
    beside: Sequence[int]
    below: Sequence[int]
    named_below: Sequence[int]
    cells: Sequence[int]

    def line(self, row: Sequence[str]) -> str:
        """What stands side by side of a row."""
        fitted = [_fitted(row[at], cells=self.cells[at], right=self.columns[at].is_number) for at in self.beside]
        return (" " * _GAP).join(fitted).rstrip()

    def named(self, row: Sequence[str]) -> list[str]:
        """What stands below with its name; a cell that is empty is left out."""
        return [f"{self.columns[at].title} {row[at]}" for at in self.named_below if row[at]]


def _arranged(columns: Sequence[Column], rows: Sequence[Sequence[str]], terminal_cells: int) -> _Arranged:
    beside = [at for at in range(len(columns)) if any(row[at] for row in rows)]
    natural = [
        max(cell_len(text) for text in (column.title, *texts)) for column, *texts in zip(columns, *rows, strict=True)
    ]
    cells = [
        size if column.is_wide else min(size, _NARROW_CELLS) for column, size in zip(columns, natural, strict=True)
    ]
    wide = [at for at in beside if columns[at].is_wide]
    below: list[int] = []
    named_below: list[int] = []
    shared = _shared(cells, wide, beside, terminal_cells)
    while len(beside) > 1 and (cut := _moved(natural, wide, beside, shared, terminal_cells)) is not None:
        beside.remove(cut)
        (below if cut in wide else named_below).append(cut)
        wide = [at for at in wide if at != cut]
        shared = _shared(cells, wide, beside, terminal_cells)
    return _Arranged(columns=columns, beside=beside, below=sorted(below), named_below=sorted(named_below), cells=shared)


def _moved(
    natural: Sequence[int], wide: Sequence[int], beside: Sequence[int], cells: Sequence[int], terminal_cells: int
) -> int | None:
    """The next column to go below its row: one that would be cut too much, or, where all overflow, one to make room."""
    cut = _cut_most(natural, wide, cells)
    if cut is not None or _needed(beside, cells) <= terminal_cells:
        return cut
    shortened = [at for at in wide if at != beside[0] and cells[at] < natural[at]]
    return max(shortened, key=lambda at: natural[at], default=beside[-1])


def _cut_most(natural: Sequence[int], wide: Sequence[int], cells: Sequence[int]) -> int | None:
    """The widest of the columns with long texts that would lose much and keep too little to read, if there is one."""
    long = (at for at in wide if natural[at] > _NARROW_CELLS)
    cut = (at for at in long if cells[at] < min(natural[at] - _LEAST_CELLS, _READABLE_CELLS))
    return max(cut, key=lambda at: natural[at], default=None)


def _needed(beside: Sequence[int], cells: Sequence[int]) -> int:
    return sum(cells[at] for at in beside) + _GAP * (len(beside) - 1)


def _shared(cells: Sequence[int], wide: Sequence[int], beside: Sequence[int], terminal_cells: int) -> list[int]:
    """Each column's width: the wide ones share what the others leave, and a small one takes no more than it needs."""
    sizes = list(cells)
    left = terminal_cells - _GAP * (len(beside) - 1) - sum(sizes[at] for at in beside if at not in wide)
    for waiting, at in zip(range(len(wide), 0, -1), sorted(wide, key=lambda at: sizes[at]), strict=True):
        sizes[at] = min(sizes[at], max(left // waiting, _LEAST_CELLS))
        left -= sizes[at]
    return sizes


def _packed(pieces: Sequence[str], terminal_cells: int) -> Iterator[str]:
    """Pieces side by side on as few lines as the terminal allows."""
    line = ""
    for piece in pieces:
        longer = f"{line}{_BETWEEN}{piece}" if line else piece
        if line and cell_len(longer) > terminal_cells - _INDENT:
            yield line
            longer = piece
        line = longer
    if line:
        yield line


def _indented(text: str, terminal_cells: int) -> str:
    room = max(terminal_cells - _INDENT, _LEAST_CELLS)
    return " " * _INDENT + _fitted(text, cells=min(cell_len(text), room), right=False)


def _fitted(text: str, *, cells: int, right: bool) -> str:
    size = cell_len(text)
    if size > cells:
        return set_cell_size(text, cells - 1) + "…"
    return " " * (cells - size) + text if right else text + " " * (cells - size)
