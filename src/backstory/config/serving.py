"""The options of the doors for other agents: which tools they get, and where a server listens."""

# ruff: noqa: RUF009 - ``option`` makes the field of a dataclass, as ``dataclasses.field`` does

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from backstory.config.options import Group, option
from backstory.config.values import folder

_FILE = "an absolute path; ~ is your home folder"

Toolset = Literal["default", "memory-tree", "ocpg", "opencode-memory", "git-memory", "observational", "all"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ToolSettings(Group):
    """Which tools agents get, in every host."""

    toolset: Toolset = option(
        "default",
        env="BACKSTORY_TOOLSET",
        choices=get_args(Toolset),
        project="never",
        help="Which tools: Backstory's own, or those of an older product under their own names. `backstory tools"
        " --cost` tells what each set costs in every request.",
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ServeSettings(Group):
    """The server for agents that speak HTTP (`backstory serve`), and MCP over HTTP."""

    host: str = option(
        "127.0.0.1",
        maximum=200,
        project="never",
        help="The address to listen on. Any but this machine's own needs a certificate.",
    )
    port: int = option(
        4747,
        minimum=0,
        maximum=65_535,
        allowed="0 to 65535",
        unit="port",
        project="never",
        help="The port; 0 takes a free one.",
    )
    socket: Path | None = option(
        None,
        type=Path,
        check=folder,
        allowed=_FILE,
        project="never",
        help="Listen on this Unix socket, not a port.",
    )
    certificate: Path | None = option(
        None, type=Path, check=folder, allowed=_FILE, project="never", help="The certificate chain for TLS, in PEM."
    )
    certificate_key: Path | None = option(
        None, type=Path, check=folder, allowed=_FILE, project="never", help="The private key of the certificate."
    )
    allowed_hosts: str = option(
        "",
        maximum=2_000,
        project="never",
        help="Names by which clients may address the server, besides those of this machine.",
    )
    allowed_origins: str = option(
        "",
        maximum=2_000,
        project="never",
        help="Web pages that may call the server, such as `https://notes.example`; none if empty.",
    )
    body_max_bytes: int = option(
        1_000_000,
        minimum=1_000,
        maximum=64_000_000,
        unit="bytes",
        project="never",
        help="The largest request that is read.",
    )
