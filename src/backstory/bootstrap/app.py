"""The services over one store, each made when it is first asked for."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from backstory.adapters.blocking import aside
from backstory.adapters.clock import SystemClock, UlidSource
from backstory.config import Settings
from backstory.domain.ids import SessionId
from backstory.domain.project import Project
from backstory.domain.scope import Audience, Viewer
from backstory.ports.backend import Backend
from backstory.ports.models import Embedder, SecondEmbedder
from backstory.ports.system import Clock, IdSource

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from datetime import timedelta

    from backstory.bootstrap.sessions import LongSessions
    from backstory.bootstrap.truth import Truth
    from backstory.domain.admission import TextLimits
    from backstory.domain.ledger import Caps
    from backstory.ports.system import Aside
    from backstory.ports.text_models import TextModel
    from backstory.services.context_block import ContextBlocks
    from backstory.services.conversation import Conversations
    from backstory.services.evidence import EvidenceRecall
    from backstory.services.exporting import Exporting
    from backstory.services.importing import Importing
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
    from backstory.services.retention import Retention
    from backstory.services.transfer import Transfer


class App:
    """The services over one store. Each is made, and its modules imported, when it is first asked for, so that a
    one-shot command pays only for what it uses."""

    def __init__(
        self, settings: Settings, backend: Backend, embedder: Embedder | None, *, no_embedder: str,
        clock: Clock | None = None, ids: IdSource | None = None, host_model: TextModel | None = None,
        second: SecondEmbedder | None = None,
    ) -> None:  # fmt: skip
        """``no_embedder`` says why ``embedder`` is None; it is shown wherever meaning had to be left out.
        ``host_model`` is the language model that the host of this process lends. ``second`` is a model beside
        ``embedder``."""
        self.settings = settings
        self.backend = backend
        self.embedder = embedder
        self.second = second
        self.no_embedder = no_embedder
        self.host_model = host_model
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

    def with_settings(self, settings: Settings, *, host_model: TextModel | None = None) -> App:
        """The same store and embedder under other settings, for another folder of the same process."""
        return App(
            settings, self.backend, self.embedder, no_embedder=self.no_embedder, clock=self.clock, ids=self.ids,
            host_model=host_model, second=self.second,
        )  # fmt: skip

    def waiting(self, limit: timedelta) -> AbstractContextManager[None]:
        """Within, all calls together wait for other writers, and for a server, until ``limit`` from now, not for each
        anew."""
        from backstory.adapters.deadline import waiting

        return waiting(limit)

    async def close(self) -> None:
        """Release the store and the model. Calling twice is fine."""
        if self.embedder is not None:
            await self.embedder.close()
        if self.second is not None:
            await self.second.close()
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

        return Remember(
            self.backend.memories,
            self.reference,
            clock=self.clock,
            ids=self.ids,
            limits=self.limits,
            text=self.backend.text,
        )

    @cached_property
    def text_model(self) -> TextModel | None:
        """The configured language model, with its calls booked; None where there is none in this process."""
        from backstory.bootstrap.models import text_model

        model = text_model(self.settings, host=self.host_model)
        if model is None:
            return None
        from backstory.bootstrap.spending import metered

        return metered(model, self.backend.ledger, self.settings, caps=self.caps, clock=self.clock, ids=self.ids)

    @cached_property
    def caps(self) -> Caps:
        """The most that may be spent on models. Raises ConfigError for a cap that could never be reached."""
        from backstory.bootstrap.spending import caps

        return caps(self.settings)

    @cached_property
    def spending(self) -> Spending:
        from backstory.bootstrap.spending import spending

        return spending(self)

    @cached_property
    def reranker(self) -> Reranker | None:
        if self.settings.recall.rerank == "off" or self.text_model is None:
            return None
        from backstory.services.reranking import Reranker

        return Reranker(self.text_model, timeout_s=self.settings.recall.rerank_timeout_ms / 1000)

    @property
    def _aside(self) -> Aside | None:
        """Where searches run. The memory store lives in the event loop's own thread: read in another, its dicts would
        change underneath."""
        return None if self.settings.store.url == "memory" else aside

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
            aside=self._aside,
            reranker=self.reranker,
            second=self.second,
        )

    @cached_property
    def evidence(self) -> EvidenceRecall:
        from backstory.adapters.local_zone import LocalZone
        from backstory.services.corrections import Corrections
        from backstory.services.evidence import EvidenceRecall

        return EvidenceRecall(
            self.backend.evidence,
            self.embedder,
            clock=self.clock,
            zone=LocalZone(),
            no_embedder=self.no_embedder,
            aside=self._aside,
            corrections=Corrections(self.backend.memories, self.backend.text, clock=self.clock),
            archive=self.backend.conversations,
        )

    @cached_property
    def blocks(self) -> ContextBlocks:
        from backstory.bootstrap.context import context_blocks

        return context_blocks(self)

    @cached_property
    def conversations(self) -> Conversations:
        from backstory.bootstrap.archive import conversations

        return conversations(self)

    @cached_property
    def retention(self) -> Retention:
        from backstory.bootstrap.archive import retention

        return retention(self)

    @cached_property
    def long_sessions(self) -> LongSessions | None:
        """What keeps long sessions short; None where no strategy is chosen."""
        from backstory.bootstrap.sessions import long_sessions

        return long_sessions(self)

    @cached_property
    def truth(self) -> Truth:
        from backstory.bootstrap.truth import Truth

        return Truth(self)

    @cached_property
    def prompts(self) -> Prompts:
        from backstory.bootstrap.on_demand import CaptureOnDemand
        from backstory.services.prompt import Prompts

        return Prompts(self.blocks, CaptureOnDemand(self))

    @cached_property
    def inspection(self) -> Inspection:
        from backstory.services.inspection import Inspection

        return Inspection(self.backend, self.reference, clock=self.clock)

    @cached_property
    def importing(self) -> Importing:
        from backstory.bootstrap.transfers import importing

        return importing(self)

    @cached_property
    def exporting(self) -> Exporting:
        from backstory.services.exporting import Exporting

        return Exporting(self.backend, clock=self.clock)

    @cached_property
    def transfer(self) -> Transfer:
        from backstory.services.transfer import Transfer

        return Transfer(self.backend, self.importing, clock=self.clock)

    @cached_property
    def maintenance(self) -> Maintenance:
        from backstory.services.maintenance import Maintenance

        embed, provider = self.settings.archive.embed, self.settings.embedder.provider
        return Maintenance(
            self.backend,
            self.embedder,
            no_embedder=self.no_embedder,
            embed_evidence=embed == "always" or (embed == "auto" and provider != "openai"),
            second=self.second,
        )
