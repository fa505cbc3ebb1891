"""OpenCode's sessions, messages and parts as its events and its API tell them: read by ``codecs/opencode.py``."""

from __future__ import annotations

from backstory.codecs.opencode import HOST, to_message, to_part, to_session

__all__ = ["HOST", "to_message", "to_part", "to_session"]
