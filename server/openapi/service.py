"""The operations on the service itself."""

from __future__ import annotations

from server.http import prometheus
from server.openapi.operation import JSON, AnswerBody, Operation, many, one, page
from server.schemas.service_answers import Alive, NotReady, Ready, VenueInfo

HTML = "text/html; charset=utf-8"
_TAG = "service"

OPERATIONS = {
    "GET /api/venues": Operation(
        id="listVenues",
        tag="market",
        summary="Marketplaces that tasks can name",
        text="With what each can do here, its limits and what is left of its quota.",
        success=many(VenueInfo, "The default one first."),
    ),
    "GET /api/openapi.json": Operation(
        id="getDescription",
        tag=_TAG,
        summary="This description",
        text="OpenAPI 3.1. It changes with the version only, so ask with `If-None-Match`.",
        success=page(JSON, "OpenAPI 3.1."),
        is_open=True,
    ),
    "GET /docs": Operation(
        id="readReference",
        tag=_TAG,
        summary="This description to read",
        text="Made of the same description, without scripts.",
        success=page(HTML, "A page."),
        is_open=True,
    ),
    "GET /healthz": Operation(
        id="isAlive",
        tag=_TAG,
        summary="Does the server live",
        text="Asks nobody else, so it says nothing of the other programs. Names the version of this server.",
        success=one(Alive, "It lives."),
        is_open=True,
    ),
    "GET /readyz": Operation(
        id="isReady",
        tag=_TAG,
        summary="Does everything answer that is needed",
        text="Asks the database, the manager, the gateway, the facts, the hooks and the signer, each over a new "
        "connection and for two seconds at most. Reads the free space, and writes at most every ten seconds. The error "
        "is `Disk full` when less than 64 MiB are free. Names the version of this server.",
        success={200: AnswerBody("Everything answers.", Ready), 503: AnswerBody("It does not.", NotReady)},
        is_open=True,
    ),
    "GET /metrics": Operation(
        id="getMetrics",
        tag=_TAG,
        summary="Metrics for Prometheus",
        text="For programs on this machine that ask the server itself.",
        success=page(prometheus.CONTENT_TYPE, "Prometheus' text format."),
        errors={404: "The caller is not on this machine, or comes through a proxy."},
        is_open=True,
    ),
}
