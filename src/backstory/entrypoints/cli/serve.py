"""``serve``: the memory for agents that speak HTTP. What it serves is in ``entrypoints/http``."""

from __future__ import annotations

import json
import logging
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.contradictions import refuse_both
from backstory.entrypoints.cli.output import flush, write
from backstory.entrypoints.cli.parameters import WholeNumber

if TYPE_CHECKING:
    from backstory.entrypoints.cli.invocation import Invocation
    from backstory.entrypoints.http.announcement import Announcement

_STORE = "BACKSTORY_STORE"
_LIBRARIES = ("starlette", "uvicorn", "h11")


@command("serve")
@click.option(
    "--port", type=WholeNumber(0, 65_535), metavar="N", help="The port; 0 takes a free one.  [default: serve.port]"
)
@click.option("--host", metavar="ADDRESS", help="The address to listen on.  [default: serve.host]")
@click.option("--socket", type=click.Path(path_type=Path), metavar="FILE", help="Listen on this Unix socket instead.")
@click.option("--print-token", is_flag=True, help="Print the token, and do nothing else.")
def serve(here: Invocation, port: int | None, host: str | None, socket: Path | None, print_token: bool) -> None:
    """Serve the memory over HTTP, to agents on this machine.

    Every request needs the token, which is in a file that only you may read; /docs tells what there is to ask. It ends
    with Ctrl-C or SIGTERM. An address that other machines reach needs a certificate (serve.certificate).
    """
    from backstory.config import load

    refuse_both("--socket", socket is not None, "--host or --port", not (host is None and port is None))
    refuse_both("--print-token", print_token, "an address", not (host is None and port is None and socket is None))
    flags = {
        "store.url": here.store_url,
        "serve.port": port,
        "serve.host": host,
        "serve.socket": None if socket is None else socket.absolute(),
    }
    resolved = load(env=os.environ, project_root=None, flags=flags)
    data_dir = resolved.settings.data_dir
    if print_token:
        _print_token(here, data_dir)
        return
    here.out.warn(resolved.warnings)
    logging.basicConfig(
        level="DEBUG" if here.verbose else resolved.settings.log.level.upper(),
        format="time=%(asctime)s level=%(levelname)s logger=%(name)s %(message)s",
    )
    if here.store_url is not None:
        os.environ[_STORE] = here.store_url  # each folder's settings are read anew, and must name the same store
    _needs_extra()
    # before numpy loads: its second thread spins after each small product and doubles the CPU time of a recall
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from backstory.bootstrap import open_app
    from backstory.entrypoints.http.process import serve as run

    run(open_app(resolved.settings), data_dir=data_dir, tell=lambda server: _tell(here, server, data_dir))


def _print_token(here: Invocation, data_dir: Path) -> None:
    from backstory.entrypoints.http.token import obtain_token, token_file

    token = obtain_token(data_dir)
    if here.out.as_json:
        here.out.json({"token": token, "file": str(token_file(data_dir))})
    else:
        here.out.lines([(token, "plain")])


def _tell(here: Invocation, server: Announcement, data_dir: Path) -> None:
    """Where it listens, once: for programs on one line."""
    from backstory.entrypoints.http.token import token_file

    file = token_file(data_dir)
    if here.out.as_json:
        write(json.dumps(server.as_json() | {"token_file": str(file)}) + "\n")
    else:
        where = server.url if server.socket is None else str(server.socket)
        socket = "" if server.socket is None else f"--unix-socket {shlex.quote(str(server.socket))} "
        header = f"printf 'Authorization: Bearer %s' \"$(cat {shlex.quote(str(file))})\""
        here.out.lines(
            [
                (f"Backstory listens on {where}; Ctrl-C ends it.", "strong"),
                (f"What there is to ask: {server.url}/docs. The token is in {file}, so for example:", "plain"),
                (f"  {header} | curl {socket}-H @- {server.url}/v1/tools", "plain"),
            ]
        )
    flush()


def _needs_extra() -> None:
    from importlib.util import find_spec

    from backstory.errors import ConfigError

    missing = [name for name in _LIBRARIES if find_spec(name) is None]
    if missing:
        needs = f"the server needs {', '.join(missing)}, not installed here"
        raise ConfigError(needs, option="serve", hint="pip install 'backstory[serve]'")
