"""Listing at the practice market's Ordinals Wallet and UniSat: their drafts signed if they pay, and taken back."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from embit import script
from embit.transaction import TransactionOutput

from simulator.chain import Coin
from simulator.listing import Draft, read, signature_of, signed_sale
from simulator.taproot import is_signed, is_whole_signed
from tests.shapes import replace
from tests.wallet.listings import INSCRIPTION, PAYOUT_SCRIPT, STRANGER, STRANGER_SCRIPT, VAULT, script_by
from tests.worlds.signer import FACTS, OTHER_USER, TASK, Desk, desk, listing, listing_intent, tag_of
from wallet.psbt.common import MOST_POSTAGE
from wallet.psbt.transaction import ALL, DEFAULT, LISTING, Outpoint
from wallet.signer.audit import verify_chain
from wallet.terms import Ceilings

VENUES = ("simulator-ordinalswallet", "simulator-unisat")
UNISAT = "simulator-unisat"
OUTPOINT = "ab" * 32 + ":3"
PRICE, POSTAGE = 250_000, 546
VAULT_SCRIPT = script_by("p2tr", VAULT)
COIN = Coin(OUTPOINT, POSTAGE, VAULT_SCRIPT.hex())
STRANGE = Coin("cd" * 32 + ":0", 600, STRANGER_SCRIPT.hex())
KEY = VAULT.get_public_key().xonly().hex()


def pays(value: int, to: bytes) -> TransactionOutput:
    return TransactionOutput(value, script.Script(to))


LISTED = Draft((COIN,), (pays(PRICE, PAYOUT_SCRIPT),), LISTING, internal_key=KEY)
BACK = Draft((COIN,), (pays(POSTAGE, VAULT_SCRIPT),), DEFAULT, internal_key=KEY)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path) as found:
        found.facts = replace(FACTS, outpoint=Outpoint.parse(OUTPOINT), value_sats=POSTAGE)
        yield found


def asked(draft: Draft = LISTED, number: int = 1, price: int = PRICE, **changes: Any) -> dict[str, Any]:
    return listing(number, price, outpoint=OUTPOINT, psbt=draft.encode(), secure=[]) | changes


@pytest.mark.parametrize("venue", VENUES)
def test_the_venues_draft_is_signed_for_the_price_alone(opened: Desk, venue: str) -> None:
    secret = opened.grant(venue=venue, token=6)
    sale = signed_sale(opened.sign(asked(), secret, token=6)["psbt"])
    assert (sale.payout.value, bytes(sale.payout.script_pubkey.data)) == (PRICE, PAYOUT_SCRIPT)
    assert is_signed(LISTED.transaction, 0, COIN.output, sale.signature, LISTING)


EVIL: dict[str, tuple[Draft, str]] = {
    "a sat less": (replace(LISTED, outputs=(pays(PRICE - 1, PAYOUT_SCRIPT),)), "payout"),
    "to the vault": (replace(LISTED, outputs=(pays(PRICE, VAULT_SCRIPT),)), "outputs-known"),
    "to a stranger": (replace(LISTED, outputs=(pays(PRICE, STRANGER_SCRIPT),)), "outputs-known"),
    "another input of ours": (
        replace(LISTED, coins=(COIN, Coin("cd" * 32 + ":0", POSTAGE, VAULT_SCRIPT.hex()))),
        "inputs-reserved",
    ),
    "another output of ours": (
        replace(LISTED, coins=(Coin("cd" * 32 + ":0", POSTAGE, VAULT_SCRIPT.hex()),)),
        "inputs-reserved",
    ),
    "all with anyone": (replace(LISTED, sighash=0x81), "sighash-allowed"),
    "none with anyone": (replace(LISTED, sighash=0x82), "sighash-allowed"),
    "all": (replace(LISTED, sighash=ALL), "sighash-allowed"),
}


@pytest.mark.parametrize("venue", VENUES)
@pytest.mark.parametrize(("draft", "tag"), EVIL.values(), ids=EVIL)
def test_none_that_pays_less_or_elsewhere_is(opened: Desk, venue: str, draft: Draft, tag: str) -> None:
    secret = opened.grant(venue=venue, token=6)
    assert tag_of(opened.sign, asked(draft), secret, token=6) == tag
    assert opened.audit_path.read_bytes() == b""


@pytest.mark.parametrize("venue", (*VENUES, "simulator", "simulator-ordnet"))
def test_whatever_pays_the_price_is_signed_at_every_venue(opened: Desk, venue: str) -> None:
    secret = opened.grant(venue=venue, token=6)
    forms = [
        LISTED,
        replace(LISTED, outputs=(pays(PRICE + POSTAGE, PAYOUT_SCRIPT),)),
        replace(LISTED, outputs=(*LISTED.outputs, pays(1_000, STRANGER_SCRIPT))),
        replace(LISTED, coins=(COIN, STRANGE)),
    ]
    for number, form in enumerate(forms):
        assert opened.sign(asked(form, number), secret, token=6)
    secure = asked(number=9, secure=[replace(LISTED, sighash=0x81).encode()])
    assert len(opened.sign(secure, secret, token=6)["secure"]) == (venue == "simulator")


@pytest.mark.parametrize(("held", "tag"), [(MOST_POSTAGE, None), (MOST_POSTAGE + 1, "payout")])
def test_what_the_buyer_gets_with_it_is_bounded(opened: Desk, held: int, tag: str | None) -> None:
    assert opened.facts is not None
    opened.facts = replace(opened.facts, value_sats=held)
    draft = replace(LISTED, coins=(Coin(OUTPOINT, held, VAULT_SCRIPT.hex()),))
    secret = opened.grant(venue=UNISAT, token=6)
    if tag is None:
        assert opened.sign(asked(draft), secret, token=6)
    else:
        assert tag_of(opened.sign, asked(draft), secret, token=6) == tag


@pytest.mark.parametrize("venue", VENUES)
def test_the_bounds_of_a_price_hold_there_too(opened: Desk, venue: str) -> None:
    secret = opened.grant(venue=venue, token=6)
    low = replace(LISTED, outputs=(pays(199_999, PAYOUT_SCRIPT),))
    assert tag_of(opened.sign, asked(low, price=199_999), secret, token=6) == "list-min"
    opened.sign(asked(), secret, token=6)
    lower = replace(LISTED, outputs=(pays(224_999, PAYOUT_SCRIPT),))
    assert tag_of(opened.sign, asked(lower, 2, 224_999), secret, token=6) == "list-lower"
    opened.facts = None
    assert tag_of(opened.sign, asked(number=3), secret, token=6) == "inputs-confirmed"


def take_back(opened: Desk, draft: Draft = BACK, *, outpoint: str = OUTPOINT, token: int = 6, **changes: Any) -> str:
    fields = {"task": TASK, "token": token, "secret": opened.secret, "outpoint": outpoint, "psbt": draft.encode()}
    return str(opened.ask("sign_delist", **fields | changes)["psbt"])


@pytest.fixture
def taker(opened: Desk) -> Desk:
    """With no more than a drain's grant, and no fact known."""
    opened.facts = None
    opened.secret = opened.grant(venue=UNISAT, token=6, operations=("cancel",), min_price_sats=0)
    return opened


