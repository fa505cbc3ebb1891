"""Whatever is told, replaced and taken back in any order: nothing that a part refers to is missing, and nothing is left
that no part refers to; and what was set apart comes back as it would have been kept."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.adapters.stores.memory import open_memory_store
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.domain.blob import content_of, make_blob
from backstory.domain.conversation import Message, Part, Role
from backstory.domain.excerpt import ExcerptSize, whole_part
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.part_admission import KeepLimits, admit_part
from backstory.entrypoints.drive import drive
from backstory.ports.backend import Backend
from backstory.testing.fakes import START

BLOBS = [make_blob(f"content {n} ".encode() * 50) for n in range(3)]
SESSION = SessionId("s")
TINY = ExcerptSize(whole=40, head=20, tail=10)
LIMITS = KeepLimits(said=TINY, given=TINY, detail=TINY)

part_names = st.sampled_from(["p1", "p2", "p3"])
chosen = st.lists(st.integers(0, 2), max_size=3, unique=True)
puts = st.tuples(st.just("put"), part_names, chosen)
nothing: list[int] = []
removals = st.tuples(st.just("remove"), part_names, st.just(nothing))
steps = st.lists(puts | removals)
SECRET = "ghp_" + "a1B2" * 9 + " "
pieces = st.sampled_from(
    ["word ", "é☃ ", "\n", "}", '"', SECRET, "<private>x</private>", "[… 3 characters between", "\\n"]
)
texts = st.lists(pieces, max_size=25).map("".join)
details = st.recursive(texts | st.integers() | st.none(), lambda inner: st.lists(inner, max_size=3), max_leaves=5)


@settings(max_examples=30, deadline=None)
@given(steps)
def test_every_store_keeps_just_the_contents_that_parts_refer_to(told: list[tuple[str, str, list[int]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stores = [open_memory_store(), open_sqlite(Path(folder) / "memory.db")]
        for store in stores:
            _tell(store, told)
        plain, filed = ([*drive(store.conversations.messages(SESSION))] for store in stores)
        assert plain == filed
        referred = {ref.hash for message in plain for part in message.parts for ref in part.blobs}
        for blob in BLOBS:
            kept = {drive(store.conversations.blob(blob.hash)) == blob for store in stores}
            assert kept == {blob.hash in referred}
        for store in stores:
            assert store.upkeep is not None
            assert drive(store.upkeep.verify(full=True)) == []
            drive(store.memories.close())


def _tell(store: Backend, told: list[tuple[str, str, list[int]]]) -> None:
    message = Message(id=MessageId("m"), session=SESSION, role=Role.ASSISTANT, created_at=START)
    drive(store.conversations.put_messages([message]))
    for what, name, numbers in told:
        if what == "remove":
            drive(store.conversations.remove_part(PartId(name)))
            continue
        blobs = [BLOBS[n] for n in numbers]
        refs = tuple(blob.ref("text/plain") for blob in blobs)
        part = Part(id=PartId(name), kind="tool", tool="bash", blobs=refs)
        drive(store.conversations.put_part(part, message=message.id, session=SESSION, blobs=blobs))


@settings(max_examples=150, deadline=None)
@given(texts, details)
def test_what_was_set_apart_comes_back_as_it_would_have_been_kept(text: str, detail: Any) -> None:  # Any: any JSON
    part = Part(id=PartId("p"), kind="tool", tool="bash", text=text, detail=json.dumps({"state": {"input": detail}}))
    plain = admit_part(part, Role.ASSISTANT, KeepLimits())
    apart = admit_part(part, Role.ASSISTANT, LIMITS)
    whole = whole_part(apart.part, {blob.hash: content_of(blob) for blob in apart.blobs})
    assert whole.text == plain.part.text
    assert json.loads(whole.detail or "") == json.loads(plain.part.detail or "")
    assert {ref.hash for ref in apart.part.blobs} == {blob.hash for blob in apart.blobs}
    assert len(apart.part.text) <= 40 + 150
