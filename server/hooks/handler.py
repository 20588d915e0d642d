"""The caller's hooks: made and changed by somebody who is signed in, never by an API token.

Addresses and secrets are in files that the program `hooks` reads; here they are only written.
"""

from __future__ import annotations

from typing import Any

from core.hook_receivers import NoReceiver, Receiver, Receivers
from core.hook_urls import MAIL, WEBHOOK, new_secret, secret_problem, shown, url_problem, would_tell_secret
from core.public_address import own_host
from models.base import transaction
from models.hooks import bounds, codes, hooks, queue
from models.hooks.codes import WrongCode
from models.hooks.hooks import MOST_HOOKS, NotAnyMore, TooManyHooks
from models.hooks.table import DEAD, WAITING, Delivery, Hook
from server.http import json_out
from server.http.api_errors import ApiError, invalid, not_found, too_many, unauthorized
from server.http.base import MAX_ID, SignedIn
from server.http.query import Query
from server.schemas.hooks import HookChange, HookCode, NewHook

DEFAULT_DELIVERIES, MOST_DELIVERIES = 50, 200


class HookHandler(SignedIn):
    """The common steps of all operations on hooks."""

    @property
    def receivers(self) -> Receivers:
        return Receivers(self.services.settings.hooks_dir)

    def hook(self, hook_id: str) -> Hook:
        """Returns the caller's hook. Raises ApiError (404)."""
        found = hooks.own(self.user.id, self.path_id(hook_id))
        if found is None:
            raise not_found()
        return found

    def check(self, kind: str, url: str, secret: str | None) -> None:
        """Raises ApiError (400) unless this is an address, and a secret if one is given, for a hook of this kind."""
        settings, details = self.services.settings, []
        if kind == MAIL and settings.smtp_url is None:
            details.append("kind: mail is not set up here")
        if problem := url_problem(kind, url, settings.hook_networks, own_host(settings.public_name)):
            details.append(f"url: {problem}")
        if secret is not None and (problem := secret_problem(kind, secret)):
            details.append(f"secret: {problem}")
        if details:
            raise invalid(details)

    def refuse_too_many_calls(self) -> None:
        """Raises ApiError (429) when the caller has had too much sent by hand."""
        if wait_s := self.services.sent_by_hand.take(str(self.user.id)):
            raise too_many("Too many deliveries by hand", wait_s)

    def refuse_without_code(self, hook: Hook) -> None:
        """Raises ApiError (409) while the hook waits for its code."""
        if codes.is_awaited(hook):
            raise ApiError(409, "The hook waits for its code", message="Confirm its address with the code first.")

    def refuse_with_consent(self, hook: Hook) -> None:
        """Raises ApiError (409) unless the hook waits for its code."""
        if not codes.is_awaited(hook):
            raise ApiError(409, "The hook waits for no code")


class HooksHandler(HookHandler):
    """GET and POST /api/hooks"""

    def get(self) -> None:
        self.answer([_as_json(hook) for hook in hooks.of_user(self.user.id)])

    def post(self) -> None:
        body = self.body(NewHook)
        self.check(body.kind, body.url, body.secret)
        made = "" if body.secret or body.kind != WEBHOOK else new_secret()
        secret = body.secret or made
        name = self.receivers.keep(Receiver(body.url, secret))
        try:
            row = hooks.add(
                self.user.id,
                body.events,
                may_still=self.is_signed_in,
                kind=body.kind,
                shown=shown(body.url),
                has_secret=bool(secret),
                receiver=name,
                min_interval_s=body.min_interval_seconds,
                created_ms=self.now_ms,
            )
        except TooManyHooks:
            self.receivers.forget(name)
            raise ApiError(403, "Hook limit reached", message=f"You may have {MOST_HOOKS} hooks.") from None
        except NotAnyMore:
            self.receivers.forget(name)
            raise unauthorized() from None
        self.set_header("Location", f"/api/hooks/{row.id}")
        self.answer(_as_json(row) | {"secret": made or None}, 201)


