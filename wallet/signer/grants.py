"""Grants, control states, and the use of the ceilings. Revoking grants and setting states work while locked."""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Callable

from msgspec.structs import asdict, astuple, replace

from core.fields import MAX_ID
from wallet import policy
from wallet.address import sign_in_address
from wallet.messages import MessageError, check_slug
from wallet.protocol import (
    MAX_TEXT,
    OPERATIONS,
    STATES,
    AskControls,
    AskRooms,
    AskRoomsUnder,
    ControlState,
    EndAllRights,
    EndRights,
    GiveGrant,
    Grant,
    Higher,
    PolicyRefused,
    RequestError,
    RevokePlace,
    Rooms,
    Secret,
    SetControl,
    SignerControls,
)
from wallet.signer.authority import Authority, Entry

log = logging.getLogger(__name__)

_SECRET_BYTES = 32
_TASK = re.compile(r"[1-9][0-9]{0,18}")  # a task's id, without leading zeros


class Grants:
    """Answers the manager's requests. `rng_bytes` makes the secrets."""

    def __init__(self, authority: Authority, rng_bytes: Callable[[int], bytes]) -> None:
        self._authority = authority
        self._ledger = authority.ledger
        self._rng_bytes = rng_bytes

    def grant(self, asked: GiveGrant) -> Secret:
        grant = _checked(asked.grant)
        policy.market(grant.venue, play=self._authority.unlocked().is_play)
        self._authority.secrets_of(grant.user)
        secret = self._rng_bytes(_SECRET_BYTES).hex()
        with self._ledger.transaction():
            highest = self._ledger.highest_token(grant.task)
            policy.stale_token(highest, grant.token)
            policy.token_jump(highest, grant.token, self._authority.ceilings)
            self._ledger.put_grant(grant, policy.secret_hash(secret))
        log.info("task %d: grant under token %d for %s", grant.task, grant.token, grant.slug or grant.inscription_id)
        return Secret(secret)

    def revoke_place(self, asked: RevokePlace) -> None:
        with self._ledger.transaction():
            self._see_token(asked.task, asked.token)
            self._ledger.revoke_place(asked.task, asked.token)
        log.info("task %d: no more places up to token %d", asked.task, asked.token)

    def end_rights(self, asked: EndRights) -> None:
        with self._ledger.transaction():
            self._see_token(asked.task, asked.token)
            self._ledger.end_rights(asked.task, asked.token)
        log.info("task %d: grants withdrawn up to token %d", asked.task, asked.token)

    def end_all_rights(self, asked: EndAllRights) -> Higher:
        """Withdraws the grants of many tasks.

        Returns the tasks that had a higher token, with it: their grants may still be live. A token far above the
        highest ends the task's grant, too, but is not remembered, so that one wrong row does not stop the others.
        """
        with self._ledger.transaction():
            seen = [(task, self._ledger.highest_token(task)) for task, _ in asked.tokens]
            for task, token in asked.tokens:
                try:
                    self._see_token(task, token)
                except PolicyRefused as refusal:
                    log.error("task %d: its token is not remembered: %s", task, refusal)
                self._ledger.end_rights(task, token)
        log.info("%d tasks: grants withdrawn", len(asked.tokens))
        return Higher(tuple(had for had, (_, token) in zip(seen, asked.tokens, strict=True) if had[1] > token))

    def _see_token(self, task: int, token: int) -> None:
        """Remembers a token of the task, so that lower ones are never accepted. Refuses one far above the highest."""
        policy.token_jump(self._ledger.highest_token(task), token, self._authority.ceilings)
        self._ledger.see_token(task, token)

    def control(self, asked: SetControl) -> None:
        """Sets one state. No-op if the state is set already.

        Each change is a line in the audit log, so changes to a looser state are rate-limited. Tightening is not, and
        needs no space in the ledger: without space, the log alone has the state, also after a restart.
        """
        control = ControlState(asked.scope, _subject(asked), asked.state)
        former = self._ledger.control_of(control.scope, control.subject)
        if former != control.state:
            entry = {"operation": "control", "former": former, **asdict(control)}
            if STATES.index(control.state) > STATES.index(former):
                self._tighten(control, entry)
            else:
                self._loosen(control, entry)
        log.info("%s %s: %s, was %s", control.scope, control.subject, control.state, former)

    def _tighten(self, control: ControlState, entry: Entry) -> None:
        """Sets a stricter state, in force even if ledger and log cannot store it. Raises OSError if the log fails."""
        audit = self._authority.audit
        last_line = audit.number
        try:
            self._change(control, entry)
        except (sqlite3.Error, OSError) as error:
            self._ledger.unstored[control.scope, control.subject] = control.state
            log.error("%s %s: %s is in force, and not stored yet: %s", *astuple(control), error)
            if audit.number == last_line:
                audit.append(self._authority.clock(), entry)

    def _loosen(self, control: ControlState, entry: Entry) -> None:
        authority, now = self._authority, self._authority.clock()
        authority.require_room()  # the log's reserved space is for cancels
        authority.may_loosen(now)
        last_line = authority.audit.number
        try:
            self._change(control, entry, loosened_ms=now)
        except (sqlite3.Error, OSError):
            if authority.audit.number > last_line:  # because a restart would use the log's last state
                authority.audit.append(now, entry | {"former": entry["state"], "state": entry["former"]})
            raise

    def _change(self, control: ControlState, entry: Entry, loosened_ms: int | None = None) -> None:
        with self._ledger.transaction():
            if loosened_ms is not None:
                self._ledger.count_loosened(loosened_ms)
            self._ledger.put_control(control)
            # Logged just before the commit, as for a bid, so that the log has every looser state that is in force.
            self._authority.audit.append(self._authority.clock(), entry)
        self._ledger.unstored.pop((control.scope, control.subject), None)

    def controls(self, asked: AskControls) -> SignerControls:
        return SignerControls(tuple(self._ledger.controls()), self._authority.has_halt_file())


