"""What a large import does once instead of row by row: the index over its vectors, and the look of the planner."""

from __future__ import annotations

import contextlib
from functools import partial

from backstory.adapters.stores.postgres import pgvector, planner
from backstory.adapters.stores.postgres.connection import Connection
from backstory.adapters.stores.postgres.looking import Raw
from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.errors import StoreUnavailable
from backstory.ports.models import EmbeddingModel


async def drop_indexes(connection: Connection) -> None:
    """Drop the indexes over all vectors of the tenant, which are about to be replaced: to take a vector out of one and
    to put another in costs several times what ``settle`` takes for it. Until then all are compared."""

    models = await connection.read(_models)
    if connection.has_vector:
        for model in models:
            await connection.write(partial(pgvector.unindex, model=model), again=partial(pgvector.unindex, model=model))


async def settle(connection: Connection, *, indexed_from: int = pgvector.INDEXED_FROM) -> None:
    """Make the index of each model that has ``indexed_from`` vectors and none yet, and have the planner look at all
    tables. Others read meanwhile; writers of vectors wait, up to 2 ms for each."""
    with contextlib.suppress(StoreUnavailable):  # slower but right without; the next vectors try again
        for model in await connection.read(_models):
            if connection.has_vector:
                await connection.write(partial(pgvector.keep_indexed, model=model, least=indexed_from))
    await planner.keep_informed(connection, planner.ALL, growth=planner.SOME)


def _models(raw: Raw) -> list[EmbeddingModel]:
    statement = f"SELECT DISTINCT model, dimension FROM vectors WHERE tenant = {TENANT}"
    return [EmbeddingModel(name=name, dimension=dimension) for name, dimension in raw.execute(statement).fetchall()]
