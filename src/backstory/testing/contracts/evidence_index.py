"""The contract of the EvidenceIndex."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.evidence_passages import PASSAGE_CHARS, LoadedPassage, PassageNumber
from backstory.domain.ids import MessageId, PartId, ProjectId, SessionId
from backstory.domain.scope import Viewer
from backstory.domain.time_range import TimeRange
from backstory.errors import InputError
from backstory.ports.backend import Backend
from backstory.ports.evidence import EmbeddedPassage, Sight
from backstory.ports.models import EmbeddingModel, Vector
from backstory.testing.contracts.checks import Checks, MakeBackend, expect_error
from backstory.testing.fakes import ORCHARD, START, ulid

EVIDENCE_INDEX_CHECKS = Checks()
HERE = Sight(viewer=Viewer(project=ORCHARD))
ELSEWHERE = ProjectId(ulid(1, series=2))
MODEL = EmbeddingModel(name="compass", dimension=2)
OTHER_MODEL = EmbeddingModel(name="sextant", dimension=2)
SECOND = timedelta(seconds=1)
S1, S2 = SessionId("ses-1"), SessionId("ses-2")


def session(name: SessionId = S1, *, project: ProjectId | None = ORCHARD, **fields: object) -> Session:
    """A session of a project."""
    plain = Session(id=name, project=project, host="opencode", directory="/repo", created_at=START, updated_at=START)
    return replace(plain, **fields)  # type: ignore[arg-type]  # fields of Session


def message(name: str, text: str, *, second: int = 0, of: SessionId = S1, **fields: object) -> Message:
    """A user's message with one part of text, unless ``fields`` say otherwise."""
    part = Part(id=PartId(f"{name}-a"), kind="text", text=text)
    at = START + second * SECOND
    plain = Message(id=MessageId(name), session=of, role=Role.USER, created_at=at, parts=(part,))
    return replace(plain, **fields)  # type: ignore[arg-type]  # fields of Message


async def told(make: MakeBackend, *messages: Message) -> Backend:
    """A backend whose archive holds a session with these messages."""
    backend = make()
    await backend.conversations.put_session(session())
    await backend.conversations.put_messages(messages)
    return backend


async def found(backend: Backend, *tokens: str, sight: Sight = HERE, limit: int = 9) -> list[str]:
    """The texts that hold any of the tokens, best first."""
    search = await backend.evidence.search_text(tokens, sight, limit=limit)
    loaded = await backend.evidence.neighbours(search.numbers, tokens=tokens, reach=0)
    texts = {item.passage.number: item.passage.text for item in loaded}
    return [texts[number] for number in search.numbers]


async def numbers(backend: Backend) -> dict[str, PassageNumber]:
    """The number of every passage that is not embedded, by its text."""
    return {item.text: item.number for item in await backend.evidence.unembedded(model=MODEL, limit=99)}


async def embed(backend: Backend, text: str, vector: Vector, model: EmbeddingModel = MODEL) -> int:
    """Store the vector of the passage with that text."""
    item = EmbeddedPassage(number=(await numbers(backend))[text], vector=vector)
    return await backend.evidence.put_vectors([item], model=model)


def texts(loaded: list[LoadedPassage]) -> list[str]:
    """What loaded passages say."""
    return [item.passage.text for item in loaded]


@EVIDENCE_INDEX_CHECKS
async def what_was_said_is_found_at_once_by_its_words(make: MakeBackend) -> None:
    backend = await told(make, message("m1", "the orchard gate"), message("m2", "plums and pears", second=1))
    assert await found(backend, "gate") == ["the orchard gate"]
    assert await found(backend, "gate", "plum", limit=1) in (["the orchard gate"], ["plums and pears"])
    assert await found(backend) == await found(backend, "nowher") == await found(backend, '" OR tokens:*') == []


@EVIDENCE_INDEX_CHECKS
async def the_statistics_count_every_passage(make: MakeBackend) -> None:
    backend = await told(make, message("m1", "gate gate"), message("m2", "gate and hedge", second=1))
    search = await backend.evidence.search_text(["gate", "hedg", "moon"], HERE, limit=9)
    assert dict(search.frequency) == {"gate": 2, "hedg": 1, "moon": 0}
    assert search.documents == 2
    assert search.mean_length > 2


@EVIDENCE_INDEX_CHECKS
async def a_viewer_sees_the_evidence_of_the_own_project_alone(make: MakeBackend) -> None:
    backend = await told(make, message("m1", "gate here"))
    await backend.conversations.put_session(session(S2, project=ELSEWHERE))
    await backend.conversations.put_messages(
        [message("m2", "gate there", of=S2), message("m3", "gate of nobody", of=SessionId("untold"))]
    )
    everywhere = replace(HERE, viewer=replace(HERE.viewer, all_projects=True))
    assert await found(backend, "gate") == ["gate here"]
    assert await found(backend, "gate", sight=Sight(viewer=Viewer(project=ELSEWHERE))) == ["gate there"]
    assert await found(backend, "gate", sight=Sight(viewer=Viewer(project=None))) == []
    assert sorted(await found(backend, "gate", sight=everywhere)) == ["gate here", "gate there"]
    assert await found(backend, "gate", sight=replace(everywhere, session=S2)) == ["gate there"]
    assert await found(backend, "gate", sight=replace(HERE, session=S2)) == []


