"""Opening the schema safely: whether it is ours, its format, what its server can do. Transactions are elsewhere."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import conninfo, errors, sql

from backstory.adapters.deadline import LEAST_WAIT_S
from backstory.adapters.stores.postgres import migrations
from backstory.adapters.stores.postgres.bounded import GRACE_S, BoundedConnection
from backstory.errors import ConfigError, SchemaTooNew, StoreDamaged, StoreUnavailable

_Raw = psycopg.Connection[Any]
_LOCK = 0x42535459  # first half of the key of the advisory lock: tells ours from another program's
_LEAST_PGVECTOR = (0, 5)  # the first with HNSW
_LEAST_CONNECT_S = 2  # what libpq makes of less
_LEAST_STATEMENT_S = 0.25  # however late it is: to work is not to wait, and most take some milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a store is. ``parameters`` hold the password: they are for the driver alone."""

    parameters: dict[str, Any]
    schema: str
    tenant: str
    silence_s: float
    """How long a new connection waits for its server's answers."""

    def __repr__(self) -> str:
        return f"Address({self.location})"

    @property
    def location(self) -> str:
        """For people: neither user nor password."""
        hosts = str(self.parameters.get("host") or self.parameters.get("hostaddr") or "local")
        ports = str(self.parameters.get("port") or "5432")
        database = self.parameters.get("dbname") or ""
        return f"postgresql://{hosts}:{ports}/{database} (schema {self.schema})"

    @property
    def seeks_writer(self) -> bool:
        """Whether connections are only made to a server that takes writes."""
        return self.parameters.get("target_session_attrs") in ("read-write", "primary")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What was found at the first use. ``vector_schema`` is where pgvector's types are, None without a usable one."""

    read_only: bool
    vector_schema: str | None
    vector_version: tuple[int, ...] = ()


def parse_address(dsn: str, *, schema: str, tenant: str, timeout: timedelta) -> Address:
    """Read a URL or a "key=value" string, and add what it leaves open. Raises ConfigError, which never quotes it."""
    given: dict[str, Any] | None = None
    with contextlib.suppress(psycopg.Error):
        given = dict(conninfo.conninfo_to_dict(dsn))
    if given is None:  # said without the text and the driver's complaint about it: both may hold the password
        raise ConfigError(
            "the address of the Postgres store cannot be read; it looks like postgresql://user@host:5432/database",
            option="store.url",
        )
    for name, value, most in (("schema", schema, 63), ("tenant", tenant, 200)):
        if not value or len(value.encode("utf-8", "replace")) > most or not value.isprintable():
            raise ConfigError(f"the {name} has to be 1 to {most} printable characters", option=f"store.{name}")
    seconds = max(_LEAST_CONNECT_S, math.ceil(timeout.total_seconds()))
    parameters: dict[str, Any] = {
        "connect_timeout": seconds,  # for each host
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": seconds * 1000,
        "application_name": "backstory",
        "client_encoding": "UTF8",
    }
    if "," in str(given.get("host") or given.get("hostaddr") or ""):
        parameters["target_session_attrs"] = "read-write"
        parameters["connect_timeout"] = _LEAST_CONNECT_S  # one of them may be dead, and others wait behind it
    silence_s = timeout.total_seconds() + GRACE_S
    return Address(parameters=parameters | given, schema=schema, tenant=tenant, silence_s=silence_s)


def connect(address: Address, *, within_s: float | None = None) -> BoundedConnection:
    """A new connection; each statement is a transaction of its own. No prepared statements and no settings that outlive
    a transaction, so that a pooler may stand in between. Each host gets ``within_s``, from 2 s up, where that is less
    than the address allows."""
    parameters = dict(address.parameters)
    allowed = str(parameters["connect_timeout"])
    if within_s is not None and allowed.isdecimal():  # what is no number the driver complains about
        left = max(_LEAST_CONNECT_S, math.ceil(within_s))
        parameters["connect_timeout"] = min(int(allowed) or left, left)
    raw = BoundedConnection.connect(**parameters, autocommit=True, prepare_threshold=None)
    raw.silence_s = address.silence_s
    return raw


def settings(address: Address, *, vector_schema: str | None, timeout: timedelta, left_s: float | None = None) -> str:
    """The statements that begin every transaction, in one round trip. ``left_s`` is how many seconds of ``timeout`` are
    left for it, all of them if None."""
    path = [address.schema, *([] if vector_schema in (None, address.schema) else [vector_schema]), "pg_temp"]
    names = ", ".join(sql.Identifier(name).as_string(None) for name in path if name)
    left_s = timeout.total_seconds() if left_s is None else left_s
    statement_ms, lock_ms = (round(max(left_s, least) * 1000) for least in (_LEAST_STATEMENT_S, LEAST_WAIT_S))
    tenant = sql.Literal(address.tenant).as_string(None)
    # the server ends a transaction whose client is gone, before those who wait for its locks give up
    idle_ms = max(1, round(timeout.total_seconds() * 500))
    return (
        f"SET LOCAL search_path TO {names}; SET LOCAL backstory.tenant TO {tenant};"
        f" SET LOCAL statement_timeout TO {statement_ms}; SET LOCAL lock_timeout TO {lock_ms};"
        f" SET LOCAL idle_in_transaction_session_timeout TO {idle_ms}"
    )


