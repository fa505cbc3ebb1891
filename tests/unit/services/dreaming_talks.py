"""What is said in the sessions that tests distil, and models that take their time."""

from __future__ import annotations

from datetime import timedelta

from tests.dreams import said

KETTLE = "The copper kettle is used for the green tea."
TRAY = "The oak tray warps near the stove."
TALK = [
    said(1, "For the green tea we use the copper kettle."),
    said(2, "The oak tray warps near the stove.", user=False),
]
NOW = timedelta(0)
