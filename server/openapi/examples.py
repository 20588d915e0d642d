"""An example of every answer, made from its schema, with recognisable values for known field names."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from server.http.json_out import iso

_NOW_S = 1_790_000_000
_TIME = iso(1000 * _NOW_S)
_PAYMENT = "bc1qlzrwcf49yrltr5graye452qeypxcrwk7l0wg75"
_VAULT = "bc1pr5tl40fulfznkxw64j577qfx2927zlrydv2e9qwdzffgd3pnadcsk3hs39"
_TXID = "6fb976ab49dcec017f1e201e84395983204ae1a7c2abf7ced0a85d692e442799"
_ORDER = "65f0c0ffee65f0c0ffee65f0"

# By the field's name, or by "Schema.field" where one schema means something else by the name.
_VALUES: dict[str, Any] = {
    "DeliveryShown.error": None,
    "DeliveryShown.event": "fill",
    "DeliveryShown.eventId": 1_234,
    "DeliveryShown.id": 77,
    "DeliveryShown.state": "waiting",
    "DeliveryShown.status": None,
    "DeliveryShown.task": 4,
    "DeliveryShown.tries": 0,
    "doneAt": None,
    "dueAt": _TIME,
    "sentAt": _TIME,
    "hasSecret": True,
    "isFailing": False,
    "minIntervalSeconds": 0,
    "waiting": 0,
    "dead": 0,
    "lost": 0,
    "HookShown.events": ["fill", "error"],
    "HookShown.kind": "webhook",
    "HookShown.url": "https://hooks.example/...",
    "HookMade.events": ["fill", "error"],
    "HookMade.kind": "webhook",
    "HookMade.url": "https://hooks.example/...",
    "HookMade.secret": "8Jm0YQy3bqvFJv4v7mU1J3k2Y5z0nXx7a1b2c3d4e5f",
    "EventShown.at": _TIME,
    "EventShown.data": {"fill": "buy-17", "price": 75_000, "slug": "bitcoin-puppets"},
    "EventShown.event": "fill",
    "EventShown.id": 1_234,
    "EventShown.task": 4,
    "EventShown.text": "Bought 1 of bitcoin-puppets for 75,000 sats",
    "EventPage.next": 1_234,
    "Fill.floorAtFill": 100_000,
    "Fill.id": "buy-17",
    "Fill.price": 75_000,
    "Fill.side": "buy",
    "Fill.taskId": 4,
    "Fill.txid": None,
    "Fill.unitPrice": 75_000,
    "PlacedOrder.state": "live",
    "PlacedOrder.taskId": 4,
    "Profit.method": "fifo",
    "ProfitRow.key": None,
    "ProfitRow.bought": {"count": 2, "sats": 155_000},
    "ProfitRow.sold": {"count": 1, "sats": 105_000},
    "ProfitRow.held": {"count": 1, "costSats": 80_600, "markSats": 95_000},
    "ProfitRow.feesSats": 2_700,
    "ProfitRow.realizedPercent": Decimal("36.1"),
    "ProfitRow.realizedSats": 27_300,
    "ProfitRow.unknownFees": 0,
    "ProfitRow.unmatchedSales": 0,
    "BudgetLeft.name": "Puppets and monkes",
    "BudgetLeft.sats": 15_000,
    "BudgetLeft.fills": None,
    "SharedBudget.name": "Puppets and monkes",
    "SharedBudget.maxOpenSats": 150_000,
    "SharedBudget.maxFills": 0,
    "SharedBudget.spendCapSats": 0,
    "SharedBudget.spendCapPerDaySats": 0,
    "SharedBudget.taskIds": [4, 7],
    "SharedBudget.openBids": 2,
    "SharedBudget.openSats": 135_000,
    "SharedBudget.fills": 1,
    "SharedBudget.spentSats": 75_000,
    "SharedBudget.spentTodaySats": 0,
    "SharedBudget.freeSats": 15_000,
    "SharedBudget.freeFills": None,
    "TaskFills.count": 2,
    "TaskFills.last": _TIME,
    "TaskFills.spentSats": 135_000,
    "action": "placed 1, kept 4, cancelled 0",
    "ListingPreview.action": "list",
    "ListingPreview.reason": "list",
    "ListingPreview.note": "at 110,000: 1.1 x floor 100,000",
    "ListingPreview.price": 110_000,
    "holding": "held",
    "JudgedDraft.verdict": "the signer would sign it",
    "form": "plain",
    "Finding.why": "",
    "Finding.rule": "payout",
    "words": ["plain listing (SINGLE|ANYONECANPAY 0x83)"],
    "address": _PAYMENT,
    "ApiTokenShown.name": "price watcher",
    "autolist": [],
    "balanceSats": 250_000,
    "Bid.id": _ORDER,
    "Bid.price": 65_000,
    "cancels": [],
    "Challenge.message": f"Sign in to Bidkeeper as {_PAYMENT} until {_TIME} (nonce: 5f0c)",
    "challengeId": "3f0a2c4e-8d1b-4f6a-9c7e-2b5d8a1f4c60",
    "closedAt": None,
    "closeReason": None,
    "collectionId": "bitcoin-puppets",
    "collectionName": "Bitcoin Puppets",
    "contentType": "image/webp",
    "contentUrl": f"https://ordinals.com/content/{_TXID}i0",
    "createdAt": _TIME,
    "Cycle.error": None,
    "depthSats": 1_000_000,
    "destination": _PAYMENT,
    "coins": [f"{_TXID}:1"],
    "Cycle.detail": {"errors": []},
    "dryRun": True,
    "maxBidsPerTask": 20,
    "maxTasks": 10,
    "needsSignIn": False,
    "NewWithdrawal.inscriptionId": None,
    "NewWithdrawal.reason": None,
    "NewWithdrawal.venue": None,
    "paymentSats": 155_000,
    "PlannedRung.detail": "",
    "requestsPerSecond": 5,
    "PlanDetails.priceSats": 0,
    "durationDays": 30,
    "withdrawals": [],
    "worstLoss": 250_000,
    "ifAllFillNow": 65_000,
    "client": "Firefox, Linux",
    "usedAt": _TIME,
    "NewApiToken.name": "price watcher",
    "taskId": None,
    "maxHardcap": 90_000,
    "planMaxExposure": 50_000_000,
    "bidPlacedAt": _TIME,
    "burst": 9,
    "callsPerMonth": 100_000,
    "readsPerMinute": None,
    "writesPerMinute": None,
    "readsPerMinutePerWallet": None,
    "writesPerMinutePerWallet": None,
    "displayName": None,
    "errors": [],
    "expiresAt": _TIME,
    "exposure": 65_000,
    "feeReserve": 1_250,
    "feeSats": 305,
    "filledAt": _TIME,
    "floor": Decimal("0.899"),
    "floorPrice": 100_000,
    "from": "payment",
    "genesisTransaction": _TXID,
    "haltFile": False,
    "hardcapSats": 90_000,
    "hints": [],
    "hold": None,
    "imageUrl": f"https://ordinals.com/preview/{_TXID}i0",
    "Inscription.id": f"{_TXID}i0",
    "inscriptionId": f"{_TXID}i0",
    "inscriptionNumber": 0,
    "isAdmin": False,
    "lastError": None,
    "leftOut": [],
    "lines": [f"{_TIME} INFO cycle: placed 1, kept 4, cancelled 0"],
    "listedAt": _TIME,
    "listedCount": 120,
    "listingPrice": 110_000,
    "Listing.price": 110_000,
    "Listing.state": "live",
    "location": f"{_TXID}:0:0",
    "lowestNote": None,
    "lowestOutstanding": 110_000,
    "marks": [],
    "maxExposure": 1_000_000,
    "networkFee": 600,
    "next": None,
    "name": "Puppet #551",
    "ordinalsAddress": _VAULT,
    "outpoint": f"{_TXID}:0",
    "output": f"{_TXID}:0",
    "outputValue": 546,
    "owner": _VAULT,
    "payment": _PAYMENT,
    "plan": "beta",
    "PlanDetails.name": "beta",
    "price": 65_000,
    "priceSats": 110_000,
    "proceeds": None,
    "quotaLeft": 81_000,
    "quotaYours": {"used": 9_000, "share": 45_000},
    "rankUnknown": None,
    "rawReference": 100_000,
    "PlannedRung.reason": "place",
    "reference": 100_000,
    "refusal": None,
    "saleId": "65f0c0ffee65f0c0ffee65f1",
    "scope": "user",
    "seller": None,
    "sentSats": 150_000,
    "setAt": _TIME,
    "signed": [],
    "signedFreeAt": _TIME,
    "signedLimitSats": 5_000_000,
    "signedSats": 130_000,
    "slug": "bitcoin-puppets",
    "takenAt": _TIME,
    "tasks": [],
    "ticker": "DOG•GO•TO•THE•MOON",
    "title": "Satflow",
    "token": "cT9fV2xkR1pXb0l1Y2s3ZHdLbV9sUGJ0U3hYcUU0aFE",
    "trait": None,
    "Trait.type": "Hat",
    "Trait.value": "Red",
    "txid": _TXID,
    "updatedAt": _TIME,
    "vault": _VAULT,
    "venueFee": None,
    "venue": "satflow",
    "VenueInfo.bids": {"ordinals": {"tick": 1000, "minBid": 1000, "minDurationSeconds": 900}},
    "VenueInfo.calls": {"cancel": 2},
    "VenueInfo.name": "satflow",
    "vwap": Decimal("0.921"),
    "Challenge.expiresAt": _NOW_S,
    "time": _NOW_S,
    "WalletInscription.address": _VAULT,
    "WalletInscription.id": f"{_TXID}i0",
}
_NEW = {"BiddingConfig": "NewBiddingTask", "AutolistConfig": "NewAutolistTask"}
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
}


def of_error(status: int) -> dict[str, Any]:
    """Returns an example of the answer that `status` comes with."""
    return _ERRORS[status]


def of_answer(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    """Returns an example of a value of `schema`, which may refer to `schemas`; optional fields are left out."""
    return _value(schema, schemas, "", "")


def _value(schema: Mapping[str, Any], schemas: Mapping[str, Any], owner: str, field: str) -> Any:
    if f"{owner}.{field}" in _VALUES:
        return _VALUES[f"{owner}.{field}"]
    if "default" in schema or "const" in schema:
        return schema.get("default", schema.get("const"))
    if field in _VALUES:
        return _VALUES[field]
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return _object(schemas[name], schemas, name)
    if "anyOf" in schema:
        return _value(schema["anyOf"][0], schemas, owner, field)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "array":
        return [_value(schema["items"], schemas, "", "")]
    if kind in ("integer", "number"):
        return max(1, schema.get("minimum", 1))
    return {"boolean": True, "object": {}}.get(str(kind), field or "text")


def _object(schema: Mapping[str, Any], schemas: Mapping[str, Any], name: str) -> dict[str, Any]:
    properties = schema["properties"]
    if name in _NEW:  # an example config has a new task's defaults
        properties = properties | schemas[_NEW[name]]["properties"]
    return {field: _value(properties[field], schemas, name, field) for field in schema.get("required", ())}
