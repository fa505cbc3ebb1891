"""A language model that says what a test tells it to: OpenAI-compatible chat completions on the loopback interface.

Real hosts talk to it over the real wire protocol, so a test sees exactly what a host put in front of the model.

    with ScriptedModel() as model:
        model.when(said="remember", last_role="user").call("memory_remember", content="The build uses make.")
        model.when(last_role="tool").say("Noted.")
        ...point a host at model.url...
        model.requests("chat")[0].tool_names()

Rules are tried in the order they were added; the first that fits and is not used up answers. Without one, a title or
a compaction gets a fixed text and everything else ``ok``.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, cast

Kind = Literal["chat", "title", "compaction"]
Json = dict[str, Any]  # JSON as the wire carries it; tests reach into it at any depth

CHUNK_CHARS = 40
_OWN_PROMPTS: Mapping[str, Kind] = {
    "You are a title generator": "title",
    "You are a context summarization": "compaction",
}


def text_of(content: object) -> str:
    """The plain text of a message's content: a string, a list of parts, or null."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def kind_of(messages: Sequence[Json]) -> Kind:
    """What OpenCode 1.18 wants with a request, told by how its system prompt begins."""
    system = next((text_of(message["content"]) for message in messages if message["role"] == "system"), "")
    return next((kind for words, kind in _OWN_PROMPTS.items() if system.startswith(words)), "chat")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as the model received it. ``session`` is None unless the host says which session asks."""

    number: int
    kind: Kind
    session: str | None
    parent_session: str | None
    body: Json

    @property
    def messages(self) -> list[Json]:
        return cast(list[Json], self.body.get("messages", []))

    def texts(self, role: str) -> list[str]:
        """The texts of all messages of one role, in order."""
        return [text_of(message.get("content")) for message in self.messages if message["role"] == role]

    def all_text(self) -> str:
        """Everything said in the request, tool results included, tool schemas not."""
        return "\n".join(text_of(message.get("content")) for message in self.messages)

    def tools(self) -> dict[str, Json]:
        """Name to description and schema of the tools on offer."""
        return {tool["function"]["name"]: tool["function"] for tool in self.body.get("tools") or []}

    def tool_names(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.body.get("tools") or []]

    def extends(self, earlier: Request) -> bool:
        """Whether this request begins with all of ``earlier``: what a provider's prompt cache needs.

        Compare two requests of the same session and model, tools included.
        """
        count = len(earlier.messages)
        return self.messages[:count] == earlier.messages and self.body.get("tools") == earlier.body.get("tools")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model answers. A ``status`` other than 200 makes it an HTTP error with ``text`` as its message."""

    text: str = "ok"
    calls: tuple[tuple[str, Mapping[str, object]], ...] = ()
    status: int = 200
    delay_s: float = 0.0
    prompt_tokens: int | None = None


@dataclass(slots=True, kw_only=True)
class Rule:
    """A condition and its answer. End it with ``say``, ``call``, ``answer`` or ``fail``."""

    fits: Callable[[Request], bool]
    times: int | None
    reply: Callable[[Request], Reply] = field(default=lambda request: Reply())

    def say(self, text: str, *, delay_s: float = 0.0, prompt_tokens: int | None = None) -> None:
        """Answer with text; ``prompt_tokens`` overrides the usage reported, to make a host believe it is full."""
        self.answer(lambda request: Reply(text=text, delay_s=delay_s, prompt_tokens=prompt_tokens))

    def call(self, name: str, **arguments: object) -> None:
        """Answer with one tool call and no text."""
        self.answer(lambda request: Reply(text="", calls=((name, arguments),)))

    def answer(self, reply: Callable[[Request], Reply]) -> None:
        """Compute the answer from the request."""
        self.reply = reply

    def fail(self, status: int, message: str = "scripted failure") -> None:
        """Answer with an HTTP error."""
        self.answer(lambda request: Reply(text=message, status=status))


_UNSCRIPTED: Mapping[Kind, Reply] = {
    "title": Reply(text="A scripted title"),
    "compaction": Reply(text="## Objective\n- a scripted summary"),
    "chat": Reply(),
}


