"""The Postgres backend put together: one schema, one tenant, an object for each port."""

from __future__ import annotations

from datetime import timedelta

from backstory.adapters.stores.postgres.connection import TIMEOUT, Connection
from backstory.adapters.stores.postgres.conversation import PostgresConversations
from backstory.adapters.stores.postgres.digests import PostgresDigests
from backstory.adapters.stores.postgres.doubts import PostgresDoubts
from backstory.adapters.stores.postgres.dreams import PostgresDreams
from backstory.adapters.stores.postgres.erasing import PostgresEraser
from backstory.adapters.stores.postgres.evidence import PostgresEvidenceIndex
from backstory.adapters.stores.postgres.keepsakes import PostgresKeepsakes
from backstory.adapters.stores.postgres.ledger import PostgresLedger
from backstory.adapters.stores.postgres.memories import PostgresMemories
from backstory.adapters.stores.postgres.ocpg.connection import LinkedConnection
from backstory.adapters.stores.postgres.opening import parse_address
from backstory.adapters.stores.postgres.projects import PostgresProjects
from backstory.adapters.stores.postgres.upkeep import PostgresUpkeep
from backstory.adapters.stores.postgres.vectors import PostgresVectorIndex
from backstory.adapters.stores.postgres.words import PostgresTextIndex, reindex_if_stale
from backstory.domain.evidence_passages import PassageLimits
from backstory.ports.backend import Backend


def open_postgres(
    dsn: str,
    *,
    schema: str = "backstory",
    tenant: str = "default",
    create: bool = True,
    passages: PassageLimits | None = None,
    timeout: timedelta = TIMEOUT,
    ocpg: bool = True,
) -> Backend:
    """A backend over the tables in ``schema``, of which it sees the rows of ``tenant``.

    The server is reached, and the schema made if ``create``, at the first use. ``dsn`` is a URL or a "key=value"
    string of libpq; what it leaves open comes from PGHOST, PGPASSWORD, the password file and so on. Where it names
    several hosts, the one that takes writes is used. ``passages`` says how much of each part of a message can be
    searched; ``timeout`` bounds each connect, statement and wait for a lock. With ``ocpg``, an ocpg database that is
    found beside our schema is kept in step with it. Raises ConfigError for a ``dsn`` that is none.
    """
    limits = passages or PassageLimits()
    linked = LinkedConnection if ocpg else Connection

    def connect(*, create: bool) -> Connection:
        return linked(dsn, on_open=reindex_if_stale, schema=schema, tenant=tenant, create=create, timeout=timeout)

    connection = connect(create=create)
    address = parse_address(dsn, schema=schema, tenant=tenant, timeout=timeout)
    return Backend(
        memories=PostgresMemories(connection),
        text=PostgresTextIndex(connection),
        vectors=PostgresVectorIndex(connection),
        conversations=PostgresConversations(connection, limits),
        evidence=PostgresEvidenceIndex(connection, limits),
        projects=PostgresProjects(connection),
        ledger=PostgresLedger(connection),
        digests=PostgresDigests(connection),
        dreams=PostgresDreams(connection),
        doubts=PostgresDoubts(connection),
        keepsakes=PostgresKeepsakes(connection),
        upkeep=PostgresUpkeep(
            connection,
            limits,
            address=address,
            making=lambda: connect(create=True),
            timeout=timeout,
        ),
        eraser=PostgresEraser(connection, limits, address=address),
    )
