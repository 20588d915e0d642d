"""The forms of the venues' PSBTs that take sats out of a bidding wallet; nothing else is signed.

A template is written from PSBTs that were captured from the venue, never from its description.
"""

from __future__ import annotations

from dataclasses import dataclass

from wallet.policy import PLAY_VENUE
from wallet.psbt.listing_template import SEQUENCES


@dataclass(frozen=True, slots=True)
class WithdrawalTemplate:
    """A bidding wallet that needs `required` signatures of `keys` keys, one of them the user's payment key."""

    venue: str
    required: int
    keys: int
    versions: frozenset[int] = frozenset({1, 2})
    sequences: frozenset[int] = SEQUENCES


WITHDRAWAL_TEMPLATES: dict[str, WithdrawalTemplate] = {PLAY_VENUE: WithdrawalTemplate(PLAY_VENUE, 2, 2)}
