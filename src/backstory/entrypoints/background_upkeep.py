"""What a process that stays does beside its answers: load the model, give memories their vectors, let old ones go."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio
import anyio.to_thread

from backstory.bootstrap import App
from backstory.domain.admission import admit_evidence
from backstory.domain.capture import capture
from backstory.domain.text import analyse_query
from backstory.errors import BackstoryError, ModelError

log = logging.getLogger(__name__)

EMBED_AFTER_S = 0.2
EXPIRY_EVERY_S = 3600.0


class BackgroundUpkeep:
    """Both jobs run until they are cancelled, survive every failure, and let requests go first (``give_way``)."""

    def __init__(self, app: App, *, give_way: Callable[[], Awaitable[None]]) -> None:
        self._app = app
        self._give_way = give_way
        self._wanted = anyio.Event()

    def wake(self) -> None:
        """Memories may have come that need vectors."""
        self._wanted.set()

    async def keep_embedding(self) -> None:
        """Load the model before the first prompt needs it, then give new memories their vectors as they come."""
        await anyio.to_thread.run_sync(warm_rules)
        await self._refresh_evidence()
        if self._app.embedder is None:
            log.info("event=lexical_only reason=%s", self._app.no_embedder)
            return
        await self._warm_up()
        while True:
            self._wanted = anyio.Event()
            try:
                report = await self._app.maintenance.embed_missing(give_way=self._give_way)
            except BackstoryError as error:
                log.warning("event=embedding_skipped reason=%s", error)
            except Exception:
                log.exception("event=embedding_broke")  # without vectors, recall still has words
            else:
                if report.stopped_because:
                    log.warning("event=embedding_stopped reason=%s", report.stopped_because)
            await self._wanted.wait()
            await anyio.sleep(EMBED_AFTER_S)  # several memories of one turn are embedded together

    async def keep_expiring(self) -> None:
        """Remove what may not be kept any longer."""
        while True:
            try:
                await self._app.retention.keep_up(give_way=self._give_way)
            except BackstoryError as error:
                log.warning("event=expiry_skipped reason=%s", error)
            except Exception:
                log.exception("event=expiry_broke")
            await anyio.sleep(EXPIRY_EVERY_S)

    async def _refresh_evidence(self) -> None:
        try:
            await self._app.maintenance.refresh_evidence()
        except BackstoryError as error:
            log.warning("event=evidence_not_refreshed reason=%s", error)

    async def _warm_up(self) -> None:
        assert self._app.embedder is not None
        try:
            await self._app.embedder.embed(["warm up"])
            if self._app.second is not None:
                await self._app.second.query("warm up")
        except ModelError as error:
            log.warning("event=embedder_unavailable reason=%s", error)


def warm_rules() -> None:
    """Compile the patterns that a prompt passes, 100 ms in all, before the first prompt has to wait for them."""
    admit_evidence("password=warm-up")
    capture("Remember that this is only a warm-up.")
    analyse_query("warm up")
