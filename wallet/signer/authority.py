"""The conditions of every signature: keys at hand, a live grant, and no rule against it.

It also holds what all kinds of signing share: the signer's file, its audit log, its clock and its ceilings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.errors import PeerRefused
from strategy.plan_inputs import SignedRoom
from wallet import policy, protocol
from wallet.ceilings import Ceilings
from wallet.keystore.keys import Keystore, UserSecrets
from wallet.learnt.refused import RefusedDrafts
from wallet.learnt.store import LearntForms
from wallet.policy import HeldGrant, PolicyRefused
from wallet.protocol import Grant, Operation, Scope
from wallet.signer.audit import AuditLog
from wallet.signer.ledger import Ledger

PEER = "signer"
LOCKED = "locked"

Answer = dict[str, Any]


class Authority:
    """The gate before every signature. `keystore` None means locked, for the reason given; `clock` gives Unix
    milliseconds. `learnt` are the confirmed forms of drafts; None: there is no place to keep any.
    `refused` keeps refused drafts.
    """

    def __init__(
        self,
        ledger: Ledger,
        audit: AuditLog,
        keystore: Keystore | None,
        *,
        ceilings: Ceilings,
        clock: Callable[[], int],
        locked_reason: str,
        has_halt_file: Callable[[], bool],
        learnt: LearntForms | None = None,
        refused: RefusedDrafts | None = None,
    ) -> None:
        self.ledger = ledger
        self.audit = ledger.audit = audit
        self.keystore = keystore
        self.ceilings = ceilings
        self.clock = clock
        self.locked_reason = locked_reason
        self.has_halt_file = has_halt_file
        self.learnt = learnt
        self.refused = refused

    def unlocked(self) -> Keystore:
        """Returns the keys. Raises PeerRefused with the code `locked`."""
        if self.keystore is None:
            raise PeerRefused(PEER, LOCKED, self.locked_reason)
        return self.keystore

    def secrets_of(self, user: str) -> UserSecrets:
        """Returns the keys of a user (normalised sign-in address), made if there are none. Raises PolicyRefused or
        PeerRefused.
        """
        keystore = self.unlocked()
        if user not in keystore.users:
            self._may_add(user, len(keystore.users))
        return keystore.secrets_of(user)

    def live(self, task: Any, token: Any, secret: Any, operation: Operation) -> HeldGrant:
        """Returns the grant that allows `operation`. Raises RequestError, PolicyRefused, or PeerRefused when there are
        no keys.
        """
        task, token = protocol.task_and_token(task, token)
        secret = protocol.text("secret", secret)
        keystore = self.unlocked()
        held = policy.grant_live(self.ledger.grant_of(task), token, secret, self.clock())
        policy.op_allowed(held, operation)
        if operation != "cancel":
            self._may_place(held.grant)
        policy.market(held.grant.venue, play=keystore.is_play)
        return held

    def within_ceilings(self, grant: Grant, price: int, now_ms: int) -> None:
        """Refuses a bid that takes the signed, unexpired sats of the task, its user or all above their ceiling."""
        found, most = self.ledger.signed.unexpired(grant.task, grant.user, now_ms), self.ceilings
        policy.outstanding_task(grant.outstanding_task_sats, found["task"].sats, price)
        policy.outstanding_user(policy.most_outstanding(grant.outstanding_sats, most), found["user"].sats, price)
        policy.outstanding_host(most.outstanding_host, found["host"].sats, price)

    def rooms(self, task: int, user: str, task_sats: int, user_sats: int) -> list[SignedRoom]:
        """Returns how far each ceiling is used that a bid under a grant of these sums would meet."""
        found, most = self.ledger.signed.unexpired(task, user, self.clock()), self.ceilings
        ceilings = [
            ("task", task_sats, found["task"]),
            ("user", policy.most_outstanding(user_sats, most), found["user"]),
        ]
        if most.outstanding_host:
            ceilings.append(("installation", most.outstanding_host, found["host"]))
        return [SignedRoom(whose, sats, signed.sats, signed.frees_ms) for whose, sats, signed in ceilings]

    def rates(self, grant: Grant, now_ms: int, bid_sats: int = 0) -> None:
        """Refuses a bid or listing (0 sats) that exceeds the rates for a minute or an hour."""
        late, most = self.ledger.signed.of_late(grant.task, grant.user, now_ms), self.ceilings
        policy.velocity_count("the task", most.task, late["task"])
        policy.velocity_count("the user", most.user, late["user"])
        policy.velocity_count("the installation", most.host, late["host"])
        if bid_sats:
            hourly = policy.hourly_user(policy.most_outstanding(grant.outstanding_sats, most))
            policy.velocity_sats("the user", hourly, late["user"], bid_sats)
            policy.velocity_sats("the installation", most.sats_hour_host, late["host"], bid_sats)

    def challenge_rates(self, task: int, now_ms: int) -> None:
        """Refuses a challenge, sign-in or delisting that exceeds the rates of its task or of the installation."""
        signed, most = self.ledger.signed, self.ceilings
        policy.velocity_challenges(most.challenges_a_minute, signed.challenges(task, now_ms))
        policy.velocity_count("the installation", most.challenges, signed.challenges_of_all(now_ms), "challenges")

    def may_loosen(self, now_ms: int) -> None:
        """Refuses one more change of a control state to a looser one beyond the installation's rate."""
        loosened = self.ledger.loosened(now_ms)
        policy.velocity_count("the installation", self.ceilings.loosened, loosened, "loosened control states")

    def _may_add(self, user: str, known: int) -> None:
        """Takes a place for a new user; refuses when all are taken by users who have need of theirs."""
        now, most = self.clock(), self.ceilings.users
        # Counted only where it matters: the keystore's list of users never gets shorter, since places in it are keys.
        policy.users_max(most, known if known < most else self.ledger.users_in_need(now))
        self.ledger.note_user(user, now)

    def _may_place(self, grant: Grant) -> None:
        if self.has_halt_file():
            raise PolicyRefused("control-state", "the halt file is there: no bid or listing is signed")
        about: tuple[tuple[Scope, str], ...] = ("global", ""), ("user", grant.user), ("task", str(grant.task))
        policy.control_state([(scope, self.ledger.control_of(scope, subject)) for scope, subject in about])
