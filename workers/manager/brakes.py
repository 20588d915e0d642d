"""The brakes: the manager takes bids off the market itself, so that this waits for no worker, process or timer.

What must go is read from the ledger again and again (models/ledger/closing.py): bids of halted, stopped and deleted
tasks. So a brake cannot be forgotten, whoever dies in between. Who sets one tells the manager (`heed`), which then
looks at once. The order: the gateway holds the tasks, so that no bid follows; the cancels of one wallet go out
together, under a signature that needs no grant; a bid is closed by a read that began after its cancel; then the
workers are woken, which look after all the rest.

Rows are written where that is possible. Where it is not, on a full disk, the cancel is sent all the same, and a brake
that has no row is kept in memory and in a file whose room was taken before.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from peewee import PeeweeException

from core.errors import PeerRefused
from core.files import BrakeFile
from core.settings import Settings
from markets.base import NotFound, Refused, SignInNeeded, Unknown, VenueError
from markets.market_client import MarketClient
from markets.venues import capabilities
from models.controls import HALT, RUN, SCOPES, STATES, Control
from models.leases.slot import Slot
from models.ledger.closing import Owed, begin_cancels, concerned, finish_cancels, owed
from strategy.bid_config import is_ticker
from wallet.signer_client import SignerClient, SignerError
from workers.bidding.cancels import WRITE_MS
from workers.manager.background import Background, in_thread

log = logging.getLogger(__name__)

HOLD_S = 15  # longer than a bid that was signed before may still be sent
_HELD_S = 1.0  # the longest wait for bids on the wire before the cancels go out
_WAKE_S = 3.0  # the longest wait for the cancels before the workers are woken
_SIGNER_S, _GATEWAY_S = 5.0, 30.0
_FIRST_REST_S, _LONGEST_REST_S = 0.5, 10.0
_OWING_S = 0.5  # between two looks while bids must go
_HEARD_MS = 60_000
_TRUST_S = 5.0  # for how long cancels under way keep a drain from being started
_ME = "manager"


class Wallet(NamedTuple):
    """The bids of one address at one venue, which one signature cancels."""

    venue: str
    address: str


class _Going(NamedTuple):
    """Cancels under way: since when (monotonic) and for which tasks."""

    since: float
    tasks: frozenset[int]


class Brakes:
    """Takes the bids of the slot's users off the market that must go; `wake` wakes the workers of these tasks.

    All but the calls to signer and gateway runs in the manager's loop.
    """

    def __init__(
        self,
        settings: Settings,
        slot: Slot,
        background: Background,
        clock_ms: Callable[[], int],
        wake: Callable[[Collection[int]], None],
        *,
        look_s: float = 1.0,
    ) -> None:
        self._settings = settings
        self._slot = slot
        self._background = background
        self._clock_ms = clock_ms
        self._wake = wake
        self._look_s = look_s
        self._told = BrakeFile(settings.data_dir / (f"brakes-{slot.number}" if slot.of > 1 else "brakes"))
        self._due = asyncio.Event()
        self._lowered: set[int] = set()  # tasks one of whose limits may have become lower
        self._going: dict[Wallet, _Going] = {}
        self._heard: dict[tuple[str, int, str], int] = {}  # control states that were followed, with their times
        self._rests: dict[Wallet, tuple[float, float]] = {}  # the last rest, and its end on the monotonic clock

    async def run(self) -> None:
        """Looks for bids that must go, for as long as the manager runs."""
        while True:
            try:
                is_owing = self._look()
            except PeeweeException as error:
                log.error("failed to look for bids that must go: %s", error)
                is_owing = False
            except Exception:
                log.exception("failed to look for bids that must go")
                is_owing = False
            with suppress(TimeoutError):
                await asyncio.wait_for(self._due.wait(), _OWING_S if is_owing else self._look_s)
            self._due.clear()

    def soon(self, task_ids: Collection[int] = ()) -> None:
        """Has the next look begin at once, also for bids of these tasks that are above a limit of now."""
        self._lowered.update(task_ids)
        self._due.set()

    def heed(self, scope: object, subject: object, state: object, at_ms: object) -> None:
        """Follows a control state that was set for `subject`; None as `state`: another limit became stricter.

        Raises PeerRefused for what cannot be understood.
        """
        if scope not in SCOPES or type(subject) is not int or type(at_ms) is not int:
            raise PeerRefused(_ME, "unreadable", "heed takes a scope, a subject and a time")
        if state is not None and state not in STATES:
            raise PeerRefused(_ME, "unreadable", f"there is no state {state!r}")
        where, whose, said = str(scope), int(subject), None if state is None else str(state)
        if said is not None:
            self._heard[where, whose, said] = at_ms
            self._remember(where, whose, said, at_ms)
        self._background.run(self._heeded(where, whose, said))

    def drain_rest_s(self, task_id: int) -> float:
        """Returns the seconds until a drain of the task may be needed, while its cancels are under way from here."""
        now = time.monotonic()
        is_going = any(task_id in going.tasks and now - going.since < _TRUST_S for going in self._going.values())
        return _OWING_S if is_going else 0.0

    def close(self) -> None:
        self._told.close()

    def _remember(self, scope: str, subject: int, state: str, at_ms: int) -> None:
        """Keeps a brake that has no row, until it has one or is let go."""
        try:
            if state == RUN or _row(scope, subject) == state:
                self._told.remove(scope, str(subject))
                return
        except PeeweeException as error:
            log.warning("failed to look for the row of a brake: %s", error)
        self._told.put(scope, str(subject), state, at_ms)
        log.warning("%s on %s %d has no row yet: it is in force all the same", state, scope, subject)

    def _halted(self) -> list[tuple[str, int]]:
        """Returns what is halted without a row; forgets what has one by now, or was let go since."""
        found = []
        for brake in self._told.all():
            row = Control.get_or_none(Control.scope == brake.scope, Control.subject_id == int(brake.subject))
            if row is not None and row.set_ms >= brake.since_ms:
                self._told.remove(brake.scope, brake.subject)
            elif brake.state == HALT:
                found.append((brake.scope, int(brake.subject)))
        return found

    def _listen(self) -> None:
        """Follows the states of the last minute that nobody has told of: the way here may be cut, or another program
        has written the row.
        """
        minute_ago_ms = self._clock_ms() - _HEARD_MS
        for row in Control.select().where(Control.set_ms > minute_ago_ms):
            if self._heard.get((row.scope, row.subject_id, row.state), 0) < row.set_ms:
                self._heard[row.scope, row.subject_id, row.state] = row.set_ms
                self._background.run(self._heeded(row.scope, row.subject_id, row.state))
        self._heard = {heard: at_ms for heard, at_ms in self._heard.items() if at_ms > minute_ago_ms}

    async def _heeded(self, scope: str, subject: int, state: str | None) -> None:
        tasks = concerned(scope, subject, self._slot)
        if state is not None:
            await self._hold(tasks, 0 if state == RUN else HOLD_S)
        self._rests.clear()  # a brake does not wait for the back-off of another
        self.soon(tasks if state is None else ())
        if state == HALT:
            await self._taken_off()
        self._wake(tasks)

    async def _hold(self, tasks: Collection[int], hold_s: int) -> None:
        """Has the gateway let no bid of these tasks through. For bids on the wire the cancels do not wait for long."""

        def ask() -> None:
            with MarketClient(self._settings.gateway_socket, _GATEWAY_S) as market:
                market.hold(tasks, hold_s)

        if not tasks:
            return
        try:
            await asyncio.wait_for(in_thread(ask), _HELD_S)
        except TimeoutError:
            log.warning("bids of %d tasks are still on the wire: the cancels do not wait for them", len(tasks))
        except VenueError as error:
            log.warning("failed to have the gateway hold %d tasks: %s", len(tasks), error)

    async def _taken_off(self) -> None:
        """Waits until no cancels are under way, at most _WAKE_S."""
        deadline = time.monotonic() + _WAKE_S
        while time.monotonic() < deadline:
            await asyncio.sleep(0.02)
            if not self._going and not self._due.is_set():
                return

    def _look(self) -> bool:
        """Starts the cancels that are due; tells whether any bid must go."""
        self._listen()
        found: dict[Wallet, list[Owed]] = {}
        for bid in owed(self._slot, self._halted(), self._lowered):
            found.setdefault(Wallet(bid.order.venue, bid.order.wallet), []).append(bid)
        self._lowered &= {bid.order.task_id for bids in found.values() for bid in bids}
        self._rests = {wallet: rest for wallet, rest in self._rests.items() if wallet in found}
        now = time.monotonic()
        for wallet, bids in found.items():
            if wallet not in self._going and now >= self._rests.get(wallet, (0.0, 0.0))[1]:
                self._going[wallet] = _Going(now, frozenset(bid.order.task_id for bid in bids))
                self._background.run(self._take_off(wallet, bids))
        return bool(found)

    async def _take_off(self, wallet: Wallet, bids: Sequence[Owed]) -> None:
        """Cancels the bids of one wallet, and closes those that are surely gone."""
        gone: frozenset[int] = frozenset()
        try:
            _written("note cancels", partial(begin_cancels, [bid.order for bid in bids], self._clock_ms()))
            gone = await in_thread(lambda: take_off(self._settings, wallet, bids, self._clock_ms))
            closed = [bid.order for bid in bids if bid.order.id in gone]
            _written("note what is gone", partial(finish_cancels, closed, self._clock_ms()))
            log.info("%s: %d of %d bids of %s are off the market", wallet.venue, len(gone), len(bids), wallet.address)
        except SignInNeeded:
            log.info("%s: cancels need a sign-in, which workers and drains make", wallet.venue)
        except (VenueError, SignerError) as error:
            log.warning("%s: failed to take %d bids of %s off: %s", wallet.venue, len(bids), wallet.address, error)
        finally:
            self._going.pop(wallet, None)
            if len(gone) < len(bids):
                rest_s = min(2 * self._rests.get(wallet, (_FIRST_REST_S / 2, 0.0))[0], _LONGEST_REST_S)
                self._rests[wallet] = rest_s, time.monotonic() + rest_s


def take_off(settings: Settings, wallet: Wallet, bids: Sequence[Owed], clock_ms: Callable[[], int]) -> frozenset[int]:
    """Cancels bids of one wallet; returns the orders (ids) of those that are gone without having been sold.

    That is one which the venue reports as cancelled and a read that began afterwards does not show. Of runes a part may
    have been sold before: what became of them is the worker's to find out. Raises VenueError and SignerError.
    """
    can = capabilities(wallet.venue)
    with MarketClient(settings.gateway_socket, _GATEWAY_S, wallet.venue) as market:
        market.user, market.purpose = int(bids[0].order.user_id), "brake"
        signature = ""
        if can.cancel_needs_signature:
            signer = SignerClient(settings.signer_socket, _SIGNER_S)
            signature = signer.sign_brake(bids[0].address, wallet.venue, market.challenge(wallet.address))
        done: set[int] = set()
        for together in _calls(bids, can.cancels_at_once, clock_ms() + WRITE_MS):
            done |= _cancelled(market, wallet.address, together, signature, clock_ms)
        if not done:
            return frozenset()
        slugs = sorted({bid.order.slug for bid in bids}) if can.own_bids_by_collection else ()
        read = market.own_bids(wallet.address, 0, slugs)
    shown = {bid.venue_id for bid in read.bids} | {bid.expires_ms for bid in read.bids if bid.expires_ms is not None}
    return frozenset(
        order.id
        for order, *_ in bids
        if order.id in done
        and not {order.venue_id, order.expires_ms} & shown
        and order.updated_ms < read.taken_ms < order.expires_ms
        and not is_ticker(order.slug)
    )


def _calls(bids: Sequence[Owed], most: int, soon_ms: int) -> Iterator[Sequence[Owed]]:
    """Returns the bids of each call; one that may expire meanwhile makes a venue report a failure of all, so it is last
    and with its like.
    """
    lasting = [bid for bid in bids if bid.order.expires_ms > soon_ms]
    ending = [bid for bid in bids if bid.order.expires_ms <= soon_ms]
    for some in (lasting, ending):
        for start in range(0, len(some), most):
            yield some[start : start + most]


def _cancelled(
    market: MarketClient, wallet: str, bids: Sequence[Owed], signature: str, clock_ms: Callable[[], int]
) -> set[int]:
    """Cancels the bids in one call, or in ever smaller ones where that fails; returns the orders that are cancelled."""
    first = bids[0]
    try:
        is_done = market.cancel(
            wallet,
            [str(bid.order.venue_id) for bid in bids],
            signature,
            task=int(first.order.task_id),
            token=first.token,
            deadline_ms=clock_ms() + WRITE_MS,
        )
    except Unknown as error:
        log.warning("the answer to a cancel of %d bids was lost: %s", len(bids), error)
        return set()
    except NotFound:
        is_done = False
    except Refused as error:
        if len(bids) == 1:
            log.warning("the cancel of order %d was refused: %s", first.order.id, error)
        is_done = False
    if is_done:
        return {bid.order.id for bid in bids}
    if len(bids) == 1:
        return set()
    half = len(bids) // 2
    left = _cancelled(market, wallet, bids[:half], signature, clock_ms)
    return left | _cancelled(market, wallet, bids[half:], signature, clock_ms)


def _row(scope: str, subject: int) -> str | None:
    row = Control.get_or_none(Control.scope == scope, Control.subject_id == subject)
    return None if row is None else str(row.state)


def _written(to_do: str, write: Callable[[], None]) -> None:
    """Writes rows if that is possible. Cancels do not depend on it: what has no row is found out by later reads."""
    try:
        write()
    except PeeweeException as error:
        log.warning("failed to %s in the ledger: %s", to_do, error)
