"""``show``, ``why`` and ``history``: one memory, where it comes from, and what happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.parameters import WholeNumber
from backstory.entrypoints.counted import memories_counted
from backstory.entrypoints.drive import drive

if TYPE_CHECKING:
    from backstory.domain.history import Change
    from backstory.domain.memory import Memory
    from backstory.entrypoints.cli.invocation import Desk, Invocation


@command("show")
@click.argument("ref")
@click.option("--all-projects", is_flag=True, help="Look in other projects too.")
def show(here: Invocation, ref: str, all_projects: bool) -> None:
    """Show memory REF in full.

    REF is a number, an id, or a piece of the text that only one memory holds. Forgotten ones are found by number or id.
    """
    with here.opened(all_projects=all_projects) as desk:
        memory = drive(desk.app.reference.find(ref, desk.viewer, field="ref", deleted=True))
        doubt = drive(desk.app.backend.doubts.doubts([memory.id])).get(memory.id)
        if here.out.as_json:
            from backstory.entrypoints.shapes import looked_up_shape

            here.out.json(looked_up_shape(memory, desk.projects(), doubt))
        else:
            from backstory.entrypoints.render import memory_lines

            successor = _successor(desk, memory)
            here.out.lines(memory_lines(memory, desk.projects(), desk.viewer.project, doubt, successor))


def _successor(desk: Desk, memory: Memory) -> Memory | None:
    """What took the place of a memory, if it can be seen from here."""
    from backstory.domain.memory import Superseded
    from backstory.domain.scope import visible

    if not isinstance(memory.status, Superseded):
        return None
    found = drive(desk.app.backend.memories.get([memory.status.by])).get(memory.status.by)
    return found if found is not None and visible(found, desk.viewer) else None


@command("why")
@click.argument("ref")
@click.option(
    "--query", metavar="TEXT", help="Explain its score for this prompt.  [default: the one it was shown with last]"
)
@click.option("--all-projects", is_flag=True, help="Look in other projects too.")
def why(here: Invocation, ref: str, query: str | None, all_projects: bool) -> None:
    """Explain memory REF: who said it, what became of it, who saw it.

    Who said it, in which session and message, and how sure that is; whether it is disputed, doubted or replaced; what
    it is worth by now, and what happened to it since; when a model was shown it, and why; and how it scores now.
    """
    with here.opened(all_projects=all_projects) as desk:
        story = drive(desk.app.inspection.why(ref, desk.viewer))
        appraisal = drive(desk.app.truth.explanation.appraise(story, desk.viewer, query=query))
        if here.out.as_json:
            from backstory.entrypoints.story_shapes import story_shape

            here.out.json(story_shape(story, appraisal, desk.projects()))
        else:
            from backstory.entrypoints.story_views import story_lines

            here.out.lines(story_lines(story, appraisal, desk.projects(), desk.viewer.project))


def moved_here(move: Change) -> str:
    """What to say of a change that brought another project's memories here, since the history does not show it."""
    how = f"{memories_counted(len(move.edits))} came here from another project ({move.reason or 'no reason given'})"
    return f"{how}; `backstory history --all-projects` shows it, `backstory undo {move.id}` takes it back"


@command("history")
@click.argument("ref", required=False)
@click.option("--limit", type=WholeNumber(1, 10_000), metavar="N", default=20, help="At most this many.  [default: 20]")
@click.option("--all-projects", is_flag=True, help="Other projects' changes too.")
def history(here: Invocation, ref: str | None, limit: int, all_projects: bool) -> None:
    """Show what was changed, newest first.

    Each change with when, by whom and why; with REF, only what happened to that memory. The first column names the
    change for `backstory undo`.
    """
    with here.opened(all_projects=all_projects) as desk:
        changes = drive(desk.app.inspection.history(desk.viewer, ref=ref, limit=limit))
        if here.out.as_json:
            from backstory.entrypoints.shapes import change_shape

            projects = desk.projects()
            here.out.json({"changes": [change_shape(change, projects) for change in changes]})
        else:
            from backstory.entrypoints.tables import change_table

            here.out.table(change_table(changes))
            if ref is None and not all_projects:
                for move in drive(desk.app.inspection.moved_here(desk.viewer, limit=limit)):
                    here.out.note(moved_here(move))
