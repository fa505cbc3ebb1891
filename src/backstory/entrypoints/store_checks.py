"""Checks of a store and its embedder: whether it opens, is whole, can be written, and what can be found by meaning.

Nothing is repaired. What holds without a store is ``doctor.py``.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from backstory.bootstrap import App, open_app
from backstory.config import Settings
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import CURRENT, Selection
from backstory.entrypoints.doctor import Check, State
from backstory.errors import BackstoryError, StoreBusy, StoreDamaged, StoreError
from backstory.ports.upkeep import Finding, Severity

INTEGRITY_S = 20.0
"""A check of a store so large that it takes longer is cut off and says so."""
INVARIANTS_S = 5.0
"""Where that check alone took longer, the rows are left to ``backstory check``."""
WRITE_LOCK_S = 3.0
MOST_COUNTED = 1_000
WAYS_OUT = (
    "`backstory restore` a backup; without one, `backstory check --salvage FILE` writes what can be read, and once"
    " the store is moved away, `backstory import --keep-projects FILE` brings it back"
)
_STATES: dict[Severity, State] = {Severity.DAMAGE: "fail", Severity.OUT_OF_STEP: "warn"}


async def check_store(settings: Settings, folder: Path | None = None) -> list[Check]:
    """Whether the store opens, is whole, can be written, and how much of it can be found by meaning.

    ``folder`` is where a store that belongs to a repository looks for that, if not here.
    """
    app = open_app(settings, folder=folder, one_shot=True, create=False)
    try:
        if not app.backend.memories.capabilities.durable:
            return [Check(name="store", state="warn", message="the store is `memory`: nothing outlives a process")]
        opened = await _opened(app)
        if opened is None:
            return [_absent_store(app), await _embedder(app)]
        if opened.state == "fail":
            return [opened]
        embedder = await _embedder(app)
        found = [
            opened,
            await _integrity(app),
            await _writable(app),
            embedder,
            *await _vectors(app, embedder),
            *await _second(app),
        ]
        return [*found, *await _dreams(app)]
    finally:
        await app.close()


async def _dreams(app: App) -> list[Check]:
    """Which sessions wait to be distilled, and what failed last; nothing where none waits."""
    name = "distilling"
    try:
        waiting = await app.truth.dreams.waiting()
    except StoreError as error:
        return [Check(name=name, state="warn", message=f"it could not be looked at: {error}")]
    if not waiting.states:
        return []
    count = len(waiting.states)
    message = f"{count} {'session waits' if count == 1 else 'sessions wait'} to be distilled"
    if waiting.problem is None:
        return [Check(name=name, state="ok", message=message)]
    mend = "it is tried again by itself; `backstory status` names the sessions, `backstory dream` tries now"
    return [Check(name=name, state="warn", message=f"{message}; last failure: {waiting.problem}", mend=mend)]


async def _opened(app: App) -> Check | None:
    """What the store says when it is opened; None where there is none."""
    viewer = Viewer(project=None, audience=Audience.PERSON, all_projects=True)
    memories, upkeep = app.backend.memories, app.backend.upkeep
    try:
        if upkeep is not None and not await upkeep.exists():
            return None
        count = await memories.count(Selection(viewer=viewer, now=datetime.now(UTC), states=CURRENT))
    except StoreError as error:
        from backstory.entrypoints.errors import rule_for

        mend = WAYS_OUT if isinstance(error, StoreDamaged) else rule_for(error).advice or ""
        return Check(name="store", state="fail", message=str(error), mend=mend)
    held = "1 memory" if count == 1 else f"{count:,} memories"
    return Check(name="store", state="ok", message=f"{memories.capabilities.location} opens and holds {held}")


def _absent_store(app: App) -> Check:
    location, path = app.backend.memories.capabilities.location, app.settings.database_file
    there = None if path is None else _nearest(path)
    if there is None or (there.is_dir() and os.access(there, os.W_OK)):
        return Check(name="store", state="ok", message=f"there is no store yet; the first memory makes {location}")
    mend = f"make {there} a writable folder, or set BACKSTORY_HOME to another one"
    message = f"{path} cannot be made: {there} is no folder that can be written"
    return Check(name="store", state="fail", message=message, mend=mend)


def _nearest(path: Path) -> Path:
    """The lowest folder above a file that is there; one that may not be looked at is there."""
    for folder in path.parents:
        try:
            folder.stat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return folder
        return folder
    return path


async def _integrity(app: App) -> Check:
    """The invariants of the store; of a file SQLite's own quick check first, which is cut off where it takes long."""
    name, began = "integrity", time.monotonic()
    path = app.settings.database_file
    trouble = None if path is None else _trouble_with_file(path, began)
    if trouble is not None:
        return trouble
    if app.backend.upkeep is None or time.monotonic() > began + INVARIANTS_S:
        return Check(name=name, state="ok", message="SQLite finds no damage")
    try:
        findings = await app.backend.upkeep.verify()
    except StoreError as error:
        return Check(name=name, state="warn", message=f"it could not be looked at: {error}")
    return _verdict(findings, app.backend.memories.capabilities.location)


