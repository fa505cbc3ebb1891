"""Whether a task or next step that an observer noted is the words of a tool: of a file, a page, a program's output.

The assistant is told of both as what is to be done, so an instruction that somebody planted must not become one. Only
what is given back nearly word for word is found here; for the rest the block says that it is a record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from backstory.domain.transcript import MARGIN, SPEAKER

_TELLING_CHARS = 24
"""A shorter sentence may stand in an output by chance; a whole text of any length is not let through."""
_TOOL = "- tool "
_BY_PROGRAM = "- text put in by a program:"
_LABEL = re.compile(r"\W*\w+(?: \w+)?:\s")  # as in "Primary: …"
_SENTENCE_END = re.compile(r"\n+|(?<=[.!?;])\s+|(?<=[。！？；])")
_BETWEEN = re.compile(r"[\W_]+")
_WORDLESS = re.compile(r"\W*\Z")


def is_from_tools(text: str, told: str) -> bool:
    """Whether the text, or a sentence of it, stands in what tools answered in a transcript (``transcript``).

    Not if the user said it too, or if the tool only gave back what it was asked. Case and signs do not count.
    """
    if not text or _WORDLESS.match(text):
        return False
    printed, typed = _answers(told)
    if not printed:
        return False
    sentences = [plain for sentence in _sentences(text) if len(plain := _plain(sentence)) >= _TELLING_CHARS]
    return any(part in printed and part not in typed for part in (_plain(text), *sentences))


def _sentences(text: str) -> Iterator[str]:
    for sentence in _SENTENCE_END.split(text):
        yield sentence
        label = _LABEL.match(sentence)
        if label:
            yield sentence[label.end() :]


def _answers(told: str) -> tuple[str, str]:
    """What tools and programs put into a conversation, and what the user typed or a tool was asked; both plain."""
    printed: list[str] = []
    typed: list[str] = []
    into: list[str] | None = None
    by_user = False
    for line in told.splitlines():
        if speaker := SPEAKER.match(line):
            by_user, into = speaker["role"] == "user", None
        elif line.startswith(_TOOL):
            typed.append(line)
            into = printed
        elif line.startswith("- "):
            into = printed if line.startswith(_BY_PROGRAM) else typed if by_user else None
            if into is not None:
                into.append(line.partition(":")[2])
        elif line and not line.startswith(MARGIN):  # behind what was left out nobody knows who speaks
            into = printed
        elif into is not None:
            into.append(line)
    return _plain(" ".join(printed)), _plain(" ".join(typed))


def _plain(text: str) -> str:
    return _BETWEEN.sub(" ", text.casefold()).strip()
