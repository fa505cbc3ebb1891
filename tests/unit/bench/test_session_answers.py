"""What of an answer can still be read in a digest, on talks short enough to be checked by eye."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

from backstory.domain.conversation import Message, Part, Role
from backstory.domain.ids import MessageId, PartId, ProjectId, SessionId
from bench.evidence_sets import Asked
from bench.session_answers import Fact, Readable, beam_answers, facts_of, shares, tokens_in, transcript_answers

MOMENT = datetime(2026, 3, 2, tzinfo=UTC)
QUESTION = Asked(text="which queue do we use", kind="talk", gold=frozenset({MessageId("m1")}))


def message(role: Role, *parts: Part) -> Message:
    return Message(id=MessageId("m1"), session=SessionId("s"), role=role, created_at=MOMENT, parts=parts)


def part(kind: str, text: str) -> Part:
    return Part(id=PartId(kind), kind=kind, text=text, tool="bash" if kind == "tool" else None)


def test_a_fact_is_a_word_of_the_answer_that_the_evidence_says_and_the_question_does_not() -> None:
    said = message(Role.USER, part("text", "Take the queue on port 5544, pg-boss that is."))
    facts = facts_of("which queue do we use", "pg-boss, the queue on port 5544, never Kafka", [said])
    assert [(fact.token, fact.kind) for fact in facts] == [("pg-boss", "name"), ("port", "word"), ("5544", "number")]


def test_a_fact_belongs_to_whoever_says_it_best() -> None:
    user = message(Role.USER, part("text", "The limit is forty."))
    answer = message(
        Role.ASSISTANT,
        part("text", "Forty, in the gateway."),
        part("reasoning", "The gateway reads its yaml."),
        part("tool", "yaml: burst of ninety"),
    )
    found = {fact.token: fact.said_by for fact in facts_of("", "forty gateway yaml ninety", [answer, user])}
    assert list(found.values()) == ["user", "assistant", "reasoning", "tool"]


def test_shares_of_the_digest_are_over_questions_whose_evidence_it_replaced() -> None:
    number = Fact(token="5544", kind="number", said_by="user")
    name = Fact(token="pg-boss", kind="name", said_by="tool")
    digest = tokens_in(["User: the queue is on 5544"])
    behind = Readable(
        question=QUESTION,
        facts=[number, name],
        replaced=True,
        shown=digest,
        digest=digest,
        newest=tokens_in(["pg-boss"]),
    )
    raw = Readable(
        question=QUESTION, facts=[name], replaced=False, shown=tokens_in(["pg-boss"]), digest=digest, newest=frozenset()
    )
    unsaid = Readable(question=QUESTION, facts=[], replaced=True, shown=digest, digest=digest, newest=digest)
    assert shares([behind, raw, unsaid]) == {
        "questions": 2,
        "shown": 0.75,
        "replaced": 1,
        "digest": 0.5,
        "newest": 0.5,
        "whole": 0.0,
        "by_kind": {"name": {"n": 1, "kept": 0.0}, "number": {"n": 1, "kept": 1.0}},
        "by_speaker": {"tool": {"n": 1, "kept": 0.0}, "user": {"n": 1, "kept": 1.0}},
    }
    assert shares([])["digest"] == 0.0


def test_answers_are_read_by_project_and_question(tmp_path: Path) -> None:
    talks = tmp_path / "coding-prompts" / "sessions"
    talks.mkdir(parents=True)
    labels = {"questions": [{"question": "who calls", "answer": "the cron job", "evidence": []}]}
    (talks / "01.json").write_text(json.dumps({"id": "ses_a", "labels": labels}))
    assert transcript_answers(tmp_path) == {(ProjectId("coding-ses_a"), "who calls"): "the cron job"}
    asked = {
        "facts": [{"question": "when", "answer": "on Monday", "ideal_answer": "not this"}],
        "wishes": [{"question": "show me", "instruction_being_tested": "always in tables"}],
    }
    (tmp_path / "beam-100k").mkdir()
    line = json.dumps({"id": 7, "probing_questions": asked}).encode()
    (tmp_path / "beam-100k" / "beam_100k.jsonl.gz").write_bytes(gzip.compress(line))
    assert beam_answers(tmp_path) == {
        (ProjectId("beam-7"), "when"): "on Monday",
        (ProjectId("beam-7"), "show me"): "always in tables",
    }
