"""What options hold: kinds by any of their names, lengths of time, and the filters that reading commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from backstory.domain.memory import Kind
    from backstory.domain.time_range import TimeRange
    from backstory.domain.vocabulary import Classified

F = TypeVar("F", bound=Callable[..., Any])

_UNIT_HOURS = {"m": 1 / 60, "h": 1, "d": 24, "w": 24 * 7}
_LONGEST = timedelta(days=3660)
_MOST_DIGITS = 19


class KindType(click.ParamType):  # type: ignore[type-arg]  # generic only in newer clicks
    """A kind, or a type of an older product; becomes what ``classify`` makes of it."""

    name = "kind"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Classified:
        """Raises InputError naming what is known."""
        from backstory.domain.vocabulary import Classified, classify

        if isinstance(value, Classified):
            return value
        if not str(value).strip():
            self.fail("it is empty; name a kind, such as decision", param, ctx)
        return classify(str(value), None)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The types that begin so."""
        from click.shell_completion import CompletionItem

        from backstory.domain.vocabulary import known_types

        return [CompletionItem(name) for name in known_types() if name.startswith(incomplete)]


class DurationType(click.ParamType):  # type: ignore[type-arg]  # generic only in newer clicks
    """A length of time such as ``90m``, ``24h``, ``7d`` or ``2w``; ten years at most."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Refuses what is no length of time, or an impossible one."""
        if isinstance(value, timedelta):
            return value
        number, unit = str(value)[:-1].strip(), str(value)[-1:].lower()
        if unit not in _UNIT_HOURS or not number.isascii() or not number.isdigit() or len(number) > 9:
            self.fail(f"{str(value)[:40]!r} is not a length of time; write 90m, 24h, 7d or 2w", param, ctx)
        length = timedelta(hours=int(number) * _UNIT_HOURS[unit])
        if not timedelta(0) < length <= _LONGEST:
            self.fail(f"{str(value)[:40]!r} must lie between 1m and {_LONGEST.days}d", param, ctx)
        return length


class WholeNumber(click.ParamType):  # type: ignore[type-arg]  # generic only in newer clicks
    """A whole number within limits, both included; without ``most`` there is no upper one."""

    name = "number"

    def __init__(self, least: int, most: int | None = None) -> None:
        self.least = least
        self.most = most

    @property
    def allowed(self) -> str:
        """The limits in words."""
        return f"{self.least:,} or more" if self.most is None else f"{self.least:,} to {self.most:,}"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Refuses what is no number, or lies outside of the limits, which it names."""
        written = str(value)
        try:
            number = int(written) if len(written) <= _MOST_DIGITS else None
        except ValueError:
            number = None
        if number is None or not re.fullmatch(r"\s*[+-]?\d+\s*", written):
            self.fail(f"{written[:40]!r} is not a whole number; allowed: {self.allowed}", param, ctx)
        if number < self.least or (self.most is not None and number > self.most):
            size = "small" if number < self.least else "large"
            self.fail(f"{number} is too {size}; allowed: {self.allowed}", param, ctx)
        return number


KIND = KindType()
DURATION = DurationType()


KINDS_TOLD = (
    "fact, decision, preference, learning, blocker, context, pattern, status, environment, workflow, user, episodic"
    " or other"
)
"""All kinds, in the order of ``Kind``, whose module is not imported for help; a test compares the two."""


def filter_options(function: F) -> F:
    """Options that say which memories are meant; the command takes them as tag, kind, area, since and until."""
    for option in reversed(
        [
            click.option("--tag", multiple=True, metavar="TAG", help="Only with this tag; repeat for several."),
            click.option("--kind", type=KIND, multiple=True, help="Only this kind, such as decision; may be repeated."),
            click.option("--area", metavar="PATH", help="Only this area and what is below it, such as deploy/staging."),
            click.option("--since", metavar="WHEN", help="Learned from then on: 2026-03-02, 2026-03, 7d, yesterday."),
            click.option("--until", metavar="WHEN", help="Learned up to the end of then."),
        ]
    ):
        function = option(function)
    return function


def kinds_of(classified: Sequence[Classified]) -> frozenset[Kind]:
    """The kinds that were given."""
    return frozenset(item.kind for item in classified if item.kind is not None)


def learned_range(since: str | None, until: str | None, *, now: datetime) -> TimeRange | None:
    """The range that ``--since`` and ``--until`` mean in the person's zone. Raises InputError."""
    if since is None and until is None:
        return None
    from backstory.domain.dates import parse_range
    from backstory.entrypoints.local_time import LocalZone

    return parse_range(since=since, until=until, now=now, zone=LocalZone())
