"""Write the generated parts of the documentation anew: ``python -m docs.generate`` or ``python docs/generate.py``.

Some pages are made whole, others hold generated sections between two markers. What is true of the code is taken from
the code, so that no page can lag behind; the tests fail when one does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from backstory.adapters.tokens import EstimatedTokens
from backstory.codecs.record import encode_memory
from backstory.config.reference import render_reference as settings_page
from backstory.domain.evidence import BY_WORDS, WITH_MEANING, WORD_BY_WORD
from backstory.domain.ids import MemoryId, MessageId, ProjectId, SessionId
from backstory.domain.memory import Kind, Memory, Times
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.ranking import RankingPolicy
from backstory.domain.relevance import REQUESTED, UNASKED
from backstory.entrypoints.cli.reference import render_commands, render_exit_codes
from backstory.entrypoints.errors import RULES
from backstory.entrypoints.tools import TOOLS, TOOLSETS, Tool, tools_of
from backstory.entrypoints.tools.costs import tokens_of
from backstory.errors import BackstoryError

DOCS = Path(__file__).resolve().parent

Render = Callable[[], str]


def generated() -> dict[Path, str]:
    """Every page with something generated in it, and the text it should have."""
    pages = {DOCS / name: render() for name, render in PAGES.items()}
    for name, sections in SECTIONS.items():
        page = DOCS / name
        pages[page] = with_sections(page.read_text(encoding="utf-8"), sections)
    return pages


def with_sections(text: str, sections: Mapping[str, Render]) -> str:
    """A page with its marked sections made anew. Raises ValueError unless both markers stand there once."""
    for name, render in sections.items():
        begin, end = f"<!-- generated: {name} -->", f"<!-- end of {name} -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"a page needs the markers {begin} and {end} once each")
        before, _, rest = text.partition(begin)
        text = "".join([before, begin, "\n", render().strip(), "\n", end, rest.partition(end)[2]])
    return text


def table(*rows: tuple[str, ...]) -> str:
    """A Markdown table; the first row is its head."""
    head, *body = rows
    lines = [head, ("---",) * len(head), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def render_tools() -> str:
    """The page of the agent's tools."""
    costs = [_cost(tool) for tool in TOOLS]
    head = [
        "# Tools",
        "What an agent can call. This page is made from the list of tools.",
        "Each request to the model carries every tool's name, description and schema. The cost is the estimate of"
        " `adapters/tokens.py`; a model's own tokenizer counts a little differently.",
        table(
            ("Tool", "Tokens in every request"),
            *((f"[`{tool.name}`](#{tool.name})", str(cost)) for tool, cost in zip(TOOLS, costs, strict=True)),
            ("together", str(sum(costs))),
        ),
        "These are Backstory's own. The setting `tools.toolset` chooses others instead: those of an older product under"
        " [their own names](#toolsets). `backstory tools --cost` tells what each set costs.",
        "`opencode.tools = false` takes them all away (install again afterwards: the plugin registers the tools that"
        " were listed at install). Memories of other projects can be read with `all_projects`, but never changed."
        " Local-only memories are never shown.",
        "A wrong argument, an unknown number or a store that does not answer is said in words in the tool's result;"
        " a tool never ends the agent's turn. Arguments that a tool does not have are left out, and the answer says"
        " so.",
    ]
    return "\n\n".join([*head, *(_tool(tool) for tool in TOOLS), *_toolsets()]) + "\n"


def render_errors() -> str:
    """The table of the errors, in the order of their tree."""
    rows = [
        (
            f"{'&nbsp;' * 4 * depth}`{error.__name__}`",
            _first_sentence(error.__doc__),
            "yes" if error.can_retry else "no",
            _exit_code(error),
        )
        for error, depth in _tree(BackstoryError)
    ]
    return table(("Error", "Raised when", "Retry helps", "Exit code"), *rows)


def render_gate() -> str:
    """How good a match must be, for each setting of ``recall.relevance`` and for a search on request."""
    named = [*((f"`{relevance.value}`", threshold) for relevance, threshold in UNASKED.items()), ("asked", REQUESTED)]
    limits = [
        (name, ", ".join(f"`{field.name}` {_plain(getattr(threshold, field.name))}" for field in fields(threshold)))
        for name, threshold in named
    ]
    return table(("Relevance", "Limits"), *limits)


def render_evidence_weights() -> str:
    """What each sign of evidence counts, by what took part in the search."""
    columns = {"With meaning": WITH_MEANING, "By words": BY_WORDS, "Word by word": WORD_BY_WORD}
    rows = (
        (f"`{field.name}`", *(f"{getattr(weights, field.name):g}" for weights in columns.values()))
        for field in fields(WITH_MEANING)
    )
    return table(("Weight", *columns), *rows)


def render_weights() -> str:
    """The weights of the ranking, as the code has them."""
    policy = RankingPolicy()
    return table(
        ("Weight", "Value"), *((f"`{field.name}`", _plain(getattr(policy, field.name))) for field in fields(policy))
    )


