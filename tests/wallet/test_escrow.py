"""Escrows rebuilt from our own key: as written down here, as another program has them, and as an engine spends them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from embit.ec import PrivateKey, PublicKey

from tests.wallet.attacks.attack import Attack
from tests.wallet.attacks.escrow_attacks import ATTACKS, HARMLESS
from tests.wallet.escrows import FORMS, OURS, TERMS, THEIRS, VAULT_SCRIPT, Case, honest, tree_of
from tests.wallet.listings import PAYOUT_SCRIPT, PRICE, STRANGER, VAULT, VENUE, key
from tests.wallet.psbt_oracle import parse
from tests.wallet.test_psbt_sign import is_valid
from wallet.protocol import PolicyRefused
from wallet.psbt.script import RECOVERY_BLOCKS, Escrow, escrow_of
from wallet.psbt.sign import SigningError, open_escrow
from wallet.psbt.transaction import DEFAULT, Transaction, TxInput, TxOutput, taproot_digest
from wallet.signer.withdrawals import with_witnesses
from wallet.terms import ESCROW_TERMS, EscrowForm

each_form = pytest.mark.parametrize("form", FORMS)

# Made here, because we know of no vectors that a venue publishes: `tree_of` is the second opinion.
# Of `VAULT` and `VENUE`: script, sale leaf with its control block, and the leaf that brings the item back with its own.
VECTORS: dict[EscrowForm, tuple[str, ...]] = {
    "ordnet": (
        "5120425b5ca7501099755b245c348b5eff079e7928805b14e02709742b08f67b9a3b",
        "20363210a3f359df7d93d85648150fae3b12f290ec5c8a0ca0afee9e2d4c0c8354ac2016ea11cbcee45bfe4d096d9e1e9e48"
        "5fe5da2557e632d948d2290036567b280aba529c",
        "c0363210a3f359df7d93d85648150fae3b12f290ec5c8a0ca0afee9e2d4c0c8354",
    ),
    "ordinalswallet": (
        "5120899f79bb15006bb0b7ce9bd5ee918691c6d51f20d5abfd803c4d2fa212b63f07",
        "20363210a3f359df7d93d85648150fae3b12f290ec5c8a0ca0afee9e2d4c0c8354ac2016ea11cbcee45bfe4d096d9e1e9e48"
        "5fe5da2557e632d948d2290036567b280aba529c",
        "c050929b74c1a04954b78b4b6035e97a5e078a5a0f28ec96d547bfee9ace803ac05e7e3763e35229ffc00e5fdd8ddf0119d2"
        "033e931fd7129bbfb79e49dd1569e2",
        "029000b27520363210a3f359df7d93d85648150fae3b12f290ec5c8a0ca0afee9e2d4c0c8354ac",
        "c050929b74c1a04954b78b4b6035e97a5e078a5a0f28ec96d547bfee9ace803ac06eee66ef74b08c5d71c2507b19cfc357c6"
        "48c7e071fc7bb70904ed383593b9cf",
    ),
}


def parts(escrow: Escrow) -> tuple[str, ...]:
    leaves = [leaf for leaf in (escrow.sale, escrow.recovery) if leaf is not None]
    found = [escrow.script, *(part for leaf in leaves for part in (leaf.script, leaf.control_block))]
    return tuple(part.hex() for part in found)


@each_form
def test_the_escrow_of_our_key_is_this_one(form: EscrowForm) -> None:
    assert parts(escrow_of(VAULT.get_public_key().sec(), TERMS[form])) == VECTORS[form]


@each_form
def test_escrows_are_those_of_other_arithmetic_whatever_the_keys_parity(form: EscrowForm) -> None:
    parities = set()
    for number in range(24):
        ours = key(f"key {number}").get_public_key()
        escrow, tree = escrow_of(ours.sec(), TERMS[form]), tree_of(form, ours.xonly())
        leaves = [escrow.sale, *([escrow.recovery] if escrow.recovery else [])]
        assert (escrow.script, escrow.internal_key, escrow.merkle_root) == (tree.script, tree.internal, tree.root)
        assert [(leaf.script, leaf.control_block) for leaf in leaves] == [
            (script, tree.block(at)) for at, script in enumerate(tree.leaves)
        ]
        parities.add((ours.sec()[0], escrow.sale.control_block[0]))
    assert parities == {(parity, block) for parity in (2, 3) for block in (0xC0, 0xC1)}


def test_only_ordinals_wallets_keeps_an_item() -> None:
    assert {form: terms.lock_blocks for form, terms in TERMS.items()} == {"ordnet": 0, "ordinalswallet": 144}
    assert RECOVERY_BLOCKS == 144


def test_the_venues_keys_are_those_that_they_publish() -> None:
    assert {name: (terms.form, terms.cosigner.hex()) for name, terms in ESCROW_TERMS.items() if name in FORMS} == {
        "ordnet": ("ordnet", "d2dc3222298e2a5f4e1c7d702fae2bcf7821cc0a095a478b95c62195b0df7398"),
        "ordinalswallet": ("ordinalswallet", "1d08b7c71f6f1e97a0a4cf005db7a977c85e34652a0c9365842aee25997c7dee"),
    }


def test_less_than_a_taproot_output_may_hold_goes_into_none() -> None:
    assert {terms.least_sats for terms in ESCROW_TERMS.values()} == {330}


def signed(draft: bytes, field: bytes) -> bytes:
    return dict(parse(draft).maps[1])[field]


def sale_signatures(case: Case) -> tuple[Transaction, bytes, bytes]:
    """The sale as it was signed, our signature, and the venue's for the same leaf."""
    approved, tree = case.check(), case.tree
    leaf = approved.escrow.sale.hash
    ours = signed(case.sign()[0], b"\x14" + OURS + leaf)
    digest = taproot_digest(approved.sale.transaction, 0, (approved.held,), DEFAULT, leaf)
    assert tree.script == approved.held.script
    return approved.sale.transaction, ours, VENUE.schnorr_sign(digest).serialize()


