"""Embeddings from Ollama's ``/api/embed``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backstory.adapters.embedders.endpoint import JsonEndpoint
from backstory.adapters.embedders.endpoint_embedder import EndpointEmbedder


class OllamaEmbedder(EndpointEmbedder):
    """``base_url`` is the server's root, ``http://localhost:11434`` as installed. Raises ConfigError for a bad one.

    The first request may take seconds while Ollama loads the model: give ``timeout_seconds`` room for that.
    """

    def __init__(self, base_url: str, *, model: str, timeout_seconds: float) -> None:
        super().__init__(JsonEndpoint(base_url, timeout_seconds=timeout_seconds), OllamaWire(), model=model)


class OllamaWire:
    """``input`` out, ``embeddings`` back in the same order."""

    provider = "ollama"
    path = "/api/embed"

    def request(self, model: str, texts: Sequence[str]) -> Mapping[str, object]:
        """The body to send; Ollama cuts long texts itself when asked to."""
        return {"model": model, "input": list(texts), "truncate": True}

    def vectors(self, answer: object) -> Sequence[object] | None:
        """The embeddings in order."""
        embeddings = answer.get("embeddings") if isinstance(answer, dict) else None
        return embeddings if isinstance(embeddings, list) else None

    def if_missing(self, model: str) -> str:
        """What a 404 means and what to do."""
        return f"Ollama has no model {model!r}; get it with: ollama pull {model}"
