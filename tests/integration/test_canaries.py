"""Where each kind of text may be seen: one table for tools, one for commands, one for prompts, and the bytes.

Whoever adds a tool, a command, a prompt or a call of the bridge has to say here what it may show.
"""

from __future__ import annotations

import io
import itertools
import json
import logging
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from backstory import prompts as prompts_package
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.scope import Audience
from backstory.entrypoints.agents import events
from backstory.entrypoints.agents.calls import Event, HookCall
from backstory.entrypoints.cli.main import COMMANDS, main
from backstory.entrypoints.tools.catalogue import TOOLS, TOOLSETS, tools_of
from backstory.entrypoints.tools.tool import Effect
from backstory.services.query import Query
from tests.canaries import (
    ELSEWHERE,
    FORGOTTEN,
    KEYS,
    LOCAL,
    NIGHT,
    NOWHERE,
    OPEN,
    PRIVATE,
    TALK,
    Boathouse,
    filled,
    heard,
    moved,
)
from tests.integration.bridge_process import BridgeProcess

# What each may show. Whatever is not named there is shown by none of them; what is in NOWHERE, by nothing at all.

BLOCKS = {OPEN}
"""Unasked: no private memory, nothing of another project, nothing that was forgotten."""

IN_TOOLS: Mapping[str, set[str]] = {
    "memory_remember": {OPEN, PRIVATE},  # it answers a number with what stands there
    "memory_recall": {OPEN, PRIVATE},  # and ELSEWHERE where all projects are asked for
    "memory_update": {OPEN, PRIVATE},
    "memory_forget": {OPEN, PRIVATE},
    "memory_inspect": {OPEN, PRIVATE},
    "memory_feedback": {OPEN, PRIVATE},
    "memory_consolidate": {OPEN},
    "session_recall": set(),
    "search_memory_tree": set(),
    "om_status": set(),
    "om_observations": set(),
}

READ = {OPEN, PRIVATE}
"""What is shown to a model that asks: never what is local-only, forgotten or of another project."""

IN_OLDER_TOOLS: Mapping[str, Mapping[str, set[str]]] = {
    "memory-tree": {"search_memory_tree": set()},
    "observational": {"om_status": set(), "om_observations": set()},
    "ocpg": {
        "memory_remember": set(),
        "memory_recall": READ,
        "memory_forget": set(),
        "memory_update": set(),
        "memory_consolidate": {OPEN},
        "memory_tags": set(),
        "memory_retag": set(),
    },
    "opencode-memory": {
        "memory_read": READ,
        "memory_write": set(),
        "memory_update": set(),
        "memory_forget": set(),
        "memory_clear": set(),
        "memory_why": READ,
        "memory_inspect": READ,
        "memory_useful": set(),
        "memory_irrelevant": set(),
    },
    "git-memory": {
        "memory_remember": set(),
        "memory_recall": READ,
        "memory_update": set(),
        "memory_forget": set(),
        "memory_list": set(),
        "memory_export": {OPEN},  # as text that may leave
        "memory_import": set(),
        "memory_compact": set(),
        "memory_context": READ,
    },
}
"""The tools of older products, by their set. Those of ``all`` are ours or theirs, each once."""
ALL_WIDENED = {name: IN_TOOLS[name] for name in (
    "memory_remember", "memory_recall", "memory_update", "memory_forget", "memory_consolidate",
)} | {"memory_clear": set()}  # fmt: skip
"""Ours that take more arguments in ``all``."""

IN_PROMPTS: Mapping[str, set[str]] = {
    "rerank": {OPEN, PRIVATE},  # of what a search found; that of a block is asked with offerable ones alone
    "dream": {OPEN},
    "dream_duplicates": {OPEN},
    "dream_summary": {OPEN},
    "observe": set(),
    "reflect": set(),
    "tree_leaf": set(),
    "tree_merge": set(),
}

MINE = {OPEN, PRIVATE, LOCAL}
"""What a person sees of a project at their own command line."""
ALL = MINE | {ELSEWHERE}
EVER = MINE | {FORGOTTEN}
REFS = ("#1", "#2", "#3", "#4", "#5", "#6")

