"""The address behind bids: the sats at stake there, against a sum that fills order after order, and those missing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from markets.base import Balance
from markets.venues import Funding, Place
from server.wallet import Backing, at_stake
from tests.server.api import START_MS
from tests.server.conftest import Service
from tests.server.test_preview import EXAMPLE, preview, prices, with_floor

VENUES = ("satflow", "ordnet", "third", "fourth")
ADDRESSES = ("bc1qpayment", "bc1qbidding")
FEW = st.integers(0, 12)


@st.composite
def backings(draw: st.DrawFn, balances: st.SearchStrategy[int | None] = FEW) -> list[Backing]:
    """Each venue is backed by one of two addresses, or by a wallet that is not there yet."""
    sats = {address: draw(balances) for address in ADDRESSES}
    found = []
    for venue in VENUES:
        address = draw(st.sampled_from((*ADDRESSES, None)))
        place: Place = "payment" if address == ADDRESSES[0] else "bidding"
        found.append(Backing(Funding(venue, place, "", ""), address, sats[address] if address else 0))
    return found


def filled(found: list[Backing], orders: list[tuple[str, int]]) -> int:
    """Spends the orders sat by sat, each from the address behind it for as long as that has any."""
    left = {each.address: each.sats or 0 for each in found if each.address}
    backed_by = {each.funding.venue: each.address for each in found}
    spent = 0
    for venue, price in orders:
        for _ in range(price):
            address = backed_by[venue]
            if address is not None and left[address]:
                left[address] -= 1
                spent += 1
    return spent


@given(backings(), st.lists(st.tuples(st.sampled_from(VENUES), FEW), max_size=8))
def test_fills_spend_what_lies_behind_each_order(found: list[Backing], orders: list[tuple[str, int]]) -> None:
    open_sats = {venue: sum(price for at, price in orders if at == venue) for venue, _ in orders}
    stake = at_stake(found, open_sats)
    assert stake is not None
    assert stake.if_all_fill_now == filled(found, orders)
    assert stake.if_all_fill_now <= min(sum(price for _, price in orders), stake.worst_loss)
    assert stake.worst_loss == sum({each.address: each.sats or 0 for each in found}.values())


@given(backings(st.none() | FEW))
def test_an_unknown_balance_leaves_the_stake_unknown(found: list[Backing]) -> None:
    assert (at_stake(found, {}) is None) == any(each.sats is None for each in found)


def test_an_order_with_an_unknown_backing_leaves_the_stake_unknown() -> None:
    found = [Backing(Funding("satflow", "bidding", "", ""), "bc1qbidding", 100_000)]
    assert at_stake(found, {"ordnet": 1}) is None


async def test_too_small_a_balance_names_the_address_and_the_sats_that_it_lacks(service: Service) -> None:
    with_floor(service, 100_000, 120_000)
    service.gateway.answers["balance"] = Balance("bc1qbidding", 50_000, START_MS)

    short = await preview(service, **EXAMPLE)
    service.gateway.answers["balance"] = Balance("bc1qbidding", 50_000 + short.json["missing"], START_MS)
    enough = await preview(service, **EXAMPLE)

    assert (short.json["fundedAt"], short.json["missing"]) == ("bc1qbidding", 26_000), "75,000 and 1,000 for the fee"
    refused = [rung["detail"] for rung in short.json["rungs"] if rung["reason"] == "insufficient_balance"]
    assert refused == ["send at least 26,000 sats to bc1qbidding"] * 2
    assert {reason for _, reason in prices(enough)} == {"place"} and enough.json["missing"] == 0
