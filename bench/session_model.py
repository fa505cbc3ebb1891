"""A language model for sessions that answers by rule, over the real wire protocol, and counts what it was asked.

It knows from the prompt's last words what is wanted, and copies the first sentences of each message or note there. That
is the form of an answer without its wit: what a real model would write, only a real one can tell.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from types import TracebackType

from backstory.bootstrap import App
from backstory.domain.ledger import Outcome
from backstory.testing.scripted_model import Reply, Request, ScriptedModel

LATENCY_S = 0.05
SENTENCE_CHARS = 240
_CHARS_PER_TOKEN = 4
_LEAF_WORDS, _MERGED_WORDS = 150, 200  # as the prompts ask for
_NOTED_SHARE = 0.2  # of a transcript
_KEPT_SHARE = 0.5  # of notes

_HEAD = re.compile(r"\[(user|assistant|system) \S+ (\d{4}-\d\d-\d\d)T(\d\d:\d\d)Z\]")
_TRANSCRIPT = re.compile(r"<transcript>\n(.*?)\n?</transcript>", re.DOTALL)
_NOTES = re.compile(r"<notes>\n(.*?)\n?</notes>", re.DOTALL)
_SUMMARIES = re.compile(r"<summaries>\n(.*?)\n?</summaries>", re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n")


@dataclass(slots=True, kw_only=True)
class Counted:
    """Calls, and the tokens that their answers told."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class RuleModel:
    """The server. A context manager."""

    def __init__(self, *, latency_s: float = LATENCY_S) -> None:
        self._latency_s = latency_s
        self._lock = threading.Lock()
        self._server = ScriptedModel()
        self._server.when().answer(self._reply)
        self.url = self._server.url
        self.counted = Counted()

    def __enter__(self) -> RuleModel:
        self._server.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.__exit__(kind, error, at)

    def _reply(self, request: Request) -> Reply:
        text = answered(request.texts("user")[-1])
        asked = max(1, len(request.all_text()) // _CHARS_PER_TOKEN)
        with self._lock:
            self.counted.calls += 1
            self.counted.input_tokens += asked
            self.counted.output_tokens += max(1, len(text) // _CHARS_PER_TOKEN)  # as ScriptedModel tells them
        return Reply(text=text, prompt_tokens=asked, delay_s=self._latency_s)


async def booked(app: App) -> tuple[Counted, int]:
    """What the ledger has, and how many of its calls did not end well."""
    entries = await app.backend.ledger.entries(since=datetime.fromtimestamp(0, tz=UTC))
    counted = Counted(
        calls=sum(entry.requests for entry in entries),
        input_tokens=sum(entry.input_tokens for entry in entries),
        output_tokens=sum(entry.output_tokens for entry in entries),
    )
    return counted, sum(entry.outcome is not Outcome.OK for entry in entries)


def answered(prompt: str) -> str:
    """The answer to one of the four questions about a session."""
    if summaries := _SUMMARIES.findall(prompt):
        return _merged(summaries[-1])
    if prompt.rstrip().endswith("Summary:"):
        return _summary(_TRANSCRIPT.findall(prompt)[-1])
    if transcripts := _TRANSCRIPT.findall(prompt):
        return _observed(transcripts[-1])
    return _condensed(_NOTES.findall(prompt)[-1])


def _summary(transcript: str) -> str:
    said = [f"{by.capitalize()}: {text}" for by, _, _, text in _said(transcript)]
    return _limited(" ".join(said) or "Nothing was said while tools ran.", _LEAF_WORDS)


def _said(transcript: str) -> Iterator[tuple[str, str, str, str]]:
    """Who, on what day, at what time, and the first sentence, of all texts in a transcript."""
    by, day, at = "assistant", "", ""
    for line in transcript.splitlines():
        if head := _HEAD.fullmatch(line):
            by, day, at = head[1], head[2], head[3]
        elif line.startswith("- text: "):
            yield by, day, at, _SENTENCE_END.split(line.removeprefix("- text: "), maxsplit=1)[0][:SENTENCE_CHARS]


def _observed(transcript: str) -> str:
    lines: list[str] = []
    heading, task, room = "", "", _NOTED_SHARE * len(transcript)
    for by, day, at, text in _said(transcript):
        if heading != (heading := f"{date.fromisoformat(day):%b} {int(day[-2:])}, {day[:4]}"):
            lines.append(f"Date: {heading}")
        task = text if by == "user" else task
        room -= len(text)
        if room >= 0:
            lines.append(f"* {'🔴' if by == 'user' else '🟡'} ({at}) The {by} said: {text}")
    if not lines:
        return "<skip/>"
    beside = f"\n<current-task>\nPrimary: {task}\n</current-task>" if task else ""
    return "\n".join(["<observations>", *lines, "</observations>"]) + beside


def _condensed(notes: str) -> str:
    """Notes from the newest back, headings included, as many as fit into half of what they took."""
    kept: list[str] = []
    room = _KEPT_SHARE * len(notes)
    for line in reversed(notes.splitlines()):
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join(["<observations>", *reversed(kept), "</observations>"])


def _merged(summaries: str) -> str:
    """The first half of each summary's words."""
    texts = [line.partition(": ")[2].split() for line in summaries.splitlines()]
    return _limited(" ".join(" ".join(words[: max(1, len(words) // 2)]) for words in texts), _MERGED_WORDS)


def _limited(text: str, words: int) -> str:
    return " ".join(text.split()[:words])
