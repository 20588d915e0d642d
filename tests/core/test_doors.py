"""A program's socket, whose file is removed or replaced while the program runs."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core import local_server
from core.errors import PeerUnavailable
from core.local_server import serve
from core.process import hold_lock
from tests.json_lines import Answers, ask

LOOK_S = 0.01
OTHERS = frozenset({os.getuid(), os.getuid() + 1})
LISTENS = """
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
if os.path.exists(sys.argv[1]):
    os.unlink(sys.argv[1])
listener.bind(sys.argv[1])
listener.listen()
print("listens", flush=True)
while True:
    listener.accept()[0].close()
"""


@pytest.fixture(autouse=True)
def short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_server.Door.__init__, "__defaults__", (LOOK_S,))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "run"
    made.mkdir()
    made.chmod(0o710)
    return made / "peer.sock"


def during(path: Path, work: Callable[[], Awaitable[None]], uids: frozenset[int] | None = None) -> None:
    """Runs `work` while a program answers at `path`."""

    async def main() -> None:
        door = await serve(path, Answers(lambda request: {"pid": os.getpid()}), allowed_uids=uids)
        try:
            await asyncio.wait_for(work(), 60)
        finally:
            door.close()
            await asyncio.sleep(0.01)

    asyncio.run(main())


async def asked(path: Path) -> dict[str, Any]:
    return await asyncio.to_thread(ask, path, "peer", {"op": "any"}, timeout=60)


async def answers_again(path: Path) -> None:
    while True:
        try:
            assert await asked(path) == {"pid": os.getpid()}
            return
        except PeerUnavailable:
            await asyncio.sleep(LOOK_S)


def _remove(path: Path) -> None:
    path.unlink()


def _remove_directory(path: Path) -> None:
    shutil.rmtree(path.parent)


def _put_a_file(path: Path) -> None:
    path.unlink()
    path.write_text("a backup's")


def _put_a_dead_socket(path: Path) -> None:
    path.unlink()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))


@pytest.mark.parametrize("attack", [_remove, _remove_directory, _put_a_file, _put_a_dead_socket])
@pytest.mark.parametrize(("uids", "mode"), [(None, 0o600), (OTHERS, 0o660)])
def test_a_socket_that_is_removed_or_replaced_is_bound_again_with_its_mode(
    attack: Callable[[Path], None],
    uids: frozenset[int] | None,
    mode: int,
    path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work() -> None:
        for _ in range(2):
            attack(path)
            await answers_again(path)
            assert path.stat().st_mode & 0o777 == mode
            assert path.parent.stat().st_mode & 0o777 == 0o710
            owner = path.parent.stat()
            assert (owner.st_uid, owner.st_gid) == before

    owner = path.parent.stat()
    before = owner.st_uid, owner.st_gid
    during(path, work, uids)
    warned = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert warned == [f"the socket {path} was removed or replaced: listens at a new one"] * 2
    assert not path.exists(), "an ordered end leaves no file"


def test_a_connection_stays_open_when_the_file_is_removed(path: Path) -> None:
    async def work() -> None:
        reader, writer = await asyncio.open_unix_connection(path)
        for _ in range(2):
            writer.write(b'{"op": "any"}\n')
            assert b'"ok"' in await reader.readline()
            path.unlink()
            await answers_again(path)
        writer.close()

    during(path, work)


@pytest.fixture
def other(path: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts another process that binds the same path."""
    made: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen([sys.executable, "-c", LISTENS, str(path)], stdout=subprocess.PIPE, text=True)
        made.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "listens\n"
        return process

    yield start
    for process in made:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_the_socket_of_another_live_process_is_left_until_that_process_ends(
    path: Path, other: Callable[[], subprocess.Popen[str]], caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        successor = await asyncio.to_thread(other)
        theirs = path.stat().st_ino
        await asyncio.sleep(30 * LOOK_S)
        assert path.stat().st_ino == theirs
        complaint = f"another process listens there (pid {successor.pid}): end one of the two"
        assert [complaint in record.message for record in caplog.records] == [True], "said once"
        successor.kill()
        await answers_again(path)

    during(path, work)


@pytest.mark.slow
def test_an_ordered_end_leaves_the_socket_of_a_successor(
    path: Path, other: Callable[[], subprocess.Popen[str]]
) -> None:
    async def work() -> None:
        await asyncio.to_thread(other)

    during(path, work)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))


def test_a_lock_next_to_the_socket_is_taken_again(path: Path) -> None:
    async def work() -> None:
        shutil.rmtree(path.parent)
        await answers_again(path)
        assert hold_lock(lock) is None, "a second program of its kind is refused"

    lock = path.with_suffix(".lock")
    held = hold_lock(lock)
    during(path, work)
    assert held is not None
    os.close(held)


def test_a_program_whose_lock_another_one_holds_stays_away(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        path.unlink()
        lock.unlink()
        theirs = hold_lock(lock)
        await asyncio.sleep(30 * LOOK_S)
        assert not path.exists()
        assert [f"another process holds {lock}" in record.message for record in caplog.records] == [True], "said once"
        assert theirs is not None
        os.close(theirs)
        await answers_again(path)

    lock = path.with_suffix(".lock")
    held = hold_lock(lock)
    during(path, work)
    assert held is not None
    os.close(held)


def test_a_directory_that_cannot_be_made_again_is_named_once(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        above = path.parent.parent
        kept = above.with_name("kept")
        above.rename(kept)
        await asyncio.sleep(30 * LOOK_S)
        assert not above.exists(), "what is above the directory may be a file system that was unmounted"
        text = f"the socket {path} was removed or replaced, and cannot be made again: No such file or directory"
        assert [record.message for record in caplog.records] == [text]
        kept.rename(above)
        await answers_again(path)

    during(path, work)
