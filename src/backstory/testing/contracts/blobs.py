"""The contract of the ConversationStore on blobs: each content once, as long as a part refers to it."""

from __future__ import annotations

import json
from dataclasses import replace

from backstory.domain.blob import Blob, content_of, hash_of, make_blob
from backstory.domain.conversation import Message, Part, Role
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.errors import InputError
from backstory.testing.contracts.checks import Checks, MakeBackend, expect_error
from backstory.testing.fakes import START

BLOB_CHECKS = check = Checks()

S1, M1, M2 = SessionId("ses-1"), MessageId("msg-1"), MessageId("msg-2")
LOG = make_blob(b"all 412 tests passed\n" * 2000)
PICTURE = make_blob(bytes(range(256)) * 5 + b"\x00\xff\xfe")


def _part(name: str, *blobs: Blob) -> Part:
    refs = tuple(blob.ref("text/plain" if blob is LOG else "image/png") for blob in blobs)
    return Part(id=PartId(name), kind="tool", text="all 412 tests …", tool="bash", detail="{}", blobs=refs)


def _message(name: MessageId, *parts: Part) -> Message:
    return Message(id=name, session=S1, role=Role.ASSISTANT, created_at=START, parts=parts)


@check
async def a_blob_comes_back_byte_for_byte_with_the_part_that_refers_to_it(make: MakeBackend) -> None:
    store = make().conversations
    message = _message(M1, _part("p1", LOG, PICTURE), _part("p2"))
    await store.put_messages([message], blobs=[PICTURE, LOG])
    assert await store.messages(S1) == [message]
    assert await store.find_messages([M1]) == [message]
    for blob in (LOG, PICTURE):
        stored = await store.blob(blob.hash)
        assert stored == blob
        assert hash_of(content_of(stored)) == blob.hash
    assert await store.blob(hash_of(b"nobody said this")) is None


@check
async def a_blob_is_kept_until_the_last_part_that_refers_to_it_is_gone(make: MakeBackend) -> None:
    store = make().conversations
    await store.put_messages([_message(M1, _part("p1", LOG)), _message(M2, _part("p2", LOG))], blobs=[LOG, LOG])
    await store.put_part(_part("p3", LOG), message=M2, session=S1, blobs=[LOG])
    await store.remove_part(PartId("p1"))
    await store.put_part(_part("p2"), message=M2, session=S1)
    assert await store.blob(LOG.hash) == LOG
    await store.remove_part(PartId("p3"))
    assert await store.blob(LOG.hash) is None


@check
async def telling_a_part_again_keeps_its_blobs_and_another_version_replaces_them(make: MakeBackend) -> None:
    store = make().conversations
    for _ in range(3):
        await store.put_part(_part("p1", LOG, PICTURE), message=M1, session=S1, blobs=[LOG, PICTURE])
        await store.put_messages([_message(M1, _part("p1", LOG, PICTURE))], blobs=[LOG, PICTURE])
    await store.put_part(_part("p1", PICTURE, LOG), message=M1, session=S1)
    assert await store.messages(S1) == [_message(M1, _part("p1", PICTURE, LOG))]
    await store.put_part(_part("p1", PICTURE), message=M1, session=S1, blobs=[PICTURE])
    assert await store.messages(S1) == [_message(M1, _part("p1", PICTURE))]
    assert (await store.blob(LOG.hash), await store.blob(PICTURE.hash)) == (None, PICTURE)


@check
async def a_message_taken_back_keeps_its_blobs(make: MakeBackend) -> None:
    store = make().conversations
    await store.put_messages([_message(M1, _part("p1", LOG))], blobs=[LOG])
    await store.mark_removed(M1, at=START)
    assert await store.blob(LOG.hash) == LOG


@check
async def a_part_whose_blob_is_nowhere_is_refused_and_nothing_is_stored(make: MakeBackend) -> None:
    store = make().conversations
    await expect_error(InputError, store.put_messages([_message(M2), _message(M1, _part("p1", LOG))], blobs=[PICTURE]))
    await expect_error(InputError, store.put_part(_part("p2", LOG), message=M1, session=S1))
    await store.put_messages([_message(M1)])
    assert await store.messages(S1) == [_message(M1)]
    assert await store.blob(PICTURE.hash) is None


