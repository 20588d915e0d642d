"""A signer whose user's payment address holds the coins of `offers.py`, asked to sign offers; on a clock of its own."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tests.wallet.conftest import GRANT, HOUR_MS, START_MS, USER, intent
from tests.wallet.fixed_keys import fixed_keys
from tests.wallet.offers import COINS, PRICE, VENUE, Offer, honest
from wallet.ceilings import Ceilings
from wallet.psbt.listing import OutpointFacts
from wallet.signer.audit import AuditLog
from wallet.signer.ledger import Ledger
from wallet.signer.signer import Signer

OFFER_GRANT = replace(GRANT, venue=VENUE, hardcap_sats=PRICE, outstanding_sats=4 * PRICE)


def facts_of(offer: Offer) -> dict[str, OutpointFacts]:
    return {str(outpoint): facts for outpoint, facts in offer.facts.items()}


def text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def asked_by(offer: Offer, number: int = 1, **changes: Any) -> dict[str, Any]:
    """What a worker asks to have signed."""
    fields = {
        "intent": intent(number),
        "price": offer.intent.price_sats,
        "quantity": "1",
        "expires_ms": START_MS + HOUR_MS,
        "slug": GRANT.slug,
        "trait": None,
        "psbts": [text(offer.draft.encode())],
        "coins": sorted(map(str, offer.intent.coins)),
    }
    return fields | changes


def offer(number: int = 1, price: int = PRICE, **changes: Any) -> dict[str, Any]:
    """An honest offer to be signed, with these fields changed."""
    return asked_by(honest("play", COINS, price), number, **changes)


class OfferDesk:
    """`facts` are what the signer is told of outputs."""

    def __init__(self, directory: Path, ceilings: Ceilings) -> None:
        self.now_ms = START_MS
        self.facts: dict[str, OutpointFacts] = facts_of(honest())
        self.audit_path = directory / "audit.jsonl"
        self.ledger_path = directory / "signer.db"
        self.audit = AuditLog(self.audit_path)
        self.ledger = Ledger(self.ledger_path)
        self.has_halt_file = False
        self.signer = Signer(
            self.ledger,
            self.audit,
            fixed_keys(USER),
            ceilings=ceilings,
            clock=lambda: self.now_ms,
            has_halt_file=lambda: self.has_halt_file,
        )
        self.secret = self.grant()

    def ask(self, op: str, **arguments: Any) -> dict[str, Any]:
        return self.signer.handle({"op": op, **arguments}, self.facts)

    def grant(self, **changes: Any) -> str:
        terms = asdict(replace(OFFER_GRANT, **changes))
        return str(self.ask("grant", grant=terms | {"operations": list(terms["operations"])})["secret"])

    def sign(self, asked: dict[str, Any], secret: str = "", task: int = 17, token: int = 5) -> list[str]:
        answer = self.ask("sign_offer", task=task, token=token, secret=secret or self.secret, offer=asked)
        return list(answer["psbts"])


@contextmanager
def offer_desk(directory: Path, ceilings: Ceilings | None = None) -> Iterator[OfferDesk]:
    opened = OfferDesk(directory, ceilings or Ceilings())
    try:
        yield opened
    finally:
        opened.audit.close()
        opened.ledger.close()
