"""The tables that cannot be made anew, column by column: what a backup holds, and what a restore replaces.

They have the names and columns of the SQLite format (``docs/reference/sqlite-format.md``), so that a backup of either
store is a file of that format. What is derived from them is not here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backstory.adapters.stores.postgres.storable import storable
from backstory.adapters.stores.sqlite.rows import dump

Row = tuple[Any, ...]  # Any: a row holds whatever its columns are

_READ: Mapping[str, str] = {"jsonb": "{0}::text", "texts": "to_jsonb({0})::text"}
_WRITTEN: Mapping[str, str] = {
    "jsonb": "{0}::jsonb",
    "texts": "ARRAY(SELECT jsonb_array_elements_text({0}::jsonb))",
}
_SENT: Mapping[str, str] = {"jsonb": "text", "json": "text", "texts": "text"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table. ``columns`` gives each its type in Postgres, but for three kinds of JSON text: ``jsonb`` and ``texts``
    (an array) are such types in Postgres and text in SQLite, ``json`` is text in both."""

    name: str
    columns: Mapping[str, str]
    key: str
    at_once: int = 500
    """Rows that are read together; few, where one may be large."""

    @property
    def names(self) -> str:
        """The columns, for a statement."""
        return ", ".join(self.columns)

    @property
    def read(self) -> str:
        """What to select in Postgres to get the values that SQLite has."""
        return ", ".join(_READ.get(kind, "{0}").format(name) for name, kind in self.columns.items())

    @property
    def insert(self) -> str:
        """The statement that puts many rows into Postgres; its parameters are the columns as lists."""
        values = ", ".join(_WRITTEN.get(kind, "{0}").format(f"given.{name}") for name, kind in self.columns.items())
        sent = ", ".join(f"%s::{_SENT.get(kind, kind)}[]" for kind in self.columns.values())
        return f"INSERT INTO {self.name} ({self.names}) SELECT {values} FROM unnest({sent}) AS given ({self.names})"

    def storable(self, row: Sequence[Any]) -> Row:
        """A row of SQLite with U+FFFD for what Postgres cannot hold: NUL, which JSON writes as ``\\u0000``."""
        return tuple(
            _STORABLE.get(kind, _as_it_is)(value) for kind, value in zip(self.columns.values(), row, strict=True)
        )


def _as_it_is(value: Any) -> Any:
    return value


def _storable_text(value: Any) -> Any:
    return storable(value)[0]


def _storable_json(value: Any) -> Any:
    return dump(_cleaned(json.loads(value))) if isinstance(value, str) and "\\u" in value else value


_STORABLE: Mapping[str, Callable[[Any], Any]] = {
    "text": _storable_text,
    "json": _storable_json,
    "jsonb": _storable_json,
    "texts": _storable_json,
}


def _cleaned(value: Any) -> Any:
    match value:
        case str():
            return _storable_text(value)
        case dict():
            return {_storable_text(name): _cleaned(item) for name, item in value.items()}
        case list():
            return [_cleaned(item) for item in value]
    return value


def _columns(**names: str) -> dict[str, str]:
    return {name: kind for kind, listed in names.items() for name in listed.split()}


MEMORIES = Table(
    name="memories",
    columns=_columns(
        bigint="n revision expires_us learned_us updated_us confirmed_us surfaced_us used_us helpful irrelevant "
        "surfaced recalled sessions",
        text="id content content_key kind visibility project session area issue tier sensitivity state superseded_by "
        "origin source namespace",
        smallint="pinned",
        json="status provenance",
        float8="confidence weight",
    ),
    key="n",
)
TABLES = (
    Table(name="projects", columns=_columns(text="id name root", bigint="created_us"), key="id"),
    Table(
        name="project_aliases",
        columns=_columns(text="alias project stamp looked", bigint="created_us seen_us"),
        key="alias",
    ),
    Table(name="project_traits", columns=_columns(text="alias trait"), key="alias, trait"),
    MEMORIES,
    Table(name="memory_tags", columns=_columns(bigint="n", int="position", text="tag"), key="n, position"),
    Table(name="memory_sessions", columns=_columns(bigint="n", text="session"), key="n, session"),
    Table(
        name="changes",
        columns=_columns(text="id author action reason session undoes key", bigint="at_us"),
        key="id",
    ),
    Table(
        name="change_edits",
        columns=_columns(text="change", int="position", bigint="n", jsonb="before after"),
        key="change, position",
    ),
    Table(
        name="project_moves",
        columns=_columns(text="change source target", texts="aliases sessions"),
        key="change",
    ),
    Table(
        name="sessions",
        columns=_columns(text="id project host directory parent title", bigint="created_us updated_us deleted_us"),
        key="id",
    ),
    Table(
        name="messages",
        columns=_columns(text="id session role agent model", bigint="created_us completed_us removed_us"),
        key="id",
    ),
    Table(
        name="parts",
        columns=_columns(text="id message session kind text tool detail", smallint="synthetic"),
        key="id",
    ),
    Table(name="blobs", columns=_columns(text="hash packing", bigint="size", bytea="packed"), key="hash", at_once=8),
    Table(
        name="part_blobs",
        columns=_columns(text="part hash media_type", int="position", bigint="size"),
        key="part, position",
    ),
    Table(
        name="recall_blocks",
        columns=_columns(text="message session text silent", jsonb="shown", bigint="created_us"),
        key="message",
    ),
    Table(name="snapshots", columns=_columns(text="session text", jsonb="shown", bigint="created_us"), key="session"),
    Table(
        name="ledger",
        columns=_columns(
            text="id feature model session project outcome",
            bigint="at_us input_tokens output_tokens cost duration_us",
            int="requests",
            smallint="estimated",
        ),
        key="id",
    ),
    Table(
        name="digests",
        columns=_columns(
            text="session strategy shown_for shown_task shown_response current_task suggested_response system_prompt "
            "lease_token problem last_cycle",
            bigint="revision lease_until_us attempts not_before_us last_cycle_us updated_us",
            smallint="due forced",
            json="shown",
        ),
        key="session",
    ),
    Table(
        name="digest_pieces",
        columns=_columns(
            text="session id strategy text parent made_by prompt",
            bigint="position level first_message last_message source_tokens created_us",
            smallint="active",
            json="sources children",
        ),
        key="session, position",
    ),
    Table(
        name="dreams",
        columns=_columns(
            text="session project through target lease_token problem",
            bigint="revision through_us not_before_us lease_until_us attempts updated_us",
            smallint="due",
        ),
        key="session",
    ),
    Table(
        name="summaries",
        columns=_columns(text="project text made_by prompt", bigint="created_us"),
        key="project",
    ),
    Table(
        name="summary_sources",
        columns=_columns(text="project memory", bigint="position"),
        key="project, position",
    ),
    Table(name="doubts", columns=_columns(text="memory anchor reason", bigint="since_us"), key="memory"),
    Table(name="keepsakes", columns=_columns(text="format store key text session memory"), key="format, store, key"),
    Table(
        name="erasures",
        columns=_columns(text="id reason", bigint="at_us", json="memories places remains traces", smallint="finished"),
        key="id",
    ),
    Table(name="erased_parts", columns=_columns(text="part"), key="part"),
    Table(name="vectors", columns=_columns(bigint="n", text="model", int="dimension", bytea="vector words"), key="seq"),
)
"""Each after those that it refers to."""
