"""Write, update, forget, supersede, pin, retag, undo: every decision about memories goes through here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from backstory.domain.admission import MAX_TAGS, TextLimits, admit, admit_evidence, admit_label, admit_tags
from backstory.domain.capture import guess_kind
from backstory.domain.history import Action, Author, Change, Edit, undo_edits
from backstory.domain.ids import ChangeId, MemoryId
from backstory.domain.labels import canonical_area, canonical_tag
from backstory.domain.memory import (
    Deleted,
    Kind,
    Memory,
    Revision,
    Sensitivity,
    Source,
    Superseded,
    Tier,
    Times,
    Visibility,
    confirm,
    forget,
    reactivate,
    retag,
    revise,
    set_pin,
    status_at,
    status_name,
    supersede,
)
from backstory.domain.provenance import Origin, Provenance, lowest, may_supersede, trust
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import CURRENT, EVERY_STATE, Selection
from backstory.domain.succession import succeed
from backstory.domain.text import normalise
from backstory.domain.truncation import truncate_chars
from backstory.errors import Conflict, InputError, NotFound, OutOfScope
from backstory.ports.store import MemoryStore
from backstory.ports.system import Clock, IdSource
from backstory.services.reference import Reference

DEFAULT_TEMPORARY = timedelta(hours=24)
LONG_MEMORY_CHARS = 700  # above this, a memory is stored but the writer is told that blocks cut it
AREA_MAX_CHARS = 200
ISSUE_MAX_CHARS = 200
REASON_MAX_CHARS = 500
# Somebody who lost the race once finds the winner's memory at the next look; more often only under many writers.
_ATTEMPTS = 20
_UNDO_SEARCHED = (50, 500, 5000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What somebody wants remembered. ``key`` makes a repeated delivery of the same statement harmless."""

    content: str
    kind: Kind | None = None
    visibility: Visibility | None = None
    area: str | None = None
    tags: Sequence[str] = ()
    issue: str | None = None
    tier: Tier | None = None
    expires_in: timedelta | None = None
    pinned: bool = False
    sensitivity: Sensitivity = Sensitivity.NORMAL
    supersedes: str | None = None
    origin: Origin
    source: Source = Source.EXPLICIT
    provenance: Provenance = field(default_factory=Provenance)
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What became of a draft. ``fresh`` False: the same text was known, and was confirmed instead of stored twice."""

    memory: Memory
    change: Change
    fresh: bool
    superseded: Memory | None = None
    notes: tuple[str, ...] = ()


class Remember:
    """Decisions about memories, each one change in the history."""

    def __init__(
        self, store: MemoryStore, reference: Reference, *, clock: Clock, ids: IdSource, limits: TextLimits
    ) -> None:
        self._store = store
        self._reference = reference
        self._clock = clock
        self._ids = ids
        self._limits = limits

    async def remember(self, draft: Draft, *, viewer: Viewer, author: Author) -> Remembered:
        """Store a statement.

        A text that is known already (same words, whatever case and spacing) to the same readers is confirmed instead,
        also when several processes say it at once: one stores it, the others confirm. Raises InputError (too long,
        empty, private, bad tag), NotFound or OutOfScope for ``supersedes``.

        What takes the place of another keeps its readers, pin and tier unless told otherwise, see ``succeed``. Where
        the one to be superseded was superseded already, the newest that took its place is.
        """
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._remember(draft, viewer=viewer, author=author)
            except Conflict:
                continue  # decided on what is not so any more; look again
        return await self._remember(draft, viewer=viewer, author=author)

    async def _remember(self, draft: Draft, *, viewer: Viewer, author: Author) -> Remembered:
        now = self._clock.now()
        admitted = admit(draft.content, field="content", limits=self._limits)
        memory = self._new_memory(draft, admitted.text, viewer=viewer, now=now)
        notes = _notes(memory, admitted.secrets, private_removed=admitted.private_removed)
        named, old = await self._replaced(draft, viewer)
        if named is not None and old is not None:
            memory = _as_successor(memory, old, draft, now=now)
            notes += _moved_on(named, old)
        known = None if old else await self._known(memory, now)
        if known is not None:
            said_again = _said_again(known, memory, now=now)
            change = await self._commit(Action.CONFIRM, author, viewer, [(known, said_again)], key=draft.key)
            return Remembered(memory=_last(change), change=change, fresh=False, notes=("already known; confirmed",))
        edits: list[tuple[Memory | None, Memory]] = [(None, memory)]
        if old is not None:
            edits.append((old, supersede(old, by=memory.id, now=now)))
        absent = None if old else _same_for_same_readers(memory, now)
        action = Action.SUPERSEDE if old else Action.ADD
        change = await self._commit(action, author, viewer, edits, key=draft.key, absent=absent)
        stored = change.edits[0].after
        fresh = stored.id == memory.id
        return Remembered(memory=stored, change=change, fresh=fresh, superseded=old, notes=notes)

    async def update(
        self, ref: str, revision: Revision, *, viewer: Viewer, author: Author, reason: str | None = None
    ) -> Change | None:
        """Change a memory in place: its learned date and all that is not named stay. None when it is so already.

        Raises Conflict when another memory says the new text to the same readers already.
        """
        memory = await self._reference.find_changeable(ref, viewer)
        now = self._clock.now()
        updated = revise(memory, self._admitted(revision), now=now)
        if updated.content != memory.content:  # new words are the words of whoever wrote them
            writer = Origin.USER if author is Author.USER else lowest((memory.origin, Origin.AGENT))
            updated = replace(updated, origin=writer)
        if updated.visibility is not memory.visibility:
            updated = self._moved(updated, viewer)
        if updated.tier is Tier.TEMPORARY and updated.expires_at is None:
            updated = replace(updated, expires_at=now + DEFAULT_TEMPORARY)
        if _says_the_same(memory, updated):
            return None
        absent = None
        if _says_anew(memory, updated, now):
            await self._check_said_once(updated, now)
            absent = _same_for_same_readers(updated, now)
        return await self._commit(Action.UPDATE, author, viewer, [(memory, updated)], reason=reason, absent=absent)

    async def forget(self, refs: Sequence[str], *, viewer: Viewer, author: Author, reason: str | None = None) -> Change:
        """Hide memories; what they had superseded becomes current again, or passes to what superseded them. One change,
        undoable. Raises InputError when none is named."""
        if not refs:
            raise InputError("no memory is named", field="id", hint="give a #number, an id or a piece of its text")
        now, reason = self._clock.now(), _as_reason(reason)
        chosen = {memory.id: memory for memory in [await self._reference.find_changeable(ref, viewer) for ref in refs]}
        edits = [(memory, forget(memory, now=now, reason=reason)) for memory in chosen.values()]
        for memory in chosen.values():
            older = await self._store.select(
                Selection(viewer=viewer, now=now, states=EVERY_STATE, superseded_by=memory.id), limit=10_000
            )
            heir = await self._heir(memory, chosen)
            edits += [
                (old, reactivate(old) if heir is None else supersede(old, by=heir, now=now))
                for old in older
                if old.id not in chosen and self._reference.changeable(old, viewer)
            ]
        return await self._commit(Action.FORGET, author, viewer, edits, reason=reason)

    async def _heir(self, memory: Memory, forgotten: Mapping[MemoryId, Memory]) -> MemoryId | None:
        """What takes the place of a memory that is being forgotten: the first of its successors that stays."""
        seen = {memory.id}
        while isinstance(memory.status, Superseded) and memory.status.by not in seen:
            by = memory.status.by
            seen.add(by)
            successor = forgotten.get(by) or (await self._store.get([by])).get(by)
            if successor is None:
                return None
            if by not in forgotten and not isinstance(successor.status, Deleted):
                return by
            memory = successor
        return None

    async def pin(self, ref: str, *, pinned: bool, viewer: Viewer, author: Author) -> Change | None:
        """Pin or unpin a memory. None when it is so already."""
        memory = await self._reference.find_changeable(ref, viewer)
        if memory.pinned is pinned:
            return None
        action = Action.PIN if pinned else Action.UNPIN
        return await self._commit(action, author, viewer, [(memory, set_pin(memory, pinned=pinned))])

    async def retag(self, old: str, new: str, *, viewer: Viewer, author: Author) -> Change | None:
        """Rename a tag on every memory that may be changed from here; None when there is none.

        Raises InputError when the new tag is the old one.
        """
        old, wanted = canonical_tag(old), admit_tags([new])[0]
        if old == wanted:
            raise InputError(f"the tag is called {old!r} already", field="new")
        selection = Selection(viewer=viewer, now=self._clock.now(), states=EVERY_STATE - {"deleted"}, tags=(old,))
        memories = await self._store.select(selection, limit=100_000)
        edits = [
            (memory, retag(memory, old=old, new=wanted))
            for memory in memories
            if self._reference.changeable(memory, viewer)
        ]
        return await self._commit(Action.RETAG, author, viewer, edits) if edits else None

    async def undo(self, change_id: ChangeId | None, *, viewer: Viewer, author: Author) -> Change:
        """Take a change back; without an id, the newest one that can be undone from here.

        Raises NotFound, OutOfScope, and Conflict when a later change stands on it, or when what would come back was
        said anew since.
        """
        change = await self._to_undo(change_id, viewer)
        current = await self._store.get([edit.after.id for edit in change.edits])
        for memory in current.values():
            self._reference.check_changeable(memory, viewer)
        now = self._clock.now()
        edits = undo_edits(change, current, now=now)
        for edit in edits:
            if edit.before is not None and _says_anew(edit.before, edit.after, now):
                await self._check_said_once(edit.after, now, beside=current)
        return await self._store.commit(
            Change(
                id=ChangeId(self._ids.new_id()),
                at=self._clock.now(),
                author=author,
                action=Action.UNDO,
                edits=edits,
                session=viewer.session,
                undoes=change.id,
            )
        )

    async def _to_undo(self, change_id: ChangeId | None, viewer: Viewer) -> Change:
        if change_id is not None:
            change = await self._store.change(change_id)
            if change is None:
                raise NotFound(f"there is no change {change_id}; `backstory history` lists them")
            return change
        here = replace(viewer, all_projects=False)  # reading across projects never allows changing
        for limit in _UNDO_SEARCHED:
            changes = await self._store.history(viewer=here, limit=limit)
            found = self._newest_to_undo(changes, viewer)
            if found is not None:
                return found
            if len(changes) < limit:
                break
        raise NotFound("there is nothing to undo in this project")

    def _newest_to_undo(self, changes: Sequence[Change], viewer: Viewer) -> Change | None:
        """An undo is not undone by itself, and one that was undone by name no longer counts."""
        undone = set[ChangeId]()
        for change in changes:
            if change.id in undone:
                continue
            if change.undoes is not None:
                undone.add(change.undoes)
            elif all(self._reference.changeable(edit.after, viewer) for edit in change.edits):
                return change
        return None

    async def _replaced(self, draft: Draft, viewer: Viewer) -> tuple[Memory | None, Memory | None]:
        """The memory named to be superseded, and the one to supersede: itself, or the last that took its place."""
        if draft.supersedes is None:
            return None, None
        named = await self._reference.find_changeable(draft.supersedes, viewer, field="supersedes")
        old, seen = named, {named.id}
        while (heir := await self._heir(old, {})) is not None and heir not in seen:
            seen.add(heir)
            old = (await self._store.get([heir]))[heir]
        if not self._reference.changeable(old, viewer):
            raise OutOfScope(f"memory #{named.n} was replaced already, by one that cannot be changed from here")
        if not may_supersede(draft.origin, old.origin):
            raise OutOfScope(f"memory #{old.n} was said by the user; text from {draft.origin.value} cannot replace it")
        return named, old

    async def _known(self, memory: Memory, now: datetime) -> Memory | None:
        return next(iter(await self._store.select(_same_for_same_readers(memory, now), limit=1)), None)

    async def _check_said_once(self, memory: Memory, now: datetime, *, beside: Collection[MemoryId] = ()) -> None:
        """Raise Conflict when a memory, other than this one and those beside it, says the same to the same readers."""
        selection = _same_for_same_readers(memory, now)
        for known in await self._store.select(selection, limit=len(beside) + 2):
            if known.id != memory.id and known.id not in beside:
                raise Conflict(f"memory #{known.n} says so already; forget one of them, #{known.n} or #{memory.n}")

    def _new_memory(self, draft: Draft, content: str, *, viewer: Viewer, now: datetime) -> Memory:
        tier = draft.tier or (Tier.TEMPORARY if draft.expires_in else Tier.ARCHIVAL)
        lifetime = draft.expires_in or (DEFAULT_TEMPORARY if tier is Tier.TEMPORARY else None)
        if lifetime is not None and lifetime <= timedelta(0):
            raise InputError(f"expires_in is {lifetime}; it must lie in the future", field="expires_in")
        visibility = draft.visibility or (Visibility.PROJECT if viewer.project else Visibility.GLOBAL)
        self._check_place(visibility, viewer)
        return Memory(
            id=MemoryId(self._ids.new_id()),
            content=content,
            kind=draft.kind or guess_kind(content),
            visibility=visibility,
            project=viewer.project,
            session=viewer.session,
            area=_area(draft.area),
            tags=admit_tags(draft.tags),
            issue=_label(draft.issue, "issue", ISSUE_MAX_CHARS),
            tier=tier,
            pinned=draft.pinned,
            expires_at=now + lifetime if lifetime else None,
            sensitivity=draft.sensitivity,
            origin=draft.origin,
            source=draft.source,
            provenance=replace(draft.provenance, session=draft.provenance.session or viewer.session),
            times=Times(learned=now, updated=now, confirmed=now),
        )

    def _moved(self, memory: Memory, viewer: Viewer) -> Memory:
        """A memory whose visibility was changed from here: it belongs here now, or its readers would be nobody."""
        self._check_place(memory.visibility, viewer)
        match memory.visibility:
            case Visibility.GLOBAL:
                return memory
            case Visibility.PROJECT:
                return replace(memory, project=viewer.project)
            case Visibility.SESSION:
                return replace(memory, project=viewer.project, session=viewer.session)

    def _check_place(self, visibility: Visibility, viewer: Viewer) -> None:
        if visibility is Visibility.PROJECT and viewer.project is None:
            raise InputError("visibility is project, but there is no project here; use global", field="visibility")
        if visibility is Visibility.SESSION and viewer.session is None:
            raise InputError("visibility is session, but there is no session here; use project", field="visibility")

    def _admitted(self, revision: Revision) -> Revision:
        content = revision.content
        if content is not None:
            content = admit(content, field="content", limits=self._limits).text
        return replace(
            revision,
            content=content,
            area=_area(revision.area),
            issue=_label(revision.issue, "issue", ISSUE_MAX_CHARS),
            tags=None if revision.tags is None else admit_tags(revision.tags),
        )

    async def _commit(
        self,
        action: Action,
        author: Author,
        viewer: Viewer,
        edits: Sequence[tuple[Memory | None, Memory]],
        *,
        reason: str | None = None,
        key: str | None = None,
        absent: Selection | None = None,
    ) -> Change:
        return await self._store.commit(
            Change(
                id=ChangeId(self._ids.new_id()),
                at=self._clock.now(),
                author=author,
                action=action,
                edits=tuple(Edit(before=before, after=after) for before, after in edits),
                reason=_as_reason(reason),
                session=viewer.session,
                key=key,
            ),
            absent=absent,
        )


def _as_successor(memory: Memory, old: Memory, draft: Draft, *, now: datetime) -> Memory:
    return succeed(
        memory,
        old,
        visibility=draft.visibility,
        lifetime_named=draft.tier is not None or draft.expires_in is not None,
        otherwise_until=now + DEFAULT_TEMPORARY,
    )


def _moved_on(named: Memory, old: Memory) -> tuple[str, ...]:
    if named.id == old.id:
        return ()
    return (f"#{named.n} had been replaced by #{old.n} already, so #{old.n} is replaced",)


def _says_anew(before: Memory, after: Memory, now: datetime) -> bool:
    """Whether a change makes a memory say something current that it did not say to these readers before."""
    return _is_current(after, now) and not (_is_current(before, now) and _statement(before) == _statement(after))


def _is_current(memory: Memory, now: datetime) -> bool:
    return status_name(status_at(memory, now)) in CURRENT


def _statement(memory: Memory) -> tuple[object, ...]:
    """What is said to whom: the conditions of ``_same_for_same_readers``."""
    project = memory.project if memory.visibility is Visibility.PROJECT else None
    session = memory.session if memory.visibility is Visibility.SESSION else None
    return normalise(memory.content), memory.visibility, project, session, memory.sensitivity


def _last(change: Change) -> Memory:
    return change.edits[-1].after


def _same_for_same_readers(memory: Memory, now: datetime) -> Selection:
    """The current memories with the text of this one for just its readers: everybody, its project, or its session."""
    project = memory.project if memory.visibility is Visibility.PROJECT else None
    session = memory.session if memory.visibility is Visibility.SESSION else None
    return Selection(
        viewer=Viewer(project=project, session=session, audience=Audience.PERSON),
        now=now,
        same_text=memory.content,
        visibility=memory.visibility,
        sensitivity=memory.sensitivity,
    )


def _said_again(known: Memory, new: Memory, *, now: datetime) -> Memory:
    """A known memory, confirmed: it gains the new labels and pin, the better origin and the longer life of the two."""
    confirmed = confirm(known, now=now)
    # only the user's own words raise an origin: an agent that repeats a web page does not make it trusted
    better = new.origin is Origin.USER and trust(new.origin) > trust(known.origin)
    origin = new.origin if better else known.origin
    stays = known.expires_at is None or new.expires_at is None
    expires = None if stays else max(filter(None, (confirmed.expires_at, new.expires_at)))
    return replace(
        confirmed,
        origin=origin,
        tags=admit_tags(tuple(dict.fromkeys((*known.tags, *new.tags)))[:MAX_TAGS]),
        area=known.area or new.area,
        issue=known.issue or new.issue,
        pinned=known.pinned or new.pinned,
        tier=new.tier if known.tier is Tier.TEMPORARY or new.tier is Tier.CORE else known.tier,
        expires_at=expires,
    )


def _says_the_same(memory: Memory, updated: Memory) -> bool:
    return replace(updated, times=memory.times) == memory


def _as_reason(text: str | None) -> str | None:
    """A reason on one line, its secrets masked, cut to its limit: no change fails because of how it is explained."""
    line = "" if text is None else " ".join(admit_evidence(text).split())
    return truncate_chars(line, REASON_MAX_CHARS) or None


def _area(text: str | None) -> str | None:
    return None if text is None else admit_label(canonical_area(text), field="area", max_chars=AREA_MAX_CHARS)


def _label(text: str | None, field_name: str, max_chars: int) -> str | None:
    return None if text is None else admit_label(text, field=field_name, max_chars=max_chars)


def _notes(memory: Memory, secrets: Sequence[str], *, private_removed: bool) -> tuple[str, ...]:
    notes = []
    if secrets:
        notes.append(f"masked before storing: {', '.join(dict.fromkeys(secrets))}")
    if private_removed:
        notes.append("private text was left out")
    if len(memory.content) > LONG_MEMORY_CHARS:
        notes.append(
            f"{len(memory.content)} characters are long for one memory: blocks show the first 600; "
            "consider several shorter ones"
        )
    return tuple(notes)
