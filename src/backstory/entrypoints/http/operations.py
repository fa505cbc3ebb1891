"""The table of addresses: method, path, what a request holds and what comes back. Routes and page are made of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from backstory.entrypoints.http import handlers
from backstory.entrypoints.http.bodies import (
    ListQuery,
    Place,
    RecallBody,
    RememberBody,
    SessionQuery,
    SessionsQuery,
    ToolBody,
)
from backstory.entrypoints.shapes import Shape

Schema = Mapping[str, object]


def _object(*required: str, **properties: Schema) -> Schema:
    """An object that has these fields and may have more: fields are only ever added."""
    return {"type": "object", "required": list(required or properties), "properties": properties}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
TRUTH: Schema = {"type": "boolean"}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}
MAYBE_OBJECT: Schema = {"type": ["object", "null"]}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}

MEMORY = _object(
    id=TEXT, n=NUMBER, content=TEXT, kind=TEXT, visibility=TEXT, project=MAYBE_TEXT, tags=_list(TEXT),
    status=_object("state", state=TEXT), origin=TEXT, project_name=MAYBE_TEXT,
)  # fmt: skip
RESULT = _object(
    id=TEXT, n=NUMBER, content=TEXT, score=SHARE, kind=TEXT, visibility=TEXT, project=MAYBE_TEXT, tags=_list(TEXT),
    learned=TEXT, reasons=_list(TEXT), doubt=MAYBE_OBJECT,
)  # fmt: skip
TOOL = _object(name=TEXT, description=TEXT, parameters={"type": "object"})
ANSWER = _object(text=TEXT, title=TEXT, failed=TRUTH)
RECALLED = _object(
    "results", "silent", "why_silent", "skipped", results=_list(RESULT), silent=TRUTH, why_silent=MAYBE_TEXT,
    skipped=_list(TEXT), evidence=_list({"type": "object"}), why_no_evidence=MAYBE_TEXT, evidence_skipped=MAYBE_TEXT,
)  # fmt: skip
REMEMBERED = _object(memory=MEMORY, fresh=TRUTH, superseded=MAYBE_OBJECT, change=TEXT, notes=_list(TEXT))
SESSION = _object(id=TEXT, title=MAYBE_TEXT, host=TEXT, directory=TEXT, messages=NUMBER)

_FOLDER = "/home/sam/billing"
_ASKED = ("not-found", "invalid", "conflict", "unavailable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One address and method. ``said`` is the body of a POST, or the parameters of a GET; ``example`` is one of it.

    An ``is_open`` one needs no token.
    """

    method: str
    path: str
    name: str
    summary: str
    handler: Callable[[handlers.Request], Awaitable[Shape]]
    answer: Schema
    said: type[Place] | None = Place
    description: str = ""
    example: Mapping[str, object] | None = None
    problems: tuple[str, ...] = _ASKED
    is_open: bool = False

    @property
    def has_body(self) -> bool:
        """Whether it takes JSON."""
        return self.method == "POST" and self.said is not None


CALL_TOOL = Operation(
    method="POST",
    path="/v1/tools/{name}",
    name="call_tool",
    summary="Call a tool, as a model does.",
    description="The answer's `text` is for the model. `failed` tells that it was not done, and `text` then says why,"
    " also where an argument is wrong: a model reads it and does better. Arguments are read as leniently as real"
    " clients need: null and blank texts count as not given, and names of older products are known.",
    handler=handlers.call_tool,
    said=ToolBody,
    answer=ANSWER,
    example={"arguments": {"query": "how are invoices numbered?"}, "project": _FOLDER},
    problems=("not-found", "invalid", "unavailable"),
)

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="GET",
        path="/v1/health",
        name="health",
        summary="Whether the server answers.",
        description="It needs no token and tells nothing about the memory.",
        handler=handlers.health,
        said=None,
        answer=_object(status=TEXT, api=NUMBER),
        problems=(),
        is_open=True,
    ),
    Operation(
        method="GET",
        path="/v1/tools",
        name="list_tools",
        summary="The tools, with the JSON Schema of their arguments.",
        handler=handlers.tools,
        answer=_object(tools=_list(TOOL)),
        example={"project": _FOLDER},
        problems=("not-found", "invalid", "unavailable"),
    ),
    CALL_TOOL,
    Operation(
        method="POST",
        path="/v1/recall",
        name="recall",
        summary="Find memories, best first, with the reasons.",
        description="The same as `backstory recall --json`, as a model sees it.",
        handler=handlers.recall,
        said=RecallBody,
        answer=RECALLED,
        example={"query": "how are invoices numbered?", "limit": 5, "project": _FOLDER},
    ),
    Operation(
        method="POST",
        path="/v1/memories",
        name="remember",
        summary="Keep a statement, as the agent's word.",
        description="The same as `backstory remember --json`."
        " A text that is known already is confirmed: `fresh` is false.",
        handler=handlers.remember,
        said=RememberBody,
        answer=REMEMBERED,
        example={"content": "Invoices are numbered per country.", "kind": "decision", "project": _FOLDER},
        problems=(*_ASKED, "out-of-scope"),
    ),
    Operation(
        method="GET",
        path="/v1/memories",
        name="list_memories",
        summary="List memories, newest first.",
        handler=handlers.memories,
        said=ListQuery,
        answer=_object(memories=_list(MEMORY), total=NUMBER),
        example={"project": _FOLDER, "limit": 10},
    ),
    Operation(
        method="GET",
        path="/v1/memories/{ref}",
        name="show_memory",
        summary="One memory, by its number, its id, or a piece of text that only one holds.",
        handler=handlers.memory,
        answer=MEMORY,
        example={"project": _FOLDER},
        problems=(*_ASKED, "out-of-scope"),
    ),
    Operation(
        method="GET",
        path="/v1/sessions",
        name="list_sessions",
        summary="The sessions of the project, the latest first.",
        handler=handlers.sessions,
        said=SessionsQuery,
        answer=_object(sessions=_list(SESSION), total=NUMBER),
        example={"project": _FOLDER},
    ),
    Operation(
        method="GET",
        path="/v1/sessions/{id}",
        name="read_session",
        summary="What was said in a session, a page at a time.",
        handler=handlers.session,
        said=SessionQuery,
        answer=_object(session=SESSION, first=NUMBER, total=NUMBER, left=NUMBER, messages=_list({"type": "object"})),
        example={"project": _FOLDER, "page": 1},
        problems=(*_ASKED, "out-of-scope"),
    ),
)