def test_a_listing_is_taken_back_by_giving_everything_back(taker: Desk) -> None:
    signed = read(take_back(taker), "it")
    assert signed.tx.serialize() == BACK.transaction.serialize()
    assert is_whole_signed(signed.tx, 0, [COIN.output], signature_of(signed.inputs[0]))
    assert len(signature_of(signed.inputs[0])) == 64, "DEFAULT: all of it"
    entry = json.loads(taker.audit_path.read_text().splitlines()[-1])
    assert (entry["operation"], entry["outpoint"], entry["inscription_id"]) == ("delist", OUTPOINT, INSCRIPTION)
    assert entry["unsigned_txid"] == BACK.transaction.txid().hex()
    assert verify_chain(taker.audit_path) == 1


def test_it_is_signed_whatever_control_says(taker: Desk) -> None:
    taker.ask("control", scope="global", subject="", state="halt")
    taker.has_halt_file = True
    taker.ask("revoke_place", task=TASK, token=6)
    assert take_back(taker)


TAKING: dict[str, tuple[Draft, str]] = {
    "a sat less": (replace(BACK, outputs=(pays(POSTAGE - 1, VAULT_SCRIPT),)), "payout"),
    "a sat more": (replace(BACK, outputs=(pays(POSTAGE + 1, VAULT_SCRIPT),)), "payout"),
    "to the payment address": (replace(BACK, outputs=(pays(POSTAGE, PAYOUT_SCRIPT),)), "outputs-known"),
    "to a stranger": (replace(BACK, outputs=(pays(POSTAGE, STRANGER_SCRIPT),)), "outputs-known"),
    "in two parts": (replace(BACK, outputs=(pays(46, VAULT_SCRIPT), pays(500, VAULT_SCRIPT))), "outputs-known"),
    "one input more": (replace(BACK, coins=(COIN, STRANGE)), "inputs-reserved"),
    "another output": (replace(BACK, coins=(replace(COIN, outpoint="cd" * 32 + ":0"),)), "inputs-reserved"),
    "a stranger's output": (replace(BACK, coins=(replace(COIN, script=STRANGER_SCRIPT.hex()),)), "amount-proof"),
    "a listing's sighash": (replace(BACK, sighash=LISTING), "sighash-allowed"),
    "all": (replace(BACK, sighash=ALL), "sighash-allowed"),
    "none": (replace(BACK, sighash=0x02), "sighash-allowed"),
    "another's key": (replace(BACK, internal_key=STRANGER.get_public_key().xonly().hex()), "key-path"),
}


