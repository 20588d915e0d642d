"""The error tree and the values that cross the gateway's socket, shared by adapters and clients.

    VenueError
    ├── Unavailable          a read failed, or a write did not reach the venue: nothing changed there
    │   ├── RateLimited      wait for `retry_after_s`
    │   └── NotUnderstood    the venue answered, and the answer is not understood
    ├── Unknown              a write was sent; its answer was lost, late, 5xx or unreadable
    └── Refused              the venue (or the gateway) refused; `code` gives the reason in one word
        ├── InsufficientFunds, PriceGrid, BelowMinimum
        └── NotFound, AuthFailed, SignInNeeded, NotSupported

Catch branches, raise leaves. Sats are int, unit prices and quantities Decimal, times int milliseconds.

Values cross the socket as JSON objects with these field names, so other programs can read them. A type with hundreds of
values in an answer is `array_like`: each value is a list of its fields in order. Add new fields at the end, where a
program of another version refuses the row; in the middle it would take one field for another.

In OutpointFacts None means unknown, or doubtful because sources differ; it never means no.
"""

from __future__ import annotations

from decimal import Decimal
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, get_args

from msgspec import Meta, Struct

from core.errors import BidkeeperError
from core.fields import MAX_ID, MAX_SATS, matching, text_of, within
from strategy.book import Ask, Bid

LONGEST_PSBT = 64 * 1024  # characters of one PSBT in base64
LONGEST_REFERENCE = 4096  # characters: some venues hand out a signed token
MOST_DRAFTED = 8  # PSBTs of one bid

# Limits of a request to the gateway. A slug, a ticker and a trait must also be `printable`.
Kind = Literal["ordinals", "runes"]
Word = Annotated[str, matching("[A-Za-z0-9]{1,128}")]  # an address, or a key in hex
OrderId = Annotated[str, matching("[A-Za-z0-9_:.-]{1,128}")]  # of an order, or of an inscription
Slug = Annotated[str, matching("[^,]*", min_length=1, max_length=200)]  # or a ticker; many are sent joined by commas
Trait = tuple[Annotated[str, text_of(1, 200)], Annotated[str, text_of(1, 200)]]  # type and value
Signature = Annotated[str, matching("[A-Za-z0-9+/]{1,4096}={0,2}")]
NoSignature = Annotated[str, matching("([A-Za-z0-9+/]{1,4096}={0,2})?")]  # or "" if none is needed
Psbt = Annotated[str, matching("[A-Za-z0-9+/]{4,}={0,2}", max_length=LONGEST_PSBT)]
NoPsbt = Annotated[str, matching("([A-Za-z0-9+/]{4,}={0,2})?", max_length=LONGEST_PSBT)]  # or "" for none
Reference = Annotated[str, matching(f"[!-~]{{0,{LONGEST_REFERENCE}}}")]  # given by a venue, sent back unchanged
FeeRate = Annotated[str, matching(r"fastestFee|halfHourFee|hourFee|minimumFee|[0-9]{1,6}(\.[0-9]{1,8})?")]
SomeSats = Annotated[int, within(1, MAX_SATS)]
Moment = Annotated[int, within(1, MAX_ID)]  # milliseconds since 1970
_MOST_TOKENS = Decimal(10) ** 39
_unit_price = attrgetter("unit_price")


class VenueError(BidkeeperError):
    """Root of the errors of calls to venues. `kind` names the leaf on the socket, so it must not change."""

    kind: ClassVar[str] = "venue_error"

    def __init__(self, message: str = "") -> None:
        super().__init__(message or self.kind.replace("_", " "))
        self.message = str(self)


class Unavailable(VenueError):
    """Nothing was sent, a read failed, or a proxy kept a write from the venue. Nothing changed at the venue."""

    kind = "unavailable"
    status: int | None = None  # HTTP status of a read's answer, if any; not sent over the socket


