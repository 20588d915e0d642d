"""A whole installation for tests: `bidkeeper up` in a directory of its own, on ports of its own, and its traders."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from urllib.parse import quote

import requests
from embit.ec import PrivateKey

from tests import postgresql
from tests.ports import free_ports
from wallet import address
from wallet.keystore.keys import sign_message

T = TypeVar("T")
PATIENCE = 180.0  # seconds; generous, since speed is not what these tests are about


class Refused(AssertionError):
    """The answer to a call that was to succeed, with the call's method and the answer's status."""

    def __init__(self, method: str, path: str, status: int, text: str) -> None:
        super().__init__(f"{method} {path}: {status} {text}")
        self.method, self.path, self.status = method, path, status

    @property
    def is_for_now(self) -> bool:
        """Whether it says nothing of what was asked: a program of a busy machine did not answer another in time."""
        return (self.method == "GET" or self.path.endswith("/preview")) and self.status in (429, 502, 503)


def until(what: Callable[[], T], describe: str | Callable[[], str], seconds: float = PATIENCE) -> T:
    """Returns the value of `what` as soon as it is true; fails when it does not become so in time.

    A callable `describe` is called when the time is over. The longer it takes the less often it looks: asking
    twenty times a second costs ten times what the service does.
    """
    deadline, pause, refused = time.monotonic() + seconds, 0.03, ""
    while True:
        try:
            if found := what():
                return found
        except Refused as refusal:
            if not refusal.is_for_now:
                raise
            refused = f"; the last refusal: {refusal}"
        if time.monotonic() >= deadline:
            told = describe if isinstance(describe, str) else describe()
            raise AssertionError(f"not within {seconds:.0f} s: {told}{refused}")
        time.sleep(pause)
        pause = min(pause * 1.2, 0.3)


def _read(path: str) -> bytes:
    """Returns a file's contents; a search reads a thousand of them, and takes twice as long by Path."""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        return file.read()


