"""From the roots that a client names, or the folder that a server was started in, to the folder of a project."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote_to_bytes

from backstory.adapters.project_folder import shared_git_folder

MAX_ROOTS = 50
_LOCAL_FILE = re.compile(r"file:(?://(?:localhost)?)?(/.*)", re.IGNORECASE | re.DOTALL)


def project_folder(uris: Sequence[str]) -> Path | None:
    """Of several roots the first that is a git repository, or is in one; else the first folder. None without any.

    What is no folder of this machine is passed over, and so is one that holds everything. Cost: some file system
    calls for each root.
    """
    folders = [folder for uri in uris[:MAX_ROOTS] if (folder := folder_of(uri)) is not None and is_one_place(folder)]
    return next((folder for folder in folders if shared_git_folder(folder)), folders[0] if folders else None)


def folder_of(uri: str) -> Path | None:
    """The folder that a ``file:`` address names; None for all else."""
    found = _LOCAL_FILE.fullmatch(uri)
    path = None if found is None else Path(os.fsdecode(unquote_to_bytes(found[1])))
    try:
        return path if path is not None and path.is_dir() else None
    except (OSError, ValueError):  # a NUL in it, a name that is too long, a folder above it that is locked
        return None


def is_one_place(folder: Path) -> bool:
    """Whether a folder can be one project: not the root of all files, nor a home, unless that is a repository.

    Desktop programs start their servers there, for whatever the user has open.
    """
    here = Path(os.path.realpath(folder))
    if here == Path(here.anchor):
        return False
    return here != Path(os.path.realpath(Path.home())) or shared_git_folder(here) is not None
