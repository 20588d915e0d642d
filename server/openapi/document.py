"""The OpenAPI 3.1 document: the route table, the descriptions of its operations, and the schemas that validate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from core.version import VERSION
from server.http.answers import TOO_SLOW, Error
from server.http.base import Handler
from server.http.gate import MAX_BODY
from server.http.route import PARTS, Route
from server.http.route import Operation as Declared
from server.openapi import (
    examples,
    listing,
)
from server.openapi import shapes as described_shapes
from server.openapi.operation import JSON, AnswerBody, Operation, Parameter

Document = dict[str, Any]

OPERATIONS: dict[str, Operation] = {
    **listing.OPERATIONS,
}
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
_REF = "#/components/schemas/{model}"
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


def operations(declared: Iterable[Route]) -> dict[str, Operation]:
    """Returns the description of every operation by its method and path."""
    return OPERATIONS | {each.name: _of_declared(each) for route in declared for each in route.operations.values()}


def _of_declared(declared: Declared) -> Operation:
    summary, text = declared.words
    model, is_list = declared.answer
    success = {
        declared.status: AnswerBody(
            declared.says, model, is_list, media=declared.media, others=declared.others, headers=declared.headers
        ),
        **{status: AnswerBody(words, shape) for status, (words, shape) in declared.also.items()},
    }
    return Operation(
        id=declared.id,
        tag=declared.tag,
        summary=summary,
        text=text,
        success=success,
        errors=declared.errors,
        body=declared.body,
        query=tuple(
            Parameter(each["name"], each["schema"], each["description"], each["required"])
            for each in (described_shapes.parameters_of(declared.query) if declared.query else ())
        ),
        is_open=declared.is_open,
        may_sign_in=declared.may_sign_in,
    )


def document(
    routes: Iterable[tuple[str, type[Handler]]], scopes: Mapping[str, Iterable[str]], declared: Iterable[Route]
) -> Document:
    """Describes `routes`, with the `scopes` of API tokens by operation.

    Raises KeyError for an operation without a description.
    """
    known = operations(declared)
    schemas = _schemas(known)
    paths: dict[str, dict[str, Any]] = {}
    for pattern, handler in routes:
        if not handler.is_of_interface:
            continue
        path, parameters = _path(pattern)
        paths[path] = {
            method.lower(): _operation(
                known[f"{method} {path}"], method, parameters, schemas, scopes.get(f"{method} {pattern}", ())
            )
            for method in handler.described()
        }
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


def _path(pattern: str) -> tuple[str, list[dict[str, Any]]]:
    parameters = []
    for name, (group, schema) in PARTS.items():
        if group in pattern:
            pattern = pattern.replace(group, f"{{{name}}}")
            parameters.append({"name": name, "in": "path", "required": True, "schema": schema})
    return pattern, parameters


def _operation(
    operation: Operation, method: str, parameters: list[dict[str, Any]], schemas: Document, scopes: Iterable[str]
) -> Document:
    described: Document = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": " ".join([operation.text, *_scopes(operation, scopes)]),
    }
    described["security"] = _security(operation)
    if parameters or operation.query:
        described["parameters"] = [*parameters, *map(_parameter, operation.query)]
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": {JSON: {"schema": _reference(operation.body)}}}
    described["responses"] = dict(sorted(_responses(operation, method, schemas)))
    return described


def _scopes(operation: Operation, scopes: Iterable[str]) -> Iterator[str]:
    if not operation.is_open:
        named = " or ".join(f"`{scope}`" for scope in scopes)
        yield f"API tokens need the scope {named}." if named else "Not for API tokens."


def _security(operation: Operation) -> list[dict[str, list[str]]]:
    bearer: dict[str, list[str]] = {"bearer": []}
    if operation.may_sign_in:
        return [{}, bearer]
    return [] if operation.is_open else [bearer]


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": parameter.text,
        "schema": dict(parameter.schema),
    }


def _responses(operation: Operation, method: str, schemas: Document) -> Iterator[tuple[str, Document]]:
    for status, answer in operation.success.items():
        yield str(status), _answer(answer, schemas)
    slow = {504: TOO_SLOW} if 502 in operation.errors else {}
    for status, text in {**operation.errors, **slow}.items():
        yield str(status), _error(status, text, _OF_ERRORS.get(status, ()))
    common = [] if 400 in operation.errors else [400]
    common += [status for status in (401, 403) if not operation.is_open and status not in operation.errors]
    if 503 not in operation.errors and (operation.errors or not operation.is_open):
        common.append(503)
    if method != "GET":
        common += [413, 415, 507]
    for status in common:
        yield str(status), {"$ref": f"#/components/responses/{_COMMON[status][0]}"}


def _answer(answer: AnswerBody, schemas: Document) -> Document:
    schema: dict[str, Any] = {"type": "object"} if answer.media == JSON else _text(answer.media)
    if answer.model is not None:
        schema = _reference(answer.model)
    if answer.is_list:
        schema = {"type": "array", "items": schema}
    content = {"schema": schema} | ({"example": examples.of_answer(schema, schemas)} if answer.model else {})
    response = _response(answer.text, answer.media.partition(";")[0], content, answer.headers)
    for media in filter(None, (answer.stream, *answer.others)):
        response["content"][media] = {"schema": _text(media)}
    return response


def _text(media: str) -> dict[str, Any]:
    """Describes an answer that is no JSON: generated clients leave the bytes of a picture alone."""
    return {"type": "string", "format": "binary"} if media.startswith("image/") else {"type": "string"}


def _error(status: int, text: str, headers: Iterable[str]) -> Document:
    return _response(text, JSON, {"schema": _reference(Error), "example": examples.of_error(status)}, headers)


def _response(text: str, media: str, content: Document, headers: Iterable[str]) -> Document:
    response: Document = {"description": text, "content": {media: content}}
    described = {name: {"description": _HEADERS[name], "schema": {"type": "string"}} for name in headers}
    return response | ({"headers": described} if described else {})


def _reference(model: type[BaseModel] | type[Struct]) -> dict[str, Any]:
    return {"$ref": _REF.format(model=model.__name__)}


class _Plain(GenerateJsonSchema):
    """Schemas without titles that only repeat a field's name in other letters."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _schemas(known: Mapping[str, Operation]) -> dict[str, Any]:
    models: dict[str, type[BaseModel]] = {}
    shapes: list[type[Struct]] = [Error]
    for operation in known.values():
        for model in [operation.body, *(answer.model for answer in operation.success.values())]:
            if model is not None and issubclass(model, Struct):
                shapes.append(model)
            elif model is not None:
                models[model.__name__] = model
    models |= {each.__name__: each for each in described_shapes.inside(shapes) if issubclass(each, BaseModel)}
    _, schema = models_json_schema(
        [(model, "validation") for model in models.values()], ref_template=_REF, schema_generator=_Plain
    )
    old = {name: _tidy(found) for name, found in schema["$defs"].items()}
    return dict(sorted((old | described_shapes.schemas_of(shapes)).items()))


def _tidy(schema: dict[str, Any]) -> dict[str, Any]:
    """Joins a docstring's lines, whose breaks are its file's, not its reader's."""
    return schema | {"description": re.sub(r"(?<!\n)\n(?!\n)", " ", schema.get("description", ""))}
