"""ord.net's offers: read, drafted, submitted and cancelled."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
import responses

from markets.base import NotFound, NotSupported, Refused, Unavailable, Unknown
from markets.orders import BidDraft
from markets.ordnet import orders as ordnet_offers
from markets.ordnet.adapter import OrdNet
from markets.parse import Page
from tests.markets import ordnet_examples as ex

pytestmark = pytest.mark.usefixtures("no_network")

OWN = "/collection/wizards/my/sent-collection-offers"


def test_a_book_as_documented() -> None:
    adapter = ex.signed_in()
    lower = {**ex.ROW, "id": "b" * 36, "target": ex.TRAITS, "priceSats": 90_000, "makerAddress": "bc1qother"}
    ex.answers("GET", ex.BOOK, ex.book(lower, ex.ROW))
    page = adapter.bids("Wizards", "ordinals", None)
    assert page.following is None
    first, second = page.entries
    assert (first.bid.order_id, first.bid.price, first.bid.unit_price, first.bid.quantity) == (
        ex.NAME,
        100_000,
        100_000,
        1,
    )
    assert (first.bid.maker, first.bid.placed_ms, first.traits) == (ex.PAYMENT, 1_778_263_200_000, frozenset())
    assert (second.bid.price, second.traits) == (90_000, {ex.GOLD})


@pytest.mark.parametrize(
    "target, traits",
    [
        ({"kind": "traits", "traits": [{"type": "A", "values": ["1", "2"]}]}, {("A", "1"), ("A", "2")}),
        (
            {"kind": "traits", "traits": [{"type": "A", "values": ["1"]}, {"type": "B", "values": [7]}]},
            {("A", "1"), ("B", "7")},
        ),
    ],
)
def test_offers_on_several_traits(target: Any, traits: set[tuple[str, str]]) -> None:
    adapter = ex.signed_in()
    ex.answers("GET", ex.BOOK, ex.book({**ex.ROW, "target": target}))
    assert adapter.bids("wizards", "ordinals", None).entries[0].traits == traits


def test_what_is_on_something_else_or_over_is_no_rival() -> None:
    adapter = ex.signed_in()
    items = {**ex.ROW, "target": {"kind": "inscriptions", "inscriptionIds": ["1i0"]}}
    over = [{**ex.ROW, "status": state} for state in ("accepted", "cancelled", "expired", "invalidated", "rejected")]
    ex.answers("GET", ex.BOOK, ex.book(items, *over))
    assert adapter.bids("wizards", "ordinals", None) == Page((), None)


STRANGE_BOOKS: list[Any] = [
    ex.book(ex.ROW, totalCount=2),
    ex.book(ex.ROW, totalCount=None),
    ex.without(ex.book(ex.ROW), "totalCount"),
    ex.without(ex.book(ex.ROW), "rows"),
    ex.book(rows={"0": ex.ROW}),
    {"data": ex.book(ex.ROW)},
    {"error": "not today"},
    {},
    [],
    None,
    '"offers"',
]


@pytest.mark.parametrize("answer", STRANGE_BOOKS)
def test_book_of_another_shape_is_not_understood(answer: Any) -> None:
    adapter = ex.signed_in()
    ex.answers("GET", ex.BOOK, answer)
    with pytest.raises(Unavailable, match="understand"):
        adapter.bids("wizards", "ordinals", None)


@pytest.mark.parametrize("answer", STRANGE_BOOKS)
def test_own_offers_of_another_shape_are_not_understood(answer: Any) -> None:
    adapter = ex.signed_in()
    ex.answers("GET", OWN, answer)
    with pytest.raises(Unavailable, match="understand"):
        adapter.own_bids(ex.PAYMENT, None, ["wizards"])


@pytest.mark.parametrize(
    "row",
    [
        {**ex.ROW, "actionBindingId": ex.BINDING_ID},
        {**ex.ROW, "actionBindingId": ex.BINDING_ID, "makerAddress": "bc1psomething"},
        {**ex.ROW, "actionBindingId": None},
        {**ex.ROW, "makerAddress": ex.ORDINALS},
    ],
)
def test_our_own_offers_as_documented(row: dict[str, Any]) -> None:
    adapter = ex.signed_in()
    ex.answers("GET", OWN, ex.book(row, {**row, "id": "c" * 36, "target": ex.TRAITS}))
    page = adapter.own_bids(ex.PAYMENT, None, ["wizards"])
    whole, on_trait = page.entries
    assert (whole.venue_id, whole.slug, whole.kind, whole.price, whole.quantity) == (
        ex.NAME,
        "wizards",
        "ordinals",
        100_000,
        1,
    )
    assert (whole.trait, whole.expires_ms) == (None, None)
    assert (on_trait.venue_id, on_trait.trait) == ("wizards:" + "c" * 36, ex.GOLD)
    assert page.following is None


def test_offers_of_the_profiles_other_wallets_are_not_this_ones() -> None:
    adapter = ex.signed_in()
    others = [
        {**ex.ROW, "actionBindingId": ex.OTHER_ID},
        {**ex.ROW, "makerAddress": "bc1qother"},
        {**ex.ROW, "makerAddress": "bc1pother"},
    ]
    ex.answers("GET", OWN, ex.book(*others))
    assert adapter.own_bids(ex.PAYMENT, None, ["wizards"]) == Page((), None)


@pytest.mark.parametrize("row", [{**ex.ROW, "makerAddress": "bc1qmallory"}, {**ex.ROW, "actionBindingId": "d" * 36}])
def test_an_offer_of_ours_by_nobody_we_know_is_unreadable(row: dict[str, Any]) -> None:
    adapter = ex.signed_in()
    ex.answers("GET", OWN, ex.book(row))
    with pytest.raises(Unavailable, match="no wallet"):
        adapter.own_bids(ex.PAYMENT, None, ["wizards"])


@pytest.mark.parametrize(
    "target",
    [
        {"kind": "traits", "traits": [{"type": "A", "values": ["1", "2"]}]},
        {"kind": "traits", "traits": [{"type": "A", "values": ["1"]}, {"type": "B", "values": ["2"]}]},
        {"kind": "inscriptions", "inscriptionIds": ["1i0"]},
    ],
)
def test_an_offer_that_no_task_makes_has_no_slug(target: Any) -> None:
    adapter = ex.signed_in()
    ex.answers("GET", OWN, ex.book({**ex.ROW, "target": target}))
    (bid,) = adapter.own_bids(ex.PAYMENT, None, ["wizards"]).entries
    assert (bid.slug, bid.trait, bid.venue_id, bid.price) == ("", None, ex.NAME, 100_000)


def test_each_collection_is_a_page_of_our_own_offers() -> None:
    adapter = ex.signed_in()
    slugs = ["wizards", "Goblins", "wizards"]
    ex.answers("GET", "/collection/goblins/my/sent-collection-offers", ex.book(ex.ROW))
    ex.answers("GET", OWN, ex.book())
    first = adapter.own_bids(ex.PAYMENT, None, slugs)
    assert (first.entries[0].slug, first.following) == ("goblins", "wizards")
    assert adapter.own_bids(ex.PAYMENT, first.following, slugs) == Page((), None)
    assert len(responses.calls) == 2


def test_without_a_collection_nothing_is_known_of_our_own_offers() -> None:
    with pytest.raises(Unavailable, match="by collection"):
        ex.signed_in().own_bids(ex.PAYMENT, None)
    assert not responses.calls


def test_our_offers_on_an_unknown_collection_are_not_none() -> None:
    adapter = ex.signed_in()
    ex.answers("GET", OWN, {"error": "Collection not found"}, status=404)
    with pytest.raises(NotFound):
        adapter.own_bids(ex.PAYMENT, None, ["wizards"])


def test_a_draft_as_documented() -> None:
    adapter = ex.signed_in()
    ex.answers("POST", ex.BOOK + "/preflight", ex.PREFLIGHT)
    draft = adapter.draft_bid(ex.ask(trait=ex.GOLD))
    assert ex.asked() == {
        "walletBindingId": ex.BINDING_ID,
        "ordinalsPublicKey": ex.PAIR.ordinals_pubkey,
        "paymentPublicKey": ex.PAIR.payment_pubkey,
        "target": ex.TRAITS,
        "priceSats": 100_000,
        "offerCount": 1,
        "ladderStepSats": 0,
        "validityHours": 6,
        "spendableUtxos": [
            {"txid": "ee" * 32, "vout": 1, "valueSats": 200_000},
            {"txid": "ff" * 32, "vout": 0, "valueSats": 90_000},
        ],
    }
    assert draft.leaf == ex.DRAFTED["offerScriptHex"]
    (psbt,) = draft.psbts
    assert (draft.reference, psbt.role, psbt.psbt, psbt.indices, psbt.sighash) == (
        ex.PARENT,
        "funding",
        ex.PSBT,
        (0,),
        None,
    )


@pytest.mark.parametrize("hours, told", [(1, 6), (6, 6), (7, 12), (13, 24), (25, 168), (169, 720), (2160, 2160)])
def test_an_offer_lives_as_long_as_ord_net_lets_it(hours: int, told: int) -> None:
    adapter = ex.signed_in()
    ex.answers("POST", ex.BOOK + "/preflight", ex.PREFLIGHT)
    adapter.draft_bid(ex.ask(valid_hours=hours))
    assert ex.asked()["validityHours"] == told


@pytest.mark.parametrize("more", [{"kind": "runes"}, {"quantity": Decimal(2)}, {"valid_hours": 2161}])
def test_bids_that_ord_net_does_not_take(more: dict[str, Any]) -> None:
    adapter = ex.signed_in()
    with pytest.raises(NotSupported):
        adapter.draft_bid(ex.ask(**more))
    assert not responses.calls


OTHERS_STEP = {**ex.STEP, "inputsToSign": [{"address": "bc1qmallory", "signingIndexes": [0]}]}


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
        {"fundingParentStep": {**ex.STEP, "psbtBase64": "not base64"}},
        {"fundingParentStep": {**ex.STEP, "psbtBase64": "AAAA" * 20_000}},
        {"fundingParentStep": {**ex.STEP, "signerAddress": "bc1qmallory"}},
        {"fundingParentStep": OTHERS_STEP},
        {"fundingParentStep": {**ex.STEP, "inputsToSign": []}},
        {"fundingParentStep": {**ex.STEP, "inputsToSign": [{"address": ex.PAYMENT, "signingIndexes": []}]}},
        {"fundingParentStep": {**ex.STEP, "inputsToSign": [{"address": ex.PAYMENT, "signingIndexes": [0, 0]}]}},
        {
            "fundingParentStep": {
                **ex.STEP,
                "inputsToSign": [{"address": ex.PAYMENT, "signingIndexes": [0], "sigHash": 77}],
            }
        },
        {
            "fundingParentStep": {
                **ex.STEP,
                "inputsToSign": [
                    {"address": ex.PAYMENT, "signingIndexes": [0], "sigHash": 1},
                    {"address": ex.PAYMENT, "signingIndexes": [1], "sigHash": 131},
                ],
            }
        },
    ],
)
def test_a_draft_of_something_else_is_not_handed_on(changes: dict[str, Any]) -> None:
    adapter = ex.signed_in()
    ex.answers("POST", ex.BOOK + "/preflight", {**ex.PREFLIGHT, "offers": [{**ex.DRAFTED, **changes}]})
    with pytest.raises(Unavailable, match="understand"):
        adapter.draft_bid(ex.ask())


@pytest.mark.parametrize("offers", [[], [ex.DRAFTED, ex.DRAFTED], None, {}, [None]])
def test_a_draft_is_of_one_offer(offers: Any) -> None:
    adapter = ex.signed_in()
    ex.answers("POST", ex.BOOK + "/preflight", {**ex.PREFLIGHT, "offers": offers})
    with pytest.raises(Unavailable, match="understand"):
        adapter.draft_bid(ex.ask())


def _drafted(adapter: OrdNet, **more: Any) -> BidDraft:
    ex.answers("POST", ex.BOOK + "/preflight", ex.PREFLIGHT)
    return adapter.draft_bid(ex.ask(**more))


def test_a_submit_repeats_its_draft_and_answers_the_offers_name() -> None:
    adapter = ex.signed_in()
    draft = _drafted(adapter, valid_hours=20)
    ex.answers("POST", ex.BOOK + "/submit", {"status": "active", "offers": [ex.MADE]})
    assert adapter.place(ex.order(draft)) == ex.NAME
    assert ex.asked() == {
        **ex.without(ex.asked(0), "spendableUtxos"),
        "validityHours": 24,
        "offers": [
            {
                "priceSats": 100_000,
                "selectedPaymentUtxos": [{"txid": "ee" * 32, "vout": 1, "valueSats": 200_000}],
                "expectedFundingParentTxid": ex.PARENT,
                "fundingParentVout": 0,
                "preflightToken": "token.of.this-draft",
                "signedFundingParentStep": {**ex.STEP, "psbtBase64": ex.SIGNED},
            }
        ],
    }


@pytest.mark.parametrize(
    "more",
    [
        {"price": 105_000},
        {"slug": "goblins"},
        {"trait": ex.GOLD},
        {"payment": "bc1qother"},
        {"payment_pubkey": "03" * 33},
        {"receive": "bc1pelsewhere"},
        {"signed_psbts": ()},
        {"signed_psbts": (ex.SIGNED, ex.SIGNED)},
        {"reference": "aa" * 32},
        {"reference": ""},
    ],
)
def test_a_submit_that_does_not_fit_its_draft_is_not_sent(more: dict[str, Any]) -> None:
    adapter = ex.signed_in()
    wrong = ex.order(_drafted(adapter), **more)
    with pytest.raises(Refused, match="nothing was sent"):
        adapter.place(wrong)
    assert len(responses.calls) == 1


@pytest.mark.parametrize(
    "answer",
    [
        {"status": "active", "offers": [{**ex.MADE, "priceSats": 105_000}]},
        {"status": "active", "offers": [{**ex.MADE, "status": "expired"}]},
        {"status": "active", "offers": [{**ex.MADE, "fundingParentTxid": "aa" * 32}]},
        {"status": "active", "offers": [ex.without(ex.MADE, "offerId")]},
        {"status": "active", "offers": [{**ex.MADE, "offerId": {"$oid": 1}}]},
        {"status": "active", "offers": [ex.MADE, ex.MADE]},
        {"status": "active", "offers": []},
        {"status": "active"},
        {"error": "no"},
        "thanks",
        None,
    ],
)
def test_a_submit_whose_answer_is_not_clear_may_have_been_taken(answer: Any) -> None:
    adapter = ex.signed_in()
    draft = _drafted(adapter)
    ex.answers("POST", ex.BOOK + "/submit", answer)
    with pytest.raises(Unknown):
        adapter.place(ex.order(draft))


@pytest.mark.parametrize("status, code", [(400, "refused"), (409, "changed"), (404, "not_found"), (403, "auth_failed")])
def test_a_submit_that_was_refused(status: int, code: str) -> None:
    adapter = ex.signed_in()
    draft = _drafted(adapter)
    ex.answers("POST", ex.BOOK + "/submit", {"error": "no"}, status=status)
    with pytest.raises(Refused) as caught:
        adapter.place(ex.order(draft))
    assert caught.value.code == code


def test_old_drafts_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordnet_offers, "_MOST_DRAFTS", 3)
    adapter = ex.signed_in()
    first = _drafted(adapter)
    for number in range(3):
        drafted = {**ex.DRAFTED, "expectedFundingParentTxid": f"{number:064x}"}
        responses.replace(
            "POST", "https://ord.net/api/v1" + ex.BOOK + "/preflight", json={**ex.PREFLIGHT, "offers": [drafted]}
        )
        adapter.draft_bid(ex.ask())
    with pytest.raises(Refused, match="any more"):
        adapter.place(ex.order(first))


@pytest.mark.parametrize(
    "answer, done",
    [
        ({"offerId": ex.OFFER_ID, "status": "cancelled"}, True),
        ({"offerId": ex.OFFER_ID, "status": "active"}, False),
        ({"offerId": ex.OFFER_ID, "status": "accepted"}, False),
    ],
)
def test_a_cancel_goes_by_collection_and_id_without_a_signature(answer: Any, done: bool) -> None:
    adapter = ex.signed_in()
    ex.answers("POST", f"{ex.BOOK}/{ex.OFFER_ID}/cancel", answer)
    assert adapter.cancel(ex.PAYMENT, [ex.NAME], "") is done
    assert ex.asked() == {"walletBindingId": ex.BINDING_ID}


@pytest.mark.parametrize(
    "names", [[], [ex.NAME, ex.NAME], [ex.OFFER_ID], ["wizards:"], ["wizards:../x/y/z"], ["a/b:" + ex.OFFER_ID]]
)
def test_a_cancel_of_what_is_not_one_offer_is_not_sent(names: list[str]) -> None:
    adapter = ex.signed_in()
    with pytest.raises(Refused):
        adapter.cancel(ex.PAYMENT, names, "")
    assert not responses.calls


@pytest.mark.parametrize(
    "answer",
    [{"offerId": "e" * 36, "status": "cancelled"}, {"status": "cancelled"}, {"offerId": ex.OFFER_ID}, {}, None, "ok"],
)
def test_a_cancel_whose_answer_is_not_clear_may_have_been_taken(answer: Any) -> None:
    adapter = ex.signed_in()
    ex.answers("POST", f"{ex.BOOK}/{ex.OFFER_ID}/cancel", answer)
    with pytest.raises(Unknown):
        adapter.cancel(ex.PAYMENT, [ex.NAME], "")
