"""Types of the gateway's socket: live bids and listings, drafts to be signed, signed orders, and sign-ins.

Prices are the whole order's in sats, PSBTs and signatures base64, keys hex. A venue's draft is untrusted until it is
checked against the intent. Workers import this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated

from msgspec import Meta, Struct

from core.fields import Outpoint, matching, within
from markets.base import (
    Kind,
    NoPsbt,
    OrderId,
    Psbt,
    Reference,
    Signature,
    Slug,
    SomeSats,
    Trait,
    Word,
    check_goods,
    check_outputs,
    may_be_among,
    printable,
)

MOST_COINS = 100
MOST_SIGN_IN_TEXTS = 4
LONGEST_SIGN_IN_TEXT = 2000  # characters

Pubkey = Annotated[str, matching("0[23][0-9a-f]{64}")]  # compressed
InternalKey = Annotated[str, matching("[0-9a-f]{64}")]  # of a taproot address, x-only
TextId = Annotated[str, matching("[!-~]{1,200}")]


class Pair(Struct, frozen=True, forbid_unknown_fields=True):
    """The two addresses of a session, with their public keys.

    `payment_pubkey` is compressed (66 digits); `ordinals_pubkey` the x-only internal key (64) of a taproot address.
    """

    payment: Word
    payment_pubkey: Pubkey
    ordinals: Word
    ordinals_pubkey: InternalKey


class Coin(Struct, frozen=True, forbid_unknown_fields=True):
    """An output of the payment address that a bid may spend: `outpoint` as txid:vout, `value` in sats."""

    outpoint: Outpoint
    value: SomeSats


class BidToDraft(Struct, frozen=True, forbid_unknown_fields=True):
    """A bid to be drafted: `price` is the whole order's; it is valid for `valid_hours` and paid with some of `coins`.

    `payment` pays, `ordinals` receives the goods; the keys are as in `Pair`.
    """

    price: SomeSats
    quantity: Decimal
    slug: Slug
    kind: Kind
    trait: Trait | None
    payment: Word
    payment_pubkey: Pubkey
    ordinals: Word
    ordinals_pubkey: InternalKey
    valid_hours: Annotated[int, within(1, 24 * 366)]
    coins: Annotated[tuple[Coin, ...], Meta(max_length=MOST_COINS)]

    def check(self) -> None:
        """Raises ValueError for invalid goods or coins."""
        check_goods(self.kind, self.quantity, self.slug, self.trait)
        check_outputs(*(coin.outpoint for coin in self.coins))


class DraftPsbt(Struct, frozen=True, forbid_unknown_fields=True):
    """A PSBT to be signed at the inputs `indices` with `sighash` (None = the input's default).

    `role` is its purpose in the venue's terms, such as "funding".
    """

    role: str
    psbt: str
    indices: tuple[int, ...]
    sighash: int | None


class BidDraft(Struct, frozen=True, forbid_unknown_fields=True):
    """The PSBTs to be signed for a bid. `reference` is sent back unchanged with the signed PSBTs.

    `leaf` is the script (hex) with which the venue may spend the escrow that the PSBTs pay to; "" if it names none.
    """

    reference: str
    psbts: tuple[DraftPsbt, ...]
    leaf: str = ""


class SignInText(Struct, frozen=True, forbid_unknown_fields=True):
    """A text that `address` must sign by BIP-322; `id` names it in the answer."""

    id: str
    message: str
    address: str


class SignInTexts(Struct, frozen=True, forbid_unknown_fields=True):
    """The texts to be signed before the venue opens a session; `reference` is sent back with the signatures."""

    reference: str
    texts: tuple[SignInText, ...]


class SignInAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """The signatures (base64) by the ids of their texts."""

    pair: Pair
    reference: Reference
    signatures: Annotated[Mapping[TextId, Signature], Meta(min_length=1, max_length=MOST_SIGN_IN_TEXTS)]


MOST_SECURE = 8  # PSBTs in addition to the plain one


class OwnListing(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One live listing of a vault: `listing_id` is the inscription's id if the venue gives listings no id.

    `owner` is the address that holds the inscription; `slug` is None if the venue has no collection for it.
    """

    listing_id: str
    inscription_id: str
    slug: str | None
    price: int
    owner: str


class OwnListings(Struct, frozen=True, forbid_unknown_fields=True):
    """All live listings of an address, complete, as of `taken_ms` (epoch milliseconds, when the read began).

    `unread` are the inscription ids of rows that could not be read, "" if the id is unreadable too.
    """

    listings: tuple[OwnListing, ...]
    taken_ms: int
    unread: tuple[str, ...] = ()

    def may_hold(self, inscription_id: str) -> bool:
        """Returns whether an inscription that is missing from the listings may still be listed."""
        return may_be_among(self.unread, inscription_id)


class ListingToDraft(Struct, frozen=True, forbid_unknown_fields=True):
    """A listing to be drafted: `owner` (a taproot address) holds the inscription, `receive` is paid.

    `tap_internal_key` is the owner's x-only internal key, 64 hex digits; "" in drafts that need no signature.
    `outpoint` (txid:vout) is the item's output, which some venues need; "" if unknown.
    """

    price: SomeSats
    inscription_id: OrderId
    owner: Word
    receive: Word
    tap_internal_key: Annotated[str, matching("[0-9a-f]{64}")]
    slug: Slug | None
    outpoint: Annotated[str, matching("([0-9a-f]{64}:(0|[1-9][0-9]{0,9}))?")] = ""

    def check(self) -> None:
        """Raises ValueError for an invalid slug or output."""
        printable(self.slug)
        if self.outpoint:
            check_outputs(self.outpoint)


class SecureDraft(Struct, frozen=True, forbid_unknown_fields=True):
    """A PSBT to be signed at the inputs `indices` with ALL|ANYONECANPAY."""

    psbt: str
    indices: tuple[int, ...]


class ListingDraft(Struct, frozen=True, forbid_unknown_fields=True):
    """The PSBTs to be signed for a listing: `psbt` at the item's input with SINGLE|ANYONECANPAY, and each of `secure`.

    If the listing uses an escrow, `transfer` moves the item there, `psbt` sells it from there, and `recovery` (if the
    venue has one) returns it; otherwise both are "". The venue's draft must be checked against the intent before use.
    """

    psbt: str
    secure: tuple[SecureDraft, ...] = ()
    transfer: str = ""
    recovery: str = ""


class ListingOrder(Struct, frozen=True, forbid_unknown_fields=True):
    """One signed listing, ready to be submitted; `payment` (address, public key in hex) is the user's paying pair."""

    ask: ListingToDraft
    signed_psbt: Psbt
    unsigned_psbt: Psbt
    signed_secure: Annotated[tuple[Psbt, ...], Meta(max_length=MOST_SECURE)]
    payment: Word
    payment_pubkey: Word
    signed_transfer: NoPsbt = ""
    signed_recovery: NoPsbt = ""

    def check(self) -> None:
        """Raises ValueError as `ListingToDraft.check` does."""
        self.ask.check()
