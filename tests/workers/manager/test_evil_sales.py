"""A gateway that lies about what was bought, ten thousand times: the fourth attacker.

Every story is another user's day on a play chain: items that lay in the vault, deposits, bids at two venues, sales into
them, an item that its owner takes out and puts back, and a reorganisation. The chain is honest; what the gateway says
that each bid bought is not. `EVIL_REQUESTS` and `EVIL_SEED` as for the other attackers
(tests/wallet/test_evil_gateway.py).
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from core.settings import Settings
from models import users
from models.database import base
from models.database.base import Sqlite
from models.leases.leases import EVERYBODY
from models.ledger import orders, purchases
from models.ledger.states import LIVE, Order
from models.tasks import tasks
from models.tasks.tasks import RUNNING, Task
from strategy.config.bid import BidConfig, OnFill, dump_bid_config
from strategy.config.listing import ListingConfig, dump_listing_config, load_listing_config
from strategy.purchases import Claim, MadeOutput, Move, ProvenPurchase, SpentCoin, prove
from tests.examples import part_of
from tests.shapes import replace
from tests.worlds.purchases import (
    BEGAN_S,
    BUYER,
    ORDNET,
    OWNER,
    PAYMENT_SCRIPT,
    SATFLOW,
    WALLETS,
    HouseFacts,
    PlayChain,
)
from workers.manager import fill_lister
from workers.manager.fill_lister import FillLister
from workers.manager.purchase_facts import _Moves

LIES = part_of(int(os.environ.get("EVIL_REQUESTS", "10000")), dear=True)
SEED = int(os.environ.get("EVIL_SEED", "1"))
RULE = OnFill(dump_listing_config(ListingConfig()), start=True, max_open=500)
CONFIG = BidConfig(slug="cats", hardcap_sats=1_000_000, deliver_to="vault", on_fill=RULE)
WAYS = ("true", "other item", "other order's sale", "swapped", "owner's deposit", "two in one", "unknown item")
NAMED = {
    "other item": ("deposit", "old", "offer"),
    "owner's deposit": ("new",),
    "two in one": ("one", "two"),
    "unknown item": ("nothing",),
}
PRICES = (600, 75_000, 75_000, 100_000, 400_000)
COSTLY = 10_000_000


@dataclass
class Bid:
    """One bid, what it really bought, and what the gateway says."""

    row: Order
    coins: tuple[str, ...] = ()
    bought: str | None = None
    txid: str = ""
    told: str | None = None
    way: str = ""


@dataclass
class Day:
    """One story. `judge` compares what was listed, or would be guarded, with what happened."""

    rng: random.Random
    number: int
    user: users.User
    task: int
    chain: PlayChain = field(default_factory=PlayChain)
    bids: list[Bid] = field(default_factory=list)
    undone: set[str] = field(default_factory=set)
    back: str | None = None

    def __post_init__(self) -> None:
        self.now_s = self.chain.clock_s
        self.lister = FillLister(
            Settings(whitelist=frozenset("*")), 5.0, self.now_ms, EVERYBODY, monotonic=lambda: float(self.now_s)
        )
        facts = HouseFacts(self.chain)
        self.lister._find, self.lister._read, self.lister._check = facts.find, facts.evidence, facts.standing

    def now_ms(self) -> int:
        return self.now_s * 1000

    def later(self, seconds: int) -> None:
        self.now_s += seconds
        self.chain.clock_s = self.now_s

    def item(self, name: str) -> str:
        return f"{self.number % 2**64:016x}{name.encode().hex():0<48}i0"[:64] + "i0"

    def morning(self) -> None:
        """What lies in the vault before any bid: a deposit, and purchases out of the same wallets."""
        self.chain.deposit(self.item("deposit"))
        self.chain.bought_from_wallet(self.item("old"), None, self.rng.choice((75_000, COSTLY)))
        coin = self.chain.coin(200_000, PAYMENT_SCRIPT)
        self.chain.bought_from_escrow(self.item("offer"), None, 75_000, (coin,))
        self.later(600)

    def bid(self, venue: str, price: int) -> Bid:
        coins = (self.chain.coin(price + 30_000, PAYMENT_SCRIPT),) if venue == ORDNET else ()
        number = self.number * 8 + len(self.bids)
        row = Order.create(
            intent=f"{number:032x}", task_id=self.task, user_id=self.user.id, venue=venue, wallet=BUYER.payment,
            slug="cats", price_sats=price, quantity="1", expires_ms=number, token=1, state=LIVE,
            created_ms=self.now_ms(), updated_ms=self.now_ms(), receive=BUYER.vault, coins=" ".join(coins),
        )  # fmt: skip
        self.bids.append(Bid(row, coins))
        return self.bids[-1]

    def sale(self, bid: Bid) -> None:
        """The bid is really sold into."""
        item, order, price = self.item(f"item {len(self.chain.truth)}"), bid.row.id, bid.row.price_sats
        if bid.row.venue == ORDNET:
            bid.txid = self.chain.bought_from_escrow(item, order, price, bid.coins)
        else:
            wallet, fee = WALLETS[self.rng.choice(("2of2", "leaf"))], self.rng.choice((0, 600, 20_000))
            forwards = self.rng.random() < 0.7
            bid.txid = self.chain.bought_from_wallet(item, order, price, fee=fee, wallet=wallet, forwards=forwards)
        bid.bought = item

    def noon(self) -> None:
        """Bids, sales into most of them, and deposits meanwhile."""
        for _ in range(self.rng.randrange(2, 5)):
            self.bid(self.rng.choice((SATFLOW, SATFLOW, ORDNET)), self.rng.choice(PRICES))
        self.later(self.rng.choice((0, 1, 900)))
        for bid in self.bids:
            if self.rng.random() < 0.8:
                self.sale(bid)
        wallet = WALLETS["2of2"]
        if self.rng.random() < 0.5:
            self.chain.deposit(self.item("new"), fee_from=wallet.paid_to, opened=wallet.witness)
        else:
            self.chain.deposit(self.item("new"))
        self.chain.bought_from_wallet(
            self.item("one"), None, self.rng.choice((75_000, 400_000)), with_item=self.item("two")
        )

    def lies(self) -> Counter[str]:
        """What the gateway says that each bid bought."""
        said = Counter[str]()
        for bid in self.bids:
            bid.way = self.rng.choice(WAYS)
            others = [other for other in self.bids if other is not bid and other.bought]
            if bid.way in ("true", "swapped") or (bid.way == "other order's sale" and not others):
                bid.told = bid.bought
            elif bid.way == "other order's sale":
                bid.told = self.rng.choice(others).bought
            else:
                bid.told = self.item(self.rng.choice(NAMED[bid.way]))
        swapped = [bid for bid in self.bids if bid.way == "swapped" and bid.told]
        told = [bid.told for bid in swapped]
        for bid, item in zip(swapped, told[1:] + told[:1], strict=True):
            bid.told = item
        for at, bid in enumerate(self.bids):
            if bid.told is not None:
                sale = orders.SoldInto(f"{self.number}-{at}", bid.told, self.now_ms())
                assert orders.fill(bid.row, self.now_ms(), sale)
                said[bid.way if bid.told != bid.bought else "true"] += 1
        return said

    def owner_moves_one(self) -> None:
        """Takes an item that was bought, and whose fill waits, out of the vault, and puts it back."""
        bought = [bid.bought for bid in self.bids if bid.bought]
        if bought and self.rng.random() < 0.3:
            self.back = self.rng.choice(bought)
            self.chain.comes_back(self.back)

    def look(self, times: int = 2) -> None:
        for _ in range(times):
            self.later(6)
            asyncio.run(self.lister.look())

    def honest_fills_are_listed(self) -> None:
        """Two looks list what was really bought, if no other bid is said to have bought it."""
        told = Counter(bid.told for bid in self.bids if bid.told not in (None, self.back))
        listed = {task.source_order: task.inscription_id for task in self.listed()}
        for bid in self.bids:
            if bid.told is not None and bid.told == bid.bought and told[bid.told] == 1:
                assert listed.get(bid.row.id) == bid.bought, Order.get_by_id(bid.row.id).autolist_reason

    def listed(self) -> list[Task]:
        return list(Task.select().where(Task.kind == "listing", Task.user == self.user.id))

    def evening(self) -> None:
        """A reorganisation: a block has another hash, its transactions wait, or one vanishes."""
        sold = [bid for bid in self.bids if bid.txid]
        if not sold:
            return
        bid, way = self.rng.choice(sold), self.rng.choice(("block", "waits", "undone"))
        if way == "block":
            self.chain.moves_block(bid.txid)
            return
        self.undone.add(str(bid.bought))
        self.chain.unconfirms(bid.txid)
        self.chain.unconfirms(self.chain.at[str(bid.bought)].split(":")[0])
        if way == "undone":
            del self.chain.kept[bid.txid]
            self.chain.inscribed(str(bid.bought))  # its seller has it again

    def judge(self) -> int:
        """Judges all authority and all costs that there are; returns how many."""
        by_order = {bid.row.id: bid for bid in self.bids}
        given = []
        for task in self.listed():
            cost = load_listing_config(task.config).cost_sats
            if task.desired == RUNNING:
                given.append((task.source_order, task.inscription_id, cost))
        for item in {bid.told for bid in self.bids if bid.told}:
            found = purchases.of_inscription(int(self.user.id), item)
            if isinstance(found, ProvenPurchase):
                given.append((found.order_id, item, found.cost_sats))
        proofs = list(purchases.of_orders(list(by_order)).values())
        assert len({proof.txid for proof in proofs}) == len(proofs), "one purchase proved two bids"
        for order_id, item, cost in given:
            bid, truth = by_order[order_id], self.chain.truth[item]
            assert truth.order is not None, f"{item} was bought by none of our bids"
            assert truth.is_alone, f"{item} has no price of its own"
            assert truth.arrived_s * 1000 >= bid.row.created_ms // 1000 * 1000, f"{item} lay in the vault before"
            assert cost is not None and cost >= max(truth.left, bid.row.price_sats), f"{item} is guarded by {cost}"
            real = by_order[truth.order]
            assert real.row.venue == bid.row.venue and (real is bid or bid.row.venue != ORDNET), "another order's coin"
            assert item not in self.undone, f"{item} was taken back by the chain"
        return len(given)


@dataclass
class Said:
    """What was said in all days, by its kind, and how often authority or a cost came of it."""

    ways: Counter[str] = field(default_factory=Counter)
    given: int = 0


def days(rng: random.Random, lies: int) -> Said:
    """Lives through days until the gateway has spoken so often."""
    if isinstance(base.database.obj, Sqlite):
        base.database.execute_sql("PRAGMA synchronous = OFF")
    user = users.find_or_create(OWNER, dict(Settings().plans), BEGAN_S * 1000)
    task = tasks.create_bidding_task(
        user.id, type="ordinals", slug="cats", slug_key="cats", config=dump_bid_config(CONFIG), venue=SATFLOW,
        max_tasks=20, now_ms=1,
    )  # fmt: skip
    said, number = Said(), 0
    while said.ways.total() < lies:
        number += 1
        day = Day(rng, number, user, task.id)
        day.morning()
        day.noon()
        said.ways += day.lies()
        day.look(1)
        day.owner_moves_one()
        day.look(1)
        day.honest_fills_are_listed()
        said.given += day.judge()
        if rng.random() < 0.4:
            day.evening()
            day.later(60)
            day.look(4)
            day.judge()
        Order.delete().execute()
        purchases.Purchase.delete().execute()
        Task.delete().where(Task.kind == "listing").execute()
    return said


@pytest.fixture
def unlogged() -> Iterator[None]:
    """Ten thousand refusals are not kept for a report."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.usefixtures("unlogged")
