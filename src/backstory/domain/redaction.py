"""Keep secrets and private passages out of everything that is stored or sent: found here, masked here.

What a secret looks like is in ``secret_shapes`` (by form), ``secret_names`` (by name) and ``secret_values``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backstory.domain.secret_shapes import Span

PRIVATE_MASK = "[private]"
# Taking one secret out may lay bare another one beside it. Real text settles at the second pass.
_PASSES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """Text without its secrets. ``secrets`` names their kinds in the order they stood (``github-token``, ...)."""

    text: str
    secrets: tuple[str, ...]


def redact_secrets(text: str) -> Redacted:
    """Replace each secret by a mark that tells its kind, such as ``[secret:github-token]``.

    Names, headers and hosts around a secret stay. Stand-ins (``<your-key>``, ``changeme``, ``****``), references to
    variables and vaults, hashes, UUIDs and public keys are no secrets. Redacting twice gives what redacting once
    gives. Linear: 0.6 ms for a page of 2 kB, 0.2 to 0.6 s for 1 MB of prose or code, up to 2 s for 1 MB that is
    nothing but names and values of secrets.
    """
    secrets: list[str] = []
    for _ in range(_PASSES):
        spans = _merged(_find(text))
        if not spans:
            break
        secrets += [span.kind for span in spans]
        text = _masked(text, spans)
    return Redacted(text=text, secrets=tuple(secrets))


def _find(text: str) -> list[Span]:
    """All findings of all rules by start; of two at one start, the more exact rule's first."""
    # Imported here, because compiling the rules takes 40 ms, which a process that stores nothing need not spend.
    from backstory.domain.secret_names import find_named
    from backstory.domain.secret_shapes import find_cookies, find_flags, find_framed, find_key_blocks, find_tokens

    lowered = _lower(text)
    found = [*sorted(find_key_blocks(text)), *find_tokens(text)]
    found += sorted((*find_framed(text, lowered), *find_flags(text, lowered), *find_cookies(text, lowered)))
    found += find_named(text, lowered)
    found.sort(key=lambda span: span.start)  # keeps the order of the rules where two begin at one place
    return found


def _lower(text: str) -> str:
    """Small letters, each in its place: the dotted capital I is the one character that would become two."""
    return text.replace("\u0130", "I").lower()


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Join spans that overlap, so that all of each is masked; the first one names the kind."""
    result: list[Span] = []
    for span in spans:
        if result and span.start < result[-1].end:
            result[-1] = result[-1]._replace(end=max(result[-1].end, span.end))
        else:
            result.append(span)
    return result


def _masked(text: str, spans: Iterable[Span]) -> str:
    pieces: list[str] = []
    done = 0
    for span in spans:
        pieces += (text[done : span.start], f"[secret:{span.kind}]")
        done = span.end
    return "".join((*pieces, text[done:]))


# --- private passages -------------------------------------------------------------------------------------------------

_TAG = re.compile(r"<\s{0,8}(?P<close>/?)\s{0,8}private(?:\s[^<>]*)?>", re.IGNORECASE)


def strip_private(text: str) -> str:
    """Replace each ``<private>`` passage, tags and all, by ``[private]``.

    Any letter case; passages may span lines and nest; one left open reaches to the end. A closing tag without a
    passage is dropped. A tag alone in inline code (`` `<private>` ``) is a mention and stays, unless a closing tag
    shows that a passage was meant. When in doubt, text is private. Linear.
    """
    for _ in range(_PASSES):
        stripped = _strip_once(text)
        if stripped == text:
            return text
        text = stripped
    # Only hostile text gets here: tags made of torn tags. Nothing behind the first one is kept.
    left = next((tag for tag in _TAG.finditer(text) if not _is_mention(text, tag)), None)
    return text if left is None else text[: left.start()] + PRIVATE_MASK


def _strip_once(text: str) -> str:
    pieces: list[str] = []
    done, depth = 0, 0
    mention: re.Match[str] | None = None
    for tag in _TAG.finditer(text):
        if depth == 0 and _is_mention(text, tag):
            mention = mention or (None if tag["close"] else tag)
        elif not tag["close"]:
            if depth == 0:
                pieces += (text[done : tag.start()], PRIVATE_MASK)
            depth += 1
        elif depth > 0:
            depth -= 1
            done, mention = tag.end(), None
        else:
            pieces += (text[done : mention.start()], PRIVATE_MASK) if mention else (text[done : tag.start()],)
            done, mention = tag.end(), None
    return "".join(pieces) if depth else "".join((*pieces, text[done:]))


def _is_mention(text: str, tag: re.Match[str]) -> bool:
    return text[tag.start() - 1 : tag.start()] == "`" and text[tag.end() : tag.end() + 1] == "`"


def is_fully_private(text: str) -> bool:
    """Whether nothing is left to store: something is private, and no letter or digit stands outside it."""
    stripped = strip_private(text)
    if PRIVATE_MASK not in stripped:
        return False
    return not any(char.isalnum() for char in stripped.replace(PRIVATE_MASK, ""))
