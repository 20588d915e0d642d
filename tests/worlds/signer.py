"""A signer without a socket, on a clock of its own, with what a worker asks of it: bids, listings and offers."""

from __future__ import annotations

import base64
import functools
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import pytest
from msgspec import to_builtins

from core import files
from core.call import Request
from core.errors import PeerRefused
from tests.shapes import asdict, replace
from tests.wallet import listings, offers
from tests.wallet.listings import INSCRIPTION, PRICE, Case, honest
from tests.wallet.proofs import OWNER, STRANGER, p2tr_address, p2wpkh_address
from wallet.keystore.keys import Keystore, UserSecrets, user_secrets
from wallet.policy import PLAY_VENUE
from wallet.protocol import BidMessage, Grant
from wallet.psbt.common import OutpointFacts
from wallet.signer import reading
from wallet.signer.audit import AuditLog
from wallet.signer.ledger import Ledger
from wallet.signer.signer import Signer
from wallet.terms import Ceilings

VERBS = reading.verbs(lambda request: None)


def read_request(given: Mapping[str, Any]) -> Request[Any]:
    """Reads a request as the socket does. Raises PeerRefused."""
    return VERBS.read(json.dumps(given).encode())


def signer_answer(signer: Signer, given: Mapping[str, Any], facts: Mapping[str, OutpointFacts] | None = None) -> Any:
    """Returns the answer as it leaves the socket. Raises PeerRefused."""
    answer = signer.handle(read_request(given), facts)
    return {} if answer is None else json.loads(json.dumps(to_builtins(answer)))


