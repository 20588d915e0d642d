"""The digest of a listing's signature, by published vectors and by the signer's own code."""

from __future__ import annotations

import pytest
from embit.ec import PrivateKey
from embit.script import Script
from embit.transaction import Transaction, TransactionInput, TransactionOutput

from simulator.taproot import ALL_ANYONECANPAY, SINGLE_ANYONECANPAY, digest, is_signed
from tests.vectors import load
from wallet.psbt.sighash import taproot_digest
from wallet.psbt.transaction import TxOutput, decode_unsigned


def test_the_published_digests_of_inputs_that_leave_others_open() -> None:
    seen = set()
    for vector in load("bip341")["keyPathSpending"]:
        tx = Transaction.parse(bytes.fromhex(vector["given"]["rawUnsignedTx"]))
        spent = [
            TransactionOutput(u["amountSats"], Script(bytes.fromhex(u["scriptPubKey"])))
            for u in vector["given"]["utxosSpent"]
        ]
        for item in vector["inputSpending"]:
            at, sighash = item["given"]["txinIndex"], item["given"]["hashType"]
            if sighash not in (ALL_ANYONECANPAY, SINGLE_ANYONECANPAY):
                continue
            (witness,) = item["expected"]["witness"]
            assert digest(tx, at, spent[at], sighash).hex() == item["intermediary"]["sigHash"]
            assert is_signed(tx, at, spent[at], bytes.fromhex(witness), sighash)
            assert not is_signed(tx, at, spent[at], bytes.fromhex(witness)[:-1] + b"\x01", sighash)
            assert not is_signed(tx, at, spent[at], bytes.fromhex(witness)[:-1], sighash)
            seen.add(sighash)
    assert seen == {ALL_ANYONECANPAY, SINGLE_ANYONECANPAY}


KEY = PrivateKey(b"\x07" * 32).taproot_tweak(b"")
OWN = TransactionOutput(7_000, Script(b"\x51\x20" + KEY.xonly()))


def _made() -> Transaction:
    """Two inputs, ours the second, and two outputs."""
    ins = [TransactionInput(bytes([at]) * 32, at, sequence=0xFFFFFFFD - at) for at in (1, 2)]
    return Transaction(2, ins, [TransactionOutput(1_000 * at, OWN.script_pubkey) for at in (1, 2)], 5)


@pytest.mark.parametrize("sighash", [ALL_ANYONECANPAY, SINGLE_ANYONECANPAY])
def test_the_digest_is_the_signers(sighash: int) -> None:
    tx = _made()
    theirs = decode_unsigned(tx.serialize())
    spent = (None, TxOutput(OWN.value, OWN.script_pubkey.data))

    assert digest(tx, 1, OWN, sighash) == taproot_digest(theirs, 1, spent, sighash)


def test_single_leaves_open_what_is_not_at_its_index() -> None:
    tx = _made()
    signature = KEY.schnorr_sign(digest(tx, 1, OWN, SINGLE_ANYONECANPAY)).serialize() + bytes([SINGLE_ANYONECANPAY])

    tx.vin.append(TransactionInput(b"\x09" * 32, 9))
    tx.vout[0] = TransactionOutput(1, OWN.script_pubkey)
    assert is_signed(tx, 1, OWN, signature, SINGLE_ANYONECANPAY)
    assert not is_signed(tx, 1, OWN, signature[:-1] + bytes([ALL_ANYONECANPAY]), SINGLE_ANYONECANPAY)
    tx.vout[1] = TransactionOutput(1_999, OWN.script_pubkey)
    assert not is_signed(tx, 1, OWN, signature, SINGLE_ANYONECANPAY)


@pytest.mark.parametrize("sighash", [0x00, 0x01, 0x02, 0x03, 0x82])
def test_no_other_sighash_is_known(sighash: int) -> None:
    with pytest.raises(ValueError, match="known"):
        digest(_made(), 1, OWN, sighash)


def test_single_without_an_output_of_its_index_signs_nothing() -> None:
    tx = _made()
    del tx.vout[1]

    with pytest.raises(ValueError, match="SINGLE"):
        digest(tx, 1, OWN, SINGLE_ANYONECANPAY)
    assert not is_signed(tx, 1, OWN, b"\x01" * 64 + b"\x83", SINGLE_ANYONECANPAY)
