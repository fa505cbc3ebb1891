"""The addresses over the in-memory store and a SQLite file: answers like the command line's, failures as problems."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from backstory.config import Settings
from backstory.config.serving import ServeSettings
from backstory.domain.history import Author
from backstory.domain.memory import Sensitivity
from backstory.domain.provenance import Origin
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.http.events import MISSED, NAMES
from backstory.entrypoints.http.operations import OPERATIONS
from backstory.entrypoints.http.problems import KINDS
from backstory.entrypoints.tools.catalogue import manifest
from backstory.errors import StoreUnavailable
from backstory.services.remember import Draft
from tests.served import Served
from tests.stores import STORES


@pytest.fixture(params=["memory", "sqlite"])
def served(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Served:
    return opened(request.param, tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """For requests that are refused before they reach a store."""
    with pytest.MonkeyPatch.context() as patch:
        yield opened("memory", tmp_path_factory.mktemp("empty"), patch)


def opened(store: str, folder: Path, patch: pytest.MonkeyPatch) -> Served:
    patch.setenv("BACKSTORY_HOME", str(folder / "home"))
    patch.setenv("BACKSTORY_STORE", store if store == "memory" else f"sqlite://{folder}/memory.db")
    patch.setenv("BACKSTORY_EMBEDDER_PROVIDER", "none")
    (folder / "project").mkdir()
    return Served(STORES[store](folder), folder / "project")


def test_health_needs_no_token_and_tells_nothing(empty: Served) -> None:
    response = empty.ask("GET", "/v1/health", headers={"Authorization": ""})
    assert (response.status_code, response.json()) == (200, {"status": "ok", "api": 1})


def test_everything_else_needs_the_token(empty: Served) -> None:
    for operation in OPERATIONS:
        if not operation.is_open:
            response = empty.ask(operation.method, operation.path, headers={"Authorization": "Bearer wrong"})
            assert response.status_code == 401, operation.path
    for path in ("/v1/events", "/mcp", "/nothing"):
        assert empty.ask("GET", path, headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_the_tools_are_the_ones_of_every_host(empty: Served) -> None:
    assert empty.get("/v1/tools")["tools"] == manifest(Settings())


def test_what_a_tool_stores_every_reading_address_tells(served: Served) -> None:
    stored = served.tool("memory_remember", content="The build uses make.", kind="workflow", tags=["build"])
    assert stored == {"text": "Stored as #1 (workflow, for this project).", "title": "#1", "failed": False}
    assert "The build uses make." in served.tool("memory_recall", query="build")["text"]
    (result,) = served.post("/v1/recall", query="build")["results"]
    assert (result["n"], result["content"], result["project"]) == (1, "The build uses make.", "project")
    listed = served.get("/v1/memories", tag="build")
    assert (listed["total"], listed["memories"][0]["origin"]) == (1, "agent")
    assert listed["memories"][0] == served.get("/v1/memories/1") == served.get(f"/v1/memories/{result['id']}")


def test_remember_answers_as_the_command_line_does(served: Served) -> None:
    body = {"content": "Invoices are numbered per country", "scope": "billing", "session": "ses_1", "agent": "tester"}
    first = served.post("/v1/memories", **body, message="msg_1")
    assert first["fresh"]
    assert first["superseded"] is None
    provenance = first["memory"]["provenance"]
    assert (provenance["session"], provenance["messages"], provenance["agent"]) == ("ses_1", ["msg_1"], "tester")
    assert not served.post("/v1/memories", **body)["fresh"]
    second = served.post("/v1/memories", content="Invoices are numbered per year", supersedes=1)
    assert second["superseded"]["n"] == 1
    assert [memory["n"] for memory in served.get("/v1/memories")["memories"]] == [2]
    assert served.get("/v1/memories", containing="COUNTRY")["total"] == 0


def test_a_wrong_argument_of_a_tool_is_told_to_the_model(served: Served) -> None:
    answer = served.tool("memory_remember", contents="misspelt")
    assert answer["failed"]
    assert "contents" in answer["text"]


def test_another_projects_memories_are_neither_found_nor_shown_nor_listed(served: Served, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    served.tool("memory_remember", content="The yarrow stands in the harbour")
    there: dict[str, Any] = {"project": str(other)}
    assert served.post("/v1/recall", query="yarrow harbour", **there)["results"] == []
    for place in (there, {}):
        assert served.ask("GET", "/v1/memories", params=place).json()["total"] == 0
        response = served.ask("GET", "/v1/memories/1", params=place)
        assert response.status_code == 403
        assert "yarrow" not in response.text
        assert served.ask("GET", "/v1/memories/yarrow", params=place).status_code == 404
    forgotten = served.post("/v1/tools/memory_forget", arguments={"id": 1}, **there)
    assert forgotten["failed"]
    assert "yarrow" not in forgotten["text"]


def test_a_local_only_memory_is_in_no_answer(served: Served) -> None:
    async def store() -> None:
        project = await served.app.project(served.folder)
        viewer = Viewer(project=project.id, audience=Audience.PERSON)
        draft = Draft(
            content="The bryony key lies under the mat", sensitivity=Sensitivity.LOCAL_ONLY, origin=Origin.USER
        )
        await served.app.remember.remember(draft, viewer=viewer, author=Author.USER)

    anyio.run(store)
    told = [
        served.post("/v1/recall", query="key under the mat", where="all"),
        served.get("/v1/memories"),
        served.tool("memory_recall", query="key under the mat"),
        served.tool("memory_inspect", view="recent"),
        served.ask("GET", "/v1/memories/1", params={"project": str(served.folder)}).json(),
    ]
    assert "bryony" not in json.dumps(told)


def test_without_a_folder_only_global_memories_are_there(served: Served) -> None:
    served.tool("memory_remember", content="Tabs are used everywhere", scope="global")
    served.tool("memory_remember", content="Spaces are used here")
    outside = served.ask("POST", "/v1/recall", json={"query": "what is used"}).json()
    assert [result["content"] for result in outside["results"]] == ["Tabs are used everywhere"]
    refused = served.ask("POST", "/v1/memories", json={"content": "Where does this belong to"})
    assert (refused.status_code, refused.json()["detail"]) == (422, "no project is known here")


@pytest.mark.parametrize(
    ("folder", "status"),
    [("relative/path", 422), ("", 422), ("/no/such/folder", 404), ("/etc/hostname", 404), ("/\x00", 422),
     ("/" + "x" * 3_000, 404), ("/" + "x" * 5_000, 422), ("~", 422), (5, 422), (["/tmp"], 422)],
)  # fmt: skip
def test_a_folder_must_be_absolute_and_there(empty: Served, folder: object, status: int) -> None:
    response = empty.ask("POST", "/v1/recall", json={"project": folder})
    assert response.status_code == status
    assert response.json()["field"] == "project"


@pytest.mark.parametrize(
    ("body", "field"),
    [({"querry": "x"}, "querry"), ({"query": 5}, "query"), ({"limit": 0}, "limit"), ({"limit": 101}, "limit"),
     ({"limit": "5"}, "limit"), ({"limit": 1.5}, "limit"), ({"tags": "x"}, "tags"), ({"where": "else"}, "where"),
     ({"since": "the day after never"}, "since"), ({"superseded": "yes"}, "superseded"),
     ({"session": "a b"}, "session"),
     ([], "body"), ("x", "body"), (None, "body")],
)  # fmt: skip
def test_a_wrong_field_is_named(empty: Served, body: object, field: str) -> None:
    response = empty.ask("POST", "/v1/recall", content=json.dumps(body), headers={"Content-Type": "application/json"})
    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["field"] == field


def test_the_limit_of_a_field_is_told(empty: Served) -> None:
    told = empty.ask("POST", "/v1/recall", json={"limit": 101}).json()
    assert (told["status"], told["value"], told["limit"]) == (422, "101", "le 100")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b'{"limit": NaN}', b'{"query": "\\ud800"}', b"[" * 100_000,
     b'{"limit": ' + b"9" * 5_000 + b"}",
     '{"query": "x"}'.encode("utf-16")],
)  # fmt: skip
def test_what_is_no_json_is_refused(empty: Served, content: bytes) -> None:
    response = empty.ask("POST", "/v1/recall", content=content, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert response.json()["type"].endswith("malformed")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "json"])
def test_only_json_is_read(empty: Served, kind: str) -> None:
    response = empty.ask("POST", "/v1/recall", content=b"{}", headers={"Content-Type": kind})
    assert response.status_code == 415


@pytest.mark.parametrize(
    "query",
    ["limit=x", "limit=0", "limit=1e1", "limit=+5", "limit=%205", "limit=1_0", "limit=1.0", "limit=", "offset=-1",
     "unknown=1", "limit=5&limit=6", "project=relative", "limit=1001"],
)  # fmt: skip
def test_a_wrong_parameter_is_named(empty: Served, query: str) -> None:
    response = empty.ask("GET", f"/v1/memories?{query}")
    assert response.status_code == 422
    assert response.json()["field"] == query.partition("=")[0]


def test_an_address_or_method_that_is_not_there_is_told(empty: Served) -> None:
    assert empty.ask("GET", "/v1/nothing").status_code == 404
    assert empty.ask("GET", "/v1/recall/").status_code == 404
    response = empty.ask("DELETE", "/v1/memories")
    assert response.status_code == 405
    assert {"GET", "POST"} <= {name.strip() for name in response.headers["allow"].split(",")}


def test_an_unknown_tool_and_one_that_is_not_offered_are_not_found(empty: Served) -> None:
    for name in ("memory_erase", "om_status", "x" * 200):
        response = empty.ask("POST", f"/v1/tools/{name}", json={})
        assert response.status_code == 404


def test_unknown_memories_are_not_found_and_several_that_fit_are_named(served: Served) -> None:
    parameters = {"project": str(served.folder)}
    for ref in ("1", "%23" + "9" * 60, "01JNB0T5S1M0V7S5W2N3J4K6QX", "%20", "zebra", "%F0%9F%8D%90", "%00"):
        assert served.ask("GET", f"/v1/memories/{ref}", params=parameters).status_code == 404, ref
    served.tool("memory_remember", content="The red gate is oiled in spring")
    served.tool("memory_remember", content="Nobody paints the blue gate before May")
    response = served.ask("GET", "/v1/memories/gate", params=parameters)
    assert response.status_code == 409
    assert len(response.json()["candidates"]) == 2


def test_a_store_that_fails_is_told_without_anything_of_its_inside(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    inside = "db.internal.example user=keeper /var/lib/memory.db"

    async def fails(*_: object, **__: object) -> None:
        raise StoreUnavailable(inside)

    monkeypatch.setattr(served.app.backend.memories, "select", fails)
    response = served.ask("GET", "/v1/memories")
    assert response.status_code == 503
    assert response.headers["retry-after"] == "1"
    assert not any(word in response.text for word in inside.split())
    assert inside in caplog.text


def test_a_bug_is_told_as_one_and_the_server_lives_on(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def breaks(*_: object, **__: object) -> None:
        raise RuntimeError("the inside")

    monkeypatch.setattr(served.app.backend.memories, "select", breaks)
    response = served.ask("GET", "/v1/memories")
    assert response.status_code == 500
    assert "inside" not in response.text
    assert "Traceback" not in response.text
    assert served.ask("GET", "/v1/health").status_code == 200


def test_a_hook_gets_the_block_and_what_it_asks_to_remember_is_stored(served: Served) -> None:
    call = {"session": "ses_1", "directory": str(served.folder), "prompt": "Remember that the gate is oiled in spring."}
    assert served.ask("POST", "/v1/hooks/prompt", json=call).status_code == 200
    assert served.get("/v1/memories")["total"] == 1
    call |= {"session": "ses_2", "prompt": "When is the gate oiled?"}
    response = served.ask("POST", "/v1/hooks/prompt?agent=generic", json=call)
    assert "spring" in response.json()["context"]
    claude = {"session_id": "ses_3", "cwd": str(served.folder), "prompt": "When is the gate oiled?"}
    response = served.ask("POST", "/v1/hooks/prompt?agent=claude-code", json=claude)
    assert "spring" in response.json()["hookSpecificOutput"]["additionalContext"]


@pytest.mark.parametrize(
    ("path", "change", "status"),
    [("/v1/hooks/nothing", {}, 422), ("/v1/hooks/prompt?agent=nobody", {}, 422), ("/v1/hooks/prompt?agnt=x", {}, 422),
     ("/v1/hooks/prompt", {"directory": None}, 422), ("/v1/hooks/prompt", {"directory": "x"}, 422),
     ("/v1/hooks/prompt", {"directory": "/no/such"}, 404), ("/v1/hooks/prompt", {"session": ""}, 422)],
)  # fmt: skip
def test_a_wrong_hook_is_told(empty: Served, path: str, change: dict[str, object], status: int) -> None:
    call = {"session": "ses_1", "directory": str(empty.folder), "prompt": "When is the gate oiled?"} | change
    assert empty.ask("POST", path, json=call).status_code == status


def test_the_description_and_the_page_need_no_token_and_the_page_loads_nothing(empty: Served) -> None:
    bare = {"Authorization": ""}
    document = empty.ask("GET", "/openapi.json", headers=bare).json()
    assert document["openapi"] == "3.1.0"
    assert {f"/v1/tools/{tool['name']}" for tool in manifest(Settings())} < set(document["paths"])
    page = empty.ask("GET", "/docs", headers=bare)
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for word in ("<script", "http://", "https://", "src=", "@import", "url("):
        assert word not in page.text
    assert all(path in page.text for path in document["paths"])


def test_a_body_larger_than_the_setting_is_refused(tmp_path: Path) -> None:
    settings = replace(Settings(), serve=ServeSettings(body_max_bytes=1_000))
    served = Served(STORES["memory"](tmp_path), tmp_path, settings)
    response = served.ask("POST", "/v1/recall", json={"query": "x" * 1_000})
    assert (response.status_code, response.json()["limit"]) == (413, "1,000 bytes")


def test_every_example_of_the_description_is_accepted(served: Served) -> None:
    for operation in OPERATIONS:
        if operation.example is None:
            continue
        example = {**operation.example, "project": str(served.folder)}
        path = operation.path.replace("{name}", "memory_recall").replace("{ref}", "1").replace("{id}", "x")
        send: Callable[..., Any] = partial(served.ask, operation.method, path)
        response = send(json=example) if operation.has_body else send(params=example)
        assert response.status_code == (404 if "{id}" in operation.path else 200), (operation.path, response.text)


def test_the_reference_names_every_address_event_and_status() -> None:
    page = (Path(__file__).parents[4] / "docs" / "reference" / "http-api.md").read_text(encoding="utf-8")
    for operation in OPERATIONS:
        assert f"`{operation.method} {operation.path}`" in page
    for name in (*NAMES.values(), MISSED):
        assert f"`{name}`" in page
    for status, _ in KINDS.values():
        assert f"| {status} |" in page
