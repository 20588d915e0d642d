"""The gateway's client for workers and the server.

It imports no TLS, no HTTP library and no event loop, so that workers stay small.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol, Self

import msgspec
from msgspec import UnsetType

from core.fields import reader_of
from core.unix_http import NoAnswer, NotSent, UnixHttp
from markets import base, orders, verbs
from markets.base import BidOrder, GatewayAway, Kind, Refused, Unavailable, Unknown, VenueError, from_wire
from markets.venues import VenueFacts
from markets.verbs import AMPLE, Answer, Answered, Args, Purpose, Scarcity
from strategy.book import VenueProfile

MAX_REQUEST = 256 * 1024  # bytes; the gateway closes the connection on more
MOST_SKEW_S = 30.0  # maximum difference between our clock and a marketplace's for placing bids
_ENCODER = msgspec.json.Encoder()
_GRACE_S = 0.25  # added to the gateway's patience, so that the client times out first


class KnowsScarcity(Protocol):
    """A gateway client with the scarcity of both quotas."""

    scarcity: Scarcity
    rune_scarcity: Scarcity


def stretch_s(asker: KnowsScarcity, *, is_rune: bool) -> int:
    """Returns the age in seconds that a task's reads may have so that the quotas last; 0 = no quota is short."""
    return max(asker.scarcity.stretch_s, asker.rune_scarcity.stretch_s if is_rune else 0)


def skew_words(off_s: float) -> str:
    """Describes a skew, for example: this machine's clock is 61 s ahead of the marketplace's."""
    return f"this machine's clock is {abs(off_s):.0f} s {'ahead of' if off_s > 0 else 'behind'} the marketplace's"


def _request(args: Args[Any], **more: Any) -> bytes:
    try:
        return _ENCODER.encode({"verb": verbs.NAMES[type(args)], "args": args, **more})
    except (TypeError, ValueError, OverflowError) as error:
        raise Refused("bad_request", f"what is asked cannot be sent: {error}") from error


def read_answer(body: bytes, kind: type[Args[Answer]]) -> Answered[Answer]:
    """Reads the answer to a request of `kind`. Raises ValueError or RecursionError."""
    found: Answered[Answer] = _reader_of_answers(kind).decode(body)
    return found


def prepare() -> None:
    """Creates the decoders of all answers before workers are forked, so that they share them."""
    for kind in verbs.NAMES:
        _reader_of_answers(kind)


@cache
def _reader_of_answers(kind: type[Args[Any]]) -> msgspec.json.Decoder[Any]:
    of: Any = kind.__orig_bases__[0]  # type: ignore[attr-defined]  # as every generic class has them
    answered: Any = Answered
    return reader_of(answered[of.__args__])


