"""Keys, addresses and BIP-322 proofs that the wallet's tests make for themselves."""

from __future__ import annotations

import base64
import hashlib

from embit import hashes, script
from embit.ec import PrivateKey
from embit.transaction import Transaction, TransactionInput, TransactionOutput

OWNER = PrivateKey(hashlib.sha256(b"the owner").digest())
STRANGER = PrivateKey(hashlib.sha256(b"a stranger").digest())


def p2wpkh_script(key: PrivateKey) -> script.Script:
    return script.p2wpkh(key.get_public_key())


def p2wpkh_address(key: PrivateKey) -> str:
    return str(p2wpkh_script(key).address())


def p2tr_address(key: PrivateKey) -> str:
    return str(script.p2tr(key.get_public_key()).address())


def nested_address(key: PrivateKey) -> str:
    return str(script.p2sh(p2wpkh_script(key)).address())


def ecdsa_proof(key: PrivateKey, spent: script.Script, code: script.Script, message: str) -> str:
    """Returns a two-item proof by `key` for an output with script `spent`, signing P2WPKH script code of `code`."""
    to_spend = Transaction(
        0,
        [TransactionInput(bytes(32), 0xFFFFFFFF, _commitment(message), sequence=0)],
        [TransactionOutput(0, spent)],
    )
    to_sign = Transaction(
        0, [TransactionInput(to_spend.txid(), 0, sequence=0)], [TransactionOutput(0, script.Script(b"\x6a"))]
    )
    digest = to_sign.sighash_segwit(0, script.p2pkh_from_p2wpkh(code), 0)
    return stack(key.sign(digest).serialize() + b"\x01", key.get_public_key().sec())


def nested_proof(key: PrivateKey, message: str) -> str:
    inner = p2wpkh_script(key)
    return ecdsa_proof(key, script.p2sh(inner), inner, message)


def stack(*items: bytes) -> str:
    raw = bytes([len(items)]) + b"".join(bytes([len(item)]) + item for item in items)
    return base64.b64encode(raw).decode()


def _commitment(message: str) -> script.Script:
    return script.Script(b"\x00\x20" + hashes.tagged_hash("BIP0322-signed-message", message.encode()))
