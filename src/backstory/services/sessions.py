"""Look through what was said: sessions with what belongs to them, their messages page by page, a part as a whole."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from backstory.domain.conversation import Message, Part, Session
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.scope import Audience, Viewer, may_read
from backstory.errors import InputError, NotFound
from backstory.ports.conversation import Archive, MessageCount

_ALL = 1_000_000
_NEAR = 3
_PARTS_AT_ONCE = 200  # messages that are looked through for a part


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCard:
    """A session with how much is kept of it, and which others belong to it. ``count`` is None where it has no message.
    ``fork_of`` is the session whose first message it repeats."""

    session: Session
    count: MessageCount | None
    children: tuple[SessionId, ...] = ()
    fork_of: SessionId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some messages of a session in their order. ``first`` is the place of the first of them, from 0."""

    session: Session
    messages: tuple[Message, ...]
    first: int
    total: int

    @property
    def left(self) -> int:
        """How many messages come after these."""
        return self.total - self.first - len(self.messages)


class Sessions:
    """The archive as a viewer may read it: the sessions of one project, or of all.

    A person also sees what the host deleted since, a model does not.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    async def cards(self, viewer: Viewer, *, limit: int) -> tuple[list[SessionCard], int]:
        """The sessions, the most recently updated first, and how many there are. Cost: reads an index over all
        messages."""
        sessions = await self._readable(viewer)
        return await self._cards(sessions[:limit], sessions), len(sessions)

    async def card(self, ref: str, viewer: Viewer) -> SessionCard:
        """One session; ``ref`` and errors as in ``find``."""
        sessions = await self._readable(viewer)
        return (await self._cards([_pick(ref, sessions)], sessions))[0]

    async def find(self, ref: str, viewer: Viewer) -> Session:
        """The session with this id, or the only one whose id begins so. Raises NotFound, naming near ones, for none
        that the viewer may read, and InputError where several begin so."""
        exact = await self._archive.session(SessionId(ref))
        if exact is not None and _may_see(exact, viewer):
            return exact
        return _pick(ref, await self._readable(viewer))

    async def session_of(self, message: str, viewer: Viewer) -> Session:
        """The session that holds a message. Raises NotFound where the viewer may not read it, or it is not kept."""
        for found in await self._archive.find_messages([MessageId(message)]):
            session = await self._archive.session(found.session)
            if session is not None and _may_see(session, viewer):
                return session
        raise NotFound(f"there is no message {message[:80]!r} here", hint="`backstory session ID` shows messages")

    async def page(self, session: Session, *, number: int, size: int) -> Page:
        """The messages of a page, from 1; a page after the last is empty."""
        return await self._cut(session, await self._archive.message_ids(session.id), (number - 1) * size, size)

    async def page_from(self, session: Session, message: str, *, size: int) -> Page:
        """A message, named as a session is, and those after it."""
        ids = await self._archive.message_ids(session.id)
        return await self._cut(session, ids, ids.index(_message(message, ids)), size)

    async def page_around(self, session: Session, message: str, *, size: int) -> Page:
        """A message and as many before it as after it, or as there are."""
        ids = await self._archive.message_ids(session.id)
        place = ids.index(_message(message, ids))
        return await self._cut(session, ids, max(0, min(place - size // 2, len(ids) - size)), size)

    async def part(self, session: Session, ref: str) -> tuple[Message, Part]:
        """A part of the session, whole, and its message; ``ref`` as in ``find``. Cost: reads the session."""
        known: dict[str, tuple[Message, Part]] = {}
        ids = await self._archive.message_ids(session.id)
        for start in range(0, len(ids), _PARTS_AT_ONCE):
            for message in await self._archive.find_messages(ids[start : start + _PARTS_AT_ONCE]):
                known |= {part.id: (message, part) for part in message.parts}
        message, part = known[_only(ref, list(known), what="part", field="part")]
        return message, await self.whole(part)

    async def whole(self, part: Part) -> Part:
        """The part with all that was too large for it back in its place; what cannot be read stays an excerpt."""
        if not part.blobs:
            return part
        from backstory.domain.blob import content_of
        from backstory.domain.excerpt import whole_part

        contents = {}
        for ref in part.blobs:
            if (blob := await self._archive.blob(ref.hash)) is not None:
                with contextlib.suppress(ValueError):  # damaged; ``backstory check`` says so
                    contents[ref.hash] = content_of(blob)
        return whole_part(part, contents)

    async def _cut(self, session: Session, ids: Sequence[MessageId], first: int, size: int) -> Page:
        messages = await self._archive.find_messages(ids[first : first + size])
        return Page(session=session, messages=tuple(messages), first=min(first, len(ids)), total=len(ids))

    async def _readable(self, viewer: Viewer) -> list[Session]:
        project = None if viewer.all_projects else viewer.project
        if project is None and not viewer.all_projects:
            return []
        sessions = await self._archive.sessions(limit=_ALL, project=project)
        return [session for session in sessions if _may_see(session, viewer)]

    async def _cards(self, wanted: Sequence[Session], everyone: Sequence[Session]) -> list[SessionCard]:
        counts = await self._archive.message_counts()
        children: defaultdict[SessionId, list[SessionId]] = defaultdict(list)
        for session in everyone:
            if session.parent is not None:
                children[session.parent].append(session.id)
        forks = await self._forks(wanted, everyone, counts)
        return [
            SessionCard(
                session=session,
                count=counts.get(session.id),
                children=tuple(sorted(children[session.id])),
                fork_of=forks.get(session.id),
            )
            for session in wanted
        ]

    async def _forks(
        self, wanted: Sequence[Session], everyone: Sequence[Session], counts: Mapping[SessionId, MessageCount]
    ) -> dict[SessionId, SessionId]:
        """Which of them begin with a message that an earlier session began with: at the same moment, in the same
        words. A host that forks a session copies its messages under new ids."""
        begun: defaultdict[object, list[Session]] = defaultdict(list)
        for session in everyone:
            if session.id in counts:
                begun[counts[session.id].first_at].append(session)
        forks: dict[SessionId, SessionId] = {}
        names = {session.id for session in wanted}
        for together in begun.values():
            if len(together) > 1 and names.intersection(session.id for session in together):
                forks |= await self._forks_of(together)
        return forks

    async def _forks_of(self, together: Sequence[Session]) -> dict[SessionId, SessionId]:
        origins: dict[object, SessionId] = {}
        forks: dict[SessionId, SessionId] = {}
        for session in sorted(together, key=lambda session: (session.created_at, session.id)):
            for first in await self._archive.messages(session.id, limit=1):
                words = (first.role, session.parent is None, tuple(part.text for part in first.parts))
                if (origin := origins.setdefault(words, session.id)) != session.id:
                    forks[session.id] = origin
        return forks


def _may_see(session: Session, viewer: Viewer) -> bool:
    """A person may look at what the host deleted: only a person removes evidence."""
    person = viewer.audience is Audience.PERSON
    return may_read(replace(session, deleted_at=None) if person else session, viewer)


def _pick(ref: str, sessions: Sequence[Session]) -> Session:
    known = {session.id: session for session in sessions}
    return known[SessionId(_only(ref, list(known), what="session", field="session"))]


def _message(ref: str, ids: Sequence[MessageId]) -> MessageId:
    return MessageId(_only(ref, ids, what="message", field="message"))


def _only(ref: str, ids: Sequence[str], *, what: str, field: str) -> str:
    """The id, or the only one that begins so."""
    if ref in ids:
        return ref
    begun = [name for name in ids if ref and name.startswith(ref)]
    if len(begun) == 1:
        return begun[0]
    if begun:
        some = ", ".join(begun[:_NEAR])
        raise InputError(f"{len(begun)} {what}s begin with {ref[:80]!r}: {some}", field=field, hint="write more of it")
    from difflib import get_close_matches  # only to report an error

    near = [name for name in ids if ref and ref in name][:_NEAR] or get_close_matches(ref[:100], ids, n=_NEAR)
    beside = f"; near it: {', '.join(near)}" if near else ""
    raise NotFound(f"there is no {what} {ref[:80]!r} here{beside}", hint="`backstory sessions` lists the sessions")
