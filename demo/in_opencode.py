"""The story in the real OpenCode: two processes, one memory, a model that says what a script tells it to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from backstory.testing.opencode import OpenCode, Run
from backstory.testing.scripted_model import Request, ScriptedModel
from demo import story
from demo.stage import Stage, dim

BLOCK = "<backstory-memory>"


def tell(stage: Stage, binary: Path, folder: Path) -> None:
    """Play both sessions below ``folder`` and say what happened."""
    with ScriptedModel() as model:
        model.when(said="let us settle", last_role="user").call(
            "memory_remember", content=story.DECISION, kind="decision", tags=["vendor", "cache"]
        )
        model.when(last_role="tool").say("Done: I have noted the decision and the reason.")
        home = {"BACKSTORY_HOME": str(folder / "backstory")}
        opencode = OpenCode(folder, model.url, binary=binary, environ=home)
        project = opencode.project(story.PROJECT)
        _install(stage, opencode, project)
        _first_session(stage, opencode, model, project)
        _second_session(stage, opencode, model, project)
        _explain(stage, opencode, project)


def backstory(opencode: OpenCode, project: Path, *arguments: str) -> str:
    """Run our command in the demo's home and show it as a person would type it."""
    print(f"   {dim('$ backstory ' + ' '.join(arguments))}")
    command = [sys.executable, "-m", "backstory", *arguments]
    done = subprocess.run(command, cwd=project, env=opencode.environment(), capture_output=True, text=True)
    return (done.stdout + done.stderr).strip()


def _install(stage: Stage, opencode: OpenCode, project: Path) -> None:
    stage.step("Install Backstory into OpenCode: one command, two files, nothing else is touched.")
    stage.quote(backstory(opencode, project, "install", "opencode", "--global"))


def _first_session(stage: Stage, opencode: OpenCode, model: ScriptedModel, project: Path) -> None:
    stage.title("Session 1")
    stage.step("You type into OpenCode:")
    stage.quote(story.ASKED)
    run = opencode.run(story.ASKED, cwd=project)
    _must_work(stage, run)
    stage.note("The first sentence is stored before the model is asked, without a model. The agent then stores a")
    stage.note("decision of its own with the tool memory_remember. What is kept now:")
    kept = backstory(opencode, project, "list")
    stage.quote(kept)
    stage.check(story.FACT in kept, "your sentence is stored, word for word")
    stage.check("Redis" in kept, "the agent's decision is stored, with its reason")
    titles = [request.all_text() for request in model.requests("title")]
    stage.check(all(BLOCK not in text for text in titles), "the request for a title was left alone")


def _second_session(stage: Stage, opencode: OpenCode, model: ScriptedModel, project: Path) -> None:
    stage.title("Session 2: a new process that has never heard of it")
    asked, text = _ask(stage, opencode, model, project, story.DEPLOY)
    stage.check(story.FACT in text, "the model knows the cluster's name")
    session = asked.session
    asked, text = _ask(stage, opencode, model, project, story.WHY, session=session)
    stage.check(story.DECISION_WORDS in text, "the model knows the decision and its reason, in other words than asked")
    asked, text = _ask(stage, opencode, model, project, story.UNRELATED, session=session)
    stage.check(not text, "nothing that is known matters here, so nothing is said")


def _ask(
    stage: Stage, opencode: OpenCode, model: ScriptedModel, project: Path, prompt: str, *, session: str | None = None
) -> tuple[Run, str]:
    """One prompt; what stood beside it in the request to the model."""
    stage.step("You type:")
    stage.quote(prompt)
    before = len(model.requests("chat"))
    run = opencode.run(prompt, cwd=project, session=session)
    _must_work(stage, run)
    beside = _beside(model.requests("chat")[before])
    if beside:
        stage.note("The model is sent, beside your words:")
        stage.quote(beside)
    else:
        stage.note("The model is sent your words alone.")
    return run, beside


def _beside(request: Request) -> str:
    newest = request.texts("user")[-1]
    return newest[newest.index(BLOCK) :] if BLOCK in newest else ""


def _explain(stage: Stage, opencode: OpenCode, project: Path) -> None:
    stage.title("Why did it say that?")
    stage.step("Every memory can say where it comes from and when it was shown:")
    why = backstory(opencode, project, "why", "#1")
    stage.quote(why)
    stage.check(story.FACT in why, "the sentence, the session and the date are there")


def _must_work(stage: Stage, run: Run) -> None:
    if run.exit_code != 0:
        stage.check(False, f"OpenCode ran (exit code {run.exit_code}): {run.stderr[-400:]}")
