"""The same story where OpenCode cannot be had: through the commands a person types."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from demo import story
from demo.stage import Stage, dim


def tell(stage: Stage, folder: Path) -> None:
    """Remember in one process, recall in others."""
    project = folder / story.PROJECT
    project.mkdir(parents=True)
    env = {**os.environ, "BACKSTORY_HOME": str(folder / "backstory"), "BACKSTORY_NO_BACKGROUND": "1"}

    def backstory(*arguments: str) -> str:
        print(f"   {dim('$ backstory ' + shlex.join(arguments))}")
        command = [sys.executable, "-m", "backstory", *arguments]
        done = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True)
        text = (done.stdout + done.stderr).strip()
        stage.quote(text)
        return text

    stage.title("Remember")
    stage.step("Tell it two things:")
    backstory("remember", story.FACT)
    backstory("remember", story.DECISION, "--kind", "decision")
    backstory("embed")
    stage.title("Recall, in new processes")
    stage.step("Ask where they matter:")
    stage.check(story.FACT in backstory("recall", story.DEPLOY), "the cluster's name comes back")
    stage.check(story.DECISION_WORDS in backstory("recall", story.WHY), "the decision comes back, reworded question")
    stage.step("Ask something unrelated:")
    stage.check(story.FACT not in backstory("recall", story.UNRELATED), "nothing is said")
    stage.title("Why did it say that?")
    stage.step("Every memory can say where it comes from:")
    stage.check(story.FACT in backstory("why", "#1"), "the sentence and the date are there")
