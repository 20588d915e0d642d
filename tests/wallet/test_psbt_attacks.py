"""Dishonest listing PSBTs are refused, each with the tag of the rule that it breaks, unless nothing is lost by them."""

from __future__ import annotations

import pytest

from tests.wallet.attacks.attack import Attack
from tests.wallet.attacks.listing_attacks import ATTACKS
from tests.wallet.attacks.listing_changes import HARMLESS, is_harmless
from tests.wallet.psbt_oracle import faults
from wallet.protocol import PolicyRefused


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
