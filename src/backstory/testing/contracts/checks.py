"""What a contract check is. The checks themselves are in the modules beside this, one for each port."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from backstory.ports.backend import Backend

MakeBackend = Callable[[], Backend]
"""Gives a new, empty backend at each call."""

Check = Callable[[MakeBackend], Awaitable[None]]
"""One sentence of a contract: returns when it holds, raises AssertionError when it does not."""

_Error = TypeVar("_Error", bound=Exception)


class Checks(list[Check]):
    """The checks of one port, in the order in which they are written; used as a decorator."""

    def __call__(self, check: Check) -> Check:
        self.append(check)
        return check


async def expect_error(kind: type[_Error], call: Awaitable[object]) -> _Error:
    """Await a call that must raise ``kind``, and give back what it raised."""
    try:
        await call
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")
