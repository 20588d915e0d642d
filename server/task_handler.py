"""The common part of operations on a task of either kind: its row, its worker, its marketplace.

Capabilities of marketplaces are built in. A marketplace is asked only about a trait and about a rune's spelling.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from msgspec.structs import replace
from peewee import PeeweeException

from core import layout
from core.errors import PeerError
from core.settings import Settings
from markets import venues
from markets.base import VenueError
from markets.venues import Capabilities
from models.database import base
from models.ledger import closing
from models.tasks import tasks
from models.tasks.tasks import RUNNING, STOPPED, Task
from server.control import halt_instead
from server.http import services
from server.http.answers import ApiError, invalid, not_found
from server.http.base import SignedIn
from server.http.blocking import UserMarket
from server.http.shapes import Body
from server.task_config import stored_tags
from strategy.config.bid import BidConfig, canonical_slug, normal_slug
from strategy.config.listing import ListingConfig, load_listing_config
from wallet.terms import SETTING, co_signers_of, escrow_terms_of

_STILL_WORKS = "No worker can be started or restarted, and nothing was changed. A stop or a halt cancels the bids."
_IDLE = (STOPPED, "crashed")


class TaskHandler(SignedIn):
    """Base of the handlers of tasks. Each method that calls the manager raises ApiError if the call fails."""

    kind: str  # of the tasks under this path

    def task(self, text: str) -> Task:
        """Returns the caller's own task with this id in the path. Raises ApiError (404)."""
        task = tasks.own(self.user.id, self.kind, self.path_id(text))
        if task is None:
            raise not_found()
        return task

    def refuse_change_beyond(
        self, shape: type[Body], task: Task, before: Any, after: Any, given: Mapping[str, Any]
    ) -> None:
        """Raises ApiError (403) if a token for one task changes a field of `shape` that affects more than the task.

        `before` and `after` are the configs; the tags in `given` belong to the task.
        """
        if not self.is_for_one_task:
            return
        names = after.__struct_fields__
        changes = {name: getattr(after, name) for name in names if getattr(before, name) != getattr(after, name)}
        if stored_tags(given, task.tags) != task.tags:
            changes["tags"] = given["tags"]
        self.refuse_beyond(shape, changes)

    async def before_hiding(self, task: Any) -> None:
        """Hook: runs before a task is hidden, once its worker has ended."""

    def refuse_without_plan(self) -> None:
        """Raises ApiError (403) if the caller's plan allows no tasks."""
        refusal = self.services.entitlements.refusal(self.user, self.now_ms)
        if refusal:
            raise ApiError(403, "Not allowed to run tasks", message=refusal)

    async def start_worker(self, task: Task) -> None:
        """Starts the worker; returns when it runs. After a failure the task's desired state is as before."""
        self._refuse_without_files()
        self.require_signed_in()
        was_desired = task.desired
        tasks.set_desired(task, RUNNING)
        try:
            await self.services.manager.settle(self.user.id, task.id)
        except PeerError as error:
            # Only STOPPED is restored, because another request may have stopped the task meanwhile.
            if was_desired == STOPPED or task.observed == "crashed":
                tasks.set_desired(task, STOPPED)
            if self.task(str(task.id)).last_error is None:
                tasks.restore_error(task)
            raise services.answer_to(error) from error

    async def restart_worker(self, task: Task, write: Callable[[], int], take_back: Callable[[Any], object]) -> None:
        """Writes a new config by `write` (which returns the revision) and restarts the worker with it.

        If the restart fails and the task was not changed since, `take_back` is called with the current task.
        """
        self._refuse_without_files()
        self.require_signed_in()
        revision = write()
        try:
            await self.services.manager.settle(self.user.id, task.id)
        except PeerError as error:
            now = self.task(str(task.id))
            if now.revision == revision:
                with suppress(tasks.TaskChanged):
                    take_back(now)
            raise services.answer_to(error) from error

    def _refuse_without_files(self) -> None:
        """Raises ApiError (503) if a file of the database is missing, because then no worker can be started."""
        if (damage := base.look_for_damage()) is not None and damage.is_lost:
            raise ApiError(503, "The database is damaged", message=f"{damage.text}. {_STILL_WORKS}")

    def unchanged(self, task: Task) -> Task:
        """Returns the task as it is now. Raises TaskChanged if its config has changed since `task` was read."""
        now = self.task(str(task.id))
        if now.revision != task.revision:
            raise tasks.TaskChanged
        return now

    async def stop_worker(self, task_id: str) -> int:
        """Stops the worker; returns the number of orders that are open after its end."""
        task = self.task(task_id)
        # Stored before the lock is taken, so that it stays if this request fails, and a waiting start sees it.
        has_to_end = not is_idle(task)
        await self.wish_to_stop(task)
        async with self.services.locks.of(task.id):
            task = self.task(task_id)
            has_to_end = has_to_end or not is_idle(task)
            await self.wish_to_stop(task)
            if not has_to_end:
                return closing.count_open(task.id)
            await self.services.manager.ready(self.user.id, "the task will be stopped as soon as it is back")
            try:
                left = await self.services.manager.settle(self.user.id, task.id)
                if self.task(task_id).desired == RUNNING:
                    # A failed delete in another process may have restored the state that it found before our stop.
                    tasks.set_desired(task, STOPPED)
                    left = await self.services.manager.settle(self.user.id, task.id)
                return left.open_orders
            except PeerError as error:
                raise services.answer_to(error) from error

    async def end_task(self, task: Task) -> int:
        """Hides the task and has its orders closed; returns how many are still open. Call it with the task's lock.

        Hiding the row is final: the manager closes open orders, however long that takes, and removes the row with the
        last order. The worker is ended first, because until then its slug or inscription is in use.
        """
        if is_idle(task):
            await self.before_hiding(task)
            self.require_signed_in()
            if not closing.count_open(task.id):
                tasks.mark_deleted(task, self.now_ms)
                layout.remove_task_files(self.services.settings.data_dir, task.id)
                tasks.remove_tombstone(task.id)
                return 0
        await self.services.manager.ready(self.user.id)
        self.require_signed_in()
        task = self.task(str(task.id))
        if not is_idle(task):
            await self._end_worker(task)
            await self.before_hiding(task)
        tasks.mark_deleted(task, self.now_ms)
        try:
            return (await self.services.manager.settle(self.user.id, task.id)).open_orders
        except PeerError:
            return closing.count_open(task.id)

    async def wish_to_stop(self, task: Task) -> None:
        """Stores that the task is to stop. If that fails, halts the task and raises ApiError (503)."""
        try:
            tasks.set_desired(task, STOPPED)
        except PeeweeException as error:
            await halt_instead(self.services, task, self.now_ms, error)

    async def _end_worker(self, task: Task) -> None:
        """Ends the worker. If that fails, the former desired state is restored."""
        await self.wish_to_stop(task)
        try:
            await self.services.manager.settle(self.user.id, task.id, drain_s=0)
        except PeerError as error:
            tasks.set_desired(task, task.desired)
            tasks.restore_error(task)
            raise services.answer_to(error) from error


