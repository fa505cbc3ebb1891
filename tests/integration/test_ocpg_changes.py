"""What ocpg does to its database while we have it open: seen here, kept in the history, never overwritten unseen."""
# ruff: noqa: E402 - where psycopg is missing, these tests are skipped before the modules that import it

from __future__ import annotations

import contextlib
import random
import threading
import time
from dataclasses import replace

import anyio
import pytest

psycopg = pytest.importorskip("psycopg")

from backstory.domain.ids import SessionId
from backstory.domain.lifecycle import Revision
from backstory.domain.memory import Deleted, Superseded
from backstory.domain.selection import CURRENT
from backstory.errors import Conflict, NotFound, StoreBusy
from backstory.ports.store import Use
from backstory.testing.fakes import sample_change
from backstory.testing.postgres import why_there_is_none
from tests.integration.ocpg_beside import OVEN, TIMETABLES, by_row, edits
from tests.integration.ocpg_beside import made as made
from tests.integration.ocpg_beside import ocpg as ocpg
from tests.integration.ocpg_beside import server as server
from tests.integration.ocpg_databases import BAKERY, FERRY, Ocpg, decide, listed, recalled, remembered

pytestmark = pytest.mark.skipif(why_there_is_none() is not None, reason=str(why_there_is_none()))


def test_recalls_are_counted_on_both_sides_once(ocpg: Ocpg) -> None:
    app = ocpg.open()
    oven = by_row(listed(app, None))["1"]
    seen = Use(memories=(oven.id,), at=app.clock.now(), session=SessionId("ses_x"), surfaced=True)
    anyio.run(app.backend.memories.record_use, seen)
    assert ocpg.run("SELECT count(*) FROM memory_recalls WHERE memory_id = 1") == [(2,)]
    anyio.run(app.backend.memories.record_use, replace(seen, surfaced=False))
    assert ocpg.rows("access_count", "id = 1") == [(3,)]
    assert ocpg.run("SELECT session_id FROM memory_recalls WHERE memory_id = 1 ORDER BY 1")[-1] == ("ses_x",)
    ocpg.run("UPDATE memories SET access_count = access_count + 1, last_accessed_at = now() WHERE id = 1")
    ocpg.run("INSERT INTO memory_recalls (memory_id, session_id) VALUES (1, 'ses_y')")
    anyio.run(app.close)
    counters = by_row(listed(app, None))["1"].counters
    assert (counters.recalled, counters.sessions, counters.surfaced) == (4, 4, 1)
    anyio.run(app.close)
    assert by_row(listed(app, None))["1"].counters == counters
    assert by_row(listed(app, None))["1"].revision == oven.revision


def test_what_ocpg_stores_is_found_here_within_seconds(ocpg: Ocpg) -> None:
    app = ocpg.open()
    assert recalled(app, BAKERY, "sourdough") == []
    ocpg.run(
        "INSERT INTO memories (content, tags, session_id, project, memory_type) VALUES"
        f" ('The sourdough starter is fed at six.', '{{starter}}', 'ses_8', '{BAKERY}', 'project_fact')"
    )
    until = time.monotonic() + 20
    while (found := recalled(app, BAKERY, "sourdough")) == [] and time.monotonic() < until:
        time.sleep(0.2)
    assert found == ["The sourdough starter is fed at six."]
    assert recalled(app, FERRY, "sourdough") == []


def test_what_ocpg_changes_replaces_and_deletes_is_so_here_and_stays_in_the_history(ocpg: Ocpg) -> None:
    app = ocpg.open()
    before = by_row(listed(app, None))
    anyio.run(app.close)
    ocpg.run("UPDATE memories SET content = 'The oven speaks OPC UA.', updated_at = now() WHERE id = 1")
    ocpg.run("UPDATE memories SET tags = ARRAY['python', 'pydantic'] WHERE id = 3")
    ocpg.run(
        "INSERT INTO memories (content, project, memory_type) VALUES ('Timetables are published daily.',"
        f" '{FERRY}', 'project_fact')"
    )
    ocpg.run("UPDATE memories SET superseded_by = 6 WHERE id = 2")
    ocpg.run("DELETE FROM memories WHERE id = 5")
    after = by_row(listed(app, None))
    assert after["1"].content == "The oven speaks OPC UA."
    assert (after["1"].id, after["1"].n) == (before["1"].id, before["1"].n)
    assert after["3"].tags == ("python", "pydantic")
    assert isinstance(after["2"].status, Superseded)
    assert after["2"].status.by == after["6"].id
    assert isinstance(after["5"].status, Deleted)
    assert after["4"].status == replace(before["1"]).status  # nothing replaces it any more
    assert recalled(app, FERRY, "when are timetables published?") == ["Timetables are published daily."]
    history = anyio.run(lambda: app.backend.memories.history(memory=before["1"].id))
    assert [edit.before.content for edit in history[0].edits if edit.before and edit.before.n == before["1"].n] == [
        OVEN
    ]


def test_a_row_that_comes_back_is_believed_again(ocpg: Ocpg) -> None:
    app = ocpg.open()
    first = by_row(listed(app, None))
    anyio.run(app.close)
    ocpg.run("CREATE TABLE kept AS SELECT * FROM memories WHERE id = 2")
    ocpg.run("DELETE FROM memories WHERE id = 2")
    assert isinstance(by_row(listed(app, None))["2"].status, Deleted)
    anyio.run(app.close)
    ocpg.run(
        "INSERT INTO memories (id, content, tags, session_id, project, created_at, memory_type)"
        " SELECT id, content, tags, session_id, project, created_at, memory_type FROM kept"
    )
    again = by_row(listed(app, None))["2"]
    assert (again.id, again.content, again.status) == (first["2"].id, TIMETABLES, first["2"].status)


