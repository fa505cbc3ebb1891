"""Addresses, keys and waiting times of model servers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from backstory.adapters.server_address import authorization, pause_seconds, read_address, retry_after_seconds
from backstory.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "base_url", "shown", "is_loopback", "verify"),
    [
        (" https://llm.example.net/v1/ ", "https://llm.example.net/v1", "llm.example.net", False, True),
        ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1", "127.0.0.1:11434", True, False),
        ("https://localhost:8443", "https://localhost:8443", "localhost:8443", True, True),
        ("http://localhost.example.net", "http://localhost.example.net", "localhost.example.net", False, True),
    ],
)
def test_an_address_is_read(url: str, base_url: str, shown: str, is_loopback: bool, verify: bool) -> None:
    address = read_address(url)
    assert (address.base_url, address.shown) == (base_url, shown)
    assert (address.is_loopback, address.verify) == (is_loopback, verify)


@pytest.mark.parametrize(
    "url",
    ["", "llm.example.net", "ftp://a", "http://", "http://a:port", "http://[::1", "https://a/?key=hunter2",
     "https://a/#x"],
)  # fmt: skip
def test_an_address_that_cannot_be_used_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_address(url)
    assert "hunter2" not in str(caught.value)
    assert caught.value.option == "base_url"


def test_a_user_name_or_password_is_noticed_and_not_shown() -> None:
    address = read_address("https://me:hunter2@llm.example.net/v1")
    assert (address.names_user, address.shown) == (True, "llm.example.net")
    assert not read_address("https://llm.example.net/v1").names_user


def test_a_key_is_sent_as_a_bearer_token() -> None:
    assert authorization(" k-1 \n") == {"authorization": "Bearer k-1"}
    assert authorization(None) == authorization("  ") == {}


@pytest.mark.parametrize("key", ["a\nb", "schlüssel", "a\x00"])
def test_a_key_that_no_header_can_carry_is_refused_without_repeating_it(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        authorization(key)
    assert key not in str(caught.value)


def test_pauses_double_and_differ() -> None:
    first, third = [pause_seconds(1) for _ in range(50)], [pause_seconds(3) for _ in range(50)]
    assert 0.125 <= min(first) < max(first) <= 0.375
    assert 0.5 <= min(third) < max(third) <= 1.5


def test_a_wish_to_wait_is_read_in_both_forms() -> None:
    assert retry_after_seconds("2.5") == 2.5
    assert retry_after_seconds(format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)) == 0.0
    soon = retry_after_seconds(format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True))
    assert soon is not None
    assert 55 < soon <= 60


@pytest.mark.parametrize(
    "value", [None, "", "soon", "-5", "1e9", "Thu, 99 Foo 2020", f"Mon, 01 Jan 2024 00:00:00 +{9**20}"]
)
def test_a_wish_that_cannot_be_read_is_none(value: str | None) -> None:
    assert retry_after_seconds(value) is None
