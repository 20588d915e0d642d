"""The OpenAPI description of the interface, made from routes and shapes, and its form as an HTML page."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from html import escape
from typing import Any

from msgspec import NODEFAULT, Struct, inspect, json

from core.fields import A_TIME
from core.version import VERSION
from server.http.answers import TOO_SLOW, Error
from server.http.base import JSON, PARTS, Operation, Route
from server.http.gate import MAX_BODY
from server.http.shapes import Answer, Asked, Beyond, OpenAnswer, dumps

Schema = dict[str, Any]
REF = "#/components/schemas/{name}"
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_TYPES: dict[type, str] = {bool: "boolean", int: "integer", str: "string"}


def schemas_of(shapes: Iterable[type[Struct]]) -> dict[str, Schema]:
    """Returns the schemas of shapes and of all nested shapes, by name."""
    by_name: dict[str, type[Struct]] = {}
    for shape in (shape for shape in inside(shapes) if issubclass(shape, Struct)):
        if by_name.setdefault(shape.__name__, shape) is not shape:
            raise TypeError(f"two shapes are named {shape.__name__}")
    _, found = json.schema_components(sorted(by_name.values(), key=lambda shape: shape.__name__), ref_template=REF)
    return {name: _tidy(_of_shape(by_name.get(name), schema)) for name, schema in sorted(found.items())}


def inside(shapes: Iterable[type[Any]]) -> set[type[Any]]:
    """Returns shapes with all nested shapes and the shapes that their annotations name."""
    found = set[type[Any]]()

    def visit(kind: Any) -> None:
        if isinstance(kind, inspect.StructType):
            add(kind.cls)
        for shape in _described(kind):
            add(shape)
        for name in ("type", "item_type", "value_type"):
            if isinstance(inner := getattr(kind, name, None), inspect.Type):
                visit(inner)
        for inner in (*getattr(kind, "types", ()), *getattr(kind, "item_types", ())):
            visit(inner)

    def add(shape: type[Any]) -> None:
        if shape in found:
            return
        found.add(shape)
        for field in _fields(shape):
            visit(field.type)

    for shape in shapes:
        add(shape)
    return found


def _fields(shape: type[Struct]) -> tuple[inspect.Field, ...]:
    found = inspect.type_info(shape)
    assert isinstance(found, inspect.StructType)
    return found.fields


def _described(kind: inspect.Type) -> tuple[type[Any], ...]:
    found: tuple[type[Any], ...] = _extra(kind).get("described", ())
    return found


def _extra(kind: inspect.Type) -> dict[str, Any]:
    return (kind.extra or {}) if isinstance(kind, inspect.Metadata) else {}


def parameters_of(shape: type[Asked]) -> list[Schema]:
    """Returns the descriptions of a query's parameters."""
    _, found = json.schema_components([shape], ref_template=REF)
    schema = _tidy(found[shape.__name__])
    described = []
    for name, property_ in schema["properties"].items():
        # A query has no null: a parameter is left out instead.
        if "anyOf" in property_:
            (only,) = (each for each in property_.pop("anyOf") if each != {"type": "null"})
            property_ = only | property_
        if property_.get("default", "") is None:
            del property_["default"]
        if "items" in property_:  # because a query holds a list as text
            property_ = {"type": "string", "minLength": 1, "description": property_["description"]}
        text = property_.pop("description")
        required = name in schema.get("required", ())
        described.append({"name": name, "in": "query", "required": required, "description": text, "schema": property_})
    return described


def _of_shape(shape: type[Struct] | None, schema: Schema) -> Schema:
    """Applies the annotations. All fields of an answer are required, except those that default to UNSET."""
    properties = schema.get("properties", {})
    if shape is None:
        return schema
    is_answer, fields = issubclass(shape, Answer), _fields(shape)
    if is_answer:
        schema["required"] = [field.encode_name for field in fields if not _may_be_unset(field)]
    if issubclass(shape, OpenAnswer):
        schema["additionalProperties"] = True
    for field in fields:
        property_ = properties[field.encode_name]
        if is_answer:
            property_.pop("default", None)
        elif isinstance(field.default, Decimal):  # because msgspec writes it as text
            property_["default"] = field.default
        elif isinstance(field.default, tuple):
            property_["default"] = list(field.default)
        if shapes := _described(field.type):
            property_ = properties[field.encode_name] = _referring(shapes, property_)
        mark = _extra(field.type).get("beyond")
        if isinstance(mark, Beyond):
            property_["description"] = " ".join(filter(None, (property_.get("description"), mark.words())))
    return schema