def is_idle(task: Task) -> bool:
    """Tells whether the task is stopped and is to stay stopped."""
    return bool(task.desired == STOPPED and task.observed in _IDLE)


PATIENCE_S = 2.0  # time limit of a check at a marketplace
TRAITS_AGE_S = 3600.0  # a collection's traits hardly ever change
_SPELLING_AGE_S = 86_400.0  # a rune's name never changes
_MOST_NEAR = 3
_BULLET = "\u2022"

Catalogue = Mapping[str, Mapping[str, int]]


def named_venue(given: Mapping[str, Any], settings: Settings) -> tuple[str, list[str]]:
    """Returns the venue that a body names, else the default, and the faults of the name."""
    if "venue" not in given:
        return settings.market, []
    name = given["venue"]
    if not isinstance(name, str):
        return settings.market, []  # a wrong type is a fault of the body and reported with its other faults
    problem = settings.why_no_venue(name)
    return name, [] if problem is None else [f"venue: {problem}"]


def moved_venue(given: Mapping[str, Any], venue: str) -> list[str]:
    """Returns the fault of a change that names another venue than the task's."""
    name = given.get("venue", venue)
    return ["venue: cannot be changed; create another task"] if isinstance(name, str) and name != venue else []


def with_delivery(given: Mapping[str, Any], venue: str, config: BidConfig) -> BidConfig:
    """Returns the config with the venue's delivery place if it has only one, unless the body names a place."""
    can = _capabilities(venue)
    is_bound = can is not None and can.bids_are_psbt and "deliverTo" not in given
    return replace(config, deliver_to="vault") if is_bound else config


def unfit_for_bids(venue: str, config: BidConfig) -> list[str]:
    """Returns the parts of the config that the venue cannot serve."""
    can = _capabilities(venue)
    if can is None:
        return []
    if not can.kinds:
        return [f"venue: {can.title} takes no bids"]
    details = []
    if ("runes" if config.is_rune else "ordinals") not in can.kinds:
        details.append(f"type: {can.title} takes no bids of type {config.type}")
    if config.bid_type not in can.bid_types:
        details.append(f"bidType: {can.title} takes no bids of type {config.bid_type}")
    if can.bids_are_psbt and not config.to_vault:
        details.append(f"deliverTo: {can.title} delivers to the vault only")
    if config.on_fill is not None:
        rule = load_listing_config(config.on_fill.autolist)
        details += [f"onFill: autolist.{fault}" for fault in unfit_for_listing(venue, rule)]
    return details


