"""What models cost, as text and tables for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from backstory.codecs.record import format_time
from backstory.domain.ledger import Allowance, Cap, Line, money
from backstory.entrypoints.local_time import shown_day
from backstory.entrypoints.tables import Column, Table

if TYPE_CHECKING:
    from backstory.entrypoints.render import Line as TextLine
    from backstory.entrypoints.shapes import Shape
    from backstory.services.ledger import Costs, Stopped


def cost_table(costs: Costs) -> Table:
    """The calls by day, feature and model. ``~`` marks sums with estimates in them, ``+`` those where a price lacks."""
    return Table(
        columns=(
            Column("day"),
            Column("feature"),
            Column("model", is_wide=True),
            Column("calls", is_number=True),
            Column("failed", is_number=True),
            Column("unfinished", is_number=True),
            Column("tokens in", is_number=True),
            Column("tokens out", is_number=True),
            Column("cost", is_number=True),
            Column("seconds", is_number=True),
        ),
        rows=[_row(line) for line in costs.lines],
        empty=f"No model was called since {shown_day(costs.since)}.",
    )


def _row(line: Line) -> Sequence[str]:
    about = "~" if line.estimated else ""
    return (
        f"{line.day}",
        line.feature,
        line.model,
        f"{line.calls:,}",
        f"{line.failed:,}",
        f"{line.unfinished:,}",
        f"{about}{line.input_tokens:,}",
        f"{about}{line.output_tokens:,}",
        "no price" if line.cost is None else f"{about}{money(line.cost)}{'+' if line.unpriced else ''}",
        f"{line.duration.total_seconds():.1f}",
    )


def cap_lines(costs: Costs) -> Iterator[TextLine]:
    """The caps with what is left of each, and the features that are at one."""
    if not costs.allowances:
        yield "No cap is set.", "faint"
    for allowance in costs.allowances:
        yield f"Cap: {allowance.name}{_left(allowance)}", "plain"
    yield from stopped_lines(costs.stopped)


def stopped_lines(stopped: Sequence[Stopped]) -> Iterator[TextLine]:
    """One line for each feature at a cap."""
    for each in stopped:
        yield f"At the cap of {each.reached.name}: {each.feature} works without the model until 00:00", "bad"


def _left(allowance: Allowance) -> str:
    match allowance.cap:
        case Cap.SESSION:
            return ""
        case Cap.DAY_COST:
            return f"; {money(allowance.left)} left today"
        case _:
            return f"; {allowance.left:,} left today"


def costs_shape(costs: Costs) -> Shape:
    """Money is text, exact to six decimals."""
    return {
        "since": format_time(costs.since),
        "lines": [_line_shape(line) for line in costs.lines],
        "caps": [_allowance_shape(each) for each in costs.allowances],
        "at_cap": stopped_shapes(costs.stopped),
    }


def stopped_shapes(stopped: Sequence[Stopped]) -> list[Shape]:
    """The features at a cap."""
    return [
        {"feature": each.feature, "until": format_time(each.until), **_allowance_shape(each.reached)}
        for each in stopped
    ]


def _line_shape(line: Line) -> Shape:
    return {
        "day": line.day.isoformat(),
        "feature": line.feature,
        "model": line.model,
        "calls": line.calls,
        "failed": line.failed,
        "unfinished": line.unfinished,
        "estimated": line.estimated,
        "requests": line.requests,
        "input_tokens": line.input_tokens,
        "output_tokens": line.output_tokens,
        "cost": None if line.cost is None else _plain(line.cost),
        "unpriced": line.unpriced,
        "seconds": round(line.duration.total_seconds(), 3),
    }


def _allowance_shape(allowance: Allowance) -> Shape:
    is_money = allowance.cap is Cap.DAY_COST
    limit, spent, left = (
        _plain(amount) if is_money else amount for amount in (allowance.limit, allowance.spent, allowance.left)
    )
    is_session = allowance.cap is Cap.SESSION
    return {
        "cap": allowance.cap.value,
        "of": allowance.feature,
        "limit": limit,
        "spent": None if is_session else spent,
        "left": None if is_session else left,
    }


def _plain(millionths: int) -> str:
    return money(millionths).replace(",", "")
