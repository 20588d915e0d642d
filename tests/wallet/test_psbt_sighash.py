"""The digests that are signed: published vectors, and embit's where embit is right."""

from __future__ import annotations

from typing import Any

import pytest
from embit import script
from embit.ec import PrivateKey
from embit.transaction import Transaction as OtherTransaction
from embit.util import secp256k1

from tests.vectors import load
from wallet.psbt.script import leaf_hash, output_script, own_script
from wallet.psbt.sighash import segwit_digest, taproot_digest
from wallet.psbt.sign import SigningError, sign_input
from wallet.psbt.transaction import TxOutput, decode_network, decode_unsigned

# BIP-143's example of a P2WPKH input, the second of two.
BIP143 = bytes.fromhex(
    "0100000002fff7f7881a8099afa6940d42d1e7f6362bec38171ea3edf433541db4e4ad969f0000000000eeffffffef51e1b804cc89d182d2"
    "79655c3aa89e815b1b309fe287d9b2b55d57b90ec68a0100000000ffffffff02202cb206000000001976a9148280b37df378db99f66f85c9"
    "5a783a76ac7a6d5988ac9093510d000000001976a9143bde42dbee7e4dbe6a21b2d50ce2f0167faa815988ac11000000"
)
BIP143_KEY = bytes.fromhex("025476c2e83188368da1ff3e292e7acafcdb3566bb0ad253f62fc70f07aeee6357")
BIP143_DIGEST = "c37af31116d1b27caf68aae9e3ac82f1477929014d5b917657d0eb49478cb670"


def test_every_published_key_path_digest() -> None:
    seen = set()
    for vector in load("bip341")["keyPathSpending"]:
        transaction = decode_unsigned(bytes.fromhex(vector["given"]["rawUnsignedTx"]))
        spent = [TxOutput(u["amountSats"], bytes.fromhex(u["scriptPubKey"])) for u in vector["given"]["utxosSpent"]]
        for item in vector["inputSpending"]:
            given = item["given"]
            digest = taproot_digest(transaction, given["txinIndex"], spent, given["hashType"])
            assert digest.hex() == item["intermediary"]["sigHash"]
            seen.add(given["hashType"])
    assert seen == {0x00, 0x01, 0x02, 0x03, 0x81, 0x82, 0x83}


def test_every_published_signature_is_made_byte_for_byte_by_the_tweaked_key() -> None:
    made = 0
    for vector in load("bip341")["keyPathSpending"]:
        transaction = decode_unsigned(bytes.fromhex(vector["given"]["rawUnsignedTx"]))
        spent = [TxOutput(u["amountSats"], bytes.fromhex(u["scriptPubKey"])) for u in vector["given"]["utxosSpent"]]
        for item in vector["inputSpending"]:
            given = item["given"]
            tweaked = PrivateKey(bytes.fromhex(given["internalPrivkey"])).taproot_tweak(
                bytes.fromhex(given["merkleRoot"] or "")
            )
            sighash = given["hashType"]
            digest = taproot_digest(transaction, given["txinIndex"], spent, sighash)
            # Published with 32 zeros of extra randomness, which is not the same as with none.
            signature = secp256k1.schnorrsig_sign(digest, tweaked.secret, None, bytes(32))
            assert [(signature + bytes([sighash] if sighash else [])).hex()] == item["expected"]["witness"]
            made += 1
    assert made == 7


def test_published_inputs_of_another_key_or_sighash_are_not_signed() -> None:
    """Those with a script tree have another output key than ours; the one without is to be signed with SINGLE."""
    reasons = set()
    for vector in load("bip341")["keyPathSpending"]:
        transaction = decode_unsigned(bytes.fromhex(vector["given"]["rawUnsignedTx"]))
        spent = [TxOutput(u["amountSats"], bytes.fromhex(u["scriptPubKey"])) for u in vector["given"]["utxosSpent"]]
        for item in vector["inputSpending"]:
            given, key = item["given"], PrivateKey(bytes.fromhex(item["given"]["internalPrivkey"]))
            with pytest.raises(SigningError) as caught:
                sign_input(transaction, given["txinIndex"], spent, given["hashType"], "p2tr", key)
            reasons.add((given["merkleRoot"] is None, str(caught.value)))
    assert (True, "sighash 0x3 is not signed for p2tr") in reasons
    assert (False, "the key is not this input's") in reasons


def test_published_scripts_without_a_tree() -> None:
    made = 0
    for vector in load("bip341")["scriptPubKey"]:
        if vector["given"]["scriptTree"] is None:
            internal = bytes.fromhex(vector["given"]["internalPubkey"])
            assert own_script("p2tr", b"\x02" + internal).hex() == vector["expected"]["scriptPubKey"]
            assert own_script("p2tr", b"\x03" + internal).hex() == vector["expected"]["scriptPubKey"]
            made += 1
    assert made


