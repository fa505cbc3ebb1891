"""Receipts of erasures as rows and back, and where they are kept."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence

from backstory.adapters.stores.sqlite.rows import dump, from_us, to_us
from backstory.domain.ids import ChangeId, MemoryId
from backstory.ports.erasing import Erasure, Receipt, Trace

_RECEIPT = "id, at_us, reason, memories, places, remains, traces, finished"


def receipts(raw: sqlite3.Connection, limit: int) -> list[Receipt]:
    """The receipts, newest first."""
    statement = f"SELECT {_RECEIPT} FROM erasures ORDER BY at_us DESC, id DESC LIMIT ?"
    return [receipt_from_row(row) for row in raw.execute(statement, (limit,)).fetchall()]


def receipt_of(erasure: Erasure, places: Mapping[str, int]) -> Receipt:
    """A receipt for what was erased from the rows; the bytes are still to be cleaned."""
    return Receipt(id=erasure.id, at=erasure.at, reason=erasure.reason, memories=erasure.memories, places=dict(places))


def put_receipt(raw: sqlite3.Connection, receipt: Receipt) -> None:
    """Keep a receipt in place of the one with its id."""
    raw.execute(f"INSERT OR REPLACE INTO erasures ({_RECEIPT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", receipt_row(receipt))


def receipt_row(receipt: Receipt) -> tuple[object, ...]:
    """A receipt as the columns hold it."""
    traces = None
    if receipt.traces is not None:
        found = [[trace.where, trace.count, trace.beside] for trace in receipt.traces]
        traces = dump({"forms": list(receipt.forms), "found": found})
    return (
        receipt.id,
        to_us(receipt.at),
        receipt.reason,
        dump(list(receipt.memories)),
        dump(dict(receipt.places)),
        dump(list(receipt.remains)),
        traces,
        int(receipt.finished),
    )


def receipt_from_row(row: Sequence[object]) -> Receipt:
    """Read what ``receipt_row`` wrote."""
    name, at_us, reason, memories, places, remains, traces, finished = row
    told = None if traces is None else json.loads(str(traces))
    if isinstance(told, list):  # as it was kept before forms were told
        told = {"forms": [], "found": told}
    return Receipt(
        id=ChangeId(str(name)),
        at=from_us(int(str(at_us))),
        reason=str(reason),
        memories=tuple(MemoryId(item) for item in json.loads(str(memories))),
        places=json.loads(str(places)),
        remains=tuple(json.loads(str(remains))),
        traces=None if told is None else tuple(Trace(where=w, count=n, beside=c) for w, n, c in told["found"]),
        forms=() if told is None else tuple(told["forms"]),
        finished=bool(finished),
    )
