"""Two memories are one only when every word is accounted for; whatever else differs is a person's to decide."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backstory.domain.near_duplicates import Group, Verdict, collapse, compare

CASES = Path(__file__).resolve().parents[4] / "shared" / "cases" / "near-duplicates.jsonl"

SAME = [
    ("Use uv for every install.", "use uv for every install"),
    ("Invoices are rounded per line", "Invoices  are\nrounded per line."),
    ("Don't push to release branches.", "Do not push to release branches"),
    ("You can't restart the broker by hand.", "You cannot restart the broker by hand."),
    ("Please squash before merging.", "Always squash before merging."),
    ("Note that the gateway strips cookies.", "The gateway strips cookies."),
    ("Secrets live in the vault.", "Secrets are stored in the vault."),
    ("When the cache is cold, the first request takes 4 s.", "The first request takes 4 s when the cache is cold."),
    ("Three replicas are enough.", "3 replicas are enough."),
    ("The batch holds 10,000 rows.", "The batch holds 10000 rows."),
    ("Run `make lint` first.", "Run make lint first"),
    ("The seed is fixed. The seed is fixed.", "The seed is fixed."),
    ("Le café est à Zürich.", "le cafe\u0301 est à Zu\u0308rich"),
    ("缓存保留七天。", "缓存 保留 七天"),
]
UNCERTAIN = [
    ("The broker listens on 9092.", "The broker listens on 9093."),
    ("Uploads are capped at 20 MB.", "Uploads are capped at 20 GB."),
    ("The schema is in db/schema.sql.", "The schema is in db/Schema.sql."),
    ("Ask Ines about invoices.", "Ask Pavel about invoices."),
    ("Start it with --strict.", "Start it with --no-strict."),
    ("The offset is -3.", "The offset is 3."),
    ("The flag is NEW_CART.", "The flag is NEW_CARTS."),
    ("Run `Build` first.", "Run `build` first."),
    ("Lint with `eslint .` in CI.", "Lint with eslint in CI."),
    ("Lint with eslint .", "Lint with eslint"),
    ("The flag takes '' as its value.", "The flag takes as its value."),
    ("Is the job idempotent?", "The job is idempotent."),
    ("The exponent is 10².", "The exponent is 102."),
    ("Send the report to us.", "Send the report to US."),
    ("The type is string[].", "The type is string."),
    ("Errors go to Sentry in production.", "Errors go to Sentry in production and staging."),
    ("缓存保留七天。", "缓存保留八天。"),
    ("✅ deploy by script", "❌ deploy by script"),
]
DIFFERENT = [
    ("Deploys may run at night.", "Deploys may not run at night."),
    ("No, tests need the network.", "No tests need the network."),
    ("Do not deploy. On Fridays run the audit.", "Do not deploy on Fridays. Run the audit."),
    ("The audit log is enabled.", "The audit log is disabled."),
    ("Copy from staging to production.", "Copy from production to staging."),
    ("We use axios.", "We used axios."),
    ("Only owners may delete.", "Owners may delete."),
    ("Job 71 finished in 12 s.", "Job 72 finished in 19 s."),
    ("The heron job is done.", "The osprey job is done."),
    ("Prices are in cents.", "The printer is on the second floor."),
    ("部署可以在周五。", "部署不可以在周五。"),
    ("", "Prices are in cents."),
    ("", ""),
    ("C", "C#"),
]


@pytest.mark.parametrize(("a", "b"), SAME)
def test_a_text_said_again_in_nearly_the_same_words_is_the_same(a: str, b: str) -> None:
    assert compare(a, b).verdict is Verdict.SAME
    assert compare(b, a).verdict is Verdict.SAME
    assert collapse([a, b]) == [Group(kept=0, also=(1,))]


@pytest.mark.parametrize(("a", "b"), UNCERTAIN)
def test_a_text_that_differs_in_one_detail_is_for_a_person_to_decide(a: str, b: str) -> None:
    assert compare(a, b).verdict is Verdict.UNCERTAIN
    assert compare(b, a).verdict is Verdict.UNCERTAIN
    assert compare(a, b).reasons
    assert collapse([a, b]) == [Group(kept=0), Group(kept=1)]


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_a_text_that_says_something_else_is_different(a: str, b: str) -> None:
    assert compare(a, b).verdict is Verdict.DIFFERENT
    assert compare(b, a).verdict is Verdict.DIFFERENT
    assert collapse([a, b]) == [Group(kept=0), Group(kept=1)]


def test_nearness_in_meaning_makes_a_text_worth_a_look_but_never_the_same() -> None:
    told = ("Logs are thrown away after two weeks.", "We keep log files for fourteen days.")
    assert compare(*told).verdict is Verdict.DIFFERENT
    assert compare(*told, similarity=0.99).verdict is Verdict.UNCERTAIN
    assert compare("Owners may import rows.", "Owners may export rows.", similarity=0.99).verdict is Verdict.DIFFERENT
    assert compare("The port is 80.", "The port is 81.", similarity=1.0).verdict is Verdict.UNCERTAIN


def test_the_best_of_several_stays_and_names_the_others() -> None:
    contents = ["Use uv.", "The port is 80.", "use uv", "The port is 81.", "Please use uv.", "???", "???"]
    assert collapse(contents) == [
        Group(kept=0, also=(2, 4)),
        Group(kept=1),
        Group(kept=3),
        Group(kept=5),
        Group(kept=6),
    ]
    assert collapse([]) == []


def test_a_huge_or_hostile_text_is_compared_all_the_same() -> None:
    for text in (
        "a " * 9_000,
        "(" * 9_000,
        "`" * 9_000,
        "in " * 9_000,
        "is in " * 9_000,
        "\ud800 \x00 '" * 9_000,
    ):
        assert compare(text, text + " 1").verdict is not Verdict.SAME


def test_no_labelled_pair_is_merged_wrongly() -> None:
    if not CASES.exists():
        pytest.skip(f"no labelled pairs at {CASES}")
    rows = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    verdicts = {row["id"]: compare(row["a"], row["b"]).verdict for row in rows}
    wrong = [row["id"] for row in rows if row["tier"] == "core" and verdicts[row["id"]] != row["verdict"]]
    assert not wrong
    grave = [row["id"] for row in rows if verdicts[row["id"]] is Verdict.SAME and row["verdict"] != "same"]
    assert not grave
    assert sum(verdicts[row["id"]] is Verdict.SAME for row in rows if row["verdict"] == "same") >= 12
