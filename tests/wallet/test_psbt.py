"""Reading PSBTs strictly, field by field, and writing them back."""

from __future__ import annotations

import base64
import contextlib
import struct
from typing import Any

import pytest
from embit.ec import PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from tests.vectors import load
from tests.wallet.listings import STRANGER, VAULT, former, honest, output, size, with_size
from wallet.address import parse
from wallet.psbt import fields
from wallet.psbt.decode import Psbt, decode, decode_base64, encode, from_base64, key_type, without_unknown
from wallet.psbt.fields import PROPRIETARY
from wallet.psbt.script import script_of
from wallet.psbt.sign import ALLOWED, SigningError, sign_input
from wallet.psbt.transaction import (
    Outpoint,
    Reader,
    Transaction,
    TxInput,
    TxOutput,
    WireError,
    compact,
    decode_network,
    decode_output,
    decode_unsigned,
    sized,
)

KEY, OTHER = VAULT.get_public_key().sec(), STRANGER.get_public_key().sec()
X = KEY[1:]
UNCOMPRESSED = bytes.fromhex(
    "0479be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8"
)
OFF_CURVE = b"\x02" + b"\xff" * 32
DER = bytes.fromhex("30440220" + "11" * 32 + "0220" + "22" * 32 + "01")
XPUB = bytes.fromhex("0488b21e") + b"\x02" + b"\0" * 8 + b"\x07" * 32 + KEY
PATH = b"\0" * 12  # a fingerprint and two steps
TREE = b"\x01\xc0\x01\x51" + b"\x02\xc0\x01\x51" * 2

GOOD: list[tuple[str, bytes, bytes]] = [
    ("global", b"\x01" + XPUB, PATH),
    ("global", b"\xfb", b"\0\0\0\0"),
    ("global", b"\xfc\x01a\x00", b""),
    ("global", b"\x70", b"anything"),
    ("input", b"\x00", former(b"\x51")),
    ("input", b"\x00", former(b"\x51", witness=False)),
    ("input", b"\x01", output(5, b"\x51")),
    ("input", b"\x02" + KEY, DER),
    ("input", b"\x02" + UNCOMPRESSED, DER),
    ("input", b"\x02" + KEY, bytes.fromhex("300602010102010101")),
    ("input", b"\x02" + KEY, bytes.fromhex("3007020200ff02010101")),
    ("input", b"\x02" + KEY, bytes.fromhex("300602010002010101")),
    ("input", b"\x03", b"\x83\0\0\0"),
    ("input", b"\x04", b""),
    ("input", b"\x05", b"\x51"),
    ("input", b"\x06" + KEY, PATH),
    ("input", b"\x06" + KEY, b"\0" * 4),
    ("input", b"\x07", b"\x51"),
    ("input", b"\x08", b"\x02\x01a\x00"),
    ("input", b"\x09", b"proof"),
    ("input", b"\x0a" + b"\0" * 20, b"preimage"),
    ("input", b"\x0b" + b"\0" * 32, b"preimage"),
    ("input", b"\x0c" + b"\0" * 20, b"preimage"),
    ("input", b"\x0d" + b"\0" * 32, b"preimage"),
    ("input", b"\x13", b"\0" * 64),
    ("input", b"\x13", b"\0" * 65),
    ("input", b"\x14" + X + b"\0" * 32, b"\0" * 64),
    ("input", b"\x15\xc0" + X, b"\x51\xc0"),
    ("input", b"\x15\xc0" + X + b"\0" * 32 * 128, b"\xc0"),
    ("input", b"\x16" + X, b"\x01" + b"\0" * 32 + PATH),
    ("input", b"\x16" + X, b"\x00" + PATH),
    ("input", b"\x17", X),
    ("input", b"\x18", b"\0" * 32),
    ("input", b"\x1a" + KEY, KEY + OTHER),
    ("input", b"\x1b" + KEY + OTHER, b"\0" * 66),
    ("input", b"\x1b" + KEY + OTHER + b"\0" * 32, b"\0" * 66),
    ("input", b"\x1c" + KEY + OTHER, b"\0" * 32),
    ("output", b"\x00", b"\x51"),
    ("output", b"\x01", b"\x51"),
    ("output", b"\x02" + KEY, PATH),
    ("output", b"\x05", X),
    ("output", b"\x06", b"\x00\xc0\x00"),
    ("output", b"\x06", TREE),
    ("output", b"\x06", b"\x02\xc0\x00" * 4),
    ("output", b"\x06", b"".join(bytes([n, 0xC0, 0]) for n in (*range(1, 128), 128, 128))),
    ("output", b"\x07" + X, b"\x00" + PATH),
    ("output", b"\x08" + KEY, KEY),
    ("output", b"\xfc\x00\x00", b""),
]

