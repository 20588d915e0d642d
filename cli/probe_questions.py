"""The questions of a probe to each venue, and the file that stores the answers."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from cli.doctor import questions as doctor
from cli.doctor.questions import ADDRESS, PUBKEY, VAULT, About, Question
from core.errors import BidkeeperError
from core.settings import dialect_of
from gateway.program import Adapters
from markets.base import Item, NotFound
from markets.http import Http, segment
from markets.orders import ListingDraft, ListingToDraft, Pair, SignInAnswer, SignInTexts
from markets.ordinalswallet.adapter import OrdinalsWallet
from markets.ordnet.adapter import OrdNet
from markets.parse import Page, Unreadable, decoded, of_read, rows, table, text, whole
from markets.satflow import books as satflow_books
from markets.satflow.adapter import Satflow
from markets.unisat import wire
from markets.unisat.adapter import UnisatMarket

FORMAT, VERSION = "bidkeeper-probe", 1
MOST_BYTES = 16_000_000
LONGEST_TEXT = 20_000  # characters kept of an answer that is not JSON
_MOST_QUESTIONS, _MOST_EXCHANGES, _MOST_HEADERS = 100, 10, 50
_METHODS = frozenset({"GET", "POST"})
_HEADER = re.compile(r"[A-Za-z0-9\-]{1,60}", re.ASCII)
_LAST_MS = 10**13  # in 2286
_DEEPEST = 60  # nesting of lists and objects


class NotAProbeFile(BidkeeperError):
    """The file is not a probe file of this version; the message says why."""


class Recorded(Struct, frozen=True):
    """One exchange. `status` None: no answer. `text` is an answer that is not JSON, or None if it was left out."""

    method: str
    path: str
    params: Mapping[str, str]
    body: Any
    status: int | None
    headers: Mapping[str, str]
    answer: Any = None
    text: str | None = None
    is_json: bool = False

    def reply_body(self) -> bytes:
        """Returns the answer's body."""
        return dumps(self.answer).encode() if self.is_json else (self.text or "").encode("utf-8", "surrogatepass")


class Record(Struct, frozen=True):
    """A probe file. `about` are the questions' subjects, `questions` the exchanges of each question, in order."""

    venue: str
    bidkeeper: str
    asked_ms: int
    about: Mapping[str, str]
    questions: Mapping[str, tuple[Recorded, ...]]


