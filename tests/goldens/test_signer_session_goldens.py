"""Each verb of the signer once over its real socket, a refusal of each kind, and the audit lines of the session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests import goldens
from tests.goldens.socket_files import Session, Tap, hold
from tests.shapes import replace
from tests.wallet import escrows, listings, offers, test_practice_venues, withdrawal_cases
from tests.wallet.test_sign_escrows import CEILINGS, ORDNET, psbts
from tests.wallet.test_sign_offers import TEXT
from tests.worlds.signer import (
    BID,
    GRANT,
    LIST_GRANT,
    OFFER_GRANT,
    OTHER_USER,
    TASK,
    USER,
    draft_at,
    facts_of,
    intent,
    listing,
    listing_intent,
    offer,
)
from tests.worlds.signer_process import House, facts_server, house, ok, wire
from wallet.protocol import ListingToSign, OfferToSign, WithdrawalToSign
from wallet.psbt.common import OutpointFacts
from wallet.signer.audit import AuditLog, verify_chain
from wallet.signer.ledger import Ledger
from wallet.signer.signer_process import require_agreement
from wallet.signer_client import SignerClient

# The listing in escrow is of another task and venue than the plain one.
ESCROW_TASK = TASK + 1
AUDIT_WITH_LEARNT_FORMS = goldens.HERE / "signer_audit_with_learnt_forms.jsonl"


@dataclass
class Secrets:
    """Grants' secrets are random: each gets a name by the order in which it was handed out."""

    names: dict[str, str] = field(default_factory=dict)

    def mask(self, value: Any) -> Any:
        if isinstance(value, dict):
            if value.get("call") == "grant" and "returns" in value:
                self.names.setdefault(value["returns"], f"<secret {len(self.names) + 1}>")
            return {name: self.mask(each) for name, each in value.items()}
        if isinstance(value, list):
            # A judgement's finding about learnt forms goes with them; every other one stays.
            return [self.mask(each) for each in value if not _is_of_learnt_forms(each)]
        return self.names.get(value, value) if isinstance(value, str) else value


def _is_of_learnt_forms(value: Any) -> bool:
    return isinstance(value, dict) and value.get("rule") == "learnt-form"


def to_list(fields: dict[str, Any]) -> ListingToSign:
    return ListingToSign(**fields | {"secure": tuple(fields["secure"])})


def in_escrow() -> ListingToSign:
    case = escrows.honest("ordnet")
    return to_list(listing(3, secure=[], outpoint=str(case.intent.outpoint)) | psbts(case))


def to_offer() -> OfferToSign:
    fields = offer(5)
    return OfferToSign(**fields | {"psbts": tuple(fields["psbts"]), "coins": tuple(fields["coins"])})


def payment_coin() -> tuple[str, OutpointFacts]:
    spend = offers.coin(60_000, at=4)
    return str(offers.outpoint_of(spend)), offers.known(spend, 60_000)


def from_payment(number: int = 1, **changes: Any) -> WithdrawalToSign:
    return withdrawal_cases.from_payment(number, coins=(payment_coin()[0],), **changes)


def known_outputs() -> dict[str, OutpointFacts]:
    listed, escrowed = listings.honest().facts, escrows.honest("ordnet").facts
    assert listed is not None and escrowed is not None
    found = {str(each.outpoint): each for each in (listed, escrowed)}
    return found | facts_of(offers.honest()) | withdrawal_cases.honest().facts | dict([payment_coin()])


@contextmanager
def tapped(directory: Path) -> Iterator[tuple[House, SignerClient, Session]]:
    """Opens a signer, a client that asks it through a tap, and the session that keeps what crosses."""
    facts = known_outputs()

    def tell(request: dict[str, Any]) -> bytes:
        found = facts.get(request["args"]["outpoint"])
        return ok(wire(found)) if found else b'{"error": {"kind": "not_found", "message": "no"}}'

    with house(directory, CEILINGS) as running, facts_server(running.facts_socket, tell):
        tap = Tap(directory / "tap.sock", running.socket)
        try:
            yield running, SignerClient(directory / "tap.sock", timeout_s=60.0), Session(tap, Secrets().mask)
        finally:
            tap.close()


