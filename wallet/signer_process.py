"""The signer as a process: its files, its socket, and what it takes from itself before it holds a key."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import resource
import signal
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from core import local_server
from wallet import policy
from wallet.audit import AuditLog
from wallet.bip322 import self_test
from wallet.keys import Keystore, KeystoreError
from wallet.ledger import Ledger
from wallet.signer import Signer
from wallet.signing import require_libsecp256k1

log = logging.getLogger(__name__)

HALT_FILE = "halt"
_PR_SET_DUMPABLE = 4


def now_ms() -> int:
    """Wall clock in Unix milliseconds."""
    return time.time_ns() // 1_000_000


def run(
    directory: Path,
    socket_path: Path,
    market: str,
    outstanding_ceiling: int,
    clock: Callable[[], int] = now_ms,
    allowed_uids: frozenset[int] | None = None,
) -> None:
    """Serves until SIGTERM or SIGINT. Its files are in `directory`, which nobody else can enter.

    Processes of `allowed_uids` (default: our own user) may ask it.

    On the simulator the play keystore is opened, or made; for any other market the signer stays locked. Raises
    RuntimeError when its libraries cannot be trusted, AuditError when another signer runs or the log is broken.
    """
    _harden()
    require_libsecp256k1()
    self_test()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with closing(AuditLog(directory / "audit.jsonl")) as audit, closing(Ledger(directory / "signer.db")) as ledger:
        keystore, reason = _unlock(directory / "keystore.json", market)
        signer = Signer(
            ledger,
            audit,
            keystore,
            outstanding_ceiling=outstanding_ceiling,
            clock=clock,
            locked_reason=reason,
            has_halt_file=lambda: _is_there(directory / HALT_FILE),
        )
        asyncio.run(_serve(signer, socket_path, allowed_uids))


def _is_there(path: Path) -> bool:
    """Whether there is anything of this name. Raises OSError when that cannot be seen: then nothing is signed."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


def _unlock(path: Path, market: str) -> tuple[Keystore | None, str]:
    """The keystore, or why there is none. Locked and answering is better than dying and being restarted for ever."""
    if market != policy.PLAY_VENUE:
        reason = f"there are no keys for {market}: only play keys can be opened yet, and they are for the simulator"
    else:
        try:
            return Keystore.open_or_create_play(path, os.urandom), ""
        except KeystoreError as error:
            reason = str(error)
    log.error("locked: %s", reason)
    return None, reason


async def _serve(signer: Signer, socket_path: Path, allowed_uids: frozenset[int] | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = await local_server.serve(socket_path, signer.handle, allowed_uids=allowed_uids)
    log.info("answering at %s", socket_path)
    await stop.wait()
    server.close()
    socket_path.unlink(missing_ok=True)
    log.info("ended")


def _harden() -> None:
    """No core dump, and no debugger or /proc/PID/mem for other processes of our user. Raises OSError."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "failed to make the signer undumpable")
    os.umask(0o077)
