"""``make demo``: fetch OpenCode into a cache folder, tell the story, exit with 0 if all of it came true."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from backstory.testing.opencode_binary import OPENCODE_VERSION, OpenCodeMissing, find_opencode, install_opencode
from demo import in_opencode, on_the_command_line
from demo.stage import Stage


def main() -> int:
    stage = Stage()
    started = time.monotonic()
    stage.title("Backstory: an agent that remembers")
    with tempfile.TemporaryDirectory(prefix="backstory-demo-") as folder:
        try:
            binary = _opencode(stage)
        except OpenCodeMissing as missing:
            stage.note(f"{missing}")
            stage.note("So here is the same story through the command line, without OpenCode.")
            on_the_command_line.tell(stage, Path(folder))
        else:
            in_opencode.tell(stage, binary, Path(folder))
    code = stage.end()
    print(f"({time.monotonic() - started:.0f} s; everything lay in a temporary folder, which is gone now)")
    return code


def _opencode(stage: Stage) -> Path:
    try:
        return find_opencode()
    except OpenCodeMissing:
        stage.note(f"Fetching OpenCode {OPENCODE_VERSION} with npm, once (about 190 MB) ...")
        return install_opencode()


sys.exit(main())
