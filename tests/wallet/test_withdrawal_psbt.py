"""PSBTs out of a bidding wallet: the honest one is signed, and no other."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence

import pytest
from embit.ec import PrivateKey, PublicKey
from embit.script import Script
from embit.transaction import SIGHASH, Transaction

from tests.wallet import withdrawal_cases as wd
from tests.wallet.attacks.attack import Attack
from tests.wallet.attacks.withdrawal_attacks import ATTACKS, HARMLESS
from tests.wallet.listings import PAYMENT, STRANGER, VENUE, Pay
from tests.wallet.listings import honest as honest_listing
from wallet.protocol import MOST_FEE_PER_KVB, PolicyRefused
from wallet.psbt.decode import decode
from wallet.psbt.sign import SigningError
from wallet.psbt.transaction import compact
from wallet.signer.withdrawals import sign_withdrawal, with_witnesses
from wallet.withdrawal import FEE_SHARE_FLOOR


def test_there_are_many_attacks_and_each_has_a_name_of_its_own() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) >= 80


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_refused(attack: Attack) -> None:
    with pytest.raises(PolicyRefused) as caught:
        attack.cases()[0].sign()
    assert caught.value.tag == attack.tag, str(caught.value)


@pytest.mark.parametrize("change", HARMLESS, ids=lambda change: change.name)
def test_what_decides_nothing_about_where_it_goes_is_signed(change: Attack) -> None:
    [case] = change.cases()
    transaction = decode(case.sign()).transaction
    wallet = case.facts[case.coins[0] if case.coins else str(transaction.inputs[0].outpoint)].script
    assert [output.script for output in transaction.outputs] == [wd.PAYMENT_SCRIPT, wallet]
    assert [output.value for output in transaction.outputs] == [wd.AMOUNT, 2 * wd.COIN - wd.AMOUNT - wd.FEE]


@pytest.mark.parametrize("required", [1, 2, 3])
def test_ours_is_one_of_the_signatures_that_a_wallet_of_three_needs(required: int) -> None:
    wallet = wd.multisig(required, VENUE, PAYMENT, STRANGER)
    case = wd.honest(wallet)
    signing = {1: [PAYMENT], 2: [PAYMENT, STRANGER], 3: [VENUE, PAYMENT, STRANGER]}[required]
    raw = completed(case, wallet, signing)
    assert wd.runs(raw, [(wd.COIN, wd.p2wsh(wallet))] * 2)


LEAVES = {
    "two of two": (wd.Leaf(), [VENUE, PAYMENT]),
    "alone in its tree": (wd.Leaf(beside=()), [VENUE, PAYMENT]),
    "deep in its tree": (wd.Leaf(beside=(b"\x22" * 32, b"\xee" * 32, b"\x01" * 32)), [VENUE, PAYMENT]),
    "three of three": (wd.Leaf(wd.both_must_sign(PAYMENT, STRANGER, VENUE)), [VENUE, STRANGER, PAYMENT]),
    "ours alone": (wd.Leaf(b"\x20" + wd.PUBKEY[1:] + b"\xac"), [PAYMENT]),
    "another internal key": (wd.Leaf(internal=STRANGER), [VENUE, PAYMENT]),
}


@pytest.mark.parametrize("sighash", [None, 0, 1])
@pytest.mark.parametrize("name", LEAVES)
def test_a_leaf_is_signed_so_that_it_holds_with_the_others(name: str, sighash: int | None) -> None:
    leaf, keys = LEAVES[name]
    case = leaf.honest()
    for spend in case.draft.spends:
        if sighash is not None:
            spend.put(b"\x03", struct.pack("<I", sighash))
    raw = leaf_completed(case, leaf, keys)
    assert wd.runs(raw, [(wd.COIN, leaf.output[0])] * 2)
    assert not wd.runs(raw, [(wd.COIN, leaf.output[0]), (wd.COIN + 1, leaf.output[0])]), "all amounts are covered"


def leaf_completed(case: wd.Case, leaf: wd.Leaf, keys: list[PrivateKey]) -> bytes:
    """Returns the transaction with the others' signatures by embit, in the order in which the script takes them."""
    psbt = decode(case.sign())
    tx = Transaction.parse(psbt.transaction.encode())
    scripts, stacks = [Script(leaf.output[0])] * 2, []
    for at, fields in enumerate(psbt.inputs):
        digest = tx.sighash_taproot(
            at, scripts, [wd.COIN] * 2, ext_flag=1, script=Script(leaf.script), leaf_version=0xC0
        )
        signatures = [
            fields[b"\x14" + wd.PUBKEY[1:] + leaf.hash] if key is PAYMENT else key.schnorr_sign(digest).serialize()
            for key in keys
        ]
        stacks.append([*signatures, leaf.script, leaf.control_block])
    return with_witnesses(psbt.transaction, stacks)


