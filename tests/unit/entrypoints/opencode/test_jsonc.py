"""Reading OpenCode's settings: JSON with comments and trailing commas, whatever it looks like."""

from __future__ import annotations

import pytest

from backstory.entrypoints.opencode.jsonc import loads


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('// first\n{"a": 1, // why\n "b": [1, 2, /* last */ 3,],}\n', {"a": 1, "b": [1, 2, 3]}),
        (
            '{"url": "http://host//path", "x": "/* not a comment */, ]"}',
            {"url": "http://host//path", "x": "/* not a comment */, ]"},
        ),
        ('{"quote": "a \\" // b", "path": "C:\\\\",}', {"quote": 'a " // b', "path": "C:\\"}),
        ("[1, // one\n /* two */ // three\n ]", [1]),
        ("\ufeff{}", {}),
        ("", None),
        ("  // nothing but this\n", None),
        ("/* unfinished", None),
    ],
)
def test_comments_and_trailing_commas_are_as_if_they_were_not_there(text: str, value: object) -> None:
    assert loads(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1,,]",
        '{"a" 1}',
        '"unfinished',
        "{} {}",
        "[" * 100_000,
        "9" * 5_000,
        "[1] // a\n ]",
    ],
)
def test_what_is_not_a_document_raises_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any ValueError will do
        loads(text)


def test_an_error_names_the_line_and_quotes_nothing() -> None:
    with pytest.raises(ValueError, match=r"^line 3, column 1") as caught:
        loads('{"api_key": "hunter2" /* a\n comment */\n"b": 1}')
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("piece", ["/* ", "/**/", ",/**/", ",//\n", '"', ",   "])
def test_a_document_made_to_be_slow_is_not(piece: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - it only has to come back
        loads("[" + piece * 100_000 + "x")
