"""What the plugin costs inside the real OpenCode: time added to a turn, and whether the prompt's prefix stays the same.

Two OpenCode processes run side by side, one without and one with the plugin, and take the same prompts in turn. The
model is scripted and answers at once, so the difference is ours. With a strategy for long sessions all turns are one
session, and its digests are written by a model that takes two seconds: a request that waited for it would show.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, takewhile
from pathlib import Path

import anyio

from backstory.bootstrap import open_app
from backstory.config import load
from backstory.domain.context_block import RECALL_TAG
from backstory.domain.digest_block import DIGEST_TAG
from backstory.domain.history import Author
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience
from backstory.entrypoints.opencode import server as bridge
from backstory.entrypoints.opencode.sidecar import sidecar_for
from backstory.services.remember import Draft
from backstory.testing.opencode import OpenCode
from backstory.testing.opencode_binary import OpenCodeMissing
from backstory.testing.opencode_server import Server
from backstory.testing.scripted_model import Request, ScriptedModel
from bench.report import Report, Unavailable, spread, table
from bench.rows import queries, rows
from bench.session_model import RuleModel

ROWS = 500
TURNS = 40
WARM_UP = 4
TURNS_A_SESSION = 8  # so that neither history grows long
PREFIX_TURNS = 5
DIGEST_LATENCY_S = 2.0
OBSERVED_TOKENS = 1000  # the least that can be set, so that 40 short turns are observed several times
PLUGIN = Path(bridge.__file__).with_name("plugin.js")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One OpenCode home, its project folder and the model it talks to."""

    opencode: OpenCode
    project: Path
    model: ScriptedModel


def run(options: argparse.Namespace) -> Report:
    """Run both measurements. Raises Unavailable where OpenCode is not installed."""
    count = options.rows or ROWS
    folder = Path(tempfile.mkdtemp(prefix="backstory-bench-"))
    try:
        with ScriptedModel() as bare_model, ScriptedModel() as model, RuleModel(latency_s=DIGEST_LATENCY_S) as writer:
            bare = _side(folder / "bare", bare_model)
            strategy = _strategy(options.strategy, writer.url)
            ours = _side(folder / "ours", model, strategy)
            _install(ours, {"BACKSTORY_HOME": str(folder / "memory"), **strategy}, count)
            figures = _time_turns(bare, ours, turns_a_session=WARM_UP + TURNS if strategy else TURNS_A_SESSION)
            figures |= _follow_digests(bare, ours, writer) if strategy else _follow_prefix(ours)
    except OpenCodeMissing as error:
        raise Unavailable(str(error)) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    data = f"{count} invented memories, {TURNS} turns, model answering at once"
    if options.strategy:
        data += f"; strategy {options.strategy}, digests written in {DIGEST_LATENCY_S:.0f} s"
    return Report(bench="host", store=options.store, data=data, figures=figures, text=_text(figures))


def _side(root: Path, model: ScriptedModel, environ: Mapping[str, str] | None = None) -> Side:
    root.mkdir(parents=True)
    opencode = OpenCode(root, model.url, environ=environ)
    return Side(opencode=opencode, project=opencode.project(files={"README.md": "# A project\n"}), model=model)


def _strategy(name: str | None, url: str) -> dict[str, str]:
    """The settings of a strategy; none for none."""
    if name is None:
        return {}
    if name == "both":
        raise Unavailable("a session has one strategy; take --strategy tree or --strategy observations")
    return {
        "BACKSTORY_SESSION_STRATEGY": name,
        "BACKSTORY_OBSERVATION_MESSAGE_TOKENS": str(OBSERVED_TOKENS),
        "BACKSTORY_MODELS_PROVIDER": "openai",
        "BACKSTORY_MODELS_BASE_URL": url,
        "BACKSTORY_MODELS_MODEL": "scripted",
    }


def _install(side: Side, environ: Mapping[str, str], count: int) -> None:
    """Put the plugin into the home, and memories of its project into the store."""
    Path(environ["BACKSTORY_HOME"]).mkdir()
    anyio.run(partial(_remember, environ, side.project, count))
    settings = load(env=environ, project_root=None).settings
    side.opencode.install_plugin(PLUGIN, json.loads(sidecar_for(settings, environ).content()))


async def _remember(environ: Mapping[str, str], project: Path, count: int) -> None:
    app = open_app(load(env=environ, project_root=None).settings)
    viewer = await app.viewer(project, audience=Audience.PERSON)
    for row in rows(count):
        await app.remember.remember(Draft(content=row.text, origin=Origin.USER), viewer=viewer, author=Author.USER)
    await app.maintenance.embed_missing()
    await app.close()


