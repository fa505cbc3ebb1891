"""One table of a TOML document is changed, and not a byte of the rest."""

from __future__ import annotations

import tomllib

import pytest

from backstory.entrypoints.agents.json_tree import Unfit
from backstory.entrypoints.agents.toml_edit import put, take, value_of

OURS = {"command": "/opt/py thon/python", "args": ["-m", "backstory", "mcp"], "env": {"BACKSTORY_HOME": 'C:\\ü"\x7f'}}
PATH = ("mcp_servers", "backstory")

ORNATE = {
    "nothing": "",
    "a comment": "# mine\n",
    "no line end": 'model = "x"',
    "other tables": '# top\nmodel = "x" # why\n\n[mcp_servers.files]\ncommand = "y"\n\n[history]\nmax = 1\n',
    "arrays of tables": '[[profiles]]\nname = "a"\n\n[[profiles]]\nname = "b"\n\n[profiles.inner]\nz = 1\n',
    "CRLF": 'model = "x"\r\n\r\n[mcp_servers.files]\r\ncommand = "y"\r\n',
    "a byte-order mark": '\ufeffmodel = "x"\n',
    "our header in a text": 'note = """\n[mcp_servers.backstory]\ncommand = "no"\n"""\nx = 1\n',
    "dotted names": 'a.b.c = 1\n"quoted.name" = 2\n\n[ mcp_servers . "fi les" ]\ncommand = "y"\n',
    "dates and floats": "when = 2026-01-02T03:04:05Z\nf = 1e3\nn = nan\n",
    "empty lines at the end": 'model = "x"\n\n\n\n',
}
UNFIT = {
    "no TOML": "model = \n",
    "names twice": "a = 1\na = 2\n",
    "an inline table": 'mcp_servers = { files = { command = "y" } }\n',
    "servers that are no table": "mcp_servers = 1\n",
    "many dots": ".".join("a" * 40_000) + " = 1\n",
    "nested by the thousand": "a = " + "[" * 5000 + "]" * 5000 + "\n",
}


@pytest.mark.parametrize("text", ORNATE.values(), ids=ORNATE)
def test_a_table_comes_and_goes_and_the_file_is_as_before(text: str) -> None:
    with_ours = put(text, PATH, OURS)
    before = value_of(text)
    servers = before.get("mcp_servers", {})
    assert isinstance(servers, dict)
    assert repr(value_of(with_ours)) == repr({**before, "mcp_servers": {**servers, "backstory": OURS}})
    assert with_ours.startswith(text)
    assert take(with_ours, PATH).strip("\r\n") == text.strip("\r\n")


@pytest.mark.parametrize("text", UNFIT.values(), ids=UNFIT)
def test_what_cannot_be_changed_safely_is_refused(text: str) -> None:
    with pytest.raises(Unfit) as refused:
        put(text, PATH, OURS)
    assert len(str(refused.value)) < 200


def test_a_table_is_renewed_where_it_stands() -> None:
    text = (
        "[mcp_servers.backstory]\ncommand = 'old' # mine\n\n[mcp_servers.backstory.env]\nA = '1'\n\n# next\n[z]\na = 1"
    )
    text += "\n"
    renewed = put(text, PATH, OURS)
    assert tomllib.loads(renewed) == {"mcp_servers": {"backstory": OURS}, "z": {"a": 1}}
    assert renewed.index("[mcp_servers.backstory]") < renewed.index("# next\n[z]\na = 1\n")
    assert put(renewed, PATH, OURS) == renewed
    assert take(renewed, PATH).strip() == "# next\n[z]\na = 1"


def test_an_entry_in_another_notation_is_not_torn_apart() -> None:
    with pytest.raises(Unfit):
        put('[mcp_servers]\nbackstory = { command = "x" }\nfiles = { command = "y" }\n', PATH, OURS)
    with pytest.raises(Unfit):
        take('[mcp_servers]\nbackstory = { command = "x" }\nfiles = { command = "y" }\n', PATH)


def test_line_ends_are_those_of_the_file() -> None:
    assert "\n" not in put(ORNATE["CRLF"], PATH, OURS).replace("\r\n", "")
