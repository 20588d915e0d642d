"""Listings as they cross the gateway's socket: live ones, drafts to be signed, signed ones.

Prices are sats, PSBTs base64. The errors that come with them are in `markets/base.py`.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from core.fields import matching
from markets.base import NoPsbt, OrderId, Psbt, Slug, SomeSats, Word, check_outputs, may_be_among, printable

MOST_SECURE = 8  # PSBTs beside the plain one


class OwnListing(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One live listing of a vault: `listing_id` is the inscription's id where the venue has none.

    `owner` is the address that holds the inscription; `slug` None for an inscription without a collection there.
    """

    listing_id: str
    inscription_id: str
    slug: str | None
    price: int
    owner: str


class OwnListings(Struct, frozen=True, forbid_unknown_fields=True):
    """All live listings of an address, complete, as of `taken_ms` (epoch milliseconds, when the read began).

    `unread` are the inscriptions of rows that could not be read, "" where not even that could.
    """

    listings: tuple[OwnListing, ...]
    taken_ms: int
    unread: tuple[str, ...] = ()

    def may_hold(self, inscription_id: str) -> bool:
        """Tells whether an inscription that is not among the listings may be listed all the same."""
        return may_be_among(self.unread, inscription_id)


class ListingToDraft(Struct, frozen=True, forbid_unknown_fields=True):
    """A listing to be drafted: `owner` (a taproot address) holds the inscription, `receive` is paid.

    `tap_internal_key` is the owner's x-only internal key, 64 hex digits; "" in drafts that nobody is to sign.
    `outpoint` (txid:vout) is the output that the item is on, "" where it is not known; some venues go by it.
    """

    price: SomeSats
    inscription_id: OrderId
    owner: Word
    receive: Word
    tap_internal_key: Annotated[str, matching("[0-9a-f]{64}")]
    slug: Slug | None
    outpoint: Annotated[str, matching("([0-9a-f]{64}:(0|[1-9][0-9]{0,9}))?")] = ""

    def check(self) -> None:
        """Raises ValueError for a slug or an output that is none."""
        printable(self.slug)
        if self.outpoint:
            check_outputs(self.outpoint)


class SecureDraft(Struct, frozen=True, forbid_unknown_fields=True):
    """A PSBT whose inputs at `indices` the venue wants signed with ALL|ANYONECANPAY."""

    psbt: str
    indices: tuple[int, ...]


class ListingDraft(Struct, frozen=True, forbid_unknown_fields=True):
    """The PSBTs that the venue wants signed: `psbt` at the item's input with SINGLE|ANYONECANPAY, and each of `secure`.

    With a `transfer`, that one moves the item into an escrow, `psbt` sells it from there, and `recovery`, where the
    venue has one, brings it back; "" is none. The venue wrote it: nothing in it is true until it was checked against
    the intent.
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
