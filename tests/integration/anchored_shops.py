"""A small repository whose commits have the dates that are asked for, and what is found of a memory in it.

Test modules take the fixture by its name.
"""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from backstory.adapters.code_anchors import GitCodeAnchors
from backstory.domain.anchor_findings import Claim, Finding, reason
from backstory.domain.anchors import anchors
from backstory.ports.code import Looked

JANUARY = datetime(2026, 1, 10, 12, tzinfo=UTC)
FEBRUARY = datetime(2026, 2, 10, 12, tzinfo=UTC)
MARCH = datetime(2026, 3, 2, 12, tzinfo=UTC)
APRIL = datetime(2026, 4, 1, 12, tzinfo=UTC)
CART = "MAX_LINES = 40\n\n\ndef apply_discount(total):\n    return total * 9 // 10\n"
ARGUMENTS = 'parser.add_argument("--dry-run", action="store_true")\nrun(["git", "push", "--force"])\n'
ALL_THERE = (
    "src/cart.py has apply_discount() and MAX_LINES, cart.py too, src/legacy/ and `legacy/tax.py`; `--dry-run` prints;"
    " the page is app/[id]/page.tsx"
)


class Shop:
    """A small repository whose commits have the dates that are asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, at: datetime = JANUARY) -> str:
        env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "Ada"),
            **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "ada@example.com"),
            **dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), at.isoformat()),
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        command = ["git", "-C", str(self.folder), *arguments]
        return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout.strip()

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def commit(self, *, at: datetime) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "work", at=at)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """In January: a cart with a discount, a command line, a folder of old code, a page with brackets in its path."""
    shop = Shop(tmp_path / "shop")
    shop.write("src/cart.py", CART)
    shop.write("src/cli.py", ARGUMENTS)
    shop.write("src/legacy/tax.py", "RATE_TABLE = {}\n")
    shop.write("app/[id]/page.tsx", "export function ProductPage() {}\n")
    shop.commit(at=JANUARY)
    return shop


def look(folder: Path, text: str, *, at: datetime = FEBRUARY, within: timedelta = timedelta(seconds=30)) -> Looked:
    claims = [Claim(anchor=anchor, at=at) for anchor in anchors(text) if not anchor.said_gone]

    async def ask() -> Looked:
        return await GitCodeAnchors().look(folder, claims, within=within)

    return anyio.run(ask)


def reasons(folder: Path, text: str, *, at: datetime = FEBRUARY) -> list[str]:
    looked = look(folder, text, at=at)
    assert looked.cannot is None
    assert not looked.undecided
    return [said(claim, finding) for claim, finding in looked.findings.items()]


def said(claim: Claim, finding: Finding) -> str:
    return reason(claim.anchor, finding)
