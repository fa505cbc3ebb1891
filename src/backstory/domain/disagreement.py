"""In what two sentences disagree: the same words but for a "not", a contrary or a value of which one holds at a time.

Where the sentences come from is in ``clause.py``, the words that clash are in ``rivals.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backstory.domain.clause import Clause, clauses, left_behind, one_word
from backstory.domain.opposites import WEIGHTY
from backstory.domain.rivals import (
    AMOUNT_VERBS,
    CHANGING,
    CONTRARIES,
    EXACT_VERBS,
    GENERIC,
    IMPERATIVES,
    LOOSE_VERBS,
    NEGATIONS,
    PARTICIPLES,
    PREPOSITIONS,
    QUALITIES,
    RIVALS,
    ROLES,
    TO_A_VALUE,
    VERBS,
    ValueKind,
    is_unit,
    kind_of_value,
    measured_in,
    rivals,
    same_quantity,
)
from backstory.domain.said_words import QUESTION, is_detail

_VALUE_WORDS = 4
_TELLING_WORDS = 2
_TO_A_NUMBER = frozenset(["to", "up", "as", "for"])
"""May stand before one of two numbers alone: "is set to 30", "is 30"."""
_DENYING = NEGATIONS | {"longer", "any", "anymore", "more"}
_LIMITS = (WEIGHTY - _DENYING - {"not,", "no,"}) | {
    "yesterday",
    "ago",
    "earlier",
    "had",
    "if",
    "when",
    "except",
    "also",
}
"""Words that make a statement about another time, or about a part of the cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """The words in which two statements differ, those of the first and those of the second; "" where it has none."""

    ours: str
    theirs: str

    @property
    def told(self) -> str:
        """For people: ``8080 against 9090``."""
        if self.ours and self.theirs:
            return f"{self.ours} against {self.theirs}"
        return f"only one says “{self.ours or self.theirs}”"

    @property
    def turned(self) -> Disagreement:
        """The same, seen from the second."""
        return Disagreement(ours=self.theirs, theirs=self.ours)


def differ(one: Clause, other: Clause) -> Disagreement | None:
    """In what two sentences contradict each other; None where they do not, or not for certain."""
    if QUESTION in one.said or QUESTION in other.said or not (one.said and other.said):
        return None
    if not _LIMITS.isdisjoint(set(one.said) ^ set(other.said)):
        return None  # only one of them tells of the past, of a time, or of some only
    for find in (_denied, _opposed, _revalued, _revalued_in_other_words):
        if (found := find(one, other)) is not None:
            return found
    return None


def moved_on(a: str, b: str) -> Disagreement | None:
    """One says that something was left, the other that it is still there."""
    for old, new in left_behind(a):
        if _still_says(b, old, new, beside=a):
            return Disagreement(ours=new or f"no {old} any more", theirs=old)
    for old, new in left_behind(b):
        if _still_says(a, old, new, beside=b):
            return Disagreement(ours=old, theirs=new or f"no {old} any more")
    return None


def _still_says(text: str, value: str, instead: str, *, beside: str) -> bool:
    """Whether a text counts on something: names it anywhere, or, where it may be a common word, says it of a thing.

    Where ``beside`` tells what was changed, the text has to speak of that: who left Jenkins for the tests may release
    with it.
    """
    wanted = one_word(value)
    if wanted.casefold() == one_word(instead).casefold():
        return False
    is_name = is_detail(wanted) or any(wanted in clause.names for each in (text, beside) for clause in clauses(each))
    changed = _changed(beside, frozenset((wanted, one_word(instead))))
    for clause in clauses(text):
        places = [place for place, word in enumerate(clause.said) if word == wanted]
        if not places or not _LIMITS.isdisjoint(clause.said) or not NEGATIONS.isdisjoint(clause.said):
            continue
        if changed and changed.isdisjoint(clause.forms):
            continue
        if is_name:
            return not any(old == value for old, _ in left_behind(text))
        rest = clause.said[places[0] + 1 :]
        if _verb(clause.said[: places[0]]) is not None and (not rest or rest[0] in PREPOSITIONS):
            return True
    return False


