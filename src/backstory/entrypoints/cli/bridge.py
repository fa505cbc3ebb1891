"""The command that OpenCode's plugin starts."""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from backstory.bootstrap import App
    from backstory.config import Settings


@click.command()
def bridge() -> None:
    """Serve OpenCode's plugin over standard input and output.

    The plugin starts this itself; there is nothing to do here by hand. It speaks JSON-RPC 2.0, one object a line, and
    ends when its input ends.
    """
    # before numpy loads: its second thread spins after each small product and doubles the CPU time of a recall
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from backstory.config import load_leniently
    from backstory.entrypoints.opencode.server import serve_stdio

    resolved, faults = load_leniently(env=os.environ, project_root=None)
    logging.basicConfig(
        stream=sys.stderr,
        level=resolved.settings.log.level.upper(),
        format="time=%(asctime)s level=%(levelname)s logger=%(name)s %(message)s",
    )
    for fault in faults:
        logging.getLogger(__name__).warning("event=setting_left_out reason=%s", fault)
    serve_stdio(_open(resolved.settings))


def _open(settings: Settings) -> App:
    """The application; without an embedder where that one lacks a setting."""
    from backstory.bootstrap import open_app
    from backstory.errors import ConfigError

    try:
        return open_app(settings)
    except ConfigError as error:
        logging.getLogger(__name__).warning("event=no_embedder reason=%s", error)
        return open_app(replace(settings, embedder=replace(settings.embedder, provider="none")))
