"""Checks that hold for every host: this package, the settings, long sessions. The store's are ``store_checks.py``.

Nothing is repaired: each check says in one sentence what it found, and how to mend it.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from backstory.__about__ import __version__
from backstory.bootstrap import open_app
from backstory.config import Resolved, Settings
from backstory.entrypoints.drive import drive
from backstory.errors import ConfigError

State = Literal["ok", "warn", "fail"]

_DIGESTS = "long sessions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What one check found. ``mend`` says what to do; empty where there is nothing to do."""

    name: str
    state: State
    message: str
    mend: str = ""


def check_package() -> Check:
    """Which Backstory runs on which Python."""
    message = f"Backstory {__version__} on Python {platform.python_version()}"
    return Check(name="package", state="ok", message=message)


def check_settings(resolve: Callable[[], Resolved]) -> tuple[list[Check], Settings | None]:
    """The settings' faults and warnings, and the settings themselves unless there is a fault."""
    try:
        resolved = resolve()
        data_dir = resolved.settings.data_dir
    except ConfigError as error:
        mend = "correct it; in your own file with `backstory config set` or `unset`"
        return [Check(name="settings", state="fail", message=str(error), mend=mend)], None
    warnings = [Check(name="settings", state="warn", message=warning) for warning in resolved.warnings]
    changed = sum(source != "default" for source in resolved.sources.values())
    message = f"{changed} of {len(resolved.sources)} settings differ from their defaults; data is kept in {data_dir}"
    return warnings or [Check(name="settings", state="ok", message=message)], resolved.settings


def check_long_sessions(
    settings: Settings, installed: Mapping[Path, Collection[str]], folder: Path | None = None
) -> list[Check]:
    """Whether the chosen strategy can do its work: nothing where none is chosen. ``installed`` are the names of the
    tools that OpenCode's plugin offers, by the folder that it lies in; ``folder`` as in ``check_store``."""
    strategy = settings.session.strategy
    if strategy == "off":
        return []
    if not settings.archive.enabled:
        message = f"session.strategy is {strategy}, but archive.enabled is off: there is nothing to make digests from"
        return [_long_sessions(message, mend="switch archive.enabled on, or session.strategy off")]
    return [_digest_writer(settings, folder), *_digest_tools(settings, installed)]


def _digest_writer(settings: Settings, folder: Path | None) -> Check:
    """Who writes digests. The store is not opened for that."""
    strategy = settings.session.strategy
    app = open_app(settings, folder=folder, one_shot=True, create=False)
    try:
        model = app.text_model if app.long_sessions is not None else None
    except ConfigError as error:
        mend = "`backstory config` shows what is set; models.provider none has extracts made"
        return _long_sessions(f"session.strategy is {strategy}, but no digest can be made: {error}", mend=mend)
    finally:
        drive(app.close())
    if model is not None:
        message = f"{strategy}, written by {model.name}"
    elif settings.models.provider == "none":
        message = f"{strategy}, made as extracts: models.provider is none"
    else:
        message = f"{strategy}, written by the model that OpenCode lends; where it lends none, extracts are made"
    return Check(name=_DIGESTS, state="ok", message=message)


def _digest_tools(settings: Settings, installed: Mapping[Path, Collection[str]]) -> Iterator[Check]:
    from backstory.entrypoints.tools.catalogue import OF_STRATEGY

    wanted = [tool.name for tool in OF_STRATEGY[settings.session.strategy]]
    if not settings.opencode.tools:
        message = f"opencode.tools is off, so the agent cannot look behind its digest: no {' or '.join(wanted)}"
        yield _long_sessions(message, mend="switch opencode.tools on")
        return
    for folder, names in installed.items():
        missing = [name for name in wanted if name not in names]
        if missing:
            message = f"{folder} was installed without {', '.join(missing)}: the agent cannot look behind its digest"
            yield _long_sessions(message, mend="`backstory install opencode`, then restart OpenCode")


def _long_sessions(message: str, *, mend: str) -> Check:
    return Check(name=_DIGESTS, state="warn", message=message, mend=mend)