def each_verb(client: SignerClient, session: Session) -> None:
    """Calls each verb once, as manager, server and workers do."""
    call = session.call
    call("status", client.status)
    call("addresses", lambda: client.addresses(USER))
    secret = call("grant", lambda: client.grant(GRANT))
    call("rooms", lambda: client.rooms(17, 5, secret))
    call("sign_bid", lambda: client.sign_bid(17, 5, secret, BID))
    call("rooms after a bid", lambda: client.rooms(17, 5, secret))
    call("rooms_under", lambda: client.rooms_under(USER, 0, 70_000, 90_000))
    call("sign_challenge", lambda: client.sign_challenge(17, 5, secret, "challenge 1f2e"))
    call("sign_brake", lambda: client.sign_brake(USER, "simulator", "challenge 1f2e"))
    call("was_signed, a bid", lambda: client.was_signed(BID.intent))
    call("was_signed, no bid", lambda: client.was_signed(intent(99)))
    call("revoke_place", lambda: client.revoke_place(17, 5))
    call("sign_bid without the right", lambda: client.sign_bid(17, 5, secret, replace(BID, intent=intent(2))))

    to_buy = replace(OFFER_GRANT, task=18)
    secret = call("grant", lambda: client.grant(to_buy))
    call("sign_sign_in", lambda: client.sign_sign_in(18, 5, secret, TEXT, "vault"))
    call("sign_offer", lambda: client.sign_offer(18, 5, secret, to_offer()))

    secret = call("grant", lambda: client.grant(LIST_GRANT))
    call("judge", lambda: client.judge(USER, "simulator", to_list(listing()), 200_000))
    call("judge a cheap one", lambda: client.judge(USER, "simulator", to_list(listing(psbt=draft_at(100_000)))))
    call("lowest_listing, none", lambda: client.lowest_listing(listing()["outpoint"]))
    call("sign_listing", lambda: client.sign_listing(TASK, 5, secret, to_list(listing())))
    call("lowest_listing", lambda: client.lowest_listing(listing()["outpoint"]))
    call("was_signed, a listing", lambda: client.was_signed(listing_intent(1)))
    call("sign_challenge, by the vault", lambda: client.sign_challenge(TASK, 5, secret, "challenge 1f2e", "vault"))

    to_escrow = replace(LIST_GRANT, task=ESCROW_TASK, venue=ORDNET)
    secret = call("grant", lambda: client.grant(to_escrow))
    call("judge, in escrow", lambda: client.judge(USER, ORDNET, in_escrow()))
    call("sign_listing, in escrow", lambda: client.sign_listing(ESCROW_TASK, 5, secret, in_escrow()))
    back = test_practice_venues.BACK.encode()
    call("sign_delist", lambda: client.sign_delist(ESCROW_TASK, 5, secret, test_practice_venues.OUTPOINT, back))

    call("judge_withdrawal", lambda: client.judge_withdrawal(from_payment()))
    call("sign_withdrawal", lambda: client.sign_withdrawal(from_payment()))
    call("sign_withdrawal, of a bidding wallet", lambda: client.sign_withdrawal(withdrawal_cases.from_bidding(2)))
    call("was_signed, a withdrawal", lambda: client.was_signed(withdrawal_cases.intent(1)))

    call("control", lambda: client.set_control("task", 17, "reduce"))
    call("control", lambda: client.set_control("user", USER, "halt"))
    call("controls", client.controls)
    call("control", lambda: client.set_control("user", USER, "run"))
    call("end_rights", lambda: client.end_rights(17, 6))
    call("end_all_rights", lambda: client.end_all_rights({17: 5, 18: 7}))


