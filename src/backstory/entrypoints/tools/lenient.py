"""Arguments as clients really send them: numbers and lists as text, nulls, blanks, other spellings, things unheard of.

Only what can have one meaning is read so; the rest stays as it is, for the check that follows to refuse.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BeforeValidator
from pydantic.fields import FieldInfo

from backstory.entrypoints.tools.restraint import DRY_RUN, asks_for_less, plain
from backstory.errors import InputError

_WRAPPERS = frozenset({"arguments", "args", "input", "parameters", "params"})
_TRUTH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_BETWEEN = re.compile(r"[,\n，、]")
_NUMBERS = re.compile(r"\s*+#?\d{1,18}(?:(?:\s*+,\s*+|\s++)#?\d{1,18})+\s*+")  # linear: no blank is taken back
_NUMBER = re.compile(r"#?\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """The arguments under our names, each as far as possible of its type; the names that are none of ours, and which of
    them ask for less to happen; and of ours those that came with a text of nothing."""

    values: Mapping[str, Any]  # Any: not checked yet
    ignored: tuple[str, ...] = ()
    restraints: tuple[str, ...] = ()
    blank: tuple[str, ...] = ()


def as_meant(
    given: object, fields: Mapping[str, FieldInfo], older_names: Mapping[str, str], *, of_many: bool = True
) -> Meant:
    """What a client means by its arguments. Blank ones count as not given, unless they are needed. ``of_many`` where
    they may be about several things.

    Raises InputError where they are no object, nor the JSON text of one.
    """
    sent = _object(given, fields)
    found, unknown = _named(sent, fields, older_names)
    values = {name: _fitted(value, name, fields[name]) for name, value in found.items()}
    return Meant(
        values=_without_blanks(values, fields),
        ignored=tuple(name for name in unknown if not name.startswith("_")),
        restraints=tuple(name for name, value in unknown.items() if asks_for_less(name, value, of_many=of_many)),
        blank=tuple(name for name, value in values.items() if _is_blank(value)),
    )


def _object(given: object, fields: Mapping[str, FieldInfo]) -> Mapping[str, Any]:
    value = given
    for _ in range(2):  # some clients encode twice
        value = _decoded(value) if isinstance(value, str) else value
    if _is_blank(given):
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"the arguments must be an object, not {type(given).__name__}", field="arguments")
    if len(value) == 1 and (name := str(next(iter(value)))) in _WRAPPERS and name not in fields:
        inner = _decoded(value[name]) if isinstance(value[name], str) else value[name]
        return inner if isinstance(inner, Mapping) else value
    return value


def _named(
    given: Mapping[str, Any], fields: Mapping[str, FieldInfo], older_names: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments by our names, and those that are none of ours. Of two spellings the one that says something counts,
    our own before others; of a dry run, the one that asks for it."""
    spellings = {plain(name): name for name in fields}
    dry_run = {name: spellings["dry_run"] for name in DRY_RUN if "dry_run" in spellings}
    older = dry_run | {plain(name): ours for name, ours in older_names.items() if ours in fields}
    found: dict[str, Any] = {}
    unknown = {}
    for name, value in sorted(given.items(), key=lambda item: item[0] not in fields):
        ours = name if name in fields else older_names.get(name, "")
        ours = ours if ours in fields else spellings.get(plain(name)) or older.get(plain(name)) or ""
        if not ours:
            unknown[str(name)] = value
        elif _is_blank(found.get(ours)) or (plain(ours) in DRY_RUN and asks_for_less(ours, value, of_many=True)):
            found[ours] = value
    return {name: value for name, value in found.items() if value is not None}, unknown


def _without_blanks(given: Mapping[str, Any], fields: Mapping[str, FieldInfo]) -> dict[str, Any]:
    """Without what models fill in blank for "not given"; one that is needed stays, to be refused.

    Blank entries of lists go too; a list that was empty from the start says "none" and stays.
    """
    kept = {}
    for name, value in given.items():
        is_optional = not fields[name].is_required()
        if isinstance(value, list):
            entries = [item for item in value if not _is_blank(item)]
            if entries or not value or not is_optional:
                kept[name] = entries
        elif not (is_optional and _is_blank(value)):
            kept[name] = value
    return kept


