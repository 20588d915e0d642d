"""The events of UniSat's markets (listings, their ends, new prices, sales), for its two `actions` routes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from simulator.calls import Operation
from simulator.dialects.unisat.base import VENUE, UnisatHandler
from simulator.engine import Engine
from simulator.orders import Market
from simulator.scenes import Made
from simulator.wire import bad

Event = Literal["Listed", "Sold", "Cancel", "Updated"]
EVENTS = ("Cancel", "Claim", "Listed", "Sold", "Updated")
# The history's reason for a listing that ended because its seller asked another price.
REPRICED = "another price"


@dataclass(frozen=True, slots=True)
class Action:
    """One event of a listing; `price` sats for `quantity`, `to` the buyer."""

    event: Event
    auction_id: str
    at_ms: int
    price: int
    quantity: Decimal
    maker: str
    inscription: str | None
    to: str | None = None
    txid: str = ""


class Actions(UnisatHandler):
    """`POST .../actions`, newest first. A subclass finds the market and adds fields to a row."""

    operation: Operation = "sales"
    about = ("inscriptionId", "collectionId", "tick", "address")

    def wanted_markets(self, wanted: dict[str, Any]) -> list[Market]:
        raise NotImplementedError

    def more(self, action: Action, market: Market) -> dict[str, Any]:
        raise NotImplementedError

    def data(self) -> dict[str, Any]:
        body = self.body()
        wanted = body.get("filter")
        if not isinstance(wanted, dict):
            raise bad("filter must be an object")
        if wanted.get("event") not in (None, *EVENTS):
            raise bad(f"filter.event must be one of {', '.join(EVENTS)}")
        found = [
            (action, market)
            for market in self.wanted_markets(wanted)
            for action in actions(self.engine, market)
            if _meets(action, wanted)
        ]
        found.sort(key=lambda each: each[0].at_ms, reverse=True)
        rows = self.staged("sales", Made(lambda each: self._row(*each), found), found)
        return {"list": self.page(body, rows), "total": len(rows)}

    def _row(self, action: Action, market: Market) -> dict[str, Any]:
        held = self.engine.wallets.holder_of(action.inscription) if action.inscription else None
        row = {
            "auctionId": action.auction_id,
            "inscriptionId": action.inscription or "",
            "inscriptionNumber": held[1].number if held else 0,
            "event": action.event,
            "price": action.price,
            "from": action.maker,
            "to": action.to,
            "timestamp": action.at_ms,
        }
        if self.shows("unisat_sale_txid"):
            row |= {"txid": action.txid or None, "amount": 1, "unitPrice": action.price}
        return row | self.more(action, market)


def actions(engine: Engine, market: Market) -> Iterator[Action]:
    """Yields every event of one market that is still known: sales, open listings, and clients' actions here."""
    for sale in engine.sales.of(market.key):
        if sale.at(VENUE) and sale.bid_id is None:
            sold = sale.quantity, sale.seller, sale.inscription, sale.receive, sale.txid
            yield Action("Sold", sale.ask_id or sale.sale_id, sale.sold_ms, sale.price, *sold)
    for ask in market.best("ask", engine.now_ms(), VENUE):
        if ask.venue != VENUE:
            yield Action(
                "Listed", ask.order_id, ask.placed_ms, ask.price, ask.quantity, ask.maker, ask.inscription, None
            )
    listed: set[str] = set()
    for row in engine.history.rows():
        if row.get("venue") != VENUE or row["kind"] != "ask" or row["slug"] != market.slug:
            continue
        about = (
            row["orderId"],
            row["time"],
            row["price"],
            Decimal(str(row["quantity"])),
            row["maker"],
            row["inscriptionId"],
        )
        if row["event"] == "accepted":
            yield Action("Updated" if row["orderId"] in listed else "Listed", *about)
            listed.add(row["orderId"])
        elif row["event"] == "cancelled" and row.get("reason") != REPRICED:
            yield Action("Cancel", *about)


def _meets(action: Action, wanted: dict[str, Any]) -> bool:
    """Tells whether an action passes a filter's event, inscription and address (as seller or buyer)."""
    return (
        wanted.get("event") in (None, action.event)
        and wanted.get("inscriptionId") in (None, action.inscription)
        and wanted.get("address") in (None, action.maker, action.to)
    )
