"""Which stretch of a session is distilled next, and how it is shown to a model.

What becomes of the model's proposals is decided in ``dreaming_facts.py`` and ``dreaming_plan.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from backstory.domain.context_block import quote
from backstory.domain.conversation import Message, Role, typed_text
from backstory.domain.ids import MessageId
from backstory.domain.provenance import is_injectable
from backstory.domain.tool_parts import is_own_tool, tool_use
from backstory.domain.transcript import is_settled, outside_text
from backstory.domain.truncation import truncate_chars
from backstory.domain.utterance import Utterance

MARGIN = "    "
"""Before every line that somebody said."""
_LEAST_CHARS = 200  # of one text, however many there are
_TOOL_CHARS = 80  # about what a call takes
_NAME_CHARS = 40
_CODE_CHARS = 400  # of code in an answer: commands are worth reading, listings are not
_LEFT_OUT = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Messages of a session that are distilled together, in their order, up to ``target``, which was made ``at``."""

    messages: tuple[Message, ...]
    target: MessageId
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """What was said in a stretch, each piece with who said it. ``numbers`` are those by which a model was shown the
    messages. ``earlier`` was said and shown before, in the same session: whoever repeats it is not its author."""

    utterances: tuple[Utterance, ...]
    numbers: Mapping[str, MessageId]
    earlier: tuple[Utterance, ...] = ()

    def named(self, sources: Sequence[str]) -> tuple[MessageId, ...]:
        """The messages that a model means by numbers or ids, those that do not exist left out."""
        known = frozenset(self.numbers.values())
        found = (self.numbers.get(name) or (MessageId(name) if name in known else None) for name in sources)
        return tuple(dict.fromkeys(message for message in found if message is not None))

    def trusted(self) -> tuple[Utterance, ...]:
        """What the user and the agent said themselves, without what they gave to tools."""
        return tuple(
            utterance
            for utterance in self.utterances
            if is_injectable(utterance.origin) and not utterance.is_echo and utterance.tool is None
        )


def next_stretch(
    messages: Sequence[Message], *, max_chars: int, target: MessageId | None = None, more: bool = False
) -> Stretch | None:
    """The first of some messages, oldest first, that are to be distilled together; None while there is nothing to do.

    ``target`` is where a stretch that was begun ends: it is the same stretch again. Otherwise it holds whole turns of
    about ``max_chars`` together, part of a turn only where one alone is longer. What the host took back is left out,
    and so is what is not complete; behind a message that may still grow, a stretch never goes while nobody spoke since.
    ``more``: the session goes on behind these messages.
    """
    told = messages if more else _told(messages)
    ready = [message for message in told if message.removed_at is None and is_settled(message)]
    place = next((at for at, message in enumerate(ready) if message.id == target), None)
    chosen = ready[: place + 1] if place is not None else _fitting(ready, max_chars)
    if not chosen:
        return None
    return Stretch(messages=tuple(chosen), target=chosen[-1].id, at=chosen[-1].created_at)


def talk_of(utterances: Sequence[Utterance], *, earlier: Sequence[Utterance] = ()) -> Talk:
    """Number the messages of some utterances from 1, in their order."""
    messages = dict.fromkeys(utterance.message for utterance in utterances)
    return Talk(
        utterances=tuple(utterances),
        numbers={str(number): message for number, message in enumerate(messages, 1)},
        earlier=tuple(earlier),
    )


def shown_talk(stretch: Stretch, talk: Talk, *, max_chars: int) -> str:
    """A stretch as a model is shown it: numbered messages, in each of which the words of the user and of the agent.

    Of calls only the tool's name is told, and of pasted text that it was there: neither is anybody's statement, and
    what they say is not to become one. Never longer than ``max_chars``, while that is at least some thousand; the
    longest texts are cut at their end.
    """
    numbers = {message: number for number, message in talk.numbers.items()}
    shown = [message for message in stretch.messages if message.id in numbers]
    heads = [f"[{numbers[message.id]}] {_speaker(message)}, {message.created_at:%Y-%m-%d %H:%M}Z" for message in shown]
    said = [_texts(message.id, talk) for message in shown]
    asides = [_asides(message, talk) for message in shown]
    fixed = sum(len(line) + 1 for lines in (heads, *asides) for line in lines)
    cap = _cap([len(text) for texts in said for text in texts], max_chars - fixed)
    blocks = zip(heads, said, asides, strict=True)
    lines = [line for head, texts, more in blocks for line in (head, *(_cut(text, cap) for text in texts), *more)]
    return truncate_chars("\n".join(lines), max_chars)


def _told(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages before the first that may still grow: one that is not complete, with no user message after it, or
    the newest while it has no parts, which a host tells after their message."""
    turn = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role is Role.USER), 0)
    growing = (at for at in range(turn, len(messages)) if messages[at].removed_at is None)
    last = len(messages) - 1
    may_grow = (at for at in growing if not is_settled(messages[at]) or (at == last and not messages[at].parts))
    return messages[: next(may_grow, len(messages))]


def _fitting(messages: Sequence[Message], max_chars: int) -> Sequence[Message]:
    total = 0
    for end, message in enumerate(messages):
        total += _chars(message)
        if total > max_chars and end:
            turn = max((at for at in range(1, end + 1) if messages[at].role is Role.USER), default=end)
            return messages[:turn]
    return messages


def _chars(message: Message) -> int:
    calls = sum(tool_use(part) is not None for part in message.parts)
    return len(typed_text(message)) + _TOOL_CHARS * (calls + 1)


def _speaker(message: Message) -> str:
    return "the user" if message.role is Role.USER else f"the {message.role.value}"


def _texts(message: MessageId, talk: Talk) -> list[str]:
    """The trusted texts of a message, each with a margin before all of its lines, so that none can begin a message."""
    own = [utterance for utterance in talk.trusted() if utterance.message == message]
    said = (_cut(outside_text(one.text).strip(), _CODE_CHARS if one.is_code else len(one.text)) for one in own)
    return ["\n".join(MARGIN + line for line in text.splitlines()) for text in said if text]


def _asides(message: Message, talk: Talk) -> list[str]:
    """What there was beside the texts, each kind once: calls by the tool's name, and text from elsewhere."""
    uses = [use for part in message.parts if (use := tool_use(part)) is not None and not is_own_tool(use.name)]
    calls = [f"{MARGIN}(used the tool {truncate_chars(quote(use.name), _NAME_CHARS)})" for use in uses]
    of_it = [one for one in talk.utterances if one.message == message.id and one.tool is None]
    foreign = any(not is_injectable(one.origin) for one in of_it)
    return [*dict.fromkeys(calls), *([f"{MARGIN}(text from elsewhere, left out)"] if foreign else [])]


def _cap(sizes: Sequence[int], room: int) -> int:
    """How long a text may be so that all fit together: the longest are cut until they do."""
    low, high = _LEAST_CHARS, max([*sizes, _LEAST_CHARS])
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(size, middle) + 2 for size in sizes) <= room:
            low = middle
        else:
            high = middle - 1
    return low


def _cut(text: str, cap: int) -> str:
    return text if len(text) <= cap else truncate_chars(text, cap - len(_LEFT_OUT)).rstrip() + _LEFT_OUT
