"""Hooks: receivers of the caller's events. Only sessions make and change them, never API tokens.

Addresses and secrets are in files that the program `hooks` reads. This module only writes them.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, UnsetType, structs

from core.fields import Count, Time, iso, within, words
from core.hook_receivers import (
    KINDS,
    MAIL,
    WEBHOOK,
    NoReceiver,
    Receiver,
    Receivers,
    new_secret,
    secret_problem,
    shown,
    url_problem,
    would_tell_secret,
)
from core.public_connection import own_host
from models.database.base import transaction
from models.hooks import queue, table
from models.hooks.queue import MOST_HOOKS, NotAnyMore, TooManyHooks
from models.hooks.table import (
    CODE_AGAIN_MS,
    CODE_MS,
    CODES_A_DAY,
    CODES_OF_ADDRESS_A_DAY,
    DEAD,
    MOST_TRIES,
    SENT,
    WAITING,
    Delivery,
    Hook,
    WrongCode,
)
from models.outbox import LASTING
from server.http.answers import INVALID, ApiError, Success, invalid, not_found, too_many, unauthorized
from server.http.base import MAX_ID, SignedIn, route
from server.http.shapes import Answer, Asked, Body, Wrong, one_of, plain_text, read_by, shown_as

DEFAULT_DELIVERIES, MOST_DELIVERIES = 50, 200
_SECRET = (
    "Of a webhook the key of its signatures, made when it is left out; of ntfy an access token; of telegram the bot's. "
    "It is not shown again."
)
_OTHER_SECRET = f"{_SECRET} Required of ntfy where `url` moves to another server and there is one."


def _in_order(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or any(each not in LASTING for each in value):
        raise Wrong(f"must be a list of {', '.join(LASTING[:-1])} and {LASTING[-1]}")
    return tuple(name for name in LASTING if name in value)


Kind = Annotated[str, one_of(KINDS)]
Name = Annotated[str, one_of(LASTING)]
Url = Annotated[
    str,
    read_by(plain_text),
    words("An https address, for telegram `telegram:CHAT`, for mail `mailto:ADDRESS`. Shown again only in part."),
]
Events = Annotated[tuple[Name, ...], read_by(_in_order), words("What it is told of.", min_length=1)]
Interval = Annotated[
    int, within(0, 86_400), words("Seconds between two deliveries at least; what comes meanwhile waits.")
]


class NewHook(Body, frozen=True, kw_only=True):
    """A receiver of events."""

    kind: Kind = WEBHOOK
    url: Url
    events: Events
    secret: Annotated[str, read_by(plain_text), words(_SECRET)] = ""
    min_interval_seconds: Interval = 0


class HookChange(Body, frozen=True, kw_only=True):
    """Changes of a hook: what is given. Another kind is another hook."""

    url: Url | UnsetType = UNSET
    events: Events | UnsetType = UNSET
    secret: Annotated[str, read_by(plain_text), words(_OTHER_SECRET)] | UnsetType = UNSET
    min_interval_seconds: Interval | UnsetType = UNSET


class HookCode(Body, frozen=True, kw_only=True):
    """The code from a mail hook's first mail."""

    code: Annotated[
        str, read_by(plain_text), words("As it is in the newest mail. Case, blanks and dashes do not count.")
    ]


class DeliveriesAsked(Asked, frozen=True, kw_only=True):
    """The query for a hook's deliveries."""

    limit: Annotated[int, within(1, MOST_DELIVERIES), words("Most of them to answer.")] = DEFAULT_DELIVERIES


class HookShown(Answer, frozen=True, kw_only=True):
    """A hook, without its secrets."""

    id: int
    kind: Kind
    url: Annotated[str, words("The part of its address that is no secret.")]
    events: list[Name]
    has_secret: bool
    min_interval_seconds: Count
    created_at: Time
    sent_at: Annotated[Time | None, words("When it last took something.")]
    is_failing: Annotated[bool, words("Whether the last try failed.")]
    waiting: Annotated[Count, words("Deliveries that wait: for their turn, or to be tried again.")]
    dead: Annotated[Count, words("Of those that are kept, the ones that were given up.")]
    lost: Annotated[Count, words("Events that never waited, as too many did.")]
    waits_for_code: Annotated[
        bool, words("Whether it is a mail hook that gets nothing until its code is confirmed; events wait.")
    ]


