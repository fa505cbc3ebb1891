"""Facts that go on from a memory that the agent was shown."""

from __future__ import annotations

import pytest

from backstory.domain.dreaming_lineage import made_from
from backstory.domain.provenance import Origin
from backstory.testing.fakes import sample_memory

STAGING = sample_memory("the staging cluster is called heron-2")
LUNCH = sample_memory("lunch is at noon on Fridays")


def test_a_fact_that_repeats_a_detail_of_a_shown_memory_was_made_from_it() -> None:
    text = "Deploys to the staging cluster heron-2 need the blue kubeconfig"
    assert made_from(text, Origin.AGENT, [LUNCH, STAGING]) == (STAGING.id,)


def test_what_the_user_said_was_made_from_nothing() -> None:
    assert made_from("the staging cluster heron-2 moves to Berlin", Origin.USER, [STAGING]) == ()


@pytest.mark.parametrize(
    "text",
    ["the cluster is called when it stages", "heron-2 was a bird in a story", "migrations run before the deploy"],
)
def test_a_word_or_two_in_common_are_no_lineage(text: str) -> None:
    assert made_from(text, Origin.AGENT, [STAGING, LUNCH]) == ()
