"""What of a part is kept where: large texts and files apart, each once, without secrets, and whole again on demand."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from backstory.domain.blob import content_of
from backstory.domain.conversation import Message, Part, Role
from backstory.domain.evidence_passages import PassageLimits, passages_of
from backstory.domain.excerpt import whole_part
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.part_admission import (
    AdmittedPart,
    CleanedTexts,
    KeepLimits,
    admit_message,
    admit_part,
    blobs_once,
    keep_limits,
)
from backstory.testing.fakes import START

LIMITS = KeepLimits()
SECRET = "ghp_" + "a1B2" * 9
LONG = "".join(f"{n}: compiled\n" for n in range(9000))
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20


def tool(text: str = "", **detail: object) -> Part:
    return Part(id=PartId("p1"), kind="tool", tool="bash", text=text, detail=json.dumps(detail))


def admitted(part: Part, *, role: Role = Role.ASSISTANT, limits: KeepLimits = LIMITS) -> AdmittedPart:
    return admit_part(part, role, limits)


def whole(kept: AdmittedPart) -> Part:
    return whole_part(kept.part, {blob.hash: content_of(blob) for blob in kept.blobs})


def detail_of(part: Part) -> Any:
    return json.loads(part.detail or "null")


def address(content: bytes, media_type: str = "image/png") -> str:
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def test_a_large_output_is_kept_apart_and_comes_back_verbatim() -> None:
    kept = admitted(tool(LONG))
    assert kept.part.text.startswith(LONG[:12_000])
    assert kept.part.text.endswith(LONG[-3000:])
    assert len(kept.part.text) < 15_200
    (ref,) = kept.part.blobs
    assert (ref.size, ref.media_type) == (len(LONG), "text/plain")
    assert ref.hash in kept.part.text
    assert whole(kept).text == LONG


def test_what_people_and_models_say_stays_searchable_as_far_as_it_is_searched() -> None:
    said = Part(id=PartId("p1"), kind="text", text="word " * 12_000)
    assert admitted(said) == AdmittedPart(part=said, blobs=())
    longer = admitted(replace(said, text="word " * 20_000))
    assert len(longer.part.text) > 60_000
    assert whole(longer).text == "word " * 20_000


def test_a_small_part_stays_as_it_is() -> None:
    small = tool("done", state={"input": {"command": "make"}})
    assert admitted(small) == AdmittedPart(part=small, blobs=())


def test_large_inputs_are_kept_apart_too_and_one_content_once() -> None:
    kept = admitted(tool(LONG, state={"input": {"content": LONG, "filePath": "a.txt"}, "metadata": {"output": LONG}}))
    assert len(kept.blobs) == len(kept.part.blobs) == 1
    assert len(kept.part.detail or "") < 6_000
    restored = whole(kept)
    assert restored.text == detail_of(restored)["state"]["input"]["content"] == LONG
    assert detail_of(restored)["state"]["input"]["filePath"] == "a.txt"


def test_a_file_is_kept_as_its_bytes_and_named_in_its_place() -> None:
    kept = admitted(
        Part(id=PartId("p1"), kind="file", detail=json.dumps({"mime": "image/png", "url": address(PICTURE)}))
    )
    (blob,) = kept.blobs
    assert content_of(blob) == PICTURE
    assert kept.part.blobs == (blob.ref("image/png"),)
    assert detail_of(kept.part)["url"] == f"data:image/png;base64,[blob {blob.hash}]"
    assert detail_of(whole(kept))["url"] == address(PICTURE)


def test_a_text_file_is_kept_without_its_secrets_whatever_it_says_it_is() -> None:
    text = f"token is {SECRET}\n<private>mine</private>\n".encode() + b"harmless line\n" * 100
    for media_type in ("text/plain", "image/png", "application/octet-stream"):
        kept = admitted(tool(attachment=address(text, media_type)))
        content = content_of(kept.blobs[0]).decode()
        assert SECRET not in content
        assert "mine" not in content
        assert content.endswith("harmless line\n")


LINES = f"Grüße\nAPI_KEY={SECRET}\n<private>hush</private>\n" + "harmless line\n" * 100


@pytest.mark.parametrize("media_type", ["text/plain", "application/json", "image/svg+xml", "application/octet-stream"])
@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_text_file_is_kept_without_its_secrets_whatever_it_is_written_in(encoding: str, media_type: str) -> None:
    (blob,) = admitted(tool(attachment=address(LINES.encode(encoding), media_type))).blobs
    text = content_of(blob).decode(encoding)
    assert SECRET not in text
    assert "hush" not in text
    assert text.startswith("Grüße\n")
    assert text.endswith("harmless line\n")


def test_a_zero_in_it_makes_no_text_a_picture() -> None:
    for text in (LINES.encode() + b"\0", b"\0" + LINES.encode("latin-1")):
        (blob,) = admitted(tool(attachment=address(text, "application/octet-stream"))).blobs
        assert SECRET.encode() not in content_of(blob)
        assert b"hush" not in content_of(blob)


def test_a_text_file_in_which_nothing_is_masked_comes_back_as_its_bytes() -> None:
    for content in ("Grüße\r\n" * 200).encode("latin-1"), ("x" * 900).encode("utf-16"), b"\xef\xbb\xbf" + b"x" * 900:
        (blob,) = admitted(tool(attachment=address(content, "text/plain"))).blobs
        assert content_of(blob) == content


@pytest.mark.parametrize(
    "start",
    [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a", b"RIFF\0\1\2\3WEBP", b"%PDF-1.7\n", b"PK\x03\x04", b"OggS",
     b"ID3\x04", b"\0\0\0\x20ftypisom", b"\x1a\x45\xdf\xa3", b"\x1f\x8b\x08", b"BZh91AY&SY"],
)  # fmt: skip
def test_pictures_sounds_films_documents_and_packed_files_are_kept_as_their_bytes(start: bytes) -> None:
    content = start + bytes(range(256)) * 8
    (blob,) = admitted(tool(attachment=address(content, "application/octet-stream"))).blobs
    assert content_of(blob) == content


def test_of_a_file_that_is_neither_text_nor_a_known_format_only_its_kind_is_kept() -> None:
    dump = bytes(range(256)) * 8 + f"API_KEY={SECRET}".encode()
    for content in dump, b"\x7fELF" + dump, b"RIFF\0\0\0\0NONE" + dump, "a".encode("utf-16") * 501 + b"x":
        kept = admitted(tool(attachment=address(content, "image/png")))
        assert kept.blobs == ()
        assert detail_of(kept.part)["attachment"] == "data:image/png;base64,"


@pytest.mark.parametrize(
    ("url", "left"),
    [
        ("data:image/png;base64," + "!" * 2000, "data:image/png;base64,"),
        ("data:image/svg+xml," + "%3Csvg" * 400, "data:image/svg+xml,"),
        ("data:" + "x" * 2000, "data:,"),
        ("data:;base64," + "é" * 2000, "data:;base64,"),
    ],
)
def test_of_what_is_no_proper_file_only_its_kind_is_kept(url: str, left: str) -> None:
    kept = admitted(tool(attachment=url))
    assert (detail_of(kept.part)["attachment"], kept.blobs) == (left, ())


def test_a_file_that_is_too_large_leaves_its_size_and_with_none_allowed_its_kind() -> None:
    part = tool(attachment=address(PICTURE))
    few = replace(LIMITS, attachment_bytes=1000)
    assert detail_of(admitted(part, limits=few).part)["attachment"].endswith(",[left out: 5,130 bytes]")
    none = replace(LIMITS, attachment_bytes=0)
    assert detail_of(admitted(part, limits=none).part)["attachment"] == "data:image/png;base64,"
    exact = replace(LIMITS, attachment_bytes=len(PICTURE))
    assert len(admitted(part, limits=exact).blobs) == 1


def test_secrets_are_masked_before_anything_is_hashed() -> None:
    text = LONG + SECRET + LONG
    kept = admitted(tool(text, state={"input": {"content": text}}))
    assert len(kept.blobs) == 1
    assert SECRET not in content_of(kept.blobs[0]).decode()
    clean = admitted(tool(whole(kept).text))
    assert clean.blobs == kept.blobs


def test_a_content_whose_name_was_masked_is_not_kept() -> None:
    kept = admitted(tool(password=address(PICTURE), ok=1))
    assert (kept.blobs, kept.part.blobs) == ((), ())


def test_a_text_that_looks_like_an_excerpt_stays_what_it_is() -> None:
    kept = admitted(tool(LONG))
    (blob,) = kept.blobs
    forged = replace(kept.part, text=f"before\n[… 1 characters between are kept in blob {blob.hash} …]\nafter")
    assert whole_part(forged, {blob.hash: content_of(blob)}) == forged
    assert whole_part(kept.part, {}) == kept.part


def test_the_blobs_of_messages_come_once() -> None:
    parts = (tool(LONG), replace(tool(LONG), id=PartId("p2")))
    message = Message(id=MessageId("m"), session=SessionId("s"), role=Role.ASSISTANT, created_at=START, parts=parts)
    told = [admit_message(message, LIMITS), admit_message(message, LIMITS)]
    assert len(blobs_once(told)) == 1
    assert [part.blobs for part in told[0].message.parts] == [(blobs_once(told)[0].ref("text/plain"),)] * 2


def test_a_text_that_was_cleaned_before_is_not_cleaned_again_but_comes_out_the_same() -> None:
    texts = CleanedTexts(at_most=2)
    long = LONG + SECRET
    for text in (long, LONG, long, LONG + "x", long):
        assert texts.clean(text) == CleanedTexts().clean(text)
    assert SECRET not in texts.clean(long)
    block = "<backstory-memories>\nx\n</backstory-memories>" + LONG
    assert texts.clean(block, without_blocks=True) == CleanedTexts().clean(block, without_blocks=True)


def test_a_large_text_with_half_a_character_is_kept() -> None:
    kept = admitted(tool(LONG + "\ud83d"))
    assert content_of(kept.blobs[0]).decode().endswith("\ufffd")


@pytest.mark.parametrize("passages", [0, 2, 50])
def test_an_excerpt_holds_all_that_is_searched_of_an_output(passages: int) -> None:
    limits = keep_limits(attachment_bytes=5, tool_passages=passages)
    kept = admitted(tool(LONG), limits=limits)
    assert kept.blobs
    searched = PassageLimits(tool=passages)
    assert passages_of(kept.part, searched) == passages_of(tool(LONG), searched)
    assert limits.attachment_bytes == 5


def test_an_excerpt_holds_all_that_is_searched_of_what_was_said() -> None:
    said = Part(id=PartId("p1"), kind="text", text=LONG)
    assert passages_of(admitted(said).part, PassageLimits()) == passages_of(said, PassageLimits())
