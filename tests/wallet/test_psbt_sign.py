"""The digests that are signed, and our signatures as btclib's engine judges them."""

from __future__ import annotations

import struct
from types import ModuleType
from typing import Any

import pytest
from embit import script
from embit.ec import PrivateKey
from embit.transaction import Transaction as OtherTransaction
from embit.util import secp256k1

from tests.vectors import load
from tests.wallet import listings
from tests.wallet import listings as ls
from wallet.protocol import PolicyRefused
from wallet.psbt.decode import decode
from wallet.psbt.script import OwnKind, leaf_hash, output_script, own_script
from wallet.psbt.sign import ALLOWED, SigningError, sign_input
from wallet.psbt.transaction import (
    Outpoint,
    Transaction,
    TxInput,
    TxOutput,
    decode_network,
    decode_unsigned,
    segwit_digest,
    taproot_digest,
)

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


TYPES = [(kind, sighash) for kind in ls.KINDS for sighash in sorted(ALLOWED[kind])]
every_type = pytest.mark.parametrize(("kind", "sighash"), TYPES)
every_kind = pytest.mark.parametrize("kind", ls.KINDS)

OTHERS = (TxOutput(70_000, ls.STRANGER_SCRIPT), TxOutput(80_000, ls.PAYOUT_SCRIPT))


def transaction_of(index: int) -> Transaction:
    """Three inputs, ours at `index`, and three outputs."""
    inputs = [TxInput(Outpoint(bytes([n + 1]) * 32, n), b"", 0xFFFFFFFD) for n in range(3)]
    outputs = [TxOutput(50_000 + n, ls.STRANGER_SCRIPT) for n in range(3)]
    outputs[index] = TxOutput(60_000, ls.PAYOUT_SCRIPT)
    return Transaction(2, tuple(inputs), tuple(outputs), 0)


def spent_by(kind: OwnKind, index: int) -> list[TxOutput | None]:
    own = TxOutput(ls.POSTAGE, ls.script_by(kind, ls.VAULT))
    return [*OTHERS[:index], own, *OTHERS[index:]]


def network(transaction: Transaction, index: int, kind: OwnKind, signature: bytes, key: PrivateKey = ls.VAULT) -> bytes:
    """With the witness, and for the nested kind the script_sig, that only our input has."""
    public_key = key.get_public_key().sec()
    items = [signature] if kind == "p2tr" else [signature, public_key]
    parts = [struct.pack("<I", transaction.version), b"\0\x01", ls.size(len(transaction.inputs))]
    for at, item in enumerate(transaction.inputs):
        nested = ls.with_size(ls.script_by("p2wpkh", key)) if kind == "p2sh-p2wpkh" and at == index else b""
        parts += [item.outpoint.txid, struct.pack("<I", item.outpoint.vout), ls.with_size(nested)]
        parts.append(struct.pack("<I", item.sequence))
    parts.append(ls.size(len(transaction.outputs)))
    parts += [ls.output(paid.value, paid.script) for paid in transaction.outputs]
    stack = ls.size(len(items)) + b"".join(ls.with_size(item) for item in items)
    parts += [stack if at == index else b"\0" for at in range(len(transaction.inputs))]
    return b"".join(parts) + struct.pack("<I", transaction.locktime)


def is_valid(engine: Any, raw: bytes, index: int, spent: list[TxOutput | None]) -> bool:
    from btclib.exceptions import BTClibException
    from btclib.tx.tx import Tx
    from btclib.tx.tx_out import TxOut

    prevouts = [TxOut(item.value, item.script) for item in spent if item is not None]
    assert len(prevouts) == len(spent)
    try:
        engine.verify_input(prevouts, Tx.parse(raw), index)
    except BTClibException:
        return False
    return True


@every_type
@pytest.mark.parametrize("index", [0, 1, 2])
def test_every_type_of_signature_is_valid_to_another_engine(
    engine: ModuleType, kind: OwnKind, sighash: int, index: int
) -> None:
    transaction, spent = transaction_of(index), spent_by(kind, index)
    signature = sign_input(transaction, index, spent, sighash, kind, ls.VAULT)
    assert is_valid(engine, network(transaction, index, kind, signature), index, spent)
    assert signature == sign_input(transaction, index, spent, sighash, kind, ls.VAULT)


