"""Stores of opencode-plugin-git-memory that are damaged or hostile: what is whole comes in, and nothing is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backstory.adapters.formats.git_memory.writer import GitMemoryWriter
from backstory.domain.interchange import ForeignMemory, Keepsake, Unreadable
from backstory.ports.formats import Exported, ReadLimits
from tests.unit.adapters.formats.exchange import Exchange, contents
from tests.unit.adapters.formats.git_memories import (
    AGENT,
    FILES,
    FOLDER,
    PUMP,
    TAR,
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
