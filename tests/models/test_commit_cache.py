"""The one connection of a process, and what is kept between its commits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from peewee import InterfaceError

from core.subscription_plans import DEFAULT_PLANS
from models import users
from models.database import base
from models.database.base import CommitCache
from models.users import User
from tests import postgresql
from tests.databases import another


def test_no_other_thread_opens_a_connection_that_nobody_would_close(database: str) -> None:
    with ThreadPoolExecutor(1) as threads, pytest.raises(InterfaceError, match="not opened"):
        threads.submit(User.select().count).result(10)
    assert User.select().count() == 0


class Names:
    """The display names in the table as bytes, and how often they were asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> bytes:
        self.asked += 1
        return ",".join(str(user.display_name) for user in User.select()).encode()


def rename(name: str) -> None:
    User.update(display_name=name).execute()


@pytest.fixture
def kept(database: str) -> CommitCache:
    users.find_or_create("bc1qa", DEFAULT_PLANS, 1)
    return CommitCache(1000)


@postgresql.left_out("commits in other tests' databases cost a look")
def test_what_did_not_change_is_read_once(kept: CommitCache) -> None:
    names = Names()
    assert [kept.get(1, names) for _ in range(3)] == [b"None"] * 3
    assert names.asked == 1


@postgresql.left_out("commits in other tests' databases cost a look")
def test_keys_have_nothing_in_common(kept: CommitCache) -> None:
    kept.get(1, lambda: b"mine")
    assert kept.get(2, lambda: b"theirs") == b"theirs"
    assert kept.get(1, lambda: b"") == b"mine"


def test_our_own_change_is_seen(kept: CommitCache) -> None:
    names = Names()
    kept.get(1, names)
    rename("a")
    assert kept.get(1, names) == b"a"
    with base.transaction():
        rename("b")
    assert kept.get(1, names) == b"b"
    User.delete().execute()
    assert kept.get(1, names) == b""


def test_a_change_by_another_process_is_seen_once_it_is_committed(kept: CommitCache, database: str) -> None:
    names = Names()
    kept.get(1, names)
    with another(database) as other:
        for before, after in (("None", "a"), ("a", "b")):
            other.execute("UPDATE users SET display_name = ?", (after,))
            assert kept.get(1, names) == before.encode()
            other.commit()
            assert kept.get(1, names) == after.encode()
    # On PostgreSQL other databases' commits, of tests beside this one, cost a look in vain.
    assert names.asked == 3 or (postgresql.is_wanted() and names.asked > 3)


def test_a_change_while_it_is_read_is_seen_the_next_time(kept: CommitCache, database: str) -> None:
    names = Names()

    def read_too_early() -> bytes:
        found = names()
        with another(database) as other:
            other.execute("UPDATE users SET display_name = 'late'")
        return found

    assert kept.get(1, read_too_early) == b"None"
    assert kept.get(1, names) == b"late"


def test_what_was_never_committed_is_not_kept(kept: CommitCache) -> None:
    names = Names()
    with pytest.raises(ZeroDivisionError), base.transaction():
        rename("wrong")
        assert kept.get(1, names) == b"wrong"
        raise ZeroDivisionError
    assert kept.get(1, names) == b"None"


def test_what_changed_between_two_connections_is_seen(kept: CommitCache, database: str) -> None:
    for name in ("a", "b"):
        with another(database) as other:
            other.execute("UPDATE users SET display_name = ?", (name,))
        base.close()
        base.connect(database)
        assert kept.get(1, Names()) == name.encode()


def test_it_never_holds_more_than_it_may(kept: CommitCache) -> None:
    for key in range(50):
        assert kept.get(key, lambda: b"x" * 300) == b"x" * 300
        assert sum(map(len, kept._kept.values())) <= 1000
    assert kept.get(99, lambda: b"y" * 2000) == b"y" * 2000
    assert kept.get(99, lambda: b"z") == b"z"


def test_a_session_brings_a_mark_that_spares_the_look_and_is_older_after_a_commit(
    kept: CommitCache, database: str
) -> None:
    names = Names()
    users.open_session("hash", 1, 1)

    def marked() -> bytes:
        found = users.user_and_mark("hash", 2)
        assert found is not None
        return kept.get(1, names, found[1])

    def asked_in(tries: int) -> int:
        names.asked = 0
        assert {marked() for _ in range(tries)} == {str(User.get().display_name).encode()}
        return names.asked

    # On PostgreSQL others' commits, in other databases, too, are seen; some moment is without.
    assert asked_in(200) < 200
    for name in ("a", "b"):
        with another(database) as other:
            other.execute("UPDATE users SET display_name = ?", [name])
            other.commit()
        assert marked() == name.encode()
