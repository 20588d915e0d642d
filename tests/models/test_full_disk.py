"""The reserve of a full disk, which the first write that needs it frees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from peewee import OperationalError

from core import files
from models import schema
from models.database import base
from models.database.base import transaction
from models.venue_memory import WalletContents
from tests import postgresql
from tests.disks import fill, small_disk

pytestmark = postgresql.left_out("the database is another disk's")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path, 128 << 20) as mounted:
        base.connect(f"sqlite:///{mounted / 'bidkeeper.db'}")
        try:
            schema.migrate()
            base.database.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            yield mounted
        finally:
            base.close()


def write(number: int) -> None:
    WalletContents.insert(address=f"bc1q{number}", items="[]", fetched_ms=0).execute()


@pytest.mark.parametrize("is_transaction", [False, True])
def test_the_first_write_without_room_frees_the_reserve_and_succeeds(disk: Path, is_transaction: bool) -> None:
    files.make_reserve(disk)
    filler = fill(disk)
    if is_transaction:
        with transaction(durable=True):
            write(1)
    else:
        write(1)
    assert not (disk / files.RESERVE).exists()
    assert WalletContents.select().count() == 1
    filler.unlink()


def test_without_a_reserve_it_fails_and_leaves_the_database_usable(disk: Path) -> None:
    filler = fill(disk)
    for _ in range(2):
        with pytest.raises(OperationalError, match="full"), transaction(durable=True):
            write(1)
        with pytest.raises(OperationalError, match="full"):
            write(1)
    assert WalletContents.select().count() == 0
    filler.unlink()
    write(2)
    assert WalletContents.select().count() == 1
