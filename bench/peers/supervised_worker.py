"""Bidkeeper's own worker as a program of supervisord: `python -m bench.peers.supervised_worker KIND TASK_ID TOKEN`.

The manager's gifts to a worker (the secret on stdin, a life line, a status pipe) are made up here, since supervisord
knows none of them: BENCH_SECRET has the secret, BENCH_STATUS names the FIFO that all workers write "locked" to.
"""

from __future__ import annotations

import json
import os
import sys

from workers.process.main import run

if __name__ == "__main__":
    read_end, write_end = os.pipe()  # the write end stays open: no process is there to close the life line
    os.write(write_end, json.dumps({"secret": os.environ["BENCH_SECRET"], "wait_s": 0}).encode() + b"\n")
    os.dup2(read_end, 0)
    status = os.open(os.environ["BENCH_STATUS"], os.O_WRONLY)
    sys.exit(run([*sys.argv[1:4], str(os.getppid()), str(status)]))
