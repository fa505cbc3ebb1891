"""A message of a session as a JSON object, with all its parts. Only written: nothing reads it back yet."""

from __future__ import annotations

from backstory.codecs.record import format_time
from backstory.domain.conversation import Message


def encode_message(message: Message) -> dict[str, object]:
    """Every field under its own name; times as RFC 3339, parts in their order."""
    return {
        "id": message.id,
        "session": message.session,
        "role": message.role.value,
        "agent": message.agent,
        "model": message.model,
        "created_at": format_time(message.created_at),
        "completed_at": None if message.completed_at is None else format_time(message.completed_at),
        "removed_at": None if message.removed_at is None else format_time(message.removed_at),
        "parts": [{name: getattr(part, name) for name in type(part).__slots__} for part in message.parts],
    }
