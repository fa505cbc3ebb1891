"""Export memories and import them again, each record reported, nothing overwritten silently."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from backstory.codecs.jsonl import decode_lines, encode_lines
from backstory.codecs.record import format_time
from backstory.domain.admission import TextLimits, admit, admit_label, admit_tags
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId, ProjectId
from backstory.domain.memory import (
    Active,
    Deleted,
    Expired,
    Memory,
    Sensitivity,
    Visibility,
    narrower,
    stricter,
)
from backstory.domain.project import Project, ProjectSighting
from backstory.domain.provenance import Origin, is_injectable, lowest, may_supersede, trust
from backstory.domain.scope import Viewer, may_change
from backstory.domain.selection import EVERY_STATE, WITH_SUPERSEDED, Selection
from backstory.errors import Conflict, InputError, OutOfScope
from backstory.ports.backend import Backend
from backstory.ports.store import Order
from backstory.ports.system import Clock, IdSource

_ALL = 1 << 31
_BATCH = 200
# Two imports of one file meet at every batch, and the loser of a race finds the winner's memories at its next look.
_ATTEMPTS = 20
_LABEL_MAX_CHARS = 200


@dataclass(slots=True)
class ImportReport:
    """What an import did, or would do: added, already there, skipped because the local one is newer, and refused.

    ``projects`` are those that memories were left in and nobody knew here; they are known from now on.
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    newer_here: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    changes: list[ChangeId] = field(default_factory=list)
    projects: list[Project] = field(default_factory=list)

    def add(self, other: ImportReport) -> None:
        """Add what a part of the import did."""
        self.added += other.added
        self.updated += other.updated
        self.unchanged += other.unchanged
        self.newer_here += other.newer_here
        self.refused += other.refused
        self.changes += other.changes


