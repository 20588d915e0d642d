"""The preview of an auto-list task: the price, the facts behind it, and the signer's verdict.

The facts are read before a task is created, previewed, started or deleted. A start is not refused because a marketplace
or an index does not respond: the worker checks again, and so does the signer before it signs.

A preview decides as a live cycle does. It signs, stores and lists nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, convert, field
from msgspec.structs import replace

from core.errors import BidkeeperError
from core.fields import Count, Price, Sats, words
from markets import items
from markets.base import NotFound, NotUnderstood, VenueError
from markets.client import MarketClient
from markets.items import ItemLook, LocatedInscription
from markets.orders import ListingToDraft, OwnListing
from markets.venues import capabilities
from models import users, venue_memory
from models.accounts import READ
from models.ledger import listings, purchases
from models.ledger.listings import NewListing, OpenElsewhere
from models.ledger.states import GONE, LIVE, SOLD, Listing
from models.tasks import cycles, tasks
from models.tasks.tasks import LISTING, Task
from server import task_config as listing_config
from server import task_handler
from server.control import EffectiveState
from server.http.answers import INVALID, NOT_YOURS, SIGNER_AWAY, TOO_MANY_LOOKUPS, TOO_SLOW, ApiError, invalid
from server.http.base import SignedIn, route
from server.http.shapes import Answer, ReasonCode, exact, one_of, shown_as
from server.inscriptions import look_up
from server.task_handler import TaskHandler
from strategy.config.bid import BidConfig
from strategy.config.listing import ListingConfig, load_listing_config, problems, unstartable
from strategy.plan_listing import SALES, Listed, ListingInputs, ListingPlan, guard, plan_listing, scheduled
from strategy.purchases import ProvenPurchase
from strategy.reasons import Step
from wallet.protocol import Judgement, UserKeys, in_words, to_judge, verdict
from wallet.signer_client import SignerError

PATIENCE_S = 5.0
UNPROVED = (
    "a marketplace says that your bid bought this, and the chain has not proved it:"
    " its cost stays unknown unless you give costSats"
)
_NOT_YET = "This cannot be started yet"
_UNKNOWN = "inscriptionId: there is no such inscription in any block yet"
_NO_COLLECTION = "collectionId: is required, as the marketplace does not tell of which collection the inscription is"
_UNREAD = "The marketplace could not be asked whether it still shows a listing of this inscription."
_UNTRACED = "The marketplace shows a listing of this inscription; cancel it there, as nobody here knows what it spends."

CostSource = Literal["fill", "claimed", "given"]
log = logging.getLogger(__name__)


# ---- checks before a start


async def startable_collection(handler: SignedIn, task: Task, config: ListingConfig, named: str | None) -> str | None:
    """Returns the collection of the task with this config: `named`, else from any source; None if no source responds.

    Raises ApiError (400) for a task that no worker could run: an incomplete config, or a price that depends on an
    unknown collection or on a trait that the collection does not have.
    """
    if found := listing_config.listing_details_of([*problems(config), *unstartable(config)]):
        raise invalid(found, _NOT_YET)
    settings, venue = handler.services.settings, task.venue
    found = task_handler.missing_venue(venue, settings) or task_handler.unfit_for_listing(venue, config)
    if found := found or task_handler.not_signed_listings(venue, settings):
        raise invalid(found, _NOT_YET)
    collection_id = named or known_collection(handler, task.inscription_id, venue)
    if collection_id is None and config.wants_collection:
        collection_id = await _told_collection(handler, task.inscription_id, venue)
    if config.trait is not None and collection_id is not None:
        kind, value = config.trait
        asked = BidConfig(collection_id, bid_type="trait", trait_type=kind, trait_value=value)
        await task_handler.refuse_unknown_trait(handler.act, asked, venue)
    return collection_id


def known_collection(handler: SignedIn, inscription_id: str, venue: str) -> str | None:
    """Returns the collection found by an earlier read, as this venue names it."""
    is_its_word = venue == task_handler.venue_telling_wallets(handler.services.settings)
    return venue_memory.collection_of(inscription_id) if is_its_word else None


async def _told_collection(handler: SignedIn, inscription_id: str, venue: str) -> str | None:
    try:
        asked = look_up(handler, handler.act, inscription_id, 0.0, venue)
        found = (await asyncio.wait_for(asked, PATIENCE_S)).collection_id
    except NotFound:
        found = None
    except (VenueError, TimeoutError):
        return None  # the worker reads it again
    if found is None:
        raise invalid([_NO_COLLECTION], _NOT_YET)
    return found


async def refuse_outside_vault(handler: SignedIn, inscription_id: str) -> None:
    """Raises ApiError: 400 for an unknown inscription, 409 with the vault's address for one elsewhere, 503."""
    keys = await handler.ask_signer(lambda signer: signer.addresses(handler.user.address))
    question = handler.act(lambda market: market.whereabouts(inscription_id, 0.0))
    try:
        found = await asyncio.wait_for(question, PATIENCE_S)
    except NotFound:
        raise invalid([_UNKNOWN], _NOT_YET) from None
    except (VenueError, TimeoutError):
        return  # the signer checks this itself before it signs
    # An inscription in one of the user's escrows is brought back by its worker.
    if found.address is not None and found.address not in (keys.vault, *keys.escrows):
        message = f"It is at {found.address}. Send it to {keys.vault}, and start when that is confirmed."
        raise ApiError(409, "The inscription is not in the vault", message=message)


