"""The zygote's warm-up before it forks: a worker's day on a made-up market, in memory.

Then every module is imported, every query compiled, every piece of code has run once; workers share that memory, and
none of them must do it again. Nothing is open afterwards.
"""

from __future__ import annotations

import contextlib
import io
import logging
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from msgspec.json import encode

from core import logs
from core.call import Request, read_answer
from core.settings import Settings, load
from markets import verbs
from markets.base import AskBook, Balance, Fees, OwnBid, OwnBids
from markets.client import MarketClient
from markets.orders import ListingDraft, OwnListing, OwnListings
from markets.outpoint_facts import OutpointFacts, Whereabouts
from models import schema, users
from models.database import base
from models.database.base import is_postgresql
from models.ledger import closing
from models.tasks import tasks
from models.tasks.tasks import RUNNING, STOPPED, Task
from strategy.book import Ask, VenueProfile
from strategy.config.bid import BidConfig, dump_bid_config
from strategy.config.listing import ListingConfig, dump_listing_config
from strategy.decision import SignedRoom
from wallet import protocol
from wallet.signer_client import SignerClient
from workers.context import Context
from workers.process import worker
from workers.process.jobs import make_job
from workers.process.life_line import set_title

log = logging.getLogger(__name__)

A = TypeVar("A")

_NOBODY = "bc1qnobody"
_VAULT = "bc1pnobody"
_INSCRIPTION = "0" * 64 + "i0"
_OUTPOINT = "0" * 64 + ":0"
_NOWHERE = Path("/nonexistent")
_SIGNED = "c2lnbmVk"  # or to be signed
_CYCLES = 3


class MadeUpMarket(MarketClient):
    """A made-up gateway: a book of two hundred asks, and the bids and listings placed."""

    def __init__(self, clock_ms: Callable[[], int]) -> None:
        super().__init__(_NOWHERE)
        self._clock_ms = clock_ms
        self._bids: list[OwnBid] = []
        self._listings: list[OwnListing] = []

    def _exchange(self, asked: bytes, *, repeatable: bool) -> bytes:
        request = verbs.read(asked)
        args = verbs.read_args(request, verbs.BY_NAME[request.verb])
        return verbs.text({"ok": self.answer(args)}).encode()

    def answer(self, args: Any) -> Any:
        """Answers one question of the gateway's socket."""
        rate = Decimal("2.5")
        match args:
            case verbs.Profile():
                return VenueProfile("simulator", 1000, 10_000, 900, equal_bids_allowed=True, balance_model="per_bid")
            case verbs.Asks():
                prices = range(1_000_000, 3_000_000, 10_000)
                asks = (Ask(f"{price:064x}", price, Decimal(1), Decimal(price), "bc1qsomebody") for price in prices)
                return AskBook(tuple(asks), self._clock_ms())
            case verbs.OwnBids():  # a moment later: a read in the millisecond of a cancel would prove nothing about it
                return OwnBids(tuple(self._bids), self._clock_ms() + 1)
            case verbs.Balance():
                return Balance(_NOBODY, 100_000_000, self._clock_ms())
            case verbs.Fees():
                return Fees(rate, rate, rate, rate, rate, self._clock_ms())
            case verbs.Challenge():
                return "a text to sign"
            case verbs.Place(order):
                end_ms, number = order.expires_ms, f"bid-{len(self._bids)}"
                self._bids.append(OwnBid(number, order.slug, order.kind, order.price, order.quantity, end_ms, None))
                return None
            case verbs.Cancel():
                self._bids = [bid for bid in self._bids if bid.venue_id not in args.venue_ids]
                return True
            case verbs.OwnListings():
                return OwnListings(tuple(self._listings), self._clock_ms() + 1)
            case verbs.Whereabouts():
                return Whereabouts(_INSCRIPTION, _OUTPOINT, _VAULT, 546, self._clock_ms())
            case verbs.Outpoint():
                return OutpointFacts(_OUTPOINT, 546, "", True, True, (_INSCRIPTION,), (), 1, 1, None)
            case verbs.DraftListing():
                return ListingDraft(_SIGNED, ())
            case verbs.ListItem(order):
                ask = order.ask
                self._listings = [OwnListing(ask.inscription_id, ask.inscription_id, ask.slug, ask.price, ask.owner)]
                return None
            case verbs.Delist():
                self._listings = []
                return True
        raise LookupError(f"a made-up market has no answer to {args}")


