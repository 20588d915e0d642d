"""Attacks with the funding PSBT of an offer, by a venue or another in its place: small changes to an honest one."""

from __future__ import annotations

from tests.wallet.attacks import offer_inputs, offer_leaf, offer_outputs, offer_terms
from tests.wallet.attacks.offer_changes import Attack

_SUBJECTS = (offer_inputs, offer_outputs, offer_leaf, offer_terms)
ATTACKS: list[Attack] = [attack for subject in _SUBJECTS for attack in subject.ATTACKS]
