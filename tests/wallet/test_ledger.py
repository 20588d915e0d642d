"""The signer's own file: what it gives back, what it sums up, and that older files still open."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shapes import replace
from tests.worlds.signer import GRANT, START_MS
from wallet.policy import RecentSignatures, UnexpiredBids
from wallet.protocol import ControlState
from wallet.signer.ledger import HOUR_MS, MINUTE_MS, BidSignature, Ledger, ListingSignature

OUTPOINT = "ab" * 32 + ":0"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger(tmp_path / "signer.db")
    yield opened
    opened.close()


def bid(intent: str, created_ms: int, price: int = 100, task: int = 1, user: str = "a") -> BidSignature:
    return BidSignature(intent, task, 5, user, price, created_ms + HOUR_MS, created_ms, "text", "ff", "signature")


def listed(intent: str, created_ms: int, price: int, outpoint: str = OUTPOINT, task: int = 1) -> ListingSignature:
    return ListingSignature(intent, task, 5, "a", "inscription", outpoint, price, created_ms, "ff", ("one", "two"))


def test_what_was_put_comes_back(ledger: Ledger) -> None:
    ledger.signed.put_bid(bid("1", START_MS))
    ledger.signed.put_listing(listed("2", START_MS, 300))
    assert ledger.signed.bid("1") == bid("1", START_MS)
    assert ledger.signed.listing("2") == listed("2", START_MS, 300)
    assert ledger.signed.bid("2") is None and ledger.signed.listing("1") is None


def test_an_intent_is_put_once(ledger: Ledger) -> None:
    ledger.signed.put_bid(bid("1", START_MS))
    ledger.signed.put_listing(listed("2", START_MS, 300))
    with pytest.raises(sqlite3.IntegrityError):
        ledger.signed.put_bid(bid("1", START_MS))
    with pytest.raises(sqlite3.IntegrityError):
        ledger.signed.put_listing(listed("2", START_MS, 300))


def test_grants_come_back_with_what_became_of_them(ledger: Ledger) -> None:
    assert ledger.grant_of(17) is None
    ledger.put_grant(GRANT, "hash")
    held = ledger.grant_of(17)
    assert held and (held.grant, held.secret_hash, held.can_place, held.withdrawn) == (GRANT, "hash", True, False)
    ledger.revoke_place(17, 4)
    assert ledger.grant_of(17) == held
    ledger.revoke_place(17, 5)
    held = ledger.grant_of(17)
    assert held and (held.can_place, held.withdrawn) == (False, False)
    ledger.end_rights(17, 4)
    assert ledger.grant_of(17) == held
    ledger.end_rights(17, 6)
    held = ledger.grant_of(17)
    assert held and (held.can_place, held.withdrawn) == (False, True)


def test_a_withdrawn_grant_may_place_nothing_either(ledger: Ledger) -> None:
    ledger.put_grant(GRANT, "hash")
    ledger.end_rights(17, 5)
    held = ledger.grant_of(17)
    assert held and (held.can_place, held.withdrawn) == (False, True)


def test_the_highest_token_never_falls(ledger: Ledger) -> None:
    assert ledger.highest_token(17) == 0
    ledger.put_grant(GRANT, "hash")
    assert ledger.highest_token(17) == 5
    for seen, highest in ((5, 5), (3, 5), (6, 6)):
        ledger.see_token(17, seen)
        assert ledger.highest_token(17) == highest
    ledger.put_grant(GRANT, "hash")
    assert ledger.highest_token(17) == 6
    assert ledger.highest_token(18) == 0


def test_a_minute_and_an_hour() -> None:
    assert (MINUTE_MS, HOUR_MS) == (60_000, 3_600_000)


def test_sums_of_late_are_of_task_user_and_all(ledger: Ledger) -> None:
    now = START_MS
    for number, (age, price, task, user) in enumerate(
        [
            (0, 1, 1, "a"),
            (MINUTE_MS - 1, 10, 1, "a"),
            (MINUTE_MS, 100, 2, "a"),
            (HOUR_MS - 1, 1_000, 1, "b"),
            (HOUR_MS, 10_000, 1, "a"),
            (-HOUR_MS, 100_000, 2, "b"),
        ]
    ):
        ledger.signed.put_bid(bid(str(number), now - age, price, task, user))
    ledger.signed.put_listing(listed("l", now - 1, 7, task=1))
    ledger.signed.put_listing(listed("m", now - HOUR_MS, 7, task=1))
    assert ledger.signed.of_late(1, "a", now) == {
        "task": RecentSignatures(3, 4, 1_011),
        "user": RecentSignatures(3, 4, 111),
        "host": RecentSignatures(4, 6, 101_111),
    }
    nobody = ledger.signed.of_late(9, "c", now + 3 * HOUR_MS)
    assert set(nobody.values()) == {RecentSignatures(0, 0, 0)}


def test_outstanding_ends_with_the_signed_expiry(ledger: Ledger) -> None:
    ledger.signed.put_bid(bid("1", START_MS, 100, user="a"))
    ledger.signed.put_bid(bid("2", START_MS + 1, 50, user="b"))
    end = START_MS + HOUR_MS
    found = [ledger.signed.unexpired(1, "a", now)["host"] for now in (end - 1, end, end + 1)]
    assert found == [UnexpiredBids(150, end), UnexpiredBids(50, end + 1), UnexpiredBids(0, None)]
    assert [ledger.signed.unexpired(1, user, end - 1)["user"].sats for user in ("a", "b", "c")] == [100, 50, 0]


def test_what_is_unexpired_is_of_task_user_and_all(ledger: Ledger) -> None:
    for number, (after, price, task, user) in enumerate(
        [(0, 1, 1, "a"), (5, 10, 1, "b"), (7, 100, 2, "a"), (3, 1_000, 2, "b")]
    ):
        ledger.signed.put_bid(bid(str(number), START_MS - HOUR_MS + after, price, task, user))
    assert ledger.signed.unexpired(1, "a", START_MS) == {
        "task": UnexpiredBids(10, START_MS + 5),
        "user": UnexpiredBids(100, START_MS + 7),
        "host": UnexpiredBids(1_110, START_MS + 3),
    }


def test_a_grant_of_before_tasks_had_a_ceiling_has_its_users(ledger: Ledger) -> None:
    ledger.put_grant(replace(GRANT, outstanding_sats=7, outstanding_task_sats=3), "hash")
    held = ledger.grant_of(17)
    assert held and (held.grant.outstanding_sats, held.grant.outstanding_task_sats) == (7, 3)
    ledger._database.execute("UPDATE grants SET terms = json_remove(terms, '$.outstanding_task_sats')")
    held = ledger.grant_of(17)
    assert held and (held.grant.outstanding_sats, held.grant.outstanding_task_sats) == (7, 7)


def test_highest_and_lowest_listing_of_an_output(ledger: Ledger) -> None:
    for number, (price, age) in enumerate([(500, HOUR_MS), (300, HOUR_MS - 1), (400, 0), (200, 2 * HOUR_MS)]):
        ledger.signed.put_listing(listed(str(number), START_MS - age, price))
    ledger.signed.put_listing(listed("other", START_MS, 900, "cd" * 32 + ":1"))
    assert ledger.signed.highest_listing(OUTPOINT, START_MS) == 400
    assert ledger.signed.highest_listing(OUTPOINT, START_MS - 1) == 500
    assert ledger.signed.highest_listing(OUTPOINT, START_MS + 2 * HOUR_MS) == 0
    assert ledger.signed.lowest_listing(OUTPOINT) == 200
    assert ledger.signed.lowest_listing("ef" * 32 + ":0") is None


def test_controls_keep_what_restricts(ledger: Ledger) -> None:
    for state in ("halt", "reduce"):
        ledger.put_control(ControlState("task", "17", state))  # type: ignore[arg-type]
    assert ledger.controls() == [ControlState("task", "17", "reduce")]
    assert ledger.control_of("task", "17") == "reduce"
    assert ledger.control_of("user", "17") == ledger.control_of("task", "1") == "run"
    ledger.put_control(ControlState("task", "17", "run"))
    assert ledger.controls() == []


def test_a_transaction_is_all_or_nothing(ledger: Ledger) -> None:
    with pytest.raises(KeyError), ledger.transaction():
        ledger.see_token(17, 9)
        raise KeyError
    assert ledger.highest_token(17) == 0
    with ledger.transaction():
        ledger.see_token(17, 9)
    assert ledger.highest_token(17) == 9


def test_a_transaction_that_the_database_gave_up_is_over(ledger: Ledger) -> None:
    """SQLite rolls back by itself when the disk is full; the first error is the one to be told."""
    with pytest.raises(OSError, match="full"), ledger.transaction():
        ledger._database.execute("ROLLBACK")
        raise OSError("full")
    with ledger.transaction():
        ledger.see_token(17, 1)


def test_nobody_else_reads_the_file_and_what_is_committed_is_on_disk(tmp_path: Path, ledger: Ledger) -> None:
    assert (tmp_path / "signer.db").stat().st_mode & 0o777 == 0o600
    settings = {
        name: ledger._database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
    }
    assert settings == {"journal_mode": "wal", "synchronous": 2}


def test_a_closed_ledger_is_closed(tmp_path: Path) -> None:
    closed = Ledger(tmp_path / "closed.db")
    closed.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        closed.highest_token(17)


def test_a_file_from_before_listings_opens(tmp_path: Path) -> None:
    """Grants were stored without an inscription then."""
    former = Ledger(tmp_path / "old.db")
    former.put_grant(GRANT, "hash")
    former._database.execute("UPDATE grants SET terms = json_remove(terms, '$.inscription_id', '$.min_price_sats')")
    former._database.executescript("DROP TABLE listings; DROP INDEX signatures_created;")
    former.close()
    opened = Ledger(tmp_path / "old.db")
    held = opened.grant_of(17)
    assert held and held.grant == GRANT
    assert opened.signed.lowest_listing(OUTPOINT) is None
    opened.close()


def test_expiries_add_up_what_has_expired_by_each_and_join_those_within_seconds(ledger: Ledger) -> None:
    for number, (after_ms, price, task, user) in enumerate(
        [(0, 1, 1, "a"), (4_999, 10, 1, "a"), (5_000, 100, 1, "a"), (60_000, 1_000, 2, "a"), (90_000, 10_000, 3, "b")]
    ):
        ledger.signed.put_bid(bid(str(number), START_MS + after_ms, price, task, user))
    end = START_MS + HOUR_MS

    assert ledger.signed.expiries(1, "a", START_MS) == {
        "task": ((end + 4_999, end + 5_000), (11, 111)),
        "user": ((end + 4_999, end + 5_000, end + 60_000), (11, 111, 1_111)),
        "host": ((end + 4_999, end + 5_000, end + 60_000, end + 90_000), (11, 111, 1_111, 11_111)),
    }
    assert ledger.signed.expiries(1, "a", end + 4_999)["task"] == ((end + 5_000,), (100,))
    assert ledger.signed.expiries(9, "c", START_MS)["task"] == ((), ())
