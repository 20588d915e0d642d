"""The operations that tell of the service itself, and of the caller's money here."""

from __future__ import annotations

from server import prometheus
from server.openapi.operation import JSON, SIGNER_AWAY, Answer, Operation, one, page
from server.schemas import answers

HTML = "text/html; charset=utf-8"
_TAG = "service"

OPERATIONS = {
    "GET /api/wallet": Operation(
        id="getWallet",
        tag="wallet",
        summary="My addresses here and the money behind my bids",
        success=one(answers.Wallet, "`biddingWallet` is null, with `balanceError`, when it cannot be told."),
        errors={503: SIGNER_AWAY},
    ),
    "POST /api/wallet/withdraw": Operation(
        id="withdraw",
        tag="wallet",
        summary="Send sats away",
        text="Refused for now.",
        success={},
        errors={400: "It cannot be done yet."},
    ),
    "GET /api/openapi.json": Operation(
        id="getDescription",
        tag=_TAG,
        summary="This description",
        success=page(JSON, "OpenAPI 3.1."),
        is_open=True,
    ),
    "GET /docs": Operation(
        id="readReference", tag=_TAG, summary="This description to read", success=page(HTML, "A page."), is_open=True
    ),
    "GET /healthz": Operation(
        id="isAlive",
        tag=_TAG,
        summary="Does the server live",
        success=one(answers.Alive, "It lives."),
        is_open=True,
    ),
    "GET /readyz": Operation(
        id="isReady",
        tag=_TAG,
        summary="Does everything answer that is needed",
        success={200: Answer("Everything answers.", answers.Ready), 503: Answer("It does not.", answers.NotReady)},
        is_open=True,
    ),
    "GET /metrics": Operation(
        id="getMetrics",
        tag=_TAG,
        summary="Metrics for Prometheus",
        success=page(prometheus.CONTENT_TYPE, "Prometheus' text format."),
        errors={404: "The caller is not on this machine, or comes through a proxy."},
        is_open=True,
    ),
}
