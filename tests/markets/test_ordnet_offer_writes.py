"""ord.net's offers as they are made: drafts, submits and cancels, as documented and as they may drift."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
import responses

from markets.base import NotFound, NotSupported, Refused, Unavailable, Unknown
from markets.orders import BidDraft
from markets.ordnet import orders as ordnet_offers
from markets.ordnet.adapter import OrdNet
from tests.markets.ordnet_examples import (
    BINDING_ID,
    BOOK,
    DRAFTED,
    GOLD,
    MADE,
    NAME,
    OFFER_ID,
    PAIR,
    PARENT,
    PAYMENT,
    PREFLIGHT,
    PSBT,
    SIGNED,
    STEP,
    TRAITS,
    answers,
    ask,
    asked,
    order,
    signed_in,
    without,
)

pytestmark = pytest.mark.usefixtures("no_network")


def test_a_draft_as_documented() -> None:
    adapter = signed_in()
    answers("POST", BOOK + "/preflight", PREFLIGHT)
    draft = adapter.draft_bid(ask(trait=GOLD))
    assert asked() == {
        "walletBindingId": BINDING_ID,
        "ordinalsPublicKey": PAIR.ordinals_pubkey,
        "paymentPublicKey": PAIR.payment_pubkey,
        "target": TRAITS,
        "priceSats": 100_000,
        "offerCount": 1,
        "ladderStepSats": 0,
        "validityHours": 6,
        "spendableUtxos": [
            {"txid": "ee" * 32, "vout": 1, "valueSats": 200_000},
            {"txid": "ff" * 32, "vout": 0, "valueSats": 90_000},
        ],
    }
    assert draft.leaf == DRAFTED["offerScriptHex"]
    (psbt,) = draft.psbts
    assert (draft.reference, psbt.role, psbt.psbt, psbt.indices, psbt.sighash) == (PARENT, "funding", PSBT, (0,), None)


@pytest.mark.parametrize("hours, told", [(1, 6), (6, 6), (7, 12), (13, 24), (25, 168), (169, 720), (2160, 2160)])
def test_an_offer_lives_as_long_as_ord_net_lets_it(hours: int, told: int) -> None:
    adapter = signed_in()
    answers("POST", BOOK + "/preflight", PREFLIGHT)
    adapter.draft_bid(ask(valid_hours=hours))
    assert asked()["validityHours"] == told


@pytest.mark.parametrize("more", [{"kind": "runes"}, {"quantity": Decimal(2)}, {"valid_hours": 2161}])
def test_bids_that_ord_net_does_not_take(more: dict[str, Any]) -> None:
    adapter = signed_in()
    with pytest.raises(NotSupported):
        adapter.draft_bid(ask(**more))
    assert not responses.calls


OTHERS_STEP = {**STEP, "inputsToSign": [{"address": "bc1qmallory", "signingIndexes": [0]}]}


@pytest.mark.parametrize(
    "changes",
    [
        {"priceSats": 105_000},
        {"priceSats": None},
        {"selectedPaymentUtxos": []},
        {"selectedPaymentUtxos": None},
        {"selectedPaymentUtxos": [{"txid": "ee" * 32, "vout": 0, "valueSats": 200_000}]},
        {"selectedPaymentUtxos": [{"txid": "ee" * 32, "vout": 1, "valueSats": 200_001}]},
        {"selectedPaymentUtxos": [{"txid": "EE" * 32, "vout": 1, "valueSats": 200_000}]},
        {"fundingParentFeeRateSatVb": 1},
        {"fundingParentFeeRateSatVb": None},
        {"fundingBroadcasted": True},
        {"fundingBroadcasted": None},
        {"expectedFundingParentTxid": "dd"},
        {"fundingParentVout": -1},
        {"preflightToken": ""},
        {"preflightToken": None},
        {"offerScriptHex": None},
        {"offerScriptHex": ""},
        {"offerScriptHex": "2"},
        {"offerScriptHex": "AB"},
        {"offerScriptHex": "20" * 1_001},
        {"fundingParentStep": None},
        {"fundingParentStep": {**STEP, "psbtBase64": "not base64"}},
        {"fundingParentStep": {**STEP, "psbtBase64": "AAAA" * 20_000}},
        {"fundingParentStep": {**STEP, "signerAddress": "bc1qmallory"}},
        {"fundingParentStep": OTHERS_STEP},
        {"fundingParentStep": {**STEP, "inputsToSign": []}},
        {"fundingParentStep": {**STEP, "inputsToSign": [{"address": PAYMENT, "signingIndexes": []}]}},
        {"fundingParentStep": {**STEP, "inputsToSign": [{"address": PAYMENT, "signingIndexes": [0, 0]}]}},
        {"fundingParentStep": {**STEP, "inputsToSign": [{"address": PAYMENT, "signingIndexes": [0], "sigHash": 77}]}},
        {
            "fundingParentStep": {
                **STEP,
                "inputsToSign": [
                    {"address": PAYMENT, "signingIndexes": [0], "sigHash": 1},
                    {"address": PAYMENT, "signingIndexes": [1], "sigHash": 131},
                ],
            }
        },
    ],
)
def test_a_draft_of_something_else_is_not_handed_on(changes: dict[str, Any]) -> None:
    adapter = signed_in()
    answers("POST", BOOK + "/preflight", {**PREFLIGHT, "offers": [{**DRAFTED, **changes}]})
    with pytest.raises(Unavailable, match="understand"):
        adapter.draft_bid(ask())


@pytest.mark.parametrize("offers", [[], [DRAFTED, DRAFTED], None, {}, [None]])
def test_a_draft_is_of_one_offer(offers: Any) -> None:
    adapter = signed_in()
    answers("POST", BOOK + "/preflight", {**PREFLIGHT, "offers": offers})
    with pytest.raises(Unavailable, match="understand"):
        adapter.draft_bid(ask())


@pytest.mark.parametrize("status, leaf", [(500, Unavailable), (503, Unavailable), (409, Refused), (404, NotFound)])
def test_a_draft_that_fails_has_changed_nothing(status: int, leaf: type[Exception]) -> None:
    adapter = signed_in()
    answers("POST", BOOK + "/preflight", {"error": "later"}, status=status)
    with pytest.raises(leaf):
        adapter.draft_bid(ask())


def _drafted(adapter: OrdNet, **more: Any) -> BidDraft:
    answers("POST", BOOK + "/preflight", PREFLIGHT)
    return adapter.draft_bid(ask(**more))


def test_a_submit_repeats_its_draft_and_answers_the_offers_name() -> None:
    adapter = signed_in()
    draft = _drafted(adapter, valid_hours=20)
    answers("POST", BOOK + "/submit", {"status": "active", "offers": [MADE]})
    assert adapter.place(order(draft)) == NAME
    assert asked() == {
        **without(asked(0), "spendableUtxos"),
        "validityHours": 24,
        "offers": [
            {
                "priceSats": 100_000,
                "selectedPaymentUtxos": [{"txid": "ee" * 32, "vout": 1, "valueSats": 200_000}],
                "expectedFundingParentTxid": PARENT,
                "fundingParentVout": 0,
                "preflightToken": "token.of.this-draft",
                "signedFundingParentStep": {**STEP, "psbtBase64": SIGNED},
            }
        ],
    }


@pytest.mark.parametrize(
    "more",
    [
        {"price": 105_000},
        {"slug": "goblins"},
        {"trait": GOLD},
        {"payment": "bc1qother"},
        {"payment_pubkey": "03" * 33},
        {"receive": "bc1pelsewhere"},
        {"signed_psbts": ()},
        {"signed_psbts": (SIGNED, SIGNED)},
        {"reference": "aa" * 32},
        {"reference": ""},
    ],
)
def test_a_submit_that_does_not_fit_its_draft_is_not_sent(more: dict[str, Any]) -> None:
    adapter = signed_in()
    wrong = order(_drafted(adapter), **more)
    with pytest.raises(Refused, match="nothing was sent"):
        adapter.place(wrong)
    assert len(responses.calls) == 1


@pytest.mark.parametrize(
    "answer",
    [
        {"status": "active", "offers": [{**MADE, "priceSats": 105_000}]},
        {"status": "active", "offers": [{**MADE, "status": "expired"}]},
        {"status": "active", "offers": [{**MADE, "fundingParentTxid": "aa" * 32}]},
        {"status": "active", "offers": [without(MADE, "offerId")]},
        {"status": "active", "offers": [{**MADE, "offerId": {"$oid": 1}}]},
        {"status": "active", "offers": [MADE, MADE]},
        {"status": "active", "offers": []},
        {"status": "active"},
        {"error": "no"},
        "thanks",
        None,
    ],
)
def test_a_submit_whose_answer_is_not_clear_may_have_been_taken(answer: Any) -> None:
    adapter = signed_in()
    draft = _drafted(adapter)
    answers("POST", BOOK + "/submit", answer)
    with pytest.raises(Unknown):
        adapter.place(order(draft))


@pytest.mark.parametrize("status, code", [(400, "refused"), (409, "changed"), (404, "not_found"), (403, "auth_failed")])
def test_a_submit_that_was_refused(status: int, code: str) -> None:
    adapter = signed_in()
    draft = _drafted(adapter)
    answers("POST", BOOK + "/submit", {"error": "no"}, status=status)
    with pytest.raises(Refused) as caught:
        adapter.place(order(draft))
    assert caught.value.code == code


def test_old_drafts_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordnet_offers, "_MOST_DRAFTS", 3)
    adapter = signed_in()
    first = _drafted(adapter)
    for number in range(3):
        drafted = {**DRAFTED, "expectedFundingParentTxid": f"{number:064x}"}
        responses.replace(
            "POST", "https://ord.net/api/v1" + BOOK + "/preflight", json={**PREFLIGHT, "offers": [drafted]}
        )
        adapter.draft_bid(ask())
    with pytest.raises(Refused, match="any more"):
        adapter.place(order(first))


@pytest.mark.parametrize(
    "answer, done",
    [
        ({"offerId": OFFER_ID, "status": "cancelled"}, True),
        ({"offerId": OFFER_ID, "status": "active"}, False),
        ({"offerId": OFFER_ID, "status": "accepted"}, False),
    ],
)
def test_a_cancel_goes_by_collection_and_id_without_a_signature(answer: Any, done: bool) -> None:
    adapter = signed_in()
    answers("POST", f"{BOOK}/{OFFER_ID}/cancel", answer)
    assert adapter.cancel(PAYMENT, [NAME], "") is done
    assert asked() == {"walletBindingId": BINDING_ID}


@pytest.mark.parametrize(
    "names", [[], [NAME, NAME], [OFFER_ID], ["wizards:"], ["wizards:../x/y/z"], ["a/b:" + OFFER_ID]]
)
def test_a_cancel_of_what_is_not_one_offer_is_not_sent(names: list[str]) -> None:
    adapter = signed_in()
    with pytest.raises(Refused):
        adapter.cancel(PAYMENT, names, "")
    assert not responses.calls


@pytest.mark.parametrize(
    "answer",
    [{"offerId": "e" * 36, "status": "cancelled"}, {"status": "cancelled"}, {"offerId": OFFER_ID}, {}, None, "ok"],
)
def test_a_cancel_whose_answer_is_not_clear_may_have_been_taken(answer: Any) -> None:
    adapter = signed_in()
    answers("POST", f"{BOOK}/{OFFER_ID}/cancel", answer)
    with pytest.raises(Unknown):
        adapter.cancel(PAYMENT, [NAME], "")


def test_a_permit_that_is_gone_stops_a_write() -> None:
    adapter = signed_in()

    def permit() -> None:
        raise Unavailable("no more")

    with pytest.raises(Unavailable, match="no more"):
        adapter.cancel(PAYMENT, [NAME], "", permit)
    assert not responses.calls
