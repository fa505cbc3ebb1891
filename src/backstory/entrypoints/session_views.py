"""Sessions as tables, as lines for people, and as JSON values (``docs/reference/json-output.md``)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from backstory.codecs.messages import encode_message
from backstory.codecs.record import format_time
from backstory.entrypoints.counted import counted
from backstory.entrypoints.local_time import shown_time
from backstory.entrypoints.render import Line, shortened
from backstory.entrypoints.tables import Column, Table

if TYPE_CHECKING:
    from backstory.domain.conversation import BlobRef, Message, Part
    from backstory.domain.ids import ProjectId, SessionId
    from backstory.domain.project import Project
    from backstory.entrypoints.shapes import Shape
    from backstory.ports.conversation import Pruned
    from backstory.services.digest_inspection import DigestCard
    from backstory.services.sessions import Page, SessionCard

_TOOL_CHARS = 2000
"""Of a tool's input or output, in a page."""
_SAID = ("text", "reasoning")


def session_table(
    cards: Sequence[SessionCard], projects: Mapping[ProjectId, Project], digests: Mapping[SessionId, DigestCard]
) -> Table:
    """Sessions, one a row."""
    return Table(
        columns=(
            Column("session"),
            Column("project"),
            Column("started"),
            Column("last"),
            Column("messages", is_number=True),
            Column("digest"),
            Column("title", is_wide=True),
            Column("belongs to"),
        ),
        rows=[
            (
                card.session.id,
                _project(card, projects),
                shown_time(card.session.created_at),
                shown_time(card.count.last_at if card.count else card.session.updated_at),
                f"{card.count.messages if card.count else 0}",
                _digest(digests.get(card.session.id)),
                card.session.title or "",
                ", ".join(_relations(card, names=False)),
            )
            for card in cards
        ],
        empty="No session is kept here.",
    )


def head_lines(
    card: SessionCard, projects: Mapping[ProjectId, Project], digest: DigestCard | None = None
) -> Iterator[Line]:
    """What a session is."""
    session, count = card.session, card.count
    yield f"{session.id}  {shortened(session.title or 'without a title')}", "strong"
    yield f"{session.host}, project {_project(card, projects) or 'none'}, in {session.directory}", "plain"
    last = shown_time(count.last_at if count else session.updated_at)
    told = counted(count.messages if count else 0, "message")
    back = f", {count.removed} of them taken back" if count and count.removed else ""
    yield f"{shown_time(session.created_at)} to {last}, {told}{back}", "plain"
    if digest is not None:
        yield f"Digest: {_digest(digest)}; --digest shows it", "plain"
    yield from ((f"{relation[:1].upper()}{relation[1:]}", "plain") for relation in _relations(card, names=True))


def page_lines(page: Page, *, tools: bool, raw: bool) -> Iterator[Line]:
    """The messages of a page. ``tools`` shows what tools did, and thoughts; ``raw`` every part as it is kept."""
    for place, message in enumerate(page.messages, start=page.first + 1):
        yield "", "plain"
        yield _head(place, message), "strong"
        hidden = 0
        for part in message.parts:
            lines = list(_raw_lines(part) if raw else _part_lines(part, tools=tools))
            hidden += not lines
            yield from lines
        if hidden and tools is False:
            yield f"  ({hidden} more {'part' if hidden == 1 else 'parts'}: --tools, --raw)", "faint"
    if not page.messages:
        yield f"There is nothing on this page; the session has {counted(page.total, 'message')}.", "faint"


def part_lines(message: Message, part: Part) -> Iterator[Line]:
    """One part, whole. What a tool was given comes before what it gave."""
    if part.kind not in _SAID and (given := _given(part)):
        yield given, "plain"
    if part.text:
        yield part.text, "plain"
    for ref in part.blobs:
        if ref.media_type != "text/plain":
            yield _attachment(ref), "faint"
    if not part.text and not part.detail:
        yield f"The part {part.id} of message {message.id} is empty.", "faint"


def pruned_lines(pruned: Pruned, *, done: bool) -> Iterator[Line]:
    """What was removed, or would be."""
    if not (pruned.messages or pruned.sessions or pruned.blocks):
        yield "Nothing is that old.", "plain"
        return
    counts = [
        f"{counted(pruned.messages, 'message')} of sessions",
        counted(pruned.parts, "part"),
        counted(pruned.passages, "passage"),
    ]
    counts += [f"{pruned.blobs} large contents ({pruned.blob_bytes:,} bytes)", f"{pruned.blocks} frozen blocks"]
    counts.append(f"and {pruned.sessions} sessions that have no message then")
    yield f"{'Removed' if done else 'Would remove'} {', '.join(counts)}.", "good" if done else "plain"
    yield "Digests of sessions lose what was made of these messages. Memories stay.", "faint"
    if done:
        yield "The store reuses the room; a file does not get smaller by it.", "faint"


