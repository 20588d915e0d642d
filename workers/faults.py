"""The faults of a cycle: words for the task's owner, codes for programs, and their consequences for the next try."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct, field

from core.errors import BidkeeperError
from core.logs import mask
from markets.base import AuthFailed, NotUnderstood, RateLimited, Refused, Unavailable, Unknown, VenueError
from markets.venues import ToFund
from strategy.reasons import FaultCode, Step
from wallet.protocol import DISK_FULL
from wallet.signer_client import SignerError, SignerLocked, SignerRefused

_CANCELS_ONLY = ("control-state", DISK_FULL)  # tags of the signer's refusals
_OF_MONEY = (FaultCode.INSUFFICIENT_FUNDS, FaultCode.NO_COINS)
_LONGEST = 200  # of one text: it may quote a venue
_MOST = 5


class CodedFault(NamedTuple):
    """One fault for programs: its code, and the values in its words."""

    code: FaultCode
    params: dict[str, Any]


class Faults(Struct):
    """The faults of one cycle, as they come, in words (`texts`) and as codes (`coded`), in the same order.

    `backs_off`: something is down, so tries go further apart. `retry_after_s`: the venue's own wish for the next try.
    `rejected`: the venue refused our credentials for a write, in these words. `has_accepted_write`: it took a write.
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
        """Notes a step that failed; `failed_to` completes "failed to ...". An error has its own code.

        `price_sats` is that of the one bid or listing which it is about, `params` are other values in the words.
        `fund` is the way to enough money, added to a fault of money only.
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
        """Notes a fault of a write. A refusal of our credentials comes first and backs off: it may end the task."""
        is_rejected, known = isinstance(error, AuthFailed), len(self.texts)
        self.add(step, failed_to, error, backs_off=backs_off or is_rejected, price_sats=price_sats, fund=fund)
        if is_rejected:
            self.rejected = str(error)
            if len(self.texts) > known:
                self.texts.insert(0, self.texts.pop())
                self.coded.insert(0, self.coded.pop())

    def add_unsigned(self, step: Step, failed_to: str, error: SignerError, *, price_sats: int | None = None) -> None:
        """Notes that the signer did not sign. Control (reduce, halt) and a full disk let cancels through: no outage."""
        is_forbidden = isinstance(error, SignerRefused) and error.tag in _CANCELS_ONLY
        self.add(step, failed_to, error, backs_off=not is_forbidden, price_sats=price_sats)

    @property
    def text(self) -> str | None:
        """All faults in one line, None when there were none."""
        if not self.texts:
            return None
        more = len(self.texts) - _MOST
        return "; ".join(self.texts[:_MOST] + ([f"and {more} more"] if more > 0 else []))

    @property
    def first(self) -> CodedFault | None:
        """The fault that a task shows as its own: the first one, with the number of the others as `more`."""
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


def _code_of(error: BidkeeperError | str) -> FaultCode:
    if isinstance(error, RateLimited):
        return FaultCode.VENUE_RATE_LIMITED
    if isinstance(error, NotUnderstood):
        return FaultCode.VENUE_NOT_UNDERSTOOD
    if isinstance(error, Unavailable):
        return FaultCode.VENUE_UNAVAILABLE
    if isinstance(error, Unknown):
        return FaultCode.VENUE_UNKNOWN
    if isinstance(error, Refused):
        # A venue's own codes are not ours to promise; a leaf's kind is, and so are the gateway's.
        known = {code.value: code for code in FaultCode}
        return known.get(error.kind) or known.get(error.code) or FaultCode.VENUE_REFUSED
    if isinstance(error, SignerRefused):
        return FaultCode.SIGNER_REFUSED
    if isinstance(error, SignerLocked):
        return FaultCode.SIGNER_LOCKED
    return FaultCode.SIGNER_AWAY if isinstance(error, SignerError) else FaultCode.OTHER
