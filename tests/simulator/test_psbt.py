"""The texts that are read as a PSBT, and those that are not."""

from __future__ import annotations

from base64 import b64decode, b64encode

import pytest
from embit.transaction import Transaction, TransactionInput, TransactionOutput

from simulator.chain import script_of
from simulator.taproot import MAX_BYTES, parse
from tests.vectors import load

TX = Transaction(2, [TransactionInput(b"\x01" * 32, 3, sequence=0)], [TransactionOutput(5, script_of("x"))], 7)


def _field(key: bytes, value: bytes) -> bytes:
    return bytes([len(key)]) + key + bytes([len(value)]) + value


def _psbt(tx: bytes = TX.serialize(), inputs: bytes = b"", tail: bytes = b"") -> str:
    return b64encode(b"psbt\xff" + _field(b"\x00", tx) + b"\0" + inputs + b"\0" + b"\0" + tail).decode()


def test_a_transaction_and_the_fields_of_its_inputs_are_read() -> None:
    psbt = parse(_psbt(inputs=_field(b"\x03", b"\x83\0\0\0") + _field(b"\x13", b"s" * 65)))

    assert psbt.tx.serialize() == TX.serialize()
    assert psbt.inputs == ({b"\x03": b"\x83\0\0\0", b"\x13": b"s" * 65},)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        _psbt() + "!",
        _psbt(tail=b"\0"),
        _psbt(inputs=_field(b"\x03", b"1") * 2),
        _psbt(tx=b""),
        _psbt(tx=TX.serialize()[:-1]),
        _psbt(tx=Transaction(2, [], []).serialize()),
        b64encode(b64decode(_psbt())[:-1]).decode(),
        b64encode(b"PSBT" + b64decode(_psbt())[4:]).decode(),
        b64encode(b"psbt\xff\x01\x04\xff" + b"\xff" * 8).decode(),
        _psbt(tail=bytes(MAX_BYTES)),
    ],
)
def test_nothing_else_is_a_psbt(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(its?|a field|something) "):
        parse(text)


def test_every_published_psbt_of_version_0_with_an_input_is_read() -> None:
    read = 0
    for text in load("psbt")["valid"]:
        raw = b64decode(text)
        # The transaction comes first, after its length of one byte; its inputs are counted after its version.
        if raw[5:7] == b"\x01\x00" and raw[7] < 0xFD and raw[12]:
            psbt = parse(text)
            assert len(psbt.inputs) == len(psbt.tx.vin) == raw[12]
            read += 1
    assert read >= 20
