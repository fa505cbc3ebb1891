"""How many tokens messages and notes take, each counted once in a process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from backstory.domain.conversation import Message
from backstory.domain.digest import Piece
from backstory.domain.transcript import TranscriptLimits, message_text
from backstory.ports.system import TokenCounter

_WHOLE = TranscriptLimits(part_chars=10**9, total_chars=10**9)
_BYTES_A_TOKEN = 4
_REMEMBERED = 10_000  # messages and texts whose size is known


class Sizes:
    """Counts with ``tokens``, and remembers what it said once it is ``settled``. Safe in several threads: requests ask
    while work is done aside."""

    def __init__(self, tokens: TokenCounter, *, settled: Callable[[], bool] = lambda: True) -> None:
        self._tokens = tokens
        self._settled = settled
        self._known: OrderedDict[tuple[str, str, int], int] = OrderedDict()
        self._lock = threading.Lock()

    def weigh(self, message: Message) -> int:
        """The tokens of a message as the host sends it. What was too large to be kept in place is estimated from its
        bytes."""
        chars = sum(len(part.text) + len(part.detail or "") for part in message.parts)
        known = self._counted((message.session, message.id, chars), lambda: message_text(message, limits=_WHOLE))
        apart = {
            ref.hash: ref.size for part in message.parts for ref in part.blobs if ref.media_type.startswith("text/")
        }
        return known + sum(apart.values()) // _BYTES_A_TOKEN

    def size(self, piece: Piece) -> int:
        """The tokens of a piece's text."""
        return self._counted((piece.session, piece.id, len(piece.text)), lambda: piece.text)

    def count(self, text: str) -> int:
        """The tokens of any text, which is not remembered."""
        return self._tokens.count(text)

    def _counted(self, key: tuple[str, str, int], text: Callable[[], str]) -> int:
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
        settled = self._settled()
        size = self._tokens.count(text())  # without the lock: a request does not wait for what the work counts
        if not settled:
            return size
        with self._lock:
            self._known[key] = size
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return size
