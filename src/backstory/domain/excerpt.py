"""What a part keeps of content that is too large for it, and how the whole is put back in its place."""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from backstory.domain.conversation import BlobHash, Part
from backstory.domain.ids import PartId

_LEFT_OUT = re.compile(r"\n\[… [0-9,]+ characters between are kept in blob ([0-9a-f]{64}) …\]\n")
_ATTACHED = re.compile(r"(data:[^,]{0,200},)\[blob ([0-9a-f]{64})\]")
_WITHOUT_DATA = re.compile(r"data:[^,]{0,200},(?:\[left out: [0-9,]+ bytes\])?")
_SAME_FILE = ("id", "mime", "filename")  # what tells one file of a part from another


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcerptSize:
    """Texts longer than ``whole`` characters are kept as their first ``head`` and last ``tail`` characters."""

    whole: int
    head: int
    tail: int


def excerpt(text: str, blob: BlobHash, size: ExcerptSize) -> str:
    """The beginning and the end of a text, and in between where the whole is kept."""
    between = len(text) - size.head - size.tail
    return (
        f"{text[: size.head]}\n[… {between:,} characters between are kept in blob {blob} …]\n"
        f"{text[len(text) - size.tail :]}"
    )


def excerpt_anew(text: str, old: BlobHash, new: BlobHash, content: str) -> str:
    """A text with its excerpt of the blob ``old`` made anew, as long as before, of ``content``, which is in ``new``;
    all of the content where that is not longer. Addresses name ``new`` too."""
    mark = next((mark for mark in _LEFT_OUT.finditer(text) if mark[1] == old), None)
    if mark is None:
        return text.replace(old, new)
    head, tail = mark.start(), len(text) - mark.end()
    if len(content) <= head + tail:
        return content
    return excerpt(content, new, ExcerptSize(whole=head + tail, head=head, tail=tail))


def attached(head: str, blob: BlobHash) -> str:
    """A data: address without its data. ``head`` is all of it up to the comma, which is included."""
    return f"{head}[blob {blob}]"


def whole_part(part: Part, contents: Mapping[BlobHash, bytes]) -> Part:
    """The part with every excerpt and address replaced by the content it stands for. What is not in ``contents`` stays
    an excerpt; a text that only looks like one stays as it is."""
    if not part.blobs:
        return part
    detail = part.detail
    if detail is not None and any(blob.hash in detail for blob in part.blobs):
        with contextlib.suppress(ValueError, RecursionError):  # it is not JSON after all
            detail = json.dumps(_whole_value(json.loads(detail), contents), ensure_ascii=False)
    return replace(part, text=_whole_text(part.text, contents), detail=detail)


def may_lack_files(part: Part) -> bool:
    """Whether a part might name a file without telling its data. False is certain, and cheap to find out."""
    return part.detail is not None and ("data:" in part.detail or "null" in part.detail)


def keep_files(parts: Sequence[Part], kept: Mapping[PartId, Part]) -> list[Part]:
    """The parts as they are to be kept, told one after the other: a file whose data is not told again (its address is
    empty, or there is nothing behind the comma) stays the one in ``kept``, or in an earlier telling."""
    known = dict(kept)
    told: list[Part] = []
    for part in parts:
        earlier = known.get(part.id)
        if earlier is not None and earlier.blobs and may_lack_files(part):
            part = _with_files(part, earlier)
        known[part.id] = part
        told.append(part)
    return told


def _with_files(part: Part, earlier: Part) -> Part:
    refs = {ref.hash: ref for ref in earlier.blobs}
    try:
        value, before = json.loads(part.detail or "null"), json.loads(earlier.detail or "null")
        merged = _with_addresses(value, before, refs.keys())
    except (ValueError, RecursionError):  # one of them is not JSON after all
        return part
    if merged == value:
        return part
    detail = json.dumps(merged, ensure_ascii=False)
    has = {ref.hash for ref in part.blobs}
    more = tuple(ref for name, ref in refs.items() if name in detail and name not in has)
    return replace(part, detail=detail, blobs=(*part.blobs, *more))


def _with_addresses(value: Any, before: Any, names: Set[BlobHash]) -> Any:  # Any: JSON of any shape
    if isinstance(value, dict) and isinstance(before, dict):
        if any(value.get(name) != before.get(name) for name in _SAME_FILE):
            return value
        return {key: _with_addresses(item, before.get(key), names) for key, item in value.items()}
    if isinstance(value, list) and isinstance(before, list):
        rest = value[len(before) :]
        return [_with_addresses(*pair, names) for pair in zip(value, before, strict=False)] + rest
    if not isinstance(before, str) or not (value is None or isinstance(value, str)):
        return value
    address = _ATTACHED.fullmatch(before)
    lacks = value is None or _WITHOUT_DATA.fullmatch(value) is not None
    return before if lacks and address is not None and address[2] in names else value


def _whole_value(value: Any, contents: Mapping[BlobHash, bytes]) -> Any:  # Any: JSON of any shape
    if isinstance(value, str):
        return _whole_text(value, contents)
    if isinstance(value, dict):
        return {key: _whole_value(item, contents) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_value(item, contents) for item in value]
    return value


def _whole_text(text: str, contents: Mapping[BlobHash, bytes]) -> str:
    if (address := _ATTACHED.fullmatch(text)) is not None:
        content = contents.get(BlobHash(address[2]))
        return text if content is None else address[1] + base64.b64encode(content).decode("ascii")
    for mark in _LEFT_OUT.finditer(text):
        content = contents.get(BlobHash(mark[1]))
        if content is None:
            continue
        whole = content.decode("utf-8", "replace")
        if whole.startswith(text[: mark.start()]) and whole.endswith(text[mark.end() :]):
            return whole
    return text
