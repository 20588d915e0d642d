"""Ordinals Wallet's routes under `/ordinalswallet`, and its spelling of errors, prices, ids, times and outpoints.

From ordinals-wallet/ow-cli: its client and the answers recorded in its fixtures.
"""

from __future__ import annotations

import hashlib
import re
import time
import uuid
from decimal import ROUND_DOWN, Decimal
from typing import Any

from simulator.chain import Coin
from simulator.engine import Engine, Market, Order, Sale
from simulator.handler import VenueHandler, by_path
from simulator.wire import ApiError, bad, plain, text
from wallet import address as addresses

VENUE = "ordinalswallet"
PREFIX = "/ordinalswallet"
RUNE_SLUG = "rune-"
# The buyer's fee, on top of the seller's price: 2.7 % of the buyer's price, at least 1,000 sats.
LEFT_OF_PRICE = Decimal("0.973")
CREATORS_PART = Decimal("0.05")  # of the buyer's price, where a collection's creator takes a part
LEAST_FEE = 1_000


class OrdinalsWalletHandler(VenueHandler):
    """The base handler: no key and no published limit; errors are `{"error": true, "message", "code"?}`."""

    dialect = VENUE

    def subject(self) -> str:
        return by_path(self)

    def error_body(self, status: int, text: str, code: str | None) -> dict[str, Any]:
        body: dict[str, Any] = {"error": True, "message": text}
        # This venue's codes are in lower case; those of the base's own errors are not this venue's.
        return body | {"code": code} if code and code.islower() else body

    def refuse(self, error: ApiError) -> None:
        if error.status not in (400, 404) or error.code or not self.world.scenes.has("ordinalswallet_bare_errors"):
            super().refuse(error)
            return
        # Nothing for what is not there, plain text for what cannot be.
        self.send_text(error.text if error.status == 400 else "", error.status)

    def market(self) -> Market:
        """Returns the collection of the path, or the rune of `rune-SPACED•NAME`."""
        slug = self.path_args[0]
        if slug.startswith(RUNE_SLUG):
            found = self.engine.market("runes", slug.removeprefix(RUNE_SLUG))
        else:
            found = self.engine.market("ordinals", slug)
        if found is None:
            raise ApiError(404, "no rows returned by a query that expected to return at least one row")
        return found

    def asks(self, market: Market) -> list[Order]:
        """Returns the asks at this venue, cheapest first by the buyer's price of each token."""
        asks = market.best("ask", self.engine.now_ms(), VENUE)
        return sorted(asks, key=lambda ask: (ask.unit_price * self.shown(ask) / ask.price, ask.placed_ms))

    def shown(self, made: Order | Sale) -> int:
        """Returns the sats that a listing or sale shows: a client's with the fees, scripts' and traders' as stated."""
        if made.venue != VENUE:
            return made.price
        market = self.engine.market(made.kind, made.slug)
        return gross(made.price, CREATORS_PART if market and market.creator else Decimal(0))

    def price_per(self, made: Order | Sale) -> str:
        """Returns sats per whole token, cut after 8 places: 119,223 for 93,159.95974 tokens are 1.27976654 each."""
        return plain((self.shown(made) / made.quantity).quantize(Decimal("1e-8"), ROUND_DOWN))

    def missing(self) -> Any:
        """Refuses a route that the venue has and this market lacks: drafts of recoveries, funded offers, purchases."""
        raise ApiError(400, "This is not offered here", "not_offered")


def mainnet_address(value: str) -> str:
    """Returns the normal form of a mainnet address. Raises ApiError(400)."""
    try:
        found = addresses.parse(value)
    except addresses.AddressError:
        raise bad("Invalid Address") from None
    if found.network != "mainnet":
        raise bad("Invalid Address")
    return found.text


def gross(price: int, creators_part: Decimal) -> int:
    """Returns the buyer's price of a listing whose seller gets `price`: 15,000 shows as 16,000, 300,000 as 308,324."""
    return max(price + LEAST_FEE, int(price / (LEFT_OF_PRICE - creators_part)))


def escrow_id(order_id: str) -> str:
    """Returns the UUID of an order here."""
    return str(uuid.UUID(bytes=hashlib.sha256(order_id.encode()).digest()[:16]))


def moment(at_ms: int) -> str:
    """Writes a time as `2026-05-05 18:30:03.972000+00`."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at_ms // 1000)) + f".{at_ms % 1000:03d}000+00"


def serialized(coin: Coin) -> str:
    """Writes an outpoint as in a transaction: 72 hex digits, txid and number little-endian."""
    txid, vout = coin.outpoint.split(":")
    return (bytes.fromhex(txid)[::-1] + int(vout).to_bytes(4, "little")).hex()


def made_up_txid(name: str) -> str:
    """Makes a txid for an output that never was on the chain."""
    return hashlib.sha256(f"never sent {name}".encode()).hexdigest()


def outpoint_of(ask: Order) -> str:
    """Returns the listed output; made up for a stranger's, which never was on the chain."""
    return ask.outpoint or f"{made_up_txid(ask.order_id)}:0"


def item_on(engine: Engine, outpoint: str) -> str:
    """Returns the first inscription on an output, empty for none."""
    coin = engine.chain.coins.get(outpoint)
    return coin.inscriptions[0] if coin and coin.inscriptions else ""


def x_only_key(body: dict[str, Any], name: str, form: re.Pattern[str]) -> str:
    """Reads a public key of this form; returns it x-only. Raises ApiError(400)."""
    found = form.fullmatch(text(body.get(name), name))
    if found is None:
        raise ApiError(400, "Invalid public key", "invalid_public_key")
    return found[1]
