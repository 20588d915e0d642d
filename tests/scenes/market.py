"""The market of a stage, and the truth about it: the engine's own books, at the prices that sellers get."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

from simulator.engine import Engine, Market, Order, Sale, market_key
from simulator.holdings import members
from simulator.venues.ordinalswallet.reads import gross
from tests.scenes.stage import DIALECTS, ORDINALSWALLET, ORDNET, SATFLOW, Stage

CATS, DOGS, BIRDS, RUNE, NOWHERE = "cats", "dogs", "birds", "MODELRUNE", "nowhere-at-all"
TRAIT = ("Hat", "Red")
BOOK, SURELY_SHOWN = 200, 190  # orders of a book that the gateway gives: at most, and at least of a longer one
# What can still be read as an order among odd rows has ten times a real price, or a tenth.
FAR = 5


class Made(NamedTuple):
    """The market's collections, and the items in our vault: one to be listed at each venue, and one that is not."""

    collections: tuple[str, ...]
    to_list: dict[str, str]
    kept: str


def build(stage: Stage, *, asks: int) -> Made:
    """Opens three collections and a rune with strangers' orders and past sales; the first has `asks` listings."""
    chance = stage.chance
    for slug, count in ((CATS, asks), (DOGS, chance.randint(2, 8)), (BIRDS, chance.randint(2, 8))):
        rows: list[dict[str, Any]] = [
            {
                "price": 100_000 + 1_000 * chance.randint(0, 99) + at,
                "traits": {TRAIT[0]: chance.choice(["Red", "Blue"])},
            }
            for at in range(count)
        ]
        bids: list[dict[str, Any]] = [{"price": 1_000 * chance.randint(30, 60)} for _ in range(chance.randint(2, 6))]
        bids += [{"price": 5_000 * chance.randint(6, 12), "trait": {TRAIT[0]: TRAIT[1]}}]
        stage.wire.control("PUT", f"/sim/collections/{slug}", {"asks": rows, "bids": bids})
    lots = [{"tokens": chance.randint(50, 500), "unitPrice": 100 + at} for at in range(chance.randint(2, 6))]
    offers = [{"tokens": chance.randint(50, 100), "unitPrice": chance.randint(30, 60)} for _ in range(3)]
    divisibility = chance.choice([0, 2])
    stage.wire.control("PUT", f"/sim/runes/{RUNE}", {"divisibility": divisibility, "asks": lots, "bids": offers})
    items = [f"{chance.getrandbits(256):064x}i0" for _ in range(len(DIALECTS) + 1)]
    held = [{"id": each, "collection": CATS, "traits": {TRAIT[0]: "Blue"}} for each in items]
    stage.wire.control("PUT", f"/sim/wallets/{stage.keys.vault}", {"inscriptions": held})
    stage.wire.control("PUT", f"/sim/coins/{stage.keys.payment}", {"values": [10**8] * 6})
    for slug in (CATS, DOGS, BIRDS, RUNE):
        for at in range(chance.randint(2, 5)):
            record_sale(stage.world.engine, stage, slug, at)
    return Made((CATS, DOGS, BIRDS), dict(zip(DIALECTS, items, strict=False)), items[-1])


def record_sale(engine: Engine, stage: Stage, slug: str, at: int) -> None:
    """Notes a past sale between strangers: every second one of an ask, the others into a bid."""
    rune = slug == RUNE
    quantity = Decimal(stage.chance.randint(10, 90)) if rune else Decimal(1)
    engine.sales.record(
        Sale(
            sale_id=engine.new_id(),
            kind="runes" if rune else "ordinals",
            slug=slug,
            price=int(quantity) * 100 + at if rune else 90_000 + at,
            quantity=quantity,
            sold_ms=engine.now_ms() - 60_000 * (10 - at),
            buyer=engine.new_address(),
            receive=engine.new_address("p2tr"),
            seller=engine.new_address("p2tr"),
            bid_id=engine.new_id() if at % 2 else None,
            inscription=None if rune else engine.new_inscription(),
            ask_id=None if at % 2 else engine.new_id(),
            listed_ms=engine.now_ms() - 3_600_000,
            txid=f"{stage.chance.getrandbits(256):064x}",
        )
    )


# What is true


def market_of(stage: Stage, slug: str) -> Market:
    return stage.world.engine.markets[market_key("runes" if slug == RUNE else "ordinals", slug)]


def asks_of(stage: Stage, venue: str, slug: str) -> list[Order]:
    return market_of(stage, slug).best("ask", stage.clock.now_ms, DIALECTS[venue])


def ask_prices(stage: Stage, venue: str, slug: str) -> list[int]:
    """Returns what sellers get, cheapest first."""
    return sorted(_paid(stage, venue, ask) for ask in asks_of(stage, venue, slug))


def bids_of(stage: Stage, venue: str, slug: str) -> list[Order]:
    return market_of(stage, slug).best("bid", stage.clock.now_ms, DIALECTS[venue])


def sales_of(stage: Stage, venue: str, slug: str) -> list[Sale]:
    """Returns the sales that the venue shows: all at Satflow and ord.net, of asks alone at the others."""
    found = stage.world.engine.sales.of(market_of(stage, slug).key)
    at_venue = [sale for sale in found if venue == SATFLOW or sale.at(DIALECTS[venue])]
    return [sale for sale in at_venue if venue in (SATFLOW, ORDNET) or sale.bid_id is None]


def sale_price(venue: str, sale: Sale) -> int:
    return _seller_gets(sale.price) if venue == ORDINALSWALLET and sale.venue == "" else sale.price


def trait_counts(stage: Stage, venue: str, slug: str) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    known = members(stage.world.engine, market_of(stage, slug), DIALECTS[venue])
    for kind, value in (trait for member in known for trait in member.item.traits):
        values = found.setdefault(kind, {})
        values[value] = values.get(value, 0) + 1
    return found


def _paid(stage: Stage, venue: str, ask: Order) -> int:
    return _seller_gets(ask.price) if venue == ORDINALSWALLET and ask.venue == "" else ask.price


def _seller_gets(shown: int) -> int:
    """Returns the highest price of a seller that Ordinals Wallet shows as no more than `shown`."""
    price = shown
    while gross(price, Decimal(0)) > shown:
        price -= max(1, (gross(price, Decimal(0)) - shown) // 2)
    while gross(price + 1, Decimal(0)) <= shown:
        price += 1
    return price
