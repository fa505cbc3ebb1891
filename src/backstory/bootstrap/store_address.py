"""A fingerprint of where a store is, by which two processes find out that they mean the same one."""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from urllib.parse import urlsplit

from backstory.config import Settings


def store_address(settings: Settings, folder: Path) -> str:
    """The same for settings that name the same store, and another for another one; no password goes into it.

    ``folder`` is where a ``git`` store looks for its repository. One store that is written in two ways may have two.
    Raises ConfigError if there is no data folder.
    """
    parts = "\0".join(_parts(settings, folder))
    return blake2b(parts.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _parts(settings: Settings, folder: Path) -> list[str]:
    store = settings.store
    kind, _, place = store.url.partition("://")
    match kind:
        case "postgresql":
            address = urlsplit(store.url)
            who, _, where = address.netloc.rpartition("@")
            query = "&".join(item for item in address.query.split("&") if not item.startswith("password="))
            return [kind, who.partition(":")[0], where, address.path, query, store.schema, store.tenant, store.ocpg]
        case "git":
            from backstory.adapters.project_folder import shared_git_folder

            repository = Path(place) if place else folder
            found = shared_git_folder(repository) or repository
            return [kind, os.path.realpath(found), store.ref, store.also]
        case _:
            file = settings.database_file
            return [kind] if file is None else ["sqlite", os.path.realpath(file)]
