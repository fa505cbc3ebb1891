"""``recall``: the command that must be fast. Nothing is imported here that a search by words does not need."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.parameters import filter_options, kinds_of, learned_range
from backstory.entrypoints.cli.standard_input import text_of
from backstory.entrypoints.drive import drive

if TYPE_CHECKING:
    from backstory.domain.vocabulary import Classified
    from backstory.entrypoints.cli.invocation import Desk, Invocation
    from backstory.services.recall import Recalled

NOTHING_YET = "there is no memory here yet; `backstory remember` stores the first"


@command("recall")
@click.argument("query", nargs=-1)
@click.option("--limit", type=int, metavar="N", help="At most this many, 1 to 100.  [default: recall.limit]")
@filter_options
@click.option("--all-projects", is_flag=True, help="Search other projects' memories too.")
@click.option("--superseded", is_flag=True, help="Also find what was replaced since.")
@click.option("--lexical", is_flag=True, help="Search by words alone; starts fastest.")
def recall(
    here: Invocation,
    query: tuple[str, ...],
    limit: int | None,
    tag: tuple[str, ...],
    kind: tuple[Classified, ...],
    area: str | None,
    since: str | None,
    until: str | None,
    all_projects: bool,
    superseded: bool,
    lexical: bool,
) -> None:
    """Find memories that answer QUERY, best first.

    They are found by meaning and by words, and each comes with the reasons. With - or in a pipe the query is read from
    standard input; an empty one gives the newest. When nothing is good enough, it says why and still exits with 0.
    """
    text = text_of(query, field="query") or ""
    with here.opened(lexical=lexical, all_projects=all_projects) as desk:
        from backstory.services.recall import Query

        request = Query(
            text=text,
            viewer=desk.viewer,
            limit=desk.app.settings.recall.limit if limit is None else limit,
            tags=tag,
            kinds=kinds_of(kind),
            area=area,
            learned=learned_range(since, until, now=desk.app.clock.now()),
            with_superseded=superseded,
            lexical_only=lexical,
        )
        recalled = drive(desk.app.recall.recall(request))
        if desk.missing:
            recalled = replace(recalled, silent_because=NOTHING_YET, skipped=())
        _show(here, desk, recalled)


def _show(here: Invocation, desk: Desk, recalled: Recalled) -> None:
    projects = desk.projects() if recalled.results else {}
    if here.out.as_json:
        from backstory.entrypoints.shapes import recalled_shape

        here.out.json(recalled_shape(recalled, projects))
        return
    from backstory.entrypoints.render import recalled_lines

    here.out.lines(recalled_lines(recalled, projects, desk.viewer.project))
    for skipped in recalled.skipped:
        here.out.note(f"{skipped.part} was not searched: {skipped.reason}")
