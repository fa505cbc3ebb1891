"""One member of a JSON document is changed, and not a byte of the rest."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.entrypoints.agents.json_edit import append, put, take, value_of
from backstory.entrypoints.agents.json_tree import Unfit

OURS = {"command": "/opt/py thon/bin/python", "args": ["-m", "backstory", "mcp"], "env": {"K": 'ü"\\'}}
PATH = ("mcpServers", "backstory")

ORNATE = {
    "one server": '{\n  "mcpServers": {\n    "files": {"command": "x"}\n  }\n}\n',
    "comments everywhere": """// servers of mine
{
  /* the list */ "mcpServers": { // begins
    // the first
    "files": { "command": "x" /* why */, "args": ["//no comment", "/* nor this */"] }, // stays
    /* after */
  }, // end
  "other": [1, 2, /* three */ 3,],
}
// the last line""",
    "tabs": '{\n\t"mcpServers": {\n\t\t"files": {\n\t\t\t"command": "x"\n\t\t}\n\t}\n}\n',
    "four blanks and CRLF": '{\r\n    "mcpServers": {\r\n        "files": {"command": "x"}\r\n    }\r\n}\r\n',
    "a byte-order mark": '\ufeff{\n  "mcpServers": {"files": {"command": "x"}},\n  "a": 1\n}\n',
    "one line": '{"mcpServers": {"files": {"command": "x"}}, "a": {"b": [1, 2]}}',
    "no blanks at all": '{"mcpServers":{"files":{"command":"x"}},"a":1}',
    "trailing commas": '{\n  "mcpServers": {\n    "files": {"command": "x",},\n  },\n}\n',
    "a comma on its own line": '{\n  "mcpServers": {\n    "files": 1\n    ,"more": 2\n  }\n}\n',
    "braces in texts": '{\n  "mcpServers": {\n    "fi}les": {"command": "{\\"}"},\n    "x": "\\\\"\n  }\n}',
    "another backstory elsewhere": '{\n  "x": {"backstory": 1},\n  "mcpServers": {\n    "y": {"backstory": 2}\n  }\n}',
    "escaped keys": '{\n  "mcp\\u0053ervers": {\n    "f\\u00efles": {"command": "x"}\n  }\n}\n',
    "numbers as they are": '{\n  "n": 1.50e+3,\n  "big": 12345678901234567890,\n  "mcpServers": {"a": 0.0}\n}\n',
}
WITHOUT_SERVERS = {
    "nothing": "",
    "blanks": "  \n\n",
    "an empty object": "{}",
    "an empty object over lines": "{\n}\n",
    "a comment in an empty object": "{\n  // nothing yet\n}\n",
    "other settings": '{\n  "theme": "dark"\n}\n',
    "other settings, trailing comma": '{\n  "theme": "dark",\n}\n',
    "a comment at the end": '{\n  "theme": "dark" // of mine\n}\n',
    "one line": '{"theme": "dark"}',
}
UNFIT = {
    "a list": "[1]",
    "a text": '"x"',
    "half an object": '{"a": 1',
    "no JSON": "{a: 1}",
    "servers that are a list": '{"mcpServers": []}',
    "servers that are null": '{"mcpServers": null}',
    "servers twice": '{"mcpServers": {"a": 1}, "mcpServers": {"b": 2}}',
    "our entry twice": '{"mcpServers": {"backstory": 1, "backstory": 2}}',
    "nested by the thousand": "[" * 5000 + "]" * 5000,
    "nested by the hundred": '{"a": ' * 300 + "1" + "}" * 300,
    "a number of thousands of digits": '{"a": ' + "9" * 10_000 + "}",
    "two documents": "{} {}",
}


@pytest.mark.parametrize("text", ORNATE.values(), ids=ORNATE)
def test_an_entry_comes_and_goes_and_the_file_is_as_before(text: str) -> None:
    with_ours = put(text, PATH, OURS)
    before = value_of(text)
    assert isinstance(before, dict)
    after = {**before, "mcpServers": {**before["mcpServers"], "backstory": OURS}}
    assert json.dumps(value_of(with_ours)) == json.dumps(after)
    assert take(with_ours, PATH) == text or _lines(take(with_ours, PATH)) == _lines(text)
    for comment in re.findall(r"//[^\n]*|/\*.*?\*/", text):
        assert comment in with_ours


