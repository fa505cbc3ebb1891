"""Backstory and simple systems over one labelled set, with and without noise around the memories, as one report."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio

from backstory.adapters.embedders import e5
from backstory.adapters.embedders.minilm import MiniLmEmbedder, availability
from backstory.domain.relevance import Relevance
from backstory.ports.models import Embedder
from bench.asking import Asked, ask, settings
from bench.baselines import dense, fts5, grep
from bench.distractors import Turn, archive, read_turns, with_memories
from bench.kept_passages import KeptPassages
from bench.labelled import LabelledSet
from bench.measures import Answer, Figures, kinds_of, measure
from bench.report import Report, Unavailable, table

SHIPPED = Relevance.BALANCED
"""The setting of the gate that a new installation has."""
BACKSTORY = "backstory"
BY_WORDS = "backstory_words"
TWO_MODELS = "backstory_two_models"
"""With the second model beside the local one, where that is installed."""
WITHOUT_MULTI = "without_multi"
"""The ranking of prompts with one answer, where a bench reports it apart."""
HEADLINE = ("r_at_1", "r_at_5", "r_at_10", "mrr", "auc", "fp_at_90", "outdated_shown", "leaks")
HEADER = ("R@1", "R@5", "R@10", "MRR", "AUC", "FP@90", "outdated", "leaks")

Measured = Mapping[str, Figures]
"""Systems by name."""
Extra = Callable[[Sequence[Answer]], Figures]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The figures of each system, alone and in each condition with noise; and every answer given without noise."""

    alone: Measured
    answers: Mapping[str, Sequence[Answer]]
    noisy: Mapping[str, Measured]


def run_on(labelled: LabelledSet, name: str, options: argparse.Namespace, *, extra: Extra = lambda _: {}) -> Report:
    """Measure every system; ``extra`` adds figures from a system's answers. Raises Unavailable without the model, and
    without the sets that distractors are taken from."""
    if (missing := availability()) is not None:
        raise Unavailable(missing)
    turns = read_turns(options.distractor_data, options.distractors) if options.distractors else []
    outcome = anyio.run(partial(compare, labelled, turns, extra, options.store))
    if options.save is not None:
        save(outcome, options.save)
    others = {system: figures for system, figures in outcome.alone.items() if system != BACKSTORY}
    noise = {"distractors": {"count": len(turns), **outcome.noisy}} if turns else {}
    return Report(
        bench=name,
        store=options.store,
        data=f"{labelled.name}, {len(labelled.memories)} memories, {len(labelled.questions)} prompts",
        figures=outcome.alone[BACKSTORY],
        text=as_text(outcome, len(turns)),
        others=others,
        conditions=noise,
    )


async def compare(labelled: LabelledSet, turns: Sequence[Turn], extra: Extra, store: str) -> Outcome:
    """Ask every system; the turns first as evidence beside the memories, then as memories among them."""
    embedder = KeptPassages(MiniLmEmbedder(None))
    answers, alone = await _with_baselines(labelled, embedder, extra, store)
    by_words = await ask(labelled, embedder=None, store=store)
    alone[BY_WORDS] = _of_backstory(by_words, labelled, extra)
    if e5.availability() is None:
        second = e5.E5Embedder(None)
        by_two = await ask(labelled, embedder=embedder, store=store, second=second)
        alone[TWO_MODELS] = _of_backstory(by_two, labelled, extra)
        await second.close()
    noisy: dict[str, Measured] = {}
    if turns:
        beside = await ask(labelled, embedder=embedder, store=store, prepare=partial(archive, turns, labelled))
        noisy["as_evidence"] = {BACKSTORY: _of_backstory(beside, labelled, extra)}
        noisy["as_memories"] = (await _with_baselines(with_memories(labelled, turns), embedder, extra, store))[1]
    await embedder.close()
    return Outcome(alone=alone, answers=answers, noisy=noisy)


async def _with_baselines(
    labelled: LabelledSet, embedder: Embedder, extra: Extra, store: str
) -> tuple[dict[str, Sequence[Answer]], dict[str, Figures]]:
    asked = await ask(labelled, embedder=embedder, store=store)
    simple = {"dense": await dense(labelled, embedder), "fts5": fts5(labelled), "grep": grep(labelled)}
    answers: dict[str, Sequence[Answer]] = {BACKSTORY: [row.answer for row in asked], **simple}
    figures = {name: {**measure(given, labelled), **extra(given)} for name, given in simple.items()}
    return answers, {BACKSTORY: _of_backstory(asked, labelled, extra), **figures}


