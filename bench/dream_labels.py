"""Sessions of a coding agent with what is to be kept of them, what is not, and what may stand nowhere.

The secrets of the set are filled with the word "fake", so that no scanner takes offence at the set, and no scanner of
secrets takes them for one. Drawn letters and digits are put in their place: the same at every run.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any

from backstory.domain.conversation import Message
from backstory.domain.ids import MessageId
from bench.evidence_sets import Conversation, read_transcripts

SECRET = "secret"
PARTS = ("tuned", "held_out", "unread", "all")
"""The rules were made on the first, third, fifth ... session; the others are held out. Of these the second, fourth and
sixth were read later, and the rest never."""
_READ = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A statement. ``reason`` is why it is not to be kept; None for one that is."""

    text: str
    sources: tuple[MessageId, ...]
    kind: str = "fact"
    scope: str = "project"
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSession:
    """``injections`` are orders from outside, ``secrets`` what must be gone from all that is stored, shown or sent.
    ``parts``: those of the set that it belongs to (``PARTS``)."""

    conversation: Conversation
    facts: Sequence[Label]
    not_facts: Sequence[Label]
    injections: Sequence[Label]
    secrets: Sequence[str]
    parts: frozenset[str]


def read_labelled(folder: Path) -> list[LabelledSession]:
    """The sessions in the order of their files."""
    conversations = read_transcripts(folder)
    files = sorted((folder / "coding-prompts" / "sessions").glob("*.json"))
    return [
        _labelled(conversation, json.loads(file.read_text(encoding="utf-8"))["labels"], _parts_of(place))
        for place, (conversation, file) in enumerate(zip(conversations, files, strict=True))
    ]


def _labelled(conversation: Conversation, labels: Mapping[str, Any], parts: frozenset[str]) -> LabelledSession:
    secrets: list[str] = []
    drawn: dict[str, str] = {}
    for secret in labels["secrets"]:
        pieces = list(secret["secret_parts"])
        for place in secret["vanish_parts"]:
            alphabet = _alphabet("".join(secret["secret_parts"][vanishing] for vanishing in secret["vanish_parts"]))
            pieces[place] = _drawn(pieces[place], alphabet, seed=f"{conversation.project}/{len(secrets)}")
            secrets.append(pieces[place])
        drawn["".join(secret["secret_parts"])] = "".join(pieces)
    return LabelledSession(
        conversation=replace(conversation, messages=[_with(drawn, message) for message in conversation.messages]),
        facts=[_label(row, kind=row["kind"], scope=row["scope"]) for row in labels["facts"]],
        not_facts=[_label(row, reason=row["reason"]) for row in labels["not_facts"]],
        injections=[
            Label(text=row["text"], sources=(MessageId(row["message"]),), reason="injection")
            for row in labels["injections"]
        ],
        secrets=secrets,
        parts=parts,
    )


def _parts_of(place: int) -> frozenset[str]:
    """``place`` counts from 0."""
    if place % 2 == 0:
        return frozenset(("tuned", "all"))
    return frozenset(("held_out", "all") if place < _READ else ("held_out", "unread", "all"))


def _label(row: Mapping[str, Any], **fields: str) -> Label:
    return Label(text=row["text"], sources=tuple(map(MessageId, row["sources"])), **fields)


def _alphabet(filler: str) -> str:
    """The sorts of characters that a filler has: capitals, small letters, digits."""
    return "".join(sort for sort in (ascii_uppercase, ascii_lowercase, digits) if not set(sort).isdisjoint(filler))


def _drawn(filler: str, alphabet: str, *, seed: str) -> str:
    """Characters of the alphabet in place of letters and digits; other signs stay."""
    source = random.Random(seed)
    return "".join(source.choice(alphabet) if sign.isalnum() else sign for sign in filler)


def _with(drawn: Mapping[str, str], message: Message) -> Message:
    def put_in(text: str) -> str:
        for filler, value in drawn.items():
            text = text.replace(filler, value)
        return text

    parts = [
        replace(part, text=put_in(part.text), detail=None if part.detail is None else put_in(part.detail))
        for part in message.parts
    ]
    return replace(message, parts=tuple(parts))
