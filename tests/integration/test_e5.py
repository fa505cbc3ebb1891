"""The second embedder with its real model: several languages, one space."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from backstory.adapters.embedders import e5
from backstory.adapters.embedders.e5 import MODEL, E5Embedder
from backstory.domain.second_model import as_first
from backstory.entrypoints.drive import drive
from backstory.ports.models import Vector

pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(e5.availability() is not None, reason="the second embedding model is not installed here"),
]

MEMORIES = [
    "Invoice numbers of one country must follow each other without gaps.",
    "The mobile app keeps its offline maps in a SQLite file.",
    "Screenshots in the handbook are taken at 1280 pixels.",
]
QUESTIONS = {
    "Dürfen Rechnungsnummern Lücken haben?": 0,
    "¿pueden faltar números en las facturas?": 0,
    "Где приложение хранит карты без сети?": 1,
    "オフライン地図はどのファイルに保存されますか": 1,
    "Quelle largeur pour les captures d'écran du manuel ?": 2,
}


def cosine(one: Vector | None, other: Vector | None) -> float:
    assert one is not None
    assert other is not None
    return sum(a * b for a, b in zip(one, other, strict=True))


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> E5Embedder:
    return E5Embedder(tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_in_another_language_is_nearest_to_its_answer(embedder: E5Embedder, question: str) -> None:
    asked = drive(embedder.query(question))
    near = [as_first(cosine(asked, vector)) for vector in drive(embedder.passages(MEMORIES))]
    answer = near.pop(QUESTIONS[question])
    assert answer > max(near) + 0.1


def test_vectors_have_unit_length_and_do_not_depend_on_their_batch(embedder: E5Embedder) -> None:
    together = drive(embedder.passages(MEMORIES * 2))
    alone = drive(embedder.passages(MEMORIES[:1]))
    assert all(vector is not None and len(vector) == MODEL.dimension for vector in together)
    assert all(math.isclose(cosine(vector, vector), 1.0, abs_tol=1e-4) for vector in together)
    assert cosine(together[0], alone[0]) > 0.999
    assert cosine(together[0], together[3]) > 0.999


def test_the_model_is_checked_once_and_the_environment_left_as_it_was(tmp_path: Path) -> None:
    before = dict(os.environ)
    drive(E5Embedder(tmp_path).query("text"))
    assert dict(os.environ) == before
    assert len(list(tmp_path.glob("*.checked"))) == 1


def test_closing_twice_and_using_it_again_is_fine(embedder: E5Embedder) -> None:
    drive(embedder.close())
    drive(embedder.close())
    assert drive(embedder.query("text")) is not None
