"""The operations on the service itself, and on the caller's money here."""

from __future__ import annotations

from server.http import prometheus
from server.http.answers import INVALID, SIGNER_AWAY, TOO_MANY_LOOKUPS, UNREADABLE
from server.openapi.operation import JSON, AnswerBody, Operation, one, page
from server.schemas.service_answers import Alive, NotReady, Ready
from server.schemas.withdrawals import NewWithdrawal, Quote, Wallet, WithdrawalBody

HTML = "text/html; charset=utf-8"
_TAG = "service"

OPERATIONS = {
    "GET /api/wallet": Operation(
        id="getWallet",
        tag="wallet",
        summary="My addresses here and the money behind my bids",
        text="With the balance behind the bids, what is signed, and the newest withdrawals.",
        success=one(Wallet, "`biddingWallet` is null, with `balanceError`, when it cannot be told."),
        errors={503: SIGNER_AWAY},
    ),
    "POST /api/wallet/withdraw": Operation(
        id="withdraw",
        tag="wallet",
        summary="Get my money and inscriptions out",
        text="From `payment` and `vault` everything goes to the address that the caller signs in with; the signer "
        "knows it by itself and sends nowhere else. From `bidding` sats come to the caller's payment address. Asking "
        "twice withdraws twice.",
        body=WithdrawalBody,
        success={
            200: AnswerBody("With `dryRun`: what would be sent.", Quote),
            201: AnswerBody("It is on its way.", NewWithdrawal),
            202: AnswerBody("It is signed, and it is not known yet whether it has left.", NewWithdrawal),
        },
        errors={
            400: INVALID,
            409: "Nothing can be withdrawn like this; `message` says why and what to do.",
            429: TOO_MANY_LOOKUPS,
            502: UNREADABLE,
            503: SIGNER_AWAY,
        },
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
