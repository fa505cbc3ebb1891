"""Whether what an observer or a reflector answered can take the place of what it was asked about."""

from __future__ import annotations

import re
from collections.abc import Callable

from backstory.domain.admission import admit_evidence
from backstory.domain.answers import Finish, Reason, Unusable, own_words, without_fence
from backstory.domain.digest_answers import ObservedText, read_observations
from backstory.domain.noted_task import is_from_tools
from backstory.domain.observation_log import DONE, LESSER, URGENT, capped_lines, is_degenerate, repeats
from backstory.domain.transcript import outside_text
from backstory.domain.truncation import truncate_chars

ANSWER_MAX_CHARS = 400_000
"""Several times what a model says that was given the most room."""
TASK_MAX_CHARS = 2_000
ECHOED_SHARE = 0.6
"""Of the lines: an answer that has more of them from its prompt has observed nothing."""

_NOTE = re.compile(r"\s*(?:[*•-]\s|Date:\s)")
_TASK = r"(?P<name>current[ _-]task|suggested[ _-](?:response|continuation))"
_TASK_TAG = re.compile(rf"<{_TASK}>(?P<inner>[^<]*)</(?P=name)\s*>", re.IGNORECASE)
_TASK_LABEL = re.compile(rf"\W*{_TASK}\W*:\W*(?P<inner>\S.*)", re.IGNORECASE)


def read_notes(
    raw: str, *, finish: Finish, told: str, fits: Callable[[str], bool], may_be_empty: bool
) -> ObservedText | str:
    """The notes in an answer, cleaned as what is stored must be; or why it cannot be used, in a few words.

    ``told`` is what the model has no reason to repeat, the transcript with it. Refused are: what is no answer in the
    form, a text that goes round in circles, one that repeats ``told``, and one that does not fit. A task or next step
    that a tool printed is left out.
    """
    if len(raw) > ANSWER_MAX_CHARS:
        return "it is too long"
    noted = read_observations(raw, finish=finish)
    if isinstance(noted, Unusable):
        untagged = _untagged(raw) if noted.reason is Reason.NOT_STRUCTURED and finish is Finish.STOP else None
        if untagged is None:
            return noted.reason.value
        noted = untagged
    if not (noted.observations or may_be_empty):
        return "it holds no notes"
    if is_degenerate(noted.observations):
        return "it goes round in circles"
    if repeats(noted.observations, told, share=ECHOED_SHARE):
        return "it repeats what it was told"
    notes = capped_lines(_clean(noted.observations))
    if not fits(notes):
        return "it is not shorter than what it stands for"
    return ObservedText(
        observations=notes,
        current_task=_beside(noted.current_task, told),
        suggested_response=_beside(noted.suggested_response, told),
    )


def _untagged(raw: str) -> ObservedText | None:
    """The notes of a model that was done and forgot the tags: lines in the form of notes, with at most as many others.

    The task and the next step stand in tags of their own, or behind their names on a line.
    """
    text = own_words(raw, finish=Finish.STOP)
    if isinstance(text, Unusable):
        return None
    beside = {tag["name"][0].lower(): tag["inner"] for tag in _TASK_TAG.finditer(text)}
    lines = [line.rstrip() for line in without_fence(_TASK_TAG.sub("", text).strip()).splitlines() if line.strip()]
    notes = []
    for line in lines:
        if label := _TASK_LABEL.match(line):
            beside.setdefault(label["name"][0].lower(), label["inner"])
        else:
            notes.append(line)
    if 2 * sum(_NOTE.match(line) is not None for line in notes) < max(len(notes), 1):
        return None
    if not any(sign in line for line in notes for sign in (URGENT, *LESSER, DONE)):
        return None
    return ObservedText(observations="\n".join(notes), current_task=beside.get("c"), suggested_response=beside.get("s"))


def _beside(text: str | None, told: str) -> str | None:
    text = truncate_chars(_clean(text or "").strip(), TASK_MAX_CHARS)
    return None if not text or is_from_tools(text, told) else text


def _clean(text: str) -> str:
    """Without secrets and control characters, and with no tag by which it could pass for something else."""
    return admit_evidence(outside_text(text))
