"""A bidding task at one moment of its past: the bids that stood by the ledger, the cycle before it by the journal."""

from __future__ import annotations

from typing import Any

from markets.base import AskBook, BidBook
from markets.look import BidderWallet
from models.leases.manager_places import machine_elsewhere
from models.ledger import order_history
from models.ledger.order_table import Order
from models.tasks.samples import HOUR, MINUTE, Sample, samples_between
from models.tasks.table import Task
from server import task_config as bid_config
from server.bidding.book import PREVIEWED_LEVELS, book_as_json
from server.bidding.preview_answer import rungs_as_json
from server.bidding.tasks import BiddingTaskHandler
from server.history.journal import JournalMoment, moment_of
from server.history.orders import order_as_json
from server.history.series import BID_COLUMNS
from server.http import json_out
from server.http.api_errors import invalid
from server.http.json_out import Raw
from server.http.query import Query
from strategy.book import Snapshot
from strategy.entry import Entry
from strategy.plan import BidPlan

_MINUTE_MS = 60_000
_NOBODY = BidderWallet("", "", "", frozenset())  # the journal's books are without the user's own orders


class TaskMomentHandler(BiddingTaskHandler):
    """GET /api/tasks/:id/at"""

    takes_query = True

    async def get(self, task_id: str) -> None:
        task = self.task(task_id)
        query = Query(self, "time")
        time_ms = query.time_ms("time")
        query.refuse_faults()
        if time_ms is None:
            raise invalid(["time: is required"])
        if time_ms > self.now_ms:
            raise invalid(["time: must not be in the future"])
        async with self.long_answer(self.services.long_reads.answer(self.user.id)):
            self.answer(await self._moment(task, time_ms))

    async def _moment(self, task: Task, time_ms: int) -> dict[str, Any]:
        settings, long_reads = self.services.settings, self.services.long_reads
        if elsewhere := machine_elsewhere(settings, self.user.id):
            found = JournalMoment(None, None, f"the journal is on the machine that keeps the task, {elsewhere}")
        else:
            async with long_reads.turn(self.user.id):
                found = await long_reads(lambda: moment_of(settings.data_dir, task.id, time_ms))
        self.require_signed_in()
        reasons = {} if found.entry is None else _reasons(found.entry)
        own_id = self.task(str(task.id)).id
        standing = await self.in_turn(lambda: order_history.standing(self.user.id, own_id, time_ms))
        orders = await self.in_turns(standing, lambda order: _order(order, reasons))
        self.require_signed_in()
        return {
            "time": json_out.iso(time_ms),
            "orders": orders,
            "cycle": None if found.entry is None else _cycle(found.entry),
            "cycleUnknown": found.why or None,
            "journalFrom": None if found.from_ms is None else json_out.iso(found.from_ms),
            "sample": _sample(task.id, time_ms),
        }


def _order(order: Order, reasons: dict[int, str]) -> dict[str, Any]:
    """Returns the order with the reason that the cycle gave it; its `state` is today's."""
    return order_as_json(order) | {"reason": reasons.get(order.id)}


def _reasons(entry: Entry) -> dict[int, str]:
    plan = entry.plan
    return {} if plan is None else {note.order_id: str(note.reason) for note in plan.bids}


def _cycle(entry: Entry) -> dict[str, Any]:
    plan, limits, snapshot = entry.plan, entry.limits, entry.snapshot
    return {
        "time": json_out.iso(entry.now_ms),
        "config": bid_config.shown(entry.config),
        "restraint": None if entry.restraint is None else str(entry.restraint),
        "hold": None if limits.hold is None else str(limits.hold),
        "balance": limits.balance_sats,
        "feeReserve": limits.fee_reserve_sats,
        "median": None if snapshot is None else snapshot.history.median,
        "book": _book(snapshot),
    } | _plan(entry, plan)


def _plan(entry: Entry, plan: BidPlan | None) -> dict[str, Any]:
    if plan is None:
        return {"reference": None, "rawReference": None, "marks": [], "rungs": [], "cancels": []}
    return {
        "reference": plan.reference,
        "rawReference": plan.raw_reference,
        "marks": [str(mark) for mark in plan.marks],
        "rungs": rungs_as_json(entry, plan),
        "cancels": [
            {"order": cancel.order_id, "price": cancel.price_sats, "reason": str(cancel.reason), "hard": cancel.hard}
            for cancel in plan.to_cancel
        ],
    }


def _book(snapshot: Snapshot | None) -> dict[str, Any]:
    if snapshot is None:
        return book_as_json("it was not read", "it was not read", _NOBODY, PREVIEWED_LEVELS)
    bids = "they were not read" if snapshot.bids is None else BidBook(snapshot.bids, snapshot.taken_ms)
    return book_as_json(AskBook(snapshot.asks, snapshot.taken_ms), bids, _NOBODY, PREVIEWED_LEVELS)


def _sample(task_id: int, time_ms: int) -> dict[str, Any] | None:
    """Returns the sample of that minute, else of that hour."""
    for step, name in ((MINUTE, "minute"), (HOUR, "hour")):
        begin_ms = time_ms - time_ms % (step * _MINUTE_MS)
        for row in samples_between(task_id, step, begin_ms, begin_ms + _MINUTE_MS):
            values = dict(zip(Sample._fields, row[1:], strict=True))
            shown = {key: values[field] for key, field in BID_COLUMNS.items()}
            numbers = {key: Raw(value) if isinstance(value, str) else value for key, value in shown.items()}
            return {"step": name, "time": json_out.iso(begin_ms)} | numbers
    return None
