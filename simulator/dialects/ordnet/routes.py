"""ord.net's routes under `/ordnet`, from its API reference of 2026-09-14 (developers.ord.net)."""

from __future__ import annotations

from typing import Any

from simulator.dialects.ordnet.auth import AuthChallenge, AuthVerify, Me
from simulator.dialects.ordnet.delisting import ListingDelist
from simulator.dialects.ordnet.item_offers import ItemOfferCancel, ItemOfferPreflight, ItemOfferSubmit
from simulator.dialects.ordnet.item_reads import ItemOffers, OwnItemOffers
from simulator.dialects.ordnet.listings import ListingPreflight, ListingSubmit
from simulator.dialects.ordnet.market import Floors, Inscriptions, Listings
from simulator.dialects.ordnet.offers import OfferCancel, Offers, ReplacementWarning, SentOffers, TargetPreview
from simulator.dialects.ordnet.placing import OfferPreflight, OfferSubmit
from simulator.dialects.ordnet.sales import Sales
from simulator.world import World

_SLUG = "collection/([^/]+)"


def routes(world: World) -> list[tuple[Any, ...]]:
    """Returns path, handler and arguments of each route."""
    here = {
        "auth/challenge": AuthChallenge,
        "auth/verify": AuthVerify,
        "me": Me,
        "collection-stats/floors": Floors,
        "listings": Listings,
        "sales": Sales,
        f"{_SLUG}/inscriptions": Inscriptions,
        f"{_SLUG}/collection-offers": Offers,
        f"{_SLUG}/my/sent-collection-offers": SentOffers,
        f"{_SLUG}/collection-offers/target-preview": TargetPreview,
        f"{_SLUG}/collection-offers/replacement-warning": ReplacementWarning,
        f"{_SLUG}/collection-offers/preflight": OfferPreflight,
        f"{_SLUG}/collection-offers/submit": OfferSubmit,
        f"{_SLUG}/collection-offers/([^/]+)/cancel": OfferCancel,
        f"{_SLUG}/listings/preflight": ListingPreflight,
        f"{_SLUG}/listings/submit": ListingSubmit,
        f"{_SLUG}/listings/delist": ListingDelist,
        f"{_SLUG}/offers/preflight": ItemOfferPreflight,
        f"{_SLUG}/offers/submit": ItemOfferSubmit,
        "inscriptions/([^/]+)/offers": ItemOffers,
        "inscriptions/([^/]+)/offers/([^/]+)/cancel": ItemOfferCancel,
        "me/offers": OwnItemOffers,
    }
    return [(f"/ordnet/{path}", handler, {"world": world}) for path, handler in here.items()]
