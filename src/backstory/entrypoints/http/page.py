"""The description of the server as a page to read: plain HTML, without script, and nothing in it from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""The content security policy of the page."""

_STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem }
h2 { margin-top: 2.5rem; border-top: 1px solid #8886; padding-top: 1rem; font-size: 1.1rem }
code, pre { font: 0.9em/1.45 ui-monospace, monospace }
pre { overflow-x: auto; padding: .75rem; background: #8882; border-radius: .4rem }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; vertical-align: top; padding: .2rem .6rem .2rem 0 }
.method { font-weight: 700 }
""".strip()

Json = Mapping[str, Any]  # Any: the document that ``describe`` made


def render(document: Json) -> str:
    """The page."""
    info = document["info"]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
            f"<title>{_text(info['title'])} over HTTP</title><style>{_STYLE}</style></head><body>",
            f"<h1>{_text(info['title'])} {_text(info['version'])} over HTTP</h1>",
            *_paragraphs(info["description"]),
            '<p>For programs: <a href="/openapi.json"><code>/openapi.json</code></a></p>',
            *_contents(document),
            *_operations(document),
            "</body></html>",
        ]
    )


def _each(document: Json) -> Iterator[tuple[str, str, Json]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def _contents(document: Json) -> Iterator[str]:
    yield "<ul>"
    for method, path, operation in _each(document):
        name = _text(operation["operationId"])
        yield f'<li><a href="#{name}"><code>{method} {_text(path)}</code></a> {_text(operation["summary"])}</li>'
    yield "</ul>"


def _operations(document: Json) -> Iterator[str]:
    for method, path, operation in _each(document):
        name = _text(operation["operationId"])
        yield f'<h2 id="{name}"><code><span class="method">{method}</span> {_text(path)}</code></h2>'
        yield f"<p>{_text(operation['summary'])}</p>"
        yield from _paragraphs(operation.get("description", ""))
        yield from _parameters(operation["parameters"])
        if "requestBody" in operation:
            content = operation["requestBody"]["content"]["application/json"]
            yield from _fields(content["schema"])
            if "example" in content:
                yield f"<p>Such as</p>{_code(content['example'])}"
        yield from _responses(operation["responses"])


def _parameters(parameters: list[Json]) -> Iterator[str]:
    if parameters:
        rows = [(f"{item['name']} ({item['in']})", item["schema"], item.get("description", "")) for item in parameters]
        yield from _table("Parameter", rows)


def _fields(schema: Json) -> Iterator[str]:
    rows = [(name, item, _described(item)) for name, item in schema.get("properties", {}).items()]
    required = set(schema.get("required", ()))
    yield from _table("Field", [(f"{name}{' *' if name in required else ''}", item, told) for name, item, told in rows])


def _described(schema: Json) -> str:
    options = [option.get("description", "") for option in schema.get("anyOf", [])]
    return str(schema.get("description") or next(filter(None, options), ""))


def _table(head: str, rows: list[tuple[str, Json, str]]) -> Iterator[str]:
    yield f"<table><tr><th>{head}</th><th>Meaning</th><th>Schema</th></tr>"
    for name, schema, told in rows:
        kept = {key: value for key, value in schema.items() if key != "description"}
        yield f"<tr><td><code>{_text(name)}</code></td><td>{_text(told)}</td><td><details><summary>schema</summary>"
        yield f"{_code(kept)}</details></td></tr>"
    yield "</table>"


def _responses(responses: Json) -> Iterator[str]:
    yield "<details><summary>Answers</summary><table>"
    for status, response in responses.items():
        yield f"<tr><td><code>{_text(status)}</code></td><td>{_text(response['description'])}</td></tr>"
    yield "</table></details>"


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in filter(None, text.split("\n\n")):
        yield f"<p>{_text(paragraph)}</p>"


def _code(value: object) -> str:
    return f"<pre>{_text(json.dumps(value, indent=2, ensure_ascii=False))}</pre>"


def _text(value: object) -> str:
    return escape(str(value))
