"""The store that the settings name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from backstory.config import Settings
from backstory.errors import ConfigError
from backstory.ports.backend import Backend

if TYPE_CHECKING:
    from collections.abc import Callable


def backend(settings: Settings, folder: Path, *, create: bool) -> Backend:
    from backstory.domain.evidence_passages import PassageLimits

    passages = PassageLimits(tool=settings.archive.tool_passages)
    kind, _, place = settings.store.url.partition("://")
    match kind:
        case "memory":
            from backstory.adapters.stores.memory import open_memory_store

            return open_memory_store()
        case "postgresql":
            open_postgres = _postgres()
            return open_postgres(
                _with_password(settings.store.url, settings.store.password),
                schema=settings.store.schema,
                tenant=settings.store.tenant,
                ocpg=settings.store.ocpg == "auto",
                create=create,
                passages=passages,
            )
        case "git":
            from backstory.adapters.stores.gitbranch.store import open_git

            repository = Path(place) if place else folder
            index = settings.git_index(_repository_name(repository, create=create))
            ref, also = settings.store.ref, [name for name in settings.store.also.split() if name]
            return open_git(repository, ref=ref, also=also, index=index, create=create, passages=passages)
        case _:
            from backstory.adapters.stores.sqlite.store import open_sqlite

            path = settings.database_file
            assert path is not None  # ``store_url`` lets no other kind through
            return open_sqlite(path, create=create, passages=passages)


def _postgres() -> Callable[..., Backend]:
    try:
        from backstory.adapters.stores.postgres.store import open_postgres
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "psycopg":
            raise
        needs = "a Postgres store needs psycopg, not installed here: pip install 'backstory[postgres]'"
        raise ConfigError(needs, option="store.url", hint="install it, or name another store with --store") from error
    return open_postgres


def _repository_name(repository: Path, *, create: bool) -> str:
    """What its local file is called: by its token, or by its place where it has none."""
    from hashlib import blake2b

    from backstory.adapters.project_folder import shared_git_folder
    from backstory.adapters.stores.gitbranch.token import repository_token

    git_dir = shared_git_folder(repository)
    token = None if git_dir is None else repository_token(git_dir, create=create)
    place = str(git_dir or repository).encode("utf-8", "surrogateescape")
    return token or blake2b(place, digest_size=12).hexdigest()


def _with_password(address: str, password: str | None) -> str:
    if password is None:
        return address
    from psycopg import ProgrammingError
    from psycopg.conninfo import make_conninfo

    try:
        return make_conninfo(address, password=password)
    except ProgrammingError:
        return address  # opening says what is wrong with it
