"""Grow a session's summary tree: a leaf for the oldest messages, a parent for several nodes; by a model, or by rule.

When which node is due is decided in ``domain/summary_tree.py``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, assert_never

from backstory.domain.admission import admit_evidence
from backstory.domain.answers import Reason, Unusable
from backstory.domain.conversation import Message
from backstory.domain.digest import Piece, Strategy, under_parent
from backstory.domain.digest_answers import read_summary
from backstory.domain.digest_block import digest_block
from backstory.domain.extract import EXTRACT, extract_digest, extract_merge
from backstory.domain.summary_tree import (
    PATIENCE,
    Batch,
    History,
    Leaves,
    Merge,
    TreePolicy,
    next_number,
    next_step,
    node_id,
)
from backstory.domain.transcript import TranscriptLimits, message_text, transcript
from backstory.errors import CapReached, ModelOutputInvalid
from backstory.ports.system import TokenCounter
from backstory.ports.text_models import TextModel, TextRequest
from backstory.prompts.prompt import Prompt
from backstory.prompts.tree_leaf import tree_leaf_prompt
from backstory.prompts.tree_merge import numbered, tree_merge_prompt
from backstory.services.conversation import Aside, at_once
from backstory.services.digest_strategy import Made, SessionView

FEATURE = "summary_tree"
MAX_OUTPUT_TOKENS = 800
"""As opencode-memory-tree asks for."""
MAX_PROMPT_CHARS = 60_000
LEAF_CHARS, MERGED_CHARS = 1200, 2400  # of what is written by rule
_COUNTED_CHARS = 4000  # of a message: no summary is longer than five such
_FRAMING_TOKENS = 4  # what a message costs beside its text

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    text: str
    made_by: str
    prompt: str


class _Extract(Protocol):
    def __call__(self, *, max_chars: int) -> str: ...


class SummaryTree:
    """The tree strategy: each leaf stands for the oldest messages, each parent for neighbouring nodes.

    ``timeout_s`` bounds each question to ``model``. ``max_prompt_chars`` bounds what it is shown beside the fixed
    words: half of that is for the messages to be summarised, a quarter for earlier nodes, the rest for the conversation
    around them. Without a model all nodes are made by rule.
    """

    def __init__(
        self,
        model: TextModel | None,
        *,
        policy: TreePolicy,
        tokens: TokenCounter,
        timeout_s: float,
        max_prompt_chars: int = MAX_PROMPT_CHARS,
        aside: Aside = at_once,
    ) -> None:
        """``aside`` runs the making of nodes by rule, which takes up to a second for the largest messages."""
        self._model = model
        self._policy = policy
        self._tokens = tokens
        self._timeout_s = timeout_s
        self._max_prompt_chars = max_prompt_chars
        self._aside = aside

    @property
    def strategy(self) -> Strategy:
        """The tree."""
        return Strategy.TREE

    def due(self, view: SessionView) -> bool:
        """Whether a leaf or a parent is to be made."""
        return next_step(_history(view), self._policy) is not None

    async def work(self, view: SessionView) -> Made:
        """Make the next leaf or parent, or all leaves that are made by rule to catch up.

        A node is smaller than what it stands for, or says nothing. An answer that is not smaller gives way to the rule
        at once; one that cannot be used for another reason raises ModelOutputInvalid, until it was asked for in vain
        ``PATIENCE`` times.
        """
        step = next_step(_history(view), self._policy)
        match step:
            case None:
                return Made()
            case Leaves():
                return await self._leaves(view, step)
            case Merge():
                return await self._parent(view, step)
            case _:
                assert_never(step)

    def shows(self, view: SessionView) -> tuple[str, ...]:
        """All nodes that no parent covers, once they and the frame around them take less than what they stand for."""
        active = view.digest.active()
        text = digest_block(active, view.digest.state)
        if text and self._tokens.count(text) >= sum(piece.source_tokens for piece in active):
            return view.digest.state.shown
        return tuple(piece.id for piece in active)

    async def _leaves(self, view: SessionView, step: Leaves) -> Made:
        number = next_number(view.digest.pieces, 0)
        leaves: list[Piece] = []
        for batch in step.batches:
            written = await self._summary(view, batch, by_rule=step.by_rule)
            leaf = self._piece(view, written, level=0, number=number + len(leaves), start=batch.start, end=batch.end)
            size = self._size(map(_body, batch.messages))
            leaves.append(replace(leaf, sources=tuple(message.id for message in batch.messages), source_tokens=size))
        return Made(added=tuple(leaves), cycle="leaf")

    async def _parent(self, view: SessionView, step: Merge) -> Made:
        children, level = step.children, step.level
        written = await self._merged(view, children, by_rule=step.by_rule)
        start, end = children[0].start, max(child.end for child in children)
        number = next_number(view.digest.pieces, level)
        parent = self._piece(view, written, level=level, number=number, start=start, end=end)
        size = sum(child.source_tokens for child in children)
        parent = replace(parent, children=tuple(child.id for child in children), source_tokens=size)
        return Made(added=(parent,), changed=under_parent(parent, children), cycle="merge")

    async def _summary(self, view: SessionView, batch: Batch, *, by_rule: bool) -> _Written:
        bodies = [_body(message) for message in batch.messages]
        source = "\n".join(filter(None, bodies))
        said = _said(source)
        most = self._size(bodies)
        if source and not by_rule:
            written = await self._asked(view, self._leaf_prompt(view, batch), (source, said), below=most)
            if written is not None:
                return written
        extract = partial(extract_digest, batch.messages)
        return await self._aside(lambda: self._by_rule(extract, LEAF_CHARS, source, most))

    async def _merged(self, view: SessionView, children: Sequence[Piece], *, by_rule: bool) -> _Written:
        texts = list(dict.fromkeys(child.text for child in children if child.text.strip()))
        source = "\n".join(texts)
        most = self._tokens.count(source) + 1  # as long as together is shorter too: one line in the place of several
        if len(texts) > 1 and not by_rule:
            written = await self._asked(view, tree_merge_prompt(children), (numbered(children), source), below=most)
            if written is not None:
                return written
        extract = partial(extract_merge, texts)
        return await self._aside(lambda: self._by_rule(extract, MERGED_CHARS, source, most))

    def _size(self, bodies: Iterable[str]) -> int:
        """The tokens of messages, of each as much as a transcript shows of it."""
        return sum(self._tokens.count(_said(body[:_COUNTED_CHARS])) + _FRAMING_TOKENS for body in bodies)

    def _by_rule(self, extract: _Extract, chars: int, source: str, most: int) -> _Written:
        """The longest of some extracts that takes fewer than ``most`` tokens; where none does, nothing is said."""
        sizes = (chars, len(source) * 2 // 3, len(source) // 3, len(source) // 8)
        texts = (extract(max_chars=min(size, chars)) for size in sizes if size > 0 and source)
        text = next((text for text in texts if self._tokens.count(text) < most), "")
        return _Written(text=text, made_by=EXTRACT, prompt="")

    async def _asked(self, view: SessionView, prompt: Prompt, sources: Sequence[str], *, below: int) -> _Written | None:
        """What the model wrote; None where the rule is to write instead.

        ``sources`` are forms of what it was to summarise, none of which it may give back.
        """
        if self._model is None:
            return None
        request = TextRequest(
            feature=FEATURE,
            system=prompt.system,
            prompt=prompt.text,
            max_output_tokens=MAX_OUTPUT_TOKENS,
            deadline_s=self._timeout_s,
            session=view.digest.state.session,
            project=view.project,
        )
        try:
            answer = await self._model.generate(request)
        except CapReached as error:
            _log.info("event=tree_by_rule session=%s reason=%s", view.digest.state.session, error)
            return None
        text = answer.text
        for source in sources:
            read = read_summary(text, source=source, instruction=prompt.system, finish=answer.finish)
            if isinstance(read, Unusable):
                _refuse(read, self._model.name, view)
                return None
            text = read
        text = admit_evidence(text)
        if self._tokens.count(text) >= below:
            return None
        return _Written(text=text, made_by=self._model.name, prompt=prompt.version)

    def _leaf_prompt(self, view: SessionView, batch: Batch) -> Prompt:
        target = transcript(batch.messages, limits=TranscriptLimits(total_chars=self._max_prompt_chars // 2))
        room = self._max_prompt_chars - len(target)
        before = [piece for piece in view.digest.active() if piece.start < batch.start]
        earlier = _newest(before, max_chars=self._max_prompt_chars // 4)
        room -= sum(len(piece.text) for piece in earlier)
        digested = view.digested()
        raw = [message for message in view.messages if message.id not in digested]
        conversation = transcript(raw, limits=TranscriptLimits(total_chars=room))
        return tree_leaf_prompt(earlier=earlier, conversation=conversation, target=target)

    def _piece(self, view: SessionView, written: _Written, *, level: int, number: int, start: int, end: int) -> Piece:
        return Piece(
            session=view.digest.state.session,
            id=node_id(level, number),
            strategy=Strategy.TREE,
            level=level,
            text=written.text,
            start=start,
            end=end,
            made_by=written.made_by,
            prompt=written.prompt,
            source_tokens=0,
            created_at=view.now,
        )


def _refuse(answer: Unusable, model: str, view: SessionView) -> None:
    """Raise, unless asking again is of no use."""
    problem = f"{model} wrote no summary that can be used ({answer.reason.value})"
    if answer.reason is not Reason.TOO_LONG and view.digest.state.attempts < PATIENCE:
        raise ModelOutputInvalid(problem)
    _log.warning("event=tree_by_rule session=%s reason=%s", view.digest.state.session, problem)


def _history(view: SessionView) -> History:
    return History(
        digest=view.digest,
        messages=view.messages,
        current=view.current,
        forced=view.forced,
        first_number=view.first_number,
    )


def _said(body: str) -> str:
    """A body without the marks of its texts."""
    return body.replace("\n- text: ", "\n").removeprefix("- text: ")


def _body(message: Message) -> str:
    """What a message says in a transcript, without the line that names it."""
    return message_text(message).partition("\n")[2]


def _newest(pieces: Sequence[Piece], *, max_chars: int) -> list[Piece]:
    """The last of some pieces that fit together, in their order."""
    kept: list[Piece] = []
    for piece in reversed(pieces):
        max_chars -= len(piece.text)
        if max_chars < 0:
            break
        kept.append(piece)
    return kept[::-1]
