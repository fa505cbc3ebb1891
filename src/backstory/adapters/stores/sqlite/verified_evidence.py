"""The invariants of sessions, messages, frozen texts and what is derived from them, each as a check."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from backstory.adapters.stores.sqlite.blobs import blob_from_row
from backstory.adapters.stores.sqlite.looking import Look, Rule
from backstory.adapters.stores.sqlite.rows import from_us
from backstory.adapters.stores.sqlite.verified_memories import index_trouble, sums_trouble
from backstory.domain.conversation import Part, Role, ShownMemory
from backstory.domain.evidence_passages import indexed_text, passages_of
from backstory.domain.ids import PartId
from backstory.domain.text import ANALYSER_VERSION, analyse
from backstory.ports.upkeep import Invariant, Severity

T = TypeVar("T")

_SESSIONS_SAMPLED = 20  # the latest ones, without ``full``
_BLOB_BYTES = 64_000_000  # as packed, that are read without ``full``; it takes about 0.3 s

MISSING_BLOBS = "SELECT DISTINCT part, hash FROM part_blobs WHERE hash NOT IN (SELECT hash FROM blobs)"
LONE_BLOBS = "SELECT hash FROM blobs WHERE hash NOT IN (SELECT hash FROM part_blobs)"
LONE_REFS = "SELECT DISTINCT part FROM part_blobs WHERE part NOT IN (SELECT id FROM parts)"

SHOWN_BY_BLOCKS = (
    "SELECT json_extract(item.value, '$.memory') AS memory, block.message AS message "
    "FROM recall_blocks block, json_each(block.shown) item"
)


def _evidence(look: Look) -> Iterator[str]:
    for message, role, created, session in look.raw.execute("SELECT id, role, created_us, session FROM messages"):
        if not is_message_read(role, created) or not message or not session:
            yield f"message {message}: cannot be read"
    for session, created, updated in look.raw.execute("SELECT id, created_us, updated_us FROM sessions"):
        if not is_time(created) or not is_time(updated):
            yield f"session {session}: has times that no clock shows"
    for message, shown in look.raw.execute("SELECT message, shown FROM recall_blocks"):
        if not is_shown(shown):
            yield f"block of message {message}: what it showed cannot be read"
    for session, shown in look.raw.execute("SELECT session, shown FROM snapshots"):
        if not is_list_of_texts(shown):
            yield f"snapshot of session {session}: what it shows cannot be read"
    yield from _blobs(look)


def _blobs(look: Look) -> Iterator[str]:
    for part, name in look.raw.execute(MISSING_BLOBS):
        yield f"part {part}: its blob {name} is missing"
    sizes = look.raw.execute("SELECT rowid, length(packed) FROM blobs ORDER BY rowid DESC").fetchall()
    for n in [n for n, _ in sizes] if look.full else sampled_blobs(sizes):
        row = look.raw.execute("SELECT hash, size, packing, packed FROM blobs WHERE rowid = ?", (n,)).fetchone()
        if trouble := blob_trouble(row):
            yield trouble


def sampled_blobs(sizes: Sequence[tuple[T, int]], *, most_bytes: int = _BLOB_BYTES) -> list[T]:
    """Which of the blobs, given with their packed bytes from the newest on, are to be read: all, where those are few;
    else the newest for half of what may be read, and for the other half some of all ages, the oldest among them."""
    if sum(size for _, size in sizes) <= most_bytes:
        return [name for name, _ in sizes]
    left = most_bytes // 2
    newest: list[T] = []
    for name, size in sizes:
        if size > left:
            break
        left -= size
        newest.append(name)
    older = sizes[len(newest) :]
    step = math.ceil(sum(size for _, size in older) / (most_bytes // 2))
    return newest + [name for name, _ in older[::-1][::step]]


def blob_trouble(row: Sequence[Any]) -> str | None:  # Any: rows hold whatever a statement selects
    """What is wrong with a blob, of which hash, size, packing and bytes are given."""
    from backstory.domain.blob import content_of

    try:
        content_of(blob_from_row(row))
    except (ValueError, TypeError) as error:
        return f"blob {row[0]}: cannot be read: {error}"
    return None


def _loose_blobs(look: Look) -> Iterator[str]:
    """Nothing is kept that no part refers to."""
    for (name,) in look.raw.execute(LONE_BLOBS):
        yield f"blob {name}: no part refers to it"
    for (part,) in look.raw.execute(LONE_REFS):
        yield f"part_blobs of {part}: there is no such part"


def is_message_read(role: object, created: object) -> bool:
    """Whether a message has a role that we know, and a time."""
    return role in set(Role) and is_time(created)


def is_time(value: object) -> bool:
    """Whether a number of microseconds is a time that clocks show."""
    try:
        from_us(int(str(value)))
    except (ValueError, OverflowError):
        return False
    return True


def is_shown(text: object) -> bool:
    """Whether a JSON text says which memories a block showed."""
    try:
        for item in json.loads(str(text)):
            ShownMemory(**item)
    except (ValueError, TypeError):
        return False
    return True


def is_list_of_texts(text: object) -> bool:
    """Whether a JSON text is a list of texts."""
    try:
        value = json.loads(str(text))
    except ValueError:
        return False
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _withheld(look: Look) -> Iterator[str]:
    """No frozen text shows what was forgotten, or made private or local-only since."""
    hidden = "SELECT id FROM memories WHERE state = 'deleted' OR sensitivity <> 'normal'"
    blocks = (
        f"SELECT DISTINCT b.message FROM recall_blocks b JOIN ({SHOWN_BY_BLOCKS}) s ON s.message = b.message "
        f"WHERE b.text <> '' AND s.memory IN ({hidden})"
    )
    for (message,) in look.raw.execute(blocks):
        yield f"block of message {message}: shows a memory that was forgotten, or made private or local-only"
    snapshots = (
        "SELECT session FROM snapshots WHERE EXISTS "
        f"(SELECT 1 FROM json_each(snapshots.shown) item WHERE item.value IN ({hidden}))"
    )
    for (session,) in look.raw.execute(snapshots):
        yield f"snapshot of session {session}: shows a memory that was forgotten, or made private or local-only"


def _showings(look: Look) -> Iterator[str]:
    kept = "SELECT memory, message FROM recall_block_memories"
    for one, other, what in ((SHOWN_BY_BLOCKS, kept, "is not noted"), (kept, SHOWN_BY_BLOCKS, "is noted wrongly")):
        for memory, message in look.raw.execute(f"{one} EXCEPT {other}"):
            yield f"block of message {message}: that it shows {memory} {what}"


def _passages(look: Look) -> Iterator[str]:
    version = look.raw.execute("SELECT analyser FROM passage_statistics").fetchone()
    if version is None or version[0] != ANALYSER_VERSION:
        yield "passages: made by another version, or not yet; the bridge or `backstory embed` makes them"
        return
    last = "" if look.full else f"ORDER BY max(created_us) DESC LIMIT {_SESSIONS_SAMPLED}"
    sessions = look.raw.execute(f"SELECT session FROM messages GROUP BY session {last}").fetchall()
    for (session,) in sessions:
        if _cut_anew(look, session) != _stored(look.raw, session):
            yield f"session {session}: its passages are not those of its messages"
    orphans = "SELECT count(*) FROM passages WHERE message NOT IN (SELECT id FROM messages WHERE removed_us IS NULL)"
    if count := look.raw.execute(orphans).fetchone()[0]:
        yield f"passages: {count} belong to no message"
    yield from index_trouble(look, words="passage_words", rows="passages", counts="passage_vocabulary")
    yield from sums_trouble(look, words="passage_words", statistics="passage_statistics")


_Passages = dict[tuple[str, int], tuple[str, str]]
"""By part and place in it: the text, and the words it is found by."""


def _cut_anew(look: Look, session: str) -> _Passages:
    statement = (
        "SELECT p.id, p.kind, p.text, p.tool, p.synthetic, p.detail, m.role, m.created_us "
        "FROM parts p JOIN messages m ON m.id = p.message WHERE m.removed_us IS NULL AND m.session = ?"
    )
    cut: _Passages = {}
    for row in look.raw.execute(statement, (session,)):
        for position, text in enumerate(passages_of(_part(row), look.limits)):
            tokens = analyse(indexed_text(text, role=Role(row[6]), at=from_us(row[7])))
            cut[row[0], position] = (text, " ".join(tokens))
    return cut


def _part(row: Sequence[object]) -> Part:
    part, kind, text, tool, synthetic, detail = row[:6]
    return Part(
        id=PartId(str(part)),
        kind=str(kind),
        text=str(text),
        tool=None if tool is None else str(tool),
        synthetic=bool(synthetic),
        detail=None if detail is None else str(detail),
    )


def _stored(raw: sqlite3.Connection, session: str) -> _Passages:
    statement = (
        "SELECT x.part, x.position, x.text, w.tokens FROM passages x JOIN messages m ON m.id = x.message "
        "LEFT JOIN passage_words w ON w.rowid = x.n WHERE m.session = ?"
    )
    return {(part, position): (text, tokens) for part, position, text, tokens in raw.execute(statement, (session,))}


EVIDENCE_RULES = (
    Rule(invariant=Invariant.EVIDENCE, severity=Severity.DAMAGE, check=_evidence),
    Rule(invariant=Invariant.EVIDENCE, severity=Severity.OUT_OF_STEP, check=_loose_blobs),
    Rule(invariant=Invariant.WITHHELD, severity=Severity.OUT_OF_STEP, check=_withheld),
    Rule(invariant=Invariant.PASSAGES, severity=Severity.OUT_OF_STEP, check=_passages),
    Rule(invariant=Invariant.SHOWINGS, severity=Severity.OUT_OF_STEP, check=_showings),
)
