"""The lister of fills: proves each fill's purchase, and creates the auto-list task that its bidding task wants.

A marketplace's report proves nothing. A fill waits (models/ledger/purchases.py) until the chain confirms or contradicts
that its bid bought the inscription. If its task wants the item listed, the fill then waits until two reads show the
inscription confirmed in the vault, on the output of the purchase. The task's creation and the end of the fill's wait
are one commit. Nothing else is stored, so after a crash the fill still waits. Fills wait for a week. A proof is checked
until its block is too deep to be reorganised, and again right before a task is created from it. If a proof becomes
void, its auto-list task stops.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from core.settings import Settings
from markets.base import VenueError
from models.leases.leases import Slot
from models.ledger import purchases
from models.ledger.states import TO_LIST, Order
from models.tasks import tasks
from models.tasks.tasks import Task, TaskChanged, TaskExists, TaskLimitReached
from models.users import Entitlements, User
from strategy.config.bid import OnFill, load_bid_config, normal_slug
from strategy.config.listing import load_listing_config, problems
from strategy.purchases import SETTLED_BLOCKS, Claim, NotShown, NotYetShown, ProvenPurchase, prove
from wallet.signer_client import SignerError
from workers.context import crashpoint
from workers.manager.loop import in_thread
from workers.manager.purchase_facts import Evidence, Found, PurchaseFacts, Standing, note_of

log = logging.getLogger(__name__)

WEEK_MS = 7 * 86_400_000
LONGEST_REST_S = 300.0  # between two reads of a fill that cannot be listed yet
CHECKS = 6  # reads of fills between two checks of proofs

Find = Callable[[Order, User], Found]
Read = Callable[[Order, User, str], Evidence]
Check = Callable[[ProvenPurchase], Standing]


class _Look(Struct):
    """The last read of a fill: the output at which it was confirmed in the vault, and the time of the next read."""

    rest_s: float
    due: float
    outpoint: str | None = None


class _NotYet(Exception):
    """The reason why a fill has to wait, in words for its owner."""


class _Never(Exception):
    """The reason why a fill will not be listed, in words for its owner."""


class _Unproven(Exception):
    """The chain's fact that rules the purchase out, in words."""


