"""Read-only questions to a venue that show whether its answers fit its adapter, and the HTTP exchanges they made."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

from msgspec import Struct

from cli.arguments import collection, ticker
from core.settings import SECRETS, Settings, dialect_of
from gateway.program import Adapters
from markets.base import (
    AuthFailed,
    NotFound,
    NotSupported,
    NotUnderstood,
    RateLimited,
    SignInNeeded,
    VenueError,
)
from markets.http import Http, Reply, made_s
from markets.parse import Page, Unread, Unreadable, noting
from markets.satflow.adapter import Satflow

MASKED = "[masked]"
PAUSE_S = 0.3  # 3 of a key's 5 requests a second, because the gateway uses the same key meanwhile
_CREDENTIALS = ("Authorization", "x-api-key")
QUOTA_WORDS = ("ratelimit", "rate-limit", "quota", "credits")
ASKED = ("satflow", "unisat", "mempool", "ord")
# An unused address: its key was made for the self-test of signatures and discarded.
ADDRESS = "bc1qlzrwcf49yrltr5graye452qeypxcrwk7l0wg75"
PUBKEY = "02f6b160813359d5d8436e9bd23829641dd6d85598f0c64c981a2a58cff159b5ff"
VAULT = "bc1pr5tl40fulfznkxw64j577qfx2927zlrydv2e9qwdzffgd3pnadcsk3hs39"
FIRST_INSCRIPTION = "6fb976ab49dcec017f1e201e84395983204ae1a7c2abf7ced0a85d692e442799i0"

Outcome = Literal[
    "understood", "not known", "not supported", "drifted", "no access", "no session", "pause", "silent", "refused"
]


class Exchange(Struct, frozen=True):
    """One request and its whole answer; `reply` None: no answer. Times are epoch milliseconds of our clock."""

    method: str
    path: str
    params: Mapping[str, str]
    body: Any
    sent_ms: int
    received_ms: int
    reply: Reply | None

    def skew_s(self) -> float | None:
        """Returns the minimum seconds that our clock is ahead of the venue's (negative: behind); None without a date.

        `Date` is a second between sending and receiving, so a difference within that span proves nothing.
        """
        made = None if self.reply is None else made_s(self.reply.headers)
        if made is None:
            return None
        told_ms = made * 1000
        ahead, behind = self.sent_ms - (told_ms + 1000), told_ms - self.received_ms
        return max(ahead, 0) / 1000 - max(behind, 0) / 1000

    def quota_headers(self) -> dict[str, str]:
        """Returns the headers that show the venue's remaining quota."""
        headers = {} if self.reply is None else self.reply.headers
        return {name: value for name, value in headers.items() if any(word in name.lower() for word in QUOTA_WORDS)}


class Listener:
    """Records the exchanges of adapters. `clock_ms` is the epoch; `before` runs ahead of each exchange."""

    def __init__(self, clock_ms: Callable[[], int], before: Callable[[], None] = lambda: None) -> None:
        self.heard: list[Exchange] = []
        self._heard_of: list[Http] = []
        self._clock_ms = clock_ms
        self._before = before

    def listen(self, http: Http) -> None:
        """Records the exchanges of `http` from now on."""
        self._heard_of.append(http)
        exchange = http._exchange

        def heard(how: Any, method: str, path: str, **request: Any) -> Reply:
            self._before()
            sent_ms, reply = self._clock_ms(), None
            try:
                reply = exchange(how, method, path, **request)
                return reply
            finally:
                params = request.get("params") or {}
                body = request.get("json")
                self.heard.append(Exchange(method, path, params, body, sent_ms, self._clock_ms(), reply))

        http._exchange = heard  # type: ignore[method-assign, assignment]

    def credentials(self) -> list[str]:
        """Returns the keys and tokens that the adapters send."""
        sent = (http._session.headers.get(name) for http in self._heard_of for name in _CREDENTIALS)
        return [str(each).removeprefix("Bearer ") for each in sent if each]

    def close(self) -> None:
        """Closes the adapters' connections."""
        for http in self._heard_of:
            http._session.close()


def pause() -> None:
    """Waits before each call."""
    time.sleep(PAUSE_S)


def secrets_of(settings: Settings) -> list[str]:
    """Returns the keys that must not be shown."""
    return [key for name in SECRETS if (key := getattr(settings, name))]


def masked(text: str, secrets: list[str]) -> str:
    """Returns `text` without our keys, because a venue may repeat them."""
    for secret in secrets:
        text = text.replace(secret, MASKED)
    return text


class About(Struct, frozen=True):
    """The subjects of the questions: a collection's slug, a rune's spaced name, an inscription's id."""

    collection: str
    rune: str
    inscription: str = FIRST_INSCRIPTION


class Question(Struct, frozen=True):
    """One question, which only reads."""

    name: str
    ask: Callable[[], Any]


class VenueAnswer(Struct, frozen=True):
    """The result of a question: a `value` if it was understood, else the `reason`.

    `unread` are the rows that the parser left out, `exchanges` all requests made for the question.
    """

    question: str
    outcome: Outcome
    value: Any
    reason: str
    exchanges: tuple[Exchange, ...] = ()
    unread: tuple[Unread, ...] = ()

    @property
    def exchange(self) -> Exchange | None:
        """The last exchange."""
        return self.exchanges[-1] if self.exchanges else None