class GatewayClient:
    """A client of the gateway at `socket_path`; a subclass has the verbs.

    `scarcity` and `skew_s` come from the last successful answer; `rune_scarcity` is for the provider of rune asks,
    whose key has its own quota. `venue` is the marketplace's name; None = the installation's default. `user` is the
    number of the user that makes these calls, if any. `purpose` is None for a task's work, else see `verbs.Purpose`.
    """

    scarcity = AMPLE
    rune_scarcity = AMPLE
    user: int | None = None
    purpose: Purpose | None = None
    until = math.inf  # deadline of a person's reads, by the monotonic clock
    skew_s = 0.0  # seconds that our clock is ahead of the marketplace's, if too far to place bids; else 0

    def __init__(self, socket_path: Path, timeout_s: float = 30.0, venue: str | None = None) -> None:
        self.venue = venue
        self._http = UnixHttp(socket_path, timeout_s)

    def close(self) -> None:
        """Closes the connection; the next call opens a new one."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, args: Args[Answer], **more: Any) -> Answer:
        """Sends a request to the gateway; `more` are fields of `verbs.Request`. Raises as `MarketClient` describes."""
        kind = type(args)
        lost: type[VenueError] = Unknown if kind.is_write else Unavailable
        whose = {"venue": self.venue, "user": self.user, "purpose": self.purpose}
        more |= {name: value for name, value in whose.items() if value is not None}
        if self.until < math.inf:
            left_s = self.until - time.monotonic()
            if left_s <= 0 and not kind.is_write:
                raise Unavailable("the marketplace has not answered in time; ask again in a moment")
            more["patience_s"] = max(left_s, 0.0) + _GRACE_S
        asked = _request(args, **more)
        if len(asked) > MAX_REQUEST:
            raise Refused("bad_request", "too much is asked at once")
        try:
            body = self._exchange(asked, repeatable=not kind.is_write)
        except NotSent as error:
            raise GatewayAway(f"failed to ask the gateway: {error}") from error
        except NoAnswer as error:
            raise lost(f"no answer from the gateway: {error}") from error
        try:
            answer = read_answer(body, kind)
            value = from_wire(answer.error) if isinstance(answer.ok, UnsetType) else answer.ok
        except (ValueError, OverflowError, RecursionError) as error:
            raise lost(f"failed to understand the gateway: {error}; restart it if it is of another version") from error
        if isinstance(value, VenueError):
            raise value
        if kind.quota_of == "runes":
            self.rune_scarcity = answer.quota
        else:
            self.scarcity = answer.quota
        self.skew_s = answer.skew_s
        return value

    def _exchange(self, asked: bytes, *, repeatable: bool) -> bytes:
        return self._http.post(asked, repeatable=repeatable)


class MarketClient(GatewayClient):
    """A client of the gateway at `socket_path`, for `venue`. Not for concurrent use by threads.

    Every method raises VenueError leaves (`markets/base.py`): NotSupported if the venue cannot do it, SignInNeeded if
    the gateway lacks the wallet's session. If the gateway cannot be reached, reads raise Unavailable; writes raise
    Unavailable if their request was not sent, else Unknown. `max_age_s` is the maximum age of an answer; 0 requests
    one whose read begins after this call. `timeout_s` limits one call; keep it above 25, because a write waits up to
    10 s for its turn and then for the venue's answer. Drafts change nothing at the venue, are never shared, and fail as
    reads do. Reads accept tickers without bullets if a provider of rune data is set up; `place` does not, because the
    name is part of the signed text (see `rune`).
    """

    def at(self, venue: str | None) -> MarketClient:
        """Returns a client for another venue, over the same connection."""
        other = copy.copy(self)
        other.venue = venue
        return other

    def by(self, user: int, purpose: Purpose, until: float = math.inf) -> MarketClient:
        """Returns a client for a person's requests, over the same connection.

        A read raises Unavailable at `until` on the monotonic clock.
        """
        other = copy.copy(self)
        other.user, other.purpose, other.until = user, purpose, until
        return other

    def profile(self, kind: Kind = "ordinals") -> VenueProfile:
        """Returns the market's rules for bids."""
        return self.call(verbs.Profile(kind))

    def floors(self, slugs: Sequence[str], kind: Kind, max_age_s: float) -> dict[str, base.Floor]:
        """Returns floors by slug, without slugs that the venue does not know. One venue call for up to 40 slugs."""
        return self.call(verbs.Floors(tuple(slugs), kind), max_age_s=max_age_s)

    def asks(
        self, slug: str, max_age_s: float, trait: tuple[str, str] | None = None, *, by_floor: bool = False
    ) -> base.AskBook:
        """Returns the cheapest listings of a collection; with `trait` (type, value) only those known to have it.

        At most two venue calls, and none for a second trait. Raises NotSupported if the listings name no traits.
        `by_floor`: a book of the last ten minutes is enough if a floor at most `max_age_s` old equals its cheapest
        price; `confirmed_ms` is then the floor's time. No effect with a trait.
        """
        return self.call(verbs.Asks(slug, trait, by_floor), max_age_s=max_age_s)

    def bids(self, slug: str, kind: Kind, max_age_s: float, trait: tuple[str, str] | None = None) -> base.BidBook:
        """Returns the best bids on a whole collection or rune; with `trait` (type, value) also the bids on it.

        At most two venue calls, and none for a second trait.
        """
        return self.call(verbs.Bids(slug, kind, trait), max_age_s=max_age_s)

    def traits(self, slug: str, max_age_s: float) -> dict[str, dict[str, int]]:
        """Returns a collection's traits, {type: {value: count of items}}. Raises NotFound for an unknown collection."""
        return self.call(verbs.Traits(slug), max_age_s=max_age_s)

    def trait_floors(self, slug: str) -> base.TraitFloors | None:
        """Returns the floors of traits in a book that was read within the hour, else None. No venue call."""
        return self.call(verbs.TraitFloors(slug))

    def collections(
        self, kind: Kind, slugs: Sequence[str] = (), part: str | None = None, *, only_public: bool = False
    ) -> tuple[base.Known, ...]:
        """Returns what is known of these, and of at most 21 others by a `part` of slug or name.

        "" is a part of all; with `only_public` those others are what the venue showed unasked. No venue call.
        """
        return self.call(verbs.Collections(kind, tuple(slugs), part, only_public))

    def sales(self, slug: str, kind: Kind, since_ms: int, max_age_s: float) -> base.Sales:
        """Returns the sales of a collection or rune since `since_ms` (epoch), at most the venue's last 500.

        One venue call for each hundred; none if a cached answer is fresh enough and goes back to `since_ms`.
        """
        return self.call(verbs.Sales(slug, kind, since_ms), max_age_s=max_age_s)

    def rune(self, ticker: str, max_age_s: float) -> base.Rune:
        """Returns a rune by its ticker. Its facts never change. Raises NotFound if the provider does not find it."""
        return self.call(verbs.Rune(ticker), max_age_s=max_age_s)

    def rune_asks(self, ticker: str, max_age_s: float) -> base.AskBook:
        """Returns the cheapest lots of a rune, from the provider of rune data. At most two venue calls."""
        return self.call(verbs.RuneAsks(ticker), max_age_s=max_age_s)

    def own_bids(self, wallet: str, max_age_s: float, slugs: Sequence[str] = ()) -> base.OwnBids:
        """Returns a payment address's live bids; those on `slugs` if the venue lists them by collection only."""
        return self.call(verbs.OwnBids(wallet, tuple(slugs)), max_age_s=max_age_s)

    def balance(self, payment: str, receive: str, pubkey: str, max_age_s: float) -> base.Balance:
        """Returns the bidding wallet of a pair of addresses and its sats. Raises NotFound if they have none yet."""
        return self.call(verbs.Balance(payment, receive, pubkey), max_age_s=max_age_s)

    def fees(self, max_age_s: float) -> base.Fees:
        """Returns the recommended fee rates, sat/vB."""
        return self.call(verbs.Fees(), max_age_s=max_age_s)

    def coins(self, address: str, max_age_s: float) -> tuple[base.Utxo, ...]:
        """Returns an address's unspent outputs, confirmed or not; `outpoint` returns the assets of each."""
        return self.call(verbs.Coins(address), max_age_s=max_age_s)

    def wallet_contents(self, address: str, max_age_s: float) -> tuple[base.WalletItem, ...]:
        """Returns the inscriptions at an address, at most 500."""
        return self.call(verbs.WalletContents(address), max_age_s=max_age_s)

    def item(self, inscription_id: str, max_age_s: float) -> base.Item:
        """Returns the venue's details of one inscription."""
        return self.call(verbs.Item(inscription_id), max_age_s=max_age_s)

    def picture(self, inscription_id: str | None, url: str | None) -> base.Picture | base.NoPicture:
        """Returns an inscription's or collection's picture; `url` is where a venue says it is. No venue call.

        Raises Unavailable if too many other pictures are being fetched.
        """
        return self.call(verbs.Picture(inscription_id, url))

    def challenge(self, wallet: str) -> str:
        """Returns a text that `wallet` must sign before it may cancel."""
        return self.call(verbs.Challenge(wallet))

    def draft_bid(self, ask: orders.BidToDraft) -> orders.BidDraft:
        """Drafts a bid: returns the PSBTs to be signed."""
        return self.call(verbs.DraftBid(ask))

    def sign_in_texts(self, pair: orders.Pair) -> orders.SignInTexts:
        """Returns the texts that the two addresses must sign before the venue opens a session for them."""
        return self.call(verbs.SignInTexts(pair))

    def sign_in(self, answer: orders.SignInAnswer) -> None:
        """Opens the session, which the gateway keeps. Raises AuthFailed if the venue refuses the signatures."""
        self.call(verbs.SignIn(answer))

    def venues(self) -> tuple[VenueFacts, ...]:
        """Returns the marketplaces that are set up here, the default one first. No venue is called."""
        return self.call(verbs.Venues())

    def place(self, order: BidOrder, *, task: int, token: int, deadline_ms: int, rung: int = 0) -> str | None:
        """Submits a signed bid before `deadline_ms` (epoch; the gateway waits at most 10 s), or not at all.

        Returns the bid's id, or None if the venue gives none; find it among the own bids by its expiry. Raises
        Refused('stale_token') if `token` is below the task's minimum, Refused('quota') if the quota of calls is too
        short for bids at this `rung` (0 is the top of the ladder), Refused('clock_skew') if our clock and the venue's
        are too far apart.
        """
        return self.call(verbs.Place(order), task=task, token=token, deadline_ms=deadline_ms, rung=rung)

    def cancel(
        self, wallet: str, venue_ids: Sequence[str], signature: str, *, task: int, token: int, deadline_ms: int
    ) -> bool:
        """Cancels bids by their ids; returns False if the venue reports a failure of any. Deadline as in `place`.

        `signature` is the wallet's signature of a challenge, "" if the venue needs none.
        """
        args = verbs.Cancel(wallet, tuple(venue_ids), signature)
        return self.call(args, task=task, token=token, deadline_ms=deadline_ms)

    def own_listings(self, wallet: str, max_age_s: float) -> orders.OwnListings:
        """Returns all live listings of a vault address."""
        return self.call(verbs.OwnListings(wallet), max_age_s=max_age_s)

    def draft_listing(self, ask: orders.ListingToDraft) -> orders.ListingDraft:
        """Drafts a listing: returns the PSBTs to be signed."""
        return self.call(verbs.DraftListing(ask))

    def draft_delist(self, wallet: str, inscription_id: str) -> orders.ListingDraft:
        """Drafts a delisting. Raises NotSupported if the venue needs no PSBT."""
        return self.call(verbs.DraftDelist(wallet, inscription_id))

    def list_item(self, order: orders.ListingOrder, *, task: int, token: int, deadline_ms: int) -> None:
        """Submits a signed listing as `place` does a bid; it replaces an earlier one of the same inscription."""
        self.call(verbs.ListItem(order), task=task, token=token, deadline_ms=deadline_ms)

    def delist(
        self, wallet: str, inscription_ids: Sequence[str], signature: str, *, task: int, token: int, deadline_ms: int
    ) -> bool:
        """Cancels the listings of inscriptions at `wallet` (a vault address), as `cancel` does bids.

        One venue call for each. `signature` is of the kind of the venue's `delist_proof`: the vault's under a
        challenge, the signed PSBT of a drafted delisting, or "" in a session.
        """
        args = verbs.Delist(wallet, tuple(inscription_ids), signature)
        return self.call(args, task=task, token=token, deadline_ms=deadline_ms)

    def whereabouts(self, inscription_id: str, max_age_s: float) -> base.Whereabouts:
        """Returns the output an inscription is on, by an index of confirmed blocks; NotSupported without an index."""
        return self.call(verbs.Whereabouts(inscription_id), max_age_s=max_age_s)

    def outpoint(self, outpoint: str, max_age_s: float) -> base.OutpointFacts:
        """Returns the facts of an output (txid:vout); None if no source knows it. NotSupported without sources."""
        return self.call(verbs.Outpoint(outpoint), max_age_s=max_age_s)

    def transaction(self, txid: str, max_age_s: float) -> base.TransactionFacts:
        """Returns a transaction and its block. NotFound on no network, NotSupported without a source."""
        return self.call(verbs.Transaction(txid), max_age_s=max_age_s)

    def draft_withdrawal(self, payment: str, amount: int) -> str:
        """Drafts taking sats out of the venue's bidding wallet for `payment`: returns the PSBT (base64) to be signed.

        NotSupported where a signed one could not be handed in.
        """
        return self.call(verbs.DraftWithdrawal(payment, amount))

    def submit_withdrawal(self, payment: str, psbt: str, *, deadline_ms: int) -> str:
        """Submits a signed draft of a withdrawal to the venue, which broadcasts it; returns the txid."""
        return self.call(verbs.SubmitWithdrawal(payment, psbt), deadline_ms=deadline_ms)

    def broadcast(self, transaction: str, *, deadline_ms: int) -> str:
        """Broadcasts a signed transaction (hex); returns its txid. A repeat is harmless."""
        return self.call(verbs.Broadcast(transaction), deadline_ms=deadline_ms)

    def is_confirmed(self, txid: str, max_age_s: float) -> bool:
        """Returns whether a transaction is in a block. Raises NotFound if neither a block nor the mempool has it."""
        return self.call(verbs.IsConfirmed(txid), max_age_s=max_age_s)

    def play_address(self) -> str:
        """Returns the address of the practice market's play wallet; Refused on other markets."""
        return self.call(verbs.PlayAddress())

    def play_signature(self, message: str) -> str:
        """Returns the play wallet's BIP-322 signature (base64) of `message`."""
        return self.call(verbs.PlaySignature(message))

    def fence(self, task: int, token: int) -> int:
        """Refuses writes of `task` under tokens below `token`, and waits until none of them is being sent.

        Returns the task's minimum token, which is above `token` if a higher one was seen before.
        """
        return self.call(verbs.Fence(), task=task, token=token)

    def fence_all(self, tokens: Mapping[int, int]) -> dict[int, int]:
        """Does `fence` for many tasks in one call; returns the minimum tokens that are above those given."""
        higher = self.call(verbs.FenceAll(tuple(tokens.items())))
        return dict(higher)

    def hold(self, tasks: Collection[int], hold_s: int) -> None:
        """Refuses bids and listings of `tasks` for `hold_s` seconds (0 ends the hold); cancels are still sent.

        Waits until none of the refused writes is being sent.
        """
        self.call(verbs.Hold(tuple(tasks), hold_s))

    def status(self) -> dict[str, Any]:
        """Returns each venue's calls by outcome, budget left and pauses."""
        return self.call(verbs.Status())