def test_another_row_under_an_old_id_is_another_memory(ocpg: Ocpg) -> None:
    app = ocpg.open()
    first = by_row(listed(app, None))["2"]
    anyio.run(app.close)
    ocpg.run("DELETE FROM memories WHERE id = 2")
    ocpg.run(f"INSERT INTO memories (id, content, project) VALUES (2, 'Tickets are sold on board.', '{FERRY}')")
    memories = [memory for memory in listed(app, None) if memory.provenance.origin_id == "2"]
    assert [(type(memory.status).__name__, memory.content) for memory in memories] == [
        ("Deleted", TIMETABLES),
        ("Active", "Tickets are sold on board."),
    ]
    assert memories[0].id == first.id != memories[1].id


def test_a_decision_on_words_that_ocpg_has_just_changed_is_refused(ocpg: Ocpg) -> None:
    app = ocpg.open()
    known = by_row(listed(app, None))["1"]
    ocpg.run("UPDATE memories SET content = 'The oven speaks OPC UA.', updated_at = now() WHERE id = 1")
    mine = replace(known, content="The oven speaks MQTT.")
    with pytest.raises(Conflict):
        anyio.run(app.backend.memories.commit, sample_change(1, *edits(known, mine)))
    assert ocpg.rows("content", "id = 1") == [("The oven speaks OPC UA.",)]
    assert by_row(listed(app, None))["1"].content == "The oven speaks OPC UA."


def test_a_recall_that_ocpg_has_just_counted_too_is_added(ocpg: Ocpg) -> None:
    app = ocpg.open()
    known = by_row(listed(app, None))["1"]
    ocpg.run("UPDATE memories SET access_count = access_count + 1 WHERE id = 1")
    use = Use(memories=(known.id,), at=app.clock.now(), session=None, surfaced=False)
    anyio.run(app.backend.memories.record_use, use)
    assert ocpg.rows("access_count", "id = 1") == [(4,)]
    assert by_row(listed(app, None))["1"].counters.recalled == 4


@pytest.mark.parametrize("later", ["ocpg", "here"])
def test_of_two_wordings_the_newer_counts_and_the_other_stays_in_the_history(ocpg: Ocpg, later: str) -> None:
    app = ocpg.open()
    known = by_row(listed(app, None))["1"]
    anyio.run(app.close)
    unlinked = ocpg.open(ocpg=False)
    decide(unlinked, BAKERY, unlinked.remember.update, f"#{known.n}", Revision(content="The oven speaks MQTT."))
    decide(unlinked, BAKERY, unlinked.remember.pin, f"#{known.n}", pinned=True)
    assert ocpg.rows("content", "id = 1") == [(OVEN,)]
    at = "now() + interval '1 minute'" if later == "ocpg" else "now() - interval '1 hour'"
    ocpg.run(f"UPDATE memories SET content = 'The oven speaks OPC UA.', updated_at = {at} WHERE id = 1")
    stands, other = "The oven speaks OPC UA.", "The oven speaks MQTT."
    if later == "here":
        stands, other = other, stands
    assert by_row(listed(app, None))["1"].content == stands
    remembered(app, BAKERY, "Anything that is written brings the rest along.")
    assert ocpg.rows("content", "id = 1") == [(stands,)]
    history = anyio.run(lambda: app.backend.memories.history(memory=known.id))
    assert other in {image.content for change in history for edit in change.edits for image in (edit.before, edit.after)
                     if image is not None}  # fmt: skip
    assert by_row(listed(app, None))["1"].pinned


def test_both_sides_agree_after_they_wrote_at_the_same_time(ocpg: Ocpg) -> None:
    app = ocpg.open()
    listed(app, None)

    def plugin() -> None:
        chance = random.Random(7)
        with psycopg.connect(ocpg.server.dsn(user="postgres", database=ocpg.name), autocommit=True) as raw:
            for step in range(80):
                ids = [id_ for (id_,) in raw.execute("SELECT id FROM memories")]
                statement, values = chance.choice(
                    [
                        ("UPDATE memories SET content = %s, updated_at = now() WHERE id = %s", (f"ocpg {step}", None)),
                        ("UPDATE memories SET access_count = access_count + 1 WHERE id = %s", (None,)),
                        ("INSERT INTO memories (content, project) VALUES (%s, %s)", (f"ocpg's {step}", BAKERY)),
                        ("UPDATE memories SET superseded_by = %s WHERE id = %s", (None, None)),
                        ("DELETE FROM memories WHERE id = %s AND id > 5", (None,)),
                    ]
                )
                with contextlib.suppress(psycopg.errors.ForeignKeyViolation):
                    raw.execute(statement, [chance.choice(ids) if value is None else value for value in values])

    writing = threading.Thread(target=plugin)
    writing.start()
    for step in range(6):
        with contextlib.suppress(Conflict, NotFound, StoreBusy):
            known = listed(app, BAKERY, states=CURRENT)[0]
            decide(app, BAKERY, app.remember.update, f"#{known.n}", Revision(content=f"ours {step}"))
            remembered(app, BAKERY, f"ours instead {step}", supersedes=f"#{known.n}")
    writing.join()
    anyio.run(app.close)
    memories = {memory.id: memory for memory in listed(app, None)}
    rows = {id_: (content, by) for id_, content, by in ocpg.rows("id, content, superseded_by")}
    linked = dict(ocpg.run("SELECT memory, ocpg_id FROM backstory.ocpg_links WHERE present"))
    assert {*linked} == {id_ for id_, memory in memories.items() if not isinstance(memory.status, Deleted)}
    for id_, row in linked.items():
        status = memories[id_].status
        by = linked[status.by] if isinstance(status, Superseded) else None
        assert rows.pop(row) == (memories[id_].content, by)
    assert rows == {}
