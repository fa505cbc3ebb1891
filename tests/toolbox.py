"""An agent with one set of tools, over the in-memory store."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import anyio

from backstory.adapters.stores.memory import open_memory_store
from backstory.bootstrap import App
from backstory.config import Settings
from backstory.config.serving import Toolset
from backstory.domain.history import Author
from backstory.domain.ids import ProjectId, SessionId
from backstory.domain.memory import Memory
from backstory.domain.project import ProjectSighting
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.tools import Answer, Call, find_tool, run_tool
from backstory.services.remember import Draft
from backstory.testing.fakes import START, FakeClock, SequentialIds

HERE, ELSEWHERE = ProjectId("P-harbour"), ProjectId("P-mill")


class Toolbox:
    """Calls tools as the agent of a project named ``harbour``; another is named ``mill``."""

    def __init__(self, toolset: Toolset, *, start: datetime = START) -> None:
        self.clock = FakeClock(start)
        settings = Settings()
        settings = replace(settings, tools=replace(settings.tools, toolset=toolset))
        self.app = App(
            settings, open_memory_store(), None, no_embedder="not here", clock=self.clock, ids=SequentialIds()
        )
        anyio.run(self._name_projects)

    async def _name_projects(self) -> None:
        for project, name in ((HERE, "harbour"), (ELSEWHERE, "mill")):
            sighting = ProjectSighting(name=name, root=f"/{name}", aliases=(f"path:/{name}",))
            await self.app.backend.projects.identify(sighting, now=self.clock.now(), new_id=project)

    def answer(self, name: str, *, project: ProjectId = HERE, **arguments: Any) -> Answer:  # Any: a model's arguments
        """What a tool answers."""
        tool = find_tool(name, self.app.settings)
        assert tool is not None, name
        viewer = Viewer(project=project, session=SessionId("ses_1"), audience=Audience.MODEL)
        return anyio.run(run_tool, tool, arguments, Call(app=self.app, viewer=viewer, tool=name))

    def say(self, name: str, *, project: ProjectId = HERE, **arguments: Any) -> str:  # Any: as above
        """The text of its answer."""
        return self.answer(name, project=project, **arguments).text

    def state(self, text: str, *, project: ProjectId = HERE, **fields: Any) -> Memory:  # Any: fields of a draft
        """The user states something at the command line."""
        person = Viewer(project=project, audience=Audience.PERSON)

        async def store() -> Memory:
            draft = Draft(content=text, origin=Origin.USER, **fields)
            return (await self.app.remember.remember(draft, viewer=person, author=Author.USER)).memory

        return anyio.run(store)

    def memory(self, n: int) -> Memory:
        """The memory with a number."""
        found = anyio.run(self.app.backend.memories.by_number, n)
        assert found is not None
        return found
