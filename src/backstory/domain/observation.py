"""When a session is observed, when its observations are condensed, and from when on requests show them.

Observing happens ahead of need, a share of the threshold at a time; what was noted is put in place of the messages only
once a request has grown to the threshold, so that no request waits and the start of the prompt seldom changes. The
notes themselves are ``observation_log.py``; what is not observed yet, ``observation_cursor.py``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from backstory.domain.conversation import Message
from backstory.domain.digest import Piece, SessionDigest
from backstory.domain.observation_cursor import Waiting, observed_messages
from backstory.errors import InputError

MAX_COMPRESSION = 4
_PROGRESS_SHARE = 0.1  # of the threshold: what must be new before a condensed log is condensed again
_ROOMY_SHARE = 0.75  # of the threshold: a condensed log beyond it is to become denser the next time
_COMPRESSION = re.compile(r"\+([1-9])\Z")

Weigh = Callable[[Message], int]
"""The tokens of a whole message, nothing cut."""
CountText = Callable[[Piece], int]
"""The tokens of a piece's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationPolicy:
    """Sizes in tokens, and shares of ``message_tokens``; all thresholds count as reached when they are met exactly.

    ``buffer_share``: so much unobserved conversation starts an observation; 1 observes at the threshold itself.
    ``keep_share``: so much stays verbatim when observations take the place of messages. ``previous_tokens`` of earlier
    notes are shown to the observer, and ``window_tokens`` of conversation at once. The thresholds and shares are those
    of Mastra's observational memory. Raises InputError for values that fit nothing.
    """

    message_tokens: int = 30_000
    observation_tokens: int = 40_000
    buffer_share: float = 0.2
    keep_share: float = 0.2
    previous_tokens: int = 2_000
    window_tokens: int = 60_000

    def __post_init__(self) -> None:
        for name in ("message_tokens", "observation_tokens", "window_tokens"):
            _within(name, getattr(self, name), 1, math.inf, "token")
        _within("previous_tokens", self.previous_tokens, 0, math.inf, "tokens")
        _within("buffer_share", self.buffer_share, 0.01, 1, "of message_tokens")
        _within("keep_share", self.keep_share, 0, 0.99, "of message_tokens")

    @property
    def buffer_tokens(self) -> int:
        """How much unobserved conversation starts an observation."""
        return math.ceil(self.message_tokens * self.buffer_share)

    @property
    def keep_tokens(self) -> int:
        """How much of the conversation stays verbatim when observations are shown."""
        return math.floor(self.message_tokens * self.keep_share)


def _within(name: str, value: float, least: float, most: float, unit: str) -> None:
    if not least <= value <= most:
        limits = f"at least {least}" if most == math.inf else f"between {least} and {most}"
        raise InputError(f"{name} is {value}; it must be {limits} {unit}", field=name)


def is_enabled(agent: str | None, allowed: str | Iterable[str]) -> bool:
    """Whether an agent's sessions are observed: ``allowed`` is ``all``, or names.

    In one text, names stand between commas or blanks. An unknown agent is not one of those named. A blank text allows
    all, an empty list nobody.
    """
    if isinstance(allowed, str):
        allowed = re.split(r"[,\s]+", allowed.strip()) if allowed.strip() else ("all",)
    names = {name.strip() for name in allowed}
    return "all" in {name.lower() for name in names} or (agent is not None and agent in names)


def is_observation_due(found: Waiting | None, policy: ObservationPolicy, weigh: Weigh, *, forced: bool) -> bool:
    """Whether what waits is to be observed now."""
    if found is None:
        return False
    return forced or found.closed or _total(map(weigh, found.messages), policy.buffer_tokens) >= policy.buffer_tokens


def next_window(found: Waiting, max_tokens: int, weigh: Weigh) -> tuple[Message, ...]:
    """The oldest of the messages that wait, as many as weigh ``max_tokens`` together, and one at least."""
    taken = 0
    for count, message in enumerate(found.messages):
        taken += weigh(message)
        if count and taken > max_tokens:
            return found.messages[:count]
    return found.messages


def _total(amounts: Iterable[int], enough: int) -> int:
    """Their sum, as far as it takes to reach ``enough``."""
    total = 0
    for amount in amounts:
        total += amount
        if total >= enough:
            break
    return total


# --- condensing -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Reflection:
    """Pieces to be condensed to one, and how hard: from 0, as the model sees fit, to ``MAX_COMPRESSION``."""

    pieces: tuple[Piece, ...]
    compression: int


def due_reflection(digest: SessionDigest, policy: ObservationPolicy, count: CountText) -> Reflection | None:
    """What is to be condensed now; None when observations are below their threshold, or nothing would come of it.

    Condensed is what requests show already, if that is half a log at least, else the whole log. Each failure in a row
    asks for more compression, and so does a log that was condensed before and is still nearly as long as may be.
    """
    log = digest.active()
    if sum(map(count, log)) < policy.observation_tokens:
        return None
    leaves = Leaves(digest)
    shown = leaves.of(digest.shown())
    placed = [piece for piece in log if leaves.of([piece]) <= shown]
    is_half = 2 * sum(map(count, placed)) >= policy.observation_tokens
    plans = (
        _reflection(_at_once(part, policy, count), digest, policy, count)
        for part in ((placed, log) if is_half else (log,))
    )
    return next(filter(None, plans), None)


def _reflection(
    log: Sequence[Piece], digest: SessionDigest, policy: ObservationPolicy, count: CountText
) -> Reflection | None:
    before = max((piece for piece in log if piece.level > 0), key=lambda piece: piece.end, default=None)
    compression = 0 if before is None else _next_compression(before, policy, count)
    fresh = sum(count(piece) for piece in log if piece.level == 0)
    is_denser = before is not None and compression > compression_of(before)
    if fresh < _PROGRESS_SHARE * policy.observation_tokens and not is_denser:
        return None
    return Reflection(pieces=tuple(log), compression=min(compression + digest.state.attempts, MAX_COMPRESSION))


