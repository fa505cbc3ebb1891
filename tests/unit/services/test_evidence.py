"""Searching what was said in sessions."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.scope import Viewer
from backstory.errors import InputError
from backstory.services.evidence import NO_EVIDENCE, NO_QUESTION, EvidenceRecall
from backstory.services.evidence_found import EvidenceFound
from backstory.services.maintenance import Maintenance
from backstory.testing.fakes import ORCHARD, START, HashEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from tests.unit.services.conftest import Shop

T = TypeVar("T")

HERE = Viewer(project=ORCHARD)
SAID = (
    (Role.USER, "the heron exporter loses rows at midnight"),
    (Role.ASSISTANT, "It reads the page twice; the cursor is not ordered."),
    (Role.USER, "then order it by id, and never by time"),
    (Role.ASSISTANT, "Done: ORDER BY id."),
    (Role.USER, "now something else, the login page"),
)


def archived(shop: Shop, *said: tuple[Role, str], session: str = "ses-1", **fields: Any) -> Shop:
    """Take a session in; ``fields`` are those of Session."""
    plain: dict[str, Any] = {"project": ORCHARD, "host": "test", "directory": "/repo"}
    told = Session(id=SessionId(session), created_at=START, updated_at=START, **(plain | fields))
    shop.do(shop.conversations.take_session(told))
    messages = [
        Message(
            id=MessageId(f"{session}-{n}"),
            session=told.id,
            role=role,
            created_at=START + timedelta(minutes=n),
            parts=(Part(id=PartId(f"{session}-{n}-a"), kind="text", text=text),),
        )
        for n, (role, text) in enumerate(said)
    ]
    shop.do(shop.conversations.take_messages(messages))
    return shop


def search(shop: Shop, question: str, *, viewer: Viewer = HERE, **fields: Any) -> EvidenceFound:
    recall = EvidenceRecall(shop.backend.evidence, shop.embedder, clock=shop.clock, zone=UTC, no_embedder="none is set")
    return shop.do(recall.search(question, viewer=viewer, **fields))


def test_a_message_is_found_and_quoted_with_its_neighbours(shop: Shop) -> None:
    found = search(archived(shop, *SAID), "is the cursor ordered")
    best = found.results[0]
    assert best.passage.text == SAID[1][1]
    assert (best.passage.message, best.passage.session, best.passage.role) == ("ses-1-1", "ses-1", Role.ASSISTANT)
    assert best.passage.at == START + timedelta(minutes=1)
    assert best.before is not None
    assert best.after is not None
    assert (best.before.text, best.after.text) == (SAID[0][1], SAID[2][1])
    assert 0.0 < best.score <= 1.0
    assert "cursor" in best.reasons[0]
    assert found.silent_because is None
    assert found.skipped == "none is set"


def test_each_message_comes_once_best_first(shop: Shop) -> None:
    found = search(archived(shop, *SAID), "heron exporter midnight", limit=2)
    assert found.results[0].passage.message == "ses-1-0"
    scores = [result.score for result in found.results]
    assert scores == sorted(scores, reverse=True)
    assert len({result.passage.message for result in found.results}) == len(scores) == 2


def test_silence_gives_a_reason(shop: Shop) -> None:
    archived(shop, *SAID)
    assert search(shop, "zebra").silent_because == NO_EVIDENCE
    assert search(shop, " ").silent_because == NO_QUESTION
    assert search(shop, "").results == ()
    archived(shop, (Role.USER, "ok"), session="ses-2")
    silent = search(shop, "ok then")
    assert silent.results == ()
    assert "add one that tells what you look for" in (silent.silent_because or "")


def test_other_projects_are_not_searched_unless_asked_for(shop: Shop) -> None:
    archived(shop, *SAID, project=None)
    assert search(shop, "heron").results == ()
    assert search(shop, "heron", viewer=Viewer(project=ORCHARD, all_projects=True)).results


def test_one_session_or_a_stretch_of_time_may_be_asked_for(shop: Shop) -> None:
    from backstory.domain.time_range import TimeRange

    archived(shop, *SAID)
    archived(shop, (Role.USER, "a heron again"), session="ses-2", parent=SessionId("ses-1"))
    (other,) = search(shop, "heron", session=SessionId("ses-2")).results
    assert other.passage.by_sub_agent
    late = TimeRange(since=START + timedelta(minutes=1))
    assert "ses-1-0" not in [r.passage.message for r in search(shop, "heron", said=late).results]


def test_meaning_takes_part_once_passages_are_embedded(shop: Shop) -> None:
    archived(shop, *SAID)
    shop.embedder = HashEmbedder()
    assert search(shop, "heron").skipped == "nothing that was said is embedded yet"
    report = shop.do(shop.maintenance.embed_missing())
    assert (report.embedded, report.passages) == (0, len(SAID))
    found = search(shop, "heron exporter")
    assert found.skipped is None
    assert found.results[0].reasons[0].startswith("meaning")
    assert search(shop, "heron", lexical_only=True).results[0].reasons[0].startswith("words")
    shop.embedder.failing = True
    assert "told to fail" in (search(shop, "heron").skipped or "")


def test_vectors_of_a_former_model_are_replaced(shop: Shop) -> None:
    archived(shop, *SAID)
    shop.embedder = HashEmbedder()
    shop.do(shop.maintenance.embed_missing())
    shop.embedder = HashEmbedder(name="new", dimension=32)
    assert "not yet by new" in (search(shop, "heron").skipped or "")
    assert shop.do(shop.maintenance.embed_missing()).dropped == len(SAID)
    assert dict(shop.do(shop.backend.evidence.vector_counts())) == {"new": len(SAID)}


def test_messages_stay_away_from_an_embedder_that_is_not_to_read_them(shop: Shop) -> None:
    archived(shop, *SAID)
    embedder = HashEmbedder()
    maintenance = Maintenance(shop.backend, embedder, no_embedder="", embed_evidence=False)
    assert shop.do(maintenance.embed_missing()).passages == 0
    assert shop.do(shop.backend.evidence.vector_counts()) == {}


def test_a_bounded_run_leaves_evidence_alone(shop: Shop) -> None:
    archived(shop, *SAID)
    shop.embedder = HashEmbedder()
    assert shop.do(shop.maintenance.embed_missing(at_most=9)).passages == 0


def test_secrets_and_private_text_are_never_found(shop: Shop) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    archived(shop, (Role.USER, f"the heron token is {token} <private>zanzibar</private>"))
    (found,) = search(shop, "heron token").results
    assert token not in found.passage.text
    assert "zanzibar" not in found.passage.text
    assert search(shop, "zanzibar").results == ()


def test_all_reads_and_the_scoring_make_one_trip_away_from_the_event_loop(shop: Shop) -> None:
    archived(shop, *SAID)
    shop.embedder = HashEmbedder()
    shop.do(shop.maintenance.embed_missing())
    trips: list[str] = []

    async def noted(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        trips.append("begun")
        result = await work()
        trips.append("ended")
        return result

    recall = EvidenceRecall(
        shop.backend.evidence, shop.embedder, clock=shop.clock, zone=UTC, no_embedder="", aside=noted
    )
    found = shop.do(recall.search("heron exporter", viewer=HERE))
    assert found == search(shop, "heron exporter")
    assert trips == ["begun", "ended"]
    shop.do(recall.offer("what did the heron exporter lose?", viewer=HERE))
    assert trips == ["begun", "ended"] * 2
    shop.do(recall.offer("fix the heron exporter", viewer=HERE))
    assert trips == ["begun", "ended"] * 2


@pytest.mark.parametrize("prompt", ['why was "', "what did NOT OR * (((", "we decided " + "x" * 50_000, "did \x00 💥?"])
def test_no_prompt_breaks_what_is_offered(shop: Shop, prompt: str) -> None:
    archived(shop, *SAID)
    recall = EvidenceRecall(shop.backend.evidence, None, clock=shop.clock, zone=UTC, no_embedder="none is set")
    offered = shop.do(recall.offer(prompt, viewer=HERE))
    assert offered.passages == ()
    assert offered.silent_because


@pytest.mark.parametrize("limit", [0, 101, -1])
def test_a_limit_out_of_bounds_is_refused(shop: Shop, limit: int) -> None:
    with pytest.raises(InputError, match="limit"):
        search(shop, "heron", limit=limit)


@pytest.mark.parametrize("question", ['"', "NOT OR *", "tokens: ^heron", "(((", "x" * 50_000, "heron \x00", "💥"])
def test_no_question_breaks_the_search(shop: Shop, question: str) -> None:
    search(archived(shop, *SAID), question)


TALK = (
    (Role.USER, "Ada: hello Ben"),
    (Role.USER, "Ben: hello yourself"),
    (Role.USER, "Ada: I bought a canoe yesterday"),
    (Role.USER, "Ben: how nice, where from"),
)


def test_the_words_of_a_talk_between_people_are_compared_one_by_one(shop: Shop) -> None:
    shop.embedder = HashEmbedder()
    archived(shop, *TALK)
    assert "like words" not in search(shop, "Ada canoe", lexical_only=True).results[0].reasons
    shop.do(shop.maintenance.embed_missing())
    best = search(shop, "Ada canoe").results[0]
    assert best.passage.text == TALK[2][1]
    assert "like words" in best.reasons


def test_calls_of_tools_are_no_talk(shop: Shop) -> None:
    shop.embedder = HashEmbedder()
    archived(shop, (Role.USER, "where is the heron exporter kept"))
    called = (("Bash", "heron exporter"), ("Read", "exporter"), ("Bash", "ls"), ("Read", "x"))
    calls = [
        Message(
            id=MessageId(f"call-{n}"),
            session=SessionId("ses-1"),
            role=Role.ASSISTANT,
            created_at=START + timedelta(hours=n + 1),
            parts=(Part(id=PartId(f"call-{n}-a"), kind="tool", tool=tool, text=text),),
        )
        for n, (tool, text) in enumerate(called)
    ]
    shop.do(shop.conversations.take_messages(calls))
    shop.do(shop.maintenance.embed_missing())
    found = search(shop, "heron exporter").results
    assert found
    assert not any("like words" in result.reasons for result in found)


def test_the_words_of_a_session_with_an_assistant_are_not(shop: Shop) -> None:
    shop.embedder = HashEmbedder()
    archived(shop, *SAID)
    shop.do(shop.maintenance.embed_missing())
    assert "like words" not in search(shop, "heron exporter midnight").results[0].reasons
