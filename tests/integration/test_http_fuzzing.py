"""The HTTP application against its own description: requests that fit it and requests that do not, all checks.

The stream of events does not end; it has tests of its own. ``docs/reference/http-api.md`` tells how to run longer, over
a real server.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.config import SchemathesisConfig

from backstory.config import Settings
from backstory.config.serving import ServeSettings
from backstory.entrypoints.http.guard import Receive, Scope, Send
from backstory.entrypoints.http.openapi import describe
from backstory.entrypoints.tools.catalogue import offered
from tests import http_fuzzing
from tests.served import TOKEN, Served
from tests.stores import STORES

CONFIG = Path(http_fuzzing.__file__).with_suffix(".toml")
EXAMPLES = 5
"""For each address, beside the 20 to 100 that try the borders of its schema."""
MADE_UP_HOST = "testserver"

_served: list[Served] = []


@pytest.fixture(scope="module", autouse=True)
def _running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    base = tmp_path_factory.mktemp("fuzzed")
    folder = base / "project"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BACKSTORY_HOME", str(base / "home"))
        patch.setenv("BACKSTORY_STORE", "memory")
        patch.setenv(http_fuzzing.FOLDER, str(folder))
        allowing = replace(Settings(), serve=ServeSettings(allowed_hosts=MADE_UP_HOST))
        _served.append(Served(STORES["memory"](base), folder, allowing))
        for text in ("The gate is oiled in spring", "Invoices are numbered per country", "Builds use make"):
            _served[0].tool("memory_remember", content=text)
        yield
        _served.clear()


async def _application(scope: Scope, receive: Receive, send: Send) -> None:
    """The one that runs: the description is read before there is any. It runs through all tests."""
    if scope["type"] == "lifespan":
        for moment in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{moment}.complete"})
    else:
        await _served[0].asgi(scope, receive, send)


schema: Any = schemathesis.openapi.from_dict(  # Any: schemathesis does not tell what it adds
    describe(offered(Settings())), config=SchemathesisConfig.from_path(CONFIG)
)
schema.app = _application


@schema.exclude(path="/v1/events").parametrize()  # type: ignore[untyped-decorator]
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_the_server_does_as_its_description_says(case: Any) -> None:
    case.call_and_validate(headers={"Authorization": f"Bearer {TOKEN}"})
