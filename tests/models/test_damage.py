"""An SQLite database that is damaged, or whose files are removed while it is open: nothing new is reserved in it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from peewee import DatabaseError, OperationalError

from models import schema
from models.database import base, damage
from models.database.damage import Damage, Damaged, DatabaseAway
from models.ledger import withdrawals
from models.ledger.withdrawals import NewWithdrawal
from models.users import User
from models.venue_memory import WalletContents
from tests import postgresql
from tests.worlds.service import new_user

pytestmark = postgresql.left_out("its files are its server's")

ROWS = 2_000
SECONDS_OF_USE = 3.0


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


def page_of_rows(path: Path) -> int:
    """Returns a page in the file's second half that holds rows of `fill`, and not a part of an index."""
    content = path.read_bytes()
    numbers = range(len(content) // 4096 // 2, len(content) // 4096)
    return next(number for number in numbers if b"x" * 400 in content[number * 4096 : (number + 1) * 4096])


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
    assert base.database.obj.save_lost() is None
    assert rows_in(file) == 5


def rows_in(path: Path) -> int:
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as copy:
        return int(copy.execute("SELECT count(*) FROM wallet_contents").fetchone()[0])


def fill_more(rows: int) -> None:
    with base.transaction():
        for number in range(WalletContents.select().count(), rows):
            WalletContents.insert(address=f"bc1q{number}", items="[]", fetched_ms=0).execute()


def test_no_new_connection_is_made_while_a_file_is_lost(file: Path) -> None:
    Path(f"{file}-wal").unlink()
    assert base.look_for_damage() is not None
    with pytest.raises(DatabaseAway, match=r"wal was removed .* stop Bidkeeper, run `bidkeeper migrate`, and start"):
        base.connect(f"sqlite:///{file}")
    assert not Path(f"{file}-wal").exists()


def test_a_statement_that_meets_a_broken_page_leaves_a_note(file: Path) -> None:
    fill()
    base.close()
    flip(file, page_of_rows(file))
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
    flip(file, page_of_rows(file))
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


@pytest.fixture
def linked(tmp_path: Path) -> Iterator[Path]:
    """Yields the path of an open database whose directory is a symlink."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    path = tmp_path / "link" / "bidkeeper.db"
    base.connect(f"sqlite:///{path}")
    schema.migrate()
    yield path
    base.close()


def test_a_directory_that_was_swapped_for_a_copy_is_noticed(linked: Path) -> None:
    withdraw()
    real = linked.parent.resolve()
    real.rename(real.with_name("old"))
    shutil.copytree(real.with_name("old"), real)
    with pytest.raises(Damaged, match=r"bidkeeper\.db was removed or replaced"):
        withdraw()


def test_a_symlink_that_leads_elsewhere_is_noticed_and_one_that_stays_is_not(linked: Path) -> None:
    withdraw()
    withdraw()
    shutil.copytree(linked.parent, linked.parent.with_name("other"))
    linked.parent.unlink()
    linked.parent.symlink_to("other")
    with pytest.raises(Damaged, match=r"bidkeeper\.db was removed or replaced"):
        withdraw()


def test_a_database_without_a_wal_has_one_file_to_lose(file: Path) -> None:
    base.database.execute_sql("PRAGMA journal_mode=delete")
    withdraw()
    assert base.damage() is None
    replace(file)
    with pytest.raises(Damaged, match=r"bidkeeper\.db was removed or replaced"):
        withdraw()


@pytest.mark.slow
def test_files_of_a_database_in_use_are_not_taken_for_lost(file: Path) -> None:
    """Others open it, write, fold the WAL, close, back up and rebuild it meanwhile."""
    is_over = threading.Event()
    code = """
import os, sqlite3, sys
path, kind = sys.argv[1:]
while os.getppid() == int(os.environ["PARENT"]):
    connection = sqlite3.connect(path, timeout=30, isolation_level=None)
    if kind == "write":
        connection.execute("INSERT OR REPLACE INTO wallet_contents VALUES (?, '[]', 0)", [os.urandom(4).hex()])
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    else:
        with sqlite3.connect(path + ".copy") as copy:
            connection.backup(copy)
        copy.close()
        connection.execute("VACUUM")
    connection.close()
"""

    def read_pages() -> None:
        while not is_over.is_set():
            base.database.obj.fault()

    others = [
        subprocess.Popen([sys.executable, "-c", code, file, kind], env={"PARENT": str(os.getpid())})
        for kind in ("write", "write", "backup")
    ]
    reader = threading.Thread(target=read_pages)
    reader.start()
    try:
        ends, looks = time.monotonic() + SECONDS_OF_USE, 0
        while time.monotonic() < ends:
            looks += 1
            if looks % 50 == 0:
                base.close()
                base.connect(f"sqlite:///{file}")
            assert base.look_for_damage() is None
    finally:
        is_over.set()
        reader.join()
        for each in others:
            each.kill()
            each.wait()
    assert looks > 100


def test_the_check_of_files_lists_descriptors_once_a_connection(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = []
    real = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: listed.append(path) or real(path))
    for _ in range(3):
        assert base.look_for_damage() is None
    assert listed == ["/proc/self/fd"]
    base.close()
    base.connect(f"sqlite:///{file}")
    assert base.look_for_damage() is None
    assert len(listed) == 2, "a new connection has other descriptors"


def test_a_check_of_files_that_fails_raises_an_error_of_the_database(file: Path) -> None:
    base.database.connection().set_progress_handler(lambda: 1, 1)  # SQLite interrupts each statement
    with pytest.raises(OperationalError, match="interrupted"):
        base.look_for_damage()


def test_a_database_in_memory_has_no_files_to_lose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        base.connect("sqlite:///:memory:")
        schema.migrate()
        withdraw()
        assert base.damage() is None
        base.close()
    assert list(tmp_path.iterdir()) == []
