"""The verbs of the gateway's and the facts process's sockets: one class for each, with its arguments and answer type.

A request is a JSON object, see `Request`; `args` are the fields of the verb's class. The answer is `{"ok": ...}` with
the other members of `Answered`, or `{"error": ...}` as `markets/base.py` encodes it. `markets/client.py` sends
requests; methods marked `@answers` in the gateway answer them. Workers import this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from core import fields
from core.fields import MAX_ID, MAX_SATS, Txid, matching, reader_of, text_of, within
from markets import base, orders, venues
from markets.base import Kind, NoPsbt, NoSignature, OrderId, Psbt, Refused, Slug, Trait, Word, check_outputs, printable
from strategy.book import VenueProfile

Answer = TypeVar("Answer")
Purpose = Literal["look", "act", "withdraw", "brake"]
Source = Literal["market", "runes"]
Whole = Annotated[int, within(0, MAX_ID)]
Age = Annotated[float, Meta(ge=0, le=86_400)]  # seconds
SomeOrders = Annotated[tuple[OrderId, ...], Meta(min_length=1, max_length=100)]

_OTHER_VERSION = "restart both programs if one of them is of another version"
_PATTERN = re.compile(r"matching regex '\^\(\?:(.*)\)\(\?!\\\\n\)\$'")  # the form of patterns in core/fields.py
_ENCODER = msgspec.json.Encoder()


class Request(Struct, frozen=True, forbid_unknown_fields=True):
    """A request. `venue` None is the installation's default; `user` is the number of the user that it is for.

    `patience_s` is the client's time-out (None = none), `max_age_s` the maximum age of the answer. A task's write needs
    the last four fields: see `gateway/writes.py`.
    """

    verb: str
    args: Raw
    venue: str | None = None
    user: Whole | UnsetType = UNSET
    purpose: Literal["task"] | Purpose = "task"
    patience_s: Age | None = None
    max_age_s: Age = 0.0
    task: Whole | UnsetType = UNSET
    token: Whole | UnsetType = UNSET
    deadline_ms: Whole | UnsetType = UNSET
    rung: Whole = 0


class Scarcity(Struct, frozen=True):
    """Restrictions while a quota is short: reads may be `stretch_s` old, and only a ladder's top `rungs` get new bids.

    `rungs` None = all.
    """

    stretch_s: int = 0
    rungs: int | None = None


AMPLE = Scarcity()


class Answered(Struct, Generic[Answer], frozen=True):
    """An answer: `ok` or `error`, the quota's restrictions, and `skew_s`, the seconds that our clock is ahead."""

    ok: Answer | UnsetType = UNSET
    error: Any = None
    quota: Scarcity = AMPLE
    skew_s: float = 0.0


