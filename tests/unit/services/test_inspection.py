"""What is known of a memory, and what a viewer may see of its past."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from backstory.domain.conversation import FrozenBlock, Message, Role, Session, ShownMemory
from backstory.domain.doubt import Doubt
from backstory.domain.history import Action, Author, Edit
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.lifecycle import Revision
from backstory.domain.memory import Conflicted, Expired, Kind, Sensitivity, Source, Superseded, Tier, Visibility
from backstory.domain.provenance import Provenance
from backstory.domain.scope import Audience, Viewer
from backstory.errors import OutOfScope
from backstory.services.prompt_block import Context
from backstory.testing.fakes import START, sample_change

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop

SESSION = SessionId("ses-1")


def update(shop: Shop, revision: Revision) -> None:
    shop.do(shop.remember.update("#1", revision, viewer=shop.person, author=Author.USER))


def test_a_story_tells_source_history_and_showings(shop: Shop) -> None:
    message = Message(id=MessageId("m1"), session=SESSION, role=Role.USER, created_at=START)
    shop.do(shop.backend.conversations.put_messages([message]))
    memory = shop.say("a", provenance=Provenance(session=SESSION, messages=(message.id,))).memory
    newer = shop.say("b", supersedes="#1").memory
    shown = ShownMemory(memory=memory.id, n=1, score=0.5, reason="words")
    block = FrozenBlock(
        message=message.id, session=SESSION, text="x", shown=(shown,), silent_because=None, created_at=START
    )
    shop.do(shop.backend.conversations.freeze_block(block))
    story = shop.do(shop.inspection.why("#1", shop.person))
    assert story.messages == (message,)
    assert [change.action for change in story.changes] == [Action.SUPERSEDE, Action.ADD]
    assert [(showing.reason, showing.score) for showing in story.showings] == [("words", 0.5)]
    replaced = shop.do(shop.inspection.why(newer.id, shop.person)).replaced
    assert [item.n for item in replaced] == [1]


def test_a_forgotten_memory_can_be_explained(shop: Shop) -> None:
    shop.say("a")
    shop.forget(1)
    assert len(shop.do(shop.inspection.why("#1", shop.person)).changes) == 2


def test_an_expired_memory_is_told_as_expired(shop: Shop) -> None:
    memory = shop.say("a", expires_in=shop.clock.now() - START + (START - START.replace(hour=11))).memory
    assert memory.expires_at is not None
    shop.clock.moment = memory.expires_at
    assert shop.do(shop.inspection.why("#1", shop.person)).status == Expired(since=memory.expires_at)


def test_history_stops_at_borders(shop: Shop) -> None:
    shop.say("ours")
    shop.say("theirs", viewer=shop.elsewhere)
    assert [change.edits[0].after.content for change in shop.do(shop.inspection.history(shop.person))] == ["ours"]
    with pytest.raises(OutOfScope):
        shop.do(shop.inspection.history(shop.person, ref="#2"))


def test_a_memory_made_local_only_takes_its_past_with_it(shop: Shop) -> None:
    shop.say("my doctor is Dr. Heron")
    update(shop, Revision(sensitivity=Sensitivity.LOCAL_ONLY))
    assert shop.do(shop.inspection.history(shop.model)) == []
    assert len(shop.do(shop.inspection.history(shop.person))) == 2


def test_what_was_local_only_stays_so_when_the_memory_is_opened(shop: Shop) -> None:
    shop.say("my doctor is Dr. Heron", sensitivity=Sensitivity.LOCAL_ONLY)
    update(shop, Revision(content="I have a doctor", sensitivity=Sensitivity.NORMAL))
    shop.do(shop.remember.pin("#1", pinned=True, viewer=shop.person, author=Author.USER))
    for ref in (None, "#1"):
        changes = shop.do(shop.inspection.history(shop.model, ref=ref))
        assert [change.action for change in changes] == [Action.PIN]
        assert "Heron" not in repr(changes)


def test_a_model_reads_no_words_of_what_is_forgotten_in_its_history(shop: Shop) -> None:
    shop.say("my doctor is Dr. Heron", tags=("heron",))
    update(shop, Revision(content="my doctor was Dr. Heron"))
    shop.forget(1)
    changes = shop.do(shop.inspection.history(shop.model))
    assert [change.action for change in changes] == [Action.FORGET, Action.UPDATE, Action.ADD]
    assert "heron" not in repr(changes).lower()
    assert "Heron" in repr(shop.do(shop.inspection.history(shop.person)))


def test_counts_are_as_far_as_the_viewer_sees(shop: Shop) -> None:
    shop.say("a")
    shop.say("b", sensitivity=Sensitivity.LOCAL_ONLY)
    shop.say("c", viewer=shop.elsewhere)
    shop.say("d")
    shop.forget(4)
    assert shop.do(shop.inspection.statistics(shop.model)).current == 1
    counts = shop.do(shop.inspection.statistics(shop.person))
    assert (counts.current, counts.by_state["deleted"]) == (2, 1)


def test_a_model_hears_nothing_of_other_projects_sessions(shop: Shop) -> None:
    message = Message(id=MessageId("m1"), session=SESSION, role=Role.USER, created_at=START)
    shop.do(shop.backend.conversations.put_messages([message]))
    for session, project in ((SESSION, shop.model.project), (SessionId("ses-9"), shop.elsewhere.project)):
        told = Session(id=session, project=project, host="x", directory="/", created_at=START, updated_at=START)
        shop.do(shop.backend.conversations.put_session(told))
    memory = shop.say(
        "everywhere", visibility=Visibility.GLOBAL, provenance=Provenance(session=SESSION, messages=(message.id,))
    ).memory
    shown = ShownMemory(memory=memory.id, n=1, score=0.5, reason="words")
    block = FrozenBlock(
        message=message.id, session=SESSION, text="x", shown=(shown,), silent_because=None, created_at=START
    )
    shop.do(shop.backend.conversations.freeze_block(block))
    here, away = shop.do(shop.inspection.why("#1", shop.model)), shop.do(shop.inspection.why("#1", shop.elsewhere))
    assert (here.session is None, len(here.messages), len(here.showings)) == (False, 1, 1)
    assert (away.session, away.messages, away.showings) == (None, (), ())
    person = replace(shop.elsewhere, audience=Audience.PERSON)
    assert len(shop.do(shop.inspection.why("#1", person)).showings) == 1
    assert shop.do(shop.inspection.recent_blocks(replace(shop.model, session=None))) == [block]
    assert shop.do(shop.inspection.recent_blocks(replace(person, session=None))) == []


def test_history_and_undo_reach_behind_any_number_of_changes_elsewhere(shop: Shop) -> None:
    shop.say("ours")
    for number in range(300):
        shop.say(f"theirs {number}", viewer=shop.elsewhere)
    assert [change.edits[0].after.content for change in shop.do(shop.inspection.history(shop.person))] == ["ours"]
    undone = shop.do(shop.remember.undo(None, viewer=shop.model, author=Author.USER))
    assert [edit.after.content for edit in undone.edits] == ["ours"]


def test_a_story_leaves_out_what_else_a_change_touched(shop: Shop) -> None:
    for text in ("one", "two"):
        shop.say(text)
    shop.forget(1, 2)
    (change, _) = shop.do(shop.inspection.why("#1", shop.person)).changes
    assert [edit.after.n for edit in change.edits] == [1]


def test_a_story_tells_what_followed_what_disputes_it_and_what_it_is_worth(shop: Shop) -> None:
    first = shop.say("the port is 4000").memory
    second = shop.say("the port is 4100", supersedes="#1").memory
    third = shop.say("the port is 4200", supersedes="#2").memory
    other = shop.say("the port is 4300", provenance=Provenance(derived_from=(third.id, first.id))).memory
    disputed = replace(third, status=Conflicted(evidence="the config says 4300", since=START, against=other.id))
    change = sample_change(99, Edit(before=third, after=disputed), action=Action.CONFLICT)
    shop.do(shop.backend.memories.commit(change))
    doubt = Doubt(memory=other.id, anchor="cfg.toml", reason="cfg.toml is gone", since=START)
    shop.do(shop.backend.doubts.replace([other.id], [doubt]))
    stories = [shop.do(shop.inspection.why(f"#{n}", shop.person)) for n in (1, 3, 4)]
    assert [memory.id for memory in stories[0].successors] == [second.id, third.id]
    assert [[memory.n for memory in story.against] for story in stories] == [[], [4], [3]]
    assert [memory.n for memory in stories[2].sources] == [3, 1]
    assert [story.doubt for story in stories] == [None, None, doubt]
    assert stories[0].worth.total == 3.5


def test_a_story_shows_a_model_nothing_local_only_of_what_is_beside_it(shop: Shop) -> None:
    secret = shop.say("the port is 4000", sensitivity=Sensitivity.LOCAL_ONLY).memory
    disputed = shop.say("the port is 4100", provenance=Provenance(derived_from=(secret.id,))).memory
    change = sample_change(
        99,
        Edit(before=disputed, after=replace(disputed, status=Conflicted(evidence="x", since=START, against=secret.id))),
        Edit(before=secret, after=replace(secret, status=Superseded(by=disputed.id, since=START))),
    )
    shop.do(shop.backend.memories.commit(change))
    story = shop.do(shop.inspection.why("#2", shop.model))
    assert (story.against, story.sources, story.replaced) == ((), (), ())
    assert "4000" not in repr(story)
    person = shop.do(shop.inspection.why("#2", shop.person))
    assert [memory.n for memory in (*person.against, *person.sources, *person.replaced)] == [1, 1, 1]


def test_an_overview_counts_what_is_in_sight(shop: Shop) -> None:
    shop.say("abcd", pinned=True, kind=Kind.DECISION)
    shop.say("efghi", tier=Tier.CORE, visibility=Visibility.GLOBAL, source=Source.DREAMED)
    shop.say("jkl", sensitivity=Sensitivity.LOCAL_ONLY)
    shop.say("mno", viewer=shop.elsewhere)
    told = shop.do(shop.inspection.overview(shop.model))
    assert (told.memories, told.pinned, told.private, told.surfaced, told.tokens) == (2, 1, 0, 0, 3)
    assert told.by_source == {"dreamed": 1, "explicit": 1}
    assert told.by_visibility == {"global": 1, "project": 1}
    assert told.by_tier == {"archival": 1, "core": 1}
    assert shop.do(shop.inspection.overview(shop.person)).private == 1


def test_an_overview_reads_every_page(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backstory.services.inspection._PAGE", 2)
    assert shop.do(shop.inspection.overview(shop.person)).memories == 0
    for number in range(4):
        shop.say(f"fact {number}")
    assert shop.do(shop.inspection.overview(shop.person)).memories == 4
    shop.say("one more")
    assert shop.do(shop.inspection.overview(shop.person)).memories == 5


def test_a_block_is_found_by_its_message_within_the_viewers_borders(shop: Shop) -> None:
    for name, viewer in (("m1", shop.model), ("m9", shop.elsewhere)):
        session = viewer.session
        assert session is not None
        told = Session(id=session, project=viewer.project, host="x", directory="/", created_at=START, updated_at=START)
        shop.do(shop.backend.conversations.put_session(told))
        shop.do(shop.blocks.freeze(Context(text="x"), notes=(), message=MessageId(name), session=session))

    def found(viewer: Viewer, message: str | None) -> str | None:
        block = shop.do(shop.inspection.block(viewer, message=None if message is None else MessageId(message)))
        return None if block is None else block.message

    assert [found(shop.model, name) for name in ("m1", "m9", "m7", None)] == ["m1", None, None, "m1"]
    assert found(replace(shop.model, session=SessionId("ses-2")), "m1") == "m1"
    assert [found(shop.person, name) for name in ("m1", "m9")] == ["m1", "m9"]
