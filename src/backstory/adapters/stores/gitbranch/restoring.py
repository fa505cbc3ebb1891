"""Putting the memories of a backup back on the ref: as one new commit, so that every clone follows and nothing that
stood there is rewritten."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from backstory.adapters.stores.gitbranch import index
from backstory.adapters.stores.gitbranch.publishing import PROJECT_FILE, UNSHARED
from backstory.adapters.stores.gitbranch.reference import Commit, Moved, Reference
from backstory.adapters.stores.gitbranch.tree import (
    CHANGES,
    DELETIONS,
    PROJECTS,
    audit,
    change_path,
    is_day_file,
    is_shared,
    placed,
)
from backstory.adapters.stores.sqlite.rows import COLUMNS, memory_from_row
from backstory.codecs.change import encode_change
from backstory.codecs.logfmt import render_lines
from backstory.domain.history import Change, Edit
from backstory.domain.ids import MemoryId, ProjectId
from backstory.domain.memory import Deleted, Memory
from backstory.errors import StoreBusy

_ATTEMPTS = 50
_MESSAGE = "memory: restore a backup\n"

Files = Mapping[str, bytes | None]


def adapting(reference: Reference, alias: str) -> Callable[[Path], Callable[[], None]]:
    """What a restore does besides replacing the file: see ``sqlite.restoring.restore``.

    A backup of this repository brings the files back that stood on the ref then. Any other one, of another repository
    or of another kind of store, is written down anew: its shared memories, and all that the history says of them. A
    store of another kind has the memories of all projects; only this repository's are written down, since whoever reads
    the ref would read the others too.
    """

    def adapt(copy: Path) -> Callable[[], None]:
        with closing(sqlite3.connect(copy, isolation_level=None)) as raw:
            index.prepare(raw, writable=True)
            known = _commit_of(raw, reference)
            if known is not None:
                return lambda: _put(reference, lambda tip: _back_to(reference, tip, known))
            raw.execute("BEGIN")
            written = _write_down(raw, reference, alias)
            raw.execute("COMMIT")
        return lambda: _put(reference, lambda tip: _instead(reference, tip, written))

    return adapt


def _commit_of(raw: sqlite3.Connection, reference: Reference) -> str | None:
    """The commit that a backup stands for; None where this repository has none that says all of it.

    A store that left git, and was used as another kind since, still has the notes of then.
    """
    known = index.known_tip(raw, reference.name)
    if known is None or reference.reader.read(f"{known}^{{tree}}") is None:
        return None
    since = "SELECT 1 FROM changes WHERE id NOT IN (SELECT change FROM git_changes) LIMIT 1"
    return known if raw.execute(since).fetchone() is None else None


def _put(reference: Reference, files_after: Callable[[str | None], Files]) -> None:
    """Commit what has to change; nothing where that is nothing."""
    for _ in range(_ATTEMPTS):
        tip = reference.tip()
        files = files_after(tip)
        if not files:
            return
        try:
            parents = () if tip is None else (tip,)
            reference.commit(Commit(message=_MESSAGE, who=reference.git.author, parents=parents, files=files))
        except Moved:
            continue
        return
    raise StoreBusy(f"{reference.name} is written to faster than we can; try again")


def _back_to(reference: Reference, tip: str | None, former: str) -> Files:
    """What to write so that the files are those of an earlier commit."""
    differing = reference.files_between(tip, former)
    names = [file.new for file in differing if file.new is not None]
    contents = dict(zip(names, reference.contents(names), strict=True))
    return {file.path: None if file.new is None else contents[file.new] for file in differing}


def _instead(reference: Reference, tip: str | None, written: Mapping[str, bytes]) -> Files:
    """What to write so that the memories are those of another store. Files that are none of memories stay."""
    standing = [] if tip is None else reference.files_between(None, tip)
    ours = [file.path for file in standing if file.path.startswith(CHANGES) or is_day_file(file.path)]
    return {**dict.fromkeys(ours), **written}


# --- writing a whole store down ---------------------------------------------------------------------------------------


def _write_down(raw: sqlite3.Connection, reference: Reference, alias: str) -> dict[str, bytes]:
    """The files of all that is shared. The copy then knows what stands there, and vouches for it."""
    project = index.own_project(raw, alias)
    stood = frozenset(name for (name,) in raw.execute("SELECT memory FROM git_memories"))
    belongs = partial(_belongs, project=project, stood=stood)
    for table in ("git_changes", "git_memories", "git_streams"):
        raw.execute(f"DELETE FROM {table}")
    index.set_tip(raw, reference.name, None)
    files: dict[str, bytes] = {}
    ids = raw.execute("SELECT id FROM changes ORDER BY at_us, id").fetchall()
    heads: dict[MemoryId, int] = {}
    audits: list[str] = []
    for change in _in_order([found for (name,) in ids if (found := index.change(raw, name)) is not None]):
        edits = _shared_edits(change, heads, belongs)
        local = len(edits) < len(change.edits) or any(not belongs(edit.after) for edit in change.edits)
        index.note_change(
            raw, change.id, reference.name if edits else "", recorded=bool(edits), own=True, local=local
        )  # fmt: skip
        if edits:
            shared = replace(change, edits=edits)
            files[change_path(change)] = encode_change(shared).encode()
            audits += [line for edit in edits if (line := audit(shared, edit)) is not None]
    for memory_id, head in heads.items():
        index.stand_on(raw, memory_id, reference.name, recorded=True, head=head, claimed=None)
    files |= {path: text.encode("utf-8", "surrogateescape") for path, text in _day_files(raw, belongs).items()}
    if audits:
        files[DELETIONS] = render_lines(audits).encode("utf-8", "surrogateescape")
    if project is not None:
        files[f"{PROJECTS}{project}.json"] = PROJECT_FILE
    return files


def _in_order(changes: list[Change]) -> list[Change]:
    """As they were made: each memory's by its revisions, whatever the clocks said."""
    return sorted(changes, key=lambda change: (change.at, min(edit.after.revision for edit in change.edits), change.id))


