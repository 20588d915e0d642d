"""Scenes: oddities of real venues' answers, declared here and shown by the venues' handlers.

A scene adds odd rows to a list, changes the form of its rows, or changes a status. A handler applies scenes in one line
where it writes rows or a status. The letter in `evidence` marks the source: R a recorded answer, P a program in
production, C the venue's own client, D its documentation, K none, but it is like the others and likely.

No scene changes an order, a sale or a wallet. An odd row is a copy of a real one with ids that no request finds. If it
can be read as an order, its price does not compete with a real one, or the row itself says that it is not for sale.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from msgspec import Struct

from simulator import odd_rows
from simulator.engine import Engine
from simulator.wire import bad

Dialect = Literal["satflow", "unisat", "ordinalswallet", "ordnet"]
ListName = Literal["listings", "lots", "bids", "own_bids", "own_listings", "wallet", "sales", "floors", "traits"]
# Books whose order no documentation promises.
UNORDERED: frozenset[tuple[Dialect, ListName]] = frozenset({("ordinalswallet", "listings"), ("ordnet", "bids")})
_UNORDERED: tuple[Dialect, ...] = ("ordinalswallet", "ordnet")
# Lists that show clients their own orders: odd rows are there only sometimes, so that orders can be settled.
_OWN: frozenset[ListName] = frozenset({"own_bids", "own_listings", "wallet", "sales"})
_SPAN_MS = 60_000


class Scene(Struct, frozen=True):
    """One oddity. `odd` makes a row from a real one, `form` another form of each row.

    The handlers themselves apply a scene without both, such as a status. The odd row comes `ahead` of the best real
    one, `last` of all, or in between. `hides`: the scene makes the best price unknown, so a client refuses the list;
    no seed draws it.
    """

    name: str
    dialects: tuple[Dialect, ...]
    lists: tuple[ListName, ...]
    evidence: str
    odd: Callable[[odd_rows.Real], Any] | None = None
    form: Callable[[dict[str, Any], Any, Engine], dict[str, Any]] | None = None
    ahead: bool = False
    last: bool = False
    hides: bool = False

    def is_shown_in(self, dialect: str, list_name: str) -> bool:
        if dialect not in self.dialects or list_name not in self.lists:
            return False
        return self.odd is not odd_rows.price_in_letters or self.hides == ((dialect, list_name) in UNORDERED)


ALL: tuple[Dialect, ...] = ("satflow", "unisat", "ordinalswallet", "ordnet")
# Lots are a rune's listings at UniSat, which have their own route.
_BOOKS: tuple[ListName, ...] = ("listings", "lots", "bids")
_OWN_ORDERS: tuple[ListName, ...] = ("own_bids", "own_listings")
_PRICED: tuple[ListName, ...] = (*_BOOKS, *_OWN_ORDERS, "sales", "floors", "traits")
# No odd row may make a wallet seem to hold an item that its owner does not have.
_EVERY: tuple[ListName, ...] = (*_PRICED, "wallet")
_K = "K: one odd row among many"

_OMB, _FLOORBOARD = "P: mrv777/omb-gallery src/lib/satflow.ts", "R: TerraBloch/floorboard"
_TIMED: tuple[ListName, ...] = ("listings", "bids", *_OWN_ORDERS, "wallet", "sales")
_FINETRADER = "P: Bit-Trading-Company/finetrader.com src/trading/satflow/satflowApi.js"
_PARSER = "P: a sales parser of a client with a key"
_OW_CLI = "C, R: ordinals-wallet/ow-cli fixtures/error-bodies.json"
_BUNDLE, _LEGACY = "D: the bundle's canonical inscription", "D: 2026-05, attribute is legacy"
_SATFLOW, _UNISAT, _OW, _ORDNET = ((name,) for name in ALL)

SCENES: tuple[Scene, ...] = (
    # Odd rows, in every list of every dialect that has the field
    Scene("row_null", ALL, _EVERY, _K, lambda real: None),
    Scene("row_list", ALL, _EVERY, _K, lambda real: ["not", "a", "row"]),
    Scene("id_none", ALL, _EVERY, _K, odd_rows.without_id),
    Scene("price_missing", ALL, (*_BOOKS, *_OWN_ORDERS, "sales"), _K, odd_rows.without_price),
    Scene("price_letters", ALL, _PRICED, _K, odd_rows.price_in_letters),
    Scene("price_letters_unordered", _UNORDERED, _BOOKS, _K, odd_rows.price_in_letters, hides=True),
    Scene("price_huge", ALL, _PRICED, _K, odd_rows.huge_price),
    Scene("time_epoch", ALL, (*_BOOKS, "sales"), _OMB, odd_rows.epoch_zero, last=True),
    Scene("seller_number", ALL, _BOOKS, _K, odd_rows.maker_a_number, last=True),
    Scene("enum_unknown", ALL, (*_BOOKS, "own_bids"), _K, odd_rows.unknown_state, last=True),
    Scene("event_unknown", ("unisat", "ordnet"), ("sales",), _K, odd_rows.unknown_state),
    Scene("foreign", ("satflow", "unisat", "ordnet"), (*_BOOKS, "sales"), _K, odd_rows.foreign, ahead=True),
    # UniSat; its forms are written by simulator/venues/unisat/reads.py
    Scene("unisat_403_over_the_rate", _UNISAT, (), "P: three programs, August 2026"),
    Scene("unisat_attrs", _UNISAT, (), f"{_FLOORBOARD} auction_list.json"),
    Scene("unisat_unit_price", _UNISAT, (), f"{_FLOORBOARD} auction_list.json"),
    Scene("unisat_stale_row", _UNISAT, (), f"{_FLOORBOARD} auction_list.json and item"),
    Scene("unisat_statistic_500", _UNISAT, (), "P"),
    Scene("unisat_holder_in_utxo", _UNISAT, (), f"{_FLOORBOARD} inscription_info_list.json"),
    Scene("unisat_sale_txid", _UNISAT, (), f"{_FLOORBOARD} auction_actions.json"),
    # Satflow
    Scene("satflow_rune_sales", _SATFLOW, ("sales",), _PARSER, form=odd_rows.rune_sale),
    Scene("satflow_fill_fields", _SATFLOW, ("sales",), _OMB, form=odd_rows.fill_fields),
    Scene("satflow_placeholder_times", _SATFLOW, _TIMED, _OMB, form=odd_rows.placeholder_times),
    Scene("satflow_unconfirmed_ask", _SATFLOW, ("listings",), _FINETRADER, odd_rows.unconfirmed_ask, ahead=True),
    Scene("satflow_bidder_addresses", _SATFLOW, ("bids",), "C: the venue's bot", form=odd_rows.bidder_addresses),
    Scene("satflow_trait_attributes", _SATFLOW, ("bids", "own_bids"), _LEGACY, form=odd_rows.trait_attributes),
    # ord.net
    Scene("ordnet_bundle", _ORDNET, ("listings",), _BUNDLE, odd_rows.bundle, ahead=True),
    Scene("ordnet_null_slug", _ORDNET, ("listings",), "D: collection.slug is nullable", odd_rows.no_slug, ahead=True),
    Scene("ordnet_sale_txids", _ORDNET, ("sales",), "D: txid, blockHeight", form=odd_rows.txid_and_height),
    # Ordinals Wallet
    Scene("ordinalswallet_bare_errors", _OW, (), _OW_CLI),
    Scene("ordinalswallet_paged_escrows", _OW, (), "P: a client with limit and offset"),
)
BY_NAME = {scene.name: scene for scene in SCENES}


class Scenes:
    """The scenes of one practice market; none until some are chosen. `clock` is in ms."""

    def __init__(self, seed: int, clock: Callable[[], int], *, drawn: bool) -> None:
        self._seed = seed
        self._clock = clock
        self._began_ms = clock()
        self._strikes = random.Random(f"strikes {seed}")
        self.chosen: frozenset[str] = frozenset()
        self.is_drawn = False
        self._is_ahead = False
        if drawn:
            self.draw()

    @property
    def names(self) -> list[str]:
        """The names of the chosen scenes, in the order of their declaration."""
        return [scene.name for scene in SCENES if scene.name in self.chosen]

    def draw(self) -> None:
        """Chooses about half of all scenes by the seed; each list then has at most two kinds of odd rows."""
        self.chosen = frozenset(
            scene.name for scene in SCENES if not scene.hides and self._rng(scene.name).random() < 0.5
        )
        self.is_drawn, self._is_ahead = True, False

    def choose(self, names: Iterable[str], *, ahead: bool = False) -> None:
        """Shows only these until the next choice or reset. `ahead` puts odd rows before the best real one."""
        wanted = list(names)
        if unknown := [name for name in wanted if name not in BY_NAME]:
            raise bad(f"no such scene: {', '.join(unknown[:5])} (there is {', '.join(BY_NAME)})")
        self.chosen = frozenset(wanted)
        self.is_drawn, self._is_ahead = False, ahead

    def has(self, name: str) -> bool:
        return BY_NAME[name].name in self.chosen

    def strikes(self, name: str) -> bool:
        """Returns True if a scene of a status applies to this request: 1 in 25, or 1 in 4 if it was chosen by name."""
        return self.has(name) and self._strikes.random() < (0.04 if self.is_drawn else 0.25)

    def rows(
        self, dialect: str, list_name: ListName, rows: Sequence[Any], about: Sequence[Any], engine: Engine
    ) -> Sequence[Any]:
        """Returns an answer's rows with the scenes' changes. The last rows are those `about` real orders or items.

        Odd rows are never more than half as many as real ones, and no list has only odd ones.
        """
        if not about:
            return rows
        found = list(rows)
        offset = len(found) - len(about)
        for scene in self._of(dialect, list_name):
            if scene.form is not None:
                around = [scene.form(row, None, engine) for row in found[:offset]]
                real = [scene.form(row, one, engine) for row, one in zip(found[offset:], about, strict=True)]
                found = around + real
        return self._with_odd_ones(dialect, list_name, found, offset)

    def _with_odd_ones(self, dialect: str, list_name: ListName, found: list[Any], offset: int) -> list[Any]:
        room = max(1, (len(found) - offset) // 2)
        kinds = [scene for scene in self._of(dialect, list_name) if scene.odd is not None and self._is_on(list_name)]
        if self.is_drawn:
            kinds = self._rng(dialect, list_name).sample(kinds, min(2, len(kinds)))
        template, best = found[-1], found[offset]
        front: list[Any] = []
        back: list[tuple[Scene, Any]] = []
        for at, scene in enumerate(each for each in SCENES if each in kinds):
            assert scene.odd is not None
            is_front = scene.ahead or (self._is_ahead and not scene.last)
            real = odd_rows.Real(best if is_front else template, list_name, at + 1, self._seed)
            if is_front:
                front.append(scene.odd(real))
            elif len(back) < room:
                back.append((scene, scene.odd(real)))
        for scene, row in back:
            behind = 0 if scene.last else self._rng(scene.name, dialect, list_name).randrange(len(found) - offset)
            found.insert(len(found) - behind, row)
        return front + found

    def _of(self, dialect: str, list_name: ListName) -> list[Scene]:
        return [scene for scene in SCENES if scene.name in self.chosen and scene.is_shown_in(dialect, list_name)]

    def _is_on(self, list_name: ListName) -> bool:
        """Returns True if the list has odd rows now: a list of own orders every third minute, unless ahead."""
        minute = (self._clock() - self._began_ms) // _SPAN_MS
        return list_name not in _OWN or self._is_ahead or minute % 3 == 2

    def _rng(self, *about: str) -> random.Random:
        return random.Random(f"scenes {self._seed} {' '.join(about)}")

    def as_json(self) -> dict[str, Any]:
        names = ("name", "dialects", "lists", "evidence")
        known = [{name: getattr(s, name) for name in names} | {"on": s.name in self.chosen} for s in SCENES]
        return {"names": self.names, "drawn": self.is_drawn, "ahead": self._is_ahead, "known": known}
