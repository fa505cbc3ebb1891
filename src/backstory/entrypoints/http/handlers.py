"""What each address does: it parses, asks one service, and answers as the command line's ``--json`` does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from backstory.domain.history import Author
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.memory import Kind
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.selection import Selection
from backstory.domain.time_range import TimeRange
from backstory.domain.vocabulary import classify
from backstory.entrypoints.http.bodies import (
    ListQuery,
    Place,
    RecallBody,
    RememberBody,
    SessionQuery,
    SessionsQuery,
    ToolBody,
)
from backstory.entrypoints.http.folders import Desk
from backstory.entrypoints.http.problems import Problem
from backstory.entrypoints.shapes import Shape, evidence_shape, looked_up_shape, recalled_shape, remembered_shape
from backstory.entrypoints.tools import Call, run_tool
from backstory.entrypoints.tools.catalogue import manifest, offered

if TYPE_CHECKING:
    from backstory.services.evidence_found import EvidenceFound

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, read: where it looks from, what stands in its address, and what it holds."""

    desk: Desk
    path: Mapping[str, str]
    said: Place


async def health(_: Request) -> Shape:
    """That the server answers; nothing about what it knows."""
    return {"status": "ok", "api": VERSION}


async def tools(request: Request) -> Shape:
    """The tools as a host registers them."""
    return {"tools": manifest(request.desk.app.settings)}


async def call_tool(request: Request) -> Shape:
    """A tool, as a model calls it."""
    said, desk = request.said, request.desk
    assert isinstance(said, ToolBody)
    name = request.path["name"]
    tool = next((tool for tool in offered(desk.app.settings) if tool.name == name), None)
    if tool is None:
        raise Problem(
            kind="not-found", detail=f"There is no tool {name[:60]!r} here", name="name", hint="GET /v1/tools"
        )
    message = None if said.message is None else MessageId(said.message)
    call = Call(app=desk.app, viewer=desk.viewer, message=message, agent=said.agent, tool=name)
    answer = await run_tool(tool, said.arguments, call)
    return {"text": answer.text, "title": answer.title, "failed": answer.failed}


async def recall(request: Request) -> Shape:
    """A search, with everything that is known about its results."""
    said, app = request.said, request.desk.app
    assert isinstance(said, RecallBody)
    limit = app.settings.recall.limit if said.limit is None else said.limit
    learned = _range(said, request.desk)
    found = await _evidence(said, request.desk, limit, learned) if said.where != "memories" else None
    from backstory.services.query import Query, Recalled

    if said.where == "evidence":
        recalled = Recalled(silent_because="memories were not searched")
    else:
        query = Query(
            text=said.query, viewer=request.desk.viewer, limit=limit, tags=tuple(said.tags), kinds=_kinds(said.kinds),
            area=said.area, learned=learned, with_superseded=said.superseded, lexical_only=said.lexical,
        )  # fmt: skip
        recalled = await app.recall.recall_and_count(query)
    projects = await app.backend.projects.projects()
    return recalled_shape(recalled, projects) | ({} if found is None else evidence_shape(found))


async def _evidence(said: RecallBody, desk: Desk, limit: int, learned: TimeRange | None) -> EvidenceFound:
    return await desk.app.evidence.search(
        said.query, viewer=desk.viewer, limit=limit, said=learned, lexical_only=said.lexical
    )


def _range(said: RecallBody, desk: Desk) -> TimeRange | None:
    if said.since is None and said.until is None:
        return None
    from backstory.domain.dates import parse_range
    from backstory.entrypoints.local_time import LocalZone

    return parse_range(since=said.since, until=said.until, now=desk.app.clock.now(), zone=LocalZone())


def _kinds(words: list[str]) -> frozenset[Kind]:
    kinds = (classify(word, None).kind for word in words)
    return frozenset(kind for kind in kinds if kind is not None)


async def remember(request: Request) -> Shape:
    """A statement, kept as the agent's word."""
    said, desk = request.said, request.desk
    assert isinstance(said, RememberBody)
    from backstory.services.remember import Draft

    place = classify(said.kind, said.scope)
    hours = said.expires_in_hours
    messages = () if said.message is None else (MessageId(said.message),)
    draft = Draft(
        content=said.content, kind=place.kind, visibility=place.visibility, area=place.area, tags=tuple(said.tags),
        issue=said.issue, expires_in=None if hours is None else timedelta(hours=hours),
        supersedes=None if said.supersedes is None else str(said.supersedes), origin=Origin.AGENT,
        provenance=Provenance(session=desk.viewer.session, messages=messages, tool="http", agent=said.agent),
    )  # fmt: skip
    done = await desk.app.remember.remember(draft, viewer=desk.viewer, author=Author.AGENT)
    return remembered_shape(done, await desk.app.backend.projects.projects())


async def memories(request: Request) -> Shape:
    """A listing, newest first."""
    said, backend = request.said, request.desk.app.backend
    assert isinstance(said, ListQuery)
    selection = Selection(
        viewer=request.desk.viewer,
        now=request.desk.app.clock.now(),
        kinds=_kinds([] if said.kind is None else [said.kind]),
        tags=() if said.tag is None else (said.tag,),
        area=said.area,
        contains=said.containing,
    )
    found = await backend.memories.select(selection, limit=said.limit, offset=said.offset)
    doubts = await backend.doubts.doubts([memory.id for memory in found])
    projects = await backend.projects.projects()
    listed = [looked_up_shape(memory, projects, doubts.get(memory.id)) for memory in found]
    return {"memories": listed, "total": await backend.memories.count(selection)}


async def memory(request: Request) -> Shape:
    """One memory."""
    app = request.desk.app
    found = await app.reference.find(request.path["ref"], request.desk.viewer, field="ref")
    doubt = (await app.backend.doubts.doubts([found.id])).get(found.id)
    return looked_up_shape(found, await app.backend.projects.projects(), doubt)


async def sessions(request: Request) -> Shape:
    """The sessions of the project, the latest first."""
    said, app = request.said, request.desk.app
    assert isinstance(said, SessionsQuery)
    from backstory.entrypoints.session_views import card_shape
    from backstory.services.digest_inspection import DigestInspection
    from backstory.services.sessions import Sessions

    cards, total = await Sessions(app.backend.conversations).cards(request.desk.viewer, limit=said.limit)
    projects = await app.backend.projects.projects()
    inspection = DigestInspection(app.backend.digests, clock=app.clock)
    digests = {card.session: card for card in await inspection.cards([card.session.id for card in cards])}
    return {"sessions": [card_shape(card, projects, digests.get(card.session.id)) for card in cards], "total": total}


async def session(request: Request) -> Shape:
    """One session, a page of its messages at a time."""
    said, app = request.said, request.desk.app
    assert isinstance(said, SessionQuery)
    from backstory.entrypoints.session_views import card_shape, page_shape
    from backstory.services.digest_inspection import DigestInspection
    from backstory.services.sessions import Sessions

    archive = Sessions(app.backend.conversations)
    card = await archive.card(request.path["id"], request.desk.viewer)
    page = await archive.page(card.session, number=said.page, size=said.limit)
    digest = await DigestInspection(app.backend.digests, clock=app.clock).card(SessionId(card.session.id))
    projects = await app.backend.projects.projects()
    return {"session": card_shape(card, projects, digest)} | page_shape(page)
