"""The one connection of a process, which belongs to the thread that opened it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from peewee import InterfaceError

from models.users import User


def test_no_other_thread_opens_a_connection_that_nobody_would_close(database: str) -> None:
    with ThreadPoolExecutor(1) as threads, pytest.raises(InterfaceError, match="not opened"):
        threads.submit(User.select().count).result(10)
    assert User.select().count() == 0
