"""Signatures of our own keys on inputs of transactions, for the signer process only.

P2WPKH, P2WPKH nested in P2SH, and P2TR by key path; of a listing in escrow also P2TR by leaf. No sighash but those in
`ALLOWED` is signed. The checks in `wallet/psbt` judge the transaction, not this module. Every signature is verified by
libsecp256k1 before it is handed out.
"""

from __future__ import annotations

from collections.abc import Sequence

from embit.ec import PrivateKey, PublicKey, SchnorrSig, Signature
from msgspec.structs import replace

from wallet.psbt import fields
from wallet.psbt.check_escrow import ApprovedEscrow
from wallet.psbt.check_offer import ApprovedOffer
from wallet.psbt.common import ApprovedListing
from wallet.psbt.decode import Psbt, encode, without_unknown
from wallet.psbt.script import Escrow, OwnKind, own_script, redeem_script
from wallet.psbt.transaction import (
    ALL,
    DEFAULT,
    LISTING,
    SECURE_LISTING,
    Transaction,
    TxOutput,
    compact,
    segwit_digest,
    taproot_digest,
)

# NONE is missing because anyone could choose the outputs, SINGLE because nothing needs it. Only taproot has DEFAULT.
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

    `spent` are the outputs that the inputs spend; with ANYONECANPAY those of other inputs may be None. Raises
    SigningError, or RuntimeError if the signature does not verify and so must not be handed out.
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


Signed = tuple[bytes, ...]


def sign_escrow(approved: ApprovedEscrow, private_key: PrivateKey) -> Signed:
    """Returns sale, transfer and, if there is one, recovery with our signatures; the same PSBTs give the same bytes.

    Raises SigningError when the key is not the owner's, RuntimeError when a signature does not verify.
    """
    if private_key.get_public_key().sec() != approved.transfer.owner.public_key:
        raise SigningError("the key is not the owner's")
    signed = [_sale(approved, private_key), sign_listing(approved.transfer, private_key)]
    if approved.recovery is not None:
        signed.append(_recovery(approved, approved.recovery, private_key))
    return tuple(signed)


def open_escrow(
    transaction: Transaction, index: int, spent: Sequence[TxOutput], escrow: Escrow, private_key: PrivateKey
) -> list[bytes]:
    """Returns the witness of input `index`, which takes an item out of its escrow by our key alone.

    Raises SigningError when the input is not this escrow's.
    """
    if spent[index].script != escrow.script or private_key.get_public_key().xonly() not in escrow.sale.script:
        raise SigningError("the key does not open this output")
    leaf = escrow.recovery
    if leaf is None:
        digest = taproot_digest(transaction, index, spent, DEFAULT)
        return [_schnorr(private_key.taproot_tweak(escrow.merkle_root), escrow.script[2:], digest)]
    digest = taproot_digest(transaction, index, spent, DEFAULT, leaf.hash)
    signature = _schnorr(private_key, private_key.get_public_key().xonly(), digest)
    return [signature, leaf.script, leaf.control_block]


def _sale(approved: ApprovedEscrow, private_key: PrivateKey) -> bytes:
    """Signs the sale leaf with the untweaked key; only a key path needs the tweaked key."""
    leaf, key = approved.escrow.sale.hash, private_key.get_public_key().xonly()
    digest = taproot_digest(approved.sale.transaction, 0, (approved.held,), LISTING, leaf)
    signature = _schnorr(private_key, key, digest) + bytes([LISTING])
    return _with(approved.sale, compact(fields.IN_TAP_SCRIPT_SIG) + key + leaf, signature)


def _recovery(approved: ApprovedEscrow, psbt: Psbt, private_key: PrivateKey) -> bytes:
    """Signs the key path of an escrow whose internal key is ours."""
    sighash = approved.recovery_sighash
    digest = taproot_digest(psbt.transaction, 0, (approved.held,), sighash)
    tweaked = private_key.taproot_tweak(approved.escrow.merkle_root)
    signature = _schnorr(tweaked, approved.held.script[2:], digest) + (bytes([sighash]) if sighash != DEFAULT else b"")
    return _with(psbt, compact(fields.IN_TAP_KEY_SIG), signature)


def _schnorr(private_key: PrivateKey, verified_by: bytes, digest: bytes) -> bytes:
    signature: bytes = private_key.schnorr_sign(digest).serialize()
    if not PublicKey.from_xonly(verified_by).schnorr_verify(SchnorrSig(signature), digest):
        raise RuntimeError("the signature just made does not verify: nothing is handed out")
    return signature


def _with(psbt: Psbt, field: bytes, signature: bytes) -> bytes:
    kept = without_unknown(psbt)
    return encode(replace(kept, inputs=({**kept.inputs[0], field: signature},)))
