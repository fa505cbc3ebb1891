"""A request of a long session: which of its first messages a digest replaces, the same until its next user message.

Nothing here asks a model. What is to be digested is found here, and done by ``digesting.py``, in the background.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from backstory.domain.conversation import Role
from backstory.domain.digest import DigestUpdate, SessionDigest
from backstory.domain.digest_block import compaction_note, digest_block
from backstory.domain.digest_plan import Listed, current_turn, replacement
from backstory.domain.ids import MessageId, ProjectId, SessionId
from backstory.domain.interchange import is_unvouched
from backstory.ports.digests import DigestStore
from backstory.ports.system import Clock
from backstory.services.digest_strategy import DigestStrategy, SessionView
from backstory.services.session_views import SessionViews

MAX_SESSIONS = 200  # whose last request this process remembers
MAX_RAW = 200  # messages read from the archive within a request; more are looked at in the background

_REQUEST_FOR_SUMMARY = Listed(id=MessageId("request-for-summary"), role=Role.USER.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """The first ``count`` messages of a list, and the text that stands in their place."""

    count: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a request shows of its session's history, and whether there is work to do in the background."""

    replaced: Replaced | None = None
    due: bool = False


@dataclass(slots=True)
class Seen:
    """The last request of a session, and what was answered to it at which revision of its digest."""

    listed: Sequence[Listed]
    project: ProjectId | None
    turn: MessageId | None
    revision: int
    replaced: Replaced | None


class SessionDigests:
    """What requests show of their sessions' history, under one strategy."""

    def __init__(self, digests: DigestStore, views: SessionViews, strategy: DigestStrategy, *, clock: Clock) -> None:
        self._digests = digests
        self._views = views
        self._strategy = strategy
        self._clock = clock
        self._seen: OrderedDict[SessionId, Seen] = OrderedDict()

    async def outlook(self, listed: Sequence[Listed], *, session: SessionId, project: ProjectId | None) -> Outlook:
        """What a request with these messages shows.

        Within a turn the answer stays the same, unless what it shows was undone. The archive is read once a turn.
        Raises what the store raises.
        """
        turn = _turn_of(listed)
        seen = self._seen.get(session)
        if seen is None or turn is None or seen.turn != turn:
            return await self._next_turn(listed, session, project, turn)
        revision = await self._digests.revision(session)
        if seen.revision != revision or not _same_front(seen, listed):
            digest = await self._digests.digest(session)
            seen.replaced = None if digest is None else rendered(listed, digest)
            seen.revision = revision
        seen.listed = listed
        return Outlook(replaced=seen.replaced)

    async def _next_turn(
        self, listed: Sequence[Listed], session: SessionId, project: ProjectId | None, turn: MessageId | None
    ) -> Outlook:
        digest = await self._views.current(session)
        if is_unvouched(digest):
            return Outlook()
        due = True
        if len(self._views.raw(listed, digest)) <= MAX_RAW:
            view = await self._views.view(digest, listed, project=project)
            due = self._strategy.due(view)
            if turn is not None and digest.state.shown_for != turn and (digest.pieces or due):
                digest = await self._switched(view, turn)
        replaced = rendered(listed, digest)
        self._remember(
            session,
            Seen(listed=listed, project=project, turn=turn, revision=digest.state.revision, replaced=replaced),
        )
        return Outlook(replaced=replaced, due=due)

    async def _switched(self, view: SessionView, turn: MessageId) -> SessionDigest:
        """The digest with what is shown from this turn on; what was shown stays when others write at this moment.

        That nothing changes is written down too: another process that answers within the turn must not change it then.
        """
        digest = view.digest
        shows = self._strategy.shows(view) if digest.pieces else ()
        state = replace(digest.state, shown_for=turn, updated_at=self._clock.now())
        if state.attempts:  # what a compaction wanted at once has failed; the session goes on without it
            state = replace(state, forced=False)
        if shows != digest.state.shown:
            task, response = state.current_task, state.suggested_response
            state = replace(state, shown=shows, shown_task=task, shown_response=response)
        if not await self._digests.apply(DigestUpdate(state=state)):
            return digest
        return replace(digest, state=replace(state, revision=state.revision + 1))

    def _remember(self, session: SessionId, seen: Seen) -> None:
        self._seen[session] = seen
        self._seen.move_to_end(session)
        if len(self._seen) > MAX_SESSIONS:
            self._seen.popitem(last=False)

    def last_request(self, session: SessionId) -> Seen | None:
        """The newest request of a session in this process."""
        return self._seen.get(session)

    def about_to_drop(self, session: SessionId, listed: Sequence[Listed]) -> Sequence[Listed]:
        """The list to be digested when a host has a summary made of these messages: the newest turn is past as well.

        It is the session's last request until the next one.
        """
        past = (*listed, _REQUEST_FOR_SUMMARY)
        if (seen := self._seen.get(session)) is not None:
            seen.listed = past
        return past

    def is_dropping(self, session: SessionId) -> bool:
        """Whether nothing was requested in the session since ``about_to_drop``."""
        seen = self._seen.get(session)
        return seen is not None and seen.listed[-1:] == (_REQUEST_FOR_SUMMARY,)

    async def compaction_note(self, session: SessionId) -> str | None:
        """What a host is told that is about to summarise the session itself; None where it has no digest."""
        digest = await self._digests.digest(session)
        return None if digest is None else compaction_note(digest.shown(), digest.state)

    async def compaction_summary(self, session: SessionId, listed: Sequence[Listed]) -> str | None:
        """The newest digest as a host's own summary of these messages; None unless it stands for every one before their
        current turn."""
        digest, past = await self._views.digest(session), current_turn(listed)
        found = replacement(listed, digest.active(), digest)
        return digest_block(found.pieces, digest.state) if found is not None and 0 < past == found.count else None


def rendered(listed: Sequence[Listed], digest: SessionDigest) -> Replaced | None:
    """What the shown pieces of a digest replace in a list, written down."""
    found = replacement(listed, digest.shown(), digest)
    text = None if found is None else digest_block(found.pieces, digest.state)
    return None if found is None or text is None else Replaced(count=found.count, text=text)


def _same_front(seen: Seen, listed: Sequence[Listed]) -> bool:
    """Whether what was replaced last stands at the front of a list still: others change lists too."""
    count = 0 if seen.replaced is None else seen.replaced.count
    return [item.id for item in seen.listed[:count]] == [item.id for item in listed[:count]]


def _turn_of(listed: Sequence[Listed]) -> MessageId | None:
    at = current_turn(listed)
    return listed[at].id if at < len(listed) else None
