"""Words for kinds and scopes, ours and older ones."""

from __future__ import annotations

import pytest

from backstory.domain.memory import Kind, Visibility
from backstory.domain.vocabulary import Classified, classify, known_types
from backstory.errors import InputError


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_is_known_by_its_own_name_and_its_plural(kind: Kind) -> None:
    assert classify(kind.value, None).kind is kind
    assert classify(kind.value + "s", None).kind is kind


@pytest.mark.parametrize(
    ("written", "kind", "visibility"),
    [
        ("stack_fact", Kind.FACT, Visibility.GLOBAL),
        ("project_fact", Kind.FACT, Visibility.PROJECT),
        ("episodic", Kind.EPISODIC, Visibility.GLOBAL),
        ("project", Kind.FACT, None),
        ("general", Kind.OTHER, None),
        ("preferences", Kind.PREFERENCE, None),
    ],
)
def test_older_types_keep_their_meaning(written: str, kind: Kind, visibility: Visibility | None) -> None:
    assert classify(written, None) == Classified(kind=kind, visibility=visibility)


@pytest.mark.parametrize("written", ["Stack-Fact", " STACK_FACT ", "stack_fact\n"])
def test_case_dashes_and_blanks_of_a_type_do_not_matter(written: str) -> None:
    assert classify(written, None).visibility is Visibility.GLOBAL


@pytest.mark.parametrize(
    ("scope", "visibility"),
    [("global", "global"), ("Project", "project"), (" GLOBAL ", "global"), ("session", "session")],
)
def test_the_two_known_scopes_say_who_sees_it(scope: str, visibility: str) -> None:
    assert classify(None, scope) == Classified(visibility=Visibility(visibility))


def test_any_other_scope_is_an_area_kept_as_written() -> None:
    assert classify("decision", " Deploy/Staging ") == Classified(kind=Kind.DECISION, area="Deploy/Staging")


def test_a_scope_outweighs_what_the_type_implies() -> None:
    assert classify("project_fact", "global").visibility is Visibility.GLOBAL


def test_an_area_leaves_what_the_type_implies() -> None:
    assert classify("stack_fact", "ci") == Classified(kind=Kind.FACT, visibility=Visibility.GLOBAL, area="ci")


@pytest.mark.parametrize("blank", [None, "", "  "])
def test_blank_says_nothing(blank: str | None) -> None:
    assert classify(blank, blank) == Classified()


def test_an_unknown_type_is_refused_with_field_value_and_what_is_known() -> None:
    with pytest.raises(InputError) as caught:
        classify("desicion", None, field="type")
    assert caught.value.field == "type"
    assert "'desicion'" in str(caught.value)
    assert all(name in str(caught.value) for name in known_types())
    assert caught.value.hint == "did you mean decision?"


def test_a_huge_type_is_not_repeated_in_full() -> None:
    with pytest.raises(InputError) as caught:
        classify("x" * 100_000, None)
    assert len(str(caught.value)) < 400
    assert caught.value.hint is None