@EVIDENCE_INDEX_CHECKS
async def a_sight_may_be_bounded_in_time(make: MakeBackend) -> None:
    backend = await told(make, message("m1", "gate early"), message("m2", "gate late", second=9))
    late = replace(HERE, said=TimeRange(since=START + 9 * SECOND, until=START + 9 * SECOND))
    early = replace(HERE, said=TimeRange(until=START))
    assert await found(backend, "gate", sight=late) == ["gate late"]
    assert await found(backend, "gate", sight=early) == ["gate early"]


@EVIDENCE_INDEX_CHECKS
async def what_was_taken_back_or_deleted_is_not_found(make: MakeBackend) -> None:
    backend = await told(
        make, message("m1", "gate one"), message("m2", "gate two", second=1), message("m3", "gate three", second=2)
    )
    store = backend.conversations
    await store.mark_removed(MessageId("m1"), at=START)
    await store.remove_part(PartId("m2-a"))
    assert await found(backend, "gate") == ["gate three"]
    await store.put_messages([message("m1", "gate one"), message("m4", "gate four", removed_at=START)])
    await store.put_part(Part(id=PartId("m1-b"), kind="text", text="gate more"), message=MessageId("m1"), session=S1)
    assert await found(backend, "gate") == ["gate three"]
    await store.put_session(session(deleted_at=START))
    assert await found(backend, "gate") == []


@EVIDENCE_INDEX_CHECKS
async def a_part_that_came_before_its_message_is_found_once_that_is_told(make: MakeBackend) -> None:
    backend = await told(make)
    part = Part(id=PartId("m1-b"), kind="text", text="gate first")
    await backend.conversations.put_part(part, message=MessageId("m1"), session=S1)
    assert await found(backend, "gate") == []
    await backend.conversations.put_messages([message("m1", "hedge")])
    assert await found(backend, "gate") == ["gate first"]


@EVIDENCE_INDEX_CHECKS
async def a_part_that_changes_is_found_by_its_new_words_alone(make: MakeBackend) -> None:
    backend = await told(make, message("m1", "gate"))
    assert await embed(backend, "gate", (1.0, 0.0)) == 1
    await backend.conversations.put_messages([message("m1", "gate")])
    assert dict(await backend.evidence.vector_counts()) == {"compass": 1}
    await backend.conversations.put_messages([message("m1", "hedge")])
    assert await found(backend, "gate") == []
    assert await found(backend, "hedg") == ["hedge"]
    assert await backend.evidence.search_vectors((1.0, 0.0), HERE, model=MODEL, limit=9) == {}
    assert (await backend.evidence.search_text(["gate"], HERE, limit=9)).documents == 1


@EVIDENCE_INDEX_CHECKS
async def synthetic_parts_and_our_own_tools_are_left_out(make: MakeBackend) -> None:
    parts = (
        Part(id=PartId("a"), kind="text", text="gate pasted", synthetic=True),
        Part(id=PartId("b"), kind="tool", tool="memory_recall", text="gate recalled"),
        Part(id=PartId("c"), kind="tool", tool="bash", text="gate listed"),
        Part(id=PartId("d"), kind="reasoning", text="gate thought"),
    )
    backend = await told(make, message("m1", "", role=Role.ASSISTANT, parts=parts))
    assert sorted(await found(backend, "gate")) == ["bash: \ngate listed", "gate thought"]
    missing = await backend.evidence.unembedded(model=MODEL, limit=9)
    assert {item.kind: item.text for item in missing} == {"tool": "bash: \ngate listed", "reasoning": "gate thought"}


