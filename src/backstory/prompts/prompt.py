"""A prompt that is ready to be sent, and where its words are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What a model is asked. ``version`` (``rerank/1``) is part of the lineage of whatever comes of it."""

    version: str
    system: str
    text: str
    schema: Mapping[str, object] | None = None


@cache
def words(name: str) -> str:
    """The fixed words of a prompt, from the file ``name.md`` beside this module."""
    return (Path(__file__).with_name(f"{name}.md")).read_text(encoding="utf-8").strip()
