"""One store in which a word of its own stands in everything that must not be seen everywhere, and what listens.

Each memory has two words: one by which it is asked for, and its canary, which nobody says unless he has read it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio

from backstory.bootstrap import App, open_app
from backstory.config import load
from backstory.domain.answers import Finish
from backstory.domain.conversation import Message, Part, Role, Session
from backstory.domain.history import Author
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.lifecycle import Revision
from backstory.domain.memory import Memory, Sensitivity, Tier
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.drive import drive
from backstory.entrypoints.tools import Call, find_tool, run_tool
from backstory.ports.models import Vector
from backstory.ports.text_models import TextAnswer, TextRequest
from backstory.services.conversation import Prompt
from backstory.services.remember import Draft
from backstory.testing.fakes import FakeClock, HashEmbedder, SequentialIds

OPEN = "samphire"
PRIVATE = "tormentil"
LOCAL = "bryony"
ELSEWHERE = "yarrow"
FORGOTTEN = "mugwort"
ERASED = "wormwood"
TAGGED = "henbane"
SECRETS = {
    "access key": "AKIA" + "Z7Q2MVX4LRTN8WKC",
    "token": "ghp_" + "k3Rt9Zq1" * 4 + "x7Lm",
    "api key": "sk-" + "proj-" + "Vb8nQ2wX5tYc7pLk" * 2,
    "password of an address": "tUrn-" + "st0ne-77",
    "signed token": ".".join(
        ("eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiJib2F0aG91c2UifQ", "Kq3xZ9vBn2mWc7LrT5yUeA4sD8fGhJ1k")
    ),
    "private key": "MIIEvQIBADANBgkq" + "hkiG9w0BAQEFAASCBKcwggSj",
}
SECRET_TEXTS = (
    f"The lamp needs aws_access_key_id={SECRETS['access key']} to start.",
    f"Push with {SECRETS['token']} please.",
    f'OPENAI_API_KEY="{SECRETS["api key"]}"',
    f"The lamp listens on postgres://keeper:{SECRETS['password of an address']}@db.example.invalid/lamps",
    f"Authorization: Bearer {SECRETS['signed token']}",
    f"-----BEGIN PRIVATE KEY-----\n{SECRETS['private key']}\n-----END PRIVATE KEY-----",
)
NOWHERE = {TAGGED, ERASED, *SECRETS.values()}
"""What no sink of any kind ever holds."""
WORDS = {OPEN, PRIVATE, LOCAL, ELSEWHERE, FORGOTTEN, *NOWHERE}
BLOCKS = {OPEN}
"""What is shown unasked: no private memory, nothing of another project, nothing that was forgotten."""
KEYS = {
    OPEN: "jetty",
    PRIVATE: "pontoon",
    LOCAL: "slipway",
    ELSEWHERE: "capstan",
    FORGOTTEN: "gangway",
    ERASED: "bollard",
}
"""By which word the memory of a canary is asked for."""
TALK, NIGHT = SessionId("ses_boathouse"), SessionId("ses_night")
MESSAGES = 14


def statement(canary: str) -> str:
    """What the memory of a canary says."""
    return f"The lamp at the {KEYS[canary]} is filled with {canary} oil."


def heard(text: str) -> set[str]:
    """The canaries in a text."""
    return {word for word in WORDS if word in text}


class Listener:
    """A language model that keeps what it was sent, and answers each prompt as a good one would."""

    name = "scripted:listener"

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def generate(self, request: TextRequest) -> TextAnswer:
        self.sent.append(f"{request.system}\n{request.prompt}")
        return TextAnswer(text=_answer(request, len(self.sent)), model=self.name, finish=Finish.STOP, duration_s=0.0)

    async def close(self) -> None:
        """Nothing is open."""


_TIMES = [f"{hour:02}:{minute:02}" for hour in range(9, 19) for minute in range(0, 60, 10)]
_NOTES = "\n".join(f"* 🔴 ({at}) The user asked for the ferry of {at}" for at in _TIMES)


def _answer(request: TextRequest, number: int) -> str:
    if "<memories>" in request.prompt and "<conversation>" in request.prompt:
        text = "The ferry leaves from pier 12 on weekdays."
        fact = {"text": text, "type": "decision", "scope": "project", "confidence": 0.9, "sources": [1]}
        return json.dumps({"new": [fact], "update": [], "delete": [], "conflicts": []})
    if "<new>" in request.prompt:
        return '{"duplicates": []}'
    if '"order"' in request.system:
        return '{"order": [1]}'
    if "<observations>" in request.system:
        notes = _NOTES if "<transcript>" in request.prompt else "* 🔴 (09:15) The user asked for many ferries"
        return f"<observations>\nDate: Mar 2, 2026\n{notes}\n</observations>"
    return f"The talk was about ferry {number} and the pier it leaves from on weekdays."


class ListeningEmbedder(HashEmbedder):
    """An embedder that keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        self.sent += texts
        return await super().embed(texts)


