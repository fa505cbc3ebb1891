"""What the local store remembers of rewritten commits: which became which, so that none of the old ones comes back, and
which remotes still had them. Everything here runs inside a transaction of the caller."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Set

from backstory.adapters.stores.gitbranch import index
from backstory.adapters.stores.gitbranch.reference import Reference
from backstory.adapters.stores.gitbranch.tree import CHANGES
from backstory.codecs.change import decode_change
from backstory.domain.erasure import ERASED
from backstory.errors import Conflict, InputError

_TABLES = (
    # in the order of the old history
    "CREATE TABLE IF NOT EXISTS git_rewritten (seq INTEGER PRIMARY KEY AUTOINCREMENT, ref TEXT NOT NULL,"
    " old TEXT NOT NULL UNIQUE, new TEXT NOT NULL)",
    # what a remote had when its commits were rewritten here
    "CREATE TABLE IF NOT EXISTS git_left (remote TEXT PRIMARY KEY, ref TEXT NOT NULL, tip TEXT NOT NULL) WITHOUT ROWID",
)


def note_rewritten(raw: sqlite3.Connection, ref: str, commits: Mapping[str, str]) -> None:
    """Remember what became of commits; those that had become one of them before lead to the newest."""
    for statement in _TABLES:
        raw.execute(statement)
    raw.executemany("UPDATE git_rewritten SET new = ? WHERE new = ?", [(new, old) for old, new in commits.items()])
    raw.executemany(
        "INSERT OR REPLACE INTO git_rewritten (ref, old, new) VALUES (?, ?, ?)",
        [(ref, old, new) for old, new in commits.items()],
    )


def note_left(raw: sqlite3.Connection, remote: str, ref: str, tip: str) -> None:
    """Remember what a remote had."""
    raw.execute("INSERT OR REPLACE INTO git_left (remote, ref, tip) VALUES (?, ?, ?)", (remote, ref, tip))


def remotes_left(raw: sqlite3.Connection) -> dict[str, str]:
    """The remotes that had commits which were rewritten here, each with the last one known."""
    if not _is_there(raw):
        return {}
    return {str(remote): str(tip) for remote, tip in raw.execute("SELECT remote, tip FROM git_left ORDER BY remote")}


def successor(raw: sqlite3.Connection, commit: str) -> str | None:
    """What a commit has become; None for one that was not rewritten."""
    if not _is_there(raw):
        return None
    row = raw.execute("SELECT new FROM git_rewritten WHERE old = ?", (commit,)).fetchone()
    return None if row is None else str(row[0])


def old_commits(raw: sqlite3.Connection, ref: str) -> list[str]:
    """The commits of a ref that are no more, oldest first."""
    if not _is_there(raw):
        return []
    return [str(row[0]) for row in raw.execute("SELECT old FROM git_rewritten WHERE ref = ? ORDER BY seq", (ref,))]


def has_erased(raw: sqlite3.Connection) -> bool:
    """Whether anything was ever erased here."""
    return raw.execute("SELECT 1 FROM erasures LIMIT 1").fetchone() is not None


def brings_back(raw: sqlite3.Connection, reference: Reference, commit: str) -> bool:
    """Whether a history leads to commits whose contents were erased here, or says anything of a memory that was: taking
    it in would bring that back. Reads what is new in it; a process or two, and nothing where nothing was erased."""
    if not has_erased(raw):
        return False
    known = set(old_commits(raw, reference.name))
    if known and not known.isdisjoint(reference.git.look("rev-list", commit).decode("ascii").split()):
        return True
    erased = {name for (text,) in raw.execute("SELECT memories FROM erasures") for name in json.loads(text)}
    tip = index.known_tip(raw, reference.name)
    if tip is not None and reference.reader.read(f"{tip}^{{tree}}") is None:
        tip = None
    new = [file.new for file in reference.files_between(tip, commit) if file.new and file.path.startswith(CHANGES)]
    return any(_tells_of(data.decode("utf-8", "replace"), erased) for data in reference.contents(new))


def _tells_of(change: str, erased: Set[str]) -> bool:
    """Whether a change has more of an erased memory than that it was erased."""
    if not any(name in change for name in erased):
        return False
    try:
        edits = decode_change(change).edits
    except InputError:
        return True
    states = [state for edit in edits for state in (edit.before, edit.after) if state is not None]
    return any(state.id in erased and state.content != ERASED for state in states)


def still_there(ref: str, of: str, commit: str) -> Conflict:
    """What to raise where a remote has what was erased here."""
    return Conflict(
        f"{of} has {ref} with what was erased here, so nothing was taken in or sent; when everybody who uses it knows, "
        f"overwrite it: git push --force-with-lease={ref}:{commit} {of} {ref}"
    )


def set_back(ref: str, known: str | None) -> Conflict:
    """What to raise where somebody moved the ref here to a history with what was erased."""
    way = f"git update-ref {ref} {known}" if known else f"git update-ref -d {ref}"
    return Conflict(f"{ref} was moved to a history with what was erased here; set it back: {way}")


def _is_there(raw: sqlite3.Connection) -> bool:
    return raw.execute("SELECT 1 FROM sqlite_master WHERE name = 'git_left'").fetchone() is not None
