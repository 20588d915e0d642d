"""The questions of `venue probe`: the doctor's, and more that show what no source has shown yet. All of them are reads.

Requests that no adapter makes go through the adapter's own connection, and are read by its parser where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cli.doctor import questions as doctor
from cli.doctor.questions import ADDRESS, PUBKEY, VAULT, About, Question
from core.settings import dialect_of
from gateway.venue import Adapters
from markets.answers import of_read
from markets.base import Item, NotFound
from markets.http import Http, segment
from markets.orders import ListingDraft, ListingToDraft, Pair, SignInAnswer, SignInTexts
from markets.ordinalswallet.adapter import OrdinalsWallet
from markets.ordnet.adapter import OrdNet
from markets.satflow import books as satflow_books
from markets.satflow import wire as satflow_wire
from markets.satflow.adapter import Satflow
from markets.unisat import wire
from markets.unisat.adapter import UnisatMarket
from markets.wire import Page

DRAFT = "listing draft"
DRAFTED_AT = 123_457_000  # sats; nothing is signed, and at this price nothing would be lost
NOT_ASKED = {"satflow": "cancel: not asked, because no cancel can be asked for without a bid to cancel"}
# A refusal of these says something about the venue and nothing about our parsers.
MAY_BE_REFUSED = frozenset(
    {
        DRAFT,
        "floors with topBid",
        "listings of 250",
        "actions of 400",
        "statistics list",
        "listings from the 21st",
        "listings without a session",
    }
)
NOTHING_ASKED = "nothing was asked"
_PAIR = Pair(ADDRESS, PUBKEY, VAULT, "")


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer that no parser reads: it is kept as evidence."""

    answer: Any


@dataclass(slots=True)
class Subjects:
    """The addresses and slugs that the questions are about; "" is an address that no answer has named yet."""

    about: About
    bidder: str = ""
    seller: str = ""
    pair: Pair = _PAIR
    texts: SignInTexts | None = field(default=None, repr=False)

    def named(self) -> dict[str, str]:
        """Returns them by name, as a probe file keeps them."""
        about = {"collection": self.about.collection, "rune": self.about.rune, "inscription": self.about.inscription}
        pair = {} if self.pair == _PAIR else {"payment": self.pair.payment, "ordinals": self.pair.ordinals}
        return about | pair | {name: each for name in ("bidder", "seller") if (each := getattr(self, name))}


def subjects_of(named: Mapping[str, str], usual: About) -> Subjects:
    """Returns the subjects that `named` names, as `Subjects.named` does."""
    about = replace(usual, **{name: named[name] for name in ("collection", "rune", "inscription") if name in named})
    pair = Pair(named["payment"], "", named["ordinals"], "") if {"payment", "ordinals"} <= named.keys() else _PAIR
    return Subjects(about, named.get("bidder", ""), named.get("seller", ""), pair)


def questions(
    venue: str,
    adapters: Adapters,
    subjects: Subjects,
    hook: Callable[[Http], None],
    sign: Callable[[SignInTexts], Mapping[str, str]] | None,
) -> list[Question]:
    """Returns the questions to `venue` (a marketplace's name, mempool, ord) in their order.

    `sign` signs a venue's texts, for a session; None = none is opened. `hook` gets the session's connection.
    """
    dialect = dialect_of(venue) or venue
    asked = doctor.questions(dialect, adapters, subjects.about) if dialect in doctor.ASKED else []
    adapter: Any = adapters.markets.get(venue)
    match dialect:
        case "satflow":
            return [*map(_noting(subjects), asked), *_satflow(adapter, subjects)]
        case "unisat":
            return [*asked, *_unisat(adapter, subjects)]
        case "ordnet":
            return _ordnet(adapter, subjects, hook, sign)
        case "ordinalswallet":
            return _ordinalswallet(adapter, subjects)
        case "ord" if adapters.ord is not None:
            source = adapters.ord
            return [*asked, Question("inscription", lambda: source.inscription(subjects.about.inscription, 0))]
        case "mempool" if adapters.mempool is not None:
            coins = adapters.mempool.coins
            return [*asked, Question("coins", lambda: coins(ADDRESS))]
    return asked


def _noting(subjects: Subjects) -> Callable[[Question], Question]:
    """Returns a change of questions: the first bidder and seller that their answers name become subjects."""

    def changed(question: Question) -> Question:
        def ask() -> Any:
            found = question.ask()
            for each in found.entries if isinstance(found, Page) else ():
                maker = getattr(getattr(each, "bid", None), "maker", "")
                subjects.bidder = subjects.bidder or maker
                subjects.seller = subjects.seller or getattr(getattr(each, "ask", None), "maker", "")
            return found

        return Question(question.name, ask)

    return changed


def _named(who: str, what: str) -> str:
    """Returns the address `who`. Raises NotFound when the answers have named none."""
    if not who:
        raise NotFound(f"{NOTHING_ASKED}: no answer names {what}")
    return who


