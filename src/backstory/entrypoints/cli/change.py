"""``forget``, ``pin``, ``retag`` and ``undo``: changes that need no new words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.background import embed_in_background
from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.contradictions import refuse_alone
from backstory.entrypoints.counted import memories_counted
from backstory.entrypoints.drive import drive

if TYPE_CHECKING:
    from backstory.domain.history import Change
    from backstory.domain.ids import MemoryId
    from backstory.domain.memory import Memory
    from backstory.entrypoints.cli.invocation import Desk, Invocation

_MANY = 100_000
_LISTED = 10


@command("forget")
@click.argument("refs", nargs=-1, metavar="[REF]...")
@click.option("--match", metavar="TEXT", help="Forget the memory that holds this text.")
@click.option("--all", "every", is_flag=True, help="With --match: forget all that hold it.")
@click.option("--reason", metavar="TEXT", help="Why; kept in the history.")
@click.option("--dry-run", is_flag=True, help="Show what would be forgotten, and change nothing.")
def forget(
    here: Invocation, refs: tuple[str, ...], match: str | None, every: bool, reason: str | None, dry_run: bool
) -> None:
    """Hide memories everywhere. Each REF is a number, an id, or a piece of the text that only one memory holds.

    Several are one change. What a forgotten memory had replaced becomes current again. The text stays in the history
    until it is undone with `backstory undo`.
    """
    if bool(refs) == (match is not None):
        both = "; not both" if refs else ""
        raise click.UsageError(f"name the memories, or give --match{both}", click.get_current_context())
    refuse_alone("--all", every, "--match", match is not None)
    with here.opened(writing=not dry_run) as desk:
        named = refs if match is None else _matching(desk, match, every=every)
        memories = [drive(desk.app.reference.find_changeable(ref, desk.viewer, field="ref")) for ref in named]
        if dry_run:
            _plan(here, desk, "Would forget", memories)
            return
        ids = [memory.id for memory in memories]
        change = drive(desk.app.remember.forget(ids, viewer=desk.viewer, author=desk.author, reason=reason))
        tell_change(here, desk, "Forgotten", change)


@command("pin")
@click.argument("ref")
@click.option("--off", is_flag=True, help="Unpin it.")
def pin(here: Invocation, ref: str, off: bool) -> None:
    """Pin memory REF, or unpin it with --off.

    A pinned memory never fades, and every session starts with it.
    """
    with here.opened(writing=True) as desk:
        change = drive(desk.app.remember.pin(ref, pinned=not off, viewer=desk.viewer, author=desk.author))
        if change is None:
            here.out.nothing(f"The memory is {'not pinned' if off else 'pinned already'}; nothing was changed.")
            return
        tell_change(here, desk, "Unpinned" if off else "Pinned", change)


@command("retag")
@click.argument("old")
@click.argument("new")
@click.option("--dry-run", is_flag=True, help="Show which memories would be changed, and change nothing.")
def retag(here: Invocation, old: str, new: str, dry_run: bool) -> None:
    """Rename tag OLD to NEW.

    On every memory that can be changed from here: this project's and global ones.
    """
    with here.opened(writing=not dry_run) as desk:
        if dry_run:
            _plan(here, desk, f"Would retag {old} as {new} on", _tagged(desk, old))
            return
        change = drive(desk.app.remember.retag(old, new, viewer=desk.viewer, author=desk.author))
        if change is None:
            from backstory.errors import NotFound

            raise NotFound(
                f"no memory that can be changed from here has the tag {old[:60]!r}",
                hint="`backstory tags` lists the tags in use",
            )
        tell_change(here, desk, "Retagged", change)


@command("undo")
@click.argument("change_id", required=False, metavar="[CHANGE]")
def undo(here: Invocation, change_id: str | None) -> None:
    """Take back a change.

    The newest one made in this project, or CHANGE, as `backstory history` names it; the beginning of its name is
    enough. What was changed again since cannot be taken back.
    """
    with here.opened(writing=True) as desk:
        from backstory.domain.ids import ChangeId

        wanted = None if change_id is None else ChangeId(change_id.strip().upper())
        if wanted is None:
            _check_newest_is_in_sight(desk)
        change = drive(desk.app.remember.undo(wanted, viewer=desk.viewer, author=desk.author))
        if here.out.as_json:
            from backstory.entrypoints.shapes import change_shape

            here.out.json(change_shape(change, desk.projects()))
        else:
            from backstory.entrypoints.render import undone_lines

            undone = None if change.undoes is None else drive(desk.app.backend.memories.change(change.undoes))
            here.out.lines(undone_lines(change, undone))
        embed_in_background(here, desk)


def _check_newest_is_in_sight(desk: Desk) -> None:
    """Raise InputError where the newest thing done in this project is that it got another one's memories."""
    moved = drive(desk.app.inspection.moved_here(desk.viewer))
    if not moved:
        return
    shown = drive(desk.app.inspection.history(desk.viewer, limit=1))
    if not shown or (shown[0].at, shown[0].id) < (moved[0].at, moved[0].id):
        from backstory.entrypoints.cli.inspection import moved_here
        from backstory.errors import InputError

        raise InputError("it is not clear which change is meant", field="change", hint=moved_here(moved[0]))


