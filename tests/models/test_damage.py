"""An SQLite database that is damaged, or whose files are removed while it is open: nothing new is reserved in it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from peewee import DatabaseError

from models import base, schema
from models.database import damage
from models.database.damage import Damage
from models.database.errors import Damaged, DatabaseAway
from models.inscriptions import WalletContents
from models.ledger import withdrawals
from models.ledger.withdrawals import NewWithdrawal
from models.users import User
from tests import postgresql
from tests.server.api import new_user

pytestmark = postgresql.left_out("its files are its server's")

ROWS = 2_000


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "bidkeeper.db"
    base.connect(f"sqlite:///{path}")
    schema.migrate()
    yield path
    base.close()


def fill(rows: int = ROWS) -> None:
    with base.transaction():
        for number in range(rows):
            WalletContents.insert(address=f"bc1q{number}", items="x" * 400, fetched_ms=0).execute()


def flip(path: Path, page: int) -> None:
    """Changes the first bytes of a page, those that say what kind of page it is."""
    with path.open("r+b") as database:
        database.seek(page * 4096)
        database.write(b"\xff\xff\xff\xff")


def pages(path: Path) -> int:
    return path.stat().st_size // 4096


def withdraw() -> None:
    user = User.get_or_none() or new_user("bc1quser")
    new = NewWithdrawal(f"intent-{os.urandom(4).hex()}", user.id, "taker", "bc1q", "{}", ())
    withdrawals.reserve(new, 0)


def remove(path: Path) -> None:
    path.unlink()


def replace(path: Path) -> None:
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    copy.replace(path)


def move(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


@pytest.mark.parametrize("lose", [remove, replace, move])
@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
def test_nothing_is_reserved_once_a_file_is_lost(end: str, lose: Callable[[Path], None], file: Path) -> None:
    withdraw()
    lose(Path(f"{file}{end}"))
    with pytest.raises(Damaged, match=f"bidkeeper.db{end} was (removed|replaced|moved)"):
        withdraw()
    known = base.damage()
    assert known is not None
    assert known.is_lost
    assert damage.note_of(str(file)).exists(), "other programs know it, too"


@pytest.mark.parametrize("lose", [remove, replace, move])
def test_commits_to_a_removed_wal_are_saved_in_the_database(lose: Callable[[Path], None], file: Path) -> None:
    lose(Path(f"{file}-wal"))
    fill(5)
    assert base.look_for_damage() is not None
    assert base.database.obj.save_lost() == ""
    with closing(sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)) as copy:
        assert copy.execute("SELECT count(*) FROM wallet_contents").fetchone() == (5,)


def test_a_removed_database_is_copied_while_it_is_open(file: Path) -> None:
    fill(5)
    file.unlink()
    assert base.look_for_damage() is not None
    saved = base.database.obj.save_lost()
    with closing(sqlite3.connect(saved)) as copy:
        assert copy.execute("SELECT count(*) FROM wallet_contents").fetchone() == (5,)
    assert base.database.obj.save_lost() == "", "one copy is enough"
    base.close()
    words = damage.remedy(str(file))
    assert words.startswith("the manager has saved a copy: ")
    subprocess.run(["sh", "-c", words.split("`")[1]], check=True)
    assert damage.fault_at_start(str(file)) == ""
    assert damage.known(str(file)) is None


def test_no_new_connection_is_made_while_a_file_is_lost(file: Path) -> None:
    Path(f"{file}-wal").unlink()
    assert base.look_for_damage() is not None
    with pytest.raises(DatabaseAway, match=r"wal was removed .* stop Bidkeeper, run `bidkeeper migrate`, and start"):
        base.connect(f"sqlite:///{file}")
    assert not Path(f"{file}-wal").exists()


def test_a_statement_that_meets_a_broken_page_leaves_a_note(file: Path) -> None:
    fill()
    base.close()
    flip(file, pages(file) // 2)
    base.connect(f"sqlite:///{file}")
    with pytest.raises(DatabaseError):
        list(WalletContents.select())
        WalletContents.update(fetched_ms=1).execute()
    assert base.damage() == Damage("database disk image is malformed")
    with pytest.raises(Damaged, match="malformed"):
        withdraw()


def test_a_broken_page_that_nothing_reads_is_found_by_a_reading_of_all(file: Path) -> None:
    fill()
    assert base.database.obj.fault() == ""
    base.close()
    flip(file, pages(file) // 2)
    base.connect(f"sqlite:///{file}")
    withdraw()
    assert base.database.obj.fault() != ""


def test_a_note_that_cannot_be_written_counts_all_the_same(file: Path) -> None:
    damage.note_of(str(file)).mkdir()
    damage.note_of(str(file)).rmdir()
    with pytest.MonkeyPatch.context() as full:
        full.setattr(Path, "write_text", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        damage.write_note(str(file), Damage("x"))
    assert base.damage() == Damage("x")
    damage.remove_note(str(file))
    assert base.damage() is None


def backup(file: Path, name: str, age_s: int) -> Path:
    made = file.parent / damage.BACKUPS / name / file.name
    made.parent.mkdir(parents=True)
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(made)) as target:
        source.backup(target)
    os.utime(made, (made.stat().st_mtime - age_s,) * 2)
    return made


def test_the_remedy_names_the_newest_intact_backup_and_its_command_restores_it(file: Path) -> None:
    assert "no intact backup" in damage.remedy(str(file))
    fill()
    backup(file, "1", 300)
    good, broken = backup(file, "2", 200), backup(file, "3", 100)
    flip(broken, pages(broken) // 2)
    fill_again = WalletContents.insert(address="bc1qnew", items="[]", fetched_ms=0)
    fill_again.execute()
    base.close()
    flip(file, pages(file) // 2)
    assert damage.fault_at_start(str(file)) != ""

    words = damage.remedy(str(file))
    assert f"the newest backup is {good}" in words
    subprocess.run(["sh", "-c", words.split("`")[1]], check=True)
    assert damage.fault_at_start(str(file)) == ""
    base.connect(f"sqlite:///{file}")
    assert WalletContents.select().count() == ROWS
    [aside] = file.parent.glob("damaged-*")
    assert (aside / file.name).exists(), "nothing is lost"


def test_a_missing_database_whose_wal_is_there_is_not_made_anew(file: Path) -> None:
    assert damage.fault_at_start(str(file)) == ""
    shutil.copy(f"{file}-wal", file.with_name("kept"))
    base.close()
    file.unlink()
    assert damage.fault_at_start(str(file)) == "", "an empty directory is a new installation"
    file.with_name("kept").rename(f"{file}-wal")
    assert damage.fault_at_start(str(file)) == "the file is missing, and files that belong to it are there"


@pytest.mark.parametrize(("is_short", "found"), [(True, ""), (False, "disk I/O error")])
def test_a_database_that_a_full_disk_keeps_closed_is_not_damaged(
    file: Path, monkeypatch: pytest.MonkeyPatch, is_short: bool, found: str
) -> None:
    """A restore would not help there, and what was committed is intact."""

    def unreadable(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(damage, "_opened", unreadable)
    monkeypatch.setattr(damage, "is_short", lambda _: is_short)
    assert damage.fault(str(file)) == found


def test_a_database_in_memory_has_no_files_to_lose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        base.connect("sqlite:///:memory:")
        schema.migrate()
        withdraw()
        assert base.damage() is None
        base.close()
    assert list(tmp_path.iterdir()) == []
