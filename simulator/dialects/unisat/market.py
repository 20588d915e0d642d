"""UniSat's collection market under `/unisat/v3`, route by route, from unisat-dev-docs (open-api/swagger-source)."""

from __future__ import annotations

from typing import Any

from simulator.calls import Operation
from simulator.dialects.unisat.base import UnisatHandler
from simulator.dialects.unisat.collections import (
    CollectionActions,
    CollectionListings,
    CollectionStatistic,
    CollectionStatisticList,
)
from simulator.dialects.unisat.items import (
    CollectionInscriptions,
    CollectionSummary,
    InscriptionInfo,
    InscriptionInfoList,
)
from simulator.dialects.unisat.listing import (
    ConfirmModifyPrice,
    ConfirmPutOff,
    ConfirmPutOn,
    CreateModifyPrice,
    CreatePutOff,
    CreatePutOn,
)
from simulator.wire import ApiError
from simulator.world import World

PREFIX = "/unisat/v3/market/collection/auction"


class BuyingNotHere(UnisatHandler):
    """Purchases, which are called `bid` there; the practice market lacks them."""

    operation: Operation = "place"
    about = ("auctionId",)

    def data(self) -> Any:
        raise ApiError(501, "not implemented by the practice market")


def routes(world: World) -> list[tuple[Any, ...]]:
    """Returns path, handler and arguments of each route."""
    here: dict[str, type[UnisatHandler]] = {
        "collection_statistic": CollectionStatistic,
        "collection_statistic_list": CollectionStatisticList,
        "collection_summary": CollectionSummary,
        "collection_inscriptions": CollectionInscriptions,
        "inscription_info": InscriptionInfo,
        "inscription_info_list": InscriptionInfoList,
        "list": CollectionListings,
        "actions": CollectionActions,
        "create_put_on": CreatePutOn,
        "confirm_put_on": ConfirmPutOn,
        "create_modify_price": CreateModifyPrice,
        "confirm_modify_price": ConfirmModifyPrice,
        "create_put_off": CreatePutOff,
        "confirm_put_off": ConfirmPutOff,
        "(?:create_bid_prepare|create_bid|confirm_bid)": BuyingNotHere,
    }
    return [(f"{PREFIX}/{path}", handler, {"world": world}) for path, handler in here.items()]
