"""Which tests of a parallel run stay together: those of a file, those of tests/web in two parts, some of tests/e2e.

Each process that has any of tests/web starts an installation and a browser for them, which is more than most of its
files cost. With a file at a time all of eight processes did. So it is with files of tests/e2e that need an
installation of the same settings (tests/sharing.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from xdist.scheduler import LoadFileScheduling

from tests.sharing import SHARING

_WEB = "tests/web/"
_PARTS = 2


class Rooms(LoadFileScheduling):
    def __init__(self, config: Any, log: Any = None) -> None:
        super().__init__(config, log)
        files = sorted(path.name for path in (Path(__file__).parent / "web").glob("test_*.py"))
        self._part_of = {f"{_WEB}{name}": f"{_WEB}{position % _PARTS}" for position, name in enumerate(files)}
        for part, sharing in enumerate(SHARING):
            self._part_of |= dict.fromkeys(sharing, f"tests/e2e/{part}")

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return self._part_of.get(file, file)
