"""A part made fit to be kept: without secrets and private text, and with what is too large for it set apart."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from backstory.domain.admission import admit_evidence
from backstory.domain.attached_text import kept_bytes
from backstory.domain.blob import Blob, hash_of, make_blob
from backstory.domain.conversation import BlobRef, Message, Part, Role
from backstory.domain.echo import strip_injected
from backstory.domain.evidence_passages import PASSAGE_CHARS
from backstory.domain.excerpt import ExcerptSize, attached, excerpt

PART_MAX_CHARS = 1_200_000
"""Of one text, and of all texts in one part's JSON together; a larger one is cut, and says so. It takes 2 s."""
DETAIL_MAX_CHARS = 200_000
"""Of a part's JSON, once its large texts are set apart."""
ATTACHMENT_MAX_BYTES = 1_000_000

_BEYOND_CHARS = 20_000  # cleaned with what is kept, so that no secret is cut in two unseen; keys are far shorter
_REMEMBERED_CHARS = 16_000  # a shorter text is cleaned again
_SMALL_ADDRESS_CHARS = 1024  # a shorter data: address stays where it is
_ADDRESS = re.compile(r"data:([\w.+-]{1,60}/[\w.+-]{1,80})?((?:;[\w-]{1,40}=[\w.+-]{1,80})*)(;base64)?,", re.ASCII)
_TEXT = "text/plain"


_SAID = ExcerptSize(whole=64_000, head=60_000, tail=3_000)
_GIVEN = ExcerptSize(whole=16_000, head=12_000, tail=3_000)
_DETAIL = ExcerptSize(whole=16_000, head=2_000, tail=500)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepLimits:
    """What stays in a part. ``said`` is for what people and models said, all of which is searched; ``given`` for what
    tools gave, ``detail`` for what they were given, and other texts in the JSON. ``attachment_bytes`` is the largest
    file that is kept; 0 keeps none."""

    said: ExcerptSize = _SAID
    given: ExcerptSize = _GIVEN
    detail: ExcerptSize = _DETAIL
    attachment_bytes: int = ATTACHMENT_MAX_BYTES


def keep_limits(*, attachment_bytes: int, tool_passages: int) -> KeepLimits:
    """The limits that leave in a part what is searched of it: ``tool_passages`` as in ``PassageLimits``."""
    searched = 2 * tool_passages * PASSAGE_CHARS  # characters of an output, at most
    given = _GIVEN
    if searched > given.head:
        given = ExcerptSize(whole=searched + given.tail, head=searched, tail=given.tail)
    return KeepLimits(given=given, attachment_bytes=attachment_bytes)


