"""A signer without a socket, on a clock of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Self

import pytest
from hypothesis import settings

from core import files
from core.errors import PeerRefused
from tests.shapes import asdict, replace
from tests.wallet import lines
from tests.wallet.proofs import OWNER, STRANGER, p2tr_address, p2wpkh_address
from wallet.keystore.keys import Keystore
from wallet.protocol import BidMessage, Grant
from wallet.psbt.listing import OutpointFacts
from wallet.signer.audit import AuditLog
from wallet.signer.ledger import Ledger
from wallet.signer.signer import Signer
from wallet.terms import Ceilings

# On a busy machine an example may take long.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

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


@pytest.fixture
def engine() -> ModuleType:
    """Another program's consensus engine, where it is installed."""
    return pytest.importorskip("btclib.script.engine")


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
        answer: dict[str, Any] = lines.handle(self.signer, {"op": op, **arguments}, self.known(arguments))
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


@pytest.fixture
def unlogged() -> Iterator[None]:
    """Ten thousand refusals are not kept for a report."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Bench.opened(tmp_path) as opened:
        yield opened
