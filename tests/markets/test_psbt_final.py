"""Witnesses filled into signed PSBTs, checked with embit's reading of them."""

from __future__ import annotations

import base64

import pytest
from embit.psbt import PSBT
from embit.script import Script, Witness
from embit.transaction import Transaction, TransactionInput, TransactionOutput

from markets.adapter import with_witnesses

SIGNATURE = bytes(range(64)) + b"\x83"


def _psbt(*signatures: bytes | None) -> PSBT:
    inputs = [TransactionInput(bytes([number]) * 32, number) for number in range(len(signatures))]
    found = PSBT(Transaction(vin=inputs, vout=[TransactionOutput(50_000, Script(b"\x51\x20" + b"\x07" * 32))]))
    for each, signature in zip(found.inputs, signatures, strict=True):
        each.witness_utxo = TransactionOutput(546, Script(b"\x51\x20" + b"\x09" * 32))
        each.unknown = {} if signature is None else {b"\x13": signature}
    return found


def _text(psbt: PSBT) -> str:
    return str(psbt.to_base64())


def test_a_key_signature_becomes_the_witness_and_stays() -> None:
    given = _psbt(None, SIGNATURE)
    found = PSBT.parse(base64.b64decode(with_witnesses(_text(given))))
    unsigned, signed = found.inputs
    assert unsigned.final_scriptwitness is None
    assert signed.final_scriptwitness.items == [SIGNATURE]
    assert signed.unknown[b"\x13"] == SIGNATURE
    assert found.tx.serialize() == given.tx.serialize()
    assert signed.witness_utxo.serialize() == given.inputs[1].witness_utxo.serialize()


@pytest.mark.parametrize("signatures", [(), (None,), (None, None)])
def test_without_a_key_signature_nothing_changes(signatures: tuple[None, ...]) -> None:
    given = _text(_psbt(*signatures))
    assert with_witnesses(given) == given


def test_a_witness_that_is_there_is_left_alone() -> None:
    given = _psbt(SIGNATURE)
    given.inputs[0].final_scriptwitness = Witness([b"\x01"])
    found = PSBT.parse(base64.b64decode(with_witnesses(_text(given))))
    assert found.inputs[0].final_scriptwitness.items == [b"\x01"]


def test_done_twice_is_done_once() -> None:
    once = with_witnesses(_text(_psbt(SIGNATURE)))
    assert with_witnesses(once) == once


def test_every_cut_of_a_psbt_is_refused() -> None:
    raw = base64.b64decode(_text(_psbt(SIGNATURE)))
    output = len(raw) - 1  # the last map is the output's, which is empty
    for end in range(output):
        with pytest.raises(ValueError):
            with_witnesses(base64.b64encode(raw[:end]).decode())


@pytest.mark.parametrize("given", ["", "c2lnbmVk", "cHNidP8", "!", "cHNidP8B"])
def test_what_is_no_psbt_is_refused(given: str) -> None:
    with pytest.raises(ValueError):
        with_witnesses(given)
