"""Moments as people read them, in their own zone."""

from __future__ import annotations

from datetime import datetime

from backstory.adapters.local_zone import LocalZone

__all__ = ["LocalZone", "shown_day", "shown_time"]


def shown_day(moment: datetime) -> str:
    """The day of a moment: ``2026-03-02``, in the person's zone."""
    return f"{moment.astimezone(LocalZone()):%Y-%m-%d}"


def shown_time(moment: datetime) -> str:
    """A moment as people read it: ``2026-03-02 14:05``, in their zone."""
    return f"{moment.astimezone(LocalZone()):%Y-%m-%d %H:%M}"
