"""An installation that several files' tests use one after another: to start one costs more than most of their tests."""

from __future__ import annotations

import os
from pathlib import Path

from tests.e2e.installation import Installation

# A plan beside the one that everybody gets: of narrow limits, for the user that a test gives it.
PLANS = """
[plans.narrow]
name = "Narrow"
max_tasks = 20
max_bids_per_task = 20
max_exposure = 300_000
price_sats = 0
duration_days = 365
"""


class Shared:
    """The installation that is up, and the settings it was started with."""

    def __init__(self, directory: Path) -> None:
        self._config = directory / "bidkeeper.toml"
        self._config.write_text(PLANS)
        self._settings: dict[str, str] = {}
        self._made: Installation | None = None

    def with_settings(self, settings: dict[str, str]) -> Installation:
        """Returns one that is ready, with a new venue; that of the file before, if it has these settings."""
        if self._made is None or settings != self._settings or not self._made.ready_again():
            self.end()
            self._settings = settings
            self._made = Installation(
                BIDKEEPER_CONFIG=str(self._config), BIDKEEPER_SIGN_IN_PER_MINUTE="1000000", **settings
            )
            # As operators have both; tests/e2e/test_running.py sees that nobody else may read what is in it.
            self._made.data_dir.chmod(0o755)
            before = os.umask(0o022)
            try:
                self._made.up()
            finally:
                os.umask(before)
        self._made.sim("POST", "/sim/reset", {"seed": 1, "background": False})
        return self._made

    def end(self) -> None:
        if self._made is not None:
            self._made.destroy()
            self._made = None