class Installation:
    alive: ClassVar[list[Installation]] = []

    def __init__(self, *, python: str = sys.executable, tree: Path | None = None, **settings: str) -> None:
        """Has ports and a directory of its own. With `tree` it is one of that checkout, whose packages `python` has."""
        # A Unix socket's path ends at 107 bytes, so not in pytest's long directories.
        self.data_dir = Path(tempfile.mkdtemp(prefix="bk-"))
        self.port, self.simulator_port = free_ports(2)
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = os.environ | {
            "BIDKEEPER_DATA_DIR": str(self.data_dir),
            "BIDKEEPER_PORT": str(self.port),
            "BIDKEEPER_SIMULATOR_PORT": str(self.simulator_port),
            "BIDKEEPER_WHITELIST": "*",
            "PYTHONUNBUFFERED": "1",
        }
        self.is_run_by(python, tree)
        self.environment |= settings
        self._own_database = ""
        if postgresql.is_wanted() and "BIDKEEPER_DATABASE_URL" not in self.environment:
            self._own_database = self.environment["BIDKEEPER_DATABASE_URL"] = postgresql.fresh()
        self.process: subprocess.Popen[str] | None = None
        self._sessions: set[int] = set()
        self.alive.append(self)

    def is_run_by(self, python: str, tree: Path | None) -> None:
        """Has the next start use the code of the checkout `tree` (None: this one), whose packages `python` has."""
        self._command, self._tree = [python, "-m", "cli.main"], tree
        if tree is None:
            self.environment.pop("PYTHONPATH", None)
        else:
            self.environment["PYTHONPATH"] = str(tree)

    @property
    def database_url(self) -> str:
        return self.environment.get("BIDKEEPER_DATABASE_URL") or f"sqlite:///{self.data_dir / 'bidkeeper.db'}"

    def up(self, verb: str = "up") -> None:
        with (self.data_dir / "up.out").open("w") as out:
            self.process = subprocess.Popen(
                [*self._command, verb],
                cwd=self._tree,
                env=self.environment,
                stdout=out,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        until(self._ready, "the ready line")

    def ready_again(self) -> bool:
        """Tells whether /readyz says at this moment that everything answers."""
        try:
            return requests.get(self.url + "/readyz", timeout=10).status_code == 200
        except requests.RequestException:
            return False

    def output(self) -> str:
        return (self.data_dir / "up.out").read_text()

    def _ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.output()
        return f"ready {self.url}" in self.output()

    def down(self, number: int = signal.SIGTERM) -> float:
        """Ends it as an operator would; returns the seconds it took."""
        assert self.process is not None
        began = time.monotonic()
        self.process.send_signal(number)
        assert self.process.wait(PATIENCE) == 0, self.output()
        return time.monotonic() - began

    def last_words(self, lines: int = 40) -> str:
        """Returns the end of every log, for a search of the cause when a test failed.

        Of lines that differ in their numbers alone it has the last, so that a test's own waiting hides nothing.
        """
        logs = sorted((self.data_dir / "logs").glob("*.log"))
        ends: dict[str, list[str]] = {}
        for log in logs:
            kinds: dict[str, str] = {}
            for line in log.read_text(errors="replace").splitlines():
                kind = re.sub(r"\d+", "", line)
                kinds.pop(kind, None)
                kinds[kind] = line
            ends[log.name] = list(kinds.values())[-lines:]
        return "\n".join(f"{name}: {line[:300]}" for name, end in ends.items() for line in end)

    def destroy(self) -> None:
        self.alive.remove(self)
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.data_dir, ignore_errors=True)
        if self._own_database:
            postgresql.drop(self._own_database)

    def data_dirs(self) -> list[Path]:
        return [self.data_dir]

    def processes(self, *words: str) -> list[int]:
        """Pids of the living processes of this installation whose command line holds all of `words`."""
        return sorted(pid for pid, line in self._lines() if all(word in line for word in words))

    def _lines(self) -> Iterator[tuple[int, str]]:
        """Reads the command lines of the living processes of this installation."""
        marks = {f"BIDKEEPER_DATA_DIR={directory}".encode() for directory in self.data_dirs()}
        found, closed = set(), set()
        for pid in (int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()):
            with contextlib.suppress(OSError):
                try:
                    # That of a process that has ended is empty.
                    if not marks.isdisjoint(_read(f"/proc/{pid}/environ").split(b"\0")):
                        found.add(pid)
                        self._sessions.add(os.getsid(pid))
                except PermissionError:
                    closed.add((pid, os.getsid(pid)))
        self._sessions.discard(os.getsid(0))
        # The signer hides its environment, but stays in the session of the supervisord that started it.
        found |= {pid for pid, session in closed if session in self._sessions}
        for pid in found - {os.getpid()}:
            try:
                line = _read(f"/proc/{pid}/cmdline").decode(errors="replace").replace("\0", " ")
                state = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[0]
            except OSError:
                continue
            if state != b"Z":
                yield pid, line

    def workers(self, task: int) -> list[int]:
        """Pids of the processes that act for `task`, before and after they have named themselves."""
        return self.workers_of([task])[task]

    def workers_of(self, tasks: Iterable[int]) -> dict[int, list[int]]:
        """Pids of the processes that act for each of the tasks."""
        lines = list(self._lines())
        found = {}
        for task in tasks:
            marks = [f"workers.process.main {kind} {task} " for kind in ("bidder", "drain")]
            marks.append(f"bidkeeper: bidder task {task} ")
            found[task] = sorted(pid for pid, line in lines if any(mark in line for mark in marks))
        return found

    def sim(self, method: str, path: str, body: Any = None) -> Any:
        answer = requests.request(method, f"http://127.0.0.1:{self.simulator_port}{path}", json=body, timeout=PATIENCE)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def confirm(self, txid: str) -> None:
        """Puts a transaction into a block as soon as it was sent: a busy machine answers a withdrawal before that."""

        def is_in_a_block() -> bool:
            self.sim("POST", "/sim/confirm", {"txid": txid})
            return bool(self.sim("GET", f"/mempool/api/tx/{txid}/status")["confirmed"])

        until(is_in_a_block, "the transaction")

    def put_collection(self, slug: str, asks: list[int], **more: Any) -> None:
        self.sim("PUT", f"/sim/collections/{slug}", {"asks": [{"price": price} for price in asks], "bids": [], **more})

    def history(self, **fields: Any) -> list[dict[str, Any]]:
        events = self.sim("GET", "/sim/history")
        return [event for event in events if all(event.get(name) == value for name, value in fields.items())]

    def live_prices(self, slug: str) -> list[int]:
        """Prices of the bids that are live at the simulator, by its own history, highest first."""
        live: dict[str, int] = {}
        for event in self.sim("GET", "/sim/history"):
            if event["slug"] != slug or event["kind"] != "bid":
                continue
            if event["event"] == "accepted":
                live[event["orderId"]] = event["price"]
            elif event["event"] in ("cancelled", "expired", "filled"):
                live.pop(event["orderId"], None)
        return sorted(live.values(), reverse=True)


