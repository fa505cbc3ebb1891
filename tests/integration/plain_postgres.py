"""A Postgres of the system without pgvector, started for a test run, private to it, gone when it ends."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

DEBIAN = Path("/usr/lib/postgresql")
SERVER_USER = "postgres"  # a server refuses to run as root


def programs() -> Path | None:
    """The folder of the newest server's programs that the system has."""
    found = [path.parent for path in DEBIAN.glob("*/bin/initdb")]
    if (elsewhere := shutil.which("initdb")) is not None:
        found.append(Path(elsewhere).resolve().parent)
    return max(found, default=None, key=lambda folder: (folder.parent.name.zfill(3), str(folder)))


def why_there_is_none() -> str | None:
    """The reason for skipping tests that need the server; None where they can run."""
    if programs() is None:
        return "no Postgres of the system's own here"
    if os.geteuid() == 0 and _user() is None:
        return f"Postgres does not run as root, and there is no user {SERVER_USER}"
    return None


@contextlib.contextmanager
def running() -> Iterator[str]:
    """Start the server; gives the address of its database, for a superuser."""
    folder = Path(tempfile.mkdtemp(prefix="backstory-plain-"))
    bin_folder, user = programs(), _user() if os.geteuid() == 0 else None
    assert bin_folder is not None
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)

    def run(*command: str) -> None:
        who = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        subprocess.run(  # type: ignore[call-overload]  # the keywords are those of one overload or the other
            command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **who
        )

    data = str(folder / "data")
    pg_ctl = str(bin_folder / "pg_ctl")
    try:
        run(str(bin_folder / "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C")
        options = f"-c listen_addresses='' -c fsync=off -k {folder}"
        run(pg_ctl, "-D", data, "-l", str(folder / "log"), "-o", options, "-w", "start")
        try:
            yield f"host={folder} user=postgres dbname=postgres"
        finally:
            run(pg_ctl, "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _user() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(SERVER_USER)
    except KeyError:
        return None
