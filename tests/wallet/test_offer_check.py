"""Honest funding PSBTs are signed, at every limit, as another engine confirms; slips in the rules are caught."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.wallet.listings import PAYMENT, STRANGER, TIP, VAULT, Spend, script_by
from tests.wallet.offer_attacks import ATTACKS
from tests.wallet.offers import (
    ANNOUNCEMENT,
    COINS,
    ESCROW_SCRIPT,
    FORMS,
    PAYMENT_SCRIPT,
    PRICE,
    VENUE,
    WITH_FEES,
    WSH_ESCROW,
    Form,
    Offer,
    coin,
    honest,
    known,
    network,
    outpoint_of,
)
from wallet.policy import PLAY_VENUES, PolicyRefused
from wallet.protocol import MAX_COINS
from wallet.psbt import check_offer
from wallet.psbt.decode import decode
from wallet.psbt.offer_template import OFFER_TEMPLATES, OfferTemplate
from wallet.psbt.sign import SigningError, sign_offer
from wallet.psbt.transaction import TxOutput
from workers.bidding.coins import MOST_COINS

every_form = pytest.mark.parametrize("form", FORMS)


def judged(signed: bytes, values: tuple[int, ...]) -> bool:
    """By btclib's consensus engine, every input of it."""
    engine = pytest.importorskip("btclib.script.engine")
    from btclib.exceptions import BTClibException
    from btclib.tx.tx import Tx
    from btclib.tx.tx_out import TxOut

    try:
        engine.verify_transaction([TxOut(sats, PAYMENT_SCRIPT) for sats in values], Tx.parse(network(signed)))
    except BTClibException:
        return False
    return True


@every_form
def test_every_input_is_signed_and_consensus_takes_it(form: Form) -> None:
    for coins in (COINS, (PRICE + 1_250,), (100_000, 90_000, 80_000)):
        offer = honest(form, coins)
        signed = offer.sign()
        assert signed == offer.sign()
        assert judged(signed, coins)
        assert decode(signed).transaction == decode(offer.draft.encode()).transaction


@every_form
def test_a_signature_is_good_for_nothing_else(form: Form) -> None:
    signed = honest(form).sign()
    assert not judged(signed, (COINS[0] + 1, COINS[1]))
    assert not judged(signed, (COINS[0], COINS[1] - 1))
    for script in (ESCROW_SCRIPT, PAYMENT_SCRIPT):
        at = signed.index(script)
        assert not judged(signed[:at] + bytes(len(script)) + signed[at + len(script) :], COINS)


def test_what_was_approved_says_what_it_costs() -> None:
    approved = honest("with fees").check()
    assert (approved.escrow.value, approved.change_sats, approved.fee_sats) == (PRICE, 38_750, 1_250)
    assert (approved.escrow.script, [spent.value for spent in approved.spent]) == (ESCROW_SCRIPT, list(COINS))


def set_change(sats: int) -> Callable[[Offer], None]:
    def change(offer: Offer) -> None:
        offer.change.value = sats

    return change


def exactly(offer: Offer) -> None:
    """Coins of just the price need no change."""
    replaced = honest(offer.form, (PRICE - 10_000, 10_000))
    offer.draft, offer.intent, offer.facts = replaced.draft, replaced.intent, replaced.facts
    offer.draft.pays.pop()


def fee_in_escrow(offer: Offer) -> None:
    offer.escrow.value += 5_000
    offer.change.value -= 5_000


def as_v1(offer: Offer) -> None:
    offer.draft.version, offer.draft.locktime = 1, TIP


def locked_to_the_tip(offer: Offer) -> None:
    offer.draft.locktime = TIP


def other_leaves(offer: Offer) -> None:
    """Each offer has leaves of its own."""
    root = b"\x7e" * 32
    offer.escrow.script = b"\x51\x20" + VAULT.get_public_key().taproot_tweak(root).xonly()
    offer.draft.pays[1].script = ANNOUNCEMENT[:-32] + root


def named_all(offer: Offer) -> None:
    for spend in offer.draft.spends:
        spend.put(b"\x03", struct.pack("<I", 1))


def with_formers(offer: Offer) -> None:
    offer.draft.spends = [coin(sats, whole=True) for sats in COINS]


def formers_alone(offer: Offer) -> None:
    with_formers(offer)
    for spend in offer.draft.spends:
        spend.drop(b"\x01")


def more_chosen(offer: Offer) -> None:
    offer.intent = replace(offer.intent, coins=offer.intent.coins | {outpoint_of(Spend(b"\x01" * 32, 0))})


def level_index(offer: Offer) -> None:
    offer.of_facts(index_height=TIP)


def unknown_fields(offer: Offer) -> None:
    offer.first.put(b"\xf0", b"whatever")
    offer.draft.fields.append((b"\xf1", b"x"))


AT_THE_LIMIT: dict[str, tuple[Form, Callable[[Offer], None]]] = {
    "the fee at its rate": (
        "with fees",
        lambda offer: set_change(40_000 - 2_000)(offer),
    ),
    "no change, exactly paid": ("play", exactly),
    "all of the venue's fee": ("with fees", fee_in_escrow),
    "an escrow to a script hash": ("with fees", lambda offer: setattr(offer.escrow, "script", WSH_ESCROW)),
    "version 1, locked to the tip": ("with fees", as_v1),
    "locked to the tip": ("play", locked_to_the_tip),
    "an escrow of other leaves": ("play", other_leaves),
    "ALL by its name": ("play", named_all),
    "the former transactions as well": ("play", with_formers),
    "the former transactions alone": ("play", formers_alone),
    "a coin more was chosen": ("play", more_chosen),
    "an index level with the chain": ("play", level_index),
    "unknown fields": ("play", unknown_fields),
    "final sequences": ("play", lambda offer: setattr(offer.first, "sequence", 0xFFFFFFFF)),
}


