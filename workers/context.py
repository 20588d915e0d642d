"""A worker's surroundings: its task, its right to act, and its peers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from core import files
from core.errors import BidkeeperError
from core.fields import WithSecrets
from core.settings import Settings
from markets.client import MarketClient
from markets.venues import Capabilities, capabilities
from models.database import base
from wallet.signer_client import SignerClient
from workers.crashpoints import crashpoint

Kind = Literal["bidder", "lister", "drain"]  # of worker


class BadConfig(BidkeeperError):
    """A refusal: the task's stored config cannot be carried out; a restart would not help."""


class BadCredentials(BidkeeperError):
    """A refusal: a venue does not accept us, by more than one answer; a restart would not help."""


class Context(WithSecrets, frozen=True):
    """One worker's surroundings. `token` and `secret` are its right to act: at signer, gateway and ledger.

    `crash` is called with the name of each crash point that the worker comes by (workers/crashpoints.py).
    """

    hidden = frozenset({"secret"})

    settings: Settings
    task_id: int
    token: int
    secret: str
    market: MarketClient
    signer: SignerClient
    clock_ms: Callable[[], int]
    crash: Callable[[str], None] = crashpoint

    @property
    def is_short_of_disk(self) -> bool:
        """Whether the data directory's disk has too little room to place anything; False where that is not known."""
        try:
            return files.is_short(self.settings.data_dir)
        except OSError:
            return False

    @property
    def damage(self) -> str:
        """The damage of the database in words, for which nothing is placed; "" if none is known."""
        found = base.look_for_damage()
        return "" if found is None else found.for_owners

    @property
    def venue(self) -> Capabilities:
        """The capabilities of the task's venue."""
        return capabilities(self.market.venue or self.settings.market)


class Job(Protocol):
    """The repeated work of a worker."""

    def cycle(self) -> float | None:
        """Runs one cycle. Returns the seconds until the next one is due, or None when nothing is left to do.

        A fault of venue, signer or database is reported in the task's `last_error` and returned from with a delay;
        BadConfig and BadCredentials end the process.
        """