IN_COMMANDS: Mapping[str, Sequence[tuple[set[str], str]]] = {
    "remember": [(set(), "remember A new lamp was hung")],
    "recall": [
        (MINE, "recall lamp oil"), (ALL, "recall lamp oil --all-projects"), (MINE, "recall lamp --superseded"),
        (MINE, "recall lamp --in evidence"), (MINE, "recall lamp --in all"), (MINE, "recall slipway"),
    ],
    "list": [(MINE, "list"), (ALL, "list --all-projects"), (EVER, "list --forgotten"), (MINE, "list --superseded")],
    "show": [*((EVER, f"show {ref}") for ref in REFS), *((EVER | ALL, f"show {ref} --all-projects") for ref in REFS)],
    "why": [*((EVER, f"why {ref} --query lamp") for ref in REFS)],
    "update": [(MINE, f"update {ref} --issue L-1") for ref in REFS],
    "forget": [(MINE, f"forget {ref} --dry-run") for ref in REFS],
    "erase": [*((EVER, f"erase {ref} --dry-run") for ref in REFS), (set(), "erase --receipts")],
    "pin": [(MINE, f"pin {ref}") for ref in REFS],
    "useful": [(MINE, f"useful {ref}") for ref in REFS],
    "irrelevant": [(MINE, f"irrelevant {ref}") for ref in REFS],
    "conflicts": [(MINE, "conflicts"), (ALL, "conflicts --all-projects")],
    "resolve": [(MINE, f"resolve {ref} --both --dry-run") for ref in REFS],
    "tags": [(MINE, "tags"), (ALL, "tags --all-projects")],
    "retag": [(MINE, "retag lamp lantern --dry-run")],
    "history": [(EVER, "history"), (EVER | ALL, "history --all-projects"), *((EVER, f"history {ref}") for ref in REFS)],
    "undo": [(EVER, "undo")],
    "inspect": [
        *((EVER, f"inspect {view}") for view in ("recent", "project", "conflicts", "shown", "silent", "stats")),
    ],
    "shown": [(EVER, f"shown --session {TALK}"), (EVER, "shown")],
    "prune": [(MINE, "prune --dry-run")],
    "dream": [(MINE, f"dream {NIGHT} --rules --dry-run"), (MINE, "dream --all --rules")],
    "consolidate": [(MINE, "consolidate --dry-run"), (MINE, "consolidate --yes")],
    "review": [(MINE, "review"), (MINE, "review list")],
    "projects": [(set(), "projects list"), (set(), "projects")],
    "sessions": [(set(), "sessions"), (set(), "sessions --all-projects")],
    "session": [
        (set(), f"session {TALK}"), (set(), f"session {TALK} --tools --raw"),
        (set(), f"session {NIGHT} --search ferry"),
    ],
    "export": [
        ({OPEN}, "export -"), ({OPEN, PRIVATE}, "export - --private"), ({OPEN, FORGOTTEN}, "export - --forgotten"),
        ({OPEN, PRIVATE, FORGOTTEN, ELSEWHERE}, "export - --private --forgotten --all-projects"),
    ],
    "import": [(set(), "export {folder}/own.jsonl"), (set(), "import {folder}/own.jsonl --dry-run")],
    "sync": [(set(), "sync --dry-run")],
    "embed": [(set(), "embed")],
    "backup": [(set(), "backup {folder}/kept.backup --force")],
    "restore": [(set(), "backup {folder}/kept.backup --force"), (set(), "restore {folder}/kept.backup")],
    "check": [(set(), "check --full"), (MINE, "check --code --dry-run")],
    "reindex": [(set(), "reindex")],
    "scan": [(MINE, "scan"), (MINE, "scan --fix --dry-run")],
    "config": [(set(), "config"), (set(), "config get store.url")],
    "status": [(MINE, "status"), (set(), "status --cost")],
    "install": [(set(), "install opencode --dry-run")],
    "uninstall": [(set(), "uninstall opencode --dry-run")],
    "doctor": [(set(), "doctor")],
    "tools": [(set(), "tools"), (set(), "tools --cost"), (set(), "tools --toolset ocpg")],
    "bridge": [],  # a process of its own below
    "hook": [],  # below: it answers a hook, and takes no --json
    "mcp": [],  # in test_mcp_canaries.py
    "serve": [],  # in test_http_canaries.py
    "completion": [(set(), "completion bash")],
}  # fmt: skip

