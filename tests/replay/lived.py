"""The journals in tests/goldens: days of tasks that the small worlds of the workers' tests have lived.

Each task NAME has three files: `journal_NAME.jsonl` is the input of a replay, `journal_NAME_plans.txt` has each plan,
`journal_NAME_words.txt` each line of the task's log. `python -m tests.replay.lived` writes them anew: do so in
a commit of its own that says what changed and why.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints
from unittest import mock

from msgspec import Struct

from core.fields import iso
from markets.base import Unavailable
from models import schema, users
from models.database import base
from models.tasks import tasks
from server.replay.journal import read_journal
from strategy.config.bid import BidLevel, dump_bid_config, normal_slug
from strategy.config.listing import ListingConfig, PriceStep
from strategy.decision import BidPlan
from strategy.journal import unpack
from strategy.plan_bids import plan_bids
from strategy.plan_listing import ListingInputs, ListingPlan, plan_listing
from tests.shapes import replace
from tests.worlds.listing import ListingWorld
from tests.worlds.worker import CATS, KEYS, World, ask, bid
from workers.bidding.bidder import Bidder
from workers.bidding.moment import Journal
from workers.listing import lister as lister_module

GOLDENS = Path(__file__).resolve().parents[1] / "goldens"
LOOP_S, LISTING_LOOP_S = 30, 300
SHILL = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"  # whose asks are to be ignored


class Lived(NamedTuple):
    """A day of one task, as the texts of its three files."""

    journal: str
    plans: str
    words: str

    def write(self, name: str) -> None:
        for path, text in zip(paths(name), self, strict=True):
            path.write_text(text)


def paths(name: str) -> tuple[Path, Path, Path]:
    """Returns the files of the journal, of its plans and of its words."""
    return tuple(GOLDENS / f"journal_{name}{end}" for end in (".jsonl", "_plans.txt", "_words.txt"))  # type: ignore[return-value]


class BidDay:
    """A bidding task in a world; a subclass says what happens."""

    config = CATS
    cycles = 0

    def __init__(self) -> None:
        self.world = World()
        self.market = self.world.market
        self.rng = random.Random(7)
        self.events: Mapping[int, Callable[[], object]] = self.happens()

    def happens(self) -> Mapping[int, Callable[[], object]]:
        """Returns what happens before the cycles of these numbers."""
        raise NotImplementedError

    def floor(self, *prices: int, **more: Any) -> None:
        self.market.asks_ = [ask(price, **more) for price in prices]

    def rivals(self, *prices: int) -> None:
        self.market.bids_ = [bid(price) for price in prices]

    def change(self, **fields: Any) -> None:
        """Changes the config, as a PUT does."""
        self.config = replace(self.config, **fields)
        tasks.change_bidding_task(
            self.world.row(self.task),
            type=self.config.type,
            slug=self.config.slug,
            slug_key=normal_slug(self.config.type, self.config.slug),
            config=dump_bid_config(self.config),
        )

    def control(self, state: str) -> None:
        users.put_control(users.USER, self.world.user.id, state, None, self.world.clock())

    def sell_top(self) -> None:
        self.market.sell(self.market.prices[0])

    def lived(self) -> Lived:
        """Lives the day."""
        with tempfile.TemporaryDirectory() as name:
            path, words = Path(name, "journal"), list[str]()
            self.task = self.world.task(self.config)
            bidder = Bidder(
                self.world.context(self.task),
                rng=self.world.rng,
                new_intent=lambda: next(self.world.intents),
                monotonic=lambda: self.world.clock.now_ms / 1000,
                journal=Journal(path),
            )
            for number in range(self.cycles):
                self.events.get(number, lambda: None)()
                bidder.cycle()
                words.append(f"{number:>3} {self.world.action(self.task)}\n")
                self.world.clock.advance(LOOP_S)
            return Lived(path.read_text(), bid_plans(path, again=False), "".join(words))


class Ordinals(BidDay):
    """Three rungs that outbid: rivals, a floor that falls, jumps and vanishes, a sale, and other modes of a ladder."""

    config = replace(CATS, bid_count=3, outbid_enabled=True, hardcap_sats=90_000)
    cycles = 87

    def happens(self) -> Mapping[int, Callable[[], object]]:
        wandering = {number: lambda: self._wander() for number in range(1, 12)}
        return wandering | {
            0: lambda: self.floor(100_000, 104_000),
            12: lambda: self.rivals(76_000),
            13: lambda: self.rivals(70_000, 76_500),
            14: lambda: self.rivals(83_000),
            15: lambda: self.rivals(52_000),
            17: lambda: self.rivals(),
            18: lambda: self.floor(78_000, 104_000),
            22: lambda: self.floor(100_000, 104_000),
            26: lambda: self.floor(140_000, 150_000),
            29: lambda: self.floor(260_000),
            31: lambda: self.floor(100_000, 104_000),
            34: self.sell_top,
            40: lambda: self.floor(),
            52: lambda: self.floor(102_000),
            55: lambda: self.change(
                bid_mode="fixed", bid_fixed_low=50_000, bid_fixed_high=120_000, bid_count=4, outbid_enabled=False
            ),
            58: lambda: self.rivals(120_000),
            60: lambda: self.change(bid_mode="percent", ladder_shape="top", only_bid_if_highest=True),
            63: lambda: self.rivals(60_000),
            65: lambda: self.change(bid_levels=(BidLevel(Decimal("0.6"), 2), BidLevel(Decimal("0.4"), 1)), bid_count=3),
            68: lambda: self.market.fail("own_bids", Unavailable("down"), Unavailable("down")),
            70: lambda: self.change(bid_levels=None, max_bid_total=70_000, only_bid_if_highest=False),
            73: lambda: self.change(
                max_bid_total=0, outbid_enabled=True, outbid_mode="percent", outbid_percent=Decimal("0.05")
            ),
            76: lambda: self.market.fail("asks", *([Unavailable("down")] * 3)),
            80: lambda: self.control(users.HALT),
            82: lambda: self.control(users.RUN),
            84: lambda: self.change(max_fills=1),
        }

    def _wander(self) -> None:
        """Moves the floor, and a rival up by now and then."""
        floor = self.rng.randrange(96_000, 104_000, 500)
        self.floor(floor, floor + 5_000)
        highest = max((each.price for each in self.market.bids_), default=40_000)
        self.rivals(highest + self.rng.choice((0, 0, 3_000)))


class Runes(BidDay):
    """Orders of whole tokens, of a quantity and then of sats, by the floor and by the average of a depth."""

    config = replace(
        CATS, type="rune", slug="UNCOMMON•GOODS", quantity=Decimal("1000.5"), bid_count=3, outbid_enabled=True
    )
    cycles = 44

    def happens(self) -> Mapping[int, Callable[[], object]]:
        wandering = dict.fromkeys(range(1, 14), lambda: self._asks(self.rng.randrange(19_000, 21_000, 50)))
        return wandering | {
            0: lambda: (setattr(self.market, "divisibility", 2), self._asks(20_000)),
            14: lambda: self._bids(40_000),
            15: lambda: self._bids(47_000),
            16: lambda: self._bids(),
            17: lambda: self._asks(14_000),
            20: lambda: self._asks(20_000),
            22: lambda: self.change(use_vwap=True, depth_sats=50_000),
            25: lambda: self.change(quantity_mode="sats", sats_per_order=50_000),
            28: lambda: self._bids(60_000),
            30: lambda: self._asks(30_000),
            33: self.sell_top,
            38: lambda: self.change(use_vwap=False, sats_per_order=20_000, hardcap_sats=40_000),
        }

    def _asks(self, price: int) -> None:
        self.market.asks_ = [ask(price, quantity=200), ask(price * 11 // 5, "bc1qother", quantity=400)]

    def _bids(self, *prices: int) -> None:
        self.market.bids_ = [bid(price, quantity=1_000) for price in prices]


class Trait(BidDay):
    """Bids on one trait: its floor, the collection's in its place, rivals on both, another trait."""

    config = replace(
        CATS,
        bid_type="trait",
        trait_type="Fur",
        trait_value="Gold",
        hardcap_sats=160_000,
        bid_count=2,
        outbid_enabled=True,
    )
    cycles = 40

    def happens(self) -> Mapping[int, Callable[[], object]]:
        return {
            0: lambda: self._gold(150_000, 200_000),
            **{number: lambda: self._gold(self.rng.randrange(190_000, 210_000, 500)) for number in range(1, 12)},
            12: lambda: self._rivals([62_000], [151_000]),
            14: lambda: self._rivals([155_000], [151_000]),
            16: lambda: self._rivals([], []),
            17: lambda: self._gold(280_000),
            20: lambda: self._gold(),
            24: lambda: self._gold(200_000),
            26: lambda: self.change(trait_value="Silver"),
            29: self.sell_top,
            34: lambda: self.change(bid_type="collection"),
            36: lambda: self.floor(12_000),
        }

    def _gold(self, *prices: int) -> None:
        self.market.trait_asks_ = [ask(price, KEYS.vault if price == 150_000 else "bc1qseller") for price in prices]

    def _rivals(self, of_collection: Iterable[int], of_trait: Iterable[int]) -> None:
        self.rivals(*of_collection)
        self.market.trait_bids_ = [bid(price, "bc1qother") for price in of_trait]


