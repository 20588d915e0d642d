"""Dishonest listing PSBTs are refused, each with the tag of the rule that it breaks."""

from __future__ import annotations

import pytest

from tests.wallet.psbt_attacks import ATTACKS, Attack
from wallet.policy import PolicyRefused


def test_there_are_many_attacks_and_each_has_a_name_of_its_own() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) >= 150


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_refused(attack: Attack) -> None:
    for case in attack.cases():
        with pytest.raises(PolicyRefused) as caught:
            case.sign()
        assert (case.kind, case.form, caught.value.tag) == (case.kind, case.form, attack.tag), str(caught.value)