USAGE = 2
"""The exit code of a command line that cannot be read, or asks for what cannot be done."""
REFUSED = ("resolve", "sync")
"""There is no conflict and no remote here."""

IN_BRIDGE: Mapping[str, set[str]] = {
    "hello": set(), "chat.message": BLOCKS, "blocks": BLOCKS, "snapshot": BLOCKS, "history": set(), "compacting": set(),
    "tool": {OPEN, PRIVATE},
}  # fmt: skip


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Boathouse]:
    made = filled(tmp_path_factory.mktemp("boathouse"))
    yield made
    made.close()


# --- tools ------------------------------------------------------------------------------------------------------------


def test_every_tool_stands_in_the_table() -> None:
    assert {tool.name for tool in TOOLS} == set(IN_TOOLS)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_shows_no_more_than_it_may(house: Boathouse, tool: Any, tmp_path: Path) -> None:
    """With every value for each of its arguments, and with every switch beside every value."""
    own = house.copied(tmp_path)
    _with_digests(own)
    shown: set[str] = set()
    for arguments in _calls(tool.schema(), own):
        said = heard(own.call(tool.name, arguments))
        may = IN_TOOLS[tool.name] | ({ELSEWHERE} if arguments.get("all_projects") else set())
        assert said <= may, (arguments, said - may)
        shown |= said
    own.close()
    if OPEN in IN_TOOLS[tool.name] and tool.name in ("memory_recall", "memory_inspect"):
        assert OPEN in shown  # else this would prove nothing


OLDER = [(toolset, name) for toolset, tools in (*IN_OLDER_TOOLS.items(), ("all", ALL_WIDENED)) for name in tools]


def test_every_tool_of_every_set_stands_in_the_table() -> None:
    named = {toolset: {tool.name for tool in tools_of(toolset)} for toolset in IN_OLDER_TOOLS}
    assert named == {toolset: set(tools) for toolset, tools in IN_OLDER_TOOLS.items()}
    assert set(TOOLSETS) == {"default", "all", *IN_OLDER_TOOLS}
    ours = {id(tool.handler) for tool in TOOLS}
    older = {id(tool.handler) for toolset in IN_OLDER_TOOLS for tool in tools_of(toolset)}
    assert {tool.name for tool in tools_of("all") if id(tool.handler) not in ours | older} == set(ALL_WIDENED)


@pytest.mark.parametrize(("toolset", "name"), OLDER)
def test_a_tool_of_another_set_shows_no_more_than_it_may(
    house: Boathouse, toolset: str, name: str, tmp_path: Path
) -> None:
    own = house.copied(tmp_path, tools__toolset=toolset)
    _with_digests(own)
    may_ever = ALL_WIDENED[name] if toolset == "all" else IN_OLDER_TOOLS[toolset][name]
    tool = next(tool for tool in tools_of(toolset) if tool.name == name)
    shown: set[str] = set()
    for arguments in _calls(tool.schema(), own, beside=3):
        widened = arguments.get("all_projects") or arguments.get("global")
        said = heard(own.call(name, arguments))
        may = may_ever | ({ELSEWHERE} if widened else set())
        assert said <= may, (arguments, said - may)
        shown |= said
    own.close()
    if may_ever == READ and tool.effect is Effect.READS:
        assert OPEN in shown  # else this would prove nothing


