"""Small disks of a test's own, which it can fill to the last byte."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from peewee import OperationalError

from models.database.base import database
from tests import needs


@contextmanager
def small_disk(at: Path, size: int) -> Iterator[Path]:
    """Mounts a file system of `size` bytes, in memory, at the directory. Skips the test where it may not."""
    needs.need_root("mount a small disk")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(at)], capture_output=True)
    needs.skip("" if mounted.returncode == 0 else f"mounting is not allowed here: {mounted.stderr.decode()}")
    try:
        yield at
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)


def fill(disk: Path, leave: int = 0) -> Path:
    """Fills the disk until no more than `leave` bytes are free; returns the file that has it all."""
    filler = disk / "filler"
    handle = os.open(filler, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        for size in (1 << 20, 4096, 1):
            try:
                while _free_bytes(handle) >= leave + size or not leave:
                    os.write(handle, bytes(size))
            except OSError:
                continue
    finally:
        os.close(handle)
    return filler


def _free_bytes(handle: int) -> int:
    found = os.fstatvfs(handle)
    return found.f_bavail * found.f_frsize


@contextmanager
def full_database(words: str = "database or disk is full") -> Iterator[None]:
    """Has every write to the database in use fail with these words; reads work."""
    used = database.obj
    really, connection = used.execute_sql, used.connection()

    def run(sql: str, params: Any = None) -> Any:
        if connection.in_transaction or sql.split()[0] in ("SELECT", "WITH", "PRAGMA"):
            return really(sql, params)
        raise OperationalError(words)

    def commit() -> None:
        raise OperationalError(words)

    with pytest.MonkeyPatch.context() as full:
        full.setattr(used, "execute_sql", run)
        full.setattr(used, "commit", commit)
        yield
