"""The options of long sessions: what stands for their old messages, and when it is made."""
# ruff: noqa: RUF009 - ``option`` makes the field of a dataclass, as ``dataclasses.field`` does

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from backstory.config.options import Group, option

StrategyName = Literal["off", "tree", "observations"]
ObservationScope = Literal["session", "project"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SessionSettings(Group):
    """What an agent reads of its session's old messages."""

    strategy: StrategyName = option(
        "off",
        choices=get_args(StrategyName),
        off="off",
        project="off-only",
        help="What replaces old messages in requests: summaries that open down to the messages (`tree`), a log of"
        " `observations`, or nothing (`off`). A session has one of them. Needs `archive.enabled`.",
    )
    exclude_agents: str = option(
        "explore general",
        maximum=1_000,
        project="never",
        help="Agents whose sessions keep their messages as they are, with blanks between the names.",
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TreeSettings(Group):
    """When messages become leaves of the tree, and leaves a parent."""

    max_raw: int = option(
        10, minimum=2, maximum=10_000, unit="messages", project="safe", help="How many messages start a summary."
    )
    min_batch: int = option(
        5, minimum=1, maximum=1_000, unit="messages", project="safe", help="How many of the oldest it stands for."
    )
    compact_threshold: int = option(
        6, minimum=2, maximum=1_000, unit="summaries", project="safe", help="How many of one level start a merge."
    )
    compact_branch: int = option(
        3, minimum=2, maximum=1_000, unit="summaries", project="safe", help="How many of the oldest are merged."
    )
    max_sync: int = option(
        50,
        minimum=10,
        maximum=10_000,
        unit="messages",
        project="safe",
        help="How many messages of a history that was never summarised stay as they are; older ones are summarised"
        " by rule.",
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
        help="How much unobserved conversation is replaced by observations.",
    )
    agents: str = option(
        "all",
        maximum=1_000,
        aliases=("OM_AGENTS",),
        project="never",
        help="Agents whose sessions are observed, with blanks between the names, or `all`.",
    )
    scope: ObservationScope = option(
        "session",
        choices=get_args(ObservationScope),
        project="never",
        help="Who reads a session's observations: it alone, or a new session of the same `project` too, at its start."
        " Needs `session.strategy` `observations`.",
    )
    shared_tokens: int = option(
        2_000,
        minimum=200,
        maximum=20_000,
        unit="tokens",
        project="safe",
        help="How much a new session reads of the observations of others, with `observation.scope` `project`.",
    )
    custom_instruction: str | None = option(
        None,
        type=str,
        maximum=2_000,
        project="safe",
        help="What the observer should attend to, in your words.",
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
        help="How much of observations is condensed.",
    )
    model: str | None = option(
        None,
        type=str,
        maximum=200,
        aliases=("OM_REFLECTION_MODEL",),
        project="never",
        help="The language model that condenses, as the provider of `models.model` names it; without it, the same.",
    )
    custom_instruction: str | None = option(
        None,
        type=str,
        maximum=2_000,
        project="safe",
        help="What the reflector should attend to, in your words.",
    )
