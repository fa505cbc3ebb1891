"""What a folder tells of its project, as it stands on the disk now."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from backstory.domain.project import Alias, ProjectSighting


class Folders(Protocol):
    """Looks at folders. Nothing is written, and nothing that is found there is run."""

    def see(self, directory: Path) -> ProjectSighting:
        """How a folder identifies its project, by a few file system calls; ``traits`` are None."""
        ...

    async def traits(self, seen: ProjectSighting, *, known_roots: frozenset[str]) -> tuple[str, ...]:
        """What a git directory may have in common with others: its root commits and its main remote, sorted.

        Empty outside git, and as far as nothing can be told: no commit yet, a shallow history, no git here, too slow
        (2 s). With ``known_roots`` those are taken, and no process is started.
        """
        ...

    async def gone(self, aliases: Sequence[Alias]) -> frozenset[str]:
        """The names of those git directories that are gone: nothing is there, or another thing than their stamp tells.

        What cannot be looked at is there.
        """
        ...
