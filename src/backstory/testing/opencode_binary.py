"""Where the OpenCode program for tests and the demo comes from: found, or installed with npm into our own cache folder.

A user's own OpenCode is never taken: what the tests prove must not depend on which version happens to be installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

OPENCODE_VERSION = "1.18.33"
BINARY_VARIABLE = "BACKSTORY_OPENCODE"
PREFIX_VARIABLE = "OPENCODE_PREFIX"
INSTALL_TIMEOUT_S = 600
_SMALLEST_BINARY_BYTES = 1_000_000  # the real program has 185 MB; npm leaves a small placeholder without its scripts


class OpenCodeMissing(RuntimeError):
    """There is no OpenCode to run; the message says how to get one."""


def cache_folder() -> Path:
    """Where ``install_opencode`` puts it: ``.cache/opencode`` of the checkout, else of the working directory."""
    checkout = Path(__file__).resolve().parents[3]
    root = checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()
    return root / ".cache" / "opencode"


def find_opencode(environ: Mapping[str, str] | None = None) -> Path:
    """The binary that ``BACKSTORY_OPENCODE`` names, else the one below ``OPENCODE_PREFIX``, else the cached one.

    A variable that is set but leads nowhere is an error rather than a reason to look further. Raises OpenCodeMissing.
    """
    environ = os.environ if environ is None else environ
    if named := environ.get(BINARY_VARIABLE):
        if os.access(named, os.X_OK) and Path(named).is_file():
            return Path(named)
        raise OpenCodeMissing(f"{BINARY_VARIABLE} names {named}, which is not a program")
    if prefix := environ.get(PREFIX_VARIABLE):
        if found := binary_below(Path(prefix)):
            return found
        raise OpenCodeMissing(f"{PREFIX_VARIABLE} is {prefix}, but no OpenCode is installed below it")
    if found := binary_below(cache_folder()):
        return found
    raise OpenCodeMissing(
        f"OpenCode {OPENCODE_VERSION} is not installed; `make demo` fetches it with npm, "
        f"or set {BINARY_VARIABLE} to the path of its binary"
    )


def binary_below(prefix: Path) -> Path | None:
    """The binary that ``npm install opencode-ai`` put below ``prefix``, or None.

    Its install script copies the right platform's binary into the main package. Where npm did not run the script, the
    platform's own package serves; a ``baseline`` build (for processors without AVX2) is taken last.
    """
    return next((path for path in _candidates(prefix / "node_modules") if _is_program(path)), None)


def _candidates(modules: Path) -> Iterator[Path]:
    yield modules / "opencode-ai" / "bin" / "opencode.exe"
    packages = modules.glob("opencode-*/bin/opencode*")
    yield from sorted(packages, key=lambda path: ("baseline" in str(path), str(path)))


def _is_program(path: Path) -> bool:
    return path.is_file() and path.stat().st_size >= _SMALLEST_BINARY_BYTES and os.access(path, os.X_OK)


def install_opencode(folder: Path | None = None, *, version: str = OPENCODE_VERSION) -> Path:
    """Install OpenCode with npm into ``folder`` and return its binary; does nothing when it is there already.

    About 190 MB, once. Raises OpenCodeMissing, saying so in one line, when npm is missing, cannot reach its registry,
    or installs nothing that runs here.
    """
    folder = folder or cache_folder()
    if found := binary_below(folder):
        return found
    npm = shutil.which("npm")
    if npm is None:
        raise OpenCodeMissing("npm was not found; install Node.js 20 or newer, or install OpenCode by hand")
    folder.mkdir(parents=True, exist_ok=True)
    _run_npm([npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), f"opencode-ai@{version}"])
    if found := binary_below(folder):
        return found
    raise OpenCodeMissing(f"npm installed opencode-ai {version}, but it brings no program for this machine")


def main() -> int:
    """Make sure that OpenCode is there for the tests; exit code 1 and one line why when it is not."""
    try:
        print(f"OpenCode: {_present_or_installed()}")
    except OpenCodeMissing as missing:
        print(missing)
        return 1
    return 0


def _present_or_installed() -> Path:
    try:
        return find_opencode()
    except OpenCodeMissing:
        return install_opencode()


def _run_npm(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise OpenCodeMissing(f"npm did not finish within {INSTALL_TIMEOUT_S} s; is its registry reachable?") from None
    if done.returncode != 0:
        lines = [line.removeprefix("npm ERR!").removeprefix("npm error").strip() for line in done.stderr.splitlines()]
        reason = "; ".join([line for line in lines if line][:3]) or f"exit code {done.returncode}"
        raise OpenCodeMissing(f"npm could not install OpenCode (is its registry reachable?): {reason}")


if __name__ == "__main__":
    raise SystemExit(main())
