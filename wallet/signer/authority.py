"""The conditions of every signature: keys at hand, a live grant, and no rule against it.

It also has the parts that all kinds of signing share: ledger, audit log, clocks and ceilings.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Any, Literal

from core.errors import PeerRefused
from strategy.decision import SignedRoom
from wallet import policy
from wallet.keystore.keys import Keystore, UserSecrets
from wallet.policy import HeldGrant, RecentSignatures
from wallet.protocol import Grant, Operation, PolicyRefused, Scope, UnderGrant
from wallet.signer.audit import AuditLog
from wallet.signer.ledger import HOUR_MS, MINUTE_MS, Ledger
from wallet.signer.reading import PEER
from wallet.terms import Ceilings, Rate

LOCKED = "locked"

Entry = dict[str, Any]  # of the audit log
CancelKind = Literal["challenges", "sign-ins", "brakes"]

_KINDS: dict[str, CancelKind] = {
    "challenge": "challenges",
    "delist": "challenges",
    "sign-in": "sign-ins",
    "brake": "brakes",
}  # by the operation's name in the audit log


class Authority:
    """The gate before every signature. `keystore` None means locked, with `locked_reason`; `clock` returns Unix
    milliseconds, `steady_ms` a monotonic clock's. `is_short` returns whether the disk is too full for more bids.
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
        steady_ms: Callable[[], int],
        is_short: Callable[[], bool],
    ) -> None:
        self.ledger = ledger
        self.audit = ledger.audit = audit
        self.keystore = keystore
        self.ceilings = ceilings
        self.clock = clock
        self.locked_reason = locked_reason
        self.has_halt_file = has_halt_file
        self.is_short = is_short
        # A locked signer signs nothing, so it does not read the whole log.
        logged = audit.entries(frozenset(_KINDS), clock() - HOUR_MS) if keystore is not None else ()
        self.recent = SignaturesToCancel(logged, clock(), steady_ms)

    def unlocked(self) -> Keystore:
        """Returns the keys. Raises PeerRefused with the code `locked`."""
        if self.keystore is None:
            raise PeerRefused(PEER, LOCKED, self.locked_reason)
        return self.keystore

    def secrets_of(self, user: str) -> UserSecrets:
        """Returns the keys of a user (normalised sign-in address), made if missing. Raises PolicyRefused,
        or PeerRefused while locked.
        """
        keystore = self.unlocked()
        if user not in keystore.users:
            self._may_add(user, len(keystore.users))
        return keystore.secrets_of(user)

    def live(self, asked: UnderGrant[Any], operation: Operation) -> HeldGrant:
        """Returns the grant that allows `operation`. Raises PolicyRefused, or PeerRefused while locked."""
        keystore = self.unlocked()
        held = policy.grant_live(self.ledger.grant_of(asked.task), asked.token, asked.secret, self.clock())
        policy.op_allowed(held, operation)
        if operation != "cancel":
            self._may_place(held.grant)
        policy.market(held.grant.venue, play=keystore.is_play)
        return held

    def within_ceilings(self, grant: Grant, price: int, now_ms: int) -> None:
        """Refuses a bid if the signed, unexpired sats of the task, user or all users would exceed their ceiling."""
        found, most = self.ledger.signed.unexpired(grant.task, grant.user, now_ms), self.ceilings
        policy.outstanding_task(grant.outstanding_task_sats, found["task"].sats, price)
        policy.outstanding_user(policy.most_outstanding(grant.outstanding_sats, most), found["user"].sats, price)
        policy.outstanding_host(most.outstanding_host, found["host"].sats, price)

    def rooms(self, task: int, user: str, task_sats: int, user_sats: int) -> tuple[SignedRoom, ...]:
        """Returns the use of each ceiling on a bid, for a grant with these sums."""
        now_ms, most = self.clock(), self.ceilings
        found = self.ledger.signed.unexpired(task, user, now_ms)
        expiries = self.ledger.signed.expiries(task, user, now_ms)
        ceilings = [
            ("task", task_sats, found["task"]),
            ("user", policy.most_outstanding(user_sats, most), found["user"]),
        ]
        if most.outstanding_host:
            ceilings.append(("installation", most.outstanding_host, found["host"]))
        return tuple(
            SignedRoom(
                whose, sats, signed.sats, signed.frees_ms, 0, *expiries["host" if whose == "installation" else whose]
            )
            for whose, sats, signed in ceilings
        )

    def rates(self, grant: Grant, now_ms: int, bid_sats: int = 0) -> None:
        """Refuses a bid, or a listing (0 sats), that exceeds the rates of a minute or an hour."""
        late, most = self.ledger.signed.of_late(grant.task, grant.user, now_ms), self.ceilings
        policy.velocity_count("the task", most.task, late["task"])
        policy.velocity_count("the user", most.user, late["user"])
        policy.velocity_count("the installation", most.host, late["host"])
        if bid_sats:
            hourly = policy.hourly_user(policy.most_outstanding(grant.outstanding_sats, most))
            policy.velocity_sats("the user", hourly, late["user"], bid_sats)
            policy.velocity_sats("the installation", most.sats_hour_host, late["host"], bid_sats)

    def may_cancel(self, task: int) -> None:
        """Refuses a challenge or delist that exceeds the rates of its task or of the installation."""
        self._within("challenges", task, self.ceilings.challenges_a_minute, self.ceilings.challenges)

    def may_sign_in(self, task: int) -> None:
        """Refuses a sign-in that exceeds the rates of its task or of the installation."""
        self._within("sign-ins", task, self.ceilings.sign_ins_a_minute, self.ceilings.sign_ins)

    def may_brake(self, user: str) -> None:
        """Refuses a challenge without a grant that exceeds the rates of its user or of the installation."""
        made, most = self.recent, self.ceilings
        policy.velocity_minute("the user", most.brakes_of_user, made.of("brakes", user), "brakes")
        policy.velocity_minute("the installation", most.brakes, made.of_all("brakes").in_a_minute, "brakes")

    def _within(self, kind: CancelKind, task: int, a_minute: int, rate: Rate) -> None:
        policy.velocity_minute("the task", a_minute, self.recent.of(kind, task), kind)
        policy.velocity_count("the installation", rate, self.recent.of_all(kind), kind)

    def require_room(self) -> None:
        """Refuses if the disk is short of room, or if that is unknown."""
        try:
            is_short = self.is_short()
        except OSError:
            is_short = None
        policy.disk_room(is_short)

    def may_loosen(self, now_ms: int) -> None:
        """Refuses to loosen a control state beyond the installation's rate."""
        loosened = self.ledger.loosened(now_ms)
        policy.velocity_count("the installation", self.ceilings.loosened, loosened, "loosened control states")

    def _may_add(self, user: str, known: int) -> None:
        """Takes a place for a new user; refuses if users who still need their keys have all places."""
        now, most = self.clock(), self.ceilings.users
        # Counted only from the ceiling on: the keystore's list never gets shorter, because a place in it is a key.
        policy.users_max(most, known if known < most else self.ledger.users_in_need(now))
        self.ledger.note_user(user, now)

    def _may_place(self, grant: Grant) -> None:
        if self.has_halt_file():
            raise PolicyRefused("control-state", "the halt file is there: no bid or listing is signed")
        about: tuple[tuple[Scope, str], ...] = ("global", ""), ("user", grant.user), ("task", str(grant.task))
        policy.control_state([(scope, self.ledger.control_of(scope, subject)) for scope, subject in about])
        self.require_room()


