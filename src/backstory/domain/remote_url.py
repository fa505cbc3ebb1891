"""One form for every way to write a git remote, so that clones by ssh and by https have it in common."""

from __future__ import annotations

import re
from urllib.parse import unquote

MAX_CHARS = 2000
_URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://(?:[^/@]*@)?(\[[^\]/]*\]|[^/:]*)(?::([0-9]*))?(/.*)?", re.DOTALL)
_SCP = re.compile(r"(?:[^/@:]*@)?(\[[^\]/]*\]|[^/:@]{2,}):(.+)", re.DOTALL)  # one letter is a drive of Windows
_DEFAULT_PORTS = frozenset({"", "22", "80", "443", "9418"})


def normalise_remote(url: str) -> str | None:
    """``host/path`` of a remote, the host in lower case: no scheme, credentials, default port or ``.git`` at the end.

    A path on this machine stays an absolute path. None for what is empty, relative, not printable or longer than
    ``MAX_CHARS``.
    """
    text = url.strip()
    if not text or len(text) > MAX_CHARS or not text.isprintable():
        return None
    if match := _URL.fullmatch(text):
        scheme, host, port, path = match.groups()
        if scheme.lower() == "file":
            return _local(unquote(path or ""))
        return _shared(host, port or "", unquote(re.split(r"[?#]", path or "")[0]))
    if text.startswith(("/", "\\", ".", "~")):
        return _local(text)
    if match := _SCP.fullmatch(text):
        return _shared(match[1], "", match[2])
    return _local(text)


def _shared(host: str, port: str, path: str) -> str | None:
    path = _bare(path).lstrip("/")
    if not host or not path or not path.isprintable():
        return None
    where = host.lower().rstrip(".") + ("" if port in _DEFAULT_PORTS else f":{port}")
    return f"{where}/{path}"


def _local(path: str) -> str | None:
    absolute = path.startswith("/") or re.match(r"[a-zA-Z]:[\\/]", path)
    path = _bare(path)
    return path if absolute and path and path.isprintable() else None


def _bare(path: str) -> str:
    path = path.rstrip("/")
    path = path.removesuffix("/.git") if path.endswith("/.git") else path.removesuffix(".git")
    return re.sub("/{2,}", "/", path).rstrip("/")