def _is_blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _fitted(value: Any, name: str, field: FieldInfo) -> Any:
    kinds = list(_kinds(field.annotation))
    if isinstance(value, bool) and bool not in kinds and int in kinds:
        raise InputError(f"{name}: a number is wanted, not {str(value).lower()}", field=name)
    lists = [kind for kind in kinds if get_origin(kind) is list]
    if lists and not (isinstance(value, str) and not value.strip()):
        return _list(value, name, lists[0], alone=len(kinds) > 1)
    return _scalar(value, kinds, field)


def _list(value: Any, name: str, kind: Any, *, alone: bool) -> Any:
    """A list; ``alone`` where one thing that is no list may be meant as well."""
    entries = _entries(value, alone=alone) if isinstance(value, str) else value
    if not isinstance(entries, list):
        return value if alone else [_entry(value, name, kind)]
    inner = list(_kinds(get_args(kind)[0]))
    return [_entry(item, name, kind) for item in entries if item is None or _is_usable(item, inner)]


def _entry(item: Any, name: str, kind: Any) -> Any:
    inner = list(_kinds(get_args(kind)[0]))
    if isinstance(item, bool) and int in inner:
        raise InputError(f"{name}: a number is wanted, not {str(item).lower()}", field=name)
    return _scalar(item, inner, None)


def _is_usable(item: object, kinds: Iterable[Any]) -> bool:
    """Whether an entry can be read at all; of labels that are objects or lists nothing is meant to be kept."""
    return not isinstance(item, dict | list) or any(get_origin(kind) in (dict, list) or kind is dict for kind in kinds)


def _entries(text: str, *, alone: bool) -> object:
    decoded = _decoded(text) if text.lstrip().startswith("[") else None
    if isinstance(decoded, list):
        return decoded
    if alone:  # a piece of a text may have commas in it
        return _NUMBER.findall(text) if _NUMBERS.fullmatch(text) else text
    bare = text.strip()
    if bare.startswith("[") and bare.endswith("]"):  # as Python and YAML write lists
        bare = bare[1:-1]
    return [part.strip().strip("'\"") for part in _BETWEEN.split(bare)]


def _scalar(value: Any, kinds: list[Any], field: FieldInfo | None) -> Any:
    if isinstance(value, str) and (choice := _choice(value, kinds)) is not None:
        return choice
    if bool in kinds and not isinstance(value, bool):
        return _TRUTH.get(str(value).strip().lower(), value)
    if field is not None and any(isinstance(rule, BeforeValidator) for rule in field.metadata):
        return value  # it has its own way of reading
    if int in kinds and str not in kinds:
        return _bounded(_whole(value), field)
    if int in kinds and isinstance(value, float) and value.is_integer():
        return int(value)
    if str in kinds and int not in kinds and isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, str) and any(kind is dict or get_origin(kind) is dict for kind in kinds):
        return decoded if isinstance(decoded := _decoded(value), dict) else value
    return value


def _choice(text: str, kinds: list[Any]) -> str | None:
    """One of the words that are allowed, however it is spelt; None where there is no such list, or none fits."""
    words = [word for kind in kinds for word in _words(kind)]
    plain = text.strip().casefold()
    return next((word for word in words if word.casefold() == plain), None)


def _words(kind: Any) -> Iterator[str]:
    if get_origin(kind) is Literal:
        yield from (word for word in get_args(kind) if isinstance(word, str))
    elif isinstance(kind, type) and issubclass(kind, Enum):
        yield from (str(member.value) for member in kind)


def _whole(value: Any) -> Any:
    """A whole number: fractions are cut off. What is none stays."""
    try:
        number = float(value) if isinstance(value, str) and len(value) < 40 else value
    except ValueError:
        return value
    if isinstance(number, float) and math.isfinite(number):
        return int(number)
    return value


def _bounded(value: Any, field: FieldInfo | None) -> Any:
    """A number moved to the nearest one that is allowed: a wish for everything, or for nothing, is still a wish."""
    if field is None or not isinstance(value, int):
        return value
    lowest = [rule.ge for rule in field.metadata if getattr(rule, "ge", None) is not None]
    highest = [rule.le for rule in field.metadata if getattr(rule, "le", None) is not None]
    return max([min([value, *highest]), *lowest])


def _kinds(annotation: Any) -> Iterator[Any]:
    """The types that a field may have, without None."""
    if get_origin(annotation) in (Union, UnionType):
        for part in get_args(annotation):
            yield from _kinds(part)
    elif annotation is not NoneType:
        yield annotation


def _decoded(text: str) -> Any:
    """What a JSON text stands for; None for any other text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
