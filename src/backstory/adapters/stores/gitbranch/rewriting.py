"""A ref's history written anew with texts taken out of it: the same commits, authors and times, other contents.

Nothing here moves a ref. What becomes of a file's text is in ``erased_files.py``, of the old objects in
``erased_objects.py``.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from backstory.adapters.stores.gitbranch.git import Git
from backstory.adapters.stores.gitbranch.reader import Object
from backstory.adapters.stores.gitbranch.reference import Reference
from backstory.errors import StoreDamaged

Transform = Callable[[str, bytes], bytes | None]
"""What a file of a path holds from now on; None where it goes. The same bytes where nothing changes."""

_TYPES = {"commit": 1, "tree": 2, "blob": 3}  # as packs number them
_FEW = 2000  # objects that are written one by one; more stay in a pack
_TREE, _FILE = b"40000", b"100"
_SIGNATURE = re.compile(rb"^gpgsig(?:-sha256)? .*\n(?: .*\n)*", re.MULTILINE)
_BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Altered:
    """One file or message that changes: ``where`` is the object's name."""

    where: str
    before: bytes
    after: bytes


@dataclass(slots=True, kw_only=True)
class Rewriting:
    """A history as it would be. ``commits`` leads from each old commit that changes to its new one; ``objects`` are
    those that have to be written, by name: type and data."""

    tip: str
    commits: dict[str, str] = field(default_factory=dict)
    objects: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    altered: list[Altered] = field(default_factory=list)


def rewritten(reference: Reference, tip: str, transform: Transform, message: Callable[[str], str]) -> Rewriting:
    """What becomes of the history that ends in ``tip``. Reads every commit and every version of every file once."""
    work = _Work(reference, transform, message, Rewriting(tip=tip))
    listed = reference.git.look("rev-list", "--topo-order", "--reverse", tip).decode("ascii").split()
    for start in range(0, len(listed), _BATCH):
        for name, found in zip(listed[start:], reference.reader.read_all(listed[start : start + _BATCH]), strict=False):
            work.commit(name, found)
    work.result.tip = work.result.commits.get(tip, tip)
    return work.result


def write_objects(git: Git, rewriting: Rewriting) -> None:
    """Put the objects of a rewriting into the repository; no ref names them yet."""
    if rewriting.objects:
        few = len(rewriting.objects) <= _FEW
        command = ("unpack-objects", "-q") if few else ("index-pack", "--stdin")
        git.run(*command, data=_pack(rewriting), timeout_s=600.0)


class _Work:
    def __init__(
        self, reference: Reference, transform: Transform, message: Callable[[str], str], result: Rewriting
    ) -> None:
        self._reference = reference
        self._transform = transform
        self._message = message
        self._known: dict[tuple[str, str], str | None] = {}
        self.result = result

    def commit(self, name: str, found: Object | None) -> None:
        """Write one commit anew; its parents were before it."""
        data = _present(name, found)
        head, _, text = data.partition(b"\n\n")
        lines = [self._header(line) for line in head.split(b"\n")]
        kept = text
        if (said := text.decode("utf-8", "surrogateescape")) != (told := self._message(said)):
            kept = told.encode("utf-8", "surrogateescape")
            self.result.altered.append(Altered(where=name, before=text, after=kept))
        new = b"\n".join(lines) + b"\n\n" + kept
        if new != data:
            head, _, kept = new.partition(b"\n\n")
            self.result.commits[name] = self._add("commit", _SIGNATURE.sub(b"", head + b"\n") + b"\n" + kept, name)

    def _header(self, line: bytes) -> bytes:
        word, _, name = line.partition(b" ")
        if word == b"parent":
            old = name.decode("ascii")
            return b"parent " + self.result.commits.get(old, old).encode("ascii")
        if word == b"tree":
            old = name.decode("ascii")
            return b"tree " + (self._tree(old, "") or self._add("tree", b"", old)).encode("ascii")
        return line

    def _tree(self, name: str, path: str) -> str | None:
        """The new name of a tree; None where nothing is left in it."""
        if (name, path) in self._known:
            return self._known[name, path]
        data = _present(name, self._reference.reader.read(name))
        entries = []
        for mode, title, child in _entries(data, len(name) // 2):
            inner = path + title.decode("utf-8", "surrogateescape")
            is_tree, is_file = mode == _TREE, mode.startswith(_FILE)
            new = self._tree(child, f"{inner}/") if is_tree else self._blob(child, inner) if is_file else child
            if new is not None:
                entries.append(mode + b" " + title + b"\0" + bytes.fromhex(new))
        kept = b"".join(entries)
        result = name if kept == data else self._add("tree", kept, name) if entries else None
        self._known[name, path] = result
        return result

    def _blob(self, name: str, path: str) -> str | None:
        if (name, path) in self._known:
            return self._known[name, path]
        data = _present(name, self._reference.reader.read(name))
        kept = self._transform(path, data)
        result: str | None = name
        if kept != data:
            self.result.altered.append(Altered(where=name, before=data, after=kept or b""))
            result = None if kept is None else self._add("blob", kept, name)
        self._known[name, path] = result
        return result

    def _add(self, kind: str, data: bytes, like: str) -> str:
        """The name of a new object, hashed as the object ``like`` is."""
        hashing = hashlib.sha256 if len(like) == 64 else hashlib.sha1
        name = hashing(f"{kind} {len(data)}\0".encode() + data).hexdigest()
        self.result.objects[name] = (kind, data)
        return name


def _present(name: str, found: Object | None) -> bytes:
    if found is None:
        raise StoreDamaged(f"the object {name} is missing, so nothing was erased; `git fsck` says more")
    return found.data


def _entries(data: bytes, size: int) -> Iterator[tuple[bytes, bytes, str]]:
    """Mode, name and object of each entry of a tree, whose objects' names take ``size`` bytes."""
    at = 0
    while at < len(data):
        blank, end = data.index(b" ", at), data.index(b"\0", at)
        yield data[at:blank], data[blank + 1 : end], data[end + 1 : end + 1 + size].hex()
        at = end + 1 + size


def _pack(rewriting: Rewriting) -> bytes:
    """All objects as one pack, version 2 of git's format."""
    is_sha256 = len(next(iter(rewriting.objects))) == 64
    parts = [b"PACK", (2).to_bytes(4, "big"), len(rewriting.objects).to_bytes(4, "big")]
    parts += _packed(rewriting.objects.values())
    body = b"".join(parts)
    return body + (hashlib.sha256 if is_sha256 else hashlib.sha1)(body).digest()


def _packed(objects: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    for kind, data in objects:
        size = len(data)
        first, size = _TYPES[kind] << 4 | size & 15, size >> 4
        head = bytearray()
        while size:
            head.append(first | 128)
            first, size = size & 127, size >> 7
        head.append(first)
        yield bytes(head) + zlib.compress(data)
