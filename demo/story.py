"""The sentences of the story, one place for both tellings."""

from __future__ import annotations

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
