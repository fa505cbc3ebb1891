"""The real bridge, which besides asks the model of its folder whatever a test puts into a folder.

``ASKING_FOLDER`` holds ``N.ask.json``: the directory, and the fields of a ``TextRequest``. What came of it goes to
``N.answer.json``: the answer's fields, or the error with its name.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

import anyio

from backstory.bootstrap import open_app
from backstory.config import load
from backstory.entrypoints.opencode import server
from backstory.errors import ModelError
from backstory.ports.text_models import TextRequest

FOLDER = Path(os.environ["ASKING_FOLDER"])
Json = dict[str, Any]


class AskingBridge(server.Bridge):
    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch, tasks)
            await super().run()
            tasks.cancel_scope.cancel()

    async def _watch(self, tasks: anyio.abc.TaskGroup) -> None:
        while True:
            for path in _new_questions():
                asked = json.loads(path.read_text())
                path.rename(path.with_suffix(".taken"))
                tasks.start_soon(self._ask_model, FOLDER / path.name.replace(".ask.", ".answer."), asked)
            await anyio.sleep(0.01)

    async def _ask_model(self, target: Path, asked: Json) -> None:
        model = self._hooks._places.app_in(asked.pop("directory")).text_model  # the folder's own, as services get it
        assert model is not None
        started = time.monotonic()
        try:
            answer = await model.generate(TextRequest(**asked))
        except ModelError as error:
            told: Json = {"error": type(error).__name__, "message": str(error), "sent": error.sent}
            told["unanswered"] = error.unanswered
        else:
            told = {name: getattr(answer, name) for name in answer.__dataclass_fields__}
        told["took_s"] = time.monotonic() - started
        temporary = target.with_suffix(".new")
        temporary.write_text(json.dumps(told))
        temporary.replace(target)


def _new_questions() -> list[Path]:
    return sorted(FOLDER.glob("*.ask.json"))


if __name__ == "__main__":
    settings = load(env=os.environ, project_root=None).settings
    logging.basicConfig(stream=sys.stderr, level="INFO", format="level=%(levelname)s logger=%(name)s %(message)s")
    server.Bridge = AskingBridge  # type: ignore[misc]  # what serve_stdio runs
    server.serve_stdio(open_app(settings))
