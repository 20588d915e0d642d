"""Signatures of the vault's key on the PSBTs of a listing in escrow, for the signer process only."""

from __future__ import annotations

from collections.abc import Sequence

from embit.ec import PrivateKey, PublicKey, SchnorrSig
from msgspec.structs import replace

from wallet.psbt import fields
from wallet.psbt.check_escrow import ApprovedEscrow
from wallet.psbt.decode import Psbt, encode, without_unknown
from wallet.psbt.escrow import Escrow
from wallet.psbt.sighash import DEFAULT, LISTING, taproot_digest
from wallet.psbt.sign import SigningError, sign_listing
from wallet.psbt.transaction import Transaction, TxOutput, compact

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
    """Signs the sale leaf with the untweaked key; only a key path needs a tweaked one."""
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
