"""Records of an invented product's store, for imports."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.digest import DigestState, Piece, SessionDigest, Strategy
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.interchange import (
    ForeignDigest,
    ForeignMemory,
    ForeignMessages,
    ForeignSession,
    foreign_id,
)
from backstory.domain.memory import Memory, Times
from backstory.domain.provenance import Origin, Provenance
from backstory.testing.fakes import START

BARN = "/nowhere/barn"
NIGHT = SessionId("ses_night")
_EARLIER = START - timedelta(days=30)


def foreign(content: str, /, *, place: str | None = BARN, key: str | None = None, **fields: Any) -> ForeignMemory:
    """A memory of the store; ``fields`` are those of a Memory."""
    learned = fields.pop("learned", _EARLIER)
    times = fields.pop("times", Times(learned=learned, updated=learned, confirmed=learned))
    raw = fields.pop("raw", {})
    memory = Memory(
        id=foreign_id("notebook", [key or content], learned=learned),
        content=content,
        project=None,
        origin=fields.pop("origin", Origin.AGENT),
        provenance=Provenance(origin_system="notebook", origin_id=key or content[:20], raw=raw),
        times=times,
    )
    return ForeignMemory(memory=replace(memory, **fields), place=place, where=f"row {key or content[:20]!r}")


def foreign_session(name: str = NIGHT, *, place: str | None = BARN, **fields: Any) -> ForeignSession:
    """A session of the store."""
    session = Session(
        id=SessionId(name), project=None, host="import:notebook", directory=BARN, title="Night watch",
        created_at=_EARLIER, updated_at=_EARLIER,
    )  # fmt: skip
    return ForeignSession(session=replace(session, **fields), place=place, where=f"session {name}")


def foreign_messages(*texts: str, session: str = NIGHT, first: int = 0, **fields: Any) -> ForeignMessages:
    """Messages of a session, the user's and the assistant's in turn."""
    messages = tuple(_message(number, text, session) for number, text in enumerate(texts, start=first))
    record = ForeignMessages(session=SessionId(session), messages=messages, where=f"messages of {session}")
    return replace(record, **fields)


def _message(number: int, text: str, session: str) -> Message:
    at = _EARLIER + timedelta(minutes=number)
    return Message(
        id=MessageId(f"{session}_{number:03}"),
        session=SessionId(session),
        role=Role.ASSISTANT if number % 2 else Role.USER,
        created_at=at,
        completed_at=at,
        parts=(Part(id=PartId(f"{session}_{number:03}_0"), kind="text", text=text),),
    )


def foreign_digest(*texts: str, session: str = NIGHT, strategy: Strategy = Strategy.TREE) -> ForeignDigest:
    """A digest with a piece for each text, each standing for one message."""
    pieces = tuple(
        Piece(
            session=SessionId(session), id=f"node0_{number:03}", strategy=strategy, level=0, text=text, start=number,
            end=number, sources=(MessageId(f"{session}_{number:03}"),), made_by="notebook", prompt="", source_tokens=5,
            created_at=_EARLIER,
        )
        for number, text in enumerate(texts)
    )  # fmt: skip
    shown = tuple(piece.id for piece in pieces)
    state = DigestState(session=SessionId(session), strategy=strategy, shown=shown, updated_at=_EARLIER)
    return ForeignDigest(digest=SessionDigest(state=state, pieces=pieces), where=f"digest of {session}")
