"""A worker's right to act: given and revoked at the signer (grants) and the gateway (fences), and ended at a takeover.

Both are called in threads, because they may be slow. Their failures become refusals of a start: PeerRefused with the
code signer_unavailable, signer_locked, gateway_unavailable or start_failed.

A manager that takes over a slot waits for the lease, then ends the rights of the former manager's workers. One of them
may be suspended with a bid not yet sent. Ledger, signer and gateway refuse that bid once they know a higher token, and
no worker is started before that.

Other machines' managers report for how long a version of the lease has been unchanged, so that a new manager need not
watch it for the whole lease time. This is independent of both clocks. A version never recurs unless the database is
restored (models/leases/held_lease.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from core.call import call
from core.errors import BidkeeperError, PeerError, PeerRefused
from core.fields import WithSecrets
from core.process import now_s
from core.program_calls import AskStanding
from core.settings import Settings
from core.subscription_plans import SubscriptionPlan
from markets.base import NotSupported, Unavailable, VenueError
from markets.client import MarketClient
from markets.look import kind_of
from markets.venues import capabilities, profile
from models import summaries
from models.database import base
from models.leases import leases
from models.leases.held_lease import HeldLease, Seen, claim
from models.leases.leases import Slot
from models.leases.manager_places import address_at
from models.ledger import closing
from models.ledger.limits import fills_of, most_sats, most_signed_task, most_signed_user
from models.tasks import tasks
from models.tasks.tasks import LISTING, Task
from models.users import DAY_MS, Entitlements, Subscription, own_ceilings, subscription_of
from strategy.config.bid import BidConfig, load_bid_config
from strategy.config.listing import ListingConfig, load_listing_config
from strategy.plan_listing import guard
from wallet.protocol import TOKEN_JUMP, Grant
from wallet.signer_client import SignerClient, SignerError, SignerLocked, SignerRefused, SignerUnavailable
from workers.bidding.moment import goes_to_vault, life_ms
from workers.context import Kind
from workers.manager.loop import in_thread
from workers.process.worker import TaskSignIn

log = logging.getLogger(__name__)

ME = "manager"
GRANT_MS = 30 * DAY_MS
# A bid is signed some time after its lifetime was decided.
EXPIRY_ALLOWANCE_MS = 120_000
_PEERS = 2  # that know tokens: signer and gateway
DAMAGED = "database_damaged"  # the refusal of a start while a file of the database is lost
PEERS_AWAY = ("signer_unavailable", "signer_locked", "gateway_unavailable")

T = TypeVar("T")


class Right(WithSecrets, frozen=True):
    """A worker's proof for the signer, and its end; `token` is the task's token under which it was given."""

    hidden = frozenset({"secret"})

    secret: str
    ends_ms: int
    token: int


def require_files() -> None:
    """Raises PeerRefused while a file of the database is lost, because a new process would open another file."""
    if (damage := base.look_for_damage()) is not None and damage.is_lost:
        raise PeerRefused(ME, DAMAGED, f"{damage.text}: no worker can be started until Bidkeeper is restarted")


class Rights:
    """Gives and revokes rights. `signer_s` limits calls to the signer, `fence_s` the wait for writes on the wire."""

    def __init__(self, settings: Settings, signer_s: float, fence_s: float) -> None:
        self._settings = settings
        self.entitlements = Entitlements(settings)
        self._signer = SignerClient(settings.signer_socket, signer_s)
        self._fence_s = fence_s

    async def hand_over(self, row: Task, kind: Kind, token: int, now_ms: int) -> Right:
        """Runs `give` and `fence` at the same time, and waits for both.

        If signer or gateway have seen a higher token, the database was restored: it is an older copy, or a standby that
        lacked the newest commits. Then the task's token is raised above the higher one, at most once for each of the
        two. If the task has a newer token meanwhile, another manager has taken over, and the refusal stands.

        Raises PeerRefused if either fails. A fence without a right stays, because the row's token is raised, too; a
        right without a fence is withdrawn.
        """
        for _ in range(_PEERS):
            try:
                return await self._hand_over(row, kind, token, now_ms)
            except PeerRefused as refusal:
                newer = refusal.highest and tasks.overtake(row.id, token, refusal.highest)
                if not newer:
                    raise
                log.warning("task %d: %s; the database has gone back: goes on at %d", row.id, refusal.message, newer)
                log.warning("bids and fills since the copy have no order here: bidkeeper reconcile shows them")
                token = newer
        return await self._hand_over(row, kind, token, now_ms)

    async def _hand_over(self, row: Task, kind: Kind, token: int, now_ms: int) -> Right:
        right, fenced = await asyncio.gather(
            self.give(row, kind, token, now_ms), self.fence(row.id, token), return_exceptions=True
        )
        if isinstance(right, BaseException):
            raise right
        if fenced is not None:
            await self.end_rights(row.id, token)
            raise fenced
        return right

    async def give(self, row: Task, kind: Kind, token: int, now_ms: int) -> Right:
        """Grants the task's worker the rights of its kind and its owner's plan."""
        grant = self._grant(row, kind, token, now_ms)
        return Right(await self._ask_signer(lambda: self._signer.grant(grant)), grant.expires_ms, token)

    async def sign_in(self, row: Task, now_ms: int) -> None:
        """Signs the task's owner in at its venue, instead of a drain that cannot be started.

        Call it only while the task has no process, because it ends that process's right. Raises PeerRefused and
        VenueError.
        """
        right = await self.give(row, "drain", tasks.raise_token(row.id), now_ms)
        user, owner, venue = int(row.user_id), str(row.user.address), str(row.venue)

        def ask() -> None:
            task_sign_in = TaskSignIn(self._signer, row.id, right.token, right.secret, owner)
            with MarketClient(self._settings.gateway_socket, self._fence_s, venue) as market:
                market.user, market.purpose = user, "brake"
                task_sign_in(market)

        try:
            await in_thread(ask)
        finally:
            await self.end_rights(row.id, right.token)

    async def fence(self, task_id: int, token: int) -> None:
        """Refuses the task's writes under lower tokens; returns when none of them is on the wire.

        Raises PeerRefused, also if writes under this token are refused.
        """
        least = await self._fence(lambda client: client.fence(task_id, token))
        _refuse_impossible(least, token)
        if least > token:
            raise PeerRefused(ME, "start_failed", f"the gateway has seen token {least}, above {token}", least)

    async def _fence(self, fence: Callable[[MarketClient], T]) -> T:
        def ask() -> T:
            with MarketClient(self._settings.gateway_socket, self._fence_s) as client:
                return fence(client)

        try:
            return await in_thread(ask)
        except Unavailable as error:
            raise PeerRefused(ME, "gateway_unavailable", str(error)) from error
        except VenueError as error:
            raise PeerRefused(ME, "start_failed", f"failed to fence: {error}") from error

    async def end_all(self, tokens: Mapping[int, int]) -> dict[int, int]:
        """Ends all rights of these tasks' workers under this token or lower (signer), or under lower tokens (gateway),
        and waits for writes on the wire. Raises PeerRefused if either does not confirm it.

        Returns the highest token seen of each task that has a higher one than given; its rights may still be valid.
        """
        signers = await self._ask_signer(lambda: self._signer.end_all_rights(tokens))
        gateways = await self._fence(lambda client: client.fence_all(tokens))
        for task_id, least in gateways.items():
            _refuse_impossible(least, tokens[task_id])
        return {each: max(signers.get(each, 0), gateways.get(each, 0)) for each in signers.keys() | gateways.keys()}

    async def take_back(self, task_id: int, token: int) -> None:
        """Revokes the right to place: afterwards nothing is signed, sent or on the wire under `token`.

        Failures are only logged, because a stop must not wait for absent peers. The row's new token makes the ledger
        refuse the worker's reservations, and the worker is ended next.
        """
        try:
            await self._ask_signer(lambda: self._signer.revoke_place(task_id, token))
        except PeerRefused as refusal:
            log.warning("task %d: failed to revoke the right to place: %s", task_id, refusal.message)
        next_token = tasks.raise_token(task_id, above=token)
        try:
            await self.fence(task_id, next_token)
        except PeerRefused as refusal:
            log.warning("task %d: failed to wait for writes on the wire: %s", task_id, refusal.message)

    async def end_rights(self, task_id: int, token: int) -> None:
        """Ends every right under this and lower tokens. A failure is only logged, because the rights expire."""
        try:
            await self._ask_signer(lambda: self._signer.end_rights(task_id, token))
        except PeerRefused as refusal:
            log.info("task %d: failed to withdraw its grant: %s", task_id, refusal.message)

    def ends_ms(self, row: Task, now_ms: int) -> int:
        """Returns when the grant of a task's own worker would end if it were given now."""
        return _ends_ms(subscription_of(row.user_id), now_ms)

    def _grant(self, row: Task, kind: Kind, token: int, now_ms: int) -> Grant:
        if kind == "drain":
            return drain_grant(row, token, now_ms)
        subscription = subscription_of(row.user_id)
        plan = self.entitlements.plan_by(subscription, row.user)
        if plan is None:
            raise PeerRefused(ME, "not_entitled", "the task's owner has no plan")
        ends_ms = _ends_ms(subscription, now_ms)
        try:
            if row.kind == LISTING:
                fee_ppm = self._settings.seller_fee_ppm(row.venue)
                return lister_grant(row, load_listing_config(row.config), token, ends_ms, fee_ppm)
            config = own_ceilings(row.user).config(load_bid_config(row.config))
            spent_sats = fills_of(row.id, config).sats
            return bidder_grant(row, config, plan, token, ends_ms, spent_sats=spent_sats)
        except ValueError as error:
            raise PeerRefused(ME, "start_failed", f"the task's config cannot be read: {error}") from error
        except NotSupported as error:
            raise PeerRefused(ME, "start_failed", str(error)) from error

    async def _ask_signer(self, call: Callable[[], T]) -> T:
        try:
            return await in_thread(call)
        except SignerLocked as error:
            raise PeerRefused(ME, "signer_locked", str(error)) from error
        except SignerUnavailable as error:
            raise PeerRefused(ME, "signer_unavailable", str(error)) from error
        except SignerError as error:
            highest = error.highest if isinstance(error, SignerRefused) else None
            raise PeerRefused(ME, "start_failed", str(error), highest) from error


