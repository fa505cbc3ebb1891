"""What of a repository a memory names: files, names in the code, command-line flags, commits.

Only what is hardly anything else counts: a memory is doubted when its anchor is gone, so a word that merely looks like
one would do harm. Whether an anchor is there is looked up elsewhere; what is found then is in ``anchor_findings.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from backstory.domain.anchor_words import (
    BRANDS,
    FILE_ENDINGS,
    FILES_WITHOUT_ENDING,
    NO_FILES,
    TOOLS,
    TOP_LEVEL,
)
from backstory.domain.said_gone import Absence, absences

MAX_ANCHORS = 40
MAX_TEXT_CHARS = 20_000  # of a memory are read
_MAX_PATH_CHARS = 250
_MAX_PIECE_CHARS = 400  # without a blank: longer ones are data
_MAX_NAME_CHARS = 100

_BEFORE_FLAG = 60  # characters in which the tool of a flag is looked for

_NO_ANCHORS = re.compile(
    r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*+://\S+"  # addresses
    r"|\bwww\.\S+"
    r"|(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)++(?::\S+)?"  # mail, and files of other machines
    r"|(?<![\w/])@[\w.-]+/[\w.-]+(?:/[\w./-]*)?"  # packages with an owner
    r"|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
    r"|\b(?:sha\d+|md5)[:-][0-9a-fA-F+/=]+"
)
_PIECE = re.compile(r"[^\s`'\"“”‘’„,;|=!…]+")
_TAIL = re.compile(r"(?P<path>[^:#]+)(?:(?:::?|#)(?P<tail>.*))", re.DOTALL)
_LINE = re.compile(r"L?\d+(?:[-:]L?\d+)*")
_SEGMENT = re.compile(r"[\w.@+$\-\[\]()]+")
_ENDING = re.compile(r"\.([A-Za-z]\w{0,9})$")
_HIDDEN_FILE = re.compile(r"\.[a-z][\w.-]{2,}")
_CHAIN = re.compile(r"(?<![\w$@#\\/-])[A-Za-z_$][\w$]*(?:(?:\.|::|->)[A-Za-z_$][\w$]*)*(?:\(\))?(?![\w$/\\]|-\w)")
_STEPS = re.compile(r"\.|::|->")
_SNAKE = re.compile(r"_*[A-Za-z][A-Za-z0-9]*(?:_+[A-Za-z0-9]+)+_*|__?[a-z][a-z0-9]{3,}(?:__)?")
_HUMPS = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_PLURAL = re.compile(r"[A-Z]{2,}s|v\d+[A-Z]?")
_LOCALE = re.compile(r"[a-z]{2}_[A-Z]{2}")
_FLAG = re.compile(r"(?<![\w-])--[A-Za-z][\w-]*\w")
_COMMIT = re.compile(r"(?<![\w./:#@+%-])[0-9a-f]{7,40}(?![\w/:@+%-]|\.\w)")
_CALLED_COMMIT = re.compile(r"\b(?:commits?|revisions?|rev|sha|reverts?|reverted|cherry-pick(?:ed)?)\W{1,3}$", re.I)
_STANDS_IN = re.compile(
    r"`?\s*(?:\(|(?:(?:is |was |are )?(?:defined|declared|implemented|found) |lives |sits )?in )[`\s]*"
)


class AnchorKind(StrEnum):
    """What sort of thing is named. ``symbol`` is any name in the code: function, class, constant, variable."""

    PATH = "path"
    SYMBOL = "symbol"
    FLAG = "flag"
    COMMIT = "commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """One thing named, as it is written; a folder ends with a slash, a leading ``./`` and line numbers are left out.

    ``place`` is the file in which the text says a symbol stands. ``said_gone`` tells that the text itself says the
    thing is gone, moved or replaced: its absence is then no reason to doubt.
    """

    kind: AnchorKind
    text: str
    place: str | None = None
    said_gone: bool = False


def anchors(text: str) -> tuple[Anchor, ...]:
    """What a text names, in order of first appearance, each once; at most ``MAX_ANCHORS``. Linear in the text."""
    text = _NO_ANCHORS.sub(lambda match: " " * len(match[0]), text[:MAX_TEXT_CHARS])
    gone = absences(text)
    paths = list(_paths(text))
    rest = text
    for _, start, end in paths:
        rest = rest[:start] + " " * (end - start) + rest[end:]
    found = [*paths, *_symbols(rest, text, paths), *_flags(rest), *_commits(rest)]
    kept: dict[tuple[AnchorKind, str], Anchor] = {}
    for anchor, start, _ in sorted(found, key=lambda each: each[1]):
        key = (anchor.kind, anchor.text)
        known = kept.setdefault(key, replace(anchor, said_gone=_is_said_gone(gone, start)))
        if known.place is None and anchor.place is not None:
            kept[key] = replace(known, place=anchor.place)
    return tuple(kept.values())[:MAX_ANCHORS]


_Found = tuple[Anchor, int, int]


def _is_said_gone(gone: tuple[Absence, ...], at: int) -> bool:
    return any(absence.covers(at) for absence in gone)


def _paths(text: str) -> Iterator[_Found]:
    """The files and folders, and what is named behind one: ``src/cart.py::total``."""
    for match in _PIECE.finditer(text):
        if len(match[0]) > _MAX_PIECE_CHARS:
            continue
        piece, start = _bare(match[0], match.start())
        if "/" not in piece and "." not in piece and piece not in FILES_WITHOUT_ENDING:
            continue
        path, tail = piece, None
        if with_tail := _TAIL.fullmatch(piece):
            path, tail = with_tail["path"], with_tail["tail"]
            if "/" in tail and "/" not in path and "." not in path:  # HEAD:src/cart.py
                path, tail = tail, None
        if (name := _path(path)) is None:
            continue
        end = start + len(piece)
        yield Anchor(kind=AnchorKind.PATH, text=name), start, end
        if tail and not _LINE.fullmatch(tail):
            symbol = re.split(r"[.:#]+", tail.removesuffix("()"))[-1]
            if _is_identifier(symbol) and (_is_code_name(symbol) or tail.endswith("()")):
                yield Anchor(kind=AnchorKind.SYMBOL, text=symbol, place=name), start, end


def _bare(piece: str, start: int) -> tuple[str, int]:
    """A piece without the brackets and punctuation around it, and where it then begins."""
    bare = piece.lstrip("([{<")
    start += len(piece) - len(bare)
    while bare:
        last = bare[-1]
        opening = {")": "(", "]": "[", "}": "{", ">": "<"}.get(last)
        if last in ".:?" or (opening and bare.count(last) > bare.count(opening)):
            bare = bare[:-1]
        else:
            break
    return bare, start


def _path(text: str) -> str | None:
    """The path that a piece of text is, or None."""
    path = text.removeprefix("./")
    segments = path.removesuffix("/").split("/")
    if len(path) > _MAX_PATH_CHARS or path[:1] in ("", "/", "~", "$", "@", "-"):
        return None
    if not all(_SEGMENT.fullmatch(segment) and segment.strip(".") for segment in segments):
        return None
    last = segments[-1]
    if len(segments) == 1:
        is_path = (path.endswith("/") and _is_folder(last)) or (not path.endswith("/") and _is_file_name(last))
        return path if is_path else None
    if _is_host(segments[0]):
        return None
    if path.endswith("/") or text.startswith("./"):
        return path if re.search("[A-Za-z]", last) else None
    ending = _ENDING.search(last)
    named = last in FILES_WITHOUT_ENDING or bool(_HIDDEN_FILE.fullmatch(last))
    return path if named or (ending is not None and ending.start() > 0) else None


def _is_folder(name: str) -> bool:
    return len(name) > 1 and name[0].isalpha() and not _is_host(name)


def _is_file_name(name: str) -> bool:
    """Whether a name without a folder is a file's: its ending is a usual one, and it is no product's."""
    if name in FILES_WITHOUT_ENDING:
        return name.casefold() != name and name not in ("README", "BUILD", "WORKSPACE", "LICENSE", "CHANGELOG")
    if _HIDDEN_FILE.fullmatch(name):
        return name[1:] not in FILE_ENDINGS | TOP_LEVEL
    ending = _ENDING.search(name)
    return (
        ending is not None
        and ending.start() > 0
        and ending[1].lower() in FILE_ENDINGS
        and "(" not in name
        and name.casefold() not in NO_FILES
        and re.search("[A-Za-z]", name[: ending.start()]) is not None
    )


def _is_host(name: str) -> bool:
    stem, dot, top = name.rpartition(".")
    return bool(dot and stem) and (top.lower() in TOP_LEVEL or name.casefold() in NO_FILES or top.isdigit())


def _symbols(rest: str, text: str, paths: list[_Found]) -> Iterator[_Found]:
    """Names in the style of code; each part of ``CartService.add_item()`` counts for itself."""
    begins = {start: anchor.text for anchor, start, _ in paths if anchor.kind is AnchorKind.PATH}
    for match in _CHAIN.finditer(rest):
        chain, is_called = match[0].removesuffix("()"), match[0].endswith("()")
        parts = _STEPS.split(chain)
        if len(parts) > 1 and _is_host(chain) and chain == chain.lower() and not is_called:
            continue
        behind = _STANDS_IN.match(text, match.end())
        place = None if behind is None else begins.get(behind.end())
        for position, part in enumerate(parts):
            called = is_called and position == len(parts) - 1
            if _is_identifier(part) and (_is_code_name(part) or called):
                yield Anchor(kind=AnchorKind.SYMBOL, text=part, place=place), match.start(), match.end()


def _is_identifier(name: str) -> bool:
    return 3 <= len(name) <= _MAX_NAME_CHARS and re.fullmatch(r"[A-Za-z_$][\w$]*", name) is not None


def _is_code_name(name: str) -> bool:
    if name.casefold() in BRANDS or _LOCALE.fullmatch(name) or _PLURAL.fullmatch(name) or len(name) < 4:
        return False
    return bool(_SNAKE.fullmatch(name) or _HUMPS.search(name))


def _flags(text: str) -> Iterator[_Found]:
    for match in _FLAG.finditer(text):
        before = text[max(0, match.start() - _BEFORE_FLAG) : match.start()]
        command = re.split(r"[`.;\n]|&&|\|", before)[-1] if before.count("`") % 2 else before
        words = {word.strip("`'\"(),:").casefold() for word in command.split()}
        if words.isdisjoint(TOOLS):
            yield Anchor(kind=AnchorKind.FLAG, text=match[0]), match.start(), match.end()


def _commits(text: str) -> Iterator[_Found]:
    for match in _COMMIT.finditer(text):
        digits = sum(sign.isdigit() for sign in match[0])
        is_mixed = 0 < digits < len(match[0]) and not re.fullmatch(r"\d+e\d+", match[0])
        if is_mixed or len(match[0]) == 40 or _CALLED_COMMIT.search(text[: match.start()][-40:]):
            yield Anchor(kind=AnchorKind.COMMIT, text=match[0]), match.start(), match.end()