def _trouble_with_file(path: Path, began: float) -> Check | None:
    """What SQLite finds, or that it would take too long."""
    try:
        with closing(_read_only(path)) as raw:
            raw.set_progress_handler(lambda: time.monotonic() > began + INTEGRITY_S, 10_000)
            said = [str(row[0]) for row in raw.execute("PRAGMA quick_check(3)")]
    except sqlite3.Error as error:
        if time.monotonic() > began + INTEGRITY_S:
            message = (
                f"no damage found in {INTEGRITY_S:.0f} s; `backstory check` takes the time that so large a store needs"
            )
            return Check(name="integrity", state="ok", message=message)
        said = [str(error)]
    if said == ["ok"]:
        return None
    return Check(name="integrity", state="fail", message=f"{path} is damaged: {'; '.join(said)}", mend=WAYS_OUT)


def _verdict(findings: Sequence[Finding], location: str) -> Check:
    """The gravest of what a check of the invariants found, and how much more there is."""
    name = "integrity"
    for severity, state in _STATES.items():
        grave = [finding for finding in findings if finding.severity is severity]
        if grave:
            more = f", and {len(grave) - 1} more faults" if len(grave) > 1 else ""
            message = f"{location}: {grave[0].where}: {grave[0].what}{more}; `backstory check` lists all"
            return Check(name=name, state=state, message=message, mend=grave[0].way_out)
    return Check(name=name, state="ok", message="no damage: store, memories, history and indexes fit each other")


def _read_only(path: Path) -> sqlite3.Connection:
    immutable = "" if os.access(path.parent, os.W_OK) else "&immutable=1"  # SQLite could not make its -shm file
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro{immutable}", uri=True)


async def _writable(app: App) -> Check:
    """Whether a write could begin now. Nothing is written."""
    name, capabilities = "writable", app.backend.memories.capabilities
    if capabilities.read_only:
        message = f"{capabilities.location} is read-only: memories are recalled, but none can be added"
        return Check(name=name, state="fail", message=message, mend=_ways_to_write(app))
    if app.backend.upkeep is None:
        return Check(name=name, state="ok", message="the store says nothing of being read-only")
    try:
        with app.waiting(timedelta(seconds=WRITE_LOCK_S)):
            await app.backend.upkeep.try_writing()
    except StoreBusy as error:
        mend = "end the process that holds it, or try again later"
        return Check(name=name, state="fail", message=f"the store cannot be written now: {error}", mend=mend)
    except StoreError as error:
        return Check(name=name, state="fail", message=str(error), mend=_ways_to_write(app))
    return Check(name=name, state="ok", message="the store can be written")


def _ways_to_write(app: App) -> str:
    path = app.settings.database_file
    if path is not None:
        return f"make {path.parent} and the files in it writable"
    return "give its user the right to write, or name another store with store.url"


async def _embedder(app: App) -> Check:
    """Whether texts can be embedded here, tried out on one."""
    name, embedder = "embedder", app.embedder
    if embedder is None:
        chosen = app.settings.embedder.provider == "none" or app.settings.recall.mode == "lexical"
        message = f"recall works by words alone: {app.no_embedder}"
        return Check(name=name, state="ok" if chosen else "warn", message=message)
    try:
        model = await embedder.model()
        await embedder.embed(["a short text"])
    except BackstoryError as error:
        mend = "`backstory config` shows what is set for the embedder"
        return Check(name=name, state="warn", message=f"recall works by words alone: {error}", mend=mend)
    return Check(name=name, state="ok", message=f"{model.name} embeds ({model.dimension} dimensions)")


async def _second(app: App) -> list[Check]:
    """Whether the second model works, where one is set, and how many memories it has not read yet."""
    if app.second is None:
        return []
    name, mend = "second model", "`backstory embed` adds the vectors"
    try:
        model = await app.second.model()
        await app.second.query("a short text")
    except BackstoryError as error:
        return [Check(name=name, state="warn", message=f"recall works without it: {error}")]
    waiting = len(await app.backend.vectors.unembedded(model=model, limit=MOST_COUNTED + 1))
    if not waiting:
        return [Check(name=name, state="ok", message=f"{model.name} embeds, and has every memory")]
    count = f"more than {MOST_COUNTED:,}" if waiting > MOST_COUNTED else f"{waiting:,}"
    return [Check(name=name, state="warn", message=f"{model.name} has not read {count} memories yet", mend=mend)]


async def _vectors(app: App, embedder: Check) -> list[Check]:
    """How many memories wait for a vector, where there is an embedder that works."""
    if app.embedder is None or embedder.state != "ok":
        return []
    model = await app.embedder.model()
    waiting = len(await app.backend.vectors.unembedded(model=model, limit=MOST_COUNTED + 1))
    if not waiting:
        return [Check(name="vectors", state="ok", message="every memory can be found by meaning")]
    count = f"more than {MOST_COUNTED:,}" if waiting > MOST_COUNTED else f"{waiting:,}"
    message = f"found by words only, for want of a vector: {count} memories"
    return [Check(name="vectors", state="warn", message=message, mend="`backstory embed` adds the vectors")]
