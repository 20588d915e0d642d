"""Attacks with keys, scripts and signatures on our input, and with fields of the output."""

from __future__ import annotations

import struct

from tests.wallet.attacks.psbt_changes import (
    DER,
    OFF_CURVE_X,
    OTHER_TXID,
    SEGWIT_V0,
    STRANGER_X,
    TAPROOT,
    Attack,
    adding_to,
    out_field,
    own_field,
)
from tests.wallet.listings import POSTAGE, PRICE, STRANGER, STRANGER_SCRIPT, VAULT, output, script_by, size, with_size

ATTACKS: list[Attack] = []
attack = adding_to(ATTACKS)

# --- keys, scripts and signatures on our input ---
attack("a stranger's internal key", "key-path", own_field(b"\x17", STRANGER_X))
attack(
    "the output key as the internal key", "key-path", own_field(b"\x17", script_by("p2tr", VAULT)[2:]), kinds=TAPROOT
)
attack(
    "our internal key on an older kind", "key-path", own_field(b"\x17", VAULT.get_public_key().xonly()), kinds=SEGWIT_V0
)
attack("an internal key of 33 bytes", "psbt-strict", own_field(b"\x17", VAULT.get_public_key().sec()))
attack("an internal key off the curve", "psbt-strict", own_field(b"\x17", OFF_CURVE_X))
attack("a merkle root", "key-path", own_field(b"\x18", b"\x33" * 32))
attack("an empty merkle root", "psbt-strict", own_field(b"\x18", b""))
attack("a leaf script", "key-path", own_field(b"\x15\xc0" + STRANGER_X, b"\x51\xc0"))
attack(
    "a leaf script with a misshapen control block",
    "psbt-strict",
    own_field(b"\x15\xc0" + STRANGER_X + b"\0", b"\x51\xc0"),
)
attack("a leaf script without its version", "psbt-strict", own_field(b"\x15\xc0" + STRANGER_X, b""))
attack("a witness script", "key-path", own_field(b"\x05", b"\x51"))
attack("a redeem script", "key-path", own_field(b"\x04", b"\x51"))
attack("a stranger's redeem script", "key-path", own_field(b"\x04", script_by("p2wpkh", STRANGER)))
attack(
    "our redeem script on a bare output",
    "key-path",
    own_field(b"\x04", script_by("p2wpkh", VAULT)),
    kinds=("p2tr", "p2wpkh"),
)
attack("a key signature already", "input-signed", own_field(b"\x13", b"\x44" * 64))
attack("a key signature of 63 bytes", "psbt-strict", own_field(b"\x13", b"\x44" * 63))
attack("a leaf signature already", "input-signed", own_field(b"\x14" + STRANGER_X + b"\x55" * 32, b"\x44" * 64))
attack(
    "a stranger's partial signature",
    "input-signed",
    own_field(b"\x02" + STRANGER.get_public_key().sec(), DER + b"\x81"),
)
attack(
    "a partial signature in our name", "input-signed", own_field(b"\x02" + VAULT.get_public_key().sec(), DER + b"\x83")
)
attack("a partial signature of a key off the curve", "psbt-strict", own_field(b"\x02\x02" + OFF_CURVE_X, DER + b"\x83"))
attack(
    "a partial signature that is no DER",
    "psbt-strict",
    own_field(b"\x02" + STRANGER.get_public_key().sec(), b"\x44" * 71),
)
attack("a final witness", "input-signed", own_field(b"\x08", b"\x01" + with_size(b"\x44" * 64)))
attack("a final witness with a byte more", "psbt-strict", own_field(b"\x08", b"\0\0"))
attack("a final script_sig", "input-signed", own_field(b"\x07", b""))
attack(
    "a MuSig2 nonce",
    "input-signed",
    own_field(b"\x1b" + STRANGER.get_public_key().sec() * 2, STRANGER.get_public_key().sec() * 2),
)
attack(
    "MuSig2 participants",
    "input-signed",
    own_field(b"\x1a" + STRANGER.get_public_key().sec(), STRANGER.get_public_key().sec()),
)
attack("a MuSig2 signature", "input-signed", own_field(b"\x1c" + STRANGER.get_public_key().sec() * 2, b"\x66" * 32))
attack("a derivation of a key off the curve", "psbt-strict", own_field(b"\x06\x02" + OFF_CURVE_X, b"\0" * 4))
attack(
    "a derivation path of half a step", "psbt-strict", own_field(b"\x06" + STRANGER.get_public_key().sec(), b"\0" * 6)
)
attack("a taproot derivation with too few leaves", "psbt-strict", own_field(b"\x16" + STRANGER_X, b"\x02" + b"\0" * 36))
attack(
    "the utxo field twice",
    "psbt-strict",
    lambda case: case.own.fields.append((b"\x01", output(POSTAGE, STRANGER_SCRIPT))),
)
attack(
    "the same unknown field twice",
    "psbt-strict",
    lambda case: case.own.fields.extend([(b"\x77\x01", b"a"), (b"\x77\x01", b"b")]),
)
attack("a version 2 outpoint on our input", "psbt-strict", own_field(b"\x0e", OTHER_TXID))
attack("a version 2 output number on our input", "psbt-strict", own_field(b"\x0f", b"\0\0\0\0"))
attack("a version 2 sequence on our input", "psbt-strict", own_field(b"\x10", b"\xff" * 4))
attack("a version 2 time on our input", "psbt-strict", own_field(b"\x11", struct.pack("<I", 1_700_000_000)))
attack("a version 2 height on our input", "psbt-strict", own_field(b"\x12", struct.pack("<I", 1)))
attack("a misshapen proprietary field on our input", "psbt-strict", own_field(b"\xfc", b""))
attack("a preimage's hash of a wrong length", "psbt-strict", own_field(b"\x0b" + b"\0" * 20, b""))

# --- fields of the output ---
attack("a version 2 amount on the output", "psbt-strict", out_field(b"\x03", struct.pack("<Q", PRICE)))
attack("a version 2 script on the output", "psbt-strict", out_field(b"\x04", STRANGER_SCRIPT))
attack("a misshapen redeem script key on the output", "psbt-strict", out_field(b"\x00\x01", b""))
attack("an internal key off the curve on the output", "psbt-strict", out_field(b"\x05", OFF_CURVE_X))
attack("a tree that is half", "psbt-strict", out_field(b"\x06", b"\x01\xc0\x01\x51"))
attack("a tree with a leaf too deep", "psbt-strict", out_field(b"\x06", b"\x81\xc0\x01\x51"))
attack(
    "an output's field twice", "psbt-strict", lambda case: case.payout.fields.extend([(b"\x00", b""), (b"\x00", b"")])
)
attack("a derivation of no key on the output", "psbt-strict", out_field(b"\x02", b"\0" * 4))
attack("an oversized tree length", "psbt-strict", out_field(b"\x06", b"\x00\xc0" + size(2**32)))