@pytest.mark.parametrize(("draft", "tag"), TAKING.values(), ids=TAKING)
def test_nothing_else_takes_it_back(taker: Desk, draft: Draft, tag: str) -> None:
    assert tag_of(take_back, taker, draft) == tag
    assert taker.audit_path.read_bytes() == b""


@pytest.mark.parametrize(
    ("at", "became"),
    [(0, b"\x00"), (0, b"\x04"), (-4, b"\x01"), (42, b"\xfc")],
    ids=["version 0", "version 4", "locktime", "sequence below"],
)
def test_nor_what_might_wait(taker: Desk, at: int, became: bytes) -> None:
    assert tag_of(take_back, taker, psbt=changed(at, became)) == "tx-form"


@pytest.mark.parametrize(
    ("at", "became"),
    [(0, b"\x01"), (0, b"\x03"), (42, b"\xfe"), (42, b"\xff")],
    ids=["version 1", "version 3", "next sequence", "last sequence"],
)
def test_other_words_for_the_same_take_it_back(taker: Desk, at: int, became: bytes) -> None:
    assert take_back(taker, psbt=changed(at, became))


def changed(at: int, became: bytes) -> str:
    """Returns it with another byte in the unsigned transaction."""
    bare = BACK.transaction.serialize()
    other = bytearray(bare)
    other[at : at + 1 or None] = became
    return b64encode(b64decode(BACK.encode()).replace(bare, bytes(other))).decode()


def test_nor_what_is_no_psbt_or_was_signed(taker: Desk) -> None:
    signed = take_back(taker)
    assert tag_of(take_back, taker, psbt="not base64") == "psbt-strict"
    assert tag_of(take_back, taker, psbt=signed) == "input-signed"
    assert tag_of(take_back, taker, psbt="AAAA") == "psbt-strict"
    for wrong in ("", 1, None, "ä", "A" * 50_000):
        assert tag_of(lambda w=wrong: take_back(taker, psbt=w)) == "bad-request"  # type: ignore[misc]
    assert tag_of(take_back, taker, outpoint="x") == "bad-request"


@pytest.mark.parametrize("venue", ["simulator", "simulator-ordnet", "simulator-ordinalswallet"])
def test_it_harms_nothing_wherever_it_is_asked_for(taker: Desk, venue: str) -> None:
    secret = taker.grant(venue=venue, token=7, operations=("cancel",), min_price_sats=0)
    assert take_back(taker, token=7, secret=secret)


def test_it_needs_a_grant_that_names_an_inscription_and_is_of_ones_own_vault(taker: Desk) -> None:
    assert tag_of(take_back, taker, secret="ab") == "grant-live"
    secret = taker.grant(venue=UNISAT, token=7, operations=("list",))
    assert tag_of(take_back, taker, token=7, secret=secret) == "op-allowed"
    secret = taker.grant(venue=UNISAT, token=8, operations=("cancel",), inscription_id="", slug="cats")
    assert tag_of(take_back, taker, token=8, secret=secret) == "op-allowed"
    secret = taker.grant(venue=UNISAT, token=9, user=OTHER_USER)
    assert tag_of(take_back, taker, token=9, secret=secret) == "amount-proof"


def test_so_many_in_a_minute(tmp_path: Path) -> None:
    with desk(tmp_path, Ceilings(challenges_a_minute=1)) as found:
        found.secret = found.grant(venue=UNISAT, token=6)
        assert take_back(found)
        assert tag_of(take_back, found) == "velocity"
        found.pass_time(60_001)
        assert take_back(found)


def test_taking_back_is_no_listing(taker: Desk) -> None:
    take_back(taker)
    assert taker.ask("lowest_listing", outpoint=OUTPOINT) == {"price": None}
    assert taker.ask("was_signed", intent=listing_intent(1)) == {"signed": False}
