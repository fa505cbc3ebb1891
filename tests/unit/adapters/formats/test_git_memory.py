"""Stores of opencode-plugin-git-memory: a memory for each record wherever it stands, and every file as it was."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from backstory.adapters.formats.git_memory.writer import GitMemoryWriter
from backstory.codecs.logfmt import parse_lines
from backstory.domain.history import Action, Author, Change, Edit
from backstory.domain.ids import ChangeId
from backstory.domain.interchange import ForeignMemory, ForeignRecord, Keepsake, Remark, Unreadable
from backstory.domain.memory import Kind, Memory, Sensitivity, forget
from backstory.domain.provenance import Origin
from backstory.entrypoints.drive import drive
from backstory.ports.formats import Exported, ReadLimits
from backstory.testing.fakes import ulid
from tests.stores import open_file
from tests.unit.adapters.formats.exchange import Exchange, contents, sample

FOLDER = ".opencode/memory"
AGENT, TEAM = "refs/memory/agent", "refs/memory/team"
PUMP = (
    'ts=2026-04-02T07:00:00.000Z type=decision scope=pump content="Two \\"quiet\\" pumps\\nnot one" issue=#4 tags=a,b'
)
TAR = 'ts=2026-04-02T07:30:00.000Z type=pattern scope="boat house" content="Tar C:\\\\keel in May" tags="two words"'
EMPTY = 'ts=2026-04-03T06:00:00.000Z type=context scope=x content=""'
GONE = (
    "ts=2026-04-05T09:00:00.000Z action=deleted original_ts=2026-04-01T09:00:00.000Z type=learning scope=oars"
    ' content="Ash oars" reason="sold \\"all\\""'
)
FILES = {"2026-04-02.logfmt": f"{PUMP}\n{TAR}\n", "2026-04-03.logfmt": f"{EMPTY}\n", "deletions.logfmt": f"{GONE}\n"}
CREW = {"2026-04-04.logfmt": 'ts=2026-04-04T10:00:00.000Z type=preference scope=crew content="Tea at four"\n'}


def git(folder: Path, *arguments: str, data: str | None = None) -> str:
    who = ["-c", "user.name=Somebody", "-c", "user.email=who@example.org"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, input=data, capture_output=True, text=True, check=True)
    return done.stdout.rstrip("\n")


def commit(folder: Path, ref: str, files: Mapping[str, str], *, at: str = FOLDER) -> None:
    """A commit with these files on a ref, as plumbing makes it."""
    lines = [
        f"100644 blob {git(folder, 'hash-object', '-w', '--stdin', data=text)}\t{name}" for name, text in files.items()
    ]
    tree = git(folder, "mktree", data="\n".join(lines))
    for name in reversed(at.split("/")):
        tree = git(folder, "mktree", data=f"040000 tree {tree}\t{name}")
    git(folder, "update-ref", ref, git(folder, "commit-tree", tree, "-m", "memory: add"))


def files_on(folder: Path, ref: str) -> dict[str, str]:
    names = git(folder, "ls-tree", "-r", "-z", "--name-only", ref).split("\0")
    return {name.removeprefix(f"{FOLDER}/"): git(folder, "show", f"{ref}:{name}") + "\n" for name in names if name}


@pytest.fixture
def harbour(tmp_path: Path) -> Path:
    """A repository with two refs of memories."""
    folder = tmp_path / "harbour"
    folder.mkdir()
    git(folder, "init", "-q")
    commit(folder, AGENT, FILES)
    commit(folder, TEAM, CREW)
    return folder


@pytest.fixture
def exchange() -> Exchange:
    return Exchange("git-memory")


def bundle(repository: Path, name: str = "all.bundle") -> Path:
    place = repository.parent / "store"
    place.mkdir(exist_ok=True)
    git(repository, "bundle", "create", "-q", str(place / name), AGENT, TEAM)
    return place


def unbundled(place: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "unbundled"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "fetch", "-q", str(place), "refs/memory/*:refs/memory/*")
    return folder


def exported(place: Path, name: str, *lines: str) -> None:
    """An export of the product's, in the form that its name says."""
    records = [line.record for line in parse_lines("\n".join(lines)) if line.record is not None]
    told = [
        {"ts": r.ts, "type": r.type, "scope": r.scope, "content": r.content, **({"issue": r.issue} if r.issue else {}),
         **({"tags": list(r.tags)} if r.tags else {})}
        for r in records
    ]  # fmt: skip
    text = "\n".join(lines)
    if name.endswith(".json"):
        text = json.dumps(told, indent=2, ensure_ascii=False)
    elif name.endswith(".jsonl"):
        text = "\n".join(json.dumps(one, separators=(",", ":"), ensure_ascii=False) for one in told)
    (place / name).write_text(text, encoding="utf-8")