@EVIDENCE_INDEX_CHECKS
async def a_long_message_is_cut_into_passages_beside_each_other(make: MakeBackend) -> None:
    long = "\n\n".join(f"{word} {'x ' * (PASSAGE_CHARS // 3)}" for word in ("gate", "hedge", "moat"))
    backend = await told(make, message("m0", "before"), message("m1", long, second=1), message("m2", "after", second=2))
    search = await backend.evidence.search_text(["hedg"], HERE, limit=9)
    loaded = await backend.evidence.neighbours(search.numbers, tokens=["gate", "hedg", "moat"])
    assert [dict(item.held) for item in loaded] == [{"gate": 1}, {"hedg": 1}, {"moat": 1}]
    assert [item.passage.message for item in loaded] == ["m1"] * 3
    assert [item.before for item in loaded[1:]] == [item.passage.number for item in loaded[:2]]
    assert all(item.length > PASSAGE_CHARS // 3 for item in loaded)


@EVIDENCE_INDEX_CHECKS
async def neighbours_stay_in_their_session_and_come_in_order(make: MakeBackend) -> None:
    backend = await told(make, *(message(f"m{n}", f"word{n}", second=n) for n in (3, 1, 4, 2)))
    await backend.conversations.put_session(session(S2, parent=S1))
    await backend.conversations.put_messages([message("x", "word9", second=2, of=S2)])
    index = backend.evidence
    at = await numbers(backend)
    loaded = await index.neighbours([at["word3"]], tokens=[])
    assert texts(loaded) == ["word2", "word3", "word4"]
    assert [item.before for item in loaded] == [at["word1"], at["word2"], at["word3"]]
    assert texts(await index.neighbours([at["word4"], at["word1"]], tokens=[], reach=0)) == ["word1", "word4"]
    assert texts(await index.neighbours([at["word1"]], tokens=[], reach=2)) == ["word1", "word2", "word3"]
    assert await index.neighbours([], tokens=[]) == await index.neighbours([PassageNumber(999)], tokens=[]) == []
    (alone,) = await index.neighbours([at["word9"]], tokens=[])
    assert (alone.before, alone.passage.session, alone.passage.by_sub_agent) == (None, S2, True)
    assert (alone.passage.role, alone.passage.at, alone.passage.kind) == (Role.USER, START + 2 * SECOND, "text")


@EVIDENCE_INDEX_CHECKS
async def the_nearest_passages_in_sight_come_first(make: MakeBackend) -> None:
    backend = await told(make, message("m1", "north"), message("m2", "east", second=1), message("m3", "none", second=2))
    await backend.conversations.put_session(session(S2, project=ELSEWHERE))
    await backend.conversations.put_messages([message("m4", "also north", of=S2)])
    at = await numbers(backend)
    for text, vector in (("north", (1.0, 0.0)), ("east", (0.0, 1.0)), ("also north", (1.0, 0.0))):
        assert await embed(backend, text, vector) == 1
    nearest = await backend.evidence.search_vectors((0.8, 0.6), HERE, model=MODEL, limit=9)
    assert list(nearest) == [at["north"], at["east"]]
    assert abs(nearest[at["north"]] - 0.8) < 2e-3
    assert list(await backend.evidence.search_vectors((0.6, 0.8), HERE, model=MODEL, limit=1)) == [at["east"]]
    some = await backend.evidence.similarities((0.8, 0.6), [at["east"], at["none"]], model=MODEL)
    assert list(some) == [at["east"]]
    assert abs(some[at["east"]] - 0.6) < 2e-3


@EVIDENCE_INDEX_CHECKS
async def passages_of_two_models_are_never_compared(make: MakeBackend) -> None:
    backend = await told(make, message("m1", "north"))
    number = (await numbers(backend))["north"]
    await embed(backend, "north", (1.0, 0.0))
    item = EmbeddedPassage(number=number, vector=(0.0, 1.0))
    assert await backend.evidence.put_vectors([item], model=OTHER_MODEL) == 1
    assert await backend.evidence.search_vectors((1.0, 0.0), HERE, model=OTHER_MODEL, limit=9) == {number: 0.0}
    assert dict(await backend.evidence.vector_counts()) == {"compass": 1, "sextant": 1}
    assert await backend.evidence.drop_vectors(model_name="compass") == 1
    assert await backend.evidence.search_vectors((1.0, 0.0), HERE, model=MODEL, limit=9) == {}
    assert [item.text for item in await backend.evidence.unembedded(model=MODEL, limit=9)] == ["north"]


@EVIDENCE_INDEX_CHECKS
async def passages_without_a_vector_are_told_newest_first(make: MakeBackend) -> None:
    backend = await told(make, message("m1", "one"), message("m2", "two", second=1))
    assert [item.text for item in await backend.evidence.unembedded(model=MODEL, limit=9)] == ["two", "one"]
    assert [item.text for item in await backend.evidence.unembedded(model=MODEL, limit=1)] == ["two"]
    await embed(backend, "two", (1.0, 0.0))
    assert [item.text for item in await backend.evidence.unembedded(model=MODEL, limit=9)] == ["one"]


@EVIDENCE_INDEX_CHECKS
async def a_vector_of_the_wrong_length_or_too_late_is_not_stored(make: MakeBackend) -> None:
    backend = await told(make, message("m1", "one"))
    number = (await numbers(backend))["one"]
    short = EmbeddedPassage(number=number, vector=(1.0,))
    await expect_error(InputError, backend.evidence.put_vectors([short], model=MODEL))
    await expect_error(InputError, backend.evidence.search_vectors((1.0,), HERE, model=MODEL, limit=9))
    await backend.conversations.put_messages([message("m1", "two")])
    late = EmbeddedPassage(number=number, vector=(1.0, 0.0))
    assert await backend.evidence.put_vectors([late], model=MODEL) == 0


@EVIDENCE_INDEX_CHECKS
async def making_passages_anew_changes_nothing_that_was_right(make: MakeBackend) -> None:
    backend = await told(make, message("m1", "gate"), message("m2", "hedge", second=1))
    await embed(backend, "gate", (1.0, 0.0))
    assert await backend.evidence.reindex() == 2
    assert await backend.evidence.reindex() == 2
    assert not await backend.evidence.is_outdated()
    assert await found(backend, "gate") == ["gate"]
    assert dict(await backend.evidence.vector_counts()) == {"compass": 1}
    assert (await backend.evidence.search_text(["gate"], HERE, limit=9)).documents == 2
