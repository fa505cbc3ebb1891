"""Exports that come as a zip: read inside of it, within bounds, whatever the zip says of itself."""

from __future__ import annotations

import io
import json
import stat
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from backstory.adapters.formats import zipped
from backstory.adapters.formats.outside_files import Unfit
from backstory.adapters.formats.zipped import Member, members, read_member
from backstory.bootstrap.exchange import find_stores, reader
from backstory.domain.interchange import (
    ForeignMemory,
    ForeignMessages,
    ForeignRecord,
    ForeignSession,
    Remark,
    Unreadable,
)
from backstory.errors import InputError
from backstory.ports.formats import ReadLimits

Json = Any
SAID = {"id": "m1", "author": {"role": "user"}, "create_time": 1.7e9, "content": {"parts": ["Is rye dearer now?"]}}
CHATGPT = [
    {
        "conversation_id": "c-1", "title": "Rye", "create_time": 1.7e9, "current_node": "n1",
        "mapping": {"n1": {"message": SAID, "parent": None}},
    }
]  # fmt: skip
CLAUDE = [
    {
        "uuid": "u-1", "name": "Mill", "created_at": "2026-02-03T04:05:06Z",
        "chat_messages": [
            {"uuid": "u-2", "sender": "human", "text": "Who runs the mill?", "created_at": "2026-02-03T04:05:06Z"}
        ],
    }
]  # fmt: skip
KNOWN_OF_PERSON = [{"conversations_memory": "- Bakes with rye", "project_memories": {}}]


def pack(path: Path, files: Mapping[str, Json | bytes], *, packing: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", packing) as archive:
        for name, content in files.items():
            archive.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    return path


def read(path: Path, limits: ReadLimits | None = None) -> list[ForeignRecord]:
    return [
        record
        for store in find_stores(str(path))
        for record in reader(store.format).read(store, limits=limits or ReadLimits())
    ]


def said(records: list[ForeignRecord]) -> list[str]:
    found = [record for record in records if isinstance(record, ForeignMessages)]
    return [part.text for record in found for message in record.messages for part in message.parts]


@pytest.mark.parametrize("folder", ["", "export/", "a/b/"])
@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_an_export_of_chatgpt_is_read_in_its_zip(tmp_path: Path, folder: str, packing: int) -> None:
    files = {
        f"{folder}conversations.json": CHATGPT,
        f"{folder}user.json": {},
        f"{folder}chat.html": b"<p>",
        "x.png": b"",
    }
    path = pack(tmp_path / "8f-2026-export.zip", files, packing=packing)
    records = read(path)
    assert said(records) == ["Is rye dearer now?"]
    assert [record.session.title for record in records if isinstance(record, ForeignSession)] == ["Rye"]
    assert list(tmp_path.iterdir()) == [path]


def test_an_export_of_claude_is_read_in_its_zip_with_its_memories(tmp_path: Path) -> None:
    files = {"conversations.json": CLAUDE, "memories.json": KNOWN_OF_PERSON, "users.json": []}
    records = read(pack(tmp_path / "data", files))
    assert said(records) == ["Who runs the mill?"]
    assert [record.memory.content for record in records if isinstance(record, ForeignMemory)] == ["Bakes with rye"]


def test_it_is_the_same_as_of_the_unpacked_files(tmp_path: Path) -> None:
    path = pack(tmp_path / "all.zip", {"conversations.json": CLAUDE, "memories.json": KNOWN_OF_PERSON})
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "out")
    names = [
        [getattr(record, "memory", getattr(record, "session", None)) for record in read(place)]
        for place in (path, tmp_path / "out")
    ]
    ids = [[getattr(item, "id", item) for item in found] for found in names]
    assert ids[0] == ids[1]


@pytest.mark.parametrize(
    "name",
    ["../conversations.json", "/conversations.json", "a/../conversations.json", "..\\conversations.json",
     "C:conversations.json", "a/b/c/conversations.json", "a//conversations.json", "a\n/conversations.json"],
)  # fmt: skip
def test_names_that_lead_out_or_lie_deep_are_left_out(tmp_path: Path, name: str) -> None:
    path = pack(tmp_path / "x.zip", {name: CHATGPT, "ok.json": []})
    assert [member.entry for member in members(path)] == ["ok.json"]
    with pytest.raises(InputError, match=r"holds no conversations\.json"):
        find_stores(str(path))


