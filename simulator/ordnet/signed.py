"""Checks of a client's signatures, input by input, which also make the witnesses."""

from __future__ import annotations

from embit import script
from embit.ec import ECError, PublicKey, SchnorrSig, Signature
from embit.script import Script, Witness
from embit.transaction import SIGHASH, Transaction, TransactionOutput

from simulator.bitcoin import taproot
from simulator.bitcoin.psbt import FINAL_SCRIPTWITNESS, TAP_KEY_SIG, Map, Psbt
from simulator.bitcoin.taproot import LeafOutput
from simulator.orders import Refusal
from wallet.address import hash160

PARTIAL_SIG, TAP_SCRIPT_SIG = b"\x02", b"\x14"
DEFAULT = 0


def payment_witness(psbt: Psbt, at: int, spent: list[TransactionOutput], public_key: bytes) -> Witness:
    """Returns the witness of input `at`, signed ALL by the compressed `public_key` (a P2TR one DEFAULT or ALL).

    P2WPKH, P2WPKH in P2SH, P2TR by key path; signed or finalized. Raises Refusal when it is not signed so.
    """
    fields, own = psbt.inputs[at], spent[at]
    if own.script_pubkey.script_type() == "p2tr":
        return key_path_witness(psbt, at, spent, (DEFAULT, SIGHASH.ALL))
    program = script.p2wpkh(PublicKey.parse(public_key))
    if own.script_pubkey not in (program, script.p2sh(program)):
        raise Refusal(f"input {at} is not the payment key's")
    signature = _partial(fields, public_key)
    code = script.p2pkh_from_p2wpkh(program)
    digest = psbt.tx.sighash_segwit(at, code, own.value, SIGHASH.ALL)
    if signature[-1:] != bytes([SIGHASH.ALL]) or not _verifies(public_key, signature[:-1], digest):
        raise Refusal(f"input {at} has an invalid signature")
    return Witness([signature, public_key])


def redeem(own: TransactionOutput, public_key: bytes) -> Script:
    """Returns the script of an input that spends `own`: empty but for P2SH."""
    if own.script_pubkey.script_type() != "p2sh":
        return Script()
    return Script(b"\x16\x00\x14" + hash160(public_key))


def key_path_witness(
    psbt: Psbt, at: int, spent: list[TransactionOutput], sighashes: tuple[int, ...] = (DEFAULT,)
) -> Witness:
    """Returns the witness of taproot input `at`, signed by its output key with one of `sighashes`. Raises Refusal."""
    fields = psbt.inputs[at]
    signature = fields.get(TAP_KEY_SIG) or _only_item(fields)
    if signature is None:
        raise Refusal(f"input {at} is not signed")
    sighash = DEFAULT if len(signature) == 64 else signature[-1]
    if len(signature) not in (64, 65) or sighash not in sighashes or (len(signature) == 65 and sighash == DEFAULT):
        raise Refusal(f"input {at} is not signed with the sighash that was asked for")
    scripts, values = [each.script_pubkey for each in spent], [each.value for each in spent]
    digest = psbt.tx.sighash_taproot(at, scripts, values, sighash)
    if not _schnorr(spent[at].script_pubkey.data[2:], signature[:64], digest):
        raise Refusal(f"input {at} has an invalid signature")
    return Witness([signature])


def leaf_signature(psbt: Psbt, at: int, own: LeafOutput, value: int, key: bytes) -> bytes:
    """Returns the signature of the x-only `key` for the leaf of `own`, with SINGLE|ANYONECANPAY. Raises Refusal."""
    signature = psbt.inputs[at].get(TAP_SCRIPT_SIG + key + own.leaf_hash)
    if signature is None:
        raise Refusal(f"input {at} is not signed for the passthrough script")
    if not holds_for_leaf(psbt.tx, at, own, value, key, signature):
        raise Refusal(f"input {at} has an invalid signature")
    return signature


def holds_for_leaf(tx: Transaction, at: int, own: LeafOutput, value: int, key: bytes, signature: bytes) -> bool:
    """Tells whether a SINGLE|ANYONECANPAY signature holds for input `at` of `tx`."""
    if len(signature) != 65 or signature[64] != taproot.SINGLE_ANYONECANPAY:
        return False
    spent = TransactionOutput(value, own.script)
    try:
        digest = taproot.digest(tx, at, spent, taproot.SINGLE_ANYONECANPAY, own.leaf_hash)
    except ValueError:
        return False
    return _schnorr(key, signature[:64], digest)


def _partial(fields: Map, public_key: bytes) -> bytes:
    signature = fields.get(PARTIAL_SIG + public_key)
    if signature is None and FINAL_SCRIPTWITNESS in fields:
        items = _items(fields)
        signature = items[0] if len(items) == 2 and items[1] == public_key else None
    if not signature:
        raise Refusal("a payment input is not signed")
    return signature


def _only_item(fields: Map) -> bytes | None:
    items = _items(fields)
    return items[0] if len(items) == 1 else None


def _items(fields: Map) -> list[bytes]:
    try:
        return list(Witness.parse(fields.get(FINAL_SCRIPTWITNESS, b"\x00")).items)
    except Exception:
        # embit answers hostile bytes with any error that they happen to cause.
        raise Refusal("a final witness cannot be read") from None


def _verifies(public_key: bytes, der: bytes, digest: bytes) -> bool:
    try:
        return bool(PublicKey.parse(public_key).verify(Signature.parse(der), digest))
    except (ECError, ValueError):
        return False


def _schnorr(key: bytes, signature: bytes, digest: bytes) -> bool:
    try:
        return bool(PublicKey.from_xonly(key).schnorr_verify(SchnorrSig(signature), digest))
    except (ECError, ValueError):
        return False
