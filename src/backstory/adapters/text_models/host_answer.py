"""What a host tells of one question to its language model, read with distrust: it passes on what servers said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from backstory.domain.answers import Finish

MOST_REQUESTS = 1000
"""No question takes more; a host that tells more is not believed."""
MOST_NAME_CHARS = 200

_FINISH = {
    "stop": Finish.STOP,
    "length": Finish.LENGTH,
    "content-filter": Finish.FILTERED,
    "tool-calls": Finish.TOOL_CALL,
}


class Trouble(StrEnum):
    """What kept a question from its answer. REFUSED: the server does not want it as it is."""

    TIMEOUT = "timeout"
    ABORTED = "aborted"
    UNSTRUCTURED = "unstructured"
    REFUSED = "refused"
    TOO_LONG = "too_long"
    FAILED = "failed"


_TROUBLES = {
    "timeout": Trouble.TIMEOUT,
    "MessageAbortedError": Trouble.ABORTED,
    "StructuredOutputError": Trouble.UNSTRUCTURED,
    "ContextOverflowError": Trouble.TOO_LONG,
}
_FINISH_OF_ERRORS = {"MessageOutputLengthError": Finish.LENGTH, "ContentFilterError": Finish.FILTERED}
_REFUSALS = frozenset((400, 413, 422))


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAnswer:
    """One answer. ``structured`` is the object asked for by a schema, None without one.

    ``requests`` went to the model, 0 when none did; ``unanswered`` of them, 0 or 1, was still under way at the end.
    ``told`` names the trouble in words that may be shown. Tokens are None where nobody counted, which OpenCode tells
    as zeros.
    """

    text: str = ""
    structured: Mapping[str, object] | None = None
    model: str = ""
    finish: Finish = Finish.UNKNOWN
    input_tokens: int | None = None
    output_tokens: int | None = None
    requests: int = 1
    unanswered: int = 0
    trouble: Trouble | None = None
    told: str = ""

    @property
    def has_text(self) -> bool:
        """Whether this is an answer. The text may be empty; words without the form asked for are an answer too."""
        return self.trouble is None or (self.trouble is Trouble.UNSTRUCTURED and bool(self.text.strip()))


def read_host_answer(said: object) -> HostAnswer | None:
    """The answer; None for anything that is none."""
    if not isinstance(said, Mapping):
        return None
    error = said.get("error")
    if error is not None and not isinstance(error, Mapping):
        return None
    name = "" if error is None else _name(error.get("name"))
    status = None if error is None else _count(error.get("status"))
    text, structured = said.get("text"), said.get("structured")
    finish, tokens = said.get("finish"), said.get("tokens")
    counted: Mapping[str, object] = tokens if isinstance(tokens, Mapping) and any(tokens.values()) else {}
    held = structured if isinstance(structured, Mapping) else None
    trouble = _trouble(name, status) if error is not None and held is None else None
    requests = _count(said.get("requests"))
    return HostAnswer(
        text=text if isinstance(text, str) else "",
        structured=held,
        model=_name(said.get("model")),
        finish=Finish.STOP if held is not None else _finish(finish, name),
        input_tokens=_count(counted.get("input")),
        output_tokens=_count(counted.get("output")),
        requests=1 if requests is None else min(requests, MOST_REQUESTS),
        unanswered=int(requests != 0 and (trouble is Trouble.ABORTED or said.get("unanswered") is True)),
        trouble=trouble,
        told=" ".join(word for word in (name, "" if status is None else str(status)) if word),
    )


def _trouble(name: str, status: int | None) -> Trouble | None:
    if name in _FINISH_OF_ERRORS:
        return None
    if name in _TROUBLES:
        return _TROUBLES[name]
    return Trouble.REFUSED if status in _REFUSALS else Trouble.FAILED


def _finish(told: object, error: str) -> Finish:
    if error in _FINISH_OF_ERRORS:
        return _FINISH_OF_ERRORS[error]
    return _FINISH.get(told, Finish.UNKNOWN) if isinstance(told, str) else Finish.UNKNOWN


def _name(value: object) -> str:
    """A name fit to be shown; empty for anything else."""
    if not isinstance(value, str) or len(value) > MOST_NAME_CHARS or not value.isprintable():
        return ""
    return value


def _count(value: object) -> int | None:
    """A whole number from 0; JavaScript may write one with a fraction of zero."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value >= 0 and value == value // 1 else None
