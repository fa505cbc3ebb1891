"""Put Backstory into a coding agent, and take it out again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from backstory.entrypoints.cli.command import Command
from backstory.entrypoints.cli.invocation import NO_BACKGROUND, Invocation

if TYPE_CHECKING:
    from backstory.config import Settings
    from backstory.entrypoints.opencode.install import Action, Plan
    from backstory.entrypoints.opencode.locations import Place
    from backstory.entrypoints.opencode.sidecar import Sidecar

HOSTS = ("opencode", "claude-code", "cursor", "codex", "vscode", "windsurf", "gemini", "zed", "claude-desktop")
_DONE: dict[Action, str] = {"create": "wrote", "update": "renewed", "keep": "kept", "remove": "removed"}
_PLANNED: dict[Action, str] = {
    "create": "would write",
    "update": "would renew",
    "keep": "would keep",
    "remove": "would remove",
}

SEED_WARNING = (
    "OpenCode will no longer run npm in this folder: a plugin there that imports @opencode-ai/plugin will not load."
    " `backstory uninstall opencode` takes this back"
)
MACHINE_NOTE = (
    "{sidecar} holds the path of this machine's Python, so it is of no use to others:"
    " leave .opencode/plugins/backstory.* out of version control"
)


class _Command(Command):
    """Here --project says where to install, instead of in which folder to act."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # Any: handed on to click as they are
        super().__init__(*args, **kwargs)
        self.params = [param for param in self.params if param.name != "project_folder"]


def _options(function: Callable[..., Any]) -> Callable[..., Any]:  # Any: click fills in what the options say
    """What installing and uninstalling have in common; the Invocation is passed first."""
    function = click.make_pass_decorator(Invocation, ensure=True)(function)
    function = click.option("--dry-run", "--print", "is_dry_run", is_flag=True, help="Show what would happen.")(
        function
    )
    function = click.option(
        "--project",
        is_flag=False,
        flag_value=".",
        metavar="[DIR]",
        help="For one project only: the one of this folder, or of DIR.",
    )(function)
    function = click.option("--global", "is_global", is_flag=True, help="For all projects.  [default]")(function)
    return click.argument("host", metavar="AGENT", type=click.Choice(HOSTS), required=False)(function)


@click.command("install", cls=_Command)
@click.option(
    "--offline-seed",
    is_flag=True,
    help="For a machine that cannot reach npm: make OpenCode believe its npm package is there, so that it does not wait"
    " for it. Other plugins that import that package will not load.",
)
@click.option("--command", "with_command", is_flag=True, help="Also write the command /memory. For opencode only.")
@click.option("--force", is_flag=True, help="Replace an entry of the same name that is not ours. Not for opencode.")
@_options
def install(
    invocation: Invocation,
    host: str | None,
    is_global: bool,
    project: str | None,
    is_dry_run: bool,
    offline_seed: bool,
    with_command: bool,
    force: bool,
) -> None:
    """Install Backstory in a coding agent.

    AGENT is opencode, claude-code, cursor, codex, vscode, windsurf, gemini, zed or claude-desktop.

    OpenCode gets two files, backstory.js and backstory.json, in its plugins folder; its settings are not touched.
    Claude Code gets hooks and an MCP server, the others an MCP server, in their own configuration files, of which
    nothing else changes; a copy is kept. Doing it again renews what is ours. What has the same name but is not ours is
    left alone, and nothing is installed.
    """
    host, project = _host(host, project)
    if host != "opencode":
        from backstory.entrypoints.cli.install_agents import install_agent

        if offline_seed:
            raise click.UsageError("--offline-seed is for opencode", click.get_current_context())
        if with_command:
            raise click.UsageError("--command is for opencode", click.get_current_context())
        root = _root(invocation, is_global=is_global, project=project)
        install_agent(invocation, host, root=root, is_dry_run=is_dry_run, force=force)
        return
    from backstory.entrypoints.opencode.command_file import to_write
    from backstory.entrypoints.opencode.host_config import obstacles
    from backstory.entrypoints.opencode.install import carry_out, plan_install
    from backstory.entrypoints.opencode.sidecar import sidecar_for

    if force:
        raise click.UsageError("--force is not for opencode", click.get_current_context())
    place = _place(invocation, is_global=is_global, project=project)
    settings = _settings(invocation, place)
    sidecar = sidecar_for(settings, os.environ)
    plan = plan_install(place, sidecar, offline_seed=offline_seed)
    plan = replace(plan, changes=(*plan.changes, *to_write(place, wanted=with_command)))
    if not is_dry_run:
        carry_out(plan)
    warnings = [*_cautions(plan, sidecar), *obstacles(os.environ, place.root or invocation.folder)]
    _tell(invocation, plan, warnings=warnings, is_dry_run=is_dry_run)
    if not invocation.as_json:
        next_steps = _preview(sidecar) if is_dry_run else _next_steps()
        invocation.out.lines((line, "plain") for line in next_steps)


