"""Run a service's coroutine from a one-shot command, without an event loop."""

from __future__ import annotations

from backstory.adapters.blocking import drive

__all__ = ["drive"]
