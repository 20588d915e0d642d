"""One round of satflow-mm, written anew: it keeps no state and sends a whole ladder or none of it.

After github.com/SwapLabsInc/satflow-mm at 413c785: src/index.js (mainLoop), src/services/protocols/ordinals/
collection-manager.js (processCollection) and bidding.js. Calls to Magic Eden, mempool and ZenRows are left out, which
makes it cheaper than it is; so is the quantity of a step, which is one bid here.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.peers.desk import Desk

TICK = 1_000
LIFE_S = 7 * 86_400
THRESHOLD = 0.01  # UPDATE_THRESHOLD
CHEAPEST = 10  # NUM_CHEAPEST_ITEMS
TO_LISTING = 0.9  # MAX_BID_TO_LIST_RATIO


class SatflowMM:
    """`steps` are its ladder, shares of the mean of the cheapest listings."""

    def __init__(self, desk: Desk, steps: Sequence[float], loop_s: float = 15.0) -> None:
        self._desk = desk
        self._steps = steps
        self.loop_s = loop_s

    def cycle(self) -> None:
        desk = self._desk
        for what in ("challenge", "bidding wallet", "wallet contents"):
            desk.ask(what)
        live = desk.own_bids()
        listings = desk.listings()
        wanted = self._prices(listings)
        if live and self._is_changed(sorted({bid.price for bid in live}, reverse=True), wanted):
            desk.cancel(live)
            live = []
        if not live:
            for price in wanted:
                desk.place(price, LIFE_S)
        desk.ask("own listings")

    def _prices(self, listings: list[int]) -> list[int]:
        mean = sum(listings[:CHEAPEST]) / len(listings[:CHEAPEST])
        most = int(listings[0] * TO_LISTING) // TICK * TICK
        return [min(max(round(mean * step / TICK) * TICK, TICK), most) for step in self._steps]

    def _is_changed(self, live: list[int], wanted: list[int]) -> bool:
        """Tells whether the ladder changed: a step is gone, or off by more than the threshold."""
        points = sorted(set(wanted), reverse=True)
        if len(live) != len(points):
            return True
        return any(abs(old - new) / old > THRESHOLD for old, new in zip(live, points, strict=True))
