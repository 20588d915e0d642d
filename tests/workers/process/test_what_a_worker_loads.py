"""There may be hundreds of workers: what each of them loads is paid for as often."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import postgresql

HEAVY = {
    "asyncio",
    "bip322",
    "cryptography",
    "embit",
    "multiprocessing",
    "requests",
    "ssl",
    "tornado",
    "urllib3",
}


@postgresql.left_out("its driver loads some of them")
@pytest.mark.slow
def test_no_module_of_a_running_worker_is_heavy() -> None:
    program = (
        "import sys, workers.process.main, workers.process.worker, workers.spawning.zygote\n"
        "from workers.spawning.zygote import dry_run; dry_run()\n"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert HEAVY.isdisjoint(loaded.stdout.split())
