"""The answers to session questions, and what of them can still be read where a digest took the place of messages.

A digest is no search: nobody asks it for a question's words. So it is looked at as a model would read it, for the words
of the answer that stand in the messages known to hold it, but not in the question.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backstory.domain.conversation import Message, Role
from backstory.domain.ids import ProjectId
from backstory.domain.text import analyse, analyse_query
from bench.evidence_sets import Asked
from bench.session_replay import sent_text

_ANSWERS = (
    "answer", "ideal_answer", "ideal_response", "ideal_summary", "instruction_being_tested", "preference_being_tested",
)  # fmt: skip
"""Fields of BEAM's questions that say what must be known, the first there is."""

Answers = dict[tuple[ProjectId, str], str]
"""By project and question, as ``evidence_sets.py`` names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A word of an answer, what kind of word it is (number, name, word), and who said it in the evidence: the user, the
    assistant, in its reasoning, or a tool."""

    token: str
    kind: str
    said_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Readable:
    """The facts of one question, and which of them stand where. ``replaced``: all its evidence is behind the digest.

    ``shown`` are those in what the request shows, ``digest`` those in the digest's text alone, ``newest`` those in the
    newest of the replaced messages, as many of them as take the digest's room.
    """

    question: Asked
    facts: Sequence[Fact]
    replaced: bool
    shown: Collection[str]
    digest: Collection[str]
    newest: Collection[str]


def transcript_answers(folder: Path) -> Answers:
    """Those of the twelve sessions of a coding agent."""
    found: Answers = {}
    for file in sorted((folder / "coding-prompts" / "sessions").glob("*.json")):
        data = json.loads(file.read_text(encoding="utf-8"))
        project = ProjectId(f"coding-{data['id']}")
        found |= {(project, row["question"]): row["answer"] for row in data["labels"]["questions"]}
    return found


def beam_answers(folder: Path) -> Answers:
    """Those of BEAM; of a standing wish, the wish."""
    found: Answers = {}
    raw = gzip.decompress((folder / "beam-100k" / "beam_100k.jsonl.gz").read_bytes()).decode()
    for row in map(json.loads, raw.splitlines()):
        questions = [question for items in row["probing_questions"].values() for question in items]
        found |= {(ProjectId(f"beam-{row['id']}"), item["question"]): _answer(item) for item in questions}
    return found


def facts_of(question: str, answer: str, evidence: Sequence[Message]) -> list[Fact]:
    """The words of an answer that the evidence says and the question does not."""
    asked = set(analyse(question))
    sources = _sources(evidence)
    found = []
    for term in analyse_query(answer):
        said_by = next((by for by, tokens in sources if term.token in tokens), None)
        if said_by is not None and term.weight == 1.0 and term.token not in asked:
            found.append(Fact(token=term.token, kind=_kind(term.token, is_name=term.is_name), said_by=said_by))
    return found


def tokens_in(texts: Iterable[str]) -> frozenset[str]:
    """All words of some texts."""
    return frozenset(token for text in texts for token in analyse(text))


def shares(rows: Sequence[Readable]) -> dict[str, object]:
    """Shares of facts that can be read: ``shown`` over all questions; the others over those whose evidence is replaced,
    by kind of word and by who said it too. ``whole``: questions of which no fact is missing in the digest."""
    rows = [row for row in rows if row.facts]
    behind = [row for row in rows if row.replaced]
    facts = [(fact, fact.token in row.digest) for row in behind for fact in row.facts]
    return {
        "questions": len(rows),
        "shown": _mean([_share(row.facts, row.shown) for row in rows]),
        "replaced": len(behind),
        "digest": _mean([_share(row.facts, row.digest) for row in behind]),
        "newest": _mean([_share(row.facts, row.newest) for row in behind]),
        "whole": _mean([_share(row.facts, row.digest) == 1 for row in behind]),
        "by_kind": _grouped([(fact.kind, kept) for fact, kept in facts]),
        "by_speaker": _grouped([(fact.said_by, kept) for fact, kept in facts]),
    }


def _answer(item: dict[str, Any]) -> str:
    return next((str(item[name]) for name in _ANSWERS if item.get(name)), "")


def _sources(evidence: Sequence[Message]) -> list[tuple[str, frozenset[str]]]:
    """Who said what, whoever says a thing best first."""
    texts: dict[str, list[str]] = {"user": [], "assistant": [], "reasoning": [], "tool": []}
    for message in evidence:
        for part in message.parts:
            if part.kind == "text":
                texts["user" if message.role is Role.USER else "assistant"].append(part.text)
            elif part.kind == "reasoning":
                texts["reasoning"].append(part.text)
        texts["tool"].append(sent_text(message))  # all that is left
    return [(by, tokens_in(said)) for by, said in texts.items()]


def _kind(token: str, *, is_name: bool) -> str:
    if any(char.isdigit() for char in token):
        return "number"
    return "name" if is_name else "word"


def _share(facts: Sequence[Fact], tokens: Collection[str]) -> float:
    return sum(fact.token in tokens for fact in facts) / len(facts)


def _grouped(pairs: Sequence[tuple[str, bool]]) -> dict[str, dict[str, float]]:
    groups: dict[str, list[bool]] = {}
    for name, kept in pairs:
        groups.setdefault(name, []).append(kept)
    return {name: {"n": len(found), "kept": _mean(found)} for name, found in sorted(groups.items())}


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0
