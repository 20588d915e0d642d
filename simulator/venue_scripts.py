"""The outputs of the venues' own scripts, and checks of a client's signatures that also make the witnesses.

ord.net: from its technical documents "Collection Offers" and "Sale PSBT Construction"; the four keys in the offer's
leaf have the order seen in settlements on the chain. Ordinals Wallet: from its client ("passthrough v4").
"""

from __future__ import annotations

import hashlib

from embit import script
from embit.ec import ECError, PrivateKey, PublicKey
from embit.script import Script, Witness
from embit.transaction import SIGHASH, Transaction, TransactionOutput
from msgspec import Struct

from simulator.engine import Refusal
from simulator.taproot import (
    FINAL_SCRIPTWITNESS,
    TAP_KEY_SIG,
    LeafOutput,
    Map,
    Psbt,
    hash_of,
    is_ecdsa_signed,
    is_signed,
    is_whole_signed,
)
from wallet.address import hash160

ORDNET = "ordnet"  # the name of ord.net in orders and sales

_IF, _ENDIF, _SHA256, _EQUALVERIFY = b"\x63", b"\x68", b"\xa8", b"\x88"
_CHECKSIG, _CHECKSIGADD, _CHECKSIGVERIFY = b"\xac", b"\xba", b"\xad"
_ONE, _TWO, _NUMEQUAL, _NUMEQUALVERIFY = b"\x51", b"\x52", b"\x9c", b"\x9d"


def practice_key(name: str) -> PrivateKey:
    """Derives one of the practice venue's keys; only the real venue has the real ones."""
    return PrivateKey(hashlib.sha256(name.encode()).digest())


MARKET = practice_key("practice market ord.net")
GATE = practice_key("practice market ord.net gate")
ENCLAVE = practice_key("practice market ord.net enclave")


def fee_script() -> Script:
    return Script(b"\x51\x20" + xonly(practice_key("practice market ord.net fees")))


def xonly(key: PrivateKey) -> bytes:
    return bytes(key.get_public_key().xonly())


def is_internal(key: bytes, program: bytes) -> bool:
    """Returns True if the x-only `key`, tweaked without a script, is the output key `program` (BIP-341)."""
    try:
        return bytes(PublicKey.from_xonly(key).taproot_tweak().xonly()) == program
    except ECError:
        return False


class OfferTerms(Struct, frozen=True):
    """The terms in an offer's leaf: sats, seconds since the epoch, the buyer's ordinals script, and two hashes."""

    price: int
    expires_s: int
    receive: bytes
    eligible_root: bytes
    criteria_hash: bytes


def offer_output(buyer: bytes, terms: OfferTerms, secret_hash: bytes) -> LeafOutput:
    """Makes the output that funds an offer: the buyer can take it back alone, or the venue's keys together settle."""
    price, expires_s = (number.to_bytes(8, "little") for number in (terms.price, terms.expires_s))
    terms_in_leaf = (b"ordnet-offer/v2", price, expires_s, terms.receive, terms.eligible_root, terms.criteria_hash)
    leaf = (
        (b"\x00" + _IF + b"".join(map(_push, terms_in_leaf)) + _ENDIF)
        + (_SHA256 + _push(secret_hash) + _EQUALVERIFY)
        + (_push(buyer) + _CHECKSIG + _push(xonly(MARKET)) + _CHECKSIGADD + _ONE + _NUMEQUALVERIFY)
        + (_push(xonly(GATE)) + _CHECKSIGVERIFY + _push(xonly(ENCLAVE)) + _CHECKSIG)
    )
    return LeafOutput(buyer, leaf)


def passthrough_output(seller: bytes) -> LeafOutput:
    """Makes tr(seller, multi_a(2, seller, ord.net)): the seller can take it back alone; both together sell."""
    leaf = _push(seller) + _CHECKSIG + _push(xonly(MARKET)) + _CHECKSIGADD + _TWO + _NUMEQUAL
    return LeafOutput(seller, leaf)


def announcement(offer: LeafOutput) -> Script:
    """Makes a funding parent's OP_RETURN: internal key and merkle root, so that the buyer can find the offer again."""
    return Script(b"\x6a" + _push(offer.internal + offer.leaf_hash))


def _push(data: bytes) -> bytes:
    assert 0 < len(data) < 76
    return bytes([len(data)]) + data


# The escrow of Ordinals Wallet, tr(NUMS, {multi_a(2, seller, venue), <144> CSV DROP <seller> CHECKSIG}): both together
# sell, and from 144 blocks after the item arrived the seller can take it back alone.


