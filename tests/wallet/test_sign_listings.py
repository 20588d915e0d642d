"""Listings as the signer answers them: what it signs, once, for whom, at which prices, and what it keeps of it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.shapes import replace
from tests.wallet.listings import INSCRIPTION, POSTAGE, PRICE, Form, honest
from tests.wallet.psbt_oracle import faults
from tests.worlds.signer import (
    BID,
    FACTS,
    LIST_GRANT,
    OTHER_USER,
    START_MS,
    TASK,
    Desk,
    RealDesk,
    desk,
    draft_at,
    listing,
    listing_intent,
    no_space,
    outpoints_to_look_up,
    tag_of,
    text,
)
from wallet.address import parse
from wallet.bip322 import verify_ownership
from wallet.keystore.keys import KeystoreError
from wallet.psbt.script import script_of
from wallet.signer.audit import verify_chain
from wallet.signer.signer_process import require_agreement
from wallet.terms import Ceilings, Rate

HOUR_MS = 3_600_000
OTHER_INSCRIPTION = "ab" * 32 + "i7"


@pytest.fixture
def open_desk(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path) as opened:
        yield opened


def test_both_forms_are_signed_by_the_vault_and_faultless(open_desk: Desk) -> None:
    answer = open_desk.sign(listing())
    assert answer.keys() == {"psbt", "secure", "transfer", "recovery"}
    assert (answer["transfer"], answer["recovery"]) == ("", "")
    assert len(answer["secure"]) == 1
    for form, signed in (("listing", answer["psbt"]), ("secure", answer["secure"][0])):
        case = honest("p2tr", form)  # type: ignore[arg-type]
        assert faults(case, case.draft.encode(), base64.b64decode(signed)) == []


def test_a_listing_needs_no_secure_form(open_desk: Desk) -> None:
    assert open_desk.sign(listing(secure=[]))["secure"] == []


def test_the_same_intent_gets_the_same_answer_without_facts_and_counts_once(open_desk: Desk) -> None:
    first = open_desk.sign(listing())
    open_desk.facts = None
    open_desk.now_ms += 100 * HOUR_MS
    assert open_desk.sign(listing()) == first
    assert verify_chain(open_desk.audit_path) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"price": PRICE + 1, "psbt": draft_at(PRICE + 1), "secure": []},
        {"secure": []},
        {"psbt": draft_at(PRICE + 1)},
        {"outpoint": "ab" * 32 + ":0"},
    ],
)
def test_a_signed_intent_with_other_fields_is_refused(change: dict[str, Any], open_desk: Desk) -> None:
    open_desk.sign(listing())
    assert tag_of(open_desk.sign, listing(**change)) == "intent-conflict"
    assert verify_chain(open_desk.audit_path) == 1


def test_a_signed_intent_is_not_given_to_another_task(open_desk: Desk) -> None:
    open_desk.sign(listing())
    secret = open_desk.grant(task=TASK + 1)
    assert tag_of(open_desk.sign, listing(), secret, TASK + 1) == "intent-conflict"


def test_a_bids_intent_is_no_listings(open_desk: Desk) -> None:
    for intent in (BID.intent, "A" * 64, "", 1, None):
        assert tag_of(open_desk.sign, listing(intent=intent)) == "bad-request"


@pytest.mark.parametrize("secure", [False, True])
def test_one_draft_that_is_wrong_leaves_all_unsigned(secure: bool, open_desk: Desk) -> None:
    wrong = (
        {"secure": [draft_at(PRICE, "secure"), draft_at(PRICE - POSTAGE - 1, "secure")]}
        if secure
        else {"psbt": draft_at(PRICE - POSTAGE - 1)}
    )
    assert tag_of(open_desk.sign, listing(**wrong)) == "payout"
    assert open_desk.ask("was_signed", intent=listing_intent(1)) == {"signed": False}
    assert verify_chain(open_desk.audit_path) == 0


REAL = ("satflow", "unisat", "ordinalswallet", "ordnet")


@pytest.fixture
def real_desk(tmp_path: Path) -> Iterator[Desk]:
    ceilings = Ceilings(seller_fee_ppm={"unisat": 20_000}, secure_listings=frozenset({"ordinalswallet"}))
    with RealDesk.opened(tmp_path, ceilings) as opened:
        yield opened


@pytest.mark.parametrize("venue", REAL)
@pytest.mark.parametrize("form", ["listing", "price alone", "paired at 2", "OKX"])
def test_every_form_that_pays_is_signed_at_every_real_venue(real_desk: Desk, venue: str, form: Form) -> None:
    secret = real_desk.grant(token=6, venue=venue)
    answer = real_desk.sign(listing(psbt=text(honest("p2tr", form).draft.encode()), secure=[]), secret, token=6)
    case = honest("p2tr", form)
    assert faults(case, case.draft.encode(), base64.b64decode(answer["psbt"])) == []


@pytest.mark.parametrize("venue", REAL)
def test_a_fee_comes_off_where_the_operator_says_so(real_desk: Desk, venue: str) -> None:
    secret = real_desk.grant(token=6, venue=venue)
    case = honest("p2tr", "price alone")
    case.payout.value = 245_000
    asked = listing(psbt=text(case.draft.encode()), secure=[])
    if venue == "unisat":
        assert real_desk.sign(asked, secret, token=6)
    else:
        assert tag_of(real_desk.sign, asked, secret, token=6) == "payout"


@pytest.mark.parametrize("venue", REAL)
def test_secure_forms_are_left_out_until_the_operator_wants_them(real_desk: Desk, venue: str) -> None:
    """Also unacceptable ones: they are not looked at."""
    secret = real_desk.grant(token=6, venue=venue)
    answer = real_desk.sign(listing(), secret, token=6)
    assert len(answer["secure"]) == (venue == "ordinalswallet")
    line = json.loads(real_desk.audit_path.read_text())
    assert len(line["payouts"]) == len(line["unsigned_txids"]) == 1 + len(answer["secure"])
    poisoned = listing(2, secure=[draft_at(1, "secure")])
    if venue == "ordinalswallet":
        assert tag_of(real_desk.sign, poisoned, secret, token=6) == "payout"
    else:
        assert real_desk.sign(poisoned, secret, token=6)["secure"] == []


def test_the_forms_cannot_be_swapped(open_desk: Desk) -> None:
    assert tag_of(open_desk.sign, listing(psbt=draft_at(PRICE, "secure"))) == "sighash-allowed"
    assert tag_of(open_desk.sign, listing(secure=[draft_at(PRICE)])) == "sighash-allowed"


def test_the_minimum_is_the_grants(open_desk: Desk) -> None:
    assert tag_of(open_desk.sign, listing(price=199_999)) == "list-min"
    assert open_desk.sign(listing(price=200_000))


def test_the_installations_least_price_holds_whatever_the_grant_says(tmp_path: Path) -> None:
    with desk(tmp_path, Ceilings(least_listing=300_000)) as opened:
        secret = opened.grant(token=6, min_price_sats=1)
        assert tag_of(opened.sign, listing(price=299_999), secret, token=6) == "list-min"
        assert opened.sign(listing(price=300_000), secret, token=6)


def test_without_a_minimum_a_listing_still_asks_for_a_sat(open_desk: Desk) -> None:
    secret = open_desk.grant(token=6, min_price_sats=0)
    assert tag_of(open_desk.sign, listing(price=0), secret, token=6) == "bad-request"
    assert open_desk.sign(listing(price=1), secret, token=6)


@pytest.mark.parametrize("facts", [None, replace(FACTS, is_unspent=None)])
def test_doubt_about_the_output_is_a_refusal(facts: Any, open_desk: Desk) -> None:
    open_desk.facts = facts
    assert tag_of(open_desk.sign, listing()) == "inputs-confirmed"


def test_an_output_of_another_user_is_not_listed(open_desk: Desk) -> None:
    secret = open_desk.grant(task=9, user=OTHER_USER)
    paid_to_them = honest().draft
    paid_to_them.pays[0].script = script_of(parse(open_desk.ask("addresses", user=OTHER_USER)["payment"])) or b""
    asked = listing(psbt=text(paid_to_them.encode()), secure=[])
    assert tag_of(open_desk.sign, asked, secret, 9) == "amount-proof"


@pytest.mark.parametrize("inscription", [OTHER_INSCRIPTION, INSCRIPTION[:-1] + "1"])
def test_another_inscription_is_not_listed(inscription: str, open_desk: Desk) -> None:
    assert tag_of(open_desk.sign, listing(inscription_id=inscription)) == "op-allowed"


def test_only_a_grant_to_list_lists(open_desk: Desk) -> None:
    cancel_only = open_desk.grant(task=9, operations=("cancel",))
    assert tag_of(open_desk.sign, listing(), cancel_only, 9) == "op-allowed"
    assert open_desk.ask("sign_challenge", task=9, token=5, secret=cancel_only, challenge="x", key="vault")
    bidder = open_desk.grant(task=10, operations=("bid", "cancel"), slug="frogs", inscription_id="")
    assert tag_of(open_desk.sign, listing(), bidder, 10) == "op-allowed"


def test_a_lister_places_no_bids(open_desk: Desk) -> None:
    bid = {
        "task": TASK,
        "token": 5,
        "secret": open_desk.secret,
        "bid": dict(zip(BID.__struct_fields__, (getattr(BID, name) for name in BID.__struct_fields__), strict=True)),
    }
    assert tag_of(open_desk.ask, "sign_bid", **bid) == "op-allowed"


def test_after_revoke_place_nothing_is_listed_and_the_vault_still_cancels(open_desk: Desk) -> None:
    open_desk.sign(listing())
    open_desk.ask("revoke_place", task=TASK, token=5)
    for number in (1, 2):
        assert tag_of(open_desk.sign, listing(number)) == "op-allowed"
    challenge = {"task": TASK, "token": 5, "secret": open_desk.secret, "challenge": "a venue's", "key": "vault"}
    signature = open_desk.ask("sign_challenge", **challenge)["signature"]
    assert verify_ownership(open_desk.ask("addresses", user=LIST_GRANT.user)["vault"], "a venue's", signature)
    open_desk.ask("end_rights", task=TASK, token=5)
    assert tag_of(open_desk.ask, "sign_challenge", **challenge) == "grant-live"


@pytest.mark.parametrize("state", ["reduce", "halt"])
@pytest.mark.parametrize(("scope", "subject"), [("global", ""), ("user", LIST_GRANT.user), ("task", str(TASK))])
def test_nothing_is_listed_under_reduce_or_halt(scope: str, subject: str, state: str, open_desk: Desk) -> None:
    open_desk.ask("control", scope=scope, subject=subject, state=state)
    assert tag_of(open_desk.sign, listing()) == "control-state"
    open_desk.ask("control", scope=scope, subject=subject, state="run")
    assert open_desk.sign(listing())


def test_the_halt_file_stops_listings(open_desk: Desk) -> None:
    open_desk.has_halt_file = True
    assert tag_of(open_desk.sign, listing()) == "control-state"


def test_a_price_falls_by_a_tenth_an_hour(open_desk: Desk) -> None:
    open_desk.sign(listing(1, 400_000))
    assert tag_of(open_desk.sign, listing(2, 359_999)) == "list-lower"
    open_desk.sign(listing(3, 360_000))
    assert tag_of(open_desk.sign, listing(4, 324_000)) == "list-lower"
    open_desk.now_ms += HOUR_MS
    open_desk.sign(listing(5, 324_000))
    assert tag_of(open_desk.sign, listing(6, 291_599)) == "list-lower"
    open_desk.now_ms -= 24 * HOUR_MS
    assert tag_of(open_desk.sign, listing(7, 324_000)) == "list-lower", "a clock set back refills nothing"
    assert open_desk.ask("lowest_listing", outpoint=listing()["outpoint"]) == {"price": 324_000}


def test_the_fall_is_of_the_output_whatever_the_task(open_desk: Desk) -> None:
    open_desk.sign(listing(1, 400_000))
    secret = open_desk.grant(task=9)
    assert tag_of(open_desk.sign, listing(2, 300_000), secret, 9) == "list-lower"


def test_the_lowest_listing_is_of_one_output(open_desk: Desk) -> None:
    outpoint = listing()["outpoint"]
    assert open_desk.ask("lowest_listing", outpoint=outpoint) == {"price": None}
    open_desk.sign(listing(1, 300_000))
    open_desk.sign(listing(2, 500_000))
    assert open_desk.ask("lowest_listing", outpoint=outpoint) == {"price": 300_000}
    assert open_desk.ask("lowest_listing", outpoint="ab" * 32 + ":0") == {"price": None}


def test_listings_are_counted_by_the_minute_and_the_hour(tmp_path: Path) -> None:
    with desk(tmp_path, Ceilings(task=Rate(2, 3))) as opened:
        for number in (1, 2):
            opened.sign(listing(number))
        assert tag_of(opened.sign, listing(3)) == "velocity"
        opened.now_ms += 60_000
        opened.sign(listing(3))
        opened.now_ms += 60_000
        assert tag_of(opened.sign, listing(4)) == "velocity"
        opened.now_ms = START_MS + HOUR_MS
        opened.sign(listing(4))


def test_the_log_tells_what_was_listed_and_holds_no_psbt(open_desk: Desk) -> None:
    answer = open_desk.sign(listing())
    assert verify_chain(open_desk.audit_path) == 1
    written = open_desk.audit_path.read_text()
    line = json.loads(written)
    assert (line["operation"], line["inscription_id"], line["price"]) == ("list", INSCRIPTION, PRICE)
    assert line["outpoint"] == listing()["outpoint"]
    assert line["payouts"] == [PRICE + 10_000] * 2
    unsigned = honest().draft.unsigned()
    txid = hashlib.sha256(hashlib.sha256(unsigned).digest()).digest()[::-1].hex()
    assert line["unsigned_txids"] == [txid] * 2, "the two forms differ in their sighash only"
    drafts = "\n".join((listing()["psbt"], *listing()["secure"]))
    assert line["drafts_sha256"] == hashlib.sha256(drafts.encode()).hexdigest()
    assert (line["task"], line["token"], line["user"]) == (TASK, 5, LIST_GRANT.user)
    assert (line["intent"], line["time_ms"]) == (listing_intent(1), START_MS)
    for hidden in (answer["psbt"], open_desk.secret, listing()["psbt"]):
        assert hidden not in written


def test_log_and_file_agree_on_what_was_listed(open_desk: Desk) -> None:
    """As the signer asks itself before it signs again after a start."""
    for number in (1, 2):
        open_desk.sign(listing(number))
    files = open_desk.audit_path, open_desk.audit_path.with_name("signer.db")
    require_agreement(*files, open_desk.now_ms)
    open_desk.ledger._database.execute("UPDATE listings SET drafts_hash = 'ff' WHERE rowid = 2")
    with pytest.raises(KeystoreError, match="audit log does not have"):
        require_agreement(*files, open_desk.now_ms)


def test_on_a_short_disk_nothing_is_listed(open_desk: Desk) -> None:
    open_desk.is_short = lambda: True
    assert tag_of(open_desk.sign, listing()) == "disk-full"


def test_without_an_audit_line_there_is_no_listing(open_desk: Desk) -> None:
    with no_space():
        assert tag_of(open_desk.sign, listing()) == "disk-full"
    assert open_desk.ask("was_signed", intent=listing_intent(1)) == {"signed": False}
    assert open_desk.ask("lowest_listing", outpoint=listing()["outpoint"]) == {"price": None}
    assert open_desk.sign(listing())
    assert open_desk.ask("was_signed", intent=listing_intent(1)) == {"signed": True}


@pytest.mark.parametrize("psbt", ["AAAA", "AAA", "not base64", "cHNidP8="])
def test_a_draft_that_is_no_psbt_is_refused(psbt: str, open_desk: Desk) -> None:
    assert tag_of(open_desk.sign, listing(psbt=psbt)) == "psbt-strict"


def test_a_grant_without_an_inscription_needs_its_slug(open_desk: Desk) -> None:
    assert tag_of(open_desk.grant, task=9, operations=("bid",), inscription_id="") == "bad-request"


def test_a_grant_to_list_needs_its_inscription_though_it_has_a_slug(open_desk: Desk) -> None:
    assert tag_of(open_desk.grant, task=9, slug="frogs", inscription_id="") == "bad-request"
    assert tag_of(open_desk.grant, task=9, slug="a:b") == "bad-request"
    assert open_desk.grant(task=9, slug="frogs")


def test_a_challenge_is_signed_by_the_payment_key_unless_the_vault_is_asked_for(open_desk: Desk) -> None:
    keys = open_desk.ask("addresses", user=LIST_GRANT.user)
    asked = {"task": TASK, "token": 5, "secret": open_desk.secret, "challenge": "c"}
    for more, address in (({}, "payment"), ({"key": "payment"}, "payment"), ({"key": "vault"}, "vault")):
        signature = open_desk.ask("sign_challenge", **asked, **more)["signature"]
        assert verify_ownership(keys[address], "c", signature)
    assert tag_of(open_desk.ask, "sign_challenge", **asked, key="seed") == "bad-request"


def test_the_vault_signs_no_challenge_for_a_bidder(open_desk: Desk) -> None:
    secret = open_desk.grant(task=9, operations=("bid", "cancel"), slug="frogs", inscription_id="")
    asked = {"task": 9, "token": 5, "secret": secret, "challenge": "c"}
    assert open_desk.ask("sign_challenge", **asked)
    assert tag_of(open_desk.ask, "sign_challenge", **asked, key="vault") == "op-allowed"


def test_what_is_looked_up_is_the_listings_output_and_only_for_whoever_may_list(open_desk: Desk) -> None:
    request = {"op": "sign_listing", "task": TASK, "token": 5, "secret": open_desk.secret, "listing": listing()}
    assert (look_up := partial(outpoints_to_look_up, open_desk.signer))(request) == (listing()["outpoint"],)
    assert look_up({"op": "status"}) == look_up({"op": "controls"}) == ()
    assert tag_of(look_up, request | {"secret": "ab"}) == "grant-live"
    assert tag_of(look_up, request | {"listing": listing(inscription_id=OTHER_INSCRIPTION)}) == "op-allowed"
    open_desk.sign(listing())
    assert look_up(request) == ()
    assert tag_of(look_up, request | {"listing": listing(price=PRICE + 1)}) == "intent-conflict"
