"""Signatures on withdrawals, for the signer process only. The rules are checked before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from embit.ec import PrivateKey, PublicKey, SchnorrSig, Signature
from msgspec.structs import replace

from wallet.psbt import fields
from wallet.psbt.common import named_sighash
from wallet.psbt.decode import Psbt, encode, without_unknown
from wallet.psbt.script import leaf_hash
from wallet.psbt.sign import SigningError, open_escrow, sign_input
from wallet.psbt.transaction import (
    ALL,
    DEFAULT,
    Transaction,
    compact,
    encode_outpoint,
    script_digest,
    sized,
    taproot_digest,
)
from wallet.withdrawal.compose import CoinKind, Composed
from wallet.withdrawal.psbt import ApprovedWithdrawal
from wallet.withdrawal.rules import has_key

Signed = tuple[bytes, bytes]  # a PSBT's field: its key, and the signature
_UNVERIFIED = "the signature just made does not verify: nothing is handed out"


def sign_composed(composed: Composed, keys: Mapping[CoinKind, PrivateKey]) -> bytes:
    """Returns the transaction with all its witnesses, as the network relays it. Raises as `sign_input`."""
    transaction, spent = composed.transaction, [coin.spent for coin in composed.coins]
    stacks = []
    for at, coin in enumerate(composed.coins):
        if coin.escrow is not None or coin.kind == "recovery":
            assert coin.escrow is not None
            stacks.append(open_escrow(transaction, at, spent, coin.escrow, keys["p2tr"]))
            continue
        key = keys[coin.kind]
        sighash = DEFAULT if coin.kind == "p2tr" else ALL  # both cover every input and every output
        signature = sign_input(transaction, at, spent, sighash, coin.kind, key)
        stacks.append([signature] if coin.kind == "p2tr" else [signature, key.get_public_key().sec()])
    return with_witnesses(transaction, stacks)


def sign_withdrawal(approved: ApprovedWithdrawal, private_key: PrivateKey) -> bytes:
    """Returns the approved PSBT with our signature on every input, for the venue to complete.

    Raises SigningError when the key is not in the script, RuntimeError when a signature does not verify.
    """
    public_key = private_key.get_public_key().sec()
    kept = without_unknown(approved.psbt)
    inputs = []
    if not has_key(approved.wallet, public_key):
        raise SigningError("the key is none of this script's")
    for at, item in enumerate(kept.inputs):
        if approved.wallet.is_leaf:
            field, signature = _of_leaf(approved, kept, at, private_key)
        else:
            field, signature = _of_witness_script(approved, kept, at, private_key)
        inputs.append({**item, field: signature})
    return encode(replace(kept, inputs=tuple(inputs)))


def _of_witness_script(approved: ApprovedWithdrawal, psbt: Psbt, at: int, private_key: PrivateKey) -> Signed:
    public_key = private_key.get_public_key()
    digest = script_digest(psbt.transaction, at, approved.wallet.script, approved.spent[at].value, ALL)
    signature: bytes = private_key.sign(digest).serialize()
    if not public_key.verify(Signature.parse(signature), digest):
        raise RuntimeError(_UNVERIFIED)
    return compact(fields.IN_PARTIAL_SIG) + public_key.sec(), signature + bytes([ALL])


def _of_leaf(approved: ApprovedWithdrawal, psbt: Psbt, at: int, private_key: PrivateKey) -> Signed:
    key, leaf = private_key.get_public_key().xonly(), leaf_hash(approved.wallet.script)
    sighash = named_sighash(psbt.inputs[at]) or DEFAULT
    digest = taproot_digest(psbt.transaction, at, approved.spent, sighash, leaf)
    signature: bytes = private_key.schnorr_sign(digest).serialize()
    if not PublicKey.from_xonly(key).schnorr_verify(SchnorrSig(signature), digest):
        raise RuntimeError(_UNVERIFIED)
    return compact(fields.IN_TAP_SCRIPT_SIG) + key + leaf, signature + (bytes([sighash]) if sighash else b"")


def with_witnesses(transaction: Transaction, stacks: Sequence[Sequence[bytes]]) -> bytes:
    """Encodes the transaction with one witness stack for each input (BIP-144)."""
    parts = [transaction.version.to_bytes(4, "little"), b"\x00\x01", compact(len(transaction.inputs))]
    for item in transaction.inputs:
        parts += (encode_outpoint(item.outpoint), sized(item.script_sig), item.sequence.to_bytes(4, "little"))
    parts.append(compact(len(transaction.outputs)))
    parts += [output.encode() for output in transaction.outputs]
    for stack in stacks:
        parts += [compact(len(stack)), *(sized(item) for item in stack)]
    return b"".join(parts) + transaction.locktime.to_bytes(4, "little")
