"""Who said what a statement says: its telling words, the utterances that carry them, and the origin that follows.

A model, or a rule, may propose any statement and claim any source for it; only what stands in the conversation counts
here. Cutting a conversation into utterances is ``utterance.py``; what becomes of a statement is decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from backstory.domain.ids import MessageId
from backstory.domain.outside_passages import passages, reported_order
from backstory.domain.provenance import Origin, is_injectable, lowest, trust
from backstory.domain.telling_words import carries_word, denies, telling_words, tokens_of
from backstory.domain.utterance import Utterance

LEAST_SUPPORT = 0.6
"""Of a statement worth keeping. Of 83 true statements about eleven conversations all but one have as much in their
own, and of 830 pairs with another conversation two have (bench/RESULTS.md, dream)."""
ORDER_SHARE = 0.5
"""Of the words that an assistant says: an earlier outside passage with so many of them, which orders or permits
something, is what it repeats. Injected orders come to 0.7 and more, also when they are put in other words."""
REPEATED_SHARE = 0.65
"""The same for a passage that only tells something: below it an assistant has concluded for itself. At 0.8 three more
of 43 true findings were the assistant's own, but a word or two put beside an order in plain words hid it."""
SLACK = 0.2
"""Share of plain words by which an utterance may fall short and still count as the one who said it."""
_MOST_SOURCES = 4  # what is put together from more places nobody has said


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounding:
    """What a statement rests on. ``support`` is the share of its telling words that was found, in [0, 1]; ``messages``
    are where, in their order. ``origin`` is the least trusted of the sources that it needs, ``imported`` for none."""

    origin: Origin
    messages: tuple[MessageId, ...]
    support: float


def ground(text: str, utterances: Sequence[Utterance], *, named: Collection[MessageId] = ()) -> Grounding:
    """Find the sources of a statement among utterances, which should reach back to where the conversation began.

    The best trusted sources are taken that carry its telling words: numbers, names and all that is no stop word, by
    their stems. A detail that is only in outside text gives the statement that text's origin, and so does outside text
    that says it more closely than anybody else. An assistant who repeats what outside text said before counts as that
    text, unless the user said it before; a user who agrees says nothing himself, and changes none of this.

    ``named`` are the messages that somebody claims as sources. Where they bear the statement out by themselves, they
    are its sources, and if they are less trusted, so is the statement; a claim raises nothing, and one that is not
    borne out counts for nothing. Linear in the utterances; their words are kept for the next statement.
    """
    found = _ground(text, utterances)
    claimed = _ground(text, [one for one in utterances if one.message in named]) if named else found
    if claimed.support < LEAST_SUPPORT:
        return found
    return Grounding(origin=lowest((found.origin, claimed.origin)), messages=claimed.messages, support=found.support)


class _Source(NamedTuple):
    """An utterance, or a passage of outside text, and which words of the statement it carries, a bit for each."""

    utterance: Utterance
    carries: int
    orders: bool = False


class _Statement:
    """The words of a statement, and sums over sets of them."""

    def __init__(self, text: str) -> None:
        self.words = telling_words(text)
        self.total = self.weight((1 << len(self.words)) - 1)
        self.denies = denies(text)

    def weight(self, carried: int) -> float:
        return sum(word.weight for place, word in enumerate(self.words) if carried >> place & 1)

    def has_name(self, carried: int) -> bool:
        return any(word.is_name for place, word in enumerate(self.words) if carried >> place & 1)

    def carried_by(self, tokens: frozenset[str]) -> int:
        return sum(1 << place for place, word in enumerate(self.words) if carries_word(tokens, word))

    def best(self, sources: Sequence[_Source], count: int) -> list[_Source]:
        """The few sources that carry most between them, each the best for what is missing; of equals the earliest."""
        chosen: list[_Source] = []
        missing = (1 << len(self.words)) - 1
        while len(chosen) < count:
            source = max(sources, key=lambda source: self.weight(source.carries & missing), default=None)
            if source is None or not source.carries & missing:
                break
            chosen.append(source)
            missing &= ~source.carries
        return chosen

    def nearly_all(self, carried: int, of: int) -> bool:
        """Whether nothing but a few plain words is missing."""
        missing = of & ~carried
        return not self.has_name(missing) and self.weight(missing) <= SLACK * self.weight(of)


def _ground(text: str, utterances: Sequence[Utterance]) -> Grounding:
    said = _Statement(text)
    trusted, repeated, outside = _sorted(said, utterances)
    speakers = [*trusted, *(source for source, _ in repeated)]
    chosen, known = said.best(speakers, _MOST_SOURCES), _together(trusted)
    pulling = [*_pulling(said, trusted, outside), *_repeating(said, known, repeated)]
    users = said.best([source for source in trusted if source.utterance.origin is Origin.USER], _MOST_SOURCES)
    if pulling:
        origin = lowest([origin for origin, _ in pulling])
        chosen = [*chosen, *(source for _, source in pulling)]
    elif users and said.nearly_all(_together(users), _together(chosen)) and _says_so(said, users):
        origin, chosen = Origin.USER, users
    elif chosen:
        origin = lowest([Origin.AGENT, *(source.utterance.origin for source in chosen)])
    else:
        return Grounding(origin=Origin.IMPORTED, messages=(), support=0.0)
    support = said.weight(_together(chosen)) / said.total
    return Grounding(origin=origin, messages=_messages(chosen, utterances), support=support)


