"""Whether the agents that Backstory was set up in still find it, and call it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from backstory.entrypoints.agents.hosts import AGENTS, Entry, Host, Launch, Surroundings
from backstory.entrypoints.agents.last_calls import last_call
from backstory.entrypoints.agents.setup import is_set_up, plan_setup
from backstory.entrypoints.doctor import Check
from backstory.entrypoints.local_time import shown_time
from backstory.errors import InstallError


def check_agents(around: Surroundings, project: Path, start: Launch, data_dir: Path) -> Iterator[Check]:
    """Agents that Backstory is set up in, for all projects or for the one at ``project``; nothing of the others."""
    for host in AGENTS.values():
        roots = (None, project) if host.in_projects else (None,)
        for root in roots:
            try:
                place = Surroundings(env=around.env, platform=around.platform, root=root)
                entries = host.entries(place, start)
            except InstallError:
                continue
            if is_set_up(entries):
                yield _check(host, entries, root, data_dir)


def _check(host: Host, entries: Sequence[Entry], root: Path | None, data_dir: Path) -> Check:
    name, mend = host.name, f"`backstory install {host.name}{' --project' if root else ''}`"
    files = ", ".join(dict.fromkeys(str(entry.file) for entry in entries))
    try:
        stale = [edit for edit in plan_setup(entries, root=root).edits if edit.action != "keep"]
    except InstallError as error:
        return Check(name=name, state="fail", message=str(error), mend="correct that file, or move it away")
    if stale:
        message = f"{host.title} was set up by another Backstory, or in part: {', '.join(str(e.path) for e in stale)}"
        return Check(name=name, state="warn", message=message, mend=mend)
    if find_spec("mcp") is None:
        message = f"{host.title} is set up in {files}, but the MCP SDK is not installed"
        return Check(name=name, state="warn", message=message, mend="pip install 'backstory[mcp]'")
    message = f"{host.title} is set up in {files}"
    if not host.with_hooks:
        return Check(name=name, state="ok", message=message)
    latest = last_call(host.name, data_dir)
    if latest is None:
        return Check(name=name, state="warn", message=f"{message}, but no hook has called yet", mend=host.after)
    message += f"; its last hook was {latest.event} on {shown_time(latest.time)} in {latest.directory}"
    return Check(name=name, state="ok", message=message)
