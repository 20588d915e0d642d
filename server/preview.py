"""The preview of a config: its plan for the current market, decided as in a live cycle. Nothing is placed."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, field
from msgspec.structs import replace

from core.errors import BidkeeperError
from core.fields import Count, Price, Sats, Time, iso, words
from core.subscription_plans import SubscriptionPlan
from markets.base import BidBook, OwnBids, VenueError
from markets.client import MarketClient, stretch_s
from markets.look import KNOWN_SLUG_S, BidderWallet, Looker, MarketLook, fund_of, history_key, kind_of, trait_of
from markets.venues import ToFund, call_costs, capabilities
from models import users
from models.accounts import READ
from models.ledger import orders
from models.ledger.limits import (
    Holder,
    Readings,
    fills_of,
    limits_of,
    match,
    may_be_full,
    most_signed_task,
    most_signed_user,
    own_orders,
    with_others,
)
from models.ledger.states import Order
from models.summaries import running_tasks
from models.tasks import cycles, tasks
from models.tasks.tasks import BIDDING, Task
from models.users import own_ceilings
from server import task_config, task_handler
from server.control import EffectiveState
from server.http.answers import INVALID, SIGNER_AWAY, TOO_MANY_LOOKUPS, UNREADABLE, invalid, not_found
from server.http.base import route
from server.http.shapes import Answer, ReasonCode, exact
from server.market import MAX_AGE_S, NO_SESSION, PREVIEWED_LEVELS, UNKNOWN_SLUG, OrderBook, order_book
from server.task_config import shape
from server.tasks import BiddingTaskHandler, refuse_unknown_budget
from strategy import decision
from strategy.book import Bid, History, VenueProfile
from strategy.config.bid import BidConfig, load_bid_config, normal_slug
from strategy.decision import BidPlan, BudgetRoom, Entry, Limits, Memory, Rules, RungNote, missing_sats, ranks_of_plan
from strategy.monthly import Bidding, KeyQuota, MonthlyQuota, MonthlyVerdict, hints
from strategy.plan_bids import plan_bids
from strategy.reasons import Reason, Step
from wallet.signer_client import SignerError

RIVALS_AGE_S = 600.0  # maximum age of bids that are read only for the ranks of a plan
_FOR_NOW = (Reason.QUOTA, Reason.CLOCK_SKEW, Reason.SIGNED_LIMIT)  # temporary, so the rung still wants a bid

TaskPreview = shape(
    "TaskPreview",
    """The config of a new bidding task; or, with `taskId`, changes to that task's config as PUT takes them.

    Without `taskId` the slug is required, and a task of the caller's for the same slug is used.
    """,
    task_config.FIELDS
    | {
        "task_id": Annotated[
            Annotated[int, Meta(extra_json_schema={"minimum": 1})] | None,
            words("The caller's task that is to be changed."),
        ]
    },
    task_config.NEW | {"slug": UNSET, "task_id": UNSET},
)


class PlannedRung(Answer, frozen=True, kw_only=True):
    """The fate of one rung; 0 is the top."""

    rung: Count
    price: Annotated[Sats | None, words("Sats of the whole order; null when none could be computed.")]
    quantity: Annotated[
        Decimal | None,
        words("Items or tokens of the bid here, or of one that there could be; null when none was computed."),
    ]
    reason: ReasonCode
    detail: Annotated[str, words("What is behind the reason, if more can be said.")]
    order: Annotated[int | None, words("The task's open order that holds the rung, or is renewed.")]
    rank: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        words(
            "Place of its bid once the plan is carried out, among the bids of others and the task's own; of equal bids "
            "the older is ahead. Null without a bid, and when the bids of others are not known."
        ),
    ]


class PlannedCancel(Answer, frozen=True, kw_only=True):
    """A live bid of the task that would be cancelled."""

    order: int
    price: Sats
    reason: ReasonCode
    hard: Annotated[bool, words("It must go whatever else happens.")]


class PreviewedMarket(Answer, frozen=True, kw_only=True):
    """The book without the caller's own orders."""

    taken_at: Time
    asks: Count
    own_asks: Annotated[Count, words("The caller's own listings, which are left out.")]
    lowest_ask: Price | None
    trait_asks: Annotated[Count | None, words("Asks known to have the trait; null: not told.")]
    bids: Annotated[Count | None, words("Competing bids; null when the config does not need them.")]
    highest_bid: Price | None
    median: Annotated[Price | None, words("Of the last hour's references; null in a cold start.")]
    samples: Count


