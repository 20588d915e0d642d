"""The adapters that are held to the contract: how each is made, what it lacks, how its listings are signed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import pytest

from markets.adapter import Adapter
from markets.orders import ListingDraft
from markets.ordinalswallet.adapter import OrdinalsWallet
from markets.ordnet.adapter import OrdNet
from markets.satflow.adapter import Satflow
from markets.unisat.adapter import UnisatMarket
from tests.examples import some_of
from tests.markets.contract import signing
from tests.markets.contract.gate import Clock
from tests.shapes import replace
from tests.simulator.desk import Trader

HELD = "a" * 64 + "i0"  # the inscription that ANN holds
LISTED = "b" * 64 + "i0"  # one that a stranger has listed

BIDS = frozenset({"bids", "own_bids", "place", "cancel"})
DRAFTED_BIDS = frozenset({"draft_bid"})
SIGN_IN = frozenset({"sign_in_texts", "sign_in"})
Test = TypeVar("Test", bound=Callable[..., None])

WITHDRAWALS = frozenset({"draft_withdrawal", "submit_withdrawal"})


@dataclass(frozen=True)
class Party:
    """One adapter. `make` takes the origin before the dialect's own path, and the practice market's clock.

    The sets name methods: `lacks` those that it does not have, `silent` those that make no request. To `bare_lists` an
    empty list is an answer, to `empty_404` a 404 in the venue's own words. `shown` is the price that the adapter tells
    of a listing that strangers made at this one. `seed` is the practice market's: with an even one it answers as
    clients have seen the venue, where that is not as it is documented.
    """

    name: str
    make: Callable[[str, Clock], Adapter]
    lacks: frozenset[str]
    sign_listing: Callable[[ListingDraft, Trader], signing.Signed]
    sign_delist: Callable[[Adapter, str, Trader], str] | None = None  # None = as a cancel is signed
    silent: frozenset[str] = frozenset()
    bare_lists: frozenset[str] = frozenset()
    empty_404: frozenset[str] = frozenset()
    shown: Callable[[int], int] = lambda price: price
    answers_ids: bool = False  # `place` returns the bid's id; else only the own bids show it
    seed: int = 1
    variant: str = ""

    def __str__(self) -> str:
        return "-".join(filter(None, (self.name, self.variant, "" if self.seed % 2 else "as-seen")))


SATFLOW = Party(
    "simulator",
    lambda url, clock: Satflow(f"{url}/satflow/v1", "practice", "simulator"),
    lacks=DRAFTED_BIDS | SIGN_IN | {"draft_delist"},
    sign_listing=signing.satflow_listing,
    empty_404=frozenset({"own_bids"}),
)
ORDINALS_WALLET = Party(
    "simulator-ordinalswallet",
    lambda url, clock: OrdinalsWallet(f"{url}/ordinalswallet", "simulator-ordinalswallet", now_ms=clock.ms),
    lacks=BIDS | DRAFTED_BIDS | WITHDRAWALS | {"challenge", "bidding_wallet", "draft_delist"},
    sign_listing=signing.plain_listing,
    silent=frozenset({"sign_in_texts"}),
    bare_lists=frozenset({"asks", "traits", "sales", "wallet_contents", "own_listings"}),
    empty_404=frozenset({"floors"}),
    shown=lambda price: price * 973 // 1000,  # it shows what buyers pay, and we speak of what sellers get
)
UNISAT = Party(
    "simulator-unisat",
    lambda url, clock: UnisatMarket(f"{url}/unisat", "practice", "simulator-unisat", now_ms=clock.ms),
    lacks=BIDS | DRAFTED_BIDS | SIGN_IN | WITHDRAWALS | {"traits", "challenge", "bidding_wallet", "wallet_contents"},
    sign_listing=signing.plain_listing,
    sign_delist=signing.taken_back,
    empty_404=frozenset({"floors"}),
)
PARTIES = (
    SATFLOW,
    replace(SATFLOW, seed=2),
    Party(
        "simulator-ordnet",
        lambda url, clock: OrdNet(f"{url}/ordnet", "simulator-ordnet", clock=clock.seconds),
        lacks=WITHDRAWALS | {"challenge", "bidding_wallet", "wallet_contents", "draft_delist"},
        sign_listing=signing.ordnet_listing,
        answers_ids=True,
    ),
    UNISAT,
    replace(UNISAT, seed=2),
    ORDINALS_WALLET,
    replace(
        ORDINALS_WALLET,
        make=lambda url, clock: OrdinalsWallet(
            f"{url}/ordinalswallet", "simulator-ordinalswallet", is_protecting=True, now_ms=clock.ms
        ),
        sign_listing=signing.protected_listing,
        variant="protected",
    ),
)


def having(*methods: str) -> pytest.MarkDecorator:
    """For a test of all adapters that have these methods."""
    found = [party for party in PARTIES if not party.lacks & set(methods)]
    return pytest.mark.parametrize("party", found, ids=str, indirect=True)


def each(methods: Iterable[str]) -> Callable[[Test], Test]:
    """Has a test try each of these methods of each adapter that has it, where it makes a request."""
    found = [
        pytest.param(party, method, id=f"{party}-{method}")
        for party in PARTIES
        for method in methods
        if method not in party.lacks | party.silent
    ]

    def marked(test: Test) -> Test:
        tried = some_of(found, test.__name__, dear=True)
        return pytest.mark.sampled(pytest.mark.parametrize("party, method", tried, indirect=["party"])(test))

    return marked
