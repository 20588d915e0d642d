"""The start on a damaged database, and the remedies for it: each command of a remedy is run, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from models import schema
from models.database import base, damage
from models.database.damage import Damage, NotRead
from models.venue_memory import WalletContents
from tests import postgresql
from tests.models.test_damage import ROWS, backup, file, fill, fill_more, flip, page_of_rows, rows_in, withdraw
from tests.needs import need_root

pytestmark = postgresql.left_out("its files are its server's")
__all__ = ["file"]  # the fixture


def save() -> str:
    """Saves a removed database as the manager does; returns the fault of the copy."""
    assert base.look_for_damage() is not None
    copy = base.database.obj.save_lost()
    assert copy is not None, "the database is at its path"
    return str(copy())


def run_first_command(words: str) -> None:
    subprocess.run(["sh", "-c", words.split("`")[1]], check=True)


def test_a_removed_database_is_copied_while_it_is_open(file: Path) -> None:
    fill(5)
    base.look_for_damage()
    file.unlink()
    assert save() == ""
    base.close()
    assert not list(file.parent.glob("*.tmp*"))
    words = damage.remedy(str(file))
    assert words.startswith("the manager has saved a copy: ")
    run_first_command(words)
    assert rows_in(file) == 5
    assert damage.fault_at_start(str(file)) == ""
    assert damage.known(str(file)) is None


def saved_at_some_try() -> str:
    """Saves as the manager does, which tries again at its next look where others wrote too often meanwhile."""
    ends_s = time.monotonic() + 60
    while True:
        try:
            return save()
        except BlockingIOError:
            assert time.monotonic() < ends_s


def test_a_removed_database_is_copied_whole_while_others_write_to_it(file: Path) -> None:
    """SQLite overwrites its WAL meanwhile. Each writer's commit has as many rows in one table as in the other."""
    base.look_for_damage()
    writer, is_over = sqlite3.connect(file, check_same_thread=False, isolation_level=None), threading.Event()
    writer.executescript("CREATE TABLE one (x); CREATE TABLE other (x); PRAGMA wal_autocheckpoint=50")

    def write() -> None:
        while not is_over.wait(0.01):
            writer.executescript(
                "BEGIN; INSERT INTO one VALUES (zeroblob(3000)); INSERT INTO other VALUES (zeroblob(3000)); COMMIT"
            )

    fill()
    file.unlink()
    writing = threading.Thread(target=write)
    writing.start()
    try:
        faults = [saved_at_some_try() for _ in range(5)]
    finally:
        is_over.set()
        writing.join()
        writer.close()
    assert faults == [""] * 5
    for copy in file.parent.glob("*.saved*"):
        with closing(sqlite3.connect(copy)) as saved:
            one, other = (saved.execute(f"SELECT count(*) FROM {table}").fetchone() for table in ("one", "other"))
        assert one == other
        assert rows_in(copy) == ROWS


def test_a_second_removal_saves_the_database_again_and_keeps_the_former_copy(file: Path) -> None:
    for rows in (5, 7):
        fill_more(rows)
        base.look_for_damage()
        file.rename(file.with_name("elsewhere"))
        assert save() == ""
        file.with_name("elsewhere").rename(file)
        assert base.database.obj.save_lost() is None
    assert sorted(rows_in(path) for path in file.parent.glob(f"{file.name}.saved*")) == [5, 7]
    assert rows_in(file.with_name(f"{file.name}.saved")) == 7


def test_a_copy_that_was_saved_before_a_check_is_kept_and_not_offered(file: Path) -> None:
    fill_more(5)
    base.look_for_damage()
    file.rename(file.with_name("elsewhere"))
    assert save() == ""
    file.with_name("elsewhere").rename(file)
    base.close()
    assert damage.fault_at_start(str(file)) == ""
    damage.remove_note(str(file))
    [kept] = file.parent.glob(f"{file.name}.saved-*")
    assert rows_in(kept) == 5
    assert not file.with_name(f"{file.name}.saved").exists()


