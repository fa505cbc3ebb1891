"""How the demo speaks: numbered steps, quoted texts, plain where nobody watches."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable

WIDTH = 100
_COLOUR = sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _paint(code: str) -> Callable[[str], str]:
    return lambda text: f"\033[{code}m{text}\033[0m" if _COLOUR else text


bold, dim, green, red, cyan = _paint("1"), _paint("2"), _paint("32"), _paint("31"), _paint("36")


class Stage:
    """Prints the story and counts what did not go as told."""

    def __init__(self) -> None:
        self.failures = 0
        self._step = 0

    def title(self, text: str) -> None:
        print(f"\n{bold(text)}\n{'─' * min(len(text), WIDTH)}")

    def step(self, text: str) -> None:
        self._step += 1
        print(f"\n{bold(f'{self._step}.')} {text}")

    def note(self, text: str) -> None:
        print(textwrap.fill(text, WIDTH, initial_indent="   ", subsequent_indent="   "))

    def line(self, text: str) -> None:
        print(f"   {text}")

    def quote(self, text: str) -> None:
        """A text as it stands, marked at its left edge; long lines are wrapped for reading only."""
        for line in text.splitlines():
            for part in textwrap.wrap(line, WIDTH - 6) or [""]:
                print(f"   {cyan('│')} {part}")

    def check(self, true: bool, claim: str) -> None:
        """Say a claim and whether it holds."""
        if not true:
            self.failures += 1
        print(f"   {green('✓') if true else red('✗ NOT SO:')} {claim}")

    def end(self) -> int:
        """The exit code: 0 when every claim held."""
        if self.failures:
            print(f"\n{red(f'{self.failures} of the claims above did not hold.')}")
            return 1
        print(f"\n{green('Every line marked ✓ was checked while you watched.')}")
        return 0
