"""The pace of a task: how often it reads the market, and how readily it moves its bids."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from msgspec.structs import replace

from strategy.config.bid import BidConfig
from strategy.plan import Rules, SignedRoom


def rules_of(config: BidConfig, rules: Rules) -> Rules:
    """Returns the service's rules with this task's own fields in their place."""
    if config.update_tolerance is None and config.min_age_seconds is None:
        return rules
    return replace(
        rules,
        tolerance=rules.tolerance if config.update_tolerance is None else config.update_tolerance,
        min_age_ms=rules.min_age_ms if config.min_age_seconds is None else config.min_age_seconds * 1000,
    )


def margin_ms(config: BidConfig) -> int:
    """Returns how long before its end a bid is renewed: min(a quarter of the expiry, max(three cycles, a minute)).

    Rare cycles come for that, too. Example: expiry 16 minutes, cycle 30 s: 90 s.
    """
    return min(config.expiry_ms // 4, max(3 * config.loop_s, 60) * 1000)


# Patience: a task moves its bids less as its signatures near the signer's ceilings.
#
# A signature counts until its signed expiry, whether its bid was cancelled or not. So room comes back at the rate
# (signed sats) / (a bid's life), and a ladder whose every rung moves once in a time A signs (the ladder) / A. A
# ceiling is four times the most that may be live at once, so no ladder is above a quarter of it: at nine tenths of
# use, moves once in A = (a quarter of the ceiling) x life / (nine tenths of the ceiling) = life x 5 / 18 refill by
# themselves. From half use on, the least age of a bid that may move, and the distance that it may have from its rung,
# grow in a straight line up to there and beyond. A smaller ladder comes to rest at less than nine tenths.
#
# A signature of a short life gives its room back sooner. So a new bid's life is divided by the patience's square,
# though not below 16 minutes if it was that long. In a fall that would be late, as what was signed for long before it
# counts for long. So when the market cancels bids that had replaced others, the next live for 18 / 5 of the time for
# which the youngest of those stood at most: with that life, moves at that pace refill by themselves.
#
# Example: bids of 16 minutes, a least age of 60 seconds, a tolerance of 1 %. Up to half use: just that. At 64 %:
# patience 2.05, at an age of 132 seconds, within 2.05 %. At 90 %: patience 4, 266 seconds, 4 %. Bids of 120 minutes
# live for 120 up to half use, for 28 at 64 %, and for 16 from 72 % on; where a second one had to go after ten minutes,
# for 36.
_AT_HALF, _AT_NINE_TENTHS = 100, 400  # hundredths
_LEAST_LIFE_MS = 16 * 60_000  # shorter ones cost more calls for renewals than the signatures are worth


def used_percent(rooms: Iterable[SignedRoom]) -> int:
    """Returns the use of the fullest ceiling in percent, rounded down; 0 without one."""
    return max((_share(room, 100) for room in rooms), default=0)


def patience_of(rooms: Iterable[SignedRoom]) -> Decimal:
    """Computes the patience: 1 up to half use, 4 at nine tenths, linear in between: 1 + 3 x (use - 1/2) / (2/5).

    Rounded down to hundredths.
    """
    # 3 / (2/5) = 7.5, in hundredths of the whole use: 750 x use - 375.
    most = max((_share(room, 750) for room in rooms), default=0)
    return Decimal(_AT_HALF + max(0, most - 375)).scaleb(-2)


def paced(rules: Rules, rooms: Iterable[SignedRoom], life_ms: int) -> Rules:
    """Returns the rules of a task whose bids live for `life_ms`, with the patience that its signatures demand."""
    patience = patience_of(rooms)
    if patience == 1:
        return rules
    more = int(patience * 100) - _AT_HALF
    longest_ms = max(life_ms * 5 // 18, rules.min_age_ms)
    grown_ms = (longest_ms - rules.min_age_ms) * more // (_AT_NINE_TENTHS - _AT_HALF)
    return replace(rules, min_age_ms=rules.min_age_ms + grown_ms, patience=patience)


def shortened_ms(life_ms: int, loop_s: int, patience: Decimal, stood_ms: int | None = None) -> int:
    """Returns the life of a new bid that would be `life_ms` in a task without patience and on a market that stands.

    `stood_ms` is the shortest time for which a bid stood that the market has just had go, and that had come after
    another one had to go. Never so short that a renewal, due three loops before the end, takes more than the last
    quarter of it.
    """
    least_ms = max(_LEAST_LIFE_MS, 12 * loop_s * 1000)
    wanted_ms = life_ms * 10_000 // int(patience * 100) ** 2
    if stood_ms is not None:
        wanted_ms = min(wanted_ms, stood_ms * 18 // 5)
    return max(min(life_ms, least_ms), wanted_ms)


def _share(room: SignedRoom, parts: int) -> int:
    """Counts the used parts of a ceiling, rounded down; none if the ceiling is 0, which no patience widens."""
    return room.signed_sats * parts // room.most_sats if room.most_sats else 0
