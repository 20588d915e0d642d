"""The doctor on marketplaces and data sources, read through the gateway's own adapters; it only reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, field

from cli import api
from cli.doctor import settings_check
from cli.doctor.check import Check, fail, first, is_missing, named, ok, safely, warn
from cli.doctor.program_check import CLOCK_REMEDY, ODD_ON_PURPOSE
from cli.doctor.questions import (
    ASKED,
    About,
    Exchange,
    Listener,
    VenueAnswer,
    https_of,
    masked,
    pause,
    put,
    questions,
    secrets_of,
)
from core.settings import PLAY_MARKET, SECRETS, Settings
from gateway.app import make_adapters
from gateway.program import Adapters
from markets import venues
from markets.base import AuthFailed, VenueError
from markets.client import MOST_SKEW_S, MarketClient
from markets.parse import Unread
from wallet.messages import MessageError, check_challenge

_GATEWAY_S = 15.0
_INDEX_BEHIND = 3  # blocks
_WITHOUT = {
    "satflow": "no task can bid there",
    "unisat": "no task can bid on runes (asks, names and divisibility come from UniSat)",
    "mempool": "fee rates and balances are unknown, and no listing is signed",
    "ord": "no listing is signed, unless UniSat is the index",
}
_SKEW_WARN_S = 2.0
_MAX_FACTOR = 5  # maximum factor between two venues' floors of one rune
_LEAST_BID = Decimal("0.01")  # a best bid below this part of the lowest ask is suspicious, but possible
_MOST_BID = 2  # a best bid above twice the lowest ask is impossible, because it would have been filled
_KEY_FILE = "put the key into its file; if only the gateway's user may read it, start Bidkeeper"
_PROBE = "bidkeeper venue probe {} --save FILE, and report what it saves"
_REPORT = "bidkeeper venue probe {} --save FILE, and report it"
_UNIT = _REPORT.format("satflow") + "; do not bid on runes there until this is resolved"
_NAME_ONE = "name one that trades there: --collection, --rune"
Answers = Mapping[tuple[str, str], Any]  # by venue and question


class _Examiner(Struct):
    """Asks venues and keeps their answers; `calls` counts the requests by venue."""

    settings: Settings
    about: About
    clock_ms: Callable[[], int]
    adapters: Adapters
    secrets: list[str]
    calls: Counter[str] = field(default_factory=Counter)
    answers: dict[tuple[str, str], Any] = field(default_factory=dict)

    def is_key_closed(self, venue: str) -> bool:
        """Returns True if only the gateway's user may read the key of `venue`; the practice market accepts any key."""
        is_real = self.settings.market != PLAY_MARKET
        return is_real and f"{venue}_api_key" in SECRETS and settings_check.is_held(self.settings, f"{venue}_api_key")

    def by_gateway(self, venue: str) -> Check:
        """Checks that the gateway's key is accepted, for a user who may not read that key."""
        remedy = "for all checks, run bidkeeper doctor --only venues as the gateway's user (docs/operations.md)"
        try:
            with MarketClient(self.settings.gateway_socket, _GATEWAY_S) as market:
                if venue == "satflow":
                    market.floors([self.about.collection], "ordinals", 0)
                else:
                    market.rune(self.about.rune, 0)
        except AuthFailed as error:
            return fail(f"the gateway's key was refused: {error.message}", _key_remedy(venue))
        except VenueError as error:
            if is_missing(self.settings.gateway_socket):
                return fail("not asked: this user cannot read the key's file, and no gateway runs here", _KEY_FILE)
            return fail(f"the gateway asked, since only its user may read the key: {error.message}", remedy)
        return warn("the gateway asked one question, and its key was accepted", remedy)

    def venue(self, venue: str) -> Iterator[Check]:
        listener, unread = Listener(self.clock_ms, pause), list[Unread]()
        for http in https_of(venue, self.adapters):
            listener.listen(http)
        with closing(listener):
            for question in questions(venue, self.adapters, self.about):
                answer = put(question, listener)
                unread += answer.unread
                self.answers[venue, answer.question] = answer.value
                yield self.check(venue, answer)._replace(name=f"{venue} {answer.question}")
                if answer.outcome in ("no access", "pause", "silent"):
                    break  # the other questions would fail the same way
        heard = listener.heard
        self.calls[venue] += len(heard)
        if venue in ("satflow", "unisat") and any(each.reply for each in heard):  # they are parsed row by row
            found = rows_read(venue, unread, self.secrets)._replace(name=f"{venue} rows")
            is_practice = found.status == "warn" and self.settings.market == PLAY_MARKET
            yield found._replace(remedy=ODD_ON_PURPOSE) if is_practice else found
        yield from named(f"clock against {venue}", _skew(heard))
        if heard and (quota := heard[-1].quota_headers()):
            text = ", ".join(f"{name}: {value[:60]}" for name, value in quota.items())
            yield ok(masked(text, self.secrets), f"{venue} limits")

    def check(self, venue: str, answer: VenueAnswer) -> Check:
        reason, variable = masked(answer.reason, self.secrets), f"BIDKEEPER_{venue.upper()}_URL"
        status = answer.exchange.reply.status if answer.exchange and answer.exchange.reply else None
        match answer.outcome:
            case "understood":
                return understood(venue, answer)
            case "not known":
                return warn(f"unknown there: {reason}", _NAME_ONE)
            case "not supported":
                return ok(reason)
            case "no access":
                what = "the key was refused" if f"{venue}_api_key" in SECRETS else "access was refused"
                return fail(f"status {status}, {what}: {reason}", _key_remedy(venue))
            case "pause":
                return warn(f"too many calls: {reason}", "wait, and stop other programs that use this key")
            case "silent":
                url = urlsplit(self.settings.venue_url(venue) or "")  # some providers put a key into its path
                text = f"{url.scheme}://{url.netloc} does not answer: {reason}"
                return fail(text, f"check the network, and {variable}")
            case "drifted":
                return fail(f"its answer is not understood: {reason}", _PROBE.format(venue))
            case _:
                return fail(f"status {status}: {reason}", f"if this repeats, check {variable}")