def default_about(market: str) -> About:
    """Returns subjects that trade there every day."""
    if market == "simulator":
        return About("nodemonkes-demo", "PRACTICE•RUNE•TOKEN")
    return About("nodemonkes", "DOG•GO•TO•THE•MOON")


def add_about(parser: argparse.ArgumentParser) -> None:
    """Adds [--collection SLUG] [--rune TICKER]."""
    text = "ask the marketplaces about this {}"
    parser.add_argument("--collection", type=collection, metavar="SLUG", help=text.format("collection"))
    rune = text.format("rune, like DOG•GO•TO•THE•MOON")
    parser.add_argument("--rune", type=ticker, metavar="TICKER", help=rune)


def about_of(options: argparse.Namespace, market: str, newest: str | None = None, rune: str | None = None) -> About:
    """Chooses the subjects: the operator's, else the newest tasks' (collection and rune), else well-known ones."""
    usual = default_about(market)
    return About(options.collection or newest or usual.collection, options.rune or rune or usual.rune)


def https_of(venue: str, adapters: Adapters) -> list[Http]:
    """Returns the connections of the adapters for `venue`; none if it is not set up."""
    found: list[Any] = [adapters.speaking(dialect_of(venue) or "")]
    if dialect_of(venue) == "unisat":
        found += [adapters.unisat, adapters.unisat_index]
    if dialect_of(venue) is None:
        found = [getattr(adapters, venue)]
    return [each._http for each in found if each is not None]


def questions(venue: str, adapters: Adapters, about: About) -> list[Question]:
    """Returns the questions to `venue` in order; any key may ask the first one."""
    asked: dict[str, Callable[[], Any]] = {}
    if venue == "satflow" and isinstance(satflow := adapters.speaking("satflow"), Satflow):
        asked |= {
            "floors": lambda: satflow.floors([about.collection], "ordinals"),
            "listings": lambda: satflow.asks(about.collection, 1),
            "bids": lambda: satflow.bids(about.collection, "ordinals", 1),
            "rune floors": lambda: satflow.floors([about.rune], "runes"),
            "rune bids": lambda: satflow.bids(about.rune, "runes", 1),
            "own bids": lambda: satflow.own_bids(ADDRESS, None),
            "sales": lambda: satflow.sales(about.collection, "ordinals", 1),
            "sales unasked": lambda: satflow.sales_unasked(about.collection, "ordinals"),
            "challenge": lambda: satflow.challenge(ADDRESS),
        }
    if venue == "unisat" and (market := adapters.unisat) is not None:
        asked |= {"rune": lambda: market.rune(about.rune), "rune listings": lambda: market.rune_book(about.rune, 0)}
    if venue == "unisat" and (index := adapters.unisat_index) is not None:
        asked |= {"height": index.chain_height, "runes height": index.runes_height}
    if venue == "mempool" and (mempool := adapters.mempool) is not None:
        balance = partial(mempool.balance, ADDRESS)
        asked |= {"fees": lambda: mempool.fees(0), "height": mempool.tip_height, "balance": balance}
    if venue == "ord" and adapters.ord is not None:
        asked["index"] = adapters.ord.status
    return [Question(name, ask) for name, ask in asked.items()]


def put(question: Question, listener: Listener) -> VenueAnswer:
    """Asks one question; `listener` records the exchanges. Never raises."""
    return answer_of(question, listener.heard)


def answer_of(question: Question, heard: list[Exchange]) -> VenueAnswer:
    """Asks one question, whose exchanges are appended to `heard` meanwhile. Never raises."""
    before = len(heard)
    unread: list[Unread] = []
    value, reason = None, ""
    outcome: Outcome = "understood"
    try:
        with noting(unread.append):
            value = question.ask()
    except VenueError as error:
        outcome, reason = _outcome(error, heard[before:]), error.message
    except Exception as error:  # an error of the adapter itself; the recorded answer explains it
        outcome, reason = "drifted", f"{type(error).__name__}: {error}"
    if isinstance(value, Page):
        value = value.entries
    if isinstance(value, Mapping):
        unread += [each for each in value.values() if isinstance(each, Unread) and each not in unread]
        value = {name: each for name, each in value.items() if not isinstance(each, Unread)}
    return VenueAnswer(question.name, outcome, value, reason, tuple(heard[before:]), tuple(unread))


def _outcome(error: VenueError, heard: list[Exchange]) -> Outcome:
    leaves: tuple[tuple[type[VenueError], Outcome], ...] = (
        (AuthFailed, "no access"),
        (SignInNeeded, "no session"),
        (RateLimited, "pause"),
        (NotFound, "not known"),
        (NotSupported, "not supported"),
        (NotUnderstood, "drifted"),
    )
    for leaf, outcome in leaves:
        if isinstance(error, leaf):
            return outcome
    if not heard or heard[-1].reply is None:
        return "silent"
    return "drifted" if isinstance(error.__cause__, Unreadable) else "refused"
