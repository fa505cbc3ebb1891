"""A prompt arrives: its block, its statements, once, whatever happens to the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backstory.domain.ids import MessageId, SessionId
from backstory.services.conversation import Prompt
from backstory.testing.fakes import failing_backend

if TYPE_CHECKING:
    from tests.unit.services.conftest import Shop


def take(shop: Shop, text: str, message: str = "msg-1") -> str | None:
    prompt = Prompt(text=text, message=MessageId(message), session=SessionId("ses-1"))
    return shop.do(shop.prompts.take(prompt, shop.model))


def test_a_statement_is_stored_and_said_so_and_not_offered_back(shop: Shop) -> None:
    text = take(shop, "Remember that the staging cluster is called heron-2.")
    assert text is not None
    assert "stored already as #1" in text
    assert "heron-2" not in text
    assert "heron-2" in shop.stored(1).content


def test_a_prompt_delivered_again_gets_the_same_answer(shop: Shop) -> None:
    first = take(shop, "Remember that the staging cluster is called heron-2.")
    for _ in range(8):
        assert take(shop, "Remember that the staging cluster is called heron-2.") == first
    assert len(shop.do(shop.backend.memories.history())) == 1


def test_the_next_prompt_is_answered_from_memory(shop: Shop) -> None:
    take(shop, "Remember that the staging cluster is called heron-2.")
    text = take(shop, "What is the staging cluster called?", "msg-2")
    assert text is not None
    assert "heron-2" in text
    assert take(shop, "Hello!", "msg-3") is None


def test_what_was_refused_is_said(shop: Shop) -> None:
    text = take(shop, "Remember that " + "the log says " * 400 + "so.")
    assert text is not None
    assert "NOT stored" in text


def test_a_store_that_fails_costs_the_memory_not_the_prompt(shop: Shop) -> None:
    shop.backend = failing_backend(over=shop.backend)
    assert take(shop, "What is the staging cluster called?") is None
    text = take(shop, "Remember that the staging cluster is called heron-2.")
    assert text is not None
    assert "could NOT be stored" in text
