"""What distilling keeps of labelled sessions: how much of it is right, how much is found, and what must never be kept.

The labels are read in ``dream_labels.py``; when a kept statement counts as one of them, says ``dream_match.py``; the
model that proposes all of them, wrong ones too, is ``dream_model.py``.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

import anyio

from backstory.bootstrap import App
from backstory.config import load
from backstory.domain.memory import Memory, Source
from backstory.domain.provenance import is_injectable
from backstory.domain.said_words import said_words
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import EVERY_STATE, Selection
from backstory.services.dreaming_outcome import Outcome
from bench.dream_labels import PARTS, SECRET, Label, LabelledSession, read_labelled
from bench.dream_match import falls_for, goes_back_to, says
from bench.dream_model import TemptedModel
from bench.report import Report, table
from bench.session_replay import ReplayClock
from bench.stores import STORES

MODELS = ("none", "scripted")
UNTRUSTED = "untrusted"
_ALL = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Dreamt:
    """What became of one session: the memories, and the places where a secret was found."""

    session: LabelledSession
    memories: Sequence[Memory]
    leaks: Sequence[str]

    @property
    def kept(self) -> list[Memory]:
        """Those that may reach a model unasked."""
        return [memory for memory in self.memories if is_injectable(memory.origin)]


def run(options: argparse.Namespace) -> Report:
    """Distil every session, by rules and with a model that proposes too much. Raises Unavailable without the set."""
    sessions = read_labelled(options.data)[: options.limit]
    figures: dict[str, dict[str, dict[str, object]]] = {}
    for model in MODELS:
        if options.model in (model, "both"):
            done = [anyio.run(partial(distilled, one, model=model, store=options.store)) for one in sessions]
            figures[model] = {
                part: as_figures(chosen)
                for part in PARTS
                if (chosen := [one for one in done if part in one.session.parts])
            }
    return Report(
        bench="dream",
        store=options.store,
        data=f"coding-prompts/sessions, {len(sessions)} sessions",
        figures=dict(figures),
        text=as_tables(figures),
    )


def as_figures(done: Sequence[Dreamt]) -> dict[str, object]:
    """The figures of some sessions; shares out of 1, None where there is nothing to share."""
    pairs = [(one.session, memory) for one in done for memory in one.kept]
    right = [memory for session, memory in pairs if _is_right(memory, session)]
    facts = [(one, fact) for one in done for fact in one.session.facts]
    found = [fact for one, fact in facts if any(says(memory.content, fact.text) for memory in one.kept)]
    touched = [fact for one, fact in facts if any(_touches(memory, fact) for memory in one.kept)]
    wrong = Counter(label.reason for one in done for label in _fallen_for(one))
    return {
        "sessions": len(done),
        "kept": len(pairs),
        "right": len(right),
        "precision": _share(len(right), len(pairs)),
        "facts": len(facts),
        "found": len(found),
        "recall": _share(len(found), len(facts)),
        "found_in_part": len(touched),
        "recall_in_part": _share(len(touched), len(facts)),
        "not_facts": dict(
            sorted(Counter(str(label.reason) for one in done for label in _tempting(one.session)).items())
        ),
        "not_facts_kept": {str(reason): count for reason, count in sorted(wrong.items(), key=str)},
        "untrusted_kept": wrong[UNTRUSTED],
        "injections": sum(len(one.session.injections) for one in done),
        "injections_kept": sum(_says_any(memory, session.injections) for session, memory in pairs),
        "for_review": sum(len(one.memories) - len(one.kept) for one in done),
        "secrets": sum(len(one.session.secrets) for one in done),
        "secrets_found": sorted({leak for one in done for leak in one.leaks}),
    }


def as_tables(figures: Mapping[str, Mapping[str, Mapping[str, object]]]) -> str:
    """A line for each model and half of the sessions."""
    header = (
        *("sessions", "kept", "right", "precision %", "facts", "found", "recall %", "in part", "recall %"),
        *("not to be kept", "of", "untrusted", "injections", "for review", "secrets found"),
    )
    rows = [
        (
            f"{model}, {part}",
            *(found[name] for name in ("kept", "right")),
            _percent(found["precision"]),
            *(found[name] for name in ("facts", "found")),
            _percent(found["recall"]),
            found["found_in_part"],
            _percent(found["recall_in_part"]),
            _listed(found["not_facts_kept"]),
            _sum(found["not_facts"]),
            *(found[name] for name in ("untrusted_kept", "injections_kept", "for_review")),
            len(found["secrets_found"]) if isinstance(found["secrets_found"], list) else 0,
        )
        for model, parts in figures.items()
        for part, found in parts.items()
    ]
    return table(header, rows)


async def distilled(session: LabelledSession, *, model: str, store: str) -> Dreamt:
    """Archive a session in a new store, distil it, and look at what there is then."""
    chat = session.conversation
    clock = ReplayClock(max(message.created_at for message in chat.messages) + timedelta(hours=1))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(TemptedModel()) if model == "scripted" else None
        if server is not None:
            server.session = session
        async with _opened(folder, server, store, clock) as app:
            for known in chat.sessions:
                await app.conversations.take_session(known)
            await app.conversations.take_messages(chat.messages)
            for known in chat.sessions:
                while (await app.truth.dreaming.work(known.id, at_once=True)).outcome is Outcome.UNFINISHED:
                    pass
            memories, texts = await _written(app, session, clock)
        if server is not None:
            texts["a request to the model"] = server.received()
        texts |= _bytes_below(folder)
    return Dreamt(session=session, memories=memories, leaks=_leaks(session.secrets, texts))


@asynccontextmanager
async def _opened(folder: Path, server: TemptedModel | None, store: str, clock: ReplayClock) -> AsyncIterator[App]:
    environ = {
        "BACKSTORY_HOME": str(folder),
        "BACKSTORY_CAPTURE_ENABLED": "false",
        "BACKSTORY_RECALL_MODE": "lexical",
        "BACKSTORY_MODELS_PROVIDER": "none",
    }
    if server is not None:
        asked = {"PROVIDER": "openai", "BASE_URL": server.url, "MODEL": "scripted"}
        environ |= {f"BACKSTORY_MODELS_{name}": value for name, value in asked.items()}
    settings = load(env=environ, project_root=None).settings
    backend = STORES[store].open(STORES[store].make(folder))
    app = App(settings, backend, None, no_embedder="words are enough here", clock=clock)
    yield app
    await app.close()


async def _written(app: App, session: LabelledSession, clock: ReplayClock) -> tuple[list[Memory], dict[str, str]]:
    """What was distilled, and the texts of all places that it went to."""
    chat = session.conversation
    viewer = Viewer(project=chat.project, session=chat.sessions[0].id, audience=Audience.PERSON)
    selection = Selection(viewer=viewer, now=clock.now(), states=EVERY_STATE)
    memories = await app.backend.memories.select(selection, limit=_ALL)
    summaries = [await app.backend.dreams.summary(place) for place in (chat.project, None)]
    texts = {
        "a memory": "\n".join(map(repr, memories)),
        "an export": "\n".join(await app.transfer.export(viewer, with_forgotten=True, with_private=True)),
        "a summary": "\n".join(summary.text for summary in summaries if summary is not None),
        "the journal": "\n".join([repr(await app.backend.dreams.state(known.id)) for known in chat.sessions]),
    }
    return [memory for memory in memories if memory.source is Source.DREAMED], texts


def _bytes_below(folder: Path) -> dict[str, str]:
    """Every file as it lies on disk, the write-ahead log and the index among them."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {f"bytes of {path.name}": path.read_bytes().decode("latin-1") for path in files}


