from __future__ import annotations

import json
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from backstory.adapters.tokens import EstimatedTokens
from backstory.domain.admission import (
    Admitted,
    TextLimits,
    admit,
    admit_evidence,
    admit_label,
    admit_tags,
    clean_text,
)
from backstory.domain.truncation import truncate_bytes, truncate_chars
from backstory.errors import InputError

CASES = Path(__file__).parents[3].parent / "shared" / "cases"
LIMITS = TextLimits()
TOKEN = "gh" + "p_" + "Ab3" * 12


def content(text: str) -> str:
    return admit(text, limits=LIMITS).text


def refusal(text: str, **limits: int) -> str:
    with pytest.raises(InputError) as caught:
        admit(text, limits=TextLimits(**limits))
    assert caught.value.field == "content"
    return str(caught.value)


def holds(row: dict[str, Any]) -> bool:
    """Whether a row of the shared cases holds; those for other parts (search, metadata) hold there."""
    text = row.get("text", "".join(part["s"] * part["n"] for part in row.get("text_gen", ())))
    expect = row["expect"]
    match row["op"]:
        case "store":
            return _stored(text, expect)
        case "store_tag" | "store_scope":
            return _label(text, expect)
        case "truncate":
            return _truncated(text, truncate_chars(text, row["limit"]), expect)
        case "truncate_bytes":
            return _truncated(text, truncate_bytes(text, row["limit"]), expect)
        case "count_tokens":
            return bool(expect["min"] <= EstimatedTokens().count(text) <= expect["max"])
        case "json_out" | "embed":
            return bool(json.loads(json.dumps(clean_text(text))) == clean_text(text).encode().decode())
        case other:
            raise AssertionError(f"unknown op {other}")


def _stored(text: str, expect: dict[str, Any]) -> bool:
    try:
        stored = content(text)
    except InputError as error:
        return bool(expect.get("reject_or_empty")) or (
            expect.get("rejected") == "size" and str(len(text)) in str(error)
        )
    return (
        "rejected" not in expect
        and (not expect.get("exact") or stored == text)
        and stored in expect.get("accept", [stored])
        and all(part in stored for part in expect.get("must_contain", ()))
        and not any(part in stored for part in expect.get("must_not_contain", ()))
    )


def _label(text: str, expect: dict[str, Any]) -> bool:
    try:
        return admit_label(text, field="tags", max_chars=64) in expect["accept"]
    except InputError:
        return bool(expect["or_reject"])


def _truncated(text: str, cut: str, expect: dict[str, Any]) -> bool:
    encoded = cut.encode("utf-8")  # raises where a surrogate was torn
    fits = len(cut) <= expect.get("max_chars", len(cut)) and len(encoded) <= expect.get("max_bytes", len(encoded))
    return fits and text.startswith(cut) and not cut.endswith("\u200d")


def test_every_shared_row_of_text_hygiene_holds() -> None:
    path = CASES / "text-hygiene.jsonl"
    if not path.is_file():
        pytest.skip("the shared cases are not here")
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    assert [row["id"] for row in rows if not holds(row)] == []


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("keep\ttabs\nand\r\nlines", "keep\ttabs\nand\r\nlines"),
        ("\x00a\x01b\x08c\x7fd", "abcd"),
        ("\x1b[1;38;5;208mwarm\x1b[0m", "warm"),
        ("\x1b]8;;https://heron.invalid\x1b\\link\x1b]8;;\x07", "link"),
        ("\x1b]0;title\x07body", "body"),
        ("\x1b(Bplain\x1b", "plain"),
        ("\x9b31mred\x9b0m", "red"),
        ("\x1b\x00[31mred", "red"),
        ("\x1b]never closed", "never closed"),
        ("\x1b[<0;12;7Mclick", "click"),
        ("\x1b <b \x1b[<b \x1b]<b\x07", " <b <b <b"),
        ("\ud83d\ude80 up", "🚀 up"),
        ("\ude80\ud83d", "\ufffd\ufffd"),
        ("שלום \u202ahi\u202c 👩\u200d🚀", "שלום \u202ahi\u202c 👩\u200d🚀"),
    ],
)
def test_cleaning_removes_what_terminals_and_databases_choke_on(text: str, clean: str) -> None:
    assert clean_text(text) == clean
    assert clean_text(clean) == clean


def test_content_keeps_its_form_and_its_blanks() -> None:
    text = "  Cafe\u0301 opens at 9\n\n    indented\n"
    assert admit(text, limits=LIMITS) == Admitted(text=text, secrets=(), private_removed=False)