# The practice venue's key for sales; only the real venue has the real one.
COSIGNER = practice_key("practice market Ordinals Wallet co-signer")
# The point without a known private key (BIP-341).
NUMS = bytes.fromhex("50929b74c1a04954b78b4b6035e97a5e078a5a0f28ec96d547bfee9ace803ac0")
LOCK_BLOCKS = 144


def sale_output(seller: bytes) -> LeafOutput:
    """Makes the escrow of the x-only key `seller`, to be spent by its sale leaf."""
    leaf = b"\x20" + seller + b"\xac\x20" + xonly(COSIGNER) + b"\xba\x52\x9c"
    return LeafOutput(NUMS, leaf, hash_of(recovery_leaf(seller)))


def recovery_leaf(seller: bytes) -> bytes:
    return b"\x02" + LOCK_BLOCKS.to_bytes(2, "little") + b"\xb2\x75\x20" + seller + b"\xac"


PARTIAL_SIG, TAP_SCRIPT_SIG = b"\x02", b"\x14"
DEFAULT = 0


def payment_witness(psbt: Psbt, at: int, spent: list[TransactionOutput], public_key: bytes) -> Witness:
    """Returns the witness of input `at`, signed ALL by the compressed `public_key` (P2TR: DEFAULT or ALL).

    Accepts P2WPKH, P2WPKH in P2SH, and P2TR by key path, signed or finalized. Raises Refusal for other signatures.
    """
    fields, own = psbt.inputs[at], spent[at]
    if own.script_pubkey.script_type() == "p2tr":
        return key_path_witness(psbt, at, spent, (DEFAULT, SIGHASH.ALL))
    program = script.p2wpkh(PublicKey.parse(public_key))
    if own.script_pubkey not in (program, script.p2sh(program)):
        raise Refusal(f"input {at} is not the payment key's")
    signature = fields.get(PARTIAL_SIG + public_key)
    if signature is None and FINAL_SCRIPTWITNESS in fields:
        items = _items(fields)
        signature = items[0] if len(items) == 2 and items[1] == public_key else None
    if not signature:
        raise Refusal("a payment input is not signed")
    code = script.p2pkh_from_p2wpkh(program)
    if not is_ecdsa_signed(psbt.tx, at, code, own.value, signature, public_key):
        raise Refusal(f"input {at} has an invalid signature")
    return Witness([signature, public_key])


def redeem(own: TransactionOutput, public_key: bytes) -> Script:
    """Returns the script sig of an input that spends `own`: empty except for P2SH."""
    if own.script_pubkey.script_type() != "p2sh":
        return Script()
    return Script(b"\x16\x00\x14" + hash160(public_key))


def key_path_witness(
    psbt: Psbt, at: int, spent: list[TransactionOutput], sighashes: tuple[int, ...] = (DEFAULT,)
) -> Witness:
    """Returns the witness of taproot input `at`, signed by its output key with one of `sighashes`. Raises Refusal."""
    fields = psbt.inputs[at]
    signature = fields.get(TAP_KEY_SIG)
    if not signature and len(items := _items(fields)) == 1:
        signature = items[0]
    if signature is None:
        raise Refusal(f"input {at} is not signed")
    sighash = DEFAULT if len(signature) == 64 else signature[-1]
    if len(signature) not in (64, 65) or sighash not in sighashes or (len(signature) == 65 and sighash == DEFAULT):
        raise Refusal(f"input {at} is not signed with the sighash that was asked for")
    if not is_whole_signed(psbt.tx, at, spent, signature):
        raise Refusal(f"input {at} has an invalid signature")
    return Witness([signature])


def leaf_signature(psbt: Psbt, at: int, own: LeafOutput, value: int, key: bytes) -> bytes:
    """Returns the x-only `key`'s signature for the leaf of `own`, with SINGLE|ANYONECANPAY. Raises Refusal."""
    signature = psbt.inputs[at].get(TAP_SCRIPT_SIG + key + own.leaf_hash)
    if signature is None:
        raise Refusal(f"input {at} is not signed for the passthrough script")
    if not holds_for_leaf(psbt.tx, at, own, value, key, signature):
        raise Refusal(f"input {at} has an invalid signature")
    return signature


def holds_for_leaf(tx: Transaction, at: int, own: LeafOutput, value: int, key: bytes, signature: bytes) -> bool:
    """Returns True if a SINGLE|ANYONECANPAY signature is valid for input `at` of `tx`."""
    return is_signed(tx, at, TransactionOutput(value, own.script), signature, key=key, leaf_hash=own.leaf_hash)


def _items(fields: Map) -> list[bytes]:
    try:
        return list(Witness.parse(fields.get(FINAL_SCRIPTWITNESS, b"\x00")).items)
    except Exception:
        # embit may raise any error on hostile bytes.
        raise Refusal("a final witness cannot be read") from None
