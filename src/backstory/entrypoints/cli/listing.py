"""``list`` and ``tags``: what is there, without a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.contradictions import refuse_both
from backstory.entrypoints.cli.parameters import WholeNumber, filter_options, kinds_of, learned_range
from backstory.entrypoints.cli.recall import NOTHING_YET
from backstory.entrypoints.drive import drive

if TYPE_CHECKING:
    from backstory.domain.vocabulary import Classified
    from backstory.entrypoints.cli.invocation import Invocation

DEFAULT_LIMIT = 50
_MAX_TAGS = 1000


@command("list")
@click.option(
    "--limit",
    type=WholeNumber(1, 1_000_000),
    metavar="N",
    default=DEFAULT_LIMIT,
    help=f"At most this many.  [default: {DEFAULT_LIMIT}]",
)
@click.option("--offset", type=WholeNumber(0), metavar="N", default=0, help="Leave out this many of the newest.")
@filter_options
@click.option("--containing", metavar="TEXT", help="Only what holds this text, whatever its case and spacing.")
@click.option("--pinned", is_flag=True, help="Only pinned ones.")
@click.option("--all-projects", is_flag=True, help="Other projects' memories too.")
@click.option("--superseded", is_flag=True, help="Also what was replaced since.")
@click.option("--forgotten", is_flag=True, help="Only what was forgotten.")
def list_(
    here: Invocation,
    limit: int,
    offset: int,
    tag: tuple[str, ...],
    kind: tuple[Classified, ...],
    area: str | None,
    since: str | None,
    until: str | None,
    containing: str | None,
    pinned: bool,
    all_projects: bool,
    superseded: bool,
    forgotten: bool,
) -> None:
    """List memories, newest first.

    On a terminal they stand in a table; in a pipe each is a line, with tabs between the columns.
    """
    from backstory.domain.selection import CURRENT, WITH_SUPERSEDED, Selection

    refuse_both("--forgotten", forgotten, "--superseded", superseded)
    if forgotten:
        here.person_only("lists what was forgotten")
    with here.opened(all_projects=all_projects) as desk:
        now = desk.app.clock.now()
        selection = Selection(
            viewer=desk.viewer,
            now=now,
            states=frozenset({"deleted"}) if forgotten else WITH_SUPERSEDED if superseded else CURRENT,
            kinds=kinds_of(kind),
            tags=tag,
            area=area,
            learned=learned_range(since, until, now=now),
            pinned=True if pinned else None,
            contains=containing,
        )
        memories = drive(desk.app.backend.memories.select(selection, limit=limit, offset=offset))
        total = drive(desk.app.backend.memories.count(selection))
        doubts = drive(desk.app.backend.doubts.doubts([memory.id for memory in memories]))
        if here.out.as_json:
            from backstory.entrypoints.shapes import looked_up_shape

            projects = desk.projects()
            listed = [looked_up_shape(memory, projects, doubts.get(memory.id)) for memory in memories]
            here.out.json({"memories": listed, "total": total})
            return
        from backstory.entrypoints.tables import memory_table

        empty = f"{NOTHING_YET}." if desk.missing else "There is no such memory here."
        table = memory_table(memories, desk.projects(), here=desk.viewer.project, empty=empty, doubts=doubts)
        here.out.table(table)
        if total > offset + len(memories):
            here.out.note(f"{len(memories)} of {total}; --limit and --offset show more")


@command("tags")
@click.option("--all-projects", is_flag=True, help="Other projects' memories too.")
def tags(here: Invocation, all_projects: bool) -> None:
    """Show the tags in use.

    The most used first, each with how many memories carry it.
    """
    from backstory.domain.selection import Selection
    from backstory.entrypoints.tables import tag_table

    with here.opened(all_projects=all_projects) as desk:
        selection = Selection(viewer=desk.viewer, now=desk.app.clock.now())
        counts = drive(desk.app.backend.memories.tag_counts(selection, limit=_MAX_TAGS))
        if here.out.as_json:
            here.out.json({"tags": [{"tag": tag, "count": count} for tag, count in counts]})
        else:
            here.out.table(tag_table(counts))