@every_type
def test_the_other_engine_refuses_it_once_something_covered_has_changed(
    engine: ModuleType, kind: OwnKind, sighash: int
) -> None:
    transaction, spent = transaction_of(1), spent_by(kind, 1)
    signature = sign_input(transaction, 1, spent, sighash, kind, ls.VAULT)
    inputs, outputs = transaction.inputs, transaction.outputs
    less = TxOutput(outputs[1].value - 1, outputs[1].script)
    changed = {
        "version": Transaction(1, inputs, outputs, 0),
        "locktime": Transaction(2, inputs, outputs, 1),
        "payout": Transaction(2, inputs, (outputs[0], less, outputs[2]), 0),
        "sequence": Transaction(2, (inputs[0], inputs[1]._replace(sequence=0), inputs[2]), outputs, 0),
        "outpoint": Transaction(
            2, (inputs[0], inputs[1]._replace(outpoint=Outpoint(bytes(32), 0)), inputs[2]), outputs, 0
        ),
        "another output": Transaction(2, inputs, (less, *outputs[1:]), 0),
        "another input": Transaction(2, (inputs[0]._replace(outpoint=Outpoint(bytes(32), 0)), *inputs[1:]), outputs, 0),
    }
    still_valid = {
        name for name, other in changed.items() if is_valid(engine, network(other, 1, kind, signature), 1, spent)
    }
    free = {0x83: {"another output", "another input"}, 0x81: {"another input"}}
    assert still_valid == free.get(sighash, set())
    other_amount = [spent[0], TxOutput(ls.POSTAGE + 1, ls.script_by(kind, ls.VAULT)), spent[2]]
    assert not is_valid(engine, network(transaction, 1, kind, signature), 1, other_amount)


@every_kind
@pytest.mark.parametrize("form", ls.FORMS)
def test_a_signed_listing_is_valid_to_another_engine(engine: ModuleType, kind: OwnKind, form: ls.Form) -> None:
    case = ls.honest(kind, form)
    transaction, index = case.check().psbt.transaction, case.check().index
    spent: list[TxOutput | None] = [OTHERS[0]] * len(transaction.inputs)
    spent[index] = TxOutput(ls.POSTAGE, ls.script_by(kind, ls.VAULT))
    assert is_valid(engine, network(transaction, index, kind, signature_in(case)), index, spent)


@every_kind
def test_a_buyer_completes_a_plain_listing_and_cannot_underpay(engine: ModuleType, kind: OwnKind) -> None:
    """The pair goes to the buyer's index 2, as in the method with two dummies."""
    case = ls.honest(kind, "listing")
    signed = case.check().psbt.transaction
    signature = signature_in(case)
    dummies = tuple(TxInput(Outpoint(bytes([n + 1]) * 32, n), b"", 0xFFFFFFFF) for n in range(2))
    to_buyer = tuple(TxOutput(1_200, ls.STRANGER_SCRIPT) for _ in range(2))
    more = (TxOutput(7_000, ls.STRANGER_SCRIPT),)
    spent = [*OTHERS, TxOutput(ls.POSTAGE, ls.script_by(kind, ls.VAULT))]
    bought = Transaction(2, dummies + signed.inputs, to_buyer + signed.outputs + more, 0)
    assert is_valid(engine, network(bought, 2, kind, signature), 2, list(spent))
    less = (signed.outputs[0]._replace(value=signed.outputs[0].value - 1),)
    cheaper = Transaction(2, dummies + signed.inputs, to_buyer + less + more, 0)
    assert not is_valid(engine, network(cheaper, 2, kind, signature), 2, list(spent))


def signature_in(case: ls.Case) -> bytes:
    fields = decode(case.sign()).inputs[case.check().index]
    return fields[b"\x13"] if case.kind == "p2tr" else fields[b"\x02" + ls.VAULT.get_public_key().sec()]


@every_kind
@pytest.mark.parametrize("form", ls.FORMS)
def test_what_goes_back_has_one_signature_more_and_nothing_final(kind: OwnKind, form: ls.Form) -> None:
    case = ls.honest(kind, form)
    asked, given = decode(case.draft.encode()), decode(case.sign())
    index = case.check().index
    assert given.transaction == asked.transaction
    assert given.outputs == asked.outputs
    assert [item for at, item in enumerate(given.inputs) if at != index] == [
        item for at, item in enumerate(asked.inputs) if at != index
    ]
    added = given.inputs[index].items() - asked.inputs[index].items()
    assert [key[0] for key, _ in added] == [0x13 if kind == "p2tr" else 0x02]


