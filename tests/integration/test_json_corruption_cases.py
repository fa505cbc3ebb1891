"""Every file we keep as JSON, cut off, emptied, glued and scribbled on: all starts, says so, and keeps the bytes."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from backstory.adapters.clock import SystemClock, UlidSource
from backstory.adapters.project_evidence import FolderEvidence
from backstory.adapters.stores.memory import open_memory_store
from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.codecs.jsonl import encode_lines
from backstory.config import load
from backstory.config.files import Unreadable, read_document
from backstory.domain.memory import Visibility
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import Selection
from backstory.entrypoints.drive import drive
from backstory.entrypoints.opencode.handshake import FILE as HANDSHAKE
from backstory.entrypoints.opencode.handshake import read_handshake
from backstory.entrypoints.opencode.install import installations, plan_install, plan_uninstall
from backstory.entrypoints.opencode.locations import places
from backstory.entrypoints.opencode.offline import is_seeded
from backstory.entrypoints.opencode.sidecar import FILE as SIDECAR
from backstory.entrypoints.opencode.sidecar import Sidecar
from backstory.errors import InputError, InstallError, StoreError
from backstory.services.import_report import ImportReport
from backstory.services.importing import Importing
from backstory.services.project_identity import ProjectIdentity
from backstory.services.transfer import Transfer
from backstory.testing.fakes import START, sample_memory

CASES = Path(__file__).parents[2].parent / "shared" / "cases" / "json-store-corruption.jsonl"
PERSON = Viewer(project=None, audience=Audience.PERSON, all_projects=True)
ORDINARY = Sidecar(command=("python3", "-m", "backstory"), env={}, manifest=[], deadlines_ms={})


def our_line(text: str) -> str:
    memory = sample_memory(text, visibility=Visibility.GLOBAL, project=None)
    return list(encode_lines([memory], projects={}, exported_at=START))[1]


HEADER = next(iter(encode_lines([], projects={}, exported_at=START)))
LINES = [our_line(f"note {number}") for number in (1, 2, 3)]

Case = tuple[str, bytes, tuple[str, ...], bool]
"""A name, the bytes of an export, what must be recovered, and whether the damage must be mentioned."""


def lines(*parts: str, end: str = "\n") -> bytes:
    return end.join([HEADER, *parts, ""]).encode()


OURS: list[Case] = [
    ("whole", lines(*LINES), ("note 1", "note 2", "note 3"), False),
    ("no last line end", lines(*LINES)[:-1], ("note 1", "note 2", "note 3"), False),
    ("line ends of another system", lines(*LINES, end="\r\n"), ("note 1", "note 2", "note 3"), False),
    ("a byte-order mark", b"\xef\xbb\xbf" + lines(*LINES), ("note 1", "note 2", "note 3"), False),
    ("empty lines", lines("", LINES[0], "", "", LINES[1], LINES[2], ""), ("note 1", "note 2", "note 3"), False),
    ("cut in the last line", lines(*LINES)[:-90], ("note 1", "note 2"), True),
    ("two glued", lines(LINES[0] + LINES[1], LINES[2]), ("note 1", "note 2", "note 3"), True),
    ("two glued with a blank", lines(f"{LINES[0]}  {LINES[1]}", LINES[2]), ("note 1", "note 2", "note 3"), True),
    ("glued to half a one", lines(LINES[0] + LINES[1][:50], LINES[2]), ("note 1", "note 3"), True),
    ("conflict markers", lines("<<<<<<< a", LINES[0], "=======", LINES[1], ">>>>>>> b"), ("note 1", "note 2"), True),
    ("zeros from a lost page", lines(LINES[0], "\0" * 4096, LINES[2]), ("note 1", "note 3"), True),
    ("a record that is a list", lines("[1, 2]", LINES[2]), ("note 3",), True),
    ("braces in a text", lines(our_line('look at "}{" here')), ('look at "}{" here',), False),
]  # fmt: skip

SPOILT: list[tuple[str, bytes]] = [
    ("empty", b""),
    ("an empty object", b"{}"),
    ("null", b"null"),
    ("a number", b"17"),
    ("a list", b"[[]]"),
    ("cut", ORDINARY.content()[:40]),
    ("twice", ORDINARY.content() * 2),
    ("zeros", b"\0" * 4096),
    ("not UTF-8", b'{"backstory": 1, "version": "\xff\xfe"}'),
    ("half a character", b'{"backstory": 1, "version": "\\ud800", "command": ["\\ud800"]}'),
    ("nested", b'{"backstory": ' + b"[" * 50_000),
    ("a huge number", b'{"backstory": 1, "time": ' + b"9" * 5000 + b"}"),
    ("wrong kinds", b'{"backstory": 1, "version": [], "command": {"a": 1}, "env": 3, "time": {}, "deadlines_ms": "x"}'),
    ("conflict markers", b"<<<<<<< HEAD\n" + ORDINARY.content() + b"=======\n{}\n>>>>>>> x\n"),
]


def given() -> list[dict[str, Any]]:
    if not CASES.exists():
        return []
    return [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines() if line]


def given_exports() -> list[Case]:
    """The given damage of line files, with our records in the place of theirs."""
    theirs = {
        json.dumps(record): our_line(record["text"])
        for row in given()
        if row["file"].endswith(".jsonl") and row["note"] == "whole file"
        for record in map(json.loads, base64.b64decode(row["bytes_b64"]).decode().splitlines())
    }
    cases: list[Case] = []
    for row in given():
        if row["file"].endswith(".jsonl"):
            text = base64.b64decode(row["bytes_b64"]).decode()
            for record, ours in theirs.items():
                text = text.replace(record, ours)
            expect = row["expect"]
            content = f"{HEADER}\n{text}".encode()
            cases.append((row["id"], content, tuple(expect["recovered_texts"]), expect["status_mentions_damage"]))
    return cases


def given_bytes() -> list[tuple[str, bytes]]:
    return [(row["id"], base64.b64decode(row["bytes_b64"])) for row in given()]


def load_export(content: bytes) -> tuple[ImportReport, list[str]]:
    backend = open_memory_store()
    clock, ids = SystemClock(), UlidSource()
    identity = ProjectIdentity(backend.projects, FolderEvidence(), clock=clock, ids=ids)
    importing = Importing(backend, identity, clock=clock, ids=ids, max_chars=4000)
    transfer = Transfer(backend, importing, clock=clock)
    texts = content.decode("utf-8", "surrogateescape").split("\n")
    report = drive(transfer.load(texts, PERSON, trusted=True))
    selection = Selection(viewer=PERSON, now=START)
    return report, sorted(memory.content for memory in drive(backend.memories.select(selection, limit=100)))


def refused(kind: type[Exception], work: Callable[[], object]) -> str:
    """What an error of this kind says; nothing where there is none."""
    try:
        work()
    except kind as error:
        return str(error)
    return ""


@pytest.mark.skipif(not CASES.exists(), reason="the shared cases are not here")
def test_the_given_cases_are_all_read() -> None:
    assert len(given_exports()) >= 5
    assert len(given_bytes()) == 16


@pytest.mark.parametrize(
    ("content", "recovered", "mentioned"), [row[1:] for row in [*OURS, *given_exports()]],
    ids=[row[0] for row in [*OURS, *given_exports()]],
)  # fmt: skip
def test_an_export_gives_what_is_whole_in_it_and_names_what_is_not(
    content: bytes, recovered: Sequence[str], mentioned: bool
) -> None:
    report, texts = load_export(content)
    assert texts == sorted(recovered)
    assert bool(report.refused) is mentioned


SPOILT_AND_GIVEN = [*SPOILT, *given_bytes()]


@pytest.mark.parametrize("content", [row[1] for row in SPOILT_AND_GIVEN], ids=[row[0] for row in SPOILT_AND_GIVEN])
class TestSpoilt:
    """One spoilt content in the place of each file of ours."""

    def test_a_sidecar_is_left_as_it_is_unless_it_is_certainly_ours(self, tmp_path: Path, content: bytes) -> None:
        place = places({"HOME": str(tmp_path)}, tmp_path)[0]
        place.plugins.mkdir(parents=True)
        path = place.plugins / SIDECAR
        path.write_bytes(content)
        [found] = installations([place])
        assert not found.is_ours
        assert all(isinstance(word, str) for word in found.command)
        plan_uninstall(place)
        refusal = refused(InstallError, lambda: plan_install(place, ORDINARY))
        assert str(path) in refusal or (not refusal and b'"backstory"' in content)
        assert path.read_bytes() == content

    def test_a_note_of_a_load_that_cannot_be_read_is_none(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / HANDSHAKE).write_bytes(content)
        assert read_handshake(tmp_path) is None

    def test_a_lock_file_of_npm_that_cannot_be_read_says_nothing(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "package-lock.json").write_bytes(content)
        (tmp_path / "package.json").write_bytes(content)
        (tmp_path / "node_modules").mkdir()
        assert not is_seeded(tmp_path)

    def test_settings_that_cannot_be_read_are_told_and_kept(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "config.toml"
        path.write_bytes(content)
        assert refused(Unreadable, lambda: read_document(path)) or read_document(path) == {}
        assert path.read_bytes() == content

    def test_a_store_in_whose_place_it_lies_is_refused_and_kept(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "memory.db"
        path.write_bytes(content)
        backend = open_sqlite(path)
        if content:
            with pytest.raises(StoreError):
                drive(backend.memories.history())
            assert path.read_bytes() == content
        drive(backend.memories.close())

    def test_an_export_in_whose_place_it_lies_is_refused(self, content: bytes) -> None:
        assert "export" in refused(InputError, lambda: load_export(content))


def test_settings_load_beside_spoilt_files(tmp_path: Path) -> None:
    (tmp_path / HANDSHAKE).write_bytes(b"{")
    assert load(env={"BACKSTORY_HOME": str(tmp_path)}, project_root=None).settings.data_dir == tmp_path
