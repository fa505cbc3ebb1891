"""From what somebody wrote to a checked value, and from a value to text that is safe to show."""

from __future__ import annotations

import os
import re
from pathlib import Path

from backstory.config.options import Option, Value
from backstory.errors import ConfigError

SWITCH_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
_SHOWN_CHARS = 80
_NAMED_CHARS = 200
_URL_CHARS = 2_000


def parse(option: Option, raw: object, *, written: str, source: str, text: bool) -> Value:
    """The value of ``option``, checked. ``text`` allows numbers and switches to be spelled out, as variables must.

    Raises ConfigError naming the option as the user wrote it (``written``), the value unless it is secret, and what is
    allowed.
    """
    try:
        return _checked(option, _typed(option, raw, text=text))
    except ValueError as error:
        value = "the value" if may_hold_a_secret(option, raw) else shown(raw)
        message = f"{place(written, source)}: {value} {error}; allowed: {option.limits}"
        raise ConfigError(message, option=written, source=source) from None


def may_hold_a_secret(option: Option, raw: object) -> bool:
    """Whether a value is better not repeated: a key put where the name of a variable belongs, a password in a URL."""
    return option.secret or option.check is variable_name or (option.check is store_url and "postgres" in str(raw))


def place(written: str, source: str) -> str:
    """Where an option stands, for messages: the source, and the name in it unless the source says that already."""
    return source if source.endswith(f" {written}") else f"{source}, {printable(written[:_NAMED_CHARS])}"


def _typed(option: Option, raw: object, *, text: bool) -> Value:
    if text and isinstance(raw, str):
        raw = _spelled(option, raw.strip())
    if isinstance(raw, Path) and option.type is Path:
        return str(raw)
    if option.type is bool and not isinstance(raw, bool):
        raise ValueError("is neither true nor false")
    if option.type is int and (not isinstance(raw, int) or isinstance(raw, bool)):
        raise ValueError("is not a whole number")
    if option.type in (str, Path) and not isinstance(raw, str):
        raise ValueError("is not text")
    assert isinstance(raw, bool | int | str)
    return raw


def _spelled(option: Option, raw: str) -> object:
    if option.type is bool:
        return SWITCH_WORDS.get(raw.lower(), raw)
    if option.type is int and re.fullmatch(r"[+-]?[0-9](_?[0-9]){0,17}", raw):
        return int(raw)
    return raw


def _checked(option: Option, value: Value) -> Value:
    if isinstance(value, bool) or value is None or isinstance(value, Path):
        return value
    if isinstance(value, int):
        if option.minimum is not None and value < option.minimum:
            raise ValueError("is too small")
        if option.maximum is not None and value > option.maximum:
            raise ValueError("is too large")
        return value
    return _checked_text(option, value)


def _checked_text(option: Option, value: str) -> str | Path:
    if any((char < " " and char not in "\t\n\r") or "\ud800" <= char <= "\udfff" for char in value):
        raise ValueError("holds characters that are not text")
    if option.choices:
        value = value.strip().lower()
        if value not in option.choices:
            raise ValueError("is not one of the choices")
    if option.maximum is not None and len(value) > option.maximum:
        raise ValueError(f"is too long ({len(value):,} characters)")
    return option.check(value) if option.check else value


def folder(text: str) -> Path:
    """An absolute folder; ``~`` is expanded. It need not exist yet."""
    try:
        path = Path(text).expanduser()
    except RuntimeError:
        raise ValueError("begins with a home folder that is not there") from None
    if not path.is_absolute():
        raise ValueError("is not an absolute path")
    return Path(os.path.normpath(path))


def store_url(text: str) -> str:
    """``sqlite``, ``memory``, ``git``; ``sqlite://`` or ``git://`` and an absolute path; ``postgresql://`` and more."""
    if text in ("sqlite", "memory", "git"):
        return text
    scheme, separator, rest = text.partition("://")
    if scheme in ("postgres", "postgresql") and separator:
        return _postgres_url(rest)
    if scheme not in ("sqlite", "git") or not separator:
        raise ValueError("is not a kind of store")
    if not rest.startswith("/") or (rest.endswith("/") and scheme == "sqlite"):
        raise ValueError(
            "does not name a file by its absolute path" if scheme == "sqlite" else "names no absolute path"
        )
    return f"{scheme}:///" + os.path.normpath(rest).lstrip("/")