BAD: list[tuple[str, bytes, bytes]] = [
    ("global", b"\x01" + XPUB[:-1], PATH),
    ("global", b"\x01" + XPUB, PATH + b"\0" * 4),
    ("global", b"\x01" + XPUB, PATH[:-4]),
    ("global", b"\x01" + XPUB, PATH[:-1]),
    ("global", b"\x01" + XPUB[:-33] + OFF_CURVE, PATH),
    ("global", b"\xfb\x00", b"\0\0\0\0"),
    ("global", b"\xfc", b""),
    ("global", b"\xfc\x02a\x00", b""),
    ("global", b"\xfc\x01a", b""),
    ("input", b"\x00", former(b"\x51")[:-1]),
    ("input", b"\x01", output(5, b"\x51")[:-1]),
    ("input", b"\x02" + KEY[:-1], DER),
    ("input", b"\x02\x05" + X, DER),
    ("input", b"\x02" + UNCOMPRESSED[:-1], DER),
    ("input", b"\x02\x06" + UNCOMPRESSED[1:], DER),
    ("input", b"\x02" + OFF_CURVE, DER),
    ("input", b"\x02" + UNCOMPRESSED[:-1] + b"\0", DER),
    ("input", b"\x02" + KEY, DER[:-1]),
    ("input", b"\x02" + KEY, DER + b"\0"),
    ("input", b"\x02" + KEY, b"\x31" + DER[1:]),
    ("input", b"\x02" + KEY, DER[:2] + b"\x03" + DER[3:]),
    ("input", b"\x02" + KEY, DER[:3] + b"\x21" + DER[4:]),
    ("input", b"\x02" + KEY, bytes.fromhex("300602018102010101")),
    ("input", b"\x02" + KEY, bytes.fromhex("3007020200010201010100")[:-1]),
    ("input", b"\x02" + KEY, bytes.fromhex("3006020002020101") + b"\x01"),
    ("input", b"\x02" + KEY, bytes.fromhex("30080201010201010000") + b"\x01"),
    ("input", b"\x02" + KEY, bytes.fromhex("3005020101020001")),
    ("input", b"\x03", b"\x83"),
    ("input", b"\x06" + KEY, b""),
    ("input", b"\x06" + KEY, b"\0" * 5),
    ("input", b"\x08", b"\x02\x01a"),
    ("input", b"\x0a" + b"\0" * 32, b""),
    ("input", b"\x13", b"\0" * 66),
    ("input", b"\x14" + X, b"\0" * 64),
    ("input", b"\x14" + OFF_CURVE[1:] + b"\0" * 32, b"\0" * 64),
    ("input", b"\x15", b"\xc0"),
    ("input", b"\x15\xc0" + X[:-1], b"\xc0"),
    ("input", b"\x15\xc0" + X + b"\0" * 32 * 129, b"\xc0"),
    ("input", b"\x15\xc0" + X, b""),
    ("input", b"\x16" + X, b"\x02" + b"\0" * 32 + PATH),
    ("input", b"\x16" + X, b"\x00"),
    ("input", b"\x17", X + b"\0"),
    ("input", b"\x18", b"\0" * 31),
    ("input", b"\x1a" + KEY, b""),
    ("input", b"\x1a" + KEY, KEY[:-1]),
    ("input", b"\x1a" + KEY, OFF_CURVE),
    ("input", b"\x1b" + KEY, b"\0" * 66),
    ("input", b"\x1b" + KEY + OTHER, b"\0" * 65),
    ("input", b"\x1b" + OFF_CURVE + OTHER, b"\0" * 66),
    ("input", b"\x1c" + KEY + OFF_CURVE, b"\0" * 32),
    ("output", b"\x05", X[:-1]),
    ("output", b"\x06", b""),
    ("output", b"\x06", b"\x01\xc0\x00"),
    ("output", b"\x06", b"\x00\xc0\x00" * 2),
    ("output", b"\x06", b"\x01\xc0\x00" * 3),
    ("output", b"\x06", b"\x02\xc0\x00\x01\xc0\x00\x02\xc0\x00"),
    ("output", b"\x06", b"\x00\xc1\x00"),
    ("output", b"\x06", b"\x00\xc0"),
    ("output", b"\x06", b"\x00\xc0\x01"),
    ("output", b"\x06", b"\x81\xc0\x00" * 2),
]


