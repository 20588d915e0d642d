"""Listings as they cross the gateway's socket: live ones, drafts to be signed, signed ones.

Prices are sats, PSBTs base64. The errors that come with them are in `markets/base.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from markets.base import may_be_among

LONGEST_PSBT = 64 * 1024  # characters of one PSBT in base64
MOST_SECURE = 8  # PSBTs beside the plain one


@dataclass(frozen=True, slots=True)
class OwnListing:
    """One live listing of a vault: `listing_id` is the inscription's id where the venue has none.

    `owner` is the address that holds the inscription; `slug` None for an inscription without a collection there.
    """

    listing_id: str
    inscription_id: str
    slug: str | None
    price: int
    owner: str


@dataclass(frozen=True, slots=True)
class OwnListings:
    """All live listings of an address, complete, as of `taken_ms` (epoch milliseconds, when the read began).

    `unread` are the inscriptions of rows that could not be read, "" where not even that could.
    """

    listings: tuple[OwnListing, ...]
    taken_ms: int
    unread: tuple[str, ...] = ()

    def may_hold(self, inscription_id: str) -> bool:
        """Tells whether an inscription that is not among the listings may be listed all the same."""
        return may_be_among(self.unread, inscription_id)


@dataclass(frozen=True, slots=True)
class ListingToDraft:
    """A listing to be drafted: `owner` (a taproot address) holds the inscription, `receive` is paid.

    `tap_internal_key` is the owner's x-only internal key, 64 hex digits; "" in drafts that nobody is to sign.
    `outpoint` (txid:vout) is the output that the item is on, "" where it is not known; some venues go by it.
    """

    price: int
    inscription_id: str
    owner: str
    receive: str
    tap_internal_key: str
    slug: str | None
    outpoint: str = ""


@dataclass(frozen=True, slots=True)
class SecureDraft:
    """A PSBT whose inputs at `indices` the venue wants signed with ALL|ANYONECANPAY."""

    psbt: str
    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ListingDraft:
    """The PSBTs that the venue wants signed: `psbt` at the item's input with SINGLE|ANYONECANPAY, and each of `secure`.

    With a `transfer`, that one moves the item into an escrow, `psbt` sells it from there, and `recovery`, where the
    venue has one, brings it back; "" is none. The venue wrote it: nothing in it is true until it was checked against
    the intent.
    """

    psbt: str
    secure: tuple[SecureDraft, ...] = ()
    transfer: str = ""
    recovery: str = ""


@dataclass(frozen=True, slots=True)
class ListingOrder:
    """One signed listing, ready to be submitted; `payment` (address, public key in hex) is the user's paying pair."""

    ask: ListingToDraft
    signed_psbt: str
    unsigned_psbt: str
    signed_secure: tuple[str, ...]
    payment: str
    payment_pubkey: str
    signed_transfer: str = ""
    signed_recovery: str = ""
