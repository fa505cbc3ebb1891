"""A conversation as exchanges: what the user typed, how the assistant took it, what it told at the end, the reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from backstory.domain.conversation import Role
from backstory.domain.provenance import Origin
from backstory.domain.utterance import Utterance


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One turn. ``typed`` is the user's part, ``taken`` the assistant's first words to it and ``told`` its last, both
    None where it said nothing; ``before`` and ``reply`` are what was told and typed in the turns beside it."""

    before: Utterance | None
    typed: Utterance | None
    taken: Utterance | None
    told: Utterance | None
    reply: Utterance | None


def exchanges(utterances: Sequence[Utterance]) -> list[Exchange]:
    """The turns in their order, with a first one for what was told before the user spoke."""
    typed: dict[int, Utterance] = {}
    prose: dict[int, list[Utterance]] = {}
    for utterance in utterances:
        if utterance.is_echo or utterance.is_code or utterance.tool is not None:
            continue
        if utterance.origin is Origin.USER:
            before = typed.get(utterance.turn)
            typed[utterance.turn] = utterance if before is None else _joined(before, utterance)
        elif utterance.role is Role.ASSISTANT and utterance.origin is Origin.AGENT:
            said = prose.setdefault(utterance.turn, [])
            if said and said[-1].message == utterance.message:
                said[-1] = _joined(said[-1], utterance)
            else:
                said.append(utterance)
    return [
        Exchange(
            before=prose[turn - 1][-1] if turn - 1 in prose else None,
            typed=typed.get(turn),
            taken=prose[turn][0] if turn in prose else None,
            told=prose[turn][-1] if turn in prose else None,
            reply=typed.get(turn + 1),
        )
        for turn in sorted({*typed, *prose})
    ]


def _joined(before: Utterance, utterance: Utterance) -> Utterance:
    return replace(utterance, message=before.message, text=f"{before.text}\n{utterance.text}")
