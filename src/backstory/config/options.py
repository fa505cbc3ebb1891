"""What an option is: its name, what it may hold, who may set it. Which there are: ``settings.py`` and beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

Value = bool | int | str | Path | None
Project = Literal["safe", "off-only", "never"]
Check = Callable[[str], str | Path]
Layer = dict[str, tuple[Value, str]]
"""Values by option name, each with the words for its source."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Option:
    """One row of the table of settings; there is one object for each, so they are compared by identity.

    ``name`` is dotted, as in files. ``type`` is bool, int, str or Path. ``minimum`` and ``maximum`` are inclusive and
    count ``unit``; for text, ``maximum`` counts characters. ``check`` turns text into the value or raises ValueError
    with the reason; ``allowed`` says in words what it takes. ``aliases`` are environment names of older products, in
    the order they are asked. ``project`` says what a project's file may do: anything within the limits (``safe``),
    nothing but set the value ``off`` (``off-only``), or nothing (``never``). A ``secret`` is never shown, and
    is refused in files and flags.
    """

    name: str
    type: type[bool] | type[int] | type[str] | type[Path]
    default: Value
    help: str
    project: Project
    env: str
    aliases: tuple[str, ...] = ()
    unit: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    check: Check | None = None
    allowed: str | None = None
    off: Value = False
    secret: bool = False

    @property
    def flag(self) -> str:
        """The flag that sets it: the environment name without the prefix, as ``--recall-limit``."""
        return "--" + self.env.removeprefix("BACKSTORY_").lower().replace("_", "-")

    @property
    def limits(self) -> str:
        """What is allowed, in words, with the unit."""
        if self.allowed is not None:
            return self.allowed
        if self.type is bool:
            return "true or false"
        if self.choices:
            return ", ".join(self.choices)
        if self.type is int:
            return f"{self.minimum:,} to {self.maximum:,} {self.unit}"
        return f"text of up to {self.maximum:,} characters"


def option(
    default: T,
    *,
    help: str,
    project: Project,
    type: type[bool] | type[int] | type[str] | type[Path] | None = None,
    env: str | None = None,
    aliases: tuple[str, ...] = (),
    unit: str | None = None,
    minimum: int | None = None,
    maximum: int | None = None,
    choices: tuple[str, ...] = (),
    check: Check | None = None,
    allowed: str | None = None,
    off: Value = False,
    secret: bool = False,
) -> T:
    """Declare an option as a field of a group; ``type`` and ``env`` follow from default and name if left out."""
    declared = {name: value for name, value in locals().items() if name != "default" and value is not None}
    return field(default=default, metadata=declared)


class Group:
    """Equality and a ``repr`` without secrets for groups of settings.

    Inherited, because what ``dataclass`` generates for thirteen classes costs 3 ms at every start.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and type(self) is type(other) and _content(self) == _content(other)

    def __hash__(self) -> int:
        return hash(_content(self))

    def __repr__(self) -> str:
        hidden = {entry.name for entry in fields(_dataclass(self)) if entry.metadata.get("secret")}
        values = (f"{name}={'[hidden]' if name in hidden and value else repr(value)}" for name, value in _content(self))
        return f"{type(self).__name__}({', '.join(values)})"


def _content(group: Group) -> tuple[tuple[str, object], ...]:
    return tuple((entry.name, getattr(group, entry.name)) for entry in fields(_dataclass(group)))


def _dataclass(group: Group) -> Any:
    """The same object; ``Any`` because only the subclasses of ``Group`` are dataclasses."""
    return group


def declared_options(group: str, cls: Any) -> Iterator[Option]:
    """The options declared by the dataclass ``cls``, in order. (``Any``: dataclass types have no common name.)"""
    for entry in fields(cls):
        facts: dict[str, Any] = {  # what ``option`` collected, plus what follows from the field
            "type": type(entry.default),
            "env": f"BACKSTORY_{group}_{entry.name}".upper(),
            "default": entry.default,
            **entry.metadata,
        }
        yield Option(name=f"{group}.{entry.name}", **facts)
