"""The description of the server in OpenAPI 3.1, made from the table of addresses and the schemas of the tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pydantic import BaseModel

from backstory.__about__ import __version__
from backstory.entrypoints.agents.calls import Event
from backstory.entrypoints.http.bodies import Place
from backstory.entrypoints.http.events import MISSED, NAMES
from backstory.entrypoints.http.operations import CALL_TOOL, OPERATIONS, Operation
from backstory.entrypoints.http.problems import KINDS, MEDIA_TYPE
from backstory.entrypoints.tools import Tool

Json = dict[str, object]

_ALWAYS = ("malformed", "forbidden-origin", "too-slow", "wrong-host", "too-many-headers", "internal",
           "no-answer-in-time")  # fmt: skip
_ABOUT = """\
The memory of the coding agents on this machine. Every request but the one for health carries
`Authorization: Bearer TOKEN`; the token is in the file that `backstory serve` names, which only its owner may read.
`project` is the folder an agent works in: it sees that project's memories and global ones, and no other project's.
Fields may be added to answers later; none is taken away. Failures are problem JSON (RFC 9457).
"""
_EVENTS = """\
Server-sent events. Each has the id of its change, a name such as `remembered`, `superseded` or `forgotten`, and JSON:
`change`, `at`, `event`, `author`, and `memories` as the change left them, each with the text that it has now, or null
where it was forgotten since. A change that also touches what the viewer may not see is not told. `missed` means that
changes were lost: read what you need anew.
"""

_HOOKS = """\
`backstory hook` asks here, where a server runs. The body is what the agent's hook gives; `agent=claude-code` takes
Claude Code's own form, in which `cwd` names the folder.
"""


def describe(tools: Sequence[Tool]) -> Json:
    """The whole document, for the tools that are offered."""
    paths: dict[str, Json] = {}
    for operation in OPERATIONS:
        found = paths.setdefault(operation.path, {})
        found[operation.method.lower()] = _operation(operation)
    for tool in tools:
        paths[f"/v1/tools/{tool.name}"] = {"post": _tool(tool)}
    del paths[CALL_TOOL.path]  # its tools stand there, each with its own schema
    paths["/v1/events"] = {"get": _events()}
    paths["/v1/hooks/{event}"] = {"post": _hook()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Backstory", "version": __version__, "description": _ABOUT},
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": _problem()},
        },
    }


def _operation(operation: Operation) -> Json:
    told: Json = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [*_path_parameters(operation.path), *_query_parameters(operation)],
        "responses": _responses(operation),
    }
    if operation.description:
        told["description"] = operation.description
    if operation.is_open:
        told["security"] = []
    if operation.has_body:
        assert operation.said is not None
        told["requestBody"] = _body(_schema(operation.said), operation.example)
    return told


def _tool(tool: Tool) -> Json:
    schema = _schema(CALL_TOOL.said or Place)
    lenient = {"type": "object", "description": "Read leniently, as described above."}
    properties = schema["properties"]
    assert isinstance(properties, dict)
    schema["properties"] = properties | {"arguments": {"anyOf": [tool.schema(), lenient]}}
    return {
        "operationId": tool.name,
        "summary": f"The tool {tool.name}",
        "description": f"{tool.description}\n\n{CALL_TOOL.description}",
        "parameters": [],
        "requestBody": _body(schema, None),
        "responses": _responses(CALL_TOOL),
    }


def _events() -> Json:
    header: Json = {"name": "Last-Event-ID", "in": "header", "schema": {"type": "string", "maxLength": 200},
                    "description": "Where to go on: the id of the last event that was seen."}  # fmt: skip
    responses = _problems([*_ALWAYS, "not-authorised", "not-found", "invalid", "unavailable"])
    text = {"type": "string"}
    names = {"type": "string", "enum": [*NAMES.values(), MISSED]}
    event = {"type": "object", "required": ["event", "data"], "properties": {"id": text, "event": names, "data": text}}
    stream = {"text/event-stream": {"schema": event}}
    return {
        "operationId": "events",
        "summary": "Changes of memories, as they happen.",
        "description": _EVENTS,
        "parameters": [*_parameters(Place), header],
        "responses": {"200": {"description": "The stream; it does not end.", "content": stream}, **responses},
    }


def _hook() -> Json:
    text = {"type": "string", "maxLength": 10_000}
    name = {"type": "string", "pattern": "^[!-~]+$", "maxLength": 200}
    folder = {"type": "string", "pattern": r"^/[^\x00]*$", "maxLength": 4_000}
    schema: Json = {
        "type": "object",
        "required": ["session", "directory"],
        "properties": {"session": name, "directory": folder, "prompt": text, "answer": text, "message": name},
    }
    agents: Json = {"name": "agent", "in": "query", "required": False, "description": "Whose form the body has.",
                    "schema": {"type": "string", "enum": ["generic"]}}  # fmt: skip
    events: Json = {"name": "event", "in": "path", "required": True,
                    "schema": {"type": "string", "enum": [event.value for event in Event]}}  # fmt: skip
    kinds = [*_ALWAYS, "not-authorised", "not-found", "invalid", "unavailable", "too-large", "wrong-content-type"]
    answer = {"description": "Done.", "content": {"application/json": {"schema": {"type": "object"}}}}
    return {
        "operationId": "hook",
        "summary": "What an agent tells by a hook; the answer goes before its model.",
        "description": _HOOKS,
        "parameters": [events, agents],
        "requestBody": _body(schema, {"session": "ses_1", "directory": "/home/sam/billing", "prompt": "Fix the total"}),
        "responses": {"200": answer, **_problems(kinds)},
    }


def _schema(model: type[BaseModel]) -> Json:
    return {key: value for key, value in _clean(model.model_json_schema()).items() if key != "description"}


def _clean(schema: Json) -> Json:
    """Without the titles that pydantic makes from names."""
    cleaned: Json = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        if key == "properties" and isinstance(value, dict):
            cleaned[key] = {name: _clean(item) for name, item in value.items()}
        elif isinstance(value, dict):
            cleaned[key] = _clean(value)
        elif isinstance(value, list):
            cleaned[key] = [_clean(item) if isinstance(item, dict) else item for item in value]
        else:
            cleaned[key] = value
    return cleaned


def _body(schema: Json, example: Mapping[str, object] | None) -> Json:
    content: Json = {"schema": schema}
    if example is not None:
        content["example"] = dict(example)
    return {"required": True, "content": {"application/json": content}}


def _path_parameters(path: str) -> list[Json]:
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    schema = {"type": "string", "minLength": 1, "maxLength": 200}
    return [{"name": name, "in": "path", "required": True, "schema": schema} for name in names]


def _query_parameters(operation: Operation) -> list[Json]:
    return [] if operation.has_body or operation.said is None else _parameters(operation.said)


def _parameters(model: type[BaseModel]) -> list[Json]:
    properties = _schema(model)["properties"]
    assert isinstance(properties, dict)
    found: list[Json] = []
    for name, given in properties.items():
        schema = dict(given)
        described = schema.pop("description", None)
        options = [option for option in schema.pop("anyOf", []) if option != {"type": "null"}]
        for option in options:
            described = option.get("description", described)
            schema = {key: value for key, value in (schema | option).items() if key not in ("default", "description")}
        parameter: Json = {"name": name, "in": "query", "required": False, "schema": schema}
        found.append(parameter | ({"description": described} if described else {}))
    return found


def _responses(operation: Operation) -> Json:
    kinds = [*_ALWAYS, *operation.problems]
    kinds += [] if operation.is_open else ["not-authorised"]
    kinds += ["too-large", "wrong-content-type"] if operation.has_body else ["too-large"]
    answer = {"description": "Done.", "content": {"application/json": {"schema": operation.answer}}}
    return {"200": answer, **_problems(kinds)}


def _problems(kinds: Iterable[str]) -> Json:
    titles: dict[int, list[str]] = {}
    for kind in kinds:
        status, title = KINDS[kind]
        titles.setdefault(status, []).append(title)
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        str(status): {"description": "; ".join(dict.fromkeys(found)) + ".", "content": content}
        for status, found in sorted(titles.items())
    }


def _problem() -> Json:
    text = {"type": "string"}
    return {
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": {"type": "string", "enum": [f"urn:backstory:problem:{kind}" for kind in KINDS]},
            "title": text,
            "status": {"type": "integer"},
            "detail": text,
            "field": {**text, "description": "What is at fault."},
            "value": {**text, "description": "The beginning of what stands there."},
            "limit": {**text, "description": "What may stand there."},
            "hint": {**text, "description": "What to do instead."},
            "candidates": {"type": "array", "items": text, "description": "Ids of the memories that fit."},
        },
    }
