"""Which file of the ref holds what, and the lines in it. Values only; ``docs/reference/git-format.md`` is the format.

.opencode/memory/2026-03-02.logfmt          a line for each memory that is believed, by the day it was learned
.opencode/memory/deletions.logfmt           a line for each that no longer is, with the reason
.backstory/changes/2026-03-02/ID.jsonl      what the lines have no place for: each change, as the history has it
.backstory/projects/ID.json                 under which project ids clones know this repository
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType

from backstory.codecs.logfmt import Deletion, Line, Record, encode_deletion, encode_record, parse_lines
from backstory.domain.admission import TextLimits, admit, admit_label
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId, ProjectId, make_ulid
from backstory.domain.labels import canonical_area, canonical_tag
from backstory.domain.memory import (
    Active,
    Conflicted,
    Deleted,
    Kind,
    Memory,
    Sensitivity,
    Source,
    Superseded,
    Times,
    Visibility,
)
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.truncation import truncate_chars
from backstory.errors import InputError

LINES = ".opencode/memory/"
DELETIONS = f"{LINES}deletions.logfmt"
CHANGES = ".backstory/changes/"
PROJECTS = ".backstory/projects/"
SYSTEM = "opencode-plugin-git-memory"
UPDATED = "Updated to: "
_MAX_CHARS = 100_000
_LABEL_CHARS = 200
_SUFFIX = ".logfmt"
# A name comes from whoever wrote the ref, and goes into commands to git.
_DAY_FILE = re.compile(re.escape(LINES) + r"[0-9A-Za-z][0-9A-Za-z._-]{0,60}\.logfmt")

_TYPE_OF = {
    Kind.DECISION: "decision",
    Kind.LEARNING: "learning",
    Kind.PREFERENCE: "preference",
    Kind.BLOCKER: "blocker",
    Kind.PATTERN: "pattern",
    Kind.WORKFLOW: "pattern",
    Kind.USER: "preference",
}
"""Every other kind is written as ``context``; the change beside the line says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The line of a memory: in which file, how it is told from others, and how it is written anew."""

    path: str
    digest: str
    text: str


def is_day_file(path: str) -> bool:
    """Whether a file of the ref holds lines of memories."""
    return _DAY_FILE.fullmatch(path) is not None and path != DELETIONS


def change_path(change: Change) -> str:
    """Where a change is written down."""
    return f"{CHANGES}{change.at.astimezone(UTC).date().isoformat()}/{change.id}.jsonl"


def digest(line: str) -> str:
    """What tells a line from another; equal lines have the same."""
    return hashlib.blake2b(line.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()


def text_of(data: bytes | None) -> str:
    """The text of a file; bytes that are not UTF-8 survive being written back."""
    return "" if data is None else data.decode("utf-8", "surrogateescape")


def is_shared(memory: Memory) -> bool:
    """Whether a memory may stand on the ref: what was pushed once cannot be taken back, so only what is not private."""
    return memory.sensitivity is Sensitivity.NORMAL


def placed(memory: Memory) -> Placed | None:
    """The line of a memory, None where it has none: it was forgotten or superseded, or is not shared."""
    if not isinstance(memory.status, Active | Conflicted) or not is_shared(memory):
        return None
    record = record_of(memory)
    text = encode_record(record)
    found = memory.provenance.raw
    path = found.get("file", "")
    if not is_day_file(path):
        path = f"{LINES}{record.ts.partition('T')[0]}{_SUFFIX}"
    told = found["line"] if "line" in found and found.get("as") == digest(text) else digest(text)
    return Placed(path=path, digest=told, text=text)


def record_of(memory: Memory) -> Record:
    """A memory in the fields that a line has. A comma in a tag becomes a semicolon, since commas separate tags."""
    return Record(
        ts=format_ts(memory.times.learned),
        type=_TYPE_OF.get(memory.kind, "context"),
        scope=_plain(memory.area or "") or memory.visibility.value,
        content=_plain(memory.content),
        issue=None if memory.issue is None else _plain(memory.issue),
        tags=tuple(filter(None, (_plain(tag).replace(",", ";") for tag in memory.tags))),
    )


def audit(change: Change, edit: Edit) -> str | None:
    """The line for the audit file, where a change takes a line of a memory away or writes it anew."""
    before = None if edit.before is None else placed(edit.before)
    after = placed(edit.after)
    if edit.before is None or before is None or (after is not None and after.digest == before.digest):
        return None
    match edit.after.status:
        case Superseded() if after is None:
            newer = next((other.after for other in change.edits if other.after.id == edit.after.status.by), None)
            reason = f"Superseded by: {newer.content}" if newer is not None else "Superseded"
        case _ if after is not None:
            reason = f"{UPDATED}{edit.after.content}"
        case Deleted(reason=reason_given) if reason_given:
            reason = reason_given
        case _:
            reason = change.reason or "forgotten"
    return encode_deletion(
        Deletion(ts=format_ts(change.at), record=record_of(edit.before), reason=_plain(reason))
    )  # fmt: skip


def subject(change: Change) -> str:
    """The first line of a commit's message, in the words of the original tool where it has some."""
    verb = {Action.FORGET: "delete", Action.UNDO: "undo"}.get(change.action, change.action.value)
    if len(change.edits) > 1 and change.action is not Action.SUPERSEDE:
        return f"memory: {verb} {len(change.edits)} memories"
    record = record_of(change.edits[0].after)
    scope = truncate_chars(" ".join(record.scope.split()), 60)
    return f"memory: {verb} {record.type}/{scope}"


