"""Sessions at ord.net: the texts to sign, tokens and wallet bindings, and the open sessions of each pair.

A session is opened by two addresses (BIP-322) and lasts an hour. Tokens are in memory only.
"""

from __future__ import annotations

import binascii
import re
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from markets.base import Refused, SignInNeeded
from markets.orders import LONGEST_SIGN_IN_TEXT, Pair, SignInAnswer, SignInText, SignInTexts
from markets.ordnet.http import OrdNetHttp
from markets.ordnet.wire import uuid
from markets.wire import Unreadable, address, moment, rows, table

MARGIN_MS = 30_000  # a token that ends while a request is under way would be refused
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}", re.ASCII)
_MOST_BINDINGS = 100


@dataclass(frozen=True, slots=True)
class Binding:
    """A pair of addresses with the venue's ids of it."""

    id: str
    payment: str
    ordinals: str


@dataclass(frozen=True, slots=True)
class Session:
    """An open session of `binding`; `bindings` are all of its profile. `token` is never shown."""

    binding: Binding
    bindings: tuple[Binding, ...]
    expires_ms: int
    token: str = field(repr=False)
    http: OrdNetHttp = field(repr=False, compare=False)


class Sessions:
    """The open sessions, one for each pair. Safe in several threads."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._held: dict[tuple[str, str], Session] = {}

    def hold(self, session: Session) -> None:
        """Stores `session` in place of an older one of its pair."""
        with self._lock:
            self._held[session.binding.payment, session.binding.ordinals] = session

    def forget(self, session: Session) -> None:
        """Drops `session`, unless another has taken its place."""
        key = (session.binding.payment, session.binding.ordinals)
        with self._lock:
            if self._held.get(key) is session:
                del self._held[key]

    def of_pair(self, payment: str, ordinals: str) -> Session:
        """Returns the session of these two addresses. Raises SignInNeeded."""
        return self._find(lambda binding: (binding.payment, binding.ordinals) == (payment, ordinals))

    def of_payment(self, payment: str) -> Session:
        """Returns a session that `payment` pays in. Raises SignInNeeded."""
        return self._find(lambda binding: binding.payment == payment)

    def of_ordinals(self, ordinals: str) -> Session:
        """Returns a session that `ordinals` receives in. Raises SignInNeeded."""
        return self._find(lambda binding: binding.ordinals == ordinals)

    def any(self) -> Session:
        """Returns the session that lasts longest, for requests that any session may make. Raises SignInNeeded."""
        return self._find(lambda binding: True)

    def now_ms(self) -> int:
        """Returns the epoch milliseconds of now."""
        return int(self._clock() * 1000)

    def _find(self, is_wanted: Callable[[Binding], bool]) -> Session:
        now_ms = self.now_ms() + MARGIN_MS
        with self._lock:
            self._held = {pair: each for pair, each in self._held.items() if each.expires_ms > now_ms}
            found = [session for session in self._held.values() if is_wanted(session.binding)]
        if not found:
            raise SignInNeeded("no session at ord.net is open; nothing was sent")
        return max(found, key=lambda session: session.expires_ms)


def texts(answer: Any, pair: Pair) -> SignInTexts:
    """Reads the texts to be signed from the answer to POST /auth/challenge: one for each of the pair's addresses.

    A text's id ends with its role, by which the signature finds its address again.
    """
    opened = table(answer, "challenge")
    found: list[SignInText] = []
    for row in rows(opened.get("challenges"), "challenges", most=2):
        entry = table(row, "challenge")
        role = entry.get("role")
        signer = _of_role(str(role), pair)
        if signer is None or address(entry.get("address"), "address of a challenge") != signer:
            raise Unreadable("a challenge is for another address")
        identity = f"{uuid(entry.get('challengeId'), 'id of a challenge')}:{role}"
        found.append(SignInText(identity, _message(entry.get("message")), signer))
    if not found:
        raise Unreadable("nothing is to be signed")
    return SignInTexts(uuid(opened.get("authRequestId"), "id of a sign-in"), tuple(found))


def _of_role(role: str, pair: Pair) -> str | None:
    return {"payment": pair.payment, "ordinals": pair.ordinals}.get(role)


def _message(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_SIGN_IN_TEXT:
        raise Unreadable("a challenge is not a text of a fair length")
    if any(not c.isprintable() and c != "\n" for c in value):
        raise Unreadable("a challenge has control characters")
    return value


def verify_body(answer: SignInAnswer) -> dict[str, Any]:
    """Makes the body of POST /auth/verify. Raises Refused for invalid signatures."""
    return {
        "authRequestId": answer.reference,
        "verifications": [_verification(*each, answer.pair) for each in answer.signatures.items()],
    }


def _verification(text_id: str, signature: str, pair: Pair) -> Mapping[str, str]:
    challenge_id, _, role = text_id.partition(":")
    signer = _of_role(role, pair)
    try:
        raw = b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if signer is None or not raw:
        raise Refused("bad_request", "that signature is none, or of no text of ord.net")
    return {"challengeId": challenge_id, "signature": raw.hex(), "address": signer}


def session(answer: Any, pair: Pair, base: str, now_ms: int) -> Session:
    """Reads the session in the answer to POST /auth/verify."""
    opened = table(answer, "session")
    token = opened.get("sessionToken")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise Unreadable("the session has no token")
    expires_ms = moment(opened.get("expiresAt"), "end of the session")
    if expires_ms <= now_ms + MARGIN_MS:
        raise Unreadable("the session is over already: is this machine's clock right?")
    found = rows(opened.get("walletBindings"), "wallet bindings", most=_MOST_BINDINGS)
    bindings = tuple(_binding(table(row, "wallet binding")) for row in found)
    for binding in bindings:
        if (binding.payment, binding.ordinals) == (pair.payment, pair.ordinals):
            return Session(binding, bindings, expires_ms, token, OrdNetHttp(base, token))
    raise Unreadable("the session is of other addresses")


def _binding(entry: Mapping[str, Any]) -> Binding:
    return Binding(
        uuid(entry.get("walletBindingId"), "id of a wallet binding"),
        address(entry.get("paymentAddress"), "payment address"),
        address(entry.get("ordinalsAddress"), "ordinals address"),
    )
