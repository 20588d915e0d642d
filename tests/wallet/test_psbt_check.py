"""Honest listings are approved, also at the very limit of each rule, and what they are checked against is sane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from embit import script as other

from tests.shapes import replace
from tests.wallet import listings as ls
from tests.wallet.attacks.attack import Attack
from tests.wallet.attacks.listing_attacks import ATTACKS
from tests.wallet.attacks.listing_changes import HARMLESS, is_harmless
from tests.wallet.psbt_oracle import faults
from wallet.address import p2tr, parse
from wallet.protocol import PolicyRefused
from wallet.psbt import common
from wallet.psbt.common import MOST_POSTAGE
from wallet.psbt.script import OwnKind, script_of
from wallet.psbt.transaction import LISTING, SECURE_LISTING

every_kind = pytest.mark.parametrize("kind", ls.KINDS)
every_form = pytest.mark.parametrize("form", ls.FORMS)


@every_kind
@every_form
def test_an_honest_listing_is_approved(kind: OwnKind, form: ls.Form) -> None:
    case = ls.honest(kind, form)
    approved = case.check()
    assert approved.index == (2 if form in ("paired at 2", "OKX") else 0)
    assert approved.sighash == (SECURE_LISTING if form.startswith("secure") else LISTING)
    assert (approved.payout.value, approved.payout.script) == (
        ls.SHAPES[form].payout,
        ls.script_by("p2wpkh", ls.PAYMENT),
    )
    assert [item is not None for item in approved.spent] == [
        at == approved.index for at in range(len(approved.psbt.inputs))
    ]


def put_intent(case: ls.Case, **values: Any) -> None:
    case.intent = replace(case.intent, **values)


def put_facts(case: ls.Case, **values: Any) -> None:
    assert case.facts is not None
    case.facts = replace(case.facts, **values)


def add_unknown(case: ls.Case) -> None:
    case.draft.fields.append((b"\xfc\x05venue\x07data", b"order 17"))
    case.own.fields.append((b"\x70\x01", b"?"))
    case.payout.fields.append((b"\xfd\x00\x01", b"?"))


def add_derivations(case: ls.Case) -> None:
    public = ls.VAULT.get_public_key()
    case.own.fields.append((b"\x06" + public.sec(), b"\0" * 24))
    case.own.fields.append((b"\x16" + public.xonly(), b"\0" + b"\0" * 24))
    case.payout.fields.append((b"\x02" + ls.STRANGER.get_public_key().sec(), b"\0" * 4))


def fill_to(size: int) -> Callable[[ls.Case], None]:
    def change(case: ls.Case) -> None:
        free = size - len(case.draft.encode()) - 2 - 3
        case.own.fields.append((b"\xf0", b"\0" * free))
        assert len(case.draft.encode()) == size

    return change


def pay_to_ordinals(case: ls.Case) -> None:
    script = ls.script_by("p2tr", ls.ORDINALS)
    case.payout.script = script
    put_intent(case, payout_address=p2tr(script[2:]))


AT_THE_LIMIT: dict[str, Callable[[ls.Case], object]] = {
    "the largest size": fill_to(common.MAX_BYTES),
    "the price at its minimum": lambda case: put_intent(case, min_price_sats=ls.PRICE),
    "a minimum of one sat": lambda case: put_intent(case, min_price_sats=1),
    "a payout a sat higher": lambda case: setattr(case.payout, "value", case.payout.value + 1),
    "a payout to another of the user's addresses": pay_to_ordinals,
    "an address in capitals": lambda case: put_intent(case, payout_address=case.intent.payout_address.upper()),
    "an index that is level with the chain": lambda case: put_facts(case, index_height=ls.TIP),
    "an index that is ahead of the chain": lambda case: put_facts(case, index_height=ls.TIP + 1),
    "transaction version 1": lambda case: setattr(case.draft, "version", 1),
    "transaction version 3": lambda case: setattr(case.draft, "version", 3),
    "a locktime at the tip": lambda case: setattr(case.draft, "locktime", ls.TIP),
    "the highest locktime that is a height, in its time": lambda case: (
        put_facts(case, tip_height=499_999_999, index_height=499_999_999),
        setattr(case.draft, "locktime", 499_999_999),
    ),
    "the final sequence": lambda case: setattr(case.own, "sequence", 0xFFFFFFFF),
    "the sequence before it": lambda case: setattr(case.own, "sequence", 0xFFFFFFFE),
    "PSBT version 0 in words": lambda case: case.draft.fields.append((b"\xfb", b"\0\0\0\0")),
    "unknown and proprietary fields": add_unknown,
    "derivations": add_derivations,
    "both utxo fields": lambda case: case.own.put(b"\x00", ls.former(ls.script_by(case.kind, ls.VAULT))),
    "the former transaction alone": lambda case: (
        case.own.drop(b"\x01"),
        case.own.put(b"\x00", ls.former(ls.script_by(case.kind, ls.VAULT))),
    ),
    "a former transaction without its witnesses": lambda case: case.own.put(
        b"\x00", ls.former(ls.script_by(case.kind, ls.VAULT), witness=False)
    ),
    "no internal key and no redeem script": lambda case: (case.own.drop(b"\x17"), case.own.drop(b"\x04")),
    "fields in another order": lambda case: case.own.fields.reverse(),
}


@pytest.mark.parametrize("limit", AT_THE_LIMIT)
def test_approved_and_signed_at_the_limit(limit: str) -> None:
    for kind in ls.KINDS:
        for form in ("listing", "secure"):
            case = ls.honest(kind, form)
            AT_THE_LIMIT[limit](case)
            found = faults(case, case.draft.encode(), case.sign())
            # To the judge there is one payout address.
            assert limit.startswith(("a payout to", "an address")) or found == []


def test_what_a_venue_takes_of_the_buyer_is_the_buyers_business() -> None:
    for value in (ls.PRICE * 2 // 100, 0, ls.PRICE):
        case = ls.honest("p2tr", "secure with fee")
        case.draft.pays[1].value = value
        assert faults(case, case.draft.encode(), case.sign()) == []


def test_a_placeholder_may_show_the_transaction_that_made_it() -> None:
    case = ls.honest("p2tr", "paired at 2")
    made_by = ls.former(ls.script_by("p2tr", ls.STRANGER))
    case.draft.spends[0].txid, case.draft.spends[0].vout = ls.txid_of(made_by), 1
    case.draft.spends[0].fields = [(b"\x00", made_by)]
    assert faults(case, case.draft.encode(), case.sign()) == []


def test_a_refusal_names_its_rule_and_says_why() -> None:
    case = ls.honest()
    case.payout.value = ls.PRICE - 1
    with pytest.raises(PolicyRefused, match=r"payout: the seller is paid 249999 sats instead of at least 250000"):
        case.check()


def test_a_reader_that_writes_something_else_signs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "encode", lambda psbt: b"")
    with pytest.raises(RuntimeError, match="reader is broken"):
        ls.honest().check()


@pytest.mark.parametrize(
    ("price", "ppm", "postage", "least"),
    [
        (100_000, 0, 0, 100_000),
        (100_000, 0, MOST_POSTAGE, 100_000),
        (100_000, 0, MOST_POSTAGE + 1, 120_001),
        (100_000, 25_000, 546, 97_500),
        (100_000, 25_000, 30_000, 127_500),
        (99_999, 10_000, 546, 99_000),  # 999.99 is rounded to 999, in the seller's favour
        (1, 999_999, 546, 1),
    ],
)
def test_the_least_payout(price: int, ppm: int, postage: int, least: int) -> None:
    assert replace(ls.honest().intent, seller_fee_ppm=ppm).least_payout(price, postage) == least


@pytest.mark.parametrize("form", ["listing", "secure", "price alone", "OKX"])
def test_what_is_more_than_postage_has_to_come_back(form: ls.Form) -> None:
    case = ls.honest("p2tr", form)
    put_facts(case, value_sats=25_000)
    case.own.put(b"\x01", ls.output(25_000, ls.script_by("p2tr", ls.VAULT)))
    case.payout.value = ls.PRICE + 25_000
    assert case.check().payout.value == ls.PRICE + 25_000
    case.payout.value -= 1
    with pytest.raises(PolicyRefused, match="payout: the seller is paid 274999 sats instead of at least 275000"):
        case.check()


@pytest.mark.parametrize("form", ["listing", "paired at 2", "OKX"])
def test_inputs_and_outputs_that_are_not_covered_may_be_any(form: ls.Form) -> None:
    """They are the buyer's own, and we are not asked about them."""
    case = ls.honest("p2tr", form)
    case.draft.spends.append(ls.Spend(b"\x33" * 32, 7, sequence=0))
    case.draft.spends.append(ls.Spend(b"\x33" * 32, 7, sequence=9))
    case.draft.pays.append(ls.Pay(2**64 - 1, b""))
    assert faults(case, case.draft.encode(), case.sign()) == []


def test_scripts_of_addresses() -> None:
    for kind in ls.KINDS:
        script = ls.script_by(kind, ls.VAULT)
        assert script_of(parse(str(other.Script(script).address()))) == script
    assert script_of(parse("1BoatSLRHtKNngkdXEeobR76b53LETtpyT")) is None
    assert script_of(parse("bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3")) is None


def test_there_are_many_attacks_and_each_has_a_name_of_its_own() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) >= 267


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_refused(attack: Attack) -> None:
    for case in attack.cases():
        if is_harmless(attack.name, case):
            continue
        with pytest.raises(PolicyRefused) as caught:
            case.sign()
        assert (case.kind, case.form, caught.value.tag) == (case.kind, case.form, attack.tag), str(caught.value)


@pytest.mark.parametrize("name", HARMLESS)
def test_what_harms_nobody_is_signed_and_pays_in_full(name: str) -> None:
    cases = [case for attack in ATTACKS if attack.name == name for case in attack.cases()]
    harmless = [case for case in cases if is_harmless(name, case)]
    assert len(harmless) == len(HARMLESS[name].forms) * len(HARMLESS[name].kinds)
    for case in harmless:
        assert faults(case, case.draft.encode(), case.sign()) == []
