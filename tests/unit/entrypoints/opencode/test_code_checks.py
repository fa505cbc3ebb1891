"""Open folders are looked at beside everything else, and nothing that goes wrong there ends the looking."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import anyio

from backstory.domain.ids import ProjectId
from backstory.entrypoints.opencode.code_checks import CodeChecks
from backstory.entrypoints.places import Place
from backstory.errors import StoreUnavailable
from backstory.services.code_check import CodeReport


class Looks:
    """What a folder's code check is asked, and what it raises."""

    def __init__(self, error: Exception | None = None) -> None:
        self.folders: list[Path] = []
        self._error = error

    async def check_if_due(self, project: ProjectId, folder: Path) -> CodeReport | None:
        self.folders.append(folder)
        if self._error is not None:
            raise self._error
        return CodeReport()


def place(name: str, looks: Looks) -> Place:
    app = SimpleNamespace(truth=SimpleNamespace(code_check=looks))
    return cast("Place", SimpleNamespace(app=app, directory=name, project=ProjectId(name)))  # all that is asked of one


async def _at_once() -> None:
    await anyio.lowlevel.checkpoint()


def test_each_open_folder_is_looked_at_and_a_failure_is_not_the_end() -> None:
    looks = [Looks(StoreUnavailable("locked")), Looks(RuntimeError("a bug")), Looks()]

    async def open_them() -> None:
        checks = CodeChecks(give_way=_at_once)
        async with anyio.create_task_group() as tasks:
            checks.opened(place("first", looks[0]))
            tasks.start_soon(checks.keep_working)
            await anyio.wait_all_tasks_blocked()
            checks.opened(place("second", looks[1]))
            checks.opened(place("third", looks[2]))
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()

    anyio.run(open_them)
    assert looks[0].folders[0] == Path("first")
    assert looks[1].folders == [Path("second")]
    assert looks[2].folders == [Path("third")]