class Trader:
    """A user with a wallet of their own, who talks HTTP."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.base_url = installation.url
        self.key = PrivateKey(secrets.token_bytes(32))
        self.address = address.p2wpkh(address.hash160(self.key.get_public_key().sec()))
        self.session = requests.Session()
        self.session.trust_env = False

    def sign_in(self) -> Trader:
        challenge = self.ok("POST", "/api/auth/challenge", {"address": self.address})
        signature = sign_message(self.key, "p2wpkh", challenge["message"])
        proof = {"challengeId": challenge["challengeId"], "address": self.address, "signature": signature}
        self.session.headers["Authorization"] = "Bearer " + self.ok("POST", "/api/auth/verify", proof)["token"]
        return self

    def call(self, method: str, path: str, body: Any = None) -> requests.Response:
        return self.session.request(method, self.base_url + path, json=body, timeout=PATIENCE)

    def ok(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.call(method, path, body)
        if answer.status_code >= 300:
            raise Refused(method, path, answer.status_code, answer.text)
        return answer.json()

    def task(self, **config: Any) -> int:
        return int(self.ok("POST", "/api/tasks", config)["id"])

    def start(self, task: int) -> dict[str, Any]:
        return self.ok("POST", f"/api/tasks/{task}/start")

    def stop(self, task: int) -> dict[str, Any]:
        return self.ok("POST", f"/api/tasks/{task}/stop")

    def stop_and_drain(self, task: int) -> None:
        """Stops the task until none of its bids is open: one stop waits for their end for ten seconds at most."""

        def is_drained() -> bool:
            stopped = self.stop(task)
            assert stopped["isRunning"] is False
            return bool(stopped["openBids"] == 0)

        until(is_drained, f"the end of all bids of task {task}")

    def get(self, task: int) -> dict[str, Any]:
        return self.ok("GET", f"/api/tasks/{task}")

    def bids(self, task: int) -> list[int]:
        return sorted((bid["price"] for bid in self.ok("GET", f"/api/tasks/{task}/bids")), reverse=True)

    def last_action(self, task: int) -> str:
        """Returns what the task's last cycle did, "" before its first and where the cycle failed."""
        last = self.get(task)["lastCycle"] or {}
        return str(last.get("action") or "")

    def said(self, task: int) -> str:
        """Returns what all the task's cycles said of themselves."""
        return "\n".join(cycle["action"] for cycle in self.ok("GET", f"/api/tasks/{task}/cycles?limit=100"))

    def placed(self, task: int, words: str = "placed") -> int:
        """Sums up what the cycles say to have placed: on a busy machine one may leave some of it to the next."""
        return sum(map(int, re.findall(rf"{words} (\d+)", self.said(task))))

    def next_cycle(self, task: int, cycles: int = 1) -> dict[str, Any]:
        """Returns the task once `cycles` more cycles have been finished."""
        self.next_cycle_of_all([task], cycles)
        return self.get(task)

    def next_cycle_of_all(self, tasks: list[int], cycles: int = 1) -> None:
        """Waits until each of the tasks has finished `cycles` more cycles."""
        for _ in range(cycles):
            before = {task: self.get(task)["lastCycle"] for task in tasks}
            until(
                lambda before=before: all(self.get(task)["lastCycle"] != before[task] for task in tasks),
                f"a cycle of tasks {tasks}",
            )


def in_path(text: str) -> str:
    return quote(text, safe="")


@contextlib.contextmanager
def installation(verb: str = "up", **settings: Any) -> Iterator[Installation]:
    made = Installation(**settings)
    try:
        made.up(verb)
        yield made
    finally:
        made.destroy()
