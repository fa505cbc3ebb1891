"""What a look into the repository found out about an anchor, and when that is a reason to doubt a memory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from backstory.domain.anchors import Anchor, AnchorKind, anchors
from backstory.domain.doubt import Doubt
from backstory.domain.ids import MemoryId
from backstory.domain.memory import Memory

_SHOWN_CHARS = 120
_PLAIN_PATH = re.compile(r"[\w.@+$\-\[\]()/]{1,120}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """That something is in the repository, as of when the text that says so was last written."""

    anchor: Anchor
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """It was there and is not any more: since when, where that is known, and where a file went."""

    since: datetime | None = None
    moved_to: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """A name left the file in which it stood, and is in another one."""

    now_in: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class OffBranch:
    """A commit that is on no branch and under no tag: it was rewritten or given up."""


Finding = Gone | Elsewhere | OffBranch


def claims(memory: Memory) -> tuple[Claim, ...]:
    """What a memory stands on: all it names, but for what it says itself to be gone."""
    at = memory.times.updated  # not confirmed: who finds a memory useful has not looked at the code
    return tuple(Claim(anchor=anchor, at=at) for anchor in anchors(memory.content) if not anchor.said_gone)


def doubt(memory: MemoryId, claimed: Sequence[Claim], found: Mapping[Claim, Finding], *, now: datetime) -> Doubt | None:
    """The first reason to check a memory, in the order in which it names things; what is gone for good comes first."""
    faults = [(claim.anchor, found[claim]) for claim in claimed if claim in found]
    if not faults:
        return None
    anchor, finding = min(faults, key=lambda fault: _gravity(fault[1]))
    since = now if isinstance(finding, OffBranch) else finding.since or now
    return Doubt(memory=memory, anchor=anchor.text[:_SHOWN_CHARS], reason=reason(anchor, finding), since=since)


def reason(anchor: Anchor, finding: Finding) -> str:
    """One short sentence without a full stop: what is wrong with an anchor.

    The name of another file is the repository's, and so anybody's: one that could be read as words is left out.
    """
    name = anchor.text if len(anchor.text) <= _SHOWN_CHARS else anchor.text[:_SHOWN_CHARS] + "…"
    match finding:
        case Gone():
            since = "" if finding.since is None else f" since {finding.since:%Y-%m-%d}"
            moved = f", moved to {finding.moved_to}" if _is_plain(finding.moved_to) else ""
            gone = "is gone" if anchor.kind is AnchorKind.PATH else "is no longer in the code"
            return f"{name} {gone}{since}{moved}"
        case Elsewhere():
            now_in = finding.now_in if _is_plain(finding.now_in) else "another file"
            return f"{name} is no longer in {anchor.place} but in {now_in}"
        case OffBranch():
            return f"commit {name} is on no branch any more"
        case _:
            assert_never(finding)


def _gravity(finding: Finding) -> int:
    return 0 if isinstance(finding, Gone) and finding.moved_to is None else 1


def _is_plain(path: str | None) -> bool:
    return path is not None and _PLAIN_PATH.fullmatch(path) is not None
