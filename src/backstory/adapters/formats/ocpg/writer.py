"""ocpg's stores written: a script that ``psql`` loads into an empty database, and CSV files where it came from some."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from backstory.adapters.formats.ocpg.dump import Row, dump, recall_rows
from backstory.adapters.formats.ocpg.exported import Exportable, exportable
from backstory.adapters.formats.ocpg.finding import SCRIPTS
from backstory.adapters.formats.ocpg.keeping import Kept, Recall, kept_of
from backstory.adapters.formats.ocpg.rows import SYSTEM
from backstory.adapters.formats.ocpg.sources import CSV_FILES, EMBEDDINGS
from backstory.adapters.formats.ocpg.tables import MEMORIES, RECALLS
from backstory.adapters.formats.ocpg.values import csv_text
from backstory.adapters.formats.written_files import FolderDraft
from backstory.ports.formats import Exported, Written

SCRIPT = "ocpg.sql"
"""The script's name in a folder."""


class OcpgWriter:
    """Writes stores of ocpg, in the layout that they had; new ones in the newest."""

    name = SYSTEM

    def write(self, exported: Exported, target: Path) -> Written:
        """As ``FormatWriter.write``.

        A target that ends in ``.sql`` is the script, with CSV files beside it if the store had them; one that ends in
        ``.csv`` stands for the CSV files, in its folder; any other is a folder.
        """
        kept = kept_of(exported.keepsakes)
        found = exportable(exported.memories, exported.projects, kept)
        there = {row for row, _ in found.rows}
        recalls = [recall for recall in kept.recalls if recall[0] in there]
        suffix = target.suffix.lower()
        is_file = suffix in SCRIPTS or suffix == ".csv"
        written = Written(memories=len(found.rows), left_out=list(found.left_out))
        with FolderDraft(target.parent if is_file else target) as draft:
            if suffix != ".csv" and (kept.layout.is_script or is_file):
                text = dump(kept.layout, found.rows, recalls, last=found.last)
                draft.put(target.name if is_file else SCRIPT, text.encode())
            if suffix == ".csv" or kept.layout.is_csv:
                for name, lines in _csv(kept, found, recalls):
                    draft.put(name, "".join(lines).encode())
        written.files += draft.files
        if not_said := sum(1 for memory in exported.memories if memory.pinned):
            written.left_out.append(f"{not_said} memories are pinned, which ocpg does not know")
        return written


def _csv(kept: Kept, found: Exportable, recalls: Sequence[Recall]) -> Iterator[tuple[str, Iterator[str]]]:
    """The CSV files, with their lines: rows by id."""
    rows = [row for _, row in sorted(found.rows, key=lambda one: one[0])]
    columns = [name for name in kept.layout.columns if name not in ("search_vector", "embedding")]
    yield CSV_FILES[MEMORIES], _lines(columns, rows)
    if kept.layout.has_recalls:
        told = recall_rows(sorted(recalls, key=lambda recall: recall[0]))
        yield CSV_FILES[RECALLS], _lines(["memory_id", "session_id", "recalled_at"], told)
    if kept.layout.has("embedding"):
        with_vector = [row for row in rows if row["embedding"] is not None]
        yield CSV_FILES[EMBEDDINGS], _lines(["id", "embedding"], with_vector)


def _lines(columns: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    yield ",".join(columns) + "\n"
    for row in rows:
        yield ",".join(csv_text(row[name]) for name in columns) + "\n"
