"""ord.net's answers as its documentation shows them (developers.ord.net, 2026-10), and an adapter that is signed in."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import responses
from msgspec.structs import replace

from markets.base import BidOrder
from markets.orders import BidDraft, BidToDraft, Coin, Pair, SignInAnswer
from markets.ordnet.adapter import OrdNet

BASE = "https://ord.net/api/v1"
NOW_S = 1_778_263_200  # 2026-05-08T18:00:00Z
PAYMENT, ORDINALS = "bc1qpayment", "bc1pordinals"
PAIR = Pair(PAYMENT, "02" + "ab" * 32, ORDINALS, "cd" * 32)
TOKEN = "secret-session-token"
BINDING_ID = "55555555-5555-4555-8555-555555555555"
OTHER_ID = "56565656-5656-4656-8656-565656565656"
OFFER_ID = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
BOOK = "/collection/wizards/collection-offers"
GOLD = ("Background", "Gold")
NAME = f"wizards:{OFFER_ID}"
LISTING_ID = "11111111-1111-4111-8111-111111111111"
INSCRIPTION = "ab" * 32 + "i0"
PARENT = "dd" * 32
COIN = Coin("ee" * 32 + ":1", 200_000)
PSBT = "cHNidP8="
SIGNED = "cHNidP9z"

CHALLENGE = {
    "authRequestId": "11111111-1111-1111-1111-111111111111",
    "challenges": [
        {
            "challengeId": "22222222-2222-2222-2222-222222222222",
            "message": "Sign in to ord.net at 2026-05-08T18:00:00Z (nonce: 12)",
            "address": ORDINALS,
            "role": "ordinals",
        },
        {
            "challengeId": "33333333-3333-3333-3333-333333333333",
            "message": "Sign in to ord.net at 2026-05-08T18:00:00Z (nonce: 34)",
            "address": PAYMENT,
            "role": "payment",
        },
    ],
}
BINDING = {
    "walletBindingId": BINDING_ID,
    "label": "Trading Wallet",
    "provider": "unknown",
    "ordinalsAddress": ORDINALS,
    "paymentAddress": PAYMENT,
    "isPublic": True,
}
OTHER_BINDING = {
    **BINDING,
    "walletBindingId": OTHER_ID,
    "ordinalsAddress": "bc1pother",
    "paymentAddress": "bc1qother",
}
SESSION = {
    "profile": {"id": "44444444-4444-4444-4444-444444444444", "username": "alice", "displayName": None},
    "walletBindings": [OTHER_BINDING, BINDING],
    "sessionToken": TOKEN,
    "expiresAt": "2026-05-08T19:00:00.000Z",
}
SIGNATURES = {
    "22222222-2222-2222-2222-222222222222:ordinals": "AUE=",
    "33333333-3333-3333-3333-333333333333:payment": "AkE=",
}
ANSWER = SignInAnswer(PAIR, CHALLENGE["authRequestId"], SIGNATURES)  # type: ignore[arg-type]

ROW: dict[str, Any] = {
    "id": OFFER_ID,
    "target": {"kind": "all"},
    "scopeLabel": "Collection",
    "priceSats": 100_000,
    "eligibleCount": 500,
    "makerAddress": PAYMENT,
    "expiresAt": "2026-05-15T18:00:00.000Z",
    "createdAt": "2026-05-08T18:00:00.000Z",
    "totalSats": 100_000,
    "status": "active",
    "sampleInscription": None,
}
TRAITS = {"kind": "traits", "traits": [{"type": "Background", "values": ["Gold"]}]}
LISTING: dict[str, Any] = {
    "listingId": LISTING_ID,
    "inscriptionId": INSCRIPTION,
    "inscriptionNumber": "12345",
    "inscriptionName": "Inscription 12345",
    "collection": {"slug": "wizards", "name": "Wizards", "kind": "parent_child", "verificationStatus": "verified"},
    "sellerAddress": "bc1pseller",
    "priceSats": 50_000,
    "listedAt": "2026-05-08T18:00:00.000Z",
    "listingExpiresAt": None,
    "sat": 123_456_789,
    "locationTxid": "ab" * 32,
    "locationVout": 0,
    "locationSatpoint": "ab" * 32 + ":0:0",
}
LAST_PAGE = {"pageSize": 25, "hasNext": False, "nextCursor": None}
STEP = {
    "stepIndex": 0,
    "signerAddress": PAYMENT,
    "inputsToSign": [{"address": PAYMENT, "signingIndexes": [0]}],
    "psbtBase64": PSBT,
}
DRAFTED: dict[str, Any] = {
    "priceSats": 100_000,
    "offerAddress": "bc1poffer",
    "offerScriptHex": "20",
    "offerAuthSecretHash": "cc" * 32,
    "selectedPaymentUtxos": [{"txid": "ee" * 32, "vout": 1, "valueSats": 200_000}],
    "fundingParentFeeRateSatVb": 0,
    "fundingBroadcasted": False,
    "expectedFundingParentTxid": PARENT,
    "fundingParentVout": 0,
    "preflightToken": "token.of.this-draft",
    "fundingParentStep": STEP,
}
PREFLIGHT = {
    "criteriaCanonicalJson": '{"v":1}',
    "offerCriteriaHash": "aa" * 32,
    "eligibleRoot": "bb" * 32,
    "eligibleCount": 500,
    "buyerReceiveScriptHex": "5120" + "cd" * 32,
    "offers": [DRAFTED],
}
MADE = {
    "offerId": OFFER_ID,
    "status": "active",
    "priceSats": 100_000,
    "fundingParentTxid": PARENT,
    "fundingParentVout": 0,
    "fundingParentFeeRateSatVb": 0,
    "fundingBroadcasted": False,
}


def book(*rows: Any, **more: Any) -> dict[str, Any]:
    """Returns the answer that holds these offers."""
    on_traits = sum(isinstance(row, dict) and row.get("target") == TRAITS for row in rows)
    counts = {"totalCount": len(rows), "collectionOfferCount": len(rows) - on_traits, "traitOfferCount": on_traits}
    return {"rows": list(rows), **counts, **more}


def ask(**more: Any) -> BidToDraft:
    """Returns a bid that fits DRAFTED."""
    fields: dict[str, Any] = {
        "price": 100_000,
        "quantity": Decimal(1),
        "slug": "wizards",
        "kind": "ordinals",
        "trait": None,
        "payment": PAYMENT,
        "payment_pubkey": PAIR.payment_pubkey,
        "ordinals": ORDINALS,
        "ordinals_pubkey": PAIR.ordinals_pubkey,
        "valid_hours": 6,
        "coins": (COIN, Coin("ff" * 32 + ":0", 90_000)),
    }
    return BidToDraft(**fields | more)


def order(draft: BidDraft, **more: Any) -> BidOrder:
    """Returns the signed form of a draft that fits DRAFTED."""
    found = BidOrder(
        100_000,
        Decimal(1),
        "wizards",
        "ordinals",
        PAYMENT,
        PAIR.payment_pubkey,
        ORDINALS,
        1_778_290_000_000,
        1_778_263_200_000,
        "",
        "halfHourFee",
        reference=draft.reference,
        signed_psbts=(SIGNED,),
    )
    return replace(found, **more)


def answers(method: str, path: str, answer: Any, status: int = 200) -> None:
    """The venue's next answer to this request."""
    body = answer if isinstance(answer, str) else json.dumps(answer)
    responses.add(method, BASE + path, body=body, status=status)


class Watch:
    """A clock in the test's hands."""

    def __init__(self) -> None:
        self.now_s = float(NOW_S)

    def __call__(self) -> float:
        return self.now_s


def signed_in(watch: Watch | None = None) -> OrdNet:
    """Returns an adapter with a session of PAIR. Needs `responses` to be active, and leaves it without calls."""
    adapter = OrdNet(BASE, "ordnet", clock=watch or Watch())
    answers("POST", "/auth/verify", SESSION)
    adapter.sign_in(ANSWER)
    responses.reset()
    responses.calls.reset()
    return adapter


def asked(number: int = -1) -> Any:
    """Returns the JSON that was sent in a call."""
    return json.loads(responses.calls[number].request.body or "null")


def without(example: dict[str, Any], *names: str) -> dict[str, Any]:
    """`example` less these fields."""
    return {name: value for name, value in example.items() if name not in names}
