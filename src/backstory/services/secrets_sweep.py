"""Secrets that got in before today's rules knew them: found in everything that is kept, masked in place, and looked for
again afterwards."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from backstory.domain.ids import ChangeId
from backstory.domain.redaction import redact_secrets
from backstory.domain.scope import Audience, Viewer
from backstory.errors import ASK_A_PERSON, OutOfScope
from backstory.ports.backend import Backend
from backstory.ports.erasing import Erasure, Found, Progress, Receipt
from backstory.ports.system import Clock, IdSource
from backstory.services.erasure import eraser_in, what_remains

MASKED_REASON = "secrets masked by a scan"

_MARK = re.compile(r"\[secret:([a-z0-9-]+)\]")
_BESIDE_CHARS = 30
_MIN_TELLING_CHARS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One text with secrets in it: where it is kept, of which kinds they are, and a few words around the first of them,
    which is masked."""

    place: str
    where: str
    kinds: tuple[str, ...]
    excerpt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What was found, and what became of it: ``left`` is found again by the same rules afterwards. ``receipt`` is None
    where there was nothing to mask."""

    found: tuple[Finding, ...]
    left: tuple[Finding, ...] = ()
    receipt: Receipt | None = None


class SecretsSweep:
    """Raises StoreUnavailable where the store cannot erase, OutOfScope for whoever is not a person."""

    def __init__(self, backend: Backend, *, clock: Clock, ids: IdSource) -> None:
        self._backend = backend
        self._clock = clock
        self._ids = ids

    async def look(self, viewer: Viewer, *, progress: Progress | None = None) -> list[Finding]:
        """Every text with a secret in it, in the order of the places. Changes nothing."""
        found, _ = await self._look(viewer, progress)
        return found

    async def fix(self, viewer: Viewer, *, copies: bool = False, progress: Progress | None = None) -> Swept:
        """Mask them where they stand: in rows, history, evidence and what is derived, so that they leave the bytes of
        the store; and look again, by the rules and for the bytes of those that cannot be mistaken."""
        found, values = await self._look(viewer, progress)
        if not found:
            return Swept(found=())
        eraser = eraser_in(self._backend)
        erasure = Erasure(
            id=ChangeId(self._ids.new_id()), at=self._clock.now(), memories=(), rewrite=_masked, reason=MASKED_REASON
        )
        places = await eraser.erase(erasure, progress=progress)
        cleaned = await eraser.clean(copies=copies)
        left, _ = await self._look(viewer, progress)
        traces = await eraser.scan(values) if values else []
        receipt = Receipt(
            id=erasure.id,
            at=erasure.at,
            reason=erasure.reason,
            memories=(),
            places=places,
            remains=what_remains(cleaned),
            traces=tuple(traces),
            finished=cleaned.finished,
        )
        await eraser.note(receipt)
        return Swept(found=tuple(found), left=tuple(left), receipt=receipt)

    async def _look(self, viewer: Viewer, progress: Progress | None) -> tuple[list[Finding], list[str]]:
        """The findings, and those of the secrets that nothing else could be taken for."""
        _check_person(viewer)
        findings: list[Finding] = []
        values: dict[str, None] = {}

        def told(found: Found) -> None:
            secrets = list(_taken_out(found.before, found.after))
            kinds = tuple(dict.fromkeys(kind for kind, _ in secrets))
            findings.append(
                Finding(place=found.place, where=found.where, kinds=kinds, excerpt=_excerpt(found.before, found.after))
            )
            values.update((value, None) for _, value in secrets if _is_telling(value))

        await eraser_in(self._backend).look(_masked, told, progress=progress)
        return findings, list(values)


def by_kind(findings: Sequence[Finding]) -> dict[str, int]:
    """How many texts hold a secret of each kind, by name."""
    kinds = [kind for finding in findings for kind in finding.kinds]
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}


def _masked(text: str) -> str:
    return redact_secrets(text).text


def _taken_out(before: str, after: str) -> Iterator[tuple[str, str]]:
    """The kinds of secrets in the order of their marks, each with what stood there before. A mark that was there before
    is none."""
    at, last = 0, 0
    marks = list(_MARK.finditer(after))
    for number, mark in enumerate(marks):
        at += mark.start() - last
        end = marks[number + 1].start() if number + 1 < len(marks) else len(after)
        following = after[mark.end() : end]
        found = before.find(following, at) if following else at
        stop = len(before) if number + 1 == len(marks) and not following else max(found, at)
        value = before[at:stop]
        if value != mark[0]:
            yield mark[1], value
        at, last = stop, mark.end()


def _is_telling(value: str) -> bool:
    """Whether a secret is long and mixed enough that its bytes are nothing else."""
    has_both = any(sign.isdigit() for sign in value) and any(sign.isalpha() for sign in value)
    return len(value) >= _MIN_TELLING_CHARS and has_both and "[secret:" not in value


def _excerpt(before: str, after: str) -> str:
    """A few words around the first mark that was not there before, masked and on one line."""
    known = {(mark.start(), mark[0]) for mark in _MARK.finditer(before)}
    mark = next((mark for mark in _MARK.finditer(after) if (mark.start(), mark[0]) not in known), None)
    if mark is None:
        return ""
    start, end = max(0, mark.start() - _BESIDE_CHARS), mark.end() + _BESIDE_CHARS
    return f"{'…' if start else ''}{' '.join(after[start:end].split())}{'…' if end < len(after) else ''}"


def _check_person(viewer: Viewer) -> None:
    if viewer.audience is not Audience.PERSON:
        raise OutOfScope("only a person at the command line can look for secrets", hint=ASK_A_PERSON)
