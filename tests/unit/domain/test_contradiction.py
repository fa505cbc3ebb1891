"""Two statements contradict each other only where they speak of one thing and cannot both hold."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from backstory.domain.contradiction import contradicts, disagree, flagged, may_question, resolved, stands_firm
from backstory.domain.memory import Active, Conflicted, Deleted, Kind, Sensitivity, Superseded, Tier, Visibility
from backstory.domain.provenance import Origin
from backstory.testing.fakes import START, sample_memory

CASES = Path(__file__).resolve().parents[4] / "shared" / "cases" / "near-duplicates.jsonl"

CONTRADICT = [
    ("The metrics port is 8080.", "The metrics port is 9090.", "8080 against 9090"),
    ("Metrics port: 8080", "The metrics port is 9090", "8080 against 9090"),
    ("CART_PORT=8080", "CART_PORT=9090", "8080 against 9090"),
    ("The cart port is 8080", "The cart listens on port 9090", "8080 against 9090"),
    ("The user prefers tabs.", "I prefer spaces.", "tabs against spaces"),
    ("We use npm in this repository.", "Use pnpm in this repository", "npm against pnpm"),
    ("We use npm.", "We switched from npm to pnpm.", "npm against pnpm"),
    (
        "The staging cluster is called heron-2",
        "The staging cluster is heron-3, not heron-2.",
        "heron-2 against heron-3",
    ),
    ("We use jose, not jsonwebtoken.", "We use jsonwebtoken.", "jose against jsonwebtoken"),
    ("We chose Postgres over MySQL.", "We chose MySQL over Postgres.", "postgres against MySQL"),
    ("Never deploy on Fridays.", "Deploy on Fridays.", "only one says “never”"),
    ("The gateway does not cache responses.", "The gateway caches responses.", "only one says “not”"),
    ("Commits must be signed.", "Commits must not be signed.", "only one says “not”"),
    ("Audits happen on Tuesdays.", "Audits happen on Fridays.", "tuesdays against fridays"),
    ("The login timeout is 30 minutes.", "The login timeout is two hours.", "30 minutes against 2 hours"),
    ("The release manager is Ines.", "The release manager is Pavel.", "ines against pavel"),
    ("We use Redis for sessions.", "We use Memcached for sessions.", "redis against memcached"),
    ("Backups are kept for 14 days.", "Backups are kept for 30 days.", "14 against 30"),
    ("Invoices are written to out/a.csv", "Invoices are written to out/b.csv", "out/a.csv against out/b.csv"),
    ("Retry failed uploads 3 times.", "Retry failed uploads 5 times.", "3 against 5"),
    ("We use Python 3.11", "We use Python 3.12", "3.11 against 3.12"),
    ("Tracing is enabled in production.", "Tracing is disabled in production.", "enabled against disabled"),
    ("Migrations run before the rollout.", "Migrations run after the rollout.", "before against after"),
    ("Coverage must be at least 80%", "Coverage must be at least 90%", "80% against 90%"),
    ("Prices are in cents. The cart is in src/cart.py.", "The cart is in src/basket.py.", None),
    ("The price cache moved from Redis to Valkey.", "The price cache runs on Redis.", "Valkey against Redis"),
    ("The lock timeout is set to 30 s", "The lock timeout is 60 s", "set to 30 against 60"),
    ("We moved from Heroku to Fly in March.", "The shop is deployed to Heroku.", "Fly against Heroku"),
]
COMPATIBLE = [
    ("The importer is written in Go", "The importer is deployed with Helm"),
    ("The ledger is owned by Maria", "The ledger is written in Rust"),
    ("The database is Postgres", "The database is on db-1"),
    ("The shop's owner is called Anna", "The shop's owner is based in Oslo"),
    ("The export starts 4 threads", "The export starts at 06:00"),
    ("The export is set to run at 3", "The export is set to run in 3 minutes"),
    ("Uploads are limited to 100 per minute", "Uploads are limited to 2 MB"),
    ("We moved the unit tests from Postgres to SQLite", "Production uses Postgres 16"),
    ("We replaced Moment with date-fns in the shop", "The admin app uses Moment"),
    ("The table was renamed from Carts to carts", "Carts are removed after 90 days"),
    ("Redis caches prices.", "Sidekiq and its Redis are gone."),
    ("The Redis cache holds prices.", "The Redis queue was removed."),
    ("Old carts are kept.", "Old carts are removed after 30 days."),
    ("Carts are stored in Redis", "It was removed."),
    ("Jobs: Solid Queue. Sidekiq is gone.", "Sidekiq was dropped."),
    ("The staging port is 8080", "The production port is 8080"),
    ("The staging port is 8080", "The production port is 9090"),
    ("Public endpoints need a token", "Private endpoints need a token"),
    ("We use Redis", "We use Postgres"),
    ("We use Redis in production", "We use Postgres in production"),
    ("Use tabs in Python", "Use tabs in Go"),
    ("Use Redis for sessions", "Use Redis for rate limits"),
    ("Use pytest on Python 3.11", "Use pytest on Python 3.12"),
    ("The image supports Node 20", "The image supports Node 22"),
    ("Staging is slow", "Staging is flaky"),
    ("We deployed to eu-west-1", "We deployed to eu-west-2"),
    ("Issue 12 is about the cart", "Issue 13 is about the cart"),
    ("Port 8080 is for the cart", "Port 9090 is for the cart"),
    ("The login timeout is 60 minutes", "The login timeout is 1 hour"),
    ("We use axios", "We used axios"),
    ("The largest batch is 500 rows", "The smallest batch is 50 rows"),
    ("It listens on 8080", "It listens on 9090"),
    ("Does the cart listen on 8080?", "The cart listens on 9090"),
    ("The cart listens on 8080 in staging", "The cart listens on 9090 in production"),
    ("The user likes tea", "The user likes Python"),
    ("Billing depends on auth", "Billing depends on users"),
    ("Totals are computed in cart.py", "Totals are tested in test_cart.py"),
    ("Run make test before pushing", "Run make lint before pushing"),
    ("Error E1001 means the token expired", "Error E1002 means the token expired"),
    ("Only owners may delete carts", "Owners may delete carts"),
    ("The limit is 100 for guests", "The limit is 500 for members"),
    ("The loader takes a.txt", "The loader takes b.txt"),
    ("Use Docker for development", "Use Kubernetes for production"),
    ("Job 71 finished in 12 s.", "Job 72 finished in 19 s."),
    ("The worker retries 3 times when the network fails", "The worker retries 5 times when the disk fails"),
    ("", "The cart listens on 9090"),
    ("???", "!!!"),
    ("部署在星期二。", "部署在星期三。"),
]


@pytest.mark.parametrize(("a", "b", "told"), CONTRADICT)
def test_what_cannot_both_hold_of_one_thing_is_a_contradiction(a: str, b: str, told: str | None) -> None:
    found, turned = disagree(a, b), disagree(b, a)
    assert found is not None
    assert turned == found.turned
    assert told in (None, found.told)


@pytest.mark.parametrize(("a", "b"), COMPATIBLE)
def test_what_may_both_hold_is_none(a: str, b: str) -> None:
    assert disagree(a, b) is None
    assert disagree(b, a) is None


def test_vectors_far_apart_speak_against_a_contradiction_and_never_make_one() -> None:
    assert disagree("The cart port is 8080", "The cart port is 9090", similarity=0.1) is None
    assert disagree("The cart port is 8080", "The cart port is 9090", similarity=0.95) is not None
    assert disagree("Staging is slow", "Staging is flaky", similarity=0.99) is None


@pytest.mark.parametrize("piece", ["is 1 not over = : from to ", "a: ", "moved from ", ". ", "not ", "9 "])
def test_long_hostile_texts_are_no_statements(piece: str) -> None:
    assert disagree(piece * 3000, piece.replace("1", "2").upper() * 3000) is None


def test_the_labelled_pairs() -> None:
    """Nothing that says the same is called a contradiction, nor what speaks of different things."""
    if not CASES.exists():
        pytest.skip(f"{CASES} is not here")
    certain = {"negation", "order", "on/off", "roles swapped"}
    found_uncertain = uncertain = 0
    for line in CASES.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found = disagree(row["a"], row["b"]) is not None
        if row["verdict"] == "uncertain":
            uncertain += 1
            found_uncertain += found
        else:
            assert found is (row["why"] in certain and row["verdict"] == "different"), row["id"]
    assert found_uncertain >= 0.6 * uncertain  # the others may both hold: two tickets, two commits


PORT = sample_memory("The cart port is 8080")
OTHER = sample_memory("The cart port is 9090", n=2)


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": Kind.STATUS},
        {"kind": Kind.EPISODIC},
        {"visibility": Visibility.GLOBAL},
        {"sensitivity": Sensitivity.LOCAL_ONLY},
        {"tier": Tier.TEMPORARY},
        {"id": PORT.id},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_memories_of_a_moment_of_other_readers_or_for_a_while_do_not_contradict(fields: dict[str, Any]) -> None:
    assert contradicts(PORT, OTHER) is not None
    assert contradicts(PORT, replace(OTHER, **fields)) is None


def test_memories_about_two_areas_do_not_contradict() -> None:
    assert contradicts(replace(PORT, area="staging"), replace(OTHER, area="production")) is None
    assert contradicts(replace(PORT, area="staging"), OTHER) is not None


def test_flagging_keeps_the_first_conflict_and_leaves_what_is_not_current() -> None:
    once = flagged(PORT, evidence="8080 against 9090", against=OTHER.id, now=START)
    assert once.status == Conflicted(evidence="8080 against 9090", since=START, against=OTHER.id)
    assert flagged(once, evidence="x", against=PORT.id, now=START + timedelta(hours=1)) == once
    for status in (Superseded(by=OTHER.id, since=START), Deleted(since=START)):
        assert flagged(replace(PORT, status=status), evidence="x", against=OTHER.id, now=START).status == status
    assert resolved(once) == PORT
    assert len(flagged(PORT, evidence="x" * 2000, against=None, now=START).status.evidence) == 500  # type: ignore[union-attr]


def test_a_contradiction_found_stands_before_a_doubt_about_the_source() -> None:
    doubted = flagged(PORT, evidence="made from #3, which was forgotten", against=None, now=START)
    assert flagged(doubted, evidence="b", against=OTHER.id, now=START).status.against == OTHER.id  # type: ignore[union-attr]
    assert flagged(doubted, evidence="b", against=None, now=START) == doubted
    assert isinstance(resolved(doubted).status, Active)


def test_outside_text_questions_only_its_like() -> None:
    for outside in (Origin.WEB, Origin.TOOL, Origin.FILE, Origin.IMPORTED, Origin.PEER):
        assert not may_question(outside, PORT)
        assert not may_question(outside, replace(PORT, origin=Origin.AGENT))
    assert may_question(Origin.WEB, replace(PORT, origin=Origin.WEB))
    assert may_question(Origin.AGENT, PORT)
    assert stands_firm(PORT)
    assert not stands_firm(replace(PORT, origin=Origin.AGENT))
