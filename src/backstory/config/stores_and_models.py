"""The options of stores, embedders and language models: what memories are kept in, and what reads them."""
# ruff: noqa: RUF009 - ``option`` makes the field of a dataclass, as ``dataclasses.field`` does

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from backstory.config.options import Group, option
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
SecondModel = Literal["none", "e5"]
ModelProvider = Literal["auto", "host", "openai", "none"]
OcpgLink = Literal["auto", "off"]
_ADDRESS = "an http or https address without user name or password"
_VARIABLE = "the name of an environment variable, in upper case"
_FOLDER = "an absolute path; ~ is your home folder"
_AMOUNT = 'an amount below 10,000 in quotes, such as "0.15"'
_MOST_TOKENS = 1_000_000_000_000
_STORE = "sqlite, sqlite:///absolute/path/of/file.db, postgresql://user@host/database, git, memory"


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
    second: SecondModel = option(
        "none",
        choices=get_args(SecondModel),
        off="none",
        project="never",
        help="A second local model beside it: `e5` (multilingual-e5-small) finds memories in other languages too.",
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
        " `models.base_url` is set, else `host` where there is one: in OpenCode, and nowhere else.",
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
