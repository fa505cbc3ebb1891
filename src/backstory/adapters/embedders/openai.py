"""Embeddings from any server that speaks OpenAI's ``/embeddings``: OpenAI, vLLM, LM Studio, llama.cpp and others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backstory.adapters.embedders.endpoint import JsonEndpoint
from backstory.adapters.embedders.endpoint_embedder import EndpointEmbedder


class OpenAiEmbedder(EndpointEmbedder):
    """``base_url`` ends where ``/embeddings`` follows, usually in ``/v1``. No key is read from anywhere else.

    Raises ConfigError for a URL or a key that cannot be sent.
    """

    def __init__(self, base_url: str, *, model: str, api_key: str | None = None, timeout_seconds: float) -> None:
        endpoint = JsonEndpoint(base_url, api_key=api_key, timeout_seconds=timeout_seconds)
        super().__init__(endpoint, OpenAiWire(), model=model)


class OpenAiWire:
    """``input`` out; ``data`` back, each item with its ``index``."""

    provider = "openai"
    path = "/embeddings"

    def request(self, model: str, texts: Sequence[str]) -> Mapping[str, object]:
        """The body to send; without optional fields, which some servers reject."""
        return {"model": model, "input": list(texts)}

    def vectors(self, answer: object) -> Sequence[object] | None:
        """The embeddings by ``index``; in the order of the answer where a server leaves every index out."""
        data = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
            return None
        places = [item.get("index", place) for place, item in enumerate(data)]
        if set(map(type, places)) - {int} or sorted(places) != list(range(len(data))):
            return None
        by_place = dict(zip(places, data, strict=True))
        return [by_place[place].get("embedding") for place in range(len(data))]

    def if_missing(self, model: str) -> str:
        """What a 404 means."""
        return f"there is no embedding model {model!r} there, or the base URL lacks its /v1"
