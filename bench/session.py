"""What digests of long sessions spare, what they cost, and what can still be found: real sessions lived through again.

How a session is replayed is ``session_replay.py``; the model that answers by rule ``session_model.py``; what of the
answers can be read in a digest ``session_answers.py``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import anyio

from backstory.adapters.embedders.minilm import MiniLmEmbedder
from backstory.adapters.tokens import token_counter
from backstory.bootstrap import App
from backstory.config import load
from backstory.domain.scope import Viewer
from backstory.entrypoints.tools.evidence import MOST_QUOTED
from bench.evidence import Answered, recall_figures
from bench.evidence_sets import Conversation, read_beam, read_transcripts
from bench.kept_passages import KeptPassages
from bench.report import Report, spread
from bench.session_answers import Answers, Readable, beam_answers, facts_of, shares, tokens_in, transcript_answers
from bench.session_model import RuleModel, booked
from bench.session_replay import MESSAGE_TOKENS, Replay, ReplayClock, Replayed, counted_once, in_one_session, sent_text
from bench.session_tables import as_tables
from bench.stores import STORES

STRATEGIES = ("tree", "observations", "both")
MODELS = ("none", "scripted", "both")
TENTH = {"BACKSTORY_OBSERVATION_MESSAGE_TOKENS": "3000", "BACKSTORY_REFLECTION_OBSERVATION_TOKENS": "4000"}
"""A tenth of what is shipped: the sessions of the coding agent have 3,000 to 11,000 tokens, and stay raw otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One set under one strategy. ``environ`` are settings that differ from those shipped."""

    set_name: str
    name: str
    strategy: str
    environ: Mapping[str, str] = field(default_factory=dict)
    conversations: Sequence[Conversation]
    answers: Answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one case, with one model or none."""

    case: Case
    model: str
    replayed: Sequence[Replayed]
    answered: Sequence[Answered]
    readable: Sequence[Readable]
    calls: Mapping[str, object]

    def figures(self) -> dict[str, object]:
        """All that is reported of it; shares out of 1."""
        steps = [step for done in self.replayed for step in done.steps]
        turns = sum(len({step.turn for step in done.steps}) for done in self.replayed)
        totals = {
            name: sum(getattr(step, name) for step in steps) for name in ("whole", "sent", "whole_fresh", "sent_fresh")
        }
        kept = [step.kept for step in steps if step.kept is not None]
        recall = recall_figures(self.answered) if self.answered else {}
        return {
            "turns": turns,
            "requests": len(steps),
            "tokens_per_turn_whole": round(totals["whole"] / turns),
            "tokens_per_turn": round(totals["sent"] / turns),
            "compression": round(totals["whole"] / totals["sent"], 2),
            "compression_of_last": round(_last(self.replayed, "whole") / _last(self.replayed, "sent"), 2),
            "fresh_per_turn_whole": round(totals["whole_fresh"] / turns),
            "fresh_per_turn": round(totals["sent_fresh"] / turns),
            "prefix_kept": round(sum(kept) / len(kept), 4),
            "activations": sum(step.activated for step in steps),
            "faults": dict(Counter(fault for step in steps for fault in step.faults)),
            "pieces": sum(done.pieces for done in self.replayed),
            "turn_added_ms": spread(_added(self.replayed)),
            "work_s": spread(work) if (work := [s for done in self.replayed for s in done.work_s]) else None,
            "failed_rounds": sum(done.problems for done in self.replayed),
            **{name: recall[name] for name in ("r_at_5", "r_at_10") if recall},
            "answers": shares(self.readable),
            **({"calls": dict(self.calls)} if self.calls else {}),
        }


def run(options: argparse.Namespace) -> Report:
    """Replay the sets under each strategy, with and without a model. Raises Unavailable where a set is not there."""
    models = [model for model in MODELS[:2] if options.model in (model, "both")]
    outcomes = [
        anyio.run(partial(_measure, case, model=model, store=options.store, ask=model == models[0]))
        for case in _cases(options)
        for model in models
    ]
    figures = {_name(outcome): outcome.figures() for outcome in outcomes}
    if options.save is not None:
        _save(outcomes, options.save)
    counter = token_counter(exact=True).name
    limited = "" if options.limit is None else f", the first {options.limit} of each"
    return Report(
        bench="session",
        store=options.store,
        data=f"coding-prompts/sessions and beam-100k{limited}; tokens as {counter} counts, {MESSAGE_TOKENS} a message",
        figures=dict(figures),
        text=as_tables(figures),
    )


def _cases(options: argparse.Namespace) -> Iterator[Case]:
    sessions = [in_one_session(chat) for chat in read_transcripts(options.data)[: options.limit]]
    chats = [in_one_session(chat) for chat in read_beam(options.data)[: options.limit]]
    coding = partial(Case, set_name="sessions", conversations=sessions, answers=transcript_answers(options.data))
    beam = partial(Case, set_name="beam", conversations=chats, answers=beam_answers(options.data))
    if options.strategy != "observations":
        yield from (case(name="tree", strategy="tree") for case in (coding, beam))
    if options.strategy != "tree":
        yield from (case(name="observations", strategy="observations") for case in (coding, beam))
        yield coding(name="observations, a tenth", strategy="observations", environ=TENTH)


