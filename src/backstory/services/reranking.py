"""Ask the language model which of the memories found answer the query, in which order, or that none does."""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from backstory.domain.admission import admit_evidence
from backstory.domain.answers import Unusable
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Memory, Sensitivity, Visibility
from backstory.domain.reranking import MAX_CANDIDATES, read_choice
from backstory.domain.scope import Audience, Viewer, visible
from backstory.errors import CapReached, ModelError
from backstory.ports.text_models import TextModel, TextRequest
from backstory.prompts.rerank import VERSION, rerank_prompt
from backstory.services.query import Result, Skipped

FEATURE = "rerank"
MAX_CACHED = 256
MAX_OUTPUT_TOKENS = 512  # thirty numbers are about 100; the rest is for models that think aloud
LEAST_S = 0.1
"""With less time than this no model answers; it is not asked then."""

_log = logging.getLogger(__name__)
_Key = tuple[str, str, str, tuple[tuple[MemoryId, int], ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reranked:
    """The model's verdict on some results.

    ``chosen`` are those that answer, best first; ``rest`` those that it was shown and did not choose; ``unseen`` those
    that it was not shown, about which it says nothing. Both are in the order they came. ``silent_because`` is set when
    the model chose none.
    """

    chosen: tuple[Result, ...]
    rest: tuple[Result, ...]
    unseen: tuple[Result, ...] = ()
    silent_because: str | None = None

    @property
    def behind(self) -> tuple[Result, ...]:
        """What may follow the chosen ones where somebody searches: nothing that was shown to no avail at all."""
        return (*(self.rest if self.chosen else ()), *self.unseen)


class Reranker:
    """Asks ``model``, for at most ``timeout_s``; answers are kept in the process for the same query and memories."""

    def __init__(self, model: TextModel, *, timeout_s: float) -> None:
        self._model = model
        self._timeout_s = timeout_s
        self._cache: OrderedDict[_Key, tuple[int, ...]] = OrderedDict()

    async def rerank(
        self, query_text: str, results: Sequence[Result], *, viewer: Viewer, within_s: float | None = None
    ) -> Reranked | Skipped | None:
        """The model's verdict; Skipped and why, when the model failed or had too little time; None without a question.

        At most the first ``MAX_CANDIDATES`` results that a model may see are shown to it: no local-only or private
        memory, and none of another project. The query and the memories go out with their secrets masked. A failure is
        not remembered. ``within_s`` shortens the timeout for this call.
        """
        question = admit_evidence(query_text).strip()
        shown = [place for place, result in enumerate(results) if _may_send(result.memory, viewer)][:MAX_CANDIDATES]
        if not question or not shown:
            return None
        seconds = self._timeout_s if within_s is None else min(within_s, self._timeout_s)
        key = self._key(question, [results[place].memory for place in shown])
        picked = self._cache.get(key)
        if picked is None:
            notes = [results[place].memory.content for place in shown]
            answer = await self._ask(question, notes, seconds, viewer)
            if isinstance(answer, Skipped):
                return answer
            picked = answer
        self._keep(key, picked)
        return self._arranged(results, shown, [shown[position] for position in picked])

    async def _ask(
        self, question: str, notes: Sequence[str], seconds: float, viewer: Viewer
    ) -> tuple[int, ...] | Skipped:
        if seconds < LEAST_S:
            return _skipped("no time was left to ask the model", viewer)
        prompt = rerank_prompt(question, [admit_evidence(note) for note in notes])
        request = TextRequest(
            feature=FEATURE,
            system=prompt.system,
            prompt=prompt.text,
            schema=prompt.schema,
            max_output_tokens=MAX_OUTPUT_TOKENS,
            deadline_s=seconds,
            session=viewer.session,
            project=viewer.project,
        )
        try:
            answer = await self._model.generate(request)
        except CapReached as error:
            return _skipped(str(error), viewer, level=logging.INFO)  # as the user wishes, at every search from now on
        except ModelError as error:
            return _skipped(str(error), viewer)
        choice = read_choice(answer.text, count=len(notes), finish=answer.finish)
        if isinstance(choice, Unusable):
            return _skipped(f"the model's answer cannot be used ({choice.reason.value})", viewer)
        return choice.positions

    def _arranged(self, results: Sequence[Result], shown: Sequence[int], picked: Sequence[int]) -> Reranked:
        unseen = set(range(len(results))).difference(shown)
        silent = f"{self._model.name} finds no answer among the {len(shown)} best matches"
        return Reranked(
            chosen=tuple(self._placed(results[place], rank) for rank, place in enumerate(picked, 1)),
            rest=tuple(results[place] for place in shown if place not in set(picked)),
            unseen=tuple(results[place] for place in sorted(unseen)),
            silent_because=None if picked else silent,
        )

    def _placed(self, result: Result, rank: int) -> Result:
        return replace(result, reasons=(*result.reasons, f"put in place {rank} by {self._model.name}"))

    def _key(self, question: str, memories: Sequence[Memory]) -> _Key:
        digest = hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()
        return digest, self._model.name, VERSION, tuple((memory.id, memory.revision) for memory in memories)

    def _keep(self, key: _Key, picked: tuple[int, ...]) -> None:
        self._cache[key] = picked
        self._cache.move_to_end(key)
        if len(self._cache) > MAX_CACHED:
            self._cache.popitem(last=False)


def _skipped(reason: str, viewer: Viewer, *, level: int = logging.WARNING) -> Skipped:
    _log.log(level, "event=rerank_skipped session=%s reason=%s", viewer.session, reason)
    return Skipped(part=FEATURE, reason=reason)


def _may_send(memory: Memory, viewer: Viewer) -> bool:
    """Whether a model may judge it: nothing held back from models, nothing beyond the viewer's own project."""
    if memory.sensitivity is not Sensitivity.NORMAL:
        return False
    if memory.visibility is Visibility.GLOBAL:
        return True
    return visible(memory, replace(viewer, audience=Audience.MODEL, all_projects=False))
