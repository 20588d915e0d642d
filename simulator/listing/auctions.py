"""Drafts at UniSat, kept under an auction's id until the signed PSBT comes."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

from simulator.listing.listings import AskTerms
from simulator.listing.psbt import Draft

Step = Literal["put_on", "modify_price", "put_off"]
KEPT = 10_000


@dataclass(frozen=True, slots=True)
class Asked:
    """One draft and its purpose. `former_price` is the old price of a listing to be repriced."""

    terms: AskTerms
    draft: Draft
    former_price: int = 0


class Auctions:
    """The newest KEPT drafts, one for each step of an auction, and the terms of placed auctions."""

    def __init__(self) -> None:
        self._asked: OrderedDict[tuple[str, Step], Asked] = OrderedDict()
        self._placed: OrderedDict[str, AskTerms] = OrderedDict()

    def ask(self, auction_id: str, step: Step, asked: Asked) -> None:
        self._asked[auction_id, step] = asked
        self._asked.move_to_end((auction_id, step))
        if len(self._asked) > KEPT:
            self._asked.popitem(last=False)

    def asked(self, auction_id: str, step: Step) -> Asked | None:
        return self._asked.get((auction_id, step))

    def place(self, auction_id: str, step: Step) -> None:
        """Notes that a draft became a listing, or ended one."""
        asked = self._asked.pop((auction_id, step))
        self._placed[auction_id] = asked.terms
        self._placed.move_to_end(auction_id)
        if len(self._placed) > KEPT:
            self._placed.popitem(last=False)

    def placed(self, auction_id: str) -> AskTerms | None:
        """Returns the terms of an auction, open or ended."""
        return self._placed.get(auction_id)
