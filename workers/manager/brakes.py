"""The brakes: the manager itself cancels bids, so that a brake waits for no worker, process or timer.

The ledger names the bids to cancel: those of halted, stopped and deleted tasks (models/ledger/closing.py),
and those of tasks whose worker cannot be started because the database is damaged. The manager reads it every second, so
that a brake survives any crash; `heed` makes it read immediately. The order:

1. The gateway holds the tasks, so that no new bid is sent.
2. The cancels of one wallet are sent together, with a signature that needs no grant.
3. A bid is closed if a read that began after its cancel does not show it.
4. The workers are woken and do the rest.

If a full disk prevents a row, the cancel is sent anyway. A brake without a row is kept in a file with preallocated
space, or in memory if that file cannot be written either.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace
from peewee import PeeweeException

from core.errors import PeerRefused
from core.files import Brake, BrakeFile
from core.settings import Settings
from markets.base import AuthFailed, GatewayAway, NotSupported, OwnBids, Refused, SignInNeeded, Unknown, VenueError
from markets.client import MarketClient
from markets.venues import capabilities
from models.database import base
from models.leases.leases import Slot
from models.ledger.closing import Owed, adopt, begin_cancels, concerned, finish_cancels, owed
from models.ledger.states import IllegalMove
from models.outbox import DATABASE_DAMAGED
from models.users import HALT, RUN, Control
from strategy.config.bid import is_ticker
from wallet.signer_client import SignerClient, SignerError
from workers.context import WRITE_MS
from workers.manager.loop import Background, in_thread

log = logging.getLogger(__name__)

_SIGNER_S, _GATEWAY_S = 5.0, 30.0
# A cancel of bids by their ids needs no fence, because no later bid has one of these ids.
_NEVER_STALE = 2**62


class Wallet(NamedTuple):
    """The bids of one address at one venue, which one signature cancels."""

    venue: str
    address: str


class Known(Struct, frozen=True):
    """Orders (ids) whose cancel was sent: the venue has `confirmed` it, or it was `tried` with another result."""

    confirmed: frozenset[int] = frozenset()
    tried: frozenset[int] = frozenset()

    def of(self, orders: Collection[int]) -> Known:
        """Returns the entries of these orders only."""
        return Known(self.confirmed.intersection(orders), self.tried.intersection(orders))

    def after(self, orders: frozenset[int], now: Known) -> Known:
        """Returns this with the entries of these orders replaced by those in `now`."""
        now = now.of(orders)
        return Known(self.confirmed - orders | now.confirmed, self.tried - orders | now.tried)


class Cancelled(NamedTuple):
    """The result of one wallet's cancels.

    - `closed`: orders (ids) whose cancel the venue has confirmed and that a later read does not show.
    - `known`: all orders whose cancel was sent.
    - `named`: the venue's ids, by order, of bids whose id was not known.
    """

    closed: frozenset[int]
    known: Known
    named: Mapping[int, str]


def take_off(
    settings: Settings, wallet: Wallet, bids: Sequence[Owed], known: Known, clock_ms: Callable[[], int]
) -> Cancelled:
    """Cancels bids of one wallet.

    A bid whose cancel was tried before is cancelled again only if a read shows it, because a venue reports a failure
    for every bid that it does not have; without a read it is cancelled again. Some bids are left to their worker, which
    reads sales: those that disappear without a confirmed cancel, those on runes that may be sold in part, and those
    that may be in an unreadable row. Raises VenueError and SignerError if nothing could be done.
    """
    can = capabilities(wallet.venue)
    with MarketClient(settings.gateway_socket, _GATEWAY_S, wallet.venue) as market:
        market.user, market.purpose = int(bids[0].order.user_id), "brake"
        calls = _Calls(market, settings, wallet, bids, known, clock_ms)
        named = calls.look_first()
        fresh = [bid for bid in bids if bid.order.id in calls.ids and bid.order.id not in known.confirmed | known.tried]
        stopped = calls.cancel(_calls(fresh, can.cancels_at_once, clock_ms() + WRITE_MS), splits=False)
        if stopped is not None and not calls.confirmed:
            raise stopped
        read = calls.read()
        there = set() if read is None else _marks(read)
        shown = [bid for bid in bids if {calls.ids.get(bid.order.id), bid.order.expires_ms} & there]
        hidden = (
            []
            if read is None
            else [bid for bid in bids if bid not in shown and read.may_hold(calls.ids.get(bid.order.id))]
        )
        # If a bid is still shown after a previous round confirmed its cancel, it was not cancelled.
        calls.confirmed -= {bid.order.id for bid in shown if bid.order.id in known.confirmed}
        unseen = hidden if read is not None else bids
        again = [*shown, *(bid for bid in unseen if bid.order.id in known.tried)]
        left = [bid for bid in again if bid.order.id in calls.ids and bid.order.id not in calls.confirmed]
        if stopped is None:
            calls.cancel(_calls(left, can.cancels_at_once, clock_ms() + WRITE_MS), splits=True)
    gone = calls.confirmed - {bid.order.id for bid in (*shown, *hidden)} - calls.partly
    closed = (
        order.id
        for order, *_ in bids
        if read is not None and order.id in gone and order.updated_ms < read.taken_ms < order.expires_ms
    )
    known = Known(frozenset(calls.confirmed), frozenset(calls.tried - calls.confirmed))
    return Cancelled(frozenset(closed), known, named)


def _marks(read: OwnBids) -> set[str | int | None]:
    """Returns the ids and expiries of the bids that a read shows, and the ids of its unreadable rows."""
    ids = {bid.venue_id for bid in read.bids} | {key for key in read.unread if key}
    return ids | {bid.expires_ms for bid in read.bids if bid.expires_ms}


def _calls(bids: Sequence[Owed], most: int, soon_ms: int) -> Iterator[Sequence[Owed]]:
    """Returns the bids of each call. Bids that may expire meanwhile are in the last calls, without others, because they
    can make a venue report a failure of the whole call.
    """
    lasting = [bid for bid in bids if bid.order.expires_ms > soon_ms]
    ending = [bid for bid in bids if bid.order.expires_ms <= soon_ms]
    for some in (lasting, ending):
        for start in range(0, len(some), most):
            yield some[start : start + most]


class _Calls:
    """The calls about one wallet's bids. The cancels share a signature, which is made when needed.

    `ids` are the venue's ids of the bids, by order, if known. `partly` are the orders that may have been sold in part.
    `confirmed` and `tried` are as in `Known`.
    """

    def __init__(
        self,
        market: MarketClient,
        settings: Settings,
        wallet: Wallet,
        bids: Sequence[Owed],
        known: Known,
        clock_ms: Callable[[], int],
    ) -> None:
        self._market = market
        self._settings = settings
        self._wallet = wallet
        self._bids = bids
        self._clock_ms = clock_ms
        self._can = capabilities(wallet.venue)
        self._signature = None if self._can.cancel_needs_signature else ""
        self.confirmed, self.tried = set(known.confirmed), set(known.tried)
        self.partly = frozenset(order.id for order, *_ in bids if is_ticker(order.slug))
        self.ids = {bid.order.id: str(bid.order.venue_id) for bid in bids if bid.order.venue_id}

    def look_first(self) -> dict[int, str]:
        """Reads the wallet's bids before the cancels, if a bid has no known id yet or is on runes.

        Returns the ids, by order, of bids without one. A read identifies them by their expiry, which is unique if the
        venue keeps it to the millisecond.
        """
        nameless = [bid.order for bid in self._bids if not bid.order.venue_id and self._can.expiry == "ms"]
        if not nameless and not self.partly:
            return {}
        read = self.read()
        if read is None:
            return {}
        by_expiry = {bid.expires_ms: bid.venue_id for bid in read.bids}
        named = {order.id: by_expiry[order.expires_ms] for order in nameless if order.expires_ms in by_expiry}
        self.ids |= named
        left = {bid.venue_id: bid.quantity for bid in read.bids if bid.quantity is not None}
        whole = (
            order.id for order, *_ in self._bids if left.get(self.ids.get(order.id, ""), 0) >= Decimal(order.quantity)
        )
        self.partly -= frozenset(whole)
        return named

    def read(self) -> OwnBids | None:
        """Reads the wallet's bids; None, with a log line, if the read failed."""
        slugs = sorted({bid.order.slug for bid in self._bids}) if self._can.own_bids_by_collection else ()
        try:
            return self._market.own_bids(self._wallet.address, 0, slugs)
        except VenueError as error:
            log.warning("%s: failed to read the bids of %s: %s", self._wallet.venue, self._wallet.address, error)
            return None

    def cancel(self, calls: Iterable[Sequence[Owed]], *, splits: bool) -> VenueError | None:
        """Makes these calls until one cannot be made; returns its error, which the remaining calls would meet, too.

        With `splits` a failed call is repeated in halves. Raises SignerError.
        """
        try:
            for together in calls:
                self._cancel(together, splits=splits)
        except VenueError as error:
            log.warning("%s: stopped sending cancels of %s: %s", self._wallet.venue, self._wallet.address, error)
            return error
        return None

    def _cancel(self, bids: Sequence[Owed], *, splits: bool) -> None:
        first, signature = bids[0], self._signed()
        of = {bid.order.id for bid in bids}
        self.tried |= of
        is_done = False
        try:
            is_done = self._market.cancel(
                self._wallet.address,
                [self.ids[bid.order.id] for bid in bids],
                signature,
                task=int(first.order.task_id),
                token=_NEVER_STALE,
                deadline_ms=self._clock_ms() + WRITE_MS,
            )
        except Unknown as error:
            log.warning("the answer to a cancel of %d bids was lost: %s", len(bids), error)
            return
        except (AuthFailed, NotSupported, SignInNeeded):
            self.tried -= of  # the venue did not process these bids
            raise
        except Refused as error:  # including NotFound
            log.info("a cancel of %d bids was refused: %s", len(bids), error)
        except VenueError:
            self.tried -= of  # nothing was sent
            raise
        if is_done:
            self.confirmed |= of
        elif splits and len(bids) > 1:
            half = len(bids) // 2
            self._cancel(bids[:half], splits=True)
            self._cancel(bids[half:], splits=True)

    def _signed(self) -> str:
        if self._signature is None:
            challenge = self._market.challenge(self._wallet.address)
            signer = SignerClient(self._settings.signer_socket, _SIGNER_S)
            self._signature = signer.sign_brake(self._bids[0].address, self._wallet.venue, challenge)
        return self._signature


