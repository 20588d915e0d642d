"""Our signatures, judged by another engine: btclib runs the script as consensus does."""

from __future__ import annotations

import struct
from types import ModuleType
from typing import Any

import pytest
from embit.ec import PrivateKey

from tests.wallet import listings
from tests.wallet import listings as ls
from wallet.protocol import PolicyRefused
from wallet.psbt.decode import decode
from wallet.psbt.script import OwnKind, own_script
from wallet.psbt.sign import ALLOWED, SigningError, sign_input
from wallet.psbt.transaction import Outpoint, Transaction, TxInput, TxOutput

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
