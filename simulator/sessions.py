"""Challenges, sessions and unconfirmed drafts, which venues keep between two calls."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
import uuid
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from msgspec import Struct

from simulator.calls import Windows
from simulator.listing import AskTerms, Draft
from simulator.wire import ApiError, bad
from wallet.bip322 import verify_ownership

KEPT = 10_000
Key = TypeVar("Key")
Value = TypeVar("Value")


class Newest(OrderedDict[Key, Value]):
    def keep(self, key: Key, value: Value) -> None:
        self[key] = value
        self.move_to_end(key)
        if len(self) > KEPT:
            self.popitem(last=False)


LIFE_MS = 10 * 60 * 1000
# A text is issued again for a while, so that many tasks of one wallet do not displace each other's texts.
SAME_FOR_MS = 60 * 1000


class Challenges:
    """The live challenges of every address; each is valid for LIFE_MS and can be used repeatedly."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._issued: Newest[str, deque[tuple[int, str]]] = Newest()

    def issue(self, address: str) -> str:
        """Issues a text for `address`: one printable ASCII line, shorter than 200 characters, without a colon."""
        now = self._clock()
        issued = self._issued.get(address, deque(maxlen=LIFE_MS // SAME_FOR_MS))
        self._issued.keep(address, issued)
        if not issued or now - issued[-1][0] >= SAME_FOR_MS:
            text = f"Satflow practice market challenge for {address} nonce {secrets.token_hex(16)}"
            issued.append((now, text))
        return issued[-1][1]

    def answered(self, address: str, signature: str) -> bool:
        """Returns True if `signature` is by `address`, over a challenge that was issued to it and is still valid."""
        now = self._clock()
        live = [text for issued_ms, text in self._issued.get(address, ()) if now - issued_ms < LIFE_MS]
        return any(verify_ownership(address, text, signature) for text in reversed(live))


# Ordinals Wallet's sign-in: a text with a single-use nonce, and a token that proves an address

# A signed text's maximum age, its maximum lead over our clock, and a token's lifetime.
MAX_AGE_MS = 5 * 60 * 1000
MAX_AHEAD_MS = 60 * 1000
LIFE_S = 24 * 3600
_MARK = "ows1"


class WalletSessions:
    """Sessions without a store: each token is signed with a key from `seed`, so it stays valid over a restart."""

    def __init__(self, clock: Callable[[], int], seed: str) -> None:
        self._clock = clock
        self._key = hashlib.sha256(f"practice sessions {seed}".encode()).digest()
        self._used: dict[tuple[str, str], int] = {}

    def open(self, address: str, nonce: str, issued_ms: int, signature: str) -> tuple[str, int] | None:
        """Returns a token and its end (unix seconds); None for a used nonce, a wrong time or an invalid signature."""
        now = self._clock()
        self._used = {key: used for key, used in self._used.items() if now - used <= MAX_AGE_MS + MAX_AHEAD_MS}
        if (address, nonce) in self._used or not now - MAX_AGE_MS <= issued_ms <= now + MAX_AHEAD_MS:
            return None
        # The first try uses the nonce up, whether it is valid or not.
        self._used[address, nonce] = now
        text = (
            "Sign in to Ordinals Wallet\n\n"
            "This proves you own this address. It does not move funds or cost a fee.\n\n"
            f"Address: {address}\nNonce: {nonce}\nIssued At: {issued_ms}"
        )
        if not verify_ownership(address, text, signature):
            return None
        expires = now // 1000 + LIFE_S
        return self._token(f"{address} {expires}"), expires

    def owner(self, token: str) -> str | None:
        """Returns the address of a token; None if the token has expired or is not ours."""
        parts = token.split(".")
        if len(parts) != 3 or not token.isascii():
            return None
        try:
            address, expires = urlsafe_b64decode(parts[1]).decode().split(" ")
        except ValueError:
            return None
        if not hmac.compare_digest(self._token(f"{address} {expires}"), token) or int(expires) * 1000 < self._clock():
            return None
        return address

    def _token(self, said: str) -> str:
        proof = hmac.new(self._key, said.encode(), hashlib.sha256).hexdigest()
        return f"{_MARK}.{urlsafe_b64encode(said.encode()).decode()}.{proof}"


# ord.net's sign-in: challenges for the two addresses of a wallet, and tokens for signed challenges

SESSION_MS = 60 * 60 * 1000
# The lifetime of a challenge; the documents state none.
FLOW_MS = 10 * 60 * 1000
_SPACE = uuid.UUID("8f8e2f0e-6f72-4d2e-b6e5-74706f72646e")


class Challenge(Struct, frozen=True):
    challenge_id: str
    message: str
    address: str
    role: str


class Flow(Struct, frozen=True):
    """A started sign-in; it can be answered until `ends_ms`."""

    request_id: str
    ordinals: str
    payment: str
    challenges: tuple[Challenge, ...]
    ends_ms: int


class Session(Struct, frozen=True):
    """A signed-in wallet of two addresses. Equal pairs have equal profiles and bindings in all sessions."""

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


# The lifetime of a preflight; the documents state none.
PREFLIGHT_MS = 10 * 60 * 1000


class Preflight(Struct, frozen=True):
    """A draft for a session: `asked` are the request's fields, `draft` the result."""

    binding_id: str
    asked: str
    draft: Any
    ends_ms: int


class Desk:
    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self.windows = Windows(clock)
        self._flows: Newest[str, Flow] = Newest()
        self._sessions: Newest[str, Session] = Newest()
        self._preflights: Newest[str, Preflight] = Newest()
        # Ids of entered offers and listings, because requests about ended ones get a different error.
        self.taken: set[str] = set()

    def begin(self, ordinals: str, payment: str) -> Flow:
        """Starts a sign-in with a text to sign for each of the two addresses, or one text if they are the same."""
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
        self._flows.keep(flow.request_id, flow)
        return flow

    def flow(self, request_id: str) -> Flow:
        """Returns a sign-in. Raises ApiError: 404 if it is unknown, 410 if it has expired."""
        flow = self._flows.get(request_id)
        if flow is None:
            raise ApiError(404, "Auth challenge not found")
        if flow.ends_ms <= self._clock():
            raise ApiError(410, "Auth challenge expired")
        return flow

    def payer(self, request_id: str) -> str:
        flow = self._flows.get(request_id)
        return flow.payment if flow is not None else ""

    def check(self, flow: Flow, answers: dict[str, tuple[str, str]]) -> None:
        """Checks an address and a signature (BIP-322 simple witness in hex) for each challenge. Raises ApiError."""
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
        """Ends a sign-in with valid answers, and returns a session with its token."""
        del self._flows[flow.request_id]
        session = Session(secrets.token_urlsafe(32), flow.ordinals, flow.payment, self._clock() + SESSION_MS)
        self._sessions.keep(session.token, session)
        return session

    def find(self, token: str) -> Session | None:
        session = self._sessions.get(token)
        return session if session is not None and session.ends_ms > self._clock() else None

    def keep(self, session: Session, asked: str, draft: Any, handle: str | None = None) -> str:
        handle = handle or secrets.token_urlsafe(24)
        self._preflights.keep(handle, Preflight(session.binding_id, asked, draft, self._clock() + PREFLIGHT_MS))
        return handle

    def draft(self, session: Session, asked: str, handle: str) -> Any:
        """Returns the draft of a handle. Raises ApiError: 409 if it expired or was used, 400 if fields differ."""
        found = self._preflights.get(handle)
        if found is None or found.binding_id != session.binding_id or found.ends_ms <= self._clock():
            raise ApiError(409, "The preflight is over; start again")
        if found.asked != asked:
            raise ApiError(400, "submit must repeat the fields of the preflight")
        return found.draft

    def used(self, handle: str) -> None:
        self._preflights.pop(handle, None)


# UniSat's drafts, kept under an auction's id until the signed PSBT arrives

Step = Literal["put_on", "modify_price", "put_off"]


class Asked(Struct, frozen=True):
    """One draft and its purpose. `former_price` is the old price of a listing that is being repriced."""

    terms: AskTerms
    draft: Draft
    former_price: int = 0
