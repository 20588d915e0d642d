"""The error tree and the values that cross the gateway's socket, shared by adapters and clients.

    VenueError
    ├── Unavailable          a read failed, or a write did not get to the venue: nothing changed there
    │   ├── RateLimited      ... with the time to wait
    │   └── NotUnderstood    ... the venue answered, and what it said is not understood
    ├── Unknown              a write was sent; its answer was lost, late, 5xx or unreadable
    └── Refused              the venue (or the gateway) said no; `code` says why in one word
        ├── InsufficientFunds, PriceGrid, BelowMinimum
        └── NotFound, AuthFailed, SignInNeeded, NotSupported

Catch by branch, raise by leaf. Sats are int, unit prices and quantities Decimal, times int milliseconds.

A value of which there may be hundreds is `array_like`: a row of its fields in their order. A new field goes to the end,
where a program of another version refuses the row; in the middle it would be read by another field's name.

They cross a socket as JSON objects with the names of these fields, so a reader needs none of our code. In OutpointFacts
None means not known, or doubtful because two sources differ; it never means no.
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
NoSignature = Annotated[str, matching("([A-Za-z0-9+/]{1,4096}={0,2})?")]  # or "" where none is wanted
Psbt = Annotated[str, matching("[A-Za-z0-9+/]{4,}={0,2}", max_length=LONGEST_PSBT)]
NoPsbt = Annotated[str, matching("([A-Za-z0-9+/]{4,}={0,2})?", max_length=LONGEST_PSBT)]  # or "" for none
Reference = Annotated[str, matching(f"[!-~]{{0,{LONGEST_REFERENCE}}}")]  # a venue gave it and wants it back unchanged
FeeRate = Annotated[str, matching(r"fastestFee|halfHourFee|hourFee|minimumFee|[0-9]{1,6}(\.[0-9]{1,8})?")]
SomeSats = Annotated[int, within(1, MAX_SATS)]
Moment = Annotated[int, within(1, MAX_ID)]  # milliseconds since 1970
_MOST_TOKENS = Decimal(10) ** 39
_unit_price = attrgetter("unit_price")


class VenueError(BidkeeperError):
    """Root of the errors between us and a venue. `kind` is stable: it names the leaf on the wire."""

    kind: ClassVar[str] = "venue_error"

    def __init__(self, message: str = "") -> None:
        super().__init__(message or self.kind.replace("_", " "))
        self.message = str(self)


class Unavailable(VenueError):
    """Nothing was sent, a read failed, or a proxy kept a write from the venue. Nothing changed at the venue."""

    kind = "unavailable"
    status: int | None = None  # of the answer to a read, where there was one; it does not cross the socket


class RateLimited(Unavailable):
    """The venue took too many requests; it listens again in `retry_after_s` seconds, if known."""

    kind = "rate_limited"

    def __init__(self, retry_after_s: float | None = None, message: str = "") -> None:
        super().__init__(message or "the venue asks for a pause")
        self.retry_after_s = retry_after_s


class TooManyLookups(RateLimited):
    """The gateway refused, not the venue: too many look-ups of this user, who may retry in `retry_after_s`."""

    kind = "too_many_lookups"


class NotUnderstood(Unavailable):
    """The venue answered a read in JSON that is not understood. It is there, so this never cuts it off."""

    kind = "not_understood"


class GatewayAway(Unavailable):
    """The gateway itself could not be asked, so nothing was sent."""


class Unknown(VenueError):
    """A write was sent and its answer was lost, late, 5xx or unreadable: look before anything is sent again."""

    kind = "unknown"


class Refused(VenueError):
    """The venue said no, so nothing changed there; `code` says why in one word."""

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
    """The price is below the venue's least."""

    kind = "below_minimum"


class NotFound(_RefusedFor):
    """The venue does not know the thing asked for."""

    kind = "not_found"


class AuthFailed(_RefusedFor):
    """The venue does not accept our key or our user's right, says this one answer."""

    kind = "auth_failed"


class SignInNeeded(_RefusedFor):
    """The wallet's session is missing, so nothing was sent; sign in and ask again."""

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
    """Raises ValueError for goods that no bid can be for."""
    printable(slug, *(trait or ()))
    if trait is not None and kind != "ordinals":
        raise ValueError("runes have no traits")
    if not quantity.is_finite() or not 0 < quantity < _MOST_TOKENS:
        raise ValueError("quantity must be above 0")
    if kind == "ordinals" and quantity != int(quantity):
        raise ValueError("quantity of ordinals must be whole")


def check_outputs(*outpoints: str) -> None:
    """Raises ValueError for an output (txid:vout) whose number is higher than any transaction has."""
    if any(int(outpoint.partition(":")[2]) >= 2**32 for outpoint in outpoints):
        raise ValueError("an output's number is too high")