def _time_turns(bare: Side, ours: Side, *, turns_a_session: int) -> dict[str, object]:
    """Milliseconds of each turn on both sides; the order within a pair alternates, so that neither has it warmer."""
    elapsed: dict[str, list[float]] = {"bare": [], "ours": []}
    with _served(bare) as bare_server, _served(ours) as our_server:
        servers = {"bare": bare_server, "ours": our_server}
        sessions: dict[str, str] = {}
        for turn, prompt in enumerate(queries(WARM_UP + TURNS)):
            if turn % turns_a_session == 0:
                sessions = {name: server.create_session() for name, server in servers.items()}
            for name in ("bare", "ours") if turn % 2 else ("ours", "bare"):
                started = time.perf_counter()
                servers[name].prompt(sessions[name], prompt)
                elapsed[name].append(1000 * (time.perf_counter() - started))
    without, with_plugin = elapsed["bare"][WARM_UP:], elapsed["ours"][WARM_UP:]
    added = [ours - bare for ours, bare in zip(with_plugin, without, strict=True)]
    spoken = sum(_has_block(request) for request in ours.model.requests("chat"))
    return {
        "turn_added_ms": spread(added),
        "turn_added_max_ms": round(max(added), 1),
        "turn_without_ms": spread(without),
        "turn_with_ms": spread(with_plugin),
        "requests_with_a_block": round(spoken / len(ours.model.requests("chat")), 2),
    }


def _follow_digests(bare: Side, ours: Side, writer: RuleModel) -> dict[str, object]:
    """What the long session's requests carried, and how much of each stood unchanged at the head of the next, where the
    digest was the same."""
    requests = ours.model.requests("chat")
    same = [(one, other) for one, other in pairwise(requests) if _digest(one) == _digest(other)]
    kept = [_kept(earlier, later) for earlier, later in same]
    return {
        "prefix_kept": round(sum(kept) / len(kept), 4),
        "prefix_requests": len(requests),
        "digest_switches": len(requests) - 1 - len(same),
        "digest_calls": writer.counted.calls,
        "last_request_messages": len(requests[-1].messages),
        "last_request_messages_without": len(bare.model.requests("chat")[-1].messages),
    }


def _digest(request: Request) -> str:
    """The digest that a request begins with; empty for none."""
    first = (request.texts("user") or [""])[0]
    return first if first.startswith(f"<{DIGEST_TAG}>") else ""


def _follow_prefix(side: Side) -> dict[str, object]:
    """Five turns, a restart, and one turn more: how much of each request stands unchanged at the head of the next."""
    side.model.forget_requests()
    prompts = queries(PREFIX_TURNS + 1)
    with _served(side) as server:
        session = server.create_session()
        for prompt in prompts[:PREFIX_TURNS]:
            server.prompt(session, prompt)
    with _served(side) as server:
        server.prompt(session, prompts[PREFIX_TURNS])
    requests = side.model.requests("chat")
    kept = [_kept(earlier, later) for earlier, later in pairwise(requests)]
    return {
        "prefix_kept": round(sum(kept) / len(kept), 4),
        "prefix_requests": len(requests),
    }


def _served(side: Side) -> Server:
    return side.opencode.serve(cwd=side.project)


def _kept(earlier: Request, later: Request) -> float:
    """The share of a request, in characters of its messages, with which the later one begins; 0 with other tools."""
    if earlier.body.get("tools") != later.body.get("tools"):
        return 0.0
    texts = [[json.dumps(message, sort_keys=True) for message in one.messages] for one in (earlier, later)]
    pairs = zip(*texts, strict=False)  # the later request is the longer one
    same = [before for before, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
    return _chars(same) / _chars(texts[0])


def _chars(texts: Sequence[str]) -> int:
    return sum(map(len, texts))


def _has_block(request: Request) -> bool:
    """Whether the newest user message carries memories."""
    return any(RECALL_TAG in text for text in request.texts("user")[-1:])


def _text(figures: Mapping[str, object]) -> str:
    meanings = {
        "turn_without_ms": "a turn without the plugin (ms)",
        "turn_with_ms": "a turn with it (ms)",
        "turn_added_ms": "added, turn by turn (ms)",
    }
    lines = []
    for key, meaning in meanings.items():
        value = figures[key]
        assert isinstance(value, dict)
        lines.append((meaning, value["p50"], value["p95"], value["n"]))
    rest = [f"requests that carried a block: {figures['requests_with_a_block']:.0%}"]
    if "digest_calls" in figures:
        rest += [
            f"calls of the model that writes digests: {figures['digest_calls']}, {DIGEST_LATENCY_S:.0f} s each",
            f"the most that a turn took longer: {figures['turn_added_max_ms']} ms",
            f"messages in the last request: {figures['last_request_messages']}"
            f" (without: {figures['last_request_messages_without']})",
            f"prompt prefix kept while the digest stayed: {figures['prefix_kept']:.2%}"
            f" ({figures['digest_switches']} switches in {figures['prefix_requests']} requests)",
        ]
    else:
        kept = f"{figures['prefix_kept']:.2%}"
        rest.append(f"prompt prefix kept over {PREFIX_TURNS} turns, a restart and one turn more: {kept}")
    return table(("host", "p50", "p95", "n"), lines) + "\n\n" + "\n".join(rest)