class HookMade(HookShown, frozen=True, kw_only=True):
    """A hook that was just made."""

    secret: Annotated[
        str | None, words("The key of a webhook's signatures, if it was made here; it is not shown again.")
    ]


class DeliveryShown(Answer, frozen=True, kw_only=True):
    """One event on its way to one hook."""

    id: int
    event: str
    event_id: Annotated[int | None, words("Null of a test and of a code.")]
    task: int | None
    state: Annotated[str, one_of((WAITING, SENT, DEAD))]
    tries: Count
    created_at: Time
    due_at: Annotated[Time | None, words("When it is tried next; null when it is done.")]
    done_at: Time | None
    status: Annotated[int | None, words("The status that was answered at the last try.")]
    error: Annotated[str | None, words("What was wrong at the last try.")]


class DeliveryPage(Answer, frozen=True, kw_only=True):
    """Deliveries of one hook."""

    deliveries: list[DeliveryShown]


_NOT_YOURS = "There is none of this id, or it is somebody else's."
_NO_CODE = "The hook waits for its code."
_TOO_MANY = "Too much was sent by hand; `Retry-After` says when to try again."
_SOON = "It will be sent in a moment."


class Hooks(SignedIn):
    """The operations on the caller's hooks."""

    tag = "hooks"

    @property
    def receivers(self) -> Receivers:
        return Receivers(self.services.settings.hooks_dir)

    def own(self, hook_id: str) -> Hook:
        """Returns the caller's hook of this id. Raises ApiError (404)."""
        found = queue.own(self.user.id, self.path_id(hook_id))
        if found is None:
            raise not_found()
        return found

    @route("GET /api/hooks", says="Without their secrets.")
    def list_hooks(self) -> list[HookShown]:
        """My hooks

        Where you are told what happens, oldest first.
        """
        return [_shown(hook) for hook in queue.of_user(self.user.id)]

    @route(
        "POST /api/hooks",
        says="Made. A webhook's key, if it was made here, is told this once.",
        status=201,
        headers=("Location",),
        errors={400: INVALID, 403: "You have as many hooks as you may."},
    )
    def create_hook(self, given: NewHook) -> HookMade:
        """Be told somewhere

        It is told of what happens from now on. Addresses must be public and https, unless the operator allows others.
        A mail hook is mailed a code, and waits for it: see `confirmHook`.
        """
        self._check(given.kind, given.url, given.secret)
        made = "" if given.secret or given.kind != WEBHOOK else new_secret()
        secret = given.secret or made
        name = self.receivers.keep(Receiver(given.url, secret))
        try:
            hook = queue.add(
                self.user.id,
                given.events,
                may_still=self.is_signed_in,
                kind=given.kind,
                shown=shown(given.url),
                has_secret=bool(secret),
                receiver=name,
                min_interval_s=given.min_interval_seconds,
                created_ms=self.now_ms,
            )
        except TooManyHooks:
            self.receivers.forget(name)
            raise ApiError(403, "Hook limit reached", message=f"You may have {MOST_HOOKS} hooks.") from None
        except NotAnyMore:
            self.receivers.forget(name)
            raise unauthorized() from None
        self.set_header("Location", f"/api/hooks/{hook.id}")
        return HookMade(**structs.asdict(_shown(hook)), secret=made or None)

    @route("GET /api/hooks/{id}", of=own, says="The hook.", errors={404: _NOT_YOURS})
    def get_hook(self, hook: Hook) -> HookShown:
        """One hook

        With the number of deliveries that wait.
        """
        return _shown(hook)

    @route("PUT /api/hooks/{id}", of=own, says="The hook.", errors={400: INVALID, 404: _NOT_YOURS})
    def change_hook(self, hook: Hook, given: HookChange) -> HookShown:
        """Change a hook

        Only what is given changes. What has happened before is delivered as it was. Another address of a mail hook
        waits for a new code.
        """
        changes: dict[str, Any] = {}
        if given.events is not UNSET:
            changes["events"] = " ".join(given.events)
        if given.min_interval_seconds is not UNSET:
            changes["min_interval_s"] = given.min_interval_seconds
        if given.url is not UNSET or given.secret is not UNSET:
            changes |= self._receiver(hook, given)
        try:
            former = queue.change(hook.id, self.now_ms, may_still=self.is_signed_in, **changes)
        except NotAnyMore:
            if "receiver" in changes:
                self.receivers.forget(changes["receiver"])
            raise unauthorized() from None
        if "receiver" in changes:
            self.receivers.forget(changes["receiver"] if former is None else former.receiver)
        return _shown(self.own(str(hook.id)))

    def _receiver(self, hook: Hook, given: HookChange) -> dict[str, object]:
        try:
            known = self.receivers.read(hook.receiver)
        except NoReceiver:
            known = Receiver("")  # unreadable, so the body must contain both address and secret
        url = known.url if given.url is UNSET else given.url
        secret = known.secret if given.secret is UNSET else given.secret
        self._check(hook.kind, url, None if given.secret is UNSET else secret)
        is_kept = given.secret is UNSET and bool(secret)
        if is_kept and would_tell_secret(hook.kind, known.url, url):
            raise invalid(["secret: is required with another address"])  # otherwise a stolen session could obtain it
        if hook.kind == WEBHOOK and not secret:
            raise invalid(["secret: must not be empty: all that is sent is signed with it"])
        name = self.receivers.keep(Receiver(url, secret))
        return {"receiver": name, "shown": shown(url), "has_secret": bool(secret)}

    @route("DELETE /api/hooks/{id}", of=own, says="Deleted.", errors={404: _NOT_YOURS})
    def delete_hook(self, hook: Hook) -> Success:
        """Delete a hook

        With all that waits for it.
        """
        queue.remove(hook)
        self.receivers.forget(hook.receiver)
        return Success()

    @route(
        "POST /api/hooks/{id}/test",
        of=own,
        says=_SOON,
        status=202,
        errors={404: _NOT_YOURS, 409: _NO_CODE, 429: _TOO_MANY},
    )
    def test_hook(self, hook: Hook) -> DeliveryShown:
        """Try a hook

        Sends an event `test`, once. Look at its delivery for what became of it.
        """
        self._refuse_without_code(hook)
        self._refuse_too_many_calls()
        return _delivery(queue.add_test(hook, self.now_ms))

    @route(
        "POST /api/hooks/{id}/code",
        of=own,
        says="It will be sent as soon as you may be sent a mail.",
        status=202,
        errors={404: _NOT_YOURS, 409: "It waits for no code.", 429: "`Retry-After` says when to try again."},
        text=f"To an address at most {CODES_OF_ADDRESS_A_DAY} a day and one in {CODE_AGAIN_MS // 60_000} minutes, for "
        f"you at most {CODES_A_DAY} a day. An address that you have confirmed before has that many for you alone. "
        "A new code ends the one before.",
    )
    def send_hook_code(self, hook: Hook) -> HookShown:
        """Send a mail hook a new code"""
        self._refuse_with_consent(hook)
        if wait_s := table.code_wait_s(self.user.id, hook.shown, self.now_ms):
            raise too_many("A code was sent already", wait_s, "Use the code of the newest mail, or wait for a new one.")
        self._refuse_too_many_calls()
        with transaction():
            is_asked = table.ask(hook.id, self.now_ms)
        if not is_asked:  # the address has been confirmed meanwhile
            self._refuse_with_consent(self.own(str(hook.id)))
        return _shown(hook)

    @route(
        "POST /api/hooks/{id}/confirm",
        of=own,
        says="Confirmed.",
        errors={400: "`details` says what is wrong with the code.", 404: _NOT_YOURS, 409: "It waits for no code."},
        text=f"With the code from its mail, within {CODE_MS // 60_000} minutes. After {MOST_TRIES} wrong tries a code "
        "is void. From then on the hook is told of what happened since it was made.",
    )
    def confirm_hook(self, hook: Hook, given: HookCode) -> HookShown:
        """Confirm a mail hook's address"""
        self._refuse_with_consent(hook)
        try:
            if not table.confirm(hook, given.code, self.now_ms, may_still=self.is_signed_in):
                raise unauthorized()
        except WrongCode as wrong:
            raise invalid([f"code: {wrong}"]) from None
        return _shown(self.own(str(hook.id)))

    @route("GET /api/hooks/{id}/deliveries", of=own, says="Newest first.", errors={400: INVALID, 404: _NOT_YOURS})
    def list_deliveries(self, hook: Hook, asked: DeliveriesAsked) -> DeliveryPage:
        """What a hook was told

        Of all that wait and the newest 200 others.
        """
        return DeliveryPage(deliveries=[_delivery(row) for row in queue.newest(hook.id, asked.limit)])

    @route(
        "POST /api/hooks/{id}/deliveries/{deliveryId}/redeliver",
        of=own,
        says=_SOON,
        status=202,
        errors={404: _NOT_YOURS, 409: f"It waits to be sent already, or is a code. {_NO_CODE}", 429: _TOO_MANY},
    )
    def redeliver(self, hook: Hook, delivery_id: str) -> DeliveryShown:
        """Send one once more

        With all its tries anew.
        """
        if len(delivery_id) > 19 or int(delivery_id) > MAX_ID or not queue.has(hook, int(delivery_id)):
            raise not_found()
        self._refuse_without_code(hook)
        self._refuse_too_many_calls()
        row = queue.again(hook, int(delivery_id), self.now_ms)
        if row is None:
            raise ApiError(409, "It waits to be delivered already, or is a code, which is sent once")
        return _delivery(row)

    def _check(self, kind: str, url: str, secret: str | None) -> None:
        """Raises ApiError (400) unless the address, and the secret if given, are valid for a hook of this kind."""
        settings, details = self.services.settings, []
        if kind == MAIL and settings.smtp_url is None:
            details.append("kind: mail is not set up here")
        if problem := url_problem(kind, url, settings.hook_networks, own_host(settings.public_name)):
            details.append(f"url: {problem}")
        if secret is not None and (problem := secret_problem(kind, secret)):
            details.append(f"secret: {problem}")
        if details:
            raise invalid(details)

    def _refuse_too_many_calls(self) -> None:
        """Raises ApiError (429) if the caller has requested too many deliveries or codes."""
        if wait_s := self.services.sent_by_hand.take(str(self.user.id)):
            raise too_many("Too many deliveries by hand", wait_s)

    def _refuse_without_code(self, hook: Hook) -> None:
        """Raises ApiError (409) while the hook waits for its code."""
        if table.is_awaited(hook):
            raise ApiError(409, "The hook waits for its code", message="Confirm its address with the code first.")

    def _refuse_with_consent(self, hook: Hook) -> None:
        """Raises ApiError (409) unless the hook waits for its code."""
        if not table.is_awaited(hook):
            raise ApiError(409, "The hook waits for no code")


def _shown(hook: Hook) -> HookShown:
    counts = queue.counts(hook.id)
    return shown_as(
        HookShown,
        hook,
        url=hook.shown,
        events=hook.events.split(),
        has_secret=bool(hook.has_secret),
        min_interval_seconds=hook.min_interval_s,
        is_failing=bool(hook.is_failing),
        waiting=counts[WAITING],
        dead=counts[DEAD],
        waits_for_code=table.is_awaited(hook),
    )


def _delivery(row: Delivery) -> DeliveryShown:
    due_at = iso(row.due_ms) if row.state == WAITING else None
    return shown_as(DeliveryShown, row, task=row.task_id, due_at=due_at)