class SignedRoom(Answer, frozen=True, kw_only=True):
    """One ceiling on bids that are signed and not expired, cancelled or not."""

    whose: Annotated[str, Meta(extra_json_schema={"enum": ["task", "user", "installation"]})]
    most: Sats
    signed: Sats


class BudgetLeft(Answer, frozen=True, kw_only=True):
    """The room in a budget that the task shares, its own open bids included; null is no limit."""

    id: int
    name: str
    sats: Sats | None
    fills: Count | None


class PreviewLimits(Answer, frozen=True, kw_only=True):
    """The limits of the task; null is no limit."""

    task_total: Sats | None
    exposure: Annotated[int, words("What the plan leaves to this task, its own open orders included.")]
    bids: Annotated[Count, words("Bids a task may have under the plan.")]
    fills: Count | None
    spend: Sats | None
    fills_today: Annotated[Count | None, words("What maxFillsPerDay leaves of these 24 hours.")]
    spend_today: Annotated[Sats | None, words("What spendCapPerDaySats leaves of these 24 hours.")]
    signed: Annotated[
        list[SignedRoom],
        words("What the signer's ceilings leave; empty for a dry run, and while the signer cannot be asked."),
    ]
    budget: Annotated[BudgetLeft | None, words("What the budget of its `budgetId` leaves; null without.")]
    hold: Annotated[ReasonCode | None, words("Why nothing is placed for now.")]


class MonthlyCalls(Answer, frozen=True, kw_only=True):
    """The approximate calls to the marketplace in 30 days, and whether they fit its quota."""

    reads: Annotated[Count, words("If the market stood still, nothing was shared and no read made older.")]
    writes: Annotated[Count, words("Renewals of the planned bids, if the market stood still.")]
    fits: Annotated[bool, words("The quota has what cannot be saved, with all other tasks that run; true without one.")]
    fits_from_expiry_minutes: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        words("The least bidExpiryMinutes with which it fits; null: there is none."),
    ]


class Preview(Answer, frozen=True, kw_only=True):
    """The plan for a config on the market of this moment. Nothing was placed or cancelled."""

    task_id: Annotated[int | None, words("The task whose open orders were counted in; null: a new one.")]
    rungs: list[PlannedRung]
    cancels: list[PlannedCancel]
    total: Annotated[Count, words("Sats of all bids that would be placed.")]
    reference: Annotated[Price | None, words("What the range hangs on; null when there is none.")]
    raw_reference: Annotated[Price | None, words("The same before it was held against the last hour.")]
    marks: Annotated[list[ReasonCode], words("What holds for the whole plan.")]
    market: PreviewedMarket | None
    book: Annotated[OrderBook, words("The best 50 levels of the books that the plan was made on.")]
    balance: Annotated[Sats | None, words("Of the bidding wallet; null when it is not known.")]
    fee_reserve: Annotated[Sats | None, words("Kept for the fees of one purchase; null: not known.")]
    funded_at: Annotated[
        str | None, words("The address whose balance that is: send sats here. Null when it is not known.")
    ]
    missing: Annotated[Count, words("Sats to send there for all bids of the plan; 0 if the balance covers them.")]
    exposure: Annotated[Count, words("Sats of all open orders of the caller.")]
    limits: PreviewLimits
    control: Annotated[EffectiveState, words("The plan does not heed it: it shows what `run` would do.")]
    refusal: Annotated[str | None, words("Why the caller may not run tasks now.")]
    errors: Annotated[list[str], words("What could not be read and was done without.")]
    monthly_calls: MonthlyCalls
    hints: Annotated[list[str], words("What to know of the price of this config, in plain words; empty: nothing.")]


class _Notes(Struct):
    """The failures of the reads: texts for the caller, and the venue's error by attempt."""

    texts: list[str] = field(default_factory=list)
    errors: dict[str, VenueError] = field(default_factory=dict)

    def add(self, step: Step, failed_to: str, error: BidkeeperError | str, *, backs_off: bool = True) -> None:
        self.texts.append(f"failed to {failed_to}: {error}")
        if isinstance(error, VenueError):
            self.errors[failed_to] = error


