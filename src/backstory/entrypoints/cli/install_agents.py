"""``install`` and ``uninstall`` for every agent but OpenCode: what they say about a plan that is made elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.invocation import NO_BACKGROUND

if TYPE_CHECKING:
    from backstory.config import Settings
    from backstory.entrypoints.agents.hosts import Entry, Host
    from backstory.entrypoints.agents.setup import Action, SetupPlan
    from backstory.entrypoints.cli.invocation import Invocation

NO_SDK = "the agent's tools need the MCP SDK, which is not installed here: pip install 'backstory[mcp]'"
MACHINE_NOTE = "{path} holds the path of this machine's Python: leave it out of version control"
_DONE: dict[Action, str] = {"create": "wrote", "update": "changed", "keep": "kept", "remove": "removed"}
_PLANNED: dict[Action, str] = {
    "create": "would write",
    "update": "would change",
    "keep": "would keep",
    "remove": "would remove",
}


def install_agent(invocation: Invocation, agent: str, *, root: Path | None, is_dry_run: bool, force: bool) -> None:
    """Set it up, or show what would be done. Raises InstallError."""
    from backstory.entrypoints.agents.setup import carry_out, plan_setup

    host, entries = _chosen(agent, root)
    plan = plan_setup(entries, root=root, force=force)
    if not is_dry_run:
        carry_out(plan, backups=_backups(invocation, root))
    _tell(invocation, host, plan, root=root, warnings=list(_cautions(plan, root)), is_dry_run=is_dry_run)
    if not invocation.as_json and not is_dry_run:
        invocation.out.lines([(host.after, "plain")])


def uninstall_agent(invocation: Invocation, agent: str, *, root: Path | None, is_dry_run: bool) -> None:
    """Take it out, or show what would be done. Raises InstallError."""
    from backstory.entrypoints.agents.setup import carry_out, plan_removal

    host, entries = _chosen(agent, root)
    backups = _backups(invocation, root)
    plan = plan_removal(entries, root=root, backups=backups)
    if not is_dry_run:
        carry_out(plan, backups=backups)
    warnings = [f"{place} is not ours and was left as it is" for place in plan.left]
    _tell(invocation, host, plan, root=root, warnings=warnings, is_dry_run=is_dry_run)
    if not invocation.as_json:
        changed = any(plan.paths(action) for action in ("update", "remove"))
        said = "memories stay" if changed else f"Backstory is not installed in {host.title} here"
        invocation.out.lines([(said, "plain")])


def _chosen(agent: str, root: Path | None) -> tuple[Host, Sequence[Entry]]:
    from backstory.entrypoints.agents.hosts import AGENTS, Surroundings, launch

    host = AGENTS[agent]
    if root is not None and not host.in_projects:
        raise click.UsageError(
            f"{host.title} has one configuration for all projects; leave --project out", click.get_current_context()
        )
    return host, host.entries(Surroundings(env=os.environ, platform=sys.platform, root=root), launch(os.environ))


def _backups(invocation: Invocation, root: Path | None) -> Path:
    from backstory.entrypoints.agents.setup import BACKUPS

    return _settings(invocation, root).data_dir / BACKUPS


def _settings(invocation: Invocation, root: Path | None) -> Settings:
    from backstory.config import load

    env = {name: value for name, value in os.environ.items() if name != NO_BACKGROUND}
    return load(env=env, project_root=root, flags={"store.url": invocation.store_url}).settings


def _cautions(plan: SetupPlan, root: Path | None) -> Iterator[str]:
    from backstory.entrypoints.opencode.sidecar import is_short_lived

    if root is not None:
        yield from (MACHINE_NOTE.format(path=path) for action in _WRITTEN for path in plan.paths(action))
    if is_short_lived(sys.executable):
        yield f"{sys.executable} lies where it may be cleaned away; install Backstory with pipx or in a venv to stay"
    if find_spec("mcp") is None:
        yield NO_SDK


_WRITTEN: tuple[Action, ...] = ("create", "update")


def _tell(
    invocation: Invocation, host: Host, plan: SetupPlan, *, root: Path | None, warnings: list[str], is_dry_run: bool
) -> None:
    if invocation.as_json:
        invocation.out.json(
            {
                "host": host.name,
                "scope": "global" if root is None else "project",
                "files": [
                    {"path": str(edit.path), "action": edit.action, "lines": list(edit.lines)} for edit in plan.edits
                ],
                "warnings": warnings,
                "dry_run": is_dry_run,
            }
        )
        return
    words = _PLANNED if is_dry_run else _DONE
    for edit in plan.edits:
        if edit.action == "keep" and not edit.path.exists():  # nothing to take out, where there never was anything
            continue
        invocation.out.lines([(f"{words[edit.action]} {edit.path}", "plain")])
        if is_dry_run:
            invocation.out.lines((f"  {line}", "plain") for line in edit.lines)
    invocation.out.warn(warnings)