def with_field(where: str, key: bytes, value: bytes) -> bytes:
    draft = honest("p2tr", "secure with fee").draft
    pairs = {"global": draft.fields, "input": draft.spends[1].fields, "output": draft.pays[0].fields}[where]
    pairs[:] = [*(pair for pair in pairs if pair[0] != key), (key, value)]
    return draft.encode()


@pytest.mark.parametrize(("where", "key", "value"), GOOD)
def test_a_well_formed_field_is_kept(where: str, key: bytes, value: bytes) -> None:
    raw = with_field(where, key, value)
    assert encode(decode(raw)) == raw


@pytest.mark.parametrize(("where", "key", "value"), BAD)
def test_a_misshapen_field_is_refused(where: str, key: bytes, value: bytes) -> None:
    with pytest.raises(WireError):
        decode(with_field(where, key, value))


BARE = [kind for kind in fields.INPUT if kind in (0, 1, 3, 4, 5, 7, 8, 9, 0x13, 0x17, 0x18)]


@pytest.mark.parametrize("kind", BARE)
def test_a_key_that_is_to_be_bare_has_nothing_after_its_type(kind: int) -> None:
    value = next(value for where, key, value in GOOD if where == "input" and key == bytes([kind]))
    with pytest.raises(WireError, match=f"type {kind} in the input map: its key has bytes after the type"):
        decode(with_field("input", bytes([kind, 0]), value))


def v2(*top: tuple[bytes, bytes], ins: int = 1, **more: list[tuple[bytes, bytes]]) -> bytes:
    """Makes a version 2 PSBT of `ins` inputs; `more` adds fields to input0, input1 and output, b"" drops one."""
    maps = [[(b"\xfb", b"\2\0\0\0"), (b"\x02", b"\2\0\0\0"), (b"\x04", size(ins)), (b"\x05", b"\x01"), *top]]
    for n in range(ins):
        maps.append([(b"\x0e", bytes([n]) * 32), (b"\x0f", struct.pack("<I", n)), *more.get(f"input{n}", [])])
    maps.append([(b"\x03", struct.pack("<Q", 7)), (b"\x04", b"\x51"), *more.get("output", [])])
    return b"psbt\xff" + b"".join(b"".join(with_size(k) + with_size(v) for k, v in pairs) + b"\0" for pairs in maps)


