"""The ledger of listings: one open at a time, nothing at the venue without an open row, prices remembered."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count, product
from pathlib import Path
from typing import Any

import pytest

from core.subscription_plans import DEFAULT_PLANS
from models import schema, users
from models.database import base
from models.ledger import closing, listings, states, withdrawals
from models.ledger.listings import NewListing, NotAllowedToList, OpenElsewhere, SoldFor
from models.ledger.states import WITHDRAWAL_LIFE
from models.ledger.withdrawals import CoinsTaken, NewWithdrawal, Withdrawal
from models.tasks import tasks
from models.tasks.tasks import RUNNING, STOPPED, Task

ITEM, OUTPOINT, OTHER, VAULT = "ab" * 32 + "i0", "11" * 32 + ":0", "22" * 32 + ":0", "bc1pvault"
_intents: Iterator[int] = count(1)


def task(inscription: str = ITEM) -> Task:
    owner = users.find_or_create("bc1qa", DEFAULT_PLANS, 1)
    made = tasks.create_autolist_task(
        owner.id, inscription_id=inscription, collection_id=None, config="{}", venue="simulator", now_ms=1
    )
    tasks.set_desired(made, RUNNING)
    tasks.raise_token(made.id)
    return made


def new(owner: Task, price: int = 100_000, outpoint: str = OUTPOINT, token: int = 1) -> NewListing:
    return NewListing(
        f"{next(_intents):064x}",
        owner.id,
        owner.user_id,
        "simulator",
        VAULT,
        owner.inscription_id,
        "cats",
        outpoint,
        price,
        token,
        1,
    )


def live(
    owner: Task, price: int = 100_000, now_ms: int = 10, replacing: states.Listing | None = None
) -> states.Listing:
    made = listings.reserve(new(owner, price), replacing, now_ms)
    for state in (states.SIGNED, states.SUBMITTED, states.LIVE):
        listings.move(made, state, now_ms)
    return made


def stored(listing: states.Listing) -> states.Listing:
    return states.Listing.get_by_id(listing.id)


def test_a_listings_way_is_written_down(database: str) -> None:
    made = live(task())
    found = stored(made)
    assert (found.state, found.signed_ms, found.listed_ms, found.closed_ms) == (states.LIVE, 10, 10, None)
    assert found.__data__ == made.__data__
    listings.move(made, states.CLOSED, 20, reason=states.SOLD, sale=SoldFor(100_000))
    found = stored(made)
    assert (found.close_reason, found.closed_ms, found.proceeds_sats, found.is_open) == ("sold", 20, 100_000, False)
    assert found.__data__ == made.__data__


@pytest.mark.parametrize(("start", "end"), list(product(states.LISTING_LIFE.states, states.LISTING_LIFE.states)))
def test_it_goes_only_where_the_table_says(database: str, start: str, end: str) -> None:
    made = listings.reserve(new(task()), None, 1)
    states.Listing.update(state=start).where(states.Listing.id == made.id).execute()
    made.state = start
    reason = states.LOST if end == states.CLOSED else None
    if end in states.LISTING_LIFE.moves.get(start, ()):
        listings.move(made, end, 2, reason=reason)
        assert stored(made).state == end
    else:
        with pytest.raises(states.IllegalMove):
            listings.move(made, end, 2, reason=reason)
        assert stored(made).state == start


def test_closed_has_a_reason_and_nothing_else_has(database: str) -> None:
    made = listings.reserve(new(task()), None, 1)
    for state, reason in ((states.CLOSED, None), (states.CLOSED, "bored"), (states.SIGNED, states.LOST)):
        with pytest.raises(states.IllegalMove):
            listings.move(made, state, 2, reason=reason)


def test_what_another_has_moved_is_not_moved_again(database: str) -> None:
    made = live(task())
    twin = stored(made)
    listings.move(made, states.CLOSED, 20, reason=states.CANCELLED)
    with pytest.raises(states.IllegalMove):
        listings.move(twin, states.CANCELLING, 21)


def test_one_open_listing_a_task_and_an_output(database: str) -> None:
    first, second = task(), task("cd" * 32 + "i0")
    live(first)
    with pytest.raises(states.IllegalMove):
        listings.reserve(new(first, outpoint=OTHER), None, 2)
    for take_up in (listings.adopt, listings.suspect):
        with pytest.raises(states.IllegalMove):
            take_up(new(first, outpoint=OTHER), 2)
        with pytest.raises(OpenElsewhere):
            take_up(new(second), 2)
    with pytest.raises(OpenElsewhere):
        listings.reserve(new(second), None, 2)
    assert states.Listing.select().count() == 1


def test_what_is_adopted_is_live_and_what_is_suspected_unknown(database: str) -> None:
    owner = task()
    tasks.mark_deleted(owner, 2)
    suspected = listings.suspect(new(owner, 70_000), 3)
    assert (stored(suspected).state, suspected.signed_ms, suspected.listed_ms) == (states.UNKNOWN, 3, None)
    assert listings.tasks_to_delist() == [owner.id]
    listings.move(suspected, states.LIVE, 4)
    listings.move(suspected, states.CLOSED, 5, reason=states.CANCELLED)
    adopted = listings.adopt(new(owner, 80_000), 6)
    assert (stored(adopted).state, adopted.signed_ms, adopted.listed_ms) == (states.LIVE, 6, 6)


@pytest.mark.parametrize("spoil", ["stopped", "deleted", "overtaken"])
def test_only_the_present_worker_of_a_wanted_task_reserves(database: str, spoil: str) -> None:
    owner = task()
    if spoil == "stopped":
        tasks.set_desired(owner, STOPPED)
    elif spoil == "deleted":
        tasks.mark_deleted(owner, 5)
    else:
        tasks.raise_token(owner.id)
    with pytest.raises(NotAllowedToList):
        listings.reserve(new(owner), None, 2)


def test_a_new_price_ends_the_former_with_one_commit(database: str) -> None:
    owner = task()
    former = live(owner)
    made = listings.reserve(new(owner, 110_000), former, 30)
    assert (stored(former).state, stored(former).close_reason) == (states.CLOSED, states.REPLACED)
    assert listings.open_listing(owner.id).id == made.id  # type: ignore[union-attr]


def test_nothing_takes_the_place_of_what_is_not_live(database: str) -> None:
    owner = task()
    made = listings.reserve(new(owner), None, 1)
    with pytest.raises(states.IllegalMove):
        listings.reserve(new(owner), made, 2)
    assert stored(made).state == states.RESERVED


def test_what_is_shown_of_an_ended_task_is_what_ended_last(database: str) -> None:
    owner = task()
    former = live(owner)
    refused = listings.reserve(new(owner, 120_000), former, 30)
    listings.give_up(refused, states.REFUSED, 40)
    listings.move(stored(former), states.CLOSED, 50, reason=states.SOLD, sale=SoldFor(100_000))
    shown = listings.newest(owner.id)
    assert shown is not None
    assert (shown.id, shown.close_reason, shown.proceeds_sats) == (former.id, "sold", 100_000)


@pytest.mark.parametrize("reason", [states.REFUSED, states.LOST])
def test_what_was_to_be_replaced_is_open_again_when_the_venue_took_nothing(database: str, reason: str) -> None:
    owner = task()
    former = live(owner)
    made = listings.reserve(new(owner, 110_000), former, 30)
    listings.give_up(made, reason, 40)
    again = stored(former)
    assert (again.state, again.close_reason, again.closed_ms, again.listed_ms) == (states.LIVE, None, None, 10)
    assert (stored(made).state, stored(made).close_reason) == (states.CLOSED, reason)
    assert listings.open_listing(owner.id).id == former.id  # type: ignore[union-attr]
    assert listings.newest(owner.id).id == former.id  # type: ignore[union-attr]


def test_a_first_listing_that_is_given_up_reopens_nothing(database: str) -> None:
    owner = task()
    listings.move(live(owner, now_ms=10), states.CLOSED, 30, reason=states.REPLACED)  # by one that was not ours
    made = listings.reserve(new(owner), None, 31)
    listings.give_up(made, states.REFUSED, 40)
    assert listings.open_listing(owner.id) is None


def test_the_lowest_price_ever_signed_stays_while_the_output_does(database: str) -> None:
    owner = task()
    assert listings.lowest_outstanding(OUTPOINT) is None
    first = live(owner, 90_000)
    live(owner, 120_000, replacing=first)
    refused = listings.reserve(new(owner, 1_000), listings.open_listing(owner.id), 40)
    listings.give_up(refused, states.REFUSED, 41)
    assert listings.lowest_outstanding(OUTPOINT) == 90_000
    assert listings.lowest_outstanding(OTHER) is None


def test_a_signature_that_may_exist_counts(database: str) -> None:
    made = listings.reserve(new(task(), 70_000), None, 1)
    listings.move(made, states.UNKNOWN, 5)
    assert listings.lowest_outstanding(OUTPOINT) == 70_000


def test_the_highest_of_an_hour_is_what_was_listed_at_any_time_within_it(database: str) -> None:
    owner = task()
    first = live(owner, 200_000, now_ms=10)
    second = live(owner, 180_000, now_ms=1_000, replacing=first)
    live(owner, 160_000, now_ms=2_000, replacing=second)
    highest = [listings.highest_since(ITEM, VAULT, since) for since in (5, 999, 1_000, 1_999, 2_000, 9_999)]
    assert highest == [200_000, 200_000, 180_000, 180_000, 160_000, 160_000]
    assert listings.highest_since(ITEM, "bc1pother", 5) is None


def test_delistings_are_what_was_there_and_was_dropped(database: str) -> None:
    owner = task()
    for now_ms in (10, 20, 30):
        listings.move(live(owner, now_ms=now_ms), states.CLOSED, now_ms + 5, reason=states.LOST)
    never = listings.reserve(new(owner), None, 40)
    listings.move(never, states.UNKNOWN, 41)
    listings.move(never, states.CLOSED, 45, reason=states.LOST)
    listings.move(live(owner, now_ms=50), states.CLOSED, 55, reason=states.GONE)
    assert [listings.delistings(owner.id, since) for since in (0, 15, 34, 35)] == [3, 2, 1, 0]


def test_misses_count_in_a_row(database: str) -> None:
    made = live(task())
    assert [states.count_miss(made, 20), states.count_miss(made, 30)] == [1, 2]
    states.saw(made, "venue-1", 40)
    assert (stored(made).misses, stored(made).venue_id) == (0, "venue-1")


def test_refusals_do_not_pile_up_and_signatures_stay(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listings, "_KEPT", 3)
    owner = task()
    signed = listings.reserve(new(owner, 50_000), None, 1)
    listings.move(signed, states.SIGNED, 1)
    listings.give_up(signed, states.REFUSED, 1)
    for now_ms in range(2, 10):
        listings.give_up(listings.reserve(new(owner), None, now_ms), states.REFUSED, now_ms)
    assert states.Listing.select().count() == 5
    assert listings.lowest_outstanding(OUTPOINT) == 50_000


def test_a_listing_is_owed_an_end_only_when_its_task_is_deleted(database: str) -> None:
    owner = task()
    made = live(owner)
    assert closing.count_open(owner.id) == 1
    assert (closing.to_be_ended(owner), closing.tasks_to_end()) == (0, [])
    tasks.mark_deleted(owner, 50)
    row = tasks.with_owner(owner.id)
    assert row is not None
    assert (closing.to_be_ended(row), closing.tasks_to_end()) == (1, [owner.id])
    listings.move(made, states.CLOSED, 60, reason=states.CANCELLED)
    assert (closing.to_be_ended(row), closing.tasks_to_end()) == (0, [])


def test_a_late_sale_is_noted_only_of_a_listing_that_its_signature_outlived(database: str) -> None:
    first = live(task())
    listings.note_late_sale(first, SoldFor(100_000, "late"), 50)
    assert stored(first).state == states.LIVE
    listings.move(first, states.CLOSED, 60, reason=states.GONE)
    listings.note_late_sale(first, SoldFor(100_000, "late"), 70)
    assert (stored(first).close_reason, stored(first).sale_id) == (states.GONE, None)
    states.Listing.update(close_reason=states.LOST).where(states.Listing.id == first.id).execute()
    listings.note_late_sale(first, SoldFor(100_000, "late", sold_ms=10**15), 80)
    assert (stored(first).close_reason, stored(first).sale_id, stored(first).sold_ms) == (states.SOLD, "late", 80)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[str]:
    url = f"sqlite:///{tmp_path / 'bidkeeper.db'}"
    base.connect(url)
    schema.migrate()
    yield url
    base.close()


def new_withdrawal(number: int, *coins: str, user: int = 1) -> NewWithdrawal:
    return NewWithdrawal(f"{number:040x}", user, "payment", "bc1q", "{}", coins or (f"{number}",))


def test_coins_are_set_aside_until_it_is_over(database: str) -> None:
    first = withdrawals.reserve(new_withdrawal(1, "a", "b"), 100)
    with pytest.raises(CoinsTaken):
        withdrawals.reserve(new_withdrawal(2, "b", "c"), 100)
    assert withdrawals.taken_coins(1) == {"a", "b"}
    assert withdrawals.taken_coins(2) == set()
    withdrawals.reserve(new_withdrawal(3, "b", user=2), 100)  # another user's coins are others
    withdrawals.move(first, "refused", 101, "no")
    assert withdrawals.reserve(new_withdrawal(2, "b", "c"), 102).state == "reserved"


def test_one_intent_is_one_row(database: str) -> None:
    withdrawals.reserve(new_withdrawal(1), 100)
    with pytest.raises(Exception, match="UNIQUE"):
        withdrawals.reserve(new_withdrawal(1, "other"), 100)


@pytest.mark.parametrize("state", WITHDRAWAL_LIFE.states)
@pytest.mark.parametrize("to", WITHDRAWAL_LIFE.states)
def test_only_legal_moves(database: str, state: str, to: str) -> None:
    row = withdrawals.reserve(new_withdrawal(1), 100)
    Withdrawal.update(state=state).execute()
    row.state = state
    if to in WITHDRAWAL_LIFE.moves.get(state, ()):
        assert withdrawals.move(row, to, 101, "why")
        assert (withdrawals.again(row).state, row.state, row.reason) == (to, to, "why")
    else:
        with pytest.raises(ValueError, match="cannot go"):
            withdrawals.move(row, to, 101)


def test_a_row_that_is_elsewhere_is_left_alone(database: str) -> None:
    row = withdrawals.reserve(new_withdrawal(1), 100)
    stale = withdrawals.again(row)
    assert withdrawals.signed(row, "ab" * 32, 5, 6, 101)
    assert not withdrawals.signed(stale, "cd" * 32, 7, 8, 102)
    found = withdrawals.again(row)
    assert (found.txid, found.sent_sats, found.fee_sats, stale.state) == ("ab" * 32, 5, 6, "reserved")


def test_what_is_open(database: str) -> None:
    rows = [withdrawals.reserve(new_withdrawal(number), 100 + number) for number in range(4)]
    withdrawals.move(rows[0], "refused", 200)
    withdrawals.signed(rows[1], "ab" * 32, 1, 1, 200)
    assert [row.id for row in withdrawals.open_of(1)] == [row.id for row in rows[1:]]
    assert [row.id for row in withdrawals.all_open(230, 30)] == [row.id for row in rows[2:]]
    assert [row.id for row in withdrawals.all_open(50, 30)] == [row.id for row in rows[1:]], "the clock was set back"
    assert [row.id for row in withdrawals.newest(1, 2)] == [rows[3].id, rows[2].id]
    assert [row.is_open for row in withdrawals.newest(1, 9)] == [True, True, True, False]


def test_long_reasons_are_cut(database: str) -> None:
    row = withdrawals.reserve(new_withdrawal(1), 100)
    withdrawals.move(row, "refused", 101, "x" * 1000)
    assert len(withdrawals.again(row).reason or "") == 400


def test_of_many_at_once_one_gets_the_coins(database: str) -> None:
    def try_it(number: int) -> bool:
        with base.database.connection_context():
            try:
                withdrawals.reserve(new_withdrawal(number, "a"), 100)
            except CoinsTaken:
                return False
            return True

    base.close()
    with ThreadPoolExecutor(8) as threads:
        got: list[Any] = list(threads.map(try_it, range(24)))
    base.connect(database)
    assert got.count(True) == 1