def each_refusal(client: SignerClient, session: Session) -> None:
    """Asks for what is refused, so that each kind of error comes once with its text and its fields."""
    call = session.call
    call("grant, an old token", lambda: client.grant(replace(GRANT, token=5)))
    call("grant, a misshapen user", lambda: client.grant(replace(GRANT, token=9, user="bc1qnobody")))
    call("grant, a number out of bounds", lambda: client.grant(replace(GRANT, token=0)))
    call("grant, no text", lambda: client.grant(replace(GRANT, token=9, slug=None)))  # type: ignore[arg-type]
    call("sign_bid, a wrong secret", lambda: client.sign_bid(17, 5, "ab" * 32, BID))
    call("sign_bid, ended rights", lambda: client.sign_bid(17, 6, "ab" * 32, BID))
    secret = call("grant", lambda: client.grant(replace(GRANT, task=20)))
    bid = replace(BID, intent=intent(3))
    call("sign_bid, above the cap", lambda: client.sign_bid(20, 5, secret, replace(bid, price=50_001)))
    call("sign_bid, another slug", lambda: client.sign_bid(20, 5, secret, replace(bid, slug="others")))
    call("sign_bid, a life too long", lambda: client.sign_bid(20, 5, secret, replace(bid, expires_ms=2**53)))
    call("sign_bid, a price of text", lambda: client.sign_bid(20, 5, secret, replace(bid, price="5")))  # type: ignore[arg-type]
    call("sign_bid, no intent", lambda: client.sign_bid(20, 5, secret, replace(bid, intent="x")))
    call("sign_challenge, a sign-in", lambda: client.sign_challenge(20, 5, secret, TEXT))
    call("sign_challenge, too long", lambda: client.sign_challenge(20, 5, secret, "x" * 513))
    call("sign_challenge, an unknown key", lambda: client.sign_challenge(20, 5, secret, "c", "ordinals"))  # type: ignore[arg-type]
    call("sign_brake, a user without keys", lambda: client.sign_brake(OTHER_USER, "simulator", "challenge 1f2e"))
    call("sign_brake, another market", lambda: client.sign_brake(USER, "satflow", "challenge 1f2e"))
    cheap = to_list(listing(5, psbt=draft_at(100_000), secure=[]))
    secret = call("grant", lambda: client.grant(replace(LIST_GRANT, task=TASK + 2)))
    call("sign_listing, too cheap", lambda: client.sign_listing(TASK + 2, 5, secret, cheap))
    call("sign_listing, no PSBT", lambda: client.sign_listing(TASK + 2, 5, secret, replace(cheap, psbt="")))
    call("sign_listing, no outpoint", lambda: client.sign_listing(TASK + 2, 5, secret, replace(cheap, outpoint="x")))
    unknown = replace(cheap, outpoint="ee" * 32 + ":0")
    call("sign_listing, unknown output", lambda: client.sign_listing(TASK + 2, 5, secret, unknown))
    call("sign_withdrawal, unknown coin", lambda: client.sign_withdrawal(withdrawal_cases.from_payment(7)))
    call("sign_withdrawal, a low fee", lambda: client.sign_withdrawal(from_payment(8, fee_per_kvb=999)))
    call("was_signed, no intent", lambda: client.was_signed("x"))
    call("set_control, an unknown state", lambda: client.set_control("global", "", "stop"))  # type: ignore[arg-type]
    call("set_control, no task", lambda: client.set_control("task", "x", "halt"))
    call("end_all_rights, no token", lambda: client.end_all_rights({17: 0}))


def locked(directory: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Returns the outcomes of calls to a signer without keys, and to one that does not run."""
    monkeypatch.setattr("tests.worlds.signer_process.fixed_keys", lambda user: None)
    with tapped(directory) as (_, client, session):
        session.call("status, locked", client.status)
        session.call("addresses, locked", lambda: client.addresses(USER))
        session.call("set_control, locked", lambda: client.set_control("global", "", "halt"))
        session.call("controls, locked", client.controls)
    away = SignerClient(directory / "away.sock", timeout_s=60.0)
    session.call("status, away", away.status)
    session.call("was_signed, away", lambda: away.was_signed(BID.intent))
    return session.meanings


def test_each_verb_and_each_refusal_at_the_signers_socket_are_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tapped(tmp_path) as (running, client, session):
        each_verb(client, session)
        assert [each["call"] for each in session.meanings if "raises" in each] == ["sign_bid without the right"]
        running.now_ms += 61_000
        running.steady_ms += 61_000
        each_refusal(client, session)
        lines = [json.loads(line) for line in running.audit_path.read_text().splitlines()]
    assert verify_chain(tmp_path / "audit.jsonl") == len(lines)
    (tmp_path / "locked").mkdir()
    hold("signer_meanings.jsonl", session.meanings + locked(tmp_path / "locked", monkeypatch))
    hold("signer_wire.jsonl", session.wire)
    hold("signer_audit_lines.jsonl", [line | {"previous": "<hash>"} for line in lines])


def test_an_audit_log_with_learnt_forms_verifies_and_is_continued(tmp_path: Path) -> None:
    """Earlier versions wrote lines about learnt forms; a signer that knows no learnt forms keeps their chain."""
    recorded = AUDIT_WITH_LEARNT_FORMS.read_text()
    count = len(recorded.splitlines())
    path = tmp_path / "audit.jsonl"
    path.write_text(recorded)
    assert recorded.count('"learnt_sha256":"') == 3
    assert verify_chain(path) == count
    Ledger(tmp_path / "signer.db").close()
    audit = AuditLog(path)
    require_agreement(path, tmp_path / "signer.db", 1_800_000_000_000)
    audit.append(1_800_000_100_000, {"operation": "challenge", "task": 17})
    audit.close()
    assert verify_chain(path) == count + 1
    changed = recorded.replace('"learnt_sha256":"', '"learnt_sha256":"0', 1)
    path.write_text(changed)
    with pytest.raises(Exception, match="line 2"):
        verify_chain(path)
