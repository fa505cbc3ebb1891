"""Notes of basic-memory as proposals: each observation, each relation, and each paragraph beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from backstory.adapters.formats.folder_walk import folders_below
from backstory.adapters.formats.markdown_statements import SHORT_CHARS, Statement, statements
from backstory.adapters.formats.outside_files import Unfit, entries, is_plain, named, read_file, read_start, text_of
from backstory.adapters.formats.proposals import changed_at, known_by, moment, proposal
from backstory.domain.interchange import ForeignMemory, ForeignRecord, Remark, Unreadable
from backstory.domain.memory import Kind
from backstory.errors import InputError
from backstory.ports.formats import FoundStore, ReadLimits

_ENDING = ".md"
_START_BYTES = 8 * 1024
_LOOKED_AT_FILES = 200
_FIELD = re.compile(r"([A-Za-z_][\w-]{0,60}):[ \t]*(.*)")
_ITEM = re.compile(r"[ \t]*-[ \t]+(.*)")
_OBSERVATION = re.compile(r"\[([^\[\]()\n]{2,60})\]\s+(.+)", re.DOTALL)
_RELATION = re.compile(r"([^\[\]]{1,100}?)\s*\[\[([^\[\]]{1,300})\]\]\s*(\([^()]{0,500}\))?")
_TAG = re.compile(r"(?:^|(?<=\s))#([\w/-]{1,64})(?=\s|$)")
_KINDS = {kind.value: kind for kind in Kind} | {
    "lesson": Kind.LEARNING,
    "insight": Kind.LEARNING,
    "problem": Kind.BLOCKER,
    "technique": Kind.PATTERN,
    "config": Kind.ENVIRONMENT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Note:
    """What the head of a note says, and where it stands."""

    title: str
    permalink: str
    tags: tuple[str, ...]
    learned: datetime | None
    undated: datetime
    where: str


class BasicMemory:
    """Found where a note has the head that basic-memory writes: a title, a type and a permalink."""

    name = "basic-memory"

    def find(self, place: str) -> Sequence[FoundStore]:
        path = named(place)
        found = any(_is_note(file) for _, file in zip(range(_LOOKED_AT_FILES), _notes(path), strict=False))
        return [FoundStore(format=self.name, place=str(path))] if found else []

    def read(self, store: FoundStore, *, limits: ReadLimits) -> Iterator[ForeignRecord]:
        """Known again by the note's permalink and the words."""
        root = Path(store.place)
        if not root.exists():
            raise InputError(f"{store.place} does not exist", field="path")
        seen: set[str] = set()
        for number, file in enumerate(_notes(root), start=1):
            if number > limits.files:
                raise InputError(f"{store.place} has more than {limits.files:,} notes", field="path")
            where = file.name if file == root else str(file).removeprefix(f"{root}/")
            try:
                text = text_of(read_file(file, at_most=limits.record_bytes))
            except Unfit as problem:
                yield Unreadable(where=where, reason=str(problem))
                continue
            for record in _records(text, file, where):
                if isinstance(record, ForeignMemory):
                    if record.memory.id in seen:
                        continue
                    seen.add(record.memory.id)
                yield record


def _notes(path: Path) -> Iterator[Path]:
    if is_plain(path):
        if path.suffix == _ENDING:
            yield path
        return
    for label, folder in folders_below(str(path)):
        if not any(name.startswith(".") for name in label.split("/")):
            yield from (file for file in entries(folder, ends=_ENDING) if is_plain(file))


def _records(text: str, file: Path, where: str) -> Iterator[ForeignRecord]:
    head = _head(text)
    if not _is_head(head):
        yield Remark(where=where, text="not a note of basic-memory: left out")
        return
    tags = head.get("tags", "")
    note = _Note(
        title=head["title"],
        permalink=head["permalink"],
        tags=tuple(tag.strip(" '\"") for tag in tags.strip("[]").split(",")),
        learned=next((date for name in ("created", "created_at", "date") if (date := moment(head.get(name)))), None),
        undated=changed_at(file),
        where=where,
    )
    for said in statements(text):
        if len(said.text) > SHORT_CHARS:
            yield Remark(where=f"{where}, line {said.line}", text=f"a text of {len(said.text):,} characters: left out")
        elif said.text != note.title:
            yield _proposal(said, note)


def _proposal(said: Statement, note: _Note) -> ForeignMemory:
    """An observation or relation as what it says; any other paragraph as it stands."""
    tags, raw, kind, text = note.tags, {"title": note.title}, Kind.FACT, said.text
    if observation := _OBSERVATION.fullmatch(said.text):
        category, text = observation[1].strip(), observation[2]
        tags = (category, *_TAG.findall(text), *tags)
        kind = _KINDS.get(category.lower(), Kind.FACT)
        text = " ".join(_TAG.sub("", text).split()) if "\n" not in text else text
        raw["category"] = category
    elif relation := _RELATION.fullmatch(said.text):
        text = " ".join(filter(None, (note.title, relation[1].strip().replace("_", " "), relation[2], relation[3])))
        raw["relation"] = relation[1].strip()
    return proposal(
        BasicMemory.name, [note.permalink, known_by(said.text)], text or said.text,
        where=f"{note.where}, line {said.line}", learned=note.learned, undated=note.undated, kind=kind,
        area=note.permalink, tags=tags, raw=raw,
    )  # fmt: skip


def _head(text: str) -> dict[str, str]:
    """The front matter, as far as it is plain: values without their quotes, a list's items with commas between."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != "---":
        return {}
    head: dict[str, str] = {}
    key = ""
    for line in lines[1:]:
        if line.strip() in ("---", "..."):
            return head
        if told := _FIELD.fullmatch(line):
            key = told[1]
            head[key] = told[2].strip().strip("'\"")
        elif key and (item := _ITEM.fullmatch(line)):
            head[key] = f"{head[key]},{item[1].strip()}".lstrip(",")
    return {}


def _is_head(head: Mapping[str, str]) -> bool:
    """Whether it is basic-memory's: site generators have permalinks too, which are addresses, and layouts."""
    permalink = head.get("permalink", "")
    return bool(permalink and head.get("title") and head.get("type")) and not (
        permalink.startswith("/") or "://" in permalink or "layout" in head
    )


def _is_note(file: Path) -> bool:
    start = read_start(file, size=_START_BYTES)
    return start.startswith((b"---", b"\xef\xbb\xbf---")) and _is_head(_head(start.decode("utf-8-sig", "replace")))
