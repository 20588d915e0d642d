"""Sales as Ordinals Wallet tells them: its own listings that were bought, and the sales of all venues."""

from __future__ import annotations

import hashlib
from decimal import ROUND_DOWN, Decimal
from typing import Any

from simulator.bitcoin.chain import BLOCK_SECONDS, KNOWN_HEIGHT, KNOWN_TIME, block_time, outpoint_of
from simulator.calls import Operation
from simulator.dialects.ordinalswallet.base import VENUE, OrdinalsWalletHandler, escrow_id, made_up_txid, moment
from simulator.engine import Engine
from simulator.history import Sale
from simulator.listing.sale_transaction import INSCRIPTION_AT, SELLER_AT
from simulator.scenes import Made
from simulator.wallets import name_of
from simulator.wire import plain

MAX_PAGE = 100
# The venue's numbers of marketplaces; 0 is an unknown one.
MARKETPLACES = {"ordinalswallet": 1, "satflow": 2, "unisat": 9, "ordnet": 10}
LISTING_SIGHASH, BID_SIGHASH = 131, 1


class SoldEscrows(OrdinalsWalletHandler):
    """`GET /collection/:slug/sold-escrows?limit=&offset=`: listings of this venue that were bought, newest first."""

    operation: Operation = "sales"

    def answer(self) -> Any:
        market = self.market()
        limit = self.query_whole("limit", MAX_PAGE, 1, MAX_PAGE)
        offset = self.query_whole("offset", 0, 0, 10_000_000)
        sold = [sale for sale in self.engine.sales.of(market.key) if sale.at(VENUE) and sale.bid_id is None]
        rows = self.staged("sales", Made(self._row, sold[::-1]), sold[::-1])
        return rows[offset : offset + limit]

    def _row(self, sale: Sale) -> dict[str, Any]:
        rune = sale.kind == "runes"
        per = (Decimal(self.shown(sale)) / sale.quantity).quantize(Decimal("1e-8"), ROUND_DOWN)
        row: dict[str, Any] = {
            "id": escrow_id(sale.ask_id or sale.sale_id),
            "inscription_id": sale.inscription,
            "name": name_of(sale.slug, sale.inscription) if sale.inscription else None,
            "outpoint": sold_outpoint(self.engine, sale),
            "purchase_txid": sale.txid or made_up_txid(sale.sale_id),
            "seller_address": sale.seller,
            "buyer_address": sale.receive,
            "satoshi_price": self.shown(sale),
            "creator_address": self.market().creator or None,
            "bought_at": moment(sale.sold_ms),
            "created": moment(sale.listed_ms or sale.sold_ms),
            "price_per": plain(per),
            "amount": plain(sale.quantity),
            "secure_purchase_version": None,
            "secure_purchase_state": None,
            "protected": False,
            "private_relay": False,
        }
        return row | {"marketplace": MARKETPLACES[VENUE]} if rune else row


class SalesTape(OrdinalsWalletHandler):
    """`GET /collection/:slug/sales?limit=&before_height=`: sales of inscriptions at all venues that are in a block."""

    operation: Operation = "sales"

    def answer(self) -> Any:
        market = self.market()
        limit = self.query_whole("limit", MAX_PAGE, 1, MAX_PAGE)
        before = self.query_whole("before_height", 0, 0, 10_000_000)
        highest = min(self.engine.chain.height(), before - 1) if before else self.engine.chain.height()
        sold = [(self._height(sale), sale) for sale in self.engine.sales.of(market.key) if sale.inscription]
        found = [(height, sale) for height, sale in sold[::-1] if height <= highest]
        return {
            "sales": [self._row(height, sale) for height, sale in found[:limit]],
            "has_more": len(found) > limit,
            "matched_inscriptions": len({sale.inscription for _, sale in sold}),
        }

    def _height(self, sale: Sale) -> int:
        if sale.txid in self.engine.chain.transactions:
            return self.engine.chain.transactions[sale.txid].height
        return KNOWN_HEIGHT + (sale.sold_ms // 1000 - KNOWN_TIME) // BLOCK_SECONDS

    def _row(self, height: int, sale: Sale) -> dict[str, Any]:
        txid = sale.txid or made_up_txid(sale.sale_id)
        return {
            "block_height": height,
            "block_timestamp": block_time(height),
            "inscription_id": sale.inscription,
            "sequence_number": int.from_bytes(hashlib.sha256((sale.inscription or "").encode()).digest()[:3]),
            "old_satpoint": f"{sold_outpoint(self.engine, sale)}:0",
            "new_satpoint": f"{txid}:{INSCRIPTION_AT}:0",
            "txid": txid,
            "inscriptions_in_tx": 1,
            "sighash": BID_SIGHASH if sale.bid_id else LISTING_SIGHASH,
            "marketplace": MARKETPLACES.get(sale.venue, 0),
            "signals": 0,
            "seller_address": sale.seller,
            "buyer_address": sale.receive,
            "price_sats": self.shown(sale),
        }


def sold_outpoint(engine: Engine, sale: Sale) -> str:
    """Returns the output that was listed."""
    made = engine.chain.transaction(sale.txid)
    return outpoint_of(made.vin[SELLER_AT]) if made else f"{made_up_txid(f'listed {sale.sale_id}')}:0"
