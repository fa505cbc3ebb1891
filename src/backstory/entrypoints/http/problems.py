"""Failures as problem JSON (RFC 9457): what is wrong, in which field, and what the limit is. Nothing of the inside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

MEDIA_TYPE = "application/problem+json"
KINDS = {
    "malformed": (400, "The request cannot be read"),
    "not-authorised": (401, "The token is missing or wrong"),
    "forbidden-origin": (403, "This web page may not call the server"),
    "out-of-scope": (403, "It belongs to another project or session"),
    "not-found": (404, "There is no such thing"),
    "method-not-allowed": (405, "The address is not for this method"),
    "too-slow": (408, "The request did not arrive in time"),
    "conflict": (409, "It changed, or several things fit"),
    "too-large": (413, "The request is too large"),
    "wrong-content-type": (415, "The body must be JSON"),
    "wrong-host": (421, "The server is not known by this name"),
    "invalid": (422, "A value is wrong"),
    "too-many-headers": (431, "The request has too many headers"),
    "internal": (500, "Something else failed"),
    "unavailable": (503, "Memory is not available right now"),
    "no-answer-in-time": (504, "The answer took too long"),
}
"""Every kind of problem: its status and title. The page of the server is made from it."""

Headers = list[tuple[bytes, bytes]]


@dataclass(kw_only=True, eq=False)  # not frozen: an exception on its way is written to
class Problem(Exception):
    """One failure as a client is told of it; ``name`` is the field at fault. Also raised, where that is shorter."""

    kind: str
    detail: str
    name: str | None = None
    value: str | None = None
    limit: str | None = None
    hint: str | None = None
    candidates: Sequence[str] = ()
    headers: Headers = field(default_factory=list)

    @property
    def status(self) -> int:
        """The status code of the answer."""
        return KINDS[self.kind][0]

    def body(self) -> bytes:
        """The object, with the members that say something."""
        told: dict[str, object] = {
            "type": f"urn:backstory:problem:{self.kind}",
            "title": KINDS[self.kind][1],
            "status": self.status,
            "detail": self.detail,
        }
        optional = {"field": self.name, "value": self.value, "limit": self.limit, "hint": self.hint}
        told |= {key: value for key, value in optional.items() if value is not None}
        told |= {"candidates": list(self.candidates)} if self.candidates else {}
        return json.dumps(told, ensure_ascii=True).encode()

    def all_headers(self) -> Headers:
        """The headers of the answer."""
        length = str(len(self.body())).encode()
        return [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", length), *self.headers]
