"""A marketplace and sources that give every field a value, behind a gateway of the test's own."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from msgspec import structs

from gateway.app import Gateway
from markets.adapter import Adapter, TraitedAsk, TraitedBid
from markets.base import (
    BidOrder,
    Floor,
    Item,
    Kind,
    OwnBid,
    Sale,
    WalletItem,
)
from markets.http import Permit
from markets.orders import (
    BidDraft,
    BidToDraft,
    ListingDraft,
    ListingOrder,
    ListingToDraft,
    OwnListing,
    Pair,
    SecureDraft,
    SignInAnswer,
    SignInTexts,
)
from markets.parse import Cursor, Page, Unread
from markets.venues import Capabilities, capabilities
from strategy.book import Ask, Bid
from tests.gateway.conftest import Bench
from tests.gateway.listing_examples import INSCRIPTION, OUTPOINT, PSBT, TXID
from tests.gateway.test_facts_program import ANSWERS
from tests.gateway.test_marketplaces import DRAFT, TEXTS
from tests.goldens.socket_files import plain
from tests.shapes import replace

NAME = "simulator"


@dataclass
class Market(Adapter):
    """A marketplace that has every operation, keeps what it receives, and fails once with `failure`."""

    name: str = NAME
    received: list[Any] = field(default_factory=list)
    failure: Exception | None = None

    def capabilities(self) -> Capabilities:
        return structs.replace(capabilities(self.name), rate_per_s=1000, burst=1000)

    def tell(self, *arguments: Any) -> None:
        self.received.append(plain(arguments))
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def floors(self, slugs: Sequence[str], kind: Kind) -> Mapping[str, Floor | Unread]:
        self.tell(slugs, kind)
        found: dict[str, Floor | Unread] = {"cats": Floor("cats", Decimal("1234.5"), 7), "dogs": Floor("dogs", None, 0)}
        return {slug: found[slug] for slug in slugs if slug in found}

    def asks(self, slug: str, cursor: Cursor) -> Page[TraitedAsk]:
        self.tell(slug, cursor)
        cheap = Ask("a1", 5_000, Decimal(1), Decimal(5_000), "bc1pseller")
        dear = Ask("a2", 7_000, Decimal(1), Decimal(7_000), "")
        return Page(
            (TraitedAsk(cheap, frozenset({("Hat", "Red")})), TraitedAsk(dear, None)),
            None,
            (Unread("no price", "a3", is_priced=False), Unread("odd", "a4")),
        )

    def bids(self, slug: str, kind: Kind, cursor: Cursor) -> Page[TraitedBid]:
        self.tell(slug, kind, cursor)
        best = Bid("b1", 4_000, Decimal("2.50"), Decimal("1600"), "bc1qmaker", 1_700_000_000_000, "bc1preceive")
        other = Bid("b2", 3_000, Decimal(1), Decimal(3_000), "bc1qother", None)
        traited = TraitedBid(other, frozenset({("Hat", "Red")}))
        return Page((TraitedBid(best, frozenset()), traited), None, (Unread("odd", "b3"),))

    def traits(self, slug: str) -> dict[str, dict[str, int]]:
        self.tell(slug)
        return {"Hat": {"Red": 3, "Blue •": 1}, "Eyes": {}}

    def sales(self, slug: str, kind: Kind, cursor: Cursor) -> Page[Sale]:
        self.tell(slug, kind, cursor)
        whole = Sale(
            "s1",
            slug,
            75_000,
            Decimal("1.5"),
            "bc1qbuyer",
            "b1",
            INSCRIPTION,
            1_700_000_500_000,
            TXID,
            is_of_listing=True,
        )
        bare = Sale("s2", slug, 5, None, None, None, None, 1_700_000_400_000)
        unread = (Unread("odd", "s3", 1_700_000_450_000), Unread("odd"))
        return Page((whole, bare), None, unread)

    def own_bids(self, wallet: str, cursor: Cursor, slugs: Collection[str] = ()) -> Page[OwnBid]:
        self.tell(wallet, cursor, slugs)
        whole = OwnBid("o1", "cats", "ordinals", 5_000, Decimal(1), 1_700_000_960_000, ("Hat", "Red"))
        return Page(
            (whole, OwnBid("o2", "", "runes", 6_000, None, None, None)), None, (Unread("odd", "o3"), Unread("odd"))
        )

    def challenge(self, address: str) -> str:
        self.tell(address)
        return "challenge 1f2e\nof two lines"

    def bidding_wallet(self, payment: str, receive: str, pubkey: str) -> str:
        self.tell(payment, receive, pubkey)
        return "bc1qmulti"

    def wallet_contents(self, address: str, cursor: Cursor) -> Page[WalletItem]:
        self.tell(address, cursor)
        whole = WalletItem(INSCRIPTION, "Cat #1", "cats", "Cats", "https://example.org/1.png", True, 90_000)
        return Page((whole, WalletItem("cd" * 32 + "i0", None, None, None, None, False, None)), None)

    def item(self, inscription_id: str) -> Item:
        self.tell(inscription_id)
        if inscription_id != INSCRIPTION:
            return Item(inscription_id, listed=False)
        texts = ("Cat #1", "cats", "Cats", "https://example.org/1.png", "https://example.org/1", "image/png")
        place = ("bc1pvault", f"{OUTPOINT}:0", OUTPOINT, 546, TXID)
        return Item(
            inscription_id, True, 7, *texts, *place, 90_000, "bc1pseller", 80_000, (("Eyes", "3"), ("Hat", "Red"))
        )

    def own_listings(self, owner: str, cursor: Cursor) -> Page[OwnListing]:
        self.tell(owner, cursor)
        whole = OwnListing("l1", INSCRIPTION, "cats", 90_000, owner)
        return Page(
            (whole, OwnListing("l2", "cd" * 32 + "i0", None, 1, owner)), None, (Unread("odd", "ef" * 32 + "i0"),)
        )

    def draft_bid(self, order: BidToDraft) -> BidDraft:
        self.tell(order)
        return DRAFT

    def draft_listing(self, ask: ListingToDraft) -> ListingDraft:
        self.tell(ask)
        return ListingDraft(PSBT, (SecureDraft(PSBT, (0, 2)),), PSBT, PSBT)

    def draft_delist(self, owner: str, inscription_id: str) -> ListingDraft:
        self.tell(owner, inscription_id)
        return ListingDraft(PSBT)

    def draft_withdrawal(self, payment: str, amount: int) -> str:
        self.tell(payment, amount)
        return PSBT

    def sign_in_texts(self, pair: Pair) -> SignInTexts:
        self.tell(pair)
        return TEXTS

    def sign_in(self, answer: SignInAnswer) -> None:
        self.tell(answer)

    def place(self, order: BidOrder, permit: Permit | None = None) -> str | None:
        assert permit is not None
        permit()
        self.tell(order)
        return "their-id-7" if order.reference else None

    def cancel(self, wallet: str, venue_ids: Sequence[str], signature: str, permit: Permit | None = None) -> bool:
        self.tell(wallet, venue_ids, signature)
        return "b" not in venue_ids

    def list_item(self, order: ListingOrder, permit: Permit | None = None) -> None:
        self.tell(order)

    def delist(self, owner: str, inscription_id: str, signature: str, permit: Permit | None = None) -> bool:
        self.tell(owner, inscription_id, signature)
        return True

    def submit_withdrawal(self, payment: str, psbt: str, permit: Permit | None = None) -> str:
        self.tell(payment, psbt)
        return TXID


SUMS = {"funded_txo_sum": 900, "spent_txo_sum": 100}
LOT = {"auctionId": "z1", "price": 150, "amount": "100", "unitPrice": "1.5", "tick": "DOG•GO", "address": "bc1pseller"}
RUNE = {"runeid": "840000:3", "spacedRune": "DOG•GO", "divisibility": 2}


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


PNG = b"\x89PNG\r\n\x1a\n" + b"".join(
    (
        _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)),
        _chunk(b"IDAT", zlib.compress(b"\0\xff\0\0", 0)),
        _chunk(b"IEND", b""),
    )
)
SOURCES: dict[str, Any] = ANSWERS | {
    "/api/v1/fees/recommended": {
        "fastestFee": 12.5,
        "halfHourFee": 10,
        "hourFee": 8,
        "economyFee": 2,
        "minimumFee": 1,
    },
    "/api/address/bc1qmulti": {"chain_stats": SUMS, "mempool_stats": SUMS},
    "/api/address/bc1qpayment/utxo": [
        {"txid": "ab" * 32, "vout": 1, "value": 546, "status": {"confirmed": True}},
        {"txid": "ab" * 32, "vout": 0, "value": 600, "status": {"confirmed": False}},
    ],
    f"/api/tx/{TXID}": {"txid": TXID, "status": {"confirmed": True}},
    "/api/tx": TXID,
    "/sim/play-wallet": {"address": "bc1qplay"},
    "/sim/play-wallet/sign": {"signature": "AkcwRA=="},
    "/v1/indexer/runes/info-list": {"code": 0, "msg": "ok", "data": {"total": 1, "start": 0, "detail": [RUNE]}},
    "/v3/market/runes/auction/list": {"code": 0, "msg": "ok", "data": {"list": [LOT], "total": 1}},
    f"/content/{INSCRIPTION}": PNG,
    f"/content/{'cd' * 32}i0": "<svg xmlns='http://www.w3.org/2000/svg'/>",
}


class Everything(Bench):
    """A gateway whose practice market, play wallet and sources all are the fake venue."""

    def make(self) -> Gateway:
        self.venue.answers |= SOURCES
        self.settings = replace(self.settings, simulator_port=self.venue.port, play_wallet=True)
        return Gateway(self.settings, lambda task: 0, lambda: True)
