"""Trees of random sessions, in which messages come, stay unfinished, are finished, and are taken back."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.domain.conversation import Message, Role
from backstory.domain.digest import Piece, SessionDigest, messages_of, without_messages
from backstory.domain.digest_plan import Listed, replacement
from backstory.domain.ids import MessageId
from backstory.domain.summary_tree import TreePolicy
from backstory.domain.transcript import is_settled
from tests.trees import applied, before_turn, grown, message, no_digest

POLICIES = st.sampled_from(
    [
        TreePolicy(),
        TreePolicy(max_raw=4, min_batch=2, compact_threshold=3, compact_branch=2, max_sync=12),
        TreePolicy(max_raw=2, min_batch=1, compact_threshold=2, compact_branch=2, max_sync=5),
        TreePolicy(max_raw=7, min_batch=3, compact_threshold=5, compact_branch=4, max_sync=9),
    ]
)
EVENTS = st.one_of(
    st.tuples(st.just("ask"), st.integers(0, 12)),
    st.tuples(st.just("run"), st.integers(0, 40)),
    st.tuples(st.just("hang"), st.just(0)),
    st.tuples(st.just("finish"), st.just(0)),
    st.tuples(st.just("undo"), st.integers(1, 15)),
    st.tuples(st.just("remove"), st.integers(0, 200)),
    st.tuples(st.just("compact"), st.just(0)),
)


@dataclass
class Lived:
    """A session while it is lived."""

    policy: TreePolicy
    messages: list[Message] = field(default_factory=list)
    digest: SessionDigest = field(default_factory=no_digest)
    told: int = 0

    def happen(self, event: str, size: int) -> None:
        match event:
            case "ask":
                self._say(user=True)
                for _ in range(size):
                    self._say()
            case "run":
                for _ in range(size):
                    self._say()
            case "hang":
                self._say(finished=False)
            case "finish":
                self.messages = [replace(m, completed_at=m.created_at) for m in self.messages]
            case "undo":
                self._take_back([m.id for m in self.messages[-size:]])
            case "remove" if self.messages:
                self._take_back([self.messages[size % len(self.messages)].id])
        self.digest = grown(self.digest, self.messages, policy=self.policy, forced=event == "compact")

    def _say(self, *, user: bool = False, finished: bool = True) -> None:
        self.messages.append(message(self.told, user=user, finished=finished))
        self.told += 1

    def _take_back(self, ids: list[MessageId]) -> None:
        self.messages = [m for m in self.messages if m.id not in ids]
        update = without_messages(self.digest, frozenset(ids))
        if update is not None:
            self.digest = applied(self.digest, update)


@settings(max_examples=150, deadline=None)
@given(POLICIES, st.lists(EVENTS, max_size=25))
def test_a_tree_fits_its_session_whatever_happens(policy: TreePolicy, events: list[tuple[str, int]]) -> None:
    lived = Lived(policy=policy)
    for event, size in events:
        lived.happen(event, size)
        _check(lived)


def _check(lived: Lived) -> None:
    digest, messages = lived.digest, lived.messages
    active = digest.active()
    assert all(earlier.end < later.start for earlier, later in pairwise(active))
    assert all(len(messages_of([p], digest)) <= p.end - p.start + 1 for p in digest.pieces)
    covered = messages_of(active, digest)
    assert len(covered) == len(set(covered))
    assert set(covered) == set(messages_of(digest.pieces, digest))
    order = {m.id: at for at, m in enumerate(messages)}
    assert [order[name] for name in covered] == sorted(order[name] for name in covered)
    _check_families(digest)
    _check_unfinished(messages, set(covered))
    gap = covered != [m.id for m in messages[: len(covered)]]
    if not gap and before_turn(messages):  # where no user speaks, nothing is past
        _check_limits(lived, active, len(covered))
        _check_shown(lived, active, len(covered))


def _check_families(digest: SessionDigest) -> None:
    for parent in digest.pieces:
        children = [digest.piece(name) for name in parent.children]
        assert all(child is not None and child.parent == parent.id and not child.active for child in children)
        places = [(child.start, child.end) for child in children if child is not None]
        assert not places or (places[0][0], places[-1][1]) == (parent.start, parent.end)
        assert bool(parent.sources) != bool(parent.children)


def _check_unfinished(messages: list[Message], covered: set[MessageId]) -> None:
    places = (at for at, m in enumerate(messages) if m.role is Role.ASSISTANT and is_settled(m))
    last_finished = max(places, default=-1)
    assert not [at for at, m in enumerate(messages) if m.id in covered and not is_settled(m) and at > last_finished]


def _check_limits(lived: Lived, active: list[Piece], covered: int) -> None:
    assert all(count < lived.policy.compact_threshold for count in Counter(p.level for p in active).values())
    past = lived.messages[covered : before_turn(lived.messages)]
    settled = all(is_settled(m) for m in past)
    assert not settled or len(past) < max(lived.policy.max_raw, lived.policy.min_batch)


def _check_shown(lived: Lived, active: list[Piece], covered: int) -> None:
    listed = [Listed(id=m.id, role=m.role.value) for m in lived.messages]
    found = replacement(listed, active, lived.digest)
    shown = 0 if found is None else found.count
    assert shown == covered or before_turn(lived.messages) < covered
