"""Honest funding PSBTs are signed, at every limit, as another engine confirms; slips in the rules are caught."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from tests.shapes import replace
from tests.wallet import offers
from tests.wallet.attacks.attack import Attack
from tests.wallet.attacks.offer_attacks import ATTACKS
from tests.wallet.listings import PAYMENT, STRANGER, TIP, Spend, script_by
from wallet.protocol import PolicyRefused
from wallet.psbt import check_offer
from wallet.psbt.decode import decode
from wallet.psbt.script import read_leaf
from wallet.psbt.sign import SigningError, sign_offer
from wallet.psbt.transaction import TxOutput, WireError


def judged(signed: bytes, values: tuple[int, ...]) -> bool:
    """By btclib's consensus engine, every input of it."""
    engine = pytest.importorskip("btclib.script.engine")
    from btclib.exceptions import BTClibException
    from btclib.tx.tx import Tx
    from btclib.tx.tx_out import TxOut

    try:
        engine.verify_transaction(
            [TxOut(sats, offers.PAYMENT_SCRIPT) for sats in values], Tx.parse(offers.network(signed))
        )
    except BTClibException:
        return False
    return True


@offers.every_form
def test_every_input_is_signed_and_consensus_takes_it(form: offers.Form) -> None:
    for coins in (offers.COINS, (offers.PRICE,), (100_000, 90_000, 80_000)):
        offer = offers.honest(form, coins)
        signed = offer.sign()
        assert signed == offer.sign()
        assert judged(signed, coins)
        assert decode(signed).transaction == decode(offer.draft.encode()).transaction


@offers.every_form
def test_a_signature_is_good_for_nothing_else(form: offers.Form) -> None:
    offer = offers.honest(form)
    signed = offer.sign()
    assert not judged(signed, (offers.COINS[0] + 1, offers.COINS[1]))
    assert not judged(signed, (offers.COINS[0], offers.COINS[1] - 1))
    for script in (offer.escrow.script, offers.PAYMENT_SCRIPT):
        at = signed.index(script)
        assert not judged(signed[:at] + bytes(len(script)) + signed[at + len(script) :], offers.COINS)


def test_what_was_approved_says_what_it_costs() -> None:
    offer = offers.honest()
    approved = offer.check()
    assert (approved.escrow.value, approved.change_sats) == (offers.PRICE, 40_000)
    assert (approved.escrow.script, [spent.value for spent in approved.spent]) == (
        offer.escrow.script,
        list(offers.COINS),
    )


def exactly(offer: offers.Offer) -> None:
    """Coins of just the price need no change."""
    replaced = offers.honest(offer.form, (offers.PRICE - 10_000, 10_000))
    offer.draft, offer.intent, offer.facts = replaced.draft, replaced.intent, replaced.facts
    offer.draft.pays.pop()


def locked_to_the_tip(offer: offers.Offer) -> None:
    offer.draft.locktime = TIP


def of_leaf(**values: Any) -> Callable[[offers.Offer], None]:
    def change(offer: offers.Offer) -> None:
        offer.leaf = replace(offer.leaf, **values)
        offer.fund()

    return change


def in_order(*places: int) -> Callable[[offers.Offer], None]:
    def change(offer: offers.Offer) -> None:
        offer.draft.pays = [offer.draft.pays[at] for at in places]

    return change


def named_all(offer: offers.Offer) -> None:
    for spend in offer.draft.spends:
        spend.put(b"\x03", struct.pack("<I", 1))


def with_formers(offer: offers.Offer) -> None:
    offer.draft.spends = [offers.coin(sats, whole=True) for sats in offers.COINS]


def formers_alone(offer: offers.Offer) -> None:
    with_formers(offer)
    for spend in offer.draft.spends:
        spend.drop(b"\x01")


def more_chosen(offer: offers.Offer) -> None:
    offer.intent = replace(offer.intent, coins=offer.intent.coins | {offers.outpoint_of(Spend(b"\x01" * 32, 0))})


def level_index(offer: offers.Offer) -> None:
    offer.of_facts(index_height=TIP)


def unknown_fields(offer: offers.Offer) -> None:
    offer.first.put(b"\xf0", b"whatever")
    offer.draft.fields.append((b"\xf1", b"x"))


AT_THE_LIMIT: dict[str, Callable[[offers.Offer], None]] = {
    "no change, exactly paid": exactly,
    "locked to the tip": locked_to_the_tip,
    "the change first": in_order(2, 0, 1),
    "the escrow last": in_order(1, 2, 0),
    "the announcement first": in_order(1, 0, 2),
    "a leaf that is good for an hour longer": of_leaf(expires_s=offers.EXPIRES_S + 3_600),
    "a leaf that is over": of_leaf(expires_s=0),
    "a leaf for other goods": of_leaf(eligible=b"\x00" * 32, criteria=b"\xff" * 32),
    "a leaf of another secret": of_leaf(secret=b"\x01" * 32),
    "ALL by its name": named_all,
    "the former transactions as well": with_formers,
    "the former transactions alone": formers_alone,
    "a coin more was chosen": more_chosen,
    "an index level with the chain": level_index,
    "unknown fields": unknown_fields,
    "final sequences": lambda offer: setattr(offer.first, "sequence", 0xFFFFFFFF),
}


@offers.every_form
@pytest.mark.parametrize("name", AT_THE_LIMIT)
def test_at_the_limit(name: str, form: offers.Form) -> None:
    offer = offers.honest(form)
    AT_THE_LIMIT[name](offer)
    assert offer.tag() == "signed"
    assert b"whatever" not in offer.sign()


