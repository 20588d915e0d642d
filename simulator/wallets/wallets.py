"""Play money and play inscriptions by address.

Each address has a balance of its own. Of a payment address's bidding wallets only the first one has sats at first: as
many as a fresh address, or half of what the payment address was given.
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
        self._pair_of: dict[str, Pair] = {}
        self.bidding_kind: WalletKind = "2of2"  # of the bidding wallets that are asked for from now on
        self.inscriptions: dict[str, dict[str, Item]] = {}
        self.runes: dict[str, dict[str, Decimal]] = {}

    def bidding_wallet(self, payment: str, ordinals: str, public_key: str) -> str:
        """Returns the address that collects the bids' money of this pair, always the same one for a `bidding_kind`.

        `public_key` (hex) is the payment address's.
        """
        pair = Pair(payment, ordinals, public_key)
        address = address_of(pair, self.bidding_kind)
        if address not in self._pair_of:
            self._pair_of[address] = pair
            self._fund(address, payment)
        return address

    def _fund(self, address: str, payment: str) -> None:
        """Gives a new bidding wallet its first sats."""
        if self.bidding_wallets(payment)[0] != address:
            self._balances.setdefault(address, 0)
        elif payment in self._balances and address not in self._balances:
            whole = self._balances[payment]
            self._balances[address] = whole // 2
            self._balances[payment] = whole - whole // 2

    def pair_of(self, bidding_wallet: str) -> Pair:
        """Returns the owner of a bidding wallet."""
        return self._pair_of[bidding_wallet]

    def bidding_wallets(self, payment: str) -> list[str]:
        """Returns the bidding wallets of a payment address, oldest first."""
        return [address for address, pair in self._pair_of.items() if pair.payment == payment]

    def backing(self, payment: str) -> int:
        """Returns the sats that back the bids of `payment`: its bidding wallets', or its own while it has none."""
        return sum(map(self.balance, self.bidding_wallets(payment) or [payment]))

    def pay_from_backing(self, payment: str, sats: int) -> None:
        """Takes the cost of a bid of `payment` from its backing."""
        for address in self.bidding_wallets(payment) or [payment]:
            part = min(sats, self.balance(address))
            self.debit(address, part)
            sats -= part

    def balance(self, address: str) -> int:
        """Returns the sats of `address`."""
        return self._balances.get(address, FRESH_BALANCE)

    def set_balance(self, address: str, sats: int) -> None:
        self._balances[address] = sats

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
            "pair_of": self._pair_of,
            "bidding_kind": self.bidding_kind,
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
        # An older state file, without withdrawals, has neither.
        pairs = row.get("pair_of", {}).items()
        self._pair_of = {address: Pair(*map(str, pair)) for address, pair in pairs}
        self.bidding_kind = row.get("bidding_kind", "2of2")
        # In an older state file, bidding wallets may be other names of a payment address's balance.
        for address, payment in row.get("payment_of", {}).items():
            self._fund(address, payment)
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
