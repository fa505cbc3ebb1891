"""How well earlier messages are found: real conversations through the archive, questions through ``EvidenceRecall``.

The sets are read in ``evidence_sets.py``; ``locomo.py``, ``beam.py`` and ``sessions.py`` say what each of them reports.
"""

from __future__ import annotations

import re
import sqlite3
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from backstory.adapters.clock import UlidSource
from backstory.adapters.embedders.minilm import MiniLmEmbedder
from backstory.domain.admission import TextLimits
from backstory.domain.conversation import Message
from backstory.domain.evidence_passages import PassageLimits, passages_of
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.scope import Viewer
from backstory.domain.stopwords import STOP_WORDS
from backstory.ports.backend import Backend
from backstory.services.conversation import Conversations
from backstory.services.evidence import MAX_LIMIT, EvidenceRecall
from backstory.services.maintenance import Maintenance
from backstory.services.reference import Reference
from backstory.services.remember import Remember
from bench.evidence_sets import Asked, Conversation
from bench.kept_passages import KeptPassages
from bench.report import table
from bench.stores import STORES

HELD_OUT = 1
"""Conversations 1, 3, 5 ... of every set judge what was fitted on 0, 2, 4 ... This was fixed before anything was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A question and the messages that came back, best first, with the session of every message."""

    question: Asked
    ranking: Sequence[MessageId]
    session_of: Mapping[MessageId, SessionId]
    held_out: bool

    @property
    def sessions(self) -> list[SessionId]:
        """Sessions in the order of their best message."""
        return list(dict.fromkeys(self.session_of[message] for message in self.ranking))


class _Clock:
    """Stands at the end of what was said."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """A store with all conversations in it, embedded, and the service over it."""

    backend: Backend
    embedder: KeptPassages
    recall: EvidenceRecall
    clock: _Clock

    def stand_after(self, conversation: Conversation) -> None:
        """Ask at the end of this conversation."""
        self.clock.at = max(message.created_at for message in conversation.messages)


@asynccontextmanager
async def archived(conversations: Sequence[Conversation], store: str = "sqlite") -> AsyncIterator[Archive]:
    """Take every conversation in through the product's own door; one project each, in one store."""
    with tempfile.TemporaryDirectory() as folder:
        backend = STORES[store].open(STORES[store].make(Path(folder)))
        clock, embedder = _Clock(), KeptPassages(MiniLmEmbedder(None), for_evidence=True)
        reference = Reference(backend.memories, backend.projects, clock=clock)
        remember = Remember(backend.memories, reference, clock=clock, ids=UlidSource(), limits=TextLimits())
        archive = Conversations(backend.conversations, remember, clock=clock, archive=True, capture=False)
        for conversation in conversations:
            for session in conversation.sessions:
                await archive.take_session(session)
            await archive.take_messages(conversation.messages)
        report = await Maintenance(backend, embedder, no_embedder="").embed_missing()
        print(f"{report.passages} passages", file=sys.stderr)
        recall = EvidenceRecall(backend.evidence, embedder, clock=clock, zone=UTC, no_embedder="")
        yield Archive(backend=backend, embedder=embedder, recall=recall, clock=clock)
        await backend.memories.close()


async def ask_every_system(conversations: Sequence[Conversation], store: str) -> dict[str, list[Answered]]:
    """Backstory with meaning and by words alone, and the baselines, over one archive in a store of that kind."""
    async with archived(conversations, store) as archive:
        return {
            "hybrid": await ask(archive, conversations, lexical_only=False),
            "words": await ask(archive, conversations, lexical_only=True),
            **await baselines(archive, conversations),
        }


async def ask(archive: Archive, conversations: Sequence[Conversation], *, lexical_only: bool) -> list[Answered]:
    """Ask every question of its conversation."""
    answers = []
    for place, conversation in enumerate(conversations):
        archive.stand_after(conversation)
        session_of = {message.id: message.session for message in conversation.messages}
        for question in conversation.questions:
            found = await archive.recall.search(
                question.text,
                viewer=Viewer(project=conversation.project),
                session=conversation.session,
                limit=MAX_LIMIT,
                lexical_only=lexical_only,
            )
            ranking = [result.passage.message for result in found.results]
            answers.append(
                Answered(
                    question=question,
                    ranking=ranking,
                    session_of=session_of,
                    held_out=place % 2 == HELD_OUT,
                )
            )
    return answers


async def baselines(archive: Archive, conversations: Sequence[Conversation]) -> dict[str, list[Answered]]:
    """The same questions by the means at hand: grep, FTS5 with its own stemmer, and the nearest passage."""
    answers: dict[str, list[Answered]] = {"grep": [], "fts5": [], "dense": []}
    for place, conversation in enumerate(conversations):
        session_of = {message.id: message.session for message in conversation.messages}
        dense = await _dense(archive, conversation)
        rankers = {"grep": _grep(conversation.messages), "fts5": _fts5(conversation.messages)}
        for question in conversation.questions:
            rankings = {name: ranker(question.text) for name, ranker in rankers.items()}
            rankings["dense"] = dense[question.text]
            for name, ranking in rankings.items():
                answers[name].append(
                    Answered(question=question, ranking=ranking, session_of=session_of, held_out=place % 2 == HELD_OUT)
                )
    return answers


