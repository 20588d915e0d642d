"""`bidkeeper` in a process of its own that has its modules already: for commands by the dozen, whose starts cost more
than they do."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.main import main

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["cli.keys", __name__])


@dataclass
class Said:
    code: int | None
    out: str
    err: str


def run(arguments: Sequence[str], environment: Mapping[str, str], given: str, directory: Path, seconds: float) -> Said:
    """Runs one verb with `given` as its standard input; the three streams are files in the directory."""
    streams = [directory / name for name in ("given", "out", "err")]
    streams[0].write_text(given)
    process = _FORKS.Process(target=_command, args=(list(arguments), dict(environment), streams))
    process.start()
    process.join(seconds)
    process.kill()
    process.join()
    return Said(process.exitcode, streams[1].read_text(), streams[2].read_text())


def _command(arguments: list[str], environment: dict[str, str], streams: list[Path]) -> None:
    for number, path in enumerate(streams):
        opened = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ |= environment
    with (
        open(0, closefd=False) as sys.stdin,
        open(1, "w", closefd=False) as sys.stdout,
        open(2, "w", closefd=False) as sys.stderr,
    ):
        sys.exit(main(arguments))
