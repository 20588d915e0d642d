"""With a user for the signer, one for the gateway and one for the rest, each reaches only what it must."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator

import pytest

from tests.deploy.house import GATEWAY, GROUP, REST, SIGNER, STRANGER, House, house, run_as
from tests.e2e.installation import Trader, until

pytestmark = pytest.mark.slow

ASK_SIGNER = "from wallet.signer_client import SignerClient; print(SignerClient(path).status().state)"
ASK_GATEWAY = "from markets.client import MarketClient; MarketClient(path).status(); print('ready')"
TRY = """
import os, sys
from pathlib import Path
path = Path(sys.argv[2])
try:
    {"read": path.read_bytes, "write": lambda: path.open("ab").close(), "list": lambda: os.listdir(path),
     "move": lambda: path.rename(str(path) + ".mine"), "make": lambda: (path / "mine").touch()}[sys.argv[1]]()
except PermissionError:
    print("denied")
else:
    print("done")
"""


@pytest.fixture(scope="module")
def running() -> Iterator[House]:
    made = house()
    try:
        made.up()
        yield made
    finally:
        made.end()


def ask(user: int, code: str, house: House, socket: str, *, groups: list[int] | None = None) -> str:
    """`ready`, or why there was no answer."""
    tried = f"""
import sys
from pathlib import Path
from core.errors import BidkeeperError
path = Path(sys.argv[1])
try:
    {code}
except BidkeeperError as error:
    print(error)
"""
    return run_as(user, tried, house.path(socket), groups=groups)


def assert_closed(said: str) -> None:
    """The group may connect; what is closed then is seen when writing, when reading, or between the two."""
    assert any(words in said for words in ("Broken pipe", "Connection reset", "closed", "without")), said


def attempt(user: int, what: str, house: House, path: str, *, groups: list[int] | None = None) -> str:
    return run_as(user, TRY, what, house.path(path), groups=groups)


def test_tasks_trade_with_three_users(running: House) -> None:
    running.sim("PUT", "/sim/collections/users-demo", {"asks": [{"price": 1_000_000}], "bids": []})
    trader = Trader(running.as_installation()).sign_in()
    task = trader.task(slug="users-demo", bidCount=2, hardcapSats=900_000, loopSeconds=5)
    trader.start(task)
    until(lambda: len(trader.bids(task)) == 2, "both bids")
    until(lambda: trader.stop(task)["openBids"] == 0, "the end of its bids")


SIGNER_SOCKET = "/var/lib/bidkeeper-signer/run/signer.sock"
GATEWAY_SOCKET = "/var/lib/bidkeeper-gateway/run/gateway.sock"
FACTS_SOCKET = "/var/lib/bidkeeper-gateway/run/facts.sock"


@pytest.mark.parametrize(
    ("friend", "others", "question", "socket"),
    [
        (REST, (GATEWAY, STRANGER), ASK_SIGNER, SIGNER_SOCKET),
        (REST, (SIGNER, STRANGER), ASK_GATEWAY, GATEWAY_SOCKET),
        (SIGNER, (STRANGER,), ASK_GATEWAY, FACTS_SOCKET),
        (REST, (STRANGER,), ASK_GATEWAY, FACTS_SOCKET),
    ],
)
def test_each_answers_one_user_only(
    running: House, friend: int, others: tuple[int, ...], question: str, socket: str
) -> None:
    """Except facts, which answer the manager's user, too: they prove what a bid bought."""
    assert ask(friend, question, running, socket) == "ready"
    for user in others:
        assert_closed(ask(user, question, running, socket))
    assert "Permission denied" in ask(STRANGER, question, running, socket, groups=[])


def test_sockets_are_open_to_the_group_and_nobody_else(running: House) -> None:
    for socket in (SIGNER_SOCKET, GATEWAY_SOCKET, FACTS_SOCKET):
        assert stat.S_IMODE(running.path(socket).stat().st_mode) == 0o660
        assert running.path(socket).stat().st_gid == GROUP
    assert stat.S_IMODE(running.path("/var/lib/bidkeeper/run/manager.sock").stat().st_mode) == 0o600


