"""What a tool is, how its arguments are checked, and how its failures are said to a model."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from backstory.bootstrap import App
from backstory.domain.context_block import quote
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.provenance import Provenance
from backstory.domain.scope import Viewer
from backstory.errors import AmbiguousMatch, BackstoryError, InputError, ModelError, StoreError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """From where a tool is called; the viewer is a model's."""

    app: App
    viewer: Viewer
    message: MessageId | None = None
    agent: str | None = None
    tool: str = ""

    def provenance(self) -> Provenance:
        """Where a memory written by this call comes from."""
        messages = () if self.message is None else (self.message,)
        session: SessionId | None = self.viewer.session
        return Provenance(session=session, messages=messages, tool=self.tool, agent=self.agent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model reads, a short title for people, and whether it worked."""

    text: str
    title: str = ""
    failed: bool = False


class Arguments(BaseModel):
    """Base of all tool arguments: nothing unknown, blanks around texts do not matter."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=False)

    older_names: ClassVar[Mapping[str, str]] = {}
    """Names of other products for our arguments: accepted, not advertised."""


Handler = Callable[[Any, Call], Awaitable[Answer]]  # Any: each handler takes its own Arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool. The description is written for the model: when to use it, and when not."""

    name: str
    description: str
    arguments: type[Arguments]
    handler: Handler

    def schema(self) -> dict[str, object]:
        """The arguments as plain JSON Schema: no references, no titles, since every request pays for them."""
        schema = self.arguments.model_json_schema()
        definitions = schema.pop("$defs", {})
        slim: dict[str, object] = _slim(schema, definitions)
        return slim


async def run_tool(tool: Tool, arguments: object, call: Call) -> Answer:
    """Check the arguments, run the tool, and turn every expected failure into words. Raises nothing of ours.

    What went wrong inside a store is for the log; the model only hears that memory is not available.
    """
    try:
        return await tool.handler(_parse(tool, arguments), call)
    except AmbiguousMatch as error:
        return _failure(f"{error}. {error.hint}")
    except InputError as error:
        return _failure(f"{error}{f' ({error.hint})' if error.hint else ''}. Nothing was stored or changed.")
    except (StoreError, ModelError) as error:
        log.error("event=tool_failed tool=%s reason=%s", tool.name, error)
        return _failure("Memory is not available right now; nothing was stored or changed. The user can run"
                        " `backstory doctor` to see why.")  # fmt: skip
    except BackstoryError as error:
        return _failure(f"{error}.")


def _parse(tool: Tool, arguments: object) -> Arguments:
    given = {} if arguments is None else arguments
    if not isinstance(given, Mapping):
        raise InputError(f"the arguments must be an object, not {type(arguments).__name__}", field="arguments")
    renamed = {tool.arguments.older_names.get(name, name): value for name, value in given.items() if value is not None}
    renamed = _without_blanks(renamed, tool.arguments)
    try:
        return tool.arguments.model_validate(renamed)
    except ValidationError as error:
        raise _as_input_error(error) from error


def _without_blanks(given: Mapping[str, Any], arguments: type[Arguments]) -> dict[str, Any]:  # Any: not parsed yet
    """The arguments without those that models fill in blank for "not given"; one that is needed stays, to be refused.

    Blank entries of lists go too; a list that was empty from the start says "none" and stays.
    """
    kept = {}
    for name, value in given.items():
        field = arguments.model_fields.get(name)
        is_optional = field is not None and not field.is_required()
        if isinstance(value, list):
            entries = [item for item in value if not _is_blank(item)]
            if entries or not value or not is_optional:
                kept[name] = entries
        elif not (is_optional and _is_blank(value)):
            kept[name] = value
    return kept


def _is_blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _as_input_error(error: ValidationError) -> InputError:
    problems = []
    for item in error.errors(include_url=False, include_context=False):
        name = ".".join(str(step) for step in item["loc"]) or "arguments"
        value = "" if item["type"] == "missing" else f" (got {str(item['input'])[:60]!r})"
        problems.append(f"{name}: {item['msg']}{value}")
    first = error.errors(include_url=False)[0]["loc"]
    return InputError("; ".join(problems), field=str(first[0]) if first else "arguments")


def _failure(text: str) -> Answer:
    """What a failure tells (names, texts, arguments) may be anybody's words: they cannot break out of its line."""
    return Answer(text=quote(text), title="not done", failed=True)


def _slim(node: Any, definitions: Mapping[str, Any]) -> Any:  # Any: JSON of any shape
    """JSON Schema without what a model does not need: references are filled in, "or null" and titles are dropped."""
    if isinstance(node, list):
        return [_slim(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target = definitions[node["$ref"].rsplit("/", 1)[1]]
        return _slim({**target, **_without(node, "$ref")}, definitions)
    options = [option for option in node.get("anyOf", []) if option != {"type": "null"}]
    if len(options) == 1:
        return _slim({**options[0], **_without(node, "anyOf", "default")}, definitions)
    if options and len(options) < len(node["anyOf"]):
        return _slim({**_without(node, "default"), "anyOf": options}, definitions)
    if "properties" in node:
        properties = {name: _slim(item, definitions) for name, item in node["properties"].items()}
        return {**_without(node, "title", "description"), "properties": properties}
    return {key: _slim(value, definitions) for key, value in _without(node, "title").items()}


def _without(node: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in keys}