def _ends_ms(subscription: Subscription | None, now_ms: int) -> int:
    return min(subscription.expires_ms if subscription else 0, now_ms + GRANT_MS)


def _refuse_impossible(least: int, token: int) -> None:
    """Raises PeerRefused for a gateway's token that no start can reach; the signer would never accept it."""
    if least > token + TOKEN_JUMP:
        text = f"the gateway was told of token {least}, far above {token}: restart it"
        raise PeerRefused(ME, "start_failed", text)


def bidder_grant(
    row: Task, config: BidConfig, plan: SubscriptionPlan, token: int, ends_ms: int, *, spent_sats: int
) -> Grant:
    """Returns a grant to bid and cancel within the config; `spent_sats` are already spent."""
    venue = capabilities(row.venue)
    life = life_ms(config, profile(row.venue, kind_of(config)), venue)
    return replace(
        _cancelling(row, token, ends_ms),
        operations=("bid", "cancel"),
        slug=config.slug,
        hardcap_sats=most_sats(config),
        outstanding_sats=most_signed_user(plan),
        outstanding_task_sats=most_signed_task(config, plan, spent_sats),
        max_expiry_ms=life + EXPIRY_ALLOWANCE_MS,
        to_vault=goes_to_vault(config, venue),
    )


def lister_grant(row: Task, config: ListingConfig, token: int, ends_ms: int, fee_ppm: int) -> Grant:
    """Returns a grant to list the inscription for at least the config's minimum price, and to cancel that; for a dry
    run only to cancel.

    `fee_ppm` is the venue's share of a sale in millionths.
    """
    if config.dry_run:
        return _cancelling(row, token, ends_ms)  # so the signer lists nothing, whatever the worker requests
    least_sats = guard(config, fee_ppm, tick=1)
    return replace(_cancelling(row, token, ends_ms), operations=("list", "cancel"), min_price_sats=least_sats)


