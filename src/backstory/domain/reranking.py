"""Asking which of the memories found answer a question: how they are shown, and how the answer is read.

The words around them are in ``prompts/rerank.py``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from backstory.domain.answers import Finish, Reason, Unusable, json_values, own_words
from backstory.domain.context_block import quote
from backstory.domain.truncation import truncate_chars

MAX_CANDIDATES = 30
"""As many as the seed that reranks shows its model by default."""
CANDIDATE_MAX_CHARS = 400
QUESTION_MAX_CHARS = 1_000
ANSWER_MAX_CHARS = 100_000
"""Far more than a model says that was given room for some hundred tokens; reading 8 MB would take half a minute."""

SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {"order": {"type": "array", "items": {"type": "integer"}}},
    "required": ["order"],
    "additionalProperties": False,
}

_NONE = re.compile(r"[\W_]*(?:none|nothing|no notes?)(?: of (?:them|these|the notes))?[\W_]*", re.IGNORECASE)
_NUMBER = re.compile(r"[#\[(]?\s*(\d{1,4})\s*[\])]?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which candidates answer, best first, as positions from 0; none of them when empty."""

    positions: tuple[int, ...]


def quoted(text: str, *, max_chars: int) -> str:
    """A text as one line in quotation marks that it cannot leave: neither its quotes nor its tags count as ours."""
    shown = truncate_chars(text.strip(), max_chars)
    return json.dumps(quote(shown + "…" if len(shown) < len(text.strip()) else shown), ensure_ascii=False)


def numbered(texts: Sequence[str]) -> str:
    """The candidates, one a line, numbered from 1."""
    lines = (f"{number}. {quoted(text, max_chars=CANDIDATE_MAX_CHARS)}" for number, text in enumerate(texts, 1))
    return "\n".join(lines)


def read_choice(raw: str | None, *, count: int, finish: Finish = Finish.UNKNOWN) -> Choice | Unusable:
    """The choice among ``count`` candidates: ``{"order": [3, 1]}``, a bare list where no object is, or the word none.

    Numbers nobody gave are left out, and so are repetitions; when no number remains of some, the answer is unusable
    rather than a choice of none. So is one that says two things.
    """
    if raw is not None and len(raw) > ANSWER_MAX_CHARS:
        return Unusable(reason=Reason.TOO_LONG)
    text = own_words(raw, finish=finish)
    if isinstance(text, Unusable):
        return text
    if _NONE.fullmatch(text):
        return Choice(positions=())
    values = json_values(raw, finish=finish)
    if isinstance(values, Unusable):
        return values
    objects = [value for value in values if isinstance(value, dict)]
    orders = [order for value in objects or values if (order := _order(value)) is not None]
    if not orders:
        return Unusable(reason=Reason.NOT_STRUCTURED)
    if any(order != orders[0] for order in orders):
        return Unusable(reason=Reason.WRONG_KIND)
    return _choice(orders[0], count)


def _order(value: object) -> Sequence[object] | None:
    """What a JSON value gives as the order; None when it gives none."""
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return None
    order = value.get("order")
    if isinstance(order, str) and _NONE.fullmatch(order):
        order = []
    if value.get("none") is True:
        return None if order else []
    return order if isinstance(order, list) else None


def _choice(order: Sequence[object], count: int) -> Choice | Unusable:
    if len(order) == 1 and isinstance(order[0], str) and _NONE.fullmatch(order[0]):
        return Choice(positions=())
    positions = tuple(dict.fromkeys(number - 1 for number in _numbers(order) if 1 <= number <= count))
    if order and not positions:
        return Unusable(reason=Reason.WRONG_KIND)
    return Choice(positions=positions)


def _numbers(order: Sequence[object]) -> Iterator[int]:
    for item in order:
        if isinstance(item, bool):
            continue
        if isinstance(item, int):
            yield item
        elif isinstance(item, str) and (match := _NUMBER.fullmatch(item.strip())):
            yield int(match.group(1))
