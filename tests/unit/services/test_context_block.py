"""What the model is shown: frozen once, replayed ever after, and never an error."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from backstory.domain.history import Author
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.lifecycle import Revision
from backstory.domain.memory import Sensitivity, Tier, Visibility
from backstory.domain.provenance import Origin
from backstory.errors import StoreUnavailable
from backstory.services.prompt_block import Context
from backstory.testing.fakes import failing_backend

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop

M1, M2 = MessageId("msg-1"), MessageId("msg-2")
SESSION = SessionId("ses-1")
FACT = "The invoice service runs on port 8443"


def block_for(shop: Shop, prompt: str) -> Context:
    return shop.do(shop.blocks.for_prompt(prompt, shop.model))


def freeze(shop: Shop, context: Context, message: MessageId = M1, *notes: str) -> str | None:
    return shop.do(shop.blocks.freeze(context, notes=notes, message=message, session=SESSION))


def test_a_block_holds_what_answers_and_why(shop: Shop) -> None:
    shop.say(FACT)
    context = block_for(shop, "on which port does the invoice service run?")
    assert context.text is not None
    assert FACT in context.text
    assert [(item.n, bool(item.reason)) for item in context.shown] == [(1, True)]
    assert 0 < context.shown[0].score <= 1


def test_no_block_has_a_reason(shop: Shop) -> None:
    shop.say(FACT, origin=Origin.WEB)
    for prompt, reason in (("", "no text"), ("zebra", "no memory"), ("invoice service port 8443", "unasked")):
        context = block_for(shop, prompt)
        assert context.text is None
        assert reason in (context.silent_because or "")
    shop.policy = replace(shop.policy, inject=False)
    assert "switched off" in (block_for(shop, FACT).silent_because or "")
    assert shop.do(shop.blocks.snapshot(shop.model, session=SESSION)) is None


def test_what_we_put_there_is_no_query(shop: Shop) -> None:
    shop.say(FACT)
    echoed = f"<backstory-memory>\n- [#1] {FACT}\n</backstory-memory>"
    assert block_for(shop, echoed).silent_because == "the prompt has no text"


def test_a_persons_borders_do_not_open_for_the_model(shop: Shop) -> None:
    shop.say(FACT, sensitivity=Sensitivity.LOCAL_ONLY)
    shop.say(FACT + " there", viewer=shop.elsewhere)
    wide = replace(shop.person, all_projects=True)
    assert shop.do(shop.blocks.for_prompt("invoice service port 8443", wide)).text is None


def test_the_first_frozen_text_is_replayed_byte_for_byte(shop: Shop) -> None:
    shop.say(FACT)
    first = freeze(shop, block_for(shop, "invoice service port"), M1, "stored as #1")
    assert first is not None
    assert "(stored as #1)" in first
    assert freeze(shop, Context(text="something else"), M1) == first
    assert freeze(shop, Context(text=None, silent_because="nothing"), M2) is None
    assert shop.do(shop.blocks.replay([M1, M2, MessageId("unknown")])) == {M1: first}
    assert shop.stored(1).counters.surfaced == 1


def test_a_withdrawn_text_is_never_replayed(shop: Shop) -> None:
    shop.say(FACT)
    freeze(shop, block_for(shop, "invoice service port"))
    shop.do(shop.blocks.withdraw(M1))
    assert shop.do(shop.blocks.replay([M1])) == {}
    frozen = shop.do(shop.blocks.frozen(M1))
    assert frozen is not None
    assert "did not wait" in (frozen.silent_because or "")


def test_imported_look_alikes_do_not_silence_the_users_own(shop: Shop) -> None:
    shop.say(FACT, pinned=True)
    for number in range(70):
        shop.say(f"{FACT} {number}", origin=Origin.IMPORTED, pinned=True, tier=Tier.CORE)
    assert [item.n for item in block_for(shop, "on which port does the invoice service run?").shown] == [1]
    assert FACT in (shop.do(shop.blocks.snapshot(shop.model, session=SESSION)) or "")
    shop.policy = replace(shop.policy, by_recency=True)
    assert [item.n for item in block_for(shop, "hello").shown] == [1]


def test_the_same_words_from_a_file_do_not_silence_the_users_own(shop: Shop) -> None:
    shop.say(FACT, visibility=Visibility.GLOBAL)
    shop.say(FACT, origin=Origin.IMPORTED)
    assert [item.n for item in block_for(shop, "on which port does the invoice service run?").shown] == [1]


def test_a_private_memory_is_found_but_never_offered(shop: Shop) -> None:
    shop.say(FACT, sensitivity=Sensitivity.PRIVATE, pinned=True, tier=Tier.CORE)
    assert block_for(shop, "on which port does the invoice service run?").text is None
    assert shop.do(shop.blocks.snapshot(shop.model, session=SESSION)) is None
    assert shop.found("on which port does the invoice service run?") == [FACT]


@pytest.mark.parametrize("sensitivity", [Sensitivity.LOCAL_ONLY, Sensitivity.PRIVATE, None])
def test_no_frozen_text_shows_a_memory_that_was_closed_or_forgotten(
    shop: Shop, sensitivity: Sensitivity | None
) -> None:
    shop.say(FACT, pinned=True)
    shop.say("Another fact", pinned=True)
    freeze(shop, block_for(shop, "invoice service port"))
    other = freeze(shop, block_for(shop, "another fact"), M2)
    shop.do(shop.blocks.snapshot(shop.model, session=SESSION))
    if sensitivity is None:
        shop.forget(1)
    else:
        closed = Revision(sensitivity=sensitivity)
        shop.do(shop.remember.update("#1", closed, viewer=shop.person, author=Author.USER))
    assert shop.do(shop.blocks.replay([M1, M2])) == {M2: other}
    assert FACT not in (shop.do(shop.blocks.snapshot(shop.model, session=SESSION)) or "")
    shop.undo()
    assert shop.do(shop.blocks.replay([M1, M2])) == {M2: other}


def test_a_snapshot_stays_until_it_is_renewed(shop: Shop) -> None:
    shop.say("core fact", tier=Tier.CORE)
    shop.say("pinned fact", pinned=True)
    shop.say("other fact")
    first = shop.do(shop.blocks.snapshot(shop.model, session=SESSION))
    assert first is not None
    assert first.index("pinned fact") < first.index("core fact")
    assert "other fact" not in first
    shop.say("late core fact", tier=Tier.CORE)
    assert shop.do(shop.blocks.snapshot(shop.model, session=SESSION)) == first
    shop.do(shop.blocks.renew_snapshot(SESSION))
    assert "late core fact" in (shop.do(shop.blocks.snapshot(shop.model, session=SESSION)) or "")


def test_a_session_without_a_snapshot_keeps_having_none(shop: Shop) -> None:
    assert shop.do(shop.blocks.snapshot(shop.model, session=SESSION)) is None
    shop.say("core fact", tier=Tier.CORE)
    assert shop.do(shop.blocks.snapshot(shop.model, session=SESSION)) is None


def test_a_failing_store_means_no_block_and_no_error(shop: Shop) -> None:
    shop.backend = failing_backend(over=shop.backend)
    with pytest.raises(StoreUnavailable):
        block_for(shop, "invoice")
    context = shop.do(shop.blocks.for_prompt_or_nothing("invoice", shop.model))
    assert context.silent_because == "recall failed: the disk is on fire"
    assert freeze(shop, Context(text="kept for this request")) == "kept for this request"
    assert shop.do(shop.blocks.frozen(M1)) is None
    assert shop.do(shop.blocks.replay([M1])) == {}
    shop.do(shop.blocks.withdraw(M1))
    shop.do(shop.blocks.renew_snapshot(SESSION))


def test_a_failing_store_gives_no_snapshot_that_would_hold(shop: Shop) -> None:
    shop.say("core fact", tier=Tier.CORE)
    whole, shop.backend = shop.backend, failing_backend(over=shop.backend)
    with pytest.raises(StoreUnavailable):
        shop.do(shop.blocks.snapshot(shop.model, session=SESSION))
    shop.backend = whole
    assert "core fact" in (shop.do(shop.blocks.snapshot(shop.model, session=SESSION)) or "")


def test_a_store_that_cannot_count_still_gives_the_frozen_text(shop: Shop) -> None:
    shop.say(FACT)
    context = block_for(shop, "invoice service port")
    first = freeze(shop, context)
    shop.backend = failing_backend(only="record_use", over=shop.backend)
    assert freeze(shop, replace(context, text="from a second process")) == first
    assert freeze(shop, context, M2) == first


def test_two_processes_that_freeze_one_message_count_it_once(shop: Shop) -> None:
    shop.say(FACT)
    context = block_for(shop, "invoice service port")
    freeze(shop, context)
    freeze(shop, replace(context, text="from a second process"))
    assert shop.stored(1).counters.surfaced == 1
