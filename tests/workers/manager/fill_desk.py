"""A lister of fills over a task's database, with an index and a chain that a test sets."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

from msgspec import structs

from markets.items import LocatedInscription
from models.leases.leases import EVERYBODY
from models.ledger.fills import Autolist, Wanted, newest
from models.ledger.states import Order
from models.tasks.tasks import Task
from models.users import User
from strategy.config.bid import BidConfig, OnFill
from strategy.config.listing import ListingConfig, dump_listing_config
from strategy.purchases import MadeOutput, Move, NotShown, SpentCoin
from tests.shapes import replace
from tests.worlds.worker import CATS, KEYS, World
from workers.manager.fill_lister import FillLister
from workers.manager.purchase_facts import Evidence, Found, Standing

ITEM, OTHER = "ab" * 32 + "i0", "cd" * 32 + "i0"
MARGIN = ListingConfig(min_margin=Decimal("0.10"))
RULE = OnFill(dump_listing_config(MARGIN), start=True, max_open=1)
TO_VAULT = replace(CATS, bid_count=1, deliver_to="vault", on_fill=RULE)
HELD = LocatedInscription("held", "1" * 64 + ":0")
STRANGER = SpentCoin("9" * 64 + ":0", 10_000, "seller", "other")


class Desk:
    """A lister of fills over the world's database, with an index and a chain that say what they are told to.

    `left_sats` is what left our scripts for the item on the chain.
    """

    def __init__(self, world: World, crash: Any = lambda point: None) -> None:
        self.world, self.place, self.vault, self.reads = world, HELD, KEYS.vault, 0
        self.fault: str | None = None
        self.left_sats, self.shown, self.standing, self.came_from = 75_600, "", Standing(None, 1), STRANGER
        self.lister = FillLister(
            world.settings,
            5.0,
            world.clock,
            EVERYBODY,
            monotonic=lambda: world.clock.now_ms / 1000,
            find=self.find,
            read=self.read,
            check=lambda proof: self.standing,
            crash=crash,
        )

    def find(self, order: Order, user: User) -> Found:
        assert user.address == "bc1quser"
        self.reads += 1
        return Found(self.place, self.vault, self.fault)

    def read(self, order: Order, user: User, outpoint: str) -> Evidence:
        """A purchase in a transaction of the order's own, in a block of now."""
        if self.shown:
            raise NotShown(self.shown)
        txid, vout = outpoint.split(":")
        spent = (SpentCoin(f"{order.id:064x}:0", self.left_sats, "wallet", "backing"),)
        outputs = (MadeOutput(10_000, "vault", "receiver"),) * (int(vout) + 1)
        outputs = (*(MadeOutput(1, "", "other") for _ in outputs[1:]), outputs[0])
        now_s = self.world.clock.now_ms // 1000
        bought = Move(
            f"{order.id:064x}", "b" * 64, 900_000, now_s, self.came_from, 0, spent, (MadeOutput(1, "escrow", "other"),)
        )
        arrived = Move(
            txid,
            "c" * 64,
            900_000,
            now_s,
            SpentCoin(f"{order.id:064x}:0", 1, "escrow", "other"),
            int(vout),
            (),
            outputs,
        )
        return Evidence((arrived, bought), "vault", None)

    def look(self, *, after_s: float = 6.0, times: int = 1) -> Autolist | None:
        for _ in range(times):
            self.world.clock.advance(after_s)
            asyncio.run(self.lister.look())
        return newest(int(self.world.user.id), Wanted(side="buy"), 1)[0].autolist


def buys(world: World, config: BidConfig = TO_VAULT, item: str | None = ITEM, fee: int = 600) -> int:
    """The task of a bid of 75,000 that was filled."""
    task, bidder = world.begun(config)
    world.later(30, bidder)
    world.clock.advance(10)
    world.market.sales_[-1:] = [structs.replace(world.market.sell(75_000, buyer=KEYS.vault), inscription_id=item)]
    world.market.balance_sats -= 75_000 + fee
    world.later(20, bidder)
    return task


def autolists() -> list[Task]:
    return list(Task.select().where(Task.kind == "listing").order_by(Task.id))
