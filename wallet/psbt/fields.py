"""The shape of each known field of a PSBT (BIP-174, 370, 371, 373).

A field is a key and a value; the key is a type (a compact size) and more bytes. The reader keeps types that no table
names; they mean nothing here.
"""

from __future__ import annotations

from wallet.psbt import rules
from wallet.psbt.rules import Rule
from wallet.psbt.transaction import decode_network, decode_output

PROPRIETARY = 0xFC

GLOBAL_UNSIGNED_TX = 0x00
GLOBAL_TX_VERSION = 0x02
GLOBAL_FALLBACK_LOCKTIME = 0x03
GLOBAL_INPUT_COUNT = 0x04
GLOBAL_OUTPUT_COUNT = 0x05
GLOBAL_VERSION = 0xFB

IN_NON_WITNESS_UTXO = 0x00
IN_WITNESS_UTXO = 0x01
IN_PARTIAL_SIG = 0x02
IN_SIGHASH_TYPE = 0x03
IN_REDEEM_SCRIPT = 0x04
IN_WITNESS_SCRIPT = 0x05
IN_FINAL_SCRIPTSIG = 0x07
IN_FINAL_SCRIPTWITNESS = 0x08
IN_PREVIOUS_TXID = 0x0E
IN_OUTPUT_INDEX = 0x0F
IN_SEQUENCE = 0x10
IN_TIME_LOCKTIME = 0x11
IN_HEIGHT_LOCKTIME = 0x12
IN_TAP_KEY_SIG = 0x13
IN_TAP_SCRIPT_SIG = 0x14
IN_TAP_LEAF_SCRIPT = 0x15
IN_TAP_INTERNAL_KEY = 0x17
IN_TAP_MERKLE_ROOT = 0x18
MUSIG2 = (0x1A, 0x1B, 0x1C)  # participants, public nonce, partial signature

OUT_AMOUNT = 0x03
OUT_SCRIPT = 0x04

GLOBAL: dict[int, Rule] = {
    GLOBAL_UNSIGNED_TX: rules.no_key(rules.anything),  # read where it is used
    0x01: rules.xpub,
    GLOBAL_TX_VERSION: rules.no_key(rules.length(4)),
    GLOBAL_FALLBACK_LOCKTIME: rules.no_key(rules.length(4)),
    GLOBAL_INPUT_COUNT: rules.no_key(rules.compact_value),
    GLOBAL_OUTPUT_COUNT: rules.no_key(rules.compact_value),
    0x06: rules.no_key(rules.length(1)),  # flags: what may still be changed
    GLOBAL_VERSION: rules.no_key(rules.length(4)),
    PROPRIETARY: rules.proprietary,
}

INPUT: dict[int, Rule] = {
    IN_NON_WITNESS_UTXO: rules.no_key(decode_network),
    IN_WITNESS_UTXO: rules.no_key(decode_output),
    IN_PARTIAL_SIG: rules.partial_sig,
    IN_SIGHASH_TYPE: rules.no_key(rules.length(4)),
    IN_REDEEM_SCRIPT: rules.no_key(rules.anything),
    IN_WITNESS_SCRIPT: rules.no_key(rules.anything),
    0x06: rules.derivation,
    IN_FINAL_SCRIPTSIG: rules.no_key(rules.anything),
    IN_FINAL_SCRIPTWITNESS: rules.no_key(rules.witness),
    0x09: rules.no_key(rules.anything),  # proof of reserves
    0x0A: rules.sized_key(20),  # preimages, by RIPEMD-160, SHA-256, HASH160 and HASH256
    0x0B: rules.sized_key(32),
    0x0C: rules.sized_key(20),
    0x0D: rules.sized_key(32),
    IN_PREVIOUS_TXID: rules.no_key(rules.length(32)),
    IN_OUTPUT_INDEX: rules.no_key(rules.length(4)),
    IN_SEQUENCE: rules.no_key(rules.length(4)),
    IN_TIME_LOCKTIME: rules.no_key(rules.time),
    IN_HEIGHT_LOCKTIME: rules.no_key(rules.height),
    IN_TAP_KEY_SIG: rules.no_key(rules.length(64, 65)),
    IN_TAP_SCRIPT_SIG: rules.tap_script_sig,
    IN_TAP_LEAF_SCRIPT: rules.tap_leaf,
    0x16: rules.tap_derivation,
    IN_TAP_INTERNAL_KEY: rules.no_key(rules.x_only),
    IN_TAP_MERKLE_ROOT: rules.no_key(rules.length(32)),
    MUSIG2[0]: rules.participants,
    MUSIG2[1]: rules.musig(66),
    MUSIG2[2]: rules.musig(32),
    PROPRIETARY: rules.proprietary,
}

OUTPUT: dict[int, Rule] = {
    0x00: rules.no_key(rules.anything),  # redeem script
    0x01: rules.no_key(rules.anything),  # witness script
    0x02: rules.derivation,
    OUT_AMOUNT: rules.no_key(rules.length(8)),
    OUT_SCRIPT: rules.no_key(rules.anything),
    0x05: rules.no_key(rules.x_only),
    0x06: rules.no_key(rules.tap_tree),
    0x07: rules.tap_derivation,
    0x08: rules.participants,
    PROPRIETARY: rules.proprietary,
}

# Fields that only one of the two versions may have.
ONLY_V0_GLOBAL = frozenset({GLOBAL_UNSIGNED_TX})
ONLY_V2_GLOBAL = frozenset({GLOBAL_TX_VERSION, GLOBAL_FALLBACK_LOCKTIME, GLOBAL_INPUT_COUNT, GLOBAL_OUTPUT_COUNT, 0x06})
ONLY_V2_INPUT = frozenset({IN_PREVIOUS_TXID, IN_OUTPUT_INDEX, IN_SEQUENCE, IN_TIME_LOCKTIME, IN_HEIGHT_LOCKTIME})
ONLY_V2_OUTPUT = frozenset({OUT_AMOUNT, OUT_SCRIPT})
