"""The benches over a real store in a file: what is asked, what noise does, and what is kept between runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import anyio

from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.ids import MessageId, PartId, ProjectId, SessionId
from backstory.domain.relevance import Relevance
from backstory.ports.backend import Backend
from backstory.ports.models import Passage
from backstory.testing.fakes import HashEmbedder
from bench.asking import Asked, ask, settings
from bench.baselines import dense
from bench.distractors import Turn, archive, with_memories
from bench.kept_passages import KeptPassages
from bench.labelled import LabelledSet, Question, Stored

AT = datetime(2026, 2, 1, tzinfo=UTC)
LABELLED = LabelledSet(
    name="boat",
    now=AT,
    memories=[
        Stored(id="old anchor", text="The anchor chain is thirty metres long.", project="boat"),
        Stored(id="anchor", text="The anchor chain is fifty metres long.", project="boat", supersedes="old anchor"),
        Stored(id="sails", text="Sails are dried before they are folded.", project="boat"),
        Stored(id="hut", text="The anchor bolts of the hut are rusty.", project="hut"),
    ],
    questions=[
        Question(id="q1", kind="direct", project="boat", text="how long is the anchor chain", grades={"anchor": 2}),
        Question(id="q2", kind="no-answer", sub="chatter", project="boat", text="ok thanks", grades={}),
    ],
)


def turns(count: int) -> list[Turn]:
    """Talk about nothing, in one session."""
    session = Session(id=SessionId("s1"), project=None, host="bench", directory="/w", created_at=AT, updated_at=AT)
    texts = [f"We talked about the anchor of our neighbours, part {number}." for number in range(count)]
    messages = [
        Message(
            id=MessageId(f"m{number}"),
            session=session.id,
            role=Role.USER,
            created_at=AT,
            parts=(Part(id=PartId(f"p{number}"), kind="text", text=text),),
        )
        for number, text in enumerate(texts)
    ]
    return [Turn(session=session, message=message) for message in messages]


def found(asked: Sequence[Asked]) -> dict[str, tuple[str, ...]]:
    return {row.question.id: row.found for row in asked}


def test_prompts_are_asked_in_their_project_and_nothing_outdated_comes_back() -> None:
    asked = anyio.run(partial(ask, LABELLED, embedder=HashEmbedder()))
    assert found(asked)["q1"][0] == "anchor"
    assert not {"old anchor", "hut"} & set(found(asked)["q1"])
    assert asked[1].answer.certainty == 0.0, "a prompt that asks for nothing"
    balanced = settings(asked)[Relevance.BALANCED.value]
    assert balanced["silent_on_no_answer"] == 1.0


def test_turns_in_the_archive_change_no_answer_and_turns_among_the_memories_are_found() -> None:
    noise = turns(30)
    archived: list[int] = []

    async def prepare(backend: Backend) -> None:
        await archive(noise, LABELLED, backend)
        archived.append(await backend.conversations.count_messages())

    alone = anyio.run(partial(ask, LABELLED, embedder=HashEmbedder()))
    beside = anyio.run(partial(ask, LABELLED, embedder=HashEmbedder(), prepare=prepare))
    assert archived == [30]
    assert [(row.found, row.scores) for row in beside] == [(row.found, row.scores) for row in alone]
    among = anyio.run(partial(ask, with_memories(LABELLED, noise), embedder=HashEmbedder()))
    assert any(name.startswith("distractor") for name in found(among)["q1"])


def test_evidence_goes_to_the_projects_that_are_asked() -> None:
    homes: list[ProjectId | None] = []

    async def prepare(backend: Backend) -> None:
        await archive(turns(2), LABELLED, backend)
        homes.extend(session.project for session in await backend.conversations.sessions(limit=9))

    anyio.run(partial(ask, replace(LABELLED, questions=[]), embedder=None, prepare=prepare))
    assert set(homes) <= {ProjectId("boat"), ProjectId("hut")}


class CountingEmbedder(HashEmbedder):
    """Counts the texts it reads."""

    texts = 0

    async def read(self, texts: Sequence[str]) -> list[Passage | None]:
        self.texts += len(texts)
        return [passage and replace(passage, query=passage.vector) for passage in await super().read(texts)]


def test_what_a_model_made_of_a_text_is_kept_for_the_next_run(tmp_path: Path) -> None:
    async def read(embedder: CountingEmbedder) -> list[Passage | None]:
        kept = KeptPassages(embedder, tmp_path)
        passages = await kept.read(["The mast is new.", "", "The keel is old."])
        await kept.close()
        return passages

    first, second = CountingEmbedder(), CountingEmbedder()
    before, after = anyio.run(read, first), anyio.run(read, second)
    assert first.texts == 4, "with the probe"
    assert second.texts == 2, "the probe, and the text of which nothing can be made"
    assert [passage and passage.words for passage in after] == [passage and passage.words for passage in before]
    other = CountingEmbedder(name="another")
    anyio.run(read, other)
    assert other.texts == 4


def test_a_text_that_comes_alone_keeps_what_it_is_looked_for_with(tmp_path: Path) -> None:
    kept = KeptPassages(CountingEmbedder(), tmp_path)
    for _ in range(2):
        [passage] = anyio.run(kept.read, ["The mast is new."])
        assert passage is not None
        assert passage.query == passage.vector
    anyio.run(kept.close)


def test_the_cosine_alone_ranks_by_the_same_vectors() -> None:
    given = anyio.run(dense, LABELLED, HashEmbedder())
    assert given[0].found[0] == "anchor"
    assert len(given[1].found) == 2, "every visible memory has some cosine"
