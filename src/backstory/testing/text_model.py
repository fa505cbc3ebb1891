"""A language model in the process that says what a test tells it to, for services that ask one."""

from __future__ import annotations

from collections.abc import Sequence

from backstory.domain.answers import Finish
from backstory.errors import ModelError
from backstory.ports.text_models import TextAnswer, TextRequest


class ScriptedTextModel:
    """Gives the answers in order, the last one again and again; an error among them is raised.

    ``requests`` is what it was asked, in order.
    """

    def __init__(
        self, answers: Sequence[str | ModelError], *, name: str = "scripted:1", finish: Finish = Finish.STOP
    ) -> None:
        self.requests: list[TextRequest] = []
        self.closed = False
        self._answers = list(answers)
        self._name = name
        self._finish = finish

    @property
    def name(self) -> str:
        return self._name

    async def generate(self, request: TextRequest) -> TextAnswer:
        self.requests.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, ModelError):
            raise answer
        return TextAnswer(text=answer, model=self._name, finish=self._finish, duration_s=0.0)

    async def close(self) -> None:
        self.closed = True
