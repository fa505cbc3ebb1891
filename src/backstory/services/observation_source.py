"""What observing reads of messages and notes, and what stands in for a model's notes where none are to be had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC

from backstory.domain.conversation import Message
from backstory.domain.digest import Piece
from backstory.domain.extract import EXTRACT, extract_digest, extract_merge
from backstory.domain.observation import ObservationPolicy
from backstory.domain.observation_log import extract_notes
from backstory.domain.transcript import TranscriptLimits, transcript
from backstory.services.observation_sizes import Sizes

_PART_CHARS = 20_000
_CHARS_PER_TOKEN = 4  # of most text; less of some, never much more
_EXTRACT_CHARS = 1_200  # of a window of the usual size
_TOKENS_PER_EXTRACT_CHAR = 5  # of a larger one


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """Notes, and who made them of what."""

    text: str
    made_by: str
    prompt: str
    current_task: str | None = None
    suggested_response: str | None = None


def read_by_observer(window: Sequence[Message], policy: ObservationPolicy, sizes: Sizes) -> str:
    """The transcript of some messages: no more than a window's tokens, whatever their script."""
    most = policy.window_tokens
    text = transcript(window, limits=_limits(_CHARS_PER_TOKEN * most))
    size = sizes.count(text)
    return text if size <= most else transcript(window, limits=_limits(len(text) * most // size))


def noted_by_extract(window: Sequence[Message], sizes: Sizes) -> Notes:
    """An extract of messages as notes; up to a second for a window of the largest size."""
    weight = sum(map(sizes.weigh, window))
    extract = extract_digest(window, max_chars=max(_EXTRACT_CHARS, weight // _TOKENS_PER_EXTRACT_CHAR))
    first = next((message for message in window if message.parts), window[0])
    return Notes(text=extract_notes(extract, first.created_at.astimezone(UTC)), made_by=EXTRACT, prompt="")


def condensed_by_extract(pieces: Sequence[Piece], below: int, policy: ObservationPolicy, sizes: Sizes) -> Notes:
    """An extract of notes: of half the tokens that start a reflection, or of fewer until it is well below them."""
    threshold = policy.observation_tokens
    below = min(below, threshold * 3 // 4 + 1)
    texts = [piece.text for piece in pieces if piece.text]
    chars = [_CHARS_PER_TOKEN * threshold >> halves for halves in range(1, 12)]
    merged = (extract_merge(texts, max_chars=size) for size in chars if size)
    text = next((text for text in merged if sizes.count(text) < below), "")
    return Notes(text=text, made_by=EXTRACT, prompt="")


def _limits(total_chars: int) -> TranscriptLimits:
    return TranscriptLimits(part_chars=_PART_CHARS, total_chars=total_chars)
