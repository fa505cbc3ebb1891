"""A digest of messages: who asked for what, what was decided, run and changed, in the order it happened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from backstory.domain.conversation import Message, Part, Role
from backstory.domain.extract.lines import CHANGED, SEEN, Piece, Span, chosen, file_line, shortened, within, written
from backstory.domain.extract.sentences import cut_at_word, fenced_lines, is_small_talk, sentences, top_sentence
from backstory.domain.extract.signs import weight
from backstory.domain.extract.work import Deed, Work, error_line, note_work
from backstory.domain.tool_parts import file_label, is_own_tool, part_detail, tool_use
from backstory.domain.transcript import outside_text, part_text

USER, ASSISTANT = "User: ", "Assistant: "
_SHARE = 0.6  # of its source: what is longer spares too little
_LEAST_CHARS = 300
_HEADLINES_SHARE = 0.45
_HEADLINE_CHARS = (56, 200)
_FILES_SHARE = 0.25


def extract_digest(messages: Sequence[Message], *, max_chars: int = 1200) -> str:
    """What messages tell, in at most ``max_chars`` characters and mostly word for word; no model is involved.

    The first line says that it is an extract. Where the texts themselves are shorter, they come back as they are, a
    line each. Empty only when there is nothing to tell: reasoning, unfinished tool parts, what a program put in and
    what our own tools answered do not count. No line can be taken for a tag of ours. Linear in the length of the texts.
    """
    told = [text for message in messages for part in message.parts if (text := _told(part))]
    room = min(max_chars, max(_LEAST_CHARS, int(sum(map(len, told)) * _SHARE)))
    work = Work()
    pieces = list(_pieces(messages, room, work))
    head = Span.of(messages).head()
    lines = _lines(pieces, work, room - len(head) - 1)
    if not lines:
        return ""
    digest, plain = "\n".join([head, *lines]), "\n".join(told)
    return within(plain if told and len(plain) <= len(digest) else digest, max_chars)


def _told(part: Part) -> str:
    """The text of a part that counts, on one line."""
    use = tool_use(part)
    if use is not None:
        counts = not (use.unfinished or is_own_tool(use.name))
    else:
        counts = part.kind in ("text", "file") and not part.synthetic
    return " ".join(part_text(part).removeprefix("- text: ").split()) if counts else ""


def _lines(pieces: Sequence[Piece], work: Work, room: int) -> list[str]:
    changed = file_line(CHANGED, list(work.changed), int(room * _FILES_SHARE))
    lines = written(chosen(pieces, room - len(changed) - 1))
    room -= sum(len(line) + 1 for line in lines)
    changed = file_line(CHANGED, list(work.changed), room - 1) or changed
    seen = file_line(SEEN, [name for name in work.seen if name not in work.changed], room - len(changed) - 2)
    return [*lines, *filter(None, (changed, seen))]


def _pieces(messages: Sequence[Message], room: int, work: Work) -> Iterator[Piece]:
    numbers = count()
    last = _last_statement(messages)
    limit = _headline_chars(messages, room)
    for message in messages:
        for part in message.parts:
            line = next(numbers)
            if part.kind == "text" and not part.synthetic:
                text = outside_text(part.text)
                said = _asked(text, line, limit) if message.role is Role.USER else _said(text, line, part is last)
                yield from said
            elif part.kind == "file" and message.role is Role.USER:
                yield Piece(
                    line=line, place=0, label=USER, text=f"({_one_line(file_label(part_detail(part)))})", value=3
                )
            elif (deed := note_work(part, work)) is not None:
                yield _done(deed, line)


def _asked(text: str, line: int, limit: int) -> Iterator[Piece]:
    """A user's words: the headline first of all, then whatever tells something."""
    said = sentences(text)
    top = top_sentence(said)
    for at, sentence in enumerate(said[top:], start=top):
        value = 0.05 if is_small_talk(sentence) else 1.3 * weight(sentence) + 0.6
        if at == top:
            short = cut_at_word(sentence, limit)
            value += 0.0 if is_small_talk(sentence) else 9.0
            yield Piece(line=line, place=2 * at, label=USER, text=short, value=value)
            sentence = sentence[len(short) - 1 :].strip() if len(short) < len(sentence) else ""
            value = 1.3 * weight(sentence)
        if sentence and value > 0:
            place = 2 * at + (at == top)
            yield Piece(line=line, place=place, label=USER, text=shortened(sentence), value=value)
    error = error_line(fenced_lines(text))
    if error:
        yield Piece(line=line, place=2 * len(said) + 1, label=USER, text=error, value=4.5)


def _said(text: str, line: int, last: bool) -> Iterator[Piece]:
    """An assistant's words: what tells something; of its last statement also how it begins."""
    said = sentences(text)
    for at, sentence in enumerate(said):
        value = weight(sentence) + (1.5 if last else 0.0) + (5.0 if last and at == 0 else 0.0)
        if value > 0:
            yield Piece(line=line, place=2 * at, label=ASSISTANT, text=shortened(sentence), value=value)


def _done(deed: Deed, line: int) -> Piece:
    return Piece(line=line, place=0, label="", text=_one_line(deed.text), value=deed.weight)


def _one_line(text: str) -> str:
    return " ".join(outside_text(text).split())


def _last_statement(messages: Sequence[Message]) -> Part | None:
    said = (
        part for message in reversed(messages) if message.role is Role.ASSISTANT for part in reversed(message.parts)
    )
    return next((part for part in said if part.kind == "text" and part.text.strip()), None)


def _headline_chars(messages: Sequence[Message], room: int) -> int:
    """How long a headline may be so that those of all requests find room together."""
    asked = sum(message.role is Role.USER for message in messages)
    least, most = _HEADLINE_CHARS
    return max(least, min(most, int(room * _HEADLINES_SHARE) // max(asked, 1)))
