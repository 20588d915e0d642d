"""Satflow's offers on single inscriptions: drafted, signed, placed; documented and hostile shapes."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
import responses
from msgspec.structs import replace

from markets.base import BidOrder, NotSupported, Refused, Unavailable, Unknown
from markets.orders import BidToDraft, Coin, DraftPsbt
from markets.satflow.adapter import Satflow
from tests.markets.satflow_examples import BASE, PSBT

pytestmark = pytest.mark.usefixtures("no_network")

INSCRIPTION = "ab" * 32 + "i0"
COINS = (Coin("cd" * 32 + ":1", 60_000), Coin("ef" * 32 + ":0", 50_000))
OUTPOINTS = ["cd" * 32 + ":1", "ef" * 32 + ":0"]
ASK = BidToDraft(100_000, Decimal(1), INSCRIPTION, "ordinals", None, "bc1qpay", "02ab", "bc1pord", "cd" * 32, 1, COINS)
ORDER = BidOrder(
    price=100_000,
    quantity=Decimal(1),
    slug=INSCRIPTION,
    kind="ordinals",
    payment="bc1qpay",
    payment_pubkey="02ab",
    receive="bc1pord",
    expires_ms=1_700_000_960_000,
    timestamp_ms=1_700_000_000_000,
    signature="",
    fee_rate="halfHourFee",
    reference=",".join(OUTPOINTS),
    signed_psbts=(PSBT,),
)


def _drafts(bidder: Any) -> None:
    responses.post(BASE + "/intent/bid", json={"success": True, "data": {"bidder": bidder}})


def test_an_offer_is_drafted_with_the_coins_that_may_pay_for_it(satflow: Satflow) -> None:
    _drafts({"unsignedBiddingPSBTBase64": PSBT, "unsignedBiddingPSBTHex": "70", "bidderPaymentUTXOs": [{}]})
    draft = satflow.draft_bid(ASK)
    assert draft.psbts == (DraftPsbt("bid", PSBT, (), None),)
    assert draft.reference == ORDER.reference
    assert json.loads(responses.calls[0].request.body or "") == {
        "price": 100_000,
        "inscriptionId": INSCRIPTION,
        "bidderAddress": "bc1qpay",
        "bidderTokenReceiveAddress": "bc1pord",
        "bidderPublicKey": "02ab",
        "allowedPaymentOutpoints": OUTPOINTS,
    }


def test_a_signed_offer_is_placed_with_the_same_coins(satflow: Satflow) -> None:
    responses.post(BASE + "/bid/place", json={"success": True, "data": {"message": "Successfully bid!"}})
    satflow.place(ORDER)
    assert json.loads(responses.calls[0].request.body or "") == {
        "price": 100_000,
        "inscriptionId": INSCRIPTION,
        "bidderAddress": "bc1qpay",
        "bidderTokenReceiveAddress": "bc1pord",
        "signedBiddingPSBT": PSBT,
        "allowedPaymentOutpoints": OUTPOINTS,
    }


@pytest.mark.parametrize(
    "bidder", [None, [], {}, {"unsignedBiddingPSBTBase64": None}, {"unsignedBiddingPSBTBase64": "<psbt>"}]
)
def test_a_draft_that_is_not_understood_is_none(satflow: Satflow, bidder: Any) -> None:
    _drafts(bidder)
    with pytest.raises(Unavailable):
        satflow.draft_bid(ASK)


def test_an_answer_that_says_nothing_leaves_the_fate_open(satflow: Satflow) -> None:
    responses.post(BASE + "/bid/place", json={"data": {}})
    with pytest.raises(Unknown):
        satflow.place(ORDER)


def test_what_could_be_paid_with_any_coin_is_not_drafted(satflow: Satflow) -> None:
    many = tuple(Coin(f"{number:064x}:0", 1000) for number in range(100))
    with responses.RequestsMock():
        for coins in ((), many):
            with pytest.raises(Refused):
                satflow.draft_bid(replace(ASK, coins=coins))


def test_what_was_not_drafted_and_signed_is_not_sent(satflow: Satflow) -> None:
    with responses.RequestsMock():
        for order in (replace(ORDER, signed_psbts=()), replace(ORDER, reference="")):
            with pytest.raises(Refused):
                satflow.place(order)


def test_other_bids_are_messages(satflow: Satflow) -> None:
    with responses.RequestsMock():
        for slug in ("goosinals", "A•B", "AB" * 32 + "i0", "ab" * 32 + "i01"):
            with pytest.raises(NotSupported):
                satflow.draft_bid(replace(ASK, slug=slug))
