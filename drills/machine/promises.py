"""Promises that hold after each step, and the state machine that tries to break them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from copy import copy
from decimal import Decimal
from hashlib import sha256
from typing import Any

from drills.faults import checker
from drills.faults.checker import BOOK_AGE_MS, CHECKS, Check, Joined
from drills.faults.evidence import Bid, Evidence, Row
from drills.machine.owner import BUDGET, Owners
from models.database.base import database
from tests.shapes import replace
from tests.worlds.house import EXPOSURE, INSTALLATION, House

# The ledger learns of an end at the venue when a cycle looks, and none may for as long as something is away.
AT_LAST = (checker.ghost,)
BY_SIGHT = (checker.at_ask,)
ALWAYS = tuple(check for check in CHECKS if check not in (*AT_LAST, *BY_SIGHT))


class Watch:
    """Looks at a house again and again; what was looked at does not change and is not read twice."""

    def __init__(self, house: House, owners: Owners) -> None:
        self._house = house
        self._owners = owners
        self._audit: list[Row] = []
        self._audit_read = 0
        self._last_cycle = 0
        # Of each user, by whether the vault gets the goods.
        self._addresses = {
            user.id: {False: user.ordinals_address, True: house.signer.addresses(user.address).vault}
            for user in owners.users
        }

    def broken(self) -> list[str]:
        """Returns the promises that do not hold now."""
        evidence = self._evidence()
        run = Joined(evidence)
        return [*self._house.complaints, *_found(ALWAYS, run), *self._of_model(run)]

    def broken_after_drain(self) -> list[str]:
        """Bids that a stop was to cancel, and time enough was there."""
        leave = {task for task, found in self._owners.told.configs.items() if not all(c.cancel_on_stop for c in found)}
        return [
            f"not_drained: {bid.price} of task {order['task_id']}, order {order['id']} is {order['state']}"
            for bid, order in Joined(self._evidence()).pairs()
            if bid.end_ms is None and order["task_id"] not in leave
        ]

    def broken_in_the_end(self) -> list[str]:
        """Returns the promises that do not hold once every task was stopped and had all the time it needs."""
        evidence = self._evidence()
        run = Joined(evidence)
        live = [f"alive: {bid.price} on {bid.slug}" for bid in run.bids if bid.end_ms is None]
        open_ = [f"open: order {row['id']} is {row['state']}" for row in run.orders if row["state"] != "closed"]
        return [*_found((*ALWAYS, *AT_LAST), run), *self._of_model(run), *live, *open_]

    def _evidence(self) -> Evidence:
        house, told = self._house, self._owners.told
        house.world.engine.expire()
        return Evidence(
            house.world.engine.history.rows(None),
            _rows("SELECT * FROM orders"),
            self._audit_lines(),
            cycles=self._new_cycles(),
            logs={
                task: [f"worker begins, token {token}, pid 1" for token in tokens]
                for task, tokens in house.manager.tokens.items()
            },
            configs=dict(told.configs),
            exposure={user.id: EXPOSURE for user in self._owners.users},
            quiet=told.all_quiet(),
            asks=told.asks,
            accepted_twice=told.accepted_twice,
        )

    def _audit_lines(self) -> list[Row]:
        with (self._house.directory / "signer" / "audit.jsonl").open("rb") as file:
            file.seek(self._audit_read)
            for line in file:
                self._audit.append(json.loads(line) | {"line_sha256": sha256(line).hexdigest()})
                self._audit_read += len(line)
        return self._audit

    def _new_cycles(self) -> list[Row]:
        found = _rows("SELECT * FROM cycles WHERE id > ?", self._last_cycle)
        self._last_cycle = max((row["id"] for row in found), default=self._last_cycle)
        return found

    def _of_model(self, run: Joined) -> Iterator[str]:
        yield from self._beyond_its_config(run)
        yield from self._delivered_elsewhere(run)
        yield from self._not_noted(run)
        seeing = copy(run)
        seeing.bids = [bid for bid in run.bids if not self._is_blind(run, bid)]
        yield from _found(BY_SIGHT, seeing)
        yield from self._rune_at_ask(seeing)
        yield from _over_installation(run)
        yield from over_budget(run, dict.fromkeys(self._owners.budgets.values(), BUDGET))

    def _beyond_its_config(self, run: Joined) -> Iterator[str]:
        """Placed by a worker against the config that it was started with."""
        for bid, order in run.pairs():
            config = self._house.manager.configs[order["task_id"], order["token"]]
            cap = config.hardcap_sats or config.bid_fixed_high
            fits = config.bid_mode != "fixed" or config.bid_fixed_low <= bid.price <= config.bid_fixed_high
            if bid.price > cap or not fits:
                yield f"beyond_its_config: {bid.price} on {bid.slug}, hard cap {cap}"

    def _delivered_elsewhere(self, run: Joined) -> Iterator[str]:
        """Signed for another address than the order has, or than the config that its worker was started with says."""
        for bid, order in run.pairs():
            config = self._house.manager.configs[order["task_id"], order["token"]]
            receive, wanted = bid.message.split(":")[2], self._addresses[order["user_id"]][config.to_vault]
            if not receive == order["receive"] == wanted:
                yield f"delivered_elsewhere: {bid.price} on {bid.slug} to {receive}, order {order['id']}, not {wanted}"

    def _not_noted(self, run: Joined) -> Iterator[str]:
        """Filled, and the wish of the task to have it listed, which it always or never had, is not noted with it."""
        for order in run.orders:
            if order["close_reason"] == "filled" and not order["dry_run"]:
                wishes = {config.on_fill is not None for config in run.configs(order["task_id"])}
                if wishes == {order["autolist_state"] is None}:
                    yield f"not_noted: order {order['id']} is {order['autolist_state']}"

    def _is_blind(self, run: Joined, bid: Bid) -> bool:
        """Tells whether it may hang on nothing but a fixed range, since the book could not be read."""
        order = run.order_of_mark.get(bid.mark)
        if order is None or self._house.manager.configs[order["task_id"], order["token"]].bid_mode != "fixed":
            return False
        return any(bid.accepted_ms - BOOK_AGE_MS < time_ms <= bid.accepted_ms for time_ms in self._house.blind_ms)

    def _rune_at_ask(self, run: Joined) -> Iterator[str]:
        """As `checker.at_ask`, by the price of a token."""
        moves = self._owners.told.rune_asks
        runes = {move.slug for move in moves}
        unit = [replace(bid, price=Decimal(bid.price) / bid.quantity) for bid in run.bids if bid.slug in runes]  # type: ignore[arg-type]
        for bid in unit:
            own = [move for move in moves if move.slug == bid.slug and move.time_ms <= bid.accepted_ms]
            recent = [move.lowest for move in own if move.time_ms > bid.accepted_ms - BOOK_AGE_MS]
            before = [move.lowest for move in own if move.time_ms <= bid.accepted_ms - BOOK_AGE_MS][-1:]
            if bid.price >= max([*before, *recent]):
                yield f"rune_at_ask: {bid.price} a token of {bid.slug}, lowest ask {max([*before, *recent])}"


def _over_installation(run: Joined) -> Iterator[str]:
    """Finds sums of all users above the installation's limit."""
    orders = [row | {"user_id": 0} for row in run.evidence.orders]
    everybody = Joined(replace(run.evidence, orders=orders, exposure={0: INSTALLATION}))
    for found in checker.over_user_exposure(everybody):
        yield f"over_installation: {found}"


def over_budget(run: Joined, limits: Mapping[int, Mapping[str, int]]) -> Iterator[str]:
    """Finds what tasks that share a budget hold above its limits: open orders, and those with what was bought."""
    shared = [row | {"user_id": row["budget_id"]} for row in run.evidence.orders if row["budget_id"] is not None]
    ever = {"state": "live", "closed_ms": None}
    kept = [row | ever if row["close_reason"] == "filled" else row for row in shared]
    single = [row | {"price_sats": 1} for row in kept]
    for name, orders in (("max_open_sats", shared), ("spend_cap_sats", kept), ("max_fills", single)):
        most = {budget: limit[name] for budget, limit in limits.items()}
        history = [] if name == "max_fills" else run.evidence.history
        evidence = replace(run.evidence, history=history, orders=orders, exposure=most)
        for found in checker.over_user_exposure(Joined(evidence)):
            yield f"over_budget: {name}: {found}"


def _found(checks: tuple[Check, ...], run: Joined) -> list[str]:
    return [f"{check.__name__}: {found}" for check in checks for found in check(run)]


def _rows(query: str, *values: Any) -> list[Row]:
    connection: sqlite3.Connection = database.connection()
    cursor = connection.execute(query, values)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]
