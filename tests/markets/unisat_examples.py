"""UniSat's answers about its collection market, documented and recorded ones, and what was asked for them."""

from __future__ import annotations

import json
from typing import Any

import responses

from markets.unisat.adapter import UnisatMarket

BASE = "https://open-api.example"
TXID = "ab" * 32
INSCRIPTION = TXID + "i0"
VAULT = "bc1pvault"
STATISTIC = {"collectionId": "puppets", "name": "Puppets", "floorPrice": 50_000, "listed": 7, "total": 100}
LISTING = {
    "auctionId": "a1b2c3",
    "inscriptionId": INSCRIPTION,
    "inscriptionNumber": 7,
    "marketType": "fixedPrice",
    "address": VAULT,
    "price": 60_000,
    "unitPrice": 60_000,
    "nftType": "collection",
    "collectionId": "puppets",
    "collectionItemName": "Puppet #7",
    "notOnSale": None,
}
SOLD = {
    "auctionId": "a1b2c3",
    "inscriptionId": INSCRIPTION,
    "inscriptionNumber": 7,
    "event": "Sold",
    "price": 60_000,
    "from": VAULT,
    "to": "bc1pbuyer",
    "timestamp": 1_790_000_000_123,
    "collectionId": "puppets",
    "attributes": [{"trait_type": "Hat", "value": "Red"}],
}


# Answers of 2026-05-10, retyped with other names, addresses and ids ([R]: TerraBloch/floorboard,
# src/adapters/unisat/__fixtures__/). Asked without `isEnd`; the item of the first row was not for sale by then.
RECORDED_MS = 1_778_434_000_000
TRAIT_NAMES = ("Body", "Head", "Eyes", "Earring", "Count")


def recorded(number: int, price: int, unit_price: int | None, on_sale_ms: int, *attrs: tuple[Any, int, int]) -> Any:
    """Returns a row; `attrs` are values with the number of listings and the floor of each."""
    shown = zip(TRAIT_NAMES, attrs, strict=True)
    return {
        "auctionId": f"cdusou4421copuxv{number}",
        "amount": None if unit_price is None else 1,
        "collectionHighResImgUrl": None,
        "collectionId": "puppets",
        "collectionItemName": None,
        "contentType": "image/png",
        "domain": None,
        "inscriptionId": f"{number:064x}i0",
        "inscriptionNumber": 100_000 + number,
        "marketType": "fixedPrice",
        "nftType": "collection",
        "unitPrice": unit_price,
        "onSaleTime": on_sale_ms,
        "price": price,
        "address": "bc1pseller",
        "attrs": [
            {"traitType": kind, "value": value, "count": 200, "listingCount": count, "floorPrice": floor}
            for kind, (value, count, floor) in shown
        ],
    }


NO_EARRING, THREE = ("None", 12, 5_000_000), (3, 12, 5_000_000)
RECORDED = (
    recorded(
        1, 1_800_000, 18_000_000, 1_770_442_770_769, ("Pink", 0, 0), ("Wood", 0, 0), ("Frog", 0, 0), NO_EARRING, THREE
    ),
    recorded(
        2,
        1_800_000,
        1_800_000,
        1_770_442_780_695,
        ("Binary", 0, 0),
        ("None", 0, 0),
        ("Three", 1, 48_800_000),
        NO_EARRING,
        (2, 0, 0),
    ),
    recorded(
        3, 2_000_000, 2_000_000, 1_769_621_734_726, ("Arc", 0, 0), ("Hat", 0, 0), ("Patch", 0, 0), NO_EARRING, THREE
    ),
    recorded(
        4,
        4_700_000,
        4_700_000,
        1_747_477_230_125,
        ("Green", 0, 0),
        ("Cap", 0, 0),
        ("Bot", 1, 105_000_000),
        ("Gold", 0, 0),
        (4, 0, 0),
    ),
    recorded(
        5,
        39_000_000,
        None,
        1_705_239_110_728,
        ("Frog", 0, 0),
        ("Block", 2, 48_800_000),
        ("Patch", 0, 0),
        NO_EARRING,
        THREE,
    ),
)
FOR_SALE = recorded(
    6,
    5_000_000,
    50_000_000,
    1_770_000_000_000,
    ("Green", 4, 5_000_000),
    ("Cap", 1, 5_000_000),
    ("Bot", 2, 5_000_000),
    NO_EARRING,
    THREE,
)


STATISTICS = {"list": [{**STATISTIC, "collectionId": "frogs"}, STATISTIC], "total": 1988}


def market(now_ms: int = RECORDED_MS) -> UnisatMarket:
    return UnisatMarket(BASE, "key", "unisat", now_ms=lambda: now_ms)


def answers(step: str, data: Any, code: Any = 0, msg: str = "ok", status: int = 200) -> None:
    body = {"code": code, "msg": msg, "data": data}
    responses.post(f"{BASE}/v3/market/collection/auction/{step}", json=body, status=status)


def as_page(*entries: Any, total: Any = None) -> dict[str, Any]:
    return {"list": list(entries), "total": len(entries) if total is None else total, "timestamp": 1_790_000_000_000}


def sent() -> Any:
    return json.loads(responses.calls[-1].request.body or "")


def steps() -> list[str]:
    return [str(call.request.url).rpartition("/")[2] for call in responses.calls]
