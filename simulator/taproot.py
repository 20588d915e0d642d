"""Reads and writes PSBTs (BIP-174), and makes taproot's outputs and signatures (BIP-341, BIP-342).

embit's reader is not used, because a count in a few hostile bytes makes it fill the memory, and it changes sequence 0.

embit's own digest is wrong for ANYONECANPAY and for SINGLE, which sign a listing.
"""

from __future__ import annotations

import binascii
import hashlib
from base64 import b64decode, b64encode
from collections.abc import Sequence

from embit.ec import ECError, PublicKey, SchnorrSig, Signature
from embit.hashes import tagged_hash
from embit.script import Script
from embit.transaction import SIGHASH, Transaction, TransactionOutput, compact
from embit.util import secp256k1
from msgspec import Struct

MAX_BYTES = 64 * 1024
UNSIGNED_TX = b"\x00"
FINAL_SCRIPTWITNESS = b"\x08"
TAP_KEY_SIG = b"\x13"

Map = dict[bytes, bytes]


class Psbt(Struct, frozen=True):
    tx: Transaction
    inputs: tuple[Map, ...]


def parse(text: str) -> Psbt:
    try:
        reader = _Reader(b64decode(text, validate=True))
    except binascii.Error:
        raise ValueError("it is not base64") from None
    if len(reader.data) > MAX_BYTES:
        raise ValueError("it is too long")
    if reader.take(5) != b"psbt\xff":
        raise ValueError("it does not begin as a PSBT")
    tx = _transaction(reader.map().get(UNSIGNED_TX, b""))
    inputs = tuple(reader.map() for _ in tx.vin)
    for _ in tx.vout:
        reader.map()
    if reader.at != len(reader.data):
        raise ValueError("something comes after its end")
    return Psbt(tx, inputs)


def _transaction(raw: bytes) -> Transaction:
    try:
        tx = Transaction.parse(raw)
        same = tx.serialize() == raw
    except Exception:
        # embit may raise any error on hostile bytes.
        raise ValueError("its transaction cannot be read") from None
    if not same or tx.is_segwit or not tx.vin:
        raise ValueError("its transaction is not an unsigned one")
    return tx


