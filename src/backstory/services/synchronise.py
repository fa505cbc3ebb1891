"""Bring the memories here together with those of another clone."""

from __future__ import annotations

from backstory.errors import InputError
from backstory.ports.backend import Backend
from backstory.ports.synchronisation import Synchronised, Travelling


class Synchronise:
    """Exchanging memories through a remote, where the store can travel."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def with_remote(
        self, remote: str | None = None, *, dry_run: bool = False, trusted: bool = False
    ) -> Synchronised:
        """See ``Travelling.synchronise``. Raises InputError for a store that stays where it is."""
        store = self._backend.memories
        if not isinstance(store, Travelling):
            raise InputError(
                f"the store {store.capabilities.name} has no remote to exchange memories with",
                field="store",
                hint="use a git store, or `backstory export` and `backstory import`",
            )
        return await store.synchronise(remote, dry_run=dry_run, trusted=trusted)