def test_secrets_and_private_passages_are_masked_and_reported() -> None:
    admitted = admit(f"CI pushes with {TOKEN}; <private>for \x00 Mara</private>", limits=LIMITS)
    assert admitted == Admitted(
        text="CI pushes with [secret:github-token]; [private]", secrets=("github-token",), private_removed=True
    )


def test_a_secret_inside_a_private_passage_is_only_private() -> None:
    assert admit(f"see <private>{TOKEN}</private>", limits=LIMITS).secrets == ()


@pytest.mark.parametrize(
    "tag",
    [
        "<pri\x00vate>",
        "<pri\x1b[0mvate>",
        "\x1b<private>",
        "\x1b[<private>",
        "\x1b]<private>\x07",
        "\x1b[<p\x00rivate>",
    ],
)
def test_control_characters_never_hide_a_private_tag(tag: str) -> None:
    assert "heron" not in content(f"see {tag}heron</private>")


def test_refusals_name_the_size_and_the_limit() -> None:
    assert refusal("x" * 4001) == "content is 4001 characters; the limit is 4000"
    assert refusal(" abc ", min_chars=10) == "content is 3 characters; the minimum is 10"
    assert refusal("") == "content is empty"
    assert refusal("\x00\x1b[0m") == "content is empty"
    assert refusal(" \n\t") == "content is blank: 3 characters of white space only"
    assert refusal("</private>") == "content is empty"
    assert refusal("<private>heron</private>") == "content is all private; nothing of it is stored"


def test_the_limit_itself_is_allowed_and_counts_what_is_stored() -> None:
    assert len(content("x" * 4000)) == 4000
    assert content("x" * 3000 + "<private>" + "y" * 3000 + "</private>").endswith("x[private]")


def test_a_mask_longer_than_its_secret_still_counts() -> None:
    assert refusal("password=ab1!", max_chars=13) == "content is 26 characters; the limit is 13"


def test_refusals_name_the_field_as_the_caller_wrote_it() -> None:
    with pytest.raises(InputError, match=r"^reason is empty$") as caught:
        admit("", field="reason", limits=LIMITS)
    assert caught.value.field == "reason"


@pytest.mark.parametrize("text", ["", " ", "\x00", "\ud800", "<private>x", "x" * 100_000])
def test_evidence_is_never_refused(text: str) -> None:
    assert isinstance(admit_evidence(text), str)


def test_evidence_is_cleaned_and_masked_like_content() -> None:
    assert admit_evidence(f"\x1b[1m{TOKEN}\x1b[0m <private>x</private>") == "[secret:github-token] [private]"


def test_labels_are_trimmed_and_composed() -> None:
    label = admit_label("  cafe\u0301/Küche ", field="area", max_chars=10)
    assert label == "café/Küche"
    assert unicodedata.is_normalized("NFC", label)


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("", "area is empty"),
        ("   ", "area is empty"),
        ("a\nb", "area contains U\\+000A"),
        ("a\u2028b", "area contains U\\+2028"),
        ("a\x00b", "area contains U\\+0000"),
        ("a\ud83d", "area contains U\\+D83D"),
        ("a\u202eb", "area contains U\\+202E"),
        ("x" * 65, "area is 65 characters; the limit is 64"),
        (TOKEN, r"area contains a secret \(github-token\)"),
        ("<private>x</private>", "area contains a private tag"),
    ],
)
def test_unfit_labels_are_refused_by_reason(label: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        admit_label(label, field="area", max_chars=64)
    assert caught.value.field == "area"
    assert TOKEN not in str(caught.value)


def test_tags_keep_their_order_and_lose_their_doubles() -> None:
    assert admit_tags(["deploy", " ci ", "deploy", "cafe\u0301", "café"]) == ("deploy", "ci", "café")
    assert admit_tags([]) == ()


def test_the_eleventh_tag_is_one_too_many() -> None:
    tags = [f"tag{number}" for number in range(11)]
    assert len(admit_tags(tags[:10])) == 10
    with pytest.raises(InputError, match="tags has 11 entries; the limit is 10"):
        admit_tags(tags)


def test_very_many_tags_are_refused_at_once() -> None:
    began = time.process_time()
    with pytest.raises(InputError, match="tags has 50000 entries"):
        admit_tags([f"tag {number}" for number in range(50_000)])
    assert admit_tags(["one"] * 50_000) == ("one",)
    assert time.process_time() - began < 5
