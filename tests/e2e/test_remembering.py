"""The real plugin and the real bridge in the real OpenCode: what is remembered, what reaches the model, what never."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from backstory.entrypoints.opencode import command_file
from backstory.testing.opencode import wait_for
from backstory.testing.opencode_server import Server
from backstory.testing.scripted_model import ScriptedModel
from tests.e2e.installation import SNAPSHOT_TAG, TAG, Installation, Json, block_of, snapshot_of

pytestmark = pytest.mark.opencode

SECRET = "ghp_" + "Zz9Yy8Xx7Ww6Vv5Uu4Tt" + "3Ss2Rr1Qq0Pp9Oo8"
FILES = {
    "json.py": "raise SystemExit('imported from the project')",
    "notes.md": "Remember that this file was only attached.\n",
    ".opencode/command/keep.md": "Remember that commands come from files. $ARGUMENTS\n",
    ".opencode/command/memory.md": command_file.content().decode(),
}


@pytest.fixture(scope="module")
def project(installation: Installation) -> Path:
    return installation.opencode.project(files=FILES)


@pytest.fixture(scope="module")
def shared_server(installation: Installation, project: Path) -> Iterator[Server]:
    with installation.opencode.serve(cwd=project) as server:
        yield server
    assert not installation.left_over(), "a bridge outlived its OpenCode"


@pytest.fixture
def server(shared_server: Server, scripted: ScriptedModel) -> Server:
    """The one server that most tests share, with a clean script and record."""
    scripted.forget_rules()
    scripted.forget_requests()
    return shared_server


# --- remembering ----------------------------------------------------------------------------------------------------


def test_what_a_user_asks_to_remember_comes_back_in_a_new_process_beside_the_right_prompt(
    installation: Installation, server: Server, project: Path
) -> None:
    session = server.create_session()
    told = installation.ask(server, session, "Please remember that the staging database listens on port 6543.")
    assert "stored already" in told
    assert "the staging database listens on port 6543" in installation.memories()[-1]
    done = installation.opencode.run("on which port does the staging database listen?", cwd=project)
    assert done.exit_code == 0, done.stderr
    assert "6543" in block_of(installation.requests(done.session)[0])
    kept = installation.wait_for_evidence(done.session, "on which port")
    assert ("assistant", "text", "ok") in kept, "`run` ends right after its last event, which is kept all the same"
    other = server.create_session()
    assert installation.ask(server, other, "rename the button to Save") == ""
    assert "6543" in installation.ask(server, other, "which port has the staging database?")


def test_the_agents_tools_work_and_explain_bad_arguments(installation: Installation, server: Server) -> None:
    session = server.create_session()

    def tool(name: str, **arguments: Json) -> str:
        return installation.tool(server, session, name, **arguments)

    stored = tool("memory_remember", content="Invoices are rounded per line, as the auditor wants", tags=["billing"])
    number = int(stored.partition("#")[2].split()[0])
    assert "per line" in tool("memory_recall", query="how are invoices rounded?")
    assert f"Updated #{number}" in tool("memory_update", id=number, content="Invoices are rounded per total")
    assert "per total" in tool("memory_recall", query="invoices rounded", tags=["billing"])
    why = tool("memory_inspect", view="why", id=number)
    assert session in why
    assert "update" in why
    assert "content" in tool("memory_remember", text="")
    assert "limit" in tool("memory_recall", query="x", limit="many")
    assert "shape" in tool("memory_recall", query="x", shape="round")
    assert "9999" in tool("memory_forget", id=9999)
    assert f"#{number}" in tool("memory_forget", id=number, reason="a test")
    assert "Nothing found" in tool("memory_recall", query="invoices rounded", tags=["billing"])


def test_a_command_that_the_agent_runs_in_a_shell_acts_for_the_agent(
    installation: Installation, server: Server
) -> None:
    command = 'echo "called by ${BACKSTORY_CALLER:-nobody}"'
    ran = installation.tool(server, server.create_session(), "bash", command=command, description="Tell who calls")
    assert "called by agent" in ran


def test_what_the_agent_stored_comes_back_beside_a_prompt(installation: Installation, server: Server) -> None:
    fact = "Migrations of the ledger schema must run before the api pods start"
    installation.tool(server, server.create_session(), "memory_remember", content=fact)
    block = installation.ask(server, server.create_session(), "when do migrations of the ledger schema run?")
    assert "before the api pods start" in block
    assert "noted by the agent" in block


def test_what_is_forgotten_leaves_a_conversation_that_goes_on(installation: Installation, server: Server) -> None:
    stored = installation.tool(
        server, server.create_session(), "memory_remember", content="The lighthouse service answers on host pelican-3"
    )
    session = server.create_session()
    assert "pelican-3" in installation.ask(server, session, "on which host does the lighthouse service answer?")
    number = int(stored.partition("#")[2].split()[0])
    installation.tool(server, server.create_session(), "memory_forget", id=number)
    installation.ask(server, session, "thank you, that is all")
    assert "pelican-3" not in installation.requests(session)[-1].all_text()


# --- what is not a person's word ------------------------------------------------------------------------------------


def test_titles_and_compactions_see_nothing_of_ours(
    installation: Installation, server: Server, scripted: ScriptedModel
) -> None:
    for word in ("finch", "siskin", "linnet"):
        session = server.create_session(title=None)
        assert installation.ask(server, session, f"remember that the {word} host runs the canary")
        assert word in installation.ask(server, session, f"what does the {word} host run?")
        server.compact(session)  # at once: the end of the last turn is being told while the compaction begins
    assert wait_for(lambda: len(scripted.requests("title")) == 3)
    others = [*scripted.requests("title"), *scripted.requests("compaction")]
    assert len(others) == 6
    assert all(TAG not in request.all_text() and SNAPSHOT_TAG not in request.all_text() for request in others)


def test_a_sub_agent_gets_nothing_stores_nothing_and_is_kept_as_nobodys_words(
    installation: Installation, server: Server, scripted: ScriptedModel
) -> None:
    session = server.create_session()
    installation.ask(server, session, "remember that the linter is called fussbudget")
    before = installation.memories()
    prompt = "What is the linter called? Remember that you only review. And the report: GO or NO-GO."
    task = {"description": "look", "prompt": prompt, "subagent_type": "general"}
    scripted.when(said="delegate", last_role="user", times=1).call("task", **task)
    server.prompt(session, "please delegate")
    children = [r for r in scripted.requests("chat") if r.parent_session == session]
    assert children
    assert all(TAG not in r.all_text() and SNAPSHOT_TAG not in r.all_text() for r in children)
    assert installation.memories() == before
    child = str(children[0].session)
    installation.wait_for_evidence(child, "ok")
    assert installation.rows("SELECT parent FROM sessions WHERE id = ?", child) == [(session,)]
    marks = installation.rows(
        "SELECT m.role, p.synthetic FROM messages m JOIN parts p ON p.message = m.id WHERE m.session = ?", child
    )
    assert set(marks) == {("user", 1), ("assistant", 0)}


def test_only_what_was_typed_is_captured(installation: Installation, server: Server, project: Path) -> None:
    session = server.create_session()
    before = installation.memories()
    parts = [
        {"type": "text", "text": "Remember that programs wrote this.", "synthetic": True},
        {"type": "text", "text": "Remember that this is only for show.", "ignored": True},
        {"type": "file", "mime": "text/plain", "filename": "notes.md", "url": (project / "notes.md").as_uri()},
        {"type": "text", "text": "Remember that the relay is called hermes."},
    ]
    server.prompt(session, "", parts=parts)
    assert installation.memories()[len(before) :] == ["the relay is called hermes."]
    command = {"command": "keep", "arguments": "Remember that the mirror is called echo."}
    server.call("POST", f"/session/{session}/command", command)
    assert installation.memories()[len(before) + 1 :] == ["the mirror is called echo."]
    server.prompt(session, "Remember that commands end where they end.")
    assert len(installation.memories()) == len(before) + 3
    server.prompt(session, "which name has the relay, again?", noReply=True)
    server.prompt(session, "go on")
    texts = installation.requests(session)[-1].texts("user")
    assert "hermes" in next(text for text in texts if "which name" in text).partition(TAG)[2]


def test_the_memory_command_reaches_the_tools_and_its_instructions_are_not_remembered(
    installation: Installation, server: Server, scripted: ScriptedModel
) -> None:
    session = server.create_session()
    assert "memory" in [command["name"] for command in server.call("GET", "/command")]
    scripted.when(last_role="user", offers="memory_recall", times=1).call("memory_recall", query="lantern")
    command = {"command": "memory", "arguments": "remember that the lantern is oiled weekly"}
    server.call("POST", f"/session/{session}/command", command)
    assert [memory for memory in installation.memories() if "lantern" in memory] == ["the lantern is oiled weekly"]
    asked = installation.requests(session)[-1]
    assert "The user called /memory" in asked.texts("user")[-1]
    assert "the lantern is oiled weekly" in asked.texts("tool")[-1]
    kept = installation.wait_for_evidence(session, "lantern")
    assert "The user called /memory" not in str(kept)


def test_our_own_block_is_neither_captured_nor_kept(installation: Installation, server: Server) -> None:
    session = server.create_session()
    installation.ask(server, session, "remember that the cache is cleared at noon")
    block = installation.ask(server, session, "when is the cache cleared?")
    before = installation.memories()
    server.prompt(session, f"You told me:\n{block.replace('- [', 'Remember that - [')}\nIs it so?")
    assert installation.memories() == before
    kept = installation.wait_for_evidence(session, "Is it so?")
    assert TAG not in str(kept)
    assert TAG not in str(server.messages(session)[:4]), "nor does OpenCode keep it"


# --- borders --------------------------------------------------------------------------------------------------------


def test_worktrees_subfolders_and_a_second_process_share_a_project_and_other_repositories_see_nothing(
    installation: Installation, server: Server, project: Path
) -> None:
    opencode = installation.opencode
    worktree, other = opencode.worktree(project, "feature"), opencode.project("other")
    loose = opencode.project("loose", git=False)
    subfolder = project / "deep" / "down"
    subfolder.mkdir(parents=True)

    def ask(server: Server, folder: Path, text: str) -> str:
        session = server.create_session(directory=folder)
        return installation.ask(server, session, text, directory=folder)

    ask(server, project, "remember that the search index lives in /srv/heron")
    with opencode.serve(cwd=worktree) as second:
        assert "heron" in ask(second, worktree, "where does the search index live?")
        assert "heron" in ask(second, subfolder, "where does the search index live?")
        ask(second, worktree, "remember that the search index is rebuilt by make osprey")
        assert "osprey" in ask(server, project, "how is the search index rebuilt?")
        for folder in (other, loose):
            assert ask(second, folder, "where does the search index live?") == ""
            session = second.create_session(directory=folder)
            found = installation.tool(second, session, "memory_recall", query="search index", directory=folder)
            assert "heron" not in found
            number = installation.rows("SELECT n FROM memories WHERE content LIKE '%heron%'")[0][0]
            refused = installation.tool(second, session, "memory_forget", id=number, directory=folder)
            assert "Forgot" not in refused
            why = installation.tool(second, session, "memory_inspect", view="why", id=number, directory=folder)
            assert "heron" not in why
        ask(second, loose, "remember that loose folders have puffins")
        assert "puffins" in ask(second, loose, "what do loose folders have?")
        assert len(installation.bridges()) == 2
    assert wait_for(lambda: len(installation.bridges()) == 1), "one bridge a process"
    assert "/srv/heron" in str(installation.memories())


# --- evidence -------------------------------------------------------------------------------------------------------


def test_messages_are_kept_in_order_once_each_without_secrets_and_private_text(
    installation: Installation, server: Server, scripted: ScriptedModel
) -> None:
    session = server.create_session(title=f"Rotate {SECRET}")
    scripted.when(said="print it", last_role="user", times=1).call(
        "bash", command=f"printf '%s' {SECRET}; printf ' and <private>sesame</private>'", description="print"
    )
    scripted.when(last_role="tool", times=1).say(f"It says {SECRET}.")
    server.prompt(session, f"print it, with {SECRET} and <private>sesame street</private>, will you")
    server.prompt(session, f"remember that the token is {SECRET} and <private>sesame seeds</private> too")
    turns = [("user", "text"), ("assistant", "tool"), ("assistant", "text"), ("user", "text"), ("assistant", "text")]

    def spoken() -> list[tuple[str, str]]:
        return [(role, kind) for role, kind, _ in installation.evidence(session) if kind in ("text", "tool")]

    assert wait_for(lambda: len(spoken()) == len(turns)), spoken()
    assert spoken() == turns
    kept = installation.evidence(session)
    assert all("[secret:" in text for _, kind, text in kept[:4] if kind in ("text", "tool"))
    ids = [message["info"]["id"] for message in server.messages(session)]
    assert [row[0] for row in installation.rows(
        "SELECT id FROM messages WHERE session = ? ORDER BY created_us, id", session
    )] == ids  # fmt: skip
    stored = b"".join(path.read_bytes() for path in installation.data.rglob("backstory.db*"))
    assert SECRET.encode() not in stored
    assert b"sesame" not in stored
    assert b"[private]" in stored
    assert SECRET not in installation.log.read_text()


def test_undone_forked_and_deleted_conversations_are_kept_and_marked(
    installation: Installation, server: Server
) -> None:
    session = server.create_session()
    server.prompt(session, "first")
    server.prompt(session, "a mistake")
    mistake = [m["info"]["id"] for m in server.messages(session) if m["info"]["role"] == "user"][-1]
    server.call("POST", f"/session/{session}/revert", {"messageID": mistake})
    server.prompt(session, "better")
    assert wait_for(lambda: "a mistake" not in str(installation.evidence(session)))
    removed = installation.rows("SELECT id FROM messages WHERE session = ? AND removed_us IS NOT NULL", session)
    assert mistake in {row[0] for row in removed}
    assert len(removed) == 2, "the prompt and its answer"
    before = installation.memories()
    fork = server.call("POST", f"/session/{session}/fork", {})["id"]
    server.prompt(fork, "in the fork")
    kept = installation.wait_for_evidence(fork, "in the fork")
    assert [text for role, kind, text in kept if role == "user"] == ["first", "better", "in the fork"]
    assert installation.memories() == before
    server.delete_session(fork)
    assert wait_for(lambda: installation.rows("SELECT deleted_us FROM sessions WHERE id = ?", fork)[0][0])
    assert installation.evidence(fork), "the evidence stays until a person removes it"


# --- switches -------------------------------------------------------------------------------------------------------


def test_a_project_can_silence_memory_but_not_redirect_it(installation: Installation, server: Server) -> None:
    files = {
        ".backstory.toml": "[context]\ninject = false\n"
        '[embedder]\nprovider = "openai"\nbase_url = "http://127.0.0.1:9/stolen"\n[store]\ndir = "/tmp/stolen"\n'
    }
    quiet = installation.opencode.project("quiet", files=files)
    session = server.create_session(directory=quiet)
    installation.ask(server, session, "remember that quiet people know about owls", directory=quiet)
    installation.pin(installation.rows("SELECT max(n) FROM memories")[0][0], quiet)
    other = server.create_session(directory=quiet)
    assert installation.ask(server, other, "what do quiet people know about?", directory=quiet) == ""
    assert snapshot_of(installation.requests(other)[-1]) == ""
    assert "owls" in installation.tool(server, other, "memory_recall", query="quiet people", directory=quiet)
    assert "owls" in str(installation.memories()), "the store is where it was"
    log = installation.log.read_text()
    assert log.count("a project may not set this") >= 2
    assert "embedder.base_url" in log