# ---- cost: from the purchase, which the chain proves or only a marketplace claims


def with_known_cost(
    user_id: int, given: Collection[str], inscription_id: str, config: ListingConfig
) -> tuple[ListingConfig, int | None]:
    """Returns the config; its cost is that of the inscription's only proved purchase here, unless `given` names one.

    Also returns the order that bought it, proved or claimed; None if the cost is not taken from a purchase.
    """
    known = None if "costSats" in given else purchases.of_inscription(user_id, inscription_id)
    if not isinstance(known, ProvenPurchase):
        return config, None if known is None else known.order_id
    costly = replace(config, cost_sats=purchases.cost(known))
    return (config, None) if problems(costly) else (costly, known.order_id)


def cost_sources(tasks: Collection[Task]) -> Mapping[int, CostSource]:
    """Returns the source of each task's cost by the task's id; leaves out tasks without a cost or a claim of one."""
    orders = [task.source_order for task in tasks if task.source_order is not None]
    proofs, claims = purchases.of_orders(orders), purchases.claimed_costs(orders)
    found: dict[int, CostSource] = {}
    for task in tasks:
        cost_sats, proof = load_listing_config(task.config).cost_sats, proofs.get(task.source_order)
        if proof is not None and cost_sats == purchases.cost(proof):
            found[task.id] = "fill"
        elif task.source_order in claims and cost_sats in (None, *claims[task.source_order]):
            found[task.id] = "claimed"
        elif cost_sats is not None:
            found[task.id] = "given"
    return found


# ---- leftovers at a marketplace of a task without an open listing, before the task is deleted
#
# The ledger may have closed the listing too early or never known it, because it was made before a backup was restored
# or by another holder of the vault's key. It becomes an open row of the task, so that it is cancelled like any other
# listing of a deleted task. If the marketplace cannot be read, the last known listing is treated in the same way.


async def take_up(handler: SignedIn, task: Task) -> str | None:
    """Adds an open listing to the task if the marketplace shows one, or may show one.

    Returns a message for the caller if the listing cannot be handled here.
    """
    if listings.open_listing(task.id) is not None:
        return None
    last = listings.newest_listed(task.id)
    outpoint = last.outpoint if last is not None and last.close_reason not in (SOLD, GONE) else None
    try:
        wallet = last.wallet if last is not None else await _vault(handler)
        shown = await _shown(handler, task, wallet)
    except (SignerError, VenueError, TimeoutError) as error:
        log.warning("failed to read whether the marketplace shows a listing of %s: %s", task.inscription_id, error)
        if last is not None and outpoint is not None:
            _open(listings.suspect, _row(handler, task, wallet, outpoint, last.price_sats), handler.now_ms)
        return _UNREAD
    if shown is None:
        return None
    outpoint = await _outpoint(handler, task.inscription_id, wallet) or outpoint
    if outpoint is None:
        return _UNTRACED
    _open(listings.adopt, _row(handler, task, wallet, outpoint, shown.price), handler.now_ms)
    return None