def of(kind: type[ForeignRecord], records: list[ForeignRecord]) -> list[Any]:
    return [record for record in records if isinstance(record, kind)]


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


# --- the ancestor -----------------------------------------------------------------------------------------------------

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


# --- damaged and hostile ----------------------------------------------------------------------------------------------


def test_lines_that_are_no_records_stay_and_those_that_look_like_some_are_told_of(
    exchange: Exchange, harbour: Path, tmp_path: Path
) -> None:
    rumour = "ts=2026-04-09T00:00:00.000Z type=rumour scope=x content=y"
    odd = f"# a remark\n{rumour}\nts=soon type=context scope=x content=z\n"
    commit(harbour, AGENT, {**FILES, "2026-04-09.logfmt": odd})
    records = exchange.records(bundle(harbour))
    assert sorted(record.reason for record in of(Unreadable, records)) == ["the time is 'soon'", "the type is 'rumour'"]
    exchange.bring_in(harbour.parent / "store")
    exchange.take_out(tmp_path / "out")
    told = files_on(unbundled(tmp_path / "out" / "all.bundle", tmp_path), AGENT)
    assert told["2026-04-09.logfmt"].splitlines()[:2] == odd.splitlines()[:2]


@pytest.mark.parametrize(
    "text",
    [
        '[{"ts":"2026-01-01","type":"context","scope":"x","content":[' + "[" * 10_000,
        '[{"ts":"2026-01-01","type":"context","scope":7,"content":"z"}, 5, null, {}]',
        '[{"ts":"2026-01-01","type":"context","scope":"x"}',
    ],
)
def test_an_export_that_is_damaged_is_told_of(exchange: Exchange, tmp_path: Path, text: str) -> None:
    (tmp_path / "export.json").write_text(text)
    records = exchange.records(tmp_path)
    assert of(Unreadable, records)
    assert not of(ForeignMemory, records)


def test_a_bad_line_of_an_export_does_not_stop_the_others(exchange: Exchange, tmp_path: Path) -> None:
    exported(tmp_path, "export.jsonl", PUMP, TAR)
    lines = (tmp_path / "export.jsonl").read_text().split("\n")
    (tmp_path / "export.jsonl").write_text("\n".join([lines[0], "{", '{"ts": []}', "[" * 5_000, lines[1]]))
    exchange.bring_in(tmp_path)
    assert len(exchange.memories()) == 2
    assert len(of(Unreadable, exchange.records(tmp_path))) == 3


def test_a_text_that_is_not_utf8_is_told_of(exchange: Exchange, tmp_path: Path) -> None:
    (tmp_path / "export.logfmt").write_bytes(PUMP.encode() + b"\xff\xfe\n")
    assert [record.reason for record in of(Unreadable, exchange.records(tmp_path))] == ["not a text in UTF-8"]


def test_a_bundle_that_is_cut_off_is_told_of(exchange: Exchange, harbour: Path) -> None:
    place = bundle(harbour)
    whole = (place / "all.bundle").read_bytes()
    for size in (30, 200, len(whole) - 30):
        (place / "all.bundle").write_bytes(whole[:size])
        records = exchange.records(place)
        assert len(of(Unreadable, records)) == 1
        assert not of(ForeignMemory, records)


def test_too_large_a_file_on_a_ref_is_left_out_unread(exchange: Exchange, harbour: Path) -> None:
    commit(harbour, AGENT, {**FILES, "2026-04-10.logfmt": "# " + "x" * 200_000})
    records = exchange.records(harbour, limits=ReadLimits(file_bytes=100_000))
    assert [record.reason for record in of(Unreadable, records)] == ["larger than 100,000 bytes"]
    assert len(of(ForeignMemory, records)) == 3


def test_links_and_folders_on_a_ref_are_passed_over(exchange: Exchange, harbour: Path, tmp_path: Path) -> None:
    blob = git(harbour, "hash-object", "-w", "--stdin", data="/etc/passwd")
    lines = git(harbour, "hash-object", "-w", "--stdin", data=f"{PUMP}\n")
    inner = git(harbour, "mktree", data=f"100644 blob {lines}\t2026-04-02.logfmt")
    entries = [f"120000 blob {blob}\t2026-04-01.logfmt", f"040000 tree {inner}\tdeep.logfmt",
               f"100644 blob {lines}\t$(touch ran).logfmt"]  # fmt: skip
    tree = git(harbour, "mktree", data="\n".join(entries))
    for name in ("memory", ".opencode"):
        tree = git(harbour, "mktree", data=f"040000 tree {tree}\t{name}")
    git(harbour, "update-ref", AGENT, git(harbour, "commit-tree", tree, "-m", "x"))
    assert [record.memory.namespace for record in of(ForeignMemory, exchange.records(harbour))] == ["team"]