def _referring(shapes: Iterable[type[Any]], schema: Schema) -> Schema:
    """Returns the schema of a field whose annotation names its shapes."""
    choices: list[Schema] = [{"$ref": REF.format(name=shape.__name__)} for shape in shapes]
    if {"type": "null"} in schema.get("anyOf", ()):
        choices.append({"type": "null"})
    words = {name: schema[name] for name in ("description",) if name in schema}
    return (choices[0] if len(choices) == 1 else {"anyOf": choices}) | words


def _may_be_unset(field: inspect.Field) -> bool:
    return not field.required and field.default is NODEFAULT and field.default_factory is NODEFAULT


def _tidy(schema: Any) -> Any:
    """Normalises a schema: numbers for decimals, a type with its choices, each description on one line."""
    if isinstance(schema, list):
        return [_tidy(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    tidy = {key: value if key in ("enum", "default", "example") else _tidy(value) for key, value in schema.items()}
    if isinstance(tidy.get("default"), tuple):
        tidy["default"] = list(tidy["default"])
    if isinstance(tidy.get("title"), str):  # otherwise it is a field called `title`
        del tidy["title"]
    if "x-type" in tidy:
        tidy["type"] = tidy.pop("x-type")
    # msgspec writes a Decimal in annotations as text.
    tidy |= {key: Decimal(tidy[key]) for key in _BOUNDS if isinstance(tidy.get(key), str)}
    if tidy.get("type") == "object" and "properties" not in tidy:
        tidy.setdefault("additionalProperties", True)
    if tidy.get("format") == "decimal":
        del tidy["format"]
        tidy["type"] = "number"
    if "enum" in tidy and "type" not in tidy and len(kinds := {type(each) for each in tidy["enum"]}) == 1:
        tidy["type"] = _TYPES[kinds.pop()]
    if isinstance(text := tidy.get("description"), str):
        # Line breaks within a paragraph of a docstring only fit the source file.
        tidy["description"] = re.sub(r"(?<!\n)\n(?!\n)", " ", text)
    return tidy


Written = Mapping[str, Any]
_ERRORS: dict[int, dict[str, Any]] = {
    400: {"error": "Validation failed", "details": ["hardcapSats: is required"]},
    401: {"error": "Unauthorized"},
    403: {"error": "Address not whitelisted for beta access", "message": "Please contact the admin to get access."},
    404: {"error": "Not found"},
    409: {"error": "Conflict", "message": "There is a task for this slug already."},
    413: {"error": "Request body too large", "message": "A body may have at most 65536 bytes."},
    415: {"error": "Unsupported media type", "message": "Send JSON with Content-Type: application/json."},
    429: {"error": "Too many sign-in calls", "message": "Wait, then try again."},
    502: {"error": "The marketplace cannot be read", "message": "the venue does not answer"},
    503: {"error": "The signer cannot be asked", "message": "the signer is locked"},
    504: {"error": "The marketplace takes too long", "message": "it has not answered in time; ask again soon"},
    507: {"error": "The disk is full", "message": "Make room, then try again."},
}


def of_error(status: int) -> dict[str, Any]:
    """Returns an example of an error answer with this status."""
    return _ERRORS[status]


def of_answer(schema: Written, schemas: Mapping[str, Written], name: str = "text") -> Any:
    """Returns an example of a value of `schema`, which may refer to `schemas`; optional fields are left out."""
    if "examples" in schema:
        return schema["examples"][0]
    if "default" in schema or "const" in schema:
        return schema.get("default", schema.get("const"))
    if "enum" in schema:
        return schema["enum"][0]
    if "$ref" in schema:
        return of_answer(schemas[schema["$ref"].rpartition("/")[2]], schemas, name)
    if "anyOf" in schema:
        return of_answer(schema["anyOf"][0], schemas, name)
    kind = schema.get("type")
    if kind == "object":
        fields = schema.get("properties", {})
        return {field: of_answer(fields[field], schemas, field) for field in schema.get("required", ())}
    if kind == "array":
        return [of_answer(schema["items"], schemas)] * max(1, schema.get("minItems", 1))
    if kind in ("integer", "number"):
        return min(max(1, schema.get("minimum", 1)), schema.get("maximum", 1))
    if schema.get("format") == "date-time":
        return A_TIME
    return {"boolean": True, "string": name}.get(str(kind))


Document = dict[str, Any]

TAGS = {
    "sign-in": "A challenge, its signature for a token, and the profile behind it.",
    "sessions": "Clients that are signed in, API tokens, and the ceilings that bound both.",
    "bidding tasks": "Ladders of bids on one collection or rune each: kept, watched, started and stopped.",
    "budgets": "Limits that several bidding tasks share.",
    "market": "Floors, prices and marketplaces, before a task is made.",
    "auto-list tasks": "Listings of single inscriptions, kept at their price.",
    "inscriptions": "The caller's inscriptions, and any single one.",
    "presets": "Named configs to make tasks of.",
    "history": "Everything that was bid, bought and sold.",
    "events": "What happened, as it happens: a stream, pages.",
    "hooks": "Where you are told: webhooks, chats, mail.",
    "control": "States that hold all bids and listings back.",
    "wallet": "The caller's addresses here, and the way out for money and inscriptions.",
    "administration": "Who may use this installation, and how it is. For administrators only, never for API tokens.",
    "service": "The service itself: whether it lives, its metrics and this description.",
}
_TEXT = """\
Bidkeeper keeps bids and listings alive on marketplaces of Bitcoin Ordinals and Runes.

Every call but those to sign in needs `Authorization: Bearer TOKEN`, a session's or an API token's. Checks come in the \
order 401, 404, 400, 409, 403; only what an API token may not do at all is 403 before all else. A field or a parameter \
that an operation does not know is 400; one that takes no body or no query says so before it looks for the id. \
Every answer but success is an `Error`. Any path answers 404 when it is nothing, 405 with `Allow` to another method, \
and 400, 413 or 415 to a body that is badly framed, too large or multipart, also where none is wanted. A write \
answers 507 if the disk is full; 503 names the part of the installation that is away. Sats are whole numbers; a price \
per token is a decimal number with all its digits, so read it as one if money depends on it."""
_HEADERS = {
    "Location": "Path of what was created.",
    "WWW-Authenticate": "`Bearer`.",
    "Retry-After": "Seconds.",
}
_OF_ERRORS = {429: ("Retry-After",)}
_COMMON = {
    400: ("BadRequest", "The request is badly framed, or has a field or a parameter that is not known.", ()),
    401: ("Unauthorized", "The bearer token is missing, malformed, unknown or over.", ("WWW-Authenticate",)),
    403: ("NotForThisToken", "An API token came that may not do this.", ()),
    413: ("TooLarge", f"The body has more than {MAX_BODY} bytes.", ()),
    415: ("Multipart", "The body is multipart.", ()),
    503: ("Away", "The database, or another part of the installation, is away; `error` names it.", ()),
    507: ("DiskFull", "The installation's disk has no room to store this.", ()),
}


def document(routes: Iterable[Route]) -> Document:
    """Describes the operations of `routes`."""
    every = [operation for route in routes for operation in route.operations.values()]
    schemas = schemas_of({Error, *(shape for operation in every for shape in _shapes(operation))})
    paths: dict[str, dict[str, Any]] = {}
    for operation in every:
        paths.setdefault(operation.path, {})[operation.verb.lower()] = _operation(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Bidkeeper",
            "version": VERSION,
            "description": _TEXT,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": tag, "description": text} for tag, text in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {name: _error(status, text, headers) for status, (name, text, headers) in _COMMON.items()},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "From `signIn` or `createApiToken`."}
            },
        },
    }


