"""The pages of a Markdown folder: memories of one kind in one project, a session, and the index of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from backstory.adapters.formats.markdown_folder.safe_text import block, inline, listed, quoted
from backstory.codecs.record import format_time
from backstory.domain.conversation import Message, Part
from backstory.domain.memory import Kind, Memory, Sensitivity, Source, Superseded, Tier, status_name
from backstory.ports.formats import Told

MARK = "---\nbackstory: 1\n"
"""How every page begins, by which it is known as ours."""
TOOL_CHARS = 1000
"""Of what a tool gave; the rest is in the store."""

_TITLES = {
    Kind.FACT: "Facts",
    Kind.DECISION: "Decisions",
    Kind.PREFERENCE: "Preferences",
    Kind.LEARNING: "Learnings",
    Kind.BLOCKER: "Blockers",
    Kind.CONTEXT: "Context",
    Kind.PATTERN: "Patterns",
    Kind.STATUS: "Status",
    Kind.ENVIRONMENT: "Environment",
    Kind.WORKFLOW: "Workflows",
    Kind.USER: "About the user",
    Kind.EPISODIC: "Episodes",
    Kind.OTHER: "Other",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A page as the index names it."""

    path: str
    title: str
    count: int


def title_of(kind: Kind) -> str:
    """The heading of a kind's page."""
    return _TITLES[kind]


def memory_page(kind: Kind, project: str, memories: Sequence[Memory]) -> str:
    """A page with memories in the order given; ``project`` is its name, empty for those of every project."""
    head = [f"kind: {kind.value}", f"project: {quoted(project)}", "memories:"]
    for memory in memories:
        head += _fields(memory)
    title = f"{title_of(kind)}: {inline(project)}" if project else f"{title_of(kind)}, in every project"
    body = "\n\n".join(_memory(memory) for memory in memories)
    return _page(head, f"# {title}\n\n{body}")


def session_page(told: Told, project: str) -> str:
    """A session with what was said in it; of tools, their names and the beginning of what they gave."""
    session = told.session
    head = [
        f"session: {quoted(session.id)}",
        f"project: {quoted(project)}",
        f"host: {quoted(session.host)}",
        f"folder: {quoted(session.directory)}",
        f"title: {quoted(session.title or '')}",
        f"began: {_time(session.created_at)}",
        f"changed: {_time(session.updated_at)}",
    ]
    if session.parent is not None:
        head.append(f"parent: {quoted(session.parent)}")
    said = [text for message in told.messages if (text := _message(message))]
    title = inline(session.title or "") or "A session without a title"
    return _page(head, "\n\n".join([f"# {title}", *said]))


def index_page(memories: Sequence[Entry], sessions: Sequence[Entry]) -> str:
    """All pages with the number of memories or messages on each."""
    count = sum(entry.count for entry in memories)
    memories_in_all = f"{count} {'memory' if count == 1 else 'memories'}"
    lines = ["# Memories", "", f"{memories_in_all}, {_counted(len(sessions), 'session')}."]
    lines += ["", *(f"- [{entry.title}]({entry.path}): {entry.count}" for entry in memories)]
    if sessions:
        lines += ["", "## Sessions", ""]
        lines += [f"- [{entry.title}]({entry.path}): {_counted(entry.count, 'message')}" for entry in sessions]
    return _page(["index: true"], "\n".join(lines))


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _page(head: Sequence[str], body: str) -> str:
    return MARK + "\n".join(head) + f"\n---\n\n{body.rstrip()}\n"


def _fields(memory: Memory) -> list[str]:
    fields = [
        f"  - id: {quoted(memory.id)}",
        f"    number: {memory.n}",
        f"    origin: {memory.origin.value}",
        f"    status: {status_name(memory.status)}",
        f"    learned: {_time(memory.times.learned)}",
        f"    updated: {_time(memory.times.updated)}",
    ]
    if memory.area:
        fields.append(f"    area: {quoted(memory.area)}")
    if memory.tags:
        fields.append(f"    tags: {listed(memory.tags)}")
    if memory.issue:
        fields.append(f"    issue: {quoted(memory.issue)}")
    if isinstance(memory.status, Superseded):
        fields.append(f"    superseded_by: {quoted(memory.status.by)}")
    if memory.provenance.origin_system:
        fields.append(f"    source: {quoted(memory.provenance.origin_system)}")
    return fields


def _memory(memory: Memory) -> str:
    about = [status_name(memory.status)] if status_name(memory.status) != "active" else []
    about += [word for word, holds in _words(memory) if holds]
    about += [inline(memory.area)] if memory.area else []
    about += [f"issue {inline(memory.issue)}"] if memory.issue else []
    about += [f"tags {', '.join(inline(tag) for tag in memory.tags)}"] if memory.tags else []
    heading = f"## \\#{memory.n}, {memory.times.learned:%Y-%m-%d}, {memory.origin.value}"
    return "\n\n".join([heading, block(memory.content), *([f"*{'; '.join(about)}*"] if about else [])])


def _words(memory: Memory) -> list[tuple[str, bool]]:
    return [
        ("pinned", memory.pinned),
        ("core", memory.tier is Tier.CORE),
        ("temporary", memory.tier is Tier.TEMPORARY),
        (memory.sensitivity.value, memory.sensitivity is not Sensitivity.NORMAL),
        ("dreamed", memory.source is Source.DREAMED),
    ]


def _message(message: Message) -> str:
    said = [text for part in message.parts if (text := _part(part))]
    if not said or message.removed_at is not None:
        return ""
    return "\n\n".join([f"## {message.role.value}, {message.created_at:%Y-%m-%d %H:%M}", *said])


def _part(part: Part) -> str:
    if part.kind == "text" and part.text.strip():
        return ("*Put there by a program:*\n\n" if part.synthetic else "") + block(part.text)
    if part.kind == "tool":
        given = part.text if len(part.text) <= TOOL_CHARS else part.text[:TOOL_CHARS] + "…"
        called = f"*Tool {inline(part.tool or 'unknown')}:*"
        return f"{called}\n\n{block(given)}" if given.strip() else called
    return ""


def _time(moment: datetime) -> str:
    return quoted(format_time(moment))
