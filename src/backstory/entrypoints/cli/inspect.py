"""``inspect`` and ``shown``: what there is, what was put in front of a model, and what was kept back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.parameters import WholeNumber
from backstory.entrypoints.drive import drive

if TYPE_CHECKING:
    from backstory.domain.conversation import FrozenBlock
    from backstory.domain.dream_state import Summary
    from backstory.entrypoints.cli.invocation import Desk, Invocation

DEFAULT_LIMIT = 10


@command("inspect")
@click.argument(
    "view",
    type=click.Choice(["stats", "recent", "conflicts", "project", "shown", "silent"]),
    default="stats",
    metavar="[VIEW]",
)
@click.option(
    "--limit",
    type=WholeNumber(1, 1000),
    metavar="N",
    default=DEFAULT_LIMIT,
    help=f"At most this many.  [default: {DEFAULT_LIMIT}]",
)
@click.option("--session", metavar="ID", help="For shown and silent: of this session.  [default: this project's]")
@click.option("--message", metavar="ID", help="For shown and silent: beside this message.")
def inspect(here: Invocation, view: str, limit: int, session: str | None, message: str | None) -> None:
    """Show counts, the newest memories, or what was kept back.

    VIEW is one of: stats (counts of what is in sight; the default), recent (the newest memories), conflicts (memories
    that disagree), project (this project's memories and what they come to), shown (what was put beside the latest
    prompts, and why), silent (what came near a prompt, and why it was shown or not, worked out anew).
    """
    if (session or message) and view not in ("shown", "silent"):
        raise click.UsageError("--session and --message go with shown and silent", click.get_current_context())
    with here.opened(lexical=view != "silent") as desk:
        _VIEWS[view](here, _in_session(desk, session), limit, message)


@command("shown")
@click.option("--session", metavar="ID", help="Of this session, its snapshot too.  [default: this project's sessions]")
@click.option("--message", metavar="ID", help="Beside this message, as the model read it.")
@click.option(
    "--limit",
    type=WholeNumber(1, 1000),
    metavar="N",
    default=DEFAULT_LIMIT,
    help=f"At most this many.  [default: {DEFAULT_LIMIT}]",
)
def shown(here: Invocation, session: str | None, message: str | None, limit: int) -> None:
    """Show what was put in front of a model, the latest first.

    Beside which prompt, which memories, how well each matched and what its score was made up of; or why there was
    nothing. `backstory sessions` lists sessions, `backstory session ID` their messages.
    """
    with here.opened(lexical=True) as desk:
        _shown(here, _in_session(desk, session), limit, message)


def _in_session(desk: Desk, session: str | None) -> Desk:
    if session is not None:
        from backstory.domain.ids import SessionId

        desk.viewer = replace(desk.viewer, session=SessionId(session))
    return desk


def _stats(here: Invocation, desk: Desk, limit: int, message: str | None) -> None:
    from backstory.entrypoints.overview_views import overview_lines, overview_shape

    told = drive(desk.app.inspection.overview(desk.viewer))
    by_state = drive(desk.app.inspection.statistics(desk.viewer)).by_state
    summaries = _summaries(desk)
    if here.out.as_json:
        here.out.json(overview_shape(told, by_state, summaries))
    else:
        here.out.lines(overview_lines(told, by_state, summaries))


def _recent(here: Invocation, desk: Desk, limit: int, message: str | None) -> None:
    _list(here, desk, limit, only_project=False)


def _project(here: Invocation, desk: Desk, limit: int, message: str | None) -> None:
    if not here.out.as_json:
        from backstory.entrypoints.overview_views import summary_lines

        here.out.lines(summary_lines(_summaries(desk)))
    _list(here, desk, limit, only_project=True)


def _list(here: Invocation, desk: Desk, limit: int, *, only_project: bool) -> None:
    from backstory.domain.memory import Visibility
    from backstory.domain.selection import Selection

    selection = Selection(viewer=desk.viewer, now=desk.app.clock.now())
    if only_project:
        selection = replace(selection, visibility=Visibility.PROJECT)
    memories = drive(desk.app.backend.memories.select(selection, limit=limit))
    if here.out.as_json:
        from backstory.entrypoints.overview_views import summaries_shape
        from backstory.entrypoints.shapes import memory_shape

        projects = desk.projects()
        listed: dict[str, object] = {"memories": [memory_shape(memory, projects) for memory in memories]}
        here.out.json(listed | ({"summaries": summaries_shape(_summaries(desk))} if only_project else {}))
        return
    from backstory.entrypoints.tables import memory_table

    empty = "There is no such memory here."
    here.out.table(memory_table(memories, desk.projects(), here=desk.viewer.project, empty=empty))


def _conflicts(here: Invocation, desk: Desk, limit: int, message: str | None) -> None:
    from backstory.entrypoints.conflict_views import conflict_lines, conflicts_shape

    found = drive(desk.app.truth.conflicts.conflicts(desk.viewer, limit=limit))
    if here.out.as_json:
        here.out.json(conflicts_shape(found, desk.projects()))
    else:
        here.out.lines(conflict_lines(found, desk.projects(), desk.viewer.project))


def _shown(here: Invocation, desk: Desk, limit: int, message: str | None) -> None:
    from backstory.entrypoints.block_views import blocks_lines, blocks_shape, snapshot_lines

    inspection = desk.app.inspection
    blocks = _blocks(desk, limit, message)
    prompts = drive(inspection.prompts(blocks))
    snapshot = None if message else drive(inspection.snapshot(desk.viewer))
    ids = [item.memory for block in blocks for item in block.shown] + list(snapshot.shown if snapshot else ())
    memories = drive(inspection.in_sight(ids, replace(desk.viewer, all_projects=True)))
    if here.out.as_json:
        here.out.json(blocks_shape(blocks, prompts, snapshot, memories))
        return
    here.out.lines(blocks_lines(blocks, prompts, memories, whole=message is not None))
    if snapshot is not None:
        here.out.lines(snapshot_lines(snapshot, memories))


def _blocks(desk: Desk, limit: int, message: str | None) -> Sequence[FrozenBlock]:
    """The latest blocks, or the one beside a message. Raises NotFound where nothing is known of that message."""
    if message is None:
        return drive(desk.app.inspection.recent_blocks(desk.viewer, limit=limit))
    from backstory.domain.ids import MessageId
    from backstory.errors import NotFound

    block = drive(desk.app.inspection.block(desk.viewer, message=MessageId(message)))
    if block is None:
        raise NotFound(f"nothing was looked up for the message {message!r}", hint="`backstory shown` lists the latest")
    return [block]


def _silent(here: Invocation, desk: Desk, limit: int, message: str | None) -> None:
    from backstory.domain.ids import MessageId
    from backstory.entrypoints.block_views import weighing_lines, weighing_shape

    wanted = None if message is None else MessageId(message)
    weighing = drive(desk.app.truth.explanation.weighing(desk.viewer, message=wanted, limit=limit))
    if here.out.as_json:
        here.out.json(weighing_shape(weighing, desk.projects()))
    else:
        here.out.lines(weighing_lines(weighing))


def _summaries(desk: Desk) -> Sequence[Summary] | None:
    offered = desk.app.truth.summaries
    return None if offered is None else drive(offered.offered(desk.viewer.project))


_VIEWS: dict[str, Callable[..., None]] = {
    "stats": _stats,
    "recent": _recent,
    "conflicts": _conflicts,
    "project": _project,
    "shown": _shown,
    "silent": _silent,
}