def test_only_our_own_half_of_a_leaf_is_handed_out() -> None:
    for fields in decode(wd.Leaf().honest().sign()).inputs:
        assert [key for key in fields if key[:1] in (b"\x13", b"\x14")] == [b"\x14" + wd.PUBKEY[1:] + wd.Leaf().hash]


def completed(case: wd.Case, wallet: bytes = wd.WALLET, keys: Sequence[PrivateKey] = (PAYMENT, VENUE)) -> bytes:
    """Returns the transaction with the venue's half added, by embit, and ours as it was signed."""
    psbt = decode(case.sign())
    tx = Transaction.parse(psbt.transaction.encode())
    stacks = []
    for at, fields in enumerate(psbt.inputs):
        digest = tx.sighash_segwit(at, Script(wallet), wd.COIN, SIGHASH.ALL)
        signatures = [
            fields[compact(0x02) + wd.PUBKEY] if key is PAYMENT else key.sign(digest).serialize() + b"\x01"
            for key in keys
        ]
        stacks.append([b"", *signatures, wallet])
    return with_witnesses(psbt.transaction, stacks)


def test_an_honest_one_is_signed_so_that_it_holds_with_the_venues_half() -> None:
    case = wd.honest()
    approved = case.check()
    assert (approved.sent_sats, approved.fee_sats) == (wd.AMOUNT, wd.FEE)
    assert wd.runs(completed(case), [(wd.COIN, wd.p2wsh(wd.WALLET))] * 2)
    assert not wd.runs(completed(case), [(wd.COIN + 1, wd.p2wsh(wd.WALLET))] * 2), "the engine looks at amounts"


def test_only_our_own_half_is_handed_out() -> None:
    signed = decode(wd.honest().sign())
    for fields in signed.inputs:
        assert [key for key in fields if key[:1] == b"\x02"] == [compact(0x02) + wd.PUBKEY]
        assert fields[compact(0x02) + wd.PUBKEY][-1:] == b"\x01"


def test_the_same_psbt_gives_the_same_bytes() -> None:
    assert wd.honest().sign() == wd.honest().sign()


def test_unknown_fields_are_not_handed_back() -> None:
    case = wd.honest()
    case.draft.fields.append((b"\xfc\x04evil\x00", b"x"))
    case.draft.spends[0].put(b"\xf0", b"x")
    assert b"evil" not in case.sign()


def test_all_of_it_may_go_without_change_and_the_fee_comes_out_of_it() -> None:
    case = wd.honest()
    case.draft.pays = [Pay(2 * wd.COIN - wd.FEE, wd.PAYMENT_SCRIPT)]
    case.amount = 2 * wd.COIN
    assert (case.check().sent_sats, case.check().fee_sats) == (2 * wd.COIN - wd.FEE, wd.FEE)


def test_a_psbt_that_names_no_sighash_asks_for_all() -> None:
    case = wd.honest()
    for spend in case.draft.spends:
        spend.drop(b"\x03")
    assert wd.runs(completed(case), [(wd.COIN, wd.p2wsh(wd.WALLET))] * 2)


