"""Each verb of the gateway's and the facts process's sockets once, and each kind of error, as their clients see them.

The marketplace behind the gateway is a stand-in that gives every field a value; sources of chain facts are real HTTP.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gateway import app
from markets import base, verbs
from markets.base import (
    AuthFailed,
    BelowMinimum,
    InsufficientFunds,
    NotFound,
    NotSupported,
    NotUnderstood,
    PriceGrid,
    RateLimited,
    Refused,
    SignInNeeded,
    Unavailable,
    Unknown,
    VenueError,
)
from markets.client import MarketClient
from markets.orders import Coin, SignInAnswer
from tests.gateway.conftest import CLIENT_S, ORDER, SOON_S, Bench, make_bench, soon
from tests.gateway.fake_venue import CUT
from tests.gateway.listing_examples import ASK as LISTING
from tests.gateway.listing_examples import INSCRIPTION, OUTPOINT, PSBT, TXID, VAULT
from tests.gateway.listing_examples import ORDER as LISTING_ORDER
from tests.gateway.test_facts_program import ANSWERS, FactsBench
from tests.gateway.test_marketplaces import ASK, PAIR, SIGNED
from tests.goldens.socket_files import Session, Tap, hold
from tests.goldens.socket_market import NAME, Everything, Market
from wallet.signer.reading import FactsError, ask_facts

pytestmark = pytest.mark.slow
__all__ = ["make_bench"]  # a fixture, for this module's own use
HOUR_MS = 3_600_000


def masked(value: Any) -> Any:
    """Returns `value` without the time of the run: times of today, and what is left of a patience."""
    if isinstance(value, dict):
        return {name: "<seconds>" if name == "patience_s" else masked(each) for name, each in value.items()}
    if isinstance(value, list):
        return [masked(each) for each in value]
    is_now = type(value) is int and abs(value - time.time_ns() // 1_000_000) < 24 * HOUR_MS
    return "<now>" if is_now else value


class GatewaySession(Session):
    """`received` is what the marketplace got of a call, which is a part of its meaning."""

    def __init__(self, tap: Tap, market: Market) -> None:
        super().__init__(tap, masked)
        self._market = market

    def call(self, name: str, ask: Callable[[], Any]) -> Any:
        value = super().call(name, ask)
        if self._market.received:
            self.meanings[-1]["the marketplace got"] = masked(self._market.received.copy())
            self._market.received.clear()
        return value


Opened = tuple[MarketClient, GatewaySession, Market, Bench]


@pytest.fixture
def gateway(make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    market = Market()
    monkeypatch.setitem(app._MAKERS, "satflow", lambda *_: market)  # type: ignore[index, misc]
    bench = make_bench(kind=Everything, with_ord=True)
    path = bench.settings.gateway_socket.with_name("tap.sock")
    tap = Tap(path, bench.settings.gateway_socket)
    with MarketClient(path, timeout_s=CLIENT_S) as client:
        yield client, GatewaySession(tap, market), market, bench
    tap.close()


def reads(client: MarketClient, call: Callable[[str, Callable[[], Any]], Any]) -> None:
    """Calls each verb that changes nothing."""
    call("profile", client.profile)
    call("profile, runes", lambda: client.profile("runes"))
    call("venues", client.venues)
    call("floors", lambda: client.floors(["cats", "dogs", "none"], "ordinals", 60))
    call("asks", lambda: client.asks("cats", 0))
    call("asks of a trait", lambda: client.asks("cats", 60, ("Hat", "Red")))
    call("asks by floor", lambda: client.asks("cats", 0, by_floor=True))
    call("bids", lambda: client.bids("cats", "ordinals", 0))
    call("bids of a trait", lambda: client.bids("cats", "ordinals", 60, ("Hat", "Red")))
    call("traits", lambda: client.traits("cats", 60))
    call("trait_floors", lambda: client.trait_floors("cats"))
    call("trait_floors, no book", lambda: client.trait_floors("dogs"))
    call("collections", lambda: client.collections("ordinals", ["cats"], "dog"))
    call("sales", lambda: client.sales("cats", "ordinals", 1_700_000_300_000, 0))
    call("rune", lambda: client.rune("DOG•GO", 60))
    call("rune_asks", lambda: client.rune_asks("DOG•GO", 60))
    call("own_bids", lambda: client.own_bids("bc1qpayment", 0))
    call("own_bids of collections", lambda: client.own_bids("bc1qpayment", 0, ["cats", "dogs"]))
    call("balance", lambda: client.balance("bc1qpayment", "bc1preceive", "02" + "ab" * 32, 0))
    call("fees", lambda: client.fees(60))
    call("coins", lambda: client.coins("bc1qpayment", 0))
    call("wallet_contents", lambda: client.wallet_contents("bc1pvault", 0))
    call("item", lambda: client.item(INSCRIPTION, 0))
    call("item without details", lambda: client.item("cd" * 32 + "i0", 0))
    call("picture", lambda: client.picture(INSCRIPTION, "https://example.org/1.png"))
    call("picture, none", lambda: client.picture("cd" * 32 + "i0", None))
    call("challenge", lambda: client.challenge("bc1qpayment"))
    call("draft_bid", lambda: client.draft_bid(ASK))
    call("sign_in_texts", lambda: client.sign_in_texts(PAIR))
    call("sign_in", lambda: client.sign_in(SignInAnswer(PAIR, "auth-1", {"1": "AkcwRA==", "2": "AUCd"})))
    call("own_listings", lambda: client.own_listings(VAULT, 0))
    call("draft_listing", lambda: client.draft_listing(replace(LISTING, outpoint=OUTPOINT)))
    call("draft_delist", lambda: client.draft_delist(VAULT, INSCRIPTION))
    call("draft_withdrawal", lambda: client.draft_withdrawal("bc1qpayment", 100_000))
    call("whereabouts", lambda: client.whereabouts(INSCRIPTION, 60))
    call("outpoint", lambda: client.outpoint(OUTPOINT, 60))
    call("transaction", lambda: client.transaction(TXID, 60))
    call("is_confirmed", lambda: client.is_confirmed(TXID, 60))
    call("play_address", client.play_address)
    call("play_signature", lambda: client.play_signature("Sign in to it\nNonce: 00"))
    by_hand = client.by(7, "look", time.monotonic() + CLIENT_S)
    call("item, by a user's hand", lambda: by_hand.item(INSCRIPTION, 0))
    call("floors of another venue", lambda: client.at("simulator-nowhere").floors(["cats"], "ordinals", 0))


def writes(client: MarketClient, call: Callable[[str, Callable[[], Any]], Any]) -> None:
    """Calls each verb that changes something."""
    now = {"task": 1, "token": 2, "deadline_ms": soon(SOON_S)}
    call("place", lambda: client.place(ORDER, **now, rung=3))
    call("place a drafted bid", lambda: client.place(replace(SIGNED, trait=("Hat", "Red")), **now))
    call("cancel", lambda: client.cancel("bc1qpayment", ["a", "c"], "AkcwRA==", **now))
    call("cancel, one is left", lambda: client.cancel("bc1qpayment", ["a", "b"], "", **now))
    order = replace(LISTING_ORDER, signed_transfer=PSBT, signed_recovery=PSBT)
    call("list_item", lambda: client.list_item(order, **now))
    call("delist", lambda: client.delist(VAULT, [INSCRIPTION], "AkcwRA==", **now))
    deadline_ms = now["deadline_ms"]
    call("submit_withdrawal", lambda: client.submit_withdrawal("bc1qpayment", PSBT, deadline_ms=deadline_ms))
    call("broadcast", lambda: client.broadcast("ab" * 100, deadline_ms=deadline_ms))
    call("fence", lambda: client.fence(1, 5))
    call("fence, a lower token", lambda: client.fence(1, 3))
    call("fence_all", lambda: client.fence_all({1: 4, 2: 9}))
    call("place, a stale token", lambda: client.place(ORDER, **now))
    call("hold", lambda: client.hold({2}, 30))
    call("place, held", lambda: client.place(ORDER, **now | {"task": 2, "token": 9}))
    call("hold no more", lambda: client.hold([2], 0))
    call(
        "place, too late",
        lambda: client.place(ORDER, **now | {"task": 2, "token": 9, "deadline_ms": soon(-HOUR_MS / 1000)}),
    )


FAILURES: tuple[Exception, ...] = (
    Unavailable("it is away"),
    RateLimited(0.25, "wait"),
    NotUnderstood("what it said is odd"),
    Unknown("lost"),
    Refused("odd_code", "no"),
    *(
        leaf("why")
        for leaf in (InsufficientFunds, PriceGrid, BelowMinimum, NotFound, AuthFailed, SignInNeeded, NotSupported)
    ),
    ValueError("a fault"),
)


def failures(client: MarketClient, call: Callable[[str, Callable[[], Any]], Any], market: Market) -> None:
    """Lets the marketplace fail a read and a write in each way."""
    for failure in FAILURES:
        name = type(failure).__name__
        market.failure = failure
        call(f"item, {name}", lambda: client.item(INSCRIPTION, 0))
        market.failure = failure
        now = {"task": 3, "token": 1, "deadline_ms": soon(SOON_S)}
        call(f"place, {name}", lambda now=now: client.place(ORDER, **now))


def bad_requests(client: MarketClient, call: Callable[[str, Callable[[], Any]], Any]) -> None:
    """Asks for what each reader of an argument refuses."""
    now = {"task": 3, "token": 1, "deadline_ms": soon(SOON_S)}
    odd: Any = client
    call("floors, no slug", lambda: client.floors([""], "ordinals", 0))
    call("floors, a comma", lambda: client.floors(["a,b"], "ordinals", 0))
    call("floors, 101 slugs", lambda: client.floors([f"s{n}" for n in range(101)], "ordinals", 0))
    call("floors, an odd kind", lambda: odd.floors(["cats"], "stamps", 0))
    call("floors, a negative age", lambda: client.floors(["cats"], "ordinals", -1))
    call("floors, too much in one call", lambda: client.floors(["x" * 300_000], "ordinals", 0))
    call("asks, an odd trait", lambda: odd.asks("cats", 0, ("Hat",)))
    call("sales, no time", lambda: odd.sales("cats", "ordinals", "x", 0))
    call("own_bids, no address", lambda: client.own_bids("bc1q/..", 0))
    call("item, no id", lambda: client.item("a b", 0))
    call("picture, an odd url", lambda: odd.picture(INSCRIPTION, 5))
    call("outpoint, no output", lambda: client.outpoint("x", 0))
    call("transaction, no id", lambda: client.transaction("x", 0))
    call("place, no price", lambda: client.place(replace(ORDER, price=0), **now))
    call("place, an odd quantity", lambda: client.place(replace(ORDER, quantity=Decimal("NaN")), **now))
    call("place, an odd fee", lambda: client.place(replace(ORDER, fee_rate="low"), **now))
    call("place, no signature", lambda: client.place(replace(ORDER, signature=""), **now))
    call("place, no token", lambda: odd.place(ORDER, **now | {"token": None}))
    call("cancel, no ids", lambda: client.cancel("bc1qpayment", [], "", **now))
    call("list_item, an odd key", lambda: client.list_item(replace(LISTING_ORDER, payment_pubkey="x"), **now))
    call("list_item, nine secure", lambda: client.list_item(replace(LISTING_ORDER, signed_secure=(PSBT,) * 9), **now))
    call(
        "draft_bid, no coin",
        lambda: client.draft_bid(replace(ASK, coins=(Coin(OUTPOINT, 0),))),
    )
    call("draft_listing, no price", lambda: client.draft_listing(replace(LISTING, price=0)))
    call("sign_in, no signature", lambda: client.sign_in(SignInAnswer(PAIR, "auth-1", {})))
    call("sign_in_texts, no key", lambda: client.sign_in_texts(replace(PAIR, payment_pubkey="02")))
    call("draft_withdrawal, nothing", lambda: client.draft_withdrawal("bc1qpayment", 0))
    call("broadcast, no hex", lambda: client.broadcast("xyz", deadline_ms=now["deadline_ms"]))
    call("play_signature, no text", lambda: client.play_signature(""))
    call("fence, no task", lambda: odd.fence("x", 1))
    call("fence_all, no tokens", lambda: odd.fence_all({"x": 1}))
    call("hold, too long", lambda: client.hold([1], 61))


def test_each_verb_and_each_error_at_the_gateways_socket_are_as_before(
    gateway: Opened,
) -> None:
    client, session, market, bench = gateway
    reads(client, session.call)
    writes(client, session.call)
    failures(client, session.call, market)
    bad_requests(client, session.call)
    status = bench.client().status()
    assert status["market"] == NAME and status["writes_under_way"] == 0
    shown = {name: sorted(each) for name, each in status["venues"].items()}
    session.meanings.append({"call": "status", "fields": {"of it": sorted(status), "of a venue": shown}})
    session.meanings.append({"call": "status", "calls": status["venues"][NAME]["calls"]})
    with MarketClient(bench.settings.gateway_socket.with_name("away.sock")) as away:
        session.call("fees, away", lambda: away.fees(0))
        session.call("place, away", lambda: away.place(ORDER, task=3, token=1, deadline_ms=soon()))
    hold("socket_gateway_meanings.jsonl", session.meanings)
    hold("socket_gateway_wire.jsonl", session.wire)


def test_each_verb_and_each_error_at_the_facts_socket_are_as_before(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(kind=FactsBench, unisat_url=None, with_ord=True)
    bench.venue.answers |= ANSWERS
    path = bench.settings.gateway_socket.with_name("tap.sock")
    tap = Tap(path, bench.settings.gateway_socket)
    session = Session(tap, masked)
    with MarketClient(path, timeout_s=CLIENT_S) as client:
        session.call("outpoint", lambda: client.outpoint(OUTPOINT, 60))
        session.call("outpoint, to the signer", lambda: ask_facts(path, OUTPOINT, CLIENT_S))
        session.call("transaction", lambda: client.transaction(TXID, 60))
        session.call("whereabouts", lambda: client.whereabouts(INSCRIPTION, 60))
        session.call("place", lambda: client.place(ORDER, task=1, token=1, deadline_ms=soon()))
        session.call("outpoint, no output", lambda: client.outpoint("x", 0))
        session.call("outpoint to the signer, no output", lambda: ask_facts(path, "x", CLIENT_S))
        bench.venue.statuses |= {f"/api/tx/{'cd' * 32}/hex": 404, f"/output/{'cd' * 32}:0": 404}
        bench.venue.answers |= {f"/api/tx/{'cd' * 32}/hex": "Transaction not found", f"/output/{'cd' * 32}:0": "no"}
        session.call("transaction, unknown", lambda: client.transaction("cd" * 32, 0))
        silent = [*ANSWERS, f"/api/tx/{'ef' * 32}/hex", f"/api/tx/{'ef' * 32}/status", f"/output/{'ef' * 32}:0"]
        bench.venue.answers |= dict.fromkeys([*silent, f"/api/tx/{'ef' * 32}/outspend/0"], CUT)
        session.call("outpoint, silent sources", lambda: ask_facts(path, f"{'ef' * 32}:0", CLIENT_S))
        session.call("whereabouts, silent sources", lambda: client.whereabouts(INSCRIPTION, 0))
    session.call("outpoint, away", lambda: ask_facts(path.with_name("away.sock"), OUTPOINT))
    tap.close()
    assert sum(each.get("raises") == FactsError.__name__ for each in session.meanings) >= 2
    hold("socket_facts_meanings.jsonl", session.meanings)
    hold("socket_facts_wire.jsonl", session.wire)


def test_all_leaves_of_the_error_tree_are_tried() -> None:
    tree = {name for name, each in vars(base).items() if isinstance(each, type) and issubclass(each, VenueError)}
    tried = {type(each).__name__ for each in FAILURES}
    assert tree - {"VenueError", "_RefusedFor", "TooManyLookups", "GatewayAway"} <= tried


def test_every_verb_except_the_status_is_in_a_golden() -> None:
    files = [Path(__file__).with_name(f"socket_{each}_wire.jsonl") for each in ("gateway", "facts")]
    sent = [json.loads(line)["sent"] for path in files for line in path.read_text().splitlines()]
    assert {each["verb"] for each in sent if each} == set(verbs.NAMES.values()) - {"status"}
