"""A preview: a config's plan on the market of this moment, decided as in a live cycle, with nothing placed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from core.errors import BidkeeperError
from markets.base import OwnBids, VenueError
from markets.call_costs import call_costs
from markets.gateway_client import stretch_s
from markets.look import KNOWN_SLUG_S, BidderWallet, Looker, MarketLook, history_key, kind_of
from markets.market_client import MarketClient
from markets.venues import capabilities
from models import controls, floor_samples
from models.ledger import orders
from models.ledger.limits import Holder, Readings, limits_of, may_be_full, own_orders
from models.ledger.order_table import Order
from models.ledger.shown_bids import match
from models.own_ceilings import own_ceilings
from models.tasks import tasks
from models.tasks.running_tasks import running_tasks
from models.tasks.table import BIDDING, Task
from server import task_config as bid_config
from server import task_venues
from server.bidding.preview_answer import plan_as_json
from server.bidding.signed_rooms import task_rooms
from server.bidding.tasks import BiddingTaskHandler, refuse_unknown_budget
from server.bidding.traits import refuse_unknown_trait
from server.http.api_errors import invalid, not_found
from server.market import MAX_AGE_S, PREVIEWED_LEVELS, UNKNOWN_SLUG, OrderBook, order_book
from strategy.bid_config import BidConfig, load_bid_config, normal_slug
from strategy.bidding.plan_bids import plan_bids
from strategy.book import History, VenueProfile
from strategy.entry import Entry
from strategy.fault_codes import Step
from strategy.monthly import KeyQuota, MonthlyQuota
from strategy.plan_inputs import Memory, Rules
from strategy.reasons import Reason
from wallet.signer_client import SignerError


@dataclass(slots=True)
class _Notes:
    """The failures of a look: words for the caller, and the venue's error by attempt."""

    texts: list[str] = field(default_factory=list)
    errors: dict[str, VenueError] = field(default_factory=dict)

    def add(self, step: Step, failed_to: str, error: BidkeeperError | str, *, backs_off: bool = True) -> None:
        self.texts.append(f"failed to {failed_to}: {error}")
        if isinstance(error, VenueError):
            self.errors[failed_to] = error


@dataclass(frozen=True, slots=True)
class _PreviewReads:
    """All values read for one preview; `is_known` says whether there is such a collection or rune."""

    profile: VenueProfile
    seen: MarketLook
    wallet: BidderWallet  # whose payment address `own_bids` are of
    own_bids: OwnBids
    is_known: bool
    faults: tuple[str, ...]
    rungs: int | None
    stretch_s: int
    skew_s: float


