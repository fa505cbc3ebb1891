"""Where Claude Code keeps its transcripts, and which files at a place are some."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from backstory.adapters.formats.outside_files import Unfit, entries, is_folder, is_plain, json_of, read_start
from backstory.codecs.claude_code import is_conversation, title_of

PROJECTS = "projects"
AGENT = "agent-"
ENDING = ".jsonl"
_START_BYTES = 256 * 1024
_LOOKED_AT_FILES = 50
_LOOKED_AT_LINES = 20
_DEPTH = 6  # below a project: SESSION/subagents/workflows/RUN/agent-X.jsonl


def home(environ: Mapping[str, str] | None = None) -> Path:
    """The configuration folder of whoever runs this: ``CLAUDE_CONFIG_DIR``, else ``~/.claude``."""
    environ = os.environ if environ is None else environ
    named = environ.get("CLAUDE_CONFIG_DIR") or ""
    return Path(named) if named else Path.home() / ".claude"


def store_at(path: Path) -> Path | None:
    """The folder or file of transcripts that a path names: a transcript, a project's folder of them, ``projects``, or
    the folder around it."""
    if is_plain(path):
        return path if is_transcript(path) else None
    for folder in (path, path / PROJECTS, path / ".claude" / PROJECTS):
        if is_folder(folder) and _holds_transcripts(folder):
            return folder
    return None


def is_at_home(store: Path, environ: Mapping[str, str] | None = None) -> bool:
    """Whether a store is the running person's own."""
    try:
        own = (home(environ) / PROJECTS).resolve()
        return store.resolve() == own or own in store.resolve().parents
    except OSError:
        return False


def is_transcript(path: Path) -> bool:
    """Whether a file begins as a transcript does: one of its first lines is a message or a title."""
    if path.suffix != ENDING:
        return False
    for line in read_start(path, size=_START_BYTES).split(b"\n")[:_LOOKED_AT_LINES]:
        try:
            value = json_of(line)
        except Unfit:
            continue
        if is_conversation(value) or (isinstance(value, dict) and title_of(value) and "leafUuid" in value):
            return True
    return False


def transcripts(store: Path) -> Iterator[list[Path]]:
    """The transcripts of each project's folder: the sessions, the one changed longest ago first, then the sub-agents,
    whose sessions have come by then. What is copied from one session into another is the older one's."""
    if is_plain(store):
        yield [store, *_agents(store.parent / store.stem, depth=_DEPTH)]
        return
    yield from _project(store)
    for project in entries(store):
        if is_folder(project):
            yield from _project(project)


def _project(folder: Path) -> Iterator[list[Path]]:
    files = [path for path in entries(folder, ends=ENDING) if is_plain(path)]
    sessions = [path for path in files if not path.name.startswith(AGENT)]
    agents = [path for path in files if path.name.startswith(AGENT)]
    for session in sessions:
        agents += _agents(folder / session.stem, depth=_DEPTH)
    if files:
        yield sorted(sessions, key=lambda path: (_changed(path), path)) + agents


def _agents(folder: Path, *, depth: int) -> Iterator[Path]:
    if depth and is_folder(folder):
        for path in entries(folder):
            if is_folder(path):
                yield from _agents(path, depth=depth - 1)
            elif path.name.startswith(AGENT) and path.suffix == ENDING:
                yield path


def _holds_transcripts(folder: Path) -> bool:
    folders = [folder, *(path for path in entries(folder) if is_folder(path))][:_LOOKED_AT_FILES]
    files = (path for one in folders for path in entries(one, ends=ENDING)[:_LOOKED_AT_LINES] if is_plain(path))
    return any(is_transcript(path) for _, path in zip(range(_LOOKED_AT_FILES), files, strict=False))


def _changed(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0