def test_version_2_gives_its_transaction() -> None:
    raw = v2(ins=2, input1=[(b"\x10", b"\x05\0\0\0")])
    psbt = decode(raw)
    assert encode(psbt) == raw
    assert psbt.transaction.encode() == decode_unsigned(psbt.transaction.encode()).encode()
    assert [item.outpoint for item in psbt.transaction.inputs] == [Outpoint(bytes(32), 0), Outpoint(b"\x01" * 32, 1)]
    assert [item.sequence for item in psbt.transaction.inputs] == [0xFFFFFFFF, 5]
    assert psbt.transaction.outputs[0] == (7, b"\x51")
    assert (psbt.transaction.version, psbt.transaction.locktime) == (2, 0)


HEIGHT, TIME = struct.pack("<I", 800_000), struct.pack("<I", 1_700_000_000)


def test_version_2_finds_the_locktime_that_all_inputs_can_wait_for() -> None:
    later = struct.pack("<I", 800_001)
    assert decode(v2((b"\x03", HEIGHT))).transaction.locktime == 800_000
    assert decode(v2((b"\x03", TIME), input0=[(b"\x12", HEIGHT)])).transaction.locktime == 800_000
    two = v2(ins=2, input0=[(b"\x12", HEIGHT), (b"\x11", TIME)], input1=[(b"\x12", later)])
    assert decode(two).transaction.locktime == 800_001
    times = v2(ins=2, input0=[(b"\x12", HEIGHT), (b"\x11", TIME)], input1=[(b"\x11", TIME)])
    assert decode(times).transaction.locktime == 1_700_000_000
    with pytest.raises(WireError, match="height"):
        decode(v2(ins=2, input0=[(b"\x12", HEIGHT)], input1=[(b"\x11", TIME)]))


@pytest.mark.parametrize("missing", [b"\x02\x02\0\0\0", b"\x0e" + bytes(32), b"\x0f" + bytes(4), b"\x04\x51"])
def test_version_2_without_a_field_it_needs(missing: bytes) -> None:
    key, value = missing[:1], missing[1:]
    whole = with_size(key) + with_size(b"\2\0\0\0" if key == b"\x02" else value)
    raw = v2()
    assert raw.count(whole) == 1
    with pytest.raises(WireError, match="without the field"):
        decode(raw.replace(whole, b""))


@pytest.mark.parametrize("count", [b"\x01\x04\x01\x01", b"\x01\x05\x01\x01"])
def test_version_2_must_count(count: bytes) -> None:
    raw = v2()
    with pytest.raises(WireError, match="count"):
        decode(raw.replace(count, b""))
    for lie in (b"\x00", b"\x02", b"\xfc"):
        with pytest.raises(WireError):
            decode(raw.replace(count, count[:3] + lie))
    with pytest.raises(WireError):
        decode(raw.replace(count, count[:2] + b"\x09" + b"\xff" * 9))
    with pytest.raises(WireError):
        decode(raw.replace(count, count[:2] + b"\x02\x01\x01"))


@pytest.mark.parametrize("wrong", [(b"\x12", bytes(4)), (b"\x12", TIME), (b"\x11", HEIGHT), (b"\x11", b"\0")])
def test_version_2_locktimes_of_the_wrong_unit(wrong: tuple[bytes, bytes]) -> None:
    with pytest.raises(WireError):
        decode(v2(input0=[wrong]))


def test_the_fields_of_one_version_are_not_in_the_other() -> None:
    with pytest.raises(WireError, match="other PSBT version"):
        decode(v2((b"\x00", former(b"\x51", witness=False))))
    for where, key, value in (
        ("global", b"\x02", b"\2\0\0\0"),
        ("input", b"\x0e", bytes(32)),
        ("output", b"\x03", bytes(8)),
    ):
        with pytest.raises(WireError, match="other PSBT version"):
            decode(with_field(where, key, value))
    with pytest.raises(WireError, match="version 1"):
        decode(with_field("global", b"\xfb", b"\1\0\0\0"))


