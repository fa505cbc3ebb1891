"""``projects``: which folders are one project, and what a person decides about it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.command import Group, command
from backstory.entrypoints.cli.invocation import Invocation
from backstory.entrypoints.drive import drive

if TYPE_CHECKING:
    from backstory.domain.history import Change
    from backstory.services.projects import Plan

_yes = click.option("--yes", is_flag=True, help="Do it without asking.")
_dry_run = click.option("--dry-run", is_flag=True, help="Show what would be moved, and change nothing.")


@click.group("projects", cls=Group, invoke_without_command=True)
@click.pass_context
def projects(ctx: click.Context) -> None:
    """List projects, and put them together or apart.

    A project is known by its folders, its git directory and its clones. What may be the same, but need not be, is a
    candidate: `show` names it and why, and `merge` makes two projects one. A project is named by its id, by one of its
    folders, or by its name where only one has it.
    """
    if ctx.invoked_subcommand is None:
        _list(ctx.ensure_object(Invocation))


@command("list")
def list_(here: Invocation) -> None:
    """List all projects.

    Each with its id, the folder it was last seen in, and how many aliases, memories and candidates it has.
    """
    _list(here)


@command("show")
@click.argument("project", required=False, metavar="[PROJECT]")
def show(here: Invocation, project: str | None) -> None:
    """Show by what PROJECT is known, and what may be the same.

    Without PROJECT, the one of this folder, which is noted if it is new.
    """
    # a folder that was moved is new, and what `show` offers to merge it with needs its id to last
    with here.opened(writing=project is None) as desk:
        card = drive(desk.app.projects.card(desk.project.id if project is None else _ref(project)))
        if here.out.as_json:
            from backstory.entrypoints.project_views import card_shape

            here.out.json(card_shape(card))
        else:
            from backstory.entrypoints.project_views import card_lines

            here.out.lines(card_lines(card))


@command("merge")
@click.argument("source", metavar="FROM")
@click.argument("into", metavar="INTO")
@_yes
@_dry_run
def merge(here: Invocation, source: str, into: str, yes: bool, dry_run: bool) -> None:
    """Make project FROM a part of project INTO.

    All its memories, sessions and folders go there, as one change that `backstory undo` takes back. First it is shown
    what moves, and asked. A memory that both have stays once.
    """
    here.person_only("merges projects")
    with here.opened(writing=not dry_run) as desk:
        plan = drive(desk.app.projects.plan_merge(_ref(source), _ref(into)))
        if not _agreed(here, plan, yes=yes, dry_run=dry_run):
            return
        _tell(here, *drive(desk.app.projects.merge(plan.source.id, plan.target.id, author=desk.author)))


@command("split")
@click.argument("project", metavar="PROJECT")
@click.option("--alias", required=True, metavar="ALIAS", help="The folder or git directory that goes.")
@click.option("--name", required=True, metavar="NAME", help="What the new project is called.")
@_yes
@_dry_run
def split(here: Invocation, project: str, alias: str, name: str, yes: bool, dry_run: bool) -> None:
    """Make one folder of PROJECT a project of its own.

    The sessions that ran in that folder go with it, and the memories made in them; all others stay. First it is shown
    what moves, and asked.
    """
    here.person_only("splits a project")
    with here.opened() as desk:
        plan = drive(desk.app.projects.plan_split(_ref(project), alias=_ref(alias), name=name))
        if not _agreed(here, plan, yes=yes, dry_run=dry_run):
            return
        done = desk.app.projects.split(plan.source.id, alias=_ref(alias), name=name, author=desk.author)
        _tell(here, *drive(done))


@command("rename")
@click.argument("project", metavar="PROJECT")
@click.argument("name", metavar="NAME")
def rename(here: Invocation, project: str, name: str) -> None:
    """Call PROJECT by another NAME, of up to 100 characters."""
    with here.opened() as desk:
        before, after = drive(desk.app.projects.rename(_ref(project), name))
    if here.out.as_json:
        from backstory.entrypoints.project_views import renamed_shape

        here.out.json(renamed_shape(before, after))
    else:
        here.out.lines([(f"Renamed {before.name} to {after.name}", "good")])


for subcommand in (list_, show, merge, split, rename):
    projects.add_command(subcommand)


def _list(here: Invocation) -> None:
    with here.opened() as desk:
        cards = drive(desk.app.projects.cards())
    if here.out.as_json:
        from backstory.entrypoints.project_views import card_shape

        here.out.json({"projects": [card_shape(card) for card in cards]})
    else:
        from backstory.entrypoints.project_views import project_table

        here.out.table(project_table(cards))


def _ref(text: str) -> str:
    """What names a project: a path is made absolute, as aliases are."""
    if text in (".", "..") or (os.sep in text and ":" not in text.partition(os.sep)[0]):
        return str(Path(text).resolve())
    return text


def _agreed(here: Invocation, plan: Plan, *, yes: bool, dry_run: bool) -> bool:
    """Show what would move, and ask. Raises InputError where nobody can be asked."""
    if dry_run and here.out.as_json:
        from backstory.entrypoints.project_views import plan_shape

        here.out.json(plan_shape(plan, None, dry_run=True))
        return False
    if not here.out.as_json:
        from backstory.entrypoints.project_views import plan_lines

        here.out.lines(plan_lines(plan))
    if dry_run:
        here.out.note("nothing was changed")
        return False
    if yes:
        return True
    if here.out.as_json or not (here.out.is_terminal and sys.stdin.isatty()):
        from backstory.errors import InputError

        raise InputError("nobody is there to be asked; nothing was changed", field="yes", hint="repeat it with --yes")
    agreed = click.confirm("Do it?", default=False)
    if not agreed:
        here.out.note("nothing was changed")
    return agreed


def _tell(here: Invocation, plan: Plan, change: Change | None) -> None:
    if here.out.as_json:
        from backstory.entrypoints.project_views import plan_shape

        here.out.json(plan_shape(plan, change, dry_run=False))
    else:
        from backstory.entrypoints.project_views import done_lines

        here.out.lines(done_lines(plan, change))
