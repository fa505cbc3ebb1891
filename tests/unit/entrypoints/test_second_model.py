"""The second model as settings, ``open_app`` and doctor know it."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from backstory.adapters.embedders import e5
from backstory.bootstrap import open_app
from backstory.config import Settings, load
from backstory.domain.history import Author
from backstory.domain.memory import Visibility
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.drive import drive
from backstory.entrypoints.store_checks import check_store
from backstory.errors import ConfigError
from backstory.services.remember import Draft

ELSEWHERE = {"BACKSTORY_EMBEDDER_PROVIDER": "ollama", "BACKSTORY_EMBEDDER_BASE_URL": "http://127.0.0.1:9"}


def settings_in(home: Path, **env: str) -> Settings:
    return load(env={"BACKSTORY_HOME": str(home), **ELSEWHERE, **env}, project_root=None).settings


def test_there_is_none_unless_it_is_set(tmp_path: Path) -> None:
    assert open_app(settings_in(tmp_path)).second is None
    app = open_app(settings_in(tmp_path, BACKSTORY_EMBEDDER_SECOND="e5"))
    assert isinstance(app.second, e5.E5Embedder)
    assert app.with_settings(app.settings).second is app.second


def test_without_an_embedder_there_is_no_second_one(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, BACKSTORY_EMBEDDER_SECOND="e5", BACKSTORY_EMBEDDER_PROVIDER="none")
    assert open_app(settings).second is None


def test_another_model_than_the_known_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="allowed: none, e5"):
        settings_in(tmp_path, BACKSTORY_EMBEDDER_SECOND="e7")


def test_doctor_says_what_installs_it_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(e5, "find_spec", lambda name: None)
    settings = settings_in(tmp_path, BACKSTORY_EMBEDDER_SECOND="e5")
    app = open_app(settings)
    draft = Draft(content="The staging cluster runs in Oslo", visibility=Visibility.GLOBAL, origin=Origin.USER)
    drive(app.remember.remember(draft, viewer=Viewer(project=None, audience=Audience.PERSON), author=Author.USER))
    drive(app.close())
    found = {check.name: check for check in anyio.run(check_store, settings)}["second model"]
    assert found.state == "warn"
    assert "backstory[multilingual]" in found.message
