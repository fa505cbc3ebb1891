"""Backstory's own tools with what older products' tools of the same names take besides, for the toolset ``all``.

An argument that is not ours narrows what ours find, or names memories in another way: exactly one has to fit then, or
``all`` has to be true.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from backstory.domain.consolidation import Pass
from backstory.domain.memory import Memory, Sensitivity, Tier
from backstory.domain.scope import may_change
from backstory.domain.selection import Selection
from backstory.domain.topics import best_first, has_topic
from backstory.domain.vocabulary import classify
from backstory.entrypoints.tools.consolidate import CONSOLIDATE, ConsolidateArguments, consolidate
from backstory.entrypoints.tools.forget import FORGET, ForgetArguments, forget
from backstory.entrypoints.tools.recall import RECALL, RecallArguments, recall
from backstory.entrypoints.tools.remember import REMEMBER, RememberArguments, draft_of, store
from backstory.entrypoints.tools.sets.opencode_memory.forgetting import CLEAR, ClearArguments, clear
from backstory.entrypoints.tools.sets.opencode_memory.matching import several, with_text
from backstory.entrypoints.tools.tool import Answer, Call
from backstory.entrypoints.tools.update import UPDATE, UpdateArguments, update
from backstory.errors import AmbiguousMatch, InputError, NotFound

_ALL = 100_000


class RememberEverything(RememberArguments):
    """Arguments of memory_remember."""

    older_names: ClassVar[Mapping[str, str]] = {**RememberArguments.older_names, "ttlHours": "expires_in_hours"}

    tier: Tier | None = Field(default=None, description="core: kept in sight. temporary: expires, after 24 hours.")
    sensitivity: Sensitivity = Field(
        default=Sensitivity.NORMAL, description="private: never offered unasked. local-only: no model sees it again."
    )


async def remember_everything(arguments: RememberEverything, call: Call) -> Answer:
    """As memory_remember, with tier and sensitivity."""
    draft = replace(draft_of(arguments, call), tier=arguments.tier, sensitivity=arguments.sensitivity)
    answer = await store(draft, call)
    if draft.sensitivity is Sensitivity.LOCAL_ONLY:  # nor does a model learn whether it was known
        return Answer(text="Stored for people alone.", title="local-only")
    return answer


class RecallEverything(RecallArguments):
    """Arguments of memory_recall."""

    older_names: ClassVar[Mapping[str, str]] = {**RecallArguments.older_names, "category": "kind"}

    scope: str | None = Field(default=None, description="global, project or session only; else a topic to match.")
    match: Literal["contains", "exact", "prefix"] = Field(default="contains", description="How the topic is matched.")


async def recall_everything(arguments: RecallEverything, call: Call) -> Answer:
    """As memory_recall, narrowed to a scope."""
    place = classify(None, arguments.scope)
    if place.visibility is None and place.area is None:
        return await recall(arguments, call)

    def keep(memory: Memory) -> bool:
        if place.visibility is not None:
            return memory.visibility is place.visibility
        return memory.area is not None and has_topic(memory, place.area or "", arguments.match)

    return await recall(arguments, call, keep=keep)


class UpdateEverything(UpdateArguments):
    """Arguments of memory_update."""

    older_names: ClassVar[Mapping[str, str]] = {**UpdateArguments.older_names, "fact": "content"}

    id: int | str | None = Field(  # type: ignore[assignment]  # not needed where the memory is named otherwise
        default=None,
        description="#number of the memory, or a piece of its text that fits only this one. Without it: the one of"
        " this kind and topic (scope).",
    )
    query: str | None = Field(default=None, description="Without id: words of the one that is meant.")


async def update_everything(arguments: UpdateEverything, call: Call) -> Answer:
    """As memory_update; without an id, kind and scope name the memory and stay."""
    if arguments.id is not None:
        return await update(arguments, call)
    found = await _named(arguments.kind, arguments.scope, arguments.query, call)
    if len(found) > 1:
        raise several(found)
    kept = arguments.model_copy(update={"id": f"#{found[0].n}", "kind": None, "scope": None})
    return await update(kept, call)


class ForgetEverything(ForgetArguments):
    """Arguments of memory_forget."""

    older_names: ClassVar[Mapping[str, str]] = {**ForgetArguments.older_names, "type": "kind"}

    id: int | str | list[int | str] | None = Field(  # type: ignore[assignment]  # as in UpdateEverything
        default=None,
        description="#number of the memory, several numbers, or a piece of text that fits only one. Without it: the"
        " one of this kind and topic (scope).",
    )
    kind: str | None = Field(default=None, description="Without id: its kind.")
    scope: str | None = Field(default=None, description="Without id: its topic, exactly.")
    query: str | None = Field(default=None, description="Without id: words of the one that is meant.")
    all: bool = Field(default=False, description="true: all that fit, where several do.")


async def forget_everything(arguments: ForgetEverything, call: Call) -> Answer:
    """As memory_forget; several that fit are forgotten only with ``all``."""
    if arguments.id is not None and (arguments.kind or arguments.scope or arguments.query):
        raise InputError("id was given, and kind, scope or query too", field="id", hint="give one or the other")
    try:
        if arguments.id is not None:
            return await forget(arguments, call)
        found = await _named(arguments.kind, arguments.scope, arguments.query, call, best=not arguments.all)
    except AmbiguousMatch as error:
        if not (arguments.all and isinstance(arguments.id, str)):
            raise
        found = await with_text(arguments.id, call)
        if not found:
            raise error
    if len(found) > 1 and not arguments.all:
        raise several(found)
    return await forget(arguments.model_copy(update={"id": [f"#{memory.n}" for memory in found]}), call)


async def _named(
    kind: str | None, scope: str | None, query: str | None, call: Call, *, best: bool = True
) -> list[Memory]:
    """Those of a kind and a topic that may be changed from here; with a query, and ``best``, the one that fits best.
    Raises NotFound, and InputError where one of the two is not given: a scope alone says where something should be."""
    place = classify(kind, scope)
    if place.kind is None or not (scope or "").strip():
        raise InputError("no memory is named", field="id", hint="give id, or kind and scope")
    selection = Selection(
        viewer=call.viewer,
        now=call.app.clock.now(),
        kinds=frozenset() if place.kind is None else frozenset({place.kind}),
        visibility=place.visibility,
    )
    found = [
        memory
        for memory in await call.app.backend.memories.select(selection, limit=_ALL)
        if may_change(memory, call.viewer) and (place.area is None or has_topic(memory, place.area, "exact"))
    ]
    if query and query.strip():
        ranked = best_first(found, query)
        found = ranked[:1] if best else ranked
    if not found:
        raise NotFound("no memory here has this kind and scope, and these words")
    return found


class ConsolidateEverything(ConsolidateArguments):
    """Arguments of memory_consolidate."""

    passes: list[Pass] | None = Field(default=None, description="Only these; without it, all three.")


async def consolidate_everything(arguments: ConsolidateEverything, call: Call) -> Answer:
    """As memory_consolidate, by the passes that are asked for."""
    return await consolidate(arguments, call, passes=tuple(arguments.passes or Pass))


class ClearEverything(ClearArguments):
    """Arguments of memory_clear. That all is meant has to be said: a scope that was left out, or lost, is no wish."""

    scope: Literal["project", "global", "all"] | None = Field(  # type: ignore[assignment] # wider than the original
        default=None, description="What to clear: project, global, or all for both. Needed, but with summaryOnly."
    )


async def clear_everything(arguments: ClearEverything, call: Call) -> Answer:
    """As memory_clear, where the scope is told."""
    if arguments.scope is None and not arguments.summaryOnly:
        raise InputError("scope is missing", field="scope", hint="give project, global, or all for both")
    scope = None if arguments.scope == "all" else arguments.scope
    return await clear(ClearArguments(scope=scope, summaryOnly=arguments.summaryOnly), call)


UNIFIED = (
    replace(REMEMBER, arguments=RememberEverything, handler=remember_everything),
    replace(RECALL, arguments=RecallEverything, handler=recall_everything),
    replace(UPDATE, arguments=UpdateEverything, handler=update_everything),
    replace(FORGET, arguments=ForgetEverything, handler=forget_everything),
    replace(CONSOLIDATE, arguments=ConsolidateEverything, handler=consolidate_everything),
    replace(CLEAR, arguments=ClearEverything, handler=clear_everything),
)
