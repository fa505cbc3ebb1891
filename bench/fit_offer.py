"""The gate for quotes of earlier sessions, fitted on the questions of the labelled transcripts: ``python -m
bench.fit_offer``.

Each question is asked in its own project, and in the five others, where nothing was said of it. Folds are the projects
that questions come from. Then the memories of the set are put beside, and it is counted what a prompt gets that no
memory answers: the shipped gate at several limits.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path

import anyio
import numpy as np

from backstory.adapters.embedders.minilm import MiniLmEmbedder, availability
from backstory.domain.evidence import BY_WORDS, WITH_MEANING, EvidenceScore, score_messages
from backstory.domain.evidence_asked import asks_back
from backstory.domain.evidence_offer import (
    GATE_BY_WORDS,
    GATE_WITH_MEANING,
    MOST_OFFERED,
    OfferGate,
    brevity_of,
    confidence,
)
from backstory.domain.ids import MessageId, ProjectId
from backstory.domain.ranking import RankingPolicy
from backstory.domain.relevance import UNASKED, Relevance
from backstory.domain.scope import Viewer
from backstory.domain.text import analyse_query
from backstory.ports.models import Embedder
from backstory.services.evidence import EvidenceRecall
from backstory.services.maintenance import Maintenance
from backstory.services.query import Query
from backstory.services.recall import Recall
from bench.evidence import Archive, archived
from bench.evidence_sets import Conversation, read_beam, read_locomo, read_transcripts
from bench.gate_fit import Floats, _apply, _auc, _fit
from bench.labelled import fill, read_coding
from bench.report import Unavailable, table

DATA = Path(__file__).resolve().parents[2] / "shared" / "eval-data"
LIMITS = (0.2, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7)
WITH_VECTORS = ("near", "coverage", "together", "brevity")
BY_WORDS_ALONE = ("coverage", "session_words", "together", "brevity")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A prompt in a project: the best messages of earlier sessions, and whether memories and form let them be quoted.

    ``kind`` is ``own`` (answered in this project's sessions), ``other`` (in another project's) or ``prompt`` (of the
    set of prompts, without an answer among the memories). ``home`` is the project that it was written for.
    """

    kind: str
    text: str
    home: str
    gold: frozenset[MessageId]
    silent: bool
    scores: Sequence[EvidenceScore]

    @property
    def may(self) -> bool:
        """Whether evidence is searched for this prompt at all."""
        return self.silent and asks_back(self.text)

    @property
    def found(self) -> bool:
        return any(score.best.message in self.gold for score in self.scores[:MOST_OFFERED])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.fit_offer", description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=DATA, metavar="DIR", help="holds coding-prompts, locomo, beam-100k"
    )
    parser.add_argument("--among", action="store_true", help="put all chats of LoCoMo and BEAM into the same projects")
    options = parser.parse_args()
    try:
        if (missing := availability()) is not None:
            raise Unavailable(missing)
        for by_words in (False, True):
            rows = anyio.run(_rows, options.data, options.among, by_words)
            print(_as_text(rows, by_words=by_words))
    except Unavailable as error:
        print(f"bench fit_offer: {error}", file=sys.stderr)
        return 2
    return 0


async def _rows(data: Path, among: bool, by_words: bool) -> list[Row]:
    transcripts = _in_their_projects(data)
    projects = list(dict.fromkeys(conversation.project for conversation in transcripts))
    chats = [*read_locomo(data), *read_beam(data)] if among else []
    noise = [_moved(chat, projects[place % len(projects)]) for place, chat in enumerate(chats)]
    labelled = read_coding(data / "coding-prompts")
    async with archived([*transcripts, *noise]) as archive:
        await fill(archive.backend, labelled)
        embedder = None if by_words else MiniLmEmbedder(None)
        await Maintenance(archive.backend, embedder, no_embedder="").embed_missing()
        archive.clock.at = labelled.now
        ask = _asker(archive, embedder)
        rows = [
            await ask("prompt", question.text, question.project or "", ProjectId(question.project or ""), frozenset())
            for question in labelled.questions
            if not question.grades
        ]
        for conversation in transcripts:
            for question in conversation.questions:
                for project in projects:
                    own = project == conversation.project
                    gold = question.gold if own else frozenset[MessageId]()
                    kind = "own" if own else "other"
                    rows.append(await ask(kind, question.text, conversation.project, project, gold))
    return rows


Ask = Callable[[str, str, str, ProjectId, frozenset[MessageId]], Awaitable[Row]]