def test_lies_about_sales(database: str) -> None:
    said = days(random.Random(f"sales {SEED}"), LIES)
    print(f"seed {SEED}: {dict(said.ways.most_common())}; authority or a cost came of {said.given}")
    assert said.ways.keys() == set(WAYS) and said.given > LIES // 20


def any_coin_of_ours(moves: _Moves, *about: Any) -> SpentCoin:
    """A planted bug: any coin of the user backs this bid."""
    outpoint, spent, _ = about
    return SpentCoin(str(outpoint), spent.value, spent.script.hex(), "backing")


def any_past(claim: Claim, moves: Sequence[Move]) -> ProvenPurchase:
    """A planted bug: what was bought before the bid may be its purchase."""
    return prove(replace(claim, placed_ms=0), moves)


def any_source(claim: Claim, moves: Sequence[Move]) -> ProvenPurchase:
    """A planted bug: what came from the owner may be a purchase, for as little as its fee."""
    strange = [replace(move, item_from=replace(move.item_from, holder="other")) for move in moves]
    return prove(replace(claim, price_sats=1), strange)


def any_number(claim: Claim, moves: Sequence[Move]) -> ProvenPurchase:
    """A planted bug: two items of one transaction have the price of one."""
    alone = []
    for move in moves:
        others = [MadeOutput(each.sats, f"{at}", each.holder) for at, each in enumerate(move.outputs)]
        others = [replace(each, holder="other") if each.holder == "receiver" else each for each in others]
        others[move.item_to] = move.outputs[move.item_to]
        alone.append(replace(move, outputs=tuple(others)))
    return prove(claim, alone)


@pytest.mark.slow
@pytest.mark.usefixtures("unlogged")
@pytest.mark.parametrize(
    ("bug", "says"),
    [
        ("another order's coin", "another order's coin"),
        ("twice", "one purchase proved two bids"),
        ("an older one", "was bought by none of our bids"),
        ("the owner's own", "was bought by none of our bids"),
        ("two", "was bought by none of our bids"),
        ("no end", "was taken back by the chain"),
    ],
)
def test_a_planted_bug_is_caught(database: str, monkeypatch: pytest.MonkeyPatch, bug: str, says: str) -> None:
    if bug == "another order's coin":
        monkeypatch.setattr(_Moves, "_own_coin", any_coin_of_ours)
    elif bug == "twice":
        base.database.execute_sql("DROP INDEX purchases_txid")
    elif bug == "no end":
        monkeypatch.setattr(purchases, "void", lambda *about: None)
    else:
        planted = {"an older one": any_past, "the owner's own": any_source, "two": any_number}[bug]
        monkeypatch.setattr(fill_lister, "prove", planted)
    with pytest.raises(AssertionError, match=says):
        days(random.Random("planted"), 2_000)
