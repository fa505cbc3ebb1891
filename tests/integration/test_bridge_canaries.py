"""Which kinds of text each call of the bridge and each hook of a coding agent may answer with.

Whoever adds a call of the bridge has to say here what it may show.
"""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from backstory.domain.ids import MessageId, SessionId
from backstory.entrypoints.agents import events
from backstory.entrypoints.agents.calls import Event, HookCall
from tests.canaries import BLOCKS, KEYS, NIGHT, OPEN, PRIVATE, TALK, Boathouse, heard
from tests.integration.bridge_process import BridgeProcess

IN_BRIDGE: Mapping[str, set[str]] = {
    "hello": set(), "chat.message": BLOCKS, "blocks": BLOCKS, "snapshot": BLOCKS, "history": set(), "compacting": set(),
    "tool": {OPEN, PRIVATE},
}  # fmt: skip


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