class SignaturesToCancel:
    """The last hour's signatures for cancelling: challenges, delists, sign-ins and brakes.

    Counted in memory, so that none needs space on the disk, and at start from lines of the audit log (`logged`). Times
    are `steady_ms`, so that a change of the wall clock neither refuses a cancel nor allows one more.
    """

    def __init__(self, logged: Iterable[Entry], now_ms: int, steady_ms: Callable[[], int]) -> None:
        self._steady_ms = steady_ms
        self._made: dict[CancelKind, deque[tuple[int, int | str]]] = {kind: deque() for kind in _KINDS.values()}
        ages = sorted((max(0, now_ms - entry["time_ms"]), at, entry) for at, entry in enumerate(logged))
        for age_ms, _, entry in reversed(ages):
            whose = entry["user"] if entry["operation"] == "brake" else entry["task"]
            self._made[_KINDS[entry["operation"]]].append((steady_ms() - age_ms, whose))

    def count(self, kind: CancelKind, whose: int | str) -> None:
        """Counts a signature of this task or, for a brake, of this user."""
        self._made[kind].append((self._steady_ms(), whose))

    def of(self, kind: CancelKind, whose: int | str) -> int:
        """Returns the number of this task's or user's signatures in the last minute."""
        return self._last_minute(kind).count(whose)

    def of_all(self, kind: CancelKind) -> RecentSignatures:
        made, since_ms = self._made[kind], self._steady_ms() - HOUR_MS
        while made and made[0][0] <= since_ms:
            made.popleft()
        return RecentSignatures(len(self._last_minute(kind)), len(made), 0)

    def _last_minute(self, kind: CancelKind) -> list[int | str]:
        since_ms = self._steady_ms() - MINUTE_MS
        return [whose for _, whose in takewhile(lambda made: made[0] > since_ms, reversed(self._made[kind]))]
