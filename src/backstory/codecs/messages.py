"""A message of a session as a JSON object, with all its parts, and a blob as another. ``evidence.py`` reads them."""

from __future__ import annotations

import base64

from backstory.codecs.record import format_time
from backstory.domain.blob import Blob, content_of
from backstory.domain.conversation import BlobRef, Message, Part


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
        "parts": [_encode_part(part) for part in message.parts],
    }


def encode_blob(blob: Blob) -> dict[str, object]:
    """A content under the name by which parts refer to it: as ``text`` where it is UTF-8, else as ``base64``. Raises
    ValueError where it cannot be read."""
    content = content_of(blob)
    named: dict[str, object] = {"blob": blob.hash, "size": blob.size}
    try:
        return named | {"text": content.decode("utf-8")}
    except UnicodeDecodeError:
        return named | {"base64": base64.b64encode(content).decode("ascii")}


def encode_ref(ref: BlobRef) -> dict[str, object]:
    """What a part refers to."""
    return {"hash": ref.hash, "size": ref.size, "media_type": ref.media_type}


def _encode_part(part: Part) -> dict[str, object]:
    plain = {name: getattr(part, name) for name in type(part).__slots__ if name != "blobs"}
    return plain | {"blobs": [encode_ref(ref) for ref in part.blobs]}