def _next_compression(before: Piece, policy: ObservationPolicy, count: CountText) -> int:
    roomy = count(before) <= _ROOMY_SHARE * policy.observation_tokens
    return min(compression_of(before) + (not roomy), MAX_COMPRESSION)


def _at_once(log: Sequence[Piece], policy: ObservationPolicy, count: CountText) -> list[Piece]:
    """The oldest pieces, as many as fit into one request, and one at least."""
    room = max(policy.window_tokens, 2 * policy.observation_tokens)
    taken = 0
    for at, piece in enumerate(log):
        taken += count(piece)
        if at and taken > room:
            return list(log[:at])
    return list(log)


def with_compression(version: str, compression: int) -> str:
    """The version of a prompt that asked for a compression: ``reflect/1+2``."""
    return f"{version}+{compression}" if compression else version


def compression_of(piece: Piece) -> int:
    """The compression that a piece was asked for."""
    found = _COMPRESSION.search(piece.prompt)
    return int(found[1]) if found else 0


# --- what requests show -----------------------------------------------------------------------------------------------


def to_show(
    messages: Sequence[Message], digest: SessionDigest, policy: ObservationPolicy, *, weigh: Weigh, count: CountText
) -> tuple[str, ...]:
    """The ids of the pieces that requests with these messages show, by place.

    Those that are shown stay until ``message_tokens`` of messages are verbatim. Then as many more as leave
    ``keep_tokens`` verbatim, and beyond that what it takes to come below ``message_tokens``. When what is shown has
    itself grown to ``observation_tokens``, its condensed form takes its place at once.
    """
    shown = digest.shown()
    if _ids(shown) == _ids(digest.active()):
        return _ids(shown)
    leaves = Leaves(digest)
    active = _joined(messages, digest, leaves)
    covered = _covering(active, shown, leaves)
    verbatim = _verbatim(messages, digest, leaves, weigh, enough=policy.message_tokens)
    if verbatim(shown) >= policy.message_tokens:
        return _ids(active[: _enough(active, covered, verbatim, policy)]) or _ids(shown)
    size = sum(map(count, shown))
    is_long = size >= policy.observation_tokens and sum(map(count, active[:covered])) < size
    return _ids(active[:covered]) if is_long and covered else _ids(shown)


def _enough(
    active: Sequence[Piece], covered: int, verbatim: Callable[[Sequence[Piece]], int], policy: ObservationPolicy
) -> int:
    """How many of the active pieces are shown, from the oldest on: at least the ``covered`` ones."""
    some = covered
    for more in range(covered + 1, len(active) + 1):
        left = verbatim(active[:more])
        if left < policy.keep_tokens and verbatim(active[:some]) < policy.message_tokens:
            break
        some = more
    return some


def _verbatim(
    messages: Sequence[Message], digest: SessionDigest, leaves: Leaves, weigh: Weigh, *, enough: int
) -> Callable[[Sequence[Piece]], int]:
    """How many tokens of the messages are verbatim in a request that shows some pieces; beyond ``enough`` not all.

    A message that was observed comes without its parts; its piece knows what all of its messages weigh.
    """
    here = {message.id for message in messages}
    observed = observed_messages(digest)
    raw = _total((weigh(message) for message in messages if message.id not in observed), enough)
    weights = {p.id: p.source_tokens for p in digest.pieces if p.level == 0 and not here.isdisjoint(p.sources)}

    def verbatim(pieces: Sequence[Piece]) -> int:
        hidden = leaves.of(pieces)
        return raw + sum(weight for piece, weight in weights.items() if piece not in hidden)

    return verbatim


def _joined(messages: Sequence[Message], digest: SessionDigest, leaves: Leaves) -> list[Piece]:
    """The active pieces up to the first message between them that none stands for."""
    observed = observed_messages(digest)
    gap = next((at for at, message in enumerate(messages) if message.id not in observed), len(messages))
    later = frozenset(message.id for message in messages[gap:])
    beyond = frozenset(piece.id for piece in digest.pieces if not later.isdisjoint(piece.sources))
    return list(takewhile(lambda piece: beyond.isdisjoint(leaves.of([piece])), digest.active()))


def _covering(active: Sequence[Piece], shown: Sequence[Piece], leaves: Leaves) -> int:
    """How many of the active pieces it takes to stand for all that is shown."""
    wanted = leaves.of(shown)
    for number, piece in enumerate(active):
        if not wanted:
            return number
        wanted -= leaves.of([piece])
    return len(active)


def next_id(digest: SessionDigest, *, level: int) -> str:
    """The id of the next piece of a level: ``obs0_001``, ``obs1_001``."""
    used = (re.fullmatch(rf"obs{level}_(\d+)", piece.id) for piece in digest.pieces)
    return f"obs{level}_{1 + max((int(found[1]) for found in used if found), default=0):03d}"


class Leaves:
    """The pieces of level 0 that the pieces of a digest are or were made from."""

    def __init__(self, digest: SessionDigest) -> None:
        self._by_id = {piece.id: piece for piece in digest.pieces}

    def of(self, pieces: Iterable[Piece]) -> frozenset[str]:
        """Their ids."""
        found: set[str] = set()
        left = list(pieces)
        while left:
            piece = left.pop()
            if piece.level == 0:
                found.add(piece.id)
            left += [self._by_id[child] for child in piece.children if child in self._by_id]
        return frozenset(found)


def _ids(pieces: Sequence[Piece]) -> tuple[str, ...]:
    return tuple(piece.id for piece in pieces)
