"""The toolset opencode-memory: its categories, tiers and strict search on this engine."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import anyio
import pytest

from backstory.domain.dream_state import Summary
from backstory.domain.memory import Deleted, Kind, Sensitivity, Tier, Visibility
from backstory.domain.worth import worth
from backstory.entrypoints.tools import tools_of
from tests.toolbox import ELSEWHERE, HERE, Toolbox

Json = Any  # JSON of any shape


@pytest.fixture
def box() -> Toolbox:
    return Toolbox("opencode-memory")


def test_names_and_arguments_are_those_of_opencode_memory() -> None:
    schemas: Json = {tool.name: tool.schema() for tool in tools_of("opencode-memory")}
    assert {name: sorted(schema["properties"]) for name, schema in schemas.items()} == {
        "memory_read": ["category", "query", "scope"],
        "memory_write": ["category", "fact", "pinned", "scope", "sensitivity", "tier", "ttlHours"],
        "memory_update": ["fact", "id", "match"],
        "memory_forget": ["id", "match"],
        "memory_clear": ["scope", "summaryOnly"],
        "memory_why": ["id"],
        "memory_inspect": ["limit", "show"],
        "memory_useful": ["id"],
        "memory_irrelevant": ["id"],
    }
    assert schemas["memory_inspect"]["properties"]["limit"]["maximum"] == 50


def test_a_fact_is_for_everywhere_unless_told_otherwise(box: Toolbox) -> None:
    assert box.say("memory_write", fact="The user likes tea.", category="preferences").startswith(
        "Remembered (global): The user likes tea."
    )
    box.say("memory_write", fact="The user likes tea.", category="preferences", scope="project")
    box.say("memory_write", fact="Nets are mended on deck.", category="sailing")
    told = [(memory.visibility, memory.kind, memory.tier) for memory in map(box.memory, (1, 2, 3))]
    assert told == [
        (Visibility.GLOBAL, Kind.PREFERENCE, Tier.CORE),
        (Visibility.PROJECT, Kind.PREFERENCE, Tier.CORE),
        (Visibility.GLOBAL, Kind.OTHER, Tier.ARCHIVAL),
    ]
    assert box.say("memory_read", query="tea").splitlines() == [
        "- [#2] (project/preferences, explicit) The user likes tea.",
        "- [#1] (global/preferences, explicit) The user likes tea.",
    ]


def test_the_same_text_again_refreshes_it_and_symbols_count(box: Toolbox) -> None:
    box.say("memory_write", fact="The firmware is written in C++.")
    box.say("memory_write", fact="the firmware  is written in C++.")
    box.say("memory_write", fact="The firmware is written in C#.")
    assert box.say("memory_read", query="firmware").count("- [#") == 2


def test_a_temporary_fact_lives_as_long_as_told_and_longer_when_said_again(box: Toolbox) -> None:
    box.say("memory_write", fact="The lock is closed today.", tier="temporary", ttlHours=10)
    box.clock.advance(timedelta(hours=8))
    box.say("memory_write", fact="The lock is closed today.", tier="temporary", ttlHours=10)
    box.clock.advance(timedelta(hours=8))
    assert "lock is closed" in box.say("memory_read")
    box.clock.advance(timedelta(hours=3))
    assert box.say("memory_read") == "No memory entries found."


def test_only_people_pin(box: Toolbox) -> None:
    assert "`backstory pin 1`" in box.say("memory_write", fact="The user likes tea.", pinned=True)
    assert not box.memory(1).pinned


def test_what_is_local_only_is_never_shown_again(box: Toolbox) -> None:
    said = box.say("memory_write", fact="The safe opens with 4711.", sensitivity="local-only")
    assert "4711" not in said
    assert box.memory(1).sensitivity is Sensitivity.LOCAL_ONLY
    calls: list[tuple[str, Json]] = [
        ("memory_read", {}), ("memory_read", {"query": "safe"}), ("memory_why", {"id": 1}),
        ("memory_inspect", {"show": "recent"}), ("memory_update", {"id": 1, "fact": "no"}),
        ("memory_forget", {"match": "safe opens"}), ("memory_clear", {}), ("memory_useful", {"id": 1}),
    ]  # fmt: skip
    for name, arguments in calls:
        assert "4711" not in box.say(name, **arguments), name
    assert not isinstance(box.memory(1).status, Deleted)


@pytest.mark.parametrize(
    ("fact", "query", "found"),
    [
        ("Parts are written in JavaScript.", "java", False),
        ("Parts are written in JavaScript.", "javascript", True),
        ("Parts are written in JavaScript.", "java script", True),
        ("The user store is cached.", "userStore", True),
        ("The userStore is cached.", "user store", True),
        ("The service runs on .NET 8.", ".NET", True),
        ("It is C++ inside.", "C++", True),
        ("It is C++ inside.", "C#", False),
        ("It is C++ inside.", "C", False),
        ("We go on foot.", "go", True),
        ("Cranes are greased on Mondays.", "mondays cranes", True),
        ("Cranes are greased on Mondays.", "cranes fridays", False),
        ("Cranes are greased.", "crane", False),
        ("pytest runs first.", "test", False),
        ("日本語の帳票を使う。", "日本語の帳票を使う", True),
        ("日本語の帳票を使う。", "帳票", True),
        ("日本語の帳票を使う。", "帳票 日本語", True),
        ("日本語の帳票を使う。", "帳票 英語", False),
        ("설정은 서버에 있다.", "서버", True),
        ("APIを呼ぶ。", "api", True),
    ],
)
def test_a_search_needs_every_word_and_whole_ones(box: Toolbox, fact: str, query: str, found: bool) -> None:
    box.say("memory_write", fact=fact)
    assert ("[#1]" in box.say("memory_read", query=query)) is found


def test_a_category_and_a_scope_narrow_the_list(box: Toolbox) -> None:
    box.say("memory_write", fact="The user likes tea.", category="preferences")
    box.say("memory_write", fact="Releases go out on Mondays.", category="decisions", scope="project")
    assert box.say("memory_read", category="decisions").count("[#") == 1
    assert box.say("memory_read", scope="global").count("[#") == 1
    assert box.say("memory_read", project=ELSEWHERE).count("[#") == 1


def test_one_fact_is_reworded_by_number_or_by_text_and_an_unclear_one_is_not(box: Toolbox) -> None:
    box.say("memory_write", fact="Port 4000 is the API.")
    box.say("memory_write", fact="Port 4100 is the site.")
    assert box.say("memory_update", id="#1", fact="Port 4001 is the API.") == "Updated: Port 4001 is the API."
    assert (
        box.say("memory_update", match="the site", fact="Port 4200 is the site.") == "Updated: Port 4200 is the site."
    )
    assert box.answer("memory_update", match="Port 4", fact="none").failed
    assert box.say("memory_update", match="nothing like it", fact="none") == "No matching entry found."
    assert [box.memory(n).content for n in (1, 2)] == ["Port 4001 is the API.", "Port 4200 is the site."]


def test_a_piece_of_text_forgets_all_that_have_it(box: Toolbox) -> None:
    for number in range(3):
        box.say("memory_write", fact=f"Buoy {number} is red.")
    assert box.answer("memory_forget", match="red").failed
    assert box.say("memory_forget", match="nowhere at all") == "No matching entry found."
    assert box.say("memory_forget").startswith("No matching entry found.")
    assert box.say("memory_forget", match="is red").startswith("Forgot 3 entries.")
    assert box.say("memory_read") == "No memory entries found."


def test_clearing_goes_as_far_as_it_is_told_and_never_into_another_project(box: Toolbox) -> None:
    box.say("memory_write", fact="The user likes tea.")
    box.say("memory_write", fact="Releases go out on Mondays.", scope="project")
    box.say("memory_write", project=ELSEWHERE, fact="The wheel turns left.", scope="project")
    assert box.say("memory_clear", scope="project").startswith("Cleared 1 memory entry.")
    assert box.say("memory_clear").startswith("Cleared 1 memory entry.")
    assert box.say("memory_clear") == "Memory already empty."
    assert "wheel" in box.say("memory_read", project=ELSEWHERE)


def test_the_summary_alone_can_go(box: Toolbox) -> None:
    box.say("memory_write", fact="Releases go out on Mondays.", scope="project")
    summary = Summary(
        project=HERE, text="Mondays matter.", sources=(box.memory(1).id,), made_by="m", prompt="1",
        created_at=box.clock.now(),
    )  # fmt: skip
    anyio.run(box.app.backend.dreams.put_summary, summary)
    assert box.say("memory_read").startswith("Summary: Mondays matter.\n- [#1]")
    assert box.answer("memory_clear", scope="project", summaryOnly=True).failed
    assert box.say("memory_clear", summaryOnly=True) == "Cleared memory summary; retained all facts."
    assert box.say("memory_read").startswith("- [#1]")


def test_why_tells_the_source_the_state_and_what_makes_up_the_worth(box: Toolbox) -> None:
    box.say("memory_write", fact="Releases go out on Mondays.", category="decisions", scope="project")
    box.say("memory_useful", id=1)
    box.clock.advance(timedelta(days=45))
    told = box.say("memory_why", id="#1").splitlines()
    assert told[0] == "Text: Releases go out on Mondays."
    assert "Category: decisions | Scope: project" in told
    assert "Lifecycle: ACTIVE | tier core" in told
    total = worth(box.memory(1), box.clock.now())
    assert any(line.startswith(f"Score (now): {total:.3f} = (3.00 + 0.50 source +0.10") for line in told)
    assert box.say("memory_why", id=99) == "No memory entry with this id."
    assert box.say("memory_why", project=ELSEWHERE, id=1) == "No memory entry with this id."


def test_feedback_is_noted_and_an_unknown_memory_is_said_so(box: Toolbox) -> None:
    box.say("memory_write", fact="Releases go out on Mondays.")
    assert box.say("memory_useful", id=1) == "Noted as useful."
    assert box.say("memory_irrelevant", id="#1") == "Noted as irrelevant."
    assert (box.memory(1).counters.helpful, box.memory(1).counters.irrelevant) == (1, 1)
    assert box.say("memory_useful", id=2) == "No memory entry with this id."


@pytest.mark.parametrize("show", ["stats", "recent", "conflicts", "project", "surfaced"])
def test_every_view_answers(box: Toolbox, show: str) -> None:
    box.say("memory_write", fact="Releases go out on Mondays.", scope="project")
    answer = box.answer("memory_inspect", show=show)
    assert answer.text
    assert not answer.failed


def test_a_piece_of_text_is_no_number(box: Toolbox) -> None:
    box.say("memory_write", fact="Port 4000 is the API.")
    box.say("memory_write", fact="Berth 1 is dredged.")
    assert box.say("memory_update", match="1", fact="Berth 1 is silted.") == "Updated: Berth 1 is silted."
    assert box.memory(1).content == "Port 4000 is the API."
    assert box.say("memory_update", match="2", fact="none") == "No matching entry found."


def test_a_lifetime_makes_a_fact_temporary(box: Toolbox) -> None:
    box.say("memory_write", fact="The lock is closed.", category="status", ttlHours=2)
    assert box.memory(1).tier is Tier.TEMPORARY
    box.clock.advance(timedelta(hours=3))
    assert box.say("memory_read") == "No memory entries found."


def test_clearing_a_scope_that_is_empty_leaves_the_summary(box: Toolbox) -> None:
    box.say("memory_write", fact="The user likes tea.")
    summary = Summary(
        project=None, text="Tea matters.", sources=(box.memory(1).id,), made_by="m", prompt="1",
        created_at=box.clock.now(),
    )  # fmt: skip
    anyio.run(box.app.backend.dreams.put_summary, summary)
    assert box.say("memory_clear", scope="project") == "Memory already empty."
    assert box.say("memory_read").startswith("Summary: Tea matters.")


def test_a_query_without_end_is_answered_soon(box: Toolbox) -> None:
    for number in range(30):
        box.state(f"Rope {number} lies on the quay.")
    began = time.process_time()
    assert box.say("memory_read", query="sail " * 50_000) == "No memory entries found."
    assert time.process_time() - began < 10


@pytest.mark.parametrize("scope", ["", "  "])
def test_a_scope_that_says_nothing_does_not_clear_everything(box: Toolbox, scope: str) -> None:
    box.say("memory_write", fact="The user likes tea.")
    answer = box.answer("memory_clear", scope=scope)
    assert answer.failed
    assert "scope is blank" in answer.text
    assert "tea" in box.say("memory_read")