def test_a_link_in_a_zip_is_left_out(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("conversations.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    assert members(tmp_path / "x.zip") == []


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_a_file_may_take_more_room_in_its_zip_than_the_names_of_all_files(
    tmp_path: Path, packing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chats = [{**CHATGPT[0], "conversation_id": f"c-{number}"} for number in range(300)]
    path = pack(tmp_path / "x.zip", {"conversations.json": chats}, packing=packing)
    monkeypatch.setattr(zipped, "MOST_DIRECTORY_BYTES", 200)
    assert len(said(read(path))) == 300


def test_the_names_in_a_zip_are_not_read_anew_for_each_file_that_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"{number}/{name}.json": b"{}" for number in range(40) for name in ("conversations", "memories")}
    path = pack(tmp_path / "x.zip", files)
    opened: list[str] = []

    class Counted(zipfile.ZipFile):
        def __init__(self, file: io.BufferedReader) -> None:
            opened.append(path.name)
            super().__init__(file)

    monkeypatch.setattr(zipfile, "ZipFile", Counted)
    with pytest.raises(InputError, match=r"holds no conversations\.json"):
        find_stores(str(path))
    assert 0 < len(opened) < 20


def test_zips_in_a_zip_are_told_and_never_read(tmp_path: Path) -> None:
    inner = pack(tmp_path / "inner.zip", {"conversations.json": CHATGPT}).read_bytes()
    with pytest.raises(InputError, match=r"holds other zips, which are not read: 'batch/inner\.zip'"):
        find_stores(str(pack(tmp_path / "outer.zip", {"batch/inner.zip": inner})))
    both = pack(tmp_path / "both.zip", {"conversations.json": CHATGPT, "attached.zip": inner})
    assert [record.text for record in read(both) if isinstance(record, Remark)] == ["a zip inside of the zip, not read"]
    for name in ("chatgpt", "claude"):
        with pytest.raises(InputError, match="holds other zips"):
            find_stores(str(tmp_path / "outer.zip"), format_name=name)


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    bomb = b'[{"mapping": "' + b"a" * 30_000_000
    path = pack(tmp_path / "bomb.zip", {"conversations.json": bomb})
    (member,) = members(path)
    with pytest.raises(Unfit, match="200 times as large"):
        read_member(member, at_most=1 << 30)
    with pytest.raises(Unfit, match="larger than 1,000 bytes"):
        read_member(member, at_most=1_000)


def test_a_file_that_is_larger_than_it_says_is_not_believed(tmp_path: Path) -> None:
    path = pack(tmp_path / "lie.zip", {"conversations.json": CHATGPT}, packing=zipfile.ZIP_STORED)
    said_size = struct.pack("<I", len(json.dumps(CHATGPT)))
    path.write_bytes(path.read_bytes().replace(said_size, struct.pack("<I", 10)))
    (member,) = members(path)
    with pytest.raises(Unfit, match="damaged"):
        read_member(member, at_most=1 << 20)


def test_more_files_than_an_export_has_are_refused_before_they_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = pack(tmp_path / "x.zip", {f"{number}.json": b"" for number in range(30)})
    monkeypatch.setattr(zipped, "MOST_ENTRIES", 29)
    with pytest.raises(InputError, match=r"x\.zip cannot be read: 30 files in a zip; the limit is 29"):
        find_stores(str(path))
    monkeypatch.setattr(zipped, "MOST_ENTRIES", 30)
    monkeypatch.setattr(zipped, "MOST_DIRECTORY_BYTES", 100)
    with pytest.raises(InputError, match="more than 100 bytes of names"):
        find_stores(str(path))


@pytest.mark.parametrize("cut", [10, 60, 100])
def test_a_damaged_zip_is_told(tmp_path: Path, cut: int) -> None:
    path = pack(tmp_path / "x.zip", {"conversations.json": CHATGPT})
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(InputError, match=r"x\.zip cannot be read: damaged"):
        find_stores(str(path))


def test_damage_to_what_is_packed_is_told(tmp_path: Path) -> None:
    chats = [{**CHATGPT[0], "conversation_id": f"c-{number}"} for number in range(2_000)]
    path = pack(tmp_path / "x.zip", {"conversations.json": chats})
    content = bytearray(path.read_bytes())
    content[-400:-300] = b"\xff" * 100
    path.write_bytes(content)
    assert [record.reason for record in read(path) if isinstance(record, Unreadable)] == ["damaged in the zip"]


def test_a_locked_file_is_told_by_its_reason(tmp_path: Path) -> None:
    path = pack(tmp_path / "x.zip", {"conversations.json": CHATGPT})
    content = bytearray(path.read_bytes())
    for mark, flags_at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + flags_at] |= 1
    path.write_bytes(content)
    (member,) = members(path)
    with pytest.raises(Unfit, match="locked with a password"):
        read_member(member, at_most=1 << 20)


def test_a_member_that_went_away_is_unfit(tmp_path: Path) -> None:
    path = pack(tmp_path / "x.zip", {"conversations.json": CHATGPT})
    (member,) = members(path)
    gone = Member(archive=path, entry="other.json", size=1, changed=member.changed)
    with pytest.raises(Unfit, match="no longer"):
        read_member(gone, at_most=10)