def _shapes(operation: Operation) -> Iterator[type[Struct]]:
    found = (operation.body, operation.answer[0], *(shape for _, shape in operation.also.values()))
    yield from (shape for shape in found if shape is not None)


def _operation(operation: Operation, schemas: Document) -> Document:
    summary, text = operation.words
    described: Document = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": summary,
        "description": " ".join([text, *_scopes(operation)]),
        "security": _security(operation),
    }
    parts = re.findall(r"\{(\w+)\}", operation.path)
    parameters = [{"name": name, "in": "path", "required": True, "schema": PARTS[name][1]} for name in parts]
    parameters += [] if operation.query is None else parameters_of(operation.query)
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": {JSON: {"schema": _reference(operation.body)}}}
    described["responses"] = dict(sorted(_responses(operation, schemas)))
    return described


def _scopes(operation: Operation) -> Iterator[str]:
    if not operation.is_open:
        named = " or ".join(f"`{scope}`" for scope in operation.scopes)
        yield f"API tokens need the scope {named}." if named else "Not for API tokens."


def _security(operation: Operation) -> list[dict[str, list[str]]]:
    bearer: dict[str, list[str]] = {"bearer": []}
    if operation.may_sign_in:
        return [{}, bearer]
    return [] if operation.is_open else [bearer]


