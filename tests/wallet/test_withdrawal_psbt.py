"""PSBTs out of a bidding wallet: the honest one is signed, and no other."""

from __future__ import annotations

import base64

import pytest
from embit.script import Script
from embit.transaction import SIGHASH, Transaction

from tests.wallet.listings import STRANGER, VENUE, Pay
from tests.wallet.listings import honest as honest_listing
from tests.wallet.withdrawal_attacks import ATTACKS, Attack
from tests.wallet.withdrawal_cases import AMOUNT, COIN, FEE, PAYMENT_SCRIPT, PUBKEY, WALLET, Case, honest, p2wsh, runs
from wallet.policy import PolicyRefused
from wallet.psbt.decode import decode
from wallet.psbt.sign import SigningError
from wallet.psbt.transaction import compact
from wallet.withdrawal.rules import FEE_SHARE_FLOOR
from wallet.withdrawal.sign import sign_withdrawal, with_witnesses


def test_there_are_many_attacks_and_each_has_a_name_of_its_own() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) >= 80


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_refused(attack: Attack) -> None:
    with pytest.raises(PolicyRefused) as caught:
        attack.make().sign()
    assert caught.value.tag == attack.tag, str(caught.value)


def completed(case: Case) -> bytes:
    """Returns the transaction with the venue's half added, by embit, and ours as it was signed."""
    psbt = decode(case.sign())
    tx = Transaction.parse(psbt.transaction.encode())
    stacks = []
    for at, fields in enumerate(psbt.inputs):
        digest = tx.sighash_segwit(at, Script(WALLET), COIN, SIGHASH.ALL)
        theirs = VENUE.sign(digest).serialize() + b"\x01"
        stacks.append([b"", fields[compact(0x02) + PUBKEY], theirs, WALLET])
    return with_witnesses(psbt.transaction, stacks)


def test_an_honest_one_is_signed_so_that_it_holds_with_the_venues_half() -> None:
    case = honest()
    approved = case.check()
    assert (approved.sent_sats, approved.fee_sats) == (AMOUNT, FEE)
    assert runs(completed(case), [(COIN, p2wsh(WALLET))] * 2)
    assert not runs(completed(case), [(COIN + 1, p2wsh(WALLET))] * 2), "the engine looks at amounts"


def test_only_our_own_half_is_handed_out() -> None:
    signed = decode(honest().sign())
    for fields in signed.inputs:
        assert [key for key in fields if key[:1] == b"\x02"] == [compact(0x02) + PUBKEY]
        assert fields[compact(0x02) + PUBKEY][-1:] == b"\x01"


def test_the_same_psbt_gives_the_same_bytes() -> None:
    assert honest().sign() == honest().sign()


def test_unknown_fields_are_not_handed_back() -> None:
    case = honest()
    case.draft.fields.append((b"\xfc\x04evil\x00", b"x"))
    case.draft.spends[0].put(b"\xf0", b"x")
    assert b"evil" not in case.sign()


def test_all_of_it_may_go_without_change_and_the_fee_comes_out_of_it() -> None:
    case = honest()
    case.draft.pays = [Pay(2 * COIN - FEE, PAYMENT_SCRIPT)]
    case.amount = 2 * COIN
    assert (case.check().sent_sats, case.check().fee_sats) == (2 * COIN - FEE, FEE)


def test_a_psbt_that_names_no_sighash_asks_for_all() -> None:
    case = honest()
    for spend in case.draft.spends:
        spend.drop(b"\x03")
    assert runs(completed(case), [(COIN, p2wsh(WALLET))] * 2)


@pytest.mark.parametrize("fee", [0, FEE_SHARE_FLOOR - 1, FEE_SHARE_FLOOR])
def test_a_fee_at_its_limit(fee: int) -> None:
    case = honest()
    case.draft.pays = [Pay(2 * COIN - fee, PAYMENT_SCRIPT)]
    case.amount = 2 * COIN
    assert case.check().fee_sats == fee


def test_a_fee_above_its_limit() -> None:
    case = honest()
    case.draft.pays = [Pay(2 * COIN - FEE_SHARE_FLOOR - 1, PAYMENT_SCRIPT)]
    case.amount = 2 * COIN
    with pytest.raises(PolicyRefused, match="fee-share"):
        case.check()


def test_another_key_signs_nothing() -> None:
    with pytest.raises(SigningError):
        sign_withdrawal(honest().check(), STRANGER)


def test_a_listing_is_no_withdrawal() -> None:
    case = honest()
    case.draft = honest_listing("p2wpkh").draft
    with pytest.raises(PolicyRefused):
        case.sign()


def test_nothing_is_signed_where_two_bytes_differ_anywhere() -> None:
    """Every byte flipped: refused, or what is signed pays and spends the same."""
    raw = honest().draft.encode()
    right = decode(base64.b64decode(base64.b64encode(raw)))
    signed = 0
    for at in range(len(raw)):
        case = honest()
        case.coins = tuple(str(item.outpoint) for item in right.transaction.inputs)
        case.draft.raw = raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]
        try:
            found = decode(case.sign())
        except PolicyRefused:
            continue
        signed += 1
        assert [item.outpoint for item in found.transaction.inputs] == [i.outpoint for i in right.transaction.inputs]
        assert {o.script for o in found.transaction.outputs} <= {PAYMENT_SCRIPT, p2wsh(WALLET)}
        paid = sum(o.value for o in found.transaction.outputs if o.script == PAYMENT_SCRIPT)
        assert AMOUNT - FEE_SHARE_FLOOR <= paid <= AMOUNT
    # What is left are bits of versions, of amounts, and of former transactions' witnesses, which nothing covers.
    assert signed < len(raw) // 4
