"""From a request to what it holds, checked: JSON bodies of POST, parameters of GET. Nothing passes unread."""

from __future__ import annotations

import json
import re

from pydantic import ValidationError
from starlette.requests import Request

from backstory.entrypoints.http.bodies import Place
from backstory.entrypoints.http.failures import invalid
from backstory.entrypoints.http.operations import Operation
from backstory.entrypoints.http.problems import Problem

_DIGITS = re.compile(r"[0-9]{1,9}")


async def read(operation: Operation, asked: Request) -> Place:
    """What a request to this operation holds. Raises Problem."""
    if operation.said is None:
        return Place()
    if not operation.has_body:
        return await read_parameters(operation.said, asked)
    read_words(asked)  # all belongs into the body
    return _checked(operation.said, await read_json(asked))


async def read_json(asked: Request) -> object:
    """The JSON value of a body. Raises Problem: for what JSON is not, such as NaN, and for half a character."""
    kinds = asked.headers.getlist("content-type")
    kind = kinds[0].partition(";")[0].strip().lower() if len(kinds) == 1 else ""
    if kind != "application/json":
        told = "Send `Content-Type: application/json`"
        raise Problem(kind="wrong-content-type", detail=told, name="Content-Type", value=kind[:60] or None)
    try:
        value: object = json.loads((await asked.body()).decode("utf-8"), parse_constant=_refuse_constant)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeError:
        raise Problem(kind="malformed", detail="The body is not UTF-8 text, or holds half a character") from None
    except (ValueError, RecursionError) as error:
        told = "it is too deep" if isinstance(error, RecursionError) else str(error)[:200]
        raise Problem(kind="malformed", detail=f"The body is not JSON: {told}") from None
    return value


async def read_parameters(model: type[Place], asked: Request) -> Place:
    """The parameters of an address, each once; whole numbers in plain digits. Raises Problem."""
    if await asked.body():
        raise Problem(kind="invalid", detail="A GET has no body", name="body")
    found = read_words(asked, *model.model_fields)
    for name, value in found.items():
        if model.model_fields[name].annotation is int and not _DIGITS.fullmatch(value):
            told = f"{name}: a whole number is needed"
            raise Problem(kind="invalid", detail=told, name=name, value=repr(value)[:60])
    return _checked(model, found)


def read_words(asked: Request, *known: str) -> dict[str, str]:
    """The parameters of an address as they stand there, each known and given once. Raises Problem."""
    found: dict[str, str] = {}
    for name, value in asked.query_params.multi_items():
        if name not in known or name in found:
            told = "is given twice" if name in found else "is no parameter here"
            raise Problem(kind="invalid", detail=f"{name[:60]!r} {told}", name=name[:60], limit=", ".join(known))
        found[name] = value
    return found


def _checked(model: type[Place], value: object) -> Place:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise invalid(error) from error


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON value")
