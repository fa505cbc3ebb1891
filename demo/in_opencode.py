"""The story in the real OpenCode: two processes, one memory, a model that says what a script tells it to."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from backstory.testing.opencode import OpenCode, Run
from backstory.testing.scripted_model import Reply, Request, ScriptedModel
from demo import story
from demo.stage import Stage, dim

BLOCK = "<backstory-memory>"
PATIENT = {"BACKSTORY_CONTEXT_DEADLINE_MS": "5000"}
"""A prompt waits 0.8 s for its memories and then goes without; the demo waits longer, so that its story also comes true
on a machine that is busy with something else."""


def tell(stage: Stage, binary: Path, folder: Path) -> None:
    """Play both sessions below ``folder`` and say what happened."""
    with ScriptedModel() as model:
        model.when(said="let us settle", last_role="user").call(
            "memory_remember", content=story.DECISION, kind="decision", tags=["vendor", "cache"]
        )
        model.when(last_role="tool").say("Done: I have noted the decision and the reason.")
        for prompt in (story.DEPLOY, story.WHY, story.UNRELATED):
            model.when(said=prompt, last_role="user").answer(_from_what_is_sent(prompt))
        environ = {"BACKSTORY_HOME": str(folder / "backstory"), **PATIENT}
        opencode = OpenCode(folder, model.url, binary=binary, environ=environ)
        project = opencode.project(story.PROJECT)
        stage.note(
            "OpenCode is the real one. The model is a script that knows only the text it is sent: what it knows about"
            " you, its memory has told it."
        )
        before = _without(stage, opencode, model, project)
        _install(stage, opencode, project)
        _first_session(stage, opencode, model, project)
        after = _second_session(stage, opencode, model, project)
        _explain(stage, opencode, project)
        _in_short(stage, before, after)


def backstory(opencode: OpenCode, project: Path, *arguments: str) -> str:
    """Run our command in the demo's home and show it as a person would type it."""
    print(f"   {dim('$ backstory ' + shlex.join(arguments))}")
    command = [sys.executable, "-m", "backstory", *arguments]
    done = subprocess.run(command, cwd=project, env=opencode.environment(), capture_output=True, text=True)
    return (done.stdout + done.stderr).strip()


def _from_what_is_sent(prompt: str) -> Callable[[Request], Reply]:
    return lambda request: Reply(text=story.answer(prompt, request.all_text()))


def _without(stage: Stage, opencode: OpenCode, model: ScriptedModel, project: Path) -> str:
    """What the agent answers when nothing is kept from earlier sessions."""
    stage.title("Before: an agent without a memory")
    asked, beside = _ask(stage, opencode, model, project, story.DEPLOY)
    stage.check(not beside, "it has to ask: nothing is kept from earlier sessions")
    return asked.text


def _install(stage: Stage, opencode: OpenCode, project: Path) -> None:
    stage.title("Install")
    stage.step("One command, two files; OpenCode's configuration is not touched.")
    told = backstory(opencode, project, "install", "opencode")
    stage.quote(told.partition("\n")[0].replace(str(opencode.home), "~"))


def _first_session(stage: Stage, opencode: OpenCode, model: ScriptedModel, project: Path) -> None:
    stage.title("Session 1: you say it once")
    stage.step("You type into OpenCode:")
    stage.quote(story.ASKED)
    run = opencode.run(story.ASKED, cwd=project)
    _must_work(stage, run)
    stage.note(
        "Your first sentence is stored before the model is asked. The decision is stored by the agent, with its tool"
        " memory_remember. What is kept now:"
    )
    kept = backstory(opencode, project, "list")
    stage.quote(kept.replace("\t", "  "))
    stage.check(story.FACT in kept, "your sentence is stored, word for word")
    stage.check("Redis" in kept, "the agent's decision is stored, with its reason")
    titles = [request.all_text() for request in model.requests("title")]
    stage.check(all(BLOCK not in text for text in titles), "the request for a title was left alone")


def _second_session(stage: Stage, opencode: OpenCode, model: ScriptedModel, project: Path) -> str:
    """What the agent answers to the same words now."""
    stage.title("Session 2: a new process, and the agent knows")
    asked, text = _ask(stage, opencode, model, project, story.DEPLOY)
    stage.check(story.FACT in text and "heron-2" in asked.text, "the model knows the cluster's name")
    session, answer = asked.session, asked.text
    asked, text = _ask(stage, opencode, model, project, story.WHY, session=session)
    stage.check(story.DECISION_WORDS in text, "the model knows the decision and its reason, in other words than asked")
    asked, text = _ask(stage, opencode, model, project, story.UNRELATED, session=session)
    stage.check(not text, "nothing that is known matters here, so nothing is said")
    return answer


def _ask(
    stage: Stage, opencode: OpenCode, model: ScriptedModel, project: Path, prompt: str, *, session: str | None = None
) -> tuple[Run, str]:
    """One prompt and its answer; what stood beside it in the request to the model."""
    stage.step("You type:")
    stage.quote(prompt)
    before = len(model.requests("chat"))
    run = opencode.run(prompt, cwd=project, session=session)
    _must_work(stage, run)
    stage.note("The agent answers:")
    stage.quote(run.text)
    requests = model.requests("chat")[before:]
    beside = _beside(requests[0]) if requests else ""
    if beside:
        stage.note("because Backstory put this beside your words, unasked:")
        stage.quote(beside)
    else:
        stage.note("The model was sent your words alone.")
    return run, beside


def _beside(request: Request) -> str:
    newest = request.texts("user")[-1]
    return newest[newest.index(BLOCK) :] if BLOCK in newest else ""


def _explain(stage: Stage, opencode: OpenCode, project: Path) -> None:
    stage.title("Why did it say that?")
    stage.step("Every memory says where it comes from, and when and why a model was shown it:")
    why = backstory(opencode, project, "why", "#1")
    stage.quote(why)
    stage.check(story.FACT in why, "the sentence, the session and the date are there")


def _in_short(stage: Stage, before: str, after: str) -> None:
    """The last thing on the screen: the same words, before and after."""
    stage.title("In short")
    for when, who, said in (
        ("without", "you", story.DEPLOY), ("", "agent", before),
        ("session 1", "you", story.ASKED.partition("\n")[0]),
        ("session 2", "you", story.DEPLOY), ("", "agent", after),
    ):  # fmt: skip
        stage.line(f"{when:<11}{who:<7}{said}")


def _must_work(stage: Stage, run: Run) -> None:
    if run.exit_code != 0:
        stage.check(False, f"OpenCode ran (exit code {run.exit_code}): {run.stderr[-400:]}")
