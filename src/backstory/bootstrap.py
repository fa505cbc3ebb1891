"""Settings become a working application: the only place that knows which adapter stands behind which port."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from backstory.adapters.blocking import aside
from backstory.adapters.clock import SystemClock, UlidSource
from backstory.config import Settings
from backstory.domain.ids import SessionId
from backstory.domain.project import Project
from backstory.domain.scope import Audience, Viewer
from backstory.errors import ConfigError
from backstory.ports.backend import Backend
from backstory.ports.models import Embedder
from backstory.ports.system import Clock, IdSource

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from datetime import timedelta

    from backstory.domain.admission import TextLimits
    from backstory.domain.ledger import Caps
    from backstory.ports.text_models import TextModel
    from backstory.services.context_block import ContextBlocks
    from backstory.services.conversation import Conversations
    from backstory.services.evidence import EvidenceRecall
    from backstory.services.inspection import Inspection
    from backstory.services.ledger import Spending
    from backstory.services.maintenance import Maintenance
    from backstory.services.project_identity import ProjectIdentity
    from backstory.services.projects import Projects
    from backstory.services.prompt import Prompts
    from backstory.services.recall import Recall
    from backstory.services.reference import Reference
    from backstory.services.remember import Remember
    from backstory.services.reranking import Reranker
    from backstory.services.transfer import Transfer

# The rest of a prompt's deadline, once the query's vector is there: two searches, composing and one durable write.
RESERVED_MS = 300


class App:
    """The services over one store. Each is made, and its modules imported, when it is first asked for, so that a
    one-shot command pays only for what it uses."""

    def __init__(
        self, settings: Settings, backend: Backend, embedder: Embedder | None, *, no_embedder: str,
        clock: Clock | None = None, ids: IdSource | None = None,
    ) -> None:  # fmt: skip
        """``no_embedder`` says why ``embedder`` is None; it is shown wherever meaning had to be left out."""
        self.settings = settings
        self.backend = backend
        self.embedder = embedder
        self.no_embedder = no_embedder
        self.clock = clock or SystemClock()
        self.ids = ids or UlidSource()

    async def project(self, directory: Path, *, register: bool = True) -> Project:
        """The project that a folder belongs to; a new folder becomes a new project.

        Without ``register`` nothing is written: a new folder's project has an id that nobody knows.
        """
        return await self.identity.of_folder(directory, register=register)

    async def viewer(
        self,
        directory: Path | None,
        *,
        audience: Audience,
        session: SessionId | None = None,
        all_projects: bool = False,
        register: bool = True,
    ) -> Viewer:
        """Who looks, from where. Without a directory: outside every project. ``register`` as in ``project``."""
        project = None if directory is None else (await self.project(directory, register=register)).id
        return Viewer(project=project, session=session, audience=audience, all_projects=all_projects)

    def with_settings(self, settings: Settings) -> App:
        """The same store and embedder under other settings, for another folder of the same process."""
        return App(settings, self.backend, self.embedder, no_embedder=self.no_embedder, clock=self.clock, ids=self.ids)

    def waiting(self, limit: timedelta) -> AbstractContextManager[None]:
        """Within, all calls together wait for other writers, and for a server, until ``limit`` from now, not for each
        anew."""
        from backstory.adapters.deadline import waiting

        return waiting(limit)

    async def close(self) -> None:
        """Release the store and the model. Calling twice is fine."""
        if self.embedder is not None:
            await self.embedder.close()
        model = self.__dict__.get("text_model")  # only if it was made
        if model is not None:
            await model.close()
        await self.backend.memories.close()

    @cached_property
    def limits(self) -> TextLimits:
        from backstory.domain.admission import TextLimits

        limits = self.settings.limits
        return TextLimits(min_chars=limits.content_min_chars, max_chars=limits.content_max_chars)

    @cached_property
    def identity(self) -> ProjectIdentity:
        from backstory.adapters.project_evidence import FolderEvidence
        from backstory.services.project_identity import ProjectIdentity

        return ProjectIdentity(self.backend.projects, FolderEvidence(), clock=self.clock, ids=self.ids)

    @cached_property
    def projects(self) -> Projects:
        from backstory.services.projects import Projects

        return Projects(self.backend, clock=self.clock, ids=self.ids)

    @cached_property
    def reference(self) -> Reference:
        from backstory.services.reference import Reference

        return Reference(self.backend.memories, self.backend.projects, clock=self.clock)

    @cached_property
    def remember(self) -> Remember:
        from backstory.services.remember import Remember

        return Remember(self.backend.memories, self.reference, clock=self.clock, ids=self.ids, limits=self.limits)

    @cached_property
    def text_model(self) -> TextModel | None:
        """The configured language model, with its calls booked; None where there is none in this process."""
        model = _text_model(self.settings)
        if model is None:
            return None
        from backstory.adapters.local_zone import LocalZone
        from backstory.adapters.text_models.metered import MeteredTextModel, Terms
        from backstory.adapters.tokens import EstimatedTokens
        from backstory.domain.ledger import Prices

        chosen = self.settings.models
        prices = Prices(input=_millionths(chosen.price_input), output=_millionths(chosen.price_output))
        terms = Terms(caps=self.caps, prices=prices, zone=LocalZone())
        tokens = EstimatedTokens()
        return MeteredTextModel(model, self.backend.ledger, terms=terms, clock=self.clock, ids=self.ids, tokens=tokens)

    @cached_property
    def caps(self) -> Caps:
        """The most that may be spent on models. Raises ConfigError for a cap that could never be reached."""
        from backstory.domain.ledger import Caps, read_feature_caps

        chosen = self.settings.models
        if chosen.cap_day_cost is not None:
            _needed(chosen.price_input, "models.price_input", by="models.cap_day_cost")
            _needed(chosen.price_output, "models.price_output", by="models.cap_day_cost")
        return Caps(
            day_tokens=chosen.cap_day_tokens,
            day_cost=_millionths(chosen.cap_day_cost),
            session_tokens=chosen.cap_session_tokens,
            features=read_feature_caps(chosen.cap_features),
        )

    @cached_property
    def spending(self) -> Spending:
        from backstory.adapters.local_zone import LocalZone
        from backstory.services.ledger import Spending

        features = () if self.settings.recall.rerank == "off" or not _has_text_model(self.settings) else ("rerank",)
        return Spending(self.backend.ledger, caps=self.caps, features=features, clock=self.clock, zone=LocalZone())

    @cached_property
    def reranker(self) -> Reranker | None:
        if self.settings.recall.rerank == "off" or self.text_model is None:
            return None
        from backstory.services.reranking import Reranker

        return Reranker(self.text_model, timeout_s=self.settings.recall.rerank_timeout_ms / 1000)

    @cached_property
    def recall(self) -> Recall:
        from backstory.domain.ranking import RankingPolicy
        from backstory.services.recall import Recall

        return Recall(
            self.backend,
            self.embedder,
            clock=self.clock,
            policy=RankingPolicy(),
            no_embedder=self.no_embedder,
            # the memory store lives in the event loop's own thread: read in another, its dicts would change underneath
            aside=None if self.settings.store.url == "memory" else aside,
            reranker=self.reranker,
        )

    @cached_property
    def evidence(self) -> EvidenceRecall:
        from backstory.adapters.local_zone import LocalZone
        from backstory.services.evidence import EvidenceRecall

        return EvidenceRecall(
            self.backend.evidence, self.embedder, clock=self.clock, zone=LocalZone(), no_embedder=self.no_embedder
        )

    @cached_property
    def blocks(self) -> ContextBlocks:
        from backstory.adapters.tokens import EstimatedTokens
        from backstory.domain.relevance import Relevance
        from backstory.services.context_block import ContextBlocks, ContextPolicy

        context = self.settings.context
        policy = ContextPolicy(
            inject=context.inject,
            by_recency=context.selection == "recency",
            relevance=Relevance(self.settings.recall.relevance),
            block_budget_tokens=context.block_budget_tokens,
            snapshot_budget_tokens=context.snapshot_budget_tokens,
            max_entries=context.max_entries,
            embed_within_s=max(context.deadline_ms - RESERVED_MS, context.deadline_ms / 2) / 1000,
        )
        return ContextBlocks(self.backend, self.recall, clock=self.clock, tokens=EstimatedTokens(), policy=policy)

    @cached_property
    def conversations(self) -> Conversations:
        from backstory.adapters.blocking import run_blocking
        from backstory.services.conversation import Conversations

        return Conversations(
            self.backend.conversations,
            self.remember,
            clock=self.clock,
            archive=self.settings.archive.enabled,
            capture=self.settings.capture.enabled,
            aside=run_blocking,
        )

    @cached_property
    def prompts(self) -> Prompts:
        from backstory.services.prompt import Prompts

        return Prompts(self.blocks, self.conversations)

    @cached_property
    def inspection(self) -> Inspection:
        from backstory.services.inspection import Inspection

        return Inspection(self.backend, self.reference, clock=self.clock)

    @cached_property
    def transfer(self) -> Transfer:
        from backstory.services.transfer import Transfer

        return Transfer(self.backend, clock=self.clock, ids=self.ids, limits=self.limits)

    @cached_property
    def maintenance(self) -> Maintenance:
        from backstory.services.maintenance import Maintenance

        embed, provider = self.settings.archive.embed, self.settings.embedder.provider
        return Maintenance(
            self.backend,
            self.embedder,
            no_embedder=self.no_embedder,
            embed_evidence=embed == "always" or (embed == "auto" and provider != "openai"),
        )


def open_app(settings: Settings, *, folder: Path | None = None, one_shot: bool = False, create: bool = True) -> App:
    """An application over the configured store, which is opened at its first use.

    ``folder`` is where a ``git`` store looks for its repository, if not here. ``one_shot`` prefers an embedder that
    starts fast over one that answers fast. ``create`` False leaves a store that is not there unmade (StoreUnavailable
    at the first use).
    """
    embedder, no_embedder = _embedder(settings, one_shot=one_shot)
    return App(settings, _backend(settings, folder or Path.cwd(), create=create), embedder, no_embedder=no_embedder)


def _backend(settings: Settings, folder: Path, *, create: bool) -> Backend:
    from backstory.domain.evidence_passages import PassageLimits

    passages = PassageLimits(tool=settings.archive.tool_passages)
    kind, _, place = settings.store.url.partition("://")
    match kind:
        case "memory":
            from backstory.adapters.stores.memory import open_memory_store

            return open_memory_store()
        case "postgresql":
            open_postgres = _postgres()
            return open_postgres(
                _with_password(settings.store.url, settings.store.password),
                schema=settings.store.schema,
                tenant=settings.store.tenant,
                ocpg=settings.store.ocpg == "auto",
                create=create,
                passages=passages,
            )
        case "git":
            from backstory.adapters.stores.gitbranch.store import open_git

            repository = Path(place) if place else folder
            index = settings.git_index(_repository_name(repository, create=create))
            ref, also = settings.store.ref, [name for name in settings.store.also.split() if name]
            return open_git(repository, ref=ref, also=also, index=index, create=create, passages=passages)
        case _:
            from backstory.adapters.stores.sqlite.store import open_sqlite

            path = settings.database_file
            assert path is not None  # ``store_url`` lets no other kind through
            return open_sqlite(path, create=create, passages=passages)


def _postgres() -> Callable[..., Backend]:
    try:
        from backstory.adapters.stores.postgres.store import open_postgres
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "psycopg":
            raise
        needs = "a Postgres store needs psycopg, not installed here: pip install 'backstory[postgres]'"
        raise ConfigError(needs, option="store.url") from error
    return open_postgres


def _repository_name(repository: Path, *, create: bool) -> str:
    """What its local file is called: by its token, or by its place where it has none."""
    from hashlib import blake2b

    from backstory.adapters.project_folder import shared_git_folder
    from backstory.adapters.stores.gitbranch.token import repository_token

    git_dir = shared_git_folder(repository)
    token = None if git_dir is None else repository_token(git_dir, create=create)
    place = str(git_dir or repository).encode("utf-8", "surrogateescape")
    return token or blake2b(place, digest_size=12).hexdigest()


def _with_password(address: str, password: str | None) -> str:
    if password is None:
        return address
    from psycopg import ProgrammingError
    from psycopg.conninfo import make_conninfo

    try:
        return make_conninfo(address, password=password)
    except ProgrammingError:
        return address  # opening says what is wrong with it


def _embedder(settings: Settings, *, one_shot: bool) -> tuple[Embedder | None, str]:
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
                model=_needed(chosen.model, "embedder.model"),
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


def _has_text_model(settings: Settings) -> bool:
    """Whether a language model is configured that this process can ask itself."""
    chosen = settings.models
    return chosen.provider == "openai" or (chosen.provider == "auto" and bool(chosen.base_url))


def _text_model(settings: Settings) -> TextModel | None:
    chosen = settings.models
    if not _has_text_model(settings):
        return None
    from backstory.adapters.text_models.openai import OpenAiTextModel

    return OpenAiTextModel(
        chosen.base_url or "https://api.openai.com/v1",
        model=_needed(chosen.model, "models.model"),
        api_key=chosen.api_key,
        timeout_s=chosen.timeout_ms / 1000,
        retries=chosen.max_retries,
        concurrency=chosen.concurrency,
    )


def _local_embedder(settings: Settings, *, one_shot: bool) -> tuple[Embedder | None, str]:
    from backstory.adapters.embedders import minilm

    missing = minilm.availability()
    if missing is None:
        return minilm.MiniLmEmbedder(settings.cache_dir, quick_start=one_shot), ""
    return None, missing


def _millionths(amount: str | None) -> int | None:
    from backstory.domain.ledger import read_money

    return None if amount is None else read_money(amount)


def _needed(value: str | None, option: str, *, by: str = "the chosen model") -> str:
    if not value:
        raise ConfigError(f"{option} is not set, and {by} needs it", option=option)
    return value