class _PreviewReads(Struct, frozen=True):
    """All values read for one preview; `is_known` says whether the collection or rune exists."""

    profile: VenueProfile
    seen: MarketLook
    wallet: BidderWallet  # `own_bids` are the bids of its payment address
    own_bids: OwnBids
    is_known: bool
    faults: tuple[str, ...]
    rungs: int | None
    stretch_s: int
    skew_s: float
    rivals: BidBook | None  # all bids, for the ranks of rungs; None if they could not be read

    @property
    def others(self) -> list[Bid] | None:
        """The bids of other users in `rivals`."""
        return None if self.rivals is None else [bid for bid in self.rivals.bids if not self.wallet.owns_bid(bid)]

    @property
    def hidden(self) -> int:
        """The number of bids that could not be read."""
        return 0 if self.rivals is None else self.rivals.hidden


class Previews(BiddingTaskHandler):
    """The operation that previews a config."""

    tag = "bidding tasks"

    @route(
        "POST /api/tasks/preview",
        READ,
        says="The plan, with one reason for every rung.",
        errors={
            400: INVALID,
            404: "The marketplace does not know the slug, or the task is not the caller's.",
            409: NO_SESSION,
            429: TOO_MANY_LOOKUPS,
            502: UNREADABLE,
            503: SIGNER_AWAY,
        },
        body=TaskPreview,
        answers_s=8.0,  # because it makes several calls, one after the other
    )
    async def preview_task(self) -> Preview:
        """What a config would do on the market of this moment

        Reads and decides as a running task does, by books at most 10 seconds old, and places nothing. What the
        marketplace does not tell of balance or fees is null, with the reason in `errors`.
        """
        task, config, venue = self._meant()
        config = own_ceilings(self.user).config(config)
        self.refuse_unsupported(config)
        await task_handler.refuse_unknown_trait(self.look, config, venue)
        market = await self._read(config, venue)
        entry, trouble = await self._signing(task, self._entry(task, config, venue, market))
        plan, seen = plan_bids(entry), market.seen
        month, bidding = self._month(task, venue), _bidding(entry, plan, self.user.id)
        control: Any = users.control_of(self.user.id, task.id if task else 0)
        return Preview(
            task_id=task.id if task else None,
            rungs=rungs_shown(entry, plan, market.others, fund_of(entry, plan, seen), is_whole=not market.hidden),
            cancels=cancels_shown(plan),
            total=sum(intent.price_sats for intent in plan.to_place),
            reference=exact(plan.reference),
            raw_reference=exact(plan.raw_reference),
            marks=[str(mark) for mark in plan.marks],
            market=_market_shown(seen),
            book=_book(market),
            balance=seen.balance_sats,
            fee_reserve=seen.fee_reserve_sats,
            funded_at=seen.funded_at,
            missing=missing_sats(entry, plan),
            exposure=orders.exposure(self.user.id, dry_run=config.dry_run),
            limits=_limits_shown(entry.limits),
            # The plan is made as if neither of these stopped the task.
            control=EffectiveState(state=control.state, scope=control.scope),
            refusal=self.services.entitlements.refusal(self.user, self.now_ms),
            errors=[*market.faults, *trouble],
            monthly_calls=_monthly(month.judged(bidding)),
            hints=list(hints(bidding, month.costs, _ladder_sats(plan), entry.limits)),
        )

    async def _signing(self, task: Task | None, entry: Entry) -> tuple[Entry, list[str]]:
        """Returns the cycle with the signer's ceilings, or without them and with the reasons."""
        plan = self.services.entitlements.plan(self.user)
        try:
            signed = await self._task_rooms(task.id if task else None, entry.config, plan)
        except SignerError as error:
            return entry, [f"failed to ask how much may be signed: {error}"]
        return replace(entry, limits=replace(entry.limits, signed=signed)), []

    async def _task_rooms(
        self, task_id: int | None, config: BidConfig, plan: SubscriptionPlan | None
    ) -> tuple[decision.SignedRoom, ...]:
        """Returns the use of ceilings that the task's worker would see with this config; none for a dry run.

        Raises SignerError.
        """
        if config.dry_run:
            return ()
        address, of_user = self.user.address, most_signed_user(plan) if plan else 0
        of_task = most_signed_task(config, plan, fills_of(task_id, config).sats) if plan else 0
        rooms = await self.services.signer(lambda signer: signer.rooms_under(address, task_id or 0, of_task, of_user))
        return with_others(rooms, self.user.id, task_id)

    def _month(self, task: Task | None, venue: str) -> MonthlyQuota:
        """Returns the quota of the venue's key and its use by other tasks."""
        quota = KeyQuota.tightest(*self.services.settings.key_calls(venue))
        others = running_tasks(but=task.id if task else None) if quota.calls else {}
        return MonthlyQuota(quota, call_costs(venue), others.get(venue, ()))

    def _meant(self) -> tuple[Task | None, BidConfig, str]:
        """Returns the caller's task, if there is one, and the config and the venue. Raises ApiError: 404, 400."""
        given = self.json_object()
        task_id, stored, faults = given.pop("taskId", None), None, list[str]()
        if type(task_id) is int and task_id > 0:
            stored = self.task(str(task_id))
        elif task_id is not None:
            faults.append("taskId: must be the id of a task")
        config, details = task_config.merged(given, load_bid_config(stored.config) if stored else None)
        task = stored or self._task_on(config)
        if task is None:
            venue, wrong = task_handler.named_venue(given, self.services.settings)
        else:
            venue = task.venue
            wrong = task_handler.moved_venue(given, venue)
        config = task_handler.with_delivery(given, venue, config)
        if found := [*faults, *details, *wrong] or task_handler.unfit_for_bids(venue, config):
            raise invalid(found)
        refuse_unknown_budget(self.user.id, config)
        return task, config, venue

    def _task_on(self, config: BidConfig) -> Task | None:
        key = normal_slug(config.type, config.slug)
        return next((task for task in tasks.of_user(self.user.id, BIDDING) if task.slug_key == key), None)

    async def _read(self, config: BidConfig, venue: str) -> _PreviewReads:
        """Reads the market. Raises ApiError: 404, 502 if the necessary data cannot be read, 503."""
        user, clock_ms = self.user, self.services.clock_ms
        keys = await self.ask_signer(lambda signer: signer.addresses(user.address))
        addresses = frozenset({user.address, user.ordinals_address, keys.payment, keys.vault})
        wallet = BidderWallet(keys.payment, keys.payment_pubkey, user.ordinals_address, addresses)
        placed = [order for order in orders.wallet_orders(keys.payment) if order.venue == venue]
        key = history_key(config, venue, self.services.settings.market)
        history = cycles.history_for(config, key, self.now_ms)

        def ask(default: MarketClient) -> _PreviewReads:
            market = default.at(venue)
            own_bids = market.own_bids(wallet.payment, MAX_AGE_S, [config.slug])
            marked = _with_own_bids(wallet, placed, own_bids)
            return _read_market(market, Looker(market, clock_ms), config, marked, own_bids, history)

        found = await self.ask_market(ask)
        if not found.is_known:
            raise not_found(UNKNOWN_SLUG)
        return found

    def _entry(self, task: Task | None, config: BidConfig, venue: str, market: _PreviewReads) -> Entry:
        """Makes the entry of a cycle, which is the first cycle if the task is not created yet."""
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
    """Returns the levels of the books that the plan is based on."""
    books = market.seen.books
    asks = "it was not read" if books is None else books.asks
    bids = books.bids if books is not None and books.bids is not None else "this config does not look at others' bids"
    return order_book(asks, bids, market.wallet, PREVIEWED_LEVELS)


