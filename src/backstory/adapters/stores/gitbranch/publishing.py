"""From the local store to the ref: what of a change may stand there, and the commit that says it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from backstory.adapters.stores.gitbranch import index
from backstory.adapters.stores.gitbranch.reference import Commit, Reference
from backstory.adapters.stores.gitbranch.tree import (
    DELETIONS,
    PROJECTS,
    Placed,
    audit,
    change_path,
    digest,
    is_shared,
    placed,
    subject,
    text_of,
)
from backstory.codecs.change import encode_change
from backstory.codecs.logfmt import parse_lines, render_lines
from backstory.domain.history import Change, Edit
from backstory.domain.ids import ProjectId
from backstory.domain.memory import Deleted, Memory
from backstory.domain.provenance import Origin
from backstory.errors import InputError

PROJECT_FILE = b'{"format": "backstory-project", "version": 1}\n'
UNSHARED = "not shared any more"


def publish(
    raw: sqlite3.Connection, reference: Reference, changes: Sequence[Change], *, project: ProjectId | None
) -> str | None:
    """Write changes, which the local store has in the same transaction, to the ref; returns the new commit.

    None when all of them are of memories that stay here: private and local-only ones. Raises Moved when somebody else
    was first, and InputError for a memory of a ref that is only read here.
    """
    draft = _Draft(reference, index.known_tip(raw, reference.name))
    for change in changes:
        portion, vouched = _portion(raw, reference, change)
        local = len(portion) < len(change.edits) or any(not is_shared(edit.after) for edit in change.edits)
        index.note_change(raw, change.id, reference.name if portion else "", recorded=bool(portion), own=vouched,
                          local=local)  # fmt: skip
        if portion:
            for earlier in _found_before(raw, portion, reference.name):
                draft.write_down(earlier)
                index.note_change(raw, earlier.id, reference.name, recorded=True, own=False, local=False)
            draft.add(replace(change, edits=portion))
    if not draft.files:
        return None
    if project is not None:
        draft.add_project(project)
    written = reference.commit(draft.commit([change for change in changes if change.id in draft.added]))
    index.set_tip(raw, reference.name, written.commit)
    index.keep_stream(raw, reference.name, written.stream)
    return written.commit


def write_down_found(raw: sqlite3.Connection, reference: Reference) -> None:
    """Put on the ref, as changes, what lines of other tools said so far: before two histories are joined, each must say
    all that it knows. Nothing to do where all is written down. Raises Moved."""
    ids = index.all_unrecorded(raw, reference.name)
    found = [change for change_id in ids if (change := index.change(raw, change_id)) is not None]
    if not found:
        return
    draft = _Draft(reference, index.known_tip(raw, reference.name))
    for change in found:
        draft.write_down(change)
        index.note_change(raw, change.id, reference.name, recorded=True, own=False, local=False)
        for edit in change.edits:
            index.record(raw, edit.after.id)
    draft.added.update(change.id for change in found)
    written = reference.commit(draft.commit(found))
    index.set_tip(raw, reference.name, written.commit)
    index.keep_stream(raw, reference.name, written.stream)


def _portion(raw: sqlite3.Connection, reference: Reference, change: Change) -> tuple[tuple[Edit, ...], bool]:
    """The edits that go to the ref, and whether this clone vouches for what they say of origins."""
    edits, vouched = [], True
    for edit in change.edits:
        stands_on = index.ref_of(raw, edit.after.id)
        if stands_on not in (None, reference.name):
            raise InputError(f"#{edit.after.n} stands on {stands_on}, which is only read here", field="id")
        if is_shared(edit.after):
            claimed = _claimed(raw, edit)
            vouched = vouched and claimed is None
            before = None if stands_on is None or edit.before is None else _with_origin(edit.before, claimed)
            edits.append(Edit(before=before, after=_with_origin(edit.after, claimed)))
            index.stand_on(raw, edit.after.id, reference.name, recorded=True, head=edit.after.revision, claimed=claimed)
        elif stands_on is not None and edit.before is not None:
            status = Deleted(since=change.at, reason=UNSHARED)
            edits.append(replace(edit, after=replace(edit.before, status=status, revision=edit.after.revision)))
            index.stand_alone(raw, edit.after.id)
    return tuple(edits), vouched


def _claimed(raw: sqlite3.Connection, edit: Edit) -> Origin | None:
    """What the ref says of the origin, where it is not believed here and these words are still those."""
    claimed = index.claimed_origin(raw, edit.after.id)
    if claimed is None or edit.before is None:
        return None
    same = edit.before.content == edit.after.content and edit.before.origin is edit.after.origin
    return Origin(claimed) if same else None


def _with_origin(memory: Memory, origin: Origin | None) -> Memory:
    return memory if origin is None else replace(memory, origin=origin)


def _found_before(raw: sqlite3.Connection, edits: Sequence[Edit], ref: str) -> list[Change]:
    """The changes that lines of another tool made of these memories: from now on they are written down too."""
    ids = dict.fromkeys(change_id for edit in edits for change_id in index.unrecorded(raw, edit.after.id, ref))
    return [found for change_id in ids if (found := index.change(raw, change_id)) is not None]


@dataclass(slots=True)
class _Draft:
    """Files on their way to the ref."""

    reference: Reference
    tip: str | None
    files: dict[str, bytes | None] = field(default_factory=dict)
    added: set[str] = field(default_factory=set)

    def write_down(self, change: Change) -> None:
        self.files[change_path(change)] = encode_change(change).encode()

    def add(self, change: Change) -> None:
        self.write_down(change)
        self.added.add(change.id)
        audits = [line for edit in change.edits if (line := audit(change, edit)) is not None]
        for edit in change.edits:
            self._replace(None if edit.before is None else placed(edit.before), placed(edit.after))
        if audits:
            self.files[DELETIONS] = appended(self._file(DELETIONS), audits)

    def add_project(self, project: ProjectId) -> None:
        path = f"{PROJECTS}{project}.json"
        if self._file(path) is None:
            self.files[path] = PROJECT_FILE

    def commit(self, changes: Sequence[Change]) -> Commit:
        reasons = "".join(f"\n{change.reason}\n" for change in changes if change.reason)
        more = f" and {len(changes) - 1} more changes" if len(changes) > 1 else ""
        return Commit(
            message=f"{subject(changes[0])}{more}\n{reasons}",
            who=self.reference.git.author,
            parents=() if self.tip is None else (self.tip,),
            files=self.files,
        )

    def _replace(self, old: Placed | None, new: Placed | None) -> None:
        if old is not None and new is not None and (old.path, old.digest) == (new.path, new.digest):
            return
        if old is not None:
            same_file = new is not None and new.path == old.path
            lines, found = replaced(
                self._file(old.path), old.digest, new.text if new is not None and same_file else None
            )
            self.files[old.path] = lines
            if found and same_file:
                return
        if new is not None:
            self.files[new.path] = appended(self._file(new.path), [new.text])

    def _file(self, path: str) -> bytes | None:
        return self.files[path] if path in self.files else self.reference.file(self.tip, path)


def appended(data: bytes | None, lines: Sequence[str]) -> bytes:
    """A file with more lines at its end."""
    before = text_of(data).rstrip()
    return _bytes((f"{before}\n" if before else "") + render_lines(lines))


def replaced(data: bytes | None, told: str, by: str | None) -> tuple[bytes, bool]:
    """A file without the first line of this digest, or with another in its place, and whether it was there; all other
    lines stay as they are."""
    physical = text_of(data).rstrip().split("\n")
    lines = physical if told in map(_digest, physical) else [line.text for line in parse_lines(text_of(data))]
    at = next((position for position, line in enumerate(lines) if _digest(line) == told), None)
    if at is None:
        return data or b"", False
    kept = [*lines[:at], *([] if by is None else [by]), *lines[at + 1 :]]
    return _bytes(render_lines(kept)), True


def _digest(line: str) -> str:
    return digest(line.removesuffix("\r").removeprefix("\ufeff"))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
