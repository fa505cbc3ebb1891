"""opencode-memory's words for kinds, and the other way round."""

from __future__ import annotations

from backstory.domain.memory import Kind, Memory, Visibility
from backstory.domain.vocabulary import classify
from backstory.errors import InputError

_CATEGORIES = {Kind.FACT: "project", Kind.PREFERENCE: "preferences", Kind.DECISION: "decisions"}
"""Every other kind is called as here."""


def category_of(memory: Memory) -> str:
    """The category of a memory."""
    return _CATEGORIES.get(memory.kind, memory.kind.value)


def kind_of(category: str | None) -> Kind:
    """The kind that a category means; ``other`` for one that nobody knows, as there."""
    try:
        return classify(category, None).kind or Kind.OTHER
    except InputError:
        return Kind.OTHER


def scope_of(memory: Memory) -> str:
    """``global`` or ``project``."""
    return "global" if memory.visibility is Visibility.GLOBAL else "project"
