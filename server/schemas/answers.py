"""What operations answer, as it is described to callers; tests hold every real answer against it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from server.http.bodies import SATS, to_camel
from server.schemas.task_bodies import AutolistConfig, BiddingConfig

Kind = Literal["ordinals", "rune"]
Seconds = Annotated[int, Field(description="Unix time in seconds.")]
Venue = Annotated[str, Field(description="The marketplace, by its name in GET /api/venues.")]
Price = Annotated[float, Field(ge=0, description="Sats per token; exact, with as many digits as it has.")]


def _no_defaults(schema: dict[str, Any]) -> None:
    """A default only marks what may be missing; it is not what a missing field means."""
    for property_ in schema.get("properties", {}).values():
        property_.pop("default", None)


class Answer(BaseModel):
    """An answer's object. Callers should let fields pass that they do not know."""

    model_config = ConfigDict(alias_generator=to_camel, json_schema_extra=_no_defaults)


class Error(Answer):
    """What every answer but success says."""

    error: Annotated[str, Field(description="What went wrong, always in the same words.")]
    message: Annotated[str, Field(description="What is behind it or what to do.")] = ""
    details: Annotated[list[str], Field(description="Every fault as `field: what is wrong`.")] = []


class Challenge(Answer):
    """A text to sign."""

    challenge_id: UUID
    message: Annotated[str, Field(description="What the wallet signs, to the letter.")]
    expires_at: Seconds


class SessionUser(Answer):
    """Who has signed in."""

    id: int
    address: str
    ordinals_address: str
    plan: str
    is_admin: bool


class Session(Answer):
    """A new session."""

    token: Annotated[str, Field(description="The bearer token; it is not shown again.")]
    user: SessionUser


class Success(Answer):
    """It is done."""

    success: Literal[True]


class PlanDetails(Answer):
    """A plan's limits and price."""

    name: str
    max_tasks: int
    max_bids_per_task: int
    price_sats: int
    duration_days: int


class Subscription(Answer):
    """Which plan, until when."""

    plan: str
    expires_at: datetime
    status: Literal["active", "expired"]


class Stats(Answer):
    """How much of the plan is used."""

    task_count: int
    max_tasks: int
    exposure: Annotated[int, Field(ge=0, description="Sats of all orders that are not closed.")]
    max_exposure: int


class Profile(Answer):
    """The caller's account."""

    id: int
    address: str
    ordinals_address: Annotated[str, Field(description="Where bought inscriptions and runes go.")]
    display_name: str | None
    plan: str
    plan_details: PlanDetails
    is_admin: bool
    subscription: Subscription
    stats: Stats
    created_at: datetime


class LastCycle(Answer):
    """What the newest cycle did."""

    time: Seconds
    action: str


class BiddingTask(Answer):
    """A ladder of bids on one collection or rune."""

    id: int
    slug: str
    type: Kind
    is_running: bool
    config: BiddingConfig
    last_cycle: LastCycle | None
    last_error: Annotated[str | None, Field(description="What keeps the last cycle from doing its job.")]
    created_at: datetime
    venue: Venue


class StoppedBiddingTask(BiddingTask):
    """A bidding task after its stop."""

    open_bids: Annotated[int, Field(ge=0, description="Orders that are not closed yet; they are drained.")]


class DeletedBiddingTask(Success):
    """The task is gone."""

    open_bids: Annotated[int, Field(ge=0, description="Orders that are not closed yet; they are drained.")]


class Trait(Answer):
    """One trait of a collection."""

    type: str
    value: str


class Bid(Answer):
    """A live bid as the marketplace shows it."""

    id: str
    price: Annotated[int, Field(ge=0, description="Sats of the whole order, for runes too.")]
    quantity: Annotated[float, Field(gt=0, description="Items or tokens of the whole order.")]
    quantity_left: Annotated[float, Field(ge=0, description="What of it has not been sold to us yet.")]
    slug: str
    type: Kind
    trait: Trait | None
    expires_at: datetime
    rank: Annotated[
        int | None,
        Field(
            ge=1,
            description="Place among all bids that compete with it: those on the slug, for a trait bid those on the "
            "trait, too; of equal bids the older is ahead. Null when the bids of others could not be read.",
        ),
    ]
    is_highest: Annotated[bool | None, Field(description="Whether `rank` is 1; null when that is not known.")]
    rank_unknown: Annotated[str | None, Field(description="Why `rank` and `isHighest` are null; else null.")]


