"""Faults of the machine and the marketplace under which a brake must work, each set up around one installation."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import requests

from tests.e2e.braking import Ladders, with_admin
from tests.e2e.installation import Installation, Trader, until

HUNG_S = 20
_DISK_MIB = 192  # readiness wants 64 MiB, and a reserve of 16
_READS = ("floors", "book", "balance")  # of a worker's cycle; none of them is a brake's
_REFILL_S = 0.02


class Adversity:
    """One fault. `prepare` comes before the programs start, `clear` after they have ended.

    `brew` waits until the fault may strike, `strike` is the last moment before the brake, and `heal` follows it.
    """

    def __init__(self, service: Installation, rng: random.Random) -> None:
        self.service, self.rng = service, rng
        self.note = ""

    def prepare(self) -> None:
        pass

    def brew(self, ladders: Ladders) -> None:
        pass

    def strike(self) -> None:
        pass

    def heal(self) -> None:
        pass

    def clear(self) -> None:
        pass


class FullDisk(Adversity):
    """A disk of its own for the data directory, or a part of it, which is full for some seconds before the brake.

    With `is_eaten` another program takes each byte that the service frees.
    """

    part, is_eaten = "", False

    def __init__(self, service: Installation, rng: random.Random) -> None:
        super().__init__(service, rng)
        self._disk = service.data_dir / self.part
        self._ballast = self._disk / "ballast"
        self._enough = threading.Event()
        self._eater: threading.Thread | None = None
        self._out = service.data_dir.with_name(f"{service.data_dir.name}.out")
        self._is_mounted = False

    def prepare(self) -> None:
        self._disk.mkdir(mode=0o700, exist_ok=True)
        options = ["-t", "tmpfs", "-o", f"size={_DISK_MIB}m,mode=0700"]
        made = subprocess.run(["mount", *options, "tmpfs", str(self._disk)], capture_output=True, text=True)
        if made.returncode:
            raise OSError(f"cannot mount a small disk: {made.stderr.strip()}")
        self._is_mounted = True
        (self.service.data_dir / "up.out").symlink_to(self._out)  # its reader keeps it elsewhere

    def brew(self, ladders: Ladders) -> None:
        self._fill()
        if self.is_eaten:
            self._eater = threading.Thread(target=self._eat)
            self._eater.start()
        time.sleep(self.rng.uniform(0, 5))

    def heal(self) -> None:
        self._enough.set()
        if self._eater is not None:
            self._eater.join()
        self._ballast.unlink(missing_ok=True)

    def clear(self) -> None:
        self.heal()
        if self._is_mounted:
            until(lambda: not self.service.processes(), "the end of every process")
            # The kernel lets go of a process's files a moment after its end.
            until(lambda: not subprocess.run(["umount", str(self._disk)], capture_output=True).returncode, "umount", 30)
            self._is_mounted = False
            shutil.rmtree(self.service.data_dir, ignore_errors=True)
        self._out.unlink(missing_ok=True)

    def _eat(self) -> None:
        while not self._enough.wait(_REFILL_S):
            self._fill()

    def _fill(self) -> None:
        with self._ballast.open("ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(b"\0" * size)


class EatenDisk(FullDisk):
    is_eaten = True


class FullSignerDisk(FullDisk):
    part = "signer"


class EatenSignerDisk(FullSignerDisk):
    is_eaten = True


class HungRead(Adversity):
    """Every read of the market hangs; the brake comes when the workers are in one."""

    def brew(self, ladders: Ladders) -> None:
        before = self._reads()
        self.service.sim(
            "PUT",
            "/sim/faults",
            [{"operation": name, "mode": "slow", "delaySeconds": HUNG_S} for name in _READS],
        )
        until(lambda: self._reads() > before, "a worker's read", 90)
        time.sleep(self.rng.uniform(0, 3))

    def heal(self) -> None:
        with contextlib.suppress(requests.RequestException):
            self.service.sim("PUT", "/sim/faults", [])

    def _reads(self) -> int:
        found = self.service.sim("GET", "/sim/requests")
        return sum(sum(found.get(name, {}).values()) for name in _READS)


class StoppedWorkers(Adversity):
    """The workers run no instruction for twenty seconds."""

    def brew(self, ladders: Ladders) -> None:
        time.sleep(self.rng.uniform(0, 10))
        self._pids = [pid for pids in self.service.workers_of(ladders.tasks).values() for pid in pids]
        self._timer = threading.Timer(HUNG_S, self._send, [signal.SIGCONT])

    def strike(self) -> None:
        self._send(signal.SIGSTOP)
        self._timer.start()

    def heal(self) -> None:
        self._timer.cancel()
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        for pid in self._pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


class KilledGateway(Adversity):
    """The gateway is killed the moment before; `note` says when another one answered."""

    def brew(self, ladders: Ladders) -> None:
        time.sleep(self.rng.uniform(0, 10))
        (self._pid,) = self.service.processes("cli.main", "gateway")

    def strike(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        self._watcher = threading.Thread(target=self._watch, args=[time.monotonic()])
        self._watcher.start()

    def heal(self) -> None:
        self._watcher.join()

    def _watch(self, began: float) -> None:
        door = self.service.data_dir / "run" / "gateway.sock"
        until(lambda: not _answers(door), "the gateway's end", 60)
        until(lambda: _answers(door), "a new gateway", 60)
        self.note = f"gateway back after {time.monotonic() - began:.2f} s"


class RemovedDoors(Adversity):
    """Every socket of the run directory is removed the moment before."""

    def brew(self, ladders: Ladders) -> None:
        time.sleep(self.rng.uniform(0, 10))

    def strike(self) -> None:
        doors = sorted((self.service.data_dir / "run").glob("*.sock"))
        for door in doors:
            door.unlink()
        self.note = f"removed {', '.join(door.stem for door in doors)}"


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(os.fspath(path))
        except OSError:
            return False
        return True


ADVERSITIES: dict[str, type[Adversity]] = {
    "nothing": Adversity,
    "disk": FullDisk,
    "disk-eaten": EatenDisk,
    "signer-disk": FullSignerDisk,
    "signer-disk-eaten": EatenSignerDisk,
    "hang": HungRead,
    "workers-stopped": StoppedWorkers,
    "gateway-killed": KilledGateway,
    "doors": RemovedDoors,
}


@contextlib.contextmanager
def adverse(kind: type[Adversity], rng: random.Random) -> Iterator[tuple[Adversity, Trader]]:
    """Starts an installation around which the fault is set up; yields it with the administrator."""
    made: list[Adversity] = []

    def prepare(service: Installation) -> None:
        made.append(kind(service, rng))
        made[0].prepare()

    try:
        with with_admin(prepare=prepare) as (_, admin):
            yield made[0], admin
    finally:
        for each in made:
            each.clear()