def drain_grant(row: Task, token: int, now_ms: int) -> Grant:
    """Returns a grant only to cancel, independent of the owner's plan and of the config."""
    return _cancelling(row, token, now_ms + GRANT_MS)


def _cancelling(row: Task, token: int, ends_ms: int) -> Grant:
    return Grant(
        task=row.id,
        user=row.user.address,
        token=token,
        venue=row.venue,
        operations=("cancel",),
        slug=row.slug or "",
        hardcap_sats=0,
        outstanding_sats=0,
        outstanding_task_sats=0,
        receive=row.user.ordinals_address,
        max_expiry_ms=0,
        expires_ms=ends_ms,
        inscription_id=row.inscription_id or "",
    )


_PATIENCE_S = 1.0
_AT_ONCE = 8


def heard(settings: Settings, name: str, addresses: Sequence[str]) -> list[Seen]:
    """Asks up to eight managers at these addresses at the same time, for a second, what they have seen of the lease."""
    if not addresses:
        return []
    pool = ThreadPoolExecutor(min(len(addresses), _AT_ONCE), "hearsay")
    asked = [pool.submit(_ask, settings, name, each) for each in addresses[:_AT_ONCE]]
    done, _ = wait(asked, _PATIENCE_S)
    pool.shutdown(wait=False, cancel_futures=True)
    return [seen for each in done if (seen := each.result()) is not None]


