"""Whose rows a statement means. This holds also for roles that row-level security spares; its policies are in
``migrations/row_security.sql``.

Every transaction is begun for one tenant. Inserts leave the tenant column to its default; every other statement names
``TENANT``, since superusers and roles with BYPASSRLS would see the rows of all.
"""

from __future__ import annotations

from typing import Any

import psycopg

TENANT = "current_setting('backstory.tenant')"


def lock_tenant(raw: psycopg.Connection[Any]) -> None:
    """Wait for the tenant's other writers of memories and vectors, and keep them waiting until this transaction ends.

    What a statement after this reads, it reads as they left it: writes run at READ COMMITTED.
    """
    lock = f"SELECT 1 FROM tenants WHERE tenant = {TENANT} FOR NO KEY UPDATE"
    if raw.execute(lock).fetchone() is None:
        raw.execute("INSERT INTO tenants DEFAULT VALUES ON CONFLICT (tenant) DO NOTHING")
        raw.execute(lock)
