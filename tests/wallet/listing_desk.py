"""A signer whose user's vault holds the inscription of `listings.py`, asked to list it; on a clock of its own."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

from tests.wallet.conftest import GRANT, START_MS, USER
from tests.wallet.fixed_keys import fixed_keys
from tests.wallet.listings import INSCRIPTION, PRICE, Case, honest
from wallet.ceilings import Ceilings
from wallet.policy import PLAY_VENUE
from wallet.psbt.listing import OutpointFacts
from wallet.signer.audit import AuditLog
from wallet.signer.ledger import Ledger
from wallet.signer.signer import Signer

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
    """An honest draft that pays `price` and the postage."""
    case = honest("p2tr", form)
    case.payout.value += price - PRICE
    return text(case.draft.encode())


_PLAIN = draft_at(PRICE)


def listing(number: int = 1, price: int = PRICE, **changes: Any) -> dict[str, Any]:
    """An honest listing to be signed, plain and secure, with these fields changed."""
    fields = {
        "intent": listing_intent(number),
        "inscription_id": INSCRIPTION,
        "outpoint": str(honest().intent.outpoint),
        "price": price,
        "psbt": draft_at(price),
        "secure": [draft_at(price, "secure")],
    }
    return fields | changes


def listing_of(case: Case, number: int) -> dict[str, Any]:
    """The listing that a liar's case asks for; a secure form comes beside an honest plain one."""
    draft = text(case.draft.encode())
    asked = {
        "inscription_id": case.intent.inscription_id,
        "outpoint": str(case.intent.outpoint),
        "price": case.intent.price_sats,
    }
    plain = {"psbt": _PLAIN, "secure": [draft]} if case.form == "secure" else {"psbt": draft, "secure": []}
    return {"intent": listing_intent(number)} | asked | plain


class Desk:
    """`facts` are what the signer is told of the output."""

    def __init__(self, directory: Path, ceilings: Ceilings, is_play: bool) -> None:
        self.now_ms = START_MS
        self.facts: OutpointFacts | None = FACTS
        self.audit_path = directory / "audit.jsonl"
        self.audit = AuditLog(self.audit_path)
        self.ledger = Ledger(directory / "signer.db")
        self.has_halt_file = False
        self.signer = Signer(
            self.ledger,
            self.audit,
            fixed_keys(USER, is_play),
            ceilings=ceilings,
            clock=lambda: self.now_ms,
            has_halt_file=lambda: self.has_halt_file,
        )
        self.secret = self.grant() if is_play else ""

    def ask(self, op: str, **arguments: Any) -> dict[str, Any]:
        asked = arguments.get("listing")
        known = {asked["outpoint"]: self.facts} if isinstance(asked, dict) and self.facts else {}
        return self.signer.handle({"op": op, **arguments}, known)

    def grant(self, **changes: Any) -> str:
        terms = asdict(replace(LIST_GRANT, **changes))
        return str(self.ask("grant", grant=terms | {"operations": list(terms["operations"])})["secret"])

    def sign(self, asked: dict[str, Any], secret: str = "", task: int = TASK, token: int = 5) -> dict[str, Any]:
        return self.ask("sign_listing", task=task, token=token, secret=secret or self.secret, listing=asked)


@contextmanager
def desk(directory: Path, ceilings: Ceilings | None = None, *, is_play: bool = True) -> Iterator[Desk]:
    """Secure forms are signed on the practice market unless `ceilings` say otherwise."""
    opened = Desk(directory, ceilings or Ceilings(secure_listings=SECURE_AT_PLAY), is_play)
    try:
        yield opened
    finally:
        opened.audit.close()
        opened.ledger.close()
