"""The documentation says what is there, links lead somewhere, and its examples run."""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest

import backstory
from backstory.adapters.stores.sqlite import migrations
from backstory.codecs.jsonl import decode_lines
from backstory.config import options
from backstory.entrypoints.cli.main import cli
from backstory.entrypoints.errors import BROKEN_PIPE, INTERRUPTED, RULES, UNEXPECTED, USAGE
from backstory.entrypoints.opencode import protocol
from backstory.entrypoints.tools import TOOLS
from backstory.errors import BackstoryError
from docs.generate import generated, with_sections

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "bench").glob("*.md"), *(ROOT / "demo").glob("*.md")])

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")


class Block(NamedTuple):
    """One fenced block of a page."""

    page: Path
    position: int
    language: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.page.name}-{self.position}"


def blocks(page: Path, language: str) -> list[Block]:
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [Block(page, n, lang, text) for n, (lang, text) in enumerate(found, start=1) if lang == language]


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", BLOCK.sub("", text))


def page(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def id_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


EXAMPLES = [*blocks(DOCS / "how-to" / "use-as-a-library.md", "python"), *blocks(ROOT / "README.md", "python")]
COMMAND_LINES = [
    (block, line)
    for path in PAGES
    for block in blocks(path, "sh")
    for line in block.text.splitlines()
    if line.startswith("backstory ")
]


# --- what is there, is described --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", list(generated()), ids=id_of)
def test_generated_pages_are_as_the_code_makes_them(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == generated()[path], "run: make docs"


def test_every_tool_with_every_argument_is_described() -> None:
    for tool in TOOLS:
        section = page("tools.md").partition(f"## {tool.name}\n")[2].partition("\n## ")[0]
        assert tool.description in section
        assert all(f"| `{name}` |" in section for name in tool.arguments.model_fields)


def test_every_command_is_described() -> None:
    names = [f"backstory {name}" for name in cli.list_commands(click.Context(cli))]
    missing = [name for name in names if f"## {name}\n" not in page("cli.md")]
    assert names
    assert not missing


def test_every_setting_is_described() -> None:
    assert all(f"`{option.name}`" in page("settings.md") for option in options())


def test_every_public_name_is_described() -> None:
    methods = [name for name in vars(backstory.AgentMemory) if not name.startswith("_")]
    described = page("library.md")
    assert [name for name in backstory.__all__ if not re.search(rf"\b{name}\b", described)] == []
    assert [name for name in methods if f"| `{name}(" not in described] == []


def test_every_error_is_described() -> None:
    names = [error.__name__ for error in subclasses(BackstoryError)]
    assert "AmbiguousMatch" in names
    assert all(f"`{name}`" in page("errors.md") for name in names)


def test_every_exit_code_is_described() -> None:
    codes = {0, UNEXPECTED, USAGE, INTERRUPTED, BROKEN_PIPE, *(rule.exit_code for rule in RULES)}
    assert all(f"\n| {code} |" in page("exit-codes.md") for code in codes)


def test_every_method_and_error_code_of_the_bridge_is_described() -> None:
    server = (ROOT / "src/backstory/entrypoints/opencode/server.py").read_text(encoding="utf-8")
    plugin = (ROOT / "src/backstory/entrypoints/opencode/plugin.js").read_text(encoding="utf-8")
    methods = re.findall(r'"([a-z.]+)": _Method\(', server)
    events = re.findall(r'"([a-z.]+)"', plugin.partition("const EVENTS = new Set([")[2].partition("])")[0])
    codes = (
        protocol.PARSE_ERROR,
        protocol.INVALID_REQUEST,
        protocol.UNKNOWN_METHOD,
        protocol.INVALID_PARAMS,
        protocol.INTERNAL_ERROR,
    )
    assert "chat.message" in methods
    assert "session.idle" in events
    assert all(f"`{name}`" in page("bridge-protocol.md") for name in [*methods, *events])
    assert all(f"| {code} |" in page("bridge-protocol.md") for code in codes)


def test_every_table_and_column_of_the_store_is_described(tmp_path: Path) -> None:
    raw = sqlite3.connect(tmp_path / "store.db")
    migrations.apply(raw, from_version=0)
    tables = [name for (name,) in raw.execute("SELECT name FROM pragma_table_list WHERE schema = 'main'")]
    ours = [
        name for name in tables if not name.startswith("sqlite_") and not re.match("(?:memory|passage)_words_", name)
    ]
    described = page("sqlite-format.md")
    for table in ours:
        columns = [column for (column,) in raw.execute("SELECT name FROM pragma_table_info(?)", (table,))]
        words = {"id"} if table in ("word_statistics", "vector_removals") else set()
        missing = [
            name for name in {table, *columns} - words - {"rank", "memory_words"} if f"`{name}`" not in described
        ]
        assert not missing, f"{table}: {missing}"


def test_the_index_names_every_page() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    names = [str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md") if path != DOCS / "README.md"]
    assert [name for name in names if f"({name})" not in index] == []


# --- what is said, is so ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=id_of)
def test_every_relative_link_leads_to_a_file(path: Path) -> None:
    targets = [target.partition("#")[0] for target in LINK.findall(without_code(path.read_text(encoding="utf-8")))]
    relative = [target for target in targets if target and not re.match(r"[a-z]+:", target)]
    assert [target for target in relative if not (path.parent / target).exists()] == []


@pytest.mark.parametrize("path", PAGES, ids=id_of)
def test_no_page_knows_the_machine_it_was_written_on(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert str(ROOT) not in text
    assert not re.search(r"(?<![\w~.])/(?:work|root|home/\w|Users/\w)\b", text)


@pytest.mark.parametrize(
    ("block", "line"), COMMAND_LINES, ids=[f"{block.name}: {line}" for block, line in COMMAND_LINES]
)
def test_every_command_line_on_a_page_is_one_that_can_be_given(block: Block, line: str) -> None:
    words = re.split(r"^(?:\||>|>>|&&|;)$", "\n".join(shlex.split(line, comments=True)), flags=re.MULTILINE)[0].split(
        "\n"
    )
    command: click.Command = cli
    given = [word for word in words[1:] if word]
    while isinstance(command, click.Group) and given and not given[0].startswith("-"):
        found = command.get_command(click.Context(command), given[0])
        assert found is not None, f"{block.page.name}: there is no command {given[0]}"
        command, given = found, given[1:]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    options_given = [word.partition("=")[0] for word in given if re.match("--?[a-z]", word)]
    assert [option for option in options_given if option not in known | {"--help", "--version"}] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
def test_every_example_in_python_runs(example: Block, tmp_path: Path) -> None:
    code = example.text.replace("/tmp/", f"{tmp_path}/")
    env = {name: value for name, value in os.environ.items() if not name.startswith("BACKSTORY_")}
    env |= {"BACKSTORY_HOME": str(tmp_path / "home"), "BACKSTORY_EMBEDDER_PROVIDER": "none"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_reader_on_the_page_of_the_format_reads_a_store(tmp_path: Path) -> None:
    from backstory import open_memory

    store = tmp_path / "store.db"
    with open_memory(store=f"sqlite://{store}", settings={"embedder.provider": "none"}) as memory:
        kept = memory.remember("Releases are cut on Tuesdays.")
        memory.forget(f"#{memory.remember('The cluster is called heron-2.').n}")
    [reader] = blocks(REFERENCE / "sqlite-format.md", "python")
    names: dict[str, object] = {}
    exec(reader.text, names)
    current = names["current"]
    assert callable(current)
    [(n, text, learned)] = current(store)
    assert (n, text) == (kept.n, kept.content)
    assert abs(learned - kept.times.learned).total_seconds() < 1e-3


def test_the_example_on_the_page_of_exports_can_be_imported() -> None:
    header, example = blocks(REFERENCE / "jsonl-format.md", "json")
    [line] = decode_lines([header.text, " ".join(example.text.splitlines())])
    assert line.error is None
    assert line.memory is not None


def test_a_page_without_its_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="needs the markers"):
        with_sections("# A page\n", {"errors": lambda: "text"})


def subclasses(error: type[BackstoryError]) -> Iterator[type[BackstoryError]]:
    for child in error.__subclasses__():
        if child.__module__ == BackstoryError.__module__:
            yield child
            yield from subclasses(child)
