"""The embedder and the language model that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from backstory.config import Settings
from backstory.errors import ConfigError
from backstory.ports.models import Embedder, SecondEmbedder

if TYPE_CHECKING:
    from backstory.ports.text_models import TextModel


def embedder(settings: Settings, *, one_shot: bool) -> tuple[Embedder | None, str]:
    """The configured embedder, or None and why there is none."""
    chosen = settings.embedder
    if settings.recall.mode == "lexical":
        return None, "recall.mode is lexical"
    match chosen.provider:
        case "none":
            return None, "embedder.provider is none"
        case "auto" | "local":
            return _local_embedder(settings, one_shot=one_shot)
        case "openai":
            from backstory.adapters.embedders.openai import OpenAiEmbedder

            return OpenAiEmbedder(
                base_url=chosen.base_url or "https://api.openai.com/v1",
                model=needed(chosen.model, "embedder.model"),
                api_key=chosen.api_key,
                timeout_seconds=chosen.timeout_ms / 1000,
            ), ""
        case "ollama":
            from backstory.adapters.embedders.ollama import OllamaEmbedder

            return OllamaEmbedder(
                base_url=chosen.base_url or "http://127.0.0.1:11434",
                model=chosen.model or "nomic-embed-text",
                timeout_seconds=chosen.timeout_ms / 1000,
            ), ""
        case _:
            assert_never(chosen.provider)


def _local_embedder(settings: Settings, *, one_shot: bool) -> tuple[Embedder | None, str]:
    from backstory.adapters.embedders import minilm

    missing = minilm.availability()
    if missing is None:
        return minilm.MiniLmEmbedder(settings.cache_dir, quick_start=one_shot), ""
    return None, missing


def second_embedder(settings: Settings) -> SecondEmbedder | None:
    """The model that is set to read beside the embedder; it may turn out not to be installed."""
    match settings.embedder.second:
        case "none":
            return None
        case "e5":
            from backstory.adapters.embedders.e5 import E5Embedder

            return E5Embedder(settings.cache_dir)
        case _:
            assert_never(settings.embedder.second)


def has_text_model(settings: Settings) -> bool:
    """Whether a language model is configured that this process can ask itself, without a host."""
    chosen = settings.models
    return chosen.provider == "openai" or (chosen.provider == "auto" and bool(chosen.base_url))


def text_model(settings: Settings, *, host: TextModel | None = None) -> TextModel | None:
    """The language model to ask; the ``host``'s where the settings name no other."""
    chosen = settings.models
    if not has_text_model(settings):
        return None if chosen.provider == "none" else host
    from backstory.adapters.text_models.openai import OpenAiTextModel

    return OpenAiTextModel(
        chosen.base_url or "https://api.openai.com/v1",
        model=needed(chosen.model, "models.model"),
        api_key=chosen.api_key,
        timeout_s=chosen.timeout_ms / 1000,
        retries=chosen.max_retries,
        concurrency=chosen.concurrency,
    )


def needed(value: str | None, option: str, *, by: str = "the chosen model") -> str:
    """A value that an option must have. Raises ConfigError when it has none."""
    if not value:
        raise ConfigError(f"{option} is not set, and {by} needs it", option=option)
    return value