def may_be_among(unread: tuple[str, ...], key: str | None) -> bool:
    """Tells whether one of the rows left out may be about `key`; None = what the thing is called is not known."""
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
    """Makes the error that `to_wire` wrote. Raises ValueError or OverflowError for any other object."""
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
    """Lowest listing of a collection (sats) or rune (sats per whole token); `floor` None when nothing is listed.

    `taken_ms` is the time of the reading by the gateway's clock; 0 straight from an adapter.
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
    """One live bid of a wallet. `price` is the whole order's, in sats; `quantity` in whole items or tokens, if known.

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

    `unread` are the venue's ids of rows that could not be read, "" where not even that could.
    """

    bids: tuple[OwnBid, ...]
    taken_ms: int
    unread: tuple[str, ...] = ()

    def may_hold(self, venue_id: str | None) -> bool:
        """Tells whether an order that is not among the bids may be there all the same; None = its id is not known."""
        return may_be_among(self.unread, venue_id)


class AskBook(Struct, frozen=True, forbid_unknown_fields=True):
    """The cheapest listings, cheapest first, at most 200; for a trait, those of them known to have it.

    They were read at `taken_ms`. At `confirmed_ms` the venue's floor showed that the cheapest had not changed.
    `unread` rows were left out; none of them is the cheapest. `hidden` of them may be asks, and have the trait.
    """

    asks: tuple[Ask, ...]
    taken_ms: int
    confirmed_ms: int | None = None
    unread: int = 0
    hidden: int = 0


class BidBook(Struct, frozen=True, forbid_unknown_fields=True):
    """The best bids on a whole collection or rune, best first, at most 200; for a trait, the bids on it as well.

    Bids on other traits and on single items are not in it. `unread` rows were left out; none of them is the best.
    `hidden` of them may be bids that compete.
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
    """One sale: `price` in sats for all of it, `quantity` in whole items or tokens. None: not known.

    `sale_id` may be the id of the very order that was filled, so our bid is searched in `bid_id` and in
    `sale_id`. `buyer` may be the buyer's paying or receiving address. `txid` is the transaction that filled the order.
    `is_of_listing`: the order is known to be a listing, so the sale does not fill a bid.
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
    """Sales, newest first; none of those since `since_ms` (epoch) is missing.

    `since_ms` is later than was asked for when there were too many to read: earlier sales are then missing here.
    `unread_ms` are the times of sales that could not be read, None where not even the time could.
    """

    sales: tuple[Sale, ...]
    taken_ms: int
    since_ms: int
    unread_ms: tuple[int | None, ...] = ()

    def may_hide(self, since_ms: int) -> bool:
        """Tells whether a sale since then could not be read: what is not among the sales may have been sold."""
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
    """One inscription as a venue describes it; details it does not give, or gives strangely, are None.

    Values and prices in sats. Texts are unfiltered: clean them before showing them. `traits` are sorted pairs of type
    and value.
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

    `fee_rate` is a tier's name or a decimal number in sat/vB. For a bid drafted by the venue, `signature` is "" and
    `signed_psbts` are the draft's in its order, under its `reference`.
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
        """Raises ValueError for values that do not go together."""
        check_goods(self.kind, self.quantity, self.slug, self.trait)
        if bool(self.signed_psbts) == bool(self.signature):
            raise ValueError("order: it takes a signature or signed PSBTs")


Media = Literal["image/png", "image/jpeg", "image/webp", "image/gif", "image/avif"]
# The venue names no picture; it cannot be read now; otherwise the kind of content found instead.
Instead = Literal["none", "unreachable", "too_large", "svg", "html", "text", "video", "file"]
PICTURE_MEDIA: tuple[Media, ...] = get_args(Media)
PICTURE_LACKS: tuple[Instead, ...] = get_args(Instead)
MOST_PICTURE_BYTES = 2_000_000


class Picture(Struct, frozen=True, forbid_unknown_fields=True, tag="picture"):
    """A picture, and its type by its own first bytes."""

    media: Media
    data: bytes


class NoPicture(Struct, frozen=True, forbid_unknown_fields=True, tag="none"):
    """The reason why a picture is missing."""

    instead: Instead


class Whereabouts(Struct, frozen=True, forbid_unknown_fields=True):
    """The place of an inscription by the newest block of the index; `value` in sats of the whole output.

    `outpoint` (txid:vout) is None for one that is on no output (unbound or lost), `address` None for a script without
    an address.
    """

    inscription_id: str
    outpoint: str | None
    address: str | None
    value: int | None
    taken_ms: int


class Confirmation(NamedTuple):
    """The state of a transaction: in a block or not, and in which; None = in none, or not known.

    `block` is the block's hash, `time_s` the time in it (Unix seconds, by its miner).
    """

    is_in_block: bool
    height: int | None = None
    block: str | None = None
    time_s: int | None = None


class TransactionFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """One transaction, whose bytes (hex) without witnesses hash to its id, and the block that it is in.

    `witnesses` has each input's items in hex; one that is very long is left out (empty). `is_confirmed`, the block's
    `height`, `block` (its hash), `time_s` and the chain's `tip_height` are None where they are not known.
    """

    transaction: str
    witnesses: tuple[tuple[str, ...], ...]
    is_confirmed: bool | None
    height: int | None
    block: str | None
    time_s: int | None
    tip_height: int | None


class Spending(NamedTuple):
    """The fate of an output: spent or not, by which transaction, and whether that one is in a block."""

    is_spent: bool
    txid: str | None
    is_in_block: bool = False


class Indexed(Struct, frozen=True):
    """An index's facts of an output; None is a fact it does not give. `height` is the index's last block."""

    value: int | None
    script: str | None
    is_confirmed: bool | None
    is_spent: bool | None
    inscriptions: tuple[str, ...] | None
    runes: tuple[str, ...] | None
    height: int | None
    item_offset: int | None = None


class OutpointFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """The facts of one output. `value` in sats, `script` (hex); `spent_by` is the txid of the transaction that spends
    it.

    `inscriptions` are ids, `runes` spaced names, both complete. `tip_height` is the chain's, `index_height` the last
    block that `inscriptions` and `runes` take into account; a spend is seen in the mempool already, where another may
    replace it until it `is_spent_in_block`. `item_offset` is how many of its sats lie before its only inscription's.
    `height` is the block that the output is in.
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

    Its assets are not known here: only a coin without inscription and rune may be spent.
    """

    outpoint: str
    value: int
    is_confirmed: bool
