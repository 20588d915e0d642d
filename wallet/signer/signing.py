"""BIP-322 simple signatures of our own keys (P2WPKH, and P2TR by key path), for the signer and practice keys only.

Only SIGHASH_ALL (P2WPKH) and SIGHASH_DEFAULT (P2TR) are made: embit 0.8.0 computes a wrong taproot digest for
ANYONECANPAY and SINGLE.
"""

from __future__ import annotations

import base64
from typing import Literal

from embit import hashes, script
from embit.ec import PrivateKey
from embit.transaction import SIGHASH, Transaction, TransactionInput, TransactionOutput
from embit.util import secp256k1

SigningKind = Literal["p2wpkh", "p2tr"]

_TAG = "BIP0322-signed-message"
_OP_RETURN = script.Script(b"\x6a")


def require_libsecp256k1() -> None:
    """Raises RuntimeError when embit fell back to curve arithmetic in Python, which is slow and leaks by its timing."""
    for name in ("ec_pubkey_create", "ecdsa_sign", "schnorrsig_sign"):
        if getattr(secp256k1, name).__module__ != "embit.util.ctypes_secp256k1":
            raise RuntimeError("libsecp256k1 could not be loaded: embit has no build of it for this machine")


def sign_message(private_key: PrivateKey, kind: SigningKind, message: str) -> str:
    """Signs `message` for the P2WPKH or (key path, untweaked internal key given) P2TR address of `private_key`.

    Returns the base64 of the witness stack, without the `smp` prefix. The same arguments give the same text.
    Raises UnicodeEncodeError when the message is not valid Unicode.
    """
    text = message.encode()
    if kind == "p2wpkh":
        return _witness(*_p2wpkh_items(private_key, text))
    return _witness(_p2tr_item(private_key, text))


def _p2wpkh_items(private_key: PrivateKey, message: bytes) -> tuple[bytes, bytes]:
    public_key = private_key.get_public_key()
    script_pubkey = script.p2wpkh(public_key)
    to_sign = _to_sign(script_pubkey, message)
    digest = to_sign.sighash_segwit(0, script.p2pkh_from_p2wpkh(script_pubkey), 0, SIGHASH.ALL)
    signature: bytes = private_key.sign(digest).serialize()
    return signature + bytes([SIGHASH.ALL]), public_key.sec()


def _p2tr_item(private_key: PrivateKey, message: bytes) -> bytes:
    script_pubkey = script.p2tr(private_key.get_public_key())
    to_sign = _to_sign(script_pubkey, message)
    digest = to_sign.sighash_taproot(0, [script_pubkey], [0], SIGHASH.DEFAULT)
    signature: bytes = private_key.taproot_tweak(b"").schnorr_sign(digest).serialize()
    return signature


def _to_sign(script_pubkey: script.Script, message: bytes) -> Transaction:
    """Builds BIP-322's virtual spend of the virtual output that commits to the message."""
    commitment = hashes.tagged_hash(_TAG, message)
    to_spend = Transaction(
        version=0,
        vin=[TransactionInput(bytes(32), 0xFFFFFFFF, script.Script(b"\x00\x20" + commitment), sequence=0)],
        vout=[TransactionOutput(0, script_pubkey)],
        locktime=0,
    )
    return Transaction(
        version=0,
        vin=[TransactionInput(to_spend.txid(), 0, sequence=0)],
        vout=[TransactionOutput(0, _OP_RETURN)],
        locktime=0,
    )


def _witness(*items: bytes) -> str:
    stack = bytes([len(items)]) + b"".join(bytes([len(item)]) + item for item in items)
    return base64.b64encode(stack).decode()
