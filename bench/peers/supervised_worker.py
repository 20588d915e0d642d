"""Bidkeeper's own worker as a program of supervisord: `python -m bench.peers.supervised_worker KIND TASK_ID TOKEN`.

This program replaces the parts that the manager gives a worker (secret on stdin, lifetime pipe, status pipe), because
supervisord has none of them. BENCH_SECRET is the secret, BENCH_STATUS the FIFO to which all workers write "locked".
"""

from __future__ import annotations

import json
import os
import sys

from workers.process.main import run

if __name__ == "__main__":
    read_end, write_end = os.pipe()  # the write end stays open, so that the worker never sees its manager end
    os.write(write_end, json.dumps({"secret": os.environ["BENCH_SECRET"], "wait_s": 0}).encode() + b"\n")
    os.dup2(read_end, 0)
    status = os.open(os.environ["BENCH_STATUS"], os.O_WRONLY)
    sys.exit(run([*sys.argv[1:4], str(os.getppid()), str(status)]))
