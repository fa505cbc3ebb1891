"""The collected cases of repositories that set what they should not: every row is run, core and extended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from backstory.config import Resolved, load, options
from backstory.errors import ConfigError

CASES = Path(__file__).parents[4] / "shared" / "cases" / "config-trust.jsonl"
OURS = {
    "api.baseURL": "models.base_url",
    "api.apiKey": "models.api_key",
    "observation.messageTokens": "observation.message_tokens",
    "observation.customInstruction": "observation.custom_instruction",
    "storage.stateDir": "store.dir",
    "dream": "dream.enabled",
}
"""The cases use option names of older products; a name that is not here is written as it is."""


def rows() -> list[Any]:
    if not CASES.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"the cases are not here: {CASES.name}"))]
    return [pytest.param(row, id=row["id"]) for row in map(json.loads, CASES.read_text().splitlines())]


def toml(layer: Mapping[str, Any]) -> str:
    lines = []
    for name, body in layer.items():
        for key, value in body.items() if isinstance(body, dict) else [(None, body)]:
            dotted = f"{name}.{key}" if key else name
            lines.append(f"{OURS.get(dotted, dotted)} = {json.dumps(value)}")
    return "\n".join(lines)


@pytest.mark.parametrize("row", rows())
def test_a_collected_case_holds(row: dict[str, Any], tmp_path: Path) -> None:
    expected = dict(row["expect"])
    named = expected.pop("error_names", None)
    if named:
        with pytest.raises(ConfigError) as caught:
            resolve(row["layers"], tmp_path)
        assert all(name in str(caught.value) for name in named)
        return
    resolved = resolve(row["layers"], tmp_path)
    assert bool(resolved.warnings) or not expected.pop("warning", False)
    expected.pop("warning", None)
    if expected.pop("key_sent_to", None) == []:
        assert resolved.settings.models.base_url is None
    for theirs, value in expected.items():
        option = next(name for name in OURS if name.rpartition(".")[2] == theirs)
        check(resolved, OURS[option], value)


def resolve(layers: Mapping[str, Any], folder: Path) -> Resolved:
    (folder / "user.toml").write_text(toml(layers["global"]))
    (folder / ".backstory.toml").write_text(toml(layers["project"]))
    dotenv = layers.get("dotenv_in_project", {})
    (folder / ".env").write_text("".join(f"{name}={value}\n" for name, value in dotenv.items()))
    return load(env={"BACKSTORY_CONFIG": str(folder / "user.toml"), **layers["env"]}, project_root=folder)


def check(resolved: Resolved, name: str, value: object) -> None:
    group, _, key = name.partition(".")
    actual = getattr(getattr(resolved.settings, group), key)
    default = next(option.default for option in options() if option.name == name)
    assert actual == (default if value == "default" else value)
    assert value != "default" or resolved.sources[name] == "default"