_Line = tuple[int, Memory]
"""The number of a line, and the memory in it as it may come in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """What one import may do."""

    viewer: Viewer
    keep_projects: bool
    trusted: bool

    def check(self, known: Memory, arriving: Memory, *, claimed: Origin) -> None:
        """Raise OutOfScope where a file must not change a memory: in another project, over the user's own words, or in
        how it is offered to whom.

        Otherwise a file could put words into the user's mouth, silence them or give them away, by naming the id of a
        memory. ``claimed`` is the origin of the file's own record, whatever it becomes when it is written.
        """
        if not self.keep_projects and not may_change(known, self.viewer):
            raise OutOfScope(f"#{known.n} belongs to another project; it can only be imported with its project kept")
        if self.trusted:
            return
        if not may_supersede(claimed, known.origin):
            raise OutOfScope(f"#{known.n} was said by the user here; only a file that is vouched for may change it")
        if _opens(known, arriving) or (is_injectable(known.origin) and _standing(known) != _standing(arriving)):
            raise OutOfScope(
                f"#{known.n} would get another state, pin, tier, expiry or circle of readers; only a file that is"
                " vouched for may do that"
            )


def _opens(known: Memory, arriving: Memory) -> bool:
    """Whether a memory would reach more readers than somebody here decided, or come back after it was forgotten."""
    return (
        stricter(known.sensitivity, arriving.sensitivity) is not arriving.sensitivity
        or narrower(known.visibility, arriving.visibility) is not arriving.visibility
        or (isinstance(known.status, Deleted) and not isinstance(arriving.status, Deleted))
    )


def _standing(memory: Memory) -> tuple[object, ...]:
    """How a memory is offered, and to whom."""
    return (
        memory.status, memory.pinned, memory.tier, memory.expires_at, memory.sensitivity, memory.visibility,
        memory.session,
    )  # fmt: skip


class Transfer:
    """Memories out of a store and into one."""

    def __init__(self, backend: Backend, *, clock: Clock, ids: IdSource, limits: TextLimits) -> None:
        self._backend = backend
        self._clock = clock
        self._ids = ids
        self._limits = limits

    async def export(
        self, viewer: Viewer, *, with_forgotten: bool = False, with_private: bool = False
    ) -> Iterator[str]:
        """The lines of an export of what the viewer sees, oldest first, all as of one moment.

        Local-only memories stay here, and so do private ones unless asked for.
        """
        states = EVERY_STATE if with_forgotten else WITH_SUPERSEDED | {"expired"}
        selection = Selection(viewer=viewer, now=self._clock.now(), states=states)
        # in one go: between two pages another process could forget a memory, and the next page would skip one
        memories = await self._backend.memories.select(selection, limit=_ALL, order=Order.OLDEST)
        portable = {Sensitivity.NORMAL, Sensitivity.PRIVATE} if with_private else {Sensitivity.NORMAL}
        projects = await self._backend.projects.projects()
        return encode_lines(
            [memory for memory in memories if memory.sensitivity in portable],
            projects=projects,
            exported_at=self._clock.now(),
        )

    async def load(
        self,
        lines: Iterable[str],
        viewer: Viewer,
        *,
        dry_run: bool = False,
        keep_projects: bool = False,
        trusted: bool = False,
    ) -> ImportReport:
        """Import an export. Idempotent by id; a memory changed here later than there is left alone and reported.

        Project memories come into the viewer's project unless ``keep_projects``. A file may claim any origin, so all
        comes in as ``imported`` at best, unless a person vouches for the file (``trusted``). Every bad line is
        reported; none stops the rest. Two imports at once, also of one file, each find what the other wrote.
        """
        report = ImportReport()
        rules = _Rules(viewer=viewer, keep_projects=keep_projects, trusted=trusted)
        batch: list[_Line] = []
        seen: set[MemoryId] = set()
        kept_in: dict[ProjectId, str | None] = {}
        for line in decode_lines(lines):
            if line.memory is None:
                report.refused.append(f"line {line.number}: {line.error}")
                continue
            try:
                if line.memory.id in seen:
                    raise InputError(f"the id {line.memory.id} stands twice; the first line counts", field="id")
                batch.append((line.number, self._admitted(line.memory, rules)))
                seen.add(line.memory.id)
                if keep_projects and line.memory.project is not None:
                    kept_in.setdefault(line.memory.project, line.project_name)
            except InputError as error:
                report.refused.append(f"line {line.number}: {error}")
            if len(batch) >= _BATCH:
                await self._load_batch(batch, rules, report, dry_run=dry_run)
                batch.clear()
        await self._load_batch(batch, rules, report, dry_run=dry_run)
        report.projects = await self._register(kept_in, dry_run=dry_run)
        return report

    async def _register(self, named: Mapping[ProjectId, str | None], *, dry_run: bool) -> list[Project]:
        """Make the projects known that are not, each under the name that the file gives it. Nobody knows where they
        are: a person merges them into the project of a folder."""
        known = await self._backend.projects.projects() if named else {}
        found = [
            Project(id=project, name=_project_name(name) or project, root="")
            for project, name in named.items()
            if project not in known
        ]
        for project in found if not dry_run else ():
            sighting = ProjectSighting(name=project.name, root="", aliases=(f"id:{project.id}",))
            await self._backend.projects.identify(sighting, now=self._clock.now(), new_id=project.id)
        return found

    async def _load_batch(self, batch: Sequence[_Line], rules: _Rules, report: ImportReport, *, dry_run: bool) -> None:
        """Write what a batch changes, as one change; decided anew when others wrote in the meantime."""
        for attempt in range(1, _ATTEMPTS + 1):
            known = await self._backend.memories.get([memory.id for _, memory in batch])
            outcome = ImportReport()
            edits = [edit for line in batch if (edit := _edit(line, known.get(line[1].id), rules, outcome)) is not None]
            try:
                if edits and not dry_run:
                    outcome.changes.append(await self._commit(edits, rules.viewer))
            except Conflict as error:
                if attempt < _ATTEMPTS:
                    continue
                outcome = ImportReport(refused=[f"line {number}: {error}" for number, _ in batch])
            report.add(outcome)
            return

    def _admitted(self, memory: Memory, rules: _Rules) -> Memory:
        _check_ids(memory)
        limits = TextLimits(min_chars=1, max_chars=max(self._limits.max_chars, 100_000))
        content = admit(memory.content, field="content", limits=limits).text
        project = memory.project if rules.keep_projects else rules.viewer.project
        if memory.visibility is not Visibility.GLOBAL and project is None:
            raise InputError("a project's memory can only be imported inside a project", field="project")
        too_high = trust(memory.origin) > trust(Origin.IMPORTED) and not rules.trusted
        return replace(
            _without_expired(memory),
            content=content,
            tags=admit_tags(memory.tags),
            area=_label(memory.area, "area"),
            issue=_label(memory.issue, "issue"),
            project=project,
            origin=Origin.IMPORTED if too_high else memory.origin,
        )

    async def _commit(self, edits: Sequence[Edit], viewer: Viewer) -> ChangeId:
        change = await self._backend.memories.commit(
            Change(
                id=ChangeId(self._ids.new_id()),
                at=self._clock.now(),
                author=Author.USER,
                action=Action.IMPORT,
                edits=tuple(edits),
                session=viewer.session,
            )
        )
        return change.id


def _edit(line: _Line, known: Memory | None, rules: _Rules, report: ImportReport) -> Edit | None:
    """What one line changes, and the report of it; None where nothing is to be written."""
    number, memory = line
    if known is None:
        report.added += 1
        return Edit(before=None, after=replace(memory, n=0, revision=0))
    arriving = _in_place_of(known, memory)
    if arriving == known or _is_older_and_the_same(known, arriving):
        report.unchanged += 1
        return None
    if known.times.updated >= memory.times.updated:
        report.newer_here.append(f"#{known.n} was changed here on {format_time(known.times.updated)}; kept")
        return None
    try:
        rules.check(known, arriving, claimed=memory.origin)
    except OutOfScope as error:
        report.refused.append(f"line {number}: {error}")
        return None
    report.updated += 1
    return Edit(before=known, after=arriving)


def _in_place_of(known: Memory, memory: Memory) -> Memory:
    """A file's memory as it would stand here: new words come with their own origin, so that a file's text never gains
    the trust of the text it replaces."""
    origin = known.origin if memory.content == known.content else lowest((known.origin, memory.origin))
    times = replace(memory.times, surfaced=known.times.surfaced, used=known.times.used)
    return replace(
        memory, n=known.n, revision=known.revision, counters=known.counters, origin=origin, project=known.project,
        times=times,
    )  # fmt: skip


def _is_older_and_the_same(known: Memory, arriving: Memory) -> bool:
    return known.times.updated >= arriving.times.updated and known.content == arriving.content


def _without_expired(memory: Memory) -> Memory:
    """Expiry is derived from a date, never stored: a file that says so gets the date."""
    if not isinstance(memory.status, Expired):
        return memory
    return replace(memory, status=Active(), expires_at=memory.expires_at or memory.status.since)


def _check_ids(memory: Memory) -> None:
    """Names that are shown as they are must be such as a host or we would write: one line, no control characters."""
    source = memory.provenance
    names = (
        memory.project,
        memory.session,
        memory.namespace,
        source.session,
        *source.messages,
        source.agent,
        source.tool,
    )
    for name in filter(None, names):
        admit_label(name, field="provenance", max_chars=_LABEL_MAX_CHARS)


def _project_name(name: str | None) -> str | None:
    """The name that a file gives a project, if it can be one."""
    with contextlib.suppress(InputError):
        return admit_label(" ".join((name or "").split()), field="project", max_chars=_LABEL_MAX_CHARS)
    return None


def _label(text: str | None, field: str) -> str | None:
    return None if text is None else admit_label(text, field=field, max_chars=_LABEL_MAX_CHARS)
