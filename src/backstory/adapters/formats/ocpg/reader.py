"""ocpg's stores as memories: a dump, its CSV files, or the database itself, in each of its layouts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from backstory.adapters.formats.ocpg import database
from backstory.adapters.formats.ocpg.database import SCHEMES
from backstory.adapters.formats.ocpg.finding import csv_beside, found_at, preface_of
from backstory.adapters.formats.ocpg.keeping import (
    ALL_COLUMNS,
    PAGE,
    TYPES,
    VECTORS_KEPT,
    Layout,
    Recall,
    layout_kept,
    order_kept,
    recalls_kept,
    vector_kept,
)
from backstory.adapters.formats.ocpg.rows import SYSTEM, OcpgRow, memory_of, moment
from backstory.adapters.formats.ocpg.sources import CSV_FILES, of_csv, of_script
from backstory.adapters.formats.ocpg.tables import MEMORIES, RECALLS, Counted, Data, Event, Table, Trouble
from backstory.adapters.formats.ocpg.told_rows import NOT_DATED, Values, integer, memory_id, raw_of, row_of
from backstory.adapters.formats.ocpg.values import exact_time_text, time_of
from backstory.domain.ids import MemoryId
from backstory.domain.interchange import ForeignMemory, ForeignRecord, Keepsake, Remark, Unreadable
from backstory.domain.memory import Visibility
from backstory.ports.formats import FoundStore, ReadLimits

_NOT_DATED_TEXT = exact_time_text(0)
_HALF = re.compile("[\ud800-\udfff]")
_VECTOR = re.compile(r"\[[-+0-9.eE, ]{1,400000}\]", re.ASCII)
_MOST_DIMENSIONS = 16_000  # of a vector in Postgres


class OcpgReader:
    """Reads dumps, CSV files and databases of ocpg."""

    name = SYSTEM

    def find(self, place: str) -> Sequence[FoundStore]:
        """As ``FormatReader.find``. CSV files beside the one script that names the same columns are one store with it.

        The address of a database is taken for one without a look.
        """
        return list(found_at(place))

    def read(self, store: FoundStore, *, limits: ReadLimits) -> Iterator[ForeignRecord]:
        """As ``FormatReader.read``. The source is gone through twice, so that replaced rows know their successors."""
        source = _Source.of(store, limits=limits)
        yield from _Reading(source, _overview(source), store.label).records()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Where a store's rows are. ``folder`` holds CSV files; rows that the script has too count as the script says."""

    limits: ReadLimits
    address: str | None = None
    script: Path | None = None
    folder: Path | None = None

    @classmethod
    def of(cls, store: FoundStore, *, limits: ReadLimits) -> _Source:
        if store.place.startswith(SCHEMES):
            return cls(limits=limits, address=store.place)
        path = Path(store.place)
        if path.name == CSV_FILES[MEMORIES]:
            return cls(limits=limits, folder=path.parent)
        return cls(limits=limits, script=path, folder=csv_beside(path) if store.label else None)

    def events(self) -> Iterator[tuple[bool, Event]]:
        """What it holds, each with whether it stands in the CSV files beside the script."""
        if self.address is not None:
            yield from ((False, event) for event in database.events(self.address))
        if self.script is not None:
            yield from ((False, event) for event in of_script(self.script, limits=self.limits))
        if self.folder is not None:
            beside = self.script is not None
            yield from ((beside, event) for event in of_csv(self.folder, limits=self.limits))

    def layout(self) -> Layout:
        """What is known of it before any row."""
        layout = Layout(
            is_script=self.script is not None or self.address is not None,
            is_csv=self.folder is not None,
            has_recalls=False,
        )
        if self.script is None:
            return layout
        preface = preface_of(self.script)
        return replace(layout, server=preface.server, program=preface.program, owner=preface.owner)


@dataclass(frozen=True, slots=True)
class _Overview:
    """When each row was made, by its id, and in how many sessions it was recalled."""

    dates: dict[int, int | None]
    sessions: Counter[int]


def _overview(source: _Source) -> _Overview:
    seen = _Overview({}, Counter())
    for beside, event in source.events():
        match event:
            case Data(table="memories", values=values) if (id_ := integer(values.get("id"))) is not None:
                seen.dates.setdefault(id_, time_of(values.get("created_at")))
            case Data(table="memory_recalls", values=values) if not beside:
                seen.sessions[integer(values.get("memory_id")) or 0] += 1
            case _:
                pass
    return seen


