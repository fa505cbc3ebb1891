"""A store that holds one text in every place there is, and a search of bytes of its own: for tests of erasing."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote, quote_plus

from backstory.adapters.stores.memory import open_memory_store
from backstory.domain.admission import TextLimits
from backstory.domain.blob import make_blob
from backstory.domain.conversation import (
    FrozenBlock,
    FrozenSnapshot,
    Message,
    Part,
    Role,
    Session,
    ShownMemory,
)
from backstory.domain.digest import DigestState, DigestUpdate, Piece, Strategy
from backstory.domain.dream_state import DreamState, Summary
from backstory.domain.excerpt import ExcerptSize, excerpt
from backstory.domain.history import Author
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.lifecycle import Revision
from backstory.domain.memory import Memory
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.drive import drive
from backstory.ports.backend import Backend
from backstory.services.erasure import Erasing
from backstory.services.maintenance import Maintenance
from backstory.services.reference import Reference
from backstory.services.remember import Draft, Remember
from backstory.services.secrets_sweep import SecretsSweep
from backstory.testing.fakes import ORCHARD, START, FakeClock, HashEmbedder, SequentialIds

SECRET_TEXT = 'Der Kühlraum heißt "Wärme 梨"\nund sein Schlüssel liegt im Zwetschgenkorb'
WORDS = ("Kühlraum", "Zwetschgenkorb")
"""Words that stand nowhere else in the store."""
OTHER_TEXT = "Pears are weighed on Tuesdays"
PERSON = Viewer(project=ORCHARD, session=SessionId("ses-1"), audience=Audience.PERSON)
SESSION = SessionId("ses-1")


@dataclass
class Keeper:
    """The services over one store, as a person uses them."""

    backend: Backend
    clock: FakeClock
    ids: SequentialIds

    @property
    def reference(self) -> Reference:
        return Reference(self.backend.memories, self.backend.projects, clock=self.clock)

    @property
    def remember(self) -> Remember:
        return Remember(self.backend.memories, self.reference, clock=self.clock, ids=self.ids, limits=TextLimits())

    @property
    def erasing(self) -> Erasing:
        return Erasing(self.backend, self.reference, self.remember, clock=self.clock, ids=self.ids)

    @property
    def sweep(self) -> SecretsSweep:
        return SecretsSweep(self.backend, clock=self.clock, ids=self.ids)

    def say(self, content: str, **fields: object) -> Memory:
        draft = Draft(content=content, origin=Origin.USER, **fields)  # type: ignore[arg-type]  # fields of a Draft
        return drive(self.remember.remember(draft, viewer=PERSON, author=Author.USER)).memory


def keeper(backend: Backend | None = None, *, series: int = 0) -> Keeper:
    """The services over a store; one in memory unless another is given."""
    return Keeper(backend or open_memory_store(), FakeClock(START), SequentialIds(series))


def filled(kept: Keeper, text: str = SECRET_TEXT) -> Memory:
    """Put a text wherever one can be; the memory that says it is #2. #1 says something else, and #3 quotes it."""
    kept.say(OTHER_TEXT, tags=["fruit"])
    provenance = Provenance(session=SESSION, messages=(MessageId("m1"),))
    told = kept.say("The cold room has a name", tags=["cold"], provenance=provenance)
    revision = Revision(content=text)
    drive(kept.remember.update(f"#{told.n}", revision, viewer=PERSON, author=Author.USER, reason=f"it is: {text}"))
    kept.say(f"Remember what was said: {text} (by Anna)")
    _say_in_session(kept, text)
    memory = drive(kept.backend.memories.by_number(told.n))
    assert memory is not None
    _freeze(kept, memory)
    _derive(kept, memory)
    drive(Maintenance(kept.backend, HashEmbedder(), no_embedder="none is set").embed_missing())
    return memory


def _say_in_session(kept: Keeper, text: str) -> None:
    store = kept.backend.conversations
    session = Session(
        id=SESSION, project=ORCHARD, host="opencode", directory="/work/orchard", title=f"About {text}",
        created_at=START, updated_at=START,
    )  # fmt: skip
    drive(store.put_session(session))
    drive(store.put_messages([said(text)], blobs=[make_blob(long_text(text).encode())]))


def long_text(text: str) -> str:
    """A text that is too long for a part, with another one at the very place where it is cut."""
    return "pear " * 10 + text + " plum" * 400