def written(record: Record) -> bytes:
    """Returns the file's content."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "bidkeeper": record.bidkeeper,
        "venue": record.venue,
        "askedMs": record.asked_ms,
        "about": dict(record.about),
        "questions": [
            {"name": name, "exchanges": [_exchange(each) for each in exchanges]}
            for name, exchanges in record.questions.items()
        ],
    }
    return (dumps(content, 0) + "\n").encode("utf-8", "surrogatepass")


def _exchange(made: Recorded) -> dict[str, Any]:
    asked = {"method": made.method, "path": made.path, "params": dict(made.params), "body": made.body}
    answered = {"status": made.status, "headers": dict(made.headers)}
    if made.is_json:
        return asked | answered | {"answer": made.answer}
    return asked | answered | ({} if made.text is None else {"text": made.text})


def dumps(value: Any, indent: int | None = None) -> str:
    """Writes JSON, each Decimal as a number with all its digits; with `indent`, one entry a line."""
    if isinstance(value, Decimal):
        return str(value)
    if not isinstance(value, Mapping | list | tuple):
        return json.dumps(value)
    inner = None if indent is None else indent + 1
    if isinstance(value, Mapping):
        entries = [f"{json.dumps(name)}: {dumps(part, inner)}" for name, part in value.items()]
    else:
        entries = [dumps(part, inner) for part in value]
    start, end = ("{", "}") if isinstance(value, Mapping) else ("[", "]")
    if inner is None or not entries:
        return start + ", ".join(entries) + end
    margin = "\n" + " " * inner
    return start + margin + ("," + margin).join(entries) + "\n" + " " * (inner - 1) + end


def read(path: Path) -> Record:
    """Reads a probe file. Raises NotAProbeFile, also if the file is too large."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:  # noqa: PTH123
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise NotAProbeFile(f"{path} is not a file")
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise NotAProbeFile(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > MOST_BYTES:
        raise NotAProbeFile(f"{path} is too large: a probe file has at most {MOST_BYTES:,} bytes")
    try:
        return _record(decoded(content))
    except Unreadable as error:
        raise NotAProbeFile(f"{path} is not a probe file: {error}") from error


def _record(value: Any) -> Record:
    content = table(value, "the file")
    if content.get("format") != FORMAT:
        raise Unreadable(f'"format" is not "{FORMAT}"')
    if (version := content.get("version")) != VERSION or isinstance(version, bool):
        raise Unreadable(f"its version is {str(version)[:20]}, and this Bidkeeper reads version {VERSION}")
    questions: dict[str, tuple[Recorded, ...]] = {}
    for row in rows(content.get("questions"), "questions", most=_MOST_QUESTIONS):
        question = table(row, "question")
        name = text(question.get("name"), "question's name", longest=60)
        if name in questions:
            raise Unreadable(f"the question {name!r} is there twice")
        exchanges = rows(question.get("exchanges"), f"exchanges of {name}", most=_MOST_EXCHANGES)
        questions[name] = tuple(_recorded(table(each, f"exchange of {name}"), name) for each in exchanges)
    if not questions:
        raise Unreadable("it has no questions")
    about = {name: text(each, f"about {name}") for name, each in table(content.get("about"), "about").items()}
    asked_ms = whole(content.get("askedMs"), "askedMs")
    if asked_ms >= _LAST_MS:
        raise Unreadable("askedMs: not a time in milliseconds")
    venue, bidkeeper = text(content.get("venue"), "venue", longest=40), content.get("bidkeeper")
    return Record(venue, text(bidkeeper, "bidkeeper", longest=100), asked_ms, about, questions)


def _recorded(entry: Mapping[str, Any], name: str) -> Recorded:
    if not isinstance(method := entry.get("method"), str) or method not in _METHODS:
        raise Unreadable(f"{name}: the method is not GET or POST")
    params, headers = (table(entry.get(what), f"{name}: {what}") for what in ("params", "headers"))
    if len(headers) > _MOST_HEADERS or not all(map(_HEADER.fullmatch, headers)):
        raise Unreadable(f"{name}: the headers are not headers")
    if not all(isinstance(each, str) for each in (*params.values(), *headers.values())):
        raise Unreadable(f"{name}: a parameter or header is not a text")
    status, raw_text = entry.get("status"), entry.get("text")
    if status is not None and (type(status) is not int or not 100 <= status < 600):
        raise Unreadable(f"{name}: the status is not an HTTP status")
    if raw_text is not None and not isinstance(raw_text, str):
        raise Unreadable(f"{name}: the text is not a text")
    _check_depth(entry.get("answer"), name)
    path = text(entry.get("path"), f"{name}: path", longest=2000)
    is_json = "answer" in entry
    return Recorded(method, path, params, entry.get("body"), status, headers, entry.get("answer"), raw_text, is_json)


def _check_depth(value: Any, name: str, depth: int = 0) -> None:
    if depth > _DEEPEST:
        raise Unreadable(f"{name}: the answer is nested too deeply")
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_depth(each, name, depth + 1)


DRAFT = "listing draft"
DRAFTED_AT = 123_457_000  # sats; nothing is signed, and a sale at this price would lose nothing
NOT_ASKED = {"satflow": "cancel: not asked, because no cancel can be asked for without a bid to cancel"}
# Refusals of these questions are about the venue, and say nothing about our parsers.
MAY_BE_REFUSED = {DRAFT, "floors with topBid", "listings of 250", "actions of 400", "statistics list"}
MAY_BE_REFUSED |= {"listings from the 21st", "listings without a session"}
NOTHING_ASKED = "nothing was asked"
_PAIR = Pair(ADDRESS, PUBKEY, VAULT, "")


class Raw(Struct, frozen=True):
    """An answer that no parser reads; it is kept as evidence."""

    answer: Any


class Subjects(Struct):
    """The addresses and slugs that the questions are about; "" means that no answer has named the address yet."""

    about: About
    bidder: str = ""
    seller: str = ""
    pair: Pair = _PAIR
    texts: SignInTexts | None = None

    def named(self) -> dict[str, str]:
        """Returns the known subjects by name, as a probe file stores them."""
        pair = {} if self.pair == _PAIR else {"payment": self.pair.payment, "ordinals": self.pair.ordinals}
        return (
            asdict(self.about) | pair | {name: each for name in ("bidder", "seller") if (each := getattr(self, name))}
        )


def subjects_of(named: Mapping[str, str], usual: About) -> Subjects:
    """Reads the subjects back from `Subjects.named`."""
    about = replace(usual, **{name: named[name] for name in About.__struct_fields__ if name in named})
    pair = Pair(named["payment"], "", named["ordinals"], "") if {"payment", "ordinals"} <= named.keys() else _PAIR
    return Subjects(about, named.get("bidder", ""), named.get("seller", ""), pair)


Sign = Callable[[SignInTexts], Mapping[str, str]]
Asks = dict[str, Callable[[], Any]]
_WITH_MAKERS = {"listings", "bids", "rune bids"}  # pages of orders; later questions are about the first makers in them


def questions(
    venue: str, adapters: Adapters, subjects: Subjects, hook: Callable[[Http], None], sign: Sign | None
) -> list[Question]:
    """Returns the questions to `venue` (a marketplace's name, mempool, ord) in order.

    `sign` signs a venue's texts to open a session; None opens none. `hook` gets the session's connection.
    """
    dialect = dialect_of(venue) or venue
    asked = doctor.questions(dialect, adapters, subjects.about) if dialect in doctor.ASKED else []
    found = {each.name: each.ask for each in asked}
    match adapters.markets.get(venue):
        case Satflow() as satflow:
            found |= _satflow(satflow, subjects)
        case UnisatMarket() as unisat:
            found |= _unisat(unisat, subjects)
        case OrdNet() as ordnet:
            found |= _ordnet(ordnet, subjects, hook, sign)
        case OrdinalsWallet() as ordinalswallet:
            found |= _ordinalswallet(ordinalswallet, subjects)
    if dialect == "ord" and (ord_ := adapters.ord) is not None:
        found["inscription"] = lambda: ord_.inscription(subjects.about.inscription, 0)
    if dialect == "mempool" and (mempool := adapters.mempool) is not None:
        found["coins"] = lambda: mempool.coins(ADDRESS)
    for name in _WITH_MAKERS & found.keys():
        found[name] = partial(_noting_makers, found[name], subjects)
    return [Question(name, ask) for name, ask in found.items()]


def _noting_makers(ask: Callable[[], Any], subjects: Subjects) -> Any:
    """Asks, and takes the first bidder and seller in a page of orders as subjects."""
    found = ask()
    for each in found.entries if isinstance(found, Page) else ():
        subjects.bidder = subjects.bidder or getattr(getattr(each, "bid", None), "maker", "")
        subjects.seller = subjects.seller or getattr(getattr(each, "ask", None), "maker", "")
    return found


def _named(who: str, what: str) -> str:
    """Returns `who`. Raises NotFound if no answer has named that address."""
    if not who:
        raise NotFound(f"{NOTHING_ASKED}: no answer names {what}")
    return who


def _usual(venue: Satflow | UnisatMarket | OrdNet | OrdinalsWallet, subjects: Subjects) -> Asks:
    """Returns the questions that most marketplaces answer; each venue's function picks and orders them."""
    slug, rune = subjects.about.collection, subjects.about.rune
    market: Any = venue
    return {
        "floors": lambda: market.floors([slug], "ordinals"),
        "listings": lambda: market.asks(slug, None),
        "bids": lambda: market.bids(slug, "ordinals", None),
        "sales": lambda: market.sales(slug, "ordinals", None),
        "rune floors": lambda: market.floors([rune], "runes"),
        "traits": lambda: market.traits(slug),
        "item": lambda: market.item(subjects.about.inscription),
        "listings of a seller": lambda: market.own_listings(_named(subjects.seller, "a seller"), None),
        "wallet of a seller": lambda: market.wallet_contents(_named(subjects.seller, "a seller"), None),
    }


def _satflow(venue: Satflow, subjects: Subjects) -> Asks:
    about, http, usual, owners = subjects.about, venue._http, _usual(venue, subjects), list[str]()
    slug = about.collection

    def floors_with_bids() -> Any:
        asked = {"type": "ordinals", "slugs": slug, "topBid": "true"}
        answer = http.read("/collection-stats/floors", asked)
        return of_read(lambda: satflow_books.floors(answer, [slug], "ordinals"))

    def long_page() -> Any:
        asked = {"collectionSlug": slug, "active": "true", "sortBy": "price", "sortDirection": "asc"}
        answer = http.read("/activity/listings", asked | {"page": "1", "pageSize": "250"})
        return of_read(lambda: satflow_books.asks(answer, slug, 1))

    def item() -> Item:
        found = venue.item(about.inscription)
        owners.extend([found.owner] if found.owner else [])
        return found

    def draft() -> ListingDraft:
        owner = _named(owners[0] if owners else "", "the holder of the inscription")
        return venue.draft_listing(ListingToDraft(DRAFTED_AT, about.inscription, owner, ADDRESS, "", None))

    return {
        "floors with topBid": floors_with_bids,
        "listings of 250": long_page,
        "bids of a bidder": lambda: venue.own_bids(_named(subjects.bidder, "a bidder"), None),
        "listings of a seller": usual["listings of a seller"],
        "traits": usual["traits"],
        "rune sales": lambda: venue.sales(about.rune, "runes", 1),
        "wallet contents": lambda: venue.wallet_contents(ADDRESS, 0),
        "bidding wallet": lambda: venue.bidding_wallet(ADDRESS, VAULT, PUBKEY),
        "item": item,
        DRAFT: draft,
    }


def _unisat(venue: UnisatMarket, subjects: Subjects) -> Asks:
    slug = subjects.about.collection

    def many_actions() -> Any:
        wanted = {"nftType": "collection", "collectionId": slug, "event": "Sold"}
        answer = venue._ask("actions", {"filter": wanted, "sort": {"timestamp": -1}, "start": 0, "limit": 400})
        return of_read(lambda: wire.sales(answer, slug, 0))

    def statistics() -> Any:
        wanted = {"collections": [slug], "timeType": "day1"}
        return Raw(venue._ask("collection_statistic_list", {"filter": wanted, "start": 0, "limit": 20}))

    every = _usual(venue, subjects) | {"statistics list": statistics, "actions of 400": many_actions}
    first = ("floors", "statistics list", "listings", "listings of a seller", "sales", "actions of 400", "item")
    return {name: every[name] for name in first}


def _ordnet(venue: OrdNet, subjects: Subjects, hook: Callable[[Http], None], sign: Sign | None) -> Asks:
    pair = subjects.pair

    def texts() -> SignInTexts:
        subjects.texts = venue.sign_in_texts(pair)
        return subjects.texts

    def sign_in() -> None:
        if sign is None or subjects.texts is None:
            raise NotFound(f"{NOTHING_ASKED}: no text was sent to be signed")
        venue.sign_in(SignInAnswer(pair, subjects.texts.reference, sign(subjects.texts)))
        hook(venue._sessions.any().http)

    every = _usual(venue, subjects) | {
        "sign-in texts": texts,
        "listings without a session": lambda: Raw(venue._http.read("/listings", {"limit": "1"})),
        "sign-in": sign_in,
        "own bids": lambda: venue.own_bids(pair.payment, None, [subjects.about.collection]),
    }
    order = ["sign-in texts", "listings without a session", *(["sign-in"] if sign is not None else []), "floors"]
    order += ["listings", "bids", "sales", "own bids", "listings of a seller", "traits", "item"]
    return {name: every[name] for name in order}


def _ordinalswallet(venue: OrdinalsWallet, subjects: Subjects) -> Asks:
    def paged(start: int) -> Any:
        path = f"/collection/{segment(subjects.about.collection)}/escrows"
        return Raw(venue._http.read(path, {"limit": "20", "offset": str(start)}))

    every = _usual(venue, subjects) | {
        "listings up to the 20th": lambda: paged(0),
        "listings from the 21st": lambda: paged(20),
        "rune sales": lambda: venue.sales(subjects.about.rune, "runes", None),
    }
    order = ["floors", "listings", "listings up to the 20th", "listings from the 21st", "sales", "traits"]
    order += ["rune floors", "rune sales", "wallet of a seller", "listings of a seller", "item"]
    return {name: every[name] for name in order}
