"""Auto-list tasks: listings of single inscriptions, created, changed, started, stopped and deleted.

The lowest price at which an output can be bought is the minimum of two independent records of signatures: the ledger's
and the signer's. If the signer does not respond, its record is left out, and the answer mentions that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Annotated, Literal

from msgspec import UNSET, Raw, UnsetType, structs

from core.fields import Time, words
from markets.venues import capabilities
from models.accounts import CONTROL, READ, TRADE
from models.ledger import listings, states
from models.ledger.states import CANCELLED, GONE, SOLD
from models.outbox import START_REFUSED
from models.tasks import tasks
from models.tasks.tasks import LISTING, RUNNING, Task, TaskExists, TaskLimitReached, shown_error
from server import task_config as listing_config
from server import task_handler
from server.autolist_preview import (
    UNPROVED,
    CostSource,
    cost_sources,
    known_collection,
    refuse_outside_vault,
    startable_collection,
    take_up,
    with_known_cost,
)
from server.http.answers import (
    INVALID,
    MANAGER_AWAY,
    NOT_YOURS,
    SIGNER_AWAY,
    TOO_MANY_RUN,
    ApiError,
    ErrorCode,
    ListingEnd,
    ListingState,
    Success,
    Tags,
    Venue,
    invalid,
)
from server.http.base import route
from server.http.shapes import Answer, described_as, shown_as
from server.task_config import (
    AskedTasks,
    AutolistConfig,
    AutolistTaskChange,
    ErrorParams,
    LastCycle,
    ListingChange,
    NewAutolistTask,
    cycle_fields,
    has_tag,
    stored_tags,
    tags_of,
)
from server.task_handler import TaskHandler
from server.withdrawal_plan import refuse_without_sources
from strategy.config.listing import (
    ListingConfig,
    dump_listing_config,
    load_listing_config,
    warnings,
)
from wallet.signer_client import SignerClient, SignerError

SHOWN_S = 2.0  # the wait for the signer when a task is shown
_STILL_LISTED = "The marketplace has not confirmed yet that the listing is gone; this is tried again until it has."
_STAYS = "The listing stays at the marketplace; deleting the task cancels it."
_NOT_ASKED = "The signer cannot be asked, so this is by our own records alone."
_NOT_ALLOWED = "The plan is over, or the address is not whitelisted any more."

Lowest = dict[str, int | None]  # by output


class Listing(Answer, frozen=True, kw_only=True):
    """The newest listing of a task, even if it has ended."""

    price: Annotated[int, words("Sats.", gt=0)]
    state: ListingState
    close_reason: Annotated[ListingEnd | None, words("Why it is closed; null while it is not.")]
    outpoint: Annotated[str, words("The output with the inscription that was signed for, as txid:vout.")]
    listed_at: Annotated[Time | None, words("Since when the marketplace shows it at this price.")]
    lowest_outstanding: Annotated[
        int | None,
        words("The lowest price ever signed for the output: it can be bought at that until it is spent."),
    ]
    lowest_note: Annotated[str | None, words("What keeps that from being sure, as a signer that is away.")]
    proceeds: Annotated[int | None, words("Sats that the sale brought; null without one.")]
    proceeds_note: Annotated[
        str | None, words("After a sale: where its proceeds are, and how they come to back bids again.")
    ]


class AutolistTask(Answer, frozen=True, kw_only=True):
    """A listing of one inscription."""

    id: int
    inscription_id: str
    collection_id: str | None
    is_running: bool
    config: Annotated[Raw, described_as(AutolistConfig)]
    listing: Annotated[Listing | None, words("Null before the first one.")]
    last_cycle: LastCycle | None
    last_error: Annotated[str | None, words("What keeps the last cycle from doing its job.")]
    last_error_code: Annotated[ErrorCode | None, words("The same as a code; null without it.")]
    last_error_params: Annotated[Raw | None, words("The values in it; null without it."), described_as(ErrorParams)]
    created_at: Time
    venue: Venue
    source_fill_id: Annotated[str | None, words("The fill that it was made of, or has its cost from; null: none.")]
    cost_source: Annotated[
        CostSource | None,
        words(
            "Where costSats is from. fill: what left our addresses for it, proved by the chain. claimed: a marketplace "
            "says that a bid bought it, and the chain does not prove it, so no cost is taken from that. given: the "
            "caller. Null without any."
        ),
    ]
    tags: Tags


class WrittenAutolistTask(AutolistTask, frozen=True, kw_only=True):
    """An auto-list task after it was created or changed."""

    warnings: Annotated[list[str], words("What is allowed and probably not meant; missing if nothing.")] | UnsetType = (
        UNSET
    )


class StoppedAutolistTask(AutolistTask, frozen=True, kw_only=True):
    """An auto-list task after its stop."""

    listing_cancelled: Annotated[Literal[False], words("A stop leaves the listing where it is.")] = False
    message: Annotated[str, words("Says so, where there is a listing.")] | UnsetType = UNSET


class DeletedAutolistTask(Success, frozen=True, kw_only=True):
    """The task is gone."""

    listing_cancelled: Annotated[
        bool, words("Its listing was cancelled; false without one, too, or with one that was sold.")
    ]
    message: Annotated[str, words("Says that the listing is still there and being cancelled.")] | UnsetType = UNSET


class AutolistTasks(TaskHandler):
    """The operations on auto-list tasks."""

    kind = LISTING
    tag = "auto-list tasks"
    _note: str | None = None  # the message of the answer to a delete
    _before: states.Listing | None = None  # the newest listing after the worker's last action

    @route("GET /api/autolist", READ, says="Oldest first.", errors={400: INVALID}, has_etag=True)
    async def list_autolist_tasks(self, asked: AskedTasks) -> list[AutolistTask]:
        """My auto-list tasks

        With their configs, the newest listing and the newest cycle of each.
        """
        found = tasks.of_user(self.user.id, LISTING)
        return await self._shown([task for task in found if asked.tag is None or has_tag(task.tags, asked.tag)])

    @route(
        "POST /api/autolist",
        TRADE,
        body=NewAutolistTask,
        says="Created; it is stopped.",
        status=201,
        headers=("Location",),
        errors={
            400: INVALID,
            403: "There are 500 auto-list tasks already.",
            409: "There is a task for this inscription already.",
        },
    )
    async def create_autolist_task(self) -> WrittenAutolistTask:
        """Create an auto-list task

        What is left out of the config is the default. Nothing is listed before a start.
        """
        given = self.json_object()
        change = listing_config.merged_listing(given, None)
        if given.get("inscriptionId") in (None, ""):
            others = [detail for detail in change.details if not detail.startswith("inscriptionId:")]
            raise invalid(["inscriptionId: is required", *others], "inscriptionId is required")
        venue, unknown = task_handler.named_venue(given, self.services.settings)
        details = [*change.details, *unknown] or task_handler.unfit_for_listing(venue, change.config)
        if details or change.inscription_id is None:
            raise invalid(details)
        collection_id = change.collection_id or known_collection(self, change.inscription_id, venue)
        config, source = with_known_cost(self.user.id, given, change.inscription_id, change.config)
        try:
            task = tasks.create_autolist_task(
                self.user.id,
                inscription_id=change.inscription_id,
                collection_id=collection_id,
                config=dump_listing_config(config),
                now_ms=self.now_ms,
                venue=venue,
                source_order=source,
                tags=stored_tags(given),
            )
        except TaskExists:
            raise ApiError(409, "Task already exists for this inscription") from None
        except TaskLimitReached as error:
            raise ApiError(
                403, "Task limit reached", message=f"You may have {error.max_tasks} auto-list tasks."
            ) from None
        self.set_header("Location", f"/api/autolist/{task.id}")
        is_unproved = source is not None and config.cost_sats is None
        return await self._written(task, config, is_unproved=is_unproved)

    @route("GET /api/autolist/{id}", READ, says="The task.", errors={404: NOT_YOURS})
    async def get_autolist_task(self, task_id: str) -> AutolistTask:
        """One auto-list task

        With its config, its newest listing and what its newest cycle did.
        """
        return await self._one(self.task(task_id))

    @route(
        "PUT /api/autolist/{id}",
        TRADE,
        body=AutolistTaskChange,
        says="The task as it is now.",
        errors={400: INVALID, 403: _NOT_ALLOWED, 404: NOT_YOURS, 429: TOO_MANY_RUN, 503: MANAGER_AWAY},
    )
    async def change_autolist_task(self, task_id: str) -> WrittenAutolistTask:
        """Change an auto-list task

        Changes only what is given. A running task starts anew with the result; its listing is edited in place.
        """
        async with self.services.locks.of(self.task(task_id).id):
            self.require_signed_in()
            while not await self._carried_out(task := self.task(task_id)):
                pass  # another process changed the task meanwhile, so try again
            tasks.set_tags(task, stored_tags(self.json_object(), task.tags))
        task = self.task(task_id)
        return await self._written(task, load_listing_config(task.config))

    async def _carried_out(self, task: Task) -> bool:
        """Writes the change and restarts a running worker with it; returns whether the task was still unchanged.

        Raises ApiError.
        """
        change = self._change(task)
        config, collection_id = dump_listing_config(change.config), _collection(task, change)
        if (config, collection_id) == (task.config, task.collection_id):
            return True
        try:
            if task.is_running:
                collection_id = await startable_collection(self, task, change.config, collection_id)
                if not change.config.dry_run:
                    refuse_without_sources(self.services.settings)
                await self.services.manager.ready(self.user.id)
                await self._restart(self.unchanged(task), collection_id, config)
            else:
                tasks.change_autolist_task(task, collection_id=collection_id, config=config)
        except tasks.TaskChanged:
            return False
        return True

    def _change(self, task: Task) -> ListingChange:
        given, venue, stored = self.json_object(), task.venue, load_listing_config(task.config)
        change = listing_config.merged_listing(given, stored)
        details = [*change.details, *_moved(task, change), *task_handler.moved_venue(given, venue)]
        if details := details or task_handler.unfit_for_listing(venue, change.config):
            raise invalid(details)
        self.refuse_change_beyond(AutolistTaskChange, task, stored, change.config, given)
        return change

    async def _restart(self, task: Task, collection_id: str | None, config: str) -> None:
        def write(row: Task, collection_id: str | None, config: str) -> int:
            return tasks.change_autolist_task(row, collection_id=collection_id, config=config)

        before = task.collection_id, task.config
        await self.restart_worker(task, lambda: write(task, collection_id, config), lambda now: write(now, *before))

    @route("DELETE /api/autolist/{id}", TRADE, says="Deleted.", errors={404: NOT_YOURS, 503: MANAGER_AWAY})
    async def delete_autolist_task(self, task_id: str) -> DeletedAutolistTask:
        """Delete an auto-list task

        Ends its worker and cancels its listing. What the marketplace does not cancel at once is tried again until it is
        gone.
        """
        async with self.services.locks.of(self.task(task_id).id):
            task = self.task(task_id)
            still_listed = await self.end_task(task)
        before, after = self._before, listings.newest(task.id)
        was_closed = before is not None and not before.is_open and after is not None and after.id == before.id
        is_cancelled = after is not None and after.close_reason == CANCELLED and not was_closed
        message = _STILL_LISTED if still_listed else self._note
        return DeletedAutolistTask(listing_cancelled=is_cancelled, message=message or UNSET)

    async def before_hiding(self, task: Task) -> None:
        self._note = await take_up(self, task)
        self._before = listings.newest(task.id)

    @route(
        "POST /api/autolist/{id}/start",
        TRADE,
        says="It runs.",
        errors={
            400: "Its config leaves something open, or there is no such inscription; `details` has it.",
            403: _NOT_ALLOWED,
            404: NOT_YOURS,
            409: "The inscription is not in the vault; `message` says where to send it.",
            429: TOO_MANY_RUN,
            503: f"{SIGNER_AWAY} Or: {MANAGER_AWAY}",
        },
    )
    async def start_autolist_task(self, task_id: str) -> AutolistTask:
        """Start an auto-list task

        Answers when its worker runs. Starting a running task does nothing. A listing that is there is adopted.
        """
        async with self.services.locks.of(self.task(task_id).id):
            while not ((task := self.task(task_id)).is_running and task.observed == RUNNING):
                with suppress(tasks.TaskChanged):  # changed by another process, so check the new config
                    await self._check_start(task)
                    await self.services.manager.ready(self.user.id)
                    await self.start_worker(self.unchanged(task))
                    self.services.starts.observe(self.request.request_time())
                    break
        return await self._one(self.task(task_id))

    async def _check_start(self, task: Task) -> None:
        """Checks a start. Raises ApiError: 400 and 409 (which the task then also shows as its error), 403, or 503."""
        config = load_listing_config(task.config)
        try:
            collection_id = await startable_collection(self, task, config, task.collection_id)
            if not config.dry_run:  # a dry run receives no sats
                refuse_without_sources(self.services.settings)
            # An inscription that left the vault while it was listed may have been sold; its worker finds that and ends.
            if listings.open_listing(task.id) is None:
                await refuse_outside_vault(self, task.inscription_id)
        except ApiError as error:
            if error.status_code in (400, 409):
                tasks.set_error(task, "; ".join(error.details) or f"{error.error}: {error.message}", START_REFUSED)
            raise
        self.refuse_without_plan()
        if collection_id != task.collection_id:
            tasks.change_autolist_task(task, collection_id=collection_id, config=task.config)

    @route(
        "POST /api/autolist/{id}/stop",
        TRADE,
        CONTROL,
        says="It is stopped.",
        errors={404: NOT_YOURS, 503: "The manager is away; the wish is kept and holds when it is back."},
    )
    async def stop_autolist_task(self, task_id: str) -> StoppedAutolistTask:
        """Stop an auto-list task

        Answers when its worker is gone. The listing stays at the marketplace.
        """
        await self.stop_worker(task_id)
        task = self.task(task_id)
        message = UNSET if listings.open_listing(task.id) is None else _STAYS
        return StoppedAutolistTask(**structs.asdict(await self._one(task)), message=message)

    async def _written(self, task: Task, config: ListingConfig, *, is_unproved: bool = False) -> WrittenAutolistTask:
        found = [*warnings(config), *([UNPROVED] if is_unproved else [])]
        return WrittenAutolistTask(**structs.asdict(await self._one(task)), warnings=found or UNSET)

    async def _one(self, task: Task) -> AutolistTask:
        [found] = await self._shown([task])
        return found

    async def _shown(self, wanted: Collection[Task]) -> list[AutolistTask]:
        newest = {task.id: listings.newest(task.id) for task in wanted}
        signed = await self._signed(newest.values())
        sources = cost_sources(wanted)
        return [self._task_shown(task, newest[task.id], signed, sources.get(task.id)) for task in wanted]

    async def _signed(self, found: Iterable[states.Listing | None]) -> Lowest | None:
        """Returns the signer's lowest price for each unspent output; None if the signer does not answer."""
        outpoints = {listing.outpoint for listing in found if listing is not None and not _is_spent(listing)}
        if not outpoints:
            return {}

        def ask(signer: SignerClient) -> Lowest:
            return {outpoint: signer.lowest_listing(outpoint) for outpoint in outpoints}

        try:
            return await asyncio.wait_for(self.services.signer(ask), SHOWN_S)
        except (SignerError, TimeoutError):
            return None

    def _task_shown(
        self,
        task: Task,
        newest: states.Listing | None,
        signed: Lowest | None,
        source: CostSource | None,
    ) -> AutolistTask:
        error = shown_error(task, task.user_id, lambda: load_listing_config(task.config).loop_s, self.now_ms)
        return shown_as(
            AutolistTask,
            task,
            config=listing_config.rendered_listing(task.config),
            listing=None if newest is None else _listing_shown(newest, signed),
            source_fill_id=None if task.source_order is None else f"buy-{task.source_order}",
            cost_source=source,
            tags=tags_of(task.tags),
            **cycle_fields(task, error),
        )


