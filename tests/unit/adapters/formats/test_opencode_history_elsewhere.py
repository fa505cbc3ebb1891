"""OpenCode's history where it is in no database: in the files of older versions, and on a server of this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from backstory.errors import InputError
from tests.unit.adapters.formats.foreign_records import messages, sessions, unreadable
from tests.unit.adapters.formats.opencode_histories import (
    Json,
    T,
    make_database,
    read,
    said,
)
from tests.unit.adapters.formats.opencode_histories import folder as folder


def put(path: Path, value: Json) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def old_files(folder: Path) -> Path:
    storage = folder / "storage"
    times = {"created": T, "updated": T + 1}
    put(storage / "session/p1/ses_1.json", {"id": "ses_1", "directory": "/work/bakery", "time": times})
    put(storage / "message/ses_1/msg_1.json", {"role": "user", "time": {"created": T}})
    put(storage / "part/msg_1/prt_1.json", said("from a file"))
    put(storage / "part/msg_1/prt_2.json", "{")
    put(storage / "message/ses_1/msg_2.json", "[]")
    return storage


def test_the_files_of_older_versions_are_read_where_there_is_no_database(folder: Path, tmp_path: Path) -> None:
    storage = old_files(folder)
    outside = tmp_path / "secret.json"
    put(outside, said("not part of it"))
    (storage / "part/msg_1/prt_3.json").symlink_to(outside)
    put(storage / "session/p1/ses_2.json", {"id": "../ses_1"})
    records = read(folder)
    assert [[part.text for part in message.parts] for message in messages(records)] == [["from a file"]]
    assert {one.id for one in sessions(records)} == {"ses_1", "ses_2"}
    assert len(unreadable(records)) == 2
    make_database(folder / "opencode.db").close()
    assert read(folder) == []


class _Handler(BaseHTTPRequestHandler):
    answers: dict[str, Json]

    def log_message(self, format: str, *args: object) -> None:
        """Keep standard error for the tests."""

    def do_GET(self) -> None:
        answer = self.answers.get(self.path.partition("?")[0])
        if isinstance(answer, int):
            self.send_response(answer)
            self.send_header("Location", "http://127.0.0.1:9/")
            self.end_headers()
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode())


@pytest.fixture
def server() -> Iterator[tuple[str, dict[str, Json]]]:
    answers: dict[str, Json] = {}
    made = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"answers": answers}))
    threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{made.server_address[1]}", answers
    made.shutdown()
    made.server_close()


def test_a_running_opencode_is_read_through_its_api(folder: Path, server: tuple[str, dict[str, Json]]) -> None:
    url, answers = server
    answers["/experimental/session"] = [
        {"id": "ses_2", "parentID": "ses_1", "time": {"created": T + 1}},
        {"id": "ses_1", "directory": "/work/bakery", "time": {"created": T}},
        {"id": 7},
    ]
    told = {"info": {"id": "msg_1", "role": "user", "time": {"created": T}}, "parts": [{"id": "prt_1", **said("hi")}]}
    answers["/session/ses_1/message"] = [told, "nonsense"]
    answers["/session/ses_2/message"] = 500
    records = read(url)
    assert [(one.id, one.host) for one in sessions(records)] == [
        ("ses_1", "import:opencode"),
        ("ses_2", "import:opencode"),
    ]
    assert [message.parts[0].text for message in messages(records)] == ["hi"]
    assert len(unreadable(records)) == 3


@pytest.mark.parametrize("answer", [401, 302, 404, b"<html>", {"no": "list"}])
def test_a_server_that_is_no_opencode_is_refused_in_a_sentence(
    server: tuple[str, dict[str, Json]], answer: Json
) -> None:
    url, answers = server
    answers["/experimental/session"] = answer
    with pytest.raises(InputError, match=r"127\.0\.0\.1"):
        read(url)


@pytest.mark.parametrize(
    "address", ["http://example.org:4096", "https://10.0.0.1", "http://user:word@127.0.0.1:1", "http://127.0.0.1:x"]
)
def test_no_other_machine_is_asked(address: str) -> None:
    with pytest.raises(InputError):
        read(address)
