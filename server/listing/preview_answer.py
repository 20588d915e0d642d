"""A listing's preview as callers see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markets.items.item_market import ListingMarket
from markets.items.whereabouts import LocatedInscription
from strategy.listing.inputs import ListingPlan
from strategy.listing.reference import SALES
from wallet.judgement import in_words, verdict
from wallet.protocol import Judgement


def answer_of(plan: ListingPlan, market: ListingMarket, located: LocatedInscription) -> dict[str, Any]:
    """Returns the decision and its basis."""
    asks = market.asks if market.asks is not None else market.trait_asks
    return {
        "action": plan.action,
        "price": plan.price,
        "reason": str(plan.reason),
        "note": plan.note,
        "holding": located.inscription_state,
        "outpoint": located.outpoint,
        "market": {
            "asks": None if asks is None else len(asks),
            "lowestAsk": min((ask.price for ask in asks or ()), default=None),
            "lastSales": None if market.last_sales is None else list(market.last_sales[:SALES]),
            "median": market.history.median,
            "samples": market.history.samples,
        },
    }


def drafted_as_json(judgements: Sequence[Judgement]) -> dict[str, Any]:
    """Returns the draft's judgements, the plain form's first."""
    return {
        "isSigned": judgements[0].is_signed,
        "verdict": verdict(judgements),
        "forms": [
            {
                "form": each.form,
                "isSigned": each.is_signed,
                "payout": each.payout_sats,
                "leastPayout": each.least_sats,
                "findings": [
                    {"rule": finding.rule, "holds": finding.holds, "why": finding.why} for finding in each.findings
                ],
                "words": in_words(each),
            }
            for each in judgements
        ],
    }
