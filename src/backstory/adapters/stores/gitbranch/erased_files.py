"""What becomes of a file of the ref when texts are taken out: lines of erased memories go, others are written anew."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from backstory.adapters.stores.gitbranch.tree import CHANGES, DELETIONS, PROJECTS, digest, is_day_file, placed, text_of
from backstory.codecs.erasure import rewritten_change, rewritten_text
from backstory.codecs.logfmt import Line, Record, encode_deletion, encode_record, parse_lines, render_lines
from backstory.domain.erasure import Rewrite
from backstory.domain.memory import Active, Memory, Sensitivity
from backstory.errors import InputError

_OUR_FIELDS = re.compile(r"\b(?:ts|original_ts|action|type|scope|content|issue|tags|reason)=")


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedFiles:
    """What goes: memories by id, their lines by digest, and what ``rewrite`` takes out of everything else."""

    memories: Collection[str]
    lines: Collection[str]
    rewrite: Rewrite
    at: datetime

    def transform(self, path: str, data: bytes) -> bytes | None:
        """See ``rewriting.Transform``."""
        if path.startswith(PROJECTS):
            return data
        text = text_of(data)
        if path.startswith(CHANGES):
            kept = rewritten_change(text, self.memories, self.rewrite, at=self.at)
        elif path == DELETIONS or is_day_file(path):
            return self._lines(text, data)
        else:
            kept = rewritten_text(text, self.rewrite)
        return data if kept == text else kept.encode("utf-8", "surrogateescape")

    def _lines(self, text: str, data: bytes) -> bytes | None:
        """Lines that do not change stay byte for byte; a file without any goes."""
        before = parse_lines(text)
        after = [kept for line in before if (kept := self._line(line)) is not None]
        if after == [line.text for line in before]:
            return data
        return render_lines(after).encode("utf-8", "surrogateescape") if after else None

    def _line(self, line: Line) -> str | None:
        record = line.record if line.deletion is None else line.deletion.record
        if record is None:
            return self.rewrite(line.text)
        if digest(line.text) in self.lines or _digest(record) in self.lines:
            return None
        kept, reason = self._record(record), "" if line.deletion is None else line.deletion.reason
        if kept == record and self.rewrite(reason) == reason and not self._holds(line, record):
            return line.text
        try:
            if line.deletion is None:
                return encode_record(kept)
            return encode_deletion(replace(line.deletion, record=kept, reason=self.rewrite(reason)))
        except InputError:
            return self.rewrite(line.text)  # it was no record that anybody could write

    def _holds(self, line: Line, record: Record) -> bool:
        """Whether what goes stands in a field that is none of ours. Times, types and names of fields are not what
        anybody said."""
        rest = _OUR_FIELDS.sub("", line.text)
        for name in (record.ts, record.type, *(() if line.deletion is None else (line.deletion.ts,))):
            rest = rest.replace(name, "")
        return self.rewrite(rest) != rest

    def _record(self, record: Record) -> Record:
        return replace(
            record,
            scope=self.rewrite(record.scope),
            content=self.rewrite(record.content),
            issue=None if record.issue is None else self.rewrite(record.issue),
            tags=tuple(dict.fromkeys(self.rewrite(tag) for tag in record.tags)),
        )


def lines_of(states: Iterable[Memory]) -> set[str]:
    """The digests of the lines that memories had on the ref in any of their states, as another tool wrote them."""
    found: set[str] = set()
    for state in states:
        line = placed(replace(state, status=Active(), sensitivity=Sensitivity.NORMAL))
        if line is not None:
            found |= {line.digest, digest(line.text)}
    return found


def _digest(record: Record) -> str | None:
    try:
        return digest(encode_record(record))
    except InputError:
        return None