@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize("content", ["empty", "torn", "older"])
def test_a_copy_that_is_empty_torn_or_older_than_the_note_is_not_offered(
    file: Path, content: str, is_lost: bool
) -> None:
    fill(20)
    kept = backup(file, "1", 0)
    base.close()
    saved = file.with_name(f"{file.name}.saved")
    damage.write_note(str(file), Damage("x", is_lost=is_lost))
    shutil.copyfile(kept, saved)
    file.unlink()
    assert damage.remedy(str(file)).startswith("the manager has saved") == is_lost
    if content == "empty":
        saved.write_bytes(b"")
    elif content == "torn":
        flip(saved, 3)
    else:
        os.utime(saved, (damage.note_of(str(file)).stat().st_mtime - 60,) * 2)
    assert damage.remedy(str(file)).startswith(f"the newest backup is {kept}")


def test_the_remedy_names_the_newest_intact_backup_and_its_command_restores_it(file: Path) -> None:
    assert "no intact backup" in damage.remedy(str(file))
    fill()
    backup(file, "1", 300)
    good, broken = backup(file, "2", 200), backup(file, "3", 100)
    flip(broken, page_of_rows(broken))
    fill_again = WalletContents.insert(address="bc1qnew", items="[]", fetched_ms=0)
    fill_again.execute()
    base.close()
    flip(file, page_of_rows(file))
    assert damage.fault_at_start(str(file)) != ""

    words = damage.remedy(str(file))
    assert f"the newest backup is {good}" in words
    run_first_command(words)
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


def test_the_remedy_for_a_database_of_which_nothing_is_left_restores_the_backup(file: Path) -> None:
    fill_more(5)
    backup(file, "1", 0)
    base.close()
    file.unlink()
    assert not list(file.parent.glob(f"{file.name}*"))
    run_first_command(damage.remedy(str(file)))
    assert rows_in(file) == 5


def test_a_database_of_no_bytes_counts_as_missing(file: Path) -> None:
    shutil.copy(f"{file}-wal", file.with_name("kept"))
    base.close()
    file.write_bytes(b"")
    assert damage.fault_at_start(str(file)) == "", "an empty file alone is a new installation"
    file.with_name("kept").rename(f"{file}-wal")
    assert damage.fault_at_start(str(file)) == "the file is empty, and files that belong to it are there"


@pytest.mark.parametrize("is_short", [True, False])
def test_a_database_that_a_full_disk_keeps_closed_is_not_damaged_and_not_checked(
    file: Path, monkeypatch: pytest.MonkeyPatch, is_short: bool
) -> None:
    """A restore would not help there, and what was committed is intact. The disk's reserve is freed first."""
    tried = []

    def unreadable(*_: object, **__: object) -> None:
        tried.append(file.with_name("reserve").exists())
        raise sqlite3.OperationalError("disk I/O error")

    file.with_name("reserve").touch()
    monkeypatch.setattr(damage, "_opened", unreadable)
    monkeypatch.setattr(damage, "is_short", lambda _: is_short)
    if is_short:
        with pytest.raises(NotRead, match="could not be checked: disk I/O error, and the disk is full"):
            damage.fault(str(file))
        assert tried == [True, False]
    else:
        assert damage.fault(str(file)) == "disk I/O error"


def test_a_check_leaves_the_wal_as_it_is(file: Path) -> None:
    fill(20)
    for end in ("", "-wal"):
        shutil.copy(f"{file}{end}", file.with_name(f"copy{end}"))
    copy, wal = file.with_name("copy"), file.with_name("copy-wal")
    before = copy.read_bytes(), wal.read_bytes()
    assert damage.fault_at_start(str(copy)) == ""
    assert (copy.read_bytes(), wal.read_bytes()) == before