class Args(Struct, Generic[Answer], frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The arguments of a verb and the type of its answer. The class `OwnBids` is the verb "own_bids".

    `quota_of` is the source of shared answers, which may be older while its quota is short: the marketplace, or the
    provider of rune data.
    """

    is_write: ClassVar[bool] = False  # a write's outcome is Unknown if its answer is lost
    quota_of: ClassVar[Source | None] = None

    def check(self) -> None:
        """Raises ValueError for invalid values that the fields' types do not exclude."""
        for name in ("slug", "ticker", "slugs", "trait"):
            given = getattr(self, name, None) or ()
            printable(*((given,) if isinstance(given, str) else given))
        if order := getattr(self, "ask", None) or getattr(self, "order", None):
            order.check()


class MarketRead(Args[Answer], Generic[Answer], frozen=True):
    quota_of = "market"


class Write(Args[Answer], Generic[Answer], frozen=True):
    is_write = True


class Profile(Args[VenueProfile], frozen=True):
    kind: Kind


class Floors(MarketRead[dict[str, base.Floor]], frozen=True):
    slugs: Annotated[tuple[Slug, ...], Meta(min_length=1, max_length=100)]
    kind: Kind


class Asks(MarketRead[base.AskBook], frozen=True):
    slug: Slug
    trait: Trait | None = None
    by_floor: bool = False


class Bids(MarketRead[base.BidBook], frozen=True):
    slug: Slug
    kind: Kind
    trait: Trait | None = None

    def check(self) -> None:
        super().check()
        if self.trait is not None and self.kind != "ordinals":
            raise ValueError("runes have no traits")


class Traits(MarketRead[dict[str, dict[str, int]]], frozen=True):
    slug: Slug


class TraitFloors(Args[base.TraitFloors | None], frozen=True):
    slug: Slug


class Collections(Args[tuple[base.Known, ...]], frozen=True):
    kind: Kind
    slugs: Annotated[tuple[Slug, ...], Meta(max_length=500)] = ()
    part: Annotated[str, text_of(0, 200)] | None = None
    only_public: bool = False


class Sales(MarketRead[base.Sales], frozen=True):
    slug: Slug
    kind: Kind
    since_ms: Whole


class Rune(Args[base.Rune], frozen=True):
    quota_of = "runes"

    ticker: Slug


class RuneAsks(Args[base.AskBook], frozen=True):
    quota_of = "runes"

    ticker: Slug


class OwnBids(MarketRead[base.OwnBids], frozen=True):
    wallet: Word
    slugs: Annotated[tuple[Slug, ...], Meta(max_length=100)] = ()


class Balance(Args[base.Balance], frozen=True):
    payment: Word
    receive: Word
    pubkey: Word


class Fees(Args[base.Fees], frozen=True):
    pass


class Coins(Args[tuple[base.Utxo, ...]], frozen=True):
    address: Word


class WalletContents(MarketRead[tuple[base.WalletItem, ...]], frozen=True):
    address: Word


class Item(MarketRead[base.Item], frozen=True):
    inscription_id: OrderId


class Picture(Args[base.Picture | base.NoPicture], frozen=True):
    inscription_id: OrderId | None
    url: str | None


class Challenge(Args[str], frozen=True):
    wallet: Word


class DraftBid(Args[orders.BidDraft], frozen=True):
    ask: orders.BidToDraft


class SignInTexts(Args[orders.SignInTexts], frozen=True):
    pair: orders.Pair


class SignIn(Args[None], frozen=True):
    answer: orders.SignInAnswer


class Venues(Args[tuple[venues.VenueFacts, ...]], frozen=True):
    pass


class Place(Write[str | None], frozen=True):
    order: base.BidOrder


class Cancel(Write[bool], frozen=True):
    wallet: Word
    venue_ids: SomeOrders
    signature: NoSignature


class OwnListings(MarketRead[orders.OwnListings], frozen=True):
    wallet: Word


class DraftListing(Args[orders.ListingDraft], frozen=True):
    ask: orders.ListingToDraft


class DraftDelist(Args[orders.ListingDraft], frozen=True):
    wallet: Word
    inscription_id: OrderId


class ListItem(Write[None], frozen=True):
    order: orders.ListingOrder


class Delist(Write[bool], frozen=True):
    wallet: Word
    inscription_ids: SomeOrders
    signature: NoPsbt  # or a signature


class Whereabouts(Args[base.Whereabouts], frozen=True):
    inscription_id: OrderId


class Outpoint(Args[base.OutpointFacts], frozen=True):
    outpoint: fields.Outpoint
    with_transaction: bool = False

    def check(self) -> None:
        check_outputs(self.outpoint)


class Transaction(Args[base.TransactionFacts], frozen=True):
    txid: Txid


class DraftWithdrawal(Args[str], frozen=True):
    payment: Word
    amount: Annotated[int, within(1, MAX_SATS)]


class SubmitWithdrawal(Write[str], frozen=True):
    payment: Word
    psbt: Psbt


class Broadcast(Write[str], frozen=True):
    transaction: Annotated[str, matching("([0-9a-f]{2}){60,}", max_length=200_000)]


class IsConfirmed(Args[bool], frozen=True):
    txid: Txid


class PlayAddress(Args[str], frozen=True):
    pass


class PlaySignature(Args[str], frozen=True):
    message: Annotated[str, text_of(1, 2_000)]


class Fence(Args[int], frozen=True):
    pass


class FenceAll(Args[tuple[tuple[int, int], ...]], frozen=True):
    tokens: tuple[tuple[Whole, Whole], ...]  # (task, its minimum token)


class Hold(Args[None], frozen=True):
    tasks: tuple[Whole, ...]
    hold_s: Annotated[int, within(0, 60)]


class Status(Args[dict[str, Any]], frozen=True):
    pass


def _leaves(kind: type[Args[Any]]) -> Iterator[type[Args[Any]]]:
    for each in kind.__subclasses__():
        yield from _leaves(each) if each.__subclasses__() else (each,)


NAMES = {kind: re.sub("(?!^)(?=[A-Z])", "_", kind.__name__).lower() for kind in _leaves(Args)}
BY_NAME = {name: kind for kind, name in NAMES.items()}
WRITES = frozenset(name for kind, name in NAMES.items() if kind.is_write)


def text(value: Any) -> str:
    """Returns `value` as JSON text."""
    return _ENCODER.encode(value).decode()


def read(body: bytes) -> Request:
    """Reads a request without its arguments. Raises Refused('bad_request')."""
    return _decoded(reader_of(Request), body, "the request")


def read_args(asked: Request, kind: type[Args[Answer]]) -> Args[Answer]:
    """Reads the arguments of a request for the verb `kind`. Raises Refused('bad_request')."""
    args: Args[Answer] = _decoded(reader_of(kind), asked.args, "args")
    try:
        args.check()
    except ValueError as error:
        raise Refused("bad_request", str(error)) from error
    return args


def _decoded(reader: msgspec.json.Decoder[Any], body: bytes | Raw, whole: str) -> Any:
    try:
        return reader.decode(body)
    except msgspec.ValidationError as error:
        fault, _, where = str(error).partition(" - at `$")
        named = where.strip("`.") or whole
        if "unknown field" in fault or "missing required" in fault:
            fault = f"{fault}; {_OTHER_VERSION}"
        if found := _PATTERN.search(fault):
            fault = f"not as agreed; it must match {found[1]}"
        raise Refused("bad_request", f"{named}: {fault[:300]}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused("bad_request", "the request is not JSON") from error


def no_such_verb(name: str) -> Refused:
    """Returns the refusal for a verb that this program does not answer."""
    return Refused("bad_request", f"there is no such verb here: {name[:60]!r}; {_OTHER_VERSION}")
