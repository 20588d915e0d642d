"""Ordinals Wallet's reads of a wallet and of one inscription."""

from __future__ import annotations

from typing import Any

from simulator.calls import Operation
from simulator.dialects.mempool.routes import FEES
from simulator.dialects.ordinalswallet.base import (
    RUNE_SLUG,
    VENUE,
    OrdinalsWalletHandler,
    mainnet_address,
    serialized,
)
from simulator.dialects.ordinalswallet.items import collection_of, escrow, meta
from simulator.dialects.unisat.indexer import rune_id
from simulator.pictures import media_of
from simulator.wallets import Item
from simulator.wire import plain


class WalletInscriptions(OrdinalsWalletHandler):
    """`GET /wallet/:address/inscriptions`: all inscriptions of the address."""

    operation: Operation = "wallet"

    def answer(self) -> Any:
        held = self.engine.wallets.inscriptions.get(mainnet_address(self.path_args[0]), {})
        return self.staged("own_listings", [self._row(item) for item in held.values()], list(held.values()))

    def _row(self, item: Item) -> dict[str, Any]:
        coin, ask = self.engine.chain.coin_of(item.id), self.engine.listing_of(item.id, VENUE)
        market = self.engine.market("ordinals", item.collection)
        asks = self.asks(market) if market else []
        collection = collection_of(item, market)
        floor = self.shown(asks[0]) if asks else None
        return {
            "id": item.id,
            "num": item.number,
            "content_type": media_of(item.id),
            "meta": meta(item.name, item.traits),
            "collection": collection | {"floor_price": floor},
            "collection_slugs": [item.collection],
            "escrow": escrow(ask, self.shown(ask)) if ask else None,
            "outpoint": {"outpoint": serialized(coin), "sat_offset": 0, "sats": coin.value} if coin else None,
            "pending_sale": False,
        }


class RuneBalance(OrdinalsWalletHandler):
    """`GET /wallet/:address/rune-balance`, in whole tokens."""

    operation: Operation = "balance"

    def answer(self) -> Any:
        held = self.engine.wallets.runes.get(mainnet_address(self.path_args[0]), {})
        rows = []
        for ticker, tokens in sorted(held.items()):
            market = self.engine.market("runes", ticker)
            rows.append(
                {
                    "rune_id": rune_id(ticker),
                    "name": ticker,
                    "symbol": ticker[:1],
                    "amount": plain(tokens),
                    "divisibility": market.divisibility if market else 0,
                    "collection": {"slug": f"{RUNE_SLUG}{ticker}", "icon": "", "icon_inscription": None},
                }
            )
        return rows


class FeeEstimates(OrdinalsWalletHandler):
    """`GET /wallet/fee-estimates`, sat/vB."""

    operation: Operation = "fees"

    def answer(self) -> Any:
        return FEES
