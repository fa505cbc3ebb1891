"""What asking models costs and may cost: calls are booked, and none is made beyond the caps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backstory.bootstrap.models import has_text_model, needed
from backstory.config import Settings

if TYPE_CHECKING:
    from backstory.bootstrap.app import App
    from backstory.domain.ledger import Caps
    from backstory.ports.ledger import Ledger
    from backstory.ports.system import Clock, IdSource
    from backstory.ports.text_models import TextModel
    from backstory.services.ledger import Spending


def spending(app: App) -> Spending:
    """What was spent, beside the caps, for each feature that asks a model under these settings."""
    from backstory.adapters.local_zone import LocalZone
    from backstory.services.ledger import Spending

    chosen = app.settings
    features: tuple[str, ...] = ()
    if chosen.recall.rerank != "off" and (has_text_model(chosen) or app.host_model is not None):
        features += ("rerank",)
    if chosen.archive.enabled and chosen.models.provider != "none":  # a command may look at what OpenCode's asked
        of_strategy = {"tree": ("summary_tree",), "observations": ("observation", "reflection")}
        features += of_strategy.get(chosen.session.strategy, ())
        features += ("dream",) if chosen.dream.enabled else ()
    return Spending(app.backend.ledger, caps=app.caps, features=features, clock=app.clock, zone=LocalZone())


def metered(
    model: TextModel, ledger: Ledger, settings: Settings, *, caps: Caps, clock: Clock, ids: IdSource
) -> TextModel:
    """The model with its calls booked, and none made beyond the caps."""
    from backstory.adapters.local_zone import LocalZone
    from backstory.adapters.text_models.metered import MeteredTextModel, Terms
    from backstory.adapters.tokens import EstimatedTokens
    from backstory.domain.ledger import Prices

    chosen = settings.models
    prices = Prices(input=millionths(chosen.price_input), output=millionths(chosen.price_output))
    terms = Terms(caps=caps, prices=prices, zone=LocalZone())
    return MeteredTextModel(model, ledger, terms=terms, clock=clock, ids=ids, tokens=EstimatedTokens())


def caps(settings: Settings) -> Caps:
    """The most that may be spent on models. Raises ConfigError for a cap that could never be reached."""
    from backstory.domain.ledger import Caps, read_feature_caps

    chosen = settings.models
    if chosen.cap_day_cost is not None:
        needed(chosen.price_input, "models.price_input", by="models.cap_day_cost")
        needed(chosen.price_output, "models.price_output", by="models.cap_day_cost")
    return Caps(
        day_tokens=chosen.cap_day_tokens,
        day_cost=millionths(chosen.cap_day_cost),
        session_tokens=chosen.cap_session_tokens,
        features=read_feature_caps(chosen.cap_features),
    )


def millionths(amount: str | None) -> int | None:
    """An amount of money in millionths; None for none."""
    from backstory.domain.ledger import read_money

    return None if amount is None else read_money(amount)
