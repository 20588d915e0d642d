"""One cycle's inputs, and the state that its worker keeps from cycle to cycle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from markets.look import Looker
from strategy.bid_config import BidConfig
from strategy.book import VenueProfile
from strategy.calm import Calm
from strategy.plan import SignedRoom
from wallet.protocol import UserKeys
from workers.bidding.assignment import BiddingAssignment
from workers.bidding.journal import Journal
from workers.context import Context
from workers.faults import Faults

FRESH_S = 0.0  # by reads that begin after the brake; tasks on one market share those


@dataclass(slots=True)
class BidderState:
    """The state that one worker keeps from cycle to cycle. `new_intent` gives 32 hex digits, never the same again."""

    looker: Looker
    journal: Journal
    new_intent: Callable[[], str]
    has_read: bool = False  # our own bids, since the worker began
    rooms: tuple[SignedRoom, ...] = ()  # the signer's last answer about its ceilings
    partly: frozenset[int] = field(default_factory=frozenset)  # open orders that were seen sold in part
    # When each of the wallet's bids (venue id) was last shown: a book may show one for a while after it is gone.
    bids_seen: dict[str, int] = field(default_factory=dict)
    read_ms: int = 0  # when our own bids were read, as far as the last cycle knew
    is_quiet: bool = False  # the last cycle changed nothing, and nothing had changed
    calm: Calm = field(default_factory=Calm)
    # Until a bid is placed: whether the market had bids go, and the shortest time for which one stood that had itself
    # come after such a one, as `followers` (orders) did.
    is_forced: bool = False
    stood_ms: int | None = None
    followers: frozenset[int] = frozenset()
    unstored: set[int] = field(default_factory=set)  # orders whose cancel was sent, though the disk had no room for it
    balances: tuple[tuple[int, int], ...] = ()  # the newest readings of the balance: when, and sats


@dataclass(frozen=True, slots=True)
class CycleInputs:
    """One cycle's inputs: assignment, keys, the market's rules for bids. `faults` collects failures.

    `is_braked`: a limit has changed since the last cycle, so that this one goes by the market of this moment.
    """

    context: Context
    assignment: BiddingAssignment
    keys: UserKeys
    profile: VenueProfile
    state: BidderState
    faults: Faults
    is_braked: bool = False

    @property
    def max_age_s(self) -> float:
        """The greatest age of what the cycle reads, in seconds."""
        return FRESH_S if self.is_braked else self.config.loop_s / 2

    @property
    def config(self) -> BidConfig:
        """The task's config."""
        return self.assignment.config

    @property
    def addresses(self) -> frozenset[str]:
        """All addresses of the user's."""
        user, keys = self.assignment.user, self.keys
        return frozenset({user.address, user.ordinals_address, keys.payment, keys.vault})