def _leaks(secrets: Sequence[str], texts: Mapping[str, str]) -> list[str]:
    """The places that hold a secret, in whatever case: an index folds it."""
    folded = {place: text.casefold() for place, text in texts.items()}
    return [place for place, text in folded.items() for secret in secrets if secret.casefold() in text]


def _is_right(memory: Memory, session: LabelledSession) -> bool:
    if any(_is_the_same(memory, label) for label in [*session.not_facts, *session.injections]):
        return False
    return any(_touches(memory, fact) for fact in session.facts)


def _touches(memory: Memory, fact: Label) -> bool:
    return goes_back_to(memory.content, fact.text, messages=memory.provenance.messages, sources=fact.sources)


def _fallen_for(done: Dreamt) -> list[Label]:
    """The labels not to be kept that are kept. Labels of secrets only describe them; their values are looked for."""
    believed = [memory for memory in done.kept if not any(_is_the_same(memory, fact) for fact in done.session.facts)]
    return [
        label
        for label in _tempting(done.session)
        if any(_is_the_same(memory, label) or falls_for(memory.content, label.text) for memory in believed)
    ]


def _tempting(session: LabelledSession) -> list[Label]:
    return [label for label in session.not_facts if label.reason != SECRET]


def _is_the_same(memory: Memory, label: Label) -> bool:
    return said_words(memory.content) == said_words(label.text)


def _says_any(memory: Memory, labels: Sequence[Label]) -> bool:
    return any(_is_the_same(memory, label) or says(memory.content, label.text) for label in labels)


def _share(count: int, of: int) -> float | None:
    return round(count / of, 4) if of else None


def _percent(share: object) -> str:
    return f"{100 * share:.1f}" if isinstance(share, float) else "-"


def _listed(counts: object) -> str:
    return ", ".join(f"{n} {name}" for name, n in counts.items()) if isinstance(counts, dict) and counts else "0"


def _sum(counts: object) -> int:
    return sum(counts.values()) if isinstance(counts, dict) else 0
