"""Backstory as a library: one handle over the same services as every other entrypoint, async or not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from backstory.adapters.project_folder import project_root
from backstory.bootstrap import App, open_app
from backstory.domain.history import Author, Change
from backstory.domain.ids import ChangeId, SessionId
from backstory.domain.lifecycle import Revision
from backstory.domain.memory import Kind, Memory, Sensitivity, Tier, Visibility
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience, Viewer
from backstory.services.query import Query, Recalled
from backstory.services.remember import Draft

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

# Without a background process, memories get their vectors when they are first searched, at most so many at a time.
EMBED_AT_MOST = 64

P = ParamSpec("P")
T = TypeVar("T")


class AgentMemory:
    """The memory of one project, as an agent or a program uses it. Made by ``open_memory``.

    Everything raises BackstoryError subclasses. A ``ref`` is ``"#12"``, an id, or a piece of text that fits one memory.
    """

    def __init__(self, app: App, viewer: Viewer, *, origin: Origin) -> None:
        self._app = app
        self._viewer = viewer
        self._origin = origin
        self._author = Author.USER if origin is Origin.USER else Author.AGENT

    async def remember(
        self,
        content: str,
        *,
        kind: Kind | None = None,
        visibility: Visibility | None = None,
        area: str | None = None,
        tags: Sequence[str] = (),
        issue: str | None = None,
        tier: Tier | None = None,
        expires_in: timedelta | None = None,
        pinned: bool = False,
        sensitivity: Sensitivity = Sensitivity.NORMAL,
        supersedes: str | None = None,
    ) -> Memory:
        """Store one statement; durable when this returns. The same text again confirms the memory it already is.

        Without ``visibility`` it belongs to the project, and where there is none it is global.
        """
        no_project = Visibility.GLOBAL if self._viewer.project is None else None
        draft = Draft(
            content=content,
            kind=kind,
            visibility=visibility or no_project,
            area=area,
            tags=tags,
            issue=issue,
            tier=tier,
            expires_in=expires_in,
            pinned=pinned,
            sensitivity=sensitivity,
            supersedes=supersedes,
            origin=self._origin,
        )
        done = await self._app.remember.remember(draft, viewer=self._viewer, author=self._author)
        return done.memory

    async def recall(
        self,
        query: str,
        *,
        limit: int = 5,
        tags: Sequence[str] = (),
        kinds: Sequence[Kind] = (),
        area: str | None = None,
        with_superseded: bool = False,
    ) -> Recalled:
        """Search: ``.results``, best first, each with its reasons, or ``.silent_because``. An empty query lists the
        newest. ``limit`` is 1 to 100."""
        await self._embed_some()
        return await self._app.recall.recall_and_count(
            Query(
                text=query,
                viewer=self._viewer,
                limit=limit,
                tags=tuple(tags),
                kinds=frozenset(kinds),
                area=area,
                with_superseded=with_superseded,
            )
        )

    async def context_block(self, prompt: str) -> str | None:
        """The text to put beside a prompt, ready to send; None when nothing that is known matters for it."""
        await self._embed_some()
        return (await self._app.blocks.for_prompt(prompt, self._viewer)).text

    async def update(
        self,
        ref: str,
        *,
        content: str | None = None,
        kind: Kind | None = None,
        visibility: Visibility | None = None,
        area: str | None = None,
        tags: Sequence[str] | None = None,
        issue: str | None = None,
        reason: str | None = None,
    ) -> Memory:
        """Change a memory in place; what is not named stays, the former text stays in the history."""
        revision = Revision(
            content=content,
            kind=kind,
            visibility=visibility,
            area=area,
            tags=None if tags is None else tuple(tags),
            issue=issue,
        )
        change = await self._app.remember.update(ref, revision, viewer=self._viewer, author=self._author, reason=reason)
        if change is None:  # it was so already
            return await self._app.reference.find(ref, self._viewer)
        return change.edits[0].after

    async def forget(self, *refs: str, reason: str | None = None) -> Change:
        """Hide memories; ``undo`` brings them back. Raises InputError when none is named."""
        return await self._app.remember.forget(refs, viewer=self._viewer, author=self._author, reason=reason)

    async def history(self, ref: str | None = None, *, limit: int = 20) -> list[Change]:
        """What happened, newest first: to one memory, or to all in sight."""
        return await self._app.inspection.history(self._viewer, ref=ref, limit=limit)

    async def undo(self, change: ChangeId | None = None) -> Change:
        """Take a change back, by default the newest."""
        return await self._app.remember.undo(change, viewer=self._viewer, author=self._author)

    async def _embed_some(self) -> None:
        if self._app.embedder is not None:
            await self._app.maintenance.embed_missing(at_most=EMBED_AT_MOST)


class SyncAgentMemory:
    """``AgentMemory`` for code without an event loop: the same methods, each run to its end in a thread of its own.

    Made by ``with open_memory(...)``. Safe to use from several threads.
    """

    def __init__(self, memory: AgentMemory, portal: BlockingPortal) -> None:
        self._portal = portal
        self.remember = self._blocking(memory.remember)
        self.recall = self._blocking(memory.recall)
        self.context_block = self._blocking(memory.context_block)
        self.update = self._blocking(memory.update)
        self.forget = self._blocking(memory.forget)
        self.history = self._blocking(memory.history)
        self.undo = self._blocking(memory.undo)

    def _blocking(self, method: Callable[P, Awaitable[T]]) -> Callable[P, T]:
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return self._portal.call(partial(method, *args, **kwargs))

        call.__doc__ = method.__doc__
        return call


class OpenMemory:
    """A memory about to be opened: ``async with`` gives an AgentMemory, ``with`` a SyncAgentMemory."""

    def __init__(
        self, *, store: str | None, project: Path | None, session: str | None, origin: Origin,
        settings: Mapping[str, object],
    ) -> None:  # fmt: skip
        self._store = store
        self._project = project
        self._session = session
        self._origin = origin
        self._settings = dict(settings)
        self._app: App | None = None
        self._portal: AbstractContextManager[BlockingPortal] | None = None
        self._entered: BlockingPortal | None = None

    async def __aenter__(self) -> AgentMemory:
        import os

        from backstory.config import load

        project = None if self._project is None else Path(self._project)
        flags = {**self._settings, **({} if self._store is None else {"store.url": self._store})}
        root = None if project is None else project_root(project)
        self._app = open_app(load(env=os.environ, project_root=root, flags=flags).settings, folder=root)
        session = None if self._session is None else SessionId(self._session)
        try:
            viewer = await self._app.viewer(project, audience=Audience.MODEL, session=session)
        except BaseException:
            await self._app.close()
            raise
        return AgentMemory(self._app, viewer, origin=self._origin)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._app is not None:
            await self._app.close()

    def __enter__(self) -> SyncAgentMemory:
        from anyio.from_thread import start_blocking_portal

        self._portal = start_blocking_portal()
        self._entered = self._portal.__enter__()
        try:
            return SyncAgentMemory(self._entered.call(self.__aenter__), self._entered)
        except BaseException as error:
            self._portal.__exit__(type(error), error, error.__traceback__)
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._portal is not None
        assert self._entered is not None
        self._entered.call(self.__aexit__, kind, error, at)
        self._portal.__exit__(None, None, None)


def open_memory(
    *,
    store: str | None = None,
    project: str | Path | None = None,
    session: str | None = None,
    origin: Origin = Origin.AGENT,
    settings: Mapping[str, object] | None = None,
) -> OpenMemory:
    """Open a memory, with ``async with`` or with ``with``.

    ``store`` is ``"sqlite:///ABSOLUTE/PATH"`` or ``"memory"``; by default the user's own store. ``project`` is any
    folder of the project; None stands outside every project and sees what holds everywhere. ``origin`` says whose
    words are stored: an agent's by default. ``settings`` override the user's, by dotted name (docs/reference/settings).
    Raises ConfigError for a bad setting; the store's errors come at entering or at the first use.
    """
    folder = None if project is None else Path(project)
    return OpenMemory(store=store, project=folder, session=session, origin=origin, settings=settings or {})
