"""Satflow's routes under `/satflow/v1`, from its reference of API 1.1.4 (docs.satflow.com/reference)."""

from __future__ import annotations

from typing import Any

from simulator.calls import Operation
from simulator.dialects.satflow.activity import Bids, Listings, SalesActivity
from simulator.dialects.satflow.base import SatflowHandler
from simulator.dialects.satflow.listings import IntentSell, List
from simulator.dialects.satflow.market import Collection, CollectionStats, Floors, Item
from simulator.dialects.satflow.orders import Cancel, PlaceBid
from simulator.dialects.satflow.wallet import BiddingWallet, Challenge, OwnBids, VerifyChallenge, WalletContents
from simulator.dialects.satflow.withdrawals import IntentWithdraw, SubmitWithdraw
from simulator.wire import ApiError
from simulator.world import World


class NotHere(SatflowHandler):
    """A documented endpoint that the practice market lacks."""

    def initialize(self, world: World, operation: Operation = "list", method: str = "POST") -> None:
        super().initialize(world)
        self.operation, self.method = operation, method

    def subject(self) -> str:
        return self.request.path[:200]

    def data(self) -> Any:
        raise ApiError(501, "not implemented by the practice market", "NOT_IMPLEMENTED")


def routes(world: World) -> list[tuple[Any, ...]]:
    """Returns path, handler and arguments of each route."""
    here = {
        "challenge": Challenge,
        "challenge/verify": VerifyChallenge,
        "collection-stats": CollectionStats,
        "collection-stats/floors": Floors,
        "collection": Collection,
        "item": Item,
        "activity/listings": Listings,
        "activity/bids": Bids,
        "activity/sales": SalesActivity,
        "address/wallet-contents": WalletContents,
        "address/bidding-wallet": BiddingWallet,
        "address/bids": OwnBids,
        "bid/place": PlaceBid,
        "intent/sell": IntentSell,
        "list": List,
        "cancel": Cancel,
        "intent/withdraw": IntentWithdraw,
        "withdraw": SubmitWithdraw,
    }
    absent: list[tuple[str, Operation, str]] = [
        ("intent/(?:bid|accept-collection-bid)", "place", "POST"),
        ("intent/(?:bulk-sell|external-sell)", "list", "POST"),
        ("list/external", "list", "POST"),
        ("bid/fill", "place", "POST"),
        ("orders/floor", "floors", "GET"),
        ("collection/inscription-ids", "collection", "GET"),
    ]
    found: list[tuple[Any, ...]] = [
        (f"/satflow/v1/{path}", handler, {"world": world}) for path, handler in here.items()
    ]
    for path, operation, method in absent:
        arguments = {"world": world, "operation": operation, "method": method}
        found.append((f"/satflow/v1/(?:{path})", NotHere, arguments))
    return found