def _matching(desk: Desk, text: str, *, every: bool) -> list[MemoryId]:
    """What holds the text. Raises AmbiguousMatch, listing them, when there are several and not ``every`` is wanted."""
    from backstory.domain.selection import WITH_SUPERSEDED, Selection
    from backstory.entrypoints.render import shortened
    from backstory.errors import AmbiguousMatch, NotFound

    selection = Selection(viewer=desk.viewer, now=desk.app.clock.now(), states=WITH_SUPERSEDED, contains=text)
    found = drive(desk.app.backend.memories.select(selection, limit=_MANY)) if text.strip() else []
    ids = [memory.id for memory in found]
    if not found:
        raise NotFound(f"no memory here contains {text[:60]!r}")
    if len(found) > 1 and not every:
        listed = "".join(f"\n  #{memory.n}: {shortened(memory.content)}" for memory in found[:_LISTED])
        raise AmbiguousMatch(
            f"{text[:60]!r} fits {len(found)} memories; nothing was changed{listed}", field="match", candidates=ids
        )
    return ids


def _tagged(desk: Desk, tag: str) -> list[Memory]:
    from backstory.domain.selection import EVERY_STATE, Selection

    states = EVERY_STATE - {"deleted"}
    selection = Selection(viewer=desk.viewer, now=desk.app.clock.now(), states=states, tags=(tag,))
    found = drive(desk.app.backend.memories.select(selection, limit=_MANY))
    return [memory for memory in found if desk.app.reference.changeable(memory, desk.viewer)]


def _plan(here: Invocation, desk: Desk, words: str, memories: Sequence[Memory]) -> None:
    if here.out.as_json:
        from backstory.entrypoints.shapes import planned_shape

        here.out.json(planned_shape(memories, desk.projects()))
        return
    from backstory.entrypoints.render import changed_lines

    here.out.lines(changed_lines(words, memories))
    here.out.note(f"{memories_counted(len(memories))}; nothing was changed")


def tell_change(here: Invocation, desk: Desk, words: str, change: Change) -> None:
    """Show what a change did to its memories (``words``, such as "Forgotten"), and how to take it back."""
    if here.out.as_json:
        from backstory.entrypoints.shapes import change_shape

        here.out.json(change_shape(change, desk.projects()))
        return
    from backstory.entrypoints.aftermath import aftermath, asked_for
    from backstory.entrypoints.render import changed_lines

    here.out.lines(changed_lines(words, asked_for(change)))
    here.out.lines([(f"{said}.", "plain") for said in aftermath(change.edits)])
    here.out.lines([(f"Undo with: backstory undo {change.id}", "faint")])
