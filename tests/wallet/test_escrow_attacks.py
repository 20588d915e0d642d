"""Dishonest listings in escrow are refused, each with the tag of the rule that it breaks; harmless ones are signed."""

from __future__ import annotations

from types import ModuleType

import pytest
from embit.ec import PublicKey

from tests.wallet.attacks.attack import Attack
from tests.wallet.attacks.escrow_attacks import ATTACKS, HARMLESS
from tests.wallet.escrows import OURS, VAULT_SCRIPT, Case
from tests.wallet.listings import PAYOUT_SCRIPT, PRICE, STRANGER, VENUE
from tests.wallet.psbt_oracle import parse
from tests.wallet.test_psbt_sign import is_valid
from wallet.protocol import PolicyRefused
from wallet.psbt.sighash import DEFAULT, taproot_digest
from wallet.psbt.sign import SigningError
from wallet.withdrawal.sign import with_witnesses


def test_there_are_many_attacks_and_each_has_a_name_of_its_own() -> None:
    assert len({attack.name for attack in ATTACKS + HARMLESS}) == len(ATTACKS + HARMLESS)
    assert len(ATTACKS) >= 150


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_refused(attack: Attack) -> None:
    for case in attack.cases():
        with pytest.raises(PolicyRefused) as caught:
            case.sign()
        assert (case.form, caught.value.tag) == (case.form, attack.tag), str(caught.value)


@pytest.mark.parametrize("attack", HARMLESS, ids=lambda attack: attack.name)
def test_what_loses_nothing_is_signed_and_holds(engine: ModuleType, attack: Attack) -> None:
    for case in attack.cases():
        assert_sold_in_full(engine, case)


def assert_sold_in_full(engine: ModuleType, case: Case) -> None:
    approved, answers = case.check(), case.sign()
    assert (approved.payout.script, approved.held.script) == (PAYOUT_SCRIPT, case.tree.script)
    assert approved.payout.value >= PRICE - PRICE * case.intent.seller_fee_ppm // 1_000_000
    sale, transfer, *recovery = (dict(parse(answer).maps[1]) for answer in answers)

    spent, transaction = approved.transfer.spent, approved.transfer.psbt.transaction
    raw = with_witnesses(transaction, [[transfer[b"\x13"]], *[[]] * (len(spent) - 1)])
    assert is_valid(engine, raw, 0, list(spent))
    leaf = approved.escrow.sale
    theirs = VENUE.schnorr_sign(taproot_digest(approved.sale.transaction, 0, (approved.held,), DEFAULT, leaf.hash))
    stack = [theirs.serialize(), sale[b"\x14" + OURS + leaf.hash], leaf.script, leaf.control_block]
    assert is_valid(engine, with_witnesses(approved.sale.transaction, [stack]), 0, [approved.held])
    assert len(recovery) == (approved.recovery is not None)
    if approved.recovery is not None:
        assert [output.script for output in approved.recovery.transaction.outputs] == [VAULT_SCRIPT]
        raw = with_witnesses(approved.recovery.transaction, [[recovery[0][b"\x13"]]])
        assert is_valid(engine, raw, 0, [approved.held])


def test_the_same_drafts_give_the_same_bytes_and_unknown_fields_are_not_handed_back() -> None:
    for case in HARMLESS[0].cases():
        for draft in (case.transfer, case.sale, case.recovery):
            if draft is not None:
                draft.spends[0].put(b"\xf0", b"tell me")
        answers = case.sign()
        assert answers == case.copy().sign()
        assert not any(b"tell me" in answer for answer in answers)


def test_another_key_than_the_owners_signs_nothing() -> None:
    for case in HARMLESS[0].cases():
        case.key = STRANGER
        with pytest.raises(SigningError):
            case.sign()


def test_a_signature_that_does_not_verify_is_not_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PublicKey, "schnorr_verify", lambda self, signature, message: False)
    with pytest.raises(RuntimeError, match="nothing is handed out"):
        HARMLESS[0].cases()[0].sign()
