"""The actions of the venue, its other traders and its faults."""

from __future__ import annotations

import contextlib
from collections import Counter

from drills.faults.evidence import AskMove, Bid, bids
from drills.machine.house import House
from drills.machine.told import Told

NOTHING_LISTED = 1 << 62


class Market:
    """The market of a house, in which `wallets` are our users'."""

    def __init__(self, house: House, told: Told, wallets: list[str]) -> None:
        self._house = house
        self._told = told
        self._wallets = wallets

    @property
    def _now_ms(self) -> int:
        return self._house.clock.now_ms

    def collection(self, slug: str, floor: int | None, rivals: list[int], higher: int = 2) -> None:
        """Lists some from `floor` (sats) on, or nothing, and has others bid `rivals`."""
        asks = [] if floor is None else [{"price": floor + 5_000 * n} for n in range(higher + 1)]
        lowest = NOTHING_LISTED if floor is None else floor
        self._told.asks.append(AskMove(self._now_ms, slug, lowest))
        body = {"asks": asks, "bids": [{"price": price} for price in rivals]}
        self._house.wire.control("PUT", f"/sim/collections/{slug}", body)

    def rune(self, ticker: str, unit: int, rivals: list[int]) -> None:
        """Lots from `unit` sats a token on."""
        asks = [{"tokens": 300 + 200 * n, "unitPrice": unit + n} for n in range(3)]
        self._told.rune_asks.append(AskMove(self._now_ms, ticker, unit))
        body = {"divisibility": 0, "asks": asks, "bids": [{"tokens": 50, "unitPrice": price} for price in rivals]}
        self._house.wire.control("PUT", f"/sim/runes/{ticker}", body)

    def ours(self) -> list[Bid]:
        """Returns our bids that are live at the venue, without those that it made two of."""
        self._house.world.engine.expire()
        found = [bid for bid in bids(self._house.world.engine.history.rows(None)) if bid.end_ms is None]
        twice = Counter(bid.mark for bid in found)
        return [bid for bid in found if twice[bid.mark] == 1]

    def sell(self, nth: int) -> None:
        """Sells into one of our bids."""
        found = self.ours()
        if found:
            bid = found[nth % len(found)]
            with contextlib.suppress(ValueError):  # it may not be covered
                self._house.wire.control("POST", "/sim/sell", {"slug": bid.slug, "bidId": bid.order_id})
                self._told.done["sale"] += 1

    def balance(self, user: int, sats: int) -> None:
        payment = self._wallets[user]
        for address in (payment, *self._house.world.engine.wallets.bidding_wallets(payment)):
            self._house.wire.control("PUT", f"/sim/wallets/{address}", {"balance": sats})

    def fault(self, operation: str, mode: str, count: int, delay: int) -> None:
        body = {"operation": operation, "mode": mode, "count": count, "delaySeconds": delay}
        self._house.wire.control("PUT", "/sim/faults", [body])
        self._told.accepted_twice = self._told.accepted_twice or mode == "accept_twice"
        self._told.done[f"{operation} {mode}"] += 1

    def no_faults(self) -> None:
        self._house.wire.control("PUT", "/sim/faults", [])