def _subject(asked: SetControl) -> str:
    """Returns the subject in its normal form. Raises RequestError or AddressError."""
    if asked.scope == "global":
        if asked.subject:
            raise RequestError("subject must be empty when the scope is global")
        return ""
    if not asked.subject:
        raise RequestError(f"subject must be text of 1 to {MAX_TEXT} characters")
    if asked.scope == "user":
        return sign_in_address(asked.subject)
    if not _TASK.fullmatch(asked.subject) or int(asked.subject) > MAX_ID:
        raise RequestError("subject must be a task's id")
    return asked.subject


def _checked(grant: Grant) -> Grant:
    """Returns the grant with operations and addresses in their normal form. Raises RequestError or AddressError."""
    if "list" in grant.operations and not grant.inscription_id:
        raise RequestError("a grant to list must name its inscription")
    if grant.slug or not grant.inscription_id:
        try:
            check_slug(grant.slug)
        except MessageError as error:
            raise RequestError(str(error)) from None
    return replace(
        grant,
        user=sign_in_address(grant.user),
        receive=sign_in_address(grant.receive),
        operations=tuple(operation for operation in OPERATIONS if operation in grant.operations),
    )


class RoomKeeper:
    """Returns the use of ceilings. The signer counts signatures, and does not know which bids are open."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    def rooms(self, asked: AskRooms) -> Rooms:
        """Answers for a grant, even while it may not place."""
        grant = self._authority.live(asked, "cancel").grant
        return Rooms(self._authority.rooms(grant.task, grant.user, grant.outstanding_task_sats, grant.outstanding_sats))

    def rooms_under(self, asked: AskRoomsUnder) -> Rooms:
        """Answers for a hypothetical grant: sums only, which need no key. `task` 0 has no signatures."""
        user = sign_in_address(asked.user)
        return Rooms(self._authority.rooms(asked.task, user, asked.outstanding_task_sats, asked.outstanding_sats))