class CycleDetail(Answer):
    """What one cycle saw, planned and did; exact numbers are text. A cycle that got nowhere has `errors` only."""

    model_config = ConfigDict(extra="allow")

    errors: Annotated[list[str], Field(description="What failed, in words.")]
    seen: Annotated[dict[str, Any], Field(description="Reference price, balance, fees, and the book in numbers.")] = {}
    control: Annotated[dict[str, str], Field(description="The state that held, and the scope that said so.")] = {}
    dry_run: bool = False
    marks: Annotated[list[str], Field(description="What held for the whole plan, such as `floor_spike`.")] = []
    hold: Annotated[str | None, Field(description="Why nothing was placed for a while, after fills.")] = None
    fills_left: Annotated[int | None, Field(description="What maxFills left; null without it.")] = None
    spend_left_sats: Annotated[int | None, Field(description="What spendCapSats left; null without it.")] = None
    planned: Annotated[dict[str, Any], Field(description="What was decided at first.")] = {}
    looks: Annotated[
        int, Field(description="How many decisions there were; after cancels the market is read anew.")
    ] = 1
    rungs: Annotated[
        list[dict[str, Any]], Field(description="Each with its price and reason, and its bid's fate.")
    ] = []
    bids: Annotated[list[dict[str, Any]], Field(description="Each open order with its state and reason.")] = []
    cancelled: Annotated[list[int], Field(description="Orders.")] = []
    filled: Annotated[list[dict[str, Any]], Field(description="Orders that were sold into, with the sale.")] = []
    strays: Annotated[list[str], Field(description="Bids of this task that no open order stands for.")] = []
    foreign: Annotated[list[dict[str, Any]], Field(description="Bids of the wallet that no task placed.")] = []


class Cycle(Answer):
    """One cycle of a task."""

    time: Seconds
    action: str
    error: str | None
    detail: CycleDetail


class TaskLog(Answer):
    """The end of a task's log."""

    lines: Annotated[list[str], Field(description="Oldest first, secrets masked; empty before the first start.")]


class Floor(Answer):
    """The cheapest listing of a collection, or the best price per token of a rune."""

    floor_price: Annotated[float | None, Field(description="Sats; null when nothing is listed.")]
    listed_count: Annotated[int, Field(ge=0)]


class RuneMarket(Answer):
    """The asks of a rune."""

    ticker: str
    floor: Price | None
    vwap: Price | None
    depth_sats: Annotated[int, Field(ge=0, description="What was walked of the order book.")]


class Listing(Answer):
    """The newest listing of a task, also when it is over."""

    price: Annotated[int, Field(gt=0, description="Sats.")]
    state: Annotated[str, Field(description="From `reserved` over `live` to `closed`; `unknown` where nobody said.")]
    close_reason: Annotated[str | None, Field(description="Why it is closed, such as `sold`; null while it is not.")]
    outpoint: Annotated[str, Field(description="The output with the inscription that was signed for, as txid:vout.")]
    listed_at: Annotated[datetime | None, Field(description="Since when the marketplace shows it at this price.")]
    lowest_outstanding: Annotated[
        int | None,
        Field(description="The lowest price ever signed for the output: it can be bought at that until it is spent."),
    ]
    lowest_note: Annotated[str | None, Field(description="What keeps that from being sure, as a signer that is away.")]
    proceeds: Annotated[int | None, Field(description="Sats that the sale brought; null without one.")]


class AutolistTask(Answer):
    """A listing of one inscription."""

    id: int
    inscription_id: str
    collection_id: str | None
    is_running: bool
    config: AutolistConfig
    listing: Annotated[Listing | None, Field(description="Null before the first one.")]
    last_cycle: LastCycle | None
    last_error: Annotated[str | None, Field(description="What keeps the last cycle from doing its job.")]
    created_at: datetime
    venue: Venue


class WrittenAutolistTask(AutolistTask):
    """An auto-list task after it was created or changed."""

    warnings: Annotated[
        list[str], Field(description="What is allowed and probably not meant; missing if nothing.")
    ] = []


class StoppedAutolistTask(AutolistTask):
    """An auto-list task after its stop."""

    listing_cancelled: Annotated[Literal[False], Field(description="A stop leaves the listing where it is.")]
    message: Annotated[str, Field(description="Says so, where there is a listing.")] = ""


class DeletedAutolistTask(Success):
    """The task is gone."""

    listing_cancelled: Annotated[
        bool, Field(description="Its listing was cancelled; false without one, too, or with one that was sold.")
    ]
    message: Annotated[str, Field(description="Says that the listing is still there and being cancelled.")] = ""