class MadeUpSigner(SignerClient):
    """A made-up signer, without keys."""

    def __init__(self) -> None:
        super().__init__(_NOWHERE)

    def _ask(self, request: Request[A], looked_up: int = 0) -> A:
        answers: dict[type[Request[Any]], object] = {
            protocol.AskAddresses: protocol.UserKeys(_NOBODY, "02" + "11" * 32, _VAULT, "22" * 32),
            protocol.AskRooms: protocol.Rooms((SignedRoom("task", 1 << 40, 0),)),
            protocol.SignBid: protocol.SignedBid("what was signed", _SIGNED),
            protocol.SignChallenge: protocol.Signature(_SIGNED),
            protocol.SignListing: protocol.SignedListing(_SIGNED, ()),
            protocol.AskWasSigned: protocol.WasSigned(signed=False),
        }
        encode(request)
        return read_answer(request, "signer", encode({"ok": answers[type(request)]}))


def warm_up() -> Settings | None:
    """Makes a dry run, whose failure costs speed and memory only; returns the settings for all workers.

    None when these cannot be read: each worker will find out and log it.
    """
    settings = None
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            logs.set_up("zygote")
            set_title("bidkeeper: zygote warms up")
            settings = worker.without_secrets(load())
            verbs.prepare()
            dry_run()
            if is_postgresql(settings.database_url):
                # What the dry run has asked, in the words of the workers' database, which nobody asks yet.
                base.prepare_for(settings.database_url)
                base.prepare_all()
    except Exception:
        logs.set_up("zygote", form=settings.log_format if settings else "text")
        log.exception("failed to warm up")
    return settings


def dry_run() -> list[str]:
    """Runs cycles of every kind of worker, on a database in memory; returns their records, oldest first."""
    base.connect("sqlite:///:memory:")
    try:
        schema.migrate()
        return _days_work()
    finally:
        base.close()


def _days_work() -> list[str]:
    settings = Settings(whitelist=frozenset({_NOBODY}))
    user = users.find_or_create(_NOBODY, dict(settings.plans), _clock_ms())
    bids = tasks.create_bidding_task(
        user.id,
        type="ordinals",
        slug="cats",
        slug_key="cats",
        config=dump_bid_config(BidConfig(slug="cats", hardcap_sats=900_000)),
        venue=settings.market,
        max_tasks=1,
        now_ms=_clock_ms(),
    )
    listing = tasks.create_autolist_task(
        user.id,
        inscription_id=_INSCRIPTION,
        collection_id="cats",
        config=dump_listing_config(ListingConfig()),
        venue=settings.market,
        now_ms=_clock_ms(),
    )
    market = MadeUpMarket(_clock_ms)
    reports = []
    for task, kind in ((bids, "bidder"), (bids, "drain"), (listing, "lister"), (listing, "drain")):
        tasks.set_desired(task, STOPPED if kind == "drain" else RUNNING)
        if kind == "drain" and task is listing:
            tasks.mark_deleted(listing, _clock_ms())
        reports += _work(settings, task, kind, market)
    return reports


def _work(settings: Settings, task: Task, kind: str, market: MadeUpMarket) -> list[str]:
    token = tasks.raise_token(task.id)
    tasks.outline(task.id)
    # A zygote has no crash points, and every cycle is due at once.
    context = Context(settings, task.id, token, "", market, MadeUpSigner(), _clock_ms, crash=lambda point: None)
    job = make_job(kind, context, until_cycle=lambda slug, loop_s, now_s: 0.0)
    reports = []
    for _ in range(_CYCLES):
        job.cycle()
        reports.append(_report(task.id))
    return reports


def _report(task_id: int) -> str:
    row = tasks.with_owner(task_id)
    assert row is not None
    return f"{row.last_error or row.last_cycle_action}; {closing.count_open(task_id)} open"


def _clock_ms() -> int:
    return time.time_ns() // 1_000_000
