"""Offers as the signer answers them: what it signs, once, for whom, within which sums, and what it keeps of it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.errors import PeerRefused
from core.settings import Settings
from tests.shapes import asdict, replace
from tests.wallet.attacks.offer_attacks import ATTACKS
from tests.wallet.offers import COINS, PRICE, honest
from tests.worlds.signer import (
    BID,
    HOUR_MS,
    OTHER_USER,
    START_MS,
    USER,
    OfferDesk,
    asked_by,
    facts_of,
    fixed_keys,
    intent,
    offer,
    offer_desk,
    outpoints_to_look_up,
    real_offer_desk,
    tag_of,
)
from wallet.bip322 import verify_ownership
from wallet.keystore.keys import KeystoreError
from wallet.psbt.decode import decode
from wallet.signer.audit import verify_chain
from wallet.signer.signer_process import require_agreement
from wallet.terms import PRACTICE_CO_SIGNERS, SETTING, Ceilings, Rate, co_signers_of

PRACTICE = tuple(key.hex() for key in PRACTICE_CO_SIGNERS["simulator-ordnet"])
# Refusals of what is asked for before any PSBT is looked at; the signer never asks for an offer of another venue.
_OF_THE_REQUEST = {"max-bid"}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[OfferDesk]:
    with offer_desk(tmp_path) as opened:
        yield opened


def entries(desk: OfferDesk) -> list[dict[str, Any]]:
    return [json.loads(line) for line in desk.audit_path.read_text().splitlines()]


def test_an_offer_is_signed_and_written_down(desk: OfferDesk) -> None:
    [signed] = desk.sign(offer())
    assert base64.b64decode(signed) == honest().sign()
    [entry] = entries(desk)
    expected = {
        "operation": "offer",
        "intent": intent(1),
        "task": 17,
        "slug": "bitcoin-frogs",
        "price": PRICE,
        "quantity": "1",
        "expires_ms": START_MS + HOUR_MS,
        "escrow": PRICE,
        "escrow_script": honest().escrow.script.hex(),
        "change": sum(COINS) - PRICE,
        "unsigned_txid": decode(base64.b64decode(signed)).transaction.txid()[::-1].hex(),
    }
    assert {name: entry[name] for name in expected} == expected
    assert sorted(entry["inputs"]) == offer()["coins"]
    assert signed not in desk.audit_path.read_text()


def test_the_same_intent_gets_the_same_answer_without_facts_and_counts_once(desk: OfferDesk) -> None:
    first = desk.sign(offer())
    desk.facts = {}
    desk.now_ms += 2 * HOUR_MS
    assert desk.sign(offer()) == first
    assert verify_chain(desk.audit_path) == 1
    assert desk.ledger.signed.unexpired(17, USER, START_MS)["host"].sats == PRICE


@pytest.mark.parametrize(
    "change",
    [
        {"price": PRICE - 1},
        {"quantity": "2"},
        {"expires_ms": START_MS + HOUR_MS - 1},
        {"trait": ["Hat", "Red"]},
        {"psbts": offer(price=PRICE - 5_000)["psbts"]},
        {"leaf": offer(price=PRICE - 5_000)["leaf"]},
        {"coins": [*offer()["coins"], "ab" * 32 + ":0"]},
    ],
)
def test_a_signed_intent_with_other_fields_is_refused(change: dict[str, Any], desk: OfferDesk) -> None:
    desk.sign(offer())
    assert tag_of(desk.sign, offer(**change)) == "intent-conflict"
    assert verify_chain(desk.audit_path) == 1


def test_a_signed_intent_is_not_given_to_another_task_or_user(desk: OfferDesk) -> None:
    desk.sign(offer())
    for changes in ({"task": 18}, {"task": 19, "user": OTHER_USER}):
        assert tag_of(desk.sign, offer(), desk.grant(**changes), changes["task"]) == "intent-conflict"


def test_an_intent_is_a_bids_or_an_offers(desk: OfferDesk) -> None:
    bid = asdict(BID) | {"intent": intent(1)}
    asked = {"task": 17, "token": 5, "secret": desk.secret}
    desk.sign(offer())
    assert tag_of(desk.ask, "sign_bid", **asked, bid=bid) == "intent-conflict"
    desk.ask("sign_bid", **asked, bid=bid | {"intent": intent(2)})
    assert tag_of(desk.sign, offer(2)) == "intent-conflict"


def test_was_signed(desk: OfferDesk) -> None:
    assert desk.ask("was_signed", intent=intent(1)) == {"signed": False}
    desk.sign(offer())
    assert desk.ask("was_signed", intent=intent(1)) == {"signed": True}


def test_an_offer_may_be_on_a_trait(desk: OfferDesk) -> None:
    assert desk.sign(offer(trait=["Hat", "Red"]))


@pytest.mark.slow
def test_a_poisoned_draft_leaves_no_trace(desk: OfferDesk) -> None:
    for attack in ATTACKS:
        if attack.tag in _OF_THE_REQUEST or attack.name == "other keys were pinned":
            continue
        case = attack.cases()[0]
        desk.facts = facts_of(case)
        asked = asked_by(case)
        if len(asked["psbts"][0]) > 43_692 or not asked["psbts"][0] or not asked["leaf"]:
            assert tag_of(desk.sign, asked) == "bad-request"
        else:
            assert (attack.name, tag_of(desk.sign, asked)) == (attack.name, attack.tag)
    assert desk.ask("was_signed", intent=intent(1)) == {"signed": False}
    assert entries(desk) == []
    assert desk.ledger.signed.unexpired(17, USER, START_MS)["host"].sats == 0


def test_every_venue_but_the_practice_markets_own_is_refused(desk: OfferDesk) -> None:
    for token, venue in enumerate(("simulator", "simulator-unisat", "simulator-ordinalswallet"), 6):
        secret = desk.grant(venue=venue, token=token)
        assert tag_of(desk.sign, offer(), secret, token=token) == "op-allowed"
        request = {"op": "sign_offer", "task": 17, "token": token, "secret": secret, "offer": offer()}
        assert tag_of(outpoints_to_look_up, desk.signer, request) == "op-allowed", "nothing is looked up for it"
    assert tag_of(desk.grant, venue="ordnet", token=9) == "market"


@pytest.mark.parametrize(
    ("pinned", "outcome"),
    [(None, "op-allowed"), (("11" * 32, "12" * 32, "13" * 32), "leaf-keys"), (PRACTICE, "signed")],
)
def test_ord_nets_own_offers_are_signed_for_the_pinned_co_signers_alone(
    pinned: tuple[str, ...] | None, outcome: str, tmp_path: Path
) -> None:
    ceilings = replace(Ceilings(), co_signers=co_signers_of(Settings(ordnet_co_signers=pinned)))
    with real_offer_desk(tmp_path, ceilings) as opened:
        secret = opened.grant(venue="ordnet", token=6)
        if outcome == "signed":
            assert opened.sign(offer(), secret, token=6)
            return
        with pytest.raises(PeerRefused) as refused:
            opened.sign(offer(), secret, token=6)
        assert refused.value.code == outcome
        told = SETTING if pinned is None else ",".join(PRACTICE)
        assert told in str(refused.value), "the operator reads what to do"


@pytest.mark.parametrize(
    ("change", "tag"),
    [
        ({"psbts": offer()["psbts"] * 2}, "op-allowed"),  # they would pay twice
        ({"psbts": [offer()["psbts"][0] + "="]}, "psbt-strict"),
        ({"coins": offer()["coins"][:1] * 2}, "bad-request"),
        *(({"slug": slug}, "msg-template") for slug in ("other-frogs", "Bitcoin-Frogs")),
        *(({"quantity": quantity}, "msg-template") for quantity in ("0", "1e2", "-1")),
        *(({"expires_ms": at_ms}, "expiry-max") for at_ms in (START_MS + HOUR_MS + 1, START_MS, START_MS - 1)),
    ],
)
def test_an_offer_with_another_field_is_refused(change: dict[str, Any], tag: str, desk: OfferDesk) -> None:
    assert tag_of(desk.sign, offer(**change)) == tag


def test_the_price_is_within_the_hard_cap(desk: OfferDesk) -> None:
    secret = desk.grant(token=6, hardcap_sats=PRICE - 1)
    assert tag_of(desk.sign, offer(), secret, token=6) == "max-bid"
    assert desk.sign(offer(price=PRICE - 1), secret, token=6)


def test_offers_and_bids_count_together_though_the_coins_are_the_same(desk: OfferDesk) -> None:
    secret = desk.grant(token=6, outstanding_sats=2 * PRICE)
    desk.sign(offer(1, PRICE - 10_000), secret, token=6)
    bid = asdict(BID) | {"price": 10_001}
    asked = {"task": 17, "token": 6, "secret": secret}
    desk.ask("sign_bid", **asked, bid=bid | {"intent": intent(7)})
    assert tag_of(desk.sign, offer(2), secret, token=6) == "outstanding-user"
    assert desk.sign(offer(2, PRICE - 1), secret, token=6)
    assert tag_of(desk.ask, "sign_bid", **asked, bid=bid | {"intent": intent(8)}) == "outstanding-user"


def test_offers_and_bids_of_a_task_count_together_under_every_token(desk: OfferDesk) -> None:
    desk.sign(offer(1))
    secret = desk.grant(token=6, outstanding_task_sats=2 * PRICE)
    desk.ask("sign_bid", task=17, token=6, secret=secret, bid=asdict(BID) | {"price": 1, "intent": intent(7)})
    assert tag_of(desk.sign, offer(2), secret, token=6) == "outstanding-task"
    assert desk.sign(offer(2, PRICE - 1), secret, token=6)


def test_all_users_together_are_bounded(tmp_path: Path) -> None:
    with offer_desk(tmp_path, Ceilings(outstanding_host=2 * PRICE - 1)) as opened:
        opened.sign(offer(1))
        assert tag_of(opened.sign, offer(2)) == "outstanding-host"
        assert opened.sign(offer(2, PRICE - 1))


def test_so_many_in_a_minute_and_so_many_sats_in_an_hour(tmp_path: Path) -> None:
    with offer_desk(tmp_path, Ceilings(task=Rate(2, 9))) as opened:
        for number in (1, 2):
            opened.sign(offer(number))
        assert tag_of(opened.sign, offer(3)) == "velocity"
    (tmp_path / "more").mkdir()
    with offer_desk(tmp_path / "more", Ceilings(sats_hour_host=2 * PRICE - 1)) as opened:
        opened.sign(offer(1))
        assert tag_of(opened.sign, offer(2)) == "velocity"


@pytest.mark.parametrize("state", ["reduce", "halt"])
def test_nothing_is_signed_while_control_says_no(state: str, desk: OfferDesk) -> None:
    desk.ask("control", scope="user", subject=OTHER_USER, state=state)
    desk.sign(offer(1))
    desk.ask("control", scope="task", subject="17", state=state)
    assert tag_of(desk.sign, offer(2)) == "control-state"
    desk.ask("control", scope="task", subject="17", state="run")
    desk.has_halt_file = True
    assert tag_of(desk.sign, offer(2)) == "control-state"


def test_the_grant_must_live_and_allow_it(desk: OfferDesk) -> None:
    assert tag_of(desk.sign, offer(), "ab") == "grant-live"
    assert tag_of(desk.sign, offer(), token=4) == "stale-token"
    desk.ask("revoke_place", task=17, token=5)
    assert tag_of(desk.sign, offer()) == "op-allowed"
    secret = desk.grant(token=6, operations=("cancel",))
    assert tag_of(desk.sign, offer(), secret, token=6) == "op-allowed"


def test_what_is_looked_up_is_the_coins_and_only_for_whoever_may_bid(desk: OfferDesk) -> None:
    request = {"op": "sign_offer", "task": 17, "token": 5, "secret": desk.secret, "offer": offer()}
    look_up = partial(outpoints_to_look_up, desk.signer)
    assert list(look_up(request)) == offer()["coins"]
    assert tag_of(look_up, request | {"secret": "ab"}) == "grant-live"
    assert tag_of(look_up, request | {"offer": offer(slug="other")}) == "msg-template"
    desk.sign(offer())
    assert look_up(request) == ()
    assert tag_of(look_up, request | {"offer": offer(price=PRICE - 1)}) == "intent-conflict"


def test_bids_and_offers_are_found_in_the_log_in_their_order(desk: OfferDesk) -> None:
    asked = {"task": 17, "token": 5, "secret": desk.secret}
    desk.sign(offer(1))
    desk.ask("sign_bid", **asked, bid=asdict(BID) | {"intent": intent(2)})
    desk.sign(offer(3, PRICE - 1_000))
    require_agreement(desk.audit_path, desk.ledger_path, desk.now_ms)


def test_an_offer_that_the_log_does_not_have_keeps_the_signer_locked(desk: OfferDesk) -> None:
    desk.sign(offer(1))
    desk.audit_path.write_bytes(b"")
    with pytest.raises(KeystoreError, match="does not have"):
        require_agreement(desk.audit_path, desk.ledger_path, desk.now_ms)


def test_a_ledger_without_the_offers_of_the_log_is_too_old(desk: OfferDesk) -> None:
    for number in range(1, 5):
        desk.sign(offer(number))
    desk.ledger._database.execute("DELETE FROM signatures")
    with pytest.raises(KeystoreError, match="lacks 4 signatures"):
        require_agreement(desk.audit_path, desk.ledger_path, desk.now_ms)
    require_agreement(desk.audit_path, desk.ledger_path, START_MS + HOUR_MS)


TEXT = "Sign in to ord.net at 2026-05-08T18:00:00Z (nonce: 0123456789abcdef)"
KEYS = fixed_keys(USER).secrets_of(USER).public


def sign(desk: OfferDesk, text: Any = TEXT, key: Any = "payment", **changes: Any) -> str:
    asked = {"task": 17, "token": 5, "secret": desk.secret, "text": text, "key": key} | changes
    return str(desk.ask("sign_sign_in", **asked)["signature"])


def test_both_addresses_sign_in_and_it_is_written_down(desk: OfferDesk) -> None:
    for key, address in (("payment", KEYS.payment), ("vault", KEYS.vault)):
        assert verify_ownership(address, TEXT, sign(desk, key=key))
        entry = json.loads(desk.audit_path.read_text().splitlines()[-1])
        assert (entry["operation"], entry["address"]) == ("sign-in", address)
        assert entry["message_sha256"] == hashlib.sha256(TEXT.encode()).hexdigest()
    assert verify_chain(desk.audit_path) == 2


def test_a_text_names_no_other_address_than_the_signing_ones(desk: OfferDesk) -> None:
    text = f"Sign in to ord.net\nAddress: {KEYS.vault}"
    assert tag_of(sign, desk, text) == "msg-template"
    assert sign(desk, text, "vault")


def test_other_texts_are_not_signed(desk: OfferDesk) -> None:
    for text in (
        "Sign in to Bidkeeper at x",
        "Sign in to ord.net and Bidkeeper",
        "challenge 1f2e",
        "Sign in to ord.net",
    ):
        assert tag_of(sign, desk, text) == "msg-template"
    for wrong in ("", "x" * 513, 1, None, [TEXT]):
        assert tag_of(sign, desk, wrong) == "bad-request"
    for key in ("ordinals", "", None):
        assert tag_of(sign, desk, key=key) == "bad-request"
    assert tag_of(sign, desk, more=1) == "bad-request"
    assert desk.audit_path.read_bytes() == b""


def test_only_where_signing_in_is_known(desk: OfferDesk) -> None:
    for token, venue in enumerate(("simulator", "simulator-unisat"), 6):
        secret = desk.grant(venue=venue, token=token)
        assert tag_of(sign, desk, token=token, secret=secret) == "msg-template"


def test_it_needs_a_grant_of_ones_own_and_no_more_than_the_right_to_cancel(desk: OfferDesk) -> None:
    assert tag_of(sign, desk, secret="ab") == "grant-live"
    assert tag_of(sign, desk, task=18) == "grant-live"
    desk.ask("revoke_place", task=17, token=5)
    desk.ask("control", scope="global", subject="", state="halt")
    assert sign(desk)
    assert tag_of(sign, desk, secret=desk.grant(token=6, operations=("bid",)), token=6) == "op-allowed"
    desk.ask("end_rights", task=17, token=6)
    assert tag_of(sign, desk, token=6) == "grant-live"


def test_another_users_grant_signs_with_their_keys(desk: OfferDesk) -> None:
    signature = sign(desk, task=18, secret=desk.grant(task=18, user=OTHER_USER))
    assert not verify_ownership(KEYS.payment, TEXT, signature)
    assert verify_ownership(fixed_keys(USER).secrets_of(OTHER_USER).public.payment, TEXT, signature)


def test_the_number_in_a_minute_is_bounded(tmp_path: Path) -> None:
    with offer_desk(tmp_path, Ceilings(sign_ins_a_minute=1)) as opened:
        sign(opened)
        opened.ask("sign_challenge", task=17, token=5, secret=opened.secret, challenge="c")
        assert tag_of(sign, opened) == "velocity"
        opened.pass_time(60_001)
        assert sign(opened)
