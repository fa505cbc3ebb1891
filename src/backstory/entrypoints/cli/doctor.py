"""Find out what is wrong, from the settings to a plugin that OpenCode does not load."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.invocation import NO_BACKGROUND, Invocation

if TYPE_CHECKING:
    from backstory.config import Settings
    from backstory.entrypoints.doctor import Check, State
    from backstory.entrypoints.render import Tone

FAILED = 1
_TONES: dict[State, Tone] = {"ok": "good", "warn": "strong", "fail": "bad"}


@command("doctor")
@click.option(
    "--probe",
    is_flag=True,
    help="Also start OpenCode, without a model, to see whether it loads the plugin (3 s or more).",
)
@click.option(
    "--opencode",
    "program",
    type=click.Path(exists=True, dir_okay=False, executable=True, path_type=Path),
    metavar="FILE",
    help="The OpenCode program, if it is not the one on PATH.",
)
@click.pass_context
def doctor(ctx: click.Context, invocation: Invocation, probe: bool, program: Path | None) -> None:
    """Find out what is wrong, and how to mend it.

    Settings, store, embedder, and the installation in OpenCode and in other agents that have one are checked. Nothing
    is changed. The exit code is 1 if a check failed; warnings alone leave it at 0. With --probe in a project that has
    an installation of its own, OpenCode starts in that project, and so loads its other plugins too.
    """
    checks = _examine(invocation, probe=probe, program=program.absolute() if program else None)
    is_ok = all(check.state != "fail" for check in checks)
    if invocation.as_json:
        fields = ("name", "state", "message", "mend")
        invocation.out.json(
            {"checks": [{name: getattr(check, name) for name in fields} for check in checks], "ok": is_ok}
        )
    else:
        _show(invocation, checks)
    if not is_ok:
        ctx.exit(FAILED)


def _examine(invocation: Invocation, *, probe: bool, program: Path | None) -> list[Check]:
    import anyio

    from backstory.entrypoints.doctor import check_long_sessions, check_package, check_settings
    from backstory.entrypoints.store_checks import check_store

    found, settings = check_settings(lambda: invocation.resolved)
    checks = [check_package(), *found]
    if settings is None:
        return checks
    checks += anyio.run(check_store, settings, invocation.folder)
    checks += check_long_sessions(settings, _installed_tools(invocation.folder), invocation.folder)
    checks += _examine_opencode(invocation, settings, probe=probe, program=program)
    return [*checks, *_examine_agents(invocation, settings)]


def _installed_tools(folder: Path) -> dict[Path, frozenset[str]]:
    """The names of the tools that each of our plugins offers, by its folder."""
    from backstory.entrypoints.opencode.install import installations
    from backstory.entrypoints.opencode.locations import places
    from backstory.entrypoints.opencode.sidecar import FILE

    found = installations(places(os.environ, folder))
    return {each.folder: _tool_names(each.folder / FILE) for each in found if each.is_ours}


def _tool_names(sidecar: Path) -> frozenset[str]:
    """What a sidecar says; nothing of one that cannot be read, which is another check's to tell."""
    try:
        told = json.loads(sidecar.read_bytes())
    except (OSError, ValueError, RecursionError):
        return frozenset()
    manifest = told.get("manifest") if isinstance(told, dict) else None
    tools = manifest if isinstance(manifest, list) else []
    return frozenset(str(tool.get("name")) for tool in tools if isinstance(tool, dict))


def _examine_opencode(invocation: Invocation, settings: Settings, *, probe: bool, program: Path | None) -> list[Check]:
    from backstory.entrypoints.opencode.doctor import Patient, check_opencode
    from backstory.entrypoints.opencode.sidecar import sidecar_for

    env = {name: value for name, value in os.environ.items() if name != NO_BACKGROUND}
    patient = Patient(
        env=env,
        directory=invocation.folder,
        settings=settings,
        wanted=sidecar_for(settings, env),
        program=program,
        announce=invocation.out.note,
    )
    return check_opencode(patient, probe=probe)


def _examine_agents(invocation: Invocation, settings: Settings) -> list[Check]:
    from backstory.adapters.project_folder import project_root
    from backstory.entrypoints.agents.doctor import check_agents
    from backstory.entrypoints.agents.hosts import Surroundings, launch

    around = Surroundings(env=os.environ, platform=sys.platform)
    return list(check_agents(around, project_root(invocation.folder), launch(os.environ), settings.data_dir))


def _show(invocation: Invocation, checks: Sequence[Check]) -> None:
    for check in checks:
        invocation.out.lines([(f"{check.state:<5} {check.name}: {check.message}", _TONES[check.state])])
        if check.mend:
            invocation.out.lines([(f"      mend: {check.mend}", "plain")])
    failed = sum(check.state == "fail" for check in checks)
    warned = sum(check.state == "warn" for check in checks)
    if failed or warned:
        summary = f"{failed} failed, {warned} to look at, {len(checks) - failed - warned} fine"
    else:
        summary = "everything works"
    invocation.out.lines([(summary, "bad" if failed else "plain")])
