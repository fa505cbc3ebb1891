"""``check --code`` on a real repository and a real store, and every made-up memory of the traps against theirs."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner

from backstory.adapters.code_anchors import GitCodeAnchors
from backstory.domain.anchor_findings import Claim
from backstory.domain.anchors import anchors
from backstory.entrypoints.cli.main import cli
from backstory.errors import InputError
from bench.stale_rows import ROWS, make_repository
from tests.integration.anchored_shops import JANUARY, MARCH, Shop

FEBRUARY = JANUARY + timedelta(days=31)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv("BACKSTORY_STORE", f"sqlite://{tmp_path / 'memory.db'}")
    monkeypatch.setenv("BACKSTORY_NO_BACKGROUND", "1")
    shop = Shop(tmp_path / "shop")
    shop.write("src/cart.py", "def apply_discount(): ...\n")
    shop.commit(at=JANUARY)
    return shop


def run(shop: Shop, *arguments: str) -> tuple[int, str]:
    """The exit code and what was printed."""
    given = ["--project", str(shop.folder), *arguments]
    done = CliRunner().invoke(cli, given, catch_exceptions=False, standalone_mode=False)
    return done.return_value or 0, done.output


def test_what_the_code_left_behind_is_listed_marked_and_let_go_again(shop: Shop) -> None:
    run(shop, "remember", "Totals are rounded in src/cart.py")
    run(shop, "remember", "Reviews take two days")
    assert run(shop, "check", "--code")[0] == 0
    shop.git("rm", "-q", "src/cart.py")
    shop.commit(at=MARCH)
    code, listed = run(shop, "check", "--code", "--dry-run")
    assert code == 1
    assert "src/cart.py is gone since 2026-03-02" in listed
    assert "check:" not in run(shop, "show", "1")[1]
    told = json.loads(run(shop, "check", "--code", "--json")[1])
    assert [(each["n"], each["anchor"]) for each in told["doubted"]] == [(1, "src/cart.py")]
    assert (told["ok"], told["memories"], told["anchored"]) == (False, 2, 1)
    for command in (("show", "1"), ("recall", "where are totals rounded"), ("list",)):
        assert "src/cart.py is gone since 2026-03-02" in run(shop, *command)[1]
    assert json.loads(run(shop, "show", "1", "--json")[1])["doubt"]["anchor"] == "src/cart.py"
    shop.write("src/cart.py", "")
    assert run(shop, "check", "--code")[0] == 0
    assert "is gone" not in run(shop, "list")[1]


def test_an_agents_shell_is_shown_nothing_that_stays_on_this_machine(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(shop, "remember", "The gate code is in src/cart.py", "--local-only")
    shop.git("rm", "-q", "src/cart.py")
    shop.commit(at=MARCH)
    assert "gate code" in run(shop, "check", "--code")[1]
    monkeypatch.setenv("BACKSTORY_CALLER", "agent")
    for more in ((), ("--json",)):
        assert "gate code" not in run(shop, "check", "--code", *more)[1]


def test_options_of_the_store_do_not_go_with_the_code(shop: Shop) -> None:
    for arguments in (("--code", "--full"), ("--dry-run",)):
        with pytest.raises(InputError):
            run(shop, "check", *arguments)


def test_outside_git_it_says_that_it_cannot_look(shop: Shop, tmp_path: Path) -> None:
    plain = Shop.__new__(Shop)
    plain.folder = tmp_path / "plain"
    plain.folder.mkdir()
    run(plain, "remember", "Totals are rounded in src/cart.py")
    told = json.loads(run(plain, "check", "--code", "--json")[1])
    assert "not in a git repository" in told["cannot_look"]
    assert told["undecided"] == 1


def test_of_the_traps_every_old_memory_is_doubted_and_no_new_one(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "harbour")

    async def gone(text: str) -> int:
        claims = [Claim(anchor=anchor, at=FEBRUARY) for anchor in anchors(text) if not anchor.said_gone]
        return len((await GitCodeAnchors().look(folder, claims, within=timedelta(seconds=30))).findings)

    assert [row.stale for row in ROWS if not anyio.run(gone, row.stale)] == []
    assert [row.fresh for row in ROWS if anyio.run(gone, row.fresh)] == []
