"""``dream``: distil sessions into memories now, or look at what that would give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.invocation import Desk, Invocation
from backstory.entrypoints.cli.output import counting
from backstory.entrypoints.drive import drive
from backstory.errors import InputError, ModelUnavailable

if TYPE_CHECKING:
    from backstory.bootstrap import App
    from backstory.domain.ids import SessionId
    from backstory.services.dreaming import Dreaming
    from backstory.services.dreaming_outcome import Dreamt

_EVERY_SESSION = 100_000
_FOR_EVER = timedelta(days=3_650)  # no lease and no pause is as long


@command("dream")
@click.argument("session", metavar="[SESSION]", required=False)
@click.option("--all", "everything", is_flag=True, help="Every session of this project, however old.")
@click.option("--rules", is_flag=True, help="Ask no language model: keep what was plainly stated.")
@click.option("--dry-run", is_flag=True, help="Show what would be kept, and write nothing.")
def dream(here: Invocation, session: str | None, everything: bool, rules: bool, dry_run: bool) -> None:
    """Distil what was said in sessions into memories, now.

    OpenCode has that done beside the conversation, some time after each turn. Without SESSION: the sessions of this
    project that an earlier OpenCode left. Each stretch of a session is one change, which `backstory undo` takes back.
    It asks the language model that the settings name, with --dry-run too. Safe to stop at any moment.
    """
    if session is not None and everything:
        raise click.UsageError("name a session, or say --all", click.get_current_context())
    from backstory.entrypoints.dream_views import dreamt_lines, dreamt_shape

    with here.opened(lexical=True) as desk:
        app = _without_model(here, desk) if rules else desk.app
        _check(app, rules=rules)
        meant = _meant(desk, app.truth.dreaming, session, everything=everything)
        with counting("Distilling", "stretches", shown=not here.out.as_json) as advance:
            done = _worked(app.truth.dreaming, meant, advance, dry_run=dry_run)
        projects = desk.projects()
    if here.out.as_json:
        here.out.json(dreamt_shape(done, projects, dry_run=dry_run))
    else:
        here.out.lines(dreamt_lines(done, dry_run=dry_run))
    if failed := [one for one in done if one.outcome.name == "FAILED"]:
        raise ModelUnavailable(f"{failed[0].session} could not be distilled: {failed[0].because}")


def _check(app: App, *, rules: bool) -> None:
    """Raise InputError where the settings are against it, or name no model that could be asked from here."""
    settings = app.settings
    for field, is_on in (("dream.enabled", settings.dream.enabled), ("archive.enabled", settings.archive.enabled)):
        if not is_on:
            raise InputError(f"{field} is off, so no session is distilled", field=field)
    if app.text_model is None and not rules and settings.models.provider != "none":
        raise InputError(
            "outside OpenCode no language model is set up",
            field="rules",
            hint="set models.base_url and models.model, or say --rules",
        )


def _meant(desk: Desk, dreaming: Dreaming, ref: str | None, *, everything: bool) -> Sequence[SessionId]:
    if ref is not None:
        from backstory.services.sessions import Sessions

        return [drive(Sessions(desk.app.backend.conversations).find(ref, desk.viewer)).id]
    limit = _EVERY_SESSION if everything else desk.app.settings.dream.sweep_batch
    found = drive(dreaming.left_undone(desk.project.id, limit=limit, within=_FOR_EVER, by_person=everything))
    return [session for session, _ in found]


def _worked(
    dreaming: Dreaming, sessions: Sequence[SessionId], advance: Callable[[int], None], *, dry_run: bool
) -> list[Dreamt]:
    import anyio

    from backstory.services.dreaming_outcome import Outcome

    async def rounds() -> list[Dreamt]:
        done: list[Dreamt] = []
        for session in sessions:
            if dry_run:
                done.append(await dreaming.preview(session, told=lambda made: advance(1)))
                continue
            more = True
            while more:
                done.append(await dreaming.work(session, at_once=True, told=lambda made: advance(1)))
                more = done[-1].outcome is Outcome.UNFINISHED and bool(done[-1].distilled)
        return done

    return anyio.run(rounds)  # with an event loop, since whoever stops it must not leave the lease behind


def _without_model(here: Invocation, desk: Desk) -> App:
    settings = here.settings_with({"recall.mode": "lexical", "models.provider": "none"}).settings
    return desk.app.with_settings(settings)