def _with_own_bids(wallet: BidderWallet, placed: list[Order], own_bids: OwnBids) -> BidderWallet:
    """Returns the wallet with the ids and prices that identify its own bids."""
    ids = (
        {bid.venue_id for bid in own_bids.bids}
        | set(own_bids.unread)
        | {order.venue_id for order in placed if order.venue_id}
    )
    return replace(wallet, bid_ids=frozenset(ids), bid_prices=frozenset(order.price_sats for order in placed))


def _read_market(
    market: MarketClient, looker: Looker, config: BidConfig, wallet: BidderWallet, own_bids: OwnBids, history: History
) -> _PreviewReads:
    """Reads the market. Raises VenueError if asks or bids cannot be read."""
    notes = _Notes()
    profile = market.profile(kind_of(config))
    # The balance is read anew, so that money sent to the wallet just now counts.
    seen = looker.look(config, wallet, history, MAX_AGE_S, notes, balance_age_s=0.0)
    for failed_to in ("read the asks", "read the bids"):
        if failed_to in notes.errors:
            raise notes.errors[failed_to]
    # An empty book may also mean an unknown slug, so check for a floor, which only known slugs have.
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
        seen.books.bids if config.wants_bids and seen.books else _rivals(market, config),
    )


def _rivals(market: MarketClient, config: BidConfig) -> BidBook | None:
    """Reads the bids only for the ranks; None if that fails, because the plan does not need them."""
    try:
        return market.bids(config.slug, kind_of(config), RIVALS_AGE_S, trait_of(config))
    except VenueError:
        return None


