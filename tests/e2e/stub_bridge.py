"""A stand-in for the Python side of the plugin: it speaks the protocol, writes down what it hears, and misbehaves.

Everything lies in the folder named by STUB_FOLDER: ``heard.jsonl`` (what came in), ``blocks.json`` (what it would have
shown beside which message, kept over restarts) and ``script.json``, read again for each request: method to one of
``hang`` (no answer), ``crash``, ``garbage``, ``flood`` (a line without end), ``error``, ``freeze`` (reads nothing any
more) or ``slow:MILLISECONDS``. Besides, ``digest`` says what ``history`` answers: how many of a request's messages are
replaced, never its last one, or the very answer; ``summary`` is what a compaction gets, and ``attachment`` how long an
attachment's address may be.

A prompt with ``recall WORD`` gets the block ``<memory>WORD</memory>``; one with ``ask METHOD`` makes the stub put a
question of its own to the host first.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ["STUB_FOLDER"])
BLOCKS = FOLDER / "blocks.json"
BIG_CHARS = 1_500_000
FLOOD_CHARS = 17 * 1024 * 1024

Params = dict[str, Any]


def write_down(heard: Params) -> None:
    with (FOLDER / "heard.jsonl").open("a") as file:
        file.write(json.dumps({"at": time.time(), "pid": os.getpid(), **heard}) + "\n")


def send(message: Params) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def read(path: Path) -> Params:
    return dict(json.loads(path.read_text())) if path.exists() else {}


def hello(params: Params) -> Params:
    script = read(FOLDER / "script.json")
    answer = {"protocol": script.get("protocol", 1), "version": "stub", "history": "digest" in script}
    return answer | ({"attachment_chars": script["attachment"]} if "attachment" in script else {})


def chat_message(params: Params) -> Params:
    if asked := re.search(r"ask (\S+)", params["text"]):
        method = asked.group(1).rstrip('"')
        send({"id": f"stub-{method}", "method": method, "params": {**params, "prompt": params["text"]}})
    word = re.search(r"recall (\w+)", params["text"])
    if word is None:
        return {"block": None}
    block = f"<memory>{word.group(1)} \u2028 é 日本</memory>"
    BLOCKS.write_text(json.dumps(read(BLOCKS) | {params["message"]: block}))
    return {"block": block}


def blocks(params: Params) -> Params:
    kept = read(BLOCKS)
    return {"blocks": {id: kept[id] for id in params["messages"] if id in kept}}


def snapshot(params: Params) -> Params:
    write_down({"method": "counted"})
    count = (FOLDER / "heard.jsonl").read_text().count('"counted"')
    return {"text": f"SNAPSHOT {count}."}


def tool(params: Params) -> Params:
    if params["name"] == "memory_big":
        return {"output": "x" * BIG_CHARS}
    return {"output": f"{params['name']} got {json.dumps(params['arguments'])}", "title": "Done", "metadata": {"n": 1}}


def history(params: Params) -> Params:
    digest = read(FOLDER / "script.json").get("digest", 0)
    if not isinstance(digest, int):
        return {"replace": digest}
    count = min(digest, len(params["messages"]) - 1)
    return {"replace": {"count": count, "text": f"<digest>{count} messages</digest>"} if count else None}


def compacting(params: Params) -> Params:
    return {"context": ["STUB CONTEXT"], "summary": read(FOLDER / "script.json").get("summary")}


ANSWERS = {
    "hello": hello,
    "chat.message": chat_message,
    "blocks": blocks,
    "snapshot": snapshot,
    "tool": tool,
    "compacting": compacting,
    "history": history,
}


def misbehave(how: str, id: object) -> bool:
    """Do what the script says; whether the request is thereby finished."""
    if how == "crash":
        os._exit(3)
    if how == "freeze":
        time.sleep(600)
    if how == "garbage":
        sys.stdout.write(f'not json\n{{"id": {id}, \n[1, 2]\nnull\n{{"id": 99999, "result": 1}}\n')
        sys.stdout.flush()
    if how == "flood":
        sys.stdout.write("x" * FLOOD_CHARS)
        sys.stdout.flush()
    if how == "error":
        send({"id": id, "error": {"code": -32000, "message": "scripted"}})
    if how.startswith("slow:"):
        time.sleep(int(how.removeprefix("slow:")) / 1000)
    return how in ("hang", "error", "garbage", "flood")


def main() -> None:
    write_down({"method": "started", "folder": str(Path.cwd()), "safe_path": bool(sys.flags.safe_path)})
    for line in sys.stdin:
        message = json.loads(line)
        write_down(message)
        if "method" not in message or "id" not in message:
            continue
        how = read(FOLDER / "script.json").get(message["method"], "")
        if not misbehave(how, message["id"]):
            send({"id": message["id"], "result": ANSWERS[message["method"]](message["params"])})
    write_down({"method": "ended"})


if __name__ == "__main__":
    sys.stdin.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # a text stream, as long as nobody replaced it
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    main()
