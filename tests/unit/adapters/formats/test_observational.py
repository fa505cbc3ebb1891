"""Stores of opencode-observational-memory: in as sessions with their notes, out again byte for byte."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from backstory.adapters.formats.observational.writer import ObservationalWriter
from backstory.bootstrap import App
from backstory.config import Settings
from backstory.domain.conversation import Role
from backstory.domain.digest import DigestUpdate, SessionDigest
from backstory.domain.digest_plan import Listed, replacement
from backstory.domain.ids import MessageId, SessionId
from backstory.domain.interchange import (
    ForeignDigest,
    ForeignRecord,
    ForeignSession,
    Keepsake,
    Remark,
    Unreadable,
)
from backstory.domain.observation_cursor import IMPORTED, cursor_of
from backstory.domain.scope import Viewer
from backstory.entrypoints.drive import drive
from backstory.entrypoints.tools import Call, Tool, run_tool
from backstory.entrypoints.tools.om_observations import OM_OBSERVATIONS
from backstory.entrypoints.tools.om_status import OM_STATUS
from backstory.ports.formats import Exported, ReadLimits
from tests.stores import open_file
from tests.unit.adapters.formats.exchange import PERSON, Exchange, contents, sample

PIER = SessionId("ses_pier0001")
STATE: dict[str, Any] = {
    "sessionId": PIER,
    "observations": "Date: Apr 3, 2026\n* 🔴 (07:10) The boat is called “Möwe”\n* 🟢 (07:12) tide table read",
    "observationTokens": 41,
    "lastObservedMessageId": "msg_p12",
    "lastObservedMessageAt": 1775200320000,
    "currentTask": "Primary: oil the winch",
    "suggestedResponse": "Say which oil",
    "lastCycleAt": 1775200400000,
    "lastCycleReason": "idle",
    "lastCursorMode": "id",
    "tailMessagesBeforePrune": 12,
    "observeTriggered": True,
    "prunedMessagesCount": 9,
    "updatedAt": 1775200400123,
}


def pier(folder: Path, text: str | None = None, *, name: str = PIER, **fields: Any) -> Path:
    """A store with one state; ``fields`` change it, ``text`` stands in its place."""
    states = folder / ".opencode" / "om-state"
    states.mkdir(parents=True, exist_ok=True)
    told = {key: value for key, value in {**STATE, **fields}.items() if value is not None}
    whole = json.dumps(told, indent=2, ensure_ascii=False) + "\n"
    (states / f"{name}.json").write_text(whole if text is None else text, encoding="utf-8", errors="surrogatepass")
    return folder


@pytest.fixture
def exchange() -> Exchange:
    return Exchange("observational")


def digest(exchange: Exchange, session: str = PIER) -> SessionDigest:
    found = drive(exchange.backend.digests.digest(SessionId(session)))
    assert found is not None
    return found


def answer(exchange: Exchange, tool: Tool, session: str) -> str:
    app = App(Settings(), exchange.backend, None, no_embedder="not in this test")
    call = Call(app=app, viewer=Viewer(project=PERSON.project, session=PERSON.session), tool=tool.name)
    return anyio.run(run_tool, tool, {"session_id": session}, call).text


def of(kind: type[ForeignRecord], records: list[ForeignRecord]) -> list[Any]:
    return [record for record in records if isinstance(record, kind)]


def test_a_state_comes_in_as_a_session_with_its_notes(exchange: Exchange, tmp_path: Path) -> None:
    report = exchange.bring_in(pier(tmp_path))
    assert (report.new.sessions, report.new.observations, report.new.messages) == (1, 1, 0)
    known = digest(exchange)
    assert {piece.made_by for piece in known.pieces} == {IMPORTED}
    assert [piece.text for piece in known.pieces] == [STATE["observations"]]
    assert (known.state.current_task, known.state.suggested_response) == (STATE["currentTask"], "Say which oil")
    cursor = cursor_of(known)
    assert cursor.message == "msg_p12"
    assert cursor.at == datetime(2026, 4, 3, 7, 12, tzinfo=UTC)


def test_an_export_of_what_was_not_changed_is_what_came_in(exchange: Exchange, tmp_path: Path) -> None:
    store = pier(tmp_path / "in")
    pier(store, name="ses_pier0002", sessionId="ses_pier0002", observations="", currentTask=None)
    pier(store, name="ses_pier0003", sessionId="ses_pier0003", futureField={"a": [1, {}, []]}, lastCycleAt=None)
    (store / ".opencode" / "om-config.json").write_text('{\n  "agents": ["build"]\n}')
    exchange.bring_in(store)
    exchange.take_out(tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")


def test_a_second_import_brings_nothing(exchange: Exchange, tmp_path: Path) -> None:
    exchange.bring_in(pier(tmp_path))
    again = exchange.bring_in(tmp_path)
    assert again.imported == 0
    assert not again.conflicts


def test_notes_that_went_on_here_are_written_as_they_are_now(exchange: Exchange, tmp_path: Path) -> None:
    exchange.bring_in(pier(tmp_path / "in", futureField=1))
    known = digest(exchange)
    later = replace(known.pieces[0], id="obs0_002", text="Date: Apr 4, 2026\n* 🟢 (08:00) oiled", start=13, end=20,
                    sources=(MessageId("msg_p20"),), made_by="scripted:1")  # fmt: skip
    drive(exchange.backend.digests.apply(DigestUpdate(state=known.state, added=(later,))))
    exchange.take_out(tmp_path / "out")
    told = json.loads((tmp_path / "out" / ".opencode" / "om-state" / f"{PIER}.json").read_text())
    assert told["observations"] == f"{STATE['observations']}\n\n{later.text}"
    assert (told["lastObservedMessageId"], told["futureField"]) == ("msg_p20", 1)
    assert told["observationTokens"] > 41
    assert "tailMessagesBeforePrune" not in told


def test_a_request_of_a_session_that_goes_on_loses_no_message(exchange: Exchange, tmp_path: Path) -> None:
    exchange.bring_in(pier(tmp_path))
    known = digest(exchange)
    listed = [Listed(id=MessageId(f"msg_p{at}"), role=Role.USER if at % 2 == 0 else Role.ASSISTANT) for at in range(15)]
    assert replacement(listed, known.active(), known) is None


@pytest.mark.parametrize(
    "text",
    [
        '{\n  "sessionId": "ses_pier0001",\n  "observa',
        "[]",
        "null",
        "{}x",
        "[" * 100_000,
        '{"a":' * 5_000,
        "\x00",
        "\ud800",
    ],
)
def test_a_state_that_cannot_be_read_is_told_of_and_kept(exchange: Exchange, tmp_path: Path, text: str) -> None:
    pier(tmp_path / "in")
    pier(tmp_path / "in", text, name="ses_broken")
    report = exchange.bring_in(tmp_path / "in")
    assert report.refused.count == 1
    assert "ses_broken" in report.refused[0]
    assert report.new.sessions == 1
    exchange.take_out(tmp_path / "out")
    if "\x00" not in text and "\ud800" not in text:  # those are cleaned
        assert contents(tmp_path / "out") == contents(tmp_path / "in")


def test_fields_of_wrong_types_count_as_missing_and_are_told_of(exchange: Exchange, tmp_path: Path) -> None:
    text = json.dumps({
        "sessionId": 5, "observations": ["x"], "observationTokens": "many", "lastObservedMessageId": 7,
        "lastObservedMessageAt": 10**400, "currentTask": {}, "observeTriggered": 1, "updatedAt": True, "odd": "?",
    })  # fmt: skip
    pier(tmp_path / "in")
    pier(tmp_path / "in", text, name="ses_odd")
    records = exchange.records(tmp_path / "in")
    assert len(of(Remark, records)) == 2
    assert [one.digest.pieces for one in of(ForeignDigest, records) if one.digest.state.session == "ses_odd"] == [()]
    exchange.bring_in(tmp_path / "in")
    exchange.take_out(tmp_path / "out")
    told = json.loads((tmp_path / "out" / ".opencode" / "om-state" / "ses_odd.json").read_text())
    assert told == json.loads(text)


def test_times_that_are_none_do_no_harm(exchange: Exchange, tmp_path: Path) -> None:
    for number, at in enumerate([0, -5, 1e300, 4e15, 0.5]):
        pier(tmp_path, name=f"ses_t{number}", lastObservedMessageAt=at, updatedAt=at, lastCycleAt=at)
    assert exchange.bring_in(tmp_path).new.sessions == 5


def test_nothing_outside_of_the_store_is_read(exchange: Exchange, tmp_path: Path) -> None:
    pier(tmp_path / "in")
    outside = tmp_path / "outside.json"
    outside.write_text("{}")
    states = tmp_path / "in" / ".opencode" / "om-state"
    (states / "ses_linked.json").symlink_to(outside)
    (tmp_path / "in" / ".opencode" / "om-config.json").symlink_to(outside)
    os.mkfifo(states / "ses_pipe.json")
    (states / "a b.json").write_text("{}")
    records = exchange.records(tmp_path / "in")
    assert [record.session.id for record in of(ForeignSession, records)] == [PIER]
    assert [record.reason for record in of(Unreadable, records)] == [
        "a link, which is not followed", "the file's name is no session's id",
    ]  # fmt: skip


def test_a_keepsake_that_points_outside_writes_nothing_there(tmp_path: Path) -> None:
    aside = Keepsake(format="observational", store="", key="file:../../evil", text='{"text": "!"}')
    exported = Exported(label="", memories=[], sessions=[], projects={}, keepsakes=[aside])
    assert ObservationalWriter().write(exported, tmp_path / "deep" / "out").files == []


def test_too_large_a_state_is_left_out_as_a_whole(exchange: Exchange, tmp_path: Path) -> None:
    records = exchange.records(pier(tmp_path), limits=ReadLimits(record_bytes=100))
    assert [record.reason for record in of(Unreadable, records)] == ["larger than 100 bytes"]
    assert not of(ForeignSession, records)


def test_the_key_for_the_model_does_not_come_in(exchange: Exchange, tmp_path: Path) -> None:
    store = pier(tmp_path / "in")
    (store / ".opencode" / "om-config.json").write_text('{"api": {"apiKey": "plain-word-9", "baseURL": "u"}}')
    exchange.bring_in(store)
    exchange.take_out(tmp_path / "out")
    assert (tmp_path / "out" / ".opencode" / "om-config.json").read_text() == '{"api": {"apiKey": "", "baseURL": "u"}}'


def test_a_folder_of_states_is_found_under_any_name(exchange: Exchange, tmp_path: Path) -> None:
    pier(tmp_path / "in")
    (tmp_path / "in" / ".opencode" / "om-state").rename(tmp_path / "kept")
    assert [store.label for store in exchange.found(tmp_path)] == ["kept"]
    exchange.bring_in(tmp_path)
    assert digest(exchange).pieces
    assert exchange.found(tmp_path / "in") == []


# --- the older product's own samples ----------------------------------------------------------------------------------


def test_the_samples_come_in_as_their_description_says(exchange: Exchange) -> None:
    report = exchange.bring_in(sample("observational"))
    assert (report.new.sessions, report.new.observations) == (6, 6)  # five good ones, and one of wrong types
    assert report.refused.count == 1
    assert "CoRrUpT" in report.refused[0]
    odd = digest(exchange, "ses_5a2d3bacf007BaDtYpEs")
    assert [piece.text for piece in odd.pieces] == ["no session id, wrong types tolerated"]
    assert cursor_of(odd).message is None


def test_the_samples_go_out_byte_for_byte(tmp_path: Path) -> None:
    exchange = Exchange("observational", open_file(tmp_path))
    store = sample("observational/.opencode")
    exchange.bring_in(store)
    exchange.take_out(tmp_path / "out")
    theirs, ours = contents(store), contents(tmp_path / "out")
    assert len(theirs) == 8
    odd = "om-state/ses_5a2d3bacf007BaDtYpEs.json"  # somebody's hand wrote it on one line
    assert json.loads(ours.pop(odd)) == json.loads(theirs.pop(odd))
    assert ours == theirs


def test_the_tools_answer_about_the_samples(exchange: Exchange) -> None:
    exchange.bring_in(sample("observational"), trusted=True)
    told = answer(exchange, OM_OBSERVATIONS, "ses_5a2d3bacf004LmNoPqRsTuVwXy")
    assert told == sample("observational/om_observations.dump.sample.txt").read_text(encoding="utf-8").rstrip("\n")
    status = json.loads(answer(exchange, OM_STATUS, "ses_5a2d3bacf001QwErTyUiOpAsDf"))
    theirs = json.loads(sample("observational/om_status.sample.json").read_text(encoding="utf-8"))
    same = [
        "sessionId", "stateFileExists", "observationTokens", "observationsPresent", "lastObservedMessageId",
        "unobservedMessages", "unobservedMessageTokens", "lastCycleAt", "lastCycleReason", "currentTask",
        "suggestedResponse", "updatedAt",
    ]  # fmt: skip
    assert {name: status[name] for name in same} == {name: theirs[name] for name in same}
