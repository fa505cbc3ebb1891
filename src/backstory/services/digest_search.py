"""Find words in what sessions were condensed to: the nodes of their trees, and their observations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from backstory.domain.digest import Piece, SessionDigest, Strategy
from backstory.domain.ids import SessionId
from backstory.domain.interchange import is_unvouched
from backstory.domain.scope import Viewer, may_read
from backstory.domain.time_range import TimeRange
from backstory.domain.tree_search import NodeTexts, search_nodes
from backstory.ports.conversation import Archive
from backstory.ports.digests import DigestStore
from backstory.services.conversation import Aside, at_once

MAX_SESSIONS = 200
"""Sessions that are looked through, the most recently updated."""
_LEAST_SCORE = 0.5  # of the weight of the words asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestHit:
    """A note that was found: the piece, the line of it that fits best, and how well, in (0, 1]. ``is_unvouched``: it
    came from a file that nobody vouched for."""

    piece: Piece
    line: str
    score: float
    is_unvouched: bool = False


class DigestSearch:
    """Searches the digests of the sessions that a viewer may read."""

    def __init__(self, digests: DigestStore, archive: Archive, *, aside: Aside = at_once) -> None:
        """``aside`` runs the looking up of words: about 0.4 s for a million characters of notes."""
        self._digests = digests
        self._archive = archive
        self._aside = aside

    async def search(
        self,
        query: str,
        viewer: Viewer,
        *,
        limit: int,
        session: SessionId | None = None,
        made: TimeRange | None = None,
    ) -> list[DigestHit]:
        """The notes in which at least half of what is asked stands, best first; of one session, or made within a range.
        None for a query without words."""
        if not query.strip() or (viewer.project is None and not viewer.all_projects):
            return []
        newest = await self._archive.sessions(
            limit=MAX_SESSIONS, project=None if viewer.all_projects else viewer.project
        )
        readable = [each.id for each in newest if may_read(each, viewer) and session in (None, each.id)]
        digests = [digest for name in readable if (digest := await self._digests.digest(name)) is not None]
        pieces = [piece for digest in digests for piece in _searched(digest, made)]
        hits = await self._aside(partial(_found, pieces, query, limit))
        unvouched = {digest.state.session for digest in digests if is_unvouched(digest)}
        return [replace(hit, is_unvouched=hit.piece.session in unvouched) for hit in hits]


def _searched(digest: SessionDigest, made: TimeRange | None) -> list[Piece]:
    """The pieces that are looked through: all nodes of a tree, and the observations that no reflection replaced."""
    return [
        piece
        for piece in digest.pieces
        if piece.text.strip()
        and (piece.active or piece.strategy is Strategy.TREE)
        and (made is None or made.contains(piece.created_at))
    ]


def _found(pieces: Sequence[Piece], query: str, limit: int) -> list[DigestHit]:
    # the text as one behind the node, so that the best line of it comes back
    nodes = [NodeTexts(node=replace(piece, text=""), behind=(("", piece.text),)) for piece in pieces]
    hits = search_nodes(nodes, query, limit=limit)
    return [DigestHit(piece=hit.node, line=hit.snippet, score=hit.score) for hit in hits if hit.score >= _LEAST_SCORE]
