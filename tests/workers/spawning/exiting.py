"""Workers that end at once, in the way their task's number says; run as a zygote of such workers, or as one of them."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from core.settings import Settings
from workers.spawning import zygote

KILLED, ABORTED, RAISES, EXITS_WITH_TEXT, LIVES = 900, 901, 902, 903, 904


def run(argv: Sequence[str], settings: Settings | None = None) -> int:
    task = int(argv[1])
    if task == KILLED:
        os.kill(os.getpid(), signal.SIGKILL)
    if task == ABORTED:
        os.kill(os.getpid(), signal.SIGTERM)
    if task == RAISES:
        raise RuntimeError("no luck")
    if task == EXITS_WITH_TEXT:
        sys.exit("no luck either")
    if task == LIVES:
        os.write(int(argv[4]), b"locked")
        time.sleep(600)
    return task


def _first_time(name: str) -> bool:
    path = Path(os.environ["BIDKEEPER_DATA_DIR"]) / name
    is_first = not path.exists()
    path.touch()
    return is_first


if __name__ == "__main__":
    if sys.argv[1] == "never-ready":
        sys.exit(7)
    if sys.argv[1] == "threaded-at-first":
        if _first_time("threaded"):
            threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
        zygote.main(sys.argv[2:], run)
    elif sys.argv[1] == "zygote":
        zygote.main(sys.argv[2:], run)
    else:
        sys.exit(run(sys.argv[1:]))
