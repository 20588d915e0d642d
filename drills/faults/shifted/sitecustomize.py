"""On PYTHONPATH it shifts the wall clock of every program but the practice market, as BIDKEEPER_TEST_CLOCK tells.

The file holds a number of milliseconds, and may change at any time; processes see it at once, forked ones too. Clocks
that only go forward (`time.monotonic`, timers, select) are left alone, as when the date is set.
"""

import mmap
import os
import struct
import sys
import time
from typing import Any

_FILE = os.environ.get("BIDKEEPER_TEST_CLOCK")

if _FILE and "simulator" not in sys.orig_argv:
    with open(_FILE, "rb") as file:  # noqa: PTH123 - pathlib would be imported into every worker
        _shift = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
    _time_ns, _gmtime, _localtime = time.time_ns, time.gmtime, time.localtime

    def _shifted_ns() -> int:
        (shift_ms,) = struct.unpack("<q", _shift[:8])
        return _time_ns() + int(shift_ms) * 1_000_000

    def _now(convert: Any) -> Any:
        return lambda seconds=None: convert(_shifted_ns() / 1e9 if seconds is None else seconds)

    time.time_ns = _shifted_ns
    time.time = lambda: _shifted_ns() / 1e9
    time.gmtime, time.localtime = _now(_gmtime), _now(_localtime)
