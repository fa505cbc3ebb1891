"""What keeps long sessions short: the strategy that the settings name, and the services around it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from backstory.domain.digest import Strategy
from backstory.errors import ConfigError, InputError
from backstory.services.digesting import LEASE, Digesting
from backstory.services.session_digest import SessionDigests
from backstory.services.session_views import SessionViews

if TYPE_CHECKING:
    from collections.abc import Callable

    from backstory.adapters.tokens import WarmingTokens
    from backstory.bootstrap.app import App
    from backstory.config import Settings
    from backstory.config.long_sessions import TreeSettings
    from backstory.domain.summary_tree import TreePolicy
    from backstory.ports.text_models import TextModel
    from backstory.services.digest_strategy import DigestStrategy


@dataclass(frozen=True, slots=True, kw_only=True)
class LongSessions:
    """The services of one strategy: what requests show, and the work in the background."""

    strategy: Strategy
    requests: SessionDigests
    work: Digesting
    warm: Callable[[], None]
    """Loads what counts tokens, so that no request does: 0.2 s, once a process."""

    def serves(self, agent: str | None, settings: Settings) -> bool:
        """Whether an agent's sessions are digested."""
        from backstory.domain.observation import is_enabled

        if agent is not None and agent in settings.session.exclude_agents.split():
            return False
        return self.strategy is Strategy.TREE or is_enabled(agent, settings.observation.agents)


def long_sessions(app: App) -> LongSessions | None:
    """The services for the chosen strategy; None where it is off, or there is no archive to digest from.

    Raises ConfigError for thresholds that do not fit each other.
    """
    settings = app.settings
    if settings.session.strategy == "off" or not settings.archive.enabled:
        return None
    from backstory.adapters.tokens import WarmingTokens

    tokens = WarmingTokens()  # the thresholds of observations are in tokens of o200k
    strategy = _strategy(settings, app.text_model, tokens)
    digests, conversations = app.backend.digests, app.backend.conversations
    views = SessionViews(digests, conversations, strategy=strategy.strategy, clock=app.clock)
    return LongSessions(
        strategy=strategy.strategy,
        warm=tokens.load if strategy.strategy is Strategy.OBSERVATIONS else _nothing,
        requests=SessionDigests(digests, views, strategy, clock=app.clock),
        work=Digesting(
            digests,
            conversations,
            views,
            strategy,
            clock=app.clock,
            ids=app.ids,
            lease=max(LEASE, 2 * timedelta(milliseconds=settings.models.timeout_ms)),
        ),
    )


def _nothing() -> None:
    """A tree has no threshold in tokens: an estimate is enough to see that a summary is shorter."""


def _strategy(settings: Settings, model: TextModel | None, tokens: WarmingTokens) -> DigestStrategy:
    timeout_s = settings.models.timeout_ms / 1000
    from backstory.adapters.blocking import run_blocking

    if settings.session.strategy == "tree":
        from backstory.services.summary_tree import SummaryTree

        policy = _tree_policy(settings.tree)
        return SummaryTree(model, policy=policy, tokens=tokens, timeout_s=timeout_s, aside=run_blocking)
    from backstory.domain.observation import ObservationPolicy
    from backstory.services.observation import Observing

    return Observing(
        model,
        policy=ObservationPolicy(  # each option's own limits are within the policy's
            message_tokens=settings.observation.message_tokens,
            observation_tokens=settings.reflection.observation_tokens,
        ),
        tokens=tokens,
        settled=lambda: tokens.settled,
        timeout_s=timeout_s,
        observer_instruction=settings.observation.custom_instruction,
        reflector_instruction=settings.reflection.custom_instruction,
        reflector=settings.reflection.model,
        aside=run_blocking,
    )


def _tree_policy(tree: TreeSettings) -> TreePolicy:
    """Each option is within its own limits; what is left to go wrong is one that does not fit another."""
    from backstory.domain.summary_tree import TreePolicy

    try:
        return TreePolicy(
            max_raw=tree.max_raw,
            min_batch=tree.min_batch,
            compact_threshold=tree.compact_threshold,
            compact_branch=tree.compact_branch,
            max_sync=tree.max_sync,
        )
    except InputError as error:
        raise ConfigError(f"tree.{error}", option=f"tree.{error.field}") from error