def _postgres_url(rest: str) -> str:
    """The address, which may name several hosts; a password in it would end up in files, logs and process lists."""
    if len(rest) > _URL_CHARS or not re.fullmatch(r"[\x21-\x7e]*", rest):
        raise ValueError("is not an address")
    place, _, options = rest.partition("?")
    user, at, _ = place.rpartition("@")
    if (at and ":" in user) or re.search(r"(^|&)\s*(ssl)?password=", options, re.IGNORECASE):
        raise ValueError("holds a password, which belongs in BACKSTORY_STORE_PASSWORD or a password file")
    return f"postgresql://{rest}"


def git_ref(text: str) -> str:
    """A full name of a ref outside branches and tags of the work itself, such as ``refs/memory/agent``."""
    parts = text.split("/")
    if len(parts) < 3 or parts[0] != "refs" or not all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", p) for p in parts):
        raise ValueError("is not the full name of a ref")
    if ".." in text or any(part.endswith((".lock", ".")) for part in parts):
        raise ValueError("is not the full name of a ref")
    return text


def git_refs(text: str) -> str:
    """Full names of refs, one blank between two."""
    return " ".join(git_ref(part) for part in text.split())


def tenant_name(text: str) -> str:
    """A name of letters, digits, dots, underscores and hyphens."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}", text):
        raise ValueError("is not a plain name")
    return text


def schema_name(text: str) -> str:
    """A name that needs no quotes in SQL."""
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", text) or text.startswith("pg_"):
        raise ValueError("is not a plain name in lower case")
    return text


def http_url(text: str) -> str:
    """An ``http`` or ``https`` address without user name or password; a final slash is dropped."""
    from urllib.parse import urlsplit  # most people set no address

    if len(text) > _URL_CHARS or not re.fullmatch(r"[\x21-\x7e]+", text):
        raise ValueError("is not an address")
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("is not an address")
    if "@" in parts.netloc:
        raise ValueError("holds a user name or a password, which belong in the environment")
    return text.rstrip("/")


def variable_name(text: str) -> str:
    """The name of an environment variable. Upper case only, so that a key pasted here by mistake is refused."""
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]{0,127}", text):
        raise ValueError("is not the name of an environment variable (is it the key itself?)")
    return text


def api_key(text: str) -> str:
    """A key that can be sent in a header: visible ASCII without spaces."""
    if not re.fullmatch(r"[\x21-\x7e]{1,4096}", text):
        raise ValueError("holds characters that no key has")
    return text


def amount(text: str) -> str:
    """An amount of money such as ``0.15``."""
    from backstory.domain.ledger import read_money  # most people set no price

    read_money(text)
    return text.strip()


def feature_caps(text: str) -> str:
    """Features with the tokens each may take a day, such as ``rerank=20000``, one blank between two."""
    from backstory.domain.ledger import read_feature_caps

    return " ".join(f"{feature}={tokens}" for feature, tokens in read_feature_caps(text).items())


def shown(value: object) -> str:
    """A value as people may see it: on one line, cut to 80 characters, without passwords in addresses."""
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and value.bit_length() > 64:
        return "a huge number"
    if isinstance(value, bool | int):
        return str(value).lower()
    text = re.sub(r"://.*@", "://[hidden]@", str(value), flags=re.DOTALL)
    text = re.sub(r"(://[^?]*\?).*", r"\1[hidden]", text, flags=re.DOTALL)
    if len(text) > _SHOWN_CHARS:
        text = text[:_SHOWN_CHARS] + "…"
    return f"'{printable(text)}'" if isinstance(value, str) else printable(text)


def printable(text: str) -> str:
    """``text`` with everything that could move a cursor or break a line escaped."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