def _calls(schema: Any, house: Boathouse, *, beside: int = 8) -> Iterator[dict[str, Any]]:
    """Arguments for a tool, made from its schema alone: so a new tool, or argument, is covered by itself.

    ``beside`` is how many values are tried with every switch; the first eight are all the words by which a memory is
    asked for.
    """
    properties = schema["properties"]
    values = {name: list(_values(name, kind, house)) for name, kind in properties.items()}
    needed = schema.get("required", [])
    switches = [name for name, kind in properties.items() if kind.get("type") == "boolean" or "enum" in kind]
    yield {}
    for chosen in _chosen([values[name] for name in needed]):
        base = dict(zip(needed, chosen, strict=True))
        yield base
        for name in properties.keys() - set(needed):
            plain = base if base == dict(zip(needed, [values[each][0] for each in needed], strict=True)) else None
            if name in switches or plain is not None:
                yield from (base | {name: value} for value in values[name])
    for switch, name in itertools.product(switches, properties.keys()):
        for one, two in itertools.product(values[switch], values[name][:beside]):
            rest = {each: values[each][0] for each in needed}
            yield rest | {name: two, switch: one}
    for one, two in itertools.combinations(switches, 2):
        for first, second, third in itertools.product(values[one], values[two], values.get("query", [""])[:beside]):
            yield {each: values[each][0] for each in needed} | {"query": third, one: first, two: second}