def test_sockets_that_were_removed_come_back_for_the_same_users(running: House) -> None:
    directory = running.path(GATEWAY_SOCKET).parent
    running.path(SIGNER_SOCKET).unlink()
    shutil.rmtree(directory)
    for user, question, socket in (
        (REST, ASK_SIGNER, SIGNER_SOCKET),
        (REST, ASK_GATEWAY, GATEWAY_SOCKET),
        (SIGNER, ASK_GATEWAY, FACTS_SOCKET),
    ):
        until(lambda asked=(user, question, running, socket): ask(*asked) == "ready", f"an answer at {socket}")  # type: ignore[misc]
        assert stat.S_IMODE(running.path(socket).stat().st_mode) == 0o660
        assert running.path(socket).stat().st_gid == GROUP
    made = directory.stat()
    assert (stat.S_IMODE(made.st_mode), made.st_uid, made.st_gid) == (0o750, GATEWAY, GROUP)


@pytest.mark.parametrize("user", [REST, GATEWAY, STRANGER])
def test_nobody_else_reaches_the_keys(running: House, user: int) -> None:
    keys = "/var/lib/bidkeeper-signer/keys"
    assert running.path(f"{keys}/keystore.json").exists()
    for name in ("keystore.json", "signer.db", "audit.jsonl"):
        assert attempt(user, "read", running, f"{keys}/{name}") == "denied"
        assert attempt(user, "write", running, f"{keys}/{name}") == "denied"
    assert attempt(user, "list", running, keys) == "denied"


@pytest.mark.parametrize("user", [REST, GATEWAY, SIGNER])
def test_nobody_puts_another_directory_in_the_place_of_the_keys(running: House, user: int) -> None:
    assert attempt(user, "move", running, "/var/lib/bidkeeper-signer/keys") == "denied"
    assert attempt(user, "make", running, "/var/lib/bidkeeper-signer") == "denied"


@pytest.mark.parametrize(
    ("user", "socket"), [(REST, SIGNER_SOCKET), (GATEWAY, SIGNER_SOCKET), (REST, GATEWAY_SOCKET), (REST, FACTS_SOCKET)]
)
def test_nobody_puts_a_socket_in_the_place_of_anothers(running: House, user: int, socket: str) -> None:
    assert attempt(user, "move", running, socket) == "denied"


@pytest.mark.parametrize("user", [REST, SIGNER, STRANGER])
def test_the_marketplace_key_is_the_gateways(running: House, user: int) -> None:
    assert attempt(user, "read", running, "/etc/bidkeeper/satflow.key") == "denied"
    assert attempt(GATEWAY, "read", running, "/etc/bidkeeper/satflow.key") == "done"


def test_the_gateway_reads_the_database_and_writes_nothing_there(running: House) -> None:
    database = "/var/lib/bidkeeper/bidkeeper.db"
    assert attempt(GATEWAY, "read", running, database) == "done"
    for name in (database, f"{database}-wal", f"{database}-shm"):
        assert attempt(GATEWAY, "write", running, name) == "denied"
    assert attempt(GATEWAY, "make", running, "/var/lib/bidkeeper") == "denied"


@pytest.mark.parametrize("path", ["/var/lib/bidkeeper", "/var/log/bidkeeper", "/etc/bidkeeper"])
def test_a_stranger_sees_nothing(running: House, path: str) -> None:
    assert attempt(STRANGER, "list", running, path, groups=[]) == "denied"


@pytest.mark.parametrize("user", [REST, GATEWAY, SIGNER])
def test_the_logs_that_root_writes_are_roots(running: House, user: int) -> None:
    assert attempt(user, "make", running, "/var/log/bidkeeper") == "denied"


@pytest.mark.thorough
def test_a_restarted_gateway_looks_up_the_tokens(running: House) -> None:
    trader = Trader(running.as_installation()).sign_in()
    running.sim("PUT", "/sim/collections/again-demo", {"asks": [], "bids": []})
    task = trader.task(slug="again-demo", bidCount=1, hardcapSats=900_000, loopSeconds=5)
    trader.start(task)
    running.processes["gateway"].kill()
    running.processes["gateway"].wait(30)
    running.start("gateway")
    until(running.is_ready, "everything answers again")
    # The worker goes on under the token it has, of which nobody has told the new gateway.
    running.sim("PUT", "/sim/collections/again-demo", {"asks": [{"price": 1_000_000}], "bids": []})
    until(lambda: trader.bids(task) == [750_000], "the bid")
    until(lambda: trader.stop(task)["openBids"] == 0, "the end of its bids")
