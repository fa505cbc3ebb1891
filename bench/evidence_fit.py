"""The weights of evidence, fitted on half of the conversations of every set and judged on the other half."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

import anyio

from backstory.domain.evidence import BY_WORDS, WITH_MEANING, WORD_BY_WORD, EvidenceWeights, score_messages
from backstory.domain.evidence_signs import PassageSigns
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.scope import Viewer
from backstory.ports.evidence import Sight
from bench.evidence import HELD_OUT, Answered, archived, recall_figures
from bench.evidence_descent import Case, descend
from bench.evidence_sets import ADVERSARIAL, Asked, read_beam, read_locomo, read_transcripts
from bench.evidence_table import OF_TALK, SignTable, as_table
from bench.report import Report, table

READERS = {"locomo": read_locomo, "beam": read_beam, "sessions": read_transcripts}
SHARES = {"locomo": 1.0, "beam": 3.0, "sessions": 1.0}
"""What each set counts, whatever its size. Chosen on the half that is fitted: at 1 the long chats gain a point and BEAM
loses two."""
NEUTRAL = EvidenceWeights(
    words=1.0,
    words_far=0.4,
    coverage=0.4,
    session_words=0.2,
    together=0.2,
    meaning=1.0,
    meaning_around=0.3,
    speaker=0.3,
    date=0.4,
    user=0.2,
    asked=0.1,
    dated=0.1,
    counted=0.1,
    length=0.1,
    brief=0.1,
    neighbour=0.2,
    session=0.2,
)
"""Where the descent starts."""
MEANING = ("meaning", "meaning_around")
MEASURES = ("r_at_1", "r_at_5", "r_at_10", "mrr", "sessions_r_at_5")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """Weights that are fitted by themselves: for which sets, from where, and which of them stay at 0."""

    shipped: EvidenceWeights
    start: EvidenceWeights
    fixed: Sequence[str]
    sets: Sequence[str] = tuple(SHARES)
    lexical_only: bool = False


MODES = {
    "with meaning": Mode(shipped=WITH_MEANING, start=NEUTRAL, fixed=OF_TALK),
    "by words": Mode(
        shipped=BY_WORDS,
        start=replace(NEUTRAL, meaning=0.0, meaning_around=0.0),
        fixed=(*MEANING, *OF_TALK),
        lexical_only=True,
    ),
    "word by word": Mode(
        shipped=WORD_BY_WORD,
        start=replace(
            NEUTRAL,
            meaning_around=0.0,
            alike=0.5,
            alike_near=0.5,
            alike_session=0.5,
            meaning_near=0.3,
            meaning_far=0.3,
            opening=0.1,
            of_oneself=0.1,
        ),
        fixed=("meaning_around",),
        sets=("locomo",),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A question with the signs of its candidates, and the session of each message of its conversation."""

    question: Asked
    session_of: Mapping[MessageId, SessionId]
    signs: SignTable
    held_out: bool


Rows = Mapping[str, Sequence[Row]]


def run(options: argparse.Namespace) -> Report:
    """Fit by descent, once with meaning and once by words alone, and judge on the conversations left out."""
    figures: dict[str, object] = {}
    parts = []
    for name, mode in MODES.items():
        rows = anyio.run(partial(_rows, options, mode))
        fitted = {held_out: _fit(_half(rows, held_out=not held_out), mode) for held_out in (True, False)}
        judged = {
            "shipped, held out": _measured(_half(rows, held_out=True), mode.shipped),
            "fitted, held out": _measured(_half(rows, held_out=True), fitted[True]),
            "crossed": _figures({which: [_answer(row, fitted[row.held_out]) for row in rows[which]] for which in rows}),
        }
        weights = {"fitted": asdict(fitted[True]), "fitted the other way": asdict(fitted[False])}
        figures[name] = {"weights": weights, **judged}
        parts.append(_as_text(name, weights, judged))
    return Report(
        bench="fit-evidence", store=options.store, data=options.data.name, figures=figures, text="\n\n".join(parts)
    )


async def _rows(options: argparse.Namespace, mode: Mode) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = {}
    for name in mode.sets:
        conversations = READERS[name](options.data)
        async with archived(conversations) as archive:
            rows[name] = []
            for place, conversation in enumerate(conversations):
                archive.stand_after(conversation)
                session_of = {message.id: message.session for message in conversation.messages}
                sight = Sight(viewer=Viewer(project=conversation.project), session=conversation.session)
                for question in conversation.questions:
                    if question.kind == ADVERSARIAL:
                        continue
                    found = await archive.recall.signs(question.text, sight=sight, lexical_only=mode.lexical_only)
                    signs = as_table(found.signs)
                    held_out = place % 2 == HELD_OUT
                    rows[name].append(Row(question=question, session_of=session_of, signs=signs, held_out=held_out))
            _check(signs, found.signs)
            print(f"{name}: {len(rows[name])} questions", file=sys.stderr)
    return rows


def _check(signs: SignTable, found: Sequence[PassageSigns]) -> None:
    """The product must weigh as the fit does."""
    scores = {score.best.message: score.total for score in score_messages(found, NEUTRAL)}
    ours = dict(zip(signs.messages, signs.scores(NEUTRAL), strict=True))
    factor = next(iter(scores.values())) / ours[next(iter(scores))]
    assert all(math.isclose(total, factor * ours[message], rel_tol=1e-6) for message, total in scores.items())


def _half(rows: Rows, *, held_out: bool) -> Rows:
    return {name: [row for row in rows[name] if row.held_out == held_out] for name in rows}


def _fit(rows: Rows, mode: Mode) -> EvidenceWeights:
    cases = [
        Case(signs=row.signs, gold=row.question.gold, weight=SHARES[name] / len(rows[name]))
        for name in rows
        for row in rows[name]
    ]
    return descend(cases, mode.start, fixed=mode.fixed)


def _measured(rows: Rows, weights: EvidenceWeights) -> dict[str, dict[str, float]]:
    return _figures({name: [_answer(row, weights) for row in rows[name]] for name in rows})


def _figures(answers: Mapping[str, Sequence[Answered]]) -> dict[str, dict[str, float]]:
    """Sessions are looked for in LoCoMo alone: elsewhere there is one a conversation, or hardly more."""
    figures = {name: recall_figures(of_set) for name, of_set in answers.items()}
    figures["locomo"]["sessions_r_at_5"] = recall_figures(answers["locomo"], by_session=True)["r_at_5"]
    return figures


def _answer(row: Row, weights: EvidenceWeights) -> Answered:
    ranking = [MessageId(message) for message in row.signs.ranking(weights)]
    return Answered(question=row.question, ranking=ranking, session_of=row.session_of, held_out=row.held_out)


def _as_text(
    mode: str, weights: Mapping[str, Mapping[str, float]], judged: Mapping[str, Mapping[str, Mapping[str, float]]]
) -> str:
    lines = [
        [f"{name}, {label}", *(f"{100 * measured[key]:.1f}" if key in measured else "" for key in MEASURES)]
        for label, sets in judged.items()
        for name, measured in sets.items()
    ]
    told = [f"{label}: " + ", ".join(f"{name} {value:g}" for name, value in w.items()) for label, w in weights.items()]
    return "\n".join([mode, *told, "", table(["", "R@1", "R@5", "R@10", "MRR", "sessions R@5"], lines)])