def unfit_for_listing(venue: str, config: ListingConfig) -> list[str]:
    """Returns why the venue cannot list inscriptions for this config."""
    can = _capabilities(venue)
    if can is None:
        return []
    if not can.listings:
        return [f"venue: {can.title} takes no listings"]
    if config.trait is not None and not can.tells_traits:
        return [f"reference: {can.title} does not tell which traits its listings have"]
    return []


def not_signed_bids(venue: str, settings: Settings) -> list[str]:
    """Returns why the signer signs no bids there: it needs the configured keys of the venue's escrow."""
    can = _capabilities(venue)
    if can is None or not can.bids_are_psbt or venue in co_signers_of(settings):
        return []
    unset = f"until {SETTING} names the keys that can together take a bid's price"
    return [f"venue: bids at {can.title} are not signed {unset} (docs/custody.md)"]


def not_signed_listings(venue: str, settings: Settings) -> list[str]:
    """Returns why the signer signs no listings there: they move the item into an escrow that it does not know."""
    can = _capabilities(venue)
    if can is None or can.lists_plain or venue in escrow_terms_of(settings):
        return []
    return [f"venue: listings at {can.title} are not signed, since they move the item into an escrow that is not known"]


def missing_venue(venue: str, settings: Settings) -> list[str]:
    """Returns why a task cannot be started at its venue, which may no longer be set up."""
    problem = settings.why_no_venue(venue)
    return [] if problem is None else [f"venue: {problem}"]


def venue_telling_wallets(settings: Settings) -> str:
    """Returns the venue that lists an address's inscriptions: the default one if it can, else the first that can.

    Its names of collections may differ from other venues' names.
    """
    found = ((name, _capabilities(name)) for name in settings.venues)
    return next((name for name, can in found if can is not None and can.wallets), settings.market)


def venues_with_bidding_wallets(settings: Settings) -> list[str]:
    """Returns the venues that keep our users' money in a bidding wallet."""
    found = ((name, _capabilities(name)) for name in settings.venues)
    return [name for name, can in found if can is not None and can.kinds and not can.bids_are_psbt]


@cache  # because each creation and change of a task calls it several times
def _capabilities(venue: str) -> Capabilities | None:
    """Returns the venue's capabilities; None for an unknown name, which is reported separately."""
    return venues.capabilities(venue) if venues.is_known(venue) else None


# ---- checks at the marketplace


async def refuse_unknown_trait(
    market: UserMarket, config: BidConfig, venue: str, former: BidConfig | None = None
) -> None:
    """Raises ApiError (400) when the marketplace `venue` says that the collection has no such trait.

    If the marketplace does not respond, is slow, or lists no traits of this collection, nothing is raised. A bid for a
    trait without items is never filled, and the marketplace checks it again when it is placed. A trait that `former`
    already had is not checked again.
    """
    if config.trait is None or (former and (former.slug, former.trait) == (config.slug, config.trait)):
        return
    question = market(lambda client: client.at(venue).traits(config.slug, TRAITS_AGE_S))
    try:
        catalogue = await asyncio.wait_for(question, PATIENCE_S)
    except (VenueError, TimeoutError):
        return
    if catalogue and (detail := missing_trait(config.trait, catalogue)):
        raise invalid([detail])


def missing_trait(trait: tuple[str, str], catalogue: Catalogue) -> str | None:
    """Returns why the trait (type, value) does not exist, as a detail with similar names; None if it exists."""
    kind, value = trait
    if kind not in catalogue:
        return f"traitType: the collection has no trait {kind}{_near(kind, catalogue)}"
    if value not in catalogue[kind]:
        return f"traitValue: the collection has no {kind} {value}{_near(value, catalogue[kind])}"
    return None


def _near(text: str, names: Iterable[str]) -> str:
    """Returns a text with the closest names, compared without regard to capitals and extra spaces; "" without any."""
    from difflib import get_close_matches  # imported here because only mistyped traits need it

    by_folded: dict[str, list[str]] = {}
    for name in names:
        by_folded.setdefault(" ".join(name.casefold().split()), []).append(name)
    folded = get_close_matches(" ".join(text.casefold().split()), by_folded, _MOST_NEAR)
    near = [name for each in folded for name in by_folded[each]][:_MOST_NEAR]
    return f"; it has {', '.join(near)}" if near else ""


def is_unspelled(config: BidConfig) -> bool:
    """Tells whether the ticker may lack its bullets. Some runes have none."""
    return config.is_rune and _BULLET not in config.slug


async def spelled(market: UserMarket, config: BidConfig) -> BidConfig:
    """Returns the config with the ticker in the marketplace's spelling; unchanged if that is unknown."""
    if not is_unspelled(config):
        return config
    question = market(lambda client: client.rune(config.slug, _SPELLING_AGE_S))
    try:
        slug = canonical_slug("rune", (await asyncio.wait_for(question, PATIENCE_S)).ticker)
    except (VenueError, TimeoutError):
        return config  # the next start asks again
    is_same = normal_slug("rune", slug) == normal_slug("rune", config.slug)
    return replace(config, slug=slug) if is_same else config
