"""Dishonest funding PSBTs are refused, each with the tag of the rule that it breaks."""

from __future__ import annotations

import pytest

from tests.wallet.attacks.attack import Attack
from tests.wallet.attacks.offer_attacks import ATTACKS
from wallet.protocol import PolicyRefused


def test_there_are_many_attacks_and_each_has_a_name_of_its_own() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) >= 100


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_refused(attack: Attack) -> None:
    for offer in attack.cases():
        with pytest.raises(PolicyRefused) as caught:
            offer.sign()
        assert (offer.form, caught.value.tag) == (offer.form, attack.tag), str(caught.value)
