"""A dry run's draft of a listing: the venue writes it, the signer judges it, and nothing is signed or sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markets.base import VenueError
from strategy.listing_price import guard
from strategy.reasons import Step
from wallet.judgement import to_judge, verdict
from wallet.protocol import Judgement
from wallet.signer_client import SignerError
from workers.context import Context
from workers.faults import Faults
from workers.listing.assignment import ListingAssignment
from workers.listing.places import ItemToList, ask_for


@dataclass(slots=True)
class JudgedDrafts:
    """The newest draft's judgements. The same item at the same price is drafted once: at some venues each draft stays
    as an order.
    """

    about: tuple[str, int] | None = None
    judgements: Sequence[Judgement] = ()

    def judge(
        self, context: Context, assignment: ListingAssignment, item: ItemToList, price: int, faults: Faults
    ) -> str:
        """Returns in words whether the signer would sign a listing of the item at this price; "" when that failed."""
        if self.about != (item.outpoint, price):
            least = guard(assignment.config, context.settings.seller_fee_ppm(item.venue), tick=1)
            try:
                draft = context.market.draft_listing(ask_for(item, price))
                secure = (each.psbt for each in draft.secure)
                escrow = draft.transfer, draft.recovery
                listing = to_judge(item.inscription_id, item.outpoint, price, draft.psbt, secure, *escrow)
                judged = context.signer.judge(assignment.user.address, item.venue, listing, least)
            except VenueError as error:
                faults.add(Step.DRAFT, f"get a draft of a listing at {price}", error, price_sats=price)
                return ""
            except SignerError as error:
                faults.add(Step.DRAFT, f"have a draft of a listing at {price} judged", error, price_sats=price)
                return ""
            self.about, self.judgements = (item.outpoint, price), judged
        return verdict(self.judgements)
