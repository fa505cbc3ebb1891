"""Changing one setting in a settings file: what else stands there stays, byte for byte."""

from __future__ import annotations

import tomllib
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.config.edit import value_in, with_setting, without_setting
from backstory.config.files import Unreadable

FILE = """\
# mine, see the wiki

[recall]
limit = 5   # enough for me
# mode = "lexical"
relevance = 'quiet'

[context]
inject = true
"""


def test_a_value_is_replaced_in_its_place_and_its_comment_stays() -> None:
    assert with_setting(FILE, "recall.limit", 7) == FILE.replace("limit = 5", "limit = 7")
    assert with_setting(FILE, "recall.relevance", "keen") == FILE.replace("'quiet'", '"keen"')


def test_a_new_setting_goes_behind_the_last_of_its_group() -> None:
    assert with_setting(FILE, "recall.rerank", "off") == FILE.replace("'quiet'\n", "'quiet'\nrerank = \"off\"\n")


def test_a_new_group_goes_to_the_end_behind_an_empty_line() -> None:
    assert with_setting(FILE, "tree.fanout", 4) == FILE + "\n[tree]\nfanout = 4\n"
    assert with_setting("", "tree.fanout", 4) == "[tree]\nfanout = 4\n"
    assert with_setting("[recall]\nlimit = 1", "tree.fanout", 4) == "[recall]\nlimit = 1\n\n[tree]\nfanout = 4\n"


def test_a_removed_setting_takes_its_line_and_an_empty_group_its_header() -> None:
    assert without_setting(FILE, "recall.limit") == FILE.replace("limit = 5   # enough for me\n", "")
    assert without_setting(FILE, "context.inject") == FILE.removesuffix("\n[context]\ninject = true\n")


def test_a_group_with_a_comment_of_its_own_keeps_its_header() -> None:
    text = "[recall]\n# how I like it\nlimit = 5\n"
    assert without_setting(text, "recall.limit") == "[recall]\n# how I like it\n"


def test_what_is_not_there_is_removed_by_changing_nothing() -> None:
    assert without_setting(FILE, "tree.fanout") == FILE


def test_dotted_and_quoted_names_are_found() -> None:
    assert with_setting("recall.limit = 5\n", "recall.limit", 7) == "recall.limit = 7\n"
    assert with_setting('[ "recall" ]\n"limit" = 5\n', "recall.limit", 7) == '[ "recall" ]\n"limit" = 7\n'
    assert with_setting("recall.limit = 5\n", "recall.mode", "lexical") == (
        'recall.limit = 5\nrecall.mode = "lexical"\n'
    )


def test_a_text_over_several_lines_is_one_value_and_what_stands_in_it_is_no_setting() -> None:
    text = '[models]\nmodel = """\n[recall]\nlimit = 5\n"""  # odd\n'
    assert with_setting(text, "models.model", "small") == '[models]\nmodel = "small"  # odd\n'
    assert with_setting(text, "recall.limit", 7) == text + "\n[recall]\nlimit = 7\n"


def test_line_ends_and_a_mark_at_the_beginning_stay_as_they_are() -> None:
    text = "\ufeff[recall]\r\nlimit = 5\r\n"
    assert with_setting(text, "recall.limit", 7) == "\ufeff[recall]\r\nlimit = 7\r\n"
    assert with_setting(text, "recall.mode", "lexical") == text + 'mode = "lexical"\r\n'


@pytest.mark.parametrize(
    "text", ["recall = { limit = 5 }\n", "[[recall]]\nlimit = 5\n", "recall = 3\n", "[recall.limit]\nx = 1\n"]
)
def test_what_cannot_be_changed_alone_is_refused(text: str) -> None:
    with pytest.raises(Unreadable, match=r"edit it by hand|gives recall a value"):
        with_setting(text, "recall.limit", 7)


@pytest.mark.parametrize(
    "text",
    ["recall = { limit = 5 }\n", "[recall]\nx = [\n  [1],\n]\nlimit = 5\n", "[recall]\nlimit = [\n  1,\n]\n"],
)
def test_what_is_there_but_cannot_be_taken_out_alone_is_not_called_absent(text: str) -> None:
    with pytest.raises(Unreadable, match="edit it by hand"):
        without_setting(text, "recall.limit")


def test_the_header_of_a_group_nobody_knows_goes_with_its_last_setting_and_comments_stay() -> None:
    text = "[tree]\nfanout = 4\n[recal]\n# few\nlimit = 3\n\n[context]\ninject = true\n"
    assert without_setting(text, "recal.limit", is_group_known=False) == (
        "[tree]\nfanout = 4\n# few\n\n[context]\ninject = true\n"
    )
    other = "[recal]\n# few\nlimit = 3\nmode = 1\n"
    assert without_setting(other, "recal.limit", is_group_known=False) == "[recal]\n# few\nmode = 1\n"


@pytest.mark.parametrize("text", ["[recall\n", "x = \x00\n", "[a]\n[a]\n"])
def test_what_is_not_toml_is_refused(text: str) -> None:
    with pytest.raises(Unreadable, match="is not TOML"):
        with_setting(text, "recall.limit", 7)


def test_a_file_that_would_grow_too_large_is_refused() -> None:
    with pytest.raises(Unreadable, match="larger than 64 KiB"):
        with_setting("#" * 65_530 + "\n", "recall.limit", 7)


@pytest.mark.parametrize(
    "text", [" " * 60_000 + "\n", "a" * 60_000 + " = 1\n", "".join(f"[a{n}]\nb = 1\n" for n in range(4_000))]
)
def test_an_odd_file_of_the_largest_size_takes_no_noticeable_time(text: str) -> None:
    begun = process_time()
    with_setting(text, "recall.limit", 7)
    assert process_time() - begun < 5


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=40))
def test_any_text_can_be_written_and_taken_out_again(value: str) -> None:
    text = with_setting(FILE, "models.model", value)
    assert value_in(tomllib.loads(text), "models.model") == value
    assert without_setting(text, "models.model").rstrip("\n") == FILE.rstrip("\n")


values = st.one_of(st.booleans(), st.integers(-9, 9), st.sampled_from(["a", 'say "no"', "x # y", "[b]", "m = 1"]))
names = st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["m", "n"])).map(".".join)


@given(st.lists(st.tuples(names, st.one_of(st.none(), values)), max_size=8), st.integers(0, 3))
def test_a_row_of_edits_leaves_what_a_table_of_settings_would_hold(
    steps: list[tuple[str, bool | int | str | None]], style: int
) -> None:
    text = ("", "# first\n", 'a.m = 1 # one\na."n" = "x"\n', "[b]\n# m\nm = '''q'''\n\n[c]\n")[style]
    said = {name: value for name in _names() if (value := value_in(tomllib.loads(text), name)) is not None}
    for name, value in steps:
        text = without_setting(text, name) if value is None else with_setting(text, name, value)
        said = {**said, name: value}
    after = {name: value_in(tomllib.loads(text), name) for name in _names()}
    assert [repr(v) for v in after.values() if v is not None] == [
        repr(said[name]) for name in _names() if said.get(name) is not None
    ]


def _names() -> list[str]:
    return [f"{group}.{key}" for group in "abc" for key in "mn"]
