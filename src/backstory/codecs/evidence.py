"""Sessions, messages, blobs and digests as JSON objects, read back. Messages and blobs are written in ``messages.py``.

Reading is strict as in ``record.py``: what is missing takes its default, what is wrong is an InputError that names it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from datetime import datetime

from backstory.codecs.fields import Fields, Json, as_object
from backstory.codecs.record import format_time, time_or_none
from backstory.domain.blob import Blob, hash_of, make_blob
from backstory.domain.conversation import BlobHash, BlobRef, Message, Part, Role, Session
from backstory.domain.digest import DigestState, Piece, SessionDigest, Strategy
from backstory.domain.ids import MessageId, PartId, ProjectId, SessionId
from backstory.domain.interchange import UNVOUCHED, is_unvouched
from backstory.errors import InputError

_STATE = ("shown", "shown_for", "shown_task", "shown_response", "current_task", "suggested_response", "system_prompt")
_STATE_FIELDS = frozenset(
    {"session", "strategy", *_STATE, "last_cycle_at", "last_cycle", "updated_at", "pieces", "unvouched"}
)


def encode_session(session: Session) -> dict[str, object]:
    """Every field under its own name; times as RFC 3339."""
    plain: dict[str, object] = {name: getattr(session, name) for name in Session.__slots__}
    times = {name: time_or_none(getattr(session, name)) for name in ("created_at", "updated_at", "deleted_at")}
    return plain | times


def decode_session(record: Json) -> Session:
    """Read what ``encode_session`` wrote."""
    fields = Fields(record, known=frozenset(Session.__slots__), path="")
    project, parent = fields.text("project"), fields.text("parent")
    created = _needed(fields, "created_at")
    return Session(
        id=SessionId(fields.required_text("id")),
        project=None if project is None else ProjectId(project),
        host=fields.required_text("host"),
        directory=fields.text("directory") or "",
        parent=None if parent is None else SessionId(parent),
        title=fields.text("title"),
        created_at=created,
        updated_at=fields.time("updated_at") or created,
        deleted_at=fields.time("deleted_at"),
    )


def decode_message(record: Json) -> Message:
    """Read what ``encode_message`` wrote."""
    fields = Fields(record, known=frozenset(Message.__slots__), path="")
    fields.required_text("role")
    return Message(
        id=MessageId(fields.required_text("id")),
        session=SessionId(fields.required_text("session")),
        role=fields.choice("role", Role, Role.USER),
        agent=fields.text("agent"),
        model=fields.text("model"),
        created_at=_needed(fields, "created_at"),
        completed_at=fields.time("completed_at"),
        removed_at=fields.time("removed_at"),
        parts=tuple(_decode_part(part) for part in _objects(fields, "parts")),
    )


def _decode_part(record: Json) -> Part:
    fields = Fields(record, known=frozenset(Part.__slots__), path="parts.")
    return Part(
        id=PartId(fields.required_text("id")),
        kind=fields.required_text("kind"),
        text=fields.text("text") or "",
        tool=fields.text("tool"),
        synthetic=fields.boolean("synthetic"),
        detail=fields.text("detail"),
        blobs=tuple(_decode_ref(ref) for ref in _objects(fields, "blobs")),
    )


def _decode_ref(record: Json) -> BlobRef:
    fields = Fields(record, known=frozenset(BlobRef.__slots__), path="parts.blobs.")
    return BlobRef(
        hash=BlobHash(fields.required_text("hash")),
        size=fields.integer("size"),
        media_type=fields.required_text("media_type"),
    )


def decode_blob(record: Json) -> Blob:
    """Read what ``encode_blob`` wrote. Raises InputError where the content is not what its name says."""
    fields = Fields(record, known=frozenset({"blob", "size", "text", "base64"}), path="")
    text, encoded = fields.text("text"), fields.text("base64")
    try:
        content = text.encode("utf-8") if text is not None else base64.b64decode(encoded or "", validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputError("the content is neither text nor base64", field="base64") from error
    if hash_of(content) != fields.required_text("blob"):
        raise InputError("the content is not what its name says", field="blob")
    return make_blob(content)


def encode_digest(digest: SessionDigest) -> dict[str, object]:
    """The state of a digest, without what only matters to a process at work, and the number of its pieces. That nobody
    vouched for it goes along: a person who vouches for the file does not vouch for what came into it from others."""
    state = digest.state
    return {
        "session": state.session,
        "strategy": state.strategy.value,
        **{name: getattr(state, name) for name in _STATE},
        "shown": list(state.shown),
        "last_cycle_at": time_or_none(state.last_cycle_at),
        "last_cycle": state.last_cycle,
        "updated_at": format_time(state.updated_at),
        "pieces": len(digest.pieces),
        **({"unvouched": True} if is_unvouched(digest) else {}),
    }


def decode_digest_state(record: Json) -> tuple[DigestState, int]:
    """Read the state that ``encode_digest`` wrote, and how many pieces follow."""
    fields = Fields(record, known=_STATE_FIELDS, path="")
    shown_for = fields.text("shown_for")
    state = DigestState(
        session=SessionId(fields.required_text("session")),
        strategy=_strategy(fields),
        shown=fields.texts("shown"),
        shown_for=None if shown_for is None else MessageId(shown_for),
        shown_task=fields.text("shown_task"),
        shown_response=fields.text("shown_response"),
        current_task=fields.text("current_task"),
        suggested_response=fields.text("suggested_response"),
        system_prompt=fields.text("system_prompt"),
        last_cycle_at=fields.time("last_cycle_at"),
        last_cycle=fields.text("last_cycle"),
        problem=UNVOUCHED if fields.boolean("unvouched") else None,
        updated_at=_needed(fields, "updated_at"),
    )
    return state, fields.integer("pieces")


def encode_piece(piece: Piece) -> dict[str, object]:
    """Every field under its own name."""
    plain: dict[str, object] = {name: getattr(piece, name) for name in Piece.__slots__}
    lists = {"sources": list(piece.sources), "children": list(piece.children)}
    return plain | lists | {"strategy": piece.strategy.value, "created_at": format_time(piece.created_at)}


def decode_piece(record: Json) -> Piece:
    """Read what ``encode_piece`` wrote."""
    fields = Fields(record, known=frozenset(Piece.__slots__), path="")
    return Piece(
        session=SessionId(fields.required_text("session")),
        id=fields.required_text("id"),
        strategy=_strategy(fields),
        level=fields.integer("level"),
        text=fields.text("text") or "",
        start=fields.integer("start"),
        end=fields.integer("end"),
        sources=tuple(MessageId(name) for name in fields.texts("sources")),
        children=fields.texts("children"),
        parent=fields.text("parent"),
        active=fields.boolean("active"),
        made_by=fields.text("made_by") or "",
        prompt=fields.text("prompt") or "",
        source_tokens=fields.integer("source_tokens"),
        created_at=_needed(fields, "created_at"),
    )


def _strategy(fields: Fields) -> Strategy:
    fields.required_text("strategy")
    return fields.choice("strategy", Strategy, Strategy.TREE)


def _needed(fields: Fields, name: str) -> datetime:
    moment = fields.time(name)
    if moment is None:
        raise InputError(f"{name} is missing", field=name)
    return moment


def _objects(fields: Fields, name: str) -> Sequence[Mapping[str, object]]:
    value = fields.raw(name)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InputError(f"{name} must be a list", field=name)
    return [as_object(item, name) for item in value]
