"""Typed fields out of a JSON object: what is wrong is an InputError that names the field."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeVar

from backstory.errors import InputError

Json = Mapping[str, object]
_Enum = TypeVar("_Enum", bound=StrEnum)


class Fields:
    """Reads typed fields out of a JSON object and names the one that is wrong."""

    def __init__(self, record: Json, *, known: frozenset[str], path: str) -> None:
        self._record = record
        self._path = path
        if unknown := record.keys() - known:
            first = min(unknown)
            shown = first if first.isidentifier() and len(first) <= 60 else repr(first[:60])
            raise InputError(f"unknown field {path}{shown}", field=f"{path}{shown}")

    def raw(self, name: str) -> object:
        return self._record.get(name)

    def text(self, name: str) -> str | None:
        value = self._record.get(name)
        if value is not None and not isinstance(value, str):
            raise self._wrong(name, value, "text")
        return value

    def required_text(self, name: str) -> str:
        value = self.text(name)
        if not value:
            raise InputError(f"{self._path}{name} is missing or empty", field=self._path + name)
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._record.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._wrong(name, value, "a list of texts")
        return tuple(value)

    def boolean(self, name: str) -> bool:
        value = self._record.get(name, False)
        if not isinstance(value, bool):
            raise self._wrong(name, value, "true or false")
        return value

    def integer(self, name: str) -> int:
        value = self._record.get(name, 0)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
            raise self._wrong(name, value, "a whole number from 0")
        return value

    def fraction(self, name: str) -> float:
        value = self._record.get(name, 1.0)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0.0 <= value <= 1.0:
            raise self._wrong(name, value, "a number from 0 to 1")
        return float(value)

    def time(self, name: str) -> datetime | None:
        value = self.text(name)
        if value is None:
            return None
        try:
            moment = datetime.fromisoformat(value)
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except (ValueError, OverflowError):  # the calendar ends at the years 1 and 9999
            raise self._wrong(name, value, "a time such as 2026-03-02T12:00:00Z") from None

    def choice(self, name: str, enum: type[_Enum], default: _Enum) -> _Enum:
        value = self.text(name)
        if value is None:
            return default
        try:
            return enum(value)
        except ValueError:
            raise self._wrong(name, value, "one of " + ", ".join(enum)) from None

    def nested(self, name: str, *, known: frozenset[str]) -> Fields:
        return Fields(as_object(self._record.get(name) or {}, self._path + name), known=known, path=f"{name}.")

    def _wrong(self, name: str, value: object, wanted: str) -> InputError:
        return InputError(f"{self._path}{name} is {str(value)[:60]!r}; it must be {wanted}", field=self._path + name)


def as_object(value: object, path: str) -> Json:
    if not isinstance(value, Mapping):
        raise InputError(f"{path} is {str(value)[:60]!r}; it must be an object", field=path)
    return value
