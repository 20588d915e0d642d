"""One installation on a practice market with scenes: tasks at all four venues, in one process, on a simulated clock.

Real are the dialects, the adapters, the gateway with breaker and budgets, the signer, the ledger, and the cycles of
bidders and listers. A task that ends is remembered with its reason and does not start again.
"""

from __future__ import annotations

import contextlib
import random
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import wallet.signer.reading
from core.call import Request
from core.subscription_plans import SubscriptionPlan
from gateway.app import Gateway
from gateway.venue import Breaker
from models import accounts, users
from models.tasks import tasks
from models.tasks.tasks import RUNNING, Task
from strategy.config.bid import BidConfig, dump_bid_config, normal_slug
from strategy.config.listing import ListingConfig, dump_listing_config
from tests.worlds.house import House, MarketHere
from wallet.address import p2wpkh
from wallet.signer.reading import FactsError, ask_facts
from workers.bidding.bidder import Bidder
from workers.context import BadConfig, BadCredentials, Context, Job
from workers.cycle import until_cycle
from workers.listing.lister import Lister
from workers.manager.rights import bidder_grant, lister_grant
from workers.process.worker import SigningInClient, TaskSignIn

PLAN = SubscriptionPlan("Beta", 40, 40, 10**9, 0, 3_650)
SATFLOW, UNISAT, ORDINALSWALLET, ORDNET = (
    "simulator",
    "simulator-unisat",
    "simulator-ordinalswallet",
    "simulator-ordnet",
)
DIALECTS = {SATFLOW: "satflow", UNISAT: "unisat", ORDINALSWALLET: "ordinalswallet", ORDNET: "ordnet"}
PLENTY = 10**9


class Client(SigningInClient):
    """The gateway's client of a task, to a gateway in this process; it signs in where a venue asks for it."""

    def __init__(self, line: Any, sign_in: Callable[[Any], None], venue: str) -> None:
        self._http = line
        self.venue = venue
        self._sign_in = sign_in
        self._is_signing_in = False


@dataclass
class Running:
    """A task's worker. `ended` is the reason why it ended, "" while it runs."""

    task_id: int
    venue: str
    job: Job
    client: Client
    due: float
    ended: str = ""


