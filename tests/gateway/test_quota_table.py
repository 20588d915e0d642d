"""A month's calls in the database, where another machine's gateway goes on from them. (`make test-postgresql`)"""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.quota_count import BLOCK, DAY, MONTH, QuotaCount, QuotaFile
from gateway.quota_table import QuotaTable
from tests import postgresql
from tests.clock import Clock
from tests.gateway.test_quota import NOVEMBER

pytestmark = postgresql.only


def counted(url: str, path: Path, *, calls: int = 0, key: str = "key") -> QuotaCount:
    count = QuotaCount(QuotaTable(url, QuotaFile(path)), "satflow", key, Clock(NOVEMBER))
    for _ in range(calls):
        count.count(7)
    return count


def used(count: QuotaCount) -> int:
    return count.use(MONTH, 1_000).used


def test_another_machines_gateway_goes_on_and_is_never_too_low(database: str, tmp_path: Path) -> None:
    counted(database, tmp_path / "a.json", calls=BLOCK + 3)
    found = counted(database, tmp_path / "b.json")
    assert BLOCK + 3 <= used(found) <= 2 * BLOCK + 3
    assert found.by_user(MONTH) == {7: BLOCK + 1}
    found.count()
    found.close()
    assert used(counted(database, tmp_path / "a.json")) == used(found)
    assert used(counted(database, tmp_path / "a.json", key="another")) == 0
    assert found.use(DAY, 1_000).used == used(found), "the day goes on, too"


def test_the_first_gateway_goes_on_from_the_file_that_it_had(database: str, tmp_path: Path) -> None:
    former = QuotaCount(QuotaFile(tmp_path / "a.json"), "satflow", "key", Clock(NOVEMBER))
    former.count()
    former.close()
    count = counted(database, tmp_path / "a.json", calls=1)
    assert used(count) == 2
    count.close()
    assert used(counted(database, tmp_path / "b.json")) == 2


def test_a_database_that_is_away_lets_calls_go_out(
    database: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = QuotaTable(database, QuotaFile(tmp_path / "a.json"))
    count = QuotaCount(table, "satflow", "key", Clock(NOVEMBER))
    table._url = f"postgresql:///nowhere?host={tmp_path}"
    count.count()
    assert used(count) == 1
    assert "failed to write down satflow's calls" in caplog.text
