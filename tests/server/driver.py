"""Asks operations of the description by their ids and holds every answer against what is described of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from server.description import document
from server.urls import DECLARED
from tests.server.api import Answer
from tests.server.conftest import Service
from tests.server.json_schema import Shapes

DOCUMENT = document(DECLARED)
OPERATIONS: dict[str, tuple[str, str, dict[str, Any]]] = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
SHAPES = Shapes(DOCUMENT["components"]["schemas"], closed=True)


def responses(operation_id: str) -> dict[int, dict[str, Any]]:
    """Returns the description of each status."""
    shared = DOCUMENT["components"]["responses"]
    return {
        int(status): shared[found["$ref"].rpartition("/")[2]] if "$ref" in found else found
        for status, found in OPERATIONS[operation_id][2]["responses"].items()
    }


def is_shared(operation_id: str, status: int) -> bool:
    """Tells whether a status is that of a slow marketplace, or of a part which any operation may need."""
    return status == 504 or (status in (503, 507) and "$ref" in OPERATIONS[operation_id][2]["responses"][str(status)])


def check(operation_id: str, answer: Answer) -> None:
    """Fails unless the answer's status, type, headers and body are as described."""
    found = responses(operation_id).get(answer.status)
    assert found is not None, f"{operation_id} answered {answer.status}: {answer.text[:300]}"
    media = answer.headers["Content-Type"].partition(";")[0]
    content = found["content"][media]
    assert [name for name in found.get("headers", ()) if name not in answer.headers] == [], operation_id
    if media == "application/json":
        assert (faults := SHAPES.faults(answer.json, content["schema"])) == [], (operation_id, answer.status, faults)
    else:
        assert answer.text


class Driver:
    """Asks as the owner (or with another `token`); `seen` is every (operation, status) that was answered."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.seen: set[tuple[str, int]] = set()

    async def __call__(
        self,
        operation_id: str,
        body: Any = None,
        *,
        path: Mapping[str, object] | None = None,
        query: Mapping[str, object] | None = None,
        token: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        method, url, _ = OPERATIONS[operation_id]
        for name, value in (path or {}).items():
            url = url.replace(f"{{{name}}}", quote(str(value), safe=""))
        url += "?" + urlencode(query) if query else ""
        token = self._service.token if token is None else token
        answer = await self._service.api(method, url, body, token=token, headers=headers)
        check(operation_id, answer)
        self.seen.add((operation_id, answer.status))
        return answer
