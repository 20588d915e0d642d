"""One seed, from an empty market to its verdict: what is wrong on a market with these scenes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal

from simulator.scenes import BY_NAME
from tests.scenes.checks import Checks
from tests.scenes.market import BIRDS, CATS, DOGS, RUNE, TRAIT, build, market_of
from tests.scenes.stage import DIALECTS, ORDNET, SATFLOW, Stage

# Most books fit into one answer; that of one seed in twelve fills a page at Ordinals Wallet, of another two at UniSat.
_PAGES = {5: 130, 11: 240}
SETTLED_S = 240.0


def faults(seed: int, names: Iterable[str] | None = None, *, ahead: bool = False, asks: int | None = None) -> list[str]:
    """Returns what is wrong at a seed; with `names` under these scenes, else under those that the seed draws.

    With `ahead` every odd row comes before the best one, so that a read may be refused, but must not be wrong.
    """
    with _quiet(), _opened(seed) as stage:
        made = build(stage, asks=asks or _PAGES.get(seed % 12, stage.chance.randint(2, 9)))
        if names is None:
            stage.world.scenes.draw()
        else:
            stage.world.scenes.choose(names, ahead=ahead)
        hides = any(BY_NAME[name].hides for name in stage.world.scenes.names)
        checks = Checks(stage, made, unknown_is_right=ahead or hides)
        _trade(stage, checks)
        return checks.faults


def _trade(stage: Stage, checks: Checks) -> None:
    trait = {"bid_type": "trait", "trait_type": TRAIT[0], "trait_value": TRAIT[1]}
    bids = [
        (stage.bid(SATFLOW, CATS, hardcap_sats=150_000), CATS),
        (stage.bid(SATFLOW, RUNE, type="rune", hardcap_sats=150_000, quantity=Decimal(100)), RUNE),
        (stage.bid(SATFLOW, BIRDS, hardcap_sats=150_000, **trait), BIRDS),
        (stage.bid(ORDNET, DOGS, hardcap_sats=150_000), DOGS),
    ]
    for venue, inscription in checks.made.to_list.items():
        stage.list_item(venue, CATS, inscription, 210_000)
    stage.go_on(120)
    for venue in DIALECTS:
        checks.reads(next(each for each in stage.running if each.venue == venue).client, venue)
    engine = stage.world.engine
    for _, slug in bids[::3]:
        engine.add(market_of(stage, slug), "bid", engine.new_address(), 60_000)
    stage.go_on(SETTLED_S)
    if not checks.unknown_is_right:
        checks.orders()
    sold = [(worker, checks.sell_into(worker, slug)) for worker, slug in bids]
    stage.go_on(SETTLED_S)
    for worker, price in sold:
        if price is not None and not checks.unknown_is_right:
            checks.is_filled(worker, price)
    checks.running()


@contextmanager
def _opened(seed: int) -> Iterator[Stage]:
    stage = Stage(seed)
    try:
        yield stage
    finally:
        stage.close()


@contextmanager
def _quiet() -> Iterator[None]:
    """Leaves out the warnings, of which there are many here."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
