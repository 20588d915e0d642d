"""A zygote whose workers have a stub for their job, and which warms up for nothing else."""

from __future__ import annotations

import sys

import stub_worker  # beside this script, whose folder is where Python looks first

from workers.spawning import zygote

if __name__ == "__main__":
    zygote.dry_run = lambda *cycles: []  # the day of a real worker, which takes longer than a stub's whole life
    zygote.main(sys.argv[1:], stub_worker.run)
