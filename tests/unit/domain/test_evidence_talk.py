"""Words compared one by one: which, where, and what comes of it for passages and their sessions."""

from __future__ import annotations

import pytest

from backstory.domain.conversation import Role
from backstory.domain.evidence_passages import EvidencePassage, PassageNumber
from backstory.domain.evidence_talk import (
    agreements,
    joined_meaning,
    known_speakers,
    rarities,
    speaker_of,
    speakers_between_themselves,
    telling_places,
    tells_of_oneself,
)
from backstory.domain.ids import MessageId, SessionId
from backstory.testing.fakes import START

ALONE = [range(1), range(1, 2), range(2, 3)]
"""Windows of three passages without neighbours."""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Ada: I am back", "Ada"),
        ("Mary Ann: hello", "Mary Ann"),
        ("Élodie: bonjour", "Élodie"),
        ("ada: I am back", None),
        ("Ada:", None),
        ("http://host: down", None),
        ("Here is what I found: nothing", None),
        ("2026: a good year", None),
        ("", None),
    ],
)
def test_a_speaker_is_a_name_before_a_colon(text: str, name: str | None) -> None:
    assert speaker_of(text) == name


def passages(*texts: str, kind: str = "text") -> list[EvidencePassage]:
    """A session's, in order."""
    return [
        EvidencePassage(
            number=PassageNumber(n),
            message=MessageId(f"m{n}"),
            session=SessionId("s"),
            role=Role.USER,
            at=START,
            kind=kind,
            text=text,
        )
        for n, text in enumerate(texts)
    ]


def test_a_speaker_speaks_more_than_once() -> None:
    assert known_speakers(["Ada", "Note", "Ben", "Ada", "Ben"]) == ["Ada", "Ben"]


def test_people_talk_where_most_passages_begin_with_a_speaker() -> None:
    talk = ["Ada: hello", "Ben: hello", "Ada: it rains", "Ben: here too", "(they leave)"]
    assert speakers_between_themselves(passages(*talk)) == ["Ada", "Ben"]
    assert speakers_between_themselves(passages(*talk, "done", "done", "done")) == []
    assert speakers_between_themselves(passages("Note: it rains", "Warning: it is wet", "Error: dry")) == []
    assert speakers_between_themselves([]) == []


def test_nobody_talks_with_himself() -> None:
    assert speakers_between_themselves(passages("Ada: hello", "Ada: is anybody there", "Note: silence")) == []
    assert speakers_between_themselves(passages("INFO: started", "INFO: stopped")) == []


def test_an_assistant_is_no_person() -> None:
    assert speakers_between_themselves(passages("User: hello", "Assistant: hello", "User: rain", "Assistant: so")) == []
    assert speakers_between_themselves(passages("Ada: hello", "AI: hello", "Ada: rain", "AI: so it is")) == []


def test_tools_do_not_talk() -> None:
    calls = ["Bash: ls -la", "Read: /repo/main.py", "Bash: make", "Read: /repo/door.py"]
    assert speakers_between_themselves(passages(*calls, kind="tool")) == []
    assert speaker_of("Bash: ls -la", kind="tool") is None


def test_stop_words_signs_and_names_say_nothing() -> None:
    words = ["Where", "did", "Mary", "Ann", "keep", "the", "heron", "?"]
    assert [words[place] for place in telling_places(words, names=["Mary Ann"])] == ["keep", "heron"]
    assert [words[place] for place in telling_places(words, at_most=1)] == ["Mary"]


def test_where_no_word_says_anything_all_are_kept() -> None:
    assert telling_places(["what", "is", "it", "?"]) == [0, 1, 2, 3]
    assert telling_places([]) == []


def test_a_word_counts_by_its_rarest_token_and_all_the_same_where_none_is_known() -> None:
    idf = {"heron": 3.0, "keep": 1.0}
    assert rarities(["heron", "keep", "unheard"], idf) == [3.0, 1.0, 0.0]
    assert rarities(["unheard", "unseen"], idf) == [1.0, 1.0]


def test_the_passage_with_the_nearest_words_agrees_best() -> None:
    found = agreements([(0.9, 0.1), (0.1, 0.1), (0.1, 0.2)], [1.0, 1.0], windows=ALONE, sessions="aab")
    own = [alike for alike, _, _ in found]
    assert own[0] > own[2] > own[1]
    assert all(-1.0 <= value <= 1.0 for each in found for value in each)


def test_a_rare_word_counts_more() -> None:
    found = agreements([(0.9, 0.1), (0.1, 0.9), (0.1, 0.1)], [1.0, 3.0], windows=ALONE, sessions="abc")
    assert found[1][0] > found[0][0] > found[2][0]


def test_neighbours_and_the_session_lend_their_words() -> None:
    rows = [(0.9, 0.1), (0.1, 0.9), (0.1, 0.1), (0.1, 0.1)]
    found = agreements(rows, [1.0, 1.0], windows=[range(2), range(3), range(1, 4), range(2, 4)], sessions="aaab")
    assert found[0][1] == found[1][1] > found[2][1] > found[3][1]
    assert found[0][2] == found[1][2] == found[2][2] > found[3][2]


def test_a_passage_without_vectors_is_taken_for_a_usual_one() -> None:
    found = agreements([(0.9,), None, (0.1,)], [1.0], windows=ALONE, sessions="abc")
    assert found[0][0] > found[1][0] == 0.0 > found[2][0]
    assert agreements([None, None], [1.0], windows=ALONE[:2], sessions="ab") == [(0.0, 0.0, 0.0)] * 2
    assert agreements([], [1.0], windows=[], sessions="") == []


def test_words_that_are_equally_near_everywhere_decide_nothing() -> None:
    for cosine in (0.4, 0.1, 0.7):  # three times 0.1 or 0.7 is not what it should be, by rounding
        found = agreements([(cosine,)] * 3, [1.0], windows=ALONE, sessions="abc")
        assert [alike for each in found for alike in each] == pytest.approx([0.0] * 9)


def test_the_meaning_of_a_window_is_that_of_its_longer_passages() -> None:
    windows = [range(2), range(3), range(1, 3)]
    assert joined_meaning([0.9, 0.1, None], [30, 10, 5], windows) == pytest.approx([0.7, 0.7, 0.1])
    assert joined_meaning([None, None], [3, 3], [range(2), range(2)]) == [None, None]
    assert joined_meaning([0.9], [0], [range(1)]) == [None]


@pytest.mark.parametrize(
    ("text", "tells"),
    [
        ("I sold it", True),
        ("Thanks, we did", True),
        ("give it to me", True),
        ("That is nice!", False),
        ("IT is", False),
    ],
)
def test_who_tells_of_oneself_says_so(text: str, *, tells: bool) -> None:
    assert tells_of_oneself(text) is tells
