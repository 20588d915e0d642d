"""Sessions at ord.net: challenges for the two addresses of a wallet, and the tokens for their answers."""

from __future__ import annotations

import base64
import secrets
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from simulator.wire import ApiError, bad
from wallet.bip322 import verify_ownership

SESSION_MS = 60 * 60 * 1000
# The life of a challenge: the documents name no time.
FLOW_MS = 10 * 60 * 1000
KEPT = 10_000
_SPACE = uuid.UUID("8f8e2f0e-6f72-4d2e-b6e5-74706f72646e")


@dataclass(frozen=True, slots=True)
class Challenge:
    challenge_id: str
    message: str
    address: str
    role: str


@dataclass(frozen=True, slots=True)
class Flow:
    """A sign-in that has begun. It can be answered until `ends_ms`."""

    request_id: str
    ordinals: str
    payment: str
    challenges: tuple[Challenge, ...]
    ends_ms: int


@dataclass(frozen=True, slots=True)
class Session:
    """A signed-in wallet of two addresses. Equal pairs have equal profiles and bindings, in every session."""

    token: str
    ordinals: str
    payment: str
    ends_ms: int

    @property
    def profile_id(self) -> str:
        return str(uuid.uuid5(_SPACE, f"profile {self.ordinals} {self.payment}"))

    @property
    def binding_id(self) -> str:
        return str(uuid.uuid5(_SPACE, f"binding {self.ordinals} {self.payment}"))


class Sessions:
    """All flows and sessions; `clock` is in ms. They are not part of the state file."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._flows: OrderedDict[str, Flow] = OrderedDict()
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def begin(self, ordinals: str, payment: str) -> Flow:
        """Begins a sign-in: a text to sign for each of the two addresses, one if they are the same."""
        now = self._clock()
        roles = {ordinals: "ordinals", payment: "payment"} if ordinals != payment else {ordinals: "ordinals"}
        said_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now / 1000))
        challenges = tuple(
            Challenge(
                str(uuid.uuid4()), f"Sign in to ord.net at {said_at} (nonce: {secrets.token_hex(16)})", address, role
            )
            for address, role in roles.items()
        )
        flow = Flow(str(uuid.uuid4()), ordinals, payment, challenges, now + FLOW_MS)
        self._flows[flow.request_id] = flow
        if len(self._flows) > KEPT:
            self._flows.popitem(last=False)
        return flow

    def flow(self, request_id: str) -> Flow:
        """Returns a sign-in. Raises ApiError: 404 for an unknown one, 410 when it is over."""
        flow = self._flows.get(request_id)
        if flow is None:
            raise ApiError(404, "Auth challenge not found")
        if flow.ends_ms <= self._clock():
            raise ApiError(410, "Auth challenge expired")
        return flow

    def payer(self, request_id: str) -> str:
        """Returns the payment address of a flow, empty for an unknown one."""
        flow = self._flows.get(request_id)
        return flow.payment if flow is not None else ""

    def check(self, flow: Flow, answers: dict[str, tuple[str, str]]) -> None:
        """Checks the answers: by challenge an address and a signature (BIP-322 simple witness in hex). Raises
        ApiError.
        """
        known = {challenge.challenge_id: challenge for challenge in flow.challenges}
        if not answers.keys() <= known.keys():
            raise ApiError(404, "Auth challenge not found")
        if answers.keys() != known.keys():
            raise bad("every challenge must be verified")
        for challenge_id, (address, signature) in answers.items():
            challenge = known[challenge_id]
            if address != challenge.address:
                raise ApiError(409, "Auth flow is invalid: the address is not the challenge's")
            try:
                proof = base64.b64encode(bytes.fromhex(signature)).decode()
            except ValueError:
                raise bad("signature must be hex") from None
            if not verify_ownership(address, challenge.message, proof):
                raise ApiError(401, "Invalid signature")

    def open(self, flow: Flow) -> Session:
        """Ends a flow with right answers, and returns a session with its token."""
        del self._flows[flow.request_id]
        session = Session(secrets.token_urlsafe(32), flow.ordinals, flow.payment, self._clock() + SESSION_MS)
        self._sessions[session.token] = session
        if len(self._sessions) > KEPT:
            self._sessions.popitem(last=False)
        return session

    def find(self, token: str) -> Session | None:
        """Returns the session of a token that is still good."""
        session = self._sessions.get(token)
        return session if session is not None and session.ends_ms > self._clock() else None
