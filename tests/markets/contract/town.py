"""A person who trades through an adapter, and a good call of each of its methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from markets.adapter import Adapter
from markets.base import BidOrder
from markets.http import Permit
from markets.orders import BidToDraft, Coin, ListingOrder, ListingToDraft, Pair, SignInAnswer
from markets.parse import Page
from tests.markets.contract import signing
from tests.markets.contract.gate import Gate, Practice
from tests.markets.contract.parties import HELD, LISTED, Party
from tests.simulator.desk import ANN, PUPPETS
from wallet.keystore.keys import sign_message

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


Read = Callable[[], Any]
Write = Callable[[Permit | None], Any]


def _place(town: Town) -> Write:
    order = town.order()
    return lambda permit: town.adapter.place(order, permit)


def _cancel(town: Town) -> Write:
    if not town.has("cancel"):
        return lambda permit: town.adapter.cancel(ANN.payment, ["x"], "", permit)
    ids, signature = [town.placed()], town.signature(ANN.payment)
    return lambda permit: town.adapter.cancel(ANN.payment, ids, signature, permit)


def _list_item(town: Town) -> Write:
    order = town.listing_order()
    return lambda permit: town.adapter.list_item(order, permit)


def _delist(town: Town) -> Write:
    if not town.has("delist"):
        return lambda permit: town.adapter.delist(ANN.ordinals, HELD, "", permit)
    town.adapter.list_item(town.listing_order())
    town.own_listings()
    signature = town.signature(ANN.ordinals)
    return lambda permit: town.adapter.delist(ANN.ordinals, HELD, signature, permit)


def _sign_in(town: Town) -> Read:
    if not town.has("sign_in"):
        return lambda: town.adapter.sign_in(None)  # type: ignore[arg-type]
    answer = town.signed_in()
    return lambda: town.adapter.sign_in(answer)


def _sign_in_texts(town: Town) -> Read:
    return lambda: town.adapter.sign_in_texts(town.pair())


def _draft_bid(town: Town) -> Read:
    ask = town.bid_ask()
    return lambda: town.adapter.draft_bid(ask)


def _draft_listing(town: Town) -> Read:
    ask = town.listing_ask()
    return lambda: town.adapter.draft_listing(ask)


def _draft_delist(town: Town) -> Read:
    if town.has("draft_delist"):
        town.adapter.list_item(town.listing_order())
        town.own_listings()
    return lambda: town.adapter.draft_delist(ANN.ordinals, HELD)


def _own_bids(town: Town) -> Read:
    if town.has("place"):
        town.placed()
    return lambda: town.adapter.own_bids(ANN.payment, None, [PUPPETS])


def _own_listings(town: Town) -> Read:
    if town.has("list_item"):
        town.adapter.list_item(town.listing_order())
    return lambda: town.adapter.own_listings(ANN.ordinals, None)


def _sales(town: Town) -> Read:
    town.book(asks=[], bids=[{"price": 500_000}])
    town.practice.sim("POST", "sell", {"slug": PUPPETS})
    return lambda: town.adapter.sales(PUPPETS, "ordinals", None)


def _draft_withdrawal(town: Town) -> Read:
    town.fund()
    return lambda: town.adapter.draft_withdrawal(ANN.payment, 50_000)


def _submit_withdrawal(town: Town) -> Write:
    if not town.has("submit_withdrawal"):
        return lambda permit: town.adapter.submit_withdrawal(ANN.payment, "AAAA", permit)
    town.fund()
    psbt = signing.withdrawal(town.adapter.draft_withdrawal(ANN.payment, 50_000), ANN)
    return lambda permit: town.adapter.submit_withdrawal(ANN.payment, psbt, permit)


READS: dict[str, Callable[[Town], Read]] = {
    "floors": lambda town: lambda: town.adapter.floors([PUPPETS], "ordinals"),
    "asks": lambda town: lambda: town.adapter.asks(PUPPETS, None),
    "bids": lambda town: lambda: town.adapter.bids(PUPPETS, "ordinals", None),
    "traits": lambda town: lambda: town.adapter.traits(PUPPETS),
    "sales": _sales,
    "own_bids": _own_bids,
    "challenge": lambda town: lambda: town.adapter.challenge(ANN.payment),
    "bidding_wallet": lambda town: lambda: town.adapter.bidding_wallet(ANN.payment, ANN.ordinals, ANN.pubkey),
    "wallet_contents": lambda town: lambda: town.adapter.wallet_contents(ANN.ordinals, None),
    "item": lambda town: lambda: town.adapter.item(LISTED),
    "own_listings": _own_listings,
    "draft_bid": _draft_bid,
    "draft_listing": _draft_listing,
    "draft_delist": _draft_delist,
    "draft_withdrawal": _draft_withdrawal,
    "sign_in_texts": _sign_in_texts,
    "sign_in": _sign_in,
}
WRITES: dict[str, Callable[[Town], Write]] = {
    "place": _place,
    "cancel": _cancel,
    "list_item": _list_item,
    "delist": _delist,
    "submit_withdrawal": _submit_withdrawal,
}
METHODS = (*READS, *WRITES)


def prepared(town: Town, method: str) -> Read:
    """Returns the call of `method`, ready to be made; the gate has seen nothing yet. The venue's limits are full
    again.
    """
    town.practice.clock.ahead_s += 61
    town.gate.clear()
    write = WRITES.get(method)
    call = READS[method](town) if write is None else write(town)
    town.gate.clear()
    return call if write is None else lambda: call(None)  # type: ignore[call-arg]