def test_the_published_segwit_digest() -> None:
    assert segwit_digest(decode_unsigned(BIP143), 1, BIP143_KEY, 600_000_000, 1).hex() == BIP143_DIGEST


@pytest.mark.parametrize("sighash", [0x01, 0x02, 0x03, 0x81, 0x82, 0x83])
@pytest.mark.parametrize("index", [0, 1])
def test_segwit_digests_are_those_of_embit(sighash: int, index: int) -> None:
    code = script.p2pkh_from_p2wpkh(script.Script(own_script("p2wpkh", BIP143_KEY)))
    other = OtherTransaction.parse(BIP143).sighash_segwit(index, code, 1234, sighash)
    assert segwit_digest(decode_network(BIP143), index, BIP143_KEY, 1234, sighash) == other


@pytest.mark.parametrize("sighash", [0x04, 0x40, 0x80, 0x84, 0xFF, 0x100, -1])
def test_a_sighash_without_a_meaning_is_an_error(sighash: int) -> None:
    transaction = decode_unsigned(BIP143)
    with pytest.raises(ValueError, match="no meaning"):
        taproot_digest(transaction, 0, [TxOutput(1, b"")] * 2, sighash)
    with pytest.raises(ValueError, match="no meaning"):
        segwit_digest(transaction, 0, BIP143_KEY, 1, sighash)


def test_only_taproot_has_a_default() -> None:
    with pytest.raises(ValueError, match="default"):
        segwit_digest(decode_unsigned(BIP143), 0, BIP143_KEY, 1, 0)


@pytest.mark.parametrize("sighash", [0x03, 0x83])
def test_single_without_its_output_is_an_error(sighash: int) -> None:
    transaction = decode_unsigned(BIP143)
    shorter = type(transaction)(2, transaction.inputs, transaction.outputs[:1], 0)
    with pytest.raises(ValueError, match="same index"):
        taproot_digest(shorter, 1, [TxOutput(1, b"")] * 2, sighash)
    with pytest.raises(ValueError, match="same index"):
        segwit_digest(shorter, 1, BIP143_KEY, 1, sighash)


def test_what_is_covered_must_be_known() -> None:
    transaction, known = decode_unsigned(BIP143), TxOutput(1, b"\x51")
    assert taproot_digest(transaction, 0, [known, None], 0x81) == taproot_digest(transaction, 0, [known, known], 0x81)
    for spent in ([known, None], [None, known], [known], [known] * 3):
        with pytest.raises(ValueError, match="not known"):
            taproot_digest(transaction, 0, spent, 0x00)
    with pytest.raises(ValueError, match="not known"):
        taproot_digest(transaction, 0, [None, known], 0x83)


def test_published_leaves_lead_to_their_outputs() -> None:
    seen = 0
    for vector in load("bip341")["scriptPubKey"]:
        blocks = [bytes.fromhex(block) for block in vector["expected"].get("scriptPathControlBlocks", [])]
        for leaf, block in zip(_leaves(vector["given"]["scriptTree"]), blocks, strict=True):
            script_bytes, version = bytes.fromhex(leaf["script"]), leaf["leafVersion"]
            found = leaf_hash(script_bytes, version)
            assert found.hex() == vector["intermediary"]["leafHashes"][leaf["id"]]
            assert output_script(found, block).hex() == vector["expected"]["scriptPubKey"]
            seen += 1
    assert seen == 12


def _leaves(tree: Any) -> list[dict[str, Any]]:
    if tree is None:
        return []
    return [tree] if isinstance(tree, dict) else [leaf for branch in tree for leaf in _leaves(branch)]


@pytest.mark.parametrize("sighash", [0x00, 0x01])
def test_a_leafs_digest_is_embits_where_embit_is_right(sighash: int) -> None:
    """At each input of a transaction with two inputs and two outputs. btclib's engine judges whole withdrawals."""
    unsigned = bytes.fromhex(
        "02000000" + "02" + "11" * 32 + "00000000" + "00" + "fdffffff" + "22" * 32 + "05000000" + "00" + "feffffff"
        "02" + "e803000000000000" + "01" + "51" + "d007000000000000" + "02" + "5152" + "40e20100"
    )
    leaf_script = bytes.fromhex("20" + "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798" + "ac")
    spent = [TxOutput(5_000, b"\x51\x20" + b"\x33" * 32), TxOutput(6_000, b"\x51\x20" + b"\x44" * 32)]
    other = OtherTransaction.parse(unsigned)
    for at in range(2):
        theirs = other.sighash_taproot(
            at,
            [script.Script(output.script) for output in spent],
            [output.value for output in spent],
            sighash=sighash,
            ext_flag=1,
            script=script.Script(leaf_script),
            leaf_version=0xC0,
        )
        assert taproot_digest(decode_unsigned(unsigned), at, spent, sighash, leaf_hash(leaf_script)) == theirs
        assert taproot_digest(decode_unsigned(unsigned), at, spent, sighash) != theirs
