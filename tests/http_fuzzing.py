"""What a fuzzer of the HTTP server has to be told: the folder of a project that is there, and texts that can be kept.

Loaded by schemathesis (``SCHEMATHESIS_HOOKS=tests.http_fuzzing``) and by ``tests/integration/test_http_fuzzing.py``.
The folder is the one that ``FUZZED_FOLDER`` names. Values that are meant to be wrong stay wrong.
"""

from __future__ import annotations

import os
from typing import Any, TypeGuard

import schemathesis

FOLDER = "FUZZED_FOLDER"

_KINDS = ("decision", "preference", "learning", "fact")
_SCOPES = ("project", "global", "session", "deploy/staging")


@schemathesis.hook
def map_body(context: schemathesis.HookContext, body: Any) -> Any:  # Any: whatever was generated
    """A body from the folder; a statement that can be kept, where one is."""
    if not isinstance(body, dict):
        return body
    body = _placed(_placed(body, "project"), "directory")
    if _is_text(body.get("content")):
        body["content"] = f"It was said that {body['content']}"
        body |= {"kind": _KINDS[len(body["content"]) % 4]} if _is_text(body.get("kind")) else {}
        body |= {"scope": _SCOPES[len(body["content"]) % 4]} if _is_text(body.get("scope")) else {}
    return body


@schemathesis.hook
def map_query(context: schemathesis.HookContext, query: Any) -> Any:  # Any: whatever was generated
    """Parameters from the folder."""
    return _placed(query, "project") if isinstance(query, dict) else query


@schemathesis.hook
def map_path_parameters(context: schemathesis.HookContext, path_parameters: Any) -> Any:  # Any: as above
    """Every second memory is one that is there."""
    ref = path_parameters.get("ref") if isinstance(path_parameters, dict) else None
    if isinstance(ref, str) and len(ref) % 2:
        return {**path_parameters, "ref": str(1 + len(ref) % 3)}
    return path_parameters


def _placed(given: dict[str, Any], name: str) -> dict[str, Any]:
    value = given.get(name)
    is_absolute = _is_text(value) and value.startswith("/") and "\0" not in value
    return {**given, name: os.environ[FOLDER]} if is_absolute else dict(given)


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= 1_000
