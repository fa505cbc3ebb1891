"""The sentences of the story, one place for both tellings."""

from __future__ import annotations

import re

PROJECT = "ferry-booking"
ASKED = "Remember that the staging cluster is called heron-2.\n\nThen let us settle how long we cache vendor prices."
FACT = "the staging cluster is called heron-2"
DECISION = (
    "Vendor prices are cached in Redis for 15 minutes, because the vendor allows only 100 requests a minute and"
    " prices change about once an hour."
)
DECISION_WORDS = "cached in Redis for 15 minutes"
DEPLOY = "Deploy the current branch to the staging cluster."
WHY = "Customers complain that they see old vendor prices for a quarter of an hour. Why do we do that?"
UNRELATED = "Write a haiku about the sea in spring."
POEM = "Salt wind, mild at last / gulls write on the harbour sky / the first boats go out"
_CLUSTER = re.compile(r"staging cluster is called ([\w-]+)")


def answer(prompt: str, sent: str) -> str:
    """What the scripted model answers to ``prompt``, knowing nothing but the text it was ``sent`` with it."""
    cluster = _CLUSTER.search(sent)
    if prompt == DEPLOY:
        return f"Deploying this branch to {cluster[1]}." if cluster else "Which one is the staging cluster?"
    if prompt == WHY:
        return f"That was decided: {DECISION}" if DECISION in sent else "I do not know; I see no reason for it here."
    return POEM
