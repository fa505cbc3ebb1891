"""Stores of opencode-plugin-git-memory: a memory for each record wherever it stands, and every file as it was."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from backstory.adapters.formats.git_memory.writer import GitMemoryWriter
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId
from backstory.domain.interchange import ForeignMemory, Keepsake, Remark
from backstory.domain.lifecycle import forget
from backstory.domain.memory import Kind, Memory, Sensitivity
from backstory.domain.provenance import Origin
from backstory.entrypoints.drive import drive
from backstory.ports.formats import Exported
from backstory.testing.fakes import ulid
from tests.stores import open_file
from tests.unit.adapters.formats.exchange import Exchange, contents, sample
from tests.unit.adapters.formats.git_memories import (
    AGENT,
    EMPTY,
    FOLDER,
    GONE,
    PUMP,
    TAR,
    TEAM,
    bundle,
    commit,
    exported,
    files_on,
    git,
    of,
    unbundled,
)
from tests.unit.adapters.formats.git_memories import exchange as exchange
from tests.unit.adapters.formats.git_memories import harbour as harbour


def test_every_ref_is_a_namespace_and_every_record_a_memory(exchange: Exchange, harbour: Path) -> None:
    report = exchange.bring_in(bundle(harbour))
    assert (report.new.memories, report.refused.count) == (3, 0)
    by_content = {memory.content: memory for memory in exchange.memories()}
    pump = by_content['Two "quiet" pumps\nnot one']
    assert (pump.kind, pump.area, pump.issue, pump.tags) == (Kind.DECISION, "pump", "#4", ("a", "b"))
    assert (pump.namespace, pump.origin) == ("agent", Origin.IMPORTED)
    assert pump.times.learned.isoformat() == "2026-04-02T07:00:00+00:00"
    assert by_content["Tar C:\\keel in May"].area == "boat house"
    assert by_content["Tea at four"].namespace == "team"


def test_the_same_record_in_a_bundle_and_in_exports_is_one_memory(exchange: Exchange, harbour: Path) -> None:
    place = bundle(harbour)
    exported(place, "export.jsonl", PUMP, TAR, EMPTY)
    exported(place, "export.json", PUMP, TAR, EMPTY)
    exported(place, "export.logfmt", PUMP, TAR, EMPTY, GONE)
    exported(place, "later.jsonl", PUMP.replace("#4", "#5"))
    records = exchange.records(place)
    assert len(of(ForeignMemory, records)) == 3
    assert len(of(Remark, records)) == 1  # the one without text
    assert len({record.memory.id for record in of(ForeignMemory, records)}) == 3


def test_it_is_the_same_memory_wherever_it_is_imported_from(exchange: Exchange, harbour: Path) -> None:
    place = bundle(harbour)
    exchange.bring_in(place)
    exported(harbour.parent, "elsewhere.jsonl", PUMP, TAR)
    again = exchange.bring_in(harbour.parent / "elsewhere.jsonl")
    assert (again.imported, again.skipped) == (0, 2)
    assert exchange.bring_in(place).imported == 0


def test_all_files_go_out_as_they_were(exchange: Exchange, harbour: Path, tmp_path: Path) -> None:
    place = bundle(harbour)
    exported(place, "export.jsonl", PUMP, TAR, EMPTY)
    exported(place, "export.json", PUMP, TAR, EMPTY)
    exported(place, "export.logfmt", PUMP, TAR, EMPTY, GONE)
    exported(place, "later.jsonl", PUMP.replace("#4", "#5"))
    exchange.bring_in(place)
    exchange.take_out(tmp_path / "out")
    theirs, ours = contents(place), contents(tmp_path / "out")
    assert theirs.pop("all.bundle") != ours.pop("all.bundle")  # commits bear other names
    assert ours == theirs
    again = unbundled(tmp_path / "out" / "all.bundle", tmp_path)
    for ref in (AGENT, TEAM):
        assert files_on(again, ref) == files_on(harbour, ref)


def test_a_repository_is_read_and_its_memories_belong_to_it(exchange: Exchange, harbour: Path) -> None:
    records = of(ForeignMemory, exchange.records(harbour))
    assert len(records) == 3
    assert {record.place for record in records} == {str(harbour)}


def test_branches_are_read_but_only_the_products_own_are_written_back(
    exchange: Exchange, harbour: Path, tmp_path: Path
) -> None:
    line = PUMP.replace("07:00", "08:00")
    commit(harbour, "refs/heads/memory/pilot", {"2026-04-02.logfmt": f"{line}\n"})
    commit(harbour, "refs/heads/main", {"2026-04-02.logfmt": line.replace("08:00", "09:00") + "\n"})
    commit(harbour, "refs/heads/other", {"notes.md": "nothing"}, at="docs")
    exchange.bring_in(harbour)
    assert Counter(memory.namespace for memory in exchange.memories()) == {"agent": 3, "pilot": 1, "team": 1}
    exchange.take_out(tmp_path / "out")
    told = git(harbour, "bundle", "list-heads", str(tmp_path / "out" / "git-memory.bundle"))
    assert sorted(row.split()[1] for row in told.splitlines()) == ["refs/heads/memory/pilot", AGENT, TEAM]


def test_an_export_into_a_repository_puts_a_commit_on_its_refs_alone(
    exchange: Exchange, harbour: Path, tmp_path: Path
) -> None:
    exchange.bring_in(bundle(harbour))
    target = tmp_path / "target"
    target.mkdir()
    git(target, "init", "-q", "-b", "main")
    (target / "work.txt").write_text("mine")
    git(target, "add", "work.txt")
    hooks = target / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("reference-transaction", "post-commit", "pre-commit"):
        (hooks / hook).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        (hooks / hook).chmod(0o755)
    exchange.take_out(target)
    assert files_on(target, AGENT) == files_on(harbour, AGENT)
    assert files_on(target, TEAM) == files_on(harbour, TEAM)
    assert git(target, "diff", "--cached", "--name-only") == "work.txt"
    before = git(target, "rev-parse", AGENT)
    exchange.take_out(target)
    assert git(target, "rev-parse", AGENT) == before  # nothing was to be written
    assert not (tmp_path / "ran").exists()


def test_a_change_here_is_in_the_next_export(exchange: Exchange, harbour: Path, tmp_path: Path) -> None:
    exchange.bring_in(bundle(harbour))
    by_content = {memory.content: memory for memory in exchange.memories()}
    pump, tar = by_content['Two "quiet" pumps\nnot one'], by_content["Tar C:\\keel in May"]
    new = replace(
        pump, id=ulid(5, series=9), n=0, revision=0, content="Rope is coiled left", area="deck",  # type: ignore[arg-type]
        provenance=replace(pump.provenance, raw={}, origin_system=None), namespace="agent",
        times=replace(pump.times, learned=pump.times.learned + timedelta(days=30)),
    )  # fmt: skip
    edited = replace(tar, content="Tar the keel in June", tags=("new",), revision=tar.revision + 1)
    write(exchange, Edit(before=None, after=new), Edit(before=tar, after=edited))
    later = exchange.clock.now()
    gone = replace(forget(pump, now=later, reason="one pump"), revision=pump.revision + 1)
    write(exchange, Edit(before=pump, after=gone))
    exchange.take_out(tmp_path / "out")
    told = files_on(unbundled(tmp_path / "out" / "all.bundle", tmp_path), AGENT)
    assert told["2026-04-02.logfmt"] == TAR.replace("C:\\\\keel in May", "the keel in June").replace(
        '"two words"', "new"
    ) + "\n"  # fmt: skip
    assert 'content="Rope is coiled left"' in told["2026-05-02.logfmt"]
    assert told["deletions.logfmt"] == f"{GONE}\n"  # what was forgotten here leaves when a person asks for it


def test_what_was_forgotten_here_is_told_of_where_a_person_exports_that(tmp_path: Path, harbour: Path) -> None:
    exchange = Exchange("git-memory")
    records = exchange.records(bundle(harbour))
    memories = [record.memory for record in of(ForeignMemory, records)]
    at = memories[0].times.learned + timedelta(days=3)
    memories[0] = forget(memories[0], now=at, reason="one pump is enough")
    target = tmp_path / "out"
    GitMemoryWriter().write(
        Exported(label="", memories=memories, sessions=[], projects={}, keepsakes=of(Keepsake, records)), target
    )
    told = files_on(unbundled(target / "all.bundle", tmp_path), AGENT)
    assert told["2026-04-02.logfmt"] == f"{TAR}\n"
    assert told["deletions.logfmt"].splitlines() == [
        GONE,
        "ts=2026-04-05T07:00:00.000Z action=deleted original_ts=2026-04-02T07:00:00.000Z type=decision scope=pump"
        ' content="Two \\"quiet\\" pumps\\nnot one" reason="one pump is enough" issue=#4 tags=a,b',
    ]


def test_what_was_deleted_there_does_not_come_back_from_an_older_export(exchange: Exchange, harbour: Path) -> None:
    place = bundle(harbour)
    exported(place, "old.jsonl", PUMP, 'ts=2026-04-01T09:00:00.000Z type=learning scope=oars content="Ash oars"')
    exchange.bring_in(place)
    assert "Ash oars" not in {memory.content for memory in exchange.memories()}


@pytest.mark.parametrize("name", ["new.jsonl", "new.json", "new.logfmt", "new.bundle", "folder"])
def test_memories_of_our_own_go_out_in_every_form_and_come_in_again(
    exchange: Exchange, harbour: Path, tmp_path: Path, name: str
) -> None:
    records = exchange.records(bundle(harbour))
    own = [
        replace(record.memory, provenance=replace(record.memory.provenance, origin_system=None, raw={}))
        for record in of(ForeignMemory, records)
    ]
    written = GitMemoryWriter().write(Exported(label="", memories=own, sessions=[], projects={}), tmp_path / name)
    assert written.left_out == []
    assert all(path.stat().st_mode & 0o077 == 0 for path in written.files)
    back = {record.memory.content for record in of(ForeignMemory, exchange.records(tmp_path / name))}
    assert back == {memory.content for memory in own}


def test_private_memories_stay_off_refs(tmp_path: Path, exchange: Exchange, harbour: Path) -> None:
    own = [replace(r.memory, sensitivity=Sensitivity.PRIVATE, provenance=replace(r.memory.provenance, raw={}))
           for r in of(ForeignMemory, exchange.records(bundle(harbour)))]  # fmt: skip
    target = tmp_path / "bare"
    target.mkdir()
    git(target, "init", "-q", "--bare")
    written = GitMemoryWriter().write(Exported(label="", memories=own, sessions=[], projects={}), target)
    assert git(target, "for-each-ref") == ""
    assert written.left_out[0] == "3 private memories, which stay off refs"


OLD = (
    'ts=2026-01-02T03:04:05.000Z type=learning scope=disk content="raw C:\\new\\dir and \\"quotes\\"" tags=a,b\n'
    'ts=2026-01-02T03:04:06.000Z type=context scope=notes content="one\n\nthree ts=4" issue=#9\n'
)


def test_files_of_the_ancestor_come_in_and_go_out_as_they_are(exchange: Exchange, tmp_path: Path) -> None:
    folder = tmp_path / "in" / FOLDER
    folder.mkdir(parents=True)
    (folder / "2026-01-02.logfmt").write_text(OLD)
    exchange.bring_in(tmp_path / "in")
    assert {memory.content for memory in exchange.memories()} == {'raw C:\\new\\dir and "quotes"', "one\n\nthree ts=4"}
    exchange.take_out(tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")


def write(exchange: Exchange, *edits: Edit) -> None:
    change = Change(
        id=ChangeId(ulid(len(exchange.memories()) + 40, series=8)), at=exchange.clock.now(), author=Author.USER,
        action=Action.UPDATE, edits=edits,
    )  # fmt: skip
    drive(exchange.backend.memories.commit(change))


def namespaces(memories: list[Memory]) -> Counter[str]:
    return Counter(memory.namespace for memory in memories)


def test_the_samples_come_in_each_record_once(exchange: Exchange) -> None:
    report = exchange.bring_in(sample("git-memory"))
    assert (report.new.memories, report.refused.count, report.remarks.count) == (18, 0, 1)
    assert namespaces(list(exchange.memories())) == {"agent": 17, "team": 1}
    old = {m.content for m in exchange.memories() if m.provenance.raw.get("store") == "legacy-worktree"}
    assert old == {"UNC share \\\\srv\\cache needs trailing slash", "first line\nsecond line", "Prefers 2 spaces"}


def test_the_samples_go_out_byte_for_byte_but_for_the_names_of_commits(tmp_path: Path) -> None:
    exchange = Exchange("git-memory", open_file(tmp_path))
    store = sample("git-memory")
    exchange.bring_in(store)
    exchange.take_out(tmp_path / "out")
    theirs, ours = contents(store), contents(tmp_path / "out")
    del theirs["transcript.json"], theirs["git-memory.bundle"], ours["git-memory.bundle"]
    assert len(theirs) == 5
    assert ours == theirs
    trees = []
    for number, place in enumerate((store, tmp_path / "out")):
        folder = tmp_path / str(number)
        folder.mkdir()
        again = unbundled(place / "git-memory.bundle", folder)
        trees.append([git(again, "rev-parse", f"{ref}^{{tree}}") for ref in (AGENT, TEAM)])
    assert trees[0] == trees[1]