def format_ts(moment: datetime) -> str:
    """A time as the original tool writes it, in milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_ts(text: str) -> datetime:
    """Read a time; one without a zone is UTC. Raises InputError."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(f"the time is {text[:40]!r}", field="ts") from None


def adopted(line: Line, path: str, *, nth: int, namespace: str, project: ProjectId | None) -> Memory:
    """The memory that a line of somebody else stands for; ``nth`` counts equal lines from 0.

    Every clone gets the same one. Raises InputError for what cannot be a memory: no readable time, or no text.
    """
    record = line.record
    if record is None:
        raise InputError(line.problem or "it is no record", field="line")
    at = parse_ts(record.ts)
    content = admit(record.content, field="content", limits=TextLimits(min_chars=1, max_chars=_MAX_CHARS)).text
    memory = Memory(
        id=MemoryId(derived_id(at, namespace, "line", digest(line.text), str(nth))),
        content=content,
        kind=Kind(record.type),
        visibility=Visibility.PROJECT if project is not None else Visibility.GLOBAL,
        project=project,
        area=_area(record.scope),
        tags=tuple(dict.fromkeys(filter(None, map(_tag, record.tags)))),
        issue=None if not record.issue else _label(record.issue),
        origin=Origin.IMPORTED,
        source=Source.IMPORTED,
        namespace=namespace,
        times=Times(learned=at, updated=at, confirmed=at),
    )
    return marked(memory, line, path)


def marked(memory: Memory, line: Line, path: str) -> Memory:
    """The memory with where its line stands and how it reads, as far as it is not what we would write ourselves."""
    bare = replace(memory, provenance=Provenance(origin_system=SYSTEM))
    ours = placed(bare)
    if ours is None or (ours.digest == digest(line.text) and ours.path == path):
        return bare
    found = {"file": path, "line": digest(line.text), "as": ours.digest}
    return replace(bare, provenance=Provenance(origin_system=SYSTEM, raw=MappingProxyType(found)))


def found_change(edit: Edit, action: Action, *, at: datetime, reason: str | None = None) -> Change:
    """The change by which another tool wrote, replaced or removed a line; every clone derives the same."""
    parts = (edit.after.id, action.value, str(edit.after.revision), edit.after.content)
    return Change(
        id=ChangeId(derived_id(at, "change", *parts)),
        at=at,
        author=Author.AGENT,
        action=action,
        edits=(edit,),
        reason=reason,
    )


def parse_deletions(data: bytes | None) -> Sequence[Deletion]:
    """The deletions of an audit file, in its order."""
    return [line.deletion for line in parse_lines(text_of(data)) if line.deletion is not None]


def derived_id(at: datetime, *parts: str) -> str:
    """A ULID of that time which everybody makes of the same parts."""
    time_ms = min(max(int(at.timestamp() * 1000), 0), (1 << 48) - 1)
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return make_ulid(time_ms=time_ms, randomness=hashlib.blake2b(text, digest_size=10).digest())


def _area(scope: str) -> str | None:
    area = canonical_area(" ".join(scope.split()))
    return None if not area or area == Visibility.PROJECT.value else _label(area)


def _tag(text: str) -> str:
    return canonical_tag(_label(" ".join(text.split()))) if text.strip() else ""


def _label(text: str) -> str:
    return admit_label(truncate_chars(text, _LABEL_CHARS), field="line", max_chars=_LABEL_CHARS)


def _plain(text: str) -> str:
    return text.replace("\0", "")