async def _measure(case: Case, *, model: str, store: str, ask: bool) -> Outcome:
    """``ask`` the questions too, for which everything must be embedded first: no model has a part in that."""
    started = time.perf_counter()
    with ExitStack() as stack:
        server = stack.enter_context(RuleModel()) if model == "scripted" else None
        clock = ReplayClock(min(chat.messages[0].created_at for chat in case.conversations))
        async with _opened(case, server, store, clock) as app:
            count = counted_once(token_counter(exact=True))
            replayed = []
            for chat in case.conversations:
                replayed.append(await Replay(app, chat, clock=clock, count=count).run())
                print(f"\r{case.set_name}, {case.name}, {model}: {chat.project}  ", end="", file=sys.stderr)
            answered = await _all_asked(app, case, clock) if ask else []
            readable = [
                row
                for chat, done in zip(case.conversations, replayed, strict=True)
                for row in _readable(chat, done, case.answers)
            ]
            calls = {} if server is None else await _calls(app, server)
    print(f"\r{case.set_name}, {case.name}, {model}: {time.perf_counter() - started:.0f} s  ", file=sys.stderr)
    return Outcome(case=case, model=model, replayed=replayed, answered=answered, readable=readable, calls=calls)


@asynccontextmanager
async def _opened(case: Case, server: RuleModel | None, store: str, clock: ReplayClock) -> AsyncIterator[App]:
    """The product over a new store, put together as its settings say."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {
            "BACKSTORY_HOME": folder,
            "BACKSTORY_SESSION_STRATEGY": case.strategy,
            "BACKSTORY_CAPTURE_ENABLED": "false",
            "BACKSTORY_MODELS_PROVIDER": "none",
            **case.environ,
        }
        if server is not None:
            asked = {"PROVIDER": "openai", "BASE_URL": server.url, "MODEL": "scripted"}
            environ |= {f"BACKSTORY_MODELS_{name}": value for name, value in asked.items()}
        settings = load(env=environ, project_root=None).settings
        backend = STORES[store].open(STORES[store].make(Path(folder)))
        app = App(settings, backend, KeptPassages(MiniLmEmbedder(None), for_evidence=True), no_embedder="", clock=clock)
        yield app
        await app.close()


async def _all_asked(app: App, case: Case, clock: ReplayClock) -> list[Answered]:
    await app.maintenance.embed_missing()
    return [answer for chat in case.conversations for answer in await _asked(app, chat, clock)]


async def _asked(app: App, chat: Conversation, clock: ReplayClock) -> list[Answered]:
    """Its questions, each as session_recall would look for it in the session, at the end of what was said."""
    clock.at = max(message.created_at for message in chat.messages)
    session_of = {message.id: message.session for message in chat.messages}
    answers = []
    for question in chat.questions:
        found = await app.evidence.search(
            question.text, viewer=Viewer(project=chat.project), session=chat.session, limit=MOST_QUOTED
        )
        ranking = [result.passage.message for result in found.results]
        answers.append(Answered(question=question, ranking=ranking, session_of=session_of, held_out=False))
    return answers


def _readable(chat: Conversation, done: Replayed, answers: Answers) -> Iterator[Readable]:
    shown = done.shown
    replaced = {message.id for message in shown.replaced}
    digest = tokens_in([shown.digest])
    raw = tokens_in(map(sent_text, shown.raw))
    newest = tokens_in([_newest([sent_text(message) for message in shown.replaced], len(shown.digest))])
    messages = {message.id: message for message in chat.messages}
    for question in chat.questions:
        evidence = [messages[name] for name in sorted(question.gold)]
        yield Readable(
            question=question,
            facts=facts_of(question.text, answers[chat.project, question.text], evidence),
            replaced=question.gold <= replaced,
            shown=digest | raw,
            digest=digest,
            newest=newest,
        )


def _newest(texts: Sequence[str], chars: int) -> str:
    whole = "\n".join(texts)
    return whole[max(0, len(whole) - chars) :]


async def _calls(app: App, server: RuleModel) -> dict[str, object]:
    """What the server counted, and whether the ledger has the same."""
    ledger, failed = await booked(app)
    told = server.counted
    return {
        "calls": told.calls,
        "input_tokens": told.input_tokens,
        "output_tokens": told.output_tokens,
        "booked_alike": ledger == told,
        "failed": failed,
    }


def _save(outcomes: Sequence[Outcome], folder: Path) -> None:
    """Write down which facts the digests lack, for those who write digests."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = {
        _name(outcome): [
            {"kind": row.question.kind, "question": row.question.text, "missing": lacking}
            for row in outcome.readable
            if row.replaced and (lacking := [asdict(fact) for fact in row.facts if fact.token not in row.digest])
        ]
        for outcome in outcomes
    }
    text = json.dumps(missing, indent=1, ensure_ascii=False)
    (folder / "session-missing.json").write_text(text, encoding="utf-8")


def _last(replayed: Sequence[Replayed], name: str) -> int:
    return sum(int(getattr(done.steps[-1], name)) for done in replayed)


def _added(replayed: Sequence[Replayed]) -> list[float]:
    """Milliseconds of each turn, without requests of a process that has just begun."""
    added: dict[tuple[int, int], float] = {}
    for place, done in enumerate(replayed):
        for step in done.steps:
            took = 0.0 if step.restarted else step.outlook_ms
            added[place, step.turn] = added.get((place, step.turn), 0.0) + took
    return list(added.values())


def _name(outcome: Outcome) -> str:
    return f"{outcome.case.set_name}, {outcome.case.name}, model {outcome.model}"
