"""How large messages are: as the host sends them, not as the archive keeps them."""

from __future__ import annotations

from dataclasses import replace

from backstory.domain.conversation import BlobHash, BlobRef
from backstory.services.observation_sizes import Sizes
from tests.observed import WordTokens, message


def kept_apart(size: int, media_type: str, *, parts: int = 1) -> int:
    ref = BlobRef(hash=BlobHash("0" * 64), size=size, media_type=media_type)
    whole = message(1, "the beginning of a log")
    part = replace(whole.parts[0], blobs=(ref,))
    told = tuple(replace(part, id=f"p{n}") for n in range(parts))  # type: ignore[arg-type]
    return Sizes(WordTokens()).weigh(replace(whole, parts=told)) - Sizes(WordTokens()).weigh(
        replace(whole, parts=tuple(replace(one, blobs=()) for one in told))
    )


def test_a_text_that_is_kept_apart_counts_by_its_size() -> None:
    assert kept_apart(40_000, "text/plain") == 10_000


def test_what_is_told_twice_counts_once() -> None:
    assert kept_apart(40_000, "text/plain", parts=2) == 10_000


def test_a_picture_takes_no_text() -> None:
    assert kept_apart(40_000, "image/png") == 0
