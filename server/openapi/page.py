"""The description as one HTML page: no scripts, no files beside it, and a policy that allows none."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from server.http.shapes import dumps

_STYLE = """
:root{color-scheme:light dark;--line:color-mix(in srgb,currentColor 18%,transparent)}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem}
h1{margin-bottom:0}h2{margin-top:2.5rem;text-transform:capitalize}
code,pre{font:0.9em ui-monospace,monospace}
details,section.schema{border:1px solid var(--line);border-radius:6px;margin:0.5rem 0;padding:0.4rem 0.8rem}
summary{cursor:pointer;display:flex;flex-wrap:wrap;gap:0 0.6rem;align-items:baseline}
summary::before{content:"▸"}details[open]>summary::before{content:"▾"}
summary b{min-width:4.5rem}summary code{overflow-wrap:anywhere}
summary span{opacity:0.75;margin-left:auto;text-align:right}
pre{overflow:auto}td{overflow-wrap:break-word}
table{border-collapse:collapse;width:100%;margin:0.5rem 0}
th,td{text-align:left;vertical-align:top;padding:0.2rem 0.8rem 0.2rem 0;border-top:1px solid var(--line)}
th{font-weight:600;width:1%;white-space:nowrap}
@media(max-width:40rem){.schema th,.schema td{display:block;width:auto}.schema td{border:0;padding-top:0}}
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_RANGES = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "maxLength": "letters at most"}


def render(document: Mapping[str, Any]) -> str:
    """Makes the page of an OpenAPI document from `document.py`."""
    info, schemas = document["info"], document["components"]["schemas"]
    body = [f"<h1>{escape(info['title'])}</h1><p>Version {escape(info['version'])}, as ", _link("/api/openapi.json")]
    body += [" for programs.</p>", *(f"<p>{_words(text)}</p>" for text in info["description"].split("\n\n"))]
    for tag in document["tags"]:
        body.append(f"<h2>{escape(tag['name'])}</h2>")
        for path, method, operation in _operations(document):
            if tag["name"] in operation["tags"]:
                body += _operation(path, method, operation, document["components"]["responses"])
    body.append("<h2>Shapes</h2>")
    for name, schema in schemas.items():
        body += _schema(name, schema)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])} HTTP interface</title><style>{_STYLE}</style></head>"
        f"<body>{''.join(body)}</body></html>"
    )


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def _operation(path: str, method: str, operation: Mapping[str, Any], shared: Mapping[str, Any]) -> Iterator[str]:
    yield f'<details id="{escape(operation["operationId"])}"><summary><b>{method}</b> <code>{escape(path)}</code>'
    yield f" <span>{escape(operation['summary'])}</span></summary>"
    if "description" in operation:
        yield f"<p>{_words(operation['description'])}</p>"
    token = {0: "No token.", 1: "Needs a bearer token.", 2: "A bearer token may be sent."}
    yield f"<p>{token[len(operation['security'])]}</p>"
    if rows := [_parameter(parameter) for parameter in operation.get("parameters", ())]:
        yield f"<table>{''.join(rows)}</table>"
    if "requestBody" in operation:
        yield f"<p>Body: {_content(operation['requestBody'])}</p>"
    yield "<table>"
    for status, response in operation["responses"].items():
        if "$ref" in response:
            response = shared[_name(response["$ref"])]
        yield f"<tr><th>{escape(status)}</th><td>{_words(response['description'])}</td>"
        yield f"<td>{_content(response)}</td></tr>"
    yield "</table></details>"


def _parameter(parameter: Mapping[str, Any]) -> str:
    told = [_type(parameter["schema"]), *_limits(parameter["schema"])]
    told += ["required"] if parameter["required"] else []
    text = _words(parameter.get("description", ""))
    place = f"in the {escape(parameter['in'])}"
    return f"<tr><th><code>{escape(parameter['name'])}</code></th><td>{place}: {', '.join(told)}. {text}</td></tr>"


def _content(holder: Mapping[str, Any]) -> str:
    return ", ".join(
        _type(content["schema"]) if media == "application/json" else f"<code>{escape(media)}</code>"
        for media, content in holder["content"].items()
    )


def _schema(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f'<section class="schema" id="{escape(name)}"><b>{escape(name)}</b> {_words(schema["description"])}<table>'
    required = schema.get("required", ())
    for field, shape in schema.get("properties", {}).items():
        told = [_type(shape), *_limits(shape), *(["may be missing"] if field not in required else [])]
        text = _words(shape.get("description", ""))
        yield f"<tr><th><code>{escape(field)}</code></th><td>{', '.join(told)}. {text}</td></tr>"
    yield "</table></section>"


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = _name(schema["$ref"])
        return _link(f"#{name}", name)
    if "anyOf" in schema:
        return " or ".join(", ".join([_type(choice), *_limits(choice)]) for choice in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return " or ".join(f"<code>{escape(dumps(value))}</code>" for value in values)
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return escape(" ".join(filter(None, (schema.get("type", "anything"), schema.get("format")))))


def _limits(schema: Mapping[str, Any]) -> list[str]:
    told = [f"{words} {schema[key]}" for key, words in _RANGES.items() if key in schema]
    if "pattern" in schema:
        told.append(f"like <code>{escape(schema['pattern'])}</code>")
    if "default" in schema:
        told.append(f"default <code>{escape(dumps(schema['default']))}</code>")
    return told


def _words(text: str) -> str:
    """Marks up text with its `code`."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


def _link(target: str, text: str = "") -> str:
    return f'<a href="{escape(target)}"><code>{escape(text or target)}</code></a>'


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]
