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
    code: int
    out: str
    err: str


def run(arguments: Sequence[str], environment: Mapping[str, str], given: str, directory: Path, seconds: float) -> Said:
    """Runs one verb with `given` as its standard input; the three streams are files in the directory."""
    streams = [directory / name for name in ("given", "out", "err")]
    streams[0].write_text(given)
    process = _FORKS.Process(target=_command, args=(list(arguments), dict(environment), streams), daemon=True)
    process.start()
    process.join(seconds)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise TimeoutError(f"{arguments} goes on after {seconds} s: {streams[1].read_text()} {streams[2].read_text()}")
    return Said(process.exitcode, streams[1].read_text(), streams[2].read_text())


def _command(arguments: list[str], environment: dict[str, str], streams: list[Path]) -> None:
    for number, path in enumerate(streams):
        opened = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ |= environment
    # The streams stay open: what is raised here is told on them.
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    sys.exit(main(arguments))
