"""What an import found and did, for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backstory.entrypoints.tables import Column, Table

if TYPE_CHECKING:
    from backstory.entrypoints.render import Line
    from backstory.entrypoints.shapes import Shape
    from backstory.services.import_report import Counts, ImportReport, Sentences

_KINDS = ("memories", "sessions", "messages", "nodes", "observations", "keepsakes", "history")
_SHOWN = 20
"""Sentences of one sort that people are shown; JSON has more of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreReport:
    """What came of one store: its format, where it is (as it may be shown), its label, and the report."""

    format: str
    place: str
    label: str
    report: ImportReport


def import_shape(total: ImportReport, stores: Sequence[StoreReport], *, dry_run: bool) -> Shape:
    """What an import did, or would do, in all and for each store."""
    return {
        "dry_run": dry_run,
        **_counts_shape(total),
        "kept": list(total.conflicts),
        "refused": list(total.refused),
        "refused_count": len(total.refused),
        "remarks": list(total.remarks),
        "stores": [_store_shape(store) for store in stores],
        "changes": list(total.changes),
        "projects": [{"id": project.id, "name": project.name, "root": project.root} for project in total.projects],
    }


def _store_shape(store: StoreReport) -> Shape:
    return {
        "format": store.format,
        "place": store.place,
        "label": store.label,
        **_counts_shape(store.report),
        "refused": len(store.report.refused),
    }


def _counts_shape(report: ImportReport) -> Shape:
    return {
        "imported": report.imported,
        "updated": report.updated.records,
        "skipped": report.skipped,
        "conflicts": len(report.conflicts),
        "by_kind": _kinds(report.new),
    }


def _kinds(counts: Counts) -> dict[str, int]:
    return {kind: getattr(counts, kind) for kind in _KINDS}


def store_table(stores: Sequence[StoreReport]) -> Table:
    """The stores, one a row, each with what came of it."""
    return Table(
        columns=(
            Column("format"),
            Column("store", is_wide=True),
            Column("new", is_number=True),
            Column("updated", is_number=True),
            Column("known", is_number=True),
            Column("kept", is_number=True),
            Column("refused", is_number=True),
        ),
        rows=[
            (
                store.format,
                store.label or store.place,
                f"{store.report.imported}",
                f"{store.report.updated.records}",
                f"{store.report.skipped}",
                f"{len(store.report.conflicts)}",
                f"{len(store.report.refused)}",
            )
            for store in stores
        ],
        empty="No store was found.",
    )


def import_lines(total: ImportReport, *, dry_run: bool, trusted: bool) -> Iterator[Line]:
    """What an import did, or would do: the counts, what was kept, refused and remarked, and what to do next."""
    yield _summary(total, dry_run=dry_run), "good"
    yield from _told("Kept", total.conflicts, "plain")
    yield from _told("Refused", total.refused, "bad")
    yield from _told("Note", total.remarks, "faint")
    for project in total.projects:
        if project.root:
            yield f"The project {project.name} is new here; its folder is {project.root}.", "plain"
            continue
        yield f"The project {project.name} was not known here. To have its memories in a folder, run there:", "plain"
        yield f"  backstory projects merge {project.id} .", "plain"
    if total.new.memories and not trusted:
        yield (
            "Imported memories are found when asked for, and not offered unasked until somebody reviewed them"
            " (backstory review); a store of your own can be imported with --trust instead.",
            "faint",
        )


def _summary(total: ImportReport, *, dry_run: bool) -> str:
    kinds = [f"{count:,} {kind}" for kind, count in _kinds(total.new).items() if count]
    came_in = ", ".join(kinds) or "nothing"
    updated, known = total.updated.records, total.skipped
    if dry_run:
        return f"Would import {came_in}; update {updated:,}, leave {known:,} as they are."
    return f"Imported {came_in}; updated {updated:,}, left {known:,} as they were."


def _told(word: str, sentences: Sentences, tone: str) -> Iterator[Line]:
    for sentence in sentences.told[:_SHOWN]:
        yield f"{word}: {sentence}", tone  # type: ignore[misc]  # one of the tones
    if len(sentences) > _SHOWN:
        yield f"{word}: {len(sentences) - _SHOWN:,} more; --json lists up to a thousand", tone  # type: ignore[misc]


def format_table(formats: Sequence[tuple[str, bool, bool, str]]) -> Table:
    """The formats: name, whether it is read and written, and what it is."""
    return Table(
        columns=(Column("format"), Column("import"), Column("export"), Column("what", is_wide=True)),
        rows=[
            (name, "yes" if is_read else "-", "yes" if is_written else "-", what)
            for name, is_read, is_written, what in formats
        ],
        empty="No format is known.",
    )
