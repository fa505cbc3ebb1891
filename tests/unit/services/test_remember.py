"""What becomes of a statement: stored, confirmed, changed, forgotten, refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from backstory.domain.admission import TextLimits
from backstory.domain.history import Action, Author, Change
from backstory.domain.ids import SessionId
from backstory.domain.lifecycle import Revision
from backstory.domain.memory import Active, Deleted, Sensitivity, Tier, Visibility
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import Selection
from backstory.errors import AmbiguousMatch, Conflict, InputError, NotFound, OutOfScope
from backstory.testing.fakes import START

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop

HOUR = timedelta(hours=1)


def test_a_statement_gets_its_place_dates_and_number(shop: Shop) -> None:
    done = shop.say("We deploy on Fridays.", tags=["ops"], area="deploy", issue="OPS-1")
    assert done.fresh
    assert done.memory == shop.stored(1)
    assert (done.memory.visibility, done.memory.project) == (Visibility.PROJECT, shop.person.project)
    assert (done.memory.times.learned, done.memory.provenance.session) == (START, shop.person.session)
    assert (done.change.action, done.change.author) == (Action.ADD, Author.USER)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The flag is `useLive`.", "The flag is `uselive`."),
        ("Setup is told in README.", "Setup is told in readme."),
        ("The variable is PATH.", "The variable is path."),
    ],
)
def test_statements_that_differ_in_the_case_of_a_name_are_two(shop: Shop, one: str, other: str) -> None:
    shop.say(one)
    assert shop.say(other).fresh
    assert not shop.say(f" {other}").fresh
    assert [shop.stored(1).content, shop.stored(2).content] == [one, other]


def test_a_name_whose_case_was_wrong_is_put_right(shop: Shop) -> None:
    shop.say("The flag is `uselive`.")
    assert shop.update(1, content="The flag is `useLive`.").content == "The flag is `useLive`."


def test_outside_every_project_a_statement_is_global(shop: Shop) -> None:
    outside = replace(shop.person, project=None)
    assert shop.say("x", viewer=outside).memory.visibility is Visibility.GLOBAL
    with pytest.raises(InputError, match="no project here"):
        shop.say("y", viewer=outside, visibility=Visibility.PROJECT)
    with pytest.raises(InputError, match="no session here"):
        shop.say("y", viewer=replace(outside, session=None), visibility=Visibility.SESSION)


def test_a_known_text_is_confirmed_instead_of_stored_twice(shop: Shop) -> None:
    shop.say("We deploy on Fridays", tags=["a"], origin=Origin.AGENT)
    shop.clock.advance(HOUR)
    again = shop.say("  we DEPLOY on\nfridays", tags=["b"], pinned=True, area="deploy")
    assert (again.fresh, again.memory.n, again.change.action) == (False, 1, Action.CONFIRM)
    memory = shop.stored(1)
    assert memory.content == "We deploy on Fridays"
    assert (memory.tags, memory.pinned, memory.area, memory.origin) == (("a", "b"), True, "deploy", Origin.USER)
    assert (memory.times.learned, memory.times.confirmed) == (START, START + HOUR)


def test_a_full_stop_makes_no_other_memory(shop: Shop) -> None:
    shop.say("releases are cut on Tuesdays")
    assert not shop.say("Releases are cut on Tuesdays.").fresh
    shop.say("the lint command is ruff check .")
    assert shop.say("the lint command is ruff check").fresh
    assert [shop.say(text).memory.n for text in ("is it on?", "is it on", "is it on!")] == [4, 5, 6]


def test_a_text_for_other_readers_is_another_memory(shop: Shop) -> None:
    others: list[tuple[Viewer, dict[str, Any]]] = [
        (shop.person, {"visibility": Visibility.GLOBAL}),
        (shop.person, {"visibility": Visibility.SESSION}),
        (replace(shop.person, session=SessionId("ses-2")), {"visibility": Visibility.SESSION}),
        (shop.person, {"sensitivity": Sensitivity.LOCAL_ONLY}),
        (shop.elsewhere, {}),
    ]
    shop.say("same words")
    for number, (viewer, fields) in enumerate(others, start=2):
        assert shop.say("same words", viewer=viewer, **fields).memory.n == number
        assert shop.say("SAME words", viewer=viewer, **fields).memory.n == number


def test_a_forgotten_replaced_or_expired_text_may_be_said_anew(shop: Shop) -> None:
    shop.say("one")
    shop.forget(1)
    shop.say("two")
    shop.say("three", supersedes="#2")
    shop.say("four", expires_in=HOUR)
    shop.clock.advance(HOUR)
    assert [shop.say(text).memory.n for text in ("one", "two", "four")] == [5, 6, 7]


def test_saying_something_temporary_again_lets_it_live_longer(shop: Shop) -> None:
    shop.say("the vpn is down", expires_in=HOUR)
    shop.clock.advance(HOUR / 2)
    assert shop.say("the vpn is down", expires_in=HOUR * 2).memory.expires_at == START + HOUR * 2.5
    assert shop.say("the vpn is down", expires_in=HOUR).memory.expires_at == START + HOUR * 2.5
    kept = shop.say("the vpn is down").memory
    assert (kept.n, kept.tier, kept.expires_at) == (1, Tier.ARCHIVAL, None)
    assert shop.say("the vpn is down", expires_in=HOUR).memory.expires_at is None


def test_a_statement_delivered_again_stores_nothing_more(shop: Shop) -> None:
    first = shop.say("fact", key="capture:m1:0")
    again = shop.say("fact", key="capture:m1:0")
    assert (again.fresh, again.change) == (False, first.change)
    shop.forget(1)
    assert shop.say("fact", key="capture:m1:0").change == first.change
    assert shop.state(1) == "deleted"
    assert len(shop.do(shop.backend.memories.history())) == 2


def test_what_somebody_stores_between_looking_and_writing_is_confirmed(shop: Shop) -> None:
    commit = shop.backend.memories.commit

    async def commit_second(change: Change, *, absent: Selection | None = None) -> Change:
        setattr(shop.backend.memories, "commit", commit)  # noqa: B010  # the port has no such attribute to set
        shop.say("same words")  # the other process is faster
        return await commit(change, absent=absent)

    setattr(shop.backend.memories, "commit", commit_second)  # noqa: B010
    done = shop.say("Same Words")
    assert (done.fresh, done.memory.n, done.change.action) == (False, 1, Action.CONFIRM)


def test_too_long_private_and_empty_texts_are_refused(shop: Shop) -> None:
    shop.limits = TextLimits(max_chars=10)
    for text, words in (("x" * 11, "11 characters"), ("<private>x</private>", "private"), (" ", "blank")):
        with pytest.raises(InputError, match=words):
            shop.say(text)
    assert shop.do(shop.backend.memories.history()) == []


def test_a_lifetime_lies_in_the_future(shop: Shop) -> None:
    with pytest.raises(InputError, match="future"):
        shop.say("x", expires_in=-HOUR)
    assert shop.say("y", tier=Tier.TEMPORARY).memory.expires_at == START + timedelta(hours=24)


def test_no_update_makes_a_duplicate(shop: Shop) -> None:
    shop.say("fact one")
    shop.say("fact two")
    shop.say("fact one", sensitivity=Sensitivity.PRIVATE)
    with pytest.raises(Conflict, match="#1 says so already"):
        shop.update(2, content="Fact  ONE")
    with pytest.raises(Conflict, match="#1 says so already"):
        shop.update(3, sensitivity=Sensitivity.NORMAL)
    assert shop.update(1, content="Fact One").content == "Fact One"
    assert shop.update(2, content="fact three").content == "fact three"


def test_what_somebody_says_between_looking_and_rewording_is_no_duplicate(shop: Shop) -> None:
    shop.say("fact two")
    commit = shop.backend.memories.commit

    async def commit_second(change: Change, *, absent: Selection | None = None) -> Change:
        setattr(shop.backend.memories, "commit", commit)  # noqa: B010
        shop.say("fact one")
        return await commit(change, absent=absent)

    setattr(shop.backend.memories, "commit", commit_second)  # noqa: B010
    with pytest.raises(Conflict):
        shop.update(1, content="fact one")


def test_another_projects_memory_is_neither_replaced_nor_changed(shop: Shop) -> None:
    shop.say("theirs", viewer=shop.elsewhere)
    wide = replace(shop.person, all_projects=True)
    calls = [
        shop.remember.update("#1", Revision(content="x"), viewer=wide, author=Author.USER),
        shop.remember.forget(["#1"], viewer=wide, author=Author.USER),
        shop.remember.pin("#1", pinned=True, viewer=wide, author=Author.USER),
    ]
    for call in calls:
        with pytest.raises(OutOfScope):
            shop.do(call)
    with pytest.raises(OutOfScope):
        shop.say("ours", viewer=wide, supersedes="#1")
    assert shop.stored(1).revision == 1


def test_a_memory_is_forgotten_once(shop: Shop) -> None:
    shop.say("a")
    shop.forget(1, 1)
    with pytest.raises(NotFound, match="forgotten"):
        shop.forget(1)
    with pytest.raises(NotFound, match="no memory #7"):
        shop.forget(7)


def test_a_text_that_fits_several_memories_changes_none(shop: Shop) -> None:
    shop.say("We deploy on Fridays")
    shop.say("We deploy by hand")
    with pytest.raises(AmbiguousMatch) as caught:
        shop.do(shop.remember.forget(["we deploy"], viewer=shop.person, author=Author.USER))
    assert len(caught.value.candidates) == 2
    assert len(shop.do(shop.backend.memories.history())) == 2


def test_an_update_keeps_what_it_does_not_name(shop: Shop) -> None:
    shop.say("a", tags=["t"], issue="X-1")
    shop.clock.advance(HOUR)
    memory = shop.update(1, content="b")
    assert (memory.content, memory.tags, memory.issue) == ("b", ("t",), "X-1")
    assert (memory.times.learned, memory.times.updated) == (START, START + HOUR)


def test_a_memory_whose_readers_change_belongs_where_that_was_decided(shop: Shop) -> None:
    shop.say("a", viewer=replace(shop.elsewhere, project=None), visibility=Visibility.GLOBAL)
    assert shop.update(1, visibility=Visibility.PROJECT).project == shop.person.project
    assert shop.update(1, visibility=Visibility.SESSION).session == shop.person.session
    call = shop.remember.update(
        "#1", Revision(visibility=Visibility.PROJECT), viewer=replace(shop.person, project=None), author=Author.USER
    )
    with pytest.raises((InputError, OutOfScope)):
        shop.do(call)


def test_outside_every_project_a_model_has_to_say_that_a_fact_holds_in_all_of_them(shop: Shop) -> None:
    nowhere = replace(shop.elsewhere, project=None)
    with pytest.raises(InputError, match="no project is known"):
        shop.say("a", viewer=replace(nowhere, audience=Audience.MODEL))
    shop.say("b", viewer=replace(nowhere, audience=Audience.PERSON))
    shop.say("c", viewer=replace(nowhere, audience=Audience.MODEL), visibility=Visibility.GLOBAL)
    kept = shop.do(shop.backend.memories.select(Selection(viewer=shop.person, now=shop.clock.now()), limit=5))
    assert [(memory.content, memory.visibility) for memory in kept] == [
        ("c", Visibility.GLOBAL), ("b", Visibility.GLOBAL),
    ]  # fmt: skip


def test_a_tier_brings_or_ends_a_lifetime(shop: Shop) -> None:
    shop.say("a")
    assert shop.update(1, tier=Tier.TEMPORARY).expires_at == START + timedelta(hours=24)
    assert shop.update(1, tier=Tier.ARCHIVAL).expires_at is None


def test_retagging_reaches_what_may_be_changed_and_nothing_else(shop: Shop) -> None:
    shop.say("ours", tags=["old", "x"])
    shop.say("global", tags=["old"], visibility=Visibility.GLOBAL)
    shop.say("theirs", tags=["old"], viewer=shop.elsewhere)
    wide = replace(shop.person, all_projects=True)
    change = shop.do(shop.remember.retag("old", "new", viewer=wide, author=Author.USER))
    assert change is not None
    assert [shop.stored(n).tags for n in (1, 2, 3)] == [("new", "x"), ("new",), ("old",)]
    assert shop.do(shop.remember.retag("nosuch", "new", viewer=wide, author=Author.USER)) is None


def test_a_local_only_memory_does_not_exist_for_a_model(shop: Shop) -> None:
    shop.say("secret", sensitivity=Sensitivity.LOCAL_ONLY)
    with pytest.raises(NotFound, match="no memory #1"):
        shop.forget(1, viewer=shop.model)
    assert isinstance(shop.stored(1).status, Active)


def test_what_changes_nothing_is_no_change(shop: Shop) -> None:
    shop.say("a", pinned=True, tags=("x",))
    same = Revision(content="a", tags=("x",))
    assert shop.do(shop.remember.update("#1", same, viewer=shop.person, author=Author.USER)) is None
    assert shop.do(shop.remember.pin("#1", pinned=True, viewer=shop.person, author=Author.USER)) is None
    with pytest.raises(InputError, match="already"):
        shop.do(shop.remember.retag("x", " x ", viewer=shop.person, author=Author.USER))
    assert len(shop.do(shop.backend.memories.history())) == 1


def test_forgetting_nothing_is_an_error(shop: Shop) -> None:
    with pytest.raises(InputError, match="no memory is named"):
        shop.do(shop.remember.forget([], viewer=shop.person, author=Author.USER))


def test_a_reason_never_stops_a_change(shop: Shop) -> None:
    shop.say("a")
    reason = "wrong,\nsince " + "the staging cluster moved " * 40
    change = shop.do(shop.remember.forget(["#1"], viewer=shop.person, author=Author.USER, reason=reason))
    assert change.reason is not None
    assert change.reason.startswith("wrong, since the")
    assert len(change.reason) <= 500
    assert isinstance(change.edits[0].after.status, Deleted)
    assert change.edits[0].after.status.reason == change.reason


def test_labels_are_kept_and_renamed_in_one_form(shop: Shop) -> None:
    stored = shop.say("a", area="/deploy//staging/", tags=("cafe\u0301",)).memory
    assert (stored.area, stored.tags) == ("deploy/staging", ("café",))
    change = shop.do(shop.remember.retag("cafe\u0301", "bar", viewer=shop.person, author=Author.USER))
    assert change is not None
    assert change.edits[0].after.tags == ("bar",)


def test_an_expiry_and_a_sensitivity_can_be_taken_back(shop: Shop) -> None:
    shop.say("a", expires_in=timedelta(hours=1), sensitivity=Sensitivity.LOCAL_ONLY)
    memory = shop.update(1, lasting=True, sensitivity=Sensitivity.NORMAL)
    assert (memory.tier, memory.expires_at, memory.sensitivity) == (Tier.ARCHIVAL, None, Sensitivity.NORMAL)
