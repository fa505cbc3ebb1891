"""The code of a project, as far as memories name parts of it. Read only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from backstory.domain.anchor_findings import Claim, Finding

Progress = Callable[[int], None]
"""Told how many files have been read since the last call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What a look found wrong. A claim that is neither in ``findings`` nor in ``undecided`` holds, or cannot be judged.

    ``undecided`` are those for which the time was too short. ``cannot`` says why nothing could be looked at, in which
    case all claims are undecided. ``notes`` say what could not be told in general.
    """

    findings: Mapping[Claim, Finding] = field(default_factory=dict)
    undecided: frozenset[Claim] = frozenset()
    cannot: str | None = None
    notes: tuple[str, ...] = ()


class CodeAnchors(Protocol):
    """Looks up in a repository what memories name."""

    async def look(
        self, folder: Path, claims: Sequence[Claim], *, within: timedelta, progress: Progress | None = None
    ) -> Looked:
        """Which claims no longer hold in the checkout around ``folder``, committed or not.

        A thing is gone only if the history shows that it was there when the claim was made; for a file it is enough
        that the history knows it. What another repository holds, what git ignores and what was never there is not
        gone. Nothing is written and no code of the repository runs. Never an error: what cannot be looked at is told.
        """
        ...

    async def head(self, folder: Path) -> str | None:
        """The commit that is checked out; None outside a repository, or in one without commits."""
        ...