def test_a_backup_that_replaced_an_open_database_is_not_mixed_with_its_wal(file: Path) -> None:
    fill_more(5)
    made = backup(file, "1", 0)
    base.look_for_damage()
    fill_more(18)
    made.replace(file)
    assert base.look_for_damage() is not None
    base.close()
    assert Path(f"{file}-wal").stat().st_size > 0
    fault = damage.fault_at_start(str(file))
    assert fault == "bidkeeper.db was replaced, or bidkeeper.db-wal was: one does not belong to the other"
    run_first_command(damage.remedy(str(file)))
    assert damage.fault_at_start(str(file)) == ""
    assert rows_in(file) == 5
    [aside] = file.parent.glob("damaged-*")
    assert (aside / f"{file.name}-wal").exists(), "nothing is lost"


def test_the_remedy_for_a_replaced_database_offers_what_the_former_one_held_too(file: Path) -> None:
    fill_more(5)
    made = backup(file, "1", 0)
    base.look_for_damage()
    fill_more(18)
    made.replace(file)
    assert save() == ""
    base.close()
    words = damage.remedy(str(file))
    assert "or, to use what the former bidkeeper.db held, run `" in words
    subprocess.run(["sh", "-c", words.split("`")[3]], check=True)
    assert damage.fault_at_start(str(file)) == ""
    assert rows_in(file) == 18


def test_a_former_wal_that_was_put_in_place_of_an_open_one_is_not_replayed(file: Path) -> None:
    fill_more(5)
    base.look_for_damage()
    copy = file.with_name("copy")
    shutil.copy(f"{file}-wal", copy)
    copy.replace(f"{file}-wal")
    fill_more(18)
    assert base.look_for_damage() is not None
    assert base.database.obj.save_lost() is None
    shutil.copy(f"{file}-wal", copy)
    base.close()
    copy.replace(f"{file}-wal")
    assert "one does not belong to the other" in damage.fault_at_start(str(file))
    run_first_command(damage.remedy(str(file)))
    assert damage.fault_at_start(str(file)) == ""
    assert rows_in(file) == 18


def test_a_database_that_was_put_back_with_its_wal_is_accepted(file: Path) -> None:
    fill_more(5)
    base.look_for_damage()
    file.rename(file.with_name("elsewhere"))
    assert base.look_for_damage() is not None
    file.with_name("elsewhere").rename(file)
    shutil.copytree(file.parent, file.parent / "crashed")
    for path in (file, Path(f"{file}-wal")):
        assert path.stat().st_size > 0
    assert damage.fault_at_start(str(file)) == ""


def test_the_remedy_for_a_symlink_puts_the_files_aside_to_which_it_leads(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real" / "x.db", tmp_path / "bidkeeper.db"
    link.symlink_to("real/x.db")
    base.connect(f"sqlite:///{link}")
    schema.migrate()
    withdraw()
    fill_more(5)
    made = backup(link, "1", 0)
    base.close()
    flip(real, 3)
    assert damage.fault_at_start(str(link)) != ""
    words = damage.remedy(str(link))
    assert f"the newest backup is {made}" in words
    run_first_command(words)
    assert damage.fault_at_start(str(link)) == ""
    assert (rows_in(real), link.is_symlink()) == (5, True)


@pytest.mark.parametrize("is_missing", [False, True])
def test_the_remedy_of_root_leaves_the_database_to_its_owner(file: Path, is_missing: bool) -> None:
    need_root("give a file to another user")
    fill_more(5)
    kept = backup(file, "1", 0)
    kept.chmod(0o600)
    base.close()
    os.chown(file, 1000, 1000)
    file.chmod(0o640)
    damage.write_note(str(file), Damage("x"))
    if is_missing:
        os.chown(damage.note_of(str(file)), 1000, 1000)
        damage.note_of(str(file)).chmod(0o640)
        file.unlink()
    run_first_command(damage.remedy(str(file)))
    found = file.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (1000, 1000, 0o640)