def test_nothing_in_a_repository_is_run_and_nothing_is_fetched(
    exchange: Exchange, harbour: Path, tmp_path: Path
) -> None:
    marker = tmp_path / "ran"
    run = f"touch {marker}"
    for name in ("core.fsmonitor", "core.pager", "core.sshCommand", "diff.external", "remote.origin.uploadpack"):
        git(harbour, "config", name, run)
    git(harbour, "config", "remote.origin.url", f"ext::sh -c {run}")
    git(harbour, "config", "remote.origin.promisor", "true")
    git(harbour, "config", "protocol.ext.allow", "always")
    git(harbour, "config", "extensions.partialClone", "origin")
    missing = f"100644 blob {'1' * 40}\t2026-04-07.logfmt"
    tree = git(harbour, "mktree", "--missing", data=missing)
    for name in ("memory", ".opencode"):
        tree = git(harbour, "mktree", "--missing", data=f"040000 tree {tree}\t{name}")
    (harbour / ".git" / "refs" / "memory" / "lost").write_text(
        git(harbour, "hash-object", "-t", "commit", "-w", "--stdin",
            data=f"tree {tree}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nx\n") + "\n"
    )  # fmt: skip
    exchange.records(harbour)
    assert not marker.exists()


def test_a_git_file_that_names_somebody_elses_repository_is_not_followed(
    exchange: Exchange, harbour: Path, tmp_path: Path
) -> None:
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / ".git").write_text(f"gitdir: {harbour / '.git'}\n")
    assert exchange.found(trap) == []
    (tmp_path / "linked").symlink_to(harbour / ".git")
    (trap / ".git").unlink()
    (trap / ".git").symlink_to(harbour / ".git")
    assert exchange.found(trap) == []


def test_a_further_worktree_of_a_repository_finds_it(exchange: Exchange, harbour: Path, tmp_path: Path) -> None:
    git(harbour, "commit", "-q", "--allow-empty", "-m", "start")
    git(harbour, "worktree", "add", "-q", str(tmp_path / "beside"))
    assert len(of(ForeignMemory, exchange.records(tmp_path / "beside"))) == 3


def test_a_keepsake_that_points_outside_writes_nothing_there(tmp_path: Path) -> None:
    told = {"kind": "export", "source": "../evil", "ref": "", "path": "../evil", "form": "logfmt", "ends": "",
            "lines": [{"text": "x"}]}  # fmt: skip
    others = [
        {**told, "kind": "bundle", "source": "a.bundle", "ref": "refs/heads/main", "path": "a.logfmt"},
        {**told, "kind": "files", "source": FOLDER, "path": "../../evil.logfmt"},
        {**told, "kind": "export", "source": ".git/config", "path": ".git/config"},
        {**told, "form": 5},
        {},
    ]
    kept = [Keepsake(format="git-memory", store="", key=f"file:{n}", text=json.dumps(one))
            for n, one in enumerate([told, *others])]  # fmt: skip
    GitMemoryWriter().write(Exported(label="", memories=[], sessions=[], projects={}, keepsakes=kept), tmp_path / "out")
    assert contents(tmp_path) == {"out/export.jsonl": b""} or contents(tmp_path) == {}


def test_neither_a_kept_line_that_is_no_json_nor_a_file_told_twice_stops_an_export(tmp_path: Path) -> None:
    told = {"kind": "export", "source": "export.json", "ref": "", "path": "export.json", "form": "json", "ends": "",
            "lines": [{"text": "x"}]}  # fmt: skip
    kept = [Keepsake(format="git-memory", store="", key=f"file:export.json:{end}", text=json.dumps(told))
            for end in ("export.json", "again")]  # fmt: skip
    GitMemoryWriter().write(Exported(label="", memories=[], sessions=[], projects={}, keepsakes=kept), tmp_path / "out")
    assert json.loads((tmp_path / "out" / "export.json").read_text()) == []


def write(exchange: Exchange, *edits: Edit) -> None:
    change = Change(
        id=ChangeId(ulid(len(exchange.memories()) + 40, series=8)), at=exchange.clock.now(), author=Author.USER,
        action=Action.UPDATE, edits=edits,
    )  # fmt: skip
    drive(exchange.backend.memories.commit(change))


# --- the older product's own samples ----------------------------------------------------------------------------------


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
