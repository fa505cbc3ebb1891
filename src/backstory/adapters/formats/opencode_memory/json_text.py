"""JSON as JavaScript reads and writes it: numbers are doubles, and what it writes is the same letter by letter."""

from __future__ import annotations

import json
import math
import re
from typing import Any

Json = Any  # whatever stands in the file; readers take each field by its type

_HALF = re.compile("[\ud800-\udfff]")
_EXACT_DIGITS = 15
_EXPONENT = re.compile(r"e([+-])0*(\d+)")


def decoder() -> json.JSONDecoder:
    """Reads numbers as JavaScript would; what no JSON can write again (NaN, infinity) is null."""
    return json.JSONDecoder(parse_int=_integer, parse_float=_number, parse_constant=lambda _: None)


def js_text(value: Json, *, indent: int = 2, level: int = 0) -> str:
    """A value as ``JSON.stringify(value, null, indent)`` writes it."""
    inner, outer = "\n" + " " * indent * (level + 1), "\n" + " " * indent * level
    match value:
        case dict() if value:
            fields = (f"{_string(key)}: {js_text(one, indent=indent, level=level + 1)}" for key, one in value.items())
            return "{" + inner + f",{inner}".join(fields) + outer + "}"
        case list() if value:
            items = (js_text(one, indent=indent, level=level + 1) for one in value)
            return "[" + inner + f",{inner}".join(items) + outer + "]"
        case str():
            return _string(value)
        case bool() | None:
            return json.dumps(value)
        case int() | float():
            return js_number(value)
        case _:
            return json.dumps(value)


def js_number(value: float) -> str:
    """A number as JavaScript shows it: ``3``, ``3.5``, ``1e-7``."""
    if isinstance(value, int):
        return str(value) if abs(value) < 10**21 else js_number(float(value))
    if not math.isfinite(value):
        return "null"
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    text = repr(value)
    if "e" in text and 1e-6 <= abs(value) < 1:
        return f"{value:.{_places(text)}f}"
    return _EXPONENT.sub(lambda found: f"e{found[1]}{found[2]}", text)


def _places(text: str) -> int:
    digits, _, exponent = text.partition("e")
    return len(digits.partition(".")[2]) - int(exponent)


def _string(text: str) -> str:
    return _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", json.dumps(text, ensure_ascii=False))


def _integer(digits: str) -> Json:
    return int(digits) if len(digits) <= _EXACT_DIGITS else _number(digits)


def _number(digits: str) -> Json:
    value = float(digits)
    return value if math.isfinite(value) else None
