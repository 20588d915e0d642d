"""Items in the escrow of their listing: kept for sale, brought home for another price or at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from msgspec import structs

from markets.base import NotSupported, OutpointFacts, Unavailable, Utxo, Whereabouts
from markets.client import Scarcity
from markets.items import judged
from markets.venues import capabilities
from models.ledger import states, withdrawals
from models.ledger.withdrawals import Withdrawal
from models.tasks import tasks
from strategy.config.listing import ListingConfig
from tests.worlds.listing import (
    BUYER,
    COIN,
    ESCROW,
    FIRST,
    HOME,
    ITEM,
    SECOND,
    EscrowMarket,
    EscrowSigner,
    ListingWorld,
)
from tests.worlds.worker import KEYS, Crash, CrashAt
from wallet.signer_client import SignerError, SignerLocked, SignerRefused, SignerUnavailable
from workers import context
from workers.context import HOMECOMING_NAMES
from workers.drains import ListingDrain
from workers.listing.places import MOST_A_DAY, MOST_A_DAY_FOR_A_PRICE


@pytest.fixture
def shop(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ListingWorld]:
    monkeypatch.setattr(context, "capabilities", lambda name: structs.replace(capabilities(name), lists_in_escrow=True))
    made = ListingWorld(signer=EscrowSigner())
    made.market = EscrowMarket(made.clock)
    yield made


def stranded(shop: ListingWorld) -> int:
    task = shop.task()
    shop.lister(task).cycle()
    shop.market.strand()
    shop.clock.advance(900)
    return task


def ways_home() -> list[tuple[str, str, str | None]]:
    """(state, destination, txid) of each row."""
    rows = Withdrawal.select().order_by(Withdrawal.id)
    return [(row.state, row.destination, row.txid) for row in rows]


def facts(outpoint: str, **more: Any) -> OutpointFacts:
    known = OutpointFacts(outpoint, 546, "5120", True, True, (ITEM,), (), 9, 9, None)
    return structs.replace(known, **more)


@pytest.mark.parametrize(
    ("signed_at", "changes", "state", "is_in_escrow"),
    [
        (FIRST, {}, "held", True),
        (None, {}, "held", True),
        (SECOND, {}, "held", True),  # a listing that was found there and written down
        (FIRST, {SECOND: {"is_unspent": False}}, "pending", False),  # a sale from there, or the way home
        (FIRST, {SECOND: {"is_unspent": None}}, "unknown", False),
        (FIRST, {SECOND: {"is_confirmed": False}}, "pending", False),
        (FIRST, {FIRST: {"is_unspent": True}}, "unknown", False),  # index and chain contradict one another
        (FIRST, {FIRST: {"is_unspent": None}}, "unknown", False),
    ],
)
def test_where_it_is_by_index_and_chain(
    signed_at: str | None, changes: dict[str, dict[str, Any]], state: str, is_in_escrow: bool
) -> None:
    known = {FIRST: facts(FIRST, is_unspent=False), SECOND: facts(SECOND)}
    known |= {outpoint: structs.replace(known[outpoint], **change) for outpoint, change in changes.items()}
    where = Whereabouts(ITEM, SECOND, ESCROW, 546, 0)
    found = judged(KEYS.vault, signed_at, where, known.get, {ESCROW})
    assert (found.inscription_state, found.is_in_escrow) == (state, is_in_escrow)


def test_anothers_escrow_is_not_ours() -> None:
    known = {FIRST: facts(FIRST, is_unspent=False), SECOND: facts(SECOND)}
    found = judged(KEYS.vault, FIRST, Whereabouts(ITEM, SECOND, ESCROW, 546, 0), known.get)
    assert found.inscription_state == "spent"


def test_it_stays_listed_while_the_price_is_right(shop: ListingWorld) -> None:
    task = stranded(shop)
    shop.lister(task).cycle()
    assert (shop.rows(), ways_home(), shop.prices) == ([(105_000, "live", None)], [], [105_000])
    shop.market.move(BUYER)
    shop.market.listed.clear()
    shop.market.tell_sale(105_000)
    assert shop.lister(task).cycle() is None
    assert shop.rows() == [(105_000, "closed", "sold")]


def raised(shop: ListingWorld) -> int:
    task = stranded(shop)
    shop.change(task, ListingConfig(price_percent=Decimal("1.5")))
    return task


def test_another_price_brings_it_home_once_and_is_signed_there(shop: ListingWorld) -> None:
    task = raised(shop)
    for _ in range(3):
        shop.lister(task).cycle()
        shop.clock.advance(30)
    assert ways_home() == [("signed", KEYS.vault, "44" * 32)]
    [asked] = shop.signer.ways_home.values()  # type: ignore[attr-defined]
    assert (asked.source, asked.coins, asked.fee_coins, asked.inscription_id) == ("escrow", (SECOND,), (COIN,), ITEM)
    assert (asked.fee_per_kvb, asked.user) == (7_500, "bc1quser")
    assert [listing.outpoint for listing in shop.signer.listings.values()] == [FIRST], "nothing new is signed yet"
    assert "on its way home" in shop.row(task).last_cycle_action

    shop.market.come_home()
    shop.lister(task).cycle()
    assert [listing.outpoint for listing in shop.signer.listings.values()] == [FIRST, HOME]
    assert shop.rows() == [(105_000, "closed", "gone"), (150_000, "live", None)]


@pytest.mark.parametrize("point", HOMECOMING_NAMES)
def test_a_worker_killed_on_the_way_home_leaves_what_its_successor_finishes(shop: ListingWorld, point: str) -> None:
    task, crash = raised(shop), CrashAt(point)
    with pytest.raises(Crash):
        shop.lister(task, crash).cycle()
    assert crash.has_hit
    [(state, _, _)] = ways_home()
    assert state == ("signed" if point == "homecoming-stored" else "reserved")
    shop.clock.advance(30)
    shop.lister(task).cycle()
    assert len(ways_home()) == 1, "its coins are set aside: nothing is signed twice"
    row = Withdrawal.get()
    # The server's caretaker asks the signer: what was signed is sent, what was not is given up, and then begun anew.
    if point == "homecoming-reserved":
        withdrawals.move(row, states.REFUSED, shop.clock(), "it was never signed")
        shop.lister(task).cycle()
        assert [state for state, _, _ in ways_home()] == ["refused", "signed"]
    else:
        assert row.intent in shop.signer.ways_home  # type: ignore[attr-defined]
    assert shop.untracked_listings() == []


def test_it_does_not_come_home_for_a_lower_price_that_could_not_be_listed(shop: ListingWorld) -> None:
    task = stranded(shop)
    shop.change(task, ListingConfig(price_percent=Decimal("1.0")))
    shop.market.scarcity = Scarcity(stretch_s=600, rungs=0)
    shop.lister(task).cycle()
    assert (ways_home(), shop.rows()) == ([], [(105_000, "live", None)])
    assert "the marketplace's quota of calls lets nothing be listed" in shop.row(task).last_cycle_action
    shop.change(task, ListingConfig(price_percent=Decimal("1.5")))
    shop.lister(task).cycle()
    assert len(ways_home()) == 1, "it is for sale too cheaply"


def test_without_a_coin_for_the_fee_it_stays_and_its_owner_is_told(shop: ListingWorld) -> None:
    task = raised(shop)
    shop.market.coins_ = [Utxo(COIN, 600, True)]  # type: ignore[attr-defined]
    shop.lister(task).cycle()
    assert (ways_home(), shop.rows()) == ([], [(105_000, "live", None)])
    assert "failed to find coins for the way home" in shop.row(task).last_error


@pytest.mark.parametrize("operation", ["fees", "coins"])
def test_what_does_not_answer_is_asked_again(shop: ListingWorld, operation: str) -> None:
    task = raised(shop)
    shop.market.fail(operation, Unavailable("down"))
    shop.lister(task).cycle()
    assert ways_home() == []
    shop.lister(task).cycle()
    assert len(ways_home()) == 1


def test_a_refusal_of_the_signers_frees_the_coins(shop: ListingWorld) -> None:
    task = raised(shop)
    shop.signer.home_script.append(SignerRefused("inputs-cardinal", "the index is behind"))  # type: ignore[attr-defined]
    shop.lister(task).cycle()
    assert [state for state, _, _ in ways_home()] == ["refused"]
    assert withdrawals.taken_coins(shop.user.id) == set()


def deleted(shop: ListingWorld) -> int:
    task = stranded(shop)
    tasks.mark_deleted(shop.row(task), shop.clock())
    return task


def test_deleting_the_task_cancels_the_listing_and_brings_it_home(shop: ListingWorld) -> None:
    assert shop.listing_drain(deleted(shop)).cycle() is None
    assert ways_home() == [("signed", KEYS.vault, "44" * 32)]
    assert (shop.prices, shop.rows()) == ([], [(105_000, "closed", "cancelled")])


def test_a_drain_waits_for_the_signer_and_not_for_coins(shop: ListingWorld) -> None:
    drain = shop.listing_drain(deleted(shop))
    shop.signer.home_script.append(SignerUnavailable("away"))  # type: ignore[attr-defined]
    assert drain.cycle() is not None
    assert (shop.prices, shop.rows()) == ([], [(105_000, "cancelling", None)]), "an item in doubt keeps its row"
    withdrawals.move(Withdrawal.get(), states.REFUSED, shop.clock(), "it was never signed")
    shop.market.coins_ = []  # type: ignore[attr-defined]
    assert drained(shop, drain)
    assert shop.rows() == [(105_000, "closed", "cancelled")]


def drained(shop: ListingWorld, drain: ListingDrain) -> bool:
    """Tells whether the drain comes to its end within some rounds."""
    for _ in range(4):
        if drain.cycle() is None:
            return True
        shop.clock.advance(6)
    return False


def lose_keys(shop: ListingWorld) -> None:
    shop.signer.is_lost = True  # type: ignore[attr-defined]


def lose_index(shop: ListingWorld) -> None:
    shop.market.script["whereabouts"] = [NotSupported("no index")] * 9
    shop.market.script["outpoint"] = [Unavailable("down")] * 9


def spend_escrow(shop: ListingWorld) -> None:
    """The mempool has a spend of it."""
    shop.market.chain(SECOND, is_unspent=False)


def refusing(error: SignerError, where: str) -> Callable[[ListingWorld], None]:
    return lambda shop: getattr(shop.signer, where).extend([error] * 4)


def take_coins(shop: ListingWorld) -> None:
    """Another withdrawal spends the only coin, whose change comes later."""
    withdrawals.reserve(withdrawals.NewWithdrawal("ab" * 20, int(shop.user.id), "payment", "bc1q", "{}", (COIN,)), 1)


DOUBTS = {
    "keys": lose_keys,
    "index": lose_index,
    "pending": spend_escrow,
    "taken": take_coins,
    "unconfirmed": lambda shop: shop.market.coins_.__setitem__(0, Utxo(COIN, 50_000, False)),  # type: ignore[attr-defined]
    "contents": lambda shop: shop.market.facts.__setitem__(COIN, facts(COIN, inscriptions=None)),
    "locked": refusing(SignerLocked("locked"), "judge_script"),
    "locked since": refusing(SignerLocked("locked"), "home_script"),
    **{
        f"{where} {tag}": refusing(SignerRefused(tag, "for now"), where)
        for where in ("judge_script", "home_script")
        for tag in ("inputs-confirmed", "inputs-cardinal", "amount-proof", "velocity", "control-state")
    },
}


@pytest.mark.parametrize("doubt", DOUBTS)
def test_a_drain_cancels_at_once_and_keeps_the_row_in_doubt(shop: ListingWorld, doubt: str) -> None:
    drain = shop.listing_drain(deleted(shop))
    DOUBTS[doubt](shop)
    assert not drained(shop, drain)
    assert (shop.prices, shop.rows()) == ([], [(105_000, "cancelling", None)])
    assert "signed" not in [state for state, _, _ in ways_home()]
    if "judge" in doubt:
        assert ways_home() == [], "a refused one leaves no row"


@pytest.mark.parametrize("where", ["judge_script", "home_script"])
def test_what_the_signer_refuses_for_good_is_left_to_its_owner(shop: ListingWorld, where: str) -> None:
    drain = shop.listing_drain(deleted(shop))
    refusing(SignerRefused("inputs-own", "not yours"), where)(shop)
    assert drain.cycle() is None
    assert shop.rows() == [(105_000, "closed", "cancelled")]


def test_a_dear_network_is_waited_for(shop: ListingWorld) -> None:
    drain = shop.listing_drain(deleted(shop))
    shop.market.rate = Decimal("300.1")  # type: ignore[attr-defined]
    assert not drained(shop, drain)
    assert ways_home() == []
    shop.market.rate = Decimal(300)  # type: ignore[attr-defined]
    shop.market.coins_ = [Utxo(COIN, 500_000, True)]  # type: ignore[attr-defined]
    assert drained(shop, drain)
    assert [state for state, _, _ in ways_home()] == ["signed"]


@pytest.mark.parametrize(("fee_sats", "goes"), [(15_000, True), (15_001, False)])
def test_another_price_is_not_worth_more_than_a_tenth_of_it_in_fees(
    shop: ListingWorld, fee_sats: int, goes: bool
) -> None:
    task = raised(shop)
    shop.signer.home_fee = fee_sats  # type: ignore[attr-defined]
    shop.lister(task).cycle()
    assert bool(ways_home()) is goes
    assert ("more than a tenth of the 150000" in (shop.row(task).last_error or "")) is not goes
    if not goes:
        tasks.mark_deleted(shop.row(task), shop.clock())
        assert shop.listing_drain(task).cycle() is None
        assert len(ways_home()) == 1, "its end is worth any fee that the signer pays"


def test_ways_home_are_few_in_a_day_and_some_are_left_for_the_end(shop: ListingWorld) -> None:
    task = raised(shop)

    def tried(cycle: Callable[[], object], times: int) -> None:
        for _ in range(times):
            shop.signer.home_script.append(SignerRefused("velocity", "enough"))  # type: ignore[attr-defined]
            cycle()
            shop.clock.advance(30)

    tried(shop.lister(task).cycle, MOST_A_DAY_FOR_A_PRICE + 2)
    assert len(ways_home()) == MOST_A_DAY_FOR_A_PRICE
    assert "4 ways home in a day" in shop.row(task).last_error
    tasks.mark_deleted(shop.row(task), shop.clock())
    drain = shop.listing_drain(task)
    tried(drain.cycle, MOST_A_DAY)
    assert len(ways_home()) == MOST_A_DAY
    shop.signer.home_script.clear()  # type: ignore[attr-defined]
    assert not drained(shop, drain)
    shop.clock.advance(86_400)
    assert drained(shop, drain)
    assert ways_home()[-1][0] == "signed" and len(ways_home()) == MOST_A_DAY + 1


def test_a_sale_is_not_believed_while_nobody_knows_where_the_item_is(shop: ListingWorld) -> None:
    """The transfer into the escrow spends the listed output, too."""
    task = stranded(shop)
    shop.market.tell_sale(105_000)
    shop.market.script["whereabouts"] = [NotSupported("no index")]
    shop.market.listed.clear()
    assert shop.lister(task).cycle() is not None
    assert "whether it was sold is looked for" in shop.row(task).last_cycle_action
    assert shop.rows() == [(105_000, "live", None)]
    shop.market.move(BUYER)
    assert shop.lister(task).cycle() is None
    assert shop.rows() == [(105_000, "closed", "sold")]


@pytest.mark.parametrize("point", HOMECOMING_NAMES)
def test_a_drain_killed_on_the_way_home(shop: ListingWorld, point: str) -> None:
    task = deleted(shop)
    with pytest.raises(Crash):
        shop.listing_drain(task, CrashAt(point)).cycle()
    drain = shop.listing_drain(task)
    if point != "homecoming-stored":
        assert drain.cycle() is not None, "whether it was signed is not known yet"
        row = Withdrawal.get()
        if row.intent in shop.signer.ways_home:  # type: ignore[attr-defined]
            assert withdrawals.signed(row, "44" * 32, 546, 1_500, shop.clock())
        else:
            withdrawals.move(row, states.REFUSED, shop.clock(), "it was never signed")
    assert drained(shop, drain)
    assert [state for state, _, _ in ways_home()][-1] == "signed"
    assert shop.rows() == [(105_000, "closed", "cancelled")]


def test_an_item_that_is_in_no_escrow_costs_nothing(shop: ListingWorld) -> None:
    task = shop.task()
    shop.lister(task).cycle()
    tasks.mark_deleted(shop.row(task), shop.clock())
    assert shop.listing_drain(task).cycle() is None
    assert ways_home() == []
