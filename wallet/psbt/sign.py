"""Signatures of our own keys on inputs of transactions, for the signer process only.

P2WPKH, P2WPKH nested in P2SH, and P2TR by key path; with no sighash but those in `ALLOWED`. The checks in `wallet/psbt`
judge the transaction, not this module. Every signature is verified by libsecp256k1 before it is handed out.
"""

from __future__ import annotations

from collections.abc import Sequence

from embit.ec import PrivateKey, PublicKey, SchnorrSig, Signature
from msgspec.structs import replace

from wallet.psbt import fields
from wallet.psbt.decode import Psbt, encode, without_unknown
from wallet.psbt.listing import ApprovedListing
from wallet.psbt.offer import ApprovedOffer
from wallet.psbt.script import OwnKind, own_script, redeem_script
from wallet.psbt.sighash import ALL, DEFAULT, LISTING, SECURE_LISTING, segwit_digest, taproot_digest
from wallet.psbt.transaction import Transaction, TxOutput, compact

# NONE leaves the outputs to anyone; SINGLE alone is of no use here. DEFAULT exists for taproot only.
ALLOWED: dict[OwnKind, frozenset[int]] = {
    "p2wpkh": frozenset({ALL, SECURE_LISTING, LISTING}),
    "p2sh-p2wpkh": frozenset({ALL, SECURE_LISTING, LISTING}),
    "p2tr": frozenset({DEFAULT, ALL, SECURE_LISTING, LISTING}),
}


class SigningError(ValueError):
    """A refusal to sign: the key is not the input's, or the sighash is not allowed."""


def sign_input(
    transaction: Transaction,
    index: int,
    spent: Sequence[TxOutput | None],
    sighash: int,
    kind: OwnKind,
    private_key: PrivateKey,
) -> bytes:
    """Returns the signature of input `index` with its sighash byte (none for DEFAULT). The same arguments give the
    same one.

    `spent` are the inputs' outputs (with ANYONECANPAY the others' may be None). Raises SigningError, and RuntimeError
    when the signature does not verify: it must not be handed out.
    """
    public_key = private_key.get_public_key()
    own = spent[index]
    if sighash not in ALLOWED[kind]:
        raise SigningError(f"sighash {sighash:#x} is not signed for {kind}")
    if own is None or own.script != own_script(kind, public_key.sec()):
        raise SigningError("the key is not this input's")
    if kind == "p2tr":
        digest = taproot_digest(transaction, index, spent, sighash)
        signature: bytes = private_key.taproot_tweak(b"").schnorr_sign(digest).serialize()
        # Verified under the key in the script, not under one that we derived.
        verified = PublicKey.from_xonly(own.script[2:]).schnorr_verify(SchnorrSig(signature), digest)
    else:
        digest = segwit_digest(transaction, index, public_key.sec(), own.value, sighash)
        signature = private_key.sign(digest).serialize()
        verified = public_key.verify(Signature.parse(signature), digest)
    if not verified:
        raise RuntimeError("the signature just made does not verify: nothing is handed out")
    return signature + (bytes([sighash]) if sighash != DEFAULT else b"")


def sign_listing(approved: ApprovedListing, private_key: PrivateKey) -> bytes:
    """Returns the approved PSBT with our signature, as it goes back to the venue. The same PSBT gives the same bytes.

    Raises as `sign_input`.
    """
    kind, index = approved.owner.kind, approved.index
    transaction = approved.psbt.transaction
    signature = sign_input(transaction, index, approved.spent, approved.sighash, kind, private_key)
    return encode(with_signature(approved.psbt, index, kind, approved.owner.public_key, signature))


def sign_offer(approved: ApprovedOffer, private_key: PrivateKey) -> bytes:
    """Returns the approved PSBT with our signature on every input. The same PSBT gives the same bytes.

    Raises as `sign_input`.
    """
    owner, signed = approved.owner, approved.psbt
    for index in range(len(approved.spent)):
        signature = sign_input(signed.transaction, index, approved.spent, ALL, owner.kind, private_key)
        signed = with_signature(signed, index, owner.kind, owner.public_key, signature)
    return encode(signed)


def with_signature(psbt: Psbt, index: int, kind: OwnKind, public_key: bytes, signature: bytes) -> Psbt:
    """Returns the PSBT's known fields with our signature at input `index`, ready to be finalized but not final."""
    kept = without_unknown(psbt)
    fresh = {compact(fields.IN_TAP_KEY_SIG): signature}
    if kind != "p2tr":
        fresh = {compact(fields.IN_PARTIAL_SIG) + public_key: signature}
    if kind == "p2sh-p2wpkh":
        fresh[compact(fields.IN_REDEEM_SCRIPT)] = redeem_script(public_key)
    signed = {**kept.inputs[index], **fresh}
    return replace(kept, inputs=(*kept.inputs[:index], signed, *kept.inputs[index + 1 :]))
