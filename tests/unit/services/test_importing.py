"""Stores of other products into ours: idempotent, told about record by record, without trust that nobody gave."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from backstory.domain.history import Author
from backstory.domain.ids import MemoryId
from backstory.domain.interchange import ForeignRecord, Keepsake, Unreadable
from backstory.domain.lifecycle import Revision
from backstory.domain.memory import Conflicted, Deleted, Sensitivity, Superseded
from backstory.domain.provenance import Origin
from backstory.errors import InputError
from backstory.services.erasure import Erasing
from backstory.services.imported_memories import ImportPolicy
from backstory.testing.fakes import START, ulid
from tests.unit.services.conftest import Shop
from tests.unit.services.foreign import BARN, NIGHT, foreign, foreign_digest, foreign_messages, foreign_session
from tests.unit.services.imports import bring, kept, session, whole
from tests.unit.services.imports import shop as shop

GHP = "ghp_" + "a1B2c3D4e5F6a7B8c9D0e1F2a3B4c5D6e7F8"


def test_everything_comes_in_once_and_is_counted_by_kind(shop: Shop) -> None:
    first = bring(shop, *whole())
    assert (first.imported, first.skipped, len(first.conflicts)) == (4, 0, 0)
    new = first.new
    assert (new.memories, new.sessions, new.messages, new.nodes, new.keepsakes) == (2, 1, 2, 1, 1)
    assert list(first.refused) == ["row 7: it has no text"]
    assert list(first.remarks) == ["settings: the paper is kept for an export alone"]
    second = bring(shop, *whole())
    assert (second.imported, second.skipped, len(second.conflicts), second.changes) == (0, 4, 0, [])
    assert (second.updated.records, second.known.messages, second.known.keepsakes) == (0, 2, 1)


def test_a_dry_run_tells_the_same_and_writes_nothing(shop: Shop) -> None:
    planned = bring(shop, *whole(), dry_run=True)
    assert (planned.imported, [project.name for project in planned.projects]) == (4, ["barn"])
    assert (kept(shop), shop.do(shop.backend.conversations.sessions(limit=9))) == ([], [])
    assert shop.do(shop.backend.projects.projects()) == {}
    assert shop.do(shop.backend.keepsakes.kept("notebook")) == []


def test_a_batch_is_one_change_that_can_be_undone_from_its_project(shop: Shop) -> None:
    places = (BARN, "/nowhere/field")
    report = bring(shop, *(foreign(f"Hen {number} is brown", place=places[number % 2]) for number in range(450)))
    assert (report.imported, len(report.changes)) == (450, 4)
    for project in report.projects:
        shop.undo(viewer=replace(shop.person, project=project.id))
    assert sum(isinstance(memory.status, Deleted) for memory in kept(shop)) == 50


def test_a_folder_that_is_not_there_yet_has_its_memories_when_it_is_opened(shop: Shop, tmp_path: Path) -> None:
    later = tmp_path / "fields" / "barn"
    bring(shop, foreign("Hens are fed at six", place=str(later)), foreign_session(place=str(later)))
    later.mkdir(parents=True)
    project = shop.do(shop.importing._identity.of_folder(later))
    assert (kept(shop)[0].project, session(shop).project) == (project.id, project.id)


def test_a_folder_that_is_a_repository_when_it_is_opened_has_them_too(shop: Shop, tmp_path: Path) -> None:
    later = tmp_path / "barn"
    bring(shop, foreign("Hens are fed at six", place=str(later)))
    subprocess.run(["git", "init", "-q", str(later)], check=True)
    assert shop.do(shop.importing._identity.of_folder(later)).id == kept(shop)[0].project


def test_the_subfolder_of_a_known_repository_is_its_project(shop: Shop, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    project = shop.do(shop.importing._identity.of_folder(tmp_path))
    report = bring(shop, foreign("Hens are fed at six", place=str(tmp_path / "gone" / "coop")))
    assert (kept(shop)[0].project, report.projects) == (project.id, [])


def test_a_plain_name_is_the_project_of_that_name_and_stays_it(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "orchard").mkdir()
    known = shop.do(shop.importing._identity.of_folder(tmp_path / "orchard"))
    first = bring(
        shop, foreign("a", place="orchard"), foreign("b", place="meadow"), foreign("c", place="C:\\farm\\pond")
    )
    assert known.id in {memory.project for memory in kept(shop)}
    assert [project.name for project in first.projects] == ["meadow", "pond"]
    assert bring(shop, foreign("d", place="meadow"), foreign("e", place="C:\\farm\\pond")).projects == []
    assert len({memory.project for memory in kept(shop)}) == 3


def test_what_names_no_place_and_all_of_it_if_asked_comes_into_this_project(shop: Shop) -> None:
    bring(shop, foreign("a", place=None), foreign("b", place=" "), foreign("c"), all_here=True)
    assert {memory.project for memory in kept(shop)} == {shop.person.project}


@pytest.mark.parametrize("place", ["/barn\x00", "/barn\n- [#1] fake", "/" + "x" * 5000, f"/{GHP}", "two\u202e ways"])
def test_an_odd_place_is_refused_with_its_record(shop: Shop, place: str) -> None:
    report = bring(shop, foreign("a", place=place), foreign("b"))
    assert (report.imported, len(report.refused)) == (1, 1)
    assert GHP not in report.refused[0]


def test_nothing_gains_trust_until_a_person_vouches_and_then_it_does_later_too(shop: Shop) -> None:
    bring(shop, foreign("a", origin=Origin.USER), foreign("b", origin=Origin.WEB))
    assert [memory.origin for memory in kept(shop)] == [Origin.IMPORTED, Origin.WEB]
    vouched = bring(shop, foreign("a", origin=Origin.USER), foreign("b", origin=Origin.WEB), trusted=True)
    assert (vouched.updated.memories, vouched.imported) == (1, 0)
    assert [memory.origin for memory in kept(shop)] == [Origin.USER, Origin.WEB]
    assert bring(shop, foreign("a", origin=Origin.USER), trusted=True).updated.memories == 0


def test_a_newer_local_edit_is_kept_and_told(shop: Shop) -> None:
    bring(shop, foreign("Hens are fed at six", key="1", place=None))
    shop.clock.advance(timedelta(hours=1))
    shop.do(shop.remember.update("#1", Revision(content="at seven"), viewer=shop.person, author=Author.USER))
    report = bring(shop, foreign("Hens are fed at six", key="1", place=None))
    assert (report.imported, len(report.conflicts), kept(shop)[0].content) == (0, 1, "at seven")
    assert report.conflicts[0].startswith("row '1': #1 was changed here on")


def test_what_was_forgotten_here_stays_forgotten(shop: Shop) -> None:
    bring(shop, foreign("Hens are fed at six", place=None))
    shop.forget(1)
    assert bring(shop, foreign("Hens are fed at six", place=None)).skipped == 1
    assert isinstance(kept(shop)[0].status, Deleted)


def test_what_is_in_another_project_here_stays_there_and_is_told(shop: Shop) -> None:
    bring(shop, foreign("Hens are fed at six"))
    report = bring(shop, foreign("Hens are fed at six"), all_here=True)
    assert (report.imported, report.skipped) == (0, 1)
    assert report.remarks[0].startswith("1 of these memories are in another project here, and stay there")


def test_what_was_erased_here_stays_so_with_all_that_is_said_of_it(shop: Shop) -> None:
    record = foreign("Hens are fed at six in the morning")
    beside = Keepsake(format="notebook", store="", key="vector/1", text="[1]", memory=record.memory.id)
    bring(shop, record, beside)
    erasing = Erasing(shop.backend, shop.reference, shop.remember, clock=shop.clock, ids=shop.ids)
    person = replace(shop.person, project=kept(shop)[0].project)
    plan = shop.do(erasing.plan(["#1"], text=None, viewer=person))
    assert plan is not None
    shop.do(erasing.erase(plan, viewer=person, author=Author.USER))

    newer = replace(record.memory.times, updated=shop.clock.now() + timedelta(hours=1))
    report = bring(shop, replace(record, memory=replace(record.memory, times=newer)), beside, trusted=True)

    assert (report.updated.memories, report.new.keepsakes, len(report.conflicts)) == (0, 0, 1)
    assert kept(shop)[0].content == "[erased]"
    assert shop.do(shop.backend.keepsakes.kept("notebook")) == []


def test_what_changed_in_the_source_since_is_brought_up_to_date(shop: Shop) -> None:
    bring(shop, foreign("at six", key="1"))
    times = replace(foreign("x").memory.times, updated=START)
    report = bring(shop, foreign("at seven", key="1", times=times))
    assert (report.updated.memories, report.imported, kept(shop)[0].content) == (1, 0, "at seven")


def test_secrets_and_private_passages_stay_out_wherever_they_stand(shop: Shop) -> None:
    inside = json.dumps({"note": f"the token is {GHP}", "password": "hunter2-Zx9!kQ", "n": 1})
    bring(
        shop,
        foreign(f"The key is {GHP}", key="1", raw={"a": GHP, "b": inside, "c": "<private>x</private>"}, tags=(GHP,)),
        foreign("Eggs are sorted by size", key="2", raw={"password": "hunter2-Zx9!kQ"}),
        foreign_session(title=f"About {GHP}"),
        foreign_messages(f"use {GHP}", "<private>my diary</private> fine"),
        foreign_digest(f"they use {GHP}"),
        Keepsake(format="notebook", store="", key="k", text=inside),
        Keepsake(format="notebook", store="", key="same", text='{"b":  1.50, "a": ["x"]}'),
    )
    everything = repr(
        (
            kept(shop),
            session(shop),
            shop.do(shop.backend.conversations.messages(NIGHT)),
            shop.do(shop.backend.digests.digest(NIGHT)),
            shop.do(shop.backend.keepsakes.kept("notebook")),
        )
    )
    for hidden in (GHP, "hunter2", "diary"):
        assert hidden not in everything
    assert "[secret:" in everything
    texts = {keepsake.key: keepsake.text for keepsake in shop.do(shop.backend.keepsakes.kept("notebook"))}
    assert texts["same"] == '{"b":  1.50, "a": ["x"]}'


def test_what_is_dated_in_the_future_never_stands_over_an_edit(shop: Shop) -> None:
    ahead = datetime(2099, 1, 1, tzinfo=UTC)
    record = foreign("Hens are fed at six", key="1", learned=ahead, place=None)
    report = bring(shop, record)
    assert "2099-01-01" in report.remarks[0]
    assert kept(shop)[0].times.learned == shop.clock.now()
    shop.clock.advance(timedelta(hours=1))
    assert bring(shop, record).skipped == 1
    shop.do(shop.remember.update("#1", Revision(content="at seven"), viewer=shop.person, author=Author.USER))
    shop.clock.advance(timedelta(hours=1))
    assert (len(bring(shop, record).conflicts), kept(shop)[0].content) == (1, "at seven")


NAIVE = datetime(2026, 1, 1)
BAD: dict[str, dict[str, Any]] = {
    "no id": {"id": "7"},
    "empty": {"content": ""},
    "blank": {"content": " \n"},
    "all private": {"content": "<private>x</private>"},
    "too long": {"content": "x" * 100_001},
    "a line break in a label": {"issue": "a\nb"},
    "too many tags": {"tags": tuple(f"t{n}" for n in range(11))},
    "no zone": {"learned": NAIVE},
    "no text at all": {"content": None},
    "a number for a tag": {"tags": (7,)},
    "a session in two lines": {"session": "ses\n- [#9] fake"},
    "replaced by no id": {"status": Superseded(by=MemoryId("a\x1b[31m"), since=START)},
    "raw without end": {"raw": {"a": "x" * 200_001}},
}


@pytest.mark.parametrize("fields", BAD.values(), ids=BAD)
def test_a_record_that_cannot_come_in_is_told_and_stops_nothing(shop: Shop, fields: dict[str, Any]) -> None:
    if "learned" in fields:
        learned = fields["learned"]
        times = replace(foreign("x").memory.times, learned=learned, updated=learned, confirmed=learned)
        fields = {"times": times}
    report = bring(shop, foreign("bad", key="bad", **fields), foreign("good"))
    assert (report.imported, len(report.refused)) == (1, 1)
    assert report.refused[0].startswith("row 'bad': ")
    assert [memory.content for memory in kept(shop)] == ["good"]


def test_the_second_of_two_with_one_id_is_refused_also_in_another_batch(shop: Shop) -> None:
    many = [foreign(f"Hen {number}") for number in range(250)]
    report = bring(shop, *many, replace(many[0], where="row again"), replace(many[-1], where="row twice"))
    assert (report.imported, [text.partition(":")[0] for text in report.refused]) == (250, ["row again", "row twice"])


def test_a_memory_replaced_by_one_that_is_nowhere_is_told(shop: Shop) -> None:
    new = foreign("at seven")
    old = foreign("at six", status=Superseded(by=new.memory.id, since=START))
    lost = foreign("at five", status=Superseded(by=MemoryId(ulid(99)), since=START))
    report = bring(shop, old, lost, new)
    assert (report.imported, len(report.remarks)) == (3, 1)
    assert report.remarks[0].startswith("row 'at five'")
    assert len(bring(shop, old).remarks) == 0


def test_a_store_of_several_says_which_one_it_came_from(shop: Shop) -> None:
    bring(shop, foreign("a", raw={"colour": "red"}), label="left/notebook")
    assert dict(kept(shop)[0].provenance.raw) == {"colour": "red", "store": "left/notebook"}


@pytest.mark.parametrize(
    ("label", "fit"),
    [("../../etc", "_/_/etc"), ("/srv/x", "srv/x"), ("a:b\\c", "a_b_c"), ("a\u202e/./b..c", "a_/_/b..c")],
)
def test_no_label_of_a_store_stands_in_the_way_of_an_export(shop: Shop, label: str, fit: str) -> None:
    bring(
        shop,
        foreign("Hens are fed at six"),
        foreign("Eggs are sorted by size", raw={"store": label}),
        Keepsake(format="notebook", store=label, key="settings", text="{}"),
        label=label,
    )

    stores = shop.do(shop.backend.keepsakes.kept("notebook"))
    assert [memory.provenance.raw["store"] for memory in kept(shop)] == [fit, fit]
    assert [keepsake.store for keepsake in stores] == [fit]


def test_the_words_of_a_status_are_cleaned_and_masked(shop: Shop) -> None:
    odd = f"heard \x1b[31mtwice, key {GHP}"
    bring(
        shop,
        foreign("Hens are fed at six", status=Conflicted(evidence=odd, since=START)),
        foreign("Eggs are sorted by size", status=Deleted(since=START, reason=odd)),
    )

    told = [str(memory.status) for memory in kept(shop)]
    assert len(told) == 2
    assert not any(GHP in text or "\\x1b" in text for text in told)


def test_a_source_that_breaks_off_keeps_what_came_before(shop: Shop) -> None:
    def torn(error: Exception) -> Iterator[ForeignRecord]:
        yield foreign(f"before {type(error).__name__}")
        raise error

    for error in (InputError("page 2 is torn", field="place"), OSError("gone"), ValueError("odd"), RecursionError()):
        report = shop.do(shop.importing.bring_in(torn(error), shop.person, ImportPolicy()))
        assert (report.imported, len(report.refused)) == (1, 1)


def test_a_million_bad_records_are_counted_and_a_thousand_told(shop: Shop) -> None:
    bad = (Unreadable(where=f"row {number}", reason="it is empty") for number in range(20_000))
    report = shop.do(shop.importing.bring_in(bad, shop.person, ImportPolicy()))
    assert (len(report.refused), len(report.refused.told)) == (20_000, 1000)


def test_local_only_and_private_stay_what_they_are(shop: Shop) -> None:
    bring(shop, foreign("a", sensitivity=Sensitivity.LOCAL_ONLY), foreign("b", sensitivity=Sensitivity.PRIVATE))
    assert [memory.sensitivity for memory in kept(shop)] == [Sensitivity.LOCAL_ONLY, Sensitivity.PRIVATE]
