"""Results as JSON values, as ``docs/reference/json-output.md`` documents them; fields are only ever added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from backstory.codecs.record import encode_memory, format_time
from backstory.domain.memory import Memory
from backstory.entrypoints.render import project_name

if TYPE_CHECKING:
    from backstory.domain.conversation import FrozenBlock
    from backstory.domain.doubt import Doubt
    from backstory.domain.evidence_passages import EvidencePassage
    from backstory.domain.history import Change
    from backstory.domain.ids import ProjectId
    from backstory.domain.project import Project
    from backstory.entrypoints.cli.status import Status
    from backstory.services.digest_search import DigestHit
    from backstory.services.evidence_found import EvidenceFound
    from backstory.services.query import Recalled
    from backstory.services.remember import Remembered

Shape = dict[str, object]


def memory_shape(memory: Memory, projects: Mapping[ProjectId, Project]) -> Shape:
    """The record of exports, and the name of the project."""
    return encode_memory(memory) | {"project_name": project_name(memory, projects)}


def looked_up_shape(memory: Memory, projects: Mapping[ProjectId, Project], doubt: Doubt | None) -> Shape:
    """``memory_shape``, and why it should be checked."""
    return memory_shape(memory, projects) | {"doubt": None if doubt is None else doubt_shape(doubt)}


def doubt_shape(doubt: Doubt) -> Shape:
    """Why a memory should be checked."""
    return {"anchor": doubt.anchor, "reason": doubt.reason, "since": format_time(doubt.since)}


def recalled_shape(recalled: Recalled, projects: Mapping[ProjectId, Project]) -> Shape:
    """The answer to a query. ``project`` is a name here."""
    return {
        "results": [
            {
                "id": result.memory.id,
                "n": result.memory.n,
                "content": result.memory.content,
                "score": round(result.score.total, 4),
                "kind": result.memory.kind.value,
                "visibility": result.memory.visibility.value,
                "project": project_name(result.memory, projects),
                "tags": list(result.memory.tags),
                "learned": format_time(result.memory.times.learned),
                "reasons": list(result.reasons),
                "doubt": None if result.doubt is None else doubt_shape(result.doubt),
            }
            for result in recalled.results
        ],
        "silent": not recalled.results,
        "why_silent": recalled.silent_because,
        "skipped": [f"{item.part}: {item.reason}" for item in recalled.skipped],
    }


def evidence_shape(found: EvidenceFound) -> Shape:
    """What was said in sessions: added to the answer of a query where it is asked for."""
    return {
        "evidence": [
            {
                **_passage(result.passage),
                "score": round(result.score, 4),
                "before": None if result.before is None else _passage(result.before),
                "after": None if result.after is None else _passage(result.after),
                "reasons": list(result.reasons),
                "outdated": result.outdated,
                "imported_from": result.imported_from,
            }
            for result in found.results
        ],
        "why_no_evidence": found.silent_because,
        "evidence_skipped": None if found.skipped is None else f"meaning: {found.skipped}",
    }


def notes_shape(notes: Sequence[DigestHit]) -> Shape:
    """What was noted on sessions: added to the answer of a query in everything."""
    return {
        "notes": [
            {
                "session": hit.piece.session,
                "id": hit.piece.id,
                "strategy": hit.piece.strategy.value,
                "line": hit.line,
                "score": round(hit.score, 4),
                "at": format_time(hit.piece.created_at),
                "vouched": not hit.is_unvouched,
            }
            for hit in notes
        ]
    }


def _passage(passage: EvidencePassage) -> Shape:
    return {
        "message": passage.message,
        "session": passage.session,
        "role": passage.role.value,
        "at": format_time(passage.at),
        "kind": passage.kind,
        "sub_agent": passage.by_sub_agent,
        "text": passage.text,
    }


def remembered_shape(done: Remembered, projects: Mapping[ProjectId, Project]) -> Shape:
    """What became of a text to remember."""
    return {
        "memory": memory_shape(done.memory, projects),
        "fresh": done.fresh,
        "superseded": None if done.superseded is None else memory_shape(done.superseded, projects),
        "change": done.change.id,
        "notes": list(done.notes),
    }


def change_shape(change: Change, projects: Mapping[ProjectId, Project]) -> Shape:
    """One change; ``before`` is null for a memory that was added."""
    return {
        "id": change.id,
        "at": format_time(change.at),
        "author": change.author.value,
        "action": change.action.value,
        "reason": change.reason,
        "session": change.session,
        "undoes": change.undoes,
        "edits": [
            {
                "before": None if edit.before is None else memory_shape(edit.before, projects),
                "after": memory_shape(edit.after, projects),
            }
            for edit in change.edits
        ],
    }


def planned_shape(memories: Sequence[Memory], projects: Mapping[ProjectId, Project]) -> Shape:
    """What a dry run would change."""
    return {"dry_run": True, "memories": [memory_shape(memory, projects) for memory in memories]}


def block_shape(block: FrozenBlock) -> Shape:
    """One time something was put beside a prompt, or nothing was."""
    return {
        "message": block.message,
        "session": block.session,
        "at": format_time(block.created_at),
        "shown": [{"id": item.memory, "n": item.n, "score": item.score, "reason": item.reason} for item in block.shown],
        "silent_because": block.silent_because,
    }


def project_shape(project: Project) -> Shape:
    """A project: its name is its folder's, ``root`` where it was last seen."""
    return {"id": project.id, "name": project.name, "root": project.root}


def status_shape(told: Status) -> Shape:
    """Store, project, counts, what recall works with, and what was offered lately."""
    from backstory.entrypoints.costs import stopped_shapes

    statistics = told.statistics
    return {
        "version": told.version,
        "store": {
            "kind": told.store.kind,
            "location": told.store.location,
            "exists": told.store.exists,
            "durable": told.store.durable,
            "read_only": told.store.read_only,
        },
        "project": project_shape(told.project),
        "candidates": [
            {"project": project_shape(other), "reason": item.reason, "here": item.here, "there": item.there}
            for item, other in told.candidates
        ],
        "memories": {"current": statistics.current, "by_state": dict(statistics.by_state)},
        "vectors": {"by_model": dict(statistics.vectors), "without": told.meaning.without_vector},
        "embedder": {
            "available": told.meaning.model is not None,
            "model": told.meaning.model,
            "reason": told.meaning.reason,
        },
        "at_cap": stopped_shapes(told.stopped),
        "messages": statistics.messages,
        "projects": statistics.projects,
        "recent_blocks": [block_shape(block) for block in told.blocks],
        "warnings": list(told.warnings),
    }