def _ask(settings: Settings, name: str, address: str) -> Seen | None:
    try:
        at = address_at(settings, address)
        standing = call(at, ME, AskStanding(name), timeout=_PATIENCE_S)
    except (PeerError, ValueError, RuntimeError) as error:  # an invalid address, too
        log.info("%s: failed to ask the manager at %s what it has seen: %s", name, address, error)
        return None
    at_s = now_s()  # after the answer, so that the lease's age is never overestimated
    return None if standing is None else Seen(standing.version, at_s - standing.stood_s)


_AGAIN_S = 1.0


def slot_wanted(settings: Settings) -> Slot:
    """Returns the slot that this manager is to keep; reads the open database. Raises BidkeeperError."""
    of = leases.slots()
    if settings.slot is None and of > 1:
        raise BidkeeperError(f"the users are divided into {of} slots: give --slot, from 0 to {of - 1}")
    if settings.slot is not None and settings.slot >= of:
        raise BidkeeperError(f"there is no slot {settings.slot}, but {of}: bidkeeper migrate --slots sets their number")
    return Slot(settings.slot or 0, of)


def hold(settings: Settings, slot: Slot) -> HeldLease:
    """Takes the slot's lease. With several slots it waits until it gets the lease.

    Raises NotTheOne if another manager has the only slot, and DatabaseAway.
    """
    holder = leases.holder_in(settings.run_dir, str(settings.manager_at(slot.number) or ""))
    name = leases.slot_name(slot.number)
    waits = settings.slot is not None
    hear = partial(heard, settings, name)
    return claim(settings.database_url, name, holder, settings.lease_seconds, waits=waits, kind="manager", hear=hear)


async def end_former_rights(lease: HeldLease, slot: Slot, rights: Rights, asked_to_stop: asyncio.Event) -> None:
    """Returns once no worker of another machine's manager may place, sign or send; or if this manager is to stop."""
    if not lease.is_anothers:
        return
    task_ids = [glance.id for glance in summaries.glances(closing.tasks_to_end(), slot)]
    tokens = tasks.raise_tokens(task_ids)
    while tokens:
        if asked_to_stop.is_set():
            return
        lease.alive()
        try:
            higher = await rights.end_all(tokens)
        except PeerRefused as refusal:
            log.error("%s: nothing is started before its former workers' rights are ended: %s", slot, refusal.message)
            await asyncio.sleep(_AGAIN_S)
        else:
            # Reported for tasks in a restored database, whose former workers have higher tokens than the new ones.
            raised = {task_id: tasks.overtake(task_id, tokens[task_id], seen) for task_id, seen in higher.items()}
            tokens = {task_id: token for task_id, token in raised.items() if token is not None}
    lease.forget_former()  # only now, because a manager that restarts here before this must do the same
    log.info("%s: taken over, with %d tasks to look after", slot, len(task_ids))
