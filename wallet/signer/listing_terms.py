"""The terms under which a user's listing is judged, the same for a signature and for a judgement without one."""

from __future__ import annotations

from wallet.address import p2tr
from wallet.ceilings import Ceilings
from wallet.escrow_terms import all_terms
from wallet.keystore.keys import UserSecrets
from wallet.protocol import ListingToSign, PolicyRefused
from wallet.psbt.common import psbt_strict
from wallet.psbt.decode import from_base64
from wallet.psbt.escrow import escrow_of
from wallet.psbt.listing import ListingIntent, Owner
from wallet.psbt.script import own_script
from wallet.psbt.sighash import LISTING, SECURE_LISTING
from wallet.psbt.transaction import Outpoint, WireError
from wallet.signer.payouts import PayoutStore


def intent_of(
    listing: ListingToSign, venue: str, min_price_sats: int, secrets: UserSecrets, ceilings: Ceilings
) -> ListingIntent:
    """Returns the decision to list. `min_price_sats` is the task's; the installation's own holds as well."""
    return ListingIntent(
        inscription_id=listing.inscription_id,
        outpoint=Outpoint.parse(listing.outpoint),
        price_sats=listing.price,
        min_price_sats=max(1, min_price_sats, ceilings.least_listing),
        payout_address=secrets.public.payment,
        seller_fee_ppm=ceilings.seller_fee_ppm.get(venue, 0),
    )


def owner_of(secrets: UserSecrets) -> Owner:
    """Returns the vault's key as owner; the user is paid at the payment address, or at the vault."""
    vault, payment = secrets.vault.get_public_key().sec(), secrets.payment.get_public_key().sec()
    scripts = frozenset({own_script("p2tr", vault), own_script("p2wpkh", payment)})
    return Owner("p2tr", vault, scripts, scripts)


def escrow_addresses(secrets: UserSecrets, ceilings: Ceilings) -> dict[str, str]:
    """Returns the venue of each address of the user's escrows."""
    vault, known = secrets.vault.get_public_key().sec(), all_terms(ceilings.escrow_terms)
    return {p2tr(escrow_of(vault, terms).script[2:]): venue for venue, terms in known}


def drafts_to_sign(listing: ListingToSign, venue: str, ceilings: Ceilings) -> list[tuple[str, int]]:
    """Returns the PSBTs that promise a payout, each with its sighash; secure ones only where the operator says."""
    drafts = [(psbt, SECURE_LISTING if at else LISTING) for at, psbt in enumerate(listing.drafts)]
    return drafts if venue in ceilings.secure_listings else drafts[:1]


def rivals_of(drafts: list[tuple[str, int]], outpoint: str, secrets: UserSecrets, payouts: PayoutStore) -> list[str]:
    """Returns the other outputs that were listed for the payout of one of these drafts. Raises PolicyRefused."""
    script = own_script("p2wpkh", secrets.payment.get_public_key().sec())
    found = set()
    for psbt, sighash in drafts:
        for output in psbt_strict(raw_psbt(psbt)).transaction.outputs:
            if output.script == script:
                found.update(payouts.rivals(outpoint, output, sighash))
    return sorted(found)


def raw_psbt(psbt: str) -> bytes:
    """Returns the bytes of a PSBT in base64. Raises PolicyRefused."""
    try:
        return from_base64(psbt)
    except WireError as error:
        raise PolicyRefused("psbt-strict", str(error)) from None
