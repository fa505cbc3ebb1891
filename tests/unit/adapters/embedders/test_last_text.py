"""Reading a prompt once, though two searches ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from backstory.adapters.embedders.last_text import LastText
from backstory.entrypoints.drive import drive
from backstory.errors import ModelError
from backstory.ports.models import Passage
from backstory.testing.fakes import HashEmbedder


class Counting(HashEmbedder):
    """Notes what it was asked to read."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []

    async def read(self, texts: Sequence[str]) -> list[Passage | None]:
        self.asked.append(list(texts))
        return [passage and replace(passage, query=(1.0, 0.0)) for passage in await super().read(texts)]


def test_the_same_text_is_read_once() -> None:
    inner = Counting()
    embedder = LastText(inner)
    (passage,) = drive(embedder.read(["the heron"]))
    assert passage is not None
    assert passage.query == (1.0, 0.0)
    assert drive(embedder.embed(["the heron"])) == [passage.vector]
    assert drive(embedder.read(["another heron"])) != [passage]
    assert drive(embedder.read(["the heron"])) == [passage]
    assert inner.asked == [["the heron"], ["another heron"], ["the heron"]]
    assert drive(embedder.model()) == drive(inner.model())


def test_batches_are_passed_on_and_nothing_is_kept_of_a_failure() -> None:
    inner = Counting()
    embedder = LastText(inner)
    assert drive(embedder.embed(["a heron", "a stork"])) == drive(inner.embed(["a heron", "a stork"]))
    assert drive(embedder.read(["a heron", "a stork"])) == drive(inner.read(["a heron", "a stork"]))
    inner.failing = True
    with pytest.raises(ModelError):
        drive(embedder.read(["the heron"]))
    inner.failing = False
    assert drive(embedder.read(["the heron"])) == drive(inner.read(["the heron"]))


def test_a_closed_one_has_forgotten_the_text() -> None:
    inner = Counting()
    embedder = LastText(inner)
    drive(embedder.read(["the heron"]))
    drive(embedder.close())
    drive(embedder.read(["the heron"]))
    assert len(inner.asked) == 2
