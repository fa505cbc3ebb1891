"""A person with a home folder of their own and a project they cloned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import pytest

from backstory.config import Resolved, load
from backstory.errors import ConfigError


@dataclass
class Person:
    """Writes the files of each layer, then loads. ``variables`` is the environment besides BACKSTORY_HOME."""

    home: Path
    project: Path
    variables: dict[str, str] = field(default_factory=dict)

    def writes(self, text: str | bytes) -> None:
        (self.home / "config.toml").write_bytes(text if isinstance(text, bytes) else text.encode())

    def clones(self, text: str | bytes) -> None:
        (self.project / ".backstory.toml").write_bytes(text if isinstance(text, bytes) else text.encode())

    def load(self, flags: Mapping[str, object] = MappingProxyType({})) -> Resolved:
        env = {"BACKSTORY_HOME": str(self.home), **self.variables}
        return load(env=env, project_root=self.project, flags=flags)

    def error(self, flags: Mapping[str, object] = MappingProxyType({})) -> ConfigError:
        with pytest.raises(ConfigError) as caught:
            self.load(flags)
        return caught.value


@pytest.fixture
def person(tmp_path: Path) -> Person:
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    return Person(home=home, project=project)
