"""The questions of a probe to each venue, and the file that keeps their answers."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cli.doctor import questions as doctor
from cli.doctor.questions import ADDRESS, PUBKEY, VAULT, About, Question
from core.errors import BidkeeperError
from core.settings import dialect_of
from gateway.program import Adapters
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
from markets.wire import Page, Unreadable, parse, rows, table, text, whole

FORMAT, VERSION = "bidkeeper-probe", 1
MOST_BYTES = 16_000_000
LONGEST_TEXT = 20_000  # characters of an answer that is not JSON
_MOST_QUESTIONS, _MOST_EXCHANGES, _MOST_HEADERS = 100, 10, 50
_METHODS = frozenset({"GET", "POST"})
_HEADER = re.compile(r"[A-Za-z0-9\-]{1,60}", re.ASCII)
_LAST_MS = 10**13  # in 2286
_DEEPEST = 60  # lists and objects within one another


class NotAProbeFile(BidkeeperError):
    """The file is not a probe file of this version; the message says why."""


class Recorded(Struct, frozen=True):
    """One exchange. `status` None is no answer; `text` is an answer without JSON, None where it was left out."""

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
    """A probe file. `about` are the questions' subjects, `questions` the exchanges by question, in their order."""

    venue: str
    bidkeeper: str
    asked_ms: int
    about: Mapping[str, str]
    questions: Mapping[str, tuple[Recorded, ...]]


def written(record: Record) -> bytes:
    """Returns the file's bytes."""
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
    """Writes JSON in which a Decimal is the number with its own digits; with `indent`, an entry a line."""
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
    """Reads a probe file. Raises NotAProbeFile, also for one that is too large."""
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
        return _record(parse(content))
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
    return Record(
        text(content.get("venue"), "venue", longest=40),
        text(content.get("bidkeeper"), "bidkeeper", longest=100),
        asked_ms,
        about,
        questions,
    )


def _recorded(entry: Mapping[str, Any], name: str) -> Recorded:
    if not isinstance(method := entry.get("method"), str) or method not in _METHODS:
        raise Unreadable(f"{name}: the method is not GET or POST")
    params = table(entry.get("params"), f"{name}: params")
    headers = table(entry.get("headers"), f"{name}: headers")
    if len(headers) > _MOST_HEADERS or not all(map(_HEADER.fullmatch, headers)):
        raise Unreadable(f"{name}: the headers are not headers")
    for each in (*params.values(), *headers.values()):
        if not isinstance(each, str):
            raise Unreadable(f"{name}: a parameter or header is not a text")
    status, told = entry.get("status"), entry.get("text")
    if status is not None and (type(status) is not int or not 100 <= status < 600):
        raise Unreadable(f"{name}: the status is not an HTTP status")
    if told is not None and not isinstance(told, str):
        raise Unreadable(f"{name}: the text is not a text")
    _check_depth(entry.get("answer"), name)
    path = text(entry.get("path"), f"{name}: path", longest=2000)
    is_json = "answer" in entry
    return Recorded(method, path, params, entry.get("body"), status, headers, entry.get("answer"), told, is_json)


def _check_depth(value: Any, name: str, depth: int = 0) -> None:
    if depth > _DEEPEST:
        raise Unreadable(f"{name}: the answer is nested too deeply")
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_depth(each, name, depth + 1)


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


class Raw(Struct, frozen=True):
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
