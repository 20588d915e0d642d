"""A zygote whose workers have a stub for their job."""

from __future__ import annotations

import sys

import stub_worker  # beside this script, whose folder is where Python looks first

from workers.spawning import zygote

if __name__ == "__main__":
    zygote.main(sys.argv[1:], stub_worker.run)
