"""One scheduled round of NFTToolz' Ordinals-bid-bot with a collection offer, written anew.

After github.com/NFTToolz/Ordinals-bid-bot at 49dc1fa: src/bid.ts (processScheduledLoop, the part for COLLECTION) and
src/functions/Offer.ts, where a cancel and a place are two calls each. It bids once per collection. Its answers to
events of a socket are left out, as are its calls to a mempool server.
"""

from __future__ import annotations

from bench.peers.desk import Desk

DETAILS_S = 30.0  # how long the collection's details are kept


class Nfttools:
    """`margin` is its outBidMargin in sats, `low` and `high` are minFloorBid and maxFloorBid as shares."""

    def __init__(
        self, desk: Desk, low: float, high: float, margin: int, loop_s: float = 30.0, life_s: float = 3_600.0
    ) -> None:
        self._desk = desk
        self._low, self._high, self._margin, self._life_s = low, high, margin, life_s
        self._details: tuple[int, int] | None = None  # when, floor
        self.loop_s = loop_s

    def cycle(self) -> None:
        desk = self._desk
        floor = self._floor()
        desk.ask("tokens")
        least, most = round(self._low * floor), round(self._high * floor)
        bids = desk.bids()
        if not bids:
            self._place(least, most, floor)
            return
        top, mine = bids[0], [bid for bid in bids if bid.maker == desk.maker][:1]
        if top.maker != desk.maker:
            wanted = top.price + self._margin
        elif len(bids) > 1:
            if top.price - bids[1].price <= self._margin:
                return
            wanted = bids[1].price + self._margin
        else:
            wanted = least
            if top.price == wanted:
                return
        if mine:
            desk.ask("cancel format")
            desk.cancel(mine)
        self._place(wanted, most, floor)

    def _floor(self) -> int:
        now_ms = self._desk.now_ms
        if self._details is None or now_ms - self._details[0] >= DETAILS_S * 1000:
            self._details = now_ms, self._desk.floor()
        return self._details[1]

    def _place(self, price: int, most: int, floor: int) -> None:
        price = -(-price // 1_000) * 1_000  # the practice market's grid
        if price <= most and price < floor:
            self._desk.ask("place format")
            self._desk.place(price, self._life_s)
