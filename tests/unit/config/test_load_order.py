"""Which layer wins, and what is said about where a value came from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backstory.config import Settings, load, options

if TYPE_CHECKING:
    from tests.unit.config.conftest import Person


def test_without_any_layer_every_option_has_its_default(person: Person) -> None:
    resolved = person.load()
    assert resolved.settings.recall == Settings().recall
    assert resolved.settings.embedder == Settings().embedder
    assert {name for name, source in resolved.sources.items() if source != "default"} == {"store.dir"}
    assert resolved.warnings == ()


def test_each_layer_beats_the_ones_below_it(person: Person) -> None:
    person.writes("[recall]\nlimit = 11")
    assert person.load().settings.recall.limit == 11
    person.clones("[recall]\nlimit = 12")
    assert person.load().settings.recall.limit == 12
    person.variables["BACKSTORY_RECALL_LIMIT"] = "13"
    assert person.load().settings.recall.limit == 13
    assert person.load({"recall.limit": 14}).settings.recall.limit == 14


def test_the_source_of_every_value_is_named(person: Person) -> None:
    person.writes("[recall]\nlimit = 11\n[models]\nmodel = 'm-1'")
    person.clones("[context]\nmax_entries = 3")
    person.variables |= {"BACKSTORY_LOG_LEVEL": "info", "OM_OBSERVATION_MESSAGE_TOKENS": "9000"}
    sources = person.load({"recall.mode": "lexical"}).sources
    assert sources["recall.limit"] == f"user file {person.home / 'config.toml'}"
    assert sources["context.max_entries"] == f"project file {person.project / '.backstory.toml'}"
    assert sources["log.level"] == "environment BACKSTORY_LOG_LEVEL"
    assert sources["observation.message_tokens"] == "environment OM_OBSERVATION_MESSAGE_TOKENS"
    assert sources["recall.mode"] == "flag --recall-mode"
    assert sources["dream.enabled"] == "default"
    assert set(sources) == {option.name for option in options()}


def test_our_own_variable_is_asked_before_an_older_products_and_the_other_is_not_even_checked(person: Person) -> None:
    person.variables |= {"BACKSTORY_OBSERVATION_MESSAGE_TOKENS": "5000", "OM_OBSERVATION_MESSAGE_TOKENS": "plenty"}
    assert person.load().settings.observation.message_tokens == 5000


def test_an_empty_variable_counts_as_not_set(person: Person) -> None:
    person.variables |= {"BACKSTORY_RECALL_LIMIT": "", "BACKSTORY_CAPTURE_ENABLED": "  ", "OM_API_KEY": ""}
    resolved = person.load()
    assert (resolved.settings.recall.limit, resolved.settings.capture.enabled) == (10, True)
    assert resolved.settings.models.api_key is None


def test_a_flag_that_was_not_given_changes_nothing(person: Person) -> None:
    person.variables["BACKSTORY_RECALL_LIMIT"] = "13"
    assert person.load({"recall.limit": None}).settings.recall.limit == 13


@pytest.mark.parametrize("word", ["1", "true", "YES", "On"])
def test_a_switch_is_spelled_in_the_usual_ways(person: Person, word: str) -> None:
    person.variables["BACKSTORY_OPENCODE_SUBAGENTS"] = word
    assert person.load().settings.opencode.subagents is True


def test_numbers_in_variables_may_have_blanks_and_underscores(person: Person) -> None:
    person.variables["OM_REFLECTION_OBSERVATION_TOKENS"] = " 50_000 "
    assert person.load().settings.reflection.observation_tokens == 50_000


@pytest.mark.parametrize(
    ("variable", "value", "option"),
    [
        ("OM_OBSERVATION_MODEL", "tiny-1", "models.model"),
        ("OM_API_BASE_URL", "https://llm.example.org/v1", "models.base_url"),
        ("OM_API_KEY", "k-om", "models.api_key"),
        ("OPENCODE_MEMORY_API_KEY", "k-tree", "models.api_key"),
        ("OPENCODE_MEMORY_SURFACE", "0", "context.inject"),
        ("OPENCODE_MEMORY_DREAM", "0", "dream.enabled"),
        ("OCPG_INJECTION", "recency", "context.selection"),
        ("OM_DEBUG", "1", "log.level"),
        ("OPENCODE_MEMORY_DEBUG", "1", "log.level"),
    ],
)
def test_names_of_older_products_are_understood(person: Person, variable: str, value: str, option: str) -> None:
    person.variables[variable] = value
    resolved = person.load()
    group, _, key = option.partition(".")
    expected = {"0": False, "1": "debug"}.get(value, value)
    assert getattr(getattr(resolved.settings, group), key) == expected
    assert resolved.sources[option] == f"environment {variable}"


def test_a_debug_switch_that_is_off_leaves_the_log_level_alone(person: Person) -> None:
    person.variables["OM_DEBUG"] = "0"
    assert person.load().settings.log.level == "warning"


def test_variables_of_others_and_of_test_runs_are_left_alone(person: Person) -> None:
    person.variables |= {
        "BACKSTORY_TEST_RUN": "7",
        "BACKSTORY_PLUGIN_LOG": "/tmp/l",
        "OPENCODE_MEMORY_OFF": "perhaps",
        "RECALL_LIMIT": "x",
    }
    assert person.load().settings.recall.limit == 10


def test_ocpgs_ollama_is_used_only_once_ollama_is_chosen(person: Person) -> None:
    person.variables |= {"OCPG_OLLAMA_HOST": "gpu.lan", "OCPG_EMBED_MODEL": "embeddinggemma:300m"}
    assert person.load().settings.embedder == Settings().embedder
    chosen = person.load({"embedder.provider": "ollama"}).settings.embedder
    assert (chosen.base_url, chosen.model) == ("http://gpu.lan:11434", "embeddinggemma:300m")


def test_ocpgs_ollama_host_may_be_an_ipv6_address_and_yields_to_an_address_of_ours(person: Person) -> None:
    person.variables |= {
        "OCPG_OLLAMA_HOST": "fd00::7",
        "OCPG_OLLAMA_PORT": "9000",
        "BACKSTORY_EMBEDDER_PROVIDER": "ollama",
    }
    assert person.load().settings.embedder.base_url == "http://[fd00::7]:9000"
    person.variables["BACKSTORY_EMBEDDER_BASE_URL"] = "http://127.0.0.1:11434/"
    assert person.load().settings.embedder.base_url == "http://127.0.0.1:11434"


def test_a_bad_ocpg_port_is_named(person: Person) -> None:
    person.variables |= {"OCPG_OLLAMA_PORT": "lots", "BACKSTORY_EMBEDDER_PROVIDER": "ollama"}
    assert person.error().option == "OCPG_OLLAMA_PORT"


def test_dotenv_files_are_never_read(person: Person) -> None:
    for folder in (person.home, person.project):
        (folder / ".env").write_text("BACKSTORY_RECALL_LIMIT=99\nBACKSTORY_MODELS_API_KEY=k-dot\n")
    settings = person.load().settings
    assert (settings.recall.limit, settings.models.api_key) == (10, None)


def test_loading_changes_neither_the_environment_nor_the_flags() -> None:
    env, flags = {"BACKSTORY_HOME": "/srv/b", "OM_DEBUG": "1"}, {"recall.limit": "4"}
    load(env=env, project_root=None, flags=flags)
    assert (env, flags) == ({"BACKSTORY_HOME": "/srv/b", "OM_DEBUG": "1"}, {"recall.limit": "4"})


def test_nothing_slow_is_imported_on_the_way_to_the_settings(tmp_path: Path) -> None:
    script = (
        "import sys; from backstory.config import load; from pathlib import Path;"
        f"load(env={{'BACKSTORY_HOME': {str(tmp_path)!r}}}, project_root=Path({str(tmp_path)!r}));"
        "slow = {'pydantic', 'tomllib', 'platformdirs', 'difflib', 'anyio', 'asyncio', 'rich', 'json'};"
        "print(sorted(slow & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
