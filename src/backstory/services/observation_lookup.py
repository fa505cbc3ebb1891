"""Look at a session's observations: what was noted, and how far observing it has come. Reads, and asks no model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from backstory.domain.conversation import Message
from backstory.domain.digest import DigestState, SessionDigest, Strategy, messages_of
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.interchange import is_unvouched
from backstory.domain.observation_cursor import CursorMode, after_cursor, cursor_of
from backstory.domain.observation_log import render_log
from backstory.domain.scope import Viewer, may_read
from backstory.errors import InputError, NotFound
from backstory.ports.conversation import ConversationStore
from backstory.ports.digests import DigestStore
from backstory.services.conversation import Aside, at_once
from backstory.services.observation import Observing

_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}")
_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationLog:
    """A session's notes as one text, empty when there are none, and what its observer said beside them.
    ``is_unvouched``: they came from a file that nobody vouched for."""

    session: SessionId
    text: str
    current_task: str | None = None
    suggested_response: str | None = None
    is_unvouched: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Messages, and the tokens of all of them."""

    messages: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationStatus:
    """How far observing a session has come.

    ``state`` is None where nothing was stored yet. ``whole`` is the session, ``verbatim`` what its requests carry as it
    was said, ``unobserved`` what no note stands for; undone messages count nowhere. ``mode`` says how the unobserved
    messages are told from the observed ones.
    """

    session: SessionId
    log: ObservationLog
    log_tokens: int
    state: DigestState | None
    last_message: MessageId | None
    last_message_at: datetime | None
    mode: CursorMode
    whole: Amount
    verbatim: Amount
    unobserved: Amount


class ObservationLookup:
    """Answers about the session that asks, or another of its project."""

    def __init__(
        self,
        digests: DigestStore,
        conversations: ConversationStore,
        observing: Observing,
        *,
        aside: Aside = at_once,
    ) -> None:
        """``aside`` runs the counting of tokens, which takes up to some seconds for the longest sessions."""
        self._aside = aside
        self._digests = digests
        self._conversations = conversations
        self.observing = observing

    async def log(self, viewer: Viewer, session_id: str | None = None) -> ObservationLog:
        """What was noted. Raises InputError for what is no session id, NotFound for a session out of sight."""
        session = await self._session(viewer, session_id)
        return _log_of(session, await self._digest(session))

    async def status(self, viewer: Viewer, session_id: str | None = None) -> ObservationStatus:
        """How things stand. Counts the tokens of what is not observed yet. Raises as ``log``."""
        session = await self._session(viewer, session_id)
        digest = await self._digest(session)
        messages = await self._messages(session)
        if digest is None:
            waiting = await self._aside(lambda: self._amount(messages))
            return ObservationStatus(
                session=session, log=_log_of(session, None), log_tokens=0, state=None, last_message=None,
                last_message_at=None, mode=CursorMode.NONE, whole=waiting, verbatim=waiting, unobserved=waiting,
            )  # fmt: skip
        last = cursor_of(digest).message
        found = [] if last is None else await self._conversations.find_messages([last])
        return await self._aside(lambda: self._status(digest, messages, found))

    def _status(
        self, digest: SessionDigest, messages: Sequence[Message], found: Sequence[Message]
    ) -> ObservationStatus:
        """``found`` is the last message that was observed, if it is still kept."""
        last = cursor_of(digest).message
        session = digest.state.session
        return ObservationStatus(
            session=session,
            log=_log_of(session, digest),
            log_tokens=sum(map(self.observing.size, digest.active())),
            state=digest.state,
            last_message=last,
            last_message_at=found[0].created_at if found else None,
            mode=after_cursor(messages, cursor_of(digest)).mode,
            whole=self._without(messages, digest, frozenset()),
            verbatim=self._without(messages, digest, frozenset(piece.id for piece in digest.shown())),
            unobserved=self._without(messages, digest, frozenset(piece.id for piece in digest.pieces)),
        )

    def _without(self, messages: Sequence[Message], digest: SessionDigest, pieces: frozenset[str]) -> Amount:
        """What is left of the messages when those that some pieces stand for are not counted."""
        hidden = frozenset(messages_of([piece for piece in digest.pieces if piece.id in pieces], digest))
        return self._amount([message for message in messages if message.id not in hidden])

    def _amount(self, messages: Sequence[Message]) -> Amount:
        return Amount(messages=len(messages), tokens=sum(map(self.observing.weigh, messages)))

    async def _digest(self, session: SessionId) -> SessionDigest | None:
        """What observing has made of the session; None where it was digested in another way, or not at all."""
        digest = await self._digests.digest(session)
        if digest is None or digest.state.strategy is not Strategy.OBSERVATIONS:
            return None
        return replace(
            digest, pieces=tuple(piece for piece in digest.pieces if piece.strategy is Strategy.OBSERVATIONS)
        )

    async def _messages(self, session: SessionId) -> list[Message]:
        found: list[Message] = []
        while page := await self._conversations.messages(session, limit=_PAGE, offset=len(found)):
            found += page
        return [message for message in found if message.removed_at is None]

    async def _session(self, viewer: Viewer, session_id: str | None) -> SessionId:
        wanted = viewer.session if session_id is None else session_id
        if wanted is None:
            raise InputError("no session is named, and this call comes from none", field="session_id")
        if not _SESSION_ID.fullmatch(wanted):
            raise InputError(f"{wanted[:60]!r} is no session id", field="session_id", hint="ids look like ses_5a2d3bac")
        session = SessionId(wanted)
        if session == viewer.session:
            return session
        known = await self._conversations.session(session)
        if known is None or not may_read(known, viewer):
            raise NotFound(f"there is no session {session} in this project")
        return session


def _log_of(session: SessionId, digest: SessionDigest | None) -> ObservationLog:
    if digest is None:
        return ObservationLog(session=session, text="")
    return ObservationLog(
        session=session,
        text=render_log(digest.active()),
        current_task=digest.state.current_task,
        suggested_response=digest.state.suggested_response,
        is_unvouched=is_unvouched(digest),
    )