@pytest.mark.parametrize("fee", [0, FEE_SHARE_FLOOR - 1, FEE_SHARE_FLOOR])
def test_a_fee_at_its_limit(fee: int) -> None:
    case = wd.honest()
    case.draft.pays = [Pay(2 * wd.COIN - fee, wd.PAYMENT_SCRIPT)]
    case.amount = 2 * wd.COIN
    assert case.check().fee_sats == fee


def test_a_fee_above_its_limit() -> None:
    case = wd.honest()
    case.draft.pays = [Pay(2 * wd.COIN - FEE_SHARE_FLOOR - 1, wd.PAYMENT_SCRIPT)]
    case.amount = 2 * wd.COIN
    with pytest.raises(PolicyRefused, match="fee-share"):
        case.check()


@pytest.mark.parametrize("has_change", [False, True])
@pytest.mark.parametrize("inputs", [1, 2])
def test_fee_rate_above_its_maximum_is_refused(inputs: int, has_change: bool) -> None:
    value, kept, wallet = 2_000_000, 50_000 * has_change, wd.p2wsh(wd.WALLET)
    witness = 1 + (1 + 64) + (1 + len(wd.WALLET))  # the stack's count, one signature, the script, with their lengths
    outputs = [wd.PAYMENT_SCRIPT, wallet][: 1 + has_change]
    size = 4 + 1 + inputs * (32 + 4 + 1 + 4) + 1 + sum(8 + 1 + len(script) for script in outputs) + 4
    vsize = -(-(4 * size + 2 + inputs * witness) // 4)
    most = MOST_FEE_PER_KVB * vsize // 1000

    def case(fee: int) -> wd.Case:
        made = wd.honest()
        made.draft.spends = [wd.wallet_spend(at, value=value) for at in range(inputs)]
        made.facts = {each: wd.facts_of(each, value, wallet) for each in wd.outpoints(made.draft)}
        made.amount = inputs * value - kept
        made.draft.pays = [Pay(made.amount - fee, wd.PAYMENT_SCRIPT), Pay(kept, wallet)][: 1 + has_change]
        return made

    assert case(most).check().fee_sats == most
    with pytest.raises(PolicyRefused, match="fee-rate"):
        case(most + 1).check()


def test_another_key_signs_nothing() -> None:
    with pytest.raises(SigningError):
        sign_withdrawal(wd.honest().check(), STRANGER)


@pytest.mark.parametrize("method", ["verify", "schnorr_verify"])
def test_a_signature_that_does_not_verify_is_not_handed_out(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = wd.honest() if method == "verify" else wd.Leaf().honest()
    approved = case.check()
    monkeypatch.setattr(PublicKey, method, lambda *_: False)
    with pytest.raises(RuntimeError, match="does not verify"):
        sign_withdrawal(approved, case.key)


def test_a_listing_is_no_withdrawal() -> None:
    case = wd.honest()
    case.draft = honest_listing("p2wpkh").draft
    with pytest.raises(PolicyRefused):
        case.sign()


@pytest.mark.slow
def test_nothing_is_signed_where_two_bytes_differ_anywhere() -> None:
    """Every byte flipped: refused, or what is signed pays and spends the same."""
    raw = wd.honest().draft.encode()
    right = decode(base64.b64decode(base64.b64encode(raw)))
    signed = 0
    for at in range(len(raw)):
        case = wd.honest()
        case.coins = tuple(str(item.outpoint) for item in right.transaction.inputs)
        case.draft.raw = raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]
        try:
            found = decode(case.sign())
        except PolicyRefused:
            continue
        signed += 1
        assert [item.outpoint for item in found.transaction.inputs] == [i.outpoint for i in right.transaction.inputs]
        assert {o.script for o in found.transaction.outputs} <= {wd.PAYMENT_SCRIPT, wd.p2wsh(wd.WALLET)}
        paid = sum(o.value for o in found.transaction.outputs if o.script == wd.PAYMENT_SCRIPT)
        assert wd.AMOUNT - FEE_SHARE_FLOOR <= paid <= wd.AMOUNT
    # What is left are bits of versions, of amounts, and of former transactions' witnesses, which nothing covers.
    assert signed < len(raw) // 4