@pytest.mark.parametrize("text", ORNATE.values(), ids=ORNATE)
def test_every_line_stays_but_for_the_comma_before_ours(text: str) -> None:
    edited = "\n".join(_lines(put(text, PATH, OURS)))
    for line in _lines(text):
        assert line.rstrip("}, ") in edited or "\n" not in text


@pytest.mark.parametrize("text", WITHOUT_SERVERS.values(), ids=WITHOUT_SERVERS)
def test_what_is_missing_on_the_way_is_made_and_goes_again(text: str) -> None:
    with_ours = put(text, PATH, OURS)
    before = value_of(text) or {}
    assert isinstance(before, dict)
    assert value_of(with_ours) == {**before, "mcpServers": {"backstory": OURS}}
    assert (value_of(take(with_ours, PATH)) or {}) == before


@pytest.mark.parametrize("text", UNFIT.values(), ids=UNFIT)
def test_what_cannot_be_changed_safely_is_refused_without_quoting_it(text: str) -> None:
    with pytest.raises(Unfit) as refused:
        put(text, PATH, OURS)
    assert len(str(refused.value)) < 200


def test_line_ends_and_indentation_are_those_of_the_file() -> None:
    assert "\n" not in put(ORNATE["four blanks and CRLF"], PATH, OURS).replace("\r\n", "")
    assert '\n\t\t"backstory": {\n\t\t\t"command"' in put(ORNATE["tabs"], PATH, OURS)
    assert put(ORNATE["one line"], PATH, OURS).count("\n") == 0


def test_the_same_entry_again_changes_only_its_value() -> None:
    text = put(ORNATE["comments everywhere"], PATH, {"command": "old"})
    assert put(text, PATH, OURS) == put(ORNATE["comments everywhere"], PATH, OURS)


def test_items_come_to_the_end_of_a_list_and_go_from_it() -> None:
    text = '{\n  "hooks": {\n    "Stop": [\n      // mine\n      {"hooks": [1]}, // first\n    ],\n  },\n}\n'
    two = append(text, ("hooks", "Stop"), {"hooks": [2]})
    assert value_of(two) == {"hooks": {"Stop": [{"hooks": [1]}, {"hooks": [2]}]}}
    assert take(two, ("hooks", "Stop"), 1) == text
    assert value_of(take(text, ("hooks", "Stop"), 0)) == {}


def test_a_list_is_made_where_there_is_none_and_something_else_there_is_refused() -> None:
    assert value_of(append("{}", ("hooks", "Stop"), 1)) == {"hooks": {"Stop": [1]}}
    with pytest.raises(Unfit):
        append('{"hooks": {"Stop": {}}}', ("hooks", "Stop"), 1)


def test_a_file_of_some_megabytes_is_changed_in_seconds() -> None:
    text = json.dumps({"history": [{"n": number, "text": "x" * 50} for number in range(20_000)]}, indent=2)
    edited = put(text, PATH, OURS)
    assert edited.startswith(text[:-2])
    assert take(edited, PATH) == text


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(
    document=st.dictionaries(st.text(max_size=6), _values, max_size=4),
    servers=st.dictionaries(st.text(max_size=6).filter(lambda name: name != "backstory"), _values, max_size=3),
    indent=st.sampled_from([None, 1, 2, 4, "\t"]),
    has_servers=st.booleans(),
)
def test_any_document_keeps_all_it_says(
    document: dict[str, object], servers: dict[str, object], indent: int | str | None, has_servers: bool
) -> None:
    document.pop("mcpServers", None)
    if has_servers:
        document["mcpServers"] = servers
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    edited = put(text, PATH, OURS)
    left = value_of(take(edited, PATH))
    if not servers:
        document.pop("mcpServers", None)
    assert json.dumps(left) == json.dumps(document)


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")
