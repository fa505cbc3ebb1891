"""Which new facts a model calls known already, read out of its answer with distrust."""

from __future__ import annotations

from backstory.domain.answers import Finish, Reason, Unusable, json_values


def read_duplicates(raw: str | None, *, count: int, finish: Finish = Finish.UNKNOWN) -> frozenset[int] | Unusable:
    """The positions from 0 of an answer such as ``{"duplicates": [1, 3]}`` about ``count`` facts numbered from 1.

    Numbers nobody gave are left out. Of several such objects the last one counts.
    """
    values = json_values(raw, finish=finish)
    if isinstance(values, Unusable):
        return values
    lists = [value["duplicates"] for value in values if isinstance(value, dict) and "duplicates" in value]
    if not lists or not isinstance(lists[-1], list):
        return Unusable(reason=Reason.NOT_STRUCTURED)
    numbers = (item for item in lists[-1] if isinstance(item, int) and not isinstance(item, bool))
    return frozenset(number - 1 for number in numbers if 1 <= number <= count)
