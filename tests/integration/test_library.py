"""``open_memory`` as programs use it: async and not, over real files."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

import backstory
from backstory import ConfigError, InputError, NotFound, Visibility, open_memory

LEXICAL = {"embedder.provider": "none"}


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKSTORY_HOME", str(tmp_path / "home"))


def url(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/notes.db"


def test_what_one_opening_remembers_another_recalls(tmp_path: Path) -> None:
    async def write() -> None:
        async with open_memory(store=url(tmp_path), project=tmp_path, settings=LEXICAL) as memory:
            await memory.remember("Ferry times are stored in UTC.", tags=["time"])

    async def read() -> list[str]:
        async with open_memory(store=url(tmp_path), project=tmp_path, settings=LEXICAL) as memory:
            return [result.memory.content for result in (await memory.recall("ferry times")).results]

    anyio.run(write)
    assert anyio.run(read) == ["Ferry times are stored in UTC."]


def test_a_prompt_that_matters_gets_a_block_and_another_gets_none(tmp_path: Path) -> None:
    async def main() -> tuple[str | None, str | None]:
        async with open_memory(store="memory", project=tmp_path, settings=LEXICAL) as memory:
            await memory.remember("The staging cluster is called heron-2.")
            asked = await memory.context_block("what is the staging cluster called?")
            return asked, await memory.context_block("write a haiku about spring")

    asked, unrelated = anyio.run(main)
    assert asked is not None
    assert "heron-2" in asked
    assert unrelated is None


def test_without_an_event_loop_everything_works_the_same(tmp_path: Path) -> None:
    with open_memory(store=url(tmp_path), project=tmp_path, settings=LEXICAL) as memory:
        first = memory.remember("Prices are in cents.")
        memory.update(f"#{first.n}", content="Prices are in euro cents.")
        memory.forget(f"#{first.n}", reason="trying out")
        assert memory.recall("prices").results == ()
        memory.undo()
        assert memory.recall("prices").results[0].memory.content == "Prices are in euro cents."
        assert [change.action for change in memory.history()] == ["undo", "forget", "update", "add"]
        assert memory.context_block("hello") is None


def test_a_synchronous_memory_serves_several_threads(tmp_path: Path) -> None:
    with open_memory(store=url(tmp_path), project=tmp_path, settings=LEXICAL) as memory:
        threads = [threading.Thread(target=memory.remember, args=(f"Fact number {n} of many.",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(memory.recall("", limit=20).results) == 8


def test_errors_come_out_as_they_are(tmp_path: Path) -> None:
    with open_memory(store="memory", project=tmp_path, settings=LEXICAL) as memory:
        with pytest.raises(InputError, match="4001"):
            memory.remember("x" * 4001)
        with pytest.raises(NotFound):
            memory.forget("#7")


def test_outside_every_project_only_what_holds_everywhere_is_seen(tmp_path: Path) -> None:
    with open_memory(store=url(tmp_path), project=tmp_path, settings=LEXICAL) as memory:
        memory.remember("Only here: the port is 4000.")
        memory.remember("Everywhere: use tabs.", visibility=Visibility.GLOBAL)
    with open_memory(store=url(tmp_path), settings=LEXICAL) as memory:
        assert [result.memory.content for result in memory.recall("").results] == ["Everywhere: use tabs."]


def test_a_bad_setting_names_itself(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="recall"), open_memory(store="memory", settings={"recall.limit": 0}):
        pass


def test_the_public_names_are_all_there() -> None:
    assert all(getattr(backstory, name) is not None for name in backstory.__all__)


def test_importing_the_package_imports_nothing_of_it() -> None:
    code = "import sys, backstory; print([m for m in sys.modules if m.startswith('backstory.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['backstory.__about__']"


def test_the_memory_store_can_be_searched_while_it_is_written_to(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_memory(store="memory", project=tmp_path, settings=LEXICAL) as memory:

            async def write(first: int) -> None:
                for number in range(first, first + 60):
                    await memory.remember(f"Ferry {number} leaves from quay {number * 7}.")
                    await anyio.lowlevel.checkpoint()

            async def read() -> None:
                for _ in range(60):
                    await memory.recall("which quay does the ferry leave from?")
                    await anyio.lowlevel.checkpoint()

            await write(0)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(write, 100)
                tasks.start_soon(read)
                tasks.start_soon(read)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        anyio.run(main)
    finally:
        sys.setswitchinterval(interval)


def test_a_postgres_address_that_cannot_be_read_is_refused_with_a_password_too(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setenv("BACKSTORY_STORE_PASSWORD", "t1de-table")
    with (
        pytest.raises(ConfigError, match="cannot be read") as refused,
        open_memory(store="postgresql://localhost/d?quay=7", settings=LEXICAL),
    ):
        pass
    assert "t1de-table" not in str(refused.value)


@pytest.mark.parametrize("password", ["", "t1de-table"])
def test_a_postgres_store_without_its_driver_says_what_to_install(password: str) -> None:
    program = """
import os, sys
sys.modules["psycopg"] = None
import backstory
try:
    with backstory.open_memory(store="postgresql://localhost/d", settings={"embedder.provider": "none"}):
        pass
except backstory.ConfigError as error:
    print(error)
"""
    env = {**os.environ, **({"BACKSTORY_STORE_PASSWORD": password} if password else {})}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    assert "pip install 'backstory[postgres]'" in done.stdout, done.stderr
