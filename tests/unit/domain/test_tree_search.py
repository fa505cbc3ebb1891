"""Words looked up in a summary tree."""

from __future__ import annotations

from dataclasses import replace

from backstory.domain.tree_search import SNIPPET_CHARS, NodeHit, NodeTexts, search_nodes
from tests.trees import piece


def node(number: int, summary: str, *behind: str, level: int = 0) -> NodeTexts:
    texts = tuple((f"[USER] Message {at}", text) for at, text in enumerate(behind, 1))
    return NodeTexts(node=replace(piece(level, number, 5 * number, 5 * number + 4), text=summary), behind=texts)


NODES = [
    node(1, "The parser rejects BOM headers.", "why does it fail", "a byte order mark\nstands before the header"),
    node(2, "Retries are limited to three.", "how many attempts", "the limit is three attempts, backoff 100 ms"),
    node(3, "The pool keeps ten connections.", "pgbouncer_max_client_conn = 40", "set in infra/pg-main.toml"),
    node(1, "Parser and retries are done.", level=1),
]


def found(query: str, *, limit: int = 10) -> list[NodeHit]:
    return search_nodes(NODES, query, limit=limit)


def test_a_word_that_only_a_message_has_finds_its_leaf_and_the_line() -> None:
    (hit,) = found("byte order mark")
    assert hit.node.id == "node0_001"
    assert (hit.title, hit.snippet) == ("[USER] Message 2", "a byte order mark")


def test_words_are_found_in_other_forms_and_as_parts_of_names() -> None:
    assert found("limits")[0].node.id == "node0_002"
    assert found("max client conn")[0].node.id == "node0_003"
    assert found("pg-main.toml")[0].node.id == "node0_003"


def test_a_word_that_only_a_summary_has_finds_the_node_without_a_line() -> None:
    (hit,) = found("done")
    assert (hit.node.id, hit.title, hit.snippet) == ("node1_001", "", "")


def test_more_and_rarer_words_come_first() -> None:
    assert [hit.node.id for hit in found("parser BOM")] == ["node0_001", "node1_001"]
    assert found("retries attempts")[0].node.id == "node0_002"


def test_scores_lie_above_nothing_and_at_most_at_one() -> None:
    hits = found("parser header retries pool unicorn")
    assert hits
    assert all(0 < hit.score <= 1 for hit in hits)
    assert hits == sorted(hits, key=lambda hit: -hit.score)


def test_no_more_are_given_than_asked_for() -> None:
    assert len(found("parser retries pool", limit=2)) == 2


def test_a_query_without_words_or_without_a_match_finds_nothing() -> None:
    assert found("") == []
    assert found("?!") == []
    assert found("unicorn") == []
    assert search_nodes([], "parser", limit=5) == []


def test_a_long_line_is_shown_in_the_piece_that_matters() -> None:
    line = "padding words here " * 200 + "the needle_setting is 7 " + "and more of it " * 200
    (hit,) = search_nodes([node(1, "A log.", line)], "needle_setting", limit=1)
    assert "needle_setting is 7" in hit.snippet
    assert len(hit.snippet) <= SNIPPET_CHARS + 1


def test_a_line_that_cannot_be_cut_between_characters_ends() -> None:
    (hit,) = search_nodes([node(1, "A log.", "needle " + "e" + "\u0301" * 5000)], "needle", limit=1)
    assert hit.snippet.startswith("needle")


def test_scripts_without_blanks_are_searched_too() -> None:
    (hit,) = search_nodes([node(1, "回帰テストを追加しました。"), node(2, "Nothing here.")], "テスト", limit=5)
    assert hit.node.id == "node0_001"