class _Reader:
    """Reads bytes from the front. Raises ValueError if there are too few."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, length: int) -> bytes:
        taken = self.data[self.at : self.at + length]
        if len(taken) < length:
            raise ValueError("it ends too early")
        self.at += length
        return taken

    def sized(self) -> bytes:
        first = self.take(1)[0]
        width = {0xFD: 2, 0xFE: 4, 0xFF: 8}.get(first, 0)
        return self.take(int.from_bytes(self.take(width), "little") if width else first)

    def map(self) -> Map:
        found: Map = {}
        while key := self.sized():
            if key in found:
                raise ValueError("a field is repeated")
            found[key] = self.sized()
        return found


WITNESS_UTXO, SIGHASH_TYPE = b"\x01", b"\x03"
TAP_LEAF_SCRIPT, TAP_INTERNAL_KEY, TAP_MERKLE_ROOT = b"\x15", b"\x17", b"\x18"


class Unsigned(Struct, frozen=True):
    """A PSBT to sign: `inputs` are the fields of each input of `tx`, which has no signature."""

    tx: Transaction
    inputs: list[Map]

    def encode(self) -> str:
        written = b"psbt\xff" + _map({b"\x00": self.tx.serialize()})
        written += b"".join(map(_map, self.inputs)) + b"\x00" * len(self.tx.vout)
        return b64encode(written).decode()


def spends(output: TransactionOutput, sighash: int | None = None) -> Map:
    """Returns the fields of an input that spends `output`, to be signed with `sighash`."""
    fields = {WITNESS_UTXO: output.serialize()}
    return fields if sighash is None else fields | {SIGHASH_TYPE: sighash.to_bytes(4, "little")}


def _map(fields: Map) -> bytes:
    rows = (_sized(key) + _sized(value) for key, value in sorted(fields.items()))
    return b"".join(rows) + b"\x00"


def _sized(data: bytes) -> bytes:
    return bytes(compact.to_bytes(len(data))) + data


LEAF_VERSION = 0xC0


class LeafOutput(Struct, frozen=True):
    """An output and the leaf that spends it: the x-only key `internal` may also spend it alone.

    `sibling` is the hash of the tree's other leaf, empty without one.
    """

    internal: bytes
    leaf: bytes
    sibling: bytes = b""

    @property
    def leaf_hash(self) -> bytes:
        return hash_of(self.leaf)

    @property
    def root(self) -> bytes:
        if not self.sibling:
            return self.leaf_hash
        return bytes(tagged_hash("TapBranch", b"".join(sorted((self.leaf_hash, self.sibling)))))

    def _tweaked(self) -> bytes:
        """Returns the output key with its parity in front (02 or 03)."""
        tweak = tagged_hash("TapTweak", self.internal + self.root)
        point = secp256k1.ec_pubkey_parse(b"\x02" + self.internal)
        return bytes(secp256k1.ec_pubkey_serialize(secp256k1.ec_pubkey_add(point, tweak)))

    @property
    def script(self) -> Script:
        return Script(b"\x51\x20" + self._tweaked()[1:])

    @property
    def leaf_script(self) -> Script:
        return Script(self.leaf)

    @property
    def control_block(self) -> bytes:
        return bytes([LEAF_VERSION | (self._tweaked()[0] & 1)]) + self.internal + self.sibling


def hash_of(leaf: bytes) -> bytes:
    return bytes(tagged_hash("TapLeaf", bytes([LEAF_VERSION]) + compact.to_bytes(len(leaf)) + leaf))


ALL_ANYONECANPAY = 0x81
SINGLE_ANYONECANPAY = 0x83
# The sighash for a signature's length and last byte: DEFAULT is not written, ALL is.
_WHOLE = {(64, b""): 0x00, (65, b"\x01"): 0x01}


def digest(tx: Transaction, index: int, spent: TransactionOutput, sighash: int, leaf_hash: bytes = b"") -> bytes:
    """Returns the 32 bytes that input `index` signs, by key path or for the leaf of `leaf_hash`, without annex.

    Raises ValueError for other sighashes, and if SINGLE has no output to cover.
    """
    if sighash not in (ALL_ANYONECANPAY, SINGLE_ANYONECANPAY):
        raise ValueError("only ALL|ANYONECANPAY and SINGLE|ANYONECANPAY are known here")
    if sighash == SINGLE_ANYONECANPAY and index >= len(tx.vout):
        raise ValueError("SINGLE without an output at the input's index")
    own = tx.vin[index]
    message = b"\x00" + bytes([sighash]) + tx.version.to_bytes(4, "little") + tx.locktime.to_bytes(4, "little")
    if sighash == ALL_ANYONECANPAY:
        message += _sha256(*(output.serialize() for output in tx.vout))
    message += (b"\x02" if leaf_hash else b"\x00") + own.txid[::-1] + own.vout.to_bytes(4, "little")
    message += spent.serialize() + own.sequence.to_bytes(4, "little")
    if sighash == SINGLE_ANYONECANPAY:
        message += _sha256(tx.vout[index].serialize())
    if leaf_hash:
        message += leaf_hash + b"\x00" + b"\xff\xff\xff\xff"
    return bytes(tagged_hash("TapSighash", message))


def is_signed(
    tx: Transaction,
    index: int,
    spent: TransactionOutput,
    signature: bytes,
    sighash: int = SINGLE_ANYONECANPAY,
    key: bytes = b"",
    leaf_hash: bytes = b"",
) -> bool:
    """Returns True if `signature` (64 bytes and the sighash) is by the P2TR output's key, or by `key` for a leaf."""
    script = spent.script_pubkey
    if len(signature) != 65 or signature[64] != sighash or script.script_type() != "p2tr":
        return False
    try:
        signer, message = PublicKey.from_xonly(key or script.data[2:]), digest(tx, index, spent, sighash, leaf_hash)
        return bool(signer.schnorr_verify(SchnorrSig(signature[:64]), message))
    except (ECError, ValueError):
        return False


def is_ecdsa_signed(tx: Transaction, index: int, code: Script, value: int, signature: bytes, key: bytes) -> bool:
    """Returns True if a compressed key signed a segwit input of `value` sats with ALL."""
    try:
        message = tx.sighash_segwit(index, code, value, SIGHASH.ALL)
        is_by_key = PublicKey.parse(key).verify(Signature.parse(signature[:-1]), message)
        return signature[-1:] == bytes([SIGHASH.ALL]) and bool(is_by_key)
    except (ECError, ValueError):
        return False


def whole_digest(
    tx: Transaction, index: int, spent: Sequence[TransactionOutput], sighash: int = 0, leaf: bytes = b""
) -> bytes:
    """Returns the 32 bytes that a signature of the whole `tx` signs, with DEFAULT or ALL: by key path or for `leaf`."""
    scripts, values = [output.script_pubkey for output in spent], [output.value for output in spent]
    path = {"ext_flag": 1, "script": Script(leaf), "leaf_version": LEAF_VERSION} if leaf else {}
    return bytes(tx.sighash_taproot(index, scripts, values, sighash=sighash, **path))


def is_whole_signed(
    tx: Transaction,
    index: int,
    spent: Sequence[TransactionOutput],
    signature: bytes,
    key: bytes | None = None,
    leaf: bytes = b"",
) -> bool:
    """Returns True if input `index` signs the whole `tx`, with DEFAULT or ALL.

    The signer is the x-only `key` for the script `leaf`, or else the key in the spent P2TR output.
    """
    sighash = _WHOLE.get((len(signature), signature[64:]))
    script = spent[index].script_pubkey
    if sighash is None or script.script_type() != "p2tr":
        return False
    try:
        signer = PublicKey.from_xonly(key or script.data[2:])
        return bool(signer.schnorr_verify(SchnorrSig(signature[:64]), whole_digest(tx, index, spent, sighash, leaf)))
    except (ECError, ValueError):
        return False


def _sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()