@dataclass(slots=True)
class _Reading:
    """One reading of a store."""

    source: _Source
    overview: _Overview
    label: str
    layout: Layout = field(default_factory=Layout)
    ids: list[int] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    recalls: list[Recall] = field(default_factory=list)
    pages: int = 0
    vectors: int = 0
    not_kept: int = 0

    def records(self) -> Iterator[ForeignRecord]:
        """The memories, then what is kept beside them."""
        self.layout = self.source.layout()
        for beside, event in self.source.events():
            match event:
                case Table():
                    self._laid_out(event, beside=beside)
                case Trouble():
                    yield Unreadable(where=event.where, reason=event.reason)
                case Counted():
                    self.layout = replace(self.layout, last=event.last, is_called=event.is_called)
                case Data(table="memories"):
                    yield from self._memory(event, beside=beside)
                case Data(table="memory_recalls"):
                    yield from self._recall(event, beside=beside)
                case Data():
                    yield from self._vector(event.values, beside=beside)
        yield from self._kept()

    def _laid_out(self, table: Table, *, beside: bool) -> None:
        if table.name == RECALLS:
            self.layout = replace(self.layout, has_recalls=True)
            return
        if beside:
            return
        present = {*table.types, "search_vector"}
        if not self.layout.is_script and "superseded_by" in present:
            present.add("embedding")  # which has a file of its own
        columns = tuple(name for name in ALL_COLUMNS if name in present)
        types = tuple(sorted(table.words, key=_in_order)) if table.words else self.layout.types
        numbers = (integer(word) for word in table.types.get("embedding", ()))
        dimension = next((number for number in numbers if number is not None and 0 < number <= _MOST_DIMENSIONS), 768)
        self.layout = replace(self.layout, columns=columns, types=types, dimension=dimension)

    # ---- rows --------------------------------------------------------------------------------------------------------

    def _memory(self, data: Data, *, beside: bool) -> Iterator[ForeignRecord]:
        id_ = integer(data.values.get("id"))
        where = f"{MEMORIES}, row {data.n}" if id_ is None else f"{MEMORIES} #{id_}"
        if id_ is None:
            yield Unreadable(where=where, reason="its id is no number")
        elif id_ in self.seen:
            if not beside or time_of(data.values.get("created_at")) != self.overview.dates.get(id_):
                yield Unreadable(where=where, reason="another row has its id; the first one counts")
        else:
            self.seen.add(id_)
            self.layout = replace(self.layout, is_copied=data.is_copied) if not self.ids else self.layout
            self.ids.append(id_)
            yield from self._row(id_, data.values, where)

    def _row(self, id_: int, values: Values, where: str) -> Iterator[ForeignRecord]:
        content = values.get("content")
        if not content:
            yield Unreadable(where=where, reason="it has no content")
            return
        if any(_HALF.search(value) for value in values.values() if value):
            yield Unreadable(where=where, reason="its text is not in the encoding of the file")
            return
        row, remarks = row_of(id_, content, values)
        yield from (Remark(where=where, text=text) for text in remarks)
        by = self._successor(row)
        if row.by is not None and by is None:
            yield Remark(where=where, text=f"it points to #{row.by}, which is not there; it counts as current")
        row = replace(row, by_created=self.overview.dates.get(row.by) if row.by is not None else None)
        memory = memory_of(
            row, None, id=memory_id(id_, row.created), content=content, by=by, sessions=self.overview.sessions[id_],
            raw=raw_of(row, values), now=NOT_DATED if row.updated is None else moment(row.updated),
        )  # fmt: skip
        if memory.visibility is Visibility.PROJECT and row.path is None:
            yield Remark(where=where, text="it names no project, and comes into the one that you are in")
        yield ForeignMemory(memory=memory, place=row.path, where=where)
        yield from self._vector(values, beside=False)

    def _successor(self, row: OcpgRow) -> MemoryId | None:
        if row.by is None or row.by == row.id or row.by not in self.overview.dates:
            return None
        return memory_id(row.by, self.overview.dates[row.by])

    def _recall(self, data: Data, *, beside: bool) -> Iterator[ForeignRecord]:
        id_ = integer(data.values.get("memory_id"))
        session, time = data.values.get("session_id"), data.values.get("recalled_at")
        if beside and self.layout.is_script and self.overview.sessions:
            return  # the script told them
        if id_ is None or session is None or _HALF.search(session) or len(session) > 1000:
            yield Unreadable(where=f"{RECALLS}, row {data.n}", reason="its memory or its session cannot be read")
        elif id_ not in self.overview.dates:
            yield Remark(where=f"{RECALLS}, row {data.n}", text=f"it names #{id_}, which is not there")
        else:
            self.layout = replace(self.layout, has_recalls=True)
            self.recalls.append((id_, session, time if time and time_of(time) is not None else _NOT_DATED_TEXT))
            if len(self.recalls) >= PAGE:
                yield self._page()

    def _vector(self, values: Values, *, beside: bool) -> Iterator[ForeignRecord]:
        id_, vector = integer(values.get("id")), values.get("embedding")
        if id_ is None or vector is None or (beside and id_ in self.seen):
            return
        if not _VECTOR.fullmatch(vector):
            yield Remark(where=f"{MEMORIES} #{id_}", text="its vector cannot be read, and is left out")
        elif self.vectors < VECTORS_KEPT:
            self.vectors += 1
            dates = self.overview.dates
            memory = memory_id(id_, dates[id_]) if id_ in dates else None
            yield vector_kept(id_, vector, self.label, memory=memory)
        else:
            self.not_kept += 1

    def _page(self) -> Keepsake:
        recalls, self.recalls = self.recalls, []
        self.pages += 1
        return recalls_kept(recalls, self.label, page=self.pages - 1)

    def _kept(self) -> Iterator[ForeignRecord]:
        yield layout_kept(self.layout, self.label)
        yield from order_kept(self.ids, self.label)
        if self.recalls:
            yield self._page()
        if self.not_kept:
            yield Remark(
                where=MEMORIES, text=f"{self.not_kept:,} vectors are not kept for an export; ocpg makes them again"
            )


def _in_order(word: str) -> tuple[int, str]:
    return (TYPES.index(word) if word in TYPES else len(TYPES)), word