def card_shape(card: SessionCard, projects: Mapping[ProjectId, Project], digest: DigestCard | None = None) -> Shape:
    """A session as the listing has it."""
    from backstory.entrypoints.digest_views import card_shape as digest_shape

    session, count = card.session, card.count
    return {
        "id": session.id,
        "project": session.project,
        "project_name": _project(card, projects) or None,
        "host": session.host,
        "directory": session.directory,
        "title": session.title,
        "parent": session.parent,
        "children": list(card.children),
        "fork_of": card.fork_of,
        "created_at": format_time(session.created_at),
        "updated_at": format_time(session.updated_at),
        "deleted_at": None if session.deleted_at is None else format_time(session.deleted_at),
        "messages": count.messages if count else 0,
        "taken_back": count.removed if count else 0,
        "first_message_at": None if count is None else format_time(count.first_at),
        "last_message_at": None if count is None else format_time(count.last_at),
        "digest": digest_shape(digest),
    }


def page_shape(page: Page) -> Shape:
    """Messages with all their parts; ``first`` counts from 1, ``left`` come after them."""
    messages = [encode_message(message) for message in page.messages]
    return {"first": page.first + 1, "total": page.total, "left": page.left, "messages": messages}


def pruned_shape(pruned: Pruned, *, dry_run: bool) -> Shape:
    """What was removed, or would be."""
    return {"dry_run": dry_run} | {name: getattr(pruned, name) for name in type(pruned).__slots__}


def _project(card: SessionCard, projects: Mapping[ProjectId, Project]) -> str:
    project = card.session.project
    known = None if project is None else projects.get(project)
    return known.name if known is not None else project or ""


def _digest(card: DigestCard | None) -> str:
    from backstory.entrypoints.digest_views import summary

    return "" if card is None else summary(card)


def _relations(card: SessionCard, *, names: bool) -> Iterator[str]:
    if card.session.parent is not None:
        yield f"sub-agent of {card.session.parent}"
    if card.children:
        many = f"{len(card.children)} sub-agent{'s' if len(card.children) > 1 else ''}"
        yield f"{many}: {', '.join(card.children)}" if names else many
    if card.fork_of is not None:
        yield f"fork of {card.fork_of}"
    if card.session.deleted_at is not None:
        yield f"deleted in {card.session.host} on {shown_time(card.session.deleted_at)}" if names else "deleted"


def _head(place: int, message: Message) -> str:
    facts = [f"#{place} {message.role.value}", shown_time(message.created_at)]
    facts += [name for name in (message.agent, message.model) if name]
    facts.append(message.id)
    if message.removed_at is not None:
        facts.append(f"taken back {shown_time(message.removed_at)}")
    return " · ".join(facts)


def _part_lines(part: Part, *, tools: bool) -> Iterator[Line]:
    if part.kind == "text" and not part.synthetic:
        yield part.text, "plain"
    elif tools and part.kind in _SAID:
        yield f"  [{'put there by a program' if part.synthetic else part.kind}, {part.id}]", "faint"
        yield shortened(part.text, _TOOL_CHARS), "faint"
    elif tools:
        yield f"  [{part.tool or part.kind}, {part.id}]", "faint"
        if given := _given(part):
            yield f"  {shortened(given, _TOOL_CHARS)}", "faint"
        if part.text:
            yield f"  → {shortened(part.text, _TOOL_CHARS)}", "faint"
        yield from ((f"  {_attachment(ref)}", "faint") for ref in part.blobs)


def _raw_lines(part: Part) -> Iterator[Line]:
    yield f"  [{part.tool or part.kind}, {part.id}{', put there by a program' if part.synthetic else ''}]", "faint"
    if part.text:
        yield part.text, "plain"
    if part.detail:
        yield part.detail, "faint"


def _given(part: Part) -> str:
    """What a tool was given, or all that is told of another part."""
    try:
        told = json.loads(part.detail or "{}")
    except (ValueError, RecursionError):
        return part.detail or ""
    state = told.get("state") if isinstance(told, dict) else None
    given = state.get("input") if isinstance(state, dict) else told
    return json.dumps(given, ensure_ascii=False) if given else ""


def _attachment(ref: BlobRef) -> str:
    return f"kept apart: {ref.media_type}, {ref.size:,} bytes, {ref.hash}"
