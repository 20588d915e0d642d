"""The faults of a cycle: words for the task's owner, and their consequences for the next try."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.errors import BidkeeperError
from core.logs import mask
from markets.base import AuthFailed, RateLimited, VenueError
from wallet.signer_client import SignerError, SignerRefused

_LONGEST = 200  # of one text: it may quote a venue
_MOST = 5


@dataclass(slots=True)
class Faults:
    """The faults of one cycle, as they come.

    `backs_off`: something is down, so tries go further apart. `retry_after_s`: the venue's own wish for the next try.
    `rejected`: the venue refused our credentials; trying again would not help.
    """

    texts: list[str] = field(default_factory=list)
    backs_off: bool = False
    is_rate_limited: bool = False
    retry_after_s: float = 0.0
    rejected: str | None = None

    def add(self, failed_to: str, error: BidkeeperError | str, *, backs_off: bool = True) -> None:
        """Notes one fault: `failed_to` completes "failed to ..."."""
        text = mask(f"failed to {failed_to}: {error}".replace("\n", " "))[:_LONGEST]
        if text not in self.texts:
            self.texts.append(text)
        self.backs_off = self.backs_off or backs_off
        if isinstance(error, RateLimited):
            self.is_rate_limited = True
            self.retry_after_s = max(self.retry_after_s, error.retry_after_s or 0.0)

    def add_write(self, failed_to: str, error: VenueError, *, backs_off: bool = True) -> None:
        """Notes a fault of a write, where a refusal of our credentials is final."""
        self.add(failed_to, error, backs_off=backs_off)
        if isinstance(error, AuthFailed):
            self.rejected = str(error)

    def add_unsigned(self, failed_to: str, error: SignerError) -> None:
        """Notes that the signer did not sign. A refusal by control (reduce, halt) is a person's will, no outage."""
        is_forbidden = isinstance(error, SignerRefused) and error.tag == "control-state"
        self.add(failed_to, error, backs_off=not is_forbidden)

    @property
    def text(self) -> str | None:
        """All faults in one line, None when there were none."""
        if not self.texts:
            return None
        more = len(self.texts) - _MOST
        return "; ".join(self.texts[:_MOST] + ([f"and {more} more"] if more > 0 else []))