def _changed(text: str, values: frozenset[str]) -> frozenset[str]:
    """The telling words of the sentences that speak of these values, less the values: what was changed, of a sentence
    about a change. Names and moments that only say when are none."""
    return frozenset(
        form
        for clause in clauses(text)
        if not values.isdisjoint(clause.said)
        for word, form in zip(clause.said, clause.forms, strict=True)
        if word not in values and word not in CHANGING and word not in RIVALS and word.isalpha() and _is_telling(word)
    )


def _denied(one: Clause, other: Clause) -> Disagreement | None:
    """The same words, but for one "not"."""
    for clause, plain, turn in ((one, other, False), (other, one, True)):
        nots = [word for word in clause.said if word in NEGATIONS]
        if len(nots) != 1 or not NEGATIONS.isdisjoint(plain.said) or len(plain.said) < 2:
            continue
        forms = [form for word, form in zip(clause.said, clause.forms, strict=True) if word not in _DENYING]
        if forms == [form for form in plain.forms if form not in _DENYING]:
            found = Disagreement(ours=nots[0], theirs="")
            return found.turned if turn else found
    return None


def _opposed(one: Clause, other: Clause) -> Disagreement | None:
    """The same words, but for one against its contrary; one that only tells which thing is meant says nothing."""
    if len(one.forms) != len(other.forms) or len(one.forms) < 2:
        return None
    places = [place for place, (a, b) in enumerate(zip(one.forms, other.forms, strict=True)) if a != b]
    if len(places) != 1:
        return None
    place = places[0]
    ours, theirs = one.said[place], other.said[place]
    if theirs not in CONTRARIES.get(ours, frozenset()):
        return None
    if ours in QUALITIES and VERBS.isdisjoint(one.said[:place]) and not _denies_by(ours):
        return None
    return Disagreement(ours=ours, theirs=theirs)


def _revalued(one: Clause, other: Clause) -> Disagreement | None:
    """The same words before and after, and between them another value of the same sort."""
    start = _common(one.forms, other.forms)
    end = _common(one.forms[start:][::-1], other.forms[start:][::-1])
    ours, theirs = one.said[start : len(one.said) - end], other.said[start : len(other.said) - end]
    if not ours or not theirs or len(ours) > _VALUE_WORDS or len(theirs) > _VALUE_WORDS:
        return None
    before, after = one.said[:start], one.said[len(one.said) - end :]
    values = _values(ours), _values(theirs)
    if not values[0] or not values[1] or same_quantity(*values) or not _one_relation(ours, theirs):
        return None
    found = Disagreement(ours=" ".join(ours), theirs=" ".join(theirs))
    if _expressly(one, other, values):
        return found
    return found if _is_said_of_it(before, after, *values, one.names | other.names) else None