class RateLimited(Unavailable):
    """The venue received too many requests; retry after `retry_after_s` seconds (None = unknown)."""

    kind = "rate_limited"

    def __init__(self, retry_after_s: float | None = None, message: str = "") -> None:
        super().__init__(message or "the venue asks for a pause")
        self.retry_after_s = retry_after_s


class TooManyLookups(RateLimited):
    """The gateway refused the call because the user made too many look-ups; retry after `retry_after_s`."""

    kind = "too_many_lookups"


class NotUnderstood(Unavailable):
    """The venue's answer to a read is not understood. It does not open the breaker, because the venue answers."""

    kind = "not_understood"


class GatewayAway(Unavailable):
    """The gateway could not be reached, so nothing was sent."""


class Unknown(VenueError):
    """A write was sent and its answer was lost, late, 5xx or unreadable. Read the venue's state before a retry."""

    kind = "unknown"


class Refused(VenueError):
    """The venue refused, so nothing changed there; `code` gives the reason in one word."""

    kind = "refused"

    def __init__(self, code: str = "refused", message: str = "") -> None:
        super().__init__(message or code.replace("_", " "))
        self.code = code


class _RefusedFor(Refused):
    """A refusal whose code is its kind."""

    def __init__(self, message: str = "") -> None:
        super().__init__(self.kind, message)


class InsufficientFunds(_RefusedFor):
    """The bidding wallet does not cover the order."""

    kind = "insufficient_funds"


class PriceGrid(_RefusedFor):
    """The price is not on the venue's grid."""

    kind = "price_grid"


class BelowMinimum(_RefusedFor):
    """The price is below the venue's minimum."""

    kind = "below_minimum"


class NotFound(_RefusedFor):
    """The venue does not know the requested object."""

    kind = "not_found"


class AuthFailed(_RefusedFor):
    """This answer rejects our key or our user's right; other calls may still succeed."""

    kind = "auth_failed"


class SignInNeeded(_RefusedFor):
    """The wallet has no session, so nothing was sent; sign in and retry."""

    kind = "sign_in_needed"


class NotSupported(_RefusedFor):
    """This venue, or this installation as configured, cannot do it."""

    kind = "not_supported"


_LEAVES = (InsufficientFunds, PriceGrid, BelowMinimum, NotFound, AuthFailed, SignInNeeded, NotSupported)
_BY_KIND: dict[str, type[VenueError]] = {leaf.kind: leaf for leaf in (Unavailable, NotUnderstood, Unknown, *_LEAVES)}


def printable(*texts: str | None) -> None:
    """Raises ValueError for a text with a character that cannot be printed."""
    if any(text is not None and not text.isprintable() for text in texts):
        raise ValueError("a slug, a ticker or a trait has a character that cannot be printed")


def check_goods(kind: Kind, quantity: Decimal, slug: str, trait: tuple[str, str] | None) -> None:
    """Raises ValueError for goods or a quantity that cannot be bid on."""
    printable(slug, *(trait or ()))
    if trait is not None and kind != "ordinals":
        raise ValueError("runes have no traits")
    if not quantity.is_finite() or not 0 < quantity < _MOST_TOKENS:
        raise ValueError("quantity must be above 0")
    if kind == "ordinals" and quantity != int(quantity):
        raise ValueError("quantity of ordinals must be whole")


def check_outputs(*outpoints: str) -> None:
    """Raises ValueError for an output (txid:vout) whose vout is 2**32 or more."""
    if any(int(outpoint.partition(":")[2]) >= 2**32 for outpoint in outpoints):
        raise ValueError("an output's number is too high")


def may_be_among(unread: tuple[str, ...], key: str | None) -> bool:
    """Returns whether a row left out may be about `key`; None = the object's id is unknown."""
    return bool(unread) and (key is None or key in unread or "" in unread)


def to_wire(error: VenueError) -> dict[str, Any]:
    """Returns the JSON object of `error` on the gateway's socket."""
    wire: dict[str, Any] = {"kind": error.kind, "message": error.message}
    if isinstance(error, RateLimited):
        wire["retry_after_s"] = error.retry_after_s
    if isinstance(error, Refused):
        wire["code"] = error.code
    return wire


