"""The doctor on marketplaces and sources of data: reads only, by the gateway's own adapters."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

from cli import listeners
from cli.doctor import answer_check, floor_check, sale_check, settings_check, unit_check
from cli.doctor.check import Check, fail, ok, safely, warn
from cli.doctor.exchanges import Exchange, Listener, masked
from cli.doctor.questions import ASKED, About, VenueAnswer, https_of, put, questions
from core.settings import SECRETS, Settings
from gateway.app import make_adapters
from gateway.venue import Adapters
from markets.base import AuthFailed, VenueError
from markets.client import MarketClient
from markets.wire import Unread

# 3 of a key's 5 requests a second: the gateway uses the same key meanwhile.
PAUSE_S = 0.3
_GATEWAY_S = 15.0
_INDEX_BEHIND = 3  # blocks
_HAS_ROWS = ("satflow", "unisat")  # whose answers are read row by row
_WITHOUT = {
    "satflow": "no task can bid there",
    "unisat": "no task can bid on runes (asks, names and divisibility come from UniSat)",
    "mempool": "fee rates and balances are unknown, and no listing is signed",
    "ord": "no listing is signed, unless UniSat is the index",
}


class VenueExaminer:
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
        """Yields a line for each subject."""
        if self._is_practice_away():
            yield warn("venues", "the practice marketplace is not running, so none was checked", "bidkeeper up")
            return
        for venue in ASKED:
            if not https_of(venue, self._adapters):
                variable = f"BIDKEEPER_{venue.upper()}_URL"
                yield warn(venue, f"{variable} is not set: {_WITHOUT[venue]}", f"set {variable} if you need it")
            elif self._is_key_closed(venue):
                yield from self._by_gateway(venue)
            else:
                yield from safely(venue, self._venue(venue))
        yield from unit_check.examine(self._answers)
        yield from floor_check.examine(self._answers, self._about.collection)
        yield from sale_check.examine(self._answers)
        yield from self._indexes()
        spent = ", ".join(f"{count} to {venue}" for venue, count in self.calls.items()) or "none"
        yield ok("calls", f"{spent} made by the doctor; the gateway's monthly count does not include them")

    def _is_practice_away(self) -> bool:
        settings = self._settings
        return settings.market == "simulator" and listeners.problem(settings.simulator_at, "") is None

    def _is_key_closed(self, venue: str) -> bool:
        """Tells whether only the gateway's user may read the key of `venue`; the practice market takes any."""
        is_real = self._settings.market != "simulator"
        return is_real and f"{venue}_api_key" in SECRETS and settings_check.is_held(self._settings, f"{venue}_api_key")

    def _by_gateway(self, venue: str) -> Iterator[Check]:
        """Checks that the gateway's key is accepted, for a user who may not read it."""
        remedy = "for all checks, run bidkeeper doctor --only venues as the gateway's user (docs/operations.md)"
        try:
            with MarketClient(self._settings.gateway_socket, _GATEWAY_S) as market:
                if venue == "satflow":
                    market.floors([self._about.collection], "ordinals", 0)
                else:
                    market.rune(self._about.rune, 0)
        except AuthFailed as error:
            yield fail(venue, f"the gateway's key was refused: {error.message}", _key_remedy(venue))
        except VenueError as error:
            yield fail(venue, f"the gateway asked, since only its user may read the key: {error.message}", remedy)
        else:
            yield warn(venue, "the gateway asked one question, and its key was accepted", remedy)

    def _venue(self, venue: str) -> Iterator[Check]:
        url = self._settings.venue_url(venue) or ""
        listener, unread = Listener(self._clock_ms, pause), list[Unread]()
        for http in https_of(venue, self._adapters):
            listener.listen(http)
        with closing(listener):
            for question in questions(venue, self._adapters, self._about):
                answer = put(question, listener)
                unread += answer.unread
                self._answers[venue, answer.question] = answer.value
                yield self._check(venue, url, answer)
                if answer.outcome in ("no access", "pause", "silent"):
                    break  # the others would fail the same way
        self.calls[venue] += len(listener.heard)
        if venue in _HAS_ROWS:
            yield answer_check.rows(venue, unread, self._secrets)
        yield from answer_check.skew(venue, listener.heard)
        yield from self._quota(venue, listener.heard)

    def _check(self, venue: str, url: str, answer: VenueAnswer) -> Check:
        name, reason = f"{venue} {answer.question}", masked(answer.reason, self._secrets)
        status = answer.exchange.reply.status if answer.exchange and answer.exchange.reply else None
        variable = f"BIDKEEPER_{venue.upper()}_URL"
        match answer.outcome:
            case "understood":
                return answer_check.understood(name, answer)
            case "not known":
                return warn(name, f"unknown there: {reason}", "name one that trades there: --collection, --rune")
            case "not supported":
                return ok(name, reason)
            case "no access":
                what = "the key was refused" if f"{venue}_api_key" in SECRETS else "access was refused"
                return fail(name, f"status {status}, {what}: {reason}", _key_remedy(venue))
            case "pause":
                return warn(name, f"too many calls: {reason}", "wait, and stop other programs that use this key")
            case "silent":
                return fail(name, f"{_origin(url)} does not answer: {reason}", f"check the network, and {variable}")
            case "drifted":
                remedy = f"bidkeeper venue probe {venue} --save FILE, and report what it saves"
                return fail(name, f"its answer is not understood: {reason}", remedy)
            case _:
                return fail(name, f"status {status}: {reason}", f"if this repeats, check {variable}")

    def _quota(self, venue: str, heard: list[Exchange]) -> Iterator[Check]:
        if heard and (told := heard[-1].quota_headers()):
            text = ", ".join(f"{name}: {value[:60]}" for name, value in told.items())
            yield ok(f"{venue} limits", masked(text, self._secrets))

    def _indexes(self) -> Iterator[Check]:
        """Tells whether the indexes keep up with the chain."""
        tip = self._answers.get(("mempool", "height"))
        state = self._answers.get(("ord", "index"))
        heights = {"unisat": self._answers.get(("unisat", "height"))}
        if state is not None:
            heights["ord"] = state.height
            missing = [what for what in ("inscriptions", "runes") if not getattr(state, f"has_{what}")]
            if missing or state.height is None:
                text = f"it has no index of {' and '.join(missing)}" if missing else "its index is not complete yet"
                yield fail(
                    "ord index",
                    f"{text}: no listing is signed",
                    "run ord with --index-runes, and wait until it has finished",
                )
        for source, height in heights.items():
            if tip is not None and height is not None and height < tip - _INDEX_BEHIND:
                text = f"{source} is at block {height}, the chain at {tip}: listings wait until it catches up"
                yield warn(f"{source} index", text, "wait, or see its log")


def pause() -> None:
    """Waits before each call."""
    time.sleep(PAUSE_S)


def secrets_of(settings: Settings) -> list[str]:
    """Returns the keys that must not be shown."""
    return [key for name in SECRETS if (key := getattr(settings, name))]


def _key_remedy(venue: str) -> str:
    if f"{venue}_api_key" not in SECRETS:
        return "it may block this IP address after too many calls; your own server does not"
    key = f"BIDKEEPER_{venue.upper()}_API_KEY"
    return f"put a valid key into {key} (or {key}_FILE), and restart the gateway"


def _origin(url: str) -> str:
    """Returns the URL without its path, in which some providers have a key."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
