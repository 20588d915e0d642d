"""Listings at ord.net: three PSBTs are drafted and signed, none is broadcast before the sale.

The transfer moves the item into an escrow (sighash DEFAULT), the settlement pays us out of it (SINGLE|ANYONECANPAY),
and the recovery brings it back (ALL), so that nothing is signed when it is taken down. Every function raises Unreadable
for anything it does not understand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from markets.adapter import Latest
from markets.base import Refused, Unavailable
from markets.orders import ListingDraft, ListingOrder, ListingToDraft, OwnListing
from markets.ordnet.wire import Binding, SigningStep, step, uuid
from markets.wire import Unreadable, rows, table, whole

# The life of a listing. The lister renews it when it is gone, so none outlives us by more.
DURATION_DAYS = 30
TRANSFER, SETTLEMENT, RECOVERY = 0, 131, 1  # their sighashes, as documented


@dataclass(frozen=True, slots=True)
class Drafted:
    """The answer to a preflight, kept for its submit, which must repeat it."""

    ask: ListingToDraft
    anchor: str
    transfer: SigningStep
    settlement: SigningStep
    recovery: SigningStep


class ListingIds:
    """The listing of each inscription: a listing is taken down by its own id and its collection's name."""

    def __init__(self) -> None:
        self._latest: Latest[OwnListing] = Latest()
        self._made_of: Latest[str] = Latest()

    def note(self, listings: Iterable[OwnListing]) -> None:
        """Stores listings that a read has shown or a submit has made."""
        for listing in listings:
            self._latest.note(listing.inscription_id, listing)
            self._made_of.note(listing.listing_id, listing.inscription_id)

    def made_of(self, listing_id: str) -> str | None:
        """Returns the inscription of the listing with this id, None when it is not known."""
        return self._made_of.of(listing_id)

    def of(self, inscription_id: str, owner: str) -> OwnListing:
        """Returns the listing of this inscription by `owner`. Raises Unavailable when no read has shown it yet."""
        listing = self._latest.of(inscription_id)
        if listing is None or listing.owner != owner:
            raise Unavailable("which listing that is, is not known yet: read the listings first; nothing was sent")
        return listing


def preflight_body(ask: ListingToDraft, binding: Binding) -> dict[str, Any]:
    """Makes the body of POST /collection/{slug}/listings/preflight."""
    return {
        "walletBindingId": binding.id,
        "ordinalsPublicKey": ask.tap_internal_key,
        "items": [{"inscriptionId": ask.inscription_id, "priceSats": ask.price}],
    }


def draft(answer: Any, ask: ListingToDraft) -> Drafted:
    """Reads the drafted steps, which the owner must sign, all of them."""
    found = table(answer, "draft")
    entry = _only(found.get("listings"), ask.inscription_id, "drafted listing")
    steps = {}
    for row in rows(entry.get("psbts"), "steps", most=2):
        if table(row, "step").get("inscriptionId", ask.inscription_id) != ask.inscription_id:
            raise Unreadable("a step is of another inscription")
        steps[whole(row.get("stepIndex"), "number of a step")] = step(row, ask.owner, "step of a listing")
    if set(steps) != {0, 1}:
        raise Unreadable("a listing has two steps, numbered 0 and 1")
    drafted = Drafted(
        ask,
        uuid(entry.get("anchorUtxoId"), "anchor of a listing"),
        steps[0],
        steps[1],
        step(found.get("recoveryPsbt"), ask.owner, "recovery of a listing"),
    )
    ways = (drafted.transfer.sighash or 0, drafted.settlement.sighash, drafted.recovery.sighash)
    if ways != (TRANSFER, SETTLEMENT, RECOVERY) or any(
        each.indices != (0,) for each in (drafted.transfer, drafted.settlement, drafted.recovery)
    ):
        raise Unreadable("a listing is to be signed in another way than is documented")
    return drafted


def to_sign(drafted: Drafted) -> ListingDraft:
    """Returns the three PSBTs, each of which is signed at its first input."""
    return ListingDraft(drafted.settlement.psbt, (), drafted.transfer.psbt, drafted.recovery.psbt)


def drafted_for(order: ListingOrder, drafted: Drafted | None) -> Drafted:
    """Returns `drafted` if `order` is its signed form. Raises Refused when there is none, or of another listing."""
    if drafted is None:
        raise Refused("changed", "this draft is not known here any more; nothing was sent")
    is_whole = bool(order.signed_transfer and order.signed_recovery)
    if (order.ask, order.unsigned_psbt, is_whole) != (drafted.ask, drafted.settlement.psbt, True):
        raise Refused("bad_request", "the draft is of another listing; nothing was sent")
    return drafted


def submit_body(order: ListingOrder, drafted: Drafted, binding: Binding) -> dict[str, Any]:
    """Makes the body of POST /collection/{slug}/listings/submit: the preflight's, and the PSBTs signed."""
    inscription_id = order.ask.inscription_id
    steps = (drafted.transfer.signed(order.signed_transfer), drafted.settlement.signed(order.signed_psbt))
    return preflight_body(order.ask, binding) | {
        "durationDays": DURATION_DAYS,
        "anchors": [{"inscriptionId": inscription_id, "anchorUtxoId": drafted.anchor}],
        "signed": [
            {"inscriptionId": inscription_id, "psbts": [{**each, "inscriptionId": inscription_id} for each in steps]}
        ],
        "signedRecoveryPsbt": drafted.recovery.signed(order.signed_recovery),
    }


def submitted(answer: Any, ask: ListingToDraft) -> OwnListing:
    """Reads the listing that was made. Unreadable unless it is this one."""
    entry = _only(table(answer, "submit").get("listings"), ask.inscription_id, "listing")
    listing_id = uuid(entry.get("listingId"), "id of a listing")
    return OwnListing(listing_id, ask.inscription_id, ask.slug, ask.price, ask.owner)


def delist_body(listing: OwnListing, binding: Binding) -> dict[str, Any]:
    """Makes the body of POST /collection/{slug}/listings/delist."""
    listed = {"inscriptionId": listing.inscription_id, "listingId": listing.listing_id}
    return {"walletBindingId": binding.id, "listings": [listed]}


def delisted(answer: Any, listing: OwnListing) -> bool:
    """Tells whether the answer reports the listing as taken down."""
    found = [table(row, "listing") for row in rows(table(answer, "delist").get("listings"), "listings", most=20)]
    return any(
        uuid(entry.get("listingId"), "id of a listing") == listing.listing_id
        and entry.get("inscriptionId") == listing.inscription_id
        for entry in found
    )


def _only(value: Any, inscription_id: str, what: str) -> Mapping[str, Any]:
    found = rows(value, what, most=1)
    entry = table(found[0] if found else None, what)
    if entry.get("inscriptionId") != inscription_id:
        raise Unreadable(f"{what}: it is of another inscription")
    return entry