class ListingDay:
    """An auto-list task in a world; a subclass says what happens."""

    config = ListingConfig()
    cycles = 0

    def __init__(self) -> None:
        self.world = ListingWorld()
        self.market = self.world.market
        self.rng = random.Random(7)
        self.events: Mapping[int, Callable[[], object]] = self.happens()

    def happens(self) -> Mapping[int, Callable[[], object]]:
        """Returns what happens before the cycles of these numbers."""
        raise NotImplementedError

    def change(self, **fields: Any) -> None:
        self.config = replace(self.config, **fields)
        self.world.change(self.task, self.config)

    def lived(self) -> Lived:
        """Lives the day, until the task's last cycle. A listing's worker keeps no journal: its inputs are kept here."""
        found, words = list[ListingInputs](), list[str]()

        def planned(inputs: ListingInputs) -> ListingPlan:
            found.append(inputs)
            return plan_listing(inputs)

        self.task = self.world.task(self.config)
        lister = self.world.lister(self.task)
        with mock.patch.object(lister_module, "plan_listing", planned), tempfile.TemporaryDirectory() as name:
            for number in range(self.cycles):
                self.events.get(number, lambda: None)()
                is_over = lister.cycle() is None
                words.append(f"{number:>3} {self.world.action(self.task)}\n")
                if is_over:
                    break
                self.world.clock.advance(LISTING_LOOP_S)
            # The worker asks for no plan after the item has left; `plan_listing` answers all the same.
            found += [replace(found[-1], inscription_state=state) for state in ("pending", "unknown", "moved", "spent")]
            path = Path(name, "journal")
            path.write_text("".join(f"{json.dumps(_packed(each), ensure_ascii=False)}\n" for each in found))
            return Lived(path.read_text(), listing_plans(path), "".join(words))