def open_schema(raw: _Raw, address: Address, *, create: bool, timeout: timedelta) -> Server:
    """Make the schema if it is not there and ``create``, bring its format up to date, and tell what the server can do.

    Another program's schema and newer formats are refused before anything is written.
    """
    read_only = _check_server(raw)
    version = check_identity(raw, address)
    if version == 0 and not create:
        raise StoreUnavailable(f"there is no store at {address.location}")
    behind = version < migrations.latest_version()
    if behind and read_only:
        what = "has an older format" if version else "is not there yet"
        raise StoreUnavailable(f"the Postgres store {what}, and its server is read-only, so it cannot be opened")
    if behind:
        _migrate(raw, address, timeout=timeout)
    return _prepare_pgvector(raw, address, read_only=read_only, timeout=timeout)


def _check_server(raw: _Raw) -> bool:
    row = raw.execute("SELECT current_setting('transaction_read_only') = 'on', current_setting('server_encoding')")
    read_only, encoding = row.fetchone() or (False, "")
    if encoding != "UTF8":
        raise StoreUnavailable(f"the database of the Postgres store has the encoding {encoding}; it has to be UTF8")
    return bool(read_only)


def check_identity(raw: _Raw, address: Address) -> int:
    """The schema's format version; 0 where there is none or an empty one. Never writes."""
    tables = raw.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace"
        " WHERE s.nspname = %s AND c.relkind IN ('r', 'p')",
        (address.schema,),
    ).fetchall()
    if not tables:
        return 0
    if ("schema_version",) not in tables or ("schema_options",) not in tables:
        raise StoreDamaged(f"the schema {address.schema} is another program's; it was left as it is")
    statement = sql.SQL("SELECT coalesce(max(version), 0) FROM {}").format(
        sql.Identifier(address.schema, "schema_version")
    )
    version = int((raw.execute(statement).fetchone() or (0,))[0])
    if version > migrations.latest_version():
        raise SchemaTooNew(
            f"the Postgres store has format {version}, this Backstory reads up to {migrations.latest_version()}; "
            "upgrade Backstory. Nothing was changed"
        )
    return version


def check_rights(raw: _Raw) -> None:
    """Raise StoreUnavailable where this role may not add memories and evidence."""
    statement = (
        "SELECT name FROM unnest(ARRAY['memories', 'changes', 'memory_terms', 'vectors', 'messages', 'passages']) name "
        "WHERE NOT has_table_privilege(name, 'INSERT')"
    )
    barred = [str(name) for (name,) in raw.execute(statement)]
    if barred:
        raise StoreUnavailable(
            f"the user of the Postgres store may not write to {', '.join(barred)}; grant it the rights"
        )


def _migrate(raw: _Raw, address: Address, *, timeout: timedelta) -> None:
    """Each migration in a transaction of its own, which waits for those of other processes."""
    more = True
    while more:
        with _changing_the_schema(raw, address, timeout=timeout):
            # even IF NOT EXISTS needs the right to create it
            if not raw.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (address.schema,)).fetchone():
                raw.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(address.schema)))
            more = migrations.apply_next(raw)
    _add_pgvector(raw, address, timeout=timeout)


def _add_pgvector(raw: _Raw, address: Address, *, timeout: timedelta) -> None:
    """Install pgvector where the server has it and allows it."""
    not_allowed = contextlib.suppress(errors.InsufficientPrivilege, errors.InvalidSchemaName, errors.UniqueViolation)
    with not_allowed, _changing_the_schema(raw, address, timeout=timeout):
        if raw.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchone():
            raw.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")


@contextlib.contextmanager
def _changing_the_schema(raw: _Raw, address: Address, *, timeout: timedelta) -> Iterator[None]:
    with raw.transaction():
        raw.execute(settings(address, vector_schema=installed_pgvector(raw)[0], timeout=timeout))
        raw.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (_LOCK, address.schema))
        raw.execute("SET LOCAL statement_timeout TO 0")  # an index over a million rows takes its time
        yield


def _prepare_pgvector(raw: _Raw, address: Address, *, read_only: bool, timeout: timedelta) -> Server:
    """Use pgvector where it is installed, whoever did so and when; do without it where not."""
    schema, version = installed_pgvector(raw)
    options = sql.Identifier(address.schema, "schema_options")
    query = sql.SQL("SELECT 1 FROM {} WHERE name = %s").format(options)
    ready = raw.execute(query, (migrations.PGVECTOR,)).fetchone() is not None
    if version >= _LEAST_PGVECTOR and not ready and not read_only:
        not_allowed = contextlib.suppress(errors.InsufficientPrivilege)
        with not_allowed, _changing_the_schema(raw, address, timeout=timeout):
            migrations.apply_option(raw, migrations.PGVECTOR)
            ready = True
    usable = ready and version >= _LEAST_PGVECTOR
    return Server(
        read_only=read_only, vector_schema=schema if usable else None, vector_version=version if usable else ()
    )


def installed_pgvector(raw: _Raw) -> tuple[str | None, tuple[int, ...]]:
    """The schema and the version of pgvector in this database."""
    row = raw.execute(
        "SELECT s.nspname, e.extversion FROM pg_extension e JOIN pg_namespace s ON s.oid = e.extnamespace"
        " WHERE e.extname = 'vector'"
    ).fetchone()
    return (None, ()) if row is None else (str(row[0]), tuple(int(part) for part in str(row[1]).split(".")))
