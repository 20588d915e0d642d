"""Play money and play inscriptions by address. Accounts and bidding wallets are two names of one balance."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from simulator.orders import Trait
from simulator.wire import plain
from wallet import bech32

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
        self.inscriptions: dict[str, dict[str, Item]] = {}
        self.runes: dict[str, dict[str, Decimal]] = {}

    def bidding_wallet(self, payment: str, ordinals: str) -> str:
        """The P2WSH address that collects the bids' money of this pair; the same pair has always the same one."""
        program = hashlib.sha256(f"bidding wallet {payment} {ordinals}".encode()).digest()
        address = bech32.encode("bc", 0, program)
        self._payment_of[address] = payment
        return address

    def _account(self, address: str) -> str:
        return self._payment_of.get(address, address)

    def balance(self, address: str) -> int:
        """Sats of the account that `address` belongs to."""
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
        """Who holds an inscription, and what it is."""
        for address, held in self.inscriptions.items():
            if inscription in held:
                return address, held[inscription]
        return None

    def move(self, item: Item, to: str) -> None:
        """Gives `item` to the address `to`, taking it from whoever holds it."""
        found = self.holder_of(item.id)
        if found:
            del self.inscriptions[found[0]][item.id]
        self.inscriptions.setdefault(to, {})[item.id] = item

    def dump(self) -> dict[str, Any]:
        """As plain JSON values; `load` reads it back."""
        return {
            "balances": self._balances,
            "payment_of": self._payment_of,
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