def _asker(archive: Archive, embedder: Embedder | None) -> Ask:
    recall = Recall(archive.backend, embedder, clock=archive.clock, policy=RankingPolicy(), no_embedder="")
    cached = None if embedder is None else archive.embedder
    evidence = EvidenceRecall(archive.backend.evidence, cached, clock=archive.clock, zone=UTC, no_embedder="")
    weights = BY_WORDS if embedder is None else WITH_MEANING

    async def ask(kind: str, text: str, home: str, project: ProjectId, gold: frozenset[MessageId]) -> Row:
        viewer = Viewer(project=project)
        threshold = UNASKED[Relevance.BALANCED]
        recalled = await recall.recall(Query(text=text, viewer=viewer, offerable=True, threshold=threshold))
        found = await evidence.quotable(text, viewer=viewer)
        scores = score_messages(found.signs, weights)[:MOST_OFFERED]
        return Row(kind=kind, text=text, home=home, gold=gold, silent=not recalled.results, scores=scores)

    return ask


def _as_text(rows: Sequence[Row], *, by_words: bool) -> str:
    names = BY_WORDS_ALONE if by_words else WITH_VECTORS
    gate = GATE_BY_WORDS if by_words else GATE_WITH_MEANING
    weights, auc, held_out = _fitted([row for row in rows if row.scores], names)
    head = ("by words" if by_words else "with meaning") + f": AUC across folds {auc:.3f}; " + weights
    shipped = _curve(rows, lambda row: _sure(row, gate))
    return "\n".join([head, "across folds", _curve(rows, held_out), "the shipped gate", shipped, ""])


def _fitted(rows: Sequence[Row], names: Sequence[str]) -> tuple[str, float, Callable[[Row], float]]:
    """Weights on all rows, the area under the curve across folds, and each row's confidence by the other folds."""
    evidence = np.array([_evidence(row, names) for row in rows])
    truth = np.array([row.found for row in rows], dtype=np.float64)
    fold = np.array([row.home for row in rows])
    odds: Floats = np.zeros(len(truth))
    for held_out in sorted(set(fold)):
        outside = fold != held_out
        odds[~outside] = _apply(_fit(evidence[outside], truth[outside]), evidence[~outside])
    fitted = zip(("start", *names), _fit(evidence, truth).tolist(), strict=True)
    told = ", ".join(f"{name} {value:+.1f}" for name, value in fitted)
    sure = {id(row): 1.0 / (1.0 + float(np.exp(-x))) for row, x in zip(rows, odds, strict=True)}
    return told, _auc(odds, truth), lambda row: sure.get(id(row), 0.0)


def _evidence(row: Row, names: Sequence[str]) -> list[float]:
    best = row.scores[0].best
    values = {
        "near": best.cosine or 0.0,
        "coverage": best.coverage,
        "session_words": best.session_words,
        "together": best.together,
        "brevity": brevity_of(analyse_query(row.text)),
    }
    return [values[name] for name in names]


def _sure(row: Row, gate: OfferGate) -> float:
    brevity = brevity_of(analyse_query(row.text))
    return confidence(row.scores[0].best, gate, brevity=brevity) if row.scores else 0.0


def _curve(rows: Sequence[Row], sure: Callable[[Row], float]) -> str:
    own, other, prompts = ([row for row in rows if row.kind == kind] for kind in ("own", "other", "prompt"))
    asked = [row for row in own if row.may]
    lines = []
    for limit in LIMITS:
        shown = [row for row in asked if sure(row) >= limit]
        wrong = [sum(row.may and sure(row) >= limit for row in kind) for kind in (other, prompts)]
        lines.append([f"{limit}", f"{len(shown)}", f"{sum(row.found for row in shown)}", f"{wrong[0]}", f"{wrong[1]}"])
    may = sum(row.may for row in other)
    header = ["limit", f"quoted of {len(asked)}", "answering", f"elsewhere, of {may}", f"no answer, of {len(prompts)}"]
    return table(header, lines)


def _in_their_projects(data: Path) -> list[Conversation]:
    files = sorted((data / "coding-prompts" / "sessions").glob("*.json"))
    names = [json.loads(file.read_text(encoding="utf-8"))["project"] for file in files]
    pairs = zip(read_transcripts(data), names, strict=True)
    return [_moved(conversation, ProjectId(name)) for conversation, name in pairs]


def _moved(conversation: Conversation, project: ProjectId) -> Conversation:
    sessions = [replace(session, project=project) for session in conversation.sessions]
    return replace(conversation, project=project, sessions=sessions)


if __name__ == "__main__":
    sys.exit(main())
