"""By what a hook knows that a server has its store."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstory.bootstrap.store_address import store_address
from backstory.config import Settings
from backstory.config.stores_and_models import StoreSettings

POSTGRES = "postgresql://ann@db.example/orchard"


def address(folder: Path, **store: str) -> str:
    return store_address(Settings(store=StoreSettings(**store), home=folder / "home"), folder)  # type: ignore[arg-type]


def test_stores_in_different_places_have_different_addresses(tmp_path: Path) -> None:
    (tmp_path / "two").mkdir()
    addresses = [
        address(tmp_path),
        address(tmp_path / "two"),
        address(tmp_path, url=f"sqlite://{tmp_path}/other.db"),
        address(tmp_path, url="memory"),
        address(tmp_path, url="git"),
        address(tmp_path / "two", url="git"),
        address(tmp_path, url="git", ref="refs/memory/other"),
        address(tmp_path, url=POSTGRES),
        address(tmp_path, url=POSTGRES, schema="other"),
        address(tmp_path, url=POSTGRES, tenant="other"),
        address(tmp_path, url=POSTGRES.replace("ann", "bob")),
        address(tmp_path, url=POSTGRES.replace("orchard", "meadow")),
    ]
    assert len(set(addresses)) == len(addresses)


def test_the_same_store_has_one_address_whatever_leads_to_it(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert address(tmp_path / "link") == address(tmp_path)
    assert address(tmp_path, url=f"sqlite://{tmp_path}/home/backstory.db") == address(tmp_path)
    assert address(tmp_path / "link", url="git") == address(tmp_path, url="git")


@pytest.mark.parametrize("secret", ["postgresql://ann:4711@db.example/orchard", f"{POSTGRES}?password=4711"])
def test_no_password_goes_into_an_address(tmp_path: Path, secret: str) -> None:
    assert address(tmp_path, url=secret) == address(tmp_path, url=POSTGRES)
    assert address(tmp_path, url=POSTGRES, password="4711") == address(tmp_path, url=POSTGRES)