def from_wire(wire: Any) -> VenueError:
    """Returns the error that `to_wire` encoded. Raises ValueError or OverflowError for any other object."""
    if not isinstance(wire, dict):
        raise ValueError("the error is not an object")
    kind, message = wire.get("kind"), wire.get("message")
    if not isinstance(message, str):
        raise ValueError("the error has no message")
    if kind in (RateLimited.kind, TooManyLookups.kind):
        seconds = wire.get("retry_after_s")
        limited = RateLimited if kind == RateLimited.kind else TooManyLookups
        return limited(float(seconds) if isinstance(seconds, int | float) else None, message)
    if kind == Refused.kind:
        return Refused(str(wire.get("code", "refused")), message)
    leaf = _BY_KIND.get(str(kind))
    if leaf is None:
        raise ValueError(f"unknown kind of error {kind!r}")
    return leaf(message)


class Floor(Struct, frozen=True, forbid_unknown_fields=True):
    """The lowest listing of a collection (sats) or rune (sats per whole token); `floor` None = nothing is listed.

    `taken_ms` is the start of the read by the gateway's clock; 0 in an adapter's own answer.
    """

    slug: str
    floor: Decimal | None
    listed_count: int
    taken_ms: int = 0


class Known(Struct, frozen=True, forbid_unknown_fields=True):
    """A collection or rune as a venue's answers to other questions showed it; None = none did.

    `floor` as in Floor, of `floor_ms`; `volume` all that was paid at the venue, in sats. Its picture is at `image_url`,
    or that of the inscription `item`. `told_ms`: when it was seen last. All times are the gateway's.
    `is_public`: the venue showed it unasked; any other one may say what a user here wants.
    """

    kind: Kind
    slug: str
    name: str | None = None
    floor: Decimal | None = None
    floor_ms: int | None = None
    listed: int | None = None
    volume: int | None = None
    item: str | None = None
    image_url: str | None = None
    told_ms: int = 0
    is_public: bool = False


class TraitFloors(Struct, frozen=True, forbid_unknown_fields=True):
    """The cheapest listing, in sats, of each trait (type, value) in a collection's book, read at `taken_ms`."""

    floors: tuple[tuple[str, str, int], ...]
    taken_ms: int