class WalletInscription(Answer):
    """An inscription at one of the caller's addresses; what the venue does not tell is null."""

    id: str
    name: str | None
    collection_id: str | None
    collection_name: str | None
    image_url: str | None
    listed: bool
    listing_price: SATS | None
    address: str


class Inscription(Answer):
    """One inscription; what the venue does not tell is null."""

    id: str
    inscription_number: int | None
    name: str | None
    collection_id: str | None
    collection_name: str | None
    image_url: str | None
    content_url: str | None
    content_type: str | None
    owner: str | None
    location: str | None
    output: str | None
    output_value: int | None
    genesis_transaction: str | None
    listed: bool
    listing_price: int | None
    seller: str | None
    top_bid: int | None
    traits: list[Trait] | None


class MarketplaceWallet(Answer):
    """The marketplace's wallet that pays for the caller's bids."""

    address: str
    balance_sats: Annotated[int, Field(ge=0)]


class VenueBids(Answer):
    """What a marketplace asks of bids on one kind of goods."""

    tick: Annotated[SATS, Field(description="Prices are multiples of it.")]
    min_bid: SATS
    min_duration_seconds: Annotated[int, Field(ge=0, description="Shortest life that it takes.")]


class VenueLimits(Answer):
    """How often a marketplace may be asked; null is no such limit. The gateway keeps them for all tasks together."""

    requests_per_second: int
    burst: int
    reads_per_minute: int | None
    writes_per_minute: int | None
    reads_per_minute_per_wallet: int | None
    writes_per_minute_per_wallet: int | None
    calls_per_month: int | None


class VenueInfo(Answer):
    """A marketplace that is set up here."""

    name: Annotated[str, Field(description="As tasks name it.")]
    title: str
    is_default: Annotated[bool, Field(description="Of tasks that name none.")]
    kinds: Annotated[list[Kind], Field(description="What it takes bids on; none: it takes no bids.")]
    bid_types: list[Literal["collection", "trait", "item"]]
    bids: Annotated[dict[str, VenueBids], Field(description="By kind.")]
    listings: Annotated[bool, Field(description="Auto-list tasks can name it.")]
    needs_sign_in: Annotated[bool, Field(description="Wallets sign in there; the service does that by itself.")]
    expiry: Annotated[
        Literal["ms", "hours", "none"], Field(description="How exact a bid's end is; none: it has no end.")
    ]
    limits: VenueLimits
    calls: Annotated[
        dict[str, int], Field(description="Requests that a verb takes, with what goes before it; 1 where left out.")
    ]
    quota_left: Annotated[int | None, Field(ge=0, description="Calls left this month; null: no quota, or not known.")]
    verified: Annotated[
        Literal["documented", "client code", "probed"], Field(description="Where our knowledge of it is from.")
    ]


class Wallet(Answer):
    """The caller's addresses here and the money behind their bids."""

    payment: Annotated[str, Field(description="Bids are signed and funded here.")]
    vault: Annotated[str, Field(description="Listings are signed here.")]
    ordinals_address: str
    bidding_wallet: MarketplaceWallet | None
    exposure: Annotated[int, Field(ge=0, description="Sats of all orders that are not closed.")]
    worst_loss: Annotated[
        int | None,
        Field(
            ge=0,
            description="The most that bids can cost, whatever their exposure: the balance behind them. Null when it "
            "cannot be told.",
        ),
    ]
    if_all_fill_now: Annotated[
        int | None,
        Field(
            ge=0, description="What is spent if every open order is filled: exposure, or the balance if that is less."
        ),
    ]
    signed_sats: Annotated[
        int | None,
        Field(
            ge=0,
            description="Sats of bids that are signed and not expired, whether or not they were cancelled since. Null "
            "while the signer cannot be asked.",
        ),
    ]
    signed_limit_sats: Annotated[
        int | None, Field(ge=0, description="What signedSats may come to: no bid is signed above it.")
    ]
    signed_free_at: Annotated[
        str | None,
        Field(description="When the next signature expires, which makes room for others; null: there is none."),
    ]
    balance_error: Annotated[
        str, Field(description="Why biddingWallet is null: there is none yet, or the marketplace cannot be read.")
    ] = ""


class Alive(Answer):
    """This process lives."""

    status: Literal["ok"]


class Ready(Answer):
    """Everything answers."""

    status: Literal["ready"]


class NotReady(Error):
    """Who does not answer, and why."""

    missing: list[str]
