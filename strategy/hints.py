"""Hints about a ladder's price before it starts: calls, places in the queue, and signatures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from strategy.bid_config import BidConfig
from strategy.monthly import Bidding, CallCosts, monthly_calls
from strategy.plan import Limits
from strategy.pricing import rounded

LONGER_MINUTES = 120  # the life that shorter ones are compared with
CEILING = 4  # the signer's ceiling as a multiple of the plan's exposure, where it has not told its own
_WORTH = Decimal("0.8")  # a saving below a fifth is not mentioned
_FEW_MOVES = 4  # an hour; with fewer the market is hardly followed


def hints(task: Bidding, costs: CallCosts, total_sats: int, limits: Limits) -> list[str]:
    """Returns plain sentences about the config of `task`, whose bids sum up to `total_sats`; empty when all is well.

    A signature counts until its signed end, whether or not its bid was cancelled: the longer bids live, the fewer of
    them may be replaced in an hour. So a longer life is advised with its disadvantage.
    """
    if not task.bids:
        return []
    return [*_longer(task, costs, total_sats, limits), *_room(task, costs, total_sats, limits), *_loop(task, costs)]


def moves_an_hour(total_sats: int, ceiling_sats: int, life_s: int) -> Decimal:
    """Returns how often an hour each bid of a ladder may be replaced under the signer's ceiling.

    The ladder is signed once as it stands, and the rest of the ceiling within each life. Example: a ladder of the whole
    exposure under a ceiling of four times that leaves three ladders a life: 11.25 times at 16 minutes, 1.5 at 120.
    """
    return rounded(Fraction((ceiling_sats - total_sats) * 3600, total_sats * life_s))


def _longer(task: Bidding, costs: CallCosts, total_sats: int, limits: Limits) -> Iterator[str]:
    """Yields the hint that longer lives cost less, if they do."""
    if task.config.expiry_ms >= LONGER_MINUTES * 60_000:
        return
    longer = task.living(LONGER_MINUTES)
    now, then = (monthly_calls([each], costs) for each in (task, longer))
    calls, fewer = now.reads + now.writes, then.reads + then.writes
    if longer.rounds(costs) >= task.rounds(costs) or fewer > calls * _WORTH:
        return
    times = rounded(Fraction(task.rounds(costs), longer.rounds(costs)))
    text = (
        f"at {LONGER_MINUTES} minutes this ladder takes {fewer:,} calls a month instead of {calls:,}, and is placed "
        f"again {_shown(times)} times less often: each time a bid is placed again it goes behind those at its price"
    )
    if (moves := _moves(longer, costs, total_sats, limits)) is not None:
        text += f"; each bid may then be moved {_shown(moves)} times an hour"
        if (before := _moves(task, costs, total_sats, limits)) is not None:
            text += f" instead of {_shown(before)}"
        text += ", for a signature counts until its signed end"
    yield text


def _room(task: Bidding, costs: CallCosts, total_sats: int, limits: Limits) -> Iterator[str]:
    """Yields the hint that the ladder can hardly follow a market."""
    moves = _moves(task, costs, total_sats, limits)
    if moves is not None and moves < _FEW_MOVES:
        yield (
            f"with {total_sats:,} sats in bids that live {_life_s(task.config, costs) // 60} minutes, each may be "
            f"moved {_shown(moves)} times an hour before it has to wait (signed_limit): shorter lives or a smaller "
            "ladder move more often"
        )


def _loop(task: Bidding, costs: CallCosts) -> Iterator[str]:
    """Yields the hint that a loop of its own costs more than none."""
    config = task.config
    if config.loop_seconds is None or config.wants_bids:
        return
    adaptive = replace(task, config=replace(config, loop_seconds=None))
    now, then = monthly_calls([task], costs), monthly_calls([adaptive], costs)
    calls, fewer = now.reads + now.writes, then.reads + then.writes
    if fewer <= calls * _WORTH:
        yield (
            f"without loopSeconds this task looks every 30 seconds while the market moves and less often while it does "
            f"not: {fewer:,} calls in a month that stands still instead of {calls:,}"
        )


def _moves(task: Bidding, costs: CallCosts, total_sats: int, limits: Limits) -> Decimal | None:
    """Returns the moves an hour; None if the signer's ceiling is far away or unknown."""
    ceiling_sats = min((room.most_sats for room in limits.signed), default=CEILING * limits.user_headroom)
    if total_sats <= 0 or ceiling_sats <= 0:
        return None
    moves = moves_an_hour(total_sats, ceiling_sats, _life_s(task.config, costs))
    return None if moves >= 60 else max(moves, Decimal(0))


def _life_s(config: BidConfig, costs: CallCosts) -> int:
    return costs.life_s(config.expiry_ms // 1000)


def _shown(number: Decimal) -> str:
    """Writes 11.25 as 11, 1.5 as 1.5."""
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}".removesuffix(".0")
