"""Sales: the venue's record of trades, the newest KEPT of each market."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass, fields, replace
from decimal import Decimal
from typing import Any

from simulator.orders import Kind, MarketKey, market_key, unit_price
from simulator.wire import plain

KEPT = 1_000


@dataclass(frozen=True, slots=True)
class Sale:
    """One trade: `price` sats for `quantity` tokens or for one inscription.

    `buyer` is the address that pays, `receive` gets the goods. `bid_id` is the bid sold into, or `ask_id` the listing
    bought, which stood since `listed_ms`; `venue` is the order's. `txid` is empty where nothing moved on the chain.
    """

    sale_id: str
    kind: Kind
    slug: str
    price: int
    quantity: Decimal
    sold_ms: int
    buyer: str
    receive: str
    seller: str
    bid_id: str | None = None
    inscription: str | None = None
    ask_id: str | None = None
    listed_ms: int | None = None
    venue: str = ""
    txid: str = ""

    def at(self, venue: str) -> bool:
        """Tells whether the filled order stood at `venue`."""
        return self.venue in ("", venue)

    @property
    def unit_price(self) -> Decimal:
        """Sats per whole token, or per inscription."""
        return unit_price(self.price, self.quantity)


class Sales:
    """The sales of every market, oldest first."""

    def __init__(self) -> None:
        self._of: dict[MarketKey, deque[Sale]] = {}
        # The scene `sale_names_other_item`: the inscription that sales into bids are said to have brought.
        self.other_item: str | None = None

    def record(self, sale: Sale) -> None:
        self._of.setdefault(market_key(sale.kind, sale.slug), deque(maxlen=KEPT)).append(sale)

    def of(self, key: MarketKey, since_ms: int = 0) -> list[Sale]:
        """Returns the sales of one market at or after `since_ms`, oldest first."""
        found = [sale for sale in self._of.get(key, ()) if sale.sold_ms >= since_ms]
        return found if self.other_item is None else [self._misnamed(sale) for sale in found]

    def _misnamed(self, sale: Sale) -> Sale:
        return sale if sale.bid_id is None or sale.inscription is None else replace(sale, inscription=self.other_item)

    def dump(self) -> list[dict[str, Any]]:
        """Returns plain JSON values that `load` reads back."""
        return [asdict(sale) | {"quantity": plain(sale.quantity)} for sales in self._of.values() for sale in sales]

    def load(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            # A state file from the time of one venue lacks the newer fields.
            known = {name: row[name] for name in _FIELDS if name in row}
            self.record(Sale(**(known | {"quantity": Decimal(row["quantity"])})))


_FIELDS = tuple(each.name for each in fields(Sale))
