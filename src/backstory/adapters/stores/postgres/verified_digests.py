"""The invariant of digests of sessions in Postgres, as a check."""

from __future__ import annotations

from collections.abc import Iterator

from backstory.adapters.stores.digest_rules import broken_links
from backstory.adapters.stores.postgres.digests import load_digest
from backstory.adapters.stores.postgres.looking import Look, Rule
from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.adapters.stores.sqlite.verified_digests import SAMPLED, unreadable
from backstory.errors import StoreDamaged
from backstory.ports.upkeep import Finding, Invariant, Severity


def _digests(look: Look) -> Iterator[str | Finding]:
    last = "" if look.full else f"ORDER BY updated_us DESC LIMIT {SAMPLED}"
    for (session,) in look.raw.execute(f"SELECT session FROM digests WHERE tenant = {TENANT} {last}").fetchall():
        try:
            digest = load_digest(look.raw, session)
        except StoreDamaged as error:
            yield unreadable(session, error)
        else:
            yield from [] if digest is None else broken_links(digest)


DIGEST_RULES = (Rule(invariant=Invariant.DIGESTS, severity=Severity.OUT_OF_STEP, check=_digests),)
