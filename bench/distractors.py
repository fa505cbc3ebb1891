"""Turns of long chats that have nothing to do with the labelled prompts: noise to put around the memories."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from backstory.adapters.clock import UlidSource
from backstory.domain.admission import TextLimits
from backstory.domain.conversation import Message, Part, Session
from backstory.domain.ids import ProjectId
from backstory.ports.backend import Backend
from backstory.services.conversation import Conversations
from backstory.services.reference import Reference
from backstory.services.remember import Remember
from bench.asking import StandingClock
from bench.evidence_sets import Conversation, read_beam, read_locomo
from bench.labelled import EVERY_PROJECT, LabelledSet, Stored
from bench.report import Unavailable

SEED = 7
BEAM_CHARS = 300
_BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of a chat and the session it was said in."""

    session: Session
    message: Message

    @property
    def text(self) -> str:
        return self.message.parts[0].text


def read_turns(folder: Path, count: int) -> list[Turn]:
    """``count`` turns, always the same ones: both sets shuffled together. Raises Unavailable, also when there are
    fewer."""
    turns = [
        *(turn for conversation in read_locomo(folder) for turn in _turns(conversation)),
        *(_shortened(turn) for conversation in read_beam(folder) for turn in _turns(conversation)),
    ]
    if count > len(turns):
        raise Unavailable(f"{count} distractors are asked for; {folder} holds {len(turns)} turns")
    random.Random(SEED).shuffle(turns)
    return turns[:count]


def with_memories(labelled: LabelledSet, turns: Sequence[Turn]) -> LabelledSet:
    """The set with the turns as further memories, visible to every prompt."""
    noise = [Stored(id=f"distractor {turn.message.id}", text=turn.text, project=None) for turn in turns]
    return replace(labelled, memories=[*labelled.memories, *noise])


async def archive(turns: Sequence[Turn], labelled: LabelledSet, backend: Backend) -> None:
    """Archive the turns as evidence of the projects in which the prompts are asked, as a host does."""
    ordered = sorted(turns, key=lambda turn: (turn.session.id, turn.message.created_at, turn.message.id))
    conversations = _conversations(backend, labelled)
    homes = _homes(labelled)
    for place, (_, said) in enumerate(groupby(ordered, key=lambda turn: turn.session.id)):
        heard = list(said)
        await conversations.take_session(replace(heard[0].session, project=homes[place % len(homes)]))
        messages = [turn.message for turn in heard]
        for start in range(0, len(messages), _BATCH):
            await conversations.take_messages(messages[start : start + _BATCH])


def _turns(conversation: Conversation) -> list[Turn]:
    sessions = {session.id: session for session in conversation.sessions}
    return [Turn(session=sessions[message.session], message=message) for message in conversation.messages]


def _shortened(turn: Turn) -> Turn:
    part: Part = turn.message.parts[0]
    return replace(turn, message=replace(turn.message, parts=(replace(part, text=part.text[:BEAM_CHARS]),)))


def _homes(labelled: LabelledSet) -> list[ProjectId]:
    asked = {question.project for question in labelled.questions} | {memory.project for memory in labelled.memories}
    return [ProjectId(name) for name in sorted(name for name in asked if name is not None and name != EVERY_PROJECT)]


def _conversations(backend: Backend, labelled: LabelledSet) -> Conversations:
    clock = StandingClock(at=labelled.now)
    reference = Reference(backend.memories, backend.projects, clock=clock)
    remember = Remember(backend.memories, reference, clock=clock, ids=UlidSource(), limits=TextLimits())
    return Conversations(backend.conversations, remember, clock=clock, archive=True, capture=False)
