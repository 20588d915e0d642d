"""ANN's signatures on venues' drafts. Written for the tests: the real signer signs less, and checks everything."""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any

from embit.psbt import PSBT
from embit.transaction import SIGHASH

from markets.adapter import Adapter
from markets.orders import ListingDraft
from markets.unisat.adapter import UnisatMarket
from tests.shapes import replace
from tests.simulator.desk import Trader
from tests.simulator.seller import signed
from wallet.psbt.decode import Psbt, decode, encode
from wallet.psbt.sign import sign_input, with_signature
from wallet.psbt.transaction import (
    ALL,
    DEFAULT,
    LISTING,
    SECURE_LISTING,
    TxOutput,
    compact,
    decode_output,
    encode_outpoint,
    sized,
    taproot_digest,
)

WITNESS_UTXO, KEY_SIG, SCRIPT_SIG, LEAF, MERKLE_ROOT = (compact(number) for number in (0x01, 0x13, 0x14, 0x15, 0x18))
Signed = dict[str, Any]  # fields of a listing's order


def offer(psbt: str, indices: Sequence[int], buyer: Trader) -> str:
    """These inputs by the payment key, with ALL."""
    read = decode(b64decode(psbt))
    found = read
    for index in indices:
        signature = sign_input(read.transaction, index, _spent(read), ALL, "p2wpkh", buyer.key)
        found = with_signature(found, index, "p2wpkh", bytes.fromhex(buyer.pubkey), signature)
    return _text(found)


def withdrawal(psbt: str, owner: Trader) -> str:
    """Signs every input by the payment key, as one of the keys of a bidding wallet."""
    read = PSBT.parse(b64decode(psbt))
    for at, each in enumerate(read.inputs):
        digest = read.tx.sighash_segwit(at, each.witness_script, each.witness_utxo.value, SIGHASH.ALL)
        each.partial_sigs[owner.key.get_public_key()] = owner.key.sign(digest).serialize() + b"\x01"
    return str(read.to_base64())


def satflow_listing(draft: ListingDraft, seller: Trader) -> Signed:
    """Signs the plain PSBT, and the secure ones."""
    secure = tuple(signed(each.psbt, seller, SECURE_LISTING) for each in draft.secure)
    return {"signed_psbt": signed(draft.psbt, seller, LISTING), "signed_secure": secure}


def plain_listing(draft: ListingDraft, seller: Trader) -> Signed:
    """Signs one PSBT with SINGLE|ANYONECANPAY."""
    return {"signed_psbt": signed(draft.psbt, seller, LISTING)}


def taken_back(adapter: Adapter, inscription_id: str, seller: Trader) -> str:
    """Signs UniSat's PSBT that takes a listing back, with DEFAULT."""
    assert isinstance(adapter, UnisatMarket)
    return _transferred(adapter.draft_delist(seller.ordinals, inscription_id).psbt, (0,), seller)


def ordnet_listing(draft: ListingDraft, seller: Trader) -> Signed:
    """Signs the settlement out of the escrow's leaf, the transfer, and the recovery by the escrow's own key."""
    return {
        "signed_psbt": _settled(draft.psbt, seller),
        "signed_transfer": _transferred(draft.transfer, (0,), seller),
        "signed_recovery": _recovered(draft.recovery, seller),
    }


def protected_listing(draft: ListingDraft, seller: Trader) -> Signed:
    """Signs the sale out of the escrow's leaf, and the transfer."""
    return {
        "signed_psbt": _settled(draft.psbt, seller),
        "signed_transfer": _transferred(draft.transfer, (0,), seller),
    }


def _transferred(psbt: str, indices: Sequence[int], seller: Trader) -> str:
    read = decode(b64decode(psbt))
    found = read
    for index in indices:
        signature = sign_input(read.transaction, index, _spent(read), DEFAULT, "p2tr", seller.key)
        found = with_signature(found, index, "p2tr", b"", signature)
    return _text(found)


def _settled(psbt: str, seller: Trader) -> str:
    read = decode(b64decode(psbt))
    script = next(value[:-1] for name, value in read.inputs[0].items() if name.startswith(LEAF))
    leaf = _tagged(b"TapLeaf", b"\xc0" + sized(script))
    asked = script[1:33]
    plain, tweaked = seller.key, seller.key.taproot_tweak(b"")
    key = next(each for each in (plain, tweaked) if each.xonly() == asked)
    own, output = read.transaction.inputs[0], decode_output(read.inputs[0][WITNESS_UTXO])
    message = bytes([0, LISTING]) + read.transaction.version.to_bytes(4, "little")
    message += read.transaction.locktime.to_bytes(4, "little") + b"\x02"  # script path, no annex
    message += encode_outpoint(own.outpoint) + output.encode() + own.sequence.to_bytes(4, "little")
    message += hashlib.sha256(read.transaction.outputs[0].encode()).digest() + leaf + b"\x00" + b"\xff" * 4
    signature = key.schnorr_sign(_tagged(b"TapSighash", message)).serialize()
    return _text(_with(read, SCRIPT_SIG + asked + leaf, signature + bytes([LISTING])))


def _recovered(psbt: str, seller: Trader) -> str:
    read = decode(b64decode(psbt))
    key = seller.key.taproot_tweak(read.inputs[0][MERKLE_ROOT])
    signature = key.schnorr_sign(taproot_digest(read.transaction, 0, _spent(read), ALL)).serialize()
    return _text(_with(read, KEY_SIG, signature + bytes([ALL])))


def _spent(read: Psbt) -> list[TxOutput | None]:
    return [decode_output(each[WITNESS_UTXO]) for each in read.inputs]


def _with(read: Psbt, name: bytes, value: bytes) -> Psbt:
    return replace(read, inputs=({**read.inputs[0], name: value}, *read.inputs[1:]))


def _text(read: Psbt) -> str:
    return b64encode(encode(read)).decode()


def _tagged(tag: bytes, message: bytes) -> bytes:
    name = hashlib.sha256(tag).digest()
    return hashlib.sha256(name + name + message).digest()