def examine(settings: Settings, about: About, clock_ms: Callable[[], int]) -> Iterator[Check]:
    """Asks each venue a few questions, and yields a line for each subject. `clock_ms` is the epoch."""
    examiner = _Examiner(settings, about, clock_ms, make_adapters(settings), secrets_of(settings))
    if settings.market == PLAY_MARKET and api.problem(settings.simulator_at, "") is None:
        yield warn("the practice marketplace is not running, so none was checked", "bidkeeper up", "venues")
        return
    for venue in ASKED:
        if not https_of(venue, examiner.adapters):
            variable = f"BIDKEEPER_{venue.upper()}_URL"
            yield warn(f"{variable} is not set: {_WITHOUT[venue]}", f"set {variable} if you need it", venue)
        elif examiner.is_key_closed(venue):
            yield examiner.by_gateway(venue)._replace(name=venue)
        else:
            yield from safely(venue, examiner.venue(venue))
    answers = examiner.answers
    yield from named("rune unit", rune_unit(answers))
    yield from floors(answers, about.collection)
    yield from named("satflow fills", _sales(answers))
    yield from _indexes(answers)
    spent = ", ".join(f"{count} to {venue}" for venue, count in examiner.calls.items()) or "none"
    yield ok(f"{spent} made by the doctor; the gateway's monthly count does not include them", "calls")


def _key_remedy(venue: str) -> str:
    if f"{venue}_api_key" not in SECRETS:
        return "it may block this IP address after too many calls; your own server does not"
    key = f"BIDKEEPER_{venue.upper()}_API_KEY"
    return f"put a valid key into {key} (or {key}_FILE), and restart the gateway"


def understood(venue: str, answer: VenueAnswer) -> Check:
    """Reports an answer that was understood; warns if it was empty."""
    value = answer.value
    if isinstance(value, tuple | dict) and not value:
        if answer.question == "own bids":
            return ok("understood: an unused address has no bids")
        return warn("the answer is empty, so its form could not be checked", _NAME_ONE)
    if answer.question in ("bids", "rune bids"):
        maker_count = sum(1 for offer in value if offer.bid.maker)
        text = f"{len(value)} understood, none names its bidder: own bids are recognised by id and price only"
        found = ok(f"{len(value)} understood, {maker_count} name their bidder")
        return found if maker_count else warn(text, _PROBE.format("satflow"))
    if answer.question == "challenge":  # the signer signs it, otherwise no bid can be cancelled there
        try:
            check_challenge(value)
        except MessageError as error:
            remedy = f"{_REPORT.format('satflow')}; place no bids there until then"
            return fail(f"the signer refuses it, so no bid can be cancelled there: {error}", remedy)
        return ok(f"the signer accepts it ({len(value)} characters)")
    if (venue, answer.question) == ("unisat", "rune"):
        return ok(f"understood: {value[0]} has divisibility {value[1]}")
    return ok(f"{len(value)} understood" if isinstance(value, tuple) else "understood")


def rows_read(venue: str, unread: Sequence[Unread], secrets: list[str]) -> Check:
    """Warns of rows that the adapter left out: a few do no harm, but more may follow."""
    odd = [each for each in unread if not each.is_foreign]
    if not odd:
        others = f"; {len(unread)} were about something else" if unread else ""
        return ok(f"every row of these answers is understood{others}")
    text = f"{len(odd)} rows of these answers are not understood, and left out; the first is {odd[0].why}"
    return warn(masked(text, secrets), _PROBE.format(venue))


