"""The command that serves the tools over the Model Context Protocol."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.invocation import Invocation
from backstory.entrypoints.cli.parameters import WholeNumber

if TYPE_CHECKING:
    from backstory.bootstrap import App
    from backstory.config import Settings
    from backstory.entrypoints.http.announcement import Announcement

_STORE = "BACKSTORY_STORE_URL"
_LIBRARIES = ("mcp",)
_HTTP_LIBRARIES = ("mcp", "starlette", "uvicorn", "h11")
_LOG_FORMAT = "time=%(asctime)s level=%(levelname)s logger=%(name)s %(message)s"


@command("mcp")
@click.option("--http", is_flag=True, help="Serve over streamable HTTP at /mcp, not over standard input and output.")
@click.option(
    "--port",
    type=WholeNumber(0, 65_535),
    metavar="N",
    help="The port of --http; 0 takes a free one.  [default: serve.port]",
)
def mcp(invocation: Invocation, http: bool, port: int | None) -> None:
    """Serve the memory tools over MCP, the Model Context Protocol.

    An agent starts this itself. Most are configured with a few lines of JSON, in a file of theirs:

    \b
      {
        "mcpServers": {
          "backstory": {"command": "backstory", "args": ["mcp"]}
        }
      }

    VS Code writes "servers" in place of "mcpServers". OpenCode has this in its opencode.json:

    \b
      {
        "mcp": {
          "backstory": {"type": "local", "command": ["backstory", "mcp"]}
        }
      }

    The project is the folder that the agent says it works in (its roots), else the one it started this process in;
    --project settles it. Logs go to standard error. See docs/how-to/use-over-mcp.md.
    """
    # before numpy loads: its second thread spins after each small product and doubles the CPU time of a recall
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if invocation.store_url is not None:
        os.environ[_STORE] = invocation.store_url  # each folder's settings are read anew, and must name the same store
    _needs_extra(_HTTP_LIBRARIES if http else _LIBRARIES)
    if http:
        _serve_http(invocation, port)
    elif port is not None:
        from backstory.errors import InputError

        raise InputError("--port is for --http", field="port")
    else:
        _serve_stdio(invocation)


def _serve_stdio(invocation: Invocation) -> None:
    """For the one client that started this process."""
    from backstory.entrypoints.mcp.stdio import serve_stdio

    settings = _settings(invocation)
    given = None if invocation.project_folder is None else invocation.project_folder.absolute()
    folder = given or _current_folder()
    serve_stdio(_open(settings, folder), folder=folder, asks_roots=given is None)


def _serve_http(invocation: Invocation, port: int | None) -> None:
    """The server of ``backstory serve``, which has the protocol at /mcp, announced for clients of the protocol."""
    from backstory.bootstrap import open_app
    from backstory.config import load
    from backstory.entrypoints.http.process import serve

    settings = load(env=os.environ, project_root=None, flags={"serve.port": port}).settings
    _log(invocation, settings)
    folder = invocation.project_folder
    serve(
        open_app(settings, folder=folder),
        data_dir=settings.data_dir,
        tell=lambda server: _tell(invocation, server, settings.data_dir, folder),
        folder=folder,
    )


def _tell(invocation: Invocation, server: Announcement, data_dir: Path, folder: Path | None) -> None:
    from urllib.parse import quote

    from backstory.entrypoints.cli.output import flush
    from backstory.entrypoints.http.token import token_file

    project = "" if folder is None else f"?project={quote(str(folder.absolute()))}"
    url, file = f"{server.url}/mcp{project}", token_file(data_dir)
    invocation.out.lines(
        [
            (f"The Model Context Protocol is served at {url}; Ctrl-C ends it.", "strong"),
            (f"Every request needs the header Authorization: Bearer TOKEN. The token is in {file}.", "plain"),
        ]
    )
    flush()


def _needs_extra(libraries: Sequence[str]) -> None:
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in libraries):
        from backstory.errors import ConfigError

        extras = "mcp,serve" if libraries is _HTTP_LIBRARIES else "mcp"
        raise ConfigError(
            "this needs the SDK of the protocol, not installed here",
            option="mcp",
            hint=f"pip install 'backstory[{extras}]'",
        )


def _settings(invocation: Invocation) -> Settings:
    """The user's own settings, without those that are wrong; each project's are read when a client works in it."""
    from backstory.config import load_leniently

    resolved, faults = load_leniently(env=os.environ, project_root=None)
    _log(invocation, resolved.settings)
    for fault in faults:
        logging.getLogger(__name__).warning("event=setting_left_out reason=%s", fault)
    return resolved.settings


def _log(invocation: Invocation, settings: Settings) -> None:
    level = "DEBUG" if invocation.verbose else settings.log.level.upper()
    logging.basicConfig(stream=sys.stderr, level=level, format=_LOG_FORMAT)


def _current_folder() -> Path | None:
    """The folder this was started in, where it can be one project."""
    from backstory.entrypoints.mcp.roots import is_one_place

    try:
        here = Path.cwd()
    except OSError:  # it is gone
        return None
    return here if is_one_place(here) else None


def _open(settings: Settings, folder: Path | None) -> App:
    """The application; without an embedder where that one lacks a setting."""
    from backstory.bootstrap import open_app
    from backstory.errors import ConfigError

    try:
        return open_app(settings, folder=folder)
    except ConfigError as error:
        logging.getLogger(__name__).warning("event=no_embedder reason=%s", error)
        return open_app(replace(settings, embedder=replace(settings.embedder, provider="none")), folder=folder)
