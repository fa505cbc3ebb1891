"""Facts and changes that a model proposes, read out of its answer item by item.

What is unusable is dropped and counted, never guessed. Whether a proposal is carried out is decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from backstory.domain.answers import Finish, Reason, Unusable, json_values
from backstory.domain.memory import Kind, Visibility
from backstory.domain.vocabulary import classify
from backstory.errors import InputError

MAX_ITEMS = 200
"""Of one kind in one answer; beyond it a model is repeating itself."""

_LISTS = ("facts", "memories", "items", "results", "learnings")
_TEXTS = ("text", "fact", "content", "memory", "statement")
_TYPES = ("type", "kind", "category")
# What a prompt's own example leaves behind: dots, or a word in brackets in place of a text.
_PLACEHOLDER = re.compile(
    r"[\W_]*|[<\[{(][^<>\[\]{}()]{0,60}[>\]})]|string|text|(?:a |the |your )?fact(?: \d+)?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedFact:
    """A statement to remember. ``type`` and ``scope`` are the model's words for it, unchecked.

    ``sources`` are the numbers or ids of the messages that it names as said there, unchecked too.
    """

    text: str
    type: str | None = None
    scope: str | None = None
    tags: tuple[str, ...] = ()
    confidence: float | None = None
    sources: tuple[str, ...] = ()

    def kind(self) -> Kind:
        """What the type means; ``other`` for a word nobody knows, ``fact`` for none."""
        try:
            return classify(self.type, None).kind or Kind.FACT
        except InputError:
            return Kind.OTHER

    def visibility(self, default: Visibility) -> Visibility:
        """Global or project as the model says it, otherwise ``default``: a word nobody knows widens nothing."""
        word = (self.scope or "").strip().lower()
        return Visibility(word) if word in (Visibility.GLOBAL, Visibility.PROJECT) else default


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedFacts:
    """What a text was found to say; none is a valid finding. ``dropped`` counts items that say nothing."""

    facts: tuple[ProposedFact, ...]
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    """Changes a model proposes to memories it was shown.

    ``update`` and ``disputed`` pair an id with the new text or the evidence against it. ``skipped`` counts items about
    ids it was not shown. ``contradictory`` are ids for which it asked two different things: none of it is proposed.
    ``review`` are ids to delete that leave nothing of what it was shown, and nothing new: a person should look first.
    ``cited`` are, by the id of an update, the messages that it names as the source of the new text.
    """

    new: tuple[ProposedFact, ...] = ()
    update: tuple[tuple[str, str], ...] = ()
    delete: tuple[str, ...] = ()
    disputed: tuple[tuple[str, str], ...] = ()
    summary: str | None = None
    skipped: int = 0
    contradictory: tuple[str, ...] = ()
    review: tuple[str, ...] = ()
    cited: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))


def read_facts(raw: str | None, *, finish: Finish = Finish.UNKNOWN) -> ProposedFacts | Unusable:
    """The facts of an answer: ``{"facts": [...]}``, a bare list, or one object a line; texts, or objects with a text.

    Of several such objects the last one counts: what stands before it is an example or a first try.
    """
    values = json_values(raw, finish=finish)
    if isinstance(values, Unusable):
        return values
    loose = [value for value in values if isinstance(value, dict) and _text(value) is not None]
    if loose and len(loose) == len(values):
        # nothing tells whether the last line was to be the last
        return _facts(loose) if finish is not Finish.LENGTH else Unusable(reason=Reason.TRUNCATED)
    listed = [found for value in values if (found := _listed(value)) is not None]
    return _facts(listed[-1]) if listed else Unusable(reason=Reason.NOT_STRUCTURED)


def read_proposals(raw: str | None, *, known: Collection[str], finish: Finish = Finish.UNKNOWN) -> Proposals | Unusable:
    """The changes of an answer: an object with any of ``new``, ``update``, ``delete``, ``conflicts``, ``summary``.

    ``known`` are the ids the model was shown. Of several such objects the last one counts.
    """
    values = json_values(raw, finish=finish)
    if isinstance(values, Unusable):
        return values
    fitting = [value for value in values if isinstance(value, dict) and value.keys() & _CHANGES]
    return _proposals(fitting[-1], frozenset(known)) if fitting else Unusable(reason=Reason.NOT_STRUCTURED)


_CHANGES = frozenset(("new", "update", "delete", "conflicts", "summary"))


def _listed(value: object) -> Sequence[object] | None:
    """The items of one JSON value; None when it is something else."""
    if isinstance(value, list):
        return value
    key = next((key for key in _LISTS if isinstance(value, dict) and key in value), None)
    if key is None or not isinstance(value, dict):
        return [value] if isinstance(value, dict) and _text(value) is not None else None
    items = value[key]
    if items is None:
        return []
    return items if isinstance(items, list) else [items]


def _facts(items: Sequence[object]) -> ProposedFacts | Unusable:
    facts = _usable(items)
    if items and not facts:
        return Unusable(reason=_why_none(items))
    return ProposedFacts(facts=facts, dropped=len(items) - len(facts))


def _why_none(items: Sequence[object]) -> Reason:
    return Reason.PLACEHOLDER if any(isinstance(item, str) and item.strip() for item in items) else Reason.WRONG_KIND


def _usable(items: object) -> tuple[ProposedFact, ...]:
    listed = items if isinstance(items, list) else []
    return tuple(fact for item in listed[:MAX_ITEMS] if (fact := _fact(item)) is not None)


def _fact(item: object) -> ProposedFact | None:
    if isinstance(item, str):
        return None if _PLACEHOLDER.fullmatch(item.strip()) else ProposedFact(text=item.strip())
    if not isinstance(item, dict):
        return None
    text = _text(item)
    if text is None or _PLACEHOLDER.fullmatch(text):
        return None
    return ProposedFact(
        text=text,
        type=_word(*(item.get(key) for key in _TYPES)),
        scope=_word(item.get("scope")),
        tags=_tags(item.get("tags")),
        confidence=_share(item.get("confidence")),
        sources=_sources(item.get("sources")),
    )


def _text(item: dict[str, object]) -> str | None:
    return _word(*(item.get(key) for key in _TEXTS))


def _word(*candidates: object) -> str | None:
    """The first that is a text with something in it, trimmed."""
    return next((value.strip() for value in candidates if isinstance(value, str) and value.strip()), None)


def _tags(value: object) -> tuple[str, ...]:
    listed = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(dict.fromkeys(tag.strip() for tag in listed if isinstance(tag, str) and tag.strip()))


def _sources(value: object) -> tuple[str, ...]:
    """Numbers and ids as texts, without signs around a number: ``3``, ``"3"``, ``"#3"`` and ``"[3]"`` are the same."""
    listed = value if isinstance(value, list) else [value]
    named = (str(item) for item in listed[:MAX_ITEMS] if isinstance(item, str | int) and not isinstance(item, bool))
    return tuple(dict.fromkeys(bare for name in named if (bare := name.strip("[]()#. \t\n"))))


def _share(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and isinstance(value, int | float) and 0.0 <= value <= 1.0 else None


def _proposals(answer: dict[str, object], known: frozenset[str]) -> Proposals:
    updates = _pairs(answer.get("update"), ("text", "content"))
    disputed = _pairs(answer.get("conflicts"), ("evidence", "text"))
    deletes = dict.fromkeys(key for key in _items(answer.get("delete")) if isinstance(key, str))
    contradictory = _contradictory(updates, deletes)
    settled = known - contradictory
    new = _usable(answer.get("new"))
    update = tuple(dict.fromkeys((key, text) for key, text in updates if key in settled))
    delete = tuple(key for key in deletes if key in settled)
    takes_all = len(known) > 1 and not new and not update and set(delete) == known
    summary = answer.get("summary")
    named = [*deletes, *(key for key, _ in (*updates, *disputed))]
    return Proposals(
        new=new,
        update=update,
        delete=() if takes_all else delete,
        disputed=tuple(dict.fromkeys((key, evidence) for key, evidence in disputed if key in known)),
        summary=summary.strip() if isinstance(summary, str) else None,
        skipped=sum(key not in known for key in named),
        contradictory=tuple(sorted(contradictory & known)),
        review=delete if takes_all else (),
        cited=_cited(answer.get("update")),
    )


def _cited(updates: object) -> Mapping[str, tuple[str, ...]]:
    named = {
        key: sources
        for item in _items(updates)
        if isinstance(item, dict)
        and isinstance(key := item.get("id"), str)
        and (sources := _sources(item.get("sources")))
    }
    return MappingProxyType(named)


def _contradictory(updates: Sequence[tuple[str, str]], deletes: Collection[str]) -> frozenset[str]:
    texts: dict[str, str] = {}
    twice = {key for key, text in updates if texts.setdefault(key, text) != text}
    return frozenset(twice | (texts.keys() & set(deletes)))


def _items(value: object) -> Sequence[object]:
    return value[:MAX_ITEMS] if isinstance(value, list) else []


def _pairs(value: object, keys: Sequence[str]) -> list[tuple[str, str]]:
    pairs = []
    for item in _items(value):
        if isinstance(item, dict) and isinstance(key := item.get("id"), str):
            text = _word(*(item.get(name) for name in keys))
            if text is not None:
                pairs.append((key, text))
    return pairs
