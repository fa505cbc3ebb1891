"""Which tools a host offers under a setting, and the toolset that has all of them."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from dataclasses import replace
from typing import Any, get_args

import pytest

from backstory.config import Settings
from backstory.config.serving import Toolset
from backstory.domain.memory import Deleted, Kind, Sensitivity, Tier, Visibility
from backstory.domain.provenance import Origin
from backstory.entrypoints.tools import TOOLS, TOOLSETS, find_tool, manifest, offered, tools_of
from backstory.entrypoints.tools.tool import Tool
from tests.toolbox import Toolbox

Json = Any  # JSON of any shape
EVERY = [(name, tool) for name in TOOLSETS for tool in tools_of(name)]
ALIASES = {
    "memory_write", "memory_read", "memory_compact", "memory_list", "memory_tags", "memory_retag", "memory_why",
    "memory_clear", "search_memory_tree", "om_status", "om_observations",
}  # fmt: skip


def under(toolset: Toolset, *, strategy: str = "off") -> Settings:
    settings = Settings()
    session = replace(settings.session, strategy=strategy)  # type: ignore[arg-type]  # a word of the setting
    return replace(settings, tools=replace(settings.tools, toolset=toolset), session=session)


def named(tools: tuple[Tool, ...]) -> list[str]:
    return [tool.name for tool in tools]


def test_every_set_of_the_setting_is_there() -> None:
    assert set(get_args(Toolset)) == set(TOOLSETS)


@pytest.mark.parametrize("toolset", TOOLSETS)
def test_no_name_stands_twice_in_a_set(toolset: Toolset) -> None:
    names = named(offered(under(toolset, strategy="tree")))
    assert len(names) == len(set(names))
    assert [entry["name"] for entry in manifest(under(toolset, strategy="tree"))] == names


@pytest.mark.parametrize(("toolset", "tool"), EVERY, ids=lambda item: item if isinstance(item, str) else item.name)
def test_every_tool_has_a_flat_schema_and_says_when_to_use_it(toolset: str, tool: Tool) -> None:
    schema = tool.schema()
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert "$defs" not in str(schema)
    assert 80 < len(tool.description) < 700
    properties: Json = schema["properties"]
    assert all(field.get("description") for field in properties.values())


def test_what_opens_a_digest_comes_with_every_set() -> None:
    assert "search_memory_tree" in named(offered(under("ocpg", strategy="tree")))
    assert "om_observations" in named(offered(under("git-memory", strategy="observations")))
    assert named(offered(under("memory-tree", strategy="tree"))) == ["search_memory_tree"]


def test_switched_off_there_are_none_of_any_set() -> None:
    settings = under("all")
    assert offered(replace(settings, opencode=replace(settings.opencode, tools=False))) == ()


def test_a_tool_is_found_in_the_chosen_set_alone() -> None:
    ours, theirs = find_tool("memory_update"), find_tool("memory_update", under("git-memory"))
    assert ours is not None
    assert theirs is not None
    assert ours is not theirs
    assert find_tool("memory_clear", under("ocpg")) is None
    assert find_tool("no_such_tool", under("all")) is None


def test_the_other_products_names_are_there_with_all_and_not_beside_our_own() -> None:
    assert set(named(tools_of("all"))) >= ALIASES
    assert ALIASES.isdisjoint(named(offered(under("default"))))
    assert find_tool("memory_write", under("default")) is None
    assert find_tool("om_status", under("default")) is not None


def test_all_has_each_name_of_every_set_once_and_ours_win() -> None:
    everything = named(tools_of("all"))
    assert set(everything) == {tool.name for _, tool in EVERY}
    assert len(everything) == len(set(everything))
    for tool in TOOLS:
        widest = next(each for each in tools_of("all") if each.name == tool.name)
        assert set(tool.arguments.model_fields) <= set(widest.arguments.model_fields), tool.name
        assert tool.description == widest.description


def test_only_the_chosen_set_is_loaded() -> None:
    code = (
        "import sys, json; from backstory.config import Settings;"
        "from backstory.entrypoints.tools import manifest; manifest(Settings());"
        "print(json.dumps([name for name in sys.modules if '.tools.sets' in name]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
    assert importlib.import_module("backstory.entrypoints.tools.sets.everything").TOOLS


# --- all --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def box() -> Toolbox:
    return Toolbox("all")


def test_remember_takes_what_every_product_takes(box: Toolbox) -> None:
    box.say("memory_remember", fact="Use tabs.", type="stack_fact")
    box.say(
        "memory_remember", content="Moor at low tide.", type="decision", scope="deploy/quay", issue="#4", tags=["t"]
    )
    box.say("memory_remember", text="The lock is closed.", category="status", tier="temporary", ttlHours=5)
    box.say("memory_remember", content="My desk is at home.", sensitivity="private", scope="global")
    kept = [box.memory(n) for n in (1, 2, 3, 4)]
    assert [memory.visibility for memory in kept] == [
        Visibility.GLOBAL, Visibility.PROJECT, Visibility.PROJECT, Visibility.GLOBAL,
    ]  # fmt: skip
    assert (kept[1].kind, kept[1].area, kept[1].issue) == (Kind.DECISION, "deploy/quay", "#4")
    assert kept[2].tier is Tier.TEMPORARY
    assert kept[3].sensitivity is Sensitivity.PRIVATE


def test_recall_is_narrowed_by_scope_and_by_how_it_is_matched(box: Toolbox) -> None:
    box.say("memory_remember", content="The crane is red.", scope="yard/crane")
    box.say("memory_remember", content="The crane hook is worn.", scope="yard/crane/hook")
    box.say("memory_remember", content="Cranes are paid for by the port.", scope="global")
    assert "worn" not in box.say("memory_recall", query="crane", scope="yard/crane", match="exact")
    assert "worn" in box.say("memory_recall", query="crane", scope="yard", match="prefix")
    assert "port" not in box.say("memory_recall", query="crane", scope="crane")
    everywhere = box.say("memory_recall", query="crane", scope="global")
    assert "port" in everywhere
    assert "red" not in everywhere
    assert "Nothing found" in box.say("memory_recall", query="crane", scope="nowhere")
    assert box.memory(3).counters.recalled == 1


def test_a_memory_is_addressed_by_kind_and_scope_where_only_one_fits(box: Toolbox) -> None:
    box.say("memory_remember", content="The crane is red.", kind="decision", scope="yard")
    assert "Updated #1" in box.say("memory_update", type="decision", scope="yard", fact="The crane is blue.")
    box.say("memory_remember", content="The fence is green.", kind="decision", scope="yard")
    unclear = box.answer("memory_update", kind="decision", scope="yard", content="x")
    assert unclear.failed
    assert "#1" in unclear.text
    assert "#2" in unclear.text
    box.say("memory_update", kind="decision", scope="yard", query="fence", content="The fence is white.")
    assert [box.memory(n).content for n in (1, 2)] == ["The crane is blue.", "The fence is white."]
    assert box.memory(1).area == "yard"
    assert box.answer("memory_update", content="x").failed


def test_several_are_forgotten_only_on_demand(box: Toolbox) -> None:
    for colour in ("red", "green"):
        box.say("memory_remember", content=f"The yard fence is {colour}.", kind="decision", scope="yard")
    assert box.answer("memory_forget", kind="decision", scope="yard").failed
    assert box.answer("memory_forget", match="yard fence").failed
    assert not isinstance(box.memory(1).status, Deleted)
    assert "Forgot #" in box.say("memory_forget", match="yard fence", all=True, reason="no fence any more")
    assert isinstance(box.memory(1).status, Deleted)
    assert isinstance(box.memory(2).status, Deleted)
    assert "no memory" in box.say("memory_forget", kind="decision", scope="yard", all=True)


def test_consolidation_goes_by_the_passes_that_are_asked_for(box: Toolbox) -> None:
    box.say("memory_remember", content="The harbour cranes are greased every Monday morning by the crew.")
    box.say("memory_remember", content="The harbour cranes are greased every Monday morning by the crews.")
    assert "No duplicates" in box.say("memory_consolidate", passes=["exact"])
    assert "1 pair is alike" in box.say("memory_consolidate", passes=["wording"])


def test_the_other_names_work_on_the_same_memories(box: Toolbox) -> None:
    assert box.say("memory_write", fact="Use tabs.").startswith("Remembered (project): Use tabs.")
    assert "Use tabs." in box.say("memory_read", query="tabs")
    assert box.say("memory_list").startswith("Total memories: 1")
    assert box.say("memory_compact") == "Compacted 1 memories to 1 unique memories (0 duplicate(s) removed)"
    assert box.say("memory_tags") == "No tags found."
    assert "Use tabs." in box.say("memory_why", id=1)
    assert box.say("om_observations") == "(no observations stored)"
    assert "scope" in box.answer("memory_clear").text, "that everything is meant has to be said"
    assert box.say("memory_clear", scope="all").startswith("Cleared 1 memory entry.")


def test_a_scope_alone_names_no_memory(box: Toolbox) -> None:
    box.say("memory_remember", content="The crane is red.")
    assert box.answer("memory_update", scope="project", content="x").failed
    assert box.answer("memory_forget", scope="project", all=True).failed
    assert box.answer("memory_forget", kind="fact", all=True).failed
    assert box.memory(1).content == "The crane is red."


def test_a_scrap_of_text_does_not_forget_all_that_have_it(box: Toolbox) -> None:
    for colour in ("red", "green"):
        box.say("memory_remember", content=f"The fence is {colour}.")
    assert box.answer("memory_forget", match="e", all=True).failed
    assert not isinstance(box.memory(1).status, Deleted)


def test_without_a_query_a_scope_is_looked_for_in_all_memories(box: Toolbox) -> None:
    box.say("memory_remember", content="The crane is red.", scope="yard")
    for number in range(101):
        box.say("memory_remember", content=f"Ship {number} has a name.", scope="port")
    assert "crane" in box.say("memory_recall", scope="yard")


def test_a_model_does_not_learn_what_is_kept_from_models(box: Toolbox) -> None:
    box.state("The safe opens with 4711.", sensitivity=Sensitivity.LOCAL_ONLY)
    known, new = (
        box.answer("memory_remember", content=f"The safe opens with {number}.", sensitivity="local-only")
        for number in (4711, 4712)
    )
    assert known == new


def test_what_was_imported_does_not_become_core_by_being_repeated(box: Toolbox) -> None:
    box.say("memory_import", data='{"type":"decision","scope":"yard","content":"Paint all cranes."}')
    box.say("memory_write", fact="Paint all cranes.", category="decisions", tier="core")
    assert (box.memory(1).origin, box.memory(1).tier) == (Origin.IMPORTED, Tier.ARCHIVAL)


def test_what_would_narrow_a_piece_of_text_is_not_passed_over(box: Toolbox) -> None:
    for place in ("yard", "port"):
        box.say("memory_remember", content=f"The {place} fence is red.", kind="decision", scope=place)
    assert box.answer("memory_forget", match="fence", kind="decision", scope="yard", all=True).failed
    assert not any(isinstance(box.memory(n).status, Deleted) for n in (1, 2))


def test_an_argument_that_may_be_several_things_is_refused_once(box: Toolbox) -> None:
    said = box.say("memory_forget", id=1.5)
    assert said.startswith("id: ")
    assert said.count("id: ") == 1
    assert "str" not in said