class PreviewHandler(BiddingTaskHandler):
    """POST /api/tasks/preview"""

    answers_s = 8.0  # several calls, one after the other

    async def post(self) -> None:
        task, config, venue = self._meant()
        config = own_ceilings(self.user).config(config)
        self.refuse_unsupported(config)
        await refuse_unknown_trait(self.look, config, venue)
        market = await self._read(config, venue)
        entry, trouble = await self._signing(task, self._entry(task, config, venue, market))
        control = controls.effective(self.user.id, task.id if task else 0)
        around: dict[str, Any] = {
            "taskId": task.id if task else None,
            "exposure": orders.exposure(self.user.id, dry_run=config.dry_run),
            # The plan is for a task that neither holds back.
            "control": {"state": control.state, "scope": control.scope},
            "refusal": self.services.entitlements.refusal(self.user, self.now_ms),
            "errors": [*market.faults, *trouble],
        }
        around["book"] = _book(market)
        self.answer(around | plan_as_json(entry, plan_bids(entry), market.seen, self._month(task, venue), self.user.id))

    async def _signing(self, task: Task | None, entry: Entry) -> tuple[Entry, list[str]]:
        """Returns the cycle with the signer's ceilings, or without them and why."""
        plan = self.services.entitlements.plan(self.user)
        try:
            signed = await task_rooms(self.services, self.user, task.id if task else None, entry.config, plan)
        except SignerError as error:
            return entry, [f"failed to ask how much may be signed: {error}"]
        return replace(entry, limits=replace(entry.limits, signed=signed)), []

    def _month(self, task: Task | None, venue: str) -> MonthlyQuota:
        """Returns the other demands on the key's quota at the venue."""
        quota = KeyQuota.tightest(*self.services.settings.key_calls(venue))
        others = running_tasks(but=task.id if task else None) if quota.calls else {}
        return MonthlyQuota(quota, call_costs(venue), others.get(venue, ()))

    def _meant(self) -> tuple[Task | None, BidConfig, str]:
        """Returns the caller's own task in question, if any, config and venue. Raises ApiError: 404, 400."""
        given = self.json_object()
        task_id, stored, faults = given.pop("taskId", None), None, list[str]()
        if type(task_id) is int and task_id > 0:
            stored = self.task(str(task_id))
        elif task_id is not None:
            faults.append("taskId: must be the id of a task")
        config, details = bid_config.merged(given, load_bid_config(stored.config) if stored else None)
        task = stored or self._task_on(config)
        if task is None:
            venue, wrong = task_venues.named(given, self.services.settings)
        else:
            venue = task.venue
            wrong = task_venues.moved(given, venue)
        config = task_venues.delivering(given, venue, config)
        if found := [*faults, *details, *wrong] or task_venues.unfit_for_bids(venue, config):
            raise invalid(found)
        refuse_unknown_budget(self.user.id, config)
        return task, config, venue

    def _task_on(self, config: BidConfig) -> Task | None:
        key = normal_slug(config.type, config.slug)
        return next((task for task in tasks.of_user(self.user.id, BIDDING) if task.slug_key == key), None)

    async def _read(self, config: BidConfig, venue: str) -> _PreviewReads:
        """Reads the market. Raises ApiError: 404, 502 when there is nothing to decide on, 503."""
        user, clock_ms = self.user, self.services.clock_ms
        keys = await self.ask_signer(lambda signer: signer.addresses(user.address))
        addresses = frozenset({user.address, user.ordinals_address, keys.payment, keys.vault})
        wallet = BidderWallet(keys.payment, keys.payment_pubkey, user.ordinals_address, addresses)
        placed = [order for order in orders.wallet_orders(keys.payment) if order.venue == venue]
        key = history_key(config, venue, self.services.settings.market)
        history = floor_samples.history_for(config, key, self.now_ms)

        def ask(default: MarketClient) -> _PreviewReads:
            market = default.at(venue)
            own_bids = market.own_bids(wallet.payment, MAX_AGE_S, [config.slug])
            knowing = _knowing(wallet, placed, own_bids) if config.wants_bids else wallet
            return _looked(market, Looker(market, clock_ms), config, knowing, own_bids, history)

        found = await self.ask_market(ask)
        if not found.is_known:
            raise not_found(UNKNOWN_SLUG)
        return found

    def _entry(self, task: Task | None, config: BidConfig, venue: str, market: _PreviewReads) -> Entry:
        """Makes a cycle of the task, or the first one of a task that is yet to be created."""
        now_ms, settings, task_id = self.now_ms, self.services.settings, task.id if task else None
        plan, bids = self.services.entitlements.plan(self.user), market.own_bids
        wallet = market.wallet.payment
        shown = match(task_id, capabilities(venue), wallet, bids.bids, bids.taken_ms, bids.unread)
        read = Readings(
            balance_sats=market.seen.balance_sats,
            fee_reserve_sats=market.seen.fee_reserve_sats,
            untracked_sats=shown.untracked_sats,
            rungs=market.rungs,
            skew_s=market.skew_s,
        )
        limits = limits_of(Holder(self.user.id, task_id, config, plan), read, settings.max_exposure_sats, now_ms)
        own = own_orders(orders.open_orders(task_id), config) if task_id else ()
        is_unsure = shown.may_hide_strays or may_be_full(limits, sum(order.price_sats for order in own), shown)
        return Entry(
            now_ms=now_ms,
            config=config,
            profile=market.profile,
            snapshot=market.seen.snapshot,
            own=own,
            limits=limits,
            rules=Rules.of(config.loop_s, market.stretch_s, settings.tolerance, settings.min_age_seconds),
            memory=Memory.loads(task.memory) if task else Memory(),
            restraint=Reason.OWN_BIDS_UNKNOWN if is_unsure and not config.dry_run else None,
        )


def _book(market: _PreviewReads) -> OrderBook:
    """Returns the levels of the very books that the plan was made on."""
    books = market.seen.books
    asks = "it was not read" if books is None else books.asks
    bids = books.bids if books is not None and books.bids is not None else "this config does not look at others' bids"
    return order_book(asks, bids, market.wallet, PREVIEWED_LEVELS)


def _knowing(wallet: BidderWallet, placed: list[Order], own_bids: OwnBids) -> BidderWallet:
    """Returns the wallet with everything that tells its own bids from others'."""
    ids = (
        {bid.venue_id for bid in own_bids.bids}
        | set(own_bids.unread)
        | {order.venue_id for order in placed if order.venue_id}
    )
    return replace(wallet, bid_ids=frozenset(ids), bid_prices=frozenset(order.price_sats for order in placed))


def _looked(
    market: MarketClient, looker: Looker, config: BidConfig, wallet: BidderWallet, own_bids: OwnBids, history: History
) -> _PreviewReads:
    """Looks at the market. Raises VenueError when there is nothing to decide on."""
    notes = _Notes()
    profile = market.profile(kind_of(config))
    # Money that was just sent to the wallet must count.
    seen = looker.look(config, wallet, history, MAX_AGE_S, notes, balance_age_s=0.0)
    for failed_to in ("read the asks", "read the bids"):
        if failed_to in notes.errors:
            raise notes.errors[failed_to]
    # An empty book and a missing one look alike; the floors tell them apart.
    is_known = bool(seen.asks_read or market.floors([config.slug], kind_of(config), KNOWN_SLUG_S))
    return _PreviewReads(
        profile,
        seen,
        wallet,
        own_bids,
        is_known,
        tuple(notes.texts),
        market.scarcity.rungs,
        stretch_s(market, is_rune=config.is_rune),
        market.skew_s,
    )
