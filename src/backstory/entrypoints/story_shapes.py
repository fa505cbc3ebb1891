"""What is known and why, as JSON values, as ``docs/reference/json-output.md`` documents them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from backstory.codecs.record import format_time
from backstory.domain.memory import Memory, status_name
from backstory.entrypoints.shapes import Shape, change_shape, memory_shape, project_shape

if TYPE_CHECKING:
    from backstory.domain.conversation import Message, Session
    from backstory.domain.doubt import Doubt
    from backstory.domain.ids import ProjectId
    from backstory.domain.project import Project
    from backstory.domain.worth import Worth
    from backstory.services.explanation import Appraisal
    from backstory.services.inspection import Showing, Story

Projects = Mapping["ProjectId", "Project"]
_DAY = timedelta(days=1)


def story_shape(story: Story, appraisal: Appraisal | None, projects: Projects) -> Shape:
    """Everything about one memory. ``state`` counts expiry, which the stored status does not."""
    return {
        "memory": memory_shape(story.memory, projects),
        "state": status_name(story.status),
        "project": None if story.project is None else project_shape(story.project),
        "session": None if story.session is None else _session(story.session),
        "messages": [message_shape(message) for message in story.messages],
        "changes": [change_shape(change, projects) for change in story.changes],
        "showings": [_showing(showing) for showing in story.showings],
        "replaced": _memories(story.replaced, projects),
        "successors": _memories(story.successors, projects),
        "against": _memories(story.against, projects),
        "derived_from": _memories(story.sources, projects),
        "doubt": None if story.doubt is None else _doubt(story.doubt),
        "worth": _worth(story.worth),
        "score_now": None if appraisal is None else _appraisal(appraisal),
    }


def message_shape(message: Message) -> Shape:
    """A message: who said what, when."""
    from backstory.domain.conversation import typed_text

    return {
        "id": message.id,
        "role": message.role.value,
        "at": format_time(message.created_at),
        "text": typed_text(message),
    }


def parts_shape(parts: Sequence[tuple[str, float]]) -> list[Shape]:
    """What made up a score when something was shown."""
    return [{"name": name, "value": value} for name, value in parts]


def _memories(memories: Sequence[Memory], projects: Projects) -> list[Shape]:
    return [memory_shape(memory, projects) for memory in memories]


def _showing(showing: Showing) -> Shape:
    return {
        "message": showing.block.message,
        "session": showing.block.session,
        "at": format_time(showing.block.created_at),
        "score": showing.score,
        "reason": showing.reason,
        "parts": parts_shape(showing.parts),
    }


def _doubt(doubt: Doubt) -> Shape:
    return {"anchor": doubt.anchor, "reason": doubt.reason, "since": format_time(doubt.since)}


def _worth(worth: Worth) -> Shape:
    return {
        "total": round(worth.total, 6),
        "base": round(worth.base, 6),
        "stated": worth.stated,
        "feedback": round(worth.usefulness, 6),
        "decay": round(worth.decay, 6),
        "age_days": round(worth.age / _DAY, 3),
    }


def _appraisal(appraisal: Appraisal) -> Shape:
    return {
        "prompt": appraisal.prompt,
        "asked_at": None if appraisal.asked_at is None else format_time(appraisal.asked_at),
        "score": None if appraisal.score is None else round(appraisal.score.total, 4),
        "parts": [
            {"name": part.name, "value": round(part.value, 3), "detail": part.detail} for part in appraisal.parts
        ],
        "position": appraisal.position,
        "considered": appraisal.considered,
        "told": appraisal.told,
    }


def _session(session: Session) -> Shape:
    return {
        "id": session.id,
        "host": session.host,
        "title": session.title,
        "directory": session.directory,
        "created_at": format_time(session.created_at),
    }
