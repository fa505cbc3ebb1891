"""A labelled set of a few invented memories and prompts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from bench.labelled import LabelledSet, Question, Stored
from bench.measures import Answer

PROMPTS = {
    "direct": Question(id="direct", kind="direct", project="shed", text="", grades={"red": 2}),
    "several": Question(id="several", kind="multi", project="shed", text="", grades={"red": 2, "green": 2, "blue": 1}),
    "past": Question(id="past", kind="temporal", project="shed", text="", grades={"old red": 2}, history=True),
    "chatter": Question(id="chatter", kind="no-answer", sub="chatter", project="shed", text="", grades={}),
    "unknown": Question(id="unknown", kind="no-answer", sub="unknown", project="shed", text="", grades={}),
    "empty": Question(id="empty", kind="no-answer", project="shed", text="what is it then", grades={}),
}
LABELLED = LabelledSet(
    name="sample",
    now=datetime(2026, 2, 1, tzinfo=UTC),
    memories=[
        Stored(id="old red", text="The door is dark red.", project="shed"),
        Stored(id="red", text="The door is light red.", project="shed", supersedes="old red"),
        Stored(id="green", text="The fence is green.", project="shed"),
        Stored(id="blue", text="The roof is blue.", project="shed"),
        Stored(id="grey", text="Primer is grey.", project=None),
        Stored(id="other project", text="The door is white.", project="barn"),
    ],
    questions=[],
)


def answer(prompt: str, found: Sequence[str], certainty: float) -> Answer:
    """What a system returned for one of the prompts."""
    return Answer(question=PROMPTS[prompt], found=tuple(found), certainty=certainty)
