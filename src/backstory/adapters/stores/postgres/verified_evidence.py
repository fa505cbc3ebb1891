"""The invariants of sessions, messages, frozen texts and what is derived from them in Postgres, each as a check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from backstory.adapters.stores.postgres.looking import Look, Raw, Rule, rows_of
from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.adapters.stores.postgres.verified_memories import orphans
from backstory.adapters.stores.sqlite.rows import from_us
from backstory.adapters.stores.sqlite.verified_evidence import (
    blob_trouble,
    is_list_of_texts,
    is_message_read,
    is_shown,
    is_time,
    sampled_blobs,
)
from backstory.domain.conversation import Part, Role
from backstory.domain.evidence_passages import indexed_text, passages_of
from backstory.domain.ids import PartId
from backstory.domain.text import ANALYSER_VERSION, analyse
from backstory.ports.upkeep import Invariant, Severity

_SESSIONS_SAMPLED = 20  # the latest ones, without ``full``
_BLOBS_AT_ONCE = 8  # of up to a megabyte each
_MOST_PASSAGES = 5000  # whose every term is counted without ``full``

HIDDEN = f"SELECT id FROM memories WHERE tenant = {TENANT} AND (state = 'deleted' OR sensitivity <> 'normal')"
"""The memories that no frozen text may show."""
SHOWN_BY_BLOCKS = (
    "SELECT DISTINCT item ->> 'memory' AS memory, message FROM recall_blocks, jsonb_array_elements(shown) item "
    f"WHERE tenant = {TENANT}"
)
NOTED = f"SELECT memory, message FROM recall_block_memories WHERE tenant = {TENANT}"
PASSAGE_SUMS = f"SELECT count(*), coalesce(sum(length), 0) FROM passages WHERE tenant = {TENANT}"
_HELD = (
    "SELECT p.n, token, count(*) AS count FROM passages p, unnest(string_to_array(p.tokens, ' ')) token "
    f"WHERE p.tenant = {TENANT} GROUP BY p.n, token"
)
_INDEXED = f"SELECT t.n, t.term, t.count FROM passage_terms t WHERE t.tenant = {TENANT}"
WRONG_TERMS = (
    f"SELECT DISTINCT n FROM (({_HELD} EXCEPT {_INDEXED}) UNION ALL ({_INDEXED} EXCEPT {_HELD})) wrong ORDER BY n"
)
"""The passages that the index has other terms of than they hold; also those that are no more."""


MISSING_BLOBS = (
    f"SELECT DISTINCT part, hash FROM part_blobs r WHERE tenant = {TENANT} "
    "AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.tenant = r.tenant AND b.hash = r.hash)"
)
_BLOB_SIZES = (
    "SELECT b.hash, octet_length(b.packed) FROM blobs b LEFT JOIN (SELECT r.hash, max(m.created_us) AS told_us "
    "FROM part_blobs r JOIN parts p ON p.tenant = r.tenant AND p.id = r.part "
    f"JOIN messages m ON m.tenant = p.tenant AND m.id = p.message WHERE r.tenant = {TENANT} GROUP BY r.hash) told "
    f"ON told.hash = b.hash WHERE b.tenant = {TENANT} ORDER BY told.told_us DESC NULLS LAST, b.hash"
)
LONE_BLOBS = (
    f"SELECT hash FROM blobs b WHERE tenant = {TENANT} "
    "AND NOT EXISTS (SELECT 1 FROM part_blobs r WHERE r.tenant = b.tenant AND r.hash = b.hash)"
)
LONE_REFS = (
    f"SELECT DISTINCT part FROM part_blobs r WHERE tenant = {TENANT} "
    "AND NOT EXISTS (SELECT 1 FROM parts p WHERE p.tenant = r.tenant AND p.id = r.part)"
)


def _evidence(look: Look) -> Iterator[str]:
    messages = f"SELECT id, role, created_us, session FROM messages WHERE tenant = {TENANT}"
    for some in rows_of(look.raw, messages):
        for message, role, created, session in some:
            if not is_message_read(role, created) or not message or not session:
                yield f"message {message}: cannot be read"
    sessions = f"SELECT id, created_us, updated_us FROM sessions WHERE tenant = {TENANT}"
    for some in rows_of(look.raw, sessions):
        for session, created, updated in some:
            if not is_time(created) or not is_time(updated):
                yield f"session {session}: has times that no clock shows"
    for some in rows_of(look.raw, f"SELECT message, shown::text FROM recall_blocks WHERE tenant = {TENANT}"):
        for message, shown in some:
            if not is_shown(shown):
                yield f"block of message {message}: what it showed cannot be read"
    for some in rows_of(look.raw, f"SELECT session, shown::text FROM snapshots WHERE tenant = {TENANT}"):
        for session, shown in some:
            if not is_list_of_texts(shown):
                yield f"snapshot of session {session}: what it shows cannot be read"
    yield from _blobs(look)


def _blobs(look: Look) -> Iterator[str]:
    for part, name in look.raw.execute(MISSING_BLOBS).fetchall():
        yield f"part {part}: its blob {name} is missing"
    sizes = look.raw.execute(_BLOB_SIZES).fetchall()
    names = [name for name, _ in sizes] if look.full else sampled_blobs(sizes)
    statement = f"SELECT hash, size, packing, packed FROM blobs WHERE tenant = {TENANT} AND hash = ANY(%s)"
    for start in range(0, len(names), _BLOBS_AT_ONCE):
        for row in look.raw.execute(statement, (names[start : start + _BLOBS_AT_ONCE],)):
            if trouble := blob_trouble(row):
                yield trouble


def _loose_blobs(look: Look) -> Iterator[str]:
    """Nothing is kept that no part refers to."""
    for (name,) in look.raw.execute(LONE_BLOBS).fetchall():
        yield f"blob {name}: no part refers to it"
    for (part,) in look.raw.execute(LONE_REFS).fetchall():
        yield f"part_blobs of {part}: there is no such part"


def _withheld(look: Look) -> Iterator[str]:
    """No frozen text shows what was forgotten, or made private or local-only since."""
    what = "shows a memory that was forgotten, or made private or local-only"
    blocks = (
        "SELECT DISTINCT message FROM recall_blocks, jsonb_array_elements(shown) item "
        f"WHERE tenant = {TENANT} AND text <> '' AND item ->> 'memory' IN ({HIDDEN})"
    )
    for (message,) in look.raw.execute(blocks).fetchall():
        yield f"block of message {message}: {what}"
    snapshots = f"SELECT session FROM snapshots WHERE tenant = {TENANT} AND shown ?| ARRAY({HIDDEN})"
    for (session,) in look.raw.execute(snapshots).fetchall():
        yield f"snapshot of session {session}: {what}"


def _showings(look: Look) -> Iterator[str]:
    for one, other, what in (
        (SHOWN_BY_BLOCKS, NOTED, "is not noted"),
        (NOTED, SHOWN_BY_BLOCKS, "is noted wrongly"),
    ):
        for memory, message in look.raw.execute(f"{one} EXCEPT {other}").fetchall():
            yield f"block of message {message}: that it shows {memory} {what}"


def _passages(look: Look) -> Iterator[str]:
    statistics = f"SELECT documents, tokens, analyser FROM passage_statistics WHERE tenant = {TENANT}"
    *kept, version = look.raw.execute(statistics).fetchone() or (0, 0, ANALYSER_VERSION)
    if version != ANALYSER_VERSION:
        yield "passages: made by another version; the bridge or `backstory embed` makes them anew"
        return
    last = "" if look.full else f"ORDER BY max(created_us) DESC LIMIT {_SESSIONS_SAMPLED}"
    sessions = f"SELECT session FROM messages WHERE tenant = {TENANT} GROUP BY session {last}"
    for (session,) in look.raw.execute(sessions).fetchall():
        if _cut_anew(look, session) != _stored(look.raw, session):
            yield f"session {session}: its passages are not those of its messages"
    lost = (
        f"SELECT count(*) FROM passages p WHERE tenant = {TENANT} AND NOT EXISTS (SELECT 1 FROM messages m "
        "WHERE m.tenant = p.tenant AND m.id = p.message AND m.removed_us IS NULL)"
    )
    if count := (look.raw.execute(lost).fetchone() or (0,))[0]:
        yield f"passages: {count} belong to no message"
    yield from _terms_trouble(look)
    if kept != list(look.raw.execute(PASSAGE_SUMS).fetchone() or ()):
        yield "passage_statistics: the sums do not fit the passages"


def _terms_trouble(look: Look) -> Iterator[str]:
    count = f"SELECT count(*) FROM passages WHERE tenant = {TENANT}"
    if look.full or (look.raw.execute(count).fetchone() or (0,))[0] <= _MOST_PASSAGES:
        for (n,) in look.raw.execute(WRONG_TERMS).fetchall():
            yield f"passage {n}: its words in the index are not those that it holds"
    else:
        for (n,) in look.raw.execute(orphans("passage_terms", "passages")).fetchall():
            yield f"passage_terms of {n}: belong to nothing"


_Passages = Mapping[tuple[str, int], tuple[str, str, int]]
"""By part and place in it: the text, the words it is found by, and how many those are."""


def _cut_anew(look: Look, session: str) -> _Passages:
    statement = (
        "SELECT p.id, p.kind, p.text, p.tool, p.synthetic, p.detail, m.role, m.created_us "
        "FROM parts p JOIN messages m ON m.tenant = p.tenant AND m.id = p.message "
        f"WHERE p.tenant = {TENANT} AND m.removed_us IS NULL AND m.session = %s"
    )
    cut: dict[tuple[str, int], tuple[str, str, int]] = {}
    for part_id, kind, text, tool, synthetic, detail, role, created_us in look.raw.execute(statement, (session,)):
        part = Part(id=PartId(part_id), kind=kind, text=text, tool=tool, synthetic=bool(synthetic), detail=detail)
        for position, piece in enumerate(passages_of(part, look.limits)):
            tokens = analyse(indexed_text(piece, role=Role(role), at=from_us(created_us)))
            cut[part_id, position] = (piece, " ".join(tokens), len(tokens))
    return cut


def _stored(raw: Raw, session: str) -> _Passages:
    statement = (
        "SELECT x.part, x.position, x.text, x.tokens, x.length FROM passages x "
        f"JOIN messages m ON m.tenant = x.tenant AND m.id = x.message WHERE x.tenant = {TENANT} AND m.session = %s"
    )
    return {(part, position): tuple(rest) for part, position, *rest in raw.execute(statement, (session,))}


EVIDENCE_RULES = (
    Rule(invariant=Invariant.EVIDENCE, severity=Severity.DAMAGE, check=_evidence),
    Rule(invariant=Invariant.EVIDENCE, severity=Severity.OUT_OF_STEP, check=_loose_blobs),
    Rule(invariant=Invariant.WITHHELD, severity=Severity.OUT_OF_STEP, check=_withheld),
    Rule(invariant=Invariant.PASSAGES, severity=Severity.OUT_OF_STEP, check=_passages),
    Rule(invariant=Invariant.SHOWINGS, severity=Severity.OUT_OF_STEP, check=_showings),
)
