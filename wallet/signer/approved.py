"""Listings that the checks have approved, of whichever form: their promises, and their signing."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from embit.ec import PrivateKey

from wallet.ceilings import Ceilings
from wallet.keystore.keys import UserSecrets
from wallet.protocol import ListingToSign, PolicyRefused
from wallet.psbt.check_escrow import EscrowDrafts, check_escrow
from wallet.psbt.check_listing import check_listing
from wallet.psbt.listing import ListingIntent, OutpointFacts
from wallet.psbt.sighash import LISTING
from wallet.psbt.sign import sign_listing
from wallet.psbt.sign_escrow import sign_escrow
from wallet.psbt.transaction import Transaction, TxOutput
from wallet.signer.listing_terms import drafts_to_sign, owner_of, raw_psbt


@dataclass(frozen=True, slots=True)
class Promise:
    """The promise of a signature: whoever makes the payout gets what `outpoint` holds."""

    outpoint: str
    payout: TxOutput
    sighash: int


@dataclass(frozen=True, slots=True)
class Approved:
    """A listing that may be signed. `escrow` is the output (`txid:vout`) that its item would pass through, or ""."""

    promises: tuple[Promise, ...]
    transactions: tuple[Transaction, ...]
    escrow: str
    sign: Callable[[PrivateKey], tuple[str, ...]]


def approved(
    listing: ListingToSign,
    venue: str,
    intent: ListingIntent,
    facts: OutpointFacts | None,
    secrets: UserSecrets,
    ceilings: Ceilings,
) -> Approved:
    """Approves all PSBTs of a listing that are to be signed, or raises PolicyRefused with the first broken rule."""
    if listing.is_in_escrow:
        return _in_escrow(listing, venue, intent, facts, secrets, ceilings)
    owner = owner_of(secrets)
    forms = [
        check_listing(raw_psbt(psbt), intent, facts, sighash, owner)
        for psbt, sighash in drafts_to_sign(listing, venue, ceilings)
    ]
    return Approved(
        tuple(Promise(listing.outpoint, each.payout, each.sighash) for each in forms),
        tuple(each.psbt.transaction for each in forms),
        "",
        lambda key: _texts(sign_listing(each, key) for each in forms),
    )


def _in_escrow(
    listing: ListingToSign,
    venue: str,
    intent: ListingIntent,
    facts: OutpointFacts | None,
    secrets: UserSecrets,
    ceilings: Ceilings,
) -> Approved:
    terms = ceilings.escrow_terms.get(venue)
    if terms is None:
        raise PolicyRefused("escrow", f"listings in escrow are not signed at {venue}")
    if listing.secure:
        raise PolicyRefused("escrow", "a secure form goes with no escrow")
    found = check_escrow(escrow_drafts(listing), intent, facts, owner_of(secrets), terms)
    signed = (found.sale, found.transfer.psbt, *([found.recovery] if found.recovery else []))
    return Approved(
        (Promise(str(found.outpoint), found.payout, LISTING),),
        tuple(each.transaction for each in signed),
        str(found.outpoint),
        lambda key: _texts(sign_escrow(found, key)),
    )


def escrow_drafts(listing: ListingToSign) -> EscrowDrafts:
    """Returns the bytes of a listing's PSBTs. Raises PolicyRefused."""
    recovery = raw_psbt(listing.recovery) if listing.recovery else None
    return EscrowDrafts(raw_psbt(listing.transfer), raw_psbt(listing.psbt), recovery)


def _texts(psbts: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(base64.b64encode(psbt).decode() for psbt in psbts)