def _packed(value: Any) -> Any:
    """Returns a JSON value: a Struct is an object of its fields, a Decimal its text, a set a sorted list."""
    if isinstance(value, Struct):
        return {name: _packed(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple | frozenset):
        return [_packed(each) for each in (sorted(value) if isinstance(value, frozenset) else value)]
    return str(value) if isinstance(value, Decimal) else value


class Item(ListingDay):
    """A multiple of the floor that follows it, keeps its minimum, steps down with time and is sold."""

    config = ListingConfig(min_price_sats=95_000)
    cycles = 60

    def happens(self) -> Mapping[int, Callable[[], object]]:
        return {
            0: lambda: self.world.floor(100_000, 104_000),
            **dict.fromkeys(range(1, 14), self._wander),
            14: lambda: self.world.floor(80_000),
            17: lambda: self.world.floor(190_000),
            20: lambda: self.world.floor(),
            23: lambda: self.world.floor(100_000),
            25: lambda: self.market.fail("asks", Unavailable("down"), Unavailable("down")),
            27: lambda: self.change(cost_sats=120_000, min_margin=Decimal("0.1")),
            30: lambda: self.change(cost_sats=None, min_margin=Decimal(0), reference="lastSale"),
            31: lambda: [self.market.tell_sale(price, "cd" * 32 + "i0") for price in (130_000, 141_000, 128_000)],
            34: lambda: self.change(reference="floor", price_mode="fixed", price_sats=150_000),
            36: lambda: self.change(price_schedule=(PriceStep(3, price_sats=140_000), PriceStep(4, Decimal("1.01")))),
            38: lambda: self.world.clock.advance(3_600),
            42: lambda: self.market.listed.clear(),
            50: lambda: self.market.buy(next(iter(self.market.listed.values())).price),
        }

    def _wander(self) -> None:
        floor = self.rng.randrange(92_000, 108_000, 500)
        self.world.floor(floor, floor + 4_000)


class Undercut(ListingDay):
    """A price below the cheapest rival and down to its minimum; a trait's floor; the item goes to another address."""

    config = ListingConfig(price_mode="undercut", undercut_sats=500, min_price_sats=88_000)
    cycles = 40

    def happens(self) -> Mapping[int, Callable[[], object]]:
        return {
            0: lambda: self.world.floor(100_000, 104_000),
            2: lambda: self.world.floor(99_000, 104_000),
            4: lambda: self.world.floor(98_000),
            6: lambda: self.world.floor(85_000),
            8: lambda: self.world.floor(87_000, 103_000),
            11: lambda: self.world.floor(120_000),
            14: lambda: setattr(self.market, "asks_", [ask(110_000, SHILL), ask(125_000)]),
            16: lambda: self.change(ignore_addresses=(SHILL,)),
            18: lambda: self.change(
                ignore_addresses=(), price_mode="percent", reference="traitFloor", trait_type="Fur", trait_value="Gold"
            ),
            20: lambda: setattr(self.market, "trait_asks_", [ask(150_000), ask(170_000)]),
            24: lambda: setattr(self.market, "trait_asks_", []),
            27: lambda: self.change(allow_below_reference=True, price_percent=Decimal("0.9")),
            30: lambda: self.market.move("bc1pelsewhere"),
        }


BIDS: Mapping[str, type[BidDay]] = {"bids_ordinals": Ordinals, "bids_runes": Runes, "bids_trait": Trait}
LISTINGS: Mapping[str, type[ListingDay]] = {"listing_item": Item, "listing_undercut": Undercut}


def bid_plans(journal: Path, *, again: bool = True) -> str:
    """Returns the plans of the journal's cycles: decided again from the recorded inputs, or as recorded."""
    recording = read_journal([journal])
    assert not recording.notes, recording.notes
    found = ((entry.now_ms, plan_bids(entry) if again else entry.plan) for entry in recording.entries)
    return "".join(line for now_ms, plan in found for line in _told(now_ms, plan))


def listing_plans(journal: Path) -> str:
    """Returns the plans of the journal's cycles, decided again from the recorded inputs."""
    lines = []
    for line in journal.read_text().splitlines():
        inputs = listing_inputs(json.loads(line))
        plan = plan_listing(inputs)
        lines.append(f"{iso(inputs.now_ms)} {plan.action} {plan.price} {plan.reason.value}: {plan.note}\n")
    return "".join(lines)


def listing_inputs(packed: dict[str, Any]) -> ListingInputs:
    """Reads the inputs of one cycle; a set is a list in JSON."""
    hints = get_type_hints(ListingInputs) | {"own_wallets": tuple[str, ...], "inscription_state": str}
    values = {name: unpack(hints[name], value, name) for name, value in packed.items()}
    return ListingInputs(**values | {"own_wallets": frozenset(values["own_wallets"])})


def _told(now_ms: int, plan: BidPlan | None) -> Iterator[str]:
    yield f"{iso(now_ms)}\n"
    if plan is None:
        yield "  no plan\n"
        return
    marks = " ".join(mark.value for mark in plan.marks)
    yield f"  reference {plan.reference} of {plan.raw_reference} {marks}".rstrip() + "\n"
    for cancel in plan.to_cancel:
        how = "hard" if cancel.hard else "soft"
        after = "" if cancel.after_rung is None else f" after rung {cancel.after_rung}"
        yield f"  cancel order {cancel.order_id} at {cancel.price_sats}, {how}: {cancel.reason.value}{after}\n"
    for place in plan.to_place:
        of = "" if place.trait is None else f" of {'='.join(place.trait)}"
        yield f"  place rung {place.rung} at {place.price_sats} for {place.quantity}{of}\n"
    for note in plan.rungs:
        held = "" if note.order_id is None else f" order {note.order_id}"
        yield f"  rung {note.rung} at {note.price_sats} for {note.quantity}: {note.label}{held}\n"
    for each in plan.bids:
        yield f"  order {each.order_id}: {each.reason.value}\n"
    yield f"  memory {plan.memory.dumps()}\n"


def main() -> int:
    for name, day in (BIDS | LISTINGS).items():
        with tempfile.TemporaryDirectory() as directory:
            base.connect(f"sqlite:///{Path(directory) / 'bidkeeper.db'}")
            try:
                schema.migrate()
                day().lived().write(name)
            finally:
                base.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
