"""The doctor on marketplaces and sources of data: reads only, by the adapters that the gateway trades with."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from cli import doctor_settings, venue_units
from cli.doctor_check import Check, fail, ok, warn
from cli.venue_exchanges import Exchange, Listener, masked
from cli.venue_questions import VENUES, About, Answer, adapters_of, put, questions
from core.settings import SECRETS, Settings, is_loopback
from gateway.adapters import Adapters
from gateway.app import adapters as make_adapters

# Half of the 5 requests a second that a key has: the gateway trades with the same one meanwhile.
PAUSE_S = 0.4
_SKEW_WARN_S, _SKEW_FAIL_S = 2.0, 30.0
_INDEX_BEHIND = 3  # blocks
_WITHOUT = {
    "satflow": "there is no market to bid on",
    "unisat": "no rune can be bid on: their asks, names and divisibility come from there",
    "mempool": "fee rates and balances are not known, and no listing is signed",
    "ord": "no listing is signed, unless UniSat is set as their index",
}


class Venues:
    """Asks each venue a few questions; `calls` counts them by venue."""

    def __init__(self, settings: Settings, about: About, clock_ms: Callable[[], int]) -> None:
        self.calls: Counter[str] = Counter()
        self._settings = settings
        self._about = about
        self._clock_ms = clock_ms
        self._adapters: Adapters = make_adapters(settings)
        self._secrets = secrets_of(settings)
        self._answers: dict[tuple[str, str], Any] = {}

    def examine(self) -> Iterator[Check]:
        """A line for each thing that was looked at."""
        for venue in VENUES:
            if not adapters_of(venue, self._adapters):
                variable = f"BIDKEEPER_{venue.upper()}_URL"
                yield warn(venue, f"{variable} is not set: {_WITHOUT[venue]}", f"set {variable} if that is wanted")
            elif venue in ("satflow", "unisat") and doctor_settings.is_held(self._settings, f"{venue}_api_key"):
                yield warn(venue, "not asked: this user may not read its key", "as the gateway's user: --only venues")
            else:
                yield from self._venue(venue)
        yield from venue_units.examine(self._answers)
        yield from self._indexes()
        spent = ", ".join(f"{count} of {venue}" for venue, count in self.calls.items()) or "none"
        yield ok("calls", f"the doctor asked {spent}; the gateway's count of the month has none of them")

    def _venue(self, venue: str) -> Iterator[Check]:
        url = self._settings.venue_url(venue) or ""
        is_own = is_loopback(urlsplit(url).hostname or "")
        listener = Listener(self._clock_ms, (lambda: None) if is_own else (lambda: time.sleep(PAUSE_S)))
        for adapter in adapters_of(venue, self._adapters):
            listener.listen(adapter)
        for question in questions(venue, self._adapters, self._about):
            if question.is_extra:
                continue
            answer = put(question, listener)
            self._answers[venue, answer.question] = answer.value
            yield self._check(venue, url, answer)
            if answer.outcome in ("no access", "pause", "silent"):
                break  # the others would fare no better
        self.calls[venue] += len(listener.heard)
        yield from _skew(venue, listener.heard)
        yield from self._quota(venue, listener.heard)

    def _check(self, venue: str, url: str, answer: Answer) -> Check:
        name, reason = f"{venue} {answer.question}", masked(answer.reason, self._secrets)
        status = answer.exchange.reply.status if answer.exchange and answer.exchange.reply else None
        variable = f"BIDKEEPER_{venue.upper()}_URL"
        match answer.outcome:
            case "understood":
                return _understood(name, answer)
            case "not known":
                return warn(name, f"not known there: {reason}", "name what trades there: --collection, --rune")
            case "not supported":
                return ok(name, reason)
            case "no access":
                key = f"BIDKEEPER_{venue.upper()}_API_KEY"
                remedy = f"put a key that is valid into {key} (or {key}_FILE), and restart the gateway"
                return fail(name, f"status {status}, the key is not accepted: {reason}", remedy)
            case "pause":
                return warn(name, f"too many calls: {reason}", "wait; end what else uses this key")
            case "silent":
                return fail(name, f"{url} does not answer: {reason}", f"look at the network, and at {variable}")
            case "drifted":
                remedy = f"bidkeeper venue probe {venue} --save DIR, and report what it saves"
                return fail(name, f"its answer is not understood: {reason}", remedy)
            case _:
                return fail(name, f"status {status}: {reason}", f"if it stays so, look at {variable} ({url})")

    def _quota(self, venue: str, heard: list[Exchange]) -> Iterator[Check]:
        if heard and (told := heard[-1].quota_headers()):
            text = ", ".join(f"{name}: {value[:60]}" for name, value in told.items())
            yield ok(f"{venue} limits", masked(text, self._secrets))

    def _indexes(self) -> Iterator[Check]:
        """Whether the indexes keep up with the chain."""
        tip = self._answers.get(("mempool", "height"))
        state = self._answers.get(("ord", "index"))
        heights = {"unisat": self._answers.get(("unisat", "height"))}
        if state is not None:
            heights["ord"] = state.height
            missing = [what for what in ("inscriptions", "runes") if not getattr(state, f"has_{what}")]
            if missing or state.height is None:
                text = f"it has no index of {' and '.join(missing)}" if missing else "its index cannot be trusted yet"
                yield fail(
                    "ord index", f"{text}: no listing is signed", "run ord with --index-runes, and let it finish"
                )
        for source, height in heights.items():
            if tip is not None and height is not None and height < tip - _INDEX_BEHIND:
                text = f"{source} is at block {height}, the chain at {tip}: listings wait for it"
                yield warn(f"{source} index", text, "let it catch up, or look at what hinders it")


def secrets_of(settings: Settings) -> list[str]:
    """The keys that must not be shown."""
    return [key for name in SECRETS if (key := getattr(settings, name))]


def _understood(name: str, answer: Answer) -> Check:
    value = answer.value
    if isinstance(value, tuple | dict) and not value:
        if answer.question == "own bids":
            return ok(name, "understood: no bids at an address that nobody uses")
        text = "none were told, so their shape could not be seen"
        return warn(name, text, "name what trades there: --collection, --rune")
    if answer.question in ("bids", "rune bids"):
        named = sum(1 for offer in value if offer.bid.maker)
        if not named:
            text = f"{len(value)} understood, none says who bids: own bids are known by id and price only"
            return warn(name, text, "bidkeeper venue probe satflow --save DIR, and report what it saves")
        return ok(name, f"{len(value)} understood, {named} say who bids")
    if isinstance(value, tuple):
        return ok(name, f"{len(value)} understood")
    return ok(name, "understood")


def _skew(venue: str, heard: list[Exchange]) -> Iterator[Check]:
    """Each exchange proves a least skew; the least of them counts, since a cache may show an old date."""
    told = [skew for exchange in heard if (skew := exchange.skew_s()) is not None]
    if not told:
        return
    skew = min(told, key=abs)
    name, text = f"clock against {venue}", f"{abs(skew):.1f} s {'ahead' if skew > 0 else 'behind'} at the least"
    remedy = "set the clock by NTP: timedatectl set-ntp true"
    if abs(skew) <= _SKEW_WARN_S:
        yield ok(name, "agrees within 2 s")
    elif abs(skew) <= _SKEW_FAIL_S:
        yield warn(name, text, remedy)
    else:
        yield fail(
            name, text + "; bids would expire at the wrong time", "set the clock by NTP: timedatectl set-ntp true"
        )