async def _vault(handler: SignedIn) -> str:
    question = handler.services.signer(lambda signer: signer.addresses(handler.user.address))
    return (await asyncio.wait_for(question, PATIENCE_S)).vault


async def _shown(handler: SignedIn, task: Task, wallet: str) -> OwnListing | None:
    inscription_id, venue = task.inscription_id, task.venue
    question = handler.act(lambda market: market.at(venue).own_listings(wallet, 0.0))
    read = await asyncio.wait_for(question, PATIENCE_S)
    for found in read.listings:
        if found.inscription_id == inscription_id and found.owner == wallet:
            return found
    if read.may_hold(inscription_id):
        raise NotUnderstood("one of the vault's listings is not understood, and may be this inscription's")
    return None


async def _outpoint(handler: SignedIn, inscription_id: str, wallet: str) -> str | None:
    """Returns the inscription's output in this wallet, if a source knows it."""
    question = handler.act(lambda market: market.whereabouts(inscription_id, 0.0))
    try:
        found = await asyncio.wait_for(question, PATIENCE_S)
    except (VenueError, TimeoutError):
        return None
    return found.outpoint if found.address == wallet else None


def _row(handler: SignedIn, task: Task, wallet: str, outpoint: str, price_sats: int) -> NewListing:
    return NewListing(
        intent=secrets.token_hex(32),
        task_id=task.id,
        user_id=task.user_id,
        venue=task.venue,
        wallet=wallet,
        inscription_id=task.inscription_id,
        slug=task.collection_id,
        outpoint=outpoint,
        price_sats=price_sats,
        token=task.token,
        revision=task.revision,
    )


def _open(write: Callable[[NewListing, int], Listing], new: NewListing, now_ms: int) -> None:
    # An open listing of the same output belongs to a task that was deleted earlier, so it is being cancelled already.
    with contextlib.suppress(OpenElsewhere):
        write(new, now_ms)


MAX_AGE_S = 10.0
HOUR_MS = 3_600_000
_ORDERS = "no draft was asked for: each one stays at this marketplace as an order; a dry run asks for one a price"


AutolistPreview = listing_config.shape(
    "AutolistPreview",
    "The config of a new auto-list task; or, with `taskId`, changes to that task's config as PUT takes them.\n\n"
    "Without `taskId` the inscription is required, and a task of the caller's for it is used.",
    listing_config.LISTING_FIELDS
    | {
        "task_id": Annotated[
            Annotated[int, Meta(extra_json_schema={"minimum": 1})] | None,
            words("The caller's task that is to be changed."),
        ]
    },
    listing_config.NEW_LISTING | {"inscription_id": UNSET, "task_id": UNSET},
)


class Finding(Answer, frozen=True, kw_only=True):
    """A rule of the signer, held against the draft."""

    rule: Annotated[str, words("A tag of docs/custody.md.")]
    holds: Annotated[bool | None, words("Null: it could not be judged.")]
    why: Annotated[str, words("Empty where it holds.")]


class JudgedForm(Answer, frozen=True, kw_only=True):
    """One PSBT of the draft."""

    form: Annotated[str, one_of(("plain", "secure"))]
    is_signed: Annotated[bool, words("The signer would sign it now.")]
    payout: Annotated[Sats | None, words("Sats that come to the caller; null where that is not clear.")]
    least_payout: Annotated[Sats | None, words("Sats that must.")]
    findings: list[Finding]
    words: Annotated[list[str], words("Inputs, outputs and what a signature would cover, line by line.")]


class JudgedDraft(Answer, frozen=True, kw_only=True):
    """The marketplace's draft as the signer judges it. Nothing was signed."""

    is_signed: Annotated[bool, words("The listing would be signed now.")]
    verdict: Annotated[str, words("The same in words, with the first rule that does not hold.")]
    forms: Annotated[list[JudgedForm], words("The plain form first.")]


