"""One wording in other case is one statement; a name in other case is another name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.domain.near_duplicates import Verdict, compare
from backstory.domain.statement_form import statement_form
from backstory.domain.text import normalise

CASES = Path(__file__).parents[3].parent / "shared" / "cases" / "near-duplicates.jsonl"

ONE = (
    ("We deploy on Fridays.", "we  deploy on FRIDAYS."),
    ("NEVER DEPLOY ON FRIDAYS", "never deploy on fridays"),
    ("ASK IT BEFORE THE PATH CHANGES", "ask it before the path changes"),
    ("Sessions are signed with JOSE.", "sessions are signed with jose."),
    ("Pre-commit runs ruff.", "pre-commit runs ruff."),
    ("Don't touch Ana's branch", "don't touch ana's branch"),
    ("CI is on GitHub, not GitLab's runners", "ci is on github, not gitlab's runners"),
    ("**Never** rebase (shared) branches", "**never** rebase (Shared) branches"),
    ("A branch lives a week. A tag stays.", "a branch lives a week. a tag stays."),
    ("- A list entry", "- a list entry"),
    ("Die Straße am Cafe\u0301", "die STRASSE am Café"),
    ("Use `pnpm`, Always", "use `pnpm`, always"),
    ("ÜBER ALLES", "über alles"),
    ("日志只保留14天", "日志只保留14天"),
)

TWO = (
    ("The flag is `useLive`", "The flag is `uselive`"),
    ("the flag is useLive", "the flag is uselive"),
    ("Setup is told in `README`", "Setup is told in `readme`"),
    ("Setup is told in README", "Setup is told in readme"),
    ("The variable is PATH", "The variable is path"),
    ("The variable is $Path", "The variable is $path"),
    ("Sources are in src/User.ts", "Sources are in src/user.ts"),
    ("Sources are in README.md", "Sources are in readme.md"),
    ("Call it with -V", "Call it with -v"),
    ("Secrets are in .ENV", "Secrets are in .env"),
    ("Render <Button>", "Render <button>"),
    ("The class is _Private", "The class is _private"),
    ("The constant is MAX_RETRIES", "The constant is max_retries"),
    ("Run:\n```\nmake Build\n```", "Run:\n```\nmake build\n```"),
    ("Ask IT for access", "Ask it for access"),
    ("The link is 10Gb", "The link is 10GB"),
)


@pytest.mark.parametrize(("a", "b"), ONE, ids=[a for a, _ in ONE])
def test_words_in_other_case_are_one_wording(a: str, b: str) -> None:
    assert statement_form(a) == statement_form(b)


@pytest.mark.parametrize(("a", "b"), TWO, ids=[a for a, _ in TWO])
def test_names_in_other_case_are_two_wordings(a: str, b: str) -> None:
    assert statement_form(a) != statement_form(b)
    assert normalise(a) == normalise(b)


@pytest.mark.parametrize(("a", "b"), TWO, ids=[a for a, _ in TWO])
def test_texts_with_names_in_other_case_are_never_merged(a: str, b: str) -> None:
    assert compare(a, b).verdict is not Verdict.SAME


@given(st.text(alphabet=st.sampled_from("aBßÄß` \n-._'`İ\u0301ǅσς日1"), max_size=40))
def test_a_wording_is_its_own_wording_and_finer_than_what_searches_compare(text: str) -> None:
    once = statement_form(text)
    assert statement_form(once) == once
    assert normalise(once) == normalise(text)


def test_a_wording_is_the_same_for_all_the_cases_that_may_not_merge() -> None:
    if not CASES.exists():
        pytest.skip("the shared cases are not here")
    rows = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    assert [
        row["id"] for row in rows if row["verdict"] != "same" and statement_form(row["a"]) == statement_form(row["b"])
    ] == []
