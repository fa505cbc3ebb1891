"""Attached files in the real OpenCode with the real bridge: kept once, and still there after a restart."""

from __future__ import annotations

import base64
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from backstory.testing.opencode import wait_for
from backstory.testing.opencode_server import Server
from backstory.testing.scripted_model import ScriptedModel
from tests.e2e.installation import WORDS_ONLY, Installation

pytestmark = pytest.mark.opencode

LARGEST = "BACKSTORY_ARCHIVE_ATTACHMENT_MAX_BYTES"
PDF = "data:application/pdf;base64,"
KEPT = "SELECT hash, size, media_type FROM part_blobs ORDER BY hash"


def _pdf(size: int) -> bytes:
    return b"%PDF-1.7\n" + random.Random(size).randbytes(size - 9)


def _attach(server: Server, session: str, *contents: bytes) -> None:
    for content in contents:
        url = PDF + base64.b64encode(content).decode()
        file = {"type": "file", "mime": "application/pdf", "filename": "a.pdf", "url": url}
        server.prompt(session, "", parts=[{"type": "text", "text": "look at this"}, file])


def test_a_file_is_kept_if_it_is_not_too_large_and_stays_when_the_session_is_read_anew(
    fresh: Callable[..., Installation], scripted: ScriptedModel
) -> None:
    home = fresh(environ={**WORDS_ONLY, LARGEST: "300000"})
    kept, too_large = _pdf(299_999), _pdf(300_001)
    project: Path = home.opencode.project()
    with home.opencode.serve(cwd=project) as server:
        session = server.create_session()
        server.prompt(session, "hello")  # by its answer the bridge has said how large a file may be
        _attach(server, session, kept, too_large, kept)
        assert wait_for(lambda: len(home.rows(KEPT)) == 2, timeout_s=30)
    found = home.rows(KEPT)
    assert [(size, media) for _, size, media in found] == [(299_999, "application/pdf")] * 2
    assert home.rows("SELECT count(*) FROM blobs") == [(1,)]
    with closing(sqlite3.connect(home.database)) as raw, raw:
        raw.execute("DELETE FROM parts WHERE text = 'hello'")  # as if its event had been missed
    with home.opencode.serve(cwd=project) as server:
        server.prompt(session, "and now?")
        home.wait_for_evidence(session, "hello")  # so that OpenCode was asked for the whole session
        home.wait_for_evidence(session, "and now?")
    assert home.rows(KEPT) == found


def test_a_kept_file_outlives_a_lowered_limit(fresh: Callable[..., Installation]) -> None:
    home = fresh(environ={**WORDS_ONLY, LARGEST: "300000"})
    project: Path = home.opencode.project()
    with home.opencode.serve(cwd=project) as server:
        session = server.create_session()
        server.prompt(session, "hello")
        _attach(server, session, _pdf(200_000))
        assert wait_for(lambda: len(home.rows(KEPT)) == 1, timeout_s=30)
    found = home.rows(KEPT)
    with closing(sqlite3.connect(home.database)) as raw, raw:
        raw.execute("DELETE FROM parts WHERE text = 'hello'")  # as if its event had been missed
    with home.opencode.serve(cwd=project, environ={LARGEST: "1000"}) as server:
        server.prompt(session, "and now?")
        home.wait_for_evidence(session, "hello")
        home.wait_for_evidence(session, "and now?")
    assert home.rows(KEPT) == found
    assert home.rows("SELECT count(*) FROM blobs") == [(1,)]
    ((detail,),) = home.rows("SELECT detail FROM parts WHERE id = (SELECT part FROM part_blobs)")
    assert found[0][0] in detail, "and the part still names it"
