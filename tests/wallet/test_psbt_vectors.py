"""The published PSBTs (BIP-174, 370, 371, 373): valid ones are read and written back, invalid ones refused."""

from __future__ import annotations

from typing import Any

import pytest
from embit.ec import PrivateKey

from tests.vectors import load
from wallet.address import parse
from wallet.psbt.decode import Psbt, decode, decode_base64, encode, from_base64, without_unknown
from wallet.psbt.fields import PROPRIETARY
from wallet.psbt.script import script_of
from wallet.psbt.sign import ALLOWED, SigningError, sign_input
from wallet.psbt.transaction import Outpoint, Transaction, TxInput, TxOutput, WireError, decode_network


def vectors(name: str) -> list[Any]:
    found: list[Any] = load("psbt")[name]
    assert found
    return found


def test_every_valid_one_is_read_and_written_back_byte_for_byte() -> None:
    texts = vectors("valid")
    assert len(texts) == 53
    for text in texts:
        assert encode(decode_base64(text)) == from_base64(text)


def test_every_invalid_one_is_refused() -> None:
    texts = vectors("invalid")
    assert len(texts) == 67
    taken = []
    for number, text in enumerate(texts):
        try:
            decode_base64(text)
        except WireError:
            continue
        taken.append(number)
    assert taken == []


def test_a_byte_cut_off_or_added_makes_a_valid_one_invalid() -> None:
    for text in vectors("valid"):
        raw = from_base64(text)
        for wrong in (raw[:-1], raw + b"\0", raw[:5] + b"\xfd" + raw[5:6] + b"\0" + raw[6:]):
            with pytest.raises(WireError):
                decode(wrong)


def test_dropping_unknown_fields_leaves_a_valid_psbt_of_the_same_transaction() -> None:
    dropped = 0
    for text in vectors("valid"):
        psbt = decode_base64(text)
        kept = without_unknown(psbt)
        again = encode(kept)
        assert kept.transaction == psbt.transaction
        assert again == encode(without_unknown(kept))
        assert not any(key[0] == PROPRIETARY for item in (kept.fields, *kept.inputs, *kept.outputs) for key in item)
        dropped += again != encode(psbt)
    assert dropped


def test_version_2_waits_for_the_latest_of_its_inputs() -> None:
    for text, locktime in vectors("locktimes"):
        assert decode_base64(text).transaction.locktime == locktime
    for text in vectors("conflicting_locktimes"):
        with pytest.raises(WireError, match="height"):
            decode_base64(text)


def test_a_psbt_of_a_bare_transaction_is_the_published_one_of_the_creator() -> None:
    for vector in vectors("creator"):
        inputs = tuple(
            TxInput(Outpoint.parse(f"{item['txid']}:{item['vout']}"), b"", 0xFFFFFFFF) for item in vector["inputs"]
        )
        outputs = []
        for item in vector["outputs"]:
            ((address, bitcoin),) = item.items()
            script = script_of(parse(address))
            assert script is not None
            outputs.append(TxOutput(round(bitcoin * 10**8), script))
        transaction = Transaction(2, inputs, tuple(outputs), 0)
        made = Psbt(0, transaction, {}, ({},) * len(inputs), ({},) * len(outputs))
        assert encode(made) == from_base64(vector["result"])


def test_the_signer_refuses_inputs_that_are_none_of_its_kinds() -> None:
    """The published signer's inputs are multisig: no kind of key of ours, by any of its keys, spends them."""
    for vector in vectors("signer"):
        psbt = decode_base64(vector["psbt"])
        assert encode(decode_base64(vector["result"])) == from_base64(vector["result"])
        for wif in vector["privkeys"]:
            for index, item in enumerate(psbt.inputs):
                former = item.get(b"\x00")
                outpoint = psbt.transaction.inputs[index].outpoint
                spent = [TxOutput(0, b"")] * len(psbt.inputs)
                if former is not None:
                    transaction = decode_network(former)
                    assert transaction.txid() == outpoint.txid
                    spent[index] = transaction.outputs[outpoint.vout]
                for kind in ALLOWED:
                    with pytest.raises(SigningError, match="not this input's"):
                        sign_input(psbt.transaction, index, spent, 1, kind, PrivateKey.from_wif(wif))


def test_what_other_roles_made_is_read_and_written_back() -> None:
    """Combining, finalizing and extracting are the venue's; here they are read only."""
    multisig, unknown_keys = vectors("combiner")
    texts = [*multisig["combine"], multisig["result"]]
    texts += [text for vector in vectors("finalizer") for text in (vector["finalize"], vector["result"])]
    for text in texts:
        assert encode(decode_base64(text)) == from_base64(text)
    # Older than BIP-370: what it took for an unknown type is now that of an output's number, which has another shape.
    for text in (*unknown_keys["combine"], unknown_keys["result"]):
        with pytest.raises(WireError, match="type 15 in the input map"):
            decode_base64(text)


def test_what_was_extracted_is_the_transaction_of_the_psbt() -> None:
    for vector in vectors("extractor"):
        psbt, network = decode_base64(vector["extract"]), decode_network(bytes.fromhex(vector["result"]))
        assert [item.outpoint for item in network.inputs] == [item.outpoint for item in psbt.transaction.inputs]
        assert network.outputs == psbt.transaction.outputs
