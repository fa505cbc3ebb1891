"""What a part keeps of content that is too large for it, and how the whole is put back in its place."""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from backstory.domain.conversation import BlobHash, Part

_LEFT_OUT = re.compile(r"\n\[… [0-9,]+ characters between are kept in blob ([0-9a-f]{64}) …\]\n")
_ATTACHED = re.compile(r"(data:[^,]{0,200},)\[blob ([0-9a-f]{64})\]")


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
