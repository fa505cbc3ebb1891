"""How a summary tree grows: message by message, in one go, around gaps and unfinished messages."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from backstory.domain.conversation import Message, Role
from backstory.domain.digest import SessionDigest, without_messages
from backstory.domain.ids import MessageId
from backstory.domain.summary_tree import (
    PATIENCE,
    History,
    Leaves,
    TreePolicy,
    is_node_id,
    next_leaf,
    next_merge,
    next_number,
    next_step,
    node_id,
)
from backstory.errors import InputError
from tests.trees import POLICY, applied, grown, message, no_digest, piece, talk, tool_part, update_of

SEED_STORES = Path(__file__).parents[3] / ".." / "shared" / "seed-stores" / "memory-tree"
SMALL = TreePolicy(max_raw=4, min_batch=2, compact_threshold=3, compact_branch=2, max_sync=12)


def history(messages: list[Message], digest: SessionDigest | None = None, **fields: object) -> History:
    return History(digest=digest or no_digest(), messages=messages, **fields)  # type: ignore[arg-type]


def shape(digest: SessionDigest) -> list[tuple[str, int, int, int, tuple[str, ...], str | None, bool]]:
    return sorted((p.id, p.level, p.start, p.end, p.children, p.parent, p.active) for p in digest.pieces)


def after_each_message(messages: list[Message], policy: TreePolicy = POLICY) -> SessionDigest:
    digest = no_digest()
    for count in range(1, len(messages) + 1):
        digest = grown(digest, messages[:count], policy=policy)
    return digest


def without(digest: SessionDigest, *numbers: int) -> SessionDigest:
    update = without_messages(digest, frozenset(message(number).id for number in numbers))
    assert update is not None
    return applied(digest, update)


def test_nothing_is_due_with_fewer_raw_messages_than_the_limit() -> None:
    assert next_step(history(talk(8), current=1), POLICY) is None
    assert next_leaf(history([], current=30), POLICY) is None


def test_the_tenth_raw_message_makes_a_leaf_of_the_oldest_five() -> None:
    batch = next_leaf(history(talk(9), current=1), POLICY)
    assert batch is not None
    assert (batch.start, batch.end) == (0, 4)
    assert batch.messages == tuple(talk(5))


def test_the_current_turn_counts_but_is_never_in_a_leaf() -> None:
    assert next_leaf(history(talk(4), current=40), POLICY) is None
    batch = next_leaf(history(talk(6), current=40), POLICY)
    assert batch is not None
    assert len(batch.messages) == 5


def test_one_leaf_and_five_raw_messages_are_left_after_the_first_leaf() -> None:
    digest = after_each_message(talk(10))
    assert [(p.id, p.start, p.end) for p in digest.active()] == [("node0_001", 0, 4)]


def test_enough_leaves_become_a_parent_over_the_first_ones() -> None:
    digest = after_each_message(talk(35))
    assert [(p.id, p.start, p.end) for p in digest.active()] == [
        ("node1_001", 0, 14),
        ("node0_004", 15, 19),
        ("node0_005", 20, 24),
        ("node0_006", 25, 29),
    ]
    parent = digest.piece("node1_001")
    assert parent is not None
    assert parent.children == ("node0_001", "node0_002", "node0_003")


def test_a_tree_with_small_limits_grows_four_levels() -> None:
    digest = after_each_message(talk(34, every=2), SMALL)
    assert [(p.id, p.start, p.end, p.children) for p in digest.active()] == [
        ("node3_001", 0, 15, ("node2_001", "node2_002")),
        ("node2_003", 16, 23, ("node1_005", "node1_006")),
        ("node1_007", 24, 27, ("node0_013", "node0_014")),
        ("node0_015", 28, 29, ()),
        ("node0_016", 30, 31, ()),
    ]


def test_the_seeds_sample_session_grows_the_same_tree() -> None:
    data = SEED_STORES / "per-session" / ".opencode" / "plugins" / "memory-tree" / "data" / "sessions"
    folder = data / "ses_4f1c2a9be001AbCdEfGhIjKlMn"
    if not folder.is_dir():
        pytest.skip(f"the sample store of opencode-memory-tree is not at {data}")
    nodes = [json.loads(file.read_text(encoding="utf-8")) for file in (folder / "nodes").glob("*.json")]
    expected = sorted(
        (
            n["id"],
            n["level"],
            n["round_start"],
            n["round_end"],
            tuple(n["children"]),
            n["parent_id"],
            n["is_active"] == 1,
        )
        for n in nodes
    )
    messages = _sample_messages(folder, nodes)
    digest = after_each_message(messages)
    assert shape(digest) == expected
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))["nodes_by_level"]
    for level, ids in index.items():
        assert [p.id for p in digest.pieces if p.level == int(level)] == ids
    sources = {n["id"]: [d["original_id"] for d in json.loads(n["details"])] for n in nodes if n["details"]}
    assert {p.id: list(p.sources) for p in digest.pieces if p.level == 0} == sources


def _sample_messages(folder: Path, nodes: list[dict[str, object]]) -> list[Message]:
    leaves = sorted((n for n in nodes if n["details"]), key=lambda n: str(n["id"]))
    told = [item for leaf in leaves for item in json.loads(str(leaf["details"]))]
    states = json.loads((folder.parent / folder.name / "buffer-states.json").read_text(encoding="utf-8"))
    buffer = json.loads(states[folder.name]["recent_buffer"])
    told += [item for item in buffer if "_node_id" not in item]
    return [
        replace(message(at, item["content"]), id=MessageId(item["original_id"]), role=Role(item["role"]))
        for at, item in enumerate(told)
    ]


def test_a_history_that_was_long_before_its_tree_catches_up_at_once_and_by_rule() -> None:
    step = next_step(history(talk(199), current=1), POLICY)
    assert isinstance(step, Leaves)
    assert step.by_rule
    taken = [m.id for batch in step.batches for m in batch.messages]
    assert taken == [m.id for m in talk(150)]
    assert all(POLICY.min_batch <= len(batch.messages) <= 20 for batch in step.batches)
    starts = [batch.start for batch in step.batches]
    assert starts == [0, *(batch.end + 1 for batch in step.batches[:-1])]


def test_a_tree_of_a_long_history_asks_a_model_for_few_of_its_nodes() -> None:
    asked, digest, messages = 0, no_digest(), talk(2000)
    while (step := next_step(history(messages, digest, current=1), POLICY)) is not None:
        asked += not step.by_rule
        digest = applied(digest, update_of(digest, step))
        assert len(digest.pieces) < 400
    assert asked < 25
    assert [p.start for p in digest.active()] == [0, *(p.end + 1 for p in digest.active()[:-1])]


def test_a_long_turn_is_summarised_by_the_model_in_larger_leaves() -> None:
    digest = grown(no_digest(), talk(12))
    messages = [*talk(12), *(message(number) for number in range(12, 100))]
    step = next_step(history(messages, digest, current=1), POLICY)
    assert isinstance(step, Leaves)
    assert not step.by_rule
    assert [len(batch.messages) for batch in step.batches] == [15]


def test_nobody_waits_for_a_model_that_keeps_failing_when_much_is_raw() -> None:
    digest = grown(no_digest(), talk(12))
    digest = replace(digest, state=replace(digest.state, attempts=PATIENCE))
    messages = [*talk(12), *(message(number) for number in range(12, 100))]
    step = next_step(history(messages, digest, current=1), POLICY)
    assert isinstance(step, Leaves)
    assert step.by_rule


def test_a_leaf_ends_before_a_message_that_may_still_change() -> None:
    messages = talk(12)
    messages[3] = message(3, user=True)
    messages[11] = message(11, finished=False)
    assert next_leaf(history(messages, current=1), POLICY) is not None
    unfinished = [*talk(3), *(message(number, finished=False) for number in range(3, 12))]
    assert next_leaf(history(unfinished, current=1), POLICY) is None
    assert next_leaf(history(unfinished, current=1, forced=True), POLICY) is not None


def test_a_tool_that_still_runs_keeps_its_message_out_of_a_leaf() -> None:
    messages = [*talk(2), *(message(number, parts=(tool_part(number, status="running"),)) for number in range(2, 12))]
    assert next_leaf(history(messages, current=1), POLICY) is None


def test_a_message_whose_host_died_does_not_stop_the_tree() -> None:
    messages = talk(12)
    messages[2] = message(2, finished=False)
    batch = next_leaf(history(messages, current=1), POLICY)
    assert batch is not None
    assert len(batch.messages) == 5


def test_before_a_compaction_whatever_is_there_becomes_one_leaf() -> None:
    batch = next_leaf(history(talk(3), forced=True), POLICY)
    assert batch is not None
    assert len(batch.messages) == 3
    batch = next_leaf(history(talk(14), forced=True), POLICY)
    assert batch is not None
    assert len(batch.messages) == 14
    assert next_step(history([], forced=True), POLICY) is None


def test_a_gap_is_filled_first_and_whole() -> None:
    digest = without(grown(no_digest(), talk(40)), 17)
    messages = [m for m in talk(40) if m.id != message(17).id]
    step = next_step(history(messages, digest, current=1), POLICY)
    assert isinstance(step, Leaves)
    (batch,) = step.batches
    assert [m.id for m in batch.messages] == [message(n).id for n in (15, 16, 18, 19)]
    assert (batch.start, batch.end) == (15, 18)


def test_numbers_go_on_behind_the_last_leaf_though_messages_before_it_were_undone() -> None:
    messages = [m for m in talk(40) if m.id != message(17).id]
    digest = grown(without(grown(no_digest(), talk(40)), 17), messages)
    more = [*messages, *(message(number, user=number % 3 == 0) for number in range(40, 60))]
    digest = grown(digest, more)
    places = [(p.start, p.end) for p in digest.active()]
    assert all(later[0] > earlier[1] for earlier, later in pairwise(places))
    assert (35, 39) in [(p.start, p.end) for p in digest.pieces]


def test_the_first_number_is_the_one_told_when_the_host_dropped_what_was_before() -> None:
    batch = next_leaf(history(talk(9), current=1, first_number=60), POLICY)
    assert batch is not None
    assert batch.start == 60


def test_a_parent_stands_for_neighbours_only() -> None:
    leaves = [piece(0, 1, 0, 4), piece(0, 2, 5, 9), piece(1, 1, 10, 24)]
    leaves += [piece(0, 3 + at, 25 + 5 * at, 29 + 5 * at) for at in range(4)]
    merge = next_merge(SessionDigest(state=no_digest().state, pieces=tuple(leaves)), POLICY)
    assert merge is not None
    assert [child.id for child in merge.children] == ["node0_003", "node0_004", "node0_005"]
    assert merge.level == 1


def test_nodes_that_an_undo_left_alone_are_merged_with_those_beside_them() -> None:
    nodes = [
        piece(level, number, 10 * place, 10 * place + 9)
        for place, (level, number) in enumerate((level, at + 1) for at in range(6) for level in (0, 1))
    ]
    merge = next_merge(SessionDigest(state=no_digest().state, pieces=tuple(nodes)), POLICY)
    assert merge is not None
    assert [child.id for child in merge.children] == ["node0_001", "node1_001", "node0_002"]
    assert merge.level == 2


def test_ids_count_on_level_by_level_beyond_three_digits() -> None:
    pieces = [piece(0, 7, 0, 4), piece(1, 2, 5, 9), piece(0, 1000, 10, 14)]
    assert (next_number(pieces, 0), next_number(pieces, 1), next_number(pieces, 2)) == (1001, 3, 1)
    assert node_id(0, 1001) == "node0_1001"


@pytest.mark.parametrize("text", ["node0_001", "node12_1000"])
def test_a_node_id_is_known_by_its_form(text: str) -> None:
    assert is_node_id(text)


@pytest.mark.parametrize(
    "text", ["", "../meta", "node0_01", "node_001", "node0_001\n", "node0_001/..", "Node0_001", "node０_001"]
)
def test_nothing_else_is_a_node_id(text: str) -> None:
    assert not is_node_id(text)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("min_batch", {"min_batch": 0}),
        ("max_raw", {"max_raw": 4}),
        ("max_sync", {"max_sync": 9}),
        ("compact_branch", {"compact_branch": 1}),
        ("compact_threshold", {"compact_threshold": 2}),
    ],
)
def test_limits_that_fit_nothing_are_refused(field: str, values: dict[str, int]) -> None:
    with pytest.raises(InputError) as caught:
        TreePolicy(**values)
    assert caught.value.field == field
