"""Settings become a working application: the only place that knows which adapter stands behind which port."""

from __future__ import annotations

from pathlib import Path

from backstory.bootstrap.app import App
from backstory.bootstrap.models import embedder, second_embedder
from backstory.bootstrap.stores import backend
from backstory.config import Settings

__all__ = ["App", "open_app"]


def open_app(settings: Settings, *, folder: Path | None = None, one_shot: bool = False, create: bool = True) -> App:
    """An application over the configured store, which is opened at its first use.

    ``folder`` is where a ``git`` store looks for its repository, if not here. ``one_shot`` prefers an embedder that
    starts fast over one that answers fast. ``create`` False leaves a store that is not there unmade (StoreUnavailable
    at the first use).
    """
    vectors, no_embedder = embedder(settings, one_shot=one_shot)
    if vectors is not None and settings.context.evidence and not one_shot:
        from backstory.adapters.embedders.last_text import LastText  # a prompt is embedded once for both its searches

        vectors = LastText(vectors)
    second = None if vectors is None else second_embedder(settings)
    store = backend(settings, folder or Path.cwd(), create=create)
    return App(settings, store, vectors, no_embedder=no_embedder, second=second)
