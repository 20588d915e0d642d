"""A person who trades through an adapter: the calls of every method, each prepared up to the moment it is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from markets.adapter import Adapter
from markets.base import BidOrder
from markets.orders import BidToDraft, Coin, ListingOrder, ListingToDraft, Pair, SignInAnswer
from markets.parse import Page
from tests.markets.contract import signing
from tests.markets.contract.gate import Gate
from tests.markets.contract.parties import HELD, LISTED, Party
from tests.markets.contract.practice import Practice
from tests.simulator.desk import ANN, PUPPETS
from wallet.signer.challenges import sign_message

NOTHING: Page[Any] = Page((), None)


@dataclass
class Town:
    """One adapter before the practice market, with ANN signed in where that is needed."""

    party: Party
    practice: Practice
    gate: Gate
    coins: list[Coin] = field(default_factory=list)

    @cached_property
    def adapter(self) -> Adapter:
        return self.party.make(self.gate.url, self.practice.clock)

    @property
    def can(self) -> Any:
        return self.adapter.capabilities()

    def has(self, method: str) -> bool:
        return method not in self.party.lacks

    def seed(self) -> None:
        """A collection with asks and bids, and ANN with coins and an inscription of it."""
        self.practice.clock.ahead_s = 0.0
        self.practice.sim("POST", "reset", {"seed": self.party.seed, "background": False})
        held = [{"id": HELD, "collection": PUPPETS, "name": "Puppet", "traits": {"Hat": "Red"}}]
        self.practice.sim("PUT", f"wallets/{ANN.ordinals}", {"inscriptions": held})
        rows = self.practice.sim("PUT", f"coins/{ANN.payment}", {"values": [1_500_000, 2_000_000, 2_500_000]})
        self.coins = [Coin(row["outpoint"], row["value"]) for row in rows]
        self.book(
            asks=[{"price": 900_000}, {"price": 800_000, "inscriptionId": LISTED, "traits": {"Hat": "Red"}}],
            bids=[{"price": 500_000}],
        )
        self.sign_in()

    def sign_in(self) -> None:
        """Opens a session, where there are any."""
        if self.has("sign_in"):
            self.gate.clear()
            self.adapter.sign_in(self.signed_in())
        self.gate.clear()

    def book(self, **rows: list[dict[str, Any]]) -> None:
        """Sets the strangers' asks and bids for puppets."""
        self.practice.sim("PUT", f"collections/{PUPPETS}", rows)

    def pair(self) -> Pair:
        """ANN's addresses."""
        return Pair(ANN.payment, ANN.pubkey, ANN.ordinals, ANN.pubkey[2:])

    def signed_in(self) -> SignInAnswer:
        """Signs for ANN to open a session."""
        pair = self.pair()
        texts = self.adapter.sign_in_texts(pair)
        signatures = {
            text.id: sign_message(ANN.key, "p2wpkh" if text.address == ANN.payment else "p2tr", text.message)
            for text in texts.texts
        }
        return SignInAnswer(pair, texts.reference, signatures)

    def bid_ask(self, price: int = 600_000, trait: tuple[str, str] | None = None) -> BidToDraft:
        """Makes a bid to be drafted, paid with a coin that pays for no other of ours."""
        self.coins.append(self.coins.pop(0))
        pubkeys = (ANN.pubkey, ANN.ordinals, ANN.pubkey[2:])
        return BidToDraft(price, Decimal(1), PUPPETS, "ordinals", trait, ANN.payment, *pubkeys, 6, (self.coins[0],))

    def order(self, price: int = 600_000, trait: tuple[str, str] | None = None) -> BidOrder:
        """Makes a bid that only has to be sent."""
        now_ms = self.practice.clock.ms()
        expires_ms = now_ms + 6 * 3_600_000
        common = (price, Decimal(1), PUPPETS, "ordinals", ANN.payment, ANN.pubkey, ANN.ordinals, expires_ms, now_ms)
        if self.has("draft_bid"):
            draft = self.adapter.draft_bid(self.bid_ask(price, trait))
            psbts = tuple(signing.offer(each.psbt, each.indices, ANN) for each in draft.psbts)
            return BidOrder(*common, "", "halfHourFee", trait, draft.reference, psbts)
        text = ":".join(map(str, (ANN.payment, ANN.pubkey, ANN.ordinals, price, 1, expires_ms, PUPPETS, now_ms)))
        return BidOrder(*common, ANN.sign(text), "halfHourFee", trait)

    def own_bids(self, wallet: str = ANN.payment) -> list[Any]:
        """Returns all live bids of a wallet."""
        return self.all_pages(lambda cursor: self.adapter.own_bids(wallet, cursor, [PUPPETS]))

    def placed(self, price: int = 600_000, trait: tuple[str, str] | None = None) -> str:
        """Places a bid; returns the venue's id of it."""
        known = {bid.venue_id for bid in self.own_bids()}
        told = self.adapter.place(self.order(price, trait))
        (shown,) = (bid.venue_id for bid in self.own_bids() if bid.venue_id not in known)
        assert told in (shown, None)
        return str(shown)

    def fund(self) -> None:
        """Puts money into ANN's bidding wallet, where the venue has those."""
        if self.has("bidding_wallet"):
            wallet = self.adapter.bidding_wallet(ANN.payment, ANN.ordinals, ANN.pubkey)
            self.practice.sim("PUT", f"wallets/{wallet}", {"balance": 1_000_000})

    def signature(self, address: str) -> str:
        """Returns the signature for a cancel of the address, or a delist."""
        if self.party.sign_delist is not None:
            return self.party.sign_delist(self.adapter, HELD, ANN)
        if not self.has("challenge"):
            return ""
        kind = "p2wpkh" if address == ANN.payment else "p2tr"
        return sign_message(ANN.key, kind, self.adapter.challenge(address))

    def listing_ask(self, price: int = 950_000) -> ListingToDraft:
        """Makes a listing to be drafted."""
        outpoint = self.practice.outpoint_of(HELD)
        return ListingToDraft(price, HELD, ANN.ordinals, ANN.payment, ANN.pubkey[2:], PUPPETS, outpoint)

    def listing_order(self, price: int = 950_000) -> ListingOrder:
        """Makes a listing that only has to be sent."""
        ask = self.listing_ask(price)
        if not self.has("draft_listing"):
            return ListingOrder(ask, "AAAA", "AAAA", (), ANN.payment, ANN.pubkey)
        draft = self.adapter.draft_listing(ask)
        unsigned = ListingOrder(ask, "", draft.psbt, (), ANN.payment, ANN.pubkey)
        return replace(unsigned, **self.party.sign_listing(draft, ANN))

    def own_listings(self) -> list[Any]:
        """Returns all that ANN has listed."""
        return self.all_pages(lambda cursor: self.adapter.own_listings(ANN.ordinals, cursor))

    def all_pages(self, read: Callable[[Any], Any], most: int = 30) -> list[Any]:
        """Returns the entries of all pages; a reading that does not end fails."""
        found: list[Any] = []
        cursor = None
        for _ in range(most):
            self.practice.clock.ahead_s += 1  # the venue's limits are not what is tried here
            page = read(cursor)
            found += page.entries
            if (cursor := page.following) is None:
                return found
        raise AssertionError(f"there are more than {most} pages")