class FillLister:
    """Handles the slot's waiting fills. `look_s` is the time between two reads of a fill; `find` finds an order's item,
    `read` reads how it arrived there, and `check` whether the chain still confirms a proof.

    Everything except the reads runs in the manager's loop.
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
        read: Read | None = None,
        check: Check | None = None,
        crash: Callable[[str], None] = crashpoint,
    ) -> None:
        facts = PurchaseFacts(settings)
        self._entitlements = Entitlements(settings)
        self._look_s = look_s
        self._clock_ms = clock_ms
        self._slot = slot
        self._monotonic = monotonic
        self._find, self._read, self._check = find or facts.find, read or facts.evidence, check or facts.standing
        self._crash = crash
        self._looks: dict[int, _Look] = {}
        self._next_check = 0.0

    async def look(self) -> None:
        """Processes every fill that is due, as far as possible."""
        if self._monotonic() >= self._next_check:
            # Before the work, so that an error there does not make every look start with the check.
            self._next_check = self._monotonic() + CHECKS * self._look_s
            await self._check_proofs()
        found = {order.id: order for order in (*purchases.unproven(self._slot), *purchases.waiting(self._slot))}
        waiting = [found[order_id] for order_id in sorted(found)]
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
                log.info("order %d: its item is not listed: %s", order.id, reason)
                purchases.drop_wish(order, str(reason))
            except _Unproven as reason:
                self._give_up(order, str(reason))
            except Exception:
                # A fill that fails must not block the others.
                log.exception("order %d: failed to list its item", order.id)
                look.rest_s = min(2 * look.rest_s, LONGEST_REST_S)

    async def _check_proofs(self) -> None:
        """Checks every proof that is not settled, and voids those that the chain no longer confirms."""
        for proof in purchases.unsettled(self._slot):
            try:
                await self._void_unless_shown(proof)
            except (VenueError, NotYetShown) as error:
                log.info("order %d: its purchase could not be checked: %s", proof.order_id, error)
            except Exception:
                # The error must not stop the checks of other proofs, or the other fills.
                log.exception("order %d: failed to check its purchase", proof.order_id)

    async def _void_unless_shown(self, proof: ProvenPurchase) -> str | None:
        """Voids the proof if the chain no longer confirms it, and returns why. Raises VenueError and NotYetShown."""
        standing = await in_thread(partial(self._check, proof))
        if standing.void is not None:
            return self._void(proof, standing.void)
        if standing.depth >= SETTLED_BLOCKS:
            purchases.settle(proof)
        return None

    def _void(self, proof: ProvenPurchase, detail: str) -> str:
        reason = f"the chain does not show its purchase any more: {detail}"
        log.warning("order %d: %s; its auto-list task stops", proof.order_id, reason)
        purchases.void(proof, reason, self._clock_ms())
        return reason

    def _wait(self, order: Order, reason: str) -> None:
        if self._clock_ms() - int(order.closed_ms or 0) > WEEK_MS:
            log.warning("order %d: its item could not be listed for a week: %s", order.id, reason)
            purchases.drop_wish(order, f"not possible for a week: {reason}")
            if purchases.of_order(order.id) is None:
                purchases.drop(order, f"not possible for a week: {reason}", self._clock_ms())
        else:
            purchases.wait_on(order, reason)

    def _give_up(self, order: Order, detail: str) -> None:
        reason = purchases.drop(order, detail, self._clock_ms())
        log.warning("order %d: %s", order.id, reason)
        purchases.drop_wish(order, reason)

    async def _take_on(self, order: Order, look: _Look) -> None:
        is_wanted = order.autolist_state == TO_LIST
        if is_wanted:
            _rule(order)
        if order.inscription_id is None:
            raise _NotYet("the marketplace has not told which inscription was bought")
        proof = purchases.of_order(order.id)
        if is_wanted and proof is not None:
            self._refuse_too_many(*_rule(order))
        user = User.get_by_id(order.user_id)
        found = await in_thread(lambda: self._find(order, user))
        if is_wanted and found.vault is not None and found.vault != order.receive:
            raise _Never(f"it was delivered to {order.receive}, not to the vault")
        outpoint = _held_at(order, found, look)
        if proof is not None and proof.outpoint != outpoint:
            self._void(proof, f"the item lies at {outpoint}, and the purchase brought it to {proof.outpoint}")
            proof = None
        if proof is None:
            proof = await self._prove(order, user, outpoint)
        if not is_wanted:
            return
        self._refuse_too_many(*_rule(order))
        if look.outpoint != outpoint:
            look.outpoint, look.rest_s = outpoint, self._look_s
            look.due = self._monotonic() + self._look_s
            purchases.wait_on(order, "it is seen in the vault, and looked at once more")
            return
        await self._refuse_void(proof, look)
        self._crash("fill-seen")
        self._list(order, proof)

    async def _prove(self, order: Order, user: User, outpoint: str) -> ProvenPurchase:
        """Proves by the chain that the order bought its inscription, and stores the proof."""
        try:
            evidence = await in_thread(lambda: self._read(order, user, outpoint))
            reported = evidence.collection
            if reported is not None and normal_slug("ordinals", reported) != normal_slug("ordinals", order.slug):
                raise NotShown(f"it is of the collection {reported}")
            claim = Claim(
                order.id, str(order.inscription_id), order.spent_sats, int(order.created_ms), evidence.receive
            )
            proof = prove(claim, evidence.moves)
        except NotShown as shown:
            raise _Unproven(str(shown)) from None
        except NotYetShown as missing:
            raise _NotYet(str(missing)) from None
        except (VenueError, SignerError) as error:
            raise _NotYet(note_of(error)) from None
        if not purchases.record(proof, self._clock_ms()):
            raise _Unproven("its transaction has proved what another bid bought")
        log.info("order %d: bought %s in %s for %d sats", order.id, proof.inscription_id, proof.txid, proof.cost_sats)
        return proof

    async def _refuse_void(self, proof: ProvenPurchase, look: _Look) -> None:
        """Checks the proof right before an auto-list task is created from it. Raises _NotYet if that fails."""
        try:
            reason = await self._void_unless_shown(proof)
        except NotYetShown as missing:
            raise _NotYet(str(missing)) from None
        except VenueError as error:
            raise _NotYet(note_of(error)) from None
        if reason is not None:
            look.outpoint = None
            raise _NotYet(reason)

    def _refuse_too_many(self, row: Task, rule: OnFill) -> None:
        if (refusal := self._entitlements.refusal(row.user, self._clock_ms())) is not None:
            raise _NotYet(refusal)
        if (count := purchases.count_open(row.id)) >= rule.max_open:
            raise _NotYet(f"{count} auto-list tasks of this task's fills are open, as many as maxOpen allows")

    def _list(self, seen: Order, proof: ProvenPurchase) -> None:
        """Creates the auto-list task from the present rows, because they may have changed during the reads."""
        order = Order.get_by_id(seen.id)
        row, rule = _rule(order)
        self._refuse_too_many(row, rule)
        try:
            config = load_listing_config(rule.autolist)
        except ValueError as error:
            raise _NotYet(f"onFill.autolist cannot be read: {error}") from None
        if wrong := problems(replace(config, cost_sats=purchases.cost(proof))):
            raise _NotYet(f"onFill.autolist: {wrong[0].field}: {wrong[0].text}")
        try:
            made = purchases.make_task(order, proof, config, is_wanted=rule.start, now_ms=self._clock_ms())
        except TaskLimitReached as limit:
            raise _NotYet(f"there are {limit.max_tasks} auto-list tasks, and no more are allowed") from None
        except TaskExists:
            raise _NotYet("an auto-list task for it is being deleted") from None
        except TaskChanged:
            raise _NotYet("its auto-list task was changed meanwhile") from None
        self._crash("fill-listed")
        if made is not None:
            log.info("order %d: auto-list task %d for %s", order.id, made, order.inscription_id)


def _held_at(order: Order, found: Found, look: _Look) -> str:
    """Returns the output at which the item is confirmed at the order's address. Raises _NotYet or _Unproven."""
    located = found.located
    if located.inscription_state == "held" and not located.is_in_escrow and located.outpoint is not None:
        return located.outpoint
    look.outpoint = None
    if located.inscription_state == "spent" and order.autolist_state != TO_LIST:
        raise _Unproven("it is not at the address that this bid names")
    raise _NotYet(found.fault or f"it is not confirmed in the vault {found.vault} yet")


def _rule(order: Order) -> tuple[Task, OnFill]:
    """Returns the fill's task, with its owner, and its present onFill rule. Raises _Never without one, or _NotYet."""
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
