"""OpenCode's history from databases of every sort: whole, quiet, and never trusted."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from backstory.adapters.formats.opencode_history.reader import OpenCodeHistory
from backstory.domain.interchange import ForeignSession, Remark
from backstory.errors import InputError
from backstory.ports.formats import FoundStore, ReadLimits
from tests.unit.adapters.formats.foreign_records import messages, sessions, unreadable
from tests.unit.adapters.formats.opencode_histories import (
    TABLES,
    T,
    add_message,
    add_session,
    data_folder,
    make_database,
    read,
    said,
)
from tests.unit.adapters.formats.opencode_histories import folder as folder


def state_of(folder: Path) -> dict[str, tuple[int, str]]:
    return {
        path.name: (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in folder.rglob("*")
        if path.is_file()
    }


# --- what is in it --------------------------------------------------------------------------------------------------


def test_sessions_come_with_their_sub_agents_messages_and_parts_in_order(folder: Path) -> None:
    with closing(make_database(folder / "opencode.db")) as database:
        add_session(database, "ses_1")
        add_session(database, "ses_2", parent="ses_1", title="look (@general subagent)")
        add_message(database, "msg_2", "ses_1", said("Hot."), at=T + 20, role="assistant", modelID="m-1")
        tool = {"type": "tool", "tool": "read", "state": {"status": "completed", "input": {"f": 1}, "output": "7"}}
        add_message(database, "msg_1", "ses_1", {"type": "step-start"}, said("How hot?"), tool, at=T + 10)
        add_message(database, "msg_3", "ses_2", said("Count them."), at=T + 30)
    records = read(folder)
    assert [(one.id, one.parent, one.directory) for one in sessions(records)] == [
        ("ses_1", None, "/work/bakery"),
        ("ses_2", "ses_1", "/work/bakery"),
    ]
    assert [record.place for record in records if isinstance(record, ForeignSession)] == ["/work/bakery"] * 2
    first, second, third = messages(records)
    assert [part.text for part in first.parts] == ["How hot?", "7"]
    assert (first.parts[1].tool, second.model, second.parts[0].text) == ("read", "m-1", "Hot.")
    assert third.parts[0].synthetic, "no person typed what a sub-agent was asked"
    assert not unreadable(records)


def test_what_we_put_there_and_asked_ourselves_is_left_out(folder: Path) -> None:
    title = "backstory-helper rerank " + "0123456789abcdef" * 2
    with closing(make_database(folder / "opencode.db")) as database:
        add_session(database, "ses_1")
        add_message(database, "msg_1", "ses_1", said("Which oven?"), {"id": "prt_backstory_1", **said("<block>")})
        add_session(database, "ses_2", title=title)
        add_message(database, "msg_2", "ses_2", said("Rank these."), agent="backstory-helper")
        add_session(database, "ses_3", title=title)
        add_message(database, "msg_3", "ses_3", said("A person went on here."))
        add_session(database, "ses_4", parent="ses_2")
    records = read(folder)
    assert [one.id for one in sessions(records)] == ["ses_1", "ses_3"]
    assert [part.text for part in messages(records)[0].parts] == ["Which oven?"]
    assert [record.text for record in records if isinstance(record, Remark)] == [
        "2 in which Backstory asked the model something: left out"
    ]


def test_only_the_history_at_home_has_the_host_of_live_sessions(folder: Path, tmp_path: Path) -> None:
    own = data_folder(tmp_path / "own")
    for place in (own, folder):
        with closing(make_database(place / "opencode.db")) as database:
            add_session(database, "ses_1")
    assert [one.host for one in sessions(read("opencode"))] == ["opencode"]
    assert [one.host for one in sessions(read(own / "opencode.db"))] == ["opencode"]
    assert [one.host for one in sessions(read(folder))] == ["import:opencode"]


def test_a_named_database_is_the_history_at_home(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCODE_DB", str(tmp_path / "named.db"))
    with closing(make_database(tmp_path / "named.db")) as database:
        add_session(database, "ses_9")
    assert [(one.id, one.host) for one in sessions(read("opencode"))] == [("ses_9", "opencode")]


def test_every_channels_database_is_found_and_other_databases_are_not(folder: Path) -> None:
    for name in ("opencode.db", "opencode-dev.db", "notes.db"):
        make_database(folder / name).close()
    found = OpenCodeHistory().find(str(folder))
    assert [store.label for store in found] == ["opencode-dev.db", "opencode.db"]
    assert OpenCodeHistory().find(str(folder / "missing")) == []


# --- quietly --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["closed", "open", "killed"])
def test_reading_changes_no_byte_beside_an_opencode_that_runs_was_killed_or_ended(folder: Path, how: str) -> None:
    database = make_database(folder / "opencode.db")
    add_session(database, "ses_1")
    add_message(database, "msg_1", "ses_1", said("hello"))
    if how == "killed":  # its log is there, the index of the log is not
        log = (folder / "opencode.db-wal").read_bytes()
        main = (folder / "opencode.db").read_bytes()
        database.close()
        (folder / "opencode.db").write_bytes(main)
        (folder / "opencode.db-wal").write_bytes(log)
    elif how == "closed":
        database.close()
    before = state_of(folder)
    assert [message.parts[0].text for message in messages(read(folder))] == ["hello"]
    after = state_of(folder)
    if how == "open":  # two connections of one process share the index of the log, of two processes they do not
        del before["opencode.db-shm"], after["opencode.db-shm"]
    assert after == before
    database.close()


def test_an_opencode_that_starts_meanwhile_is_told(folder: Path) -> None:
    with closing(make_database(folder / "opencode.db")) as database:
        add_session(database, "ses_1")
    reader = OpenCodeHistory()
    records = reader.read(reader.find(str(folder))[0], limits=ReadLimits())
    assert isinstance(next(records), ForeignSession)
    with closing(sqlite3.connect(folder / "opencode.db", isolation_level=None)) as database:
        add_session(database, "ses_2")
        assert any("started" in record.text for record in records if isinstance(record, Remark))


# --- hostile, damaged, of another version ---------------------------------------------------------------------------


def test_columns_that_are_missing_or_new_do_not_matter(folder: Path) -> None:
    tables = {
        "session": "id text PRIMARY KEY, vibe blob",
        "message": "id text PRIMARY KEY, session_id text, data text",
        "part": "id text PRIMARY KEY, message_id text, data text",
    }
    with closing(make_database(folder / "opencode.db", tables=tables)) as database:
        database.execute("INSERT INTO session VALUES ('ses_1', x'00')")
        database.execute("INSERT INTO message VALUES ('msg_1', 'ses_1', '{\"role\": \"user\"}')")
        database.execute('INSERT INTO part VALUES (\'prt_1\', \'msg_1\', \'{"type": "text", "text": "hi"}\')')
    records = read(folder)
    assert [message.parts[0].text for message in messages(records)] == ["hi"]
    assert sessions(records)[0].created_at.year == 1970


@pytest.mark.parametrize("content", [b"", b"hello", b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_database_is_refused_in_a_sentence(folder: Path, content: bytes) -> None:
    path = folder / "opencode.db"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"opencode\.db"):
        list(OpenCodeHistory().read(FoundStore(format="opencode", place=str(path)), limits=ReadLimits()))
    assert path.read_bytes() == content


def test_views_in_place_of_tables_are_not_run(folder: Path) -> None:
    tables = {name: columns for name, columns in TABLES.items() if name != "session"}
    with closing(make_database(folder / "opencode.db", tables=tables)) as database:
        endless = "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id FROM n"
        database.execute(f"CREATE VIEW session AS {endless}")
    with pytest.raises(InputError, match="kept differently"):
        list(OpenCodeHistory().read(FoundStore(format="", place=str(folder / "opencode.db")), limits=ReadLimits()))


def test_records_of_the_wrong_kind_are_told_and_stop_nothing(folder: Path) -> None:
    deep = '{"type": "tool", "state": ' + '{"a": ' * 30_000 + "1" + "}" * 30_000 + "}"
    with closing(make_database(folder / "opencode.db")) as database:
        add_session(database, "ses_1")
        add_message(database, "msg_1", "ses_1", "[not json", said("kept"), deep, b"\xff\xfe", said("x" * 500_000))
        add_message(database, "msg_2", "ses_1", said("who?"), role="prophet")
        add_message(database, "msg_3", "ses_1", said("odd"), time={"created": "soon"}, model=[1], at=T + 3)
        database.execute("INSERT INTO message VALUES ('msg\n4', 'ses_1', 0, '{}')")
        database.execute("INSERT INTO session VALUES (?, NULL, 7, 8, 'x', -1, NULL)", ("ses\x00bad",))
        database.execute("INSERT INTO session VALUES ('ses_5', 'no\nparent', 7, 8, 'x', -1, NULL)")
    records = read(folder, ReadLimits(record_bytes=400_000))
    assert [message.id for message in messages(records)] == ["msg_1", "msg_3"]
    assert [part.text for part in messages(records)[0].parts] == ["kept"]
    assert {one.id for one in sessions(records)} == {"ses_1", "ses_5"}
    told = unreadable(records)
    assert len(told) == 7
    assert any("too large: 500,0" in line for line in told)


def test_a_locked_database_is_refused_in_a_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backstory.adapters.formats.opencode_history.database.BUSY_S", 0.05)
    with closing(make_database(folder / "opencode.db")) as database:
        add_session(database, "ses_1")
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("BEGIN IMMEDIATE")
        add_session(database, "ses_2")
        store = FoundStore(format="opencode", place=str(folder / "opencode.db"))
        with pytest.raises(InputError, match="locked"):
            list(OpenCodeHistory().read(store, limits=ReadLimits()))
