"""The HTTP application asked in the test's own process, by an agent in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import httpx

from backstory.bootstrap import App
from backstory.config import Settings
from backstory.entrypoints.http.application import Server, application
from backstory.ports.backend import Backend

TOKEN = "T" * 43


class Served:
    """An application over one store, and a client that knows the token and works in ``folder``."""

    def __init__(
        self, backend: Backend, folder: Path, settings: Settings | None = None, *, app: App | None = None
    ) -> None:
        """``app`` in the place of one over ``backend`` alone."""
        self.app = app or App(settings or Settings(), backend, None, no_embedder="not in this test")
        self.folder = folder
        self.server = Server(self.app)
        self.asgi = application(self.app, token=TOKEN, server=self.server)

    def ask(
        self,
        method: str,
        path: str,
        *,
        headers: dict[str, str] | None = None,
        **given: Any,  # Any: as httpx takes them
    ) -> httpx.Response:
        """One request, with the token unless ``headers`` say otherwise."""
        sent = {"Authorization": f"Bearer {TOKEN}"} | (headers or {})

        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(self.asgi, raise_app_exceptions=True)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.request(method, path, headers=sent, **given)

        return anyio.run(asked)

    def post(self, path: str, **body: Any) -> Any:  # Any: JSON
        """What a POST from the folder answers, which must be 200."""
        response = self.ask("POST", path, json={"project": str(self.folder)} | body)
        assert response.status_code == 200, response.text
        return response.json()

    def get(self, path: str, **parameters: str | int) -> Any:  # Any: JSON
        """What a GET from the folder answers, which must be 200."""
        response = self.ask("GET", path, params={"project": str(self.folder)} | parameters)
        assert response.status_code == 200, response.text
        return response.json()

    def tool(self, name: str, **arguments: object) -> Any:  # Any: JSON
        """What a tool answers."""
        return self.post(f"/v1/tools/{name}", arguments=arguments)
