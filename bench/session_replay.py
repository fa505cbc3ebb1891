"""A conversation lived through once more, as a host would: archived as it goes, digested beside its requests.

Before every answer of the assistant there was a request. Each is made again here, with and without a digest, and what
must hold of it is looked into. What questions find afterwards is ``session.py``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import takewhile

from backstory.bootstrap import App
from backstory.bootstrap.sessions import LongSessions, long_sessions
from backstory.domain.conversation import Message, Part, Role, typed_text
from backstory.domain.digest import messages_of
from backstory.domain.digest_plan import Listed, current_turn
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.tool_parts import tool_use
from backstory.ports.system import TokenCounter
from backstory.services.session_digest import Outlook, Replaced
from bench.evidence_sets import Conversation

MESSAGE_TOKENS = 4
"""What a message takes beside its text, as chat templates go."""
RESTART_EVERY = 10
"""Of so many requests one is the first of a new process, wherever in a turn that falls."""
COMPACTION = "compaction"
"""A part by which OpenCode begins a summary of its own: all before it leaves the list."""

TOUCHED = "current turn touched"
NOT_A_USER = "does not begin with a user's message"
LOST = "message neither sent nor stood for"
CHANGED = "changed within a turn"
BROKEN = "prefix broken without a change"


class ReplayClock:
    """Stands at the newest message."""

    def __init__(self, start: datetime) -> None:
        self.at = start

    def now(self) -> datetime:
        return self.at

    def reach(self, message: Message) -> None:
        """Let the time come in which a message was complete."""
        self.at = max(self.at, message.completed_at or message.created_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One request of a session. ``whole`` is without a digest, ``sent`` with it; ``fresh`` is what of them follows the
    first message that is not as in the request before: what a cached prompt spares nothing of.

    ``kept`` is the share of the last request, in characters, with which this one begins; None for the first.
    ``activated``: another digest than in the last one. ``restarted``: the first of a new process.
    """

    turn: int
    whole: int
    sent: int
    whole_fresh: int
    sent_fresh: int
    kept: float | None
    activated: bool
    restarted: bool
    outlook_ms: float
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a request after the last turn shows: the digest, and the messages behind what it replaces."""

    replaced: tuple[Message, ...] = ()
    digest: str = ""
    raw: tuple[Message, ...] = ()


@dataclass(slots=True, kw_only=True)
class Replayed:
    """A whole session: its requests, the seconds of work beside each that had some, and what is shown at its end."""

    steps: list[Step] = field(default_factory=list)
    work_s: list[float] = field(default_factory=list)
    pieces: int = 0
    problems: int = 0
    shown: Shown = field(default_factory=Shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What was sent last: the texts of its messages, with and without a digest."""

    turn: int
    replaced: Replaced | None
    whole: Sequence[str]
    sent: Sequence[str]
    compactions: int


