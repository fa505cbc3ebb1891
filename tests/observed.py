"""A session that is observed step by step, as the work behind a digest drives a strategy: for tests of observing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import anyio

from backstory.domain.conversation import Message, Part, Role
from backstory.domain.digest import DigestState, DigestUpdate, Piece, SessionDigest, Strategy, without_messages
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.errors import ModelError
from backstory.services.digest_strategy import Made, SessionView
from backstory.services.observation import Observing
from backstory.testing.fakes import ORCHARD

MORNING = datetime(2026, 3, 2, 9, 15, tzinfo=UTC)
SESSION = SessionId("ses_orchard")


class WordTokens:
    """One token a word, so that a test can say how large a text is."""

    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


def message(number: int, text: str = "", *, role: Role | None = None, done: bool = True, minutes: int = 1) -> Message:
    """Message ``m<number>``: a user's if the number is even, ``minutes`` times its number after ``MORNING``."""
    at = MORNING + timedelta(minutes=minutes * number)
    return Message(
        id=MessageId(f"m{number}"),
        session=SESSION,
        role=role or (Role.USER if number % 2 == 0 else Role.ASSISTANT),
        created_at=at,
        completed_at=at if done else None,
        parts=(Part(id=PartId(f"p{number}"), kind="text", text=text or f"Words of message {number}."),),
    )


def of_words(number: int, words: int) -> Message:
    """A message that ``WordTokens`` weigh as ``words``: its head, its label and its text."""
    return message(number, " ".join(f"w{number}x{at}" for at in range(words - 5)))


def running_tool(number: int) -> Message:
    """A message of the assistant's with a tool that has not answered yet."""
    state = {"status": "running", "input": {"command": "make"}}
    part = Part(id=PartId(f"p{number}"), kind="tool", tool="bash", detail=json.dumps({"state": state}))
    return replace(message(number, role=Role.ASSISTANT), parts=(part,))


def piece(
    number: int,
    text: str,
    *sources: int,
    level: int = 0,
    start: int | None = None,
    end: int | None = None,
    tokens: int = 0,
    made_by: str = "scripted:1",
    created_at: datetime = MORNING,
    children: tuple[str, ...] = (),
    active: bool = True,
    prompt: str = "observe/1",
) -> Piece:
    """Observation ``obs<level>_<number>`` on the messages with the numbers ``sources``."""
    return Piece(
        session=SESSION,
        id=f"obs{level}_{number:03d}",
        strategy=Strategy.OBSERVATIONS,
        level=level,
        text=text,
        start=(sources[0] if sources else 0) if start is None else start,
        end=(sources[-1] if sources else 0) if end is None else end,
        sources=tuple(MessageId(f"m{source}") for source in sources),
        children=children,
        active=active,
        made_by=made_by,
        prompt=prompt,
        source_tokens=tokens,
        created_at=created_at,
    )


def digest(*pieces: Piece, shown: Sequence[str] = (), attempts: int = 0) -> SessionDigest:
    """A digest of these pieces."""
    state = DigestState(
        session=SESSION,
        strategy=Strategy.OBSERVATIONS,
        shown=tuple(shown),
        attempts=attempts,
        updated_at=MORNING,
    )
    return SessionDigest(state=state, pieces=pieces)


def view(
    messages: Sequence[Message], known: SessionDigest | None = None, *, forced: bool = False, first_number: int = 0
) -> SessionView:
    """What a strategy sees of these messages."""
    return SessionView(
        digest=known or digest(),
        messages=tuple(messages),
        project=ORCHARD,
        now=MORNING + timedelta(hours=8),
        forced=forced,
        first_number=first_number,
    )


class Session:
    """A session under observation: told messages, worked on, undone, shown. The host's list may lose its beginning."""

    def __init__(self, observing: Observing) -> None:
        self.observing = observing
        self.digest = digest()
        self.listed: list[Message] = []
        self.forced = False
        self.first_number = 0
        self.now = MORNING

    def view(self) -> SessionView:
        """As services make it: what is observed comes without its parts."""
        observed = self._observed()
        return SessionView(
            digest=self.digest,
            messages=tuple(replace(m, parts=()) if m.id in observed else m for m in self.listed),
            project=ORCHARD,
            now=self.now,
            forced=self.forced,
            first_number=self.first_number,
        )

    def tell(self, *messages: Message) -> None:
        """The host lists these too."""
        self.listed += messages
        self.now = max(self.now, messages[-1].created_at + timedelta(seconds=30))

    def work(self, *, steps: int = 20) -> list[Made]:
        """All that is due; a failure counts and is raised."""
        done: list[Made] = []
        while len(done) < steps and self.observing.due(self.view()):
            done.append(self.step())
        self.forced = False
        return done

    def step(self) -> Made:
        """One step of work."""
        try:
            made = anyio.run(self.observing.work, self.view())
        except ModelError:
            self._change(lambda state: replace(state, attempts=state.attempts + 1))
            raise
        state = replace(
            self.digest.state,
            attempts=0,
            current_task=self.digest.state.current_task if made.current_task is None else made.current_task,
            suggested_response=made.suggested_response or self.digest.state.suggested_response,
            last_cycle=made.cycle,
            last_cycle_at=self.now,
        )
        self._apply(DigestUpdate(state=state, added=made.added, changed=made.changed))
        return made

    def turn(self) -> tuple[str, ...]:
        """The next user message has come: what its requests show."""
        shows = self.observing.shows(self.view())
        self._change(lambda state: replace(state, shown=shows))
        return shows

    def undo(self, *messages: Message) -> None:
        """The host took these back."""
        gone = frozenset(m.id for m in messages)
        self.listed = [m for m in self.listed if m.id not in gone]
        update = without_messages(self.digest, gone)
        if update is not None:
            self._apply(update)

    def drop(self, count: int) -> None:
        """The host lists its first messages no more, as after a compaction."""
        self.listed = self.listed[count:]
        here = {m.id for m in self.listed}
        dropped = [p.end + 1 for p in self.digest.pieces if p.level == 0 and here.isdisjoint(p.sources)]
        self.first_number = max(dropped, default=0)

    def _observed(self) -> frozenset[MessageId]:
        return frozenset(source for each in self.digest.pieces for source in each.sources)

    def _change(self, change: Callable[[DigestState], DigestState]) -> None:
        self.digest = replace(self.digest, state=change(self.digest.state))

    def _apply(self, update: DigestUpdate) -> None:
        changed = {each.id: each for each in update.changed}
        kept = [changed.get(each.id, each) for each in self.digest.pieces if each.id not in update.dropped]
        assert not {each.id for each in kept} & {each.id for each in update.added}
        self.digest = SessionDigest(state=update.state, pieces=(*kept, *update.added))


def answer(*notes: str, task: str | None = None, response: str | None = None) -> str:
    """An observer's answer in the form."""
    text = "<observations>\n" + "\n".join(notes) + "\n</observations>"
    text += f"\n<current-task>\n{task}\n</current-task>" if task else ""
    return text + (f"\n<suggested-response>\n{response}\n</suggested-response>" if response else "")
