"""The doctor's check lines for understood answers, and for the clock behind a venue's answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cli.doctor.check import Check, fail, ok, warn
from cli.doctor.exchanges import Exchange, masked
from cli.doctor.questions import VenueAnswer
from markets.client import MOST_SKEW_S
from markets.wire import Unread
from wallet.messages import MessageError, check_challenge

_SKEW_WARN_S = 2.0
CLOCK_REMEDY = "set the clock by NTP: timedatectl set-ntp true"


def understood(name: str, answer: VenueAnswer) -> Check:
    """Reports an understood answer; a warning where it was empty."""
    value = answer.value
    if isinstance(value, tuple | dict) and not value:
        if answer.question == "own bids":
            return ok(name, "understood: an unused address has no bids")
        text = "the answer is empty, so its form could not be checked"
        return warn(name, text, "name one that trades there: --collection, --rune")
    if answer.question in ("bids", "rune bids"):
        named = sum(1 for offer in value if offer.bid.maker)
        if not named:
            text = f"{len(value)} understood, none names its bidder: own bids are recognised by id and price only"
            return warn(name, text, "bidkeeper venue probe satflow --save FILE, and report what it saves")
        return ok(name, f"{len(value)} understood, {named} name their bidder")
    if answer.question == "challenge":
        return _challenge(name, value)
    if name == "unisat rune":
        return ok(name, f"understood: {value[0]} has divisibility {value[1]}")
    if isinstance(value, tuple):
        return ok(name, f"{len(value)} understood")
    return ok(name, "understood")


def rows(venue: str, unread: Sequence[Unread], secrets: list[str]) -> Check:
    """Reports the rows of a venue's answers that the adapter left out: few do no harm, and more are on their way."""
    name = f"{venue} rows"
    odd = [each for each in unread if not each.is_foreign]
    if not odd:
        others = f"; {len(unread)} were about something else" if unread else ""
        return ok(name, f"every row of these answers is understood{others}")
    text = f"{len(odd)} rows of these answers are not understood, and left out; the first is {odd[0].why}"
    return warn(name, masked(text, secrets), f"bidkeeper venue probe {venue} --save FILE, and report what it saves")


def _challenge(name: str, text: str) -> Check:
    """Tells whether the signer would sign it: without that nothing can be cancelled there."""
    try:
        check_challenge(text)
    except MessageError as error:
        remedy = "bidkeeper venue probe satflow --save FILE, and report it; place no bids there until then"
        return fail(name, f"the signer refuses it, so no bid can be cancelled there: {error}", remedy)
    return ok(name, f"the signer accepts it ({len(text)} characters)")


def skew(venue: str, heard: list[Exchange]) -> Iterator[Check]:
    """Yields the skew: each exchange proves a least one; the smallest counts, since a cache may show an old date."""
    told = [each for exchange in heard if (each := exchange.skew_s()) is not None]
    if not told:
        return
    least = min(told, key=abs)
    name, text = f"clock against {venue}", f"at least {abs(least):.1f} s {'ahead' if least > 0 else 'behind'}"
    if abs(least) <= _SKEW_WARN_S:
        yield ok(name, "agrees within 2 s")
    elif abs(least) <= MOST_SKEW_S:
        yield warn(name, text, CLOCK_REMEDY)
    else:
        yield fail(name, f"{text}: no bid is placed, because it would expire at the wrong time", CLOCK_REMEDY)
