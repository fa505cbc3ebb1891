"""What commands change in memories: forgotten and brought back, renamed, updated, or so already."""

from __future__ import annotations

from tests.integration.shell import Shell
from tests.integration.shell import shell as shell


def test_forgetting_is_undone_by_name_and_by_default(shell: Shell) -> None:
    shell.ok("remember", "The well is deep")
    shell.ok("remember", "The barn is red")
    printed = shell.ok("forget", "1", "barn", "--reason", "moved away")
    assert "Forgotten #1" in printed
    change = printed.rpartition("backstory undo ")[2].strip()
    assert shell.json("list")["total"] == 0
    assert shell.json("list", "--forgotten")["total"] == 2
    assert "Restored #2" in shell.ok("undo", change.lower())
    assert shell.json("list")["total"] == 2
    shell.ok("pin", "1")
    assert shell.json("undo")["action"] == "undo"
    assert shell.json("show", "1")["pinned"] is False


def test_a_match_that_fits_several_is_listed_and_changes_nothing(shell: Shell) -> None:
    shell.ok("remember", "The north gate is open")
    shell.ok("remember", "The south gate is shut")
    told = shell.error("forget", "--match", "gate")
    assert (told["type"], told["exit_code"], len(told["candidates"])) == ("AmbiguousMatch", 5, 2)
    assert "#1: The north gate is open" in told["message"]
    assert shell.error("show", "gate")["exit_code"] == 5
    assert shell.json("forget", "--match", "gate", "--all", "--dry-run")["dry_run"] is True
    assert shell.json("list")["total"] == 2
    assert len(shell.json("forget", "--match", "gate", "--all")["edits"]) == 2
    assert shell.error("forget", "--match", "gate")["exit_code"] == 3


def test_a_tag_is_renamed_after_a_look_at_what_would_change(shell: Shell) -> None:
    shell.ok("remember", "Bees live behind the barn", "--tag", "beez")
    assert len(shell.json("retag", "beez", "bees", "--dry-run")["memories"]) == 1
    assert shell.json("tags") == {"tags": [{"tag": "beez", "count": 1}]}
    shell.ok("retag", "beez", "bees")
    assert shell.ok("tags") == "bees\t1\n"
    assert shell.error("retag", "beez", "wasps")["exit_code"] == 3


def test_an_update_changes_what_it_names_and_keeps_the_rest(shell: Shell) -> None:
    shell.ok("remember", "The press runs at 4 bar", "--tag", "press", "--kind", "decision")
    shell.ok("update", "press runs", "The press runs at 5 bar", "--reason", "new seals")
    memory = shell.json("show", "1")
    assert (memory["content"], memory["tags"], memory["kind"]) == ("The press runs at 5 bar", ["press"], "decision")
    assert shell.error("update", "1")["message"] == "content is empty"
    shell.ok("update", "1", "--no-tags", "--kind", "fact")
    assert shell.json("show", "1")["tags"] == []
    rows = [line.split("\t") for line in shell.ok("history", "1").splitlines()]
    assert [row[3] for row in rows] == ["update", "update", "add"]
    assert rows[1][5] == "new seals"


def test_what_is_so_already_is_no_change(shell: Shell) -> None:
    shell.ok("remember", "the port is 4000", "--pin")
    assert "already" in shell.ok("pin", "1")
    assert shell.json("update", "1", "the port is 4000")["change"] is None
    assert len(shell.json("history")["changes"]) == 1


def test_an_update_takes_expiry_and_sensitivity_back(shell: Shell) -> None:
    shell.ok("remember", "the port is 4000", "--expires", "2h", "--local-only")
    (edit,) = shell.json("update", "1", "--normal", "--no-expiry")["edits"]
    assert (edit["after"]["sensitivity"], edit["after"]["expires_at"], edit["after"]["tier"]) == (
        "normal", None, "archival",
    )  # fmt: skip
    assert shell.error("update", "1", "--normal", "--private")["exit_code"] == 2
    assert shell.error("update", "1", "--expires", "1h", "--no-expiry")["exit_code"] == 2