def _chosen(values: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """Every combination; where there are very many, each value once beside the first ones of the others."""
    if math.prod(map(len, values)) <= _COMBINATIONS:
        yield from itertools.product(*values)
        return
    first = tuple(choices[0] for choices in values)
    yield first
    for place, choices in enumerate(values):
        yield from ((*first[:place], choice, *first[place + 1 :]) for choice in choices[1:])


_COMBINATIONS = 600


def _values(name: str, kind: Any, house: Boathouse) -> Iterator[Any]:
    if "enum" in kind:
        yield from kind["enum"]
    elif kind.get("type") == "boolean":
        yield from (True, False)
    elif kind.get("type") == "array":
        yield from (["lamp"], [LOCAL[:3]], [])
    elif kind.get("type") in ("integer", "number"):
        yield min(kind.get("maximum", 100), 100)
    else:
        yield from ("lamp oil", "", *KEYS.values())
        yield from (f"#{number}" for number in range(1, 8))
        yield from (memory.id for memory in house.memories.values())
        yield from (str(TALK), str(NIGHT), f"msg_{NIGHT}_01", "msg_prompt_6", "node0_001", "obs0_001", "2026-03-02")
        if name in ("content", "fact", "scope", "kind", "category"):
            yield from ("The lamp at the slipway is filled with other oil.", "global", "session", "project", "decision")


# --- prompts, blocks and what is embedded -----------------------------------------------------------------------------


def test_every_prompt_stands_in_the_table() -> None:
    folder = Path(prompts_package.__file__ or "").parent
    assert {path.stem for path in folder.glob("*.md")} | {"rerank"} == set(IN_PROMPTS)


def test_a_prompt_holds_no_more_than_it_may(house: Boathouse, tmp_path: Path) -> None:
    sent = _asked_of_models(house, tmp_path)
    for name, may in IN_PROMPTS.items():
        system = _beginning(name)
        asked = [text for text in sent if system in text]
        assert asked, f"nothing was asked by the prompt {name}"
        assert heard("\n".join(asked)) <= may, name
    assert [text[:80] for text in sent if not any(_beginning(name) in text for name in IN_PROMPTS)] == []


SOON = {
    "observation__message_tokens": 1000, "reflection__observation_tokens": 1000,
    "tree__min_batch": 2, "tree__max_raw": 2, "tree__compact_threshold": 2, "tree__compact_branch": 2,
}  # fmt: skip
"""Settings with which a short session is condensed twice."""


def _beginning(name: str) -> str:
    path = Path(prompts_package.__file__ or "").parent / f"{name}.md"
    return path.read_text(encoding="utf-8").splitlines()[0]


def _asked_of_models(house: Boathouse, folder: Path) -> list[str]:
    """Everything that is asked when all that asks is done: searches, dreams, both strategies of long sessions."""
    sent: list[str] = []
    for number, flags in enumerate(
        ({"recall__rerank": "auto"}, {"session__strategy": "tree"}, {"session__strategy": "observations"})
    ):
        (folder / str(number)).mkdir()
        own = house.copied(folder / str(number), **SOON, **flags)
        _with_digests(own)
        if number == 0:
            for text in ("lamp oil", *KEYS.values()):
                anyio.run(own.app.recall.recall, Query(text=text, viewer=own.viewer(), limit=20))
                anyio.run(own.app.blocks.for_prompt, text, own.viewer())
            for _ in range(2):
                anyio.run(_dream, own)
        sent += own.model.sent
        own.close()
    return sent


async def _dream(house: Boathouse) -> None:
    await house.app.truth.dreaming.work(NIGHT, at_once=True)
    await house.app.truth.dreaming.work(TALK, at_once=True)


def _with_digests(house: Boathouse) -> None:
    sessions = house.app.long_sessions
    if sessions is None:
        return
    for _ in range(6):
        anyio.run(sessions.work.force, NIGHT)
        anyio.run(sessions.work.work, NIGHT)
        moved(house, timedelta(hours=1))


@pytest.mark.parametrize("selection", ["relevance", "recency"])
def test_blocks_and_snapshots_hold_what_is_open_and_nothing_else(
    house: Boathouse, tmp_path: Path, selection: str
) -> None:
    own = house.copied(tmp_path, context__selection=selection)
    asked = ["lamp oil", "What did we decide about the lamp?", *(f"What oil is at the {key}?" for key in KEYS.values())]
    shown = [anyio.run(own.app.blocks.for_prompt, text, own.viewer()).text or "" for text in asked]
    shown += [anyio.run(_snapshot, own, SessionId("ses_new")), anyio.run(_snapshot, own, TALK)]
    assert heard("\n".join(shown)) == BLOCKS
    own.close()


async def _snapshot(house: Boathouse, session: SessionId) -> str:
    viewer = await house.app.viewer(house.folder, audience=Audience.MODEL, session=session)
    return await house.app.blocks.snapshot(viewer, session=session) or ""


def test_what_is_local_only_is_sent_to_no_embedder(house: Boathouse, tmp_path: Path) -> None:
    own = house.copied(tmp_path)
    anyio.run(own.app.maintenance.embed_missing)
    anyio.run(own.app.truth.consolidate.plan, own.viewer())
    assert own.embedder.sent
    assert heard("\n".join(own.embedder.sent)) <= {OPEN, PRIVATE, ELSEWHERE}
    own.close()


# --- commands ---------------------------------------------------------------------------------------------------------


def test_every_command_stands_in_the_table() -> None:
    assert set(COMMANDS) == set(IN_COMMANDS)


@pytest.mark.parametrize("command", IN_COMMANDS)
def test_a_command_shows_no_more_than_it_may(
    house: Boathouse, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Through a pipe, as text and as JSON, with the log at its most talkative: that never holds any of it."""
    own = house.copied(tmp_path)
    own.close()
    _at_the_command_line(own, monkeypatch)
    for may, line in IN_COMMANDS[command]:
        for more in ((), ("--json",)):
            code, out, err = _run([*_words(line, tmp_path), *more, *_verbose(command)], capsys)
            said, logged = heard(out + _told(err)), heard(_logged(err))
            assert said <= may, (line, more, said - may)
            assert logged == set(), (line, more, logged)
            assert code != USAGE or command in REFUSED, (line, err)


def _at_the_command_line(house: Boathouse, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("BACKSTORY_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(house.folder)
    monkeypatch.setenv("BACKSTORY_STORE", house.app.settings.store.url)
    monkeypatch.setenv("BACKSTORY_HOME", str(house.base / "home"))
    monkeypatch.setenv("BACKSTORY_NO_BACKGROUND", "1")
    monkeypatch.setenv("BACKSTORY_RECALL_MODE", "lexical")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(house.base))
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))


def _words(line: str, folder: Path) -> list[str]:
    head, *rest = line.format(folder=folder).split(" ")
    return [head, *filter(None, rest)]


def _verbose(command: str) -> tuple[str, ...]:
    return () if command in ("completion", "bridge") else ("--verbose",)


def _told(err: str) -> str:
    """What is said to the person on standard error: all but the lines of the log."""
    return "\n".join(line for line in err.splitlines() if not line.startswith("time="))


def _logged(err: str) -> str:
    return "\n".join(line for line in err.splitlines() if line.startswith("time="))


def _run(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    capsys.readouterr()
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        code = main(arguments)
    finally:
        for handler in [handler for handler in root.handlers if handler not in before]:
            root.removeHandler(handler)
        root.setLevel(level)
    out, err = capsys.readouterr()
    return code, out, err


# --- the bridge -------------------------------------------------------------------------------------------------------


def test_the_bridge_answers_no_more_than_it_may(house: Boathouse, tmp_path: Path) -> None:
    own = house.copied(tmp_path)
    own.close()
    environ = {
        "BACKSTORY_STORE": own.app.settings.store.url, "BACKSTORY_EMBEDDER_PROVIDER": "none",
        "BACKSTORY_LOG_LEVEL": "debug", "BACKSTORY_CONTEXT_EVIDENCE": "1",
    }  # fmt: skip
    bridge = BridgeProcess(tmp_path / "other", directory=own.folder, environ=environ)
    asked: dict[str, list[dict[str, Any]]] = {
        "hello": [{"protocol": 1}],
        "chat.message": [
            {"session": "ses_b", "message": f"msg_b{number}", "text": f"What oil is at the {key}, and the lamp?"}
            for number, key in enumerate(KEYS.values())
        ],
        "blocks": [{"session": "ses_b", "messages": [f"msg_b{number}" for number in range(6)] + ["msg_prompt_7"]}],
        "snapshot": [{"session": "ses_b"}, {"session": str(TALK)}],
        "history": [{"session": str(NIGHT), "messages": [{"id": "m1", "role": "user"}]}],
        "compacting": [{"session": str(NIGHT)}],
        "tool": [
            {"session": "ses_b", "name": name, "arguments": {"query": key}}
            for name in ("memory_recall", "session_recall", "memory_inspect") for key in KEYS.values()
        ],
    }  # fmt: skip
    assert set(asked) == set(IN_BRIDGE)
    for method, calls in asked.items():
        said = heard(json.dumps([bridge.ask(method, **call) for call in calls]))
        assert said <= IN_BRIDGE[method], (method, said)
    assert bridge.close() == 0
    assert heard(bridge.stderr()) == set()


def test_the_table_has_every_call_of_the_bridge(house: Boathouse) -> None:
    from backstory.entrypoints.opencode.server import Bridge

    assert set(Bridge(house.app, source=io.BytesIO(), sink=io.BytesIO())._requests) == set(IN_BRIDGE)


def test_a_hook_answers_no_more_than_a_block_may_hold(house: Boathouse, tmp_path: Path) -> None:
    own = house.copied(tmp_path)
    for number, (event, key) in enumerate(itertools.product(Event, KEYS.values())):
        call = HookCall(
            event=event, agent="claude-code", session=SessionId(f"ses_h{number}"), message=MessageId(f"msg_h{number}"),
            directory=own.folder, text=f"What oil is at the {key}, and the lamp?", answer=f"It is at the {key}.",
        )  # fmt: skip
        said = anyio.run(events.answer, own.app, call) or ""
        anyio.run(events.keep, own.app, call)
        assert heard(said) <= BLOCKS, (event, key)


# --- the bytes --------------------------------------------------------------------------------------------------------


def test_no_file_holds_what_was_private_secret_or_erased(
    house: Boathouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = house.copied(tmp_path)
    anyio.run(_dream, own)
    own.close()
    _at_the_command_line(own, monkeypatch)
    for line in (
        "backup {folder}/kept.backup",
        "export {folder}/kept.jsonl --private --forgotten --all-projects",
        "reindex",
    ):
        code, _, err = _run(_words(line, tmp_path), capsys)
        assert code == 0, err
    found = {path.name: _bytes(path) for path in tmp_path.rglob("*") if path.is_file()}
    assert any(name.startswith("kept") for name in found)
    for name, data in found.items():
        assert [word for word in NOWHERE if word.encode() in data or word.encode("utf-16-le") in data] == [], name


def _bytes(path: Path) -> bytes:
    """The bytes of a file, and of what is packed in it."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        import gzip

        with suppress(OSError):
            data += gzip.decompress(data)
    return data
