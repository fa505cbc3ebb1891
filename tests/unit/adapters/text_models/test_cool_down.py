"""When a model server is left alone."""

from __future__ import annotations

import pytest

from backstory.adapters.text_models.cool_down import MAX_ASKED_SECONDS, CoolDown
from backstory.errors import ModelUnavailable


class Watch:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def cool_down(watch: Watch) -> CoolDown:
    return CoolDown(failures=3, seconds=30.0, now=watch)


def fail(cool_down: CoolDown, times: int, feature: str = "rerank") -> None:
    for _ in range(times):
        cool_down.check(feature)
        cool_down.failed(feature)


def test_repeated_failures_are_followed_by_a_rest(cool_down: CoolDown, watch: Watch) -> None:
    fail(cool_down, 3)
    watch.seconds += 10
    with pytest.raises(ModelUnavailable, match=r"failed 3 times in a row; it is tried again in 20 s"):
        cool_down.check("rerank")
    watch.seconds += 20
    cool_down.check("rerank")


def test_an_answer_in_between_starts_the_count_anew(cool_down: CoolDown) -> None:
    fail(cool_down, 2)
    cool_down.succeeded("rerank")
    fail(cool_down, 2)
    cool_down.check("rerank")


def test_after_a_rest_one_failure_is_enough_for_the_next(cool_down: CoolDown, watch: Watch) -> None:
    fail(cool_down, 3)
    watch.seconds += 30
    fail(cool_down, 1)
    with pytest.raises(ModelUnavailable, match="failed 4 times"):
        cool_down.check("rerank")


def test_features_are_counted_apart(cool_down: CoolDown) -> None:
    fail(cool_down, 3)
    cool_down.check("observation")


def test_what_the_server_asks_for_holds_for_every_feature_and_not_for_ever(cool_down: CoolDown, watch: Watch) -> None:
    cool_down.asked(86_400.0)
    with pytest.raises(ModelUnavailable, match="asked to be left alone for another 600 s"):
        cool_down.check("rerank")
    with pytest.raises(ModelUnavailable):
        cool_down.check("observation")
    watch.seconds += MAX_ASKED_SECONDS
    cool_down.check("observation")


def test_a_shorter_wish_does_not_end_a_longer_one(cool_down: CoolDown, watch: Watch) -> None:
    cool_down.asked(60.0)
    cool_down.asked(5.0)
    watch.seconds += 30
    with pytest.raises(ModelUnavailable):
        cool_down.check("rerank")
