"""Digests of sessions as tables, as lines for people, and as JSON values (``docs/reference/json-output.md``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from backstory.codecs.record import format_time
from backstory.domain.digest import Strategy
from backstory.entrypoints.local_time import shown_time
from backstory.entrypoints.render import Line, shortened
from backstory.entrypoints.tables import Column, Table

if TYPE_CHECKING:
    from datetime import datetime

    from backstory.domain.digest import DigestState, Piece, SessionDigest
    from backstory.domain.ids import SessionId
    from backstory.entrypoints.shapes import Shape
    from backstory.services.digest_inspection import DigestCard

_FIRST_WORDS = 300  # characters; a terminal cuts them further
_TOLD = 5  # sessions that ``status`` names


def way_to_forget(session: str) -> str:
    """The command that removes a digest, so that it is made anew."""
    return f"`backstory session {session} --forget-digest`"


def summary(card: DigestCard) -> str:
    """A digest in a few words, for a column: its pieces, its strategy, and whether something is wrong."""
    if card.strategy is None:
        return "cannot be read"
    wrong = ", failed" if card.problem else ""
    return f"{_pieces(card.pieces)} ({card.strategy.value}){wrong}"


def _pieces(count: int) -> str:
    return f"{count} {'piece' if count == 1 else 'pieces'}"


def piece_table(digest: SessionDigest) -> Table:
    """The pieces of a digest, one a row, by the place of what they stand for; a parent before what it covers."""
    return Table(
        columns=(
            Column("piece"),
            Column("level", is_number=True),
            Column("messages"),
            Column("made by"),
            Column("prompt"),
            Column("made"),
            Column("now"),
            Column("says", is_wide=True),
        ),
        rows=[
            (
                piece.id,
                f"{piece.level}",
                f"{piece.start}-{piece.end}",
                piece.made_by,
                piece.prompt or "none",
                shown_time(piece.created_at),
                standing(piece, digest),
                shortened(piece.text, _FIRST_WORDS) or "(nothing)",
            )
            for piece in ordered(digest)
        ],
        empty="Nothing was digested yet.",
    )


def ordered(digest: SessionDigest) -> list[Piece]:
    """The pieces of the strategy in force by place, a parent before what it covers; then those of the former one."""
    state = digest.state
    return sorted(digest.pieces, key=lambda p: (p.strategy is not state.strategy, p.start, -p.level, p.end, p.id))


def standing(piece: Piece, digest: SessionDigest) -> str:
    """What becomes of a piece now."""
    if piece.strategy is not digest.state.strategy:
        return f"unused: of {piece.strategy.value}"
    if piece.parent is not None:
        return f"under {piece.parent}"
    if not piece.active:
        return "unused"
    return "shown" if piece.id in digest.state.shown else "active"


def state_lines(digest: SessionDigest, *, now: datetime) -> Iterator[Line]:
    """How a digest stands, above the table of its pieces."""
    state = digest.state
    yield f"{state.strategy.value}: {_pieces(len(digest.pieces))}, {len(digest.shown())} in its requests", "plain"
    if state.lease is not None and state.lease.expires_at > now:
        yield f"a process works on it, until {shown_time(state.lease.expires_at)} at most", "plain"
    elif state.due or state.forced:
        yield "there is work left", "plain"
    if state.problem:
        yield _failed(state, now), "bad"


def log_lines(log: str, state: DigestState) -> Iterator[Line]:
    """An observation log as text, and what the observer said beside it."""
    yield "", "plain"
    yield "The log", "strong"
    yield from ((line, "plain") for line in log.splitlines())
    for label, text in (("Current task", state.current_task), ("Next step", state.suggested_response)):
        if text:
            yield f"{label}: {text}", "plain"


def note_lines(piece: Piece) -> Iterator[Line]:
    """One observation: what it says, and what it was made from."""
    yield f"{piece.id}  messages {piece.start}-{piece.end}, made by {piece.made_by}", "strong"
    yield piece.text or "(nothing was worth a note)", "plain"
    if piece.children:
        yield f"made from {', '.join(piece.children)}", "faint"
    if piece.sources:
        yield f"made from {', '.join(piece.sources)}", "faint"


def digest_shape(session: SessionId, digest: SessionDigest | None, log: str | None) -> Shape:
    """A digest with all its pieces; ``log`` is null unless the session is observed."""
    return {
        "session": session,
        "digest": None if digest is None else _whole_state_shape(digest.state),
        "pieces": [] if digest is None else [piece_shape(piece, digest) for piece in ordered(digest)],
        "log": log,
    }


def _whole_state_shape(state: DigestState) -> Shape:
    return _state_shape(state) | {
        "problem": state.problem,
        "current_task": state.current_task,
        "suggested_response": state.suggested_response,
    }


def piece_shape(piece: Piece, digest: SessionDigest) -> Shape:
    """One piece."""
    return {
        "id": piece.id,
        "strategy": piece.strategy.value,
        "level": piece.level,
        "first_message": piece.start,
        "last_message": piece.end,
        "sources": list(piece.sources),
        "children": list(piece.children),
        "parent": piece.parent,
        "active": piece.active,
        "shown": piece.id in digest.state.shown,
        "made_by": piece.made_by,
        "prompt": piece.prompt or None,
        "source_tokens": piece.source_tokens,
        "created_at": format_time(piece.created_at),
        "text": piece.text,
    }


def card_shape(card: DigestCard | None) -> Shape | None:
    """A digest as the listing of sessions and ``status`` have it; null for none."""
    if card is None:
        return None
    unread: Shape = {"strategy": None, "due": False, "attempts": 0, "leased_until": None, "not_before": None}
    told = unread | {"updated_at": None} if card.state is None else _state_shape(card.state)
    return told | {"pieces": card.pieces, "shown": card.shown, "problem": card.problem}


def _state_shape(state: DigestState) -> Shape:
    return {
        "strategy": state.strategy.value,
        "due": state.due or state.forced,
        "attempts": state.attempts,
        "leased_until": _moment(None if state.lease is None else state.lease.expires_at),
        "not_before": _moment(state.not_before),
        "updated_at": _moment(state.updated_at),
    }


def waiting_shape(strategy: str, waiting: Sequence[DigestCard]) -> Shape:
    """What ``status`` tells of digests."""
    return {"strategy": strategy, "waiting": [{"session": card.session} | (card_shape(card) or {}) for card in waiting]}


def waiting_lines(strategy: str, waiting: Sequence[DigestCard], *, now: datetime) -> Iterator[Line]:
    """The sessions with work left, and what failed; nothing where sessions stay as they are and nothing waits."""
    if strategy == "off" and not waiting:
        return
    yield "Long sessions", "strong"
    leased = sum(card.worked_on_until(now) is not None for card in waiting)
    at_work = f", of which {leased} {'is' if leased == 1 else 'are'} being worked on" if leased else ""
    many = f"{len(waiting)} {'session has' if len(waiting) == 1 else 'sessions have'} work left{at_work}"
    yield f"  digests   {strategy}; {many if waiting else 'no session has work left'}", "plain"
    for card in waiting[:_TOLD]:
        yield f"  {card.session}  {_waits(card, now)}", "bad" if card.problem else "plain"
    if len(waiting) > _TOLD:
        yield f"  and {len(waiting) - _TOLD} more", "faint"


def _waits(card: DigestCard, now: datetime) -> str:
    if card.damage is not None or card.state is None:
        return f"{card.damage}; {way_to_forget(card.session)} has it made anew"
    if (until := card.worked_on_until(now)) is not None:
        return f"a process works on it, until {shown_time(until)} at most"
    return _failed(card.state, now) if card.state.problem else "is worked on when OpenCode is next at it"


def _failed(state: DigestState, now: datetime) -> str:
    often = "" if state.attempts < 2 else f" {state.attempts} times in a row"
    resting = state.not_before is not None and state.not_before > now
    when = f"after {shown_time(state.not_before)}" if resting and state.not_before else "at the next turn"
    return f"failed{often}: {shortened(state.problem or '', 200)}; tried again {when}"


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else format_time(moment)


def is_note(piece: Piece) -> bool:
    """Whether a piece is an observation, and so a part of a log."""
    return piece.strategy is Strategy.OBSERVATIONS
