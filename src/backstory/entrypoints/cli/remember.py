"""``remember`` and ``update``: put a memory into words, or into other words."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.background import embed_in_background
from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.contradictions import refuse_both
from backstory.entrypoints.cli.parameters import DURATION, KIND, KINDS_TOLD
from backstory.entrypoints.cli.standard_input import text_of
from backstory.entrypoints.drive import drive

if TYPE_CHECKING:
    from backstory.domain.memory import Sensitivity, Tier
    from backstory.domain.vocabulary import Classified
    from backstory.entrypoints.cli.invocation import Invocation


@command("remember")
@click.argument("text", nargs=-1)
@click.option("--kind", "--type", type=KIND, help=f"What it is: {KINDS_TOLD}.  [default: guessed from the wording]")
@click.option("--global", "everywhere", is_flag=True, help="True in every project.")
@click.option("--scope", metavar="SCOPE", help="global, project, or an area as with --area.")
@click.option("--area", metavar="PATH", help="Which part of the project, such as deploy/staging.")
@click.option("--tag", multiple=True, metavar="TAG", help="A label; up to 10.")
@click.option("--issue", metavar="NAME", help="The issue or ticket it belongs to.")
@click.option("--pin", is_flag=True, help="Never let it fade; always offer it.")
@click.option("--core", is_flag=True, help="Always offer it, not only when it fits.")
@click.option("--temporary", is_flag=True, help="True for 24 hours, or for as long as --expires says.")
@click.option("--expires", type=DURATION, metavar="LENGTH", help="For how long it is true: 90m, 24h, 7d, 2w.")
@click.option("--private", is_flag=True, help="Mark it as private.")
@click.option("--local-only", is_flag=True, help="Show it to people here only: no model, no export.")
@click.option("--supersedes", metavar="REF", help="Replace this memory: #number, id or a piece of its text.")
def remember(
    here: Invocation,
    text: tuple[str, ...],
    kind: Classified | None,
    everywhere: bool,
    scope: str | None,
    area: str | None,
    tag: tuple[str, ...],
    issue: str | None,
    pin: bool,
    core: bool,
    temporary: bool,
    expires: timedelta | None,
    private: bool,
    local_only: bool,
    supersedes: str | None,
) -> None:
    """Store TEXT as a memory of this project.

    With - or in a pipe the text is read from standard input. A text that is known already is confirmed instead of
    stored twice. Secrets are masked, <private> passages are left out. `backstory undo` takes it back.
    """
    refuse_both("--core", core, "--temporary", temporary)
    content = _needed(text_of(text, field="content"))
    place = _place(kind, scope, area, everywhere=everywhere)
    with here.opened(create=True) as desk:
        from backstory.services.remember import Draft

        draft = Draft(
            content=content,
            kind=place.kind,
            visibility=place.visibility,
            area=place.area,
            tags=tag,
            issue=issue,
            tier=_tier(core=core, temporary=temporary),
            expires_in=expires,
            pinned=pin,
            sensitivity=_sensitivity(private=private, local_only=local_only),
            supersedes=supersedes,
            origin=desk.origin,
        )
        done = drive(desk.app.remember.remember(draft, viewer=desk.viewer, author=desk.author))
        if here.out.as_json:
            from backstory.entrypoints.shapes import remembered_shape

            here.out.json(remembered_shape(done, desk.projects()))
        else:
            from backstory.entrypoints.render import remembered_lines

            here.out.lines(remembered_lines(done, desk.projects(), desk.viewer.project))
        if not desk.app.backend.memories.capabilities.durable:
            here.out.note("this store keeps nothing: the memory is gone when the command ends")
        embed_in_background(here, desk)


@command("update")
@click.argument("ref")
@click.argument("text", nargs=-1)
@click.option("--kind", "--type", type=KIND, help=f"What it is: {KINDS_TOLD}.")
@click.option("--scope", metavar="SCOPE", help="global, project, or an area as with --area.")
@click.option("--area", metavar="PATH", help="Which part of the project.")
@click.option("--tag", multiple=True, metavar="TAG", help="The tags it has from now on, in place of all others.")
@click.option("--no-tags", is_flag=True, help="Take all its tags away.")
@click.option("--issue", metavar="NAME", help="The issue or ticket it belongs to.")
@click.option("--core", is_flag=True, help="Always offer it, not only when it fits.")
@click.option("--archival", is_flag=True, help="Offer it when it fits.")
@click.option("--expires", type=DURATION, metavar="LENGTH", help="For how long from now it is true: 90m, 24h, 7d.")
@click.option("--no-expiry", is_flag=True, help="True for good, however it was stored.")
@click.option("--private", is_flag=True, help="Mark it as private.")
@click.option("--local-only", is_flag=True, help="Show it to people here only.")
@click.option("--normal", is_flag=True, help="Neither private nor local-only any more.")
@click.option("--reason", metavar="TEXT", help="Why; kept in the history.")
def update(
    here: Invocation,
    ref: str,
    text: tuple[str, ...],
    kind: Classified | None,
    scope: str | None,
    area: str | None,
    tag: tuple[str, ...],
    no_tags: bool,
    issue: str | None,
    core: bool,
    archival: bool,
    expires: timedelta | None,
    no_expiry: bool,
    private: bool,
    local_only: bool,
    normal: bool,
    reason: str | None,
) -> None:
    """Change memory REF.

    Its words, if TEXT is given, and what the options name; all else stays. REF is a number, an id, or a piece of the
    text that only one memory holds. With -, or in a pipe with no option that changes something, TEXT is read from
    standard input. `backstory undo` takes it back.
    """
    from backstory.domain.lifecycle import Revision
    from backstory.domain.memory import Tier

    refuse_both("--expires", expires is not None, "--no-expiry", no_expiry)
    refuse_both("--tag", bool(tag), "--no-tags", no_tags)
    refuse_both("--core", core, "--archival", archival)
    refuse_both("--normal", normal, "--private or --local-only", private or local_only)
    place = _place(kind, scope, area, everywhere=False)
    fields = Revision(
        kind=place.kind,
        visibility=place.visibility,
        area=place.area,
        tags=tag or (() if no_tags else None),
        issue=issue,
        tier=Tier.CORE if core else Tier.ARCHIVAL if archival else None,
        sensitivity=_sensitivity(private=private, local_only=local_only) if private or local_only or normal else None,
        lasting=no_expiry,
    )
    names_something = fields != Revision() or expires is not None
    content = text_of(text, field="content") if text or not names_something else None
    if not names_something:
        content = _needed(content, hint="give it a new text, or an option that changes something, such as --tag")
    with here.opened(writing=True) as desk:
        from dataclasses import replace

        until = None if expires is None else desk.app.clock.now() + expires
        revision = replace(fields, content=content, expires_at=until)
        change = drive(desk.app.remember.update(ref, revision, viewer=desk.viewer, author=desk.author, reason=reason))
        if change is None:
            here.out.nothing("The memory says so already; nothing was changed.")
            return
        if here.out.as_json:
            from backstory.entrypoints.shapes import change_shape

            here.out.json(change_shape(change, desk.projects()))
        else:
            from backstory.entrypoints.aftermath import aftermath, asked_for
            from backstory.entrypoints.render import changed_lines, head_of

            meant, projects = asked_for(change), desk.projects()
            here.out.lines(changed_lines("Updated", meant))
            heads = (head_of(memory, projects, desk.viewer.project).partition(" ")[2] for memory in meant)
            here.out.lines((f"  {head}", "plain") for head in heads)
            here.out.lines([(f"{said}.", "plain") for said in aftermath(change.edits)])
            here.out.lines([(f"Undo with: backstory undo {change.id}", "faint")])
        embed_in_background(here, desk)


def _needed(content: str | None, *, hint: str = "give a text as an argument, or pipe one in") -> str:
    if content is None:
        raise click.UsageError("there is no text; give it as an argument, or pipe it in", click.get_current_context())
    if not content.strip():
        from backstory.errors import InputError

        raise InputError("content is empty", field="content", hint=hint)
    return content


def _place(kind: Classified | None, scope: str | None, area: str | None, *, everywhere: bool) -> Classified:
    from dataclasses import replace

    from backstory.domain.memory import Visibility
    from backstory.domain.vocabulary import Classified, classify

    typed, placed = kind or Classified(), classify(None, scope)
    elsewhere = placed.visibility not in (None, Visibility.GLOBAL)
    refuse_both("--global", everywhere, f"--scope {scope}", elsewhere)
    refuse_both(f"--area {area}", area is not None, f"--scope {scope}", placed.area not in (None, area))
    visibility = Visibility.GLOBAL if everywhere else placed.visibility or typed.visibility
    return replace(typed, visibility=visibility, area=area or placed.area)


def _tier(*, core: bool, temporary: bool) -> Tier | None:
    from backstory.domain.memory import Tier

    return Tier.TEMPORARY if temporary else Tier.CORE if core else None


def _sensitivity(*, private: bool, local_only: bool) -> Sensitivity:
    from backstory.domain.memory import Sensitivity

    return Sensitivity.LOCAL_ONLY if local_only else Sensitivity.PRIVATE if private else Sensitivity.NORMAL
