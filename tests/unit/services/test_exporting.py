"""What leaves the store, where to, and that everything that left comes in again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from backstory.domain.digest import DigestUpdate
from backstory.domain.history import Action, Author
from backstory.domain.ids import SessionId
from backstory.domain.interchange import UNVOUCHED, ForeignRecord, Keepsake
from backstory.domain.lifecycle import Revision
from backstory.domain.memory import Deleted, Memory, Sensitivity, Superseded, Visibility
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.ports.formats import Exported
from backstory.services.exporting import PAGE, Exporting, ExportPolicy
from backstory.services.exporting_lines import HOLDS, ExportingLines
from backstory.services.import_report import ImportReport
from backstory.services.imported_memories import ImportPolicy
from backstory.testing.fakes import SequentialIds
from tests.stores import STORES
from tests.unit.services.conftest import Shop
from tests.unit.services.foreign import NIGHT, foreign, foreign_digest, foreign_messages, foreign_session


@pytest.fixture(params=["memory", "sqlite"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(backend=STORES[request.param](tmp_path))
    yield made
    made.do(made.backend.memories.close())


@pytest.fixture
def other(shop: Shop) -> Shop:
    return Shop(ids=SequentialIds(series=7))


def stores(shop: Shop, **policy: bool) -> dict[str, Exported]:
    exporting = Exporting(shop.backend, clock=shop.clock)
    found = shop.do(exporting.stores("notebook", shop.person, ExportPolicy(**policy), run=shop.do))
    return {store.label: store for store in found}


def texts(store: Exported) -> list[str]:
    return [memory.content for memory in store.memories]


def lines(shop: Shop, holds: tuple[str, ...] = HOLDS, *, all_projects: bool = True, **policy: bool) -> list[str]:
    exporting = ExportingLines(shop.backend, clock=shop.clock, run=shop.do)
    viewer = replace(shop.person, all_projects=all_projects)
    return list(exporting.lines(viewer, ExportPolicy(**policy), holds=holds, formats=["notebook"]))


def load(shop: Shop, exported: list[str], **options: Any) -> ImportReport:
    return shop.do(shop.transfer.load(exported, shop.person, keep_projects=True, **options))


def everything(shop: Shop) -> list[Memory]:
    selection = Selection(viewer=replace(shop.person, all_projects=True), now=shop.clock.now(), states=EVERY_STATE)
    return shop.do(shop.backend.memories.select(selection, limit=2000))


def farm(shop: Shop) -> None:
    """Memories with a history, and a session with a digest that a file told."""
    shop.say("Hens are fed at six", tags=["hens"], area="barn")
    shop.clock.advance(timedelta(hours=1))
    shop.do(
        shop.remember.update("#1", Revision(content="Hens are fed at seven"), viewer=shop.person, author=Author.USER)
    )
    shop.say("Hens are fed at eight", supersedes="#1", visibility=Visibility.GLOBAL)
    shop.say("The cock crows at five")
    shop.forget(3)
    shop.say("The safe is behind the clock", sensitivity=Sensitivity.LOCAL_ONLY)
    shop.say("The vet is expensive", sensitivity=Sensitivity.PRIVATE)
    records: list[ForeignRecord] = [
        foreign_session(), foreign_messages("Who feeds the hens?", "x" * 70_000), foreign_digest("Whoever is up"),
        Keepsake(format="notebook", store="", key="paper", text='{"lined": true}', session=NIGHT),
    ]  # fmt: skip
    shop.do(shop.importing.bring_in(records, shop.person, ImportPolicy(trusted=True)))


def test_what_came_from_a_store_goes_back_to_its_place_and_the_rest_to_the_main_one(shop: Shop) -> None:
    shop.say("Hens are fed at six")
    for label in ("left", "right/inner"):
        shop.do(shop.importing.bring_in([foreign(f"in {label}")], shop.person, ImportPolicy(), label=label))
    found = stores(shop, whole_stores=True)
    assert {label: texts(store) for label, store in found.items()} == {
        "": ["Hens are fed at six"], "left": ["in left"], "right/inner": ["in right/inner"],
    }  # fmt: skip


def test_the_only_store_gets_what_was_said_here_too(shop: Shop) -> None:
    shop.do(shop.importing.bring_in([foreign("theirs")], shop.person, ImportPolicy(), label="left"))
    shop.say("ours")
    assert texts(stores(shop, whole_stores=True)["left"]) == ["theirs", "ours"]


def test_other_projects_go_along_only_with_the_store_they_came_from(shop: Shop) -> None:
    elsewhere = replace(shop.elsewhere, audience=shop.person.audience)
    shop.say("said elsewhere", viewer=elsewhere)
    shop.do(shop.importing.bring_in([foreign("theirs", place="/nowhere/else")], shop.person, ImportPolicy()))
    assert texts(stores(shop, whole_stores=True)[""]) == ["theirs"]
    assert stores(shop) == {}


def test_local_only_never_leaves_and_private_if_asked(shop: Shop) -> None:
    for sensitivity in Sensitivity:
        record = foreign(sensitivity.value, sensitivity=sensitivity, place=None)
        shop.do(shop.importing.bring_in([record], shop.person, ImportPolicy()))
    assert texts(stores(shop)[""]) == ["normal"]
    assert sorted(texts(stores(shop, private=True)[""])) == ["normal", "private"]


def test_sessions_go_back_with_their_keepsakes(shop: Shop) -> None:
    farm(shop)
    store = stores(shop, whole_stores=True)[""]
    [told] = list(store.sessions)
    assert (told.session.id, len(told.messages), [keepsake.key for keepsake in store.keepsakes]) == (
        NIGHT,
        2,
        ["paper"],
    )
    assert told.digest is not None
    assert [piece.text for piece in told.digest.pieces] == ["Whoever is up"]


def test_a_digest_that_nobody_vouched_for_goes_back_where_it_came_from_and_nowhere_else(shop: Shop) -> None:
    farm(shop)
    digest = shop.do(shop.backend.digests.digest(NIGHT))
    assert digest is not None
    shop.do(shop.backend.digests.apply(DigestUpdate(state=replace(digest.state, problem=UNVOUCHED))))
    own = stores(shop, whole_stores=True)[""]
    assert [told.digest is not None for told in own.sessions] == [True]
    exporting = Exporting(shop.backend, clock=shop.clock)
    everywhere = replace(shop.person, all_projects=True)
    [other] = shop.do(exporting.stores("memory-tree", everywhere, ExportPolicy(), run=shop.do))
    assert [(told.session.id, told.digest) for told in other.sessions] == [(NIGHT, None)]
    assert other.kept_back == [f"the digest of session {NIGHT}: it came from a file that nobody vouched for"]
    shop.do(shop.backend.digests.apply(DigestUpdate(state=replace(digest.state, problem=None, revision=2))))
    [other] = shop.do(exporting.stores("memory-tree", everywhere, ExportPolicy(), run=shop.do))
    assert [told.digest is not None for told in other.sessions] == [True]


def test_everything_that_left_comes_in_again_with_its_history(shop: Shop, other: Shop) -> None:
    farm(shop)
    exported = lines(shop, forgotten=True, private=True)
    foreseen = load(other, exported, trusted=True, dry_run=True)
    report = load(other, exported, trusted=True)
    assert foreseen.new == report.new
    assert (list(report.refused), list(report.conflicts)) == ([], [])
    assert (report.new.memories, report.new.sessions, report.new.messages, report.new.nodes) == (4, 1, 2, 1)
    assert (report.new.history, report.new.keepsakes, report.updated.records) == (6, 1, 0)
    ours = {memory.id: memory for memory in everything(shop)}
    for memory in everything(other):
        assert replace(memory, n=0, revision=0) == replace(ours[memory.id], n=0, revision=0)
    assert isinstance(
        next(m for m in everything(other) if "six" in m.content or "seven" in m.content).status, Superseded
    )
    story = other.do(other.backend.memories.history(limit=50))
    assert [(change.id, change.action, change.at) for change in story] == [
        (change.id, change.action, change.at)
        for change in shop.do(shop.backend.memories.history(limit=50))
        if not any(edit.after.sensitivity is Sensitivity.LOCAL_ONLY for edit in change.edits)
    ]
    messages, session = shop.backend.conversations.messages, shop.backend.conversations.session
    assert other.do(other.backend.conversations.messages(NIGHT)) == shop.do(messages(NIGHT))
    there, here = other.do(other.backend.conversations.session(NIGHT)), shop.do(session(NIGHT))
    assert there is not None
    assert replace(there, project=None) == replace(here or there, project=None)
    assert other.do(other.backend.digests.digest(NIGHT)) == shop.do(shop.backend.digests.digest(NIGHT))


def test_it_comes_in_once(shop: Shop, other: Shop) -> None:
    farm(shop)
    exported = lines(shop, forgotten=True, private=True)
    load(other, exported, trusted=True)
    again = load(other, exported, trusted=True)
    assert (again.imported, again.updated.records, again.changes, len(again.conflicts)) == (0, 0, [], 0)
    assert (again.known.history, again.known.messages) == (6, 2)


def test_without_a_persons_word_the_history_stays_out(shop: Shop, other: Shop) -> None:
    farm(shop)
    report = load(other, lines(shop))
    assert (report.new.history, len(report.remarks), report.new.memories) == (0, 1, 2)
    assert {change.action for change in other.do(other.backend.memories.history(limit=9))} == {Action.IMPORT}


def test_history_never_changes_what_happened_here(shop: Shop, other: Shop) -> None:
    farm(shop)
    load(other, lines(shop, ("sessions",)), trusted=True)
    before = everything(other)
    report = load(other, lines(shop), trusted=True)
    assert (report.new.history, everything(other)) == (0, before)
    assert len(report.conflicts) > 0


def test_a_host_s_own_session_comes_back_as_a_files(shop: Shop, other: Shop) -> None:
    told = replace(foreign_session().session, host="opencode", project=shop.person.project)
    shop.do(shop.conversations.take_session(told))
    shop.do(shop.conversations.take_messages(foreign_messages("Who feeds the hens?").messages))
    assert load(other, lines(shop), trusted=True).new.messages == 1
    there = other.do(other.backend.conversations.session(SessionId(NIGHT)))
    assert there is not None
    assert there.host == "import:opencode"
    assert load(shop, lines(shop), trusted=True).imported == 0


def test_more_memories_of_one_moment_than_a_page_are_all_written(shop: Shop) -> None:
    records = [foreign(f"Hen {number}") for number in range(2 * PAGE + 3)]
    shop.do(shop.importing.bring_in(records, shop.person, ImportPolicy()))
    shop.say("later")
    ids = [json.loads(line)["id"] for line in lines(shop, ())[1:]]
    assert (len(ids), len(set(ids))) == (2 * PAGE + 4, 2 * PAGE + 4)


def test_a_file_of_a_hostile_project_is_known_by_its_folder_here(shop: Shop, other: Shop) -> None:
    shop.do(shop.importing.bring_in([foreign("theirs")], shop.person, ImportPolicy()))
    other.do(other.importing.bring_in([foreign("mine")], other.person, ImportPolicy()))
    load(other, lines(shop))
    assert len({memory.project for memory in everything(other)}) == 1


def test_what_was_forgotten_stays_forgotten_elsewhere(shop: Shop, other: Shop) -> None:
    farm(shop)
    load(other, lines(shop, forgotten=True), trusted=True)
    assert isinstance(next(memory for memory in everything(other) if "cock" in memory.content).status, Deleted)


def test_keepsakes_leave_with_what_they_belong_to(shop: Shop) -> None:
    open_one, closed = foreign("open"), foreign("closed", sensitivity=Sensitivity.LOCAL_ONLY)
    belonging: dict[str, dict[str, Any]] = {
        "open": {"memory": open_one.memory.id}, "closed": {"memory": closed.memory.id}, "said": {"session": NIGHT},
        "nobody's": {"session": SessionId("ses_gone")}, "store": {},
    }  # fmt: skip
    keepsakes = [Keepsake(format="notebook", store="", key=key, text="{}", **of) for key, of in belonging.items()]
    records: list[ForeignRecord] = [open_one, closed, foreign_session(), *keepsakes]
    shop.do(shop.importing.bring_in(records, shop.person, ImportPolicy()))
    whole = stores(shop, whole_stores=True)[""]
    assert [keepsake.key for keepsake in whole.keepsakes] == ["open", "said", "store"]
    told = [json.loads(line) for line in lines(shop)]
    assert [line["key"] for line in told if line.get("type") == "keepsake"] == ["open", "said", "store"]
    mine = [json.loads(line) for line in lines(shop, all_projects=False)]
    assert [line for line in mine if line.get("type") == "keepsake"] == []
