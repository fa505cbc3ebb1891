"""Which nodes of a summary tree tell of something: words looked up in summaries and in the messages behind them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from backstory.domain.digest import Piece
from backstory.domain.text import QueryTerm, analyse, analyse_query
from backstory.domain.truncation import truncate_chars

SNIPPET_CHARS = 240
_TOGETHER = 0.3  # the share of a score that words have to earn by standing in one text


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTexts:
    """A node with the texts behind it, each under its title. Its summary is searched too."""

    node: Piece
    behind: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHit:
    """A node that was found. ``score`` lies in (0, 1]. ``title`` names the text behind it that fits best, ``snippet``
    is a line of that; both are empty when its summary fits as well."""

    node: Piece
    score: float
    title: str = ""
    snippet: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    texts: NodeTexts
    found: tuple[frozenset[str], ...]  # of the query's tokens: in the summary, then in each text behind


def search_nodes(nodes: Sequence[NodeTexts], query: str, *, limit: int) -> list[NodeHit]:
    """Nodes in which words of the query stand, best first; ties go to the lower level, then to the later node.

    A rare word counts more than one that many nodes have. Cost: about 0.4 s for a million characters.
    """
    terms = analyse_query(query)
    tokens = frozenset(term.token for term in terms)
    read = [_Read(texts=texts, found=tuple(_found(texts, tokens))) for texts in nodes]
    weights = _weights(terms, read)
    hits = [hit for node in read if (hit := _hit(node, weights)) is not None]
    return sorted(hits, key=lambda hit: (-hit.score, hit.node.level, -hit.node.start))[:limit]


def _found(texts: NodeTexts, tokens: frozenset[str]) -> Iterator[frozenset[str]]:
    yield tokens.intersection(analyse(texts.node.text))
    for _, text in texts.behind:
        yield tokens.intersection(analyse(text))


def _weights(terms: Sequence[QueryTerm], read: Sequence[_Read]) -> Mapping[str, float]:
    """What each token counts; all together 1."""
    nodes = Counter(token for node in read for token in frozenset().union(*node.found))
    rarity = {term.token: term.weight * math.log1p(len(read) / (nodes[term.token] or 0.5)) for term in terms}
    whole = sum(rarity.values())
    return {token: weight / whole for token, weight in rarity.items()} if whole else {}


def _hit(read: _Read, weights: Mapping[str, float]) -> NodeHit | None:
    together = [sum(weights[token] for token in found) for found in read.found]
    anywhere = sum(weights[token] for token in frozenset().union(*read.found))
    if not anywhere:
        return None
    best = max(range(len(together)), key=lambda at: (together[at], -at))
    score = (1 - _TOGETHER) * anywhere + _TOGETHER * together[best]
    if best == 0:
        return NodeHit(node=read.texts.node, score=min(score, 1.0))
    title, text = read.texts.behind[best - 1]
    return NodeHit(node=read.texts.node, score=min(score, 1.0), title=title, snippet=_snippet(text, weights))


def _snippet(text: str, weights: Mapping[str, float]) -> str:
    """The line of a text, or the piece of a long line, that tells most; of equals the first."""
    pieces = [piece for line in text.splitlines() for piece in _in_pieces(line.strip())]
    return max(pieces, key=lambda piece: sum(weights.get(token, 0.0) for token in set(analyse(piece))), default="")


def _in_pieces(line: str) -> Iterator[str]:
    while len(line) > SNIPPET_CHARS:
        piece = truncate_chars(line, SNIPPET_CHARS) or line[:SNIPPET_CHARS]  # one endless character
        border = piece.rfind(" ", SNIPPET_CHARS // 2)
        piece = piece if border < 0 else piece[:border]
        yield piece.rstrip() + "…"
        line = line[len(piece) :].lstrip()
    if line:
        yield line