@pytest.mark.parametrize("name", AT_THE_LIMIT)
def test_at_the_limit(name: str) -> None:
    form, change = AT_THE_LIMIT[name]
    offer = honest(form)
    change(offer)
    assert offer.tag() == "signed"
    assert b"whatever" not in offer.sign()


def test_the_fees_own_limits_each() -> None:
    """10 sat/vB of 220 virtual bytes, 2,100 sats, and 0.8 % of the price."""
    for template, fee, tag in (
        (replace(WITH_FEES, max_fee_sats=10_000, max_fee_ppm=50_000), 2_200, "fee-rate"),
        (replace(WITH_FEES, max_fee_ppm=50_000), 2_100, "fee-abs"),
        (WITH_FEES, 2_000, "fee-share"),
    ):
        offer = honest("with fees")
        offer.template = template
        offer.change.value = 40_000 - fee
        assert offer.tag() == "signed"
        offer.change.value -= 1
        assert offer.tag() == tag


def test_the_most_inputs() -> None:
    assert honest("with fees", (100_000, 90_000, 80_000)).tag() == "signed"
    assert honest("with fees", (100_000, 90_000, 80_000, 10_000)).tag() == "inputs-reserved"


def test_what_an_offer_commits_to_is_the_price_and_the_venues_most_fee() -> None:
    assert [WITH_FEES.most_escrowed(price) for price in (50, 49, 250_000)] == [51, 49, 255_000]
    assert OFFER_TEMPLATES[VENUE].most_escrowed(250_000) == 250_000


def test_the_practice_markets_template_takes_no_fee_and_as_many_coins_as_are_looked_up() -> None:
    template = OFFER_TEMPLATES[VENUE]
    assert template.max_inputs == MAX_COINS == MOST_COINS
    fees = template.buyer_fee_ppm, template.max_fee_rate, template.max_fee_sats, template.max_fee_ppm
    assert fees == (0, 0, 0, 0)


def test_only_the_practice_market_has_a_template() -> None:
    assert {name: template.venue for name, template in OFFER_TEMPLATES.items()} == {VENUE: VENUE}
    assert OFFER_TEMPLATES.keys() <= PLAY_VENUES


@pytest.mark.parametrize(
    "wrong",
    [
        {"escrow_kinds": frozenset()},
        {"max_inputs": 0},
        {"is_announced": True, "escrow_kinds": frozenset({"p2tr", "p2wsh"})},
        {"buyer_fee_ppm": -1},
        {"buyer_fee_ppm": 10**6},
        {"max_fee_ppm": -1},
        {"max_fee_ppm": 10**6},
    ],
)
def test_a_template_that_means_nothing_is_none(wrong: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"venue": VENUE, "escrow_kinds": frozenset({"p2tr"}), "max_inputs": 1}
    OfferTemplate(**fields)
    with pytest.raises(ValueError):
        OfferTemplate(**fields | wrong)


def test_another_key_signs_nothing() -> None:
    with pytest.raises(SigningError):
        sign_offer(honest().check(), STRANGER)


def test_an_owner_of_another_kind_pays_nothing() -> None:
    offer = honest()
    offer.owner = replace(offer.owner, kind="p2tr")
    assert offer.tag() == "amount-proof"


def test_a_coin_at_our_nested_address_is_not_paid_with() -> None:
    nested = script_by("p2sh-p2wpkh", PAYMENT)
    offer, spend = honest(), coin(COINS[0], nested)
    offer.draft.spends[0] = spend
    offer.facts[outpoint_of(spend)] = known(spend, COINS[0], nested)
    offer.intent = replace(offer.intent, coins=offer.intent.coins | {outpoint_of(spend)})
    assert offer.tag() == "amount-proof"


def _loose_inputs(psbt: Any, intent: Any, template: Any) -> list[Any]:
    return [item.outpoint for item in psbt.transaction.inputs]


def _facts_alone(item: Any, facts: Any, owner: Any) -> Any:
    return TxOutput(facts.value_sats or 0, facts.script or PAYMENT_SCRIPT)


def _first_two(outputs: Any, template: Any, owner: Any, price: int) -> Any:
    return outputs[0], sum(each.value for each in outputs[1:])


# A rule that does nothing, as a slip in the code would have it, and what it must let through then.
PLANTED: dict[str, tuple[str, Callable[..., Any], set[str]]] = {
    "op-allowed": ("op_allowed", lambda template, venue: template or OFFER_TEMPLATES[VENUE], {"op-allowed"}),
    "inputs-reserved": ("_inputs_reserved", _loose_inputs, {"inputs-reserved"}),
    "inputs-confirmed": (
        "_inputs_confirmed",
        lambda outpoints, facts: [facts.get(each) or next(iter(facts.values())) for each in outpoints],
        {"inputs-confirmed"},
    ),
    "amount-proof": ("_amount_proof", _facts_alone, {"amount-proof"}),
    "inputs-cardinal": ("_inputs_cardinal", lambda known: TIP, {"inputs-cardinal"}),
    "outputs": ("_outputs", _first_two, {"outputs-known", "outputs-order", "escrow"}),
    "announcement": ("_announced", lambda outputs, vault_key: None, {"escrow"}),
    "sighash-allowed": ("_sighash_allowed", lambda item: None, {"sighash-allowed"}),
    "fee": ("_fee", lambda *arguments: 0, {"fee-rate", "fee-abs", "fee-share"}),
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
