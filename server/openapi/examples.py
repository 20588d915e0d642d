"""An example of every answer, made from its schema: the values are its types' own examples (core/fields.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.fields import A_TIME

Schema = Mapping[str, Any]
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
    """Returns an example of the answer that `status` comes with."""
    return _ERRORS[status]


def of_answer(schema: Schema, schemas: Mapping[str, Schema], name: str = "text") -> Any:
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
