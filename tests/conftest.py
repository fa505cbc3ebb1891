"""What holds for every test: made-up examples are the same each time, so that a run says something of the change and
not of its luck. ``HYPOTHESIS_PROFILE=default pytest tests/properties`` looks for new ones."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
