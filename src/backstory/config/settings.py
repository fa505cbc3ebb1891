"""Every option, declared once: default, unit, limits, who may set it. How values are found is in ``layers.py``."""
# ruff: noqa: RUF009 - ``option`` makes the field of a dataclass, as ``dataclasses.field`` does

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from backstory.config.dreaming import DreamSettings
from backstory.config.locations import platform_folder
from backstory.config.long_sessions import ObservationSettings, ReflectionSettings, SessionSettings, TreeSettings
from backstory.config.options import Group, Option, declared_options, option
from backstory.config.serving import ServeSettings, ToolSettings
from backstory.config.stores_and_models import EmbedderSettings, ModelSettings, StoreSettings

RecallMode = Literal["hybrid", "lexical"]
Rerank = Literal["off", "auto"]
Relevance = Literal["quiet", "balanced", "keen"]
Selection = Literal["relevance", "recency"]
EmbedArchive = Literal["auto", "always", "never"]
LogLevel = Literal["error", "warning", "info", "debug"]

_DATABASE = "backstory.db"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RecallSettings(Group):
    """How memories are searched."""

    mode: RecallMode = option(
        "hybrid",
        choices=get_args(RecallMode),
        off="lexical",
        project="off-only",
        help="By words and meaning (`hybrid`) or by words alone (`lexical`).",
    )
    limit: int = option(
        10, minimum=1, maximum=100, unit="memories", project="safe", help="How many results a search gives."
    )
    relevance: Relevance = option(
        "balanced",
        choices=get_args(Relevance),
        project="safe",
        help="How sure to be before offering a memory unasked: `quiet` offers least, `keen` most.",
    )
    rerank: Rerank = option(
        "off",
        choices=get_args(Rerank),
        off="off",
        project="off-only",
        help="With `auto`, the language model, if there is one, is asked which of the best matches help, or that none"
        " does. Each search then sends them to it. When it fails, the search answers without it.",
    )
    rerank_timeout_ms: int = option(
        4_000,
        minimum=100,
        maximum=60_000,
        unit="milliseconds",
        project="safe",
        help="How long a search waits for the language model; a prompt no longer than `context.deadline_ms` allows.",
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ContextSettings(Group):
    """What is put before the model unasked."""

    inject: bool = option(
        True,
        aliases=("OPENCODE_MEMORY_SURFACE",),
        project="off-only",
        help="Whether memories are offered to the model unasked.",
    )
    selection: Selection = option(
        "relevance",
        choices=get_args(Selection),
        aliases=("OCPG_INJECTION",),
        project="safe",
        help="Offer what fits the prompt (`relevance`), or the newest whatever the prompt (`recency`).",
    )
    block_budget_tokens: int = option(
        600, minimum=50, maximum=8_000, unit="tokens", project="safe", help="Size of the block beside a prompt."
    )
    snapshot_budget_tokens: int = option(
        400, minimum=50, maximum=8_000, unit="tokens", project="safe", help="Size of the snapshot of a session."
    )
    deadline_ms: int = option(
        800,
        minimum=50,
        maximum=5_000,
        unit="milliseconds",
        project="safe",
        help="How long a prompt may wait for its block; then it goes without.",
    )
    max_entries: int = option(
        5, minimum=1, maximum=50, unit="memories", project="safe", help="How many memories a block holds."
    )
    core_slots: int = option(
        3,
        minimum=0,
        maximum=50,
        unit="memories",
        aliases=("OPENCODE_MEMORY_CORE_SLOT",),
        project="safe",
        help="How many core memories a session's snapshot holds beside the pinned ones, those worth most first.",
    )
    evidence: bool = option(
        False,
        project="never",
        help="Whether a prompt that asks back (`what did we decide about …`) is offered what was said in earlier"
        " sessions of its project, where memories are silent. What is quoted stays beside its prompt when it expires.",
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CaptureSettings(Group):
    """Storing what a prompt asks to be remembered."""

    enabled: bool = option(True, project="off-only", help='Whether "remember that …" in a prompt is stored.')


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ArchiveSettings(Group):
    """Keeping sessions, so that they can be searched later."""

    enabled: bool = option(True, project="off-only", help="Whether the messages of sessions are kept.")
    embed: EmbedArchive = option(
        "auto",
        choices=get_args(EmbedArchive),
        off="never",
        project="off-only",
        help="Whether messages get vectors, so that they are found by meaning. `auto` does it on this machine (local"
        " model, Ollama) and sends no message to another endpoint; `always` does; `never` searches them by words.",
    )
    tool_passages: int = option(
        2,
        minimum=0,
        maximum=50,
        unit="passages of about 800 characters",
        project="never",
        help="How much of each tool call and its output can be searched; all of it is kept.",
    )
    attachment_max_bytes: int = option(
        1_000_000,
        minimum=0,
        maximum=20_000_000,
        unit="bytes",
        project="never",
        help="The largest attached file, such as a picture, that is kept; with 0 none is. Each is kept once, however"
        " often it is sent.",
    )
    retention_days: int | None = option(
        None,
        type=int,
        minimum=1,
        maximum=36_500,
        unit="days",
        project="never",
        help="How long messages are kept, with their parts, files and what they are found by; for ever if not set."
        " Memories stay.",
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class LimitSettings(Group):
    """How long the text of a memory may be."""

    content_max_chars: int = option(
        4_000, minimum=200, maximum=100_000, unit="characters", project="safe", help="Longest text of a memory."
    )
    content_min_chars: int = option(
        1, minimum=1, maximum=200, unit="characters", project="safe", help="Shortest text of a memory."
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class OpenCodeSettings(Group):
    """How Backstory sits in OpenCode."""

    tools: bool = option(True, project="off-only", help="Whether the agent gets memory tools.")
    subagents: bool = option(False, project="off-only", help="Whether sub-agents' sessions are captured and kept too.")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class LogSettings(Group):
    """What is written to standard error."""

    level: LogLevel = option(
        "warning", choices=get_args(LogLevel), project="never", help="The least serious event that is logged."
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Settings(Group):
    """Every setting, checked. ``Settings()`` is all defaults; ``load`` makes the one in force.

    ``home`` is the folder BACKSTORY_HOME names, which then holds data (also in ``store.dir``), cache and user file.
    """

    store: StoreSettings = StoreSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    models: ModelSettings = ModelSettings()
    recall: RecallSettings = RecallSettings()
    context: ContextSettings = ContextSettings()
    capture: CaptureSettings = CaptureSettings()
    archive: ArchiveSettings = ArchiveSettings()
    limits: LimitSettings = LimitSettings()
    opencode: OpenCodeSettings = OpenCodeSettings()
    tools: ToolSettings = ToolSettings()
    serve: ServeSettings = ServeSettings()
    log: LogSettings = LogSettings()
    session: SessionSettings = SessionSettings()
    tree: TreeSettings = TreeSettings()
    observation: ObservationSettings = ObservationSettings()
    reflection: ReflectionSettings = ReflectionSettings()
    dream: DreamSettings = DreamSettings()
    home: Path | None = None

    @property
    def data_dir(self) -> Path:
        """The data folder; it may not exist yet. Raises ConfigError if there is no home folder and none is set."""
        return self.store.dir or self.home or platform_folder("data")

    @property
    def cache_dir(self) -> Path:
        """The folder for what can be made again; it may not exist yet. Raises as ``data_dir``."""
        return self.home / "cache" if self.home else platform_folder("cache")

    @property
    def database_file(self) -> Path | None:
        """The SQLite file that ``store.url`` means; None for a store that is not a file. Raises as ``data_dir``."""
        if self.store.url != "sqlite" and not self.store.url.startswith("sqlite://"):
            return None
        if self.store.url == "sqlite":
            return self.data_dir / _DATABASE
        return Path(self.store.url.removeprefix("sqlite://"))

    def git_index(self, name: str) -> Path:
        """The file beside a ``git`` store that makes it searchable: one for each repository. Raises as ``data_dir``."""
        return self.data_dir / "git" / f"{name}.db"


@cache
def groups() -> dict[str, type]:
    """The groups of settings by name, in order."""
    return {entry.name: type(entry.default) for entry in fields(Settings) if entry.name != "home"}


@cache
def options() -> tuple[Option, ...]:
    """The one table of options, in the order of the reference page."""
    return tuple(option for name, cls in groups().items() for option in declared_options(name, cls))
