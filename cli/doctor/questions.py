"""Questions to a venue that show whether its answers fit its adapter: reads only, each one request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from cli.doctor.exchanges import Adapter, Exchange, Listener
from core.settings import DIALECTS
from gateway.adapters import Adapters
from markets.base import AuthFailed, Item, NotFound, NotSupported, RateLimited, VenueError
from markets.listings import ListingDraft, ListingToDraft
from markets.satflow.adapter import Satflow
from markets.wire import Unreadable

ASKED = ("satflow", "unisat", "mempool", "ord")
# An unused address: its key was made for the self-test of signatures and thrown away.
ADDRESS = "bc1qlzrwcf49yrltr5graye452qeypxcrwk7l0wg75"
PUBKEY = "02f6b160813359d5d8436e9bd23829641dd6d85598f0c64c981a2a58cff159b5ff"
VAULT = "bc1pr5tl40fulfznkxw64j577qfx2927zlrydv2e9qwdzffgd3pnadcsk3hs39"
FIRST_INSCRIPTION = "6fb976ab49dcec017f1e201e84395983204ae1a7c2abf7ced0a85d692e442799i0"
DRAFT = "listing draft"
_DRAFTED_AT = 100_000_000  # sats; nothing is signed, and at this price nothing would be lost

Outcome = Literal["understood", "not known", "not supported", "drifted", "no access", "pause", "silent", "refused"]


@dataclass(frozen=True, slots=True)
class About:
    """The subjects of the questions: a collection's slug, a rune's spaced name."""

    collection: str
    rune: str
    inscription: str = FIRST_INSCRIPTION


@dataclass(frozen=True, slots=True)
class Question:
    """One read. `is_extra`: only for the record, since it proves little that others do not."""

    name: str
    ask: Callable[[], Any]
    is_extra: bool = False


@dataclass(frozen=True, slots=True)
class VenueAnswer:
    """The result of a question: a `value` when it was understood, else the `reason`."""

    question: str
    outcome: Outcome
    value: Any
    reason: str
    exchange: Exchange | None


def default_about(market: str) -> About:
    """Returns subjects that trade there every day."""
    if market == "simulator":
        return About("nodemonkes-demo", "PRACTICE•RUNE•TOKEN")
    return About("nodemonkes", "DOG•GO•TO•THE•MOON")


def adapters_of(venue: str, adapters: Adapters) -> list[Adapter]:
    """Returns the adapters that talk to `venue`; none when it is not set up."""
    found: dict[str, list[Any]] = {"unisat": [adapters.unisat, adapters.unisat_index]}
    return [each for each in found.get(venue, [_of(venue, adapters)]) if each is not None]


def _of(venue: str, adapters: Adapters) -> Any:
    return adapters.speaking(venue) if venue in DIALECTS else getattr(adapters, venue)


def questions(venue: str, adapters: Adapters, about: About) -> list[Question]:
    """Returns the questions to `venue`, in order; the first is one that every key may ask."""
    return {"satflow": _satflow, "unisat": _unisat, "mempool": _mempool, "ord": _ord}[venue](adapters, about)


def put(question: Question, listener: Listener) -> VenueAnswer:
    """Asks one question of an adapter that `listener` listens to. Never raises."""
    before = len(listener.heard)
    try:
        value = question.ask()
    except VenueError as error:
        exchange = listener.heard[-1] if len(listener.heard) > before else None
        return VenueAnswer(question.name, _outcome(error, exchange), None, error.message, exchange)
    except Exception as error:  # the adapter's own fault, which the answer beside it explains
        exchange = listener.heard[-1] if len(listener.heard) > before else None
        return VenueAnswer(question.name, "drifted", None, f"{type(error).__name__}: {error}", exchange)
    exchange = listener.heard[-1] if len(listener.heard) > before else None
    return VenueAnswer(question.name, "understood", value, "", exchange)


def _outcome(error: VenueError, exchange: Exchange | None) -> Outcome:
    leaves: tuple[tuple[type[VenueError], Outcome], ...] = (
        (AuthFailed, "no access"),
        (RateLimited, "pause"),
        (NotFound, "not known"),
        (NotSupported, "not supported"),
    )
    for leaf, outcome in leaves:
        if isinstance(error, leaf):
            return outcome
    if exchange is None or exchange.reply is None:
        return "silent"
    return "drifted" if isinstance(error.__cause__, Unreadable) else "refused"


def _satflow(adapters: Adapters, about: About) -> list[Question]:
    venue = adapters.speaking("satflow")
    assert isinstance(venue, Satflow)
    return [
        Question("floors", lambda: venue.floors([about.collection], "ordinals")),
        Question("listings", lambda: venue.asks(about.collection, 1).entries),
        Question("bids", lambda: venue.bids(about.collection, "ordinals", 1).entries),
        Question("rune floors", lambda: venue.floors([about.rune], "runes")),
        Question("rune bids", lambda: venue.bids(about.rune, "runes", 1).entries),
        Question("own bids", lambda: venue.own_bids(ADDRESS, None).entries),
        Question("sales", lambda: venue.sales(about.collection, "ordinals", 1).entries),
        Question("sales unasked", lambda: venue.sales_unasked(about.collection, "ordinals").entries),
        Question("challenge", lambda: venue.challenge(ADDRESS)),
        Question("traits", lambda: venue.traits(about.collection), is_extra=True),
        Question("rune sales", lambda: venue.sales(about.rune, "runes", 1).entries, is_extra=True),
        Question("wallet contents", lambda: venue.wallet_contents(ADDRESS, 0).entries, is_extra=True),
        Question("bidding wallet", lambda: venue.bidding_wallet(ADDRESS, VAULT, PUBKEY), is_extra=True),
        *_of_one_inscription(venue, about.inscription),
    ]


def _of_one_inscription(venue: Satflow, inscription_id: str) -> list[Question]:
    """Returns the questions about one inscription: its details, and the draft of a listing by its holder."""
    owners: list[str] = []

    def item() -> Item:
        found = venue.item(inscription_id)
        owners.extend([found.owner] if found.owner else [])
        return found

    def draft() -> ListingDraft:
        if not owners:
            raise NotFound("nothing was drafted: it is not known who holds the inscription")
        return venue.draft_listing(ListingToDraft(_DRAFTED_AT, inscription_id, owners[0], ADDRESS, "", None))

    return [Question("item", item, is_extra=True), Question(DRAFT, draft, is_extra=True)]


def _unisat(adapters: Adapters, about: About) -> list[Question]:
    market, index = adapters.unisat, adapters.unisat_index
    asked = []
    if market is not None:
        asked += [
            Question("rune", lambda: market.rune(about.rune)),
            Question("rune listings", lambda: market.rune_book(about.rune, 0).entries),
        ]
    if index is not None:
        asked += [
            Question("height", index.chain_height),
            Question("runes height", index.runes_height),
        ]
    return asked


def _mempool(adapters: Adapters, about: About) -> list[Question]:
    venue = adapters.mempool
    assert venue is not None
    return [
        Question("fees", lambda: venue.fees(0)),
        Question("height", venue.tip_height),
        Question("balance", lambda: venue.balance(ADDRESS)),
    ]


def _ord(adapters: Adapters, about: About) -> list[Question]:
    venue = adapters.ord
    assert venue is not None
    return [
        Question("index", venue.status),
        Question("inscription", lambda: venue.inscription(FIRST_INSCRIPTION, 0), is_extra=True),
    ]