def _listing_shown(newest: states.Listing, signed: Lowest | None) -> Listing:
    """Returns the newest listing, even if closed, because its signature can be used until its output is spent."""
    lowest, is_spent = None, _is_spent(newest)
    if not is_spent:
        told = listings.lowest_outstanding(newest.outpoint), (signed or {}).get(newest.outpoint)
        lowest = min((price for price in told if price is not None), default=None)
    return shown_as(
        Listing,
        newest,
        price=newest.price_sats,
        lowest_outstanding=lowest,
        lowest_note=_NOT_ASKED if signed is None and not is_spent else None,
        proceeds=newest.proceeds_sats,
        proceeds_note=_proceeds_note(newest),
    )


def _proceeds_note(listing: states.Listing) -> str | None:
    """Returns a text that says where a sale's proceeds are and how they can back bids again; None without a sale."""
    if listing.close_reason != SOLD:
        return None
    can = capabilities(listing.venue)
    if can.bids_are_psbt:
        return "The proceeds are at your payment address, whose coins back your bids here: nothing is to be done."
    return (
        "The proceeds are at your payment address, which backs no bids here, and nothing moves them by itself. To bid "
        'with them again, POST /api/wallet/withdraw {"from": "payment"} sends them to the address that you sign in '
        "with; from there send them to the address that `funding` in GET /api/wallet names."
    )


def _is_spent(listing: states.Listing) -> bool:
    return listing.close_reason in (SOLD, GONE)


def _collection(task: Task, change: ListingChange) -> str | None:
    return change.collection_id if change.names_collection else task.collection_id


def _moved(task: Task, change: ListingChange) -> list[str]:
    if change.inscription_id in (None, task.inscription_id):
        return []
    return ["inscriptionId: cannot be changed; delete this task and create another"]
