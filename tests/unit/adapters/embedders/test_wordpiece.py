"""WordPiece against ids recorded from the reference implementation (``wordpiece_ids.json``)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from backstory.adapters import embedders
from backstory.adapters.embedders.wordpiece import WordPiece, parse_vocabulary

VOCABULARY = Path(embedders.__file__).with_name("vocabulary") / "vocab.txt"
RECORDED = json.loads(Path(__file__).with_name("wordpiece_ids.json").read_text(encoding="utf-8"))["rows"]


@pytest.fixture(scope="module")
def tokenizer() -> WordPiece:
    return WordPiece(parse_vocabulary(VOCABULARY.read_text(encoding="utf-8")))


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: ascii(row["text"][:24]))
def test_ids_equal_the_recorded_ones(tokenizer: WordPiece, row: dict[str, object]) -> None:
    assert tokenizer.encode(str(row["text"]), max_pieces=512) == row["ids"]


def test_the_word_list_is_the_one_its_notice_names() -> None:
    digest = hashlib.sha256(VOCABULARY.read_bytes()).hexdigest()
    assert digest in VOCABULARY.with_name("NOTICE").read_text(encoding="utf-8")
    pieces = parse_vocabulary(VOCABULARY.read_text(encoding="utf-8"))
    assert len(pieces) == 30_522
    assert (pieces["[PAD]"], pieces["[UNK]"], pieces["[CLS]"], pieces["[SEP]"]) == (0, 100, 101, 102)


def test_a_long_text_is_cut_and_keeps_both_markers(tokenizer: WordPiece) -> None:
    ids = tokenizer.encode("one two three four five", max_pieces=5)
    assert ids == [101, *tokenizer.encode("one two three", max_pieces=9)[1:-1], 102]


def test_a_word_is_cut_in_its_middle_if_the_limit_falls_there(tokenizer: WordPiece) -> None:
    whole = tokenizer.encode("antidisestablishmentarianism", max_pieces=99)
    assert len(whole) > 5
    assert tokenizer.encode("antidisestablishmentarianism", max_pieces=4) == [*whole[:3], 102]


def test_markers_written_in_a_text_are_only_text(tokenizer: WordPiece) -> None:
    assert tokenizer.encode("stop [SEP] here", max_pieces=99).count(102) == 1


def test_a_text_without_words_gives_the_two_markers(tokenizer: WordPiece) -> None:
    for text in ("", " \n\u3000", "\x00\x1f", "\u200b\ufeff", "\u0301"):
        assert tokenizer.encode(text, max_pieces=256) == [101, 102]


def test_only_as_much_is_read_as_the_limit_needs(tokenizer: WordPiece) -> None:
    class Explosive(dict[str, int]):
        lookups = 0

        def get(self, piece: str, default: object = None) -> int | None:  # type: ignore[override]  # counts only
            self.lookups += 1
            return super().get(piece)

    counting = Explosive(parse_vocabulary(VOCABULARY.read_text(encoding="utf-8")))
    WordPiece(counting).encode("word " * 100_000, max_pieces=256)
    assert counting.lookups < 300


def test_a_vocabulary_without_the_markers_is_refused() -> None:
    with pytest.raises(KeyError):
        WordPiece({"a": 0, "b": 1})


def test_a_word_list_reads_the_same_with_and_without_a_last_newline() -> None:
    assert parse_vocabulary("[UNK]\na\n##b\n") == parse_vocabulary("[UNK]\na\n##b") == {"[UNK]": 0, "a": 1, "##b": 2}