def said(text: str) -> Message:
    """A message with the text as typed, in other cases and spaces, in JSON, in other signs and in an attachment."""
    blob = make_blob(long_text(text).encode())
    cut = excerpt(long_text(text), blob.hash, ExcerptSize(whole=100, head=70, tail=20))
    detail = {"input": {"command": f"echo {text}", "note": [text]}, "output": json.dumps({"said": text})}
    packed = base64.b64encode(f"see: {text}!".encode()).decode()
    parts = (
        Part(id=PartId("p1"), kind="text", text=f"remember that {text}, please"),
        Part(id=PartId("p2"), kind="text", text=text.upper().replace("\n", "  \n ")),
        Part(id=PartId("p3"), kind="tool", tool="bash", text=json.dumps([text]), detail=json.dumps(detail)),
        Part(id=PartId("p4"), kind="text", text=cut, blobs=(blob.ref("text/plain"),)),
        Part(id=PartId("p5"), kind="text", text=f"data: {packed}\n{in_other_signs(text)}"),
        Part(id=PartId("p6"), kind="text", text="plums ripen late"),
    )
    return Message(
        id=MessageId("m1"), session=SESSION, role=Role.USER, created_at=START, completed_at=START, parts=parts
    )


def in_other_signs(text: str) -> str:
    """A text as addresses, dumps of bytes and tokens have it."""
    token = base64.urlsafe_b64encode(f"?>{text}~".encode()).decode()
    return f"https://example.org/?q={quote(text)}&p={quote_plus(text)} {text.encode().hex()} {token}"


def _freeze(kept: Keeper, memory: Memory) -> None:
    shown = ShownMemory(memory=memory.id, n=memory.n, score=0.5, reason=f"words of {memory.content}")
    store = kept.backend.conversations
    for number, items in ((1, (shown,)), (2, ())):
        block = FrozenBlock(
            message=MessageId(f"m{number}"), session=SESSION, text=f"<memory>{memory.content}</memory>", shown=items,
            silent_because=None, created_at=START,
        )  # fmt: skip
        drive(store.freeze_block(block))
    snapshot = FrozenSnapshot(session=SESSION, text=memory.content, shown=(memory.id,), created_at=START)
    drive(store.freeze_snapshot(snapshot))


def _derive(kept: Keeper, memory: Memory) -> None:
    backend, text = kept.backend, memory.content
    state = DigestState(
        session=SESSION, strategy=Strategy.TREE, current_task=f"Find out: {text}", problem=text, updated_at=START
    )
    piece = Piece(
        session=SESSION, id="node0_001", strategy=Strategy.TREE, level=0, text=f"Somebody said: {text}", start=0, end=0,
        sources=(MessageId("m1"),), made_by="rules", prompt="1", source_tokens=10, created_at=START,
    )  # fmt: skip
    assert drive(backend.digests.apply(DigestUpdate(state=state, added=(piece,))))
    summary = Summary(
        project=ORCHARD, text=f"In short: {text}", sources=(memory.id,), made_by="m", prompt="1", created_at=START
    )
    drive(backend.dreams.put_summary(summary))
    dream = DreamState(
        session=SESSION, project=ORCHARD, problem=f"no answer about {text}", updated_at=START + timedelta(hours=1)
    )
    assert drive(backend.dreams.apply(dream))


def forms(text: str) -> Iterator[bytes]:
    """In which bytes a text can be recognised: written here once more, so that nobody checks himself."""
    for written in (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
        yield written.encode()
        yield written.encode("utf-16-le")
        yield written.encode("utf-16-be")
    for before in (b"", b"x", b"xy"):
        yield base64.b64encode(before + text.encode())[4:-4]
        yield base64.urlsafe_b64encode(before + text.encode())[4:-4]
    yield text.encode().hex().encode()
    yield quote(text).encode()
    yield quote_plus(text).encode()


def in_bytes(data: bytes, *texts: str) -> bool:
    """Whether any of the texts stands in some bytes, in any form and case."""
    lowered = data.lower()
    return any(form in data or form.lower() in lowered for text in texts for form in forms(text))


def files_with(folder: Path, *texts: str) -> list[str]:
    """The names of the files below a folder in which one of the texts stands, git's objects unpacked."""
    found = []
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            data = file.read_bytes()
            if in_bytes(data, *texts) or in_bytes(_unpacked(data), *texts):
                found.append(file.name)
    return found


def _unpacked(data: bytes) -> bytes:
    try:
        return zlib.decompress(data)
    except zlib.error:
        return b""
