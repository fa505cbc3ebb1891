"""Digests of a file: the nodes and observations of its sessions, where there are none yet."""

from __future__ import annotations

from dataclasses import replace

from backstory.domain.admission import admit_evidence
from backstory.domain.digest import DigestState, DigestUpdate, Piece, SessionDigest, Strategy
from backstory.domain.interchange import UNVOUCHED, ForeignDigest, is_unvouched
from backstory.errors import InputError
from backstory.ports.digests import DigestStore
from backstory.services.import_report import Counts, ImportReport
from backstory.services.imported_memories import ImportPolicy
from backstory.services.imported_sessions import SessionImport
from backstory.services.imported_texts import check_aware, check_names

_TEXT_MAX_CHARS = 1_000_000
_MOST_PIECES = 20_000
_MOST_SOURCES = 20_000


class DigestImport:
    """The digests of one import. Nothing is ever made of them by a model: no work is due."""

    def __init__(
        self, digests: DigestStore, sessions: SessionImport, report: ImportReport, *, policy: ImportPolicy
    ) -> None:
        self._digests = digests
        self._sessions = sessions
        self._report = report
        self._dry_run = policy.dry_run
        self._problem = None if policy.trusted else UNVOUCHED

    async def take(self, record: ForeignDigest) -> None:
        """Take a digest in where its session has none, or what is new in it where the file's is the same, grown.
        Raises InputError for one that cannot come in: all of it, or nothing."""
        session = record.digest.state.session
        if not await self._sessions.accepts(session):
            return
        told = UNVOUCHED if is_unvouched(record.digest) else None  # by whoever exported it; no other problem is its own
        digest = _admitted(record.digest, problem=self._problem or told)
        known = await self._digests.digest(session)
        if known is None or (known.state.revision == 0 and not known.pieces):
            await self._write(DigestUpdate(state=replace(digest.state, revision=0), added=digest.pieces), record)
            _count(self._report.new, digest.state.strategy, len(digest.pieces), logs=1)
            return
        update = _grown(digest, known)
        if update is None:
            self._report.conflicts.add(f"{record.where}: the session {session} has another digest here; kept")
        elif not (update.added or update.changed or self._says_more(digest.state, known.state)):
            _count(self._report.known, digest.state.strategy, len(digest.pieces), logs=1)
        elif is_unvouched(digest) and not is_unvouched(known):  # it would gain the trust of what is here
            self._report.conflicts.add(f"{record.where}: somebody vouched for the digest of {session} here; kept")
        else:
            await self._write(update, record)
            _count(self._report.known, digest.state.strategy, len(digest.pieces) - len(update.added), logs=0)
            _count(self._report.new, digest.state.strategy, len(update.added), logs=0)
            _count(self._report.updated, digest.state.strategy, len(update.changed), logs=1)

    def _says_more(self, state: DigestState, known: DigestState) -> bool:
        """Whether the file says what is not known, or somebody vouches for it now."""
        told = (state.shown, state.current_task, state.suggested_response, state.system_prompt)
        here = (known.shown, known.current_task, known.suggested_response, known.system_prompt)
        return told != here or (state.problem is None and known.problem == UNVOUCHED)

    async def _write(self, update: DigestUpdate, record: ForeignDigest) -> None:
        if not self._dry_run and not await self._digests.apply(update):
            self._report.conflicts.add(f"{record.where}: the digest is being written by another process; kept")


def _count(counts: Counts, strategy: Strategy, nodes: int, *, logs: int) -> None:
    if strategy is Strategy.TREE:
        counts.nodes += nodes
    else:
        counts.observations += logs


def _grown(digest: SessionDigest, known: SessionDigest) -> DigestUpdate | None:
    """What makes the known digest the file's, where that only went on since; None where they differ."""
    if digest.state.strategy is not known.state.strategy:
        return None
    here = {piece.id: piece for piece in known.pieces}
    there = {piece.id: piece for piece in digest.pieces}
    if here.keys() - there.keys() or any(_core(piece) != _core(there[name]) for name, piece in here.items()):
        return None
    return DigestUpdate(
        state=replace(
            digest.state, revision=known.state.revision, problem=known.state.problem and digest.state.problem
        ),
        added=tuple(piece for piece in digest.pieces if piece.id not in here),
        changed=tuple(there[name] for name, piece in here.items() if piece != there[name]),
    )


def _core(piece: Piece) -> Piece:
    return replace(piece, parent=None, active=True)


def _admitted(digest: SessionDigest, *, problem: str | None) -> SessionDigest:
    if len(digest.pieces) > _MOST_PIECES:
        raise InputError(f"the digest has {len(digest.pieces)} pieces; the limit is {_MOST_PIECES}", field="pieces")
    pieces = tuple(_admitted_piece(piece, digest.state) for piece in digest.pieces)
    ids = {piece.id for piece in pieces}
    if len(ids) < len(pieces):
        raise InputError("two of its pieces have the same id", field="pieces")
    state = digest.state
    check_names((state.session, state.shown_for))
    check_aware(state.last_cycle_at, state.updated_at)
    state = DigestState(
        session=state.session,
        strategy=state.strategy,
        shown=tuple(name for name in state.shown if name in ids),
        shown_for=state.shown_for,
        shown_task=_text(state.shown_task),
        shown_response=_text(state.shown_response),
        current_task=_text(state.current_task),
        suggested_response=_text(state.suggested_response),
        system_prompt=_text(state.system_prompt),
        last_cycle_at=state.last_cycle_at,
        last_cycle=_text(state.last_cycle),
        problem=problem,
        updated_at=state.updated_at,
    )
    return SessionDigest(state=state, pieces=pieces)


def _admitted_piece(piece: Piece, state: DigestState) -> Piece:
    if piece.session != state.session or piece.strategy is not state.strategy:
        raise InputError(f"the piece {piece.id[:60]!r} is of another digest", field="pieces")
    check_names((piece.id, piece.parent, piece.made_by or None, piece.prompt or None, *piece.children, *piece.sources))
    if len(piece.sources) > _MOST_SOURCES or len(piece.children) > _MOST_SOURCES:
        raise InputError(f"the piece {piece.id!r} is made of more than {_MOST_SOURCES} others", field="pieces")
    if not 0 <= piece.start <= piece.end < 1 << 40 or not 0 <= piece.level < 1000 or piece.source_tokens < 0:
        raise InputError(f"the piece {piece.id!r} stands for no stretch of a session", field="pieces")
    check_aware(piece.created_at)
    return replace(piece, text=_text(piece.text) or "")


def _text(text: str | None) -> str | None:
    if text is not None and len(text) > _TEXT_MAX_CHARS:
        raise InputError(f"a text has {len(text)} characters; the limit is {_TEXT_MAX_CHARS}", field="text")
    return None if text is None else admit_evidence(text)