def rungs_shown(
    entry: Entry, plan: BidPlan, others: Sequence[Bid] | None, fund: ToFund | None = None, *, is_whole: bool
) -> list[PlannedRung]:
    """Returns the outcome of each rung, with its present or new bid and the bid's rank among `others`.

    `others` is None if they are unknown; `fund` says how to get enough balance.
    """
    ranks = {} if others is None else ranks_of_plan(plan, entry.own, others, entry.now_ms, is_whole=is_whole)
    own = {order.id: order.quantity for order in entry.own}

    def quantity(note: RungNote) -> Decimal | None:
        """Returns the quantity of the new bid, else of the rung's present bid, else of a possible bid."""
        is_held = note.order_id is not None and note.reason is not Reason.RENEW
        return own.get(note.order_id or 0, note.quantity) if is_held else note.quantity

    return [
        PlannedRung(
            rung=note.rung,
            price=note.price_sats,
            quantity=exact(quantity(note)),
            reason=str(note.reason),
            detail=fund.words if fund and note.reason is Reason.INSUFFICIENT_BALANCE else note.detail,
            order=note.order_id,
            rank=ranks.get(note.rung),
        )
        for note in plan.rungs
    ]


def cancels_shown(plan: BidPlan) -> list[PlannedCancel]:
    """Returns the bids that the plan cancels."""
    return [
        PlannedCancel(order=each.order_id, price=each.price_sats, reason=str(each.reason), hard=each.hard)
        for each in plan.to_cancel
    ]


def _wanted(plan: BidPlan) -> list[RungNote]:
    """Returns the rungs that have or get a bid, or would get one without a temporary restraint."""
    return [note for note in plan.rungs if not note.is_skipped or note.reason in _FOR_NOW]


def _ladder_sats(plan: BidPlan) -> int:
    return sum(note.price_sats or 0 for note in _wanted(plan))


def _bidding(entry: Entry, plan: BidPlan, user_id: int) -> Bidding:
    return Bidding(entry.config, 0 if entry.config.dry_run else len(_wanted(plan)), user_id)


def _market_shown(seen: MarketLook) -> PreviewedMarket | None:
    snapshot = seen.snapshot
    if snapshot is None:
        return None
    bids = snapshot.bids
    return PreviewedMarket(
        taken_at=iso(snapshot.taken_ms),
        asks=len(snapshot.asks),
        own_asks=seen.asks_read - len(snapshot.asks),
        lowest_ask=exact(min((ask.unit_price for ask in snapshot.asks), default=None)),
        trait_asks=None if snapshot.trait_asks is None else len(snapshot.trait_asks),
        bids=None if bids is None else len(bids),
        highest_bid=exact(max((bid.unit_price for bid in bids), default=None) if bids else None),
        median=exact(snapshot.history.median),
        samples=snapshot.history.samples,
    )


def _limits_shown(limits: Limits) -> PreviewLimits:
    return PreviewLimits(
        task_total=limits.task_total or None,
        exposure=limits.user_headroom,
        bids=limits.plan_bids,
        fills=limits.fills_left,
        spend=limits.spend_left_sats,
        fills_today=limits.fills_left_today,
        spend_today=limits.spend_left_today_sats,
        budget=_budget(limits.budget),
        hold=None if limits.hold is None else str(limits.hold),
        signed=[SignedRoom(whose=room.whose, most=room.most_sats, signed=room.signed_sats) for room in limits.signed],
    )


def _budget(room: BudgetRoom | None) -> BudgetLeft | None:
    if room is None:
        return None
    return BudgetLeft(id=room.budget_id, name=room.name, sats=room.sats, fills=room.orders)


def _monthly(found: MonthlyVerdict) -> MonthlyCalls:
    """Returns the calls that all bids of the plan cost in 30 days."""
    return MonthlyCalls(
        reads=found.alone.reads,
        writes=found.alone.writes,
        fits=found.fits,
        fits_from_expiry_minutes=found.from_minutes,
    )
