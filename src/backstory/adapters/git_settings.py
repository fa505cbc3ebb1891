"""Reads the remotes out of a git directory's ``config``, without git: includes and rewriting of URLs are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from backstory.domain.remote_url import normalise_remote

_MAX_BYTES = 1 << 20
_SECTION = re.compile(r'\s*\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}


def main_remote(git_dir: Path) -> str | None:
    """The remote a repository belongs to, normalised: ``origin``, else the first one. None without any.

    Only one counts: clones of two projects may both name the template they were made from as a second remote.
    """
    urls: dict[str, str] = {}
    for section, name, key, value in _settings(git_dir / "config"):
        if section == "remote" and key == "url":
            urls.setdefault(name, value)
    written = urls.get("origin", next(iter(urls.values()), None))
    return None if written is None else normalise_remote(written)


def _settings(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """Section, subsection, key and value of each setting; what cannot be read is left out."""
    try:
        if not path.is_file():  # a pipe in its place would never end
            return
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return
    section = name = ""
    for line in re.sub(r"\\\r?\n", "", text).splitlines():
        if head := _SECTION.match(line):
            section, name = head[1].lower(), re.sub(r"\\(.)", r"\1", head[2] or "")
            line = line[head.end() :]
        key, is_pair, value = line.partition("=")
        if is_pair and re.fullmatch(r"\s*[A-Za-z][A-Za-z0-9-]*\s*", key):
            yield section, name, key.strip().lower(), _value(value)


def _value(text: str) -> str:
    """A value without quotes, escapes and comment."""
    kept: list[str] = []
    quoted = False
    signs = iter(text.strip())
    for sign in signs:
        if sign == "\\":
            escaped = next(signs, "")
            kept.append(_ESCAPES.get(escaped, escaped))
        elif sign == '"':
            quoted = not quoted
        elif sign in "#;" and not quoted:
            break
        else:
            kept.append(sign)
    return "".join(kept).strip()
