"""``status``: which store, how much is in it, what recall works with, what was offered lately, and what models cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.digest import inspection_of
from backstory.entrypoints.cli.parameters import WholeNumber
from backstory.entrypoints.drive import drive

if TYPE_CHECKING:
    from backstory.bootstrap import App
    from backstory.domain.conversation import FrozenBlock
    from backstory.domain.project import Project
    from backstory.domain.project_identity import Candidate
    from backstory.entrypoints.cli.invocation import Desk, Invocation
    from backstory.services.digest_inspection import DigestCard
    from backstory.services.dreaming_inspection import Waiting
    from backstory.services.inspection import Statistics
    from backstory.services.ledger import Stopped

_BLOCKS = 5
_DAYS = 7
_COUNTED_AT_MOST = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """Where memories are. ``exists`` is False before the first one is stored."""

    kind: str
    location: str
    exists: bool
    durable: bool
    read_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What recall by meaning works with: a model, or the reason why there is none.

    ``without_vector`` counts the memories found by words only, up to 10,000; None without a model.
    """

    model: str | None
    reason: str | None
    without_vector: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """All that ``status`` tells. ``candidates`` are other projects that may be this one; ``stopped`` are the features
    that do without the language model until tomorrow; ``waiting`` are sessions whose digests have work left, ``dreams``
    those that are to be distilled. ``for_review`` counts the memories that wait for a person's word."""

    version: str
    store: StoreStatus
    project: Project
    candidates: Sequence[tuple[Candidate, Project]]
    statistics: Statistics
    meaning: Meaning
    stopped: Sequence[Stopped]
    blocks: Sequence[FrozenBlock]
    strategy: str
    waiting: Sequence[DigestCard]
    dreams: Waiting
    for_review: int
    warnings: Sequence[str]


@command("status")
@click.option("--cost", is_flag=True, help="Show what language models cost, and how their caps stand.")
@click.option(
    "--days", type=WholeNumber(1, 366), metavar="N", help=f"With --cost: the last N days.  [default: {_DAYS}]"
)
def status(here: Invocation, cost: bool, days: int | None) -> None:
    """Show how things stand: store, memories, models, warnings.

    Also the project, how many memories there are, and how many lack a vector; what was offered to a model lately, and
    where it was kept silent and why; which sessions have yet to be digested or distilled, and what failed there; and
    warnings about settings. With --cost: calls of language models by day, feature and model, in tokens and money, and
    what is left until a cap.
    """
    if cost:
        _show_costs(here, days or _DAYS)
        return
    if days is not None:
        raise click.UsageError("--days goes with --cost", click.get_current_context())
    with here.opened() as desk:
        told, now = _look(here, desk), desk.app.clock.now()
    from backstory.entrypoints import dream_views

    if here.out.as_json:
        from backstory.entrypoints.digest_views import waiting_shape
        from backstory.entrypoints.shapes import status_shape

        digests = waiting_shape(told.strategy, told.waiting)
        dreams, review = dream_views.waiting_shape(told.dreams), {"waiting": told.for_review}
        here.out.json(status_shape(told) | {"digests": digests, "dreams": dreams, "review": review})
    else:
        from backstory.entrypoints.digest_views import waiting_lines
        from backstory.entrypoints.render import status_lines
        from backstory.entrypoints.review_views import count_lines

        here.out.lines(status_lines(told))
        here.out.lines(count_lines(told.for_review))
        here.out.lines(waiting_lines(told.strategy, told.waiting, now=now))
        here.out.lines(dream_views.waiting_lines(told.dreams, enabled=desk.app.settings.dream.enabled))
        here.out.warn(told.warnings)


def _show_costs(here: Invocation, days: int) -> None:
    from backstory.entrypoints.costs import cap_lines, cost_table, costs_shape

    with here.opened(lexical=True) as desk:
        costs = drive(desk.app.spending.costs(days=days))
    if here.out.as_json:
        here.out.json(costs_shape(costs))
    else:
        here.out.table(cost_table(costs))
        here.out.lines(cap_lines(costs))


def _look(here: Invocation, desk: Desk) -> Status:
    from backstory.__about__ import __version__

    return Status(
        version=__version__,
        store=_store(desk),
        project=desk.project,
        candidates=drive(desk.app.projects.candidates(desk.project.id)),
        statistics=drive(desk.app.inspection.statistics(desk.viewer)),
        meaning=_meaning(desk.app),
        stopped=drive(desk.app.spending.stopped()),
        blocks=drive(desk.app.inspection.recent_blocks(desk.viewer, limit=_BLOCKS)),
        strategy=desk.app.settings.session.strategy,
        waiting=drive(inspection_of(desk).waiting()),
        for_review=drive(desk.app.truth.review.count(desk.viewer)),
        dreams=drive(desk.app.truth.dreams.waiting()),
        warnings=here.resolved.warnings,
    )


def _store(desk: Desk) -> StoreStatus:
    # what was opened knows more than what was named: only then it is seen whether a file may be written
    store = desk.store if desk.missing else desk.app.backend.memories.capabilities
    return StoreStatus(
        kind=store.name,
        location=store.location,
        exists=not desk.missing,
        durable=store.durable,
        read_only=store.read_only,
    )


def _meaning(app: App) -> Meaning:
    from backstory.errors import ModelError

    if app.embedder is None:
        return Meaning(model=None, reason=app.no_embedder, without_vector=None)
    try:
        model = drive(app.embedder.model())
    except ModelError as error:
        return Meaning(model=None, reason=str(error), without_vector=None)
    lacking = drive(app.backend.vectors.unembedded(model=model, limit=_COUNTED_AT_MOST))
    return Meaning(model=model.name, reason=None, without_vector=len(lacking))
