"""The rows of prompts and what is captured from each."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from backstory.domain.capture import capture
from tests.captures import cpu_s, kept

CASES = Path(__file__).parents[3].parent / "shared" / "cases" / "capture-triggers.jsonl"
EXTENDED_SHARE = 0.95


def load_cases() -> list[dict[str, Any]]:
    if not CASES.exists():
        pytest.skip(f"no case file at {CASES}")
    return [json.loads(line) for line in CASES.read_text(encoding="ascii").splitlines()]


def case_text(case: dict[str, Any]) -> str:
    return str(case["text"]) if "text" in case else "".join(part["s"] * part["n"] for part in case["text_gen"])


def comparable(content: str) -> str:
    """As the rows are compared: composed, trimmed, less one final mark; private regions masked as storage does."""
    masked = re.sub(r"(?is)<private>.*?(?:</private>|\Z)", "[private]", unicodedata.normalize("NFC", content).strip())
    return masked[:-1] if masked.endswith((".", "!", "。", "！", ",", ";")) else masked


def passes(case: dict[str, Any]) -> bool:
    found = [comparable(content) for content in kept(case_text(case))]
    return any(found == [comparable(text) for text in wanted] for wanted in (case["captures"], *case.get("accept", ())))


def test_every_core_case_holds() -> None:
    assert [case["id"] for case in load_cases() if case["tier"] == "core" and not passes(case)] == []


def test_nearly_all_extended_cases_hold() -> None:
    results = {case["id"]: passes(case) for case in load_cases() if case["tier"] == "extended"}
    failed = [name for name, passed in results.items() if not passed]
    assert len(failed) <= (1 - EXTENDED_SHARE) * len(results), failed


def test_timed_cases_stay_within_their_limit() -> None:
    for case in load_cases():
        if "max_ms" in case:
            text = case_text(case)
            took_ms = cpu_s(lambda text=text: capture(text)) * 1000  # type: ignore[misc]
            assert took_ms < 3 * case["max_ms"], case["id"]  # thrice: CPU time doubles on a machine shared with others