def test_unknown_and_proprietary_fields_are_not_handed_back() -> None:
    case = ls.honest("p2tr", "paired at 2")
    extra = [(b"\xfc\x03ord\x01tail", b"x"), (b"\x70", b"unknown"), (b"\xfd\xff\x01", b"far")]
    for fields in (case.draft.fields, case.own.fields, case.draft.spends[0].fields, case.payout.fields):
        fields.extend(extra)
    given = case.sign()
    assert given == ls.honest("p2tr", "paired at 2").sign()


def test_a_nested_listing_goes_back_with_its_redeem_script() -> None:
    case = ls.honest("p2sh-p2wpkh")
    case.own.drop(b"\x04")
    assert decode(case.sign()).inputs[0][b"\x04"] == ls.script_by("p2wpkh", ls.VAULT)


def test_the_same_listing_is_answered_with_the_same_bytes() -> None:
    assert ls.honest().sign() == ls.honest().sign()


@every_kind
def test_another_key_than_the_inputs_signs_nothing(kind: OwnKind) -> None:
    for key in (ls.STRANGER, ls.PAYMENT):
        case = ls.honest(kind)
        case.key = key
        with pytest.raises(SigningError, match="not this input's"):
            case.sign()


@every_kind
@pytest.mark.parametrize("sighash", [0x02, 0x03, 0x80, 0x82, 0x84, 0x183, -1])
def test_no_other_sighash_is_signed(kind: OwnKind, sighash: int) -> None:
    with pytest.raises(SigningError, match="not signed"):
        sign_input(transaction_of(0), 0, spent_by(kind, 0), sighash, kind, ls.VAULT)


@pytest.mark.parametrize("kind", ["p2wpkh", "p2sh-p2wpkh"])
def test_the_default_is_taproots_alone(kind: OwnKind) -> None:
    with pytest.raises(SigningError, match="not signed"):
        sign_input(transaction_of(0), 0, spent_by(kind, 0), 0, kind, ls.VAULT)


@every_kind
def test_an_unknown_output_of_ours_is_not_signed(kind: OwnKind) -> None:
    with pytest.raises(SigningError, match="not this input's"):
        sign_input(transaction_of(0), 0, [None, *OTHERS], 0x81, kind, ls.VAULT)


@every_kind
def test_own_scripts_are_those_of_embit(kind: OwnKind) -> None:
    for key in (ls.VAULT, ls.PAYMENT, ls.STRANGER, listings.ORDINALS):
        assert own_script(kind, key.get_public_key().sec()) == ls.script_by(kind, key)


@every_kind
def test_a_signature_that_came_out_wrong_is_not_handed_out(kind: OwnKind, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a fault in memory: signed is another digest than the one that is verified."""
    right_sign, right_schnorr = PrivateKey.sign, PrivateKey.schnorr_sign

    def flipped(digest: bytes) -> bytes:
        return bytes([digest[0] ^ 1]) + digest[1:]

    monkeypatch.setattr(PrivateKey, "sign", lambda self, digest: right_sign(self, flipped(digest)))
    monkeypatch.setattr(PrivateKey, "schnorr_sign", lambda self, digest: right_schnorr(self, flipped(digest)))
    with pytest.raises(RuntimeError, match="does not verify"):
        ls.honest(kind).sign()


def test_a_wrongly_tweaked_taproot_key_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verified is under the key in the script, so that a signature by the untweaked key does not pass."""
    monkeypatch.setattr(PrivateKey, "taproot_tweak", lambda self, root: self)
    with pytest.raises(RuntimeError, match="does not verify"):
        ls.honest().sign()


def test_refusals_come_before_any_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: Any) -> None:
        raise AssertionError("signed")

    monkeypatch.setattr(PrivateKey, "sign", never)
    monkeypatch.setattr(PrivateKey, "schnorr_sign", never)
    case = ls.honest()
    case.payout.value = ls.PRICE - 1
    with pytest.raises(PolicyRefused):
        case.sign()
