"""What holds in a session's digest, whatever keeps it: which changes are refused, and which pieces lead nowhere."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from backstory.domain.digest import DigestUpdate, Piece, SessionDigest
from backstory.errors import InputError


def check_added(update: DigestUpdate, known: Collection[str]) -> None:
    """Raise InputError where a piece cannot be added; ``known`` are the ids that the session has already."""
    taken = set(known)
    for piece in update.added:
        if piece.session != update.state.session:
            raise InputError(f"piece {piece.id} is of session {piece.session}, not of this one", field="added")
        if piece.id in taken:
            raise InputError(f"session {piece.session} has a piece {piece.id} already", field="added")
        taken.add(piece.id)


def mended(digest: SessionDigest) -> list[Piece]:
    """The pieces that lead to one that is not there, as they have to be.

    What a missing parent covered stands for itself again, as when the parent is dropped; a missing child is no longer
    named.
    """
    ids = {piece.id for piece in digest.pieces}
    right = [_mended(piece, ids) for piece in digest.pieces]
    return [piece for piece, was in zip(right, digest.pieces, strict=True) if piece != was]


def _mended(piece: Piece, ids: Collection[str]) -> Piece:
    if piece.parent is not None and piece.parent not in ids:
        piece = replace(piece, parent=None, active=True)
    if any(child not in ids for child in piece.children):
        piece = replace(piece, children=tuple(child for child in piece.children if child in ids))
    return piece


def broken_links(digest: SessionDigest) -> list[str]:
    """A sentence for each piece that leads to one that is not there, in the order of the pieces."""
    was = {piece.id: piece for piece in digest.pieces}
    return [_said(was[piece.id], piece) for piece in mended(digest)]


def _said(was: Piece, right: Piece) -> str:
    missing = [child for child in was.children if child not in right.children]
    troubles = [f"its parent {was.parent} is not there"] if was.parent != right.parent else []
    troubles += [f"its child {missing[0]} is not there"] if len(missing) == 1 else []
    troubles += [f"its children {', '.join(missing)} are not there"] if len(missing) > 1 else []
    return f"piece {was.id} of session {was.session}: {'; '.join(troubles)}"
