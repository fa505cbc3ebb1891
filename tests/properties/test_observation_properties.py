"""Sessions of any course, with undone messages, crashes and compactions: each message is observed once, in order."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.domain.conversation import Message, Role
from backstory.domain.digest import messages_of
from backstory.domain.digest_plan import Listed, replacement
from backstory.domain.ids import MessageId
from backstory.domain.observation import ObservationPolicy
from backstory.domain.observation_cursor import settled_beginning
from backstory.domain.observation_log import added_by, appended, capped_lines, is_degenerate, render_log, tail
from backstory.domain.transcript import is_settled
from backstory.ports.text_models import TextAnswer, TextRequest
from backstory.services.digest_strategy import Made
from backstory.services.observation import Observing
from tests.observed import Session, WordTokens, answer, of_words, piece

POLICY = ObservationPolicy(message_tokens=100, observation_tokens=30, window_tokens=150)
Step = tuple[Literal["tell", "grow", "settle", "undo", "compact", "turn", "work", "force"], int]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("tell"), st.integers(6, 90)),
        st.tuples(st.sampled_from(["grow", "settle", "turn", "work", "force"]), st.integers(6, 40)),
        st.tuples(st.sampled_from(["undo", "compact"]), st.integers(1, 4)),
        st.tuples(st.just("tell"), st.integers(6, 40)),
    ),
    max_size=30,
)


class Noting:
    """Notes something new at each call, and remembers the messages it was shown."""

    name = "noting:1"

    def __init__(self) -> None:
        self.shown: Counter[str] = Counter()
        self.calls = 0

    async def generate(self, request: TextRequest) -> TextAnswer:
        self.calls += 1
        self.shown.update(re.findall(r"^\[(?:user|assistant) (m\d+) ", request.prompt, re.MULTILINE))
        return TextAnswer(text=answer(f"* 🟡 (09:00) note {self.calls}"), model=self.name, duration_s=0.0)

    async def close(self) -> None:
        pass


class Course:
    """One session, taken through steps; what must always hold is checked after each."""

    def __init__(self) -> None:
        self.model = Noting()
        self.session = Session(Observing(self.model, policy=POLICY, tokens=WordTokens()))
        self.told = 0
        self.undone = False

    def take(self, step: Step) -> None:
        kind, amount = step
        match kind:
            case "tell":
                self.tell(amount, done=True)
            case "grow":
                self.tell(amount, done=False)
            case "settle":
                self.session.listed = [replace(m, completed_at=m.created_at) for m in self.session.listed]
            case "undo":
                self.undone = True
                self.session.undo(*self.session.listed[-amount:])
            case "compact":
                self.session.drop(min(amount, self.observed_beginning()))
            case "turn":
                self.turn()
            case "force":
                self.session.forced = True
                self.work()
            case "work":
                self.work()
        self.check()

    def tell(self, words: int, *, done: bool) -> None:
        told = of_words(self.told, words)
        role = told.role if done else Role.ASSISTANT
        self.told += 1
        self.session.tell(replace(told, role=role, completed_at=told.created_at if done else None))

    def work(self) -> None:
        for _ in range(40):
            if not self.session.observing.due(self.session.view()):
                break
            before, known = list(self.session.listed), self.session.digest
            made = self.session.step()
            assert made.added, "what was due is done"
            self.check_window(made, before, observed=set(messages_of(known.pieces, known)))
        else:
            raise AssertionError("work never ends")
        self.session.forced = False

    def check_window(self, made: Made, listed: list[Message], *, observed: set[MessageId]) -> None:
        """Sources are neighbours in the list, in its order, and none of them may still change. What was observed before
        was settled then: undoing the answer behind it does not bring it back to life."""
        sources = made.added[0].sources
        places = {m.id: at for at, m in enumerate(listed)}
        at = [places[source] for source in sources]
        assert at == list(range(at[0], at[0] + len(at))) if at else made.cycle == "reflect"
        left = [m for m in listed if m.id not in observed]
        settled = {m.id for m in settled_beginning(left)}
        assert settled.issuperset(sources)
        answered = max((n for n, m in enumerate(listed) if m.role is Role.ASSISTANT and is_settled(m)), default=-1)
        assert all(is_settled(listed[n]) or n < answered for n in at)

    def observed_beginning(self) -> int:
        """How many of the first listed messages are observed: a host drops no more before it was told to force."""
        observed = frozenset(messages_of(self.session.digest.pieces, self.session.digest))
        return next((at for at, m in enumerate(self.session.listed) if m.id not in observed), len(self.session.listed))

    def turn(self) -> None:
        before = self.session.digest.state.shown
        shown = self.session.turn()
        active = [p.id for p in self.session.digest.active()]
        if shown != before:
            assert set(shown) <= set(active)
        assert self.session.turn() == shown, "asked again, nothing changes"

    def check(self) -> None:
        known = self.session.digest
        sources = [source for each in known.pieces for source in each.sources]
        assert len(sources) == len(set(sources)), "no message is observed twice"
        assert len({each.id for each in known.pieces}) == len(known.pieces)
        active = known.active()
        assert all(one.end < other.start for one, other in pairwise(active))
        found = replacement(self.listed(), known.shown(), known)
        assert found is None or 0 < found.count <= len(self.session.listed)

    def listed(self) -> list[Listed]:
        return [
            *(Listed(id=m.id, role=m.role.value) for m in self.session.listed),
            Listed(id=MessageId("now"), role="user"),
        ]


@given(STEPS)
@settings(max_examples=150, deadline=None)
def test_each_settled_message_is_observed_once_whatever_happens(steps: list[Step]) -> None:
    """Exactly once, unless something was undone: with the notes on it goes what else they stood for, which is observed
    anew only where the list still tells that it was not."""
    course = Course()
    for step in steps:
        course.take(step)
    course.take(("force", 6))
    observed = Counter(messages_of(course.session.digest.pieces, course.session.digest))
    assert max(observed.values(), default=1) == 1
    if course.undone:
        return
    settled = [m.id for m in settled_beginning(course.session.listed)]
    assert [observed[m] for m in settled] == [1] * len(settled)
    assert [observed[m.id] for m in course.session.listed[len(settled) :]] == [0] * (
        len(course.session.listed) - len(settled)
    )
    assert max(course.model.shown.values(), default=1) == 1, "and shown to the observer once"


@given(STEPS)
@settings(max_examples=80, deadline=None)
def test_what_requests_show_replaces_a_beginning_that_leaves_less_than_the_threshold(steps: list[Step]) -> None:
    course = Course()
    for step in steps:
        course.take(step)
    course.take(("force", 6))
    course.take(("turn", 6))
    known = course.session.digest
    found = replacement(course.listed(), known.shown(), known)
    hidden = frozenset() if found is None else frozenset(messages_of(found.pieces, known))
    weigh = course.session.observing.weigh
    verbatim = [m for m in course.session.listed if m.id not in hidden]
    unsettled = course.session.listed[len(settled_beginning(course.session.listed)) :]
    if sum(map(weigh, verbatim)) >= POLICY.message_tokens + sum(map(weigh, unsettled)):
        raise AssertionError("everything that could be shown would have made room")


@given(STEPS, STEPS)
@settings(max_examples=40, deadline=None)
def test_a_fork_goes_its_own_way(before: list[Step], after: list[Step]) -> None:
    course = Course()
    for step in before:
        course.take(step)
    fork = Course()
    fork.told = course.told
    fork.session.listed = [replace(m, id=MessageId(f"{m.id}0000")) for m in course.session.listed]
    known = course.session.digest
    for step in after:
        fork.take(step)
    assert course.session.digest == known
    fork.take(("force", 6))
    assert fork.session.digest.pieces or not settled_beginning(fork.session.listed)


LINES = st.lists(st.sampled_from(["Date: Mar 2, 2026", "* 🔴 (09:00) a", "* 🟡 b", "  * -> c", "", "d\r"]), max_size=12)
LOGS = LINES.map("\n".join)


@given(LOGS, LOGS)
def test_joining_logs_loses_no_line_and_repeats_no_whole(log: str, new: str) -> None:
    whole = appended(log, new)
    assert {line.strip() for line in f"{log}\n{new}".splitlines()} - {""} <= {
        line.strip() for line in whole.splitlines()
    }
    assert appended(whole, new) == whole == appended(whole, log)
    rest = added_by(log, new)
    assert render_log([piece(1, log, 0), piece(2, rest, 1)]) == appended(log, rest)
    assert added_by(whole, new) == ""


@given(LOGS, st.integers(0, 40))
def test_a_tail_fits_and_holds_only_lines_of_its_log(log: str, most: int) -> None:
    count = WordTokens().count
    shown = tail(log, max_tokens=most, count=count)
    assert count(shown) <= most
    lines = {line.strip() for line in log.replace("\r", "\n").splitlines()}
    assert {line.strip() for line in shown.splitlines()} <= lines | {"…"}


@given(st.text(max_size=300))
def test_any_text_can_be_capped_and_judged(text: str) -> None:
    assert capped_lines(capped_lines(text)) == capped_lines(text)
    assert not is_degenerate(text)
