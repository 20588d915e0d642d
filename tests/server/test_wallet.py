"""The user's wallet: addresses, balances, and the address behind bids."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from markets.base import Balance, NotFound, Unavailable, Utxo
from markets.venues import Funding, Place
from models.ledger.states import Order
from models.tasks.tasks import Task
from server.wallet import Backing, at_stake
from tests.server.ledger_rows import open_order
from tests.server.test_preview import EXAMPLE, preview, prices, with_floor
from tests.worlds.service import OWNER, START_MS, Answer, Service, keys_of


async def test_the_wallet_shows_what_is_signed_and_when_room_comes_back(service: Service) -> None:
    service.gateway.answers["balance"] = Balance("bc1qmultisig", 123_456, START_MS)
    service.signer.signed_sats, service.signer.frees_ms = 70_000, 1_800_000_061_000

    answer = await service.ask("GET", "/api/wallet")

    assert (answer.json["signedSats"], answer.json["signedLimitSats"]) == (70_000, 200_000_000)
    assert answer.json["signedFreeAt"] == "2027-01-15T08:01:01.000Z"


async def test_a_wallet_that_is_not_there_can_lose_nothing(service: Service) -> None:
    service.gateway.answers["balance"] = NotFound()

    answer = await service.ask("GET", "/api/wallet")

    assert (answer.json["biddingWallet"], answer.json["worstLoss"], answer.json["ifAllFillNow"]) == (None, 0, 0)
    assert answer.json["balanceError"]


async def test_what_bids_can_cost_is_all_that_backs_them_anywhere(service: Service) -> None:
    """Bids at ord.net are paid with the payment address's coins, those at Satflow by its bidding wallet."""
    service.gateway.answers["balance"] = Balance("bc1qmultisig", 70_000, START_MS)
    service.gateway.answers["coins"] = (Utxo("ab" * 32 + ":0", 30_000, True), Utxo("ab" * 32 + ":1", 9_000, False))
    open_order(service, await service.new_task(), number=9)
    both = await service.ask("GET", "/api/wallet")
    service.gateway.answers["balance"] = NotFound()
    one = await service.ask("GET", "/api/wallet")
    service.gateway.answers["coins"] = Unavailable("away")
    unknown = await service.ask("GET", "/api/wallet")

    assert stake_of(both) == (90_000, 100_000, 70_000), "only the bidding wallet backs that order"
    assert stake_of(one) == (90_000, 30_000, 0)
    assert stake_of(unknown) == (90_000, None, None)


async def test_an_order_is_paid_from_the_wallet_that_backs_it_alone(service: Service) -> None:
    service.gateway.answers["balance"] = Balance("bc1qmultisig", 100_000, START_MS)
    service.gateway.answers["coins"] = (Utxo("ab" * 32 + ":0", 3_000_000, True),)
    task_id = await service.new_task()
    for number, sats in enumerate((90_000, 75_000, 60_000), start=1):
        order = open_order(service, task_id, number)
        Order.update(price_sats=sats).where(Order.id == order.id).execute()

    backed_by_one = await service.ask("GET", "/api/wallet")
    Order.update(venue="simulator-ordnet").where(Order.price_sats == 90_000).execute()
    backed_by_both = await service.ask("GET", "/api/wallet")
    Order.update(venue="ordnet").where(Order.price_sats == 90_000).execute()
    unknown = await service.ask("GET", "/api/wallet")

    assert stake_of(backed_by_one) == (225_000, 3_100_000, 100_000)
    assert stake_of(backed_by_both) == (225_000, 3_100_000, 90_000 + 100_000)
    assert stake_of(unknown) == (225_000, None, None), "nothing here backs an order at a venue that was taken away"


def stake_of(answer: Answer) -> tuple[object, ...]:
    return tuple(answer.json[name] for name in ("exposure", "worstLoss", "ifAllFillNow"))


async def test_the_wallet_is_shown_without_the_venue_but_not_without_the_signer(service: Service) -> None:
    service.gateway.down = True
    no_venue = await service.ask("GET", "/api/wallet")
    service.signer.state = "locked"
    locked = await service.ask("GET", "/api/wallet")
    await service.signer.stop()
    away = await service.ask("GET", "/api/wallet")

    assert no_venue.status == 200
    assert (no_venue.json["biddingWallet"], no_venue.json["balanceError"]) == (None, "the venue does not answer")
    assert [(row["address"], row["balanceSats"]) for row in no_venue.json["funding"]] == [
        (None, None),
        (keys_of(OWNER)["payment"], None),
    ]
    assert no_venue.json["worstLoss"] is None and no_venue.json["ifAllFillNow"] is None
    assert (locked.status, locked.json["error"]) == (503, "The signer is locked")
    assert (away.status, away.json["error"]) == (503, "The signer cannot be asked")
    assert Task.select().count() == 0


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
