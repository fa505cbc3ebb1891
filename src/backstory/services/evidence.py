"""Find what was said in earlier sessions: the messages that answer a question, quoted with what stands beside them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import partial
from typing import Any, TypeVar

from backstory.domain.evidence import (
    BY_WORDS,
    WITH_MEANING,
    WORD_BY_WORD,
    EvidenceScore,
    EvidenceWeights,
    answers,
    score_messages,
)
from backstory.domain.evidence_asked import asks_back
from backstory.domain.evidence_hints import date_hint, detail_hint, speaker_hint
from backstory.domain.evidence_offer import EvidenceOffer, is_quotable, offer
from backstory.domain.evidence_passages import EvidencePassage, LoadedPassage, PassageNumber
from backstory.domain.evidence_signs import ComparedWords, EvidenceStatistics, PassageSigns, read_signs
from backstory.domain.ids import SessionId
from backstory.domain.interchange import imported_from
from backstory.domain.outdated import outdated_note
from backstory.domain.scope import Viewer
from backstory.domain.text import QueryTerm, analyse_query
from backstory.domain.time_range import TimeRange
from backstory.domain.typed_words import wording_of
from backstory.errors import InputError
from backstory.ports.conversation import Archive
from backstory.ports.evidence import EvidenceIndex, PassageSearch, Sight
from backstory.ports.models import Embedder
from backstory.ports.system import Aside, Clock
from backstory.services.corrections import Corrections
from backstory.services.evidence_found import EvidenceFound, EvidenceResult, Quotes
from backstory.services.evidence_meaning import Asked, MeaningSearch

T = TypeVar("T")

MAX_QUESTION_CHARS = 2000
MAX_LIMIT = 100
CANDIDATES = 200
"""Passages taken from each index; they come with their neighbours."""
UNASKED_CANDIDATES = 24
"""The same for a prompt that asked for nothing, by words alone: reading all vectors would take longer than the rest."""

_SHARE_OF_BEST = 0.4
"""A message that is far by itself is still shown when what stands around it lifts it this near to the best."""

_SPARE = 5
"""Messages looked at beyond those wanted, since outdated ones give way."""

NO_EVIDENCE = "no session here holds any of it"
NO_QUESTION = "nothing was asked"
NOT_ASKED_BACK = "the prompt does not ask for anything said earlier"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """Everything known about the candidates of one question, before any weighing. ``with_meaning`` tells whether
    vectors took part, ``word_by_word`` whether those of words did."""

    signs: Sequence[PassageSigns] = ()
    loaded: Sequence[LoadedPassage] = ()
    with_meaning: bool = False
    word_by_word: bool = False
    skipped: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotable:
    """Passages that may be quoted unasked, in the order of their sessions, and what speaks for each."""

    signs: Sequence[PassageSigns]
    passages: Mapping[PassageNumber, EvidencePassage]


class EvidenceRecall:
    """Searches the archived messages by words and by meaning."""

    def __init__(
        self,
        index: EvidenceIndex,
        embedder: Embedder | None,
        *,
        clock: Clock,
        zone: tzinfo,
        no_embedder: str,
        aside: Aside | None = None,
        corrections: Corrections | None = None,
        archive: Archive | None = None,
    ) -> None:
        """``zone`` is where the person is, for the days that questions name. ``no_embedder`` says why there is none.
        ``aside`` runs a search's reads and its scoring as one, away from the event loop; left out, all of it is done in
        place. ``corrections`` know what was corrected since; without them nothing is called outdated. ``archive`` knows
        which sessions were imported."""
        self.corrections = corrections
        self._archive = archive
        self._index = index
        self._meaning = MeaningSearch(index, embedder, no_embedder=no_embedder)
        self._clock = clock
        self._zone = zone
        self._aside = aside or _in_place

    async def search(
        self,
        question: str,
        *,
        viewer: Viewer,
        limit: int = 10,
        session: SessionId | None = None,
        said: TimeRange | None = None,
        lexical_only: bool = False,
    ) -> EvidenceFound:
        """Messages of the sessions that the viewer may read, or of one of them; ``said`` bounds the time.

        An empty question finds nothing. Raises InputError for a limit outside 1 to 100.
        """
        if not 1 <= limit <= MAX_LIMIT:
            raise InputError(f"limit is {limit}; it must lie between 1 and {MAX_LIMIT}", field="limit")
        text = question[:MAX_QUESTION_CHARS].strip()
        if not text:
            return EvidenceFound(silent_because=NO_QUESTION)
        sight = Sight(viewer=viewer, session=session, said=said)
        asked = await self._meaning.read(text, lexical_only=lexical_only)
        found = await self._aside(
            partial(self._answer, text, asked, sight, limit + (_SPARE if self.corrections else 0))
        )
        return await self._told_by(await self._outdated_last(found, viewer, limit))

    async def _told_by(self, found: EvidenceFound) -> EvidenceFound:
        """Say of what a file told that it did."""
        results: list[EvidenceResult] = []
        for result in found.results:
            session = None if self._archive is None else await self._archive.session(result.passage.session)
            results.append(result if session is None else replace(result, imported_from=imported_from(session)))
        return replace(found, results=tuple(results))

    async def _outdated_last(self, found: EvidenceFound, viewer: Viewer, limit: int) -> EvidenceFound:
        """Say of what was corrected since that it was, and put it after all others."""
        if self.corrections is None:
            return found
        outdated = await self.corrections.outdated([result.passage for result in found.results], viewer)
        results = [
            replace(result, outdated=outdated_note(outdated[result.passage.number]))
            if result.passage.number in outdated
            else result
            for result in found.results
        ]
        results.sort(key=lambda result: result.outdated is not None)
        return replace(found, results=tuple(results[:limit]))

    async def offer(self, prompt: str, *, viewer: Viewer, within_s: float | None = None) -> EvidenceOffer:
        """What may be quoted beside a prompt that asked for nothing: a few passages of earlier sessions of the viewer's
        project, best first; or none and why. ``within_s`` bounds the time; None waits.

        Only a prompt that asks back (``asks_back``) is searched for, by its words; meaning helps to judge what they
        found. Raises what the store raises. Cost: see docs/adr/0012; nothing for other prompts.
        """
        text = prompt[:MAX_QUESTION_CHARS].strip()
        if viewer.project is None or not asks_back(text):
            return EvidenceOffer(silent_because=NOT_ASKED_BACK)
        if within_s is None:
            return await self._search_unasked(text, viewer)
        import anyio

        with anyio.move_on_after(within_s):
            return await self._search_unasked(text, viewer)
        return EvidenceOffer(silent_because="earlier sessions were not searched for lack of time")

    async def signs(self, question: str, *, sight: Sight, lexical_only: bool = False) -> Signs:
        """The candidates of a question and what speaks for each, not weighed yet."""
        text = question[:MAX_QUESTION_CHARS].strip()
        if not text:
            return Signs()
        asked = await self._meaning.read(text, lexical_only=lexical_only)
        return await self._aside(partial(self._gather, text, asked, sight))

    async def _answer(self, text: str, asked: Asked, sight: Sight, limit: int) -> EvidenceFound:
        found = await self._gather(text, asked, sight)
        if not found.signs:
            return EvidenceFound(silent_because=NO_EVIDENCE, skipped=found.skipped)
        scores = score_messages(found.signs, weights_for(found))
        if not any(answers(score.best) for score in scores):
            return EvidenceFound(silent_because=_too_far(scores), skipped=found.skipped)
        floor = _SHARE_OF_BEST * scores[0].total
        passed = [score for score in scores if answers(score.best) or score.total >= floor]
        quote = Quotes(found.loaded, wording_of(text))
        return EvidenceFound(results=tuple(quote.result(score) for score in passed[:limit]), skipped=found.skipped)

    async def quotable(self, prompt: str, *, viewer: Viewer) -> Quotable:
        """The candidates of ``offer``, not judged yet, and whatever the prompt asks."""
        text = prompt[:MAX_QUESTION_CHARS].strip()
        asked = await self._meaning.read(text, lexical_only=False)
        return await self._aside(partial(self._quotable, text, asked, replace(viewer, all_projects=False)))

    async def _search_unasked(self, text: str, viewer: Viewer) -> EvidenceOffer:
        asked = await self._meaning.read(text, lexical_only=False)
        return await self._aside(partial(self._offer, text, asked, replace(viewer, all_projects=False)))

    async def _offer(self, text: str, asked: Asked, viewer: Viewer) -> EvidenceOffer:
        found = await self._quotable(text, asked, viewer)
        return offer(analyse_query(text), found.signs, found.passages)

    async def _quotable(self, text: str, asked: Asked, viewer: Viewer) -> Quotable:
        """Neighbours are read along, whatever they are, but only what may be quoted is a candidate."""
        terms = analyse_query(text)
        tokens = [term.token for term in terms]
        words = await self._index.search_text(tokens, Sight(viewer=viewer), limit=UNASKED_CANDIDATES)
        found = await self._index.neighbours(words.numbers, tokens=tokens)
        loaded = [item for item in found if item.passage.session != viewer.session]
        cosines = await self._meaning.similarities(asked, {}, loaded)
        passages = {item.passage.number: item.passage for item in loaded if is_quotable(item.passage)}
        signs = [sign for sign in self._read_signs(text, terms, loaded, words, cosines) if sign.passage in passages]
        return Quotable(signs=signs, passages=passages)

    async def _gather(self, text: str, asked: Asked, sight: Sight) -> Signs:
        """Everything that is read for a question, once the model has read the question itself."""
        terms = analyse_query(text)
        tokens = [term.token for term in terms]
        words = await self._index.search_text(tokens, sight, limit=CANDIDATES)
        nearest = await self._meaning.nearest(asked, sight, limit=CANDIDATES)
        numbers = list(dict.fromkeys([*words.numbers, *nearest]))
        loaded = await self._index.neighbours(numbers, tokens=tokens)
        cosines = await self._meaning.similarities(asked, nearest, loaded)
        compared = await self._meaning.compare_words(asked, loaded)
        return Signs(
            signs=self._read_signs(text, terms, loaded, words, cosines, compared),
            loaded=loaded,
            with_meaning=bool(cosines),
            word_by_word=compared is not None,
            skipped=asked.skipped,
        )

    def _read_signs(
        self,
        question: str,
        terms: Sequence[QueryTerm],
        loaded: Sequence[LoadedPassage],
        words: PassageSearch,
        cosines: Mapping[PassageNumber, float],
        compared: ComparedWords | None = None,
    ) -> list[PassageSigns]:
        # what goes without saying among these people, other chats of the store do not know
        statistics = _of_store(words) if compared is None else EvidenceStatistics.of_loaded(loaded)
        return read_signs(
            terms,
            loaded,
            statistics=statistics,
            cosines=cosines,
            speaker=speaker_hint(question, [item.passage for item in loaded]),
            date=date_hint(question, now=self._clock.now(), zone=self._zone),
            detail=detail_hint(question),
            compared=compared,
        )


async def _in_place(work: Callable[[], Coroutine[Any, Any, T]]) -> T:  # Any: nothing is sent in, nothing is yielded
    return await work()


def _of_store(words: PassageSearch) -> EvidenceStatistics:
    return EvidenceStatistics(documents=words.documents, mean_length=words.mean_length, frequency=words.frequency)


def weights_for(found: Signs) -> EvidenceWeights:
    """The weights that fit what took part in the search."""
    if found.word_by_word:
        return WORD_BY_WORD
    return WITH_MEANING if found.with_meaning else BY_WORDS


def _too_far(scores: Sequence[EvidenceScore]) -> str:
    best = scores[0].best
    if best.matched and not best.telling:
        return "the words that are there say too little by themselves; add one that tells what you look for"
    near = f"its meaning {best.cosine:.2f}, " if best.cosine is not None else ""
    return f"what comes nearest is too far: {near}{best.coverage:.0%} of the question's words"