@offers.every_form
def test_a_leaf_is_read_to_its_parts(form: offers.Form) -> None:
    leaf = offers.honest(form).leaf
    read = read_leaf(leaf.script())
    assert (read.price_sats, read.expires_s, read.receive_script) == (leaf.price, leaf.expires_s, leaf.receive)
    assert (read.eligible_root, read.criteria_hash, read.secret_hash) == (leaf.eligible, leaf.criteria, leaf.secret)
    assert (read.buyer, read.co_signers) == (leaf.buyer, (leaf.market, leaf.gate, leaf.enclave))


def test_a_leaf_may_send_to_the_longest_script_that_is_pushed_in_one_byte() -> None:
    leaf = replace(offers.honest().leaf, receive=b"\x51" * 75)
    assert read_leaf(leaf.script()).receive_script == leaf.receive


@offers.every_form
@pytest.mark.slow
def test_no_byte_of_a_leafs_operations_and_no_length_can_be_another(form: offers.Form) -> None:
    """What is changed are the data alone, whose terms are checked after that."""
    leaf = offers.honest(form).leaf
    script = leaf.script()
    unchanged = read_leaf(script)
    free = {*range(2, len(script))} - {*_operations(leaf)}
    for at in range(len(script)):
        for flipped in range(1, 256):
            changed = script[:at] + bytes([script[at] ^ flipped]) + script[at + 1 :]
            try:
                read = read_leaf(changed)
            except WireError:
                continue
            assert at in free and read != unchanged


def _operations(leaf: offers.Leaf) -> list[int]:
    """Where the leaf has no data: its operations and the lengths of what it pushes."""
    data = [leaf.version, bytes(8), bytes(8), leaf.receive, leaf.eligible, leaf.criteria]
    at, found = 2, [0, 1]
    for pushed, then in [
        *((each, 0) for each in data[:-1]),
        (data[-1], 2),  # ENDIF SHA256
        (leaf.secret, 1),
        (leaf.buyer, 1),
        (leaf.market, 3),
        (leaf.gate, 1),
        (leaf.enclave, 1),
    ]:
        found.append(at)
        at += 1 + len(pushed)
        found += range(at, at + then)
        at += then
    return found


def test_another_key_signs_nothing() -> None:
    with pytest.raises(SigningError):
        sign_offer(offers.honest().check(), STRANGER)


def test_an_owner_of_another_kind_pays_nothing() -> None:
    offer = offers.honest()
    offer.owner = replace(offer.owner, kind="p2tr")
    assert offer.tag() == "amount-proof"


def test_a_coin_at_our_nested_address_is_not_paid_with() -> None:
    nested = script_by("p2sh-p2wpkh", PAYMENT)
    offer, spend = offers.honest(), offers.coin(offers.COINS[0], nested)
    offer.draft.spends[0] = spend
    offer.facts[offers.outpoint_of(spend)] = offers.known(spend, offers.COINS[0], nested)
    offer.intent = replace(offer.intent, coins=offer.intent.coins | {offers.outpoint_of(spend)})
    assert offer.tag() == "amount-proof"


def _loose_inputs(psbt: Any, intent: Any) -> list[Any]:
    return [item.outpoint for item in psbt.transaction.inputs]


def _facts_alone(item: Any, facts: Any, owner: Any) -> Any:
    return TxOutput(facts.value_sats or 0, facts.script or offers.PAYMENT_SCRIPT)


def _any_leaf(script: bytes) -> Any:
    """A leaf whose terms are ours, whatever the script does."""
    return read_leaf(offers.honest().leaf.script())


# A rule that does nothing, as a slip in the code would have it, and what it must let through then.
PLANTED: dict[str, tuple[str, Callable[..., Any], set[str]]] = {
    "leaf": ("_leaf", _any_leaf, {"leaf"}),
    "leaf's terms": ("_leaf_terms", lambda leaf, intent, price: None, {"leaf-terms", "leaf-keys"}),
    "inputs-reserved": ("_inputs_reserved", _loose_inputs, {"inputs-reserved"}),
    "inputs-confirmed": (
        "_inputs_confirmed",
        lambda outpoints, facts: [facts.get(each) or next(iter(facts.values())) for each in outpoints],
        {"inputs-confirmed"},
    ),
    "amount-proof": ("_amount_proof", _facts_alone, {"amount-proof"}),
    "inputs-cardinal": ("_inputs_cardinal", lambda known: TIP, {"inputs-cardinal"}),
    "outputs": ("_outputs", lambda *given: 0, {"outputs-known", "escrow"}),
    "sighash-allowed": ("_sighash_allowed", lambda item: None, {"sighash-allowed"}),
    "fee": ("_no_fee", lambda *given: None, {"fee-abs"}),
    "tx-form": ("tx_form", lambda *given, **named: None, {"tx-form"}),
    "input-signed": ("input_unsigned", lambda item: None, {"input-signed"}),
    "key-path": ("key_path", lambda item, owner: None, {"key-path"}),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_rule_that_does_nothing_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule, slip, tags = PLANTED[name]
    monkeypatch.setattr(check_offer, rule, slip)
    let_through = set()
    for attack in ATTACKS:
        for offer in attack.cases() if attack.tag in tags else ():
            try:
                offer.check()
                let_through.add(attack.tag)
            except (PolicyRefused, StopIteration, ValueError, IndexError):
                continue
    assert let_through == tags, "for some tag no attack is stopped by this rule alone"


def test_there_are_many_attacks_and_each_has_a_name_of_its_own() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) >= 100


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_refused(attack: Attack) -> None:
    for offer in attack.cases():
        with pytest.raises(PolicyRefused) as caught:
            offer.sign()
        assert (offer.form, caught.value.tag) == (offer.form, attack.tag), str(caught.value)
