"""The process that replays a journal for a request: `python -m server.replay.program PARENT`.

It reads one JSON object from stdin, prints one to stdout and ends. It is nice, has little time and memory, no network
and no database, and writes no file: a replay of a large journal is no matter of the processes that trade.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

from core.process import end_with_parent, give_up_network
from server.http.shapes import dumps
from server.replay.comparison import Recorded, compared
from server.replay.journal import JournalPart, ReplayError
from strategy.config.bid import load_bid_config

NICE = 10
CPU_S = 40
MEMORY_BYTES = 512 << 20


def main(arguments: list[str]) -> int:
    """Replays what stdin asks for. A fault of the recording is told as `refused`."""
    end_with_parent(int(arguments[0]))
    _be_modest()
    print(dumps(_answer(json.load(sys.stdin))))
    return 0


def _answer(asked: dict[str, Any]) -> Recorded:
    try:
        part = JournalPart([Path(each) for each in asked["paths"]], asked["from_ms"], asked["to_ms"])
        return compared(part, load_bid_config(asked["own"]), load_bid_config(asked["changed"]))
    except ReplayError as error:
        return Recorded(refused=str(error))


def _be_modest() -> None:
    os.nice(NICE)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Where the kernel has no such filter it reads one file of its own user's all the same, and no more.
    give_up_network()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
