"""Withdrawals as rows: coins are set aside once, and every move is a legal one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from models import schema
from models.database import base
from models.ledger import withdrawals
from models.ledger.states import WITHDRAWAL_LIFE
from models.ledger.withdrawals import CoinsTaken, NewWithdrawal, Withdrawal


@pytest.fixture
def database(tmp_path: Path) -> Iterator[str]:
    url = f"sqlite:///{tmp_path / 'bidkeeper.db'}"
    base.connect(url)
    schema.migrate()
    yield url
    base.close()


def new(number: int, *coins: str, user: int = 1) -> NewWithdrawal:
    return NewWithdrawal(f"{number:040x}", user, "payment", "bc1q", "{}", coins or (f"{number}",))


def test_coins_are_set_aside_until_it_is_over(database: str) -> None:
    first = withdrawals.reserve(new(1, "a", "b"), 100)
    with pytest.raises(CoinsTaken):
        withdrawals.reserve(new(2, "b", "c"), 100)
    assert withdrawals.taken_coins(1) == {"a", "b"}
    assert withdrawals.taken_coins(2) == set()
    withdrawals.reserve(new(3, "b", user=2), 100)  # another user's coins are others
    withdrawals.move(first, "refused", 101, "no")
    assert withdrawals.reserve(new(2, "b", "c"), 102).state == "reserved"


def test_one_intent_is_one_row(database: str) -> None:
    withdrawals.reserve(new(1), 100)
    with pytest.raises(Exception, match="UNIQUE"):
        withdrawals.reserve(new(1, "other"), 100)


@pytest.mark.parametrize("state", WITHDRAWAL_LIFE.states)
@pytest.mark.parametrize("to", WITHDRAWAL_LIFE.states)
def test_only_legal_moves(database: str, state: str, to: str) -> None:
    row = withdrawals.reserve(new(1), 100)
    Withdrawal.update(state=state).execute()
    row.state = state
    if to in WITHDRAWAL_LIFE.moves.get(state, ()):
        assert withdrawals.move(row, to, 101, "why")
        assert (withdrawals.again(row).state, row.state, row.reason) == (to, to, "why")
    else:
        with pytest.raises(ValueError, match="cannot go"):
            withdrawals.move(row, to, 101)


def test_a_row_that_is_elsewhere_is_left_alone(database: str) -> None:
    row = withdrawals.reserve(new(1), 100)
    stale = withdrawals.again(row)
    assert withdrawals.signed(row, "ab" * 32, 5, 6, 101)
    assert not withdrawals.signed(stale, "cd" * 32, 7, 8, 102)
    found = withdrawals.again(row)
    assert (found.txid, found.sent_sats, found.fee_sats, stale.state) == ("ab" * 32, 5, 6, "reserved")


def test_what_is_open(database: str) -> None:
    rows = [withdrawals.reserve(new(number), 100 + number) for number in range(4)]
    withdrawals.move(rows[0], "refused", 200)
    withdrawals.signed(rows[1], "ab" * 32, 1, 1, 200)
    assert [row.id for row in withdrawals.open_of(1)] == [row.id for row in rows[1:]]
    assert [row.id for row in withdrawals.all_open(230, 30)] == [row.id for row in rows[2:]]
    assert [row.id for row in withdrawals.all_open(50, 30)] == [row.id for row in rows[1:]], "the clock was set back"
    assert [row.id for row in withdrawals.newest(1, 2)] == [rows[3].id, rows[2].id]
    assert [row.is_open for row in withdrawals.newest(1, 9)] == [True, True, True, False]


def test_long_reasons_are_cut(database: str) -> None:
    row = withdrawals.reserve(new(1), 100)
    withdrawals.move(row, "refused", 101, "x" * 1000)
    assert len(withdrawals.again(row).reason or "") == 400


def test_of_many_at_once_one_gets_the_coins(database: str) -> None:
    def try_it(number: int) -> bool:
        with base.database.connection_context():
            try:
                withdrawals.reserve(new(number, "a"), 100)
            except CoinsTaken:
                return False
            return True

    base.close()
    with ThreadPoolExecutor(8) as threads:
        got: list[Any] = list(threads.map(try_it, range(24)))
    base.connect(database)
    assert got.count(True) == 1