class OwnBid(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One live bid of a wallet. `price` is the whole order's in sats; `quantity` in whole items or tokens, if known.

    `slug` is empty for a bid on a single inscription, which our tasks never make.
    """

    venue_id: str
    slug: str
    kind: Kind
    price: int
    quantity: Decimal | None
    expires_ms: int | None
    trait: tuple[str, str] | None


class OwnBids(Struct, frozen=True, forbid_unknown_fields=True):
    """All live bids of a wallet, complete, as of `taken_ms` (epoch milliseconds, when the read began).

    `unread` are the venue's ids of rows that could not be read, "" if the id is unreadable too.
    """

    bids: tuple[OwnBid, ...]
    taken_ms: int
    unread: tuple[str, ...] = ()

    def may_hold(self, venue_id: str | None) -> bool:
        """Returns whether an order that is missing from the bids may be an unread row; None = its id is unknown."""
        return may_be_among(self.unread, venue_id)


class AskBook(Struct, frozen=True, forbid_unknown_fields=True):
    """The cheapest listings, cheapest first, at most 200; for a trait, only those known to have it.

    They were read at `taken_ms`. At `confirmed_ms` the venue's floor still equalled the cheapest price. `unread` rows
    were left out, never the cheapest. `hidden` of these may be asks, and may have the trait.
    """

    asks: tuple[Ask, ...]
    taken_ms: int
    confirmed_ms: int | None = None
    unread: int = 0
    hidden: int = 0


class BidBook(Struct, frozen=True, forbid_unknown_fields=True):
    """The best bids on a whole collection or rune, best first, at most 200; for a trait, also the bids on it.

    Bids on other traits and on single items are excluded. `unread` rows were left out, never the best bid. `hidden` of
    these may be competing bids.
    """

    bids: tuple[Bid, ...]
    taken_ms: int
    unread: int = 0
    hidden: int = 0


class Rune(Struct, frozen=True, forbid_unknown_fields=True):
    """A rune: `ticker` with its bullets, as venues spell it; its smallest unit is 10^-`divisibility` tokens."""

    ticker: str
    divisibility: int
    taken_ms: int


class Sale(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One sale: `price` in sats for the whole quantity, `quantity` in whole items or tokens. None = unknown.

    `sale_id` may be the id of the filled order itself, so compare our bid with both `bid_id` and `sale_id`. `buyer` may
    be the buyer's paying or receiving address. `txid` is the transaction that filled the order. `is_of_listing`: the
    order is known to be a listing, so the sale does not fill a bid.
    """

    sale_id: str
    slug: str
    price: int
    quantity: Decimal | None
    buyer: str | None
    bid_id: str | None
    inscription_id: str | None
    sold_ms: int
    txid: str | None = None
    is_of_listing: bool = False


class Sales(Struct, frozen=True, forbid_unknown_fields=True):
    """Sales, newest first, complete since `since_ms` (epoch).

    `since_ms` is later than requested if there were too many sales to read; earlier sales are then missing. `unread_ms`
    are the times of sales that could not be read, None if the time is unreadable too.
    """

    sales: tuple[Sale, ...]
    taken_ms: int
    since_ms: int
    unread_ms: tuple[int | None, ...] = ()

    def may_hide(self, since_ms: int) -> bool:
        """Returns whether a sale since `since_ms` could not be read, so that a missing sale proves nothing."""
        return any(at_ms is None or at_ms >= since_ms for at_ms in self.unread_ms)


class Balance(Struct, frozen=True, forbid_unknown_fields=True):
    """Confirmed and unconfirmed sats of a bidding wallet at `address`."""

    address: str
    sats: int
    taken_ms: int


class Fees(Struct, frozen=True, forbid_unknown_fields=True):
    """Recommended fee rates, sat/vB."""

    fastest: Decimal
    half_hour: Decimal
    hour: Decimal
    economy: Decimal
    minimum: Decimal
    taken_ms: int


class WalletItem(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One inscription of a wallet; `listing_price` in sats when it is listed."""

    id: str
    name: str | None
    collection_id: str | None
    collection_name: str | None
    image_url: str | None
    listed: bool
    listing_price: int | None


class Item(Struct, frozen=True, forbid_unknown_fields=True):
    """One inscription as a venue describes it; missing or malformed details are None.

    Values and prices in sats. Texts are unfiltered, so clean them before display. `traits` are sorted pairs of type and
    value.
    """

    id: str
    listed: bool
    number: int | None = None
    name: str | None = None
    collection_id: str | None = None
    collection_name: str | None = None
    image_url: str | None = None
    content_url: str | None = None
    content_type: str | None = None
    owner: str | None = None
    location: str | None = None
    output: str | None = None
    output_value: int | None = None
    genesis: str | None = None
    listing_price: int | None = None
    seller: str | None = None
    top_bid: int | None = None
    traits: tuple[tuple[str, str], ...] | None = None


class BidOrder(Struct, frozen=True, forbid_unknown_fields=True):
    """One signed bid, ready to be submitted: `price` is the whole order's sats, `signature` base64 BIP-322.

    `fee_rate` is a tier's name or a decimal number in sat/vB. For a bid drafted by the venue, `signature` is "", and
    `signed_psbts` are the draft's PSBTs in the draft's order, with its `reference`.
    """

    price: SomeSats
    quantity: Decimal
    slug: Slug
    kind: Kind
    payment: Word
    payment_pubkey: Word
    receive: Word
    expires_ms: Moment
    timestamp_ms: Moment
    signature: NoSignature
    fee_rate: FeeRate
    trait: Trait | None = None
    reference: Reference = ""
    signed_psbts: Annotated[tuple[Psbt, ...], Meta(max_length=MOST_DRAFTED)] = ()

    def check(self) -> None:
        """Raises ValueError for values that contradict each other."""
        check_goods(self.kind, self.quantity, self.slug, self.trait)
        if bool(self.signed_psbts) == bool(self.signature):
            raise ValueError("order: it takes a signature or signed PSBTs")


Media = Literal["image/png", "image/jpeg", "image/webp", "image/gif", "image/avif"]
# "none": the venue names no picture; "unreachable": it cannot be read now; otherwise the kind of content found.
Instead = Literal["none", "unreachable", "too_large", "svg", "html", "text", "video", "file"]
PICTURE_MEDIA: tuple[Media, ...] = get_args(Media)
PICTURE_LACKS: tuple[Instead, ...] = get_args(Instead)
MOST_PICTURE_BYTES = 2_000_000


class Picture(Struct, frozen=True, forbid_unknown_fields=True, tag="picture"):
    """A picture, and its type as detected from its first bytes."""

    media: Media
    data: bytes


class NoPicture(Struct, frozen=True, forbid_unknown_fields=True, tag="none"):
    """The reason why a picture is missing."""

    instead: Instead


class Whereabouts(Struct, frozen=True, forbid_unknown_fields=True):
    """The place of an inscription as of the index's newest block; `value` is the whole output's in sats.

    `outpoint` (txid:vout) is None for an unbound or lost inscription, `address` None for a script without an address.
    """

    inscription_id: str
    outpoint: str | None
    address: str | None
    value: int | None
    taken_ms: int


class Confirmation(NamedTuple):
    """A transaction's confirmation: its block, if it is in one; None = in no block, or unknown.

    `block` is the block's hash, `time_s` its timestamp (Unix seconds, set by its miner).
    """

    is_in_block: bool
    height: int | None = None
    block: str | None = None
    time_s: int | None = None


class TransactionFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """One transaction in hex without witnesses, whose hash is its id, and its block.

    `witnesses` has each input's items in hex; an input with more than 2,000 bytes has none. `is_confirmed`, the block's
    `height`, `block` (its hash) and `time_s`, and the chain's `tip_height` are None if unknown.
    """

    transaction: str
    witnesses: tuple[tuple[str, ...], ...]
    is_confirmed: bool | None
    height: int | None
    block: str | None
    time_s: int | None
    tip_height: int | None


class Spending(NamedTuple):
    """The spend of an output, if any: its transaction, and whether that is in a block."""

    is_spent: bool
    txid: str | None
    is_in_block: bool = False


class Indexed(Struct, frozen=True):
    """An index's facts of an output; None = not given. `height` is the index's last block."""

    value: int | None
    script: str | None
    is_confirmed: bool | None
    is_spent: bool | None
    inscriptions: tuple[str, ...] | None
    runes: tuple[str, ...] | None
    height: int | None
    item_offset: int | None = None


class OutpointFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """The facts of one output: `value` in sats, `script` in hex, `spent_by` the txid of the spending transaction.

    `inscriptions` are ids, `runes` spaced names, both complete. `tip_height` is the chain's, `index_height` the last
    block covered by `inscriptions` and `runes`. A spend in the mempool counts, and may be replaced until it
    `is_spent_in_block`. `item_offset` is the number of sats before the only inscription's. `height` is the output's
    block.
    """

    outpoint: str
    value: int | None
    script: str | None
    is_unspent: bool | None
    is_confirmed: bool | None
    inscriptions: tuple[str, ...] | None
    runes: tuple[str, ...] | None
    tip_height: int | None
    index_height: int | None
    spent_by: str | None
    is_spent_in_block: bool = False
    item_offset: int | None = None
    height: int | None = None


class Utxo(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One unspent output: `outpoint` as txid:vout, `value` in sats.

    It does not show assets, so check before a spend that it holds no inscription and no rune.
    """

    outpoint: str
    value: int
    is_confirmed: bool
