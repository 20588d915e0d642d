"""Reads and cycles of a stage held against what is true of its market. Every check returns what is wrong, in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from markets.base import NotFound, NotSupported, RateLimited, Refused, VenueError
from markets.client import MarketClient
from models.ledger import listings, orders
from models.ledger.states import IS_FILLED
from models.ledger.states import Order as OwnOrder
from models.tasks import tasks
from models.tasks.cycles import cycles_of
from models.tasks.tasks import LISTING, RUNNING
from tests.scenes import market
from tests.scenes.market import BIRDS, BOOK, CATS, DOGS, FAR, NOWHERE, RUNE, SURELY_SHOWN, TRAIT, Made
from tests.scenes.stage import DIALECTS, ORDINALSWALLET, ORDNET, SATFLOW, UNISAT, Running, Stage

_TRIES = 6
# The scenes in which a venue names the transaction of a sale.
_TELLS_TXIDS = {
    SATFLOW: ("satflow_fill_fields",),
    UNISAT: ("unisat_sale_txid",),
    ORDNET: ("ordnet_sale_txids",),
}
_HAS_TRAITS = (SATFLOW, ORDINALSWALLET, ORDNET)


@dataclass
class Checks:
    """The checks of one stage. With `unknown_is_right` a refused read is not a fault: an odd row may be the best.

    `faults` are what is wrong; `unread` counts the reads that were refused.
    """

    stage: Stage
    made: Made
    unknown_is_right: bool = False
    faults: list[str] = field(default_factory=list)
    unread: int = 0

    # Reads

    def reads(self, client: MarketClient, venue: str) -> None:
        """Reads everything at the venue, and compares."""
        for slug in self.made.collections:
            self._floors(client, venue, slug)
            self._asks(client, venue, slug)
            if venue == SATFLOW or (venue == UNISAT and self._has("unisat_attrs")):
                self._asks_with_trait(client, venue, slug)
            self._sales(client, venue, slug)
        if venue in (SATFLOW, ORDNET):
            for slug in self.made.collections:
                self._bids(client, venue, slug)
        if venue == SATFLOW:
            self._bids(client, venue, RUNE)
            self._sales(client, venue, RUNE)
        self._traits(client, venue)
        self._items(client, venue)
        self._nowhere(client, venue)
        self.own(client, venue)

    def own(self, client: MarketClient, venue: str) -> None:
        """Compares own bids and own listings."""
        stage, dialect = self.stage, DIALECTS[venue]
        if venue in (SATFLOW, ORDNET):
            wallet = stage.keys.payment
            told = self._read(venue, "own_bids", lambda: client.own_bids(wallet, 0, [CATS, DOGS, BIRDS]))
            if told is not None:
                real = stage.world.engine.bids_of(wallet, venue=dialect)
                wanted = sorted((bid.price, bid.trait or ()) for bid in real)
                self._same(venue, "own_bids", sorted((bid.price, bid.trait or ()) for bid in told.bids), wanted)
        told = self._read(venue, "own_listings", lambda: client.own_listings(stage.keys.vault, 0))
        if told is not None:
            held = stage.world.engine.wallets.inscriptions.get(stage.keys.vault, {})
            listed = {each for each in held if stage.world.engine.listing_of(each, dialect)}
            self._same(venue, "own_listings", {each.inscription_id for each in told.listings}, listed)

    def _floors(self, client: MarketClient, venue: str, slug: str) -> None:
        told = self._read(venue, "floors", lambda: client.floors([slug], "ordinals", 0))
        if told is not None:
            prices = market.ask_prices(self.stage, venue, slug)
            found = told.get(slug)
            self._same(venue, f"floor of {slug}", found.floor if found else None, prices[0] if prices else None)

    def _asks(self, client: MarketClient, venue: str, slug: str) -> None:
        # Two answers in no order of price may leave the cheapest out: a longer book is unknown.
        is_cut = self._has("ordinalswallet_paged_escrows") and len(market.asks_of(self.stage, venue, slug)) > BOOK
        may_refuse = venue == ORDINALSWALLET and is_cut
        told = self._read(venue, "asks", lambda: client.asks(slug, 0), may_refuse=may_refuse)
        if told is None:
            return
        real = market.ask_prices(self.stage, venue, slug)
        found = [ask.price for ask in told.asks if not real or ask.price < FAR * real[-1]]
        # Two pages of a long book are some orders short of it.
        shown = len(real) if len(real) <= SURELY_SHOWN else max(len(found), SURELY_SHOWN)
        self._same(venue, f"asks of {slug}", found, real[: min(shown, BOOK)])
        known = {ask.maker for ask in told.asks}
        own = {ask.maker for ask in market.asks_of(self.stage, venue, slug) if ask.origin == "dialect"}
        if len(real) <= SURELY_SHOWN and not own <= known:
            self._wrong(venue, f"asks of {slug}", "our own listing is not known as ours")

    def _asks_with_trait(self, client: MarketClient, venue: str, slug: str) -> None:
        """Where listings show their traits, those with one of them are the real ones."""
        stage, told = self.stage, self._read(venue, "asks", lambda: client.asks(slug, 0, TRAIT))
        if told is None:
            return
        held = stage.world.engine.wallets.inscriptions.get(stage.keys.vault, {})
        asks = market.asks_of(stage, venue, slug)
        real = sorted(ask.price for ask in asks if TRAIT in ask.traits and ask.inscription not in held)
        found = [ask.price for ask in told.asks if not real or ask.price < FAR * real[-1]]
        shown = len(real) if len(asks) <= SURELY_SHOWN else len(found)
        self._same(venue, f"asks of {slug} with a trait", found, real[:shown])

    def _bids(self, client: MarketClient, venue: str, slug: str) -> None:
        kind: Any = "runes" if slug == RUNE else "ordinals"
        for trait in [None, TRAIT] if kind == "ordinals" else [None]:
            told = self._read(venue, "bids", lambda trait=trait: client.bids(slug, kind, 0, trait))  # type: ignore[misc]
            if told is None:
                continue
            real = [bid for bid in market.bids_of(self.stage, venue, slug) if bid.trait in (None, trait)]
            least = min((bid.unit_price for bid in real), default=0)
            found = [bid.unit_price for bid in told.bids if bid.unit_price > least / FAR]
            self._same(venue, f"bids of {slug}, {trait}", found, [bid.unit_price for bid in real][:BOOK])
            own = self.stage.world.engine.bids_of(self.stage.keys.payment, venue=DIALECTS[venue])
            wallets = {self.stage.keys.payment, *(bid.receive for bid in own)}
            ours = sum(bool(wallets & {bid.maker, getattr(bid, "receive", "")}) for bid in told.bids)
            self._same(venue, f"own bids among those of {slug}", ours, sum(bid.origin == "dialect" for bid in real))

    def _sales(self, client: MarketClient, venue: str, slug: str) -> None:
        kind: Any = "runes" if slug == RUNE else "ordinals"
        told = self._read(venue, "sales", lambda: client.sales(slug, kind, 0, 0))
        if told is None:
            return
        real = market.sales_of(self.stage, venue, slug)
        wanted = sorted(market.sale_price(venue, sale) for sale in real)
        self._same(venue, f"sales of {slug}", sorted(sale.price for sale in told.sales), wanted)
        if kind == "runes":
            amounts = sorted(sale.quantity for sale in real)
            self._same(venue, f"amounts sold of {slug}", sorted(sale.quantity or 0 for sale in told.sales), amounts)
        if any(self._has(name) for name in _TELLS_TXIDS.get(venue, ())):
            txids = sorted(str(getattr(sale, "txid", None)) for sale in told.sales)
            self._same(venue, f"transactions of sales of {slug}", txids, sorted(sale.txid for sale in real))
        buyers = {address for sale in real for address in (sale.buyer, sale.receive)}
        strangers = [sale.buyer for sale in told.sales if sale.buyer not in buyers]
        self._same(venue, f"buyers of {slug} that bought nothing", strangers, [])

    def _traits(self, client: MarketClient, venue: str) -> None:
        if venue not in _HAS_TRAITS:
            return
        told = self._read(venue, "traits", lambda: client.traits(DOGS, 0))
        if told is not None:
            self._same(venue, "traits", told, market.trait_counts(self.stage, venue, DOGS))

    def _items(self, client: MarketClient, venue: str) -> None:
        if venue != ORDNET:
            told = self._read(venue, "item", lambda: client.item(self.made.kept, 0))
            if told is not None:
                self._same(venue, "holder of an item that is not for sale", told.owner, self.stage.keys.vault)
        if venue in (SATFLOW, ORDINALSWALLET):
            vault = self.stage.keys.vault
            held = self._read(venue, "wallet_contents", lambda: client.wallet_contents(vault, 0))
            if held is not None:
                real = set(self.stage.world.engine.wallets.inscriptions.get(vault, {}))
                self._same(venue, "items of the vault", real & {item.id for item in held}, real)

    def _nowhere(self, client: MarketClient, venue: str) -> None:
        """A collection that no venue knows has no floor, and the venue is there.

        A row without a slug may be its floor: then it is unknown.
        """
        try:
            told = client.floors([NOWHERE], "ordinals", 0)
        except RateLimited:
            return
        except VenueError as error:
            if not isinstance(error, Refused) and error.kind != "not_understood":
                self._wrong(venue, "floor of an unknown collection", f"{type(error).__name__}: {error}")
            return
        self._same(venue, "floor of an unknown collection", told, {})

    # Tasks

    def running(self) -> None:
        """No task has ended, no breaker has opened, no program logged an error."""
        for worker in self.stage.running:
            row = tasks.with_owner(worker.task_id)
            if worker.ended or row is None or row.desired != RUNNING:
                self._wrong(worker.venue, "task", f"ended: {worker.ended or (row and row.last_error)}")
        for venue in self.stage.opened:
            self._wrong(venue, "breaker", "opened")
        self.faults += self.stage.complaints

    def orders(self) -> None:
        """What is at the venue is open in the ledger, and what is open there is at the venue."""
        for worker in self.stage.running:
            row = tasks.with_owner(worker.task_id)
            if row is None:
                continue
            if row.kind == LISTING:
                self._listing(worker)
            else:
                self._bidding(worker)

    def _listing(self, worker: Running) -> None:
        row = tasks.with_owner(worker.task_id)
        real = self.stage.world.engine.listing_of(row.inscription_id, DIALECTS[worker.venue]) if row else None
        open_here = listings.open_listing(worker.task_id)
        if real is None:
            self._wrong(worker.venue, "listing", f"is not at the venue: {row.last_error if row else ''}")
        elif open_here is None or open_here.price_sats != real.price:
            self._wrong(worker.venue, "listing", f"at the venue for {real.price}, and not in the ledger")

    def _bidding(self, worker: Running) -> None:
        row = tasks.with_owner(worker.task_id)
        assert row is not None
        ledger = sorted(int(order.price_sats) for order in orders.open_orders(worker.task_id))
        wallet = self.stage.keys.payment
        found = self.stage.world.engine.bids_of(wallet, venue=DIALECTS[worker.venue])
        real = sorted(bid.price for bid in found if bid.slug.lower() == str(row.slug).lower())
        self._same(worker.venue, f"open bids on {row.slug}", ledger, real)
        if not real:
            self._wrong(worker.venue, f"bids on {row.slug}", f"not one is at the venue: {row.last_error}")
        for price, quantity, rank in _ranks(worker.task_id):
            self._rank(worker.venue, str(row.slug), row.config, price, quantity, rank)

    def _rank(self, venue: str, slug: str, config: str, price: int, quantity: Any, rank: int) -> None:
        wanted = json.loads(config)
        trait = (wanted["trait_type"], wanted["trait_value"]) if wanted.get("bid_type") == "trait" else None
        unit = price / quantity
        rivals = [bid.unit_price for bid in market.bids_of(self.stage, venue, slug) if bid.trait in (None, trait)]
        ahead, level = sum(each > unit for each in rivals), sum(each >= unit for each in rivals)
        if not ahead + 1 <= rank <= max(level, ahead + 1):
            self._wrong(venue, f"rank of a bid on {slug}", f"found {rank}, true is {ahead + 1} to {level}")

    def sell_into(self, worker: Running, slug: str) -> int | None:
        """Has a stranger sell into the task's best bid; returns its price."""
        found = self.stage.world.engine.bids_of(self.stage.keys.payment, venue=DIALECTS[worker.venue])
        bids = [bid for bid in found if bid.slug.lower() == slug.lower()]
        if not bids:
            return None
        best = max(bids, key=lambda bid: bid.price)
        self.stage.wire.control("POST", "/sim/sell", {"slug": slug, "bidId": best.order_id})
        return best.price

    def is_filled(self, worker: Running, price: int) -> None:
        """A bid that was sold into is filled in the ledger."""
        filled = OwnOrder.select().where(OwnOrder.task_id == worker.task_id, IS_FILLED)
        if price not in [int(order.price_sats) for order in filled]:
            self._wrong(worker.venue, "fill", f"the sale of a bid of {price} is not found")

    def _has(self, name: str) -> bool:
        return self.stage.world.scenes.has(name)

    # Words

    def _read(self, venue: str, verb: str, ask: Callable[[], Any], *, may_refuse: bool = False) -> Any:
        error: VenueError | None = None
        for _ in range(_TRIES):
            try:
                return ask()
            except RateLimited as limited:
                error = limited
                self.stage.clock.advance(limited.retry_after_s or 10)
            except (NotSupported, NotFound) as refused:
                error = refused
                break
            except VenueError as refused:
                error = refused
                break
        self.unread += 1
        if not (self.unknown_is_right or (may_refuse and error is not None and error.kind == "not_understood")):
            self._wrong(venue, verb, f"{type(error).__name__}: {error}")
        return None

    def _same(self, venue: str, what: str, found: Any, wanted: Any) -> None:
        if found != wanted:
            self._wrong(venue, what, f"found {_short(found)}, true is {_short(wanted)}")

    def _wrong(self, venue: str, what: str, why: str) -> None:
        self.faults.append(f"{DIALECTS.get(venue, venue)}: {what}: {why}")


def _ranks(task_id: int) -> Iterator[tuple[int, Any, int]]:
    """Yields price, quantity and rank of the rungs of a task's last cycle that have a rank."""
    for cycle in cycles_of(task_id, 1):
        for rung in json.loads(cycle.detail).get("rungs", ()):
            order = OwnOrder.get_or_none(id=rung.get("placed_order") or rung.get("order") or 0)
            if rung.get("rank") is not None and order is not None:
                yield int(order.price_sats), Decimal(order.quantity), rung["rank"]


def _short(value: Any) -> str:
    text = str(sorted(value) if isinstance(value, set) else value)
    return text if len(text) <= 160 else f"{text[:157]}..."
