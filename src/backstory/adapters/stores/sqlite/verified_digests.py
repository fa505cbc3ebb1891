"""The invariant of digests of sessions, as a check."""

from __future__ import annotations

from collections.abc import Iterator

from backstory.adapters.stores.digest_rules import broken_links
from backstory.adapters.stores.sqlite.digests import load_digest
from backstory.adapters.stores.sqlite.looking import Look, Rule
from backstory.errors import StoreDamaged
from backstory.ports.upkeep import Finding, Invariant, Severity

SAMPLED = 20
"""Digests that are looked at without ``full``: the latest ones."""


def _digests(look: Look) -> Iterator[str | Finding]:
    last = "" if look.full else f"ORDER BY updated_us DESC LIMIT {SAMPLED}"
    for (session,) in look.raw.execute(f"SELECT session FROM digests {last}").fetchall():
        try:
            digest = load_digest(look.raw, session)
        except StoreDamaged as error:
            yield unreadable(session, error)
        else:
            yield from [] if digest is None else broken_links(digest)


def unreadable(session: str, error: StoreDamaged) -> Finding:
    """What is told of a digest with values that no Backstory writes."""
    return Finding(
        invariant=Invariant.DIGESTS,
        severity=Severity.OUT_OF_STEP,
        what=str(error),
        where=f"session {session}",
        way_out=f"`backstory session {session} --forget-digest`: its messages are kept, and it is digested anew",
    )


DIGEST_RULES = (Rule(invariant=Invariant.DIGESTS, severity=Severity.OUT_OF_STEP, check=_digests),)