@check
async def a_blob_that_no_part_refers_to_leaves_no_trace(make: MakeBackend) -> None:
    store = make().conversations
    await store.put_messages([_message(M1, _part("p1", LOG))], blobs=[LOG, PICTURE])
    await store.put_part(_part("p2"), message=M1, session=S1, blobs=[PICTURE])
    assert await store.blob(PICTURE.hash) is None


@check
async def of_a_part_told_twice_at_once_the_last_counts(make: MakeBackend) -> None:
    store = make().conversations
    first, last = _message(M1, _part("p1", LOG)), _message(M1, replace(_part("p1", PICTURE), text="another"))
    await store.put_messages([first, last], blobs=[LOG, PICTURE])
    assert await store.messages(S1) == [last]
    assert await store.blob(LOG.hash) is None


@check
async def what_one_part_lets_go_of_another_of_the_same_call_may_take_up(make: MakeBackend) -> None:
    store = make().conversations
    await store.put_messages([_message(M1, _part("p1", LOG))], blobs=[LOG])
    told = [_message(M1, _part("p1", PICTURE)), _message(M2, _part("p2", LOG))]
    await store.put_messages(told, blobs=[PICTURE, LOG])
    assert await store.messages(S1) == told
    assert (await store.blob(LOG.hash), await store.blob(PICTURE.hash)) == (LOG, PICTURE)


def _file(url: str | None, *blobs: Blob, mime: str = "image/png") -> Part:
    refs = tuple(blob.ref(mime) for blob in blobs)
    return Part(id=PartId("p1"), kind="file", detail=json.dumps({"mime": mime, "url": url}), blobs=refs)


HEAD = "data:image/png;base64,"
WITH_DATA = _file(f"{HEAD}[blob {PICTURE.hash}]", PICTURE)


@check
async def a_file_whose_data_is_not_told_again_stays(make: MakeBackend) -> None:
    store = make().conversations
    await store.put_messages([_message(M1, WITH_DATA)], blobs=[PICTURE])
    for url in (None, HEAD, f"{HEAD}[left out: 4,000,000 bytes]"):
        await store.put_part(_file(url), message=M1, session=S1)
        await store.put_messages([_message(M1, _file(url)), _message(M2)])
        assert await store.find_messages([M1]) == [_message(M1, WITH_DATA)]
        assert await store.blob(PICTURE.hash) == PICTURE


@check
async def a_file_told_with_and_without_its_data_at_once_has_it(make: MakeBackend) -> None:
    store = make().conversations
    await store.put_messages([_message(M1, WITH_DATA), _message(M1, _file(HEAD))], blobs=[PICTURE])
    assert await store.messages(S1) == [_message(M1, WITH_DATA)]
    assert await store.blob(PICTURE.hash) == PICTURE


@check
async def a_file_that_a_tool_gave_stays_beside_what_is_told_anew(make: MakeBackend) -> None:
    def tool(url: str, status: str, *blobs: Blob) -> Part:
        detail = {"status": status, "attachments": [{"id": "a1", "mime": "image/png", "url": url}]}
        refs = tuple(blob.ref("image/png") for blob in blobs)
        return Part(id=PartId("p1"), kind="tool", tool="read", detail=json.dumps(detail), blobs=refs)

    store = make().conversations
    data = f"{HEAD}[blob {PICTURE.hash}]"
    await store.put_part(tool(data, "running", PICTURE), message=M1, session=S1, blobs=[PICTURE])
    await store.put_messages([_message(M1, tool(HEAD, "completed"))])
    assert await store.messages(S1) == [_message(M1, tool(data, "completed", PICTURE))]


@check
async def another_file_or_another_address_takes_the_place_of_one(make: MakeBackend) -> None:
    for other in (_file("https://example.org/a.png"), _file("data:text/plain;base64,", mime="text/plain")):
        store = make().conversations
        await store.put_messages([_message(M1, WITH_DATA)], blobs=[PICTURE])
        await store.put_part(other, message=M1, session=S1)
        assert await store.messages(S1) == [_message(M1, other)]
        assert await store.blob(PICTURE.hash) is None