def _sorted(
    said: _Statement, utterances: Sequence[Utterance]
) -> tuple[list[_Source], list[tuple[_Source, Origin]], list[_Source]]:
    """The speakers to be believed, those who repeat outside text with its origin, and the outside passages."""
    trusted: list[_Source] = []
    repeated: list[tuple[_Source, Origin]] = []
    outside: list[_Source] = []
    anywhere = [passage for one in utterances if not _is_trusted(one) for passage in _passages_of(said, one)]
    for utterance in utterances:
        if not _is_trusted(utterance):
            outside += _passages_of(said, utterance)
        elif carries := _carried(said, utterance, anywhere):
            source = _Source(utterance, carries)
            told = None
            if utterance.origin is not Origin.USER:
                told = _repeats(said, source, trusted, outside)
            if told is None:
                trusted.append(source)
            else:
                repeated.append((source, told))
    return trusted, repeated, outside


def _carried(said: _Statement, utterance: Utterance, outside: Sequence[_Source]) -> int:
    """What a speaker says of a statement. Who only asks about what outside text says, does not say it."""
    carries = said.carried_by(tokens_of(_own_words(utterance)))
    if not carries or utterance.origin is not Origin.USER or "?" not in utterance.text:
        return carries
    least = REPEATED_SHARE * said.weight(carries)
    if all(said.weight(passage.carries & carries) < least for passage in outside):
        return carries
    return said.carried_by(tokens_of("\n".join(one for one in _sentences(utterance.text) if not one.endswith("?"))))


def _repeats(said: _Statement, source: _Source, before: Sequence[_Source], outside: Sequence[_Source]) -> Origin | None:
    """The origin of the passages that a speaker repeats, with nobody before him who said as much; None for none."""
    own = said.weight(source.carries)
    users = [earlier for earlier in before if earlier.utterance.origin is Origin.USER]
    by_user = said.weight(source.carries & _together(said.best(users, 2)))
    by_anybody = max(by_user, said.weight(source.carries & _together(said.best(before, 2))))
    told = [
        passage.utterance.origin
        for passage in outside
        if (shared := said.weight(passage.carries & source.carries)) > (by_user if passage.orders else by_anybody)
        and shared >= own * (ORDER_SHARE if passage.orders else REPEATED_SHARE)
    ]
    return _below_agent(told) if told else None


def _pulling(
    said: _Statement, trusted: Sequence[_Source], outside: Sequence[_Source]
) -> Iterator[tuple[Origin, _Source]]:
    """Outside passages with a name or number that nobody else said, or closer to the statement than anybody."""
    known = _together(trusted)
    closest = said.weight(_together(said.best(trusted, 2)))
    for passage in outside:
        weight = said.weight(passage.carries)
        is_close = weight >= said.total * (ORDER_SHARE if passage.orders else REPEATED_SHARE)
        if said.has_name(passage.carries & ~known) or (is_close and weight > closest):
            yield _below_agent([passage.utterance.origin]), passage


def _repeating(
    said: _Statement, known: int, repeated: Sequence[tuple[_Source, Origin]]
) -> Iterator[tuple[Origin, _Source]]:
    """Speakers who repeat outside text, as far as the statement needs them."""
    for source, origin in repeated:
        missing = source.carries & ~known
        if said.has_name(missing) or said.weight(missing) > SLACK * said.total:
            yield origin, source


def _says_so(said: _Statement, users: Sequence[_Source]) -> bool:
    """Whether a user's words deny what the statement denies, and the other way round."""
    return any(
        denies(sentence) == said.denies
        for source in users
        for sentence in re.split(r"[.!?]\s|\n", source.utterance.text)
        if 2 * said.weight(said.carried_by(tokens_of(sentence))) >= said.weight(source.carries)
    )


def _own_words(utterance: Utterance) -> str:
    """What a speaker says of himself: not where an assistant reports what some text wants of assistants."""
    if utterance.origin is Origin.USER or utterance.is_code:
        return utterance.text
    return "\n".join(one for one in _sentences(utterance.text) if not reported_order().search(one))


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?])\s|\n", text)


def _is_trusted(utterance: Utterance) -> bool:
    return is_injectable(utterance.origin) and not utterance.is_echo


def _below_agent(origins: Sequence[Origin]) -> Origin:
    """The least trusted of several outside texts; an echo of what was said here is no better than a file."""
    return lowest([Origin.FILE if trust(origin) >= trust(Origin.AGENT) else origin for origin in origins])


def _passages_of(said: _Statement, utterance: Utterance) -> Iterator[_Source]:
    for passage in passages(utterance.text):
        if carries := said.carried_by(passage.tokens):
            yield _Source(utterance, carries, passage.orders)


def _together(sources: Sequence[_Source]) -> int:
    carried = 0
    for source in sources:
        carried |= source.carries
    return carried


def _messages(chosen: Sequence[_Source], utterances: Sequence[Utterance]) -> tuple[MessageId, ...]:
    ids = {source.utterance.message for source in chosen}
    return tuple(dict.fromkeys(utterance.message for utterance in utterances if utterance.message in ids))
