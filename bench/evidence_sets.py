"""The sets of conversations with questions whose answers stand in known messages, as sessions to archive."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.ids import MessageId, PartId, ProjectId, SessionId
from backstory.entrypoints.opencode.host_messages import to_message, to_session
from bench.report import Unavailable

ADVERSARIAL = "adversarial"
_LOCOMO_KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: ADVERSARIAL}
_TURN = re.compile(r"D(\d+):0*(\d+)")
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question, and the messages that hold its answer."""

    text: str
    kind: str
    gold: frozenset[MessageId]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What belongs to one project, and the questions asked there. ``session`` limits them to one session."""

    project: ProjectId
    sessions: Sequence[Session]
    messages: Sequence[Message]
    questions: Sequence[Asked]
    session: SessionId | None = None


def read_locomo(folder: Path) -> list[Conversation]:
    """Ten long chats of two people. Malformed ids of evidence are repaired where that is unambiguous, else dropped."""
    raw = _bytes(folder / "locomo" / "locomo10.json.gz")
    return [_locomo(sample) for sample in json.loads(gzip.decompress(raw))]


def read_beam(folder: Path) -> list[Conversation]:
    """Twenty long chats of a person with an assistant."""
    raw = _bytes(folder / "beam-100k" / "beam_100k.jsonl.gz")
    return [_beam(json.loads(line)) for line in gzip.decompress(raw).decode().splitlines()]


def read_transcripts(folder: Path) -> list[Conversation]:
    """Twelve sessions of a coding agent; each question is asked of its own session."""
    files = sorted((folder / "coding-prompts" / "sessions").glob("*.json"))
    if not files:
        raise Unavailable(f"there are no transcripts in {folder}; name the folder that holds them with --data")
    return [_transcript(json.loads(file.read_text(encoding="utf-8"))) for file in files]


def _locomo(sample: dict[str, Any]) -> Conversation:
    project = ProjectId(f"locomo-{sample['sample_id']}")
    talk = sample["conversation"]
    numbers = sorted(int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key) and isinstance(talk[key], list))
    sessions, messages = [], []
    for number in numbers:
        start = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        session = _session(f"{project}-{number:02}", project, start)
        sessions.append(session)
        for place, turn in enumerate(talk[f"session_{number}"]):
            picture = f" [shares a picture: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            text = f"{turn['speaker']}: {turn['text']}{picture}"
            messages.append(_message(f"{project}-{turn['dia_id']}", session, Role.USER, start + place * _SECOND, text))
    known = {message.id for message in messages}
    questions = [
        Asked(text=row["question"], kind=_LOCOMO_KINDS[row["category"]], gold=gold)
        for row in sample["qa"]
        if (gold := frozenset(_turns(project, row.get("evidence") or [])) & known)
    ]
    return Conversation(project=project, sessions=sessions, messages=messages, questions=questions)


def _turns(project: ProjectId, evidence: Sequence[str]) -> Iterator[MessageId]:
    for text in evidence:
        for session, turn in _TURN.findall(text):
            yield MessageId(f"{project}-D{session}:{int(turn)}")


def _beam(row: dict[str, Any]) -> Conversation:
    project = ProjectId(f"beam-{row['id']}")
    session = _session(f"{project}-chat", project, datetime(2024, 1, 1, tzinfo=UTC))
    messages = []
    moment = session.created_at
    for item in row["messages"]:
        anchor = _anchor(item.get("time_anchor"))
        moment = max(moment + _SECOND, anchor or moment)
        text = re.sub(r"\s*->->.*$", "", item["content"])
        messages.append(_message(f"{project}-{item['id']:05}", session, Role(item["role"]), moment, text))
    known = {message.id for message in messages}
    questions = [
        Asked(text=question["question"], kind=kind, gold=gold)
        for kind, items in row["probing_questions"].items()
        for question in items
        if (gold := _numbered(project, question) & known)
    ]
    return Conversation(project=project, sessions=[session], messages=messages, questions=questions)


def _numbered(project: ProjectId, question: dict[str, Any]) -> frozenset[MessageId]:
    return frozenset(MessageId(f"{project}-{n:05}") for n in _numbers(question.get("source_chat_ids") or []))


def _anchor(text: str | None) -> datetime | None:
    try:
        return datetime.strptime(text or "", "%B-%d-%Y").replace(tzinfo=UTC)
    except ValueError:
        return None


def _numbers(value: Any) -> set[int]:  # Any: numbers at any depth
    if isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return {number for item in items for number in _numbers(item)}
    return {int(value)} if isinstance(value, int | str) and str(value).isdigit() else set()


def _transcript(data: dict[str, Any]) -> Conversation:
    project = ProjectId(f"coding-{data['id']}")
    now = datetime(2026, 6, 1, tzinfo=UTC)
    items = [_expanded(item) for item in data["messages"]]
    messages = [
        message
        for item in items
        if (message := to_message(item["info"], item["parts"], child=False, now=now)) is not None
    ]
    main = SessionId(str(data["messages"][0]["info"]["sessionID"]))
    sessions = []
    for session_id in dict.fromkeys(message.session for message in messages):
        session = to_session({"id": session_id}, project=project, directory="/w", now=now)
        assert session is not None
        sessions.append(session)
    questions = [
        Asked(text=row["question"], kind=project, gold=frozenset(map(MessageId, row["evidence"])))
        for row in data["labels"]["questions"]
    ]
    alone = main if len(sessions) == 1 else None
    return Conversation(project=project, sessions=sessions, messages=messages, questions=questions, session=alone)


def _expanded(value: Any) -> Any:  # Any: JSON of any shape
    if isinstance(value, dict) and "$gen" in value:
        return "".join(item["s"] * item.get("n", 1) for item in value["$gen"])
    if isinstance(value, dict):
        return {key: _expanded(item) for key, item in value.items()}
    return [_expanded(item) for item in value] if isinstance(value, list) else value


def _session(name: str, project: ProjectId, start: datetime) -> Session:
    return Session(
        id=SessionId(name), project=project, host="bench", directory="/bench", created_at=start, updated_at=start
    )


def _message(name: str, session: Session, role: Role, at: datetime, text: str) -> Message:
    part = Part(id=PartId(f"{name}-text"), kind="text", text=text)
    return Message(id=MessageId(name), session=session.id, role=role, created_at=at, completed_at=at, parts=(part,))


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise Unavailable(f"there is no set at {path}; name the folder that holds it with --data") from None
