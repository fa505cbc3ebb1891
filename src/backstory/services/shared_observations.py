"""What other sessions of a project noted, for a session that begins: gathered, judged by who said it, rendered."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from backstory.domain.digest import Piece, SessionDigest, Strategy, messages_of
from backstory.domain.grounding import LEAST_SUPPORT, ground
from backstory.domain.interchange import is_imported
from backstory.domain.observation_cursor import IMPORTED
from backstory.domain.observation_log import render_log, tail
from backstory.domain.provenance import is_injectable
from backstory.domain.scope import Audience, Viewer, may_read
from backstory.domain.shared_notes import NotesBlock, SessionNotes, shared_lines, statement
from backstory.domain.text import normalise
from backstory.domain.utterance import Utterance, utterances
from backstory.ports.conversation import Archive
from backstory.ports.digests import DigestStore
from backstory.ports.store import MemoryStore
from backstory.ports.system import Clock, TokenCounter
from backstory.services.conversation import Aside, at_once
from backstory.services.withheld import withheld_memories

if TYPE_CHECKING:
    from backstory.domain.conversation import Message, Session
    from backstory.domain.ids import MessageId

MOST_SESSIONS = 5
"""Whose notes are looked at."""
_LATEST_SESSIONS = 100  # among which those are found: most of the others are sub-agents' or have no notes
BACKGROUND = 100
"""Messages before those that a note was made from, which are read for what an assistant only repeats."""
MOST_MESSAGES = 1_000
"""Of one session that are read, the newest; notes made from older ones stay in their session."""
_MOST_JUDGED = 5_000  # notes whose judgement is remembered: what they were made from never changes
_FIRST_MESSAGES = 6  # from which a host makes a session's title
_MOST_WITHHELD = 1_000
"""Of each kind that a note is held against; where there are more, nothing is shared."""


_Case = tuple["frozenset[MessageId]", str]
"""The messages that a note was made from, and the note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Withheld:
    """What memories say that no model is to be shown any more, and the messages that they come from."""

    texts: frozenset[str]
    messages: frozenset[MessageId]

    def repeated(self, note: str, said_in: frozenset[MessageId]) -> bool:
        """Whether a note says what one of them says, or comes from the same messages."""
        normal = normalise(note)
        return not self.messages.isdisjoint(said_in) or any(text in normal for text in self.texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What was said in some messages; ``whole`` is that with what was said between and before them."""

    own: Sequence[Utterance]
    whole: Sequence[Utterance]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noted:
    """A session's notes, and the messages by which they are judged: up to the last one that they were made from."""

    session: Session
    pieces: tuple[tuple[Piece, frozenset[MessageId]], ...]
    first: Sequence[Message]
    messages: Sequence[Message]

    def said(self, sources: frozenset[MessageId]) -> _Said:
        """What was said in some of the messages."""
        places = [place for place, message in enumerate(self.messages) if message.id in sources]
        whole = utterances(self.messages[max(0, places[0] - BACKGROUND) : places[-1] + 1])
        own = tuple(utterance for utterance in whole if utterance.message in sources)
        return _Said(own=own, whole=whole)


class SharedObservations:
    """Reads the observations of a project's other sessions. Only what the user or the assistant said of themselves is
    passed on: a note can only be as trusted as what it was made from."""

    def __init__(
        self,
        digests: DigestStore,
        archive: Archive,
        memories: MemoryStore,
        *,
        clock: Clock,
        tokens: TokenCounter,
        budget_tokens: int,
        within_s: float | None = None,
        aside: Aside = at_once,
    ) -> None:
        """``within_s`` bounds the judging, 10 ms a note the first time: what is not judged by then is not shown. None
        judges all. ``aside`` runs it."""
        self._within_s = within_s
        self._judged: dict[_Case, frozenset[MessageId]] = {}
        self._digests = digests
        self._archive = archive
        self._memories = memories
        self._clock = clock
        self._tokens = tokens
        self._budget_tokens = budget_tokens
        self._aside = aside

    async def block(self, viewer: Viewer) -> str | None:
        """The notes of the sessions of the viewer's project that were active last, the newest first, without the
        viewer's own session; None when there are none to share. Raises what the store raises."""
        viewer = replace(viewer, audience=Audience.MODEL, all_projects=False)
        withheld = await self._withheld(viewer)
        if viewer.project is None or withheld is None:
            return None
        until = None if self._within_s is None else time.monotonic() + self._within_s
        block = NotesBlock(budget_tokens=self._budget_tokens, count_tokens=self._tokens.count)
        looked_at = 0
        for session in await self._archive.sessions(limit=_LATEST_SESSIONS, project=viewer.project):
            if looked_at == MOST_SESSIONS or block.is_full:
                break
            if session.id == viewer.session or session.parent is not None or not may_read(session, viewer):
                continue
            if is_imported(session):  # nobody here heard what is noted in it
                continue
            if (noted := await self._noted(session)) is not None:
                looked_at += 1
                shared = partial(self._shared, noted, withheld, until, room_tokens=block.room_tokens)
                block.add(await self._aside(shared))
        return block.text

    async def _noted(self, session: Session) -> _Noted | None:
        """The notes of a session of which all messages are kept; None where there are none."""
        digest = await self._digests.digest(session.id)
        if digest is None or digest.state.strategy is not Strategy.OBSERVATIONS:
            return None
        place = {message: at for at, message in enumerate(await self._archive.message_ids(session.id))}
        pieces = _judgeable(digest, place)
        removed = frozenset(await self._archive.removed_ids(session.id))
        pieces = tuple((piece, sources - removed) for piece, sources in pieces if sources - removed)
        places = [place[message] for _, sources in pieces for message in sources]
        if not places:
            return None
        start, end = max(0, min(places) - BACKGROUND), max(places) + 1
        messages = await self._archive.messages(session.id, limit=end - start, offset=start)
        first = await self._archive.messages(session.id, limit=_FIRST_MESSAGES)
        return _Noted(session=session, pieces=pieces, first=first, messages=messages)

    def _shared(self, noted: _Noted, withheld: _Withheld, until: float | None, *, room_tokens: int) -> SessionNotes:
        log = render_log(piece for piece, _ in noted.pieces)
        # of the rest nothing can be shown: judging it would be in vain
        wanted = frozenset(tail(log, max_tokens=room_tokens, count=self._tokens.count).split("\n"))
        kept: list[Piece] = []
        for piece, sources in reversed(noted.pieces):
            notes = [note for note in reversed(piece.text.splitlines()) if note in wanted]
            said = cache(partial(noted.said, sources))  # read where some note is not judged yet
            passing = {
                note
                for note in notes
                if (messages := self._judge(note, sources, said, until)) and not withheld.repeated(note, messages)
            }
            kept.append(replace(piece, text=shared_lines(piece.text, passing.__contains__)))
        return SessionNotes(
            title=_title(noted, withheld),
            day=noted.session.updated_at.date(),
            log=render_log(piece for piece in kept if piece.text),
        )

    def _judge(
        self, note: str, sources: frozenset[MessageId], said: Callable[[], _Said], until: float | None
    ) -> frozenset[MessageId]:
        """The messages in which the user or the assistant said what a note says; none where it may not pass, or where
        there is no time to tell."""
        case = (sources, note)
        if case not in self._judged:
            if until is not None and time.monotonic() >= until:
                return frozenset()
            if len(self._judged) >= _MOST_JUDGED:
                self._judged.clear()
            self._judged[case] = _borne_out(statement(note), said())
        return self._judged[case]

    async def _withheld(self, viewer: Viewer) -> _Withheld | None:
        """What is not to be repeated; None where it is too much to compare with."""
        now = self._clock.now()
        withheld = await withheld_memories(self._memories, viewer, now=now, most=_MOST_WITHHELD)
        if withheld is None:
            return None
        return _Withheld(
            texts=frozenset(normalise(memory.content) for memory in withheld),
            messages=frozenset(message for memory in withheld for message in memory.provenance.messages),
        )


def _judgeable(digest: SessionDigest, place: Mapping[MessageId, int]) -> tuple[tuple[Piece, frozenset[MessageId]], ...]:
    """The pieces of which all messages are kept, and those before them too, as far as they are read; with their
    messages. ``place`` has the messages that are kept, in order."""
    found: list[tuple[Piece, frozenset[MessageId]]] = []
    for piece in digest.active():
        sources = _sources(piece, digest)
        if piece.text.strip() and sources and place.keys() >= sources:
            first = min(map(place.__getitem__, sources))
            if first >= min(piece.start, BACKGROUND):  # else what went before is gone in part
                found.append((piece, sources))
    end = max((place[message] for _, sources in found for message in sources), default=0) + 1
    return tuple(
        (piece, sources) for piece, sources in found if min(map(place.__getitem__, sources)) >= end - MOST_MESSAGES
    )


def _sources(piece: Piece, digest: SessionDigest) -> frozenset[MessageId]:
    """All messages that a piece was made from; none where that is not known of some part of it."""
    by_id = {each.id: each for each in digest.pieces}
    waiting = [piece]
    while waiting:
        each = waiting.pop()
        if each.made_by == IMPORTED or not (each.sources or each.children) or not by_id.keys() >= set(each.children):
            return frozenset()
        waiting += [by_id[child] for child in each.children]
    return frozenset(messages_of([piece], digest))


def _borne_out(text: str, said: _Said) -> frozenset[MessageId]:
    """The messages in which the user or the assistant said so; none where nobody did, or only repeated it."""
    own = ground(text, said.own)
    if own.support < LEAST_SUPPORT or not is_injectable(own.origin):
        return frozenset()
    if not is_injectable(ground(text, said.whole).origin):
        return frozenset()
    return frozenset(own.messages)


def _title(noted: _Noted, withheld: _Withheld) -> str | None:
    """The title of a session where it says what was said at its beginning."""
    opening = utterances(noted.first)
    title = noted.session.title or ""
    messages = _borne_out(title, _Said(own=opening, whole=opening))
    return title if messages and not withheld.repeated(title, messages) else None