class OneHookHandler(HookHandler):
    """GET, PUT and DELETE /api/hooks/:id"""

    def get(self, hook_id: str) -> None:
        self.answer(_as_json(self.hook(hook_id)))

    def put(self, hook_id: str) -> None:
        hook, body = self.hook(hook_id), self.body(HookChange)
        given = body.model_fields_set
        changes: dict[str, Any] = {}
        if "events" in given:
            changes["events"] = " ".join(body.events)
        if "min_interval_seconds" in given:
            changes["min_interval_s"] = body.min_interval_seconds
        if given & {"url", "secret"}:
            changes |= self._receiver(hook, body)
        try:
            former = hooks.change(hook.id, self.now_ms, may_still=self.is_signed_in, **changes)
        except NotAnyMore:
            if "receiver" in changes:
                self.receivers.forget(changes["receiver"])
            raise unauthorized() from None
        if "receiver" in changes:
            self.receivers.forget(changes["receiver"] if former is None else former.receiver)
        self.answer(_as_json(self.hook(hook_id)))

    def _receiver(self, hook: Hook, body: HookChange) -> dict[str, object]:
        try:
            known = self.receivers.read(hook.receiver)
        except NoReceiver:
            known = Receiver("")  # so both must be given
        url = body.url if "url" in body.model_fields_set else known.url
        secret = body.secret if "secret" in body.model_fields_set else known.secret
        self.check(hook.kind, url, body.secret if "secret" in body.model_fields_set else None)
        is_kept = "secret" not in body.model_fields_set and bool(secret)
        if is_kept and would_tell_secret(hook.kind, known.url, url):
            raise invalid(["secret: is required with another address"])  # whoever has the session may not have it
        if hook.kind == WEBHOOK and not secret:
            raise invalid(["secret: must not be empty: all that is sent is signed with it"])
        name = self.receivers.keep(Receiver(url, secret))
        return {"receiver": name, "shown": shown(url), "has_secret": bool(secret)}

    def delete(self, hook_id: str) -> None:
        hook = self.hook(hook_id)
        hooks.remove(hook)
        self.receivers.forget(hook.receiver)
        self.answer({"success": True})


class TryHookHandler(HookHandler):
    """POST /api/hooks/:id/test"""

    takes_body = False

    def post(self, hook_id: str) -> None:
        hook = self.hook(hook_id)
        self.refuse_without_code(hook)
        self.refuse_too_many_calls()
        self.answer(_delivery(queue.add_test(hook, self.now_ms)), 202)


class HookCodeHandler(HookHandler):
    """POST /api/hooks/:id/code"""

    takes_body = False

    def post(self, hook_id: str) -> None:
        hook = self.hook(hook_id)
        self.refuse_with_consent(hook)
        if wait_s := bounds.code_wait_s(self.user.id, hook.shown, self.now_ms):
            raise too_many("A code was sent already", wait_s, "Use the code of the newest mail, or wait for a new one.")
        self.refuse_too_many_calls()
        with transaction():
            is_asked = codes.ask(hook.id, self.now_ms)
        if not is_asked:  # its address has agreed meanwhile
            self.refuse_with_consent(self.hook(hook_id))
        self.answer(_as_json(hook), 202)


class ConfirmHookHandler(HookHandler):
    """POST /api/hooks/:id/confirm"""

    def post(self, hook_id: str) -> None:
        hook, body = self.hook(hook_id), self.body(HookCode)
        self.refuse_with_consent(hook)
        try:
            if not codes.confirm(hook, body.code, self.now_ms, may_still=self.is_signed_in):
                raise unauthorized()
        except WrongCode as wrong:
            raise invalid([f"code: {wrong}"]) from None
        self.answer(_as_json(self.hook(hook_id)))


class DeliveriesHandler(HookHandler):
    """GET /api/hooks/:id/deliveries"""

    takes_query = True

    def get(self, hook_id: str) -> None:
        hook, query = self.hook(hook_id), Query(self, "limit")
        most = query.whole("limit", MOST_DELIVERIES) or DEFAULT_DELIVERIES
        query.refuse_faults()
        self.answer({"deliveries": [_delivery(row) for row in queue.newest(hook.id, most)]})


class RedeliverHandler(HookHandler):
    """POST /api/hooks/:id/deliveries/:deliveryId/redeliver"""

    takes_body = False

    def post(self, hook_id: str, delivery_id: str) -> None:
        hook = self.hook(hook_id)
        if len(delivery_id) > 19 or int(delivery_id) > MAX_ID or not queue.has(hook, int(delivery_id)):
            raise not_found()
        self.refuse_without_code(hook)
        self.refuse_too_many_calls()
        row = queue.again(hook, int(delivery_id), self.now_ms)
        if row is None:
            raise ApiError(409, "It waits to be delivered already, or is a code, which is sent once")
        self.answer(_delivery(row), 202)


def _as_json(hook: Hook) -> dict[str, object]:
    counts = queue.counts(hook.id)
    return {
        "id": hook.id,
        "kind": hook.kind,
        "url": hook.shown,
        "events": hook.events.split(),
        "hasSecret": bool(hook.has_secret),
        "minIntervalSeconds": hook.min_interval_s,
        "createdAt": json_out.iso(hook.created_ms),
        "sentAt": None if hook.sent_ms is None else json_out.iso(hook.sent_ms),
        "isFailing": bool(hook.is_failing),
        "waiting": counts[WAITING],
        "dead": counts[DEAD],
        "lost": hook.lost,
        "waitsForCode": codes.is_awaited(hook),
    }


def _delivery(row: Delivery) -> dict[str, object]:
    return {
        "id": row.id,
        "event": row.event,
        "eventId": row.event_id,
        "task": row.task_id,
        "state": row.state,
        "tries": row.tries,
        "createdAt": json_out.iso(row.created_ms),
        "dueAt": json_out.iso(row.due_ms) if row.state == WAITING else None,
        "doneAt": None if row.done_ms is None else json_out.iso(row.done_ms),
        "status": row.status,
        "error": row.error,
    }
