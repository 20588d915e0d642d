"""The environment of a job: its task, lock, grant, peers and faults, and the points where tests can kill it."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, cast

from msgspec import Struct, field
from msgspec.structs import force_setattr

from core import files
from core.errors import BidkeeperError
from core.fields import WithSecrets
from core.logs import mask
from core.settings import Settings
from markets.base import AuthFailed, NotUnderstood, RateLimited, Refused, Unavailable, Unknown, VenueError
from markets.client import MarketClient
from markets.venues import Capabilities, ToFund, capabilities
from models.database import base
from strategy.reasons import FaultCode, Step
from wallet.protocol import DISK_FULL
from wallet.signer_client import SignerClient, SignerError, SignerLocked, SignerRefused
from workers.kernel import take_lock

log = logging.getLogger(__name__)

WRITE_MS = 10_000  # a write that has not reached the venue after this time is abandoned

_ENDS = {signal.SIGTERM, signal.SIGINT, signal.SIGIO}


@contextmanager
def signals_held() -> Iterator[None]:
    """Delays the signals that end a worker until the end of the block.

    Use it for one write to a venue, from its reservation to its recorded answer. Without it, an interrupted order would
    count as unknown until its expiry although the venue's answer was on its way. The delay is short, because a stop
    first makes signer and gateway refuse the worker's writes. SIGKILL is not delayed.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# NAME, NAME:N (the N-th time the process reaches it), random:N (one of its first N points)
VARIABLE = "BIDKEEPER_CRASHPOINT"
NAMES = (
    "after_free",  # a reserved order that was never signed has been freed
    "after_adopt",  # a bid that the venue shows has been matched with an order
    "after_fill",  # an order has been found to be sold
    "after_settle",  # ledger and venue are reconciled
    "after_plan",
    "after_cancelling",
    "after_cancel",
    "before_replace",  # cancels are confirmed, their replacements are not reserved
    "after_reserve",
    "after_build",
    "after_sign",
    "after_store",
    "before_submit",
    "after_submit",
    "after_record",
    "before_break",  # new bids are accepted, the replaced bids are still open
    "after_replace",  # cancels are confirmed and their replacements are recorded
)
# Points of a listing's cycle and of its cancel.
LISTING_NAMES = (
    "listing-freed",  # a reserved listing that was never signed has been freed
    "listing-settled",  # ledger and venue are reconciled
    "listing-adopted",  # a listing that the venue shows has been recorded in the ledger
    "listing-ended",  # its inscription has been found to be sold or moved
    "listing-planned",
    "listing-reserved",
    "listing-drafted",
    "listing-signed",
    "listing-stored",
    "listing-submitting",
    "listing-submitted",
    "listing-recorded",
    "listing-cancelling",
    "listing-cancelled",
)
# Points of an item's return from the escrow that it was listed in.
HOMECOMING_NAMES = ("homecoming-reserved", "homecoming-signed", "homecoming-stored")
# Points of the manager while it turns a fill into an auto-list task.
FILL_NAMES = ("fill-seen", "fill-listed")

_hits: Counter[str] = Counter()