def outpoints_to_look_up(signer: Signer, given: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the outputs that the signer looks up for a request. Raises PeerRefused."""
    return signer.outpoints_to_look_up(read_request(given))


class FixedKeys:
    """USER's payment key and vault are those of `listings.py`; everybody else has keys of their own."""

    def __init__(self, user: str, is_play: bool) -> None:
        self._user = user
        self.users: tuple[str, ...] = (user,)
        self.is_play = is_play

    def secrets_of(self, user: str) -> UserSecrets:
        return _secrets(user, user == self._user)


@functools.cache
def _secrets(user: str, is_known: bool) -> UserSecrets:
    if is_known:
        return user_secrets(listings.PAYMENT, listings.VAULT)
    return user_secrets(listings.key(f"payment of {user}"), listings.key(f"vault of {user}"))


def fixed_keys(user: str, is_play: bool = True) -> Keystore:
    return cast(Keystore, FixedKeys(user, is_play))


START_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
USER = p2wpkh_address(OWNER)
OTHER_USER = p2wpkh_address(STRANGER)

GRANT = Grant(
    task=17,
    user=USER,
    token=5,
    venue="simulator",
    operations=("bid", "cancel"),
    slug="bitcoin-frogs",
    hardcap_sats=50_000,
    outstanding_sats=200_000,
    outstanding_task_sats=1_000_000_000_000,
    receive=p2tr_address(OWNER),
    max_expiry_ms=HOUR_MS,
    expires_ms=START_MS + 24 * HOUR_MS,
)
BID = BidMessage(
    intent="0" * 31 + "1",
    price=40_000,
    quantity="1",
    expires_ms=START_MS + HOUR_MS,
    slug="bitcoin-frogs",
    timestamp_ms=START_MS,
    receive=GRANT.receive,
)


def intent(number: int) -> str:
    return f"{number:032x}"


def tag_of(call: Any, *arguments: Any, **named: Any) -> str:
    """The code of the refusal that a call must raise."""
    with pytest.raises(PeerRefused) as refused:
        call(*arguments, **named)
    return refused.value.code


@dataclass
class Bench:
    """One signer that can be closed and opened again as a restart would; `now_ms` is its clock, `terms` are granted.

    No change of the time moves `steady_ms`.
    """

    terms: ClassVar[Grant] = GRANT

    directory: Path
    ceilings: Ceilings = field(default_factory=Ceilings)
    now_ms: int = START_MS
    steady_ms: int = 0
    has_halt_file: bool = False
    is_short: Callable[[], bool] = lambda: False
    signer: Signer = field(init=False)
    ledger: Ledger = field(init=False)
    audit: AuditLog = field(init=False)
    keys: Keystore = field(init=False)

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        self.audit = AuditLog(self.audit_path, partial(files.free_reserve, self.directory))
        self.ledger = Ledger(self.ledger_path)
        self.keys = self.keystore()
        self.signer = Signer(
            self.ledger,
            self.audit,
            self.keys,
            ceilings=self.ceilings,
            clock=lambda: self.now_ms,
            steady_ms=lambda: self.steady_ms,
            is_short=lambda: self.is_short(),
            free_reserve=partial(files.free_reserve, self.directory),
            has_halt_file=lambda: self.has_halt_file,
        )

    @classmethod
    @contextmanager
    def opened(cls, directory: Path, ceilings: Ceilings | None = None) -> Iterator[Self]:
        bench = cls(directory, ceilings or Ceilings())
        try:
            yield bench
        finally:
            bench.close()

    def keystore(self) -> Keystore:
        return Keystore.open_or_create_play(self.keystore_path, lambda count: bytes(range(count)))

    def known(self, asked: dict[str, Any]) -> Mapping[str, OutpointFacts]:
        """Returns the facts of outputs that the signer is told."""
        return {}

    def close(self) -> None:
        self.audit.close()
        self.ledger.close()

    def restart(self) -> None:
        self.close()
        self.open()

    def pass_time(self, passed_ms: int) -> None:
        self.now_ms += passed_ms
        self.steady_ms += passed_ms

    @property
    def audit_path(self) -> Path:
        return self.directory / "audit.jsonl"

    @property
    def ledger_path(self) -> Path:
        return self.directory / "signer.db"

    @property
    def keystore_path(self) -> Path:
        return self.directory / "keystore.json"

    def ask(self, op: str, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = signer_answer(self.signer, {"op": op, **arguments}, self.known(arguments))
        return answer

    def grant(self, **changes: Any) -> str:
        terms = asdict(replace(self.terms, **changes))
        return str(self.ask("grant", grant=terms | {"operations": list(terms["operations"])})["secret"])

    def control(self, state: str, scope: str = "global", subject: str = "") -> None:
        assert self.ask("control", scope=scope, subject=subject, state=state) == {}

    def sign_bid(self, secret: str, *, task: int = 17, token: int = 5, **changes: Any) -> dict[str, Any]:
        return self.ask("sign_bid", task=task, token=token, secret=secret, bid=asdict(BID) | changes)

    def sign_challenge(self, secret: str, challenge: str = "challenge 1f2e", *, token: int = 5, **more: Any) -> str:
        arguments = {"task": 17, "token": token, "secret": secret, "challenge": challenge} | more
        return str(self.ask("sign_challenge", **arguments)["signature"])

    def sign_brake(self, user: str, challenge: str = "challenge 1f2e", *, venue: str = "simulator") -> str:
        return str(self.ask("sign_brake", user=user, venue=venue, challenge=challenge)["signature"])


@contextmanager
def no_space() -> Iterator[None]:
    """Has no line reach the disk meanwhile."""

    def fsync(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(os, "fsync", fsync)
        yield


@dataclass
class FixedBench(Bench):
    """A signer whose user has the keys of `listings.py`, and the secret of a grant of `terms`."""

    is_play: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.secret = self.grant()

    def keystore(self) -> Keystore:
        return fixed_keys(USER, self.is_play)


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
class Desk(FixedBench):
    """`facts` are what the signer is told of the output."""

    terms = LIST_GRANT
    facts: OutpointFacts | None = FACTS

    def known(self, asked: dict[str, Any]) -> dict[str, OutpointFacts]:
        listing = asked.get("listing")
        return {listing["outpoint"]: self.facts} if isinstance(listing, dict) and self.facts else {}

    def sign(self, asked: dict[str, Any], secret: str = "", task: int = TASK, token: int = 5) -> dict[str, Any]:
        return self.ask("sign_listing", task=task, token=token, secret=secret or self.secret, listing=asked)


class RealDesk(Desk):
    """A desk with the same keys, declared real ones."""

    terms = replace(LIST_GRANT, venue="satflow")
    is_play = False


def desk(directory: Path, ceilings: Ceilings | None = None) -> AbstractContextManager[Desk]:
    """Opens a desk that signs secure forms, too, unless `ceilings` say otherwise."""
    return Desk.opened(directory, ceilings or Ceilings(secure_listings=SECURE_AT_PLAY))


OFFER_GRANT = replace(GRANT, venue=offers.VENUE, hardcap_sats=offers.PRICE, outstanding_sats=4 * offers.PRICE)


def facts_of(offer: offers.Offer) -> dict[str, OutpointFacts]:
    return {str(outpoint): facts for outpoint, facts in offer.facts.items()}


def asked_by(offer: offers.Offer, number: int = 1, **changes: Any) -> dict[str, Any]:
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


def offer(number: int = 1, price: int = offers.PRICE, **changes: Any) -> dict[str, Any]:
    """Returns an honest offer to be signed, with these fields changed."""
    return asked_by(offers.honest(coins=offers.COINS, price=price), number, **changes)


@dataclass
class OfferDesk(FixedBench):
    """`facts` are what the signer is told of outputs."""

    terms = OFFER_GRANT
    facts: dict[str, OutpointFacts] = field(default_factory=lambda: facts_of(offers.honest()))

    def known(self, asked: dict[str, Any]) -> dict[str, OutpointFacts]:
        return self.facts

    def sign(self, asked: dict[str, Any], secret: str = "", task: int = 17, token: int = 5) -> list[str]:
        answer = self.ask("sign_offer", task=task, token=token, secret=secret or self.secret, offer=asked)
        return list(answer["psbts"])


@dataclass
class RealOfferDesk(OfferDesk):
    """A signer with real keys."""

    terms = replace(OFFER_GRANT, venue="ordnet")
    is_play = False


offer_desk, real_offer_desk = OfferDesk.opened, RealOfferDesk.opened
