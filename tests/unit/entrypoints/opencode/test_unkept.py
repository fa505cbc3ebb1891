"""Wishes the store could not take: tried again, told once, given up in the end."""

from __future__ import annotations

import anyio
import pytest

from backstory.domain.ids import MessageId, SessionId
from backstory.entrypoints.opencode import unkept
from backstory.entrypoints.opencode.unkept import Unkept
from backstory.errors import StoreBusy, StoreDamaged, StoreError, StoreUnavailable
from backstory.services.conversation import Captured, Prompt

PROMPT = Prompt(text="Remember that the door is blue.", message=MessageId("m1"), session=SessionId("s1"))


class Store:
    """Fails with these errors, one a call; afterwards it takes what comes."""

    def __init__(self, *errors: StoreError) -> None:
        self.errors = list(errors)
        self.taken: list[Prompt] = []

    async def capture(self, directory: str, prompt: Prompt) -> Captured:
        if self.errors:
            raise self.errors.pop(0)
        self.taken.append(prompt)
        return Captured(refused=("too long",))


def test_a_wish_is_tried_until_it_is_taken_and_told_once_to_its_session_alone() -> None:
    store = Store(StoreUnavailable("busy"), StoreUnavailable("busy"))
    wishes = Unkept(store.capture)
    wishes.add("/shop", PROMPT)
    wishes.add("/shop", PROMPT)
    for _ in range(2):
        anyio.run(wishes.try_all)
        assert wishes.notes("s1") == ()
    anyio.run(wishes.try_all)
    anyio.run(wishes.try_all)
    assert store.taken == [PROMPT]
    assert wishes.notes("s2") == ()
    (note,) = wishes.notes("s1")
    assert "stored after all" in note
    assert "too long" in note
    assert wishes.notes("s1") == ()


def test_at_the_end_a_wish_is_tried_as_long_as_its_store_is_only_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unkept, "_PAUSES_S", (0.0,))
    store = Store(*[StoreBusy("busy")] * 3, StoreUnavailable("read-only"))
    wishes = Unkept(store.capture)
    anyio.run(wishes.finish)
    wishes.add("/shop", PROMPT)
    anyio.run(wishes.finish)
    assert (store.errors, store.taken) == ([], [])
    anyio.run(wishes.finish)
    assert store.taken == [PROMPT]


def test_a_store_that_cannot_recover_ends_the_wish_at_once() -> None:
    wishes = Unkept(Store(StoreDamaged("garbage")).capture)
    wishes.add("/shop", PROMPT)
    anyio.run(wishes.try_all)
    assert "could NOT be stored" in wishes.notes("s1")[0]


def test_a_wish_is_given_up_after_a_while_and_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(*[StoreUnavailable("read-only")] * 2)
    wishes = Unkept(store.capture)
    wishes.add("/shop", PROMPT)
    anyio.run(wishes.try_all)
    assert wishes.notes("s1") == ()
    monkeypatch.setattr(unkept, "GIVE_UP_AFTER_S", 0.0)
    anyio.run(wishes.try_all)
    assert "not tried any more" in wishes.notes("s1")[0]
    anyio.run(wishes.try_all)
    assert store.taken == []