class Replay:
    """Lives through one conversation of one session."""

    def __init__(
        self, app: App, conversation: Conversation, *, clock: ReplayClock, count: Callable[[str], int]
    ) -> None:
        """``count`` gives the tokens of a message's text, the same for all that is compared."""
        assert app.long_sessions is not None
        self._app = app
        self._sessions: LongSessions = app.long_sessions
        self._conversation = conversation
        self._session: SessionId = conversation.sessions[0].id
        self._clock = clock
        self._count = count
        self._messages: list[Message] = []  # the host's list
        self._last: _Request | None = None
        self._turn = -1
        self._compactions = 0
        self._done = Replayed()

    async def run(self) -> Replayed:
        """All of it, and what is due at its end."""
        for session in self._conversation.sessions:
            await self._app.conversations.take_session(session)
        for message in self._conversation.messages:
            await self._take(message)
        await self._end()
        return self._done

    async def _take(self, message: Message) -> None:
        self._clock.reach(message)
        if any(part.kind == COMPACTION for part in message.parts):
            await self._compact()
        elif message.role is Role.USER and typed_text(message):
            self._turn += 1
        elif message.role is Role.ASSISTANT and message.agent != COMPACTION:
            await self._ask()
        await self._app.conversations.take_messages([message])
        self._messages.append(message)

    async def _ask(self) -> None:
        """The request that this answer came to. What work it finds is done before the next one, as a fast model would:
        nothing of it may be seen before the next turn."""
        listed = [listed_as(message) for message in self._messages]
        restarted = len(self._done.steps) % RESTART_EVERY == RESTART_EVERY - 1
        if restarted:
            self._restart()
        started = time.perf_counter()
        outlook = await self._outlook(listed)
        took_ms = 1000 * (time.perf_counter() - started)
        request = self._request(outlook.replaced)
        stood_for = await self._stood_for()
        faults = [*faults_of(listed, outlook.replaced, stood_for), *broken(self._last, request)]
        step = self._step(request, faults)
        self._done.steps.append(replace(step, restarted=restarted, outlook_ms=took_ms))
        self._last = request
        if outlook.due:
            await self._work(listed)

    def _restart(self) -> None:
        """What a process remembers of its sessions is gone."""
        sessions = long_sessions(self._app)
        assert sessions is not None
        self._sessions = sessions

    def _request(self, replaced: Replaced | None) -> _Request:
        whole = [sent_text(message) for message in self._messages]
        sent = whole if replaced is None else [f"user\n{replaced.text}", *whole[replaced.count :]]
        return _Request(turn=self._turn, replaced=replaced, whole=whole, sent=sent, compactions=self._compactions)

    def _step(self, request: _Request, faults: Sequence[str]) -> Step:
        last = self._last
        same = 0 if last is None else same_beginning(last.sent, request.sent)
        whole_same = 0 if last is None else same_beginning(last.whole, request.whole)
        return Step(
            turn=request.turn,
            whole=self._tokens(request.whole),
            sent=self._tokens(request.sent),
            whole_fresh=self._tokens(request.whole[whole_same:]),
            sent_fresh=self._tokens(request.sent[same:]),
            kept=None if last is None else kept(last.sent, request.sent),
            activated=request.replaced is not None and (last is None or request.replaced != last.replaced),
            restarted=False,
            outlook_ms=0.0,
            faults=tuple(faults),
        )

    def _tokens(self, texts: Sequence[str]) -> int:
        return sum(self._count(text) + MESSAGE_TOKENS for text in texts)

    async def _outlook(self, listed: Sequence[Listed]) -> Outlook:
        project = self._conversation.project
        return await self._sessions.requests.outlook(listed, session=self._session, project=project)

    async def _stood_for(self) -> frozenset[MessageId]:
        digest = await self._app.backend.digests.digest(self._session)
        return frozenset() if digest is None else frozenset(messages_of(digest.shown(), digest))

    async def _work(self, listed: Sequence[Listed]) -> None:
        """What the bridge does beside a request, until nothing is due."""
        started = time.perf_counter()
        while await self._sessions.work.work(self._session, listed=listed, project=self._conversation.project):
            pass
        self._done.work_s.append(time.perf_counter() - started)
        digest = await self._app.backend.digests.digest(self._session)
        self._done.problems += digest is not None and digest.state.problem is not None

    async def _compact(self) -> None:
        """The host is about to summarise what it lists, and lists nothing of it any more."""
        await self._sessions.requests.compaction_note(self._session)
        seen = self._sessions.requests.last_request(self._session)
        if seen is not None:
            await self._sessions.work.force(self._session)
            await self._work(seen.listed)
        self._messages = []
        self._compactions += 1

    async def _end(self) -> None:
        """Two questions of the user after the last turn: work is found at the first, and shown from the second on."""
        asked = [Listed(id=MessageId(f"{self._session}-asked-{n}"), role=Role.USER.value) for n in (1, 2)]
        listed = [listed_as(message) for message in self._messages]
        if (await self._outlook([*listed, asked[0]])).due:
            await self._work([*listed, asked[0]])
        replaced = (await self._outlook([*listed, *asked])).replaced
        count = 0 if replaced is None else replaced.count
        self._done.shown = Shown(
            replaced=tuple(self._messages[:count]),
            digest="" if replaced is None else replaced.text,
            raw=tuple(self._messages[count:]),
        )
        digest = await self._app.backend.digests.digest(self._session)
        self._done.pieces = 0 if digest is None else len(digest.pieces)


def faults_of(listed: Sequence[Listed], replaced: Replaced | None, stood_for: frozenset[MessageId]) -> list[str]:
    """What is wrong with a replacement, in the words above; nothing should be.

    The current turn begins at the newest message a user typed; where the host lists none, at the newest user message.
    """
    if replaced is None:
        return [] if listed and listed[0].role == Role.USER else [NOT_A_USER]
    start = current_turn(listed)
    if start == len(listed):
        start = next((at for at in range(start - 1, -1, -1) if listed[at].role == Role.USER), 0)
    found = [TOUCHED] if replaced.count > start else []
    lost = any(item.id not in stood_for for item in listed[: replaced.count]) or not replaced.text.strip()
    return [*found, LOST] if lost else found


def broken(last: _Request | None, request: _Request) -> list[str]:
    """Whether a request differs from the last where nothing gave it reason to."""
    if last is None or last.compactions != request.compactions:
        return []
    if last.replaced != request.replaced:
        return [CHANGED] if last.turn == request.turn else []
    return [] if kept(last.sent, request.sent) == 1 else [BROKEN]


def same_beginning(earlier: Sequence[str], later: Sequence[str]) -> int:
    """How many texts two lists begin with in common."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(earlier, later, strict=False)))


def kept(earlier: Sequence[str], later: Sequence[str]) -> float:
    """The share of a request, in characters of whole messages, with which a later one begins."""
    return sum(map(len, earlier[: same_beginning(earlier, later)])) / max(sum(map(len, earlier)), 1)


def listed_as(message: Message) -> Listed:
    """A message as a host lists it in a request."""
    is_summary = message.role is Role.ASSISTANT and message.agent == COMPACTION
    return Listed(id=message.id, role=message.role.value, synthetic=not _is_typed(message), summary=is_summary)


def sent_text(message: Message) -> str:
    """A message as it goes to a model: its role, its texts, and each call of a tool with input and outcome."""
    return "\n".join([message.role.value, *filter(None, map(_part_text, message.parts))])


def counted_once(tokens: TokenCounter) -> Callable[[str], int]:
    """A counter that looks at each text once."""
    known: dict[str, int] = {}

    def count(text: str) -> int:
        if text not in known:
            known[text] = tokens.count(text)
        return known[text]

    return count


def in_one_session(conversation: Conversation) -> Conversation:
    """The same with its questions limited to its session."""
    return replace(conversation, session=conversation.sessions[0].id)


def _is_typed(message: Message) -> bool:
    return any(part.text and not part.synthetic for part in message.parts)


def _part_text(part: Part) -> str:
    use = tool_use(part)
    if use is None:
        return part.text
    asked = json.dumps(dict(use.input), ensure_ascii=False)
    return "\n".join(filter(None, [f"{use.name} {asked}", use.output, use.error]))