def _responses(operation: Operation, schemas: Document) -> Iterator[tuple[str, Document]]:
    yield str(operation.status), _answer(operation, schemas)
    for status, (text, shape) in operation.also.items():
        yield str(status), _response(text, JSON, _content(_reference(shape), schemas))
    slow = {504: TOO_SLOW} if 502 in operation.errors else {}
    for status, text in {**operation.errors, **slow}.items():
        yield str(status), _error(status, text, _OF_ERRORS.get(status, ()))
    common = [] if 400 in operation.errors else [400]
    common += [status for status in (401, 403) if not operation.is_open and status not in operation.errors]
    if 503 not in operation.errors and 503 not in operation.also and (operation.errors or not operation.is_open):
        common.append(503)
    if operation.verb != "GET":
        common += [413, 415, 507]
    for status in common:
        yield str(status), {"$ref": f"#/components/responses/{_COMMON[status][0]}"}


def _answer(operation: Operation, schemas: Document) -> Document:
    shape, is_list = operation.answer
    if shape is None:
        content: Document = {"schema": _of_media(operation.media)}
    else:
        one = _reference(shape)
        content = _content({"type": "array", "items": one} if is_list else one, schemas)
    response = _response(operation.says, operation.media.partition(";")[0], content, operation.headers)
    for media in operation.others:
        response["content"][media] = {"schema": _of_media(media)}
    return response


def _of_media(media: str) -> Document:
    if media == JSON:
        return {"type": "object"}
    return {"type": "string"} | ({"format": "binary"} if media.startswith("image/") else {})


def _content(schema: Document, schemas: Document) -> Document:
    return {"schema": schema, "example": of_answer(schema, schemas)}


def _error(status: int, text: str, headers: Iterable[str]) -> Document:
    return _response(text, JSON, {"schema": _reference(Error), "example": of_error(status)}, headers)


def _response(text: str, media: str, content: Document, headers: Iterable[str] = ()) -> Document:
    response: Document = {"description": text, "content": {media: content}}
    described = {name: {"description": _HEADERS[name], "schema": {"type": "string"}} for name in headers}
    return response | ({"headers": described} if described else {})


def _reference(shape: type[Struct]) -> Document:
    return {"$ref": REF.format(name=shape.__name__)}


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
                body += _operation_shown(path, method, operation, document["components"]["responses"])
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


def _operation_shown(path: str, method: str, operation: Mapping[str, Any], shared: Mapping[str, Any]) -> Iterator[str]:
    yield f'<details id="{escape(operation["operationId"])}"><summary><b>{method}</b> <code>{escape(path)}</code>'
    yield f" <span>{escape(operation['summary'])}</span></summary>"
    if "description" in operation:
        yield f"<p>{_words(operation['description'])}</p>"
    token = {0: "No token.", 1: "Needs a bearer token.", 2: "A bearer token may be sent."}
    yield f"<p>{token[len(operation['security'])]}</p>"
    if rows := [_parameter(parameter) for parameter in operation.get("parameters", ())]:
        yield f"<table>{''.join(rows)}</table>"
    if "requestBody" in operation:
        yield f"<p>Body: {_content_shown(operation['requestBody'])}</p>"
    yield "<table>"
    for status, response in operation["responses"].items():
        if "$ref" in response:
            response = shared[_name(response["$ref"])]
        yield f"<tr><th>{escape(status)}</th><td>{_words(response['description'])}</td>"
        yield f"<td>{_content_shown(response)}</td></tr>"
    yield "</table></details>"


def _parameter(parameter: Mapping[str, Any]) -> str:
    told = [_type(parameter["schema"]), *_limits(parameter["schema"])]
    told += ["required"] if parameter["required"] else []
    text = _words(parameter.get("description", ""))
    place = f"in the {escape(parameter['in'])}"
    return f"<tr><th><code>{escape(parameter['name'])}</code></th><td>{place}: {', '.join(told)}. {text}</td></tr>"


def _content_shown(holder: Mapping[str, Any]) -> str:
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
    """Escapes text for HTML and marks up its `code`."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


def _link(target: str, text: str = "") -> str:
    return f'<a href="{escape(target)}"><code>{escape(text or target)}</code></a>'


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]
