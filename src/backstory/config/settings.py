"""Every option, declared once: default, unit, limits, who may set it. How values are found is in ``layers.py``."""
# ruff: noqa: RUF009 - ``option`` makes the field of a dataclass, as ``dataclasses.field`` does

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from backstory.config.locations import platform_folder
from backstory.config.options import Group, Option, declared_options, option
from backstory.config.values import (
    amount,
    api_key,
    feature_caps,
    folder,
    git_ref,
    git_refs,
    http_url,
    schema_name,
    store_url,
    tenant_name,
    variable_name,
)

EmbedderProvider = Literal["auto", "local", "openai", "ollama", "none"]
ModelProvider = Literal["auto", "host", "openai", "none"]
RecallMode = Literal["hybrid", "lexical"]
Rerank = Literal["off", "auto"]
Relevance = Literal["quiet", "balanced", "keen"]
Selection = Literal["relevance", "recency"]
EmbedArchive = Literal["auto", "always", "never"]
Toolset = Literal["default", "memory-tree", "ocpg", "opencode-memory", "git-memory", "observational", "all"]
OcpgLink = Literal["auto", "off"]
LogLevel = Literal["error", "warning", "info", "debug"]

_ADDRESS = "an http or https address without user name or password"
_VARIABLE = "the name of an environment variable, in upper case"
_FOLDER = "an absolute path; ~ is your home folder"
_AMOUNT = 'an amount below 10,000 in quotes, such as "0.15"'
_MOST_TOKENS = 1_000_000_000_000
_STORE = "sqlite, sqlite:///absolute/path/of/file.db, postgresql://user@host/database, git, memory"
_DATABASE = "backstory.db"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StoreSettings(Group):
    """Where memories are kept."""

    url: str = option(
        "sqlite",
        env="BACKSTORY_STORE",
        check=store_url,
        allowed=_STORE,
        project="never",
        help="The store. `sqlite` is a file in the data folder, `git` a ref of the repository; `memory` keeps nothing.",
    )
    password: str | None = option(
        None,
        type=str,
        maximum=1_000,
        aliases=("OCPG_PASSWORD",),
        allowed="the password, in the environment only",
        secret=True,
        project="never",
        help="The password of a `postgresql` store, if no password file holds it.",
    )
    schema: str = option(
        "backstory",
        check=schema_name,
        allowed="a name in lower case",
        project="never",
        help="The schema of a `postgresql` store that holds our tables.",
    )
    tenant: str = option(
        "default",
        check=tenant_name,
        allowed="letters, digits, . _ -",
        project="never",
        help="Whose rows of a `postgresql` store are seen; teams with different tenants see nothing of each other.",
    )
    ocpg: OcpgLink = option(
        "auto",
        choices=get_args(OcpgLink),
        off="off",
        project="never",
        help="Whether a `postgresql` store is kept in step with an ocpg database beside it.",
    )
    ref: str = option(
        "refs/memory/agent",
        check=git_ref,
        allowed="a full name such as refs/memory/agent",
        project="never",
        help="The ref that holds the memories of a `git` store.",
    )
    also: str = option(
        "",
        check=git_refs,
        allowed="full names of refs with blanks between them",
        project="never",
        help="More refs whose memories a `git` store reads and does not change.",
    )
    dir: Path | None = option(
        None,
        type=Path,
        check=folder,
        allowed=_FOLDER,
        project="never",
        help="The data folder, if not the platform's own. BACKSTORY_HOME overrides it.",
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class EmbedderSettings(Group):
    """What turns text into vectors. A model or an address that is not set is the provider's own."""

    provider: EmbedderProvider = option(
        "auto",
        choices=get_args(EmbedderProvider),
        off="none",
        project="off-only",
        help="`auto` is the local model if it is installed, else none. With `none`, recall works by words alone.",
    )
    model: str | None = option(None, type=str, maximum=200, project="never", help="The embedding model.")
    base_url: str | None = option(
        None, type=str, check=http_url, allowed=_ADDRESS, project="never", help="Where the embedding endpoint is."
    )
    api_key: str | None = option(
        None,
        type=str,
        check=api_key,
        allowed="the key, in the environment only",
        secret=True,
        project="never",
        help="The key of the embedding endpoint.",
    )
    api_key_env: str | None = option(
        None,
        type=str,
        check=variable_name,
        allowed=_VARIABLE,
        project="never",
        help="Which environment variable holds that key, if not BACKSTORY_EMBEDDER_API_KEY.",
    )
    timeout_ms: int = option(
        2_000,
        minimum=50,
        maximum=120_000,
        unit="milliseconds",
        project="safe",
        help="How long to wait for the embedding endpoint.",
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ModelSettings(Group):
    """The language model that observes, dreams and summarises. Without one, all else works."""

    provider: ModelProvider = option(
        "auto",
        choices=get_args(ModelProvider),
        off="none",
        project="off-only",
        help="`host` asks through the coding agent, `openai` any compatible endpoint. `auto` is `openai` if"
        " `models.base_url` is set, else none.",
    )
    model: str | None = option(
        None,
        type=str,
        maximum=200,
        aliases=("OM_OBSERVATION_MODEL",),
        project="never",
        help="The language model, as its provider names it. `openai` needs it.",
    )
    base_url: str | None = option(
        None,
        type=str,
        check=http_url,
        allowed=_ADDRESS,
        aliases=("OM_API_BASE_URL",),
        project="never",
        help="Where the language model's endpoint is, usually ending in /v1.",
    )
    api_key: str | None = option(
        None,
        type=str,
        check=api_key,
        allowed="the key, in the environment only",
        aliases=("OM_API_KEY", "OPENCODE_MEMORY_API_KEY"),
        secret=True,
        project="never",
        help="The key of that endpoint.",
    )
    api_key_env: str | None = option(
        None,
        type=str,
        check=variable_name,
        allowed=_VARIABLE,
        project="never",
        help="Which environment variable holds that key, if not BACKSTORY_MODELS_API_KEY.",
    )
    timeout_ms: int = option(
        60_000,
        minimum=100,
        maximum=600_000,
        unit="milliseconds",
        project="safe",
        help="How long one question to the language model may take, with all its attempts. Some may take less.",
    )
    max_retries: int = option(
        2,
        minimum=0,
        maximum=10,
        unit="attempts",
        project="safe",
        help="How often a question is asked again after an overload or a broken connection, within that time.",
    )
    concurrency: int = option(
        2, minimum=1, maximum=16, unit="questions", project="safe", help="How many may be under way at once."
    )
    price_input: str | None = option(
        None,
        type=str,
        check=amount,
        allowed=_AMOUNT,
        project="never",
        help="What a million tokens sent to the model cost, in your currency. Calls have a cost once both prices are"
        " set.",
    )
    price_output: str | None = option(
        None,
        type=str,
        check=amount,
        allowed=_AMOUNT,
        project="never",
        help="What a million tokens written by the model cost.",
    )
    cap_day_tokens: int | None = option(
        None,
        type=int,
        minimum=0,
        maximum=_MOST_TOKENS,
        unit="tokens",
        project="never",
        help="The most tokens a day that models may take, in and out. At a cap, what asks a model does without until"
        " midnight.",
    )
    cap_day_cost: str | None = option(
        None,
        type=str,
        check=amount,
        allowed=_AMOUNT,
        project="never",
        help="The most that models may cost a day; needs both prices.",
    )
    cap_session_tokens: int | None = option(
        None,
        type=int,
        minimum=0,
        maximum=_MOST_TOKENS,
        unit="tokens",
        project="never",
        help="The most tokens that models may take for one session of the coding agent.",
    )
    cap_features: str = option(
        "",
        check=feature_caps,
        allowed="features with a number of tokens each, such as rerank=20000",
        project="never",
        help="The most tokens a day for single features: `rerank`.",
    )


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
    evidence: bool = option(
        False,
        project="never",
        help="Not used yet. Whether earlier messages may be offered too, where memories are silent. What was said in"
        " sessions is found only when it is asked for (`backstory recall --in evidence`).",
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
    toolset: Toolset = option(
        "default",
        choices=get_args(Toolset),
        project="never",
        help="Not used yet. Which tools: Backstory's own, or those of an older product under their own names.",
    )
    subagents: bool = option(False, project="off-only", help="Whether sub-agents' sessions are captured and kept too.")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class LogSettings(Group):
    """What is written to standard error."""

    level: LogLevel = option(
        "warning", choices=get_args(LogLevel), project="never", help="The least serious event that is logged."
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ObservationSettings(Group):
    """When a session is observed, and what to look for."""

    message_tokens: int = option(
        30_000,
        minimum=1_000,
        maximum=1_000_000,
        unit="tokens",
        aliases=("OM_OBSERVATION_MESSAGE_TOKENS",),
        project="safe",
        help="Not used yet. How much unobserved conversation starts an observation.",
    )
    custom_instruction: str | None = option(
        None,
        type=str,
        maximum=2_000,
        project="safe",
        help="Not used yet. What the observer should attend to, in your words.",
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ReflectionSettings(Group):
    """When observations are condensed, and how."""

    observation_tokens: int = option(
        40_000,
        minimum=1_000,
        maximum=1_000_000,
        unit="tokens",
        aliases=("OM_REFLECTION_OBSERVATION_TOKENS",),
        project="safe",
        help="Not used yet. How much of observations starts a reflection.",
    )
    custom_instruction: str | None = option(
        None,
        type=str,
        maximum=2_000,
        project="safe",
        help="Not used yet. What the reflector should attend to, in your words.",
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DreamSettings(Group):
    """Distilling facts from a session once it is idle."""

    enabled: bool = option(
        True,
        aliases=("OPENCODE_MEMORY_DREAM",),
        project="off-only",
        help="Not used yet. Whether idle sessions are distilled into facts; needs a language model.",
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
    log: LogSettings = LogSettings()
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
