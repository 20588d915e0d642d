"""The one client of workers and server that asks the gateway about venues.

Imports no TLS, no HTTP library and no event loop, so that it costs a worker next to nothing.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from markets import codec, pictures
from markets.base import (
    AskBook,
    Balance,
    BidBook,
    BidOrder,
    Fees,
    Floor,
    Item,
    Kind,
    OwnBids,
    Rune,
    Sales,
    WalletItem,
)
from markets.capabilities import VenueFacts
from markets.gateway_client import GatewayClient, Purpose
from markets.listings import ListingDraft, ListingOrder, ListingToDraft, OwnListings
from markets.offers import BidDraft, BidToDraft, Pair, SignInAnswer, SignInTexts
from markets.outpoint_facts import OutpointFacts, TransactionFacts, Whereabouts
from markets.pictures import NoPicture, Picture
from markets.utxos import Utxo
from strategy.book import VenueProfile


class MarketClient(GatewayClient):
    """A client of the gateway at `socket_path`, for `venue`. Not for use by several threads at once.

    Every method raises VenueError leaves (`markets/base.py`): NotSupported if the venue cannot do it, SignInNeeded if
    the gateway lacks the wallet's session. When the gateway itself cannot be asked, reads raise Unavailable; place and
    cancel raise Unavailable when their request was not handed over, else Unknown. `max_age_s` is an answer's greatest
    age; 0 asks for one whose reading begins after this call. `timeout_s` bounds one call; a write waits at most 10 s
    for its turn and then for the venue's answer, so keep it above 25. Reads take tickers without their bullets, too,
    where a provider that spells them is set up; `place` does not, for the name is part of the signed text (`rune` gives
    it).
    """

    def at(self, venue: str | None) -> MarketClient:
        """Returns a client for another venue, over the same connection."""
        other = copy.copy(self)
        other.venue = venue
        return other

    def by(self, user: int, purpose: Purpose, until: float = math.inf) -> MarketClient:
        """Returns a client for what a user does by hand, over the same connection.

        A read ends at `until` on the monotonic clock: it raises Unavailable.
        """
        other = copy.copy(self)
        other.user, other.purpose, other.until = user, purpose, until
        return other

    def profile(self, kind: Kind = "ordinals") -> VenueProfile:
        """Returns the market's rules for bids."""
        return self._read("profile", {"kind": kind}, None, codec.profile)

    def floors(self, slugs: Sequence[str], kind: Kind, max_age_s: float) -> dict[str, Floor]:
        """Returns floors by slug; slugs the venue does not know are left out. One venue call for up to 40 slugs."""
        return self._read("floors", {"slugs": list(slugs), "kind": kind}, max_age_s, codec.floors)

    def asks(
        self, slug: str, max_age_s: float, trait: tuple[str, str] | None = None, *, by_floor: bool = False
    ) -> AskBook:
        """Returns the cheapest listings of a collection; with `trait` (type, value) those of them known to have it.

        Two venue calls at most, none for another trait. NotSupported when the listings tell no traits at all.
        `by_floor`: a book of the last ten minutes is enough if a floor not older than `max_age_s` is the price of its
        cheapest listing; `confirmed_ms` then says when. No effect with a trait.
        """
        how = {"by_floor": True} if by_floor else {}
        return self._read("asks", {"slug": slug, **_trait(trait), **how}, max_age_s, codec.ask_book)

    def bids(self, slug: str, kind: Kind, max_age_s: float, trait: tuple[str, str] | None = None) -> BidBook:
        """Returns the best bids on a whole collection or rune; with `trait` (type, value) the bids on it, too.

        Two venue calls at most, none for another trait.
        """
        return self._read("bids", {"slug": slug, "kind": kind, **_trait(trait)}, max_age_s, codec.bid_book)

    def traits(self, slug: str, max_age_s: float) -> dict[str, dict[str, int]]:
        """Returns a collection's traits: type to value to the count of items. One venue call.

        NotFound for an unknown collection, NotSupported where the venue tells no traits.
        """
        return self._read("traits", {"slug": slug}, max_age_s, codec.traits)

    def sales(self, slug: str, kind: Kind, since_ms: int, max_age_s: float) -> Sales:
        """Returns the sales of a collection or rune since `since_ms` (epoch), as far as the venue's last 500 reach.

        One venue call for each hundred; none for a `since_ms` that a fresh enough answer covers.
        """
        return self._read("sales", {"slug": slug, "kind": kind, "since_ms": since_ms}, max_age_s, codec.sales)

    def rune(self, ticker: str, max_age_s: float) -> Rune:
        """Returns a rune by its ticker with or without bullets; one venue call. It never changes: ask for a day's age.

        NotFound for an unknown ticker, and for one without bullets that the provider does not find.
        """
        return self._read("rune", {"ticker": ticker}, max_age_s, codec.rune)

    def rune_asks(self, ticker: str, max_age_s: float) -> AskBook:
        """Returns the cheapest lots of a rune, from its market data provider. Two venue calls at most."""
        return self._read("rune_asks", {"ticker": ticker}, max_age_s, codec.ask_book)

    def own_bids(self, wallet: str, max_age_s: float, slugs: Sequence[str] = ()) -> OwnBids:
        """Returns all live bids of a payment address; where a venue tells them by collection only, those on `slugs`."""
        args: dict[str, Any] = {"wallet": wallet}
        return self._read("own_bids", args | ({"slugs": list(slugs)} if slugs else {}), max_age_s, codec.own_bids)

    def balance(self, payment: str, receive: str, pubkey: str, max_age_s: float) -> Balance:
        """Returns the bidding wallet of a pair of addresses and its sats; NotFound when there is none yet."""
        args = {"payment": payment, "receive": receive, "pubkey": pubkey}
        return self._read("balance", args, max_age_s, codec.balance)

    def fees(self, max_age_s: float) -> Fees:
        """Returns the recommended fee rates, sat/vB."""
        return self._read("fees", {}, max_age_s, codec.fees)

    def coins(self, address: str, max_age_s: float) -> tuple[Utxo, ...]:
        """Returns the unspent outputs of an address, confirmed and waiting; `outpoint` tells which assets they hold."""
        return self._read("coins", {"address": address}, max_age_s, codec.coins)

    def wallet_contents(self, address: str, max_age_s: float) -> tuple[WalletItem, ...]:
        """Returns the inscriptions at an address, at most 500."""
        return self._read("wallet_contents", {"address": address}, max_age_s, codec.wallet_items)

    def item(self, inscription_id: str, max_age_s: float) -> Item:
        """Returns the venue's details of one inscription."""
        return self._read("item", {"inscription_id": inscription_id}, max_age_s, codec.item)

    def picture(self, inscription_id: str, url: str | None) -> Picture | NoPicture:
        """Returns an inscription's picture; `url` is where a venue says it is. No call to a marketplace.

        Unavailable when more pictures are asked for than the gateway fetches at a time.
        """
        return self._read("picture", {"inscription_id": inscription_id, "url": url}, None, pictures.read)

    def challenge(self, wallet: str) -> str:
        """Returns a text that `wallet` must sign before it may cancel."""
        return self._read("challenge", {"wallet": wallet}, None, str)

    def draft_bid(self, ask: BidToDraft) -> BidDraft:
        """Drafts a bid: returns the PSBTs to be signed. Changes nothing at the venue, is never shared, fails as reads
        do.
        """
        return self._read("draft_bid", {"ask": codec.pack(ask)}, None, codec.bid_draft)

    def sign_in_texts(self, pair: Pair) -> SignInTexts:
        """Returns the texts that the two addresses must sign before the venue opens a session for them."""
        return self._read("sign_in_texts", {"pair": codec.pack(pair)}, None, codec.sign_in_texts)

    def sign_in(self, answer: SignInAnswer) -> None:
        """Opens the session, which the gateway holds. AuthFailed when the venue refuses the signatures."""
        self._read("sign_in", {"answer": codec.pack(answer)}, None, _nothing)

    def venues(self) -> tuple[VenueFacts, ...]:
        """Returns the marketplaces that are set up here, the default one first. No venue is called."""
        return self._read("venues", {}, None, codec.venue_facts)

    def place(self, order: BidOrder, *, task: int, token: int, deadline_ms: int, rung: int = 0) -> str | None:
        """Submits a signed bid before `deadline_ms` (epoch; the gateway takes 10 s from now at most), or not at all.

        Returns the bid's id where the venue gives one; else it shows among the own bids, known by its expiry. Raises
        Refused('stale_token') when the task's fence has passed `token`, Refused('quota') when the month's quota of
        calls is too short for bids at this `rung` (0 is the top of the ladder), Refused('clock_skew') when our clock
        and the venue's are too far apart.
        """
        fencing = {"task": task, "token": token, "deadline_ms": deadline_ms, "rung": rung}
        request = {"verb": "place", "args": {"order": codec.pack(order)}, **fencing}
        return self._ask(request, codec.venue_id, write=True)

    def cancel(
        self, wallet: str, venue_ids: Sequence[str], signature: str, *, task: int, token: int, deadline_ms: int
    ) -> bool:
        """Cancels bids by their ids, as `place` does; False when the venue reported that any of them failed.

        `signature` is the wallet's under a challenge, "" where the venue wants none.
        """
        fencing = {"task": task, "token": token, "deadline_ms": deadline_ms}
        args = {"wallet": wallet, "venue_ids": list(venue_ids), "signature": signature}
        return self._ask({"verb": "cancel", "args": args, **fencing}, _flag, write=True)

    def own_listings(self, wallet: str, max_age_s: float) -> OwnListings:
        """Returns all live listings of a vault address."""
        return self._read("own_listings", {"wallet": wallet}, max_age_s, codec.own_listings)

    def draft_listing(self, ask: ListingToDraft) -> ListingDraft:
        """Drafts a listing: returns the PSBTs to be signed. Changes nothing there; never shared; fails as reads do."""
        return self._read("draft_listing", {"ask": codec.pack(ask)}, None, codec.listing_draft)

    def draft_delist(self, wallet: str, inscription_id: str) -> ListingDraft:
        """Drafts a delisting, as `draft_listing`. NotSupported where no PSBT is needed."""
        args = {"wallet": wallet, "inscription_id": inscription_id}
        return self._read("draft_delist", args, None, codec.listing_draft)

    def list_item(self, order: ListingOrder, *, task: int, token: int, deadline_ms: int) -> None:
        """Submits a signed listing as `place` does a bid; one of the same inscription replaces the former."""
        fencing = {"task": task, "token": token, "deadline_ms": deadline_ms}
        self._ask({"verb": "list_item", "args": {"order": codec.pack(order)}, **fencing}, _nothing, write=True)

    def delist(
        self, wallet: str, inscription_ids: Sequence[str], signature: str, *, task: int, token: int, deadline_ms: int
    ) -> bool:
        """Cancels the listings of inscriptions at `wallet` (a vault address), as `cancel` does bids.

        One venue call for each. `signature` is of the kind of the venue's `delist_proof`: the vault's under a
        challenge, the signed PSBT of `draft_delist`, or "" in a session.
        """
        fencing = {"task": task, "token": token, "deadline_ms": deadline_ms}
        args = {"wallet": wallet, "inscription_ids": list(inscription_ids), "signature": signature}
        return self._ask({"verb": "delist", "args": args, **fencing}, _flag, write=True)

    def whereabouts(self, inscription_id: str, max_age_s: float) -> Whereabouts:
        """Returns the output an inscription is on, by an index of confirmed blocks; NotSupported without an index."""
        args = {"inscription_id": inscription_id}
        return self._read("whereabouts", args, max_age_s, codec.whereabouts)

    def outpoint(self, outpoint: str, max_age_s: float) -> OutpointFacts:
        """Returns the facts of an output (txid:vout); None where no source tells one. NotSupported without sources."""
        return self._read("outpoint", {"outpoint": outpoint}, max_age_s, codec.outpoint)

    def transaction(self, txid: str, max_age_s: float) -> TransactionFacts:
        """Returns a transaction and its block; NotFound where the network does not know it, NotSupported without a
        source.
        """
        return self._read("transaction", {"txid": txid}, max_age_s, codec.transaction)

    def draft_withdrawal(self, payment: str, amount: int) -> str:
        """Returns the PSBT (base64) that the venue wants signed to take sats out of its bidding wallet for `payment`.

        NotSupported where a signed one could not be handed in. Changes nothing there, fails as reads do.
        """
        return self._read("draft_withdrawal", {"payment": payment, "amount": amount}, None, _text)

    def submit_withdrawal(self, payment: str, psbt: str, *, deadline_ms: int) -> str:
        """Hands a signed draft of a withdrawal to the venue, which completes and sends it; returns the txid."""
        args = {"payment": payment, "psbt": psbt}
        return self._ask({"verb": "submit_withdrawal", "args": args, "deadline_ms": deadline_ms}, _text, write=True)

    def broadcast(self, transaction: str, *, deadline_ms: int) -> str:
        """Sends a signed transaction (hex) to the network; returns its txid. Sending it twice changes nothing."""
        request = {"verb": "broadcast", "args": {"transaction": transaction}, "deadline_ms": deadline_ms}
        return self._ask(request, _text, write=True)

    def is_confirmed(self, txid: str, max_age_s: float) -> bool:
        """Tells whether a transaction is in a block; NotFound when neither a block nor the mempool has it."""
        return self._read("is_confirmed", {"txid": txid}, max_age_s, _flag)

    def play_address(self) -> str:
        """Returns the address of the practice market's play wallet; Refused where there is none."""
        return self._read("play_address", {}, None, _text)

    def play_signature(self, message: str) -> str:
        """Returns the play wallet's BIP-322 signature (base64) of `message`."""
        return self._read("play_signature", {"message": message}, None, _text)

    def fence(self, task: int, token: int) -> int:
        """Refuses writes of `task` under a lower token from now on; returns when none of them is on the wire.

        Returns the least token that is not refused: a higher one than `token` where that was seen before.
        """
        return self._ask({"verb": "fence", "args": {}, "task": task, "token": token}, _token, write=False)

    def fence_all(self, tokens: Mapping[int, int]) -> dict[int, int]:
        """Does `fence` for many tasks at once, given by task; returns the least tokens that are above theirs."""
        args = {"tokens": [[task, token] for task, token in tokens.items()]}
        return self._ask({"verb": "fence_all", "args": args}, _tokens, write=False)

    def hold(self, tasks: Collection[int], hold_s: int) -> None:
        """Refuses bids and listings of `tasks` for `hold_s` seconds (0: ends that), and lets cancels through.

        Returns when none of them is on the wire.
        """
        self._ask({"verb": "hold", "args": {"tasks": list(tasks), "hold_s": hold_s}}, _nothing, write=False)

    def status(self) -> dict[str, Any]:
        """Returns each venue's calls by outcome, budget left and pauses."""
        return self._read("status", {}, None, dict)


def _trait(trait: tuple[str, str] | None) -> dict[str, Any]:
    return {} if trait is None else {"trait": list(trait)}


def _nothing(_: Any) -> None:
    return None


def _token(value: Any) -> int:
    if type(value) is not int:
        raise ValueError("not a whole number")
    return value


def _tokens(value: Any) -> dict[int, int]:
    return {_token(task): _token(token) for task, token in value}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("not a text")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("not a yes or no")
    return value
