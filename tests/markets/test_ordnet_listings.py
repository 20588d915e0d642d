"""Listing at ord.net: the three PSBTs of a draft, its submit, and the delist that needs no signature."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import responses
from msgspec.structs import replace

from markets.base import Refused, SignInNeeded, Unavailable, Unknown, VenueError
from markets.orders import ListingDraft, ListingOrder, ListingToDraft
from markets.ordnet.adapter import OrdNet
from tests.markets import ordnet_examples as ex

PREFLIGHT_PATH, SUBMIT_PATH = "/collection/wizards/listings/preflight", "/collection/wizards/listings/submit"
DELIST_PATH = "/collection/wizards/listings/delist"
ANCHOR = "66666666-6666-4666-8666-666666666666"
ASK = ListingToDraft(50_000, ex.INSCRIPTION, ex.ORDINALS, ex.PAYMENT, ex.PAIR.ordinals_pubkey, "Wizards")


def _step(psbt: str, sighash: int, **more: Any) -> dict[str, Any]:
    inputs = [{"address": ex.ORDINALS, "signingIndexes": [0], "sigHash": sighash, "publicKey": ex.PAIR.ordinals_pubkey}]
    return {"signerAddress": ex.ORDINALS, "inputsToSign": inputs, "psbtBase64": psbt, **more}


TRANSFER = _step("dHJhbnNmZXI=", 0, stepIndex=0, inscriptionId=ex.INSCRIPTION)
SETTLEMENT = _step("c2V0dGxlbWVudA==", 131, stepIndex=1, inscriptionId=ex.INSCRIPTION)
RECOVERY = _step("cmVjb3Zlcnk=", 1)
PREFLIGHT: dict[str, Any] = {
    "listings": [{"inscriptionId": ex.INSCRIPTION, "anchorUtxoId": ANCHOR, "psbts": [TRANSFER, SETTLEMENT]}],
    "recoveryPsbt": RECOVERY,
}
MADE = {"listings": [{"inscriptionId": ex.INSCRIPTION, "listingId": ex.LISTING_ID}]}


@pytest.fixture
def adapter() -> Iterator[OrdNet]:
    responses.start()
    yield ex.signed_in()
    responses.stop()
    responses.reset()


def _drafted(adapter: OrdNet) -> ListingDraft:
    ex.answers("POST", PREFLIGHT_PATH, PREFLIGHT)
    return adapter.draft_listing(ASK)


def _order(draft: ListingDraft, **more: Any) -> ListingOrder:
    payment = ex.PAYMENT, ex.PAIR.payment_pubkey
    order = ListingOrder(ASK, "c2lnbmVk", draft.psbt, (), *payment, "c2lnbmVkMA==", "c2lnbmVkUg==")
    return replace(order, **more)


def test_a_draft_as_documented(adapter: OrdNet) -> None:
    draft = _drafted(adapter)
    assert ex.asked() == {
        "walletBindingId": ex.BINDING_ID,
        "ordinalsPublicKey": ex.PAIR.ordinals_pubkey,
        "items": [{"inscriptionId": ex.INSCRIPTION, "priceSats": 50_000}],
    }
    expected = (each["psbtBase64"] for each in (TRANSFER, SETTLEMENT, RECOVERY))
    assert (draft.transfer, draft.psbt, draft.recovery, draft.secure) == (*expected, ())


def _changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    answer = copy.deepcopy(PREFLIGHT)
    where: Any = answer
    for name in path[:-1]:
        where = where[name]
    where[path[-1]] = value
    return answer


STEPS = ("listings", 0, "psbts")
INPUT = ("inputsToSign", 0)


@pytest.mark.parametrize(
    "answer",
    [
        _changed(("listings", 0, "inscriptionId"), "cd" * 32 + "i0"),
        _changed(("listings", 0, "anchorUtxoId"), None),
        _changed(("listings",), []),
        _changed(("listings",), None),
        _changed(STEPS, [TRANSFER]),
        _changed(STEPS, [TRANSFER, TRANSFER]),
        _changed(STEPS, [TRANSFER, SETTLEMENT, SETTLEMENT]),
        _changed((*STEPS, 0, "stepIndex"), 2),
        _changed((*STEPS, 0, "stepIndex"), None),
        _changed((*STEPS, 1, "inscriptionId"), "cd" * 32 + "i0"),
        _changed((*STEPS, 0, "signerAddress"), "bc1pmallory"),
        _changed((*STEPS, 0, *INPUT, "address"), "bc1pmallory"),
        _changed((*STEPS, 0, *INPUT, "sigHash"), 130),
        _changed((*STEPS, 0, *INPUT, "sigHash"), 131),
        _changed((*STEPS, 1, *INPUT, "sigHash"), 129),
        _changed((*STEPS, 1, *INPUT, "sigHash"), None),
        _changed((*STEPS, 1, *INPUT, "signingIndexes"), [1]),
        _changed((*STEPS, 1, *INPUT, "signingIndexes"), [0, 1]),
        _changed((*STEPS, 1, "psbtBase64"), "!"),
        _changed((*STEPS, 0, *INPUT, "signingIndexes"), [0, 1]),
        _changed(("recoveryPsbt", *INPUT, "signingIndexes"), [0, 1]),
        _changed(("recoveryPsbt",), None),
        _changed(("recoveryPsbt", *INPUT, "sigHash"), 0),
        _changed(("recoveryPsbt", "signerAddress"), ex.PAYMENT),
        {"listings": [PREFLIGHT["listings"][0]] * 2, "recoveryPsbt": RECOVERY},
        [],
    ],
)
def test_a_draft_of_something_else_is_not_handed_on(adapter: OrdNet, answer: Any) -> None:
    ex.answers("POST", PREFLIGHT_PATH, answer)
    with pytest.raises(Unavailable, match="understand"):
        adapter.draft_listing(ASK)


def test_a_submit_repeats_its_draft(adapter: OrdNet) -> None:
    draft = _drafted(adapter)
    ex.answers("POST", SUBMIT_PATH, MADE)
    adapter.list_item(_order(draft))
    assert ex.asked() == {
        **ex.asked(0),
        "durationDays": 30,
        "anchors": [{"inscriptionId": ex.INSCRIPTION, "anchorUtxoId": ANCHOR}],
        "signed": [
            {
                "inscriptionId": ex.INSCRIPTION,
                "psbts": [{**TRANSFER, "psbtBase64": "c2lnbmVkMA=="}, {**SETTLEMENT, "psbtBase64": "c2lnbmVk"}],
            }
        ],
        "signedRecoveryPsbt": {**RECOVERY, "psbtBase64": "c2lnbmVkUg=="},
    }


@pytest.mark.parametrize(
    "more",
    [
        {"ask": replace(ASK, price=40_000)},
        {"ask": replace(ASK, inscription_id="cd" * 32 + "i0")},
        {"ask": replace(ASK, receive="bc1qmallory")},
        {"unsigned_psbt": "b3RoZXI="},
        {"signed_transfer": ""},
        {"signed_recovery": ""},
    ],
)
def test_a_submit_that_does_not_fit_its_draft_is_not_sent(adapter: OrdNet, more: dict[str, Any]) -> None:
    order = _order(_drafted(adapter), **more)
    with pytest.raises(Refused, match="nothing was sent"):
        adapter.list_item(order)
    assert len(responses.calls) == 1


@pytest.mark.parametrize(
    "answer",
    [
        {"listings": []},
        {"listings": [{"inscriptionId": "cd" * 32 + "i0", "listingId": ex.LISTING_ID}]},
        {"listings": [{"inscriptionId": ex.INSCRIPTION}]},
        {"listings": [MADE["listings"][0]] * 2},
        {},
        None,
    ],
)
def test_a_submit_whose_answer_is_not_clear_may_have_been_taken(adapter: OrdNet, answer: Any) -> None:
    draft = _drafted(adapter)
    ex.answers("POST", SUBMIT_PATH, answer)
    with pytest.raises(Unknown):
        adapter.list_item(_order(draft))


def test_a_listing_below_an_offer_is_refused(adapter: OrdNet) -> None:
    draft = _drafted(adapter)
    ex.answers("POST", SUBMIT_PATH, {"error": "An active offer is above this price"}, status=409)
    with pytest.raises(Refused) as caught:
        adapter.list_item(_order(draft))
    assert caught.value.code == "changed"


def test_a_listing_just_made_can_be_taken_down(adapter: OrdNet) -> None:
    draft = _drafted(adapter)
    ex.answers("POST", SUBMIT_PATH, MADE)
    adapter.list_item(_order(draft))
    ex.answers("POST", DELIST_PATH, MADE)
    assert adapter.delist(ex.ORDINALS, ex.INSCRIPTION, "") is True
    assert ex.asked() == {
        "walletBindingId": ex.BINDING_ID,
        "listings": [{"inscriptionId": ex.INSCRIPTION, "listingId": ex.LISTING_ID}],
    }


def test_a_listing_that_was_read_can_be_taken_down(adapter: OrdNet) -> None:
    ex.answers(
        "GET", "/listings", {"listings": [{**ex.LISTING, "sellerAddress": ex.ORDINALS}], "pagination": ex.LAST_PAGE}
    )
    adapter.own_listings(ex.ORDINALS, None)
    ex.answers("POST", DELIST_PATH, {"listings": []})
    assert adapter.delist(ex.ORDINALS, ex.INSCRIPTION, "") is False


@pytest.mark.parametrize("owner", [ex.ORDINALS, "bc1pother"])
def test_what_no_read_has_shown_is_not_taken_down(adapter: OrdNet, owner: str) -> None:
    if owner != ex.ORDINALS:
        ex.answers(
            "GET", "/listings", {"listings": [{**ex.LISTING, "sellerAddress": ex.ORDINALS}], "pagination": ex.LAST_PAGE}
        )
        adapter.own_listings(ex.ORDINALS, None)
        responses.calls.reset()
    with pytest.raises(Unavailable, match="nothing was sent"):
        adapter.delist(owner, ex.INSCRIPTION, "")
    assert not responses.calls


@pytest.mark.parametrize("answer", [{}, None, {"listings": None}, {"listings": [{"inscriptionId": ex.INSCRIPTION}]}])
def test_a_delist_whose_answer_is_not_clear_may_have_been_taken(adapter: OrdNet, answer: Any) -> None:
    ex.answers(
        "GET", "/listings", {"listings": [{**ex.LISTING, "sellerAddress": ex.ORDINALS}], "pagination": ex.LAST_PAGE}
    )
    adapter.own_listings(ex.ORDINALS, None)
    ex.answers("POST", DELIST_PATH, answer)
    with pytest.raises(Unknown):
        adapter.delist(ex.ORDINALS, ex.INSCRIPTION, "")


@pytest.mark.parametrize(
    "ask, leaf", [(replace(ASK, slug=None), Refused), (replace(ASK, owner="bc1pother"), SignInNeeded)]
)
def test_what_cannot_be_listed_is_not_asked_for(adapter: OrdNet, ask: ListingToDraft, leaf: type[VenueError]) -> None:
    with pytest.raises(leaf):
        adapter.draft_listing(ask)
    assert not responses.calls


def test_the_transfer_may_leave_its_sighash_to_the_default(adapter: OrdNet) -> None:
    inputs = [ex.without(TRANSFER["inputsToSign"][0], "sigHash")]
    ex.answers("POST", PREFLIGHT_PATH, _changed((*STEPS, 0, "inputsToSign"), inputs))
    assert adapter.draft_listing(ASK).transfer == TRANSFER["psbtBase64"]