class ListingMarket(Answer, frozen=True, kw_only=True):
    """The values that the price depends on; null is not needed, or not known."""

    asks: Count | None
    lowest_ask: Price | None
    last_sales: Annotated[list[int] | None, words("Newest first, in sats.")]
    median: Annotated[Price | None, words("Of the last hour's floors; null in a cold start.")]
    samples: Count


class ListingPreview(Answer, frozen=True, kw_only=True):
    """The price that would be asked now. Nothing was signed or listed."""

    task_id: Annotated[int | None, words("The task whose listing was counted in; null: a new one.")]
    action: Annotated[Literal["list", "reprice", "keep", "wait", "pause", "ended"], words("What a cycle would do.")]
    price: Annotated[Sats | None, words("The price that would stand then; null: none.")]
    reason: ReasonCode
    note: Annotated[str, words("The reason in words, with the price's basis.")]
    least_price: Annotated[Sats | None, words("The price is never below it; null: the config sets none.")]
    holding: Annotated[Literal["held", "moved", "spent", "pending", "unknown"], words("Where the inscription is.")]
    outpoint: Annotated[str | None, words("Its output, as txid:vout; null when it is not in the vault.")]
    market: ListingMarket
    draft: Annotated[
        JudgedDraft | None, words("Null where nothing would be signed; else `errors` says why there is none.")
    ]
    control: Annotated[EffectiveState, words("The plan does not heed it: it shows what `run` would do.")]
    refusal: Annotated[str | None, words("Why the caller may not run tasks now.")]
    errors: Annotated[list[str], words("What could not be read and was done without.")]


class _Notes(Struct):
    texts: list[str] = field(default_factory=list)

    def add(self, step: Step, failed_to: str, error: BidkeeperError | str, *, backs_off: bool = True) -> None:
        self.texts.append(f"failed to {failed_to}: {error}")


class _Meant(Struct, frozen=True):
    """The listing to preview; `task` is None for a task that is not created yet."""

    task: Task | None
    config: ListingConfig
    inscription_id: str
    collection_id: str | None
    venue: str


class _Seen(Struct, frozen=True):
    market: items.ListingMarket
    located: LocatedInscription
    own_read: bool
    shown_sats: int | None
    collection_id: str | None