@dataclass
class Boathouse:
    """The store in ``home``, seen from the folder it was filled from."""

    base: Path
    app: App
    model: Listener
    embedder: ListeningEmbedder
    memories: Mapping[str, Memory]

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def folder(self) -> Path:
        return self.base / "boathouse"

    def viewer(self, session: SessionId | None = TALK, *, audience: Audience = Audience.MODEL) -> Viewer:
        return drive(self.app.viewer(self.folder, audience=audience, session=session))

    def call(self, name: str, arguments: Any) -> str:
        """What a tool says to a model; Any: whatever a model may write."""
        tool = find_tool(name, self.app.settings)
        assert tool is not None, name
        call = Call(app=self.app, viewer=self.viewer(), tool=name, agent="build", message=MessageId("msg_call"))
        answer = anyio.run(run_tool, tool, arguments, call)
        return f"{answer.title}\n{answer.text}"

    def copied(self, to: Path, **flags: object) -> Boathouse:
        """The same over a copy of the store, for what changes it; ``flags`` are further settings."""
        shutil.copytree(self.home, to / "home")
        return _opened(self.base, to / "home", self.memories, **flags)

    def close(self) -> None:
        drive(self.app.close())


def filled(base: Path) -> Boathouse:
    """A new store with all canaries in it, each put there by the ways that people, agents and hosts have."""
    for name in ("boathouse", "mill"):
        (base / name).mkdir()
    house = _opened(base, base / "home", {})
    person = house.viewer(None, audience=Audience.PERSON)
    mill = drive(house.app.viewer(base / "mill", audience=Audience.PERSON))
    plain = {"pinned": True, "tier": Tier.CORE}
    made = {
        OPEN: _state(house, OPEN, person, **plain),
        PRIVATE: _state(house, PRIVATE, person, sensitivity=Sensitivity.PRIVATE, **plain),
        LOCAL: _state(house, LOCAL, person, sensitivity=Sensitivity.LOCAL_ONLY, tags=(LOCAL,), area=LOCAL, **plain),
        ELSEWHERE: _state(house, ELSEWHERE, mill, tags=(ELSEWHERE,), **plain),
        FORGOTTEN: _state(house, FORGOTTEN, person, **plain),
        ERASED: _state(house, ERASED, person, **plain),
    }
    for place in ("north", "south", "east", "west"):
        draft = Draft(content=f"The {place} gate opens at seven.", origin=Origin.USER)
        drive(house.app.remember.remember(draft, viewer=person, author=Author.USER))
    house.memories = made
    _talk(house)
    _say(house)
    labelled = Revision(issue=LOCAL)
    drive(house.app.remember.update(f"#{made[LOCAL].n}", labelled, viewer=person, author=Author.USER, reason=LOCAL))
    drive(house.app.remember.forget([f"#{made[FORGOTTEN].n}"], viewer=person, author=Author.USER, reason=FORGOTTEN))
    plan = drive(house.app.truth.erasing.plan([f"#{made[ERASED].n}"], text=None, viewer=person))
    drive(house.app.truth.erasing.erase(plan, viewer=person, author=Author.USER))
    return house