def _one_relation(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Whether two values answer the same question: not "written in Go" and "deployed with Helm", nor "is Postgres" and
    "is on db-1", nor amounts of different things."""
    made = [frozenset(words) & PARTICIPLES for words in (ours, theirs)]
    if made[0] and made[1] and made[0] != made[1]:
        return False
    sizes = measured_in(tuple(ours)), measured_in(tuple(theirs))
    if sizes[0] and sizes[1] and sizes[0] != sizes[1]:
        return False
    is_number = all(any(word[0].isdigit() for word in words) for words in (ours, theirs))
    leading = PREPOSITIONS - _TO_A_NUMBER if is_number else PREPOSITIONS
    leads = [[word for word in words if word in leading] for words in (ours, theirs)]
    return leads[0] == leads[1]


def _values(words: Sequence[str]) -> tuple[str, ...]:
    """The words of a value, less those that only lead to it."""
    return tuple(word for word in words if word not in PREPOSITIONS and word not in PARTICIPLES)


def _expressly(one: Clause, other: Clause, values: tuple[tuple[str, ...], tuple[str, ...]]) -> bool:
    """Whether one rejects the value of the other by name."""
    return (one.rejected[: len(values[1])] == values[1] and bool(one.rejected)) or (
        other.rejected[: len(values[0])] == values[0] and bool(other.rejected)
    )


def _is_said_of_it(
    before: Sequence[str], after: Sequence[str], ours: tuple[str, ...], theirs: tuple[str, ...], names: frozenset[str]
) -> bool:
    """Whether a value stands where only one can be true: after a verb in the present tense, of a subject named."""
    place = _verb(before)
    if place is None:
        return False
    verb, subject, gap = before[place], before[:place], before[place + 1 :]
    named = not GENERIC.issuperset(subject) or any(map(_is_telling, (*gap, *after)))
    if len(ours) == len(theirs) == 1 and rivals(ours[0], theirs[0]):
        return named or verb in LOOSE_VERBS
    kind = kind_of_value(ours, names=names)
    if kind is None or kind is not kind_of_value(theirs, names=names) or not named:
        return False
    if verb in LOOSE_VERBS:
        return _has_a_role(after) if not gap else kind is ValueKind.NUMBER and len(gap) == 1 and _is_telling(gap[0])
    if verb in AMOUNT_VERBS and kind is not ValueKind.NUMBER:
        return False
    return _leads_to(gap, after, ours, kind)


def _leads_to(gap: Sequence[str], after: Sequence[str], value: tuple[str, ...], kind: ValueKind) -> bool:
    """Whether what stands between an exact verb and a value leaves the value the verb's own."""
    light = [word for word in gap if word not in PREPOSITIONS and word not in PARTICIPLES]
    if not light:
        return True
    if gap[-1] in TO_A_VALUE:
        return True
    if kind is not ValueKind.NUMBER:
        return False
    is_amount = len(value) > 1 or (bool(after) and is_unit(after[0])) or not value[0][-1].isdigit()
    return is_amount or light == [gap[-1]]


def _revalued_in_other_words(one: Clause, other: Clause) -> Disagreement | None:
    """The same telling words in another order or with another verb, and one value each of the same sort."""
    ours, theirs = _single_value(one), _single_value(other)
    if ours is None or theirs is None or ours == theirs or same_quantity(ours, theirs):
        return None
    kind = kind_of_value(ours, names=frozenset())
    if kind is None or kind is not kind_of_value(theirs, names=frozenset()):
        return None
    subject = _telling_forms(one, ours)
    if len(subject) < _TELLING_WORDS or subject != _telling_forms(other, theirs):
        return None
    return Disagreement(ours=" ".join(ours), theirs=" ".join(theirs))


def _single_value(clause: Clause) -> tuple[str, ...] | None:
    """The one value of a clause, where it is said after an exact verb; None for any other number of them."""
    places = [place for place, word in enumerate(clause.said) if _is_value(word)]
    verb = _verb(clause.said[: places[0]]) if len(places) == 1 else None
    if verb is None or clause.said[verb] not in EXACT_VERBS:
        return None
    place = places[0]
    following = clause.said[place + 1 : place + 2]
    return clause.said[place : place + 1 + (bool(following) and is_unit(following[0]))]


def _is_value(word: str) -> bool:
    return not (word.isalpha() and word.islower()) and kind_of_value((word,), names=frozenset()) is not None


def _telling_forms(clause: Clause, value: tuple[str, ...]) -> frozenset[str]:
    skipped = VERBS | PREPOSITIONS | PARTICIPLES | set(value)
    return frozenset(form for word, form in zip(clause.said, clause.forms, strict=True) if word not in skipped)


def _verb(words: Sequence[str]) -> int | None:
    """Where the verb stands: the last that can be nothing else, or the first word of an order."""
    last = next((place for place in reversed(range(len(words))) if words[place] in VERBS), None)
    return 0 if last is None and words and words[0] in IMPERATIVES else last


def _has_a_role(after: Sequence[str]) -> bool:
    return len(after) > 1 and after[0] in ROLES


def _is_telling(word: str) -> bool:
    return word not in VERBS and word not in PREPOSITIONS and word not in PARTICIPLES and word not in GENERIC


def _denies_by(word: str) -> bool:
    """Whether a contrary is a relation rather than a quality: before, with, over."""
    return word in PREPOSITIONS


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
