"""Export memories and import them again, each record reported, nothing overwritten silently."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from backstory.codecs.jsonl import decode_lines, encode_lines
from backstory.codecs.record import format_time
from backstory.domain.admission import TextLimits, admit, admit_label, admit_tags
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId, MemoryId
from backstory.domain.memory import Active, Expired, Memory, Sensitivity, Visibility
from backstory.domain.provenance import Origin, lowest, may_supersede, trust
from backstory.domain.scope import Viewer, may_change
from backstory.domain.selection import EVERY_STATE, WITH_SUPERSEDED, Selection
from backstory.errors import InputError, OutOfScope
from backstory.ports.backend import Backend
from backstory.ports.store import Order
from backstory.ports.system import Clock, IdSource

_PAGE = 500
_BATCH = 200
_LABEL_MAX_CHARS = 200


@dataclass(slots=True)
class ImportReport:
    """What an import did, or would do: added, already there, skipped because the local one is newer, and refused."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    newer_here: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    changes: list[ChangeId] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """What one import may do."""

    viewer: Viewer
    keep_projects: bool
    trusted: bool

    def check(self, known: Memory, arriving: Memory) -> None:
        """Raise OutOfScope where a file must not change a memory: in another project, or over the user's own words.

        Otherwise a file could put words into the user's mouth by naming the id of a memory.
        """
        if not self.keep_projects and not may_change(known, self.viewer):
            raise OutOfScope(f"#{known.n} belongs to another project; it can only be imported with its project kept")
        if not may_supersede(arriving.origin, known.origin):
            raise OutOfScope(f"#{known.n} was said by the user here; only a file that is vouched for may change it")


class Transfer:
    """Memories out of a store and into one."""

    def __init__(self, backend: Backend, *, clock: Clock, ids: IdSource, limits: TextLimits) -> None:
        self._backend = backend
        self._clock = clock
        self._ids = ids
        self._limits = limits

    async def export(self, viewer: Viewer, *, with_forgotten: bool = False) -> Iterator[str]:
        """The lines of an export of what the viewer sees, oldest first. Local-only memories stay here."""
        states = EVERY_STATE if with_forgotten else WITH_SUPERSEDED | {"expired"}
        selection = Selection(viewer=viewer, now=self._clock.now(), states=states)
        memories: list[Memory] = []
        while page := await self._backend.memories.select(
            selection, limit=_PAGE, offset=len(memories), order=Order.OLDEST
        ):
            memories += page
        portable = [memory for memory in memories if memory.sensitivity is not Sensitivity.LOCAL_ONLY]
        projects = await self._backend.projects.projects()
        return encode_lines(portable, projects=projects, exported_at=self._clock.now())

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
        reported; none stops the rest.
        """
        report = ImportReport()
        rules = _Rules(viewer=viewer, keep_projects=keep_projects, trusted=trusted)
        edits: list[Edit] = []
        seen: set[MemoryId] = set()
        for line in decode_lines(lines):
            if line.memory is None:
                report.refused.append(f"line {line.number}: {line.error}")
                continue
            try:
                if line.memory.id in seen:
                    raise InputError(f"the id {line.memory.id} stands twice; the first line counts", field="id")
                edit = await self._edit(self._admitted(line.memory, rules), rules, report)
                seen.add(line.memory.id)
            except (InputError, OutOfScope) as error:
                report.refused.append(f"line {line.number}: {error}")
                continue
            if edit is not None:
                edits.append(edit)
            if len(edits) >= _BATCH and not dry_run:
                await self._commit(edits, viewer, report)
        if edits and not dry_run:
            await self._commit(edits, viewer, report)
        return report

    async def _edit(self, memory: Memory, rules: _Rules, report: ImportReport) -> Edit | None:
        known = (await self._backend.memories.get([memory.id])).get(memory.id)
        if known is None:
            report.added += 1
            return Edit(before=None, after=replace(memory, n=0, revision=0))
        # new words come with their own origin: a file's text never gains the trust of the text it replaces
        origin = known.origin if memory.content == known.content else lowest((known.origin, memory.origin))
        arriving = replace(memory, n=known.n, revision=known.revision, counters=known.counters, origin=origin,
                           project=known.project, times=replace(memory.times, surfaced=known.times.surfaced,
                                                               used=known.times.used))  # fmt: skip
        if arriving == known:
            report.unchanged += 1
            return None
        if known.times.updated >= memory.times.updated:
            same = known.content == memory.content
            if same:
                report.unchanged += 1
            else:
                report.newer_here.append(f"#{known.n} was changed here on {format_time(known.times.updated)}; kept")
            return None
        rules.check(known, arriving)
        report.updated += 1
        return Edit(before=known, after=arriving)

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

    async def _commit(self, edits: list[Edit], viewer: Viewer, report: ImportReport) -> None:
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
        report.changes.append(change.id)
        edits.clear()


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


def _label(text: str | None, field: str) -> str | None:
    return None if text is None else admit_label(text, field=field, max_chars=_LABEL_MAX_CHARS)
