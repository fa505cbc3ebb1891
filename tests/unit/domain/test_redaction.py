from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from backstory.domain.echo import strip_injected
from backstory.domain.redaction import is_fully_private, redact_secrets, strip_private

CASES = Path(__file__).parents[3].parent / "shared" / "cases"
MAX_SECONDS = 3.0  # for 1 MB; some 0.3 s, and thrice that on a slow machine that others use too
MAX_GROWTH = 8.0  # of the time, for four times the text: twice what linear work needs


def rows(name: str) -> list[dict[str, object]]:
    path = CASES / name
    if not path.is_file():
        pytest.skip(f"the shared cases are not here: {path.name}")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def fails(row: dict[str, object]) -> bool:
    parts, secret, vanish, survive = (row.get(key, []) for key in _KEYS)
    assert isinstance(parts, list)
    assert isinstance(secret, list)
    assert isinstance(vanish, list)
    assert isinstance(survive, list)
    text = "".join(parts)
    result = redact_secrets(text).text
    if row["expect"] == "keep":
        return result != text
    gone = ["".join(secret), *(secret[index] for index in vanish)]
    return any(part in result for part in gone) or any(part not in result for part in survive)


_KEYS = ("text_parts", "secret_parts", "vanish_parts", "must_survive")


def test_every_shared_row_of_secrets_holds() -> None:
    assert [row["id"] for row in rows("secrets.jsonl") if fails(row)] == []


def test_every_shared_row_of_private_passages_holds() -> None:
    for row in rows("private-tags.jsonl"):
        text = str(row["text"])
        assert strip_private(text) == row["expect_stored"], row["id"]
        assert is_fully_private(text) is row["expect_fully_private"], row["id"]


def test_several_secrets_are_named_in_the_order_they_stand() -> None:
    text = "password=brook9walnut then " + "gh" + "p_" + "Ab3" * 12 + " then redis://:w4lnut@cache.invalid"
    result = redact_secrets(text)
    assert result.secrets == ("password", "github-token", "password")
    assert (
        result.text
        == "password=[secret:password] then [secret:github-token] then redis://:[secret:password]@cache.invalid"
    )


def test_a_token_under_a_name_is_named_after_its_maker() -> None:
    assert redact_secrets("token=" + "gh" + "p_" + "Ab3" * 12).secrets == ("github-token",)


def test_text_without_secrets_comes_back_as_the_same_text() -> None:
    text = "Deploys go out on Tuesday.\n\n\tRollback: `make rollback`.\r\n"
    assert redact_secrets(text).text is text


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("a <private>b <private>c</private> d</private> e", "a [private] e"),
        ("a <Private reason='hr'>b</pRiVaTe > c", "a [private] c"),
        ("a < private >b< / private > c", "a [private] c"),
        ("a <private>b</private></private> c", "a [private] c"),
        ("a <private>b <private>c</private> d", "a [private]"),
        ("```\n<private>b</private>\n```", "```\n[private]\n```"),
        ("between `<private>` and `</private>`", "between `<private>` and `</private>`"),
        ("a `<private>` b </private> c", "a `[private] c"),
        ("a `<private>b</private>` c", "a `[private]` c"),
        ("List<privateKey> <privates>x</privates>", "List<privateKey> <privates>x</privates>"),
        ("a <pri</private>vate>b", "a [private]"),
        ("a <private\nx>b\n</private>\nc", "a [private]\nc"),
    ],
)
def test_private_passages_are_masked_in_every_spelling(text: str, stored: str) -> None:
    assert strip_private(text) == stored
    assert strip_private(stored) == stored


@pytest.mark.parametrize(
    ("text", "private"),
    [
        ("<private>a</private>, <private>b</private>.", True),
        ("- <private>a</private>\n- <private>b", True),
        ("<private>a</private> b", False),
        ("", False),
        ("...", False),
    ],
)
def test_fully_private_means_that_no_word_stands_outside(text: str, private: bool) -> None:
    assert is_fully_private(text) is private


HOSTILE = {
    "one letter": "a",
    "base64": "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo",
    "assignments": "password=",
    "open passages": "<private>",
    "closed passages": "</private>",
    "torn tags": "<private ",
    "key fences": "-----BEGIN ",
    "key starts": "-----BEGIN " + "PRIVATE" + " KEY-----",
    "key ends": "-----END " + "PRIVATE" + " KEY-----",
    "key lines": "A" * 64 + "\n",
    "double quotes": '"',
    "single quotes": "'",
    "open quotes": "password='x\n",
    "backslashes": "\\",
    "url starts": "://",
    "torn tokens": "eyJ-",
    "angle brackets": "<",
    "blanks": " ",
    "cookies": "cookie: ",
    "injected tags": "<memory>",
}


def seconds(text: str) -> float:
    """Processor time of all three sieves, so that other work on the machine counts little."""
    start = time.process_time()
    strip_private(text)
    redact_secrets(text)
    strip_injected(text)
    return time.process_time() - start


@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_of_hostile_text_takes_little_and_grows_in_step(name: str) -> None:
    unit = HOSTILE[name]
    quarter = unit * (250_000 // len(unit))
    tries = []
    for _ in range(3):
        first, whole = seconds(quarter), seconds(quarter * 4)
        tries.append((first, whole))
        if whole < MAX_SECONDS and whole < MAX_GROWTH * first + 0.1:
            return
    pytest.fail(f"seconds for 250 kB and 1 MB, three tries: {tries}")
