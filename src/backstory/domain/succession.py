"""What a memory takes over from the one it replaces. Which one that is, services find out; marking it is ``supersede``
in ``memory.py``."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from backstory.domain.memory import Memory, Tier, Visibility, narrower, stricter
from backstory.domain.provenance import is_injectable, trust
from backstory.errors import InputError


def succeed(
    new: Memory, old: Memory, *, visibility: Visibility | None, lifetime_named: bool, otherwise_until: datetime
) -> Memory:
    """``new`` as the successor of ``old``: whatever was not named for it stays as it was.

    ``visibility`` is the one that was named; without one, the old readers stay the readers. ``lifetime_named``: tier or
    expiry of ``new`` were said, so they hold. The pin stays, and what was withheld is not given away. A temporary
    successor lives as long as the old one had left, or until ``otherwise_until``. From outside text (below ``agent``)
    what is trusted more takes over neither pin nor lifetime: a file that says it is core must not make its correction
    core. Raises InputError for readers fewer than before: the others would lose what they know, with nothing in its
    place.
    """
    decided = is_injectable(old.origin) or trust(old.origin) >= trust(new.origin)
    circle = visibility or old.visibility
    if narrower(circle, old.visibility) is not old.visibility:
        raise InputError(
            f"visibility is {circle.value}, but memory #{old.n} is for more readers ({old.visibility.value});"
            " they would lose it",
            field="visibility",
            hint="leave the visibility out, or change that of the old memory first",
        )
    if circle is old.visibility and circle is not Visibility.GLOBAL:
        new = replace(new, project=old.project, session=old.session if circle is Visibility.SESSION else new.session)
    if decided and not lifetime_named:
        new = replace(new, tier=old.tier, expires_at=_rest_of_life(old, new, otherwise_until))
    return replace(
        new,
        visibility=circle,
        pinned=new.pinned or (decided and old.pinned),
        sensitivity=stricter(new.sensitivity, old.sensitivity),
    )


def _rest_of_life(old: Memory, new: Memory, otherwise: datetime) -> datetime | None:
    if old.tier is not Tier.TEMPORARY:
        return None
    still = old.expires_at is not None and old.expires_at > new.times.learned
    return old.expires_at if still else otherwise
