"""Ordinals Wallet's routes under `/ordinalswallet`, from its client ordinals-wallet/ow-cli."""

from __future__ import annotations

from typing import Any

from simulator.calls import Operation
from simulator.dialects.ordinalswallet.base import PREFIX, OrdinalsWalletHandler
from simulator.dialects.ordinalswallet.collections import Attributes, Collection, Escrows, Stats
from simulator.dialects.ordinalswallet.items import Escrow, Inscription, InscriptionOutpoint
from simulator.dialects.ordinalswallet.listings import BuildEscrows, CancelEscrow, Session, SubmitEscrows
from simulator.dialects.ordinalswallet.protected import AuthorizeProtected, BuildProtected, ProtectedState
from simulator.dialects.ordinalswallet.sales import SalesTape, SoldEscrows
from simulator.dialects.ordinalswallet.wallet import FeeEstimates, RuneBalance, WalletInscriptions
from simulator.wire import ApiError
from simulator.world import World


class NotOffered(OrdinalsWalletHandler):
    """Routes that the venue has and this market lacks: drafts of recoveries, funded offers, purchases."""

    def initialize(self, world: World, operation: Operation = "list", method: str = "POST") -> None:
        super().initialize(world)
        self.operation, self.method = operation, method

    def subject(self) -> str:
        return self.request.path[:200]

    def answer(self) -> Any:
        raise ApiError(400, "This is not offered here", "not_offered")


def routes(world: World) -> list[tuple[Any, ...]]:
    """Returns path, handler and arguments of each route."""
    here = {
        "collection/([^/]+)": Collection,
        "collection/([^/]+)/stats": Stats,
        "collection/([^/]+)/attributes": Attributes,
        "collection/([^/]+)/escrows": Escrows,
        "collection/([^/]+)/sold-escrows": SoldEscrows,
        "collection/([^/]+)/sales": SalesTape,
        "wallet/fee-estimates": FeeEstimates,
        "wallet/([^/]+)/inscriptions": WalletInscriptions,
        "wallet/([^/]+)/rune-balance": RuneBalance,
        "inscription/([^/]+)": Inscription,
        "inscription/([^/]+)/outpoint": InscriptionOutpoint,
        "auth/session": Session,
        "wallet/escrow-bulk": BuildEscrows,
        "market/escrow-bulk": SubmitEscrows,
        "market/escrow/([^/]+)": Escrow,
        "market/cancel-escrow": CancelEscrow,
        "market/secure-listing/build-bulk": BuildProtected,
        "market/secure-listing/authorize-bulk": AuthorizeProtected,
    }
    absent: list[tuple[str, Operation, str]] = [
        ("market/secure-listing/recover", "list", "POST"),
        ("(?:market|wallet)/secure-purchase/[^/]+", "place", "POST"),
        ("(?:market/purchase|wallet/purchase-bulk)[a-z-]*", "place", "POST"),
        ("market/offers/(?:build|[^/]+/(?:prepare|activate|build-accept|accept))", "place", "POST"),
        ("market/offers/[^/]+/(?:build-cancel|cancel)", "cancel", "POST"),
        ("market/offers/(?:collection|inscription|wallet)/[^/]+", "book", "GET"),
    ]
    found: list[tuple[Any, ...]] = [(f"{PREFIX}/{path}", handler, {"world": world}) for path, handler in here.items()]
    for path, operation, method in absent:
        found.append((f"{PREFIX}/{path}", NotOffered, {"world": world, "operation": operation, "method": method}))
    # Last: its path would take the others' places.
    return [*found, (f"{PREFIX}/market/secure-listing/([^/]+)", ProtectedState, {"world": world})]
