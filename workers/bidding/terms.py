"""The terms of one decision's bids, and the life of each of them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from markets.call_costs import life_s
from markets.capabilities import Capabilities
from markets.funding import ToFund, to_fund
from markets.look import MarketLook
from models.ledger.limits import exposure_limits_of
from models.ledger.orders import ExposureLimits
from strategy.bid_config import BidConfig
from strategy.book import VenueProfile
from strategy.patience import patience_of, shortened_ms
from wallet.protocol import UserKeys
from workers.bidding.cancels import WRITE_MS
from workers.bidding.decision import Decision
from workers.bidding.inputs import CycleInputs

HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Terms:
    """The common terms of one decision's bids. `life_ms` is from reservation to expiry."""

    config: BidConfig
    user_id: int
    receive: str
    keys: UserKeys
    venue: Capabilities
    exposure_limits: ExposureLimits
    life_ms: int
    seen: MarketLook

    def fund(self, price_sats: int) -> ToFund | None:
        """Returns the way to enough balance for a bid that the venue says is not covered."""
        balance, fee = self.seen.balance_sats, self.seen.fee_reserve_sats or 0
        return to_fund(self.seen.funded_at, None if balance is None else price_sats + fee - balance)


def terms_of(inputs: CycleInputs, decision: Decision, untracked_sats: int) -> Terms:
    """Makes the terms of this decision's bids; `untracked_sats` are bids of the wallet without an order."""
    config, assignment, venue, keys = inputs.config, inputs.assignment, inputs.context.venue, inputs.keys
    most_sats = inputs.context.settings.max_exposure_sats
    exposure_limits = exposure_limits_of(config, assignment.plan, decision.entry.limits, most_sats, untracked_sats)
    receive = keys.vault if goes_to_vault(config, venue) else assignment.user.ordinals_address
    life = life_ms(config, inputs.profile, venue, patience_of(decision.entry.limits.signed), inputs.state.stood_ms)
    return Terms(config, assignment.user.id, receive, keys, venue, exposure_limits, life, decision.seen)


def goes_to_vault(config: BidConfig, venue: Capabilities) -> bool:
    """Tells whether the vault gets what a bid buys.

    Where bids are transactions it always does: the venue knows us by our own two addresses, and the vault is the other.
    """
    return config.to_vault or venue.bids_are_psbt


def life_ms(
    config: BidConfig,
    profile: VenueProfile,
    venue: Capabilities,
    patience: Decimal = Decimal(1),
    stood_ms: int | None = None,
) -> int:
    """Returns a bid's life: as configured, but no shorter than the venue takes, and in whole hours where it counts so.

    With `patience`, or where the market soon had a bid go, it is shorter (strategy/patience.py). 16 minutes are
    6 hours where the shortest life is that, and 7 hours are 12 where there is none between.
    """
    wanted_ms = shortened_ms(config.expiry_ms, config.loop_s, patience, stood_ms)
    if venue.expiry == "hours":
        return life_s(venue, max(wanted_ms // 1000, profile.min_duration_s)) * 1000
    # A venue counts its shortest life from the bid's arrival, which may be as late as its deadline.
    return max(wanted_ms, profile.min_duration_s * 1000 + WRITE_MS)
