"""A signer whose user's payment address holds the coins of `offers.py`, asked to sign offers; on a clock of its own."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

from tests.shapes import replace
from tests.wallet.conftest import GRANT, HOUR_MS, START_MS, USER, Bench, intent
from tests.wallet.fixed_keys import fixed_keys
from tests.wallet.offers import COINS, PRICE, VENUE, Offer, honest
from wallet.keystore.keys import Keystore
from wallet.psbt.listing import OutpointFacts

OFFER_GRANT = replace(GRANT, venue=VENUE, hardcap_sats=PRICE, outstanding_sats=4 * PRICE)


def facts_of(offer: Offer) -> dict[str, OutpointFacts]:
    return {str(outpoint): facts for outpoint, facts in offer.facts.items()}


def text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def asked_by(offer: Offer, number: int = 1, **changes: Any) -> dict[str, Any]:
    """Makes a worker's request for signatures."""
    fields = {
        "intent": intent(number),
        "price": offer.intent.price_sats,
        "quantity": "1",
        "expires_ms": START_MS + HOUR_MS,
        "slug": GRANT.slug,
        "trait": None,
        "psbts": [text(offer.draft.encode())],
        "leaf": offer.leaf.script().hex(),
        "coins": sorted(map(str, offer.intent.coins)),
    }
    return fields | changes


def offer(number: int = 1, price: int = PRICE, **changes: Any) -> dict[str, Any]:
    """Returns an honest offer to be signed, with these fields changed."""
    return asked_by(honest(coins=COINS, price=price), number, **changes)


@dataclass
class OfferDesk(Bench):
    """`facts` are what the signer is told of outputs."""

    terms = OFFER_GRANT
    facts: dict[str, OutpointFacts] = field(default_factory=lambda: facts_of(honest()))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.secret = self.grant()

    def keystore(self) -> Keystore:
        return fixed_keys(USER)

    def known(self, asked: dict[str, Any]) -> dict[str, OutpointFacts]:
        return self.facts

    def sign(self, asked: dict[str, Any], secret: str = "", task: int = 17, token: int = 5) -> list[str]:
        answer = self.ask("sign_offer", task=task, token=token, secret=secret or self.secret, offer=asked)
        return list(answer["psbts"])


@dataclass
class RealOfferDesk(OfferDesk):
    """A signer with real keys."""

    terms = replace(OFFER_GRANT, venue="ordnet")

    def keystore(self) -> Keystore:
        return fixed_keys(USER, is_play=False)


offer_desk, real_offer_desk = OfferDesk.opened, RealOfferDesk.opened