def crashpoint(name: str) -> None:
    """Kills this process like `kill -9` if BIDKEEPER_CRASHPOINT names this point and its turn has come."""
    wanted, _, turn = os.environ.get(VARIABLE, "").partition(":")
    if wanted not in (name, "random"):
        return
    _hits[wanted] += 1
    if _hits[wanted] == (_one_of(int(turn)) if wanted == "random" else int(turn or 1)):
        os.write(2, f"pid {os.getpid()} dies at crash point {name}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)


def _one_of(most: int) -> int:
    """Returns a number from 1 to `most` that differs between processes but is constant within one."""
    return os.getpid() * 2_654_435_761 % 2**32 * most // 2**32 + 1


_CANCELS_ONLY = ("control-state", DISK_FULL)  # tags of the signer's refusals
_OF_MONEY = (FaultCode.INSUFFICIENT_FUNDS, FaultCode.NO_COINS)
_LONGEST = 200  # characters of one text, because it may quote a venue
_MOST = 5


class CodedFault(NamedTuple):
    """One fault for programs: its code, and the values in its text."""

    code: FaultCode
    params: dict[str, Any]


class Faults(Struct):
    """The faults of one cycle in order, as texts (`texts`) and as codes (`coded`).

    - `backs_off`: something is down, so the delay between tries grows.
    - `retry_after_s`: the venue's requested delay before the next try.
    - `rejected`: the text with which the venue rejected our credentials for a write.
    - `has_accepted_write`: the venue accepted a write.
    """

    texts: list[str] = field(default_factory=list)
    coded: list[CodedFault] = field(default_factory=list)
    backs_off: bool = False
    is_rate_limited: bool = False
    retry_after_s: float = 0.0
    rejected: str | None = None
    has_accepted_write: bool = False

    def add(
        self,
        step: Step,
        failed_to: str,
        error: BidkeeperError | str,
        *,
        backs_off: bool = True,
        code: FaultCode | None = None,
        price_sats: int | None = None,
        fund: ToFund | None = None,
        **params: int | str,
    ) -> None:
        """Adds a step that failed; `failed_to` completes "failed to ...". A known error determines its code.

        `price_sats` is the price of the bid or listing concerned, if there is only one. `params` are other values of
        the text. `fund` says how to add funds; it is used only for a fault about money.
        """
        text = mask(f"failed to {failed_to}: {error}".replace("\n", " "))[:_LONGEST]
        if fund is not None and (code or _code_of(error)) in _OF_MONEY:
            text = f"{text}; {fund.words}"
            params |= {"address": fund.address} | ({} if fund.sats is None else {"sendSats": fund.sats})
        if text not in self.texts:
            self.texts.append(text)
            self.coded.append(_coded(step, error, code, price_sats, params))
        self.backs_off = self.backs_off or backs_off
        if isinstance(error, RateLimited):
            self.is_rate_limited = True
            self.retry_after_s = max(self.retry_after_s, error.retry_after_s or 0.0)

    def add_write(
        self,
        step: Step,
        failed_to: str,
        error: VenueError,
        *,
        backs_off: bool = True,
        price_sats: int | None = None,
        fund: ToFund | None = None,
    ) -> None:
        """Adds a fault of a write. Rejected credentials are put first and back off, because they may end the task."""
        is_rejected, known = isinstance(error, AuthFailed), len(self.texts)
        self.add(step, failed_to, error, backs_off=backs_off or is_rejected, price_sats=price_sats, fund=fund)
        if is_rejected:
            self.rejected = str(error)
            if len(self.texts) > known:
                self.texts.insert(0, self.texts.pop())
                self.coded.insert(0, self.coded.pop())

    def add_unsigned(self, step: Step, failed_to: str, error: SignerError, *, price_sats: int | None = None) -> None:
        """Adds a failure to sign. Control (reduce, halt) and a full disk still let cancels pass: no outage."""
        is_forbidden = isinstance(error, SignerRefused) and error.tag in _CANCELS_ONLY
        self.add(step, failed_to, error, backs_off=not is_forbidden, price_sats=price_sats)

    @property
    def text(self) -> str | None:
        """All faults in one line, None if there are none."""
        if not self.texts:
            return None
        more = len(self.texts) - _MOST
        return "; ".join(self.texts[:_MOST] + ([f"and {more} more"] if more > 0 else []))

    @property
    def first(self) -> CodedFault | None:
        """The fault that the task shows: the first one, with the number of the others as `more`."""
        if not self.coded:
            return None
        fault, more = self.coded[0], len(self.coded) - 1
        return CodedFault(fault.code, fault.params | {"more": more}) if more else fault

    @property
    def as_values(self) -> list[dict[str, Any]]:
        """All faults as JSON values, for a cycle's details."""
        return [{"code": str(fault.code), **fault.params} for fault in self.coded]


def _coded(
    step: Step, error: BidkeeperError | str, code: FaultCode | None, price_sats: int | None, given: dict[str, int | str]
) -> CodedFault:
    params: dict[str, Any] = {"step": str(step)}
    if price_sats is not None:
        params["priceSats"] = price_sats
    if isinstance(error, RateLimited) and error.retry_after_s is not None:
        params["retryAfterSeconds"] = round(error.retry_after_s)
    if isinstance(error, SignerRefused):
        params["rule"] = error.tag
    return CodedFault(code or _code_of(error), params | given)


# The code of the first class that an error is an instance of applies.
_CODES: tuple[tuple[type[BidkeeperError], FaultCode], ...] = (
    (RateLimited, FaultCode.VENUE_RATE_LIMITED),
    (NotUnderstood, FaultCode.VENUE_NOT_UNDERSTOOD),
    (Unavailable, FaultCode.VENUE_UNAVAILABLE),
    (Unknown, FaultCode.VENUE_UNKNOWN),
    (SignerRefused, FaultCode.SIGNER_REFUSED),
    (SignerLocked, FaultCode.SIGNER_LOCKED),
    (SignerError, FaultCode.SIGNER_AWAY),
)


def _code_of(error: BidkeeperError | str) -> FaultCode:
    if isinstance(error, Refused):
        # A venue's own codes are not part of our API, so only known kinds and codes pass.
        known = {code.value: code for code in FaultCode}
        return known.get(error.kind) or known.get(error.code) or FaultCode.VENUE_REFUSED
    return next((code for kind, code in _CODES if isinstance(error, kind)), FaultCode.OTHER)


class TaskLock:
    """The lock of a task, which this process holds until its end. Raises LockHeld if another process has it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = take_lock(path)

    def touch(self) -> None:
        """Shows the manager that this process is alive; a worker that is silent for long is killed.

        If the lock file was removed, its replacement is locked, too. Raises LockHeld if another process has it.
        """
        os.utime(self._fd)
        if not os.fstat(self._fd).st_nlink:
            log.warning("%s was removed: a new file is locked", self._path)
            former, self._fd = self._fd, take_lock(self._path, 0.0)
            os.close(former)

    def now_ms(self) -> int:
        """Returns the time (Unix ms). Every step of a job calls it, so it touches the lock, too."""
        self.touch()
        return time.time_ns() // 1_000_000


Kind = Literal["bidder", "lister", "drain"]  # of worker


class BadConfig(BidkeeperError):
    """A refusal: the task's stored config cannot be run; a restart would not help."""


class BadCredentials(BidkeeperError):
    """A refusal: a venue rejects our credentials in more than one answer; a restart would not help."""


class Context(WithSecrets, frozen=True):
    """One worker's environment. `token` and `secret` are its right to act with signer, gateway and ledger.

    `crash` is called with the name of each crash point that the worker reaches.
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
    venue: Capabilities = cast("Capabilities", None)  # of the task; set by `__post_init__`

    def __post_init__(self) -> None:
        force_setattr(self, "venue", capabilities(self.market.venue or self.settings.market))

    @property
    def is_short_of_disk(self) -> bool:
        """Whether the data directory's disk has too little room to place anything; False if unknown."""
        try:
            return files.is_short(self.settings.data_dir)
        except OSError:
            return False

    @property
    def damage(self) -> str:
        """The database damage, in words, that forbids placing anything; "" if none is known."""
        found = base.look_for_damage()
        return "" if found is None else found.for_owners


class Job(Protocol):
    """The repeated work of a worker."""

    def cycle(self) -> float | None:
        """Runs one cycle. Returns the seconds until the next one is due, or None if nothing is left to do.

        A fault of venue, signer or database is reported in the task's `last_error` and delays the next cycle; BadConfig
        and BadCredentials end the process.
        """
