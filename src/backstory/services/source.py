"""Where a memory comes from: the session and the messages, as far as the viewer may read them."""

from __future__ import annotations

from dataclasses import dataclass

from backstory.domain.conversation import Message, Session
from backstory.domain.memory import Memory
from backstory.domain.scope import Audience, Viewer, may_read
from backstory.ports.conversation import ConversationStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The session in which something was said, and the messages that said it; nothing where that is not known, or is
    not for the viewer."""

    session: Session | None = None
    messages: tuple[Message, ...] = ()


async def source_of(memory: Memory, conversations: ConversationStore, viewer: Viewer) -> Source:
    """A model hears nothing of other projects' sessions, however far a memory holds."""
    name = memory.provenance.session
    if name is None:
        return Source()
    session = await conversations.session(name)
    is_open = viewer.audience is Audience.PERSON or name == viewer.session
    if not is_open and (session is None or not may_read(session, viewer)):
        return Source()
    messages = await conversations.find_messages(memory.provenance.messages)
    return Source(session=session, messages=tuple(message for message in messages if message.session == name))