def recall_figures(answers: Sequence[Answered], *, by_session: bool = False) -> dict[str, float]:
    """Shares of the messages (or sessions) that hold the answer among the first 1, 5 and 10, and the mean reciprocal
    rank of the first of them; each a mean over questions."""
    rows = [_measured(answer, by_session=by_session) for answer in answers]
    return {name: round(sum(row[name] for row in rows) / len(rows), 4) for name in rows[0]} | {"n": len(rows)}


def figures(answers: Sequence[Answered], *, by_session: bool = False) -> dict[str, object]:
    """Everything that is reported of one system: all questions, each kind, and those of the held-out half."""
    kinds = sorted({answer.question.kind for answer in answers})
    whole: dict[str, object] = {
        **recall_figures(answers),
        "held_out": recall_figures([answer for answer in answers if answer.held_out]),
        "by_kind": {kind: recall_figures([a for a in answers if a.question.kind == kind]) for kind in kinds},
    }
    if by_session:
        held_out = [answer for answer in answers if answer.held_out]
        whole["sessions"] = recall_figures(answers, by_session=True)
        whole["sessions_held_out"] = recall_figures(held_out, by_session=True)
    return whole


def as_table(systems: Mapping[str, Sequence[Answered]], *, by_session: bool = False) -> str:
    """Systems against measures, in per cent; first all questions, then the held-out half."""
    header = ["", "R@1", "R@5", "R@10", "MRR", "held out R@1", "R@5", "R@10", "MRR"]
    rows = [
        [name, *_cells(answers, by_session), *_cells([a for a in answers if a.held_out], by_session)]
        for name, answers in systems.items()
    ]
    return table(header, rows)


def _cells(answers: Sequence[Answered], by_session: bool) -> list[str]:
    measured = recall_figures(answers, by_session=by_session)
    return [f"{100 * measured[name]:.1f}" for name in ("r_at_1", "r_at_5", "r_at_10", "mrr")]


def _measured(answer: Answered, *, by_session: bool) -> dict[str, float]:
    gold: set[str] = set(answer.question.gold)
    ranking: Sequence[str] = answer.ranking
    if by_session:
        gold, ranking = {answer.session_of[message] for message in answer.question.gold}, answer.sessions
    ranks = sorted(rank for rank, item in enumerate(ranking) if item in gold)
    shares = {f"r_at_{k}": sum(rank < k for rank in ranks) / len(gold) for k in (1, 5, 10)}
    return shares | {"mrr": 1 / (ranks[0] + 1) if ranks else 0.0}


Ranker = Callable[[str], list[MessageId]]


def _grep(messages: Sequence[Message]) -> Ranker:
    """Messages by how many different words of the question they contain, as a person with grep would look."""
    texts = {message.id: _whole(message).lower() for message in messages}

    def rank(question: str) -> list[MessageId]:
        words = _plain_words(question)
        counts = {message: sum(word in text for word in words) for message, text in texts.items()}
        return sorted((message for message in counts if counts[message]), key=lambda message: -counts[message])

    return rank


def _fts5(messages: Sequence[Message]) -> Ranker:
    raw = sqlite3.connect(":memory:")
    raw.execute("CREATE VIRTUAL TABLE t USING fts5 (x, tokenize = 'porter unicode61 remove_diacritics 2')")
    raw.executemany("INSERT INTO t (rowid, x) VALUES (?, ?)", [(n, _whole(m)) for n, m in enumerate(messages)])

    def rank(question: str) -> list[MessageId]:
        match = " OR ".join(f'"{word}"' for word in _plain_words(question))
        rows = raw.execute("SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank", (match,)) if match else []
        return [messages[n].id for (n,) in rows]

    return rank


async def _dense(archive: Archive, conversation: Conversation) -> dict[str, list[MessageId]]:
    import numpy

    limits = PassageLimits()
    owners, texts = [], []
    for message in conversation.messages:
        for part in message.parts:
            for text in passages_of(part, limits):
                owners.append(message.id)
                texts.append(text)
    matrix = numpy.array([vector or [0.0] * 384 for vector in await archive.embedder.embed(texts)])
    questions = [question.text for question in conversation.questions]
    asked = numpy.array(await archive.embedder.embed(questions))
    return {
        question: list(dict.fromkeys(owners[n] for n in numpy.argsort(-cosines, kind="stable")))
        for question, cosines in zip(questions, asked @ matrix.T, strict=True)
    }


def _whole(message: Message) -> str:
    return "\n".join(f"{part.text}\n{part.detail or ''}" for part in message.parts)


def _plain_words(text: str) -> list[str]:
    words = dict.fromkeys(re.findall(r"[a-z0-9]+", text.lower()))
    return [word for word in words if word not in STOP_WORDS]
