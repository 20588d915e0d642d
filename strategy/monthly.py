"""What a config costs in calls to the marketplace a month, and from which expiry on that fits its quota."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from strategy.config import WHOLE_RANGES, BidConfig, normal_slug

MONTH_S = 30 * 86_400
STRETCHED_S = 600  # a read is no older than this, however short the quota runs
_SLOW_READ_S = 60

Bidding: TypeAlias = tuple[BidConfig, int]  # a config and the number of its bids


@dataclass(frozen=True, slots=True)
class MonthlyCalls:
    """Calls in 30 days: `reads` and `writes` were nothing shared, nothing stretched, and did the market stand still.

    `least` of them cannot be shared or stretched away.
    """

    reads: int
    writes: int
    least: int


def monthly_calls(config: BidConfig, bids: int) -> MonthlyCalls:
    """What a config with this many bids costs.

    Each cycle reads asks, own bids and, where they matter, the bids of others; the balance once a minute at most. Each
    bid is placed again before it expires; of each such round the bids are cancelled together, by two requests. A round
    looks at the market once more, and twice at the own bids. Example: 30 s cycles of 5 bids that live 16 minutes:
    216,000 reads (3 a cycle) and 20,853 writes.
    """
    life_s = config.expiry_ms // 1000
    life_s -= min(life_s // 4, max(3 * config.loop_s, 60))
    cycles = MONTH_S // config.loop_s
    rounds = MONTH_S // life_s if bids else 0
    looks = 3 if config.wants_bids else 2
    reads = cycles * looks + MONTH_S // max(config.loop_s, _SLOW_READ_S)
    writes = rounds * (bids + 2)
    return MonthlyCalls(reads, writes, least=writes + rounds * (_books(config) + 2) + _idle_reads(config))


def _idle_reads(config: BidConfig) -> int:
    """Reads at the longest stretch, our own bids among them."""
    return MONTH_S // max(STRETCHED_S, config.loop_s) * (_books(config) + 1)


def _books(config: BidConfig) -> int:
    """Books that one look reads at the marketplace itself; a rune's asks come from elsewhere."""
    return (not config.is_rune) + config.wants_bids


def least_calls(running: Iterable[Bidding]) -> int:
    """What cannot be shared or stretched away of several configs."""
    total, slugs = 0, set()
    for config, bids in running:
        slug = config.type, normal_slug(config.type, config.slug)
        total += monthly_calls(config, bids).least - (_idle_reads(config) if slug in slugs else 0)
        slugs.add(slug)
    return total


def usable(quota: int, taken: int) -> int:
    """Calls of a month's quota that bids may cost, with `taken` by others: the last tenth is for cancels."""
    return quota * 9 // 10 - taken


def fits_from_minutes(running: Sequence[Bidding], left: int) -> int | None:
    """The least bidExpiryMinutes with which all these fit into `left` calls; None when there is none."""

    def fits(minutes: int) -> bool:
        return least_calls((replace(config, bid_expiry_minutes=minutes), bids) for config, bids in running) <= left

    low, high = WHOLE_RANGES["bid_expiry_minutes"]
    for config, _ in running:
        low = min(
            max(low, -(-(2 * config.loop_s + 60) // 60)), high
        )  # a bid lives for two cycles and a minute at least
    if not fits(high):
        return None
    while low < high:  # the longer bids live, the less they cost
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1
    return low