class CleanedTexts:
    """The large texts that were cleaned last, known by digests of what they were: a host tells the same one several
    times, in one part and in one event after the other, and cleaning it takes a second or two. For several threads."""

    def __init__(self, *, at_most: int = 8) -> None:
        self._at_most = at_most
        self._known: dict[tuple[str, bool], str] = {}
        self._lock = threading.Lock()

    def clean(self, text: str, *, without_blocks: bool = False) -> str:
        """The text without secrets and private passages, and without our own blocks where that is asked."""
        if len(text) < _REMEMBERED_CHARS:
            return _cleaned_text(text, without_blocks=without_blocks)
        key = (hash_of(text.encode("utf-8", "surrogatepass")), without_blocks)
        with self._lock:
            cleaned = self._known.pop(key, None)
        if cleaned is None:
            cleaned = _cleaned_text(text, without_blocks=without_blocks)
        with self._lock:
            self._known[key] = cleaned
            while len(self._known) > self._at_most:
                del self._known[next(iter(self._known))]
        return cleaned


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedPart:
    """A part as it is kept, and the blobs that it refers to."""

    part: Part
    blobs: tuple[Blob, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedMessage:
    """A message as it is kept, and the blobs that its parts refer to."""

    message: Message
    blobs: tuple[Blob, ...]


def admit_message(message: Message, limits: KeepLimits, texts: CleanedTexts | None = None) -> AdmittedMessage:
    """The message with its names and all its parts admitted."""
    parts = [admit_part(part, message.role, limits, texts) for part in message.parts]
    return AdmittedMessage(
        message=replace(
            message,
            agent=admit_name(message.agent),
            model=admit_name(message.model),
            parts=tuple(item.part for item in parts),
        ),
        blobs=tuple(blob for item in parts for blob in item.blobs),
    )


def admit_part(part: Part, role: Role | None, limits: KeepLimits, texts: CleanedTexts | None = None) -> AdmittedPart:
    """A part without secrets and private text, whoever wrote it, and a user's without our own blocks.

    ``role`` is who speaks; None when that is not known. ``texts`` spares cleaning what was cleaned just before. Cost:
    0.3 s for 200,000 characters.
    """
    texts = texts or CleanedTexts()
    pasted = part.kind == "text" and role is not Role.ASSISTANT
    apart = _Apart()
    text = texts.clean(part.text, without_blocks=pasted)
    text = apart.large(text, limits.said if part.kind in ("text", "reasoning") else limits.given)
    detail = None if part.detail is None else _admitted_detail(part.detail, _Detail(limits, apart, texts))
    apart.only(f"{text}\n{detail}")  # a name that was masked or cut off names nothing
    kept = replace(
        part,
        kind=_cleaned_text(part.kind),
        text=text,
        tool=admit_name(part.tool),
        detail=detail,
        blobs=tuple(apart.refs.values()),
    )
    return AdmittedPart(part=kept, blobs=tuple(apart.blobs))


def admit_name(name: str | None) -> str | None:
    """A name (of an agent, a model, a tool, a session) cleaned."""
    return None if name is None else _cleaned_text(name)


@dataclass(slots=True)
class _Apart:
    """What was set apart from one part, each content once."""

    blobs: list[Blob] = field(default_factory=list)
    refs: dict[str, BlobRef] = field(default_factory=dict)

    def keep(self, content: bytes, media_type: str) -> Blob:
        blob = make_blob(content)
        if blob.hash not in self.refs:
            self.blobs.append(blob)
            self.refs[blob.hash] = blob.ref(media_type)
        return blob

    def large(self, text: str, size: ExcerptSize) -> str:
        """The text; an excerpt of one that is too large."""
        if len(text) <= size.whole:
            return text
        return excerpt(text, self.keep(text.encode("utf-8", "replace"), _TEXT).hash, size)

    def only(self, mentioned: str) -> None:
        """Forget what is not named in a text after all."""
        self.refs = {name: ref for name, ref in self.refs.items() if name in mentioned}
        self.blobs = [blob for blob in self.blobs if blob.hash in self.refs]


def _cleaned_text(text: str, *, without_blocks: bool = False) -> str:
    """The text cleaned. One that is too long is cut first, since cleaning takes time for every character, and ends
    with its size."""
    if len(text) <= PART_MAX_CHARS:
        return admit_evidence(strip_injected(text) if without_blocks else text)
    start = text[: PART_MAX_CHARS + _BEYOND_CHARS]
    start = admit_evidence(strip_injected(start) if without_blocks else start)
    # what was masked has moved the rest to the front: the end, where a secret may be cut in two, goes in any case
    start = start[: max(0, min(PART_MAX_CHARS, len(start) - _BEYOND_CHARS))]
    return f"{start}\n[cut: the whole had {len(text):,} characters]"


def _admitted_detail(detail: str, cleaning: _Detail) -> str:
    """JSON, cleaned text by text, since JSON writes line breaks and quotes in signs of its own; then as a whole, since
    a secret's name may be the key and the secret the value."""
    size = len(detail)
    with contextlib.suppress(ValueError, RecursionError):  # not JSON after all: cleaned as the text it is
        detail = json.dumps(cleaning.clean(json.loads(detail)), ensure_ascii=False)
    if len(detail) <= DETAIL_MAX_CHARS:
        return admit_evidence(detail)
    start = admit_evidence(detail[: DETAIL_MAX_CHARS + _BEYOND_CHARS])
    start = start[: max(0, min(DETAIL_MAX_CHARS, len(start) - _BEYOND_CHARS))]
    return json.dumps({"cut": size, "start": start}, ensure_ascii=False)


class _Detail:
    """Cleans the texts in one JSON value until ``PART_MAX_CHARS`` are reached; the later ones are left out."""

    def __init__(self, limits: KeepLimits, apart: _Apart, texts: CleanedTexts) -> None:
        self._limits = limits
        self._apart = apart
        self._texts = texts
        self._left = PART_MAX_CHARS

    def clean(self, value: Any) -> Any:  # Any: JSON of any shape
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {self.clean(key): self.clean(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.clean(item) for item in value]
        return value

    def _text(self, text: str) -> str:
        if text.startswith("data:") and len(text) > _SMALL_ADDRESS_CHARS:
            return self._address(text)
        if self._left <= 0:
            return "[cut]"
        self._left -= len(text)
        return self._apart.large(self._texts.clean(text), self._limits.detail)

    def _address(self, address: str) -> str:
        """A file as a data: address: it is kept, if it is not too large, and named in the place of its data."""
        told = _ADDRESS.match(address)
        if told is None:
            return "data:,"
        head, media_type = told[0], told[1] or _TEXT
        size = (len(address) - len(head)) * 3 // 4
        if size > self._limits.attachment_bytes + 2:  # at most two signs fill up the end
            return f"{head}[left out: {size:,} bytes]" if self._limits.attachment_bytes else head
        content = _file(address[len(head) :]) if told[3] else None
        if content is None or len(content) > self._limits.attachment_bytes:
            return head
        return attached(head, self._apart.keep(content, media_type).hash)


def _file(encoded: str) -> bytes | None:
    """The bytes of a file as they may be kept; None where they cannot be told, or secrets cannot be found in them."""
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None
    return kept_bytes(content, _cleaned_text)


def blobs_once(messages: Sequence[AdmittedMessage]) -> list[Blob]:
    """The blobs of several messages, each once."""
    return list({blob.hash: blob for item in messages for blob in item.blobs}.values())