@click.command("uninstall", cls=_Command)
@_options
def uninstall(invocation: Invocation, host: str | None, is_global: bool, project: str | None, is_dry_run: bool) -> None:
    """Take Backstory out of a coding agent.

    Removes the files and entries that `backstory install` wrote, and nothing else. Memories stay.
    """
    host, project = _host(host, project)
    if host != "opencode":
        from backstory.entrypoints.cli.install_agents import uninstall_agent

        root = _root(invocation, is_global=is_global, project=project)
        uninstall_agent(invocation, host, root=root, is_dry_run=is_dry_run)
        return
    from backstory.entrypoints.opencode.command_file import to_remove
    from backstory.entrypoints.opencode.install import carry_out, installations, plan_uninstall
    from backstory.entrypoints.opencode.locations import places

    place = _place(invocation, is_global=is_global, project=project)
    store = _store(invocation, place)
    plan = plan_uninstall(place)
    plan = replace(plan, changes=(*plan.changes, *to_remove(place)))
    if not is_dry_run:
        carry_out(plan)
    warnings = [f"{path} was not written by Backstory and was left as it is" for path in plan.left]
    others = [found for found in installations(places(os.environ, invocation.folder)) if found.is_ours]
    warnings += [f"Backstory is still installed in {found.folder}" for found in others if found.place != place]
    _tell(invocation, plan, warnings=warnings, is_dry_run=is_dry_run, store=store)
    if not invocation.as_json:
        invocation.out.lines((line, "plain") for line in _farewell(plan, store))


def _host(host: str | None, project: str | None) -> tuple[str, str | None]:
    """The agent, and the value of --project."""
    if host is None and project in HOSTS:  # `install --project opencode`: the word was meant as the agent
        host, project = project, "."
    if host is None:
        raise click.UsageError(f"say in which agent: {', '.join(HOSTS)}", click.get_current_context())
    return host, project


def _folder(invocation: Invocation, *, is_global: bool, project: str | None) -> Path | None:
    """The folder that --project names; None for all projects."""
    if project is None:
        return None
    if is_global:
        raise click.UsageError("--global and --project exclude each other", click.get_current_context())
    folder = invocation.folder if project == "." else Path(project)
    if not folder.is_dir():
        raise click.UsageError(f"--project: {project!r} is not a folder", click.get_current_context())
    return folder


def _root(invocation: Invocation, *, is_global: bool, project: str | None) -> Path | None:
    from backstory.adapters.project_folder import project_root

    folder = _folder(invocation, is_global=is_global, project=project)
    return None if folder is None else project_root(folder)


def _place(invocation: Invocation, *, is_global: bool, project: str | None) -> Place:
    from backstory.entrypoints.opencode.locations import global_place, project_place

    folder = _folder(invocation, is_global=is_global, project=project)
    return global_place(os.environ) if folder is None else project_place(folder)


def _settings(invocation: Invocation, place: Place, named: Mapping[str, str] = MappingProxyType({})) -> Settings:
    """What holds where it is installed: a project's own file counts only for that project. ``named`` are folders that
    an installation names."""
    from backstory.config import load

    env = {name: value for name, value in {**named, **os.environ}.items() if name != NO_BACKGROUND}
    return load(env=env, project_root=place.root, flags={"store.url": invocation.store_url}).settings


def _cautions(plan: Plan, sidecar: Sidecar) -> Iterator[str]:
    from backstory.entrypoints.opencode.sidecar import FILE, is_short_lived

    place = plan.place
    if place.config / "package.json" in plan.paths("create"):
        yield SEED_WARNING
    if place.scope == "project":
        yield MACHINE_NOTE.format(sidecar=place.plugins / FILE)
    if is_short_lived(sidecar.command[0]):
        python = sidecar.command[0]
        yield f"{python} lies where it may be cleaned away; install Backstory with pipx or in a venv to stay"


def _tell(
    invocation: Invocation, plan: Plan, *, warnings: list[str], is_dry_run: bool, store: str | None = None
) -> None:
    if invocation.as_json:
        told: dict[str, object] = {
            "host": "opencode",
            "scope": plan.place.scope,
            "folder": str(plan.place.plugins),
            "files": [{"path": str(change.path), "action": change.action} for change in plan.changes],
            "warnings": warnings,
            "dry_run": is_dry_run,
        }
        invocation.out.json(told | ({"store": store} if store is not None else {}))
        return
    for action, verb in (_PLANNED if is_dry_run else _DONE).items():
        if paths := plan.paths(action):
            invocation.out.lines([(f"{verb} {', '.join(map(str, paths))}", "plain")])
    invocation.out.warn(warnings)


def _next_steps() -> list[str]:
    return [
        "`backstory doctor` proves that it works; `backstory doctor --probe` starts OpenCode to see it loaded",
        "start OpenCode anew to load it; its first start with a plugin may take some seconds, while npm installs a"
        " package for it",
    ]


def _preview(sidecar: Sidecar) -> list[str]:
    from backstory.entrypoints.opencode.sidecar import FILE

    return [f"{FILE} would hold:", sidecar.content().decode().rstrip()]


def _store(invocation: Invocation, place: Place) -> str:
    """The file with the memories of what is installed there; empty where there is none, or wrong settings hide it."""
    from backstory.entrypoints.opencode.install import installations
    from backstory.errors import ConfigError

    named = {name: text for found in installations([place]) for name, text in found.env.items()}
    try:
        return str(_settings(invocation, place, named).database_file or "")
    except ConfigError:
        return ""


def _farewell(plan: Plan, store: str) -> list[str]:
    gone = [] if plan.changes else [f"Backstory is not installed in {plan.place.config}"]
    if not store:
        return gone
    return [*gone, f"memories stay in {store}; delete that file (and those beside it that begin alike) to remove them"]
