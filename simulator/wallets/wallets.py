"""Play money and play inscriptions by address.

A payment address and its bidding wallets are names of one balance, until its owner moves some of it on the chain: from
then on each has a balance of its own, equal to the common one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from simulator.orders import Trait
from simulator.wallets.bidding_wallets import Pair, WalletKind, address_of
from simulator.wire import plain

FRESH_BALANCE = 100_000_000


@dataclass(frozen=True, slots=True)
class Item:
    """One inscription; `collection` is a collection's slug."""

    id: str
    collection: str
    name: str
    traits: tuple[Trait, ...] = ()
    number: int = 0


class Wallets:
    """Balances in sats (a fresh address has FRESH_BALANCE), inscriptions and whole rune tokens of every address."""

    def __init__(self) -> None:
        self._balances: dict[str, int] = {}
        self._payment_of: dict[str, str] = {}
        self._pair_of: dict[str, Pair] = {}
        self.bidding_kind: WalletKind = "2of2"  # of the bidding wallets that are asked for from now on
        # Bidding wallets by payment address, once they no longer share its money, newest last.
        self._separate: dict[str, list[str]] = {}
        self.inscriptions: dict[str, dict[str, Item]] = {}
        self.runes: dict[str, dict[str, Decimal]] = {}

    def bidding_wallet(self, payment: str, ordinals: str, public_key: str) -> str:
        """Returns the address that collects the bids' money of this pair, always the same one for a `bidding_kind`.

        `public_key` (hex) is the payment address's.
        """
        pair = Pair(payment, ordinals, public_key)
        address = address_of(pair, self.bidding_kind)
        self._pair_of[address] = pair
        if payment not in self._separate:
            self._payment_of[address] = payment
        elif address not in self._separate[payment]:
            self._separate[payment].append(address)
            self._balances.setdefault(address, 0)
        return address

    def pair_of(self, bidding_wallet: str) -> Pair:
        """Returns the owner of a bidding wallet."""
        return self._pair_of[bidding_wallet]

    def bidding_wallets(self, payment: str) -> list[str]:
        """Returns the bidding wallets of a payment address, oldest first."""
        return [address for address, pair in self._pair_of.items() if pair.payment == payment]

    def separate(self, payment: str) -> None:
        """Gives the newest bidding wallet of `payment` the common balance as its own, and `payment` as well."""
        mine = self.bidding_wallets(payment)
        if payment in self._separate or not mine:
            return
        common = self.balance(payment)
        self._separate[payment] = mine
        for address in mine:
            del self._payment_of[address]
            self._balances[address] = common if address == mine[-1] else 0

    def backing(self, payment: str) -> int:
        """Returns the sats that back the bids of `payment`: those of its bidding wallets."""
        if payment not in self._separate:
            return self.balance(payment)
        return sum(map(self.balance, self._separate[payment]))

    def paying_wallets(self, payment: str) -> list[str]:
        """Returns the bidding wallets whose coins pay for bids of `payment`: while they share its money, the newest."""
        return self._separate.get(payment) or self.bidding_wallets(payment)[-1:]

    def pay_from_backing(self, payment: str, sats: int) -> None:
        """Takes the cost of a bid of `payment` from its backing."""
        for address in self._separate.get(payment, [payment]):
            part = min(sats, self.balance(address))
            self.debit(address, part)
            sats -= part

    def _account(self, address: str) -> str:
        return self._payment_of.get(address, address)

    def balance(self, address: str) -> int:
        """Returns the sats of the account that `address` belongs to."""
        return self._balances.get(self._account(address), FRESH_BALANCE)

    def set_balance(self, address: str, sats: int) -> None:
        self._balances[self._account(address)] = sats

    def debit(self, address: str, sats: int) -> None:
        self.set_balance(address, max(0, self.balance(address) - sats))

    def credit(self, address: str, sats: int) -> None:
        self.set_balance(address, self.balance(address) + sats)

    def credit_rune(self, address: str, ticker: str, tokens: Decimal) -> None:
        held = self.runes.setdefault(address, {})
        held[ticker] = held.get(ticker, Decimal(0)) + tokens

    def holder_of(self, inscription: str) -> tuple[str, Item] | None:
        """Returns the holder of an inscription and its item."""
        for address, held in self.inscriptions.items():
            if inscription in held:
                return address, held[inscription]
        return None

    def move(self, item: Item, to: str) -> None:
        """Gives `item` to the address `to`, taking it from its holder."""
        found = self.holder_of(item.id)
        if found:
            del self.inscriptions[found[0]][item.id]
        self.inscriptions.setdefault(to, {})[item.id] = item

    def dump(self) -> dict[str, Any]:
        """Returns plain JSON values that `load` reads back."""
        return {
            "balances": self._balances,
            "payment_of": self._payment_of,
            "pair_of": self._pair_of,
            "bidding_kind": self.bidding_kind,
            "separate": self._separate,
            "inscriptions": {
                address: [asdict(item) for item in held.values()] for address, held in self.inscriptions.items()
            },
            "runes": {
                address: {ticker: plain(tokens) for ticker, tokens in held.items()}
                for address, held in self.runes.items()
            },
        }

    def load(self, row: dict[str, Any]) -> None:
        self._balances = dict(row["balances"])
        self._payment_of = dict(row["payment_of"])
        # An older state file, without withdrawals, has neither.
        pairs = row.get("pair_of", {}).items()
        self._pair_of = {address: Pair(*map(str, pair)) for address, pair in pairs}
        self.bidding_kind = row.get("bidding_kind", "2of2")
        self._separate = {payment: list(mine) for payment, mine in row.get("separate", {}).items()}
        self.inscriptions = {
            address: {item["id"]: _item(item) for item in held} for address, held in row["inscriptions"].items()
        }
        self.runes = {
            address: {ticker: Decimal(tokens) for ticker, tokens in held.items()}
            for address, held in row["runes"].items()
        }


def _item(row: dict[str, Any]) -> Item:
    traits = tuple((str(key), str(value)) for key, value in row["traits"])
    return Item(row["id"], row["collection"], row["name"], traits, row["number"])