def _skew(heard: list[Exchange]) -> Check | None:
    """Reports our clock's skew: the smallest that any exchange proves, because a cache may return an old date."""
    skews = [each for exchange in heard if (each := exchange.skew_s()) is not None]
    if not skews:
        return None
    least = min(skews, key=abs)
    text = f"at least {abs(least):.1f} s {'ahead' if least > 0 else 'behind'}"
    return first(
        (abs(least) <= _SKEW_WARN_S, ok("agrees within 2 s")),
        (abs(least) <= MOST_SKEW_S, warn(text, CLOCK_REMEDY)),
        (True, fail(f"{text}: no bid is placed, because it would expire at the wrong time", CLOCK_REMEDY)),
    )


def rune_unit(answers: Answers) -> Iterator[Check]:
    """Checks that a rune's prices at UniSat and Satflow are sats per whole token.

    UniSat's adapter itself checks each lot (price against amount times unit price). Between the two venues, a wrong
    unit shows as a factor that no market has.
    """
    lots = answers.get(("unisat", "rune listings"))
    if not lots:
        return
    ask = lots[0].unit_price
    yield ok(f"UniSat: {len(lots)} lots cost amount × unit price; the lowest ask is {shown(ask)} sats a token")
    for floor in (answers.get(("satflow", "rune floors")) or {}).values():
        if floor.floor is not None:
            text = f"Satflow's floor is {shown(floor.floor)} sats, UniSat's {shown(ask)} a token"
            is_near = ask / _MAX_FACTOR <= floor.floor <= ask * _MAX_FACTOR
            yield ok(text) if is_near else fail(f"{text}: Satflow's is not per token", _UNIT)
    if offers := answers.get(("satflow", "rune bids")):
        bid = max(offer.bid.unit_price for offer in offers)
        text = f"Satflow's best bid is {shown(bid)} sats a token (price / quantity), UniSat's lowest ask {shown(ask)}"
        yield first(
            (bid > ask * _MOST_BID, fail(f"{text}: its price or quantity has another unit", _UNIT)),
            (bid < ask * _LEAST_BID, warn(f"{text}: its price may be per token instead of per order", _UNIT)),
            (True, ok(text)),
        )


def shown(number: Decimal) -> str:
    """Formats a number with four significant digits: 0.01234, 12.35, 1234."""
    return format(Decimal(f"{number:.4g}"), "f")


def floors(answers: Answers, slug: str) -> Iterator[Check]:
    """Checks that the floor equals the cheapest listing, at each venue whose floors replace reads of asks."""
    for venue in sorted({venue for venue, question in answers if question == "listings"}):
        floor = (answers.get((venue, "floors")) or {}).get(slug)
        listings = answers[venue, "listings"]
        if not venues.is_known(venue) or not venues.capabilities(venue).floors_tell_asks:
            continue
        if floor is None or floor.floor is None or not listings:
            continue
        lowest = min(listing.ask.price for listing in listings)
        differ = (
            f"{slug}: the floor is {floor.floor:,} sats, the cheapest listing {lowest:,}: while they differ, "
            "each cycle reads all asks as well as the floor"
        )
        remedy = f"run it again in a minute; if this repeats, {_REPORT.format(venue)}"
        same, name = f"{slug}: the floor and the cheapest listing are both {lowest:,} sats", f"{venue} floor"
        yield ok(same, name) if floor.floor == lowest else warn(differ, remedy, name)


def _sales(answers: Answers) -> Check | None:
    """Compares Satflow's newest sales, requested with `active=false`, with those requested without it.

    A filled bid without a sale looks like a cancelled one.
    """
    asked, unasked = answers.get(("satflow", "sales")), answers.get(("satflow", "sales unasked"))
    if asked is None or not unasked:
        return None
    known = {sale.sale_id for sale in asked}
    # Older sales may be on a later page.
    since_ms = min((sale.sold_ms for sale in asked), default=0)
    hidden = [sale for sale in unasked if sale.sold_ms > since_ms and sale.sale_id not in known]
    if not hidden:
        return ok(f"the {len(asked)} sales with active=false include all of the newest sales")
    text = f"{len(hidden)} of {len(unasked)} sales are missing when asked with active=false"
    return fail(f"{text}: our fills may be mistaken for lost bids", _REPORT.format("satflow"))


def _indexes(answers: Answers) -> Iterator[Check]:
    """Reports whether the indexes keep up with the chain."""
    tip, state = answers.get(("mempool", "height")), answers.get(("ord", "index"))
    heights = {"unisat": answers.get(("unisat", "height"))}
    if state is not None:
        heights["ord"] = state.height
        missing = [what for what in ("inscriptions", "runes") if not getattr(state, f"has_{what}")]
        if missing or state.height is None:
            text = f"it has no index of {' and '.join(missing)}" if missing else "its index is not complete yet"
            remedy = "run ord with --index-runes, and wait until it has finished"
            yield fail(f"{text}: no listing is signed", remedy, "ord index")
    for source, height in heights.items():
        if tip is not None and height is not None and height < tip - _INDEX_BEHIND:
            text = f"{source} is at block {height}, the chain at {tip}: listings wait until it catches up"
            yield warn(text, "wait, or see its log", f"{source} index")