class AutolistPreviews(TaskHandler):
    """The preview of an auto-list task."""

    kind = LISTING
    tag = "auto-list tasks"

    @route(
        "POST /api/autolist/preview",
        READ,
        body=AutolistPreview,
        says="What a cycle would do now.",
        errors={400: INVALID, 404: NOT_YOURS, 429: TOO_MANY_LOOKUPS, 503: SIGNER_AWAY, 504: TOO_SLOW},
        answers_s=8.0,  # because it makes several calls, one after the other
    )
    async def preview_autolist_task(self) -> ListingPreview:
        """The price that would be asked now, and why

        Decided as in a live cycle; then the marketplace drafts the listing and the signer judges the draft. Nothing is
        signed or listed.
        """
        meant, notes = self._meant(), _Notes()
        if meant.config.trait is not None and meant.collection_id is not None:
            kind, value = meant.config.trait
            asked = BidConfig(meant.collection_id, bid_type="trait", trait_type=kind, trait_value=value)
            await task_handler.refuse_unknown_trait(self.look, asked, meant.venue)
        first_ms = listings.first_listed_ms(meant.task.id) if meant.task else None
        meant = replace(meant, config=scheduled(meant.config, first_ms, self.now_ms))
        keys = await self.ask_signer(lambda signer: signer.addresses(self.user.address))
        open_ = listings.open_listing(meant.task.id) if meant.task else None
        elsewhere, now_ms = None if meant.venue == self.services.settings.market else meant.venue, self.now_ms
        seen = await self.ask_market(
            lambda market: self._look(ItemLook(market, elsewhere, now_ms), meant, keys, open_, notes)
        )
        seen = replace(seen, market=seen.market.with_history(cycles.history_of_asks(elsewhere), now_ms))
        plan = plan_listing(self._inputs(meant, keys, open_, seen))
        drafted = await self._drafted(meant, keys, seen, plan, notes)
        control = users.control_of(self.user.id, meant.task.id if meant.task else 0)
        return ListingPreview(
            task_id=meant.task.id if meant.task else None,
            action=plan.action,
            price=plan.price,
            reason=plan.reason,
            note=plan.note,
            least_price=guard(meant.config, self._fee_ppm(meant), capabilities(meant.venue).listing_tick) or None,
            holding=seen.located.inscription_state,
            outpoint=seen.located.outpoint,
            market=_market_shown(seen.market),
            draft=drafted,
            # The plan is made as if neither of these stopped the task.
            control=convert(control._asdict(), EffectiveState),
            refusal=self.services.entitlements.refusal(self.user, self.now_ms),
            errors=notes.texts,
        )

    def _meant(self) -> _Meant:
        """Returns the listing to preview. Raises ApiError: 404, 400."""
        given = self.json_object()
        task_id, task, faults = given.pop("taskId", None), None, list[str]()
        if type(task_id) is int and task_id > 0:
            task = self.task(str(task_id))
        elif task_id is not None:
            faults.append("taskId: must be the id of a task")
        change = listing_config.merged_listing(given, load_listing_config(task.config) if task else None)
        inscription_id = change.inscription_id or (task.inscription_id if task else None)
        if task is None:
            mine = (each for each in tasks.of_user(self.user.id, LISTING) if each.inscription_id == inscription_id)
            task = next(mine, None)
        elif inscription_id != task.inscription_id:
            faults.append("inscriptionId: cannot be changed; delete this task and create another")
        if inscription_id is None and not any(each.startswith("inscriptionId:") for each in change.details):
            faults.append("inscriptionId: is required")
        if task is None:
            venue, wrong = task_handler.named_venue(given, self.services.settings)
        else:
            venue = task.venue
            wrong = task_handler.moved_venue(given, venue)
        config = change.config
        if task is None and inscription_id is not None and not change.details:
            config, _ = with_known_cost(self.user.id, given, inscription_id, config)
        gaps = listing_config.listing_details_of(unstartable(config))
        details = [*faults, *change.details, *gaps, *wrong] or task_handler.unfit_for_listing(venue, config)
        if details or inscription_id is None:
            raise invalid(details)
        named = change.collection_id if change.names_collection or task is None else task.collection_id
        return _Meant(task, config, inscription_id, named or known_collection(self, inscription_id, venue), venue)

    def _look(self, look: ItemLook, meant: _Meant, keys: UserKeys, open_: Listing | None, notes: _Notes) -> _Seen:
        """Reads through the gateway. It runs in a thread of the pool, so it must not use the database."""
        default, shown, own_read = look.market, None, True
        market = default.at(meant.venue)
        try:
            read = market.own_listings(keys.vault, MAX_AGE_S)
            for each in read.listings:
                if (each.inscription_id, each.owner) == (meant.inscription_id, keys.vault):
                    shown = each
            if shown is None and read.may_hold(meant.inscription_id):
                raise NotUnderstood("one of them is not understood, and may be this inscription's")
        except VenueError as error:
            notes.add(Step.READ_OWN_LISTINGS, "read our own listings", error)
            own_read = False
        signed_at = None if open_ is None else open_.outpoint
        escrows = frozenset(keys.escrows)
        located = items.locate(default, meant.inscription_id, keys.vault, signed_at, MAX_AGE_S, notes, escrows)
        slug = meant.collection_id or (shown.slug if shown else None)
        if slug is None and meant.config.wants_collection:
            slug = _told(market, meant.inscription_id, notes)
        asks = replace(look, market=market).read(meant.config, slug, notes)
        return _Seen(asks, located, own_read, shown.price if shown else None, slug)

    def _inputs(self, meant: _Meant, keys: UserKeys, open_: Listing | None, seen: _Seen) -> ListingInputs:
        since_ms = self.now_ms - HOUR_MS
        listed = None
        if open_ is not None and open_.state == LIVE and open_.listed_ms is not None:
            listed = Listed(open_.price_sats, open_.listed_ms)
        elif seen.shown_sats is not None:
            listed = Listed(seen.shown_sats, self.now_ms)  # because a worker would adopt it
        own = (self.user.address, self.user.ordinals_address, keys.payment, keys.vault)
        own_wallets = frozenset({*own, *meant.config.ignore_addresses})
        market = seen.market.without_doubt(own_wallets)
        return ListingInputs(
            now_ms=self.now_ms,
            config=meant.config,
            tick=capabilities(meant.venue).listing_tick,
            fee_ppm=self._fee_ppm(meant),
            asks=market.asks,
            trait_asks=market.trait_asks,
            own_wallets=own_wallets,
            median_60m=market.history.median,
            last_sales=market.last_sales,
            listed=listed,
            own_read=seen.own_read,
            highest_last_hour=listings.highest_since(meant.inscription_id, keys.vault, since_ms),
            delistings_last_hour=listings.delistings(meant.task.id, since_ms) if meant.task else 0,
            missing_reads=0,
            inscription_state=seen.located.inscription_state,
        )

    def _fee_ppm(self, meant: _Meant) -> int:
        """Returns the venue's fee of a sale in millionths, as the worker calculates it."""
        return self.services.settings.seller_fee_ppm(meant.venue)

    async def _drafted(
        self, meant: _Meant, keys: UserKeys, seen: _Seen, plan: ListingPlan, notes: _Notes
    ) -> JudgedDraft | None:
        """Returns the judged draft at the plan's price; None if nothing would be signed, or no draft is available."""
        price, outpoint = plan.price, seen.located.outpoint
        if plan.action not in ("list", "reprice") or price is None or outpoint is None:
            return None
        if capabilities(meant.venue).drafts_are_orders:
            notes.texts.append(_ORDERS)
            return None
        about = meant.inscription_id, keys.vault, keys.payment, keys.vault_pubkey, seen.collection_id
        ask = ListingToDraft(price, *about, outpoint)
        least = guard(meant.config, self._fee_ppm(meant), tick=1)
        try:
            draft = await self.look(lambda market: market.at(meant.venue).draft_listing(ask))
            secure = tuple(each.psbt for each in draft.secure)
            escrow = draft.transfer, draft.recovery
            listing = to_judge(meant.inscription_id, outpoint, price, draft.psbt, secure, *escrow)
            judged = await self.services.signer(
                lambda signer: signer.judge(self.user.address, meant.venue, listing, least)
            )
        except (VenueError, SignerError) as error:
            notes.add(Step.DRAFT, f"have a draft at {price} judged", error)
            return None
        return _draft_shown(judged)