@each_form
def test_both_signatures_together_are_a_valid_sale_and_neither_alone(engine: ModuleType, form: EscrowForm) -> None:
    case = honest(form)
    transaction, ours, theirs = sale_signatures(case)
    held, leaf = [case.check().held], [case.tree.leaves[0], case.tree.block(0)]
    assert is_valid(engine, with_witnesses(transaction, [[theirs, ours, *leaf]]), 0, list(held))
    for stack in ([b"", ours], [theirs, b""], [ours, theirs], [ours, ours]):
        assert not is_valid(engine, with_witnesses(transaction, [[*stack, *leaf]]), 0, list(held))


@each_form
def test_the_item_arrives_in_the_escrow(engine: ModuleType, form: EscrowForm) -> None:
    case = honest(form)
    approved = case.check().transfer
    signature = signed(case.sign()[1], b"\x13")
    stacks = [[signature], *[[]] * (len(approved.spent) - 1)]
    raw = with_witnesses(approved.psbt.transaction, stacks)
    assert is_valid(engine, raw, 0, list(approved.spent))


@pytest.mark.parametrize("sighash", [0, 1])
def test_the_recovery_of_ord_net_is_valid_by_our_key_alone(engine: ModuleType, sighash: int) -> None:
    case = honest("ordnet")
    assert case.recovery is not None
    case.recovery.spends[0].put(b"\x03", bytes([sighash, 0, 0, 0]))
    approved = case.check()
    assert approved.recovery is not None
    signature = signed(case.sign()[2], b"\x13")
    assert signature[64:] == (bytes([sighash]) if sighash else b"")
    assert is_valid(engine, with_witnesses(approved.recovery.transaction, [[signature]]), 0, [approved.held])


def back(case: Case, blocks: int, key: PrivateKey) -> tuple[bytes, TxOutput]:
    """The item brought back by the recovery leaf, `blocks` after it came."""
    approved = case.check()
    leaf = approved.escrow.recovery
    assert leaf is not None
    home = TxOutput(approved.held.value - 300, case.owner.public_key)
    transaction = Transaction(2, (TxInput(approved.outpoint, b"", blocks),), (home,), 0)
    digest = taproot_digest(transaction, 0, (approved.held,), DEFAULT, leaf.hash)
    stack = [key.schnorr_sign(digest).serialize(), leaf.script, leaf.control_block]
    return with_witnesses(transaction, [stack]), approved.held


def test_the_recovery_of_ordinals_wallet_is_valid_after_144_blocks_by_our_key_alone(engine: ModuleType) -> None:
    def comes_back(blocks: int, key: PrivateKey = VAULT) -> bool:
        raw, held = back(honest("ordinalswallet"), blocks, key)
        return is_valid(engine, raw, 0, [held])

    assert comes_back(RECOVERY_BLOCKS)
    assert not comes_back(RECOVERY_BLOCKS - 1)
    assert not comes_back(RECOVERY_BLOCKS, VENUE)


@each_form
def test_our_key_opens_our_escrow_and_no_other_key_or_output(form: EscrowForm) -> None:
    approved = honest(form).check()
    transaction = Transaction(2, (TxInput(approved.outpoint, b"", 0xFFFFFFFD),), (approved.payout,), 0)
    assert open_escrow(transaction, 0, [approved.held], approved.escrow, VAULT)
    for stranger, spent in ((key("a stranger"), approved.held), (VAULT, approved.payout)):
        with pytest.raises(SigningError):
            open_escrow(transaction, 0, [spent], approved.escrow, stranger)


def test_the_venue_alone_cannot_take_the_item_by_key_path(engine: ModuleType) -> None:
    for form in FORMS:
        approved: Any = honest(form).check()
        transaction = Transaction(2, (TxInput(approved.outpoint, b"", 0xFFFFFFFF),), (approved.payout,), 0)
        digest = taproot_digest(transaction, 0, (approved.held,), DEFAULT)
        signature = VENUE.taproot_tweak(approved.escrow.merkle_root).schnorr_sign(digest).serialize()
        assert not is_valid(engine, with_witnesses(transaction, [[signature]]), 0, [approved.held])
    assert THEIRS != OURS


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
