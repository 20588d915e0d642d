"""The coins that pay for a bid where bids are transactions: plain ones of the payment address only."""

from __future__ import annotations

from collections.abc import Collection

from markets.base import NotSupported, VenueError
from markets.funding import ToFund
from markets.offers import Coin
from markets.utxos import Utxo
from strategy.reasons import FaultCode, PlaceResult, Step
from workers.context import Context
from workers.faults import Faults

COINS_S = 2.0  # how old the list of coins may be: it is read only when something is to be placed
# A coin's assets never change; a spend shows in the list.
CONTENTS_S = 3600.0
MOST_COINS = 20  # for one bid: the signer looks each of them up
# Less does not come back as change: nodes relay no such small output.
DUST_SATS = 546


class PaymentCoins:
    """The coins of one payment address during one cycle."""

    def __init__(self, context: Context, payment: str, faults: Faults) -> None:
        self._context = context
        self._payment = payment
        self._faults = faults
        self._coins: list[Utxo] | None = None  # confirmed, dearest first
        self._is_plain: dict[str, bool] = {}
        self._has_unconfirmed = False
        self._has_unknown = False

    @property
    def is_in_doubt(self) -> bool:
        """Whether a coin was passed over that may pay later: in no block yet, or of contents that nobody knows."""
        return self._has_unconfirmed or self._has_unknown

    def pay(self, price: int, in_use: Collection[str], what: str = "a bid") -> tuple[Coin, ...] | PlaceResult:
        """Chooses the fewest coins, none of them `in_use`, that pay `price` sats and leave no dust; the dearest first.

        Else returns NO_COINS, or NOT_SENT when that could not be found out, with the fault noted.
        """
        chosen: list[Coin] = []
        failed_to = f"find coins for {what} of {price}"
        try:
            for coin in self._confirmed():
                if len(chosen) == MOST_COINS:
                    break
                if coin.outpoint in in_use or not self._holds_nothing(coin.outpoint):
                    continue
                chosen.append(Coin(coin.outpoint, coin.value))
                over = sum(each.value for each in chosen) - price
                if over == 0 or over >= DUST_SATS:
                    return tuple(chosen)
        except VenueError as error:
            backs_off = not isinstance(error, NotSupported)
            self._faults.add(Step.READ_COINS, failed_to, error, backs_off=backs_off, price_sats=price)
            return PlaceResult.NOT_SENT
        sats = sum(each.value for each in chosen)
        text = f"{sats} sats in {len(chosen)} confirmed coins are all that nothing else lies or stands on"
        code, fund = FaultCode.NO_COINS, ToFund(self._payment, price + DUST_SATS)  # one coin pays, and leaves no dust
        self._faults.add(
            Step.READ_COINS, failed_to, text, backs_off=False, code=code, price_sats=price, fund=fund, sats=sats
        )
        return PlaceResult.NO_COINS

    def _confirmed(self) -> list[Utxo]:
        if self._coins is None:
            found = self._context.market.coins(self._payment, COINS_S)
            confirmed = [coin for coin in found if coin.is_confirmed]
            self._has_unconfirmed = len(confirmed) < len(found)
            self._coins = sorted(confirmed, key=lambda coin: (-coin.value, coin.outpoint))
        return self._coins

    def _holds_nothing(self, outpoint: str) -> bool:
        """Tells whether the coin is known to hold neither inscription nor rune."""
        if outpoint not in self._is_plain:
            facts = self._context.market.outpoint(outpoint, CONTENTS_S)
            self._has_unknown = self._has_unknown or facts.inscriptions is None or facts.runes is None
            self._is_plain[outpoint] = facts.inscriptions == () and facts.runes == () and facts.is_unspent is not False
        return self._is_plain[outpoint]