def render_example() -> str:
    """A memory as an export holds it, over several lines."""
    learned = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
    memory = Memory(
        id=MemoryId("01KJQ8M7E0W2T5V9X4Y6Z8A1B3"),
        n=12,
        revision=1,
        content="Vendor prices are cached in Redis for 15 minutes.",
        kind=Kind.DECISION,
        project=ProjectId("01KJQ8KZ40Q7R2S4T6V8W0X2Y4"),
        session=SessionId("ses_5f2c"),
        area="pricing/cache",
        tags=("vendor", "cache"),
        origin=Origin.AGENT,
        provenance=Provenance(
            session=SessionId("ses_5f2c"), messages=(MessageId("msg_81aa"),), tool="memory_remember", agent="build"
        ),
        times=Times(learned=learned, updated=learned, confirmed=learned),
    )
    record = encode_memory(memory) | {"project_name": "ferry-booking"}
    return f"```json\n{json.dumps(record, indent=2)}\n```"


def main() -> None:
    """Write every page that differs, and name it."""
    for page, text in generated().items():
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text, encoding="utf-8")
            print(f"wrote {page.relative_to(DOCS.parent)}")


def _cost(tool: Tool) -> int:
    return tokens_of(tool, EstimatedTokens().count)


def _toolsets() -> Iterator[str]:
    yield "## Toolsets"
    yield (
        "Every set works on the same memories, under the same rules: what an agent stores is the agent's, nothing"
        " local-only is shown, nothing of another project is changed, and what was forgotten can be taken back with"
        " `backstory undo`. [Coming from another product](../how-to/keep-your-tools.md) tells what differs from it on"
        " purpose. Install again after choosing another set: OpenCode registers the tools that were listed at install."
    )
    yield table(
        ("Toolset", "Tools", "Tokens in every request"),
        *((f"`{name}`", str(len(tools_of(name))), str(sum(map(_cost, tools_of(name))))) for name in TOOLSETS),
    )
    yield (
        "With `session.strategy = tree` or `observations`, the tools that open a digest come with every set."
        " Required arguments are bold."
    )
    yield from (_toolset(name) for name in TOOLSETS if name != "default")


def _toolset(name: str) -> str:
    rows = [(f"`{tool.name}`", _arguments(tool), _first_sentence(tool.description)) for tool in tools_of(name)]
    return f"### {name}\n\n" + table(("Tool", "Arguments", "What it is for"), *rows)


def _arguments(tool: Tool) -> str:
    schema: Any = tool.schema()  # Any: JSON Schema
    required = schema.get("required", [])
    told = [f"**`{name}`**" if name in required else f"`{name}`" for name in schema["properties"]]
    return ", ".join(told) or "none"


def _tool(tool: Tool) -> str:
    schema: Any = tool.schema()  # Any: JSON Schema
    required = schema.get("required", [])
    rows = [
        (f"`{name}`", _type(field), _default(name, field, required), field.get("description", ""))
        for name, field in schema["properties"].items()
    ]
    parts = [
        f"## {tool.name}",
        f"> {tool.description}",
        table(("Argument", "Type", "Default", "What it does"), *rows),
    ]
    if older := tool.arguments.older_names:
        names = ", ".join(f"`{old}` for `{new}`" for old, new in older.items())
        parts.append(f"Also understood, from older products: {names}.")
    return "\n\n".join(parts)


def _type(field: Mapping[str, Any]) -> str:  # Any: JSON Schema
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "anyOf" in field:
        return " or ".join(_type(option) for option in field["anyOf"] if option != {"type": "null"})
    if field["type"] == "array":
        return f"list of {_type(field['items'])}"
    return str(field["type"]) + _range(field)


def _range(field: Mapping[str, Any]) -> str:  # Any: JSON Schema
    low = field.get("minimum", field.get("exclusiveMinimum"))
    high = field.get("maximum")
    if low is None or high is None:
        return ""
    return f", {'more than ' if 'exclusiveMinimum' in field else ''}{low} to {high}"


def _default(name: str, field: Mapping[str, Any], required: list[str]) -> str:  # Any: JSON Schema
    if name in required:
        return "required"
    value = field.get("default")
    return "" if value in (None, "") else f"`{json.dumps(value)}`".replace('"', "")


def _tree(error: type[BackstoryError], depth: int = 0) -> Iterator[tuple[type[BackstoryError], int]]:
    yield error, depth
    for child in error.__subclasses__():
        if child.__module__ != BackstoryError.__module__:
            continue  # a room's own, which nobody outside it meets
        yield from _tree(child, depth + 1)


def _exit_code(error: type[BackstoryError]) -> str:
    """That of the nearest class with a rule."""
    return next(str(rule.exit_code) for cls in error.__mro__ for rule in RULES if rule.error is cls)


def _first_sentence(text: str | None) -> str:
    return " ".join((text or "").replace("``", "`").split()).partition(". ")[0].rstrip(".") + "."


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).removesuffix(", 0:00:00")


PAGES: Mapping[str, Render] = {
    "reference/cli.md": render_commands,
    "reference/exit-codes.md": render_exit_codes,
    "reference/settings.md": settings_page,
    "reference/tools.md": render_tools,
}
"""Pages made whole."""

SECTIONS: Mapping[str, Mapping[str, Render]] = {
    "reference/errors.md": {"errors": render_errors},
    "reference/jsonl-format.md": {"example": render_example},
    "explanation/recall.md": {
        "weights": render_weights,
        "gate": render_gate,
        "evidence-weights": render_evidence_weights,
    },
}
"""Pages with generated sections, by the sections' names."""


if __name__ == "__main__":
    main()
