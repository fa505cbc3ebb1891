"""Whether a tenant's rows keep the invariants of a store: the schema here, rows in ``verified_memories.py``,
``verified_evidence.py``, ``verified_digests.py`` and ``verified_dreams.py``. Nothing is written."""

from __future__ import annotations

from datetime import timedelta

from backstory.adapters.stores.postgres import migrations
from backstory.adapters.stores.postgres.driver_errors import in_our_words
from backstory.adapters.stores.postgres.looking import Look, Raw, apply, has_vector, looking
from backstory.adapters.stores.postgres.opening import Address, check_identity
from backstory.adapters.stores.postgres.verified_digests import DIGEST_RULES
from backstory.adapters.stores.postgres.verified_dreams import DREAM_RULES
from backstory.adapters.stores.postgres.verified_evidence import EVIDENCE_RULES
from backstory.adapters.stores.postgres.verified_memories import MEMORY_RULES
from backstory.domain.evidence_passages import PassageLimits
from backstory.errors import SchemaTooNew, StoreDamaged, StoreUnavailable
from backstory.ports.upkeep import Finding, Invariant, Severity

_OWN_TABLES = (
    "tenants", "projects", "project_aliases", "project_traits", "project_moves", "memories", "memory_tags",
    "memory_sessions", "changes", "change_edits", "memory_terms", "term_frequencies", "vectors", "vector_removals",
    "sessions", "messages", "parts", "blobs", "part_blobs", "recall_blocks", "recall_block_memories", "snapshots",
    "passages", "passage_statistics", "passage_terms", "passage_vectors", "ledger", "digests", "digest_pieces",
    "dreams", "summaries", "summary_sources", "doubts", "keepsakes",
)  # fmt: skip
_PARTS = """
    SELECT 'the index ' || i.indexrelid::regclass || ' is not whole' FROM pg_index i
        JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace s ON s.oid = c.relnamespace
        WHERE s.nspname = current_schema() AND NOT (i.indisvalid AND i.indisready)
    UNION ALL
    SELECT 'the trigger ' || t.tgname || ' is switched off' FROM pg_trigger t
        JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace s ON s.oid = c.relnamespace
        WHERE s.nspname = current_schema() AND t.tgenabled <> 'O'
    UNION ALL
    SELECT 'the table ' || name || ' is not there' FROM unnest(%s::text[]) name WHERE to_regclass(name) IS NULL
    UNION ALL
    SELECT 'the table ' || c.relname || ' does not tell tenants apart' FROM pg_class c
        JOIN pg_namespace s ON s.oid = c.relnamespace
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'
        WHERE s.nspname = current_schema() AND c.relkind IN ('r', 'p') AND NOT c.relrowsecurity
"""
_BY_OWNER = "the owner of the schema mends it: REINDEX, ALTER TABLE; or drops the schema and restores a backup"


def verify_store(address: Address, *, full: bool, limits: PassageLimits, timeout: timedelta) -> list[Finding]:
    """Every invariant of a tenant's rows, as of one moment. Raises StoreUnavailable where there is no store."""
    with in_our_words(), looking(address, timeout=timeout) as raw:
        findings, readable = _verify_schema(raw, address)
        if readable:
            look = Look(raw=raw, full=full, limits=limits, has_vector=has_vector(raw))
            rules = (*MEMORY_RULES, *EVIDENCE_RULES, *DIGEST_RULES, *DREAM_RULES)
            findings += [finding for rule in rules for finding in apply(rule, look)]
    return sorted(findings, key=lambda finding: finding.invariant.number)


def is_there(address: Address, *, timeout: timedelta) -> bool:
    """Whether the schema is there, whosever it is."""
    with in_our_words(), looking(address, timeout=timeout) as raw:
        try:
            return check_identity(raw, address) > 0
        except (StoreDamaged, SchemaTooNew):
            return True


def check_present(raw: Raw, address: Address) -> int:
    """The version of the format. Raises StoreUnavailable where there is no store, else as ``check_identity`` does."""
    version = check_identity(raw, address)
    if version == 0:
        raise StoreUnavailable(f"there is no store at {address.location}")
    return version


def _verify_schema(raw: Raw, address: Address) -> tuple[list[Finding], bool]:
    """What is wrong with the schema as such, and whether its rows can be looked at."""
    try:
        version = check_present(raw, address)
    except StoreDamaged as error:
        way_out = "name another schema with store.schema, or another database"
        return [_finding(Invariant.FORMAT, Severity.DAMAGE, str(error), address, way_out)], False
    except SchemaTooNew as error:
        return [_finding(Invariant.FORMAT, Severity.DAMAGE, str(error), address, "upgrade Backstory")], False
    if version < migrations.latest_version():
        what = "the format is an older one; the first command that writes brings it up to date, then check again"
        return [_finding(Invariant.FORMAT, Severity.NOTE, what, address, "nothing needs to be done")], False
    said = [str(row[0]) for row in raw.execute(_PARTS, (list(_OWN_TABLES),)).fetchall()]
    findings = [_finding(Invariant.WHOLE, Severity.DAMAGE, what, address, _BY_OWNER) for what in said]
    return findings, not any(what.startswith("the table") and "not there" in what for what in said)


def _finding(invariant: Invariant, severity: Severity, what: str, address: Address, way_out: str) -> Finding:
    return Finding(invariant=invariant, severity=severity, what=what, where=address.location, way_out=way_out)
