"""What was said to an agent and by it, on its way into the archive: from its transcript, or from what it tells."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from datetime import datetime
from itertools import islice

from backstory.adapters.blocking import run_blocking
from backstory.domain.conversation import Message, Part, Role, Session, typed_text
from backstory.domain.ids import MessageId, PartId
from backstory.domain.interchange import is_imported
from backstory.domain.part_admission import KeepLimits, admit_message
from backstory.entrypoints.agents.calls import Event, HookCall, made_id
from backstory.entrypoints.agents.events import Folder
from backstory.errors import InputError
from backstory.services.wishes import Prompt

log = logging.getLogger(__name__)

BATCH = 50
"""Messages that are stored in one commit."""
GROWING = 3
"""The newest messages of a transcript that are told again, since they may have been unfinished the last time."""


async def archive(folder: Folder, call: HookCall) -> None:
    """Keep what is new since the last time. Raises StoreError."""
    is_transcribed = call.transcript is not None and call.event not in (Event.PROMPT, Event.SESSION_START)
    said = await _unknown(folder, call) if is_transcribed else iter(_told(folder, call))
    batch = await _next_batch(said, call)
    await _keep_session(folder, call, began=batch[0].created_at if batch else folder.app.clock.now())
    while batch:
        await _take(folder, call, batch)
        batch = await _next_batch(said, call)


async def _next_batch(said: Iterator[Message], call: HookCall) -> list[Message]:
    """The next messages, read where it holds up no event loop. A transcript that cannot be read is logged."""
    try:
        return await run_blocking(lambda: list(islice(said, BATCH)))
    except InputError as error:
        log.warning("event=transcript_unread session=%s reason=%s", call.session, error)
        return []


async def _take(folder: Folder, call: HookCall, messages: Sequence[Message]) -> None:
    """Keep messages, but none that another session has: a session that goes on from one may bring copies along."""
    kept = await folder.app.backend.conversations.find_messages([message.id for message in messages])
    foreign = {message.id for message in kept if message.session != call.session}
    await folder.app.conversations.take_messages([message for message in messages if message.id not in foreign])


def _told(folder: Folder, call: HookCall) -> list[Message]:
    """What the call itself says. Where there is a transcript, it has the prompt in time; but a prompt that something
    was remembered from is what that memory names as its source."""
    now = folder.app.clock.now()
    if call.event is Event.PROMPT:
        prompt = Prompt(text=call.text, message=call.message, session=call.session)
        if call.text and (call.transcript is None or folder.app.conversations.asks(prompt)):
            return [_message(call, call.message, Role.USER, call.text, at=now)]
    elif call.event is Event.STOP and call.answer and call.transcript is None:
        number = made_id(call.session, call.message, call.answer)
        return [_message(call, number, Role.ASSISTANT, call.answer, at=now)]
    return []


def _message(call: HookCall, number: MessageId, role: Role, text: str, *, at: datetime) -> Message:
    part = Part(id=PartId(f"{number}-text"), kind="text", text=text)
    return Message(id=number, session=call.session, role=role, created_at=at, completed_at=at, parts=(part,))


async def _unknown(folder: Folder, call: HookCall) -> Iterator[Message]:
    """Those of the transcript that are not kept yet, oldest first, and the newest; without the prompts that were kept
    when they were told."""
    assert call.transcript is not None
    from backstory.entrypoints.agents.transcripts import read_transcript

    kept = await folder.app.backend.conversations.message_ids(call.session)
    own = [number for number in kept if number.startswith("hook_")]
    told = {_words(message) for message in await folder.app.backend.conversations.find_messages(own)}
    messages = read_transcript(call.transcript, session=call.session, known=frozenset(kept))
    return _new(messages, frozenset(kept), told - {""})


def _new(messages: Iterator[Message], known: frozenset[MessageId], told: Set[str]) -> Iterator[Message]:
    latest: deque[Message] = deque(maxlen=GROWING)
    for message in messages:
        latest.append(message)
        is_told = bool(told) and message.role is Role.USER and _words(_as_kept(message)) in told
        if message.id not in known and not is_told:
            yield message
    yield from (message for message in latest if message.id in known)


def _as_kept(message: Message) -> Message:
    """Without secrets and private text, as a prompt is kept."""
    return admit_message(message, KeepLimits()).message if typed_text(message) else message


def _words(message: Message) -> str:
    return " ".join(typed_text(message).split())


async def _keep_session(folder: Folder, call: HookCall, *, began: datetime) -> None:
    """A session that came in with an import stays one: its words were not heard here."""
    now = folder.app.clock.now()
    known = await folder.app.backend.conversations.session(call.session)
    if known is not None:
        host = known.host if is_imported(known) else call.agent
        await folder.app.conversations.take_session(replace(known, host=host, updated_at=now))
        return
    session = Session(
        id=call.session,
        project=folder.project,
        host=call.agent,
        directory=str(call.directory),
        created_at=min(began, now),
        updated_at=now,
    )
    await folder.app.conversations.take_session(session)