HOLD_S = 15  # longer than an already signed bid may still take to be sent
_HELD_S = 1.0  # the maximum wait for bids on the wire before the cancels are sent
_FIRST_REST_S, _LONGEST_REST_S = 0.5, 10.0
_LONGEST_LOOK_S = 3.0
_OWING_S = 0.5  # between two reads while bids must be cancelled
_HEARD_MS = 60_000
# the number of wallets of a venue whose bids are cancelled at the same time; the maximum including hung ones
_SEATS, _MOST_SEATS = 4, 12
_HANGS_S = 10.0  # calls are hung if they take longer than a write may wait for its turn
_WORKER_S = 2.0  # the time for a working worker to act on a lower limit
_REPEAT_S = 1.0  # between two reactions to the same state


class _InProgress(NamedTuple):
    """Cancels in progress: the wallet, the start (monotonic), and the tasks and orders (ids)."""

    wallet: Wallet
    since: float
    tasks: frozenset[int]
    orders: frozenset[int]


class Brakes:
    """Cancels the bids of the slot's users that must be cancelled; `wake` wakes the workers of these tasks.

    `unwatched` returns the tasks (ids) whose bids are cancelled because no worker can be started. `sign_in` signs in at
    these tasks' venue if no drain can do it, and returns whether it did.

    Everything runs in the manager's loop, except the calls to signer and gateway.
    """

    def __init__(
        self,
        settings: Settings,
        slot: Slot,
        background: Background,
        clock_ms: Callable[[], int],
        wake: Callable[[Collection[int]], None],
        unwatched: Callable[[], Collection[int]] = tuple,
        sign_in: Callable[[Collection[int]], Awaitable[bool]] | None = None,
        *,
        look_s: float = 1.0,
    ) -> None:
        self._settings = settings
        self._slot = slot
        self._background = background
        self._clock_ms = clock_ms
        self._wake = wake
        self._unwatched = unwatched
        self._sign_in = sign_in
        self._logged_unwatched: frozenset[int] = frozenset()
        self._look_s = look_s
        self._file = BrakeFile(settings.data_dir / (f"brakes-{slot.number}" if slot.of > 1 else "brakes"))
        self._unsaved: dict[tuple[str, str], Brake] = {}  # brakes that the file lacks, or has not removed
        self._due = asyncio.Event()
        # Tasks whose limits may have been lowered, and the time from which the manager cancels their bids.
        self._lowered: dict[int, float] = {}
        self._in_progress: list[_InProgress] = []
        self._applied: dict[tuple[str, int, str], int] = {}  # the control states applied, with their times
        self._known = Known()
        self._busy: frozenset[int] = frozenset()  # tasks whose bids had to be cancelled at the last read
        # By scope and subject: the state applied last, those applied within a second, and those to repeat after it.
        self._followed: dict[tuple[str, int], str | None] = {}
        self._recently: set[tuple[str, int]] = set()
        self._again: set[tuple[str, int]] = set()
        self._rests: dict[Wallet, tuple[float, float]] = {}  # the last back-off, and its end on the monotonic clock

    async def run(self) -> None:
        """Cancels the bids that must be cancelled, while the manager runs."""
        while True:
            began = time.monotonic()
            try:
                is_owing = bool(self._look())
            except PeeweeException as error:
                log.error("failed to look for bids that must go: %s", error)
                is_owing = False
            except Exception:
                log.exception("failed to look for bids that must go")
                is_owing = False
            rest_s = _OWING_S if is_owing else self._look_s
            # Reading thousands of bids takes part of a second, so the wait grows with it: the loop has other work, too.
            rest_s = max(rest_s, min(9 * (time.monotonic() - began), _LONGEST_LOOK_S))
            with suppress(TimeoutError):
                async with asyncio.timeout(rest_s):  # wait_for may swallow a cancel (Python 3.11)
                    await self._due.wait()
            self._due.clear()

    def soon(self, task_ids: Collection[int] = ()) -> None:
        """Triggers an immediate read of the ledger, which also finds these tasks' bids above their limits."""
        self._lower(task_ids)
        self._due.set()

    def heed(self, scope: str, subject: int, state: str | None, at_ms: int) -> None:
        """Applies a control state that was set for `subject`; `state` None: another limit became stricter."""
        if state is not None:
            self._applied[scope, subject, state] = at_ms
            self._remember(scope, subject, state, at_ms)
        self._follow(scope, subject, state)

    def _follow(self, scope: str, subject: int, state: str | None) -> None:
        """Applies a state now, or after a second if it repeats the last one, so that repeated requests are cheap."""
        former = self._followed.get((scope, subject))
        self._followed[scope, subject] = state
        if former == state and (scope, subject) in self._recently:
            if (scope, subject) not in self._again:
                self._again.add((scope, subject))
                self._background.run(self._heeded(scope, subject, state, is_new=False))
            return
        self._background.run(self._heeded(scope, subject, state, is_new=True))

    def drain_rest_s(self, task_id: int) -> float:
        """Returns the seconds until a drain of the task may be needed, while its cancels are under way from here."""
        now = time.monotonic()
        working = [going for going in self._in_progress if now - going.since < _HANGS_S]
        is_going = any(task_id in going.tasks for going in working)
        # While its wallet waits for a seat, a drain for each task would only take calls from wallets with a seat.
        waits = task_id in self._busy and len(working) >= _SEATS
        return _OWING_S if is_going or waits else 0.0

    def close(self) -> None:
        self._file.close()

    def _remember(self, scope: str, subject: int, state: str, at_ms: int) -> None:
        """Keeps a brake that has no row, until it has one or is released."""
        brake = Brake(scope, str(subject), state, at_ms)
        try:
            if state == RUN or _row(scope, subject) == state:
                self._let_go(brake)
                return
        except PeeweeException as error:
            log.warning("failed to look for the row of a brake: %s", error)
        try:
            self._file.put(scope, str(subject), state, at_ms)
            self._unsaved.pop((scope, str(subject)), None)
        except OSError as error:
            log.error("a brake is kept in memory only, since its file cannot be written: %s", error)
            self._unsaved[scope, str(subject)] = brake
        log.warning("%s on %s %d has no row yet: it is in force anyway", state, scope, subject)

    def _let_go(self, brake: Brake) -> None:
        """Removes a brake that has a row, or was released. While its file cannot be written, the copy in memory
        overrides the file.
        """
        try:
            self._file.remove(brake.scope, brake.subject)
            self._unsaved.pop((brake.scope, brake.subject), None)
        except OSError as error:
            log.error("failed to remove a brake from its file: %s", error)
            self._unsaved[brake.scope, brake.subject] = replace(brake, state=RUN)

    def _halted(self) -> list[tuple[str, int]]:
        """Returns the halts without a row; removes halts that now have a newer row."""
        found = []
        kept = {(brake.scope, brake.subject): brake for brake in self._file.all()} | self._unsaved
        for brake in kept.values():
            row = Control.get_or_none(Control.scope == brake.scope, Control.subject_id == int(brake.subject))
            if row is not None and row.set_ms >= brake.since_ms:
                self._let_go(brake)
            elif brake.state == HALT:
                found.append((brake.scope, int(brake.subject)))
        return found

    def _apply_recent(self) -> None:
        """Applies states of the last minute that came without a request, because the request to this process may have
        failed, or another program may have written the row.
        """
        minute_ago_ms = self._clock_ms() - _HEARD_MS
        for row in Control.select().where(Control.set_ms > minute_ago_ms):
            if self._applied.get((row.scope, row.subject_id, row.state), 0) < row.set_ms:
                self._applied[row.scope, row.subject_id, row.state] = row.set_ms
                self._follow(row.scope, row.subject_id, row.state)
        self._applied = {key: at_ms for key, at_ms in self._applied.items() if at_ms > minute_ago_ms}

    async def _heeded(self, scope: str, subject: int, state: str | None, *, is_new: bool) -> None:
        of = scope, subject
        if not is_new:
            await asyncio.sleep(_REPEAT_S)
            self._again.discard(of)
        self._recently.add(of)
        asyncio.get_running_loop().call_later(_REPEAT_S, self._recently.discard, of)
        tasks = concerned(scope, subject, self._slot, is_free=state == RUN)
        if state is not None:
            await self._hold(tasks, 0 if state == RUN else HOLD_S)
        # A new brake does not wait for the back-off of an earlier one.
        busy = self._look(tasks if state is None else (), tasks if is_new else ())
        # Workers whose bids are being cancelled are woken afterwards; otherwise they would cancel the same bids.
        self._wake([task_id for task_id in tasks if task_id not in busy])

    async def _hold(self, tasks: Collection[int], hold_s: int) -> None:
        """Makes the gateway hold the bids of these tasks; waits at most a second for bids on the wire."""

        def ask() -> None:
            with MarketClient(self._settings.gateway_socket, _GATEWAY_S) as market:
                market.hold(tasks, hold_s)

        if not tasks:
            return
        try:
            async with asyncio.timeout(_HELD_S):
                await in_thread(ask)
        except TimeoutError:
            log.warning("bids of %d tasks are still on the wire: the cancels do not wait for them", len(tasks))
        except VenueError as error:
            log.warning("failed to have the gateway hold %d tasks: %s", len(tasks), error)

    def _look(self, lowered: Collection[int] = (), hurried: Collection[int] = ()) -> frozenset[int]:
        """Starts the cancels that are due; returns the tasks whose bids must be cancelled.

        `lowered` are tasks whose limits may have been lowered; the tasks in `hurried` wait for no back-off.
        """
        self._apply_recent()
        self._lower(lowered)
        found: dict[Wallet, list[Owed]] = {}
        now = time.monotonic()
        above = [task_id for task_id, due in self._lowered.items() if now >= due]
        for bid in owed(self._slot, self._clock_ms(), self._halted(), above, self._without_worker()):
            found.setdefault(Wallet(bid.order.venue, bid.order.wallet), []).append(bid)
        every = [bid.order for bids in found.values() for bid in bids]
        busy = frozenset(order.task_id for order in every)
        self._lowered = {task: due for task, due in self._lowered.items() if now < due or task in busy}
        self._known = self._known.of({order.id for order in every})
        self._rests = {wallet: rest for wallet, rest in self._rests.items() if wallet in found}
        under_way = {order_id for going in self._in_progress for order_id in going.orders}
        for wallet, owing in found.items():
            # Cancels in progress may hang, so the bids of a later brake do not wait for them.
            bids = [bid for bid in owing if bid.order.id not in under_way]
            is_due = now >= self._rests.get(wallet, (0.0, 0.0))[1] or any(bid.order.task_id in hurried for bid in bids)
            if bids and is_due and self._has_seat(wallet.venue, now):
                of_tasks = frozenset(bid.order.task_id for bid in bids)
                going = _InProgress(wallet, now, of_tasks, frozenset(bid.order.id for bid in bids))
                self._in_progress.append(going)
                self._background.run(self._take_off(wallet, bids, going))
        self._busy = busy
        return busy

    def _without_worker(self) -> frozenset[int]:
        """Returns the tasks that have no worker because of a damaged database; logs each of them once."""
        found = frozenset(self._unwatched())
        for task_id in sorted(found - self._logged_unwatched):
            log.critical("task %d: no worker can be started (%s): its bids are cancelled", task_id, DATABASE_DAMAGED[0])
        self._logged_unwatched |= found
        return found

    def _lower(self, task_ids: Collection[int]) -> None:
        """Records lowered limits. The worker first has two seconds to cancel, because its cycle records the reason."""
        for task_id in task_ids:
            self._lowered.setdefault(task_id, time.monotonic() + _WORKER_S)

    def _has_seat(self, venue: str, now: float) -> bool:
        """Tells whether the cancels of one more wallet may begin at a venue.

        With many wallets at the same time, calls would wait at the gateway until they time out. A wallet whose calls
        hang gives its seat to another.
        """
        since = [going.since for going in self._in_progress if going.wallet.venue == venue]
        working = sum(now - each < _HANGS_S for each in since)
        return working < _SEATS and len(since) < _MOST_SEATS

    async def _take_off(self, wallet: Wallet, bids: Sequence[Owed], going: _InProgress) -> None:
        """Cancels the bids of one wallet, and closes those whose cancel is proved."""
        found = Cancelled(frozenset(), self._known, {})
        rest_s, is_done = self._next_rest_s(wallet), False
        try:
            _written(
                "note cancels",
                partial(begin_cancels, [bid.order for bid in bids if bid.order.venue_id], self._clock_ms()),
            )
            known = self._known
            found = await in_thread(lambda: take_off(self._settings, wallet, bids, known, self._clock_ms))
            named = [bid.order for bid in bids if bid.order.id in found.named]
            for order in named:
                _written("note a bid's id", partial(adopt, order, found.named[order.id], self._clock_ms()))
            _written("note cancels", partial(begin_cancels, named, self._clock_ms()))
            closed = [bid.order for bid in bids if bid.order.id in found.closed]
            is_done = _written("close cancelled bids", partial(finish_cancels, closed, self._clock_ms()))
            is_done = is_done and len(closed) == len(bids)
            log.info("%s: cancelled %d of %d bids of %s", wallet.venue, len(closed), len(bids), wallet.address)
        except SignInNeeded:
            if await self._has_signed_in(wallet, going):
                rest_s = _FIRST_REST_S
        except GatewayAway as error:
            rest_s = _FIRST_REST_S  # our own gateway, which supervisord restarts
            log.warning("%s: failed to cancel %d bids of %s: %s", wallet.venue, len(bids), wallet.address, error)
        except (VenueError, SignerError) as error:
            log.warning("%s: failed to cancel %d bids of %s: %s", wallet.venue, len(bids), wallet.address, error)
        finally:
            self._in_progress.remove(going)
            self._known = self._known.after(going.orders, found.known)
            is_first = wallet not in self._rests
            if not is_done:
                self._rests[wallet] = rest_s, time.monotonic() + rest_s
            if is_first or is_done:
                self._wake(going.tasks)
            self.soon()  # another wallet may take the seat

    async def _has_signed_in(self, wallet: Wallet, going: _InProgress) -> bool:
        try:
            if self._sign_in is not None and await self._sign_in(going.tasks):
                return True
            log.info("%s: cancels need a sign-in, which workers and drains make", wallet.venue)
        except (VenueError, SignerError, PeerRefused, PeeweeException) as error:
            log.warning("%s: failed to sign in for %s: %s", wallet.venue, wallet.address, error)
        return False

    def _next_rest_s(self, wallet: Wallet) -> float:
        return min(2 * self._rests.get(wallet, (_FIRST_REST_S / 2, 0.0))[0], _LONGEST_REST_S)


def _row(scope: str, subject: int) -> str | None:
    row = Control.get_or_none(Control.scope == scope, Control.subject_id == subject)
    return None if row is None else str(row.state)


def _written(to_do: str, write: Callable[[], None]) -> bool:
    """Writes rows within a fifth of a second at most; returns whether that succeeded. No cancel depends on it."""
    database = base.database
    try:
        database.execute_sql(database.obj.hurry)
        try:
            write()
        finally:
            database.execute_sql(database.obj.calm)
    except (PeeweeException, IllegalMove) as error:
        log.warning("failed to %s in the ledger: %s", to_do, error)
        return False
    return True
