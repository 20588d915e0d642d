"""The signer process: the only one with keys. It signs what it composed or checked itself, under a live grant.

Reached over a Unix socket by processes of chosen users; the manager brings grants, workers ask for signatures with
their grant's secret. Everything not named in `Signer.handle` is refused.

Who may ask at all (a user id) may also set control states, loosen them too: server, manager and workers are one user,
and the kernel tells no more than that. A worker that was taken over could so undo a halt, as it could ask for a grant;
hard caps and ceilings hold all the same. What it cannot undo is the halt file, `halt` in the signer's own directory:
while that is there, whoever made it, no bid is signed. It is a safeguard where the signer has a user of its own.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from core.errors import PeerRefused
from wallet import policy, protocol
from wallet.address import AddressError, sign_in_address
from wallet.audit import AuditLog
from wallet.bip322 import verify_ownership
from wallet.keys import Keystore, UserSecrets
from wallet.ledger import Ledger, Signature
from wallet.messages import MessageError, check_slug
from wallet.policy import HeldGrant, Refused
from wallet.protocol import BidMessage, Grant, RequestError, Scope, SignerStatus
from wallet.signing import sign_message

log = logging.getLogger(__name__)

PEER = "signer"
LOCKED = "locked"
_SECRET_BYTES = 32

Answer = dict[str, Any]


class Signer:
    """Answers requests; holds no socket. `keystore` None means locked, for the reason given.

    `clock` gives Unix milliseconds, `outstanding_ceiling` is the installation's in sats (0: none).
    """

    def __init__(
        self,
        ledger: Ledger,
        audit: AuditLog,
        keystore: Keystore | None,
        *,
        outstanding_ceiling: int,
        clock: Callable[[], int],
        rng_bytes: Callable[[int], bytes] = os.urandom,
        locked_reason: str = "",
        has_halt_file: Callable[[], bool] = lambda: False,
    ) -> None:
        self._ledger = ledger
        self._audit = audit
        self._keystore = keystore
        self._ceiling = outstanding_ceiling
        self._clock = clock
        self._rng_bytes = rng_bytes
        self._locked_reason = locked_reason
        self._has_halt_file = has_halt_file
        self._operations: dict[str, Callable[[Answer], Answer]] = {
            "status": self._status,
            "addresses": self._addresses,
            "grant": self._grant,
            "revoke_place": self._revoke_place,
            "withdraw": self._withdraw,
            "control": self._control,
            "controls": self._controls,
            "sign_bid": self._sign_bid,
            "sign_challenge": self._sign_challenge,
            "was_signed": self._was_signed,
        }

    def handle(self, request: Answer) -> Answer:
        """Answers one request. Raises PeerRefused with the rule's tag, `bad-request` or `locked` as its code."""
        arguments = dict(request)
        name = arguments.pop("op", None)
        operation = self._operations.get(name) if isinstance(name, str) else None
        try:
            if operation is None:
                raise Refused("default-deny", "there is no such operation")
            return operation(arguments)
        except Refused as refused:
            log.warning("refused %.20s of task %.20s: %.300s", name, arguments.get("task"), refused)
            raise PeerRefused(PEER, refused.tag, refused.message) from None
        except (RequestError, AddressError) as error:
            log.warning("refused %.20s: %.300s", name, error)
            raise PeerRefused(PEER, "bad-request", str(error)) from None

    def _status(self, request: Answer) -> Answer:
        protocol.take(request)
        state = SignerStatus("ready" if self._keystore else "locked", self._keystore is not None, self._locked_reason)
        return asdict(state)

    def _addresses(self, request: Answer) -> Answer:
        (user,) = protocol.take(request, "user")
        user = sign_in_address(protocol.text("user", user))
        return asdict(self._unlocked().secrets_of(user).public)

    def _grant(self, request: Answer) -> Answer:
        (given,) = protocol.take(request, "grant")
        grant = protocol.read_grant(given)
        grant = replace(grant, user=sign_in_address(grant.user), receive=sign_in_address(grant.receive))
        try:
            check_slug(grant.slug)
        except MessageError as error:
            raise RequestError(str(error)) from None
        self._unlocked().secrets_of(grant.user)
        policy.market(grant, play=True)
        secret = self._rng_bytes(_SECRET_BYTES).hex()
        with self._ledger.transaction():
            policy.stale_token(self._ledger.highest_token(grant.task), grant.token)
            self._ledger.put_grant(grant, policy.secret_hash(secret))
        log.info("task %d: grant under token %d for %s", grant.task, grant.token, grant.slug)
        return {"secret": secret}

    def _revoke_place(self, request: Answer) -> Answer:
        """Needs no key: what takes rights away works while locked."""
        task, token = protocol.task_and_token(*protocol.take(request, "task", "token"))
        with self._ledger.transaction():
            self._ledger.see_token(task, token)
            self._ledger.revoke_place(task, token)
        log.info("task %d: no more places up to token %d", task, token)
        return {}

    def _withdraw(self, request: Answer) -> Answer:
        task, token = protocol.task_and_token(*protocol.take(request, "task", "token"))
        with self._ledger.transaction():
            self._ledger.see_token(task, token)
            self._ledger.withdraw(task, token)
        log.info("task %d: grants withdrawn up to token %d", task, token)
        return {}

    def _control(self, request: Answer) -> Answer:
        """Sets one state. Needs no key; what was set already is neither written nor logged again."""
        control = protocol.read_control(*protocol.take(request, "scope", "subject", "state"))
        if control.scope == "user":
            control = replace(control, subject=sign_in_address(control.subject))
        with self._ledger.transaction():
            former = self._ledger.control_of(control.scope, control.subject)
            if former != control.state:
                self._ledger.put_control(control)
                # Last before the commit, as for a bid: no state holds that the log does not have.
                self._audit.append(self._clock(), {"operation": "control", "former": former, **asdict(control)})
        log.info("%s %s: %s, was %s", control.scope, control.subject, control.state, former)
        return {}

    def _controls(self, request: Answer) -> Answer:
        protocol.take(request)
        return {"controls": [asdict(control) for control in self._ledger.controls()], "file": self._has_halt_file()}

    def _may_bid(self, grant: Grant) -> None:
        if self._has_halt_file():
            raise Refused("control-state", "the halt file is there: no bid is signed")
        about: tuple[tuple[Scope, str], ...] = ("global", ""), ("user", grant.user), ("task", str(grant.task))
        policy.control_state([(scope, self._ledger.control_of(scope, subject)) for scope, subject in about])

    def _sign_bid(self, request: Answer) -> Answer:
        task, token, secret, given = protocol.take(request, "task", "token", "secret", "bid")
        task, token = protocol.task_and_token(task, token)
        secret, bid = protocol.text("secret", secret), protocol.read_bid(given)
        with self._ledger.transaction():
            signed = self._signed_bid(self._live(task, token, secret, "bid"), bid)
        return {"message": signed.message, "signature": signed.signature}

    def _signed_bid(self, held: HeldGrant, bid: BidMessage) -> Signature:
        """The bid's signature: the stored one when the intent was signed, else a new one, stored and audited."""
        grant, secrets = held.grant, self._unlocked().secrets_of(held.grant.user)
        message = policy.msg_template(grant, bid, secrets.public)
        known = self._ledger.signature_of(bid.intent)
        if known is not None:
            policy.intent_conflict((grant.task, grant.user, message), (known.task, known.user, known.message))
            return known
        now = self._clock()
        policy.max_bid(grant, bid.price)
        policy.expiry_max(grant, bid.expires_ms, now)
        policy.outstanding_user(grant, self._ledger.outstanding(grant.user, now), bid.price)
        policy.outstanding_host(self._ceiling, self._ledger.outstanding(None, now), bid.price)
        signed = Signature(
            intent=bid.intent,
            task=grant.task,
            token=grant.token,
            user=grant.user,
            price=bid.price,
            expires_ms=bid.expires_ms,
            created_ms=now,
            message=message,
            message_hash=hashlib.sha256(message.encode()).hexdigest(),
            signature=_sign(secrets, message),
        )
        self._ledger.put_signature(signed)
        # Last before the commit: a crash here leaves a line too many and nothing signed that the log does not have.
        self._audit.append(now, _bid_entry(signed, bid))
        return signed

    def _sign_challenge(self, request: Answer) -> Answer:
        task, token, secret, challenge = protocol.take(request, "task", "token", "secret", "challenge")
        task, token = protocol.task_and_token(task, token)
        secret, challenge = protocol.text("secret", secret), protocol.text("challenge", challenge)
        held = self._live(task, token, secret, "cancel")
        policy.challenge_template(challenge)
        secrets = self._unlocked().secrets_of(held.grant.user)
        signature = _sign(secrets, challenge)
        self._audit.append(
            self._clock(),
            {
                "operation": "challenge",
                "task": task,
                "token": token,
                "user": held.grant.user,
                "address": secrets.public.payment,
                "message_sha256": hashlib.sha256(challenge.encode()).hexdigest(),
            },
        )
        return {"signature": signature}

    def _was_signed(self, request: Answer) -> Answer:
        (intent,) = protocol.take(request, "intent")
        return {"signed": self._ledger.signature_of(protocol.hex_text("intent", intent, 32)) is not None}

    def _live(self, task: int, token: int, secret: str, operation: protocol.Operation) -> HeldGrant:
        self._unlocked()
        held = policy.grant_live(self._ledger.grant_of(task), token, secret, self._clock())
        policy.op_allowed(held, operation)
        if operation == "bid":
            self._may_bid(held.grant)
        policy.market(held.grant, play=True)
        return held

    def _unlocked(self) -> Keystore:
        if self._keystore is None:
            raise PeerRefused(PEER, LOCKED, self._locked_reason)
        return self._keystore


def _sign(secrets: UserSecrets, message: str) -> str:
    """Signs with the payment key and checks the outcome: a signature made wrong could give the key away."""
    signature = sign_message(secrets.payment, "p2wpkh", message)
    if not verify_ownership(secrets.public.payment, message, signature):
        raise RuntimeError("the signature just made does not verify: nothing is handed out")
    return signature


def _bid_entry(signed: Signature, bid: BidMessage) -> Answer:
    return {
        "operation": "bid",
        "intent": signed.intent,
        "task": signed.task,
        "token": signed.token,
        "user": signed.user,
        "slug": bid.slug,
        "price": bid.price,
        "quantity": bid.quantity,
        "expires_ms": bid.expires_ms,
        "message_sha256": signed.message_hash,
    }
