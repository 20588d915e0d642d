"""Asks the gateway for everything about venues: the one client of workers and server.

Imports no TLS, no HTTP library and no event loop, so that it costs a worker next to nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from core.unix_http import NoAnswer, NotSent, UnixHttp
from markets import codec
from markets.base import (
    AskBook,
    Balance,
    BidBook,
    BidOrder,
    Fees,
    Floor,
    Kind,
    OwnBids,
    Refused,
    Rune,
    Sales,
    Unavailable,
    Unknown,
    VenueError,
    WalletItem,
    from_wire,
)
from strategy.book import Profile

MAX_REQUEST = 64 * 1024  # bytes; the gateway closes the connection on more
Value = TypeVar("Value")


class MarketClient:
    """One asker of the gateway at `socket_path`. Not for use by several threads at once.

    Every method raises VenueError leaves (`markets/base.py`). When the gateway itself cannot be asked, reads raise
    Unavailable; place and cancel raise Unavailable when their request was not handed over, else Unknown.
    `max_age_s` is how old an answer may be; 0 asks for one whose reading begins after this call. `timeout_s` bounds
    one call; a write waits at most 10 s for its turn and then for the venue's answer, so keep it above 25.
    Reads take tickers without their bullets, too, where a provider that spells them is set up; `place` does not, for
    the name is part of what was signed (`rune` tells it).
    """

    def __init__(self, socket_path: Path, timeout_s: float = 30.0) -> None:
        self._http = UnixHttp(socket_path, timeout_s)

    def close(self) -> None:
        """Closes the kept connection; the next call opens one."""
        self._http.close()

    def __enter__(self) -> MarketClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def profile(self, kind: Kind = "ordinals") -> Profile:
        """What the market asks of bids."""
        return self._read("profile", {"kind": kind}, None, codec.profile)

    def floors(self, slugs: Sequence[str], kind: Kind, max_age_s: float) -> dict[str, Floor]:
        """Floors by slug; slugs the venue does not know are left out. One venue call for up to 40 slugs."""
        return self._read("floors", {"slugs": list(slugs), "kind": kind}, max_age_s, codec.floors)

    def asks(self, slug: str, max_age_s: float, trait: tuple[str, str] | None = None) -> AskBook:
        """The cheapest listings of a collection; with `trait` (type, value) those of them known to have it.

        Two venue calls at most, none for another trait. NotSupported when the listings tell no traits at all.
        """
        return self._read("asks", {"slug": slug, **_trait(trait)}, max_age_s, codec.ask_book)

    def bids(self, slug: str, kind: Kind, max_age_s: float, trait: tuple[str, str] | None = None) -> BidBook:
        """The best bids on a whole collection or rune; with `trait` (type, value) the bids on it, too.

        Two venue calls at most, none for another trait.
        """
        return self._read("bids", {"slug": slug, "kind": kind, **_trait(trait)}, max_age_s, codec.bid_book)

    def traits(self, slug: str, max_age_s: float) -> dict[str, dict[str, int]]:
        """How many items of a collection have which trait: type to value to count. One venue call.

        NotFound for an unknown collection, NotSupported where the venue tells no traits.
        """
        return self._read("traits", {"slug": slug}, max_age_s, codec.traits)

    def sales(self, slug: str, kind: Kind, since_ms: int, max_age_s: float) -> Sales:
        """Sales of a collection or rune since `since_ms` (epoch), as far as the venue's last 500 reach.

        One venue call for each hundred; none for a `since_ms` that a fresh enough answer covers.
        """
        return self._read("sales", {"slug": slug, "kind": kind, "since_ms": since_ms}, max_age_s, codec.sales)

    def rune(self, ticker: str, max_age_s: float) -> Rune:
        """What a rune is, by its ticker with or without bullets; one venue call. It never changes: ask for a day's age.

        NotFound for an unknown ticker, and for one without its bullets if the provider finds none by it.
        """
        return self._read("rune", {"ticker": ticker}, max_age_s, codec.rune)

    def rune_asks(self, ticker: str, max_age_s: float) -> AskBook:
        """The cheapest lots of a rune, from its market data provider. Two venue calls at most."""
        return self._read("rune_asks", {"ticker": ticker}, max_age_s, codec.ask_book)

    def own_bids(self, wallet: str, max_age_s: float) -> OwnBids:
        """All live bids of a payment address."""
        return self._read("own_bids", {"wallet": wallet}, max_age_s, codec.own_bids)

    def balance(self, payment: str, receive: str, pubkey: str, max_age_s: float) -> Balance:
        """The bidding wallet of a pair of addresses and what it holds; NotFound when there is none yet."""
        args = {"payment": payment, "receive": receive, "pubkey": pubkey}
        return self._read("balance", args, max_age_s, codec.balance)

    def fees(self, max_age_s: float) -> Fees:
        """Recommended fee rates, sat/vB."""
        return self._read("fees", {}, max_age_s, codec.fees)

    def wallet_contents(self, address: str, max_age_s: float) -> tuple[WalletItem, ...]:
        """Inscriptions at an address, at most 500."""
        return self._read("wallet_contents", {"address": address}, max_age_s, codec.wallet_items)

    def item(self, inscription_id: str, max_age_s: float) -> dict[str, Any]:
        """Details of one inscription as the venue names them; fractions are text."""
        return self._read("item", {"inscription_id": inscription_id}, max_age_s, dict)

    def challenge(self, wallet: str) -> str:
        """A text that `wallet` must sign before it may cancel."""
        return self._read("challenge", {"wallet": wallet}, None, str)

    def place(self, order: BidOrder, *, task: int, token: int, deadline_ms: int) -> None:
        """Submits a signed bid before `deadline_ms` (epoch; the gateway takes 10 s from now at most), or not at all.

        Raises Refused('stale_token') when the task's fence has passed `token`.
        """
        fencing = {"task": task, "token": token, "deadline_ms": deadline_ms}
        self._ask({"verb": "place", "args": {"order": codec.pack(order)}, **fencing}, _nothing, write=True)

    def cancel(
        self, wallet: str, venue_ids: Sequence[str], signature: str, *, task: int, token: int, deadline_ms: int
    ) -> bool:
        """Cancels bids by their ids, as `place` does; False when the venue reported that any of them failed."""
        fencing = {"task": task, "token": token, "deadline_ms": deadline_ms}
        args = {"wallet": wallet, "venue_ids": list(venue_ids), "signature": signature}
        return self._ask({"verb": "cancel", "args": args, **fencing}, _flag, write=True)

    def fence(self, task: int, token: int) -> None:
        """From now on writes of `task` under a lower token are refused; returns when none of them is on the wire."""
        self._ask({"verb": "fence", "args": {}, "task": task, "token": token}, _nothing, write=False)

    def status(self) -> dict[str, Any]:
        """Calls by outcome, budget left and pauses of each venue."""
        return self._read("status", {}, None, dict)

    def _read(self, verb: str, args: dict[str, Any], max_age_s: float | None, unpack: Callable[[Any], Value]) -> Value:
        request: dict[str, Any] = {"verb": verb, "args": args}
        if max_age_s is not None:
            request["max_age_s"] = max_age_s
        return self._ask(request, unpack, write=False)

    def _ask(self, request: dict[str, Any], unpack: Callable[[Any], Value], *, write: bool) -> Value:
        lost: type[VenueError] = Unknown if write else Unavailable
        asked = json.dumps(request).encode()
        if len(asked) > MAX_REQUEST:
            raise Refused("bad_request", "too much is asked at once")
        try:
            body = self._http.post(asked, repeatable=not write)
        except NotSent as error:
            raise Unavailable(f"failed to ask the gateway: {error}") from error
        except NoAnswer as error:
            raise lost(f"failed to hear from the gateway: {error}") from error
        try:
            answer = json.loads(body)
            if "ok" in answer:
                return unpack(answer["ok"])
            refused = from_wire(answer["error"])
        except codec.MALFORMED as error:
            raise lost(f"failed to understand the gateway: {error}") from error
        raise refused


def _trait(trait: tuple[str, str] | None) -> dict[str, Any]:
    return {} if trait is None else {"trait": list(trait)}


def _nothing(_: Any) -> None:
    return None


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("not a yes or no")
    return value