class Stage(House):
    """A house whose tasks are at all venues, with one user. Call `bid` and `list_item`, then `go_on`."""

    def __init__(self, seed: int) -> None:
        self.opened: list[str] = []  # venues whose breaker has opened, each as often as it did
        super().__init__(seed, plan=PLAN, installation=10**9)
        try:
            self._stack.enter_context(patch.object(Breaker, "failed", self._failed(Breaker.failed)))
            line = MarketHere(self._ask_gateway)._http
            self._stack.enter_context(patch.object(wallet.signer.reading, "UnixHttp", lambda *_: line))
            self.running: list[Running] = []
            self.chance = random.Random(f"stage {seed}")
            self._stack.enter_context(patch.object(secrets, "token_hex", self._nonce))
            clock = self.clock
            times = SimpleNamespace(
                monotonic=clock.monotonic, time=lambda: clock.now_ms / 1000, time_ns=lambda: clock.now_ms * 1_000_000
            )
            for name, module in list(sys.modules.items()):
                if name.startswith("markets.") and name != "markets.http" and hasattr(module, "time"):
                    self._stack.enter_context(patch.object(module, "time", times))
            self.world.limits.change(5, 10, 10**9)
            self.user = users.find_or_create(p2wpkh(bytes([7] * 20)), dict(self.settings.plans), clock.now_ms)
            accounts.set_plan(self.user.id, "beta", clock.now_ms + 3_650 * users.DAY_MS, clock.now_ms)
            self.keys = self.signer.addresses(self.user.address)
            self.wire.control("PUT", f"/sim/wallets/{self.keys.payment}", {"balance": PLENTY})
        except BaseException:
            self.close()
            raise

    def open_gateway(self) -> None:
        self.gateway = Gateway(self.settings, tasks.least_token)
        self._verbs = self.gateway.verbs

    def _failed(self, note: Callable[[Breaker], None]) -> Callable[[Breaker], None]:
        def failed(breaker: Breaker) -> None:
            was_open = breaker.is_open
            note(breaker)
            if breaker.is_open and not was_open:
                self.opened += [venue.name for venue in self.gateway.venues.all() if venue.breaker is breaker]

        return failed

    def _handled(self, request: Request[Any]) -> Any:
        """Returns the signer's answer; it looks outputs up at the gateway, as its process does."""
        found = {}
        for outpoint in self._signer.outpoints_to_look_up(request):
            with contextlib.suppress(FactsError):
                found[outpoint] = ask_facts(Path("facts"), outpoint)
        return self._signer.handle(request, found)

    def _nonce(self, size: int = 32) -> str:
        """Returns hex digits by the seed. They hold no "bc1": the signer takes that for the start of an address."""
        return f"{self.chance.getrandbits(8 * size):0{2 * size}x}".replace("b", "a")

    # Tasks

    def bid(self, venue: str, slug: str, **config: Any) -> Running:
        """Starts a bidding task."""
        made = BidConfig(
            slug=slug,
            **{
                "bid_count": 2,
                "bid_percent_low": Decimal("0.5"),
                "bid_percent_high": Decimal("0.9"),
                "outbid_enabled": True,
                "outbid_amount": 5_000,
                "loop_seconds": 30,
                **config,
            },
        )
        row = tasks.create_bidding_task(
            self.user.id,
            type=made.type,
            slug=made.slug,
            slug_key=normal_slug(made.type, made.slug),
            config=dump_bid_config(made),
            venue=venue,
            max_tasks=PLAN.max_tasks,
            now_ms=self.clock.now_ms,
        )
        tasks.set_desired(row, RUNNING)
        token = tasks.begin_start(row.id, self.clock.now_ms)
        task = tasks.with_owner(row.id)
        assert task is not None
        ends_ms = self.clock.now_ms + 30 * users.DAY_MS
        grant = bidder_grant(task, made, PLAN, token, ends_ms, spent_sats=0)
        return self._start(task, token, self.signer.grant(grant), venue, self._bidder)

    def list_item(self, venue: str, slug: str, inscription: str, price: int) -> Running:
        """Starts an auto-list task at a fixed price."""
        config = ListingConfig(price_mode="fixed", price_sats=price, loop_seconds=30)
        row = tasks.create_autolist_task(
            self.user.id,
            inscription_id=inscription,
            collection_id=slug,
            config=dump_listing_config(config),
            venue=venue,
            now_ms=self.clock.now_ms,
        )
        tasks.set_desired(row, RUNNING)
        token = tasks.begin_start(row.id, self.clock.now_ms)
        task = tasks.with_owner(row.id)
        assert task is not None
        ends_ms = self.clock.now_ms + 30 * users.DAY_MS
        grant = lister_grant(task, config, token, ends_ms, self.settings.seller_fee_ppm(venue))
        return self._start(task, token, self.signer.grant(grant), venue, self._lister)

    def _start(self, row: Task, token: int, secret: str, venue: str, make: Callable[[Context], Job]) -> Running:
        sign_in = TaskSignIn(self.signer, row.id, token, secret)
        client = Client(MarketHere(self._ask_gateway)._http, sign_in, venue)
        client.fence(row.id, token)
        context = Context(
            settings=self.settings,
            task_id=row.id,
            token=token,
            secret=secret,
            market=client,
            signer=self.signer,
            clock_ms=self.clock.work_ms,
            crash=lambda point: None,
        )
        tasks.observe(row.id, RUNNING, self.clock.now_ms, exit_status=None)
        made = Running(row.id, venue, make(context), client, self.clock.monotonic())
        self.running.append(made)
        return made

    def _bidder(self, context: Context) -> Job:
        return Bidder(
            context,
            rng=random.Random(self.chance.random()),
            journal=None,
            new_intent=lambda: f"{self.chance.getrandbits(128):032x}",
            monotonic=self.clock.monotonic,
            until_cycle=until_cycle,
        )

    def _lister(self, context: Context) -> Job:
        rng = random.Random(self.chance.random())
        return Lister(context, rng=rng, new_intent=lambda: f"{self.chance.getrandbits(256):064x}")

    # Time

    def go_on(self, seconds: float) -> None:
        """Lets this much time pass, with the cycles that are due in it."""
        end = self.clock.monotonic() + seconds
        while due := [each for each in self.running if not each.ended and each.due <= end]:
            first = min(due, key=lambda each: each.due)
            self.clock.reach(first.due)
            self._cycle(first)
        self.clock.reach(end)

    def _cycle(self, worker: Running) -> None:
        try:
            delay = worker.job.cycle()
        except (BadConfig, BadCredentials) as error:
            worker.ended = f"{type(error).__name__}: {error}"
            return
        if delay is None:
            row = tasks.with_owner(worker.task_id)
            worker.ended = f"nothing is left to do: {row.last_error if row else 'the task was deleted'}"
            return
        worker.due = self.clock.monotonic() + delay
