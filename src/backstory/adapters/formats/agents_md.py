"""What AGENTS.md, CLAUDE.md and their like tell agents, as proposals: each bullet or short paragraph is one.

Agents read these files themselves, so nothing of them is ever offered again: the origin of every proposal is a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from backstory.adapters.formats.markdown_statements import SHORT_CHARS, statements
from backstory.adapters.formats.outside_files import Unfit, is_plain, named, read_file, text_of
from backstory.adapters.formats.proposals import changed_at, known_by, proposal
from backstory.domain.interchange import ForeignRecord, Remark
from backstory.domain.provenance import Origin
from backstory.errors import InputError
from backstory.ports.formats import FoundStore, ReadLimits

_NAMES = frozenset({"agents.md", "agents.override.md", "claude.md", "claude.local.md", "gemini.md"})
_AGENTS_OWN = frozenset({".claude", ".gemini", ".codex", ".config"})
_ANOTHER_FILE = re.compile(r"@[^\s@]+")


class AgentsMd:
    """Found only where such a file itself is named: a folder has one for its agents, not for us."""

    name = "agents-md"

    def find(self, place: str) -> Sequence[FoundStore]:
        path = named(place)
        found = Path(place).name.lower() in _NAMES and is_plain(path)
        return [FoundStore(format=self.name, place=str(path))] if found else []

    def read(self, store: FoundStore, *, limits: ReadLimits) -> Iterator[ForeignRecord]:
        """Known again by its words and the headings above it."""
        path = Path(store.place)
        try:
            text = text_of(read_file(path, at_most=limits.record_bytes))
        except Unfit as problem:
            raise InputError(f"{path} is {problem}", field="path") from problem
        place = _project(path)
        undated = changed_at(path)
        seen: set[str] = set()
        for said in statements(text):
            where = f"line {said.line}"
            if _ANOTHER_FILE.fullmatch(said.text):
                yield Remark(where=where, text="names another file, which is not read")
                continue
            if len(said.text) > SHORT_CHARS:
                yield Remark(where=where, text=f"a paragraph of {len(said.text):,} characters: left out")
                continue
            area = " / ".join(said.headings)
            record = proposal(
                self.name, [area, known_by(said.text)], said.text, where=where, undated=undated, area=area,
                origin=Origin.FILE, place=place, raw={"file": path.name},
            )  # fmt: skip
            if record.memory.id not in seen:
                seen.add(record.memory.id)
                yield record
        if seen:
            text = "agents read this file themselves, so these are found when they are searched for and never offered"
            yield Remark(where=path.name, text=text)


def _project(path: Path) -> str | None:
    """The folder that a file speaks of; None for a person's own, which speaks of all."""
    folder = path.absolute().parent
    return None if folder.name in _AGENTS_OWN or folder.parent.name == ".config" else str(folder)
