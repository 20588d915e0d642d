"""The lister of fills: it makes the auto-list task that a bidding task wants for each thing that it buys.

A fill waits in the ledger (models/ledger/to_list.py) until its inscription is seen in the vault, confirmed, by two
reads; then its task is created and the wish is over, in one commit. Nothing else is remembered: a manager that dies
anywhere leaves a fill that waits, and the next one reads twice again. Fills wait for a week.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from core.settings import Settings
from markets.items import whereabouts
from markets.items.whereabouts import LocatedInscription
from markets.market_client import MarketClient
from models.entitlements import Entitlements
from models.leases.slot import Slot
from models.ledger import to_list
from models.ledger.order_table import Order
from models.tasks import tasks
from models.tasks.table import Task
from models.tasks.tasks import TaskExists, TaskLimitReached
from strategy.bid_config import load_bid_config
from strategy.bid_parts import OnFill
from strategy.listing.listing_config import dump_listing_config, load_listing_config, problems
from wallet.signer_client import SignerClient, SignerError
from workers.crashpoints import crashpoint
from workers.faults import Faults
from workers.manager.background import in_thread

log = logging.getLogger(__name__)

WEEK_MS = 7 * 86_400_000
NOTED_MS = 120_000  # the fee of a fill is noted at the end of the cycle that learns of it, or never
PATIENCE_S = 10.0  # for an answer of signer or gateway
LONGEST_REST_S = 300.0  # between two looks at a fill that cannot be listed yet


@dataclass(frozen=True, slots=True)
class Found:
    """A bought inscription's place, its owner's vault, and the fault that kept them from being found."""

    located: LocatedInscription
    vault: str | None
    fault: str | None = None


Find = Callable[[Order, str], Found]


@dataclass(slots=True)
class _Look:
    """The last look at a fill: the output where it was seen confirmed in the vault, and the time of the next."""

    rest_s: float
    due: float
    outpoint: str | None = None


class _NotYet(Exception):
    """The reason why a fill has to wait, in words for its owner."""


class _Never(Exception):
    """The reason why a fill will not be listed, in words for its owner."""


class FillLister:
    """Looks after the slot's fills that wait. `look_s` lies between two reads of one; `find` finds an order's item, the
    sign-in address of its owner being known.

    All but the reads runs in the manager's loop.
    """

    def __init__(
        self,
        settings: Settings,
        look_s: float,
        clock_ms: Callable[[], int],
        slot: Slot,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        find: Find | None = None,
        crash: Callable[[str], None] = crashpoint,
    ) -> None:
        self._entitlements = Entitlements(settings)
        self._look_s = look_s
        self._clock_ms = clock_ms
        self._slot = slot
        self._monotonic = monotonic
        self._find = find or _Finder(settings)
        self._crash = crash
        self._looks: dict[int, _Look] = {}

    async def look(self) -> None:
        """Looks at every fill that is due, and takes it as far as it goes."""
        waiting = to_list.waiting(self._slot)
        self._looks = {order.id: self._looks[order.id] for order in waiting if order.id in self._looks}
        for order in waiting:
            look = self._looks.setdefault(order.id, _Look(self._look_s, 0.0))
            if self._monotonic() < look.due:
                continue
            look.due = self._monotonic() + look.rest_s
            try:
                await self._take_on(order, look)
            except _NotYet as reason:
                look.rest_s = min(2 * look.rest_s, max(LONGEST_REST_S, self._look_s))
                self._wait(order, str(reason))
            except _Never as reason:
                log.info("order %d: what it bought is not listed: %s", order.id, reason)
                to_list.drop(order, str(reason))
            except Exception:
                # One that cannot be worked on keeps no other waiting.
                log.exception("order %d: failed to have what it bought listed", order.id)
                look.rest_s = min(2 * look.rest_s, LONGEST_REST_S)

    def _wait(self, order: Order, reason: str) -> None:
        if self._clock_ms() - int(order.closed_ms or 0) > WEEK_MS:
            log.warning("order %d: what it bought could not be listed for a week: %s", order.id, reason)
            to_list.drop(order, f"not possible for a week: {reason}")
        else:
            to_list.wait_on(order, reason)

    async def _take_on(self, order: Order, look: _Look) -> None:
        row, rule = _rule(order)
        if order.inscription_id is None:
            raise _NotYet("the marketplace has not told which inscription was bought")
        self._refuse_too_many(row, rule)
        if order.network_fee_sats is None and self._may_be_noted(order, row):
            raise _NotYet("the cycle that learnt of the fill is not over, so what it cost in fees may come yet")
        address = str(row.user.address)
        found = await in_thread(lambda: self._find(order, address))
        located = found.located
        if found.vault is not None and found.vault != order.receive:
            raise _Never(f"it was delivered to {order.receive}, not to the vault")
        if located.inscription_state != "held" or located.is_in_escrow:
            look.outpoint = None
            raise _NotYet(found.fault or f"it is not confirmed in the vault {found.vault} yet")
        if look.outpoint != located.outpoint:
            look.outpoint, look.rest_s = located.outpoint, self._look_s
            look.due = self._monotonic() + self._look_s
            to_list.wait_on(order, "it is seen in the vault, and looked at once more")
            return
        self._crash("fill-seen")
        self._list(order)

    def _may_be_noted(self, order: Order, row: Task) -> bool:
        closed_ms = int(order.closed_ms or 0)
        return (row.last_cycle_ms or 0) < closed_ms and self._clock_ms() - closed_ms < NOTED_MS

    def _refuse_too_many(self, row: Task, rule: OnFill) -> None:
        if (refusal := self._entitlements.refusal(row.user, self._clock_ms())) is not None:
            raise _NotYet(refusal)
        if (count := to_list.count_open(row.id)) >= rule.max_open:
            raise _NotYet(f"{count} auto-list tasks of this task's fills are open, as many as maxOpen allows")

    def _list(self, seen: Order) -> None:
        """Creates the auto-list task by what is in the database now: the reads took their time."""
        order = Order.get_by_id(seen.id)
        row, rule = _rule(order)
        self._refuse_too_many(row, rule)
        try:
            config = replace(load_listing_config(rule.autolist), cost_sats=to_list.cost(order).sats)
        except ValueError as error:
            raise _NotYet(f"onFill.autolist cannot be read: {error}") from None
        if wrong := problems(config):
            raise _NotYet(f"onFill.autolist: {wrong[0].field}: {wrong[0].text}")
        try:
            made = to_list.make_task(order, dump_listing_config(config), is_wanted=rule.start, now_ms=self._clock_ms())
        except TaskLimitReached as limit:
            raise _NotYet(f"there are {limit.max_tasks} auto-list tasks, and no more are allowed") from None
        except TaskExists:
            raise _NotYet("an auto-list task for it is being deleted") from None
        self._crash("fill-listed")
        if made is not None:
            log.info("order %d: auto-list task %d for %s", order.id, made, order.inscription_id)


def _rule(order: Order) -> tuple[Task, OnFill]:
    """Returns the task of the fill, with its owner, and its wish of now. Raises _Never without one, or _NotYet."""
    row = tasks.with_owner(order.task_id)
    if row is None or row.deleted_ms is not None:
        raise _Never("its task was deleted")
    try:
        rule = load_bid_config(row.config).on_fill
    except ValueError as error:
        raise _NotYet(f"the task's config cannot be read: {error}") from None
    if rule is None:
        raise _Never("its task no longer wants it: onFill is null")
    return row, rule


class _Finder:
    """Finds a bought inscription, by index and chain. Called in threads, one call at a time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._signer = SignerClient(settings.signer_socket, PATIENCE_S)

    def __call__(self, order: Order, address: str) -> Found:
        """Looks for the order's inscription in the vault of the user who signs in with `address`."""
        notes = Faults()
        try:
            vault = self._signer.addresses(address).vault
        except SignerError as error:
            return Found(LocatedInscription("unknown"), None, f"failed to get the vault's address: {error}")
        with MarketClient(self._settings.gateway_socket, PATIENCE_S, order.venue) as market:
            found = whereabouts.locate(market, str(order.inscription_id), vault, None, 0.0, notes)
        return Found(found, vault, notes.text)
