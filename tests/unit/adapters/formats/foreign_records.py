"""What was read of another program's store, by its kind."""

from __future__ import annotations

from backstory.domain.conversation import Message, Session
from backstory.domain.interchange import ForeignMessages, ForeignRecord, ForeignSession, Unreadable


def sessions(records: list[ForeignRecord]) -> list[Session]:
    return [record.session for record in records if isinstance(record, ForeignSession)]


def messages(records: list[ForeignRecord]) -> list[Message]:
    return [message for record in records if isinstance(record, ForeignMessages) for message in record.messages]


def unreadable(records: list[ForeignRecord]) -> list[str]:
    return [f"{record.where}: {record.reason}" for record in records if isinstance(record, Unreadable)]