def _satflow(venue: Satflow, subjects: Subjects) -> list[Question]:
    about, http = subjects.about, venue._http
    slug = about.collection

    def floors_with_bids() -> Any:
        asked = {"type": "ordinals", "slugs": slug, "topBid": "true"}
        answer = http.read("/collection-stats/floors", asked)
        return of_read(lambda: satflow_wire.floors(answer, [slug], "ordinals"))

    def long_page() -> Any:
        asked = {"collectionSlug": slug, "active": "true", "sortBy": "price", "sortDirection": "asc"}
        answer = http.read("/activity/listings", asked | {"page": "1", "pageSize": "250"})
        return of_read(lambda: satflow_books.asks(answer, slug, 1))

    return [
        Question("floors with topBid", floors_with_bids),
        Question("listings of 250", long_page),
        Question("bids of a bidder", lambda: venue.own_bids(_named(subjects.bidder, "a bidder"), None)),
        Question("listings of a seller", lambda: venue.own_listings(_named(subjects.seller, "a seller"), None)),
        Question("traits", lambda: venue.traits(slug)),
        Question("rune sales", lambda: venue.sales(about.rune, "runes", 1)),
        Question("wallet contents", lambda: venue.wallet_contents(ADDRESS, 0)),
        Question("bidding wallet", lambda: venue.bidding_wallet(ADDRESS, VAULT, PUBKEY)),
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
        owner = _named(owners[0] if owners else "", "the holder of the inscription")
        return venue.draft_listing(ListingToDraft(DRAFTED_AT, inscription_id, owner, ADDRESS, "", None))

    return [Question("item", item), Question(DRAFT, draft)]


def _unisat(venue: UnisatMarket, subjects: Subjects) -> list[Question]:
    if venue is None:
        return []
    slug, noting = subjects.about.collection, _noting(subjects)

    def many_actions() -> Any:
        wanted = {"nftType": "collection", "collectionId": slug, "event": "Sold"}
        answer = venue._ask("actions", {"filter": wanted, "sort": {"timestamp": -1}, "start": 0, "limit": 400})
        return of_read(lambda: wire.sales(answer, slug, 0))

    def statistics() -> Any:
        wanted = {"collections": [slug], "timeType": "day1"}
        return Raw(venue._ask("collection_statistic_list", {"filter": wanted, "start": 0, "limit": 20}))

    return [
        Question("floors", lambda: venue.floors([slug], "ordinals")),
        Question("statistics list", statistics),
        noting(Question("listings", lambda: venue.asks(slug, None))),
        Question("listings of a seller", lambda: venue.own_listings(_named(subjects.seller, "a seller"), None)),
        Question("sales", lambda: venue.sales(slug, "ordinals", None)),
        Question("actions of 400", many_actions),
        Question("item", lambda: venue.item(subjects.about.inscription)),
    ]


def _ordnet(
    venue: OrdNet,
    subjects: Subjects,
    hook: Callable[[Http], None],
    sign: Callable[[SignInTexts], Mapping[str, str]] | None,
) -> list[Question]:
    slug, noting = subjects.about.collection, _noting(subjects)
    pair = subjects.pair

    def texts() -> SignInTexts:
        subjects.texts = venue.sign_in_texts(pair)
        return subjects.texts

    def sign_in() -> None:
        if sign is None or subjects.texts is None:
            raise NotFound(f"{NOTHING_ASKED}: no text was sent to be signed")
        venue.sign_in(SignInAnswer(pair, subjects.texts.reference, sign(subjects.texts)))
        hook(venue._sessions.any().http)

    without = Question("listings without a session", lambda: Raw(venue._http.read("/listings", {"limit": "1"})))
    return [
        Question("sign-in texts", texts),
        without,
        *([Question("sign-in", sign_in)] if sign is not None else []),
        Question("floors", lambda: venue.floors([slug], "ordinals")),
        noting(Question("listings", lambda: venue.asks(slug, None))),
        noting(Question("bids", lambda: venue.bids(slug, "ordinals", None))),
        Question("sales", lambda: venue.sales(slug, "ordinals", None)),
        Question("own bids", lambda: venue.own_bids(pair.payment, None, [slug])),
        Question("listings of a seller", lambda: venue.own_listings(_named(subjects.seller, "a seller"), None)),
        Question("traits", lambda: venue.traits(slug)),
        Question("item", lambda: venue.item(subjects.about.inscription)),
    ]


def _ordinalswallet(venue: OrdinalsWallet, subjects: Subjects) -> list[Question]:
    slug, rune, noting = subjects.about.collection, subjects.about.rune, _noting(subjects)

    def paged(start: int) -> Any:
        path = f"/collection/{segment(slug)}/escrows"
        return Raw(venue._http.read(path, {"limit": "20", "offset": str(start)}))

    return [
        Question("floors", lambda: venue.floors([slug], "ordinals")),
        noting(Question("listings", lambda: venue.asks(slug, None))),
        Question("listings up to the 20th", lambda: paged(0)),
        Question("listings from the 21st", lambda: paged(20)),
        Question("sales", lambda: venue.sales(slug, "ordinals", None)),
        Question("traits", lambda: venue.traits(slug)),
        Question("rune floors", lambda: venue.floors([rune], "runes")),
        Question("rune sales", lambda: venue.sales(rune, "runes", None)),
        Question("wallet of a seller", lambda: venue.wallet_contents(_named(subjects.seller, "a seller"), None)),
        Question("listings of a seller", lambda: venue.own_listings(_named(subjects.seller, "a seller"), None)),
        Question("item", lambda: venue.item(subjects.about.inscription)),
    ]