def test_base64_in_its_one_way_of_writing() -> None:
    raw = honest().draft.encode() + b""
    text = base64.b64encode(raw).decode()
    assert encode(decode_base64(text)) == raw
    assert from_base64("QQ==") == b"A"
    for wrong in (text[:-1], text + "=", " " + text, text + "\n", text.replace("A", "-", 1), "QR==", "QQ", "é"):
        with pytest.raises(WireError, match="base64"):
            from_base64(wrong)


def test_known_fields_are_kept_and_others_dropped() -> None:
    draft = honest("p2tr", "secure with fee").draft
    known = draft.encode()
    for pairs in (draft.fields, draft.spends[0].fields, draft.spends[1].fields, draft.pays[1].fields):
        pairs += [(b"\xfc\x01a\x01", b"b"), (b"\x70", b""), (b"\xfd\x00\x01" + b"k", b"v")]
    assert draft.encode() != known
    assert encode(without_unknown(decode(draft.encode()))) == known


def test_types_of_keys() -> None:
    assert key_type(b"\x03") == 3
    assert key_type(b"\xfd\x00\x01rest") == 256
    with pytest.raises(WireError):
        key_type(b"\xfd\x03\x00")


@given(st.integers(0, 2**64 - 1))
def test_compact_sizes_have_one_way_of_writing(value: int) -> None:
    written = compact(value)
    assert written == size(value)
    reader = Reader(written)
    assert reader.compact() == value
    assert reader.at_end()


@pytest.mark.parametrize(
    "padded", ["fd0000", "fdfc00", "fe00000000", "feffff0000", "ff0000000000000000", "ffffffffff00000000"]
)
def test_a_padded_compact_size_is_an_error(padded: str) -> None:
    with pytest.raises(WireError, match="longer than it needs"):
        Reader(bytes.fromhex(padded)).compact()


@given(st.binary(max_size=300))
def test_sized_bytes_are_read_back(data: bytes) -> None:
    reader = Reader(sized(data) + b"x")
    assert reader.sized() == data
    assert reader.rest() == b"x"
    reader.end()


@given(st.binary(max_size=400))
def test_noise_raises_nothing_but_wire_errors(noise: bytes) -> None:
    for read in (decode, decode_network, decode_unsigned, decode_output):
        for raw in (noise, b"psbt\xff" + noise, b"\2\0\0\0\0\1" + noise):
            with contextlib.suppress(WireError):
                read(raw)


def test_outpoints_as_indexers_write_them() -> None:
    text = "ab" + "00" * 30 + "cd:7"
    outpoint = Outpoint.parse(text)
    assert outpoint == Outpoint(b"\xcd" + bytes(30) + b"\xab", 7)
    assert str(outpoint) == text
    assert Outpoint.parse("0" * 64 + ":4294967295").vout == 0xFFFFFFFF
    wrong = ("", ":", "0" * 64, "0" * 64 + ":", "0" * 63 + ":0", "A" * 64 + ":0", "0" * 64 + ":-1", "0" * 64 + ":01")
    for bad in (*wrong, "0" * 64 + ":4294967296", "0" * 64 + ":" + "9" * 99, "0" * 64 + ":²", "0" * 64 + ":1:2"):
        with pytest.raises(WireError, match="outpoint"):
            Outpoint.parse(bad)


def test_network_transactions() -> None:
    paid = b"\x00\x14" + bytes(20)
    with_witness, without = former(paid), former(paid, witness=False)
    assert decode_network(with_witness) == decode_network(without) == decode_unsigned(without)
    assert decode_network(with_witness).encode() == without
    bare = without[:4] + b"\x00\x01" + without[4:-4] + b"\x00" + without[-4:]
    with pytest.raises(WireError, match="has none"):
        decode_network(bare)
    with pytest.raises(WireError, match="without inputs"):
        decode_network(b"\2\0\0\0\0\0\0\0\0\0")
    with pytest.raises(WireError, match="left over"):
        decode_network(with_witness + b"\0")


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
