"""What a cycle looks at besides its own bids: asks, balance and fees. What cannot be read is None, never a guess."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import TypeVar

from markets.base import Balance, Fees, Kind, VenueError
from markets.client import MarketClient
from models.users import User
from strategy.book import Snapshot
from strategy.config import BidConfig
from wallet.client import UserKeys
from workers.faults import Faults

# An accepted bid costs its bidder a purchase transaction: about this size for ordinals and runes alike. Venues state
# some 600 sats for it at low rates.
PURCHASE_VBYTES = 250
SLOW_READ_S = 60.0  # balance and fees
KNOWN_SLUG_S = 300.0  # whether the market knows a slug at all
FEES_USABLE_MS = 30 * 60_000

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at the market; `asks_read` counts the asks before our user's own were removed."""

    snapshot: Snapshot | None
    asks_read: int
    balance_sats: int | None
    fee_reserve_sats: int | None


class Gatherer:
    """Reads the market for one task, and remembers the last fees that could be read."""

    def __init__(self, market: MarketClient, clock_ms: Callable[[], int]) -> None:
        self._market = market
        self._clock_ms = clock_ms
        self._fees: Fees | None = None

    def look(self, config: BidConfig, user: User, keys: UserKeys, faults: Faults) -> Seen:
        """Reads what may be half a cycle old for asks, a minute for the rest; notes what fails."""
        max_age_s = config.loop_s / 2
        read = self._market.rune_asks if config.is_rune else self._market.asks
        book = _try(lambda: read(config.slug, max_age_s), "read the asks", faults)
        balance = _try(lambda: self._balance(user, keys), "read the balance", faults)
        fee_reserve = self._fee_reserve(config.fee_rate, faults)
        if book is None:
            return Seen(None, 0, balance.sats if balance else None, fee_reserve)
        if not book.asks:
            self._note_unknown(config, faults)
        own = {user.address, user.ordinals_address, keys.payment, keys.vault}
        foreign = tuple(ask for ask in book.asks if ask.maker not in own)
        return Seen(Snapshot(book.taken_ms, foreign), len(book.asks), balance.sats if balance else None, fee_reserve)

    def _note_unknown(self, config: BidConfig, faults: Faults) -> None:
        """An empty book and one that does not exist look alike; the floors tell them apart, for the task's owner."""
        kind: Kind = "runes" if config.is_rune else "ordinals"
        try:
            known = self._market.floors([config.slug], kind, KNOWN_SLUG_S)
        except VenueError:
            return  # the next cycle asks again; nothing else hangs on it
        if not known:
            what = "rune" if config.is_rune else "collection"
            faults.add("find the market", f"it knows no {what} named {config.slug}", backs_off=False)

    def _balance(self, user: User, keys: UserKeys) -> Balance:
        return self._market.balance(keys.payment, user.ordinals_address, keys.payment_pubkey, SLOW_READ_S)

    def _fee_reserve(self, fee_rate: str | Decimal, faults: Faults) -> int | None:
        if isinstance(fee_rate, Decimal):
            return fee_reserve(fee_rate)
        fees = _try(lambda: self._market.fees(SLOW_READ_S), "read the fee rates", faults)
        self._fees = fees or self._fees
        if self._fees is None or self._clock_ms() - self._fees.taken_ms > FEES_USABLE_MS:
            return None
        return fee_reserve(tier_rate(self._fees, fee_rate))


def tier_rate(fees: Fees, tier: str) -> Decimal:
    """The rate (sat/vB) of a tier by its name in a config."""
    return {
        "fastestFee": fees.fastest,
        "halfHourFee": fees.half_hour,
        "hourFee": fees.hour,
        "minimumFee": fees.minimum,
    }[tier]


def fee_reserve(rate: Decimal) -> int:
    """Sats to keep for the fees of one purchase at `rate` sat/vB: 2.5 gives 625."""
    return int((rate * PURCHASE_VBYTES).to_integral_value(ROUND_CEILING))


def _try(read: Callable[[], Value], failed_to: str, faults: Faults) -> Value | None:
    try:
        return read()
    except VenueError as error:
        faults.add(failed_to, error)
        return None