def _market_shown(market: items.ListingMarket) -> ListingMarket:
    asks = market.asks if market.asks is not None else market.trait_asks
    lowest = min((ask.price for ask in asks or ()), default=None)
    median = market.history.median
    return ListingMarket(
        asks=None if asks is None else len(asks),
        lowest_ask=None if lowest is None else exact(Decimal(lowest)),
        last_sales=None if market.last_sales is None else list(market.last_sales[:SALES]),
        median=None if median is None else exact(Decimal(median)),
        samples=market.history.samples,
    )


def _draft_shown(judgements: Sequence[Judgement]) -> JudgedDraft:
    """Returns the draft's judgements, the plain form's first."""
    forms = [
        shown_as(
            JudgedForm,
            each,
            payout=each.payout_sats,
            least_payout=each.least_sats,
            findings=[shown_as(Finding, found) for found in each.findings],
            words=in_words(each),
        )
        for each in judgements
    ]
    return JudgedDraft(is_signed=judgements[0].is_signed, verdict=verdict(judgements), forms=forms)


def _told(market: MarketClient, inscription_id: str, notes: _Notes) -> str | None:
    try:
        return market.item(inscription_id, MAX_AGE_S).collection_id
    except NotFound:
        return None
    except VenueError as error:
        notes.add(Step.FIND_ITEM, "learn the inscription's collection", error)
        return None
