"""A signer whose user's vault holds the inscription of `listings.py`, asked to list it; on a clock of its own."""

from __future__ import annotations

import base64
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tests.shapes import replace
from tests.wallet.conftest import GRANT, START_MS, USER, Bench
from tests.wallet.fixed_keys import fixed_keys
from tests.wallet.listings import INSCRIPTION, PRICE, Case, honest
from wallet.keystore.keys import Keystore
from wallet.policy import PLAY_VENUE
from wallet.psbt.listing import OutpointFacts
from wallet.terms import Ceilings

TASK = 2**40 + 1
SECURE_AT_PLAY = frozenset({PLAY_VENUE})
LIST_GRANT = replace(
    GRANT,
    task=TASK,
    operations=("list", "cancel"),
    slug="",
    hardcap_sats=0,
    outstanding_sats=0,
    outstanding_task_sats=0,
    inscription_id=INSCRIPTION,
    min_price_sats=200_000,
    expires_ms=START_MS + 10_000 * 24 * 3_600_000,
)
FACTS = cast(OutpointFacts, honest().facts)


def listing_intent(number: int) -> str:
    return f"{number:064x}"


def text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def draft_at(price: int, form: Any = "listing") -> str:
    """Returns an honest draft that pays `price` and the postage."""
    case = honest("p2tr", form)
    case.payout.value += price - PRICE
    return text(case.draft.encode())


_PLAIN = draft_at(PRICE)


def listing(number: int = 1, price: int = PRICE, **changes: Any) -> dict[str, Any]:
    """Returns an honest listing to be signed, plain and secure, with these fields changed."""
    fields = {
        "intent": listing_intent(number),
        "inscription_id": INSCRIPTION,
        "outpoint": str(honest().intent.outpoint),
        "price": price,
        "psbt": draft_at(price),
        "secure": [draft_at(price, "secure")],
        "transfer": "",
        "recovery": "",
    }
    return fields | changes


def listing_of(case: Case, number: int) -> dict[str, Any]:
    """Returns the listing that a liar's case asks for; a secure form comes beside an honest plain one."""
    draft = text(case.draft.encode())
    asked = {
        "inscription_id": case.intent.inscription_id,
        "outpoint": str(case.intent.outpoint),
        "price": case.intent.price_sats,
    }
    plain = {"psbt": _PLAIN, "secure": [draft]} if case.form == "secure" else {"psbt": draft, "secure": []}
    return {"intent": listing_intent(number), "transfer": "", "recovery": ""} | asked | plain


@dataclass
class Desk(Bench):
    """`facts` are what the signer is told of the output."""

    terms = LIST_GRANT
    facts: OutpointFacts | None = FACTS

    def __post_init__(self) -> None:
        super().__post_init__()
        self.secret = self.grant()

    def keystore(self) -> Keystore:
        return fixed_keys(USER)

    def known(self, asked: dict[str, Any]) -> dict[str, OutpointFacts]:
        listing = asked.get("listing")
        return {listing["outpoint"]: self.facts} if isinstance(listing, dict) and self.facts else {}

    def sign(self, asked: dict[str, Any], secret: str = "", task: int = TASK, token: int = 5) -> dict[str, Any]:
        return self.ask("sign_listing", task=task, token=token, secret=secret or self.secret, listing=asked)


class RealDesk(Desk):
    """A desk with the same keys, declared real ones."""

    terms = replace(LIST_GRANT, venue="satflow")

    def keystore(self) -> Keystore:
        return fixed_keys(USER, is_play=False)


def desk(directory: Path, ceilings: Ceilings | None = None) -> AbstractContextManager[Desk]:
    """Opens a desk that signs secure forms, too, unless `ceilings` say otherwise."""
    return Desk.opened(directory, ceilings or Ceilings(secure_listings=SECURE_AT_PLAY))
