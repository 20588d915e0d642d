"""The OpenAPI 3.1 document of the routes' operations and their shapes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from core.version import VERSION
from server.http.answers import TOO_SLOW, Error
from server.http.gate import MAX_BODY
from server.http.route import JSON, PARTS, Operation, Route
from server.openapi import examples
from server.openapi.shapes import REF, parameters_of, schemas_of

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
    return {"schema": schema, "example": examples.of_answer(schema, schemas)}


def _error(status: int, text: str, headers: Iterable[str]) -> Document:
    return _response(text, JSON, {"schema": _reference(Error), "example": examples.of_error(status)}, headers)


def _response(text: str, media: str, content: Document, headers: Iterable[str] = ()) -> Document:
    response: Document = {"description": text, "content": {media: content}}
    described = {name: {"description": _HEADERS[name], "schema": {"type": "string"}} for name in headers}
    return response | ({"headers": described} if described else {})


def _reference(shape: type[Struct]) -> Document:
    return {"$ref": REF.format(name=shape.__name__)}
