"""Alike is not the same: only another spelling of a value, or other words around the same content, may differ."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.domain.near_duplicates import Verdict
from backstory.domain.said_words import said_words
from backstory.domain.same_meaning import (
    in_common,
    may_be_alike,
    may_be_in_other_words,
    said_alike,
    said_in_other_words,
)

_WORDS_TO_MIX = (
    "the",
    "build",
    "needs",
    "built",
    "building",
    "Go",
    "1.22",
    "1.22.4",
    "/srv/up/",
    "/srv/up",
    "not",
    "It.",
)

SAME_ALIKE = [
    ("The build needs Go 1.22.", "The build needs Go 1.22.4."),
    ("Uploads go to /srv/uploads/", "Uploads go to /srv/uploads."),
    ("The batch holds 10,000 rows.", "The batch holds 10000 rows."),
]
NOT_SAME_ALIKE = [
    ("The chart is 1.1.", "The chart is 1.10."),
    ("The factor is 1.", "The factor is 1.5."),
    ("The code is 007.", "The code is 7."),
    ("The peer is 10.0.4.", "The peer is 10.0.4.7."),
    ("Uploads go to /srv/uploads", "Uploads go to /srv/Uploads"),
    ("The build needs Go 1.22.3.", "The build needs Go 1.22.4."),
]
SAME_MEANING = [
    ("Uploads live in /srv/up/ and expire after 1,000 hours.", "Uploads live in /srv/up and expire after 1000 hours."),
    ("Invoices live in /data/pdf/ and rotate at 50 MB.", "Rotation of invoices under /data/pdf happens at 50 MB."),
    ("Sessions expire after 30 minutes of idleness.", "After 30 minutes of idleness a session expires."),
    ("Deploys go through Flux.", "A deploy goes through Flux."),
]
UNCERTAIN_MEANING = [
    ("Each key may call the billing API a hundred times.", "The HTTP gateway limit is 500 requests/minute per key."),
    ("We migrated to Postgres 15.", "We migrate to Postgres 15."),
    ("We are migrating to Postgres 15.", "We migrate to Postgres 15."),
    ("We built the image with Kaniko.", "We build the image with Kaniko."),
    ("Backups run on the primary at night.", "At night backups run on the replica."),
    ("Errors go to Sentry in production.", "In production and staging, errors go to Sentry."),
    ("Is the cache flushed at midnight?", "At midnight the cache is flushed."),
    ("Use tabs in Makefiles and spaces in Python.", "Use spaces in Makefiles and tabs in Python."),
    ("Nightly builds are kept for 7 days, releases for 30.", "We keep releases for 7 days and nightly builds for 30."),
    ("Team A owns auth, team B owns billing.", "Auth is owned by team B and billing by team A."),
]
DIFFERENT_MEANING = [
    ("Requests may be retried 3 times.", "Requests must be retried 3 times."),
    ("Only owners may see the invoices of a team.", "Invoices of the team are shown to owners."),
    ("The importer used to drop empty rows.", "Empty rows do not stop the importer."),
    ("Job 7 finished: 40 rows, 3 errors.", "Import of 12 files finished without trouble, 1 was skipped."),
    ("The gateway forwards to the billing service.", "The billing service forwards to the gateway."),
]


@pytest.mark.parametrize(("a", "b"), SAME_ALIKE)
def test_a_value_written_in_another_way_is_the_same(a: str, b: str) -> None:
    assert said_alike(a, b).verdict is Verdict.SAME
    assert said_alike(b, a).verdict is Verdict.SAME


@pytest.mark.parametrize(("a", "b"), NOT_SAME_ALIKE)
def test_another_value_is_not_the_same_however_near_it_looks(a: str, b: str) -> None:
    assert said_alike(a, b).verdict is not Verdict.SAME
    assert said_alike(b, a).verdict is not Verdict.SAME
    assert said_in_other_words(a, b).verdict is not Verdict.SAME


@pytest.mark.parametrize(("a", "b"), SAME_MEANING)
def test_the_same_content_in_other_words_is_the_same(a: str, b: str) -> None:
    assert said_in_other_words(a, b).verdict is Verdict.SAME
    assert said_in_other_words(b, a).verdict is Verdict.SAME


@pytest.mark.parametrize(("a", "b"), UNCERTAIN_MEANING)
def test_what_is_near_and_differs_in_a_word_of_content_is_for_a_person(a: str, b: str) -> None:
    for found in (said_in_other_words(a, b), said_in_other_words(b, a)):
        assert found.verdict is Verdict.UNCERTAIN
        assert found.reasons


@pytest.mark.parametrize(("a", "b"), DIFFERENT_MEANING)
def test_what_says_the_opposite_or_reports_another_event_is_different(a: str, b: str) -> None:
    assert said_in_other_words(a, b).verdict is Verdict.DIFFERENT
    assert said_in_other_words(b, a).verdict is Verdict.DIFFERENT


def test_a_conflict_of_details_is_named_by_its_sort() -> None:
    found = said_in_other_words("Ask the team at Oslo about invoices.", "Whoever has billing trouble writes to Bergen.")
    assert found.reasons == ("names: Oslo against Bergen",)


def test_the_share_of_common_words_counts_each_word_once() -> None:
    assert in_common(said_words("tests run offline"), said_words("tests run offline. tests run offline.")) == 1
    assert in_common((), ("a",)) == 0


def test_huge_and_hostile_texts_take_no_longer_than_they_must() -> None:
    numbers = " ".join(str(number) for number in range(900))
    others = " ".join(str(number) for number in range(10_000, 10_700))
    started = time.process_time()
    said_in_other_words(numbers, others)
    said_in_other_words("a b " * 1_000, "c d " * 1_000)
    said_in_other_words("alpha beta " * 360, "beta alpha gamma " * 240)
    assert time.process_time() - started < 5


@given(st.lists(st.sampled_from(_WORDS_TO_MIX), max_size=7), st.lists(st.sampled_from(_WORDS_TO_MIX), max_size=7))
def test_what_is_found_to_be_the_same_might_be_the_same_by_the_faster_look(one: list[str], other: list[str]) -> None:
    a, b = " ".join(one), " ".join(other)
    for first, second in ((a, b), (a, " ".join(reversed(one))), (a, f"The {a}.")):
        if said_alike(first, second).verdict is Verdict.SAME:
            assert may_be_alike(first, second)
        if said_in_other_words(first, second).verdict is Verdict.SAME:
            assert may_be_in_other_words(first, second)