def _belongs(memory: Memory, *, project: ProjectId | None, stood: frozenset[str]) -> bool:
    """Whether a memory may stand on this repository's ref: one that stood on a ref before, or that is no other
    project's. A global one is the project's in which it was stored."""
    return is_shared(memory) and (memory.id in stood or memory.project in (project, None))


def _shared_edits(change: Change, heads: dict[MemoryId, int], belongs: Callable[[Memory], bool]) -> tuple[Edit, ...]:
    """The edits of a change that go to the ref; ``heads`` has the revision of each memory that is there already."""
    edits = []
    for edit in change.edits:
        memory_id = edit.after.id
        if belongs(edit.after):
            edits.append(edit if memory_id in heads else replace(edit, before=None))
            heads[memory_id] = edit.after.revision
        elif memory_id in heads and edit.before is not None:
            status = Deleted(since=change.at, reason=UNSHARED)
            edits.append(replace(edit, after=replace(edit.before, status=status, revision=edit.after.revision)))
            del heads[memory_id]
    return tuple(edits)


def _day_files(raw: sqlite3.Connection, belongs: Callable[[Memory], bool]) -> dict[str, str]:
    lines: defaultdict[str, list[str]] = defaultdict(list)
    for memory in _memories(raw):
        line = placed(memory) if belongs(memory) else None
        if line is not None:
            lines[line.path].append(line.text)
    return {path: render_lines(texts) for path, texts in lines.items()}


def _memories(raw: sqlite3.Connection) -> list[Memory]:
    rows = raw.execute(f"SELECT {COLUMNS} FROM memories m ORDER BY m.learned_us, m.n").fetchall()
    tags: defaultdict[int, list[str]] = defaultdict(list)
    for n, tag in raw.execute("SELECT n, tag FROM memory_tags ORDER BY n, position"):
        tags[n].append(tag)
    return [memory_from_row(row, tuple(tags[row[0]])) for row in rows]