def _opened(base: Path, home: Path, memories: Mapping[str, Memory], **flags: object) -> Boathouse:
    url = f"sqlite://{home / 'backstory.db'}"
    dotted = {name.replace("__", "."): value for name, value in flags.items()}
    given = {"store.url": url, "context.evidence": True, **dotted}
    settings = load(env={"BACKSTORY_HOME": str(home)}, project_root=None, flags=given).settings
    home.mkdir(exist_ok=True)
    model, embedder = Listener(), ListeningEmbedder()
    app = App(
        settings, open_app(settings).backend, embedder, no_embedder="", clock=FakeClock(),
        ids=SequentialIds(series=1 + len(memories)), host_model=model,
    )  # fmt: skip
    return Boathouse(base=base, app=app, model=model, embedder=embedder, memories=memories)


def _state(house: Boathouse, canary: str, viewer: Viewer, **fields: Any) -> Memory:
    draft = Draft(content=statement(canary), origin=Origin.USER, **fields)
    return drive(house.app.remember.remember(draft, viewer=viewer, author=Author.USER)).memory


def _say(house: Boathouse) -> None:
    """Prompts, an agent's tool call and a snapshot, with all in them that must be masked or left out."""
    remember = [f"Remember that the lamp was lit. {text}" for text in SECRET_TEXTS]
    texts = [
        *remember,
        f"Remember that the wick is <private>{TAGGED}</private> new.",
        "Where is the lamp, and its oil?",
    ]
    for number, text in enumerate(texts):
        prompt = Prompt(text=text, message=MessageId(f"msg_prompt_{number}"), session=TALK)
        anyio.run(house.app.prompts.take, prompt, house.viewer())
    for text in (*SECRET_TEXTS, f"The wick was cut. <private>{TAGGED}</private>"):
        house.call("memory_remember", {"content": text, "tags": ["lamp"]})
    drive(house.app.blocks.snapshot(house.viewer(), session=TALK))


def _talk(house: Boathouse) -> None:
    """Two sessions in the archive: what was typed, thought, shown and answered by tools, all with secrets."""
    secret = "\n".join((*SECRET_TEXTS, f"<private>{TAGGED}</private>"))
    for session in (TALK, NIGHT):
        at = house.app.clock.now()
        info = Session(
            id=session, project=house.viewer().project, host="opencode", directory=str(house.folder),
            title=f"Lamps {secret}", created_at=at, updated_at=at,
        )  # fmt: skip
        drive(house.app.conversations.take_session(info))
        drive(house.app.conversations.take_messages(list(_messages(house, session, secret))))


def _messages(house: Boathouse, session: SessionId, secret: str) -> Iterator[Message]:
    for number in range(MESSAGES):
        at = house.app.clock.now() + timedelta(minutes=number)
        name = f"msg_{session}_{number:02}"
        user = number % 2 == 0
        text = (
            f"We decided that the ferry leaves from pier {number}, and the lamp stays lit. {'so it is, ' * 40}{secret}"
        )
        state = {"status": "completed", "input": {"command": f"light {secret}"}, "output": f"lit {secret}"}
        parts = [Part(id=PartId(f"{name}_0"), kind="text", text=text)]
        if not user:
            parts += [
                Part(id=PartId(f"{name}_1"), kind="reasoning", text=f"I think of {secret}"),
                Part(
                    id=PartId(f"{name}_2"),
                    kind="tool",
                    tool="bash",
                    text=f"lit {secret}",
                    detail=json.dumps({"state": state}),
                ),
            ]
        yield Message(
            id=MessageId(name), session=session, role=Role.USER if user else Role.ASSISTANT, created_at=at,
            completed_at=at, parts=tuple(parts),
        )  # fmt: skip


def _detail(state: Mapping[str, object]) -> str:
    return json.dumps({"state": state})


def moved(house: Boathouse, by: timedelta) -> None:
    """Let time pass."""
    assert isinstance(house.app.clock, FakeClock)
    house.app.clock.advance(by)


def digested(house: Boathouse) -> None:
    """Let the long session be digested, as often as it can be."""
    sessions = house.app.long_sessions
    if sessions is None:
        return
    for _ in range(6):
        anyio.run(sessions.work.force, NIGHT)
        anyio.run(sessions.work.work, NIGHT)
        moved(house, timedelta(hours=1))
