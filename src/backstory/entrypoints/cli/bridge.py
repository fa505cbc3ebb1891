"""The command that OpenCode's plugin starts."""

from __future__ import annotations

import logging
import os
import sys

import click


@click.command()
def bridge() -> None:
    """Serve OpenCode's plugin over standard input and output.

    The plugin starts this itself; there is nothing to do here by hand. It speaks JSON-RPC 2.0, one object a line, and
    ends when its input ends.
    """
    # before numpy loads: its second thread spins after each small product and doubles the CPU time of a recall
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from backstory.bootstrap import open_app
    from backstory.config import load
    from backstory.entrypoints.opencode.server import serve_stdio

    resolved = load(env=os.environ, project_root=None)
    logging.basicConfig(
        stream=sys.stderr,
        level=resolved.settings.log.level.upper(),
        format="time=%(asctime)s level=%(levelname)s logger=%(name)s %(message)s",
    )
    serve_stdio(open_app(resolved.settings))
