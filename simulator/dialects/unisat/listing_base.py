"""The common parts of UniSat's writes: readers of requests, codes of refusals."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from simulator.calls import AFTER_THE_DEED, Fault, Operation
from simulator.dialects.unisat.base import VENUE, UnisatHandler, refused
from simulator.listing.auctions import Asked, Step
from simulator.listing.listings import Cause, Unlistable
from simulator.listing.plain_listings import base64_of
from simulator.listing.psbt import Draft
from simulator.orders import Order, Refusal
from simulator.wire import ApiError, text
from wallet import address as addresses

# The range of a listing's price in sats; the venue does not publish its own.
LOWEST, HIGHEST = 1_000, 21_000_000 * 100_000_000
NOT_EXIST, SIGN_ERROR, LOW_PRICE, HIGH_PRICE = -100, -112, -132, -133
PRICE_CHANGED, GONE, REPEATED, BAD_PARAMS, LISTED = -139, -144, -145, -156, -160
_MAX_PSBT_TEXT = 200_000
_SATS = re.compile(r"[1-9][0-9]{0,15}")
_WORDS: dict[Cause, tuple[int, str]] = {
    "unknown": (-109, "Inscription not found, please try again later"),
    "holder": (-107, "Invalid NFT"),
    "unconfirmed": (-127, "Invalid NFT: not confirmed"),
    "crowded": (-126, "Invalid NFT: multi inscriptions"),
    "script": (-124, "Address type not supported"),
    "key": (-163, "The public key and address do not match"),
}


class AuctionHandler(UnisatHandler):
    """A step of an auction."""

    operation: Operation = "list"
    about = ("auctionId",)
    step: Step = "put_on"

    def listing(self, auction_id: str) -> Order:
        """Returns the open listing of that id. Raises ApiError when it is over or unknown."""
        order = self.world.engine.order(auction_id)
        if order is not None and order.side == "ask" and order.venue == VENUE and order.inscription is not None:
            return order
        if self.world.auctions.placed(auction_id):
            raise refused(GONE, "The listing is not available anymore")
        raise refused(NOT_EXIST, "Order not exist")

    def drafted(self, auction_id: str) -> Asked:
        """Returns the draft to be confirmed."""
        found = self.world.auctions.asked(auction_id, self.step)
        if found is None:
            raise refused(NOT_EXIST, "Order not exist")
        return found

    def late_ms(self) -> int:
        """Returns when a change takes effect: at once, or later under a fault."""
        late = self.fault.delay_seconds if self.fault and self.mode == "late" else 0
        return self.world.engine.now_ms() + round(late * 1000) if late else 0


class DraftHandler(AuctionHandler):
    """A step that only drafts: faults that follow a deed do not strike it."""

    def draw_fault(self) -> Fault | None:
        faults = self.world.faults
        found = faults.draw("draft") if self.operation == "list" else None
        return found or faults.draw(self.operation, but=AFTER_THE_DEED)


@contextmanager
def in_codes() -> Iterator[None]:
    """Turns the market's refusals into this venue's answers."""
    try:
        yield
    except Unlistable as refusal:
        raise refused(*_WORDS[refusal.cause]) from None
    except Refusal as refusal:
        raise refused(SIGN_ERROR, f"Sign error: {refusal}") from None


def hex_of(draft: Draft) -> str:
    return b64decode(draft.encode()).hex()


def signed_psbt(body: dict[str, Any]) -> str:
    """Reads the PSBT of a confirmation into base64; it is hex unless `fromBase64` is set. Raises Refusal."""
    psbt = text(body.get("psbt"), "psbt", _MAX_PSBT_TEXT)
    return psbt if body.get("fromBase64") is True else base64_of(psbt, "psbt")


def price_of(body: dict[str, Any]) -> int:
    """Reads the sats of `initPrice`, a text; `unitPrice` is the same for a single inscription."""
    found = [body.get(name) for name in ("initPrice", "unitPrice")]
    if not all(isinstance(each, str) and _SATS.fullmatch(each) for each in found):
        raise refused(BAD_PARAMS, "User params error: initPrice and unitPrice must be whole sats in text")
    if found[0] != found[1]:
        raise refused(BAD_PARAMS, "User params error: initPrice and unitPrice differ")
    price = int(str(found[0]))
    if price < LOWEST:
        raise refused(LOW_PRICE, f"The lowest listing amount of satoshis is {LOWEST}")
    if price > HIGHEST:
        raise refused(HIGH_PRICE, f"The highest listing amount of satoshis is {HIGHEST}")
    return price


def mainnet(value: Any, name: str) -> str:
    """Reads an address in its normal form."""
    try:
        found = addresses.parse(text(value, name))
    except (addresses.AddressError, ApiError):
        raise refused(BAD_PARAMS, f"User params error: {name} is no address") from None
    if found.network != "mainnet":
        raise refused(BAD_PARAMS, f"User params error: {name} is not of mainnet")
    return found.text
