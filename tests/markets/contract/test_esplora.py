"""The adapter of mempool servers, at the practice market's mempool and at its esplora."""

from __future__ import annotations

from decimal import Decimal

import pytest

from markets.mempool import Mempool
from tests.markets.contract.gate import Practice

PAYMENT = "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"


@pytest.mark.parametrize(
    ("path", "rates"), [("mempool", (12, 8, 5, 3, 1)), ("esplora", ("12.5", "7.75", "4.5", "2.5", "1.0"))]
)
def test_every_question_is_answered_by_both(practice: Practice, path: str, rates: tuple[str, ...]) -> None:
    server = Mempool(f"http://127.0.0.1:{practice.port}/{path}")
    fees = server.fees(7)
    assert (fees.fastest, fees.half_hour, fees.hour, fees.economy, fees.minimum) == tuple(map(Decimal, rates))
    coins = server.coins(PAYMENT)
    assert coins and server.balance(PAYMENT) == sum(coin.value for coin in coins)
    txid = coins[0].outpoint.partition(":")[0]
    assert server.transaction(txid) and server.look_up(txid) is server.confirmation(txid).is_in_block
    assert not server.spending(coins[0].outpoint).is_spent
    assert server.tip_height() > 0
