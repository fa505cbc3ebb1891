"""The state of one session as opencode-observational-memory keeps it: its fields, and what they become here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from backstory.adapters.formats.js_json import stringify
from backstory.adapters.formats.outside_files import is_id
from backstory.domain.digest import DigestState, Piece, SessionDigest, Strategy
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.observation_cursor import IMPORTED, cursor_of
from backstory.domain.observation_log import render_log

Json = Mapping[str, Any]
FORMAT = "observational"
SESSION, NOTES, TOKENS, UPDATED = "sessionId", "observations", "observationTokens", "updatedAt"
LAST, LAST_AT, TASK, RESPONSE = "lastObservedMessageId", "lastObservedMessageAt", "currentTask", "suggestedResponse"
CYCLE_AT, CYCLE = "lastCycleAt", "lastCycleReason"
_NUMBERS = (
    "tailMessagesBeforePrune", "tailTokensBeforePrune", "tailMessagesAfterPrune", "tailTokensAfterPrune",
)  # fmt: skip
_FLAGS = ("observeTriggered", "reflectTriggered")
_TYPES: dict[str, type | tuple[type, ...]] = {
    SESSION: str, NOTES: str, TOKENS: (int, float), LAST: str, LAST_AT: (int, float), TASK: str, RESPONSE: str,
    CYCLE_AT: (int, float), CYCLE: str, "lastCursorMode": str, **dict.fromkeys(_NUMBERS, (int, float)),
    **dict.fromkeys(_FLAGS, bool), "prunedMessagesCount": (int, float), UPDATED: (int, float),
}  # fmt: skip
"""The fields in the order in which they are written."""
SAID = (NOTES, TASK, RESPONSE)
"""Fields that are kept in the digest, and nowhere else."""
_LATEST_MS = 4_102_444_800_000  # the year 2100


def checked(told: Json) -> tuple[dict[str, Any], list[str]]:
    """The fields of a state that have the types they must have, and the names of the others: they count as missing, as
    the plugin lets them."""
    wrong = [name for name in told if name in _TYPES and not _fits(name, told[name])]
    return {name: told[name] for name in _TYPES if name in told and name not in wrong}, wrong


def unknown_fields(told: Json) -> list[str]:
    """Names of fields that the plugin does not write."""
    return [name for name in told if name not in _TYPES]


def kept_of(told: Json, state: Json, *, ends: str) -> dict[str, Any]:
    """What is kept of a file beside the notes: its fields in their order, those of the notes empty, and its end."""
    said = [name for name in SAID if name in state]
    return {"fields": {name: None if name in said else told[name] for name in told}, "said": said, "ends": ends}


def moment(value: object) -> datetime | None:
    """A time in milliseconds since 1970; None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= _LATEST_MS:
        return datetime.fromtimestamp(value / 1000, UTC)
    return None


def milliseconds(at: datetime) -> int:
    """A time as the plugin writes it."""
    return round(at.timestamp() * 1000)


def digest_of(state: Json, *, session: SessionId, otherwise: datetime) -> SessionDigest:
    """The digest that a state stands for: one note, which names the last message that it was made from.

    ``otherwise`` is when a state was written that does not say it.
    """
    last, notes = state.get(LAST), state.get(NOTES, "")
    observed_at = moment(state.get(LAST_AT)) or datetime.fromtimestamp(0, UTC)
    piece = Piece(
        session=session,
        id="obs0_001",
        strategy=Strategy.OBSERVATIONS,
        level=0,
        text=notes,
        start=0,
        end=0,
        sources=(MessageId(last),) if isinstance(last, str) and is_id(last) else (),
        made_by=IMPORTED,
        prompt="",
        source_tokens=0,
        created_at=observed_at,
    )
    return SessionDigest(
        state=DigestState(
            session=session,
            strategy=Strategy.OBSERVATIONS,
            current_task=state.get(TASK),
            suggested_response=state.get(RESPONSE),
            last_cycle_at=moment(state.get(CYCLE_AT)),
            last_cycle=state.get(CYCLE),
            updated_at=moment(state.get(UPDATED)) or otherwise,
        ),
        pieces=(piece,) if notes or piece.sources or observed_at.timestamp() > 0 else (),
    )


def state_text(digest: SessionDigest, kept: Json, *, count: Callable[[str], int]) -> str:
    """A session's file. What came in with it (``kept_of``) holds as long as its notes do."""
    notes = [piece for piece in digest.active() if piece.strategy is Strategy.OBSERVATIONS]
    as_it_was = len(notes) <= 1 and all(piece.made_by == IMPORTED for piece in notes)
    said = {
        NOTES: notes[0].text if as_it_was and notes else render_log(notes),
        TASK: digest.state.current_task,
        RESPONSE: digest.state.suggested_response,
    }
    fields, ends = kept.get("fields"), kept.get("ends")
    if isinstance(fields, dict) and as_it_was:
        names = kept.get("said")
        told = {name: said[name] if isinstance(names, list) and name in names else fields[name] for name in fields}
        told = {name: value for name, value in told.items() if value is not None or name not in SAID}
        return stringify(told, indent=2) + (ends if isinstance(ends, str) else "\n")
    known = {**_progress(digest), **said, TOKENS: count(said[NOTES] or ""), SESSION: digest.state.session}
    more = {name: value for name, value in fields.items() if name not in _TYPES} if isinstance(fields, dict) else {}
    told = {name: known[name] for name in _TYPES if known.get(name) is not None}
    return stringify(told | more, indent=2) + "\n"


def _progress(digest: SessionDigest) -> dict[str, Any]:
    """How far observing has come since, as far as the format can tell."""
    cursor, state = cursor_of(digest), digest.state
    known = {
        LAST: cursor.message,
        LAST_AT: None if cursor.at is None else milliseconds(cursor.at),
        CYCLE_AT: None if state.last_cycle_at is None else milliseconds(state.last_cycle_at),
        UPDATED: milliseconds(state.updated_at),
    }
    return {name: value for name, value in known.items() if value is not None}


def _fits(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return _TYPES[name] is bool
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return isinstance(value, _TYPES[name])