class ScriptedModel:
    """The server. A context manager; safe to use from several threads and by several hosts at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: list[Rule] = []
        self._requests: list[Request] = []
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> ScriptedModel:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def when(
        self,
        *,
        said: str | None = None,
        last_role: str | None = None,
        offers: str | None = None,
        contains: str | None = None,
        kind: Kind = "chat",
        times: int | None = None,
    ) -> Rule:
        """Add a rule. Every condition given must hold.

        ``said`` stands in the newest user message, ``contains`` anywhere in the request; ``last_role`` is the role of
        the last message (``tool`` after a tool call); ``offers`` names a tool the request must offer; ``times`` is how
        often the rule may be used.
        """

        def fits(request: Request) -> bool:
            return (
                request.kind == kind
                and (said is None or said in (request.texts("user") or [""])[-1])
                and (last_role is None or request.messages[-1]["role"] == last_role)
                and (offers is None or offers in request.tool_names())
                and (contains is None or contains in request.all_text())
            )

        rule = Rule(fits=fits, times=times)
        with self._lock:
            self._rules.append(rule)
        return rule

    def forget_rules(self) -> None:
        """Drop every rule; what was received stays."""
        with self._lock:
            self._rules.clear()

    def requests(self, kind: Kind | None = None, *, session: str | None = None) -> list[Request]:
        """What was received so far, in order, of one kind and session or of all."""
        with self._lock:
            received = list(self._requests)
        return [r for r in received if kind in (None, r.kind) and session in (None, r.session)]

    def forget_requests(self) -> None:
        """Start the record anew."""
        with self._lock:
            self._requests.clear()

    def receive(self, body: Json, headers: Mapping[str, str]) -> tuple[Request, Reply]:
        """Record a request and choose its answer. Header names are lower case."""
        with self._lock:
            request = Request(
                number=len(self._requests) + 1,
                kind=kind_of(body.get("messages", [])),
                session=headers.get("x-session-id") or headers.get("x-session-affinity"),
                parent_session=headers.get("x-parent-session-id"),
                body=body,
            )
            self._requests.append(request)
            rule = next((r for r in self._rules if r.times != 0 and r.fits(request)), None)
            if rule is not None and rule.times is not None:
                rule.times -= 1
        return request, rule.reply(request) if rule else _UNSCRIPTED[request.kind]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: ScriptedModel

    def log_message(self, format: str, *args: object) -> None:
        """Keep standard error for the tests."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        if not self.path.endswith("/chat/completions"):
            self._send_json({"error": {"message": f"no such path: {self.path}"}}, status=404)
            return
        request, reply = self.model.receive(body, {name.lower(): value for name, value in self.headers.items()})
        if reply.delay_s:
            time.sleep(reply.delay_s)
        with suppress(BrokenPipeError, ConnectionResetError):  # the host gave up on this request
            if reply.status != 200:
                self._send_json({"error": {"message": reply.text, "type": "scripted"}}, status=reply.status)
            elif body.get("stream"):
                self._stream(request, reply)
            else:
                self._send_json(_completion(request, reply))

    def _send_json(self, value: Json, *, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, request: Request, reply: Reply) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for chunk in _chunks(request, reply):
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.wfile.flush()
        self.wfile.write(b"data: [DONE]\n\n")


def _envelope(request: Request, kind: str) -> Json:
    model = request.body.get("model", "scripted")
    return {"id": f"chatcmpl-{request.number}", "object": kind, "created": int(time.time()), "model": model}


def _tool_calls(request: Request, reply: Reply) -> list[Json]:
    return [
        {
            "id": f"call_{request.number}_{index}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for index, (name, arguments) in enumerate(reply.calls)
    ]


def _usage(request: Request, reply: Reply) -> Json:
    prompt = reply.prompt_tokens or max(1, len(json.dumps(request.messages)) // 4)
    completion = max(1, len(reply.text) // 4)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _completion(request: Request, reply: Reply) -> Json:
    calls = _tool_calls(request, reply)
    message = {"role": "assistant", "content": reply.text or None, **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {**_envelope(request, "chat.completion"), "choices": [choice], "usage": _usage(request, reply)}


def _chunks(request: Request, reply: Reply) -> Iterator[Json]:
    envelope = _envelope(request, "chat.completion.chunk")
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": reply.text[at : at + CHUNK_CHARS]} for at in range(0, len(reply.text), CHUNK_CHARS)]
    deltas += [{"tool_calls": [{"index": i, **call}]} for i, call in enumerate(_tool_calls(request, reply))]
    for delta in deltas:
        yield {**envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    last = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if reply.calls else "stop"}
    yield {**envelope, "choices": [last], "usage": _usage(request, reply)}
