"""When to observe, when to condense, and what requests show."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from backstory.domain.conversation import Message
from backstory.domain.digest import Piece, SessionDigest
from backstory.domain.observation import (
    MAX_COMPRESSION,
    ObservationPolicy,
    compression_of,
    due_reflection,
    is_enabled,
    is_observation_due,
    next_id,
    next_window,
    to_show,
    with_compression,
)
from backstory.domain.observation_cursor import waiting
from backstory.domain.transcript import message_text
from backstory.errors import InputError
from tests.observed import WordTokens, digest, message, of_words, piece

POLICY = ObservationPolicy(message_tokens=100, observation_tokens=50, window_tokens=70)


def weigh(one: Message) -> int:
    return WordTokens().count(message_text(one))


def count(one: Piece) -> int:
    return WordTokens().count(one.text)


@pytest.mark.parametrize(
    ("agent", "allowed", "enabled"),
    [
        ("build", "all", True),
        (None, "all", True),
        (None, "", True),
        ("build", "build plan", True),
        ("build", "plan,build", True),
        ("build", ("plan", " build "), True),
        ("build", "plan", False),
        ("Build", "build", False),
        (None, "build", False),
        ("build", (), False),
        ("build", ("plan", "ALL"), True),
    ],
)
def test_a_list_of_agents_leaves_out_all_others(agent: str | None, allowed: str | Sequence[str], enabled: bool) -> None:
    assert is_enabled(agent, allowed) is enabled


@pytest.mark.parametrize(
    "fields",
    [
        {"message_tokens": 0},
        {"observation_tokens": 0},
        {"window_tokens": 0},
        {"previous_tokens": -1},
        {"buffer_share": 0.0},
        {"buffer_share": 1.1},
        {"keep_share": 1.0},
    ],
)
def test_a_policy_that_fits_nothing_is_refused_by_name(fields: dict[str, int]) -> None:
    with pytest.raises(InputError) as refused:
        ObservationPolicy(**fields)
    assert refused.value.field == next(iter(fields))


@pytest.mark.parametrize(("words", "due"), [(19, False), (20, True), (21, True)])
def test_a_share_of_the_threshold_starts_an_observation(words: int, due: bool) -> None:
    history = [of_words(0, words - 10), of_words(1, 10)]
    assert sum(map(weigh, history)) == words
    assert is_observation_due(waiting(history, digest()), POLICY, weigh, forced=False) is due


@pytest.mark.parametrize(("words", "due"), [(99, False), (100, True)])
def test_without_a_buffer_the_threshold_itself_does(words: int, due: bool) -> None:
    policy = ObservationPolicy(message_tokens=100, buffer_share=1)
    assert is_observation_due(waiting([of_words(0, words)], digest()), policy, weigh, forced=False) is due


def test_one_message_larger_than_everything_is_observed() -> None:
    found = waiting([of_words(0, 500)], digest())
    assert found is not None
    assert is_observation_due(found, POLICY, weigh, forced=False)
    assert next_window(found, 70, weigh) == found.messages


def test_forced_or_between_observed_messages_any_size_will_do() -> None:
    assert is_observation_due(waiting([of_words(0, 7)], digest()), POLICY, weigh, forced=True)
    assert not is_observation_due(None, POLICY, weigh, forced=True)
    hole = waiting([message(0), message(1), message(2)], digest(piece(1, "* a", 0), piece(2, "* c", 2)))
    assert is_observation_due(hole, POLICY, weigh, forced=False)


def test_counting_stops_at_the_threshold() -> None:
    weighed: list[Message] = []

    def counted(one: Message) -> int:
        weighed.append(one)
        return weigh(one)

    assert is_observation_due(waiting([of_words(n, 15) for n in range(50)], digest()), POLICY, counted, forced=False)
    assert len(weighed) == 2


def test_a_window_is_what_fits_into_one_request_oldest_first() -> None:
    found = waiting([of_words(number, 30) for number in range(5)], digest())
    assert found is not None
    assert [m.id for m in next_window(found, 70, weigh)] == ["m0", "m1"]


def test_ids_count_up_and_levels_have_their_own() -> None:
    known = digest(piece(1, "* a", 0), piece(7, "* b", 1), piece(2, "* c", level=1))
    assert (next_id(known, level=0), next_id(known, level=1), next_id(known, level=2)) == (
        "obs0_008",
        "obs1_003",
        "obs2_001",
    )


# --- condensing -------------------------------------------------------------------------------------------------------


def notes(words: int) -> str:
    return " ".join(f"n{number}" for number in range(words))


@pytest.mark.parametrize(("words", "due"), [(49, False), (50, True), (51, True)])
def test_observations_at_their_threshold_are_condensed(words: int, due: bool) -> None:
    known = digest(piece(1, notes(words - 20), 0, 1), piece(2, notes(20), 2, 3))
    plan = due_reflection(known, POLICY, count)
    assert (plan is not None) is due
    if plan is not None:
        assert [p.id for p in plan.pieces] == ["obs0_001", "obs0_002"]
        assert plan.compression == 0


def test_only_what_no_reflection_covers_counts() -> None:
    covered = piece(1, notes(60), 0, active=False)
    assert due_reflection(digest(covered, piece(2, notes(49), 1)), POLICY, count) is None


def test_what_requests_show_is_condensed_and_the_newest_notes_stay() -> None:
    pieces = [piece(1, notes(30), 0), piece(2, notes(10), 1), piece(3, notes(12), 2)]
    plan = due_reflection(digest(*pieces, shown=["obs0_001", "obs0_002"]), POLICY, count)
    assert plan is not None
    assert [p.id for p in plan.pieces] == ["obs0_001", "obs0_002"]


def test_every_failure_asks_for_more_compression_up_to_the_most() -> None:
    pieces = (piece(1, notes(60), 0),)
    plans = [due_reflection(digest(*pieces, attempts=attempts), POLICY, count) for attempts in range(7)]
    assert [plan.compression for plan in plans if plan] == [0, 1, 2, 3, 4, 4, 4]


def reflection(words: int, *, compression: int = 0) -> Piece:
    return piece(1, notes(words), level=1, end=3, prompt=with_compression("reflect/1", compression))


def test_a_reflection_that_is_still_too_long_is_condensed_harder_and_at_last_left_alone() -> None:
    for compression in range(MAX_COMPRESSION):
        plan = due_reflection(digest(reflection(55, compression=compression)), POLICY, count)
        assert plan is not None
        assert plan.compression == compression + 1
    assert due_reflection(digest(reflection(55, compression=MAX_COMPRESSION)), POLICY, count) is None


def test_a_reflection_is_not_made_again_for_a_few_new_notes() -> None:
    dense = reflection(48, compression=MAX_COMPRESSION)
    assert due_reflection(digest(dense, piece(1, notes(4), 4)), POLICY, count) is None
    again = due_reflection(digest(dense, piece(1, notes(4), 4), piece(2, notes(1), 5)), POLICY, count)
    assert again is not None
    assert again.compression == MAX_COMPRESSION


def test_a_log_of_any_size_is_condensed_a_request_at_a_time() -> None:
    known = digest(*(piece(number, notes(40), number) for number in range(1, 30)))
    plan = due_reflection(known, POLICY, count)
    assert plan is not None
    assert [p.id for p in plan.pieces] == ["obs0_001", "obs0_002"]


def test_the_compression_is_part_of_a_pieces_lineage() -> None:
    assert compression_of(reflection(1)) == 0
    assert compression_of(reflection(1, compression=3)) == 3
    assert with_compression("reflect/12", 0) == "reflect/12"


# --- what requests show -----------------------------------------------------------------------------------------------


def shown(known: SessionDigest, history: Sequence[Message]) -> tuple[str, ...]:
    return to_show(history, known, POLICY, weigh=weigh, count=count)


def buffered(number: int, tokens: int = 20) -> Piece:
    """Notes on messages 2n and 2n+1."""
    return piece(number + 1, f"* n{number}", 2 * number, 2 * number + 1, tokens=tokens)


EARLIER = [message(number) for number in range(10)]
FIVE = [buffered(number) for number in range(5)]
FOUR_SHOWN = ("obs0_001", "obs0_002", "obs0_003", "obs0_004")


@pytest.mark.parametrize(("words", "switches"), [(19, False), (20, True)])
def test_observations_are_shown_once_the_request_has_grown_to_the_threshold(words: int, switches: bool) -> None:
    history = [*EARLIER[:8], of_words(8, words)]
    assert shown(digest(*FIVE[:4]), history) == ((FOUR_SHOWN) if switches else ())


def test_the_newest_part_stays_verbatim() -> None:
    assert shown(digest(*FIVE), EARLIER) == FOUR_SHOWN
    assert shown(digest(*FIVE), [*EARLIER, of_words(10, 19)]) == FOUR_SHOWN
    assert shown(digest(*FIVE), [*EARLIER, of_words(10, 20)]) == (*FOUR_SHOWN, "obs0_005")


def test_what_is_shown_stays_until_the_request_has_grown_again() -> None:
    known = digest(*FIVE, buffered(5), buffered(6), shown=FOUR_SHOWN)
    history = [message(number) for number in range(14)]
    assert shown(known, history) == FOUR_SHOWN
    assert shown(known, [*history, of_words(14, 40)]) == (*FOUR_SHOWN, "obs0_005", "obs0_006", "obs0_007")


def test_a_window_larger_than_the_threshold_is_replaced_although_little_stays() -> None:
    assert shown(digest(buffered(0, tokens=150)), [*EARLIER[:2], of_words(2, 8)]) == ("obs0_001",)


def test_without_observations_nothing_is_shown_whatever_the_size() -> None:
    assert shown(digest(), [of_words(0, 900)]) == ()


def test_a_hole_ends_what_can_be_shown() -> None:
    known = digest(buffered(0, 60), buffered(2, 60))
    assert shown(known, [*EARLIER[:2], of_words(2, 40), of_words(3, 40), *EARLIER[4:6]]) == ("obs0_001",)


def condensed(*children: Piece, text: str) -> tuple[Piece, ...]:
    over = piece(
        1,
        text,
        level=1,
        start=children[0].start,
        end=children[-1].end,
        children=tuple(child.id for child in children),
        tokens=sum(child.source_tokens for child in children),
    )
    below = (
        piece(
            int(child.id[-3:]),
            child.text,
            *(child.start, child.end),
            active=False,
            tokens=child.source_tokens,
        )
        for child in children
    )
    return (*below, over)


def test_a_reflection_is_shown_with_the_next_switch() -> None:
    known = digest(*condensed(*FIVE[:3], text="* short"), *FIVE[3:], shown=("obs0_001", "obs0_002", "obs0_003"))
    assert shown(known, EARLIER) == ("obs0_001", "obs0_002", "obs0_003")
    assert shown(known, [*EARLIER, of_words(10, 60)]) == ("obs1_001", "obs0_004", "obs0_005")


def test_a_reflection_takes_the_place_of_a_log_that_has_grown_too_long_at_once() -> None:
    long = [piece(1, notes(30), 0, 1, tokens=20), piece(2, notes(25), 2, 3, tokens=20)]
    known = digest(*condensed(*long, text="* short"), shown=("obs0_001", "obs0_002"))
    assert shown(known, EARLIER[:4]) == ("obs1_001",)


def test_what_the_host_dropped_is_not_verbatim_and_stays_shown() -> None:
    known = digest(*FIVE, shown=FOUR_SHOWN)
    assert shown(known, [*EARLIER[8:], of_words(10, 79)]) == FOUR_SHOWN
    assert shown(known, [*EARLIER[8:], of_words(10, 80)]) == (*FOUR_SHOWN, "obs0_005")


def test_pieces_that_were_undone_are_shown_no_more() -> None:
    assert shown(digest(*FIVE[:2], shown=(*FOUR_SHOWN,)), EARLIER[:4]) == ("obs0_001", "obs0_002")
