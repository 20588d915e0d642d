"""ord.net's sales."""

from __future__ import annotations

from typing import Any

from simulator.calls import Operation
from simulator.dialects.ordnet.base import OrdnetHandler, moment
from simulator.dialects.ordnet.fields import slug_filter
from simulator.dialects.ordnet.market import BTC, collection_row
from simulator.history import Sale
from simulator.ordnet.offers import VENUE
from simulator.wallets import name_of


class Sales(OrdnetHandler):
    """`GET /sales?collectionSlug&limit&cursor`, newest first; an unknown slug has none.

    A fill of another venue's order is an external sale here.
    """

    operation: Operation = "sales"

    def subject(self) -> str:
        return self.asked("collectionSlug")

    def answer(self) -> Any:
        slug = slug_filter(self.get_query_argument("collectionSlug", ""))
        markets = [m for m in self.engine.markets.values() if m.kind == "ordinals" and slug in ("", m.slug)]
        keyed = sorted(
            ([-sale.sold_ms, sale.sale_id], sale, market.name)
            for market in markets
            for sale in self.engine.sales.of(market.key)
        )
        rows = [(sale, name) for _, sale, name in keyed]
        shown, pagination = self.page(rows, [key for key, _, _ in keyed], 50, f"sales {slug}")
        sales = self.staged("sales", [self._row(*each) for each in shown], [sale for sale, _ in shown])
        return {"sales": sales, "pagination": pagination}

    def _row(self, sale: Sale, name: str) -> dict[str, Any]:
        market = self.engine.markets[("ordinals", sale.slug)]
        inscription = sale.inscription or ""
        holder = self.engine.wallets.holder_of(inscription)
        return {
            "saleId": sale.sale_id,
            "saleType": "internal" if sale.at(VENUE) else "external",
            "txid": sale.txid or None,
            "inscriptionId": inscription,
            "inscriptionNumber": str(holder[1].number if holder else int.from_bytes(inscription.encode()[:4])),
            "inscriptionName": holder[1].name if holder else name_of(sale.slug, inscription),
            "collection": collection_row(market),
            "sellerAddress": sale.seller,
            "buyerAddress": sale.receive,
            "priceSats": sale.price,
            "price": sale.price / BTC,
            "priceUsd": None,
            "soldAt": moment(sale.sold_ms),
            "blockHeight": self.engine.chain.height(),
        }
