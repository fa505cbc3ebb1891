"""Looking up in real repositories whether what memories name is still there."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import anyio

from backstory.adapters.code_anchors import GitCodeAnchors
from tests.integration.anchored_shops import ALL_THERE, APRIL, CART, FEBRUARY, JANUARY, MARCH, Shop, look, reasons
from tests.integration.anchored_shops import shop as shop


def test_what_is_there_is_not_doubted(shop: Shop) -> None:
    assert reasons(shop.folder, ALL_THERE) == []
    assert reasons(shop.folder / "src", ALL_THERE) == []  # from a folder inside


def test_a_deleted_file_is_gone_since_the_day_of_its_deletion(shop: Shop) -> None:
    shop.git("rm", "-q", "src/cart.py")
    shop.commit(at=MARCH)
    assert reasons(shop.folder, "Prices are rounded in src/cart.py") == ["src/cart.py is gone since 2026-03-02"]
    assert reasons(shop.folder, "Prices are rounded in cart.py") == ["cart.py is gone since 2026-03-02"]


def test_a_deleted_folder_is_gone(shop: Shop) -> None:
    shop.git("rm", "-qr", "src/legacy")
    shop.commit(at=MARCH)
    assert reasons(shop.folder, "taxes are in src/legacy/") == ["src/legacy/ is gone since 2026-03-02"]
    assert reasons(shop.folder, "taxes are in legacy/") == ["legacy/ is gone since 2026-03-02"]


def test_a_folder_with_nothing_left_in_it_but_what_git_ignores_is_gone(shop: Shop) -> None:
    shop.write(".gitignore", "*.pyc\n")
    shop.write("src/legacy/tax.pyc", "x")
    shop.git("rm", "-qr", "src/legacy")
    shop.commit(at=MARCH)
    assert (shop.folder / "src/legacy").is_dir()
    assert reasons(shop.folder, "taxes are in src/legacy/") == ["src/legacy/ is gone since 2026-03-02"]


def test_a_path_with_brackets_is_taken_to_the_letter(shop: Shop) -> None:
    shop.git("rm", "-q", "--", ":(literal)app/[id]/page.tsx")
    shop.commit(at=MARCH)
    assert reasons(shop.folder, "see app/[id]/page.tsx") == ["app/[id]/page.tsx is gone since 2026-03-02"]


def test_a_renamed_file_says_where_it_is_now_even_after_a_second_move(shop: Shop) -> None:
    shop.git("mv", "src/cart.py", "src/basket.py")
    shop.commit(at=MARCH)
    moved = "src/cart.py is gone since 2026-03-02, moved to src/basket.py"
    assert reasons(shop.folder, "Prices are rounded in src/cart.py") == [moved]
    shop.write("shop/x.txt", "x")
    shop.git("mv", "src/basket.py", "shop/basket.py")
    shop.commit(at=APRIL)
    moved = "src/cart.py is gone since 2026-03-02, moved to shop/basket.py"
    assert reasons(shop.folder, "Prices are rounded in src/cart.py") == [moved]


def test_what_is_deleted_or_moved_without_a_commit_counts(shop: Shop) -> None:
    (shop.folder / "src/cart.py").unlink()
    assert reasons(shop.folder, "see src/cart.py") == ["src/cart.py is gone"]
    shop.write("src/basket.py", CART)
    assert reasons(shop.folder, "see src/cart.py") == ["src/cart.py is gone, moved to src/basket.py"]
    shop.git("add", "-A")
    assert reasons(shop.folder, "see src/cart.py") == ["src/cart.py is gone, moved to src/basket.py"]


def test_a_file_that_came_back_is_there(shop: Shop) -> None:
    shop.git("rm", "-q", "src/cart.py")
    shop.commit(at=MARCH)
    shop.write("src/cart.py", CART)
    assert reasons(shop.folder, "see src/cart.py") == []


def test_a_file_of_another_repository_was_never_here(shop: Shop) -> None:
    assert reasons(shop.folder, "the client is in web/src/client.ts and uses CartClient and --watch-all") == []


def test_a_file_that_git_ignores_is_not_gone(shop: Shop) -> None:
    shop.write("dist/app.js", "x")
    shop.commit(at=JANUARY)
    shop.git("rm", "-q", "dist/app.js")
    shop.write(".gitignore", "dist/\n")
    shop.commit(at=MARCH)
    assert reasons(shop.folder, "the bundle is dist/app.js") == []


def test_a_memory_made_after_the_deletion_is_doubted_unless_it_says_so_itself(shop: Shop) -> None:
    shop.git("rm", "-q", "src/cart.py")
    shop.commit(at=MARCH)
    assert reasons(shop.folder, "Totals are in src/cart.py", at=APRIL) == ["src/cart.py is gone since 2026-03-02"]
    assert reasons(shop.folder, "src/cart.py was removed, do not bring it back", at=APRIL) == []


def test_a_name_that_left_the_code_is_gone_since_the_commit_that_took_it(shop: Shop) -> None:
    shop.write("src/cart.py", "MAX_LINES = 40\n")
    shop.commit(at=MARCH)
    gone = "apply_discount is no longer in the code since 2026-03-02"
    assert reasons(shop.folder, "apply_discount() rounds down, MAX_LINES is 40") == [gone]


def test_a_name_that_is_taken_out_without_a_commit_is_gone(shop: Shop) -> None:
    shop.write("src/cart.py", "MAX_LINES = 40\n")
    assert reasons(shop.folder, "apply_discount() rounds down") == ["apply_discount is no longer in the code"]


def test_a_name_in_a_file_that_is_not_tracked_yet_is_there(shop: Shop) -> None:
    shop.write("src/cart.py", "")
    shop.write("src/new.py", CART)
    assert reasons(shop.folder, "apply_discount() rounds down") == []


def test_a_name_that_was_not_there_when_the_memory_was_made_is_not_gone(shop: Shop) -> None:
    shop.write("src/cart.py", "")
    shop.commit(at=MARCH)
    assert reasons(shop.folder, "apply_discount() rounds down", at=APRIL) == []


def test_a_memory_from_before_the_first_commit_is_held_against_that(shop: Shop) -> None:
    shop.write("src/cart.py", "")
    shop.commit(at=MARCH)
    gone = "apply_discount is no longer in the code since 2026-03-02"
    assert reasons(shop.folder, "apply_discount() rounds down", at=JANUARY - timedelta(days=90)) == [gone]


def test_a_memory_and_the_commits_of_one_second_are_taken_in_the_order_that_fits(shop: Shop) -> None:
    shop.write("src/cart.py", "")
    shop.commit(at=JANUARY)
    gone = "apply_discount is no longer in the code"
    assert [text[: len(gone)] for text in reasons(shop.folder, "apply_discount() rounds", at=JANUARY)] == [gone]


def test_a_name_that_moved_to_another_file_is_told_where_a_memory_says_the_file(shop: Shop) -> None:
    shop.write("src/cart.py", "from pricing import *\n")
    shop.write("tests/test_discount.py", "from pricing import apply_discount\n")
    shop.write("src/pricing.py", CART)
    shop.commit(at=MARCH)
    moved = "apply_discount is no longer in src/cart.py but in src/pricing.py"
    assert reasons(shop.folder, "`apply_discount` in src/cart.py rounds down") == [moved]
    assert reasons(shop.folder, "src/cart.py::apply_discount rounds down") == [moved]
    assert reasons(shop.folder, "apply_discount rounds down") == []


def test_a_flag_counts_only_where_it_was_this_programs_own(shop: Shop) -> None:
    shop.write("src/cli.py", "pass\n")
    shop.commit(at=MARCH)
    assert reasons(shop.folder, "--dry-run prints only") == ["--dry-run is no longer in the code since 2026-03-02"]
    shop.write("src/cli.go", 'flag.Bool("dry-run", false, "")\n')
    assert reasons(shop.folder, "--dry-run prints only") == []


def test_a_commit_is_off_every_branch_after_it_was_rewritten(shop: Shop) -> None:
    shop.write("a.txt", "a")
    commit = shop.commit(at=FEBRUARY)
    assert reasons(shop.folder, f"fixed in commit {commit[:9]}") == []
    shop.git("commit", "-q", "--amend", "-m", "other", at=MARCH)
    assert reasons(shop.folder, f"fixed in {commit[:9]} or 1234567abc") == [
        f"commit {commit[:9]} is on no branch any more"
    ]
    shop.git("tag", "kept", commit)
    assert reasons(shop.folder, f"fixed in {commit[:9]}") == []


def test_a_branch_that_never_had_the_file_does_not_doubt_it(shop: Shop) -> None:
    shop.git("checkout", "-q", "-b", "feature")
    shop.write("src/gift.py", "def wrap_gift(): ...\n")
    shop.commit(at=FEBRUARY)
    text = "gifts are wrapped by wrap_gift in src/gift.py"
    shop.git("checkout", "-q", "main")
    assert reasons(shop.folder, text, at=MARCH) == []
    shop.git("merge", "-q", "--no-ff", "-m", "merge", "feature", at=MARCH)
    shop.git("rm", "-q", "src/gift.py")
    shop.commit(at=APRIL)
    gone = ["src/gift.py is gone since 2026-04-01", "wrap_gift is no longer in the code since 2026-04-01"]
    assert reasons(shop.folder, text, at=FEBRUARY + timedelta(days=1)) == gone


def test_a_shallow_clone_says_what_it_cannot_tell_and_doubts_nothing_older(shop: Shop, tmp_path: Path) -> None:
    shop.git("rm", "-q", "src/cart.py")
    shop.commit(at=MARCH)
    clone = tmp_path / "clone"
    shop.git("clone", "-q", "--depth", "1", f"file://{shop.folder}", str(clone))
    looked = look(clone, "src/cart.py has apply_discount, see commit 1234567abc")
    assert looked.findings == {}
    assert looked.cannot is None
    assert "shallow" in looked.notes[0]


def test_without_git_and_without_commits_it_says_that_it_cannot_look(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    looked = look(plain, "src/cart.py")
    assert "not in a git repository" in (looked.cannot or "")
    assert len(looked.undecided) == 1
    new = Shop(tmp_path / "new")
    assert "no commit yet" in (look(new.folder, "src/cart.py").cannot or "")
    bare = tmp_path / "bare.git"
    new.commit(at=JANUARY)
    new.git("clone", "-q", "--bare", str(new.folder), str(bare))
    assert "bare" in (look(bare, "src/cart.py").cannot or "")


def test_a_file_of_a_submodule_is_there_while_it_is_checked_out_and_never_gone(shop: Shop, tmp_path: Path) -> None:
    library = Shop(tmp_path / "library")
    library.write("round.c", "int round_down;\n")
    library.commit(at=JANUARY)
    shop.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library.folder), "vendor/round")
    shop.commit(at=JANUARY)
    text = "rounding is in vendor/round/round.c"
    assert reasons(shop.folder, text) == []
    shop.git("submodule", "deinit", "-q", "-f", "vendor/round")
    assert reasons(shop.folder, text) == []
    shop.git("rm", "-q", "vendor/round")
    shop.commit(at=MARCH)
    assert reasons(shop.folder, "see vendor/round/") == ["vendor/round/ is gone since 2026-03-02"]


def test_a_worktree_and_a_sparse_checkout_are_looked_at_as_they_are(shop: Shop, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shop.git("worktree", "add", "-q", "-b", "side", str(tree))
    (tree / "src/cart.py").unlink()
    assert reasons(tree, "see src/cart.py") == ["src/cart.py is gone"]
    assert reasons(shop.folder, "see src/cart.py") == []
    shop.git("sparse-checkout", "set", "--no-cone", "/app/")
    assert not (shop.folder / "src/cart.py").exists()
    assert reasons(shop.folder, "see src/cart.py") == []


def test_the_head_is_none_outside_a_repository(shop: Shop, tmp_path: Path) -> None:
    assert anyio.run(GitCodeAnchors().head, shop.folder) == shop.git("rev-parse", "HEAD")
    assert anyio.run(GitCodeAnchors().head, tmp_path) is None