def _of_backstory(asked: Sequence[Asked], labelled: LabelledSet, extra: Extra) -> Figures:
    """What is measured of every system, and what the gate does at each of its settings; the shipped one by kind too."""
    answers = [row.answer for row in asked]
    figures = measure(answers, labelled)
    at = settings(asked)
    shipped = at[SHIPPED.value]
    by_kind = figures["by_kind"]
    assert isinstance(by_kind, dict)
    for kind, rows in _kinds(asked).items():
        by_kind[kind]["speaks"] = round(sum(bool(row.said[SHIPPED]) for row in rows) / len(rows), 4)
    gate = {"silent_on_no_answer": shipped["silent_on_no_answer"], "answered_kept": shipped["answered_kept"]}
    return {**figures, **gate, "shipped": SHIPPED.value, "settings": at, **extra(answers)}


def _kinds(asked: Sequence[Asked]) -> dict[str, list[Asked]]:
    kinds: dict[str, list[Asked]] = {}
    for row in asked:
        for kind in kinds_of(row.question):
            kinds.setdefault(kind, []).append(row)
    return kinds


def save(outcome: Outcome, folder: Path) -> None:
    """Write what each system returned, as ``{prompt: [[memory, certainty], ...]}``, for other scorers."""
    folder.mkdir(parents=True, exist_ok=True)
    for system, answers in outcome.answers.items():
        results = {row.question.id: [[name, row.certainty] for name in row.found] for row in answers}
        (folder / f"{system}.json").write_text(json.dumps(results), encoding="utf-8")


def as_text(outcome: Outcome, turns: int) -> str:
    """The tables, shares in per cent."""
    parts = [
        _headline("alone", outcome.alone),
        _by_kind(outcome.alone),
        _gate("gate, with meaning", outcome.alone[BACKSTORY]),
        _gate("gate, by words alone", outcome.alone[BY_WORDS]),
    ]
    for condition, measured in outcome.noisy.items():
        title = f"beside {turns} turns, {condition.replace('_', ' ')}"
        parts += [_headline(title, measured), _by_kind(measured), _gate("gate", measured[BACKSTORY])]
    return "\n\n".join(parts)


def _headline(title: str, measured: Measured) -> str:
    rows = []
    for name, figures in measured.items():
        rows.append((name, *(_shown(key, figures.get(key)) for key in HEADLINE)))
        if isinstance(single := figures.get(WITHOUT_MULTI), dict):
            rows.append((f"{name}, without multi", *(_shown(key, single.get(key)) for key in HEADLINE)))
    return table((title, *HEADER), rows)


def _by_kind(measured: Measured) -> str:
    """R@1 and R@5 of each kind for every system, and AUC and how often it speaks for Backstory."""
    systems = [name for name in measured if name != BY_WORDS]
    header = ("by kind", "n", *(f"{name} R@1/5" for name in systems), "AUC", "FP@90", "speaks")
    kinds = _kinds_of(measured[BACKSTORY])
    rows = []
    for kind, ours in kinds.items():
        ranks = [_both(_kinds_of(measured[name])[kind]) for name in systems]
        gate = [_shown(key, ours.get(key)) for key in ("auc", "fp_at_90", "speaks")]
        rows.append((kind, ours["n"], *ranks, *gate))
    return table(header, rows)


def _gate(title: str, figures: Figures) -> str:
    """The curve, and where the settings stand on it."""
    curve, at = figures["fp_by_kept"], figures["settings"]
    assert isinstance(curve, dict)
    assert isinstance(at, dict)
    rows: list[tuple[object, ...]] = [
        (f"{kept} % kept", kept, _per_cent(passing), "", "") for kept, passing in curve.items()
    ]
    for setting, row in at.items():
        kept, passing = _per_cent(row["answered_kept"]), _per_cent(1.0 - row["silent_on_no_answer"])
        rows.append((setting, kept, passing, _per_cent(row["right_among_said"]), row["memories_said"]))
    return table((title, "kept", "wrongly passing", "right if said", "said"), rows)


def _kinds_of(figures: Figures) -> dict[str, Figures]:
    kinds = figures["by_kind"]
    assert isinstance(kinds, dict)
    return kinds


def _both(figures: Figures) -> str:
    return f"{_shown('', figures['r_at_1'])}/{_shown('', figures['r_at_5'])}" if "r_at_1" in figures else ""


def _shown(key: str, value: object) -> object:
    if not isinstance(value, float):
        return "" if value is None else value
    return f"{value:.3f}" if key == "auc" else _per_cent(value)


def _per_cent(share: float) -> str:
    return f"{100 * share:.1f}"
