"""What a tool is, how its arguments are checked, and how its failures are said to a model."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from backstory.bootstrap import App
from backstory.domain.context_block import quote
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.provenance import Provenance
from backstory.domain.scope import Viewer
from backstory.entrypoints.tools.lenient import Meant, as_meant
from backstory.errors import AmbiguousMatch, BackstoryError, InputError, ModelError, StoreError

log = logging.getLogger(__name__)

_NAMES = 5  # of arguments that are not ours, in an answer
_NAME_CHARS = 40


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

    never_blank: ClassVar[frozenset[str]] = frozenset()
    """Arguments whose absence means more than any value: a blank text is no absence then, but refused."""


Handler = Callable[[Any, Call], Awaitable[Answer]]  # Any: each handler takes its own Arguments


class Effect(StrEnum):
    """What a call may do to memories, for hosts that ask the user before some of them."""

    READS = "reads"
    ADDS = "adds"
    CHANGES = "changes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool. The description is written for the model: when to use it, and when not. ``adds_many`` for one that adds
    as many things as it is given."""

    name: str
    description: str
    arguments: type[Arguments]
    handler: Handler
    effect: Effect = Effect.CHANGES
    adds_many: bool = False

    def schema(self) -> dict[str, object]:
        """The arguments as plain JSON Schema: no references, no titles, since every request pays for them."""
        schema = self.arguments.model_json_schema()
        definitions = schema.pop("$defs", {})
        slim: dict[str, object] = _slim(schema, definitions)
        return slim


async def run_tool(tool: Tool, arguments: object, call: Call) -> Answer:
    """Check the arguments, run the tool, and turn every expected failure into words. Raises nothing of ours."""
    try:
        of_many = tool.adds_many or tool.effect is not Effect.ADDS
        meant = as_meant(arguments, tool.arguments.model_fields, tool.arguments.older_names, of_many=of_many)
        _refuse_unknown(tool, meant)
        _refuse_blank(tool, meant)
    except InputError as error:
        return failed_answer(error, tool=tool.name)
    try:
        answer = await tool.handler(_parse(tool, meant), call)
    except BackstoryError as error:
        answer = failed_answer(error, tool=tool.name)
    return _with_ignored(answer, meant.ignored, tool=tool.name)


def failed_answer(error: BackstoryError, *, tool: str) -> Answer:
    """What a model is told about a failure.

    What went wrong inside a store is for the log; the model only hears that memory is not available.
    """
    match error:
        case AmbiguousMatch():
            return _failure(f"{error}. {error.hint}")
        case InputError():
            return _failure(f"{error}{f' ({error.hint})' if error.hint else ''}. Nothing was stored or changed.")
        case StoreError() | ModelError():
            log.error("event=tool_failed tool=%s reason=%s", tool, error)
            return _failure("Memory is not available right now; nothing was stored or changed. The user can run"
                            " `backstory doctor` to see why.")  # fmt: skip
        case _:
            return _failure(f"{error}.")


def _refuse_unknown(tool: Tool, meant: Meant) -> None:
    """What may be meant to let less happen must not just be ignored: of a tool that changes what is there any argument,
    since it may narrow that; of one that adds, what asks for less. Reading more than was asked for does no harm."""
    unknown = (*meant.restraints, *meant.ignored) if tool.effect is Effect.CHANGES else meant.restraints
    if unknown and tool.effect is not Effect.READS:
        name = unknown[0][:_NAME_CHARS]
        taken = ", ".join(field.alias or ours for ours, field in tool.arguments.model_fields.items())
        hint = f"it takes {taken}" if taken else "it takes none"
        raise InputError(f"{tool.name} has no argument {name}", field=name, hint=hint)


def _refuse_blank(tool: Tool, meant: Meant) -> None:
    for name in meant.blank:
        if name in tool.arguments.never_blank:
            raise InputError(f"{name} is blank", field=name, hint="say what is meant, or leave it out")


def _with_ignored(answer: Answer, names: Sequence[str], *, tool: str) -> Answer:
    if not names:
        return answer
    shown = ", ".join(quote(name[:_NAME_CHARS]) for name in names[:_NAMES])
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return replace(answer, text=f"{answer.text} (Ignored, since {tool} has no such argument: {shown}{more}.)")


def _parse(tool: Tool, meant: Meant) -> Arguments:
    try:
        return tool.arguments.model_validate(meant.values)
    except ValidationError as error:
        raise _as_input_error(error) from error


def _as_input_error(error: ValidationError) -> InputError:
    problems: dict[object, str] = {}  # of each argument the first: one that may be several things fails as each of them
    for item in error.errors(include_url=False, include_context=False):
        places = item["loc"][:1] + tuple(step for step in item["loc"][1:] if isinstance(step, int))
        name = ".".join(map(str, places)) or "arguments"
        value = "" if item["type"] == "missing" else f" (got {str(item['input'])[:60]!r})"
        problems.setdefault(item["loc"][:1], f"{name}: {item['msg']}{value}")
    first = error.errors(include_url=False)[0]["loc"]
    return InputError("; ".join(problems.values()), field=str(first[0]) if first else "arguments")


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
