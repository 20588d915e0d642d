"""The common parts of ord.net's answers (developers.ord.net, OpenAPI 1.0.0), and its sessions.

Pages, ids, targets, steps to sign; a session's token on every request, and statuses with a meaning of their own. Every
function raises Unreadable for anything it does not understand.
"""

from __future__ import annotations

import binascii
import json
import re
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from core.fields import WithSecrets
from markets import parse
from markets.base import LONGEST_PSBT, RateLimited, Refused, SignInNeeded, Trait
from markets.http import Http, Reply, is_page, retry_after_s, words_of
from markets.orders import LONGEST_SIGN_IN_TEXT, Pair, SignInAnswer, SignInText, SignInTexts
from markets.parse import Cursor, Unreadable

PAGE_SIZE = 100
_SLUG = re.compile(r"[a-z0-9_-]{1,80}", re.ASCII)
_UUID = re.compile(r"[0-9A-Za-z-]{8,40}", re.ASCII)
_BASE64 = re.compile(r"[A-Za-z0-9+/]{4,}={0,2}", re.ASCII)
_CURSOR = re.compile(r"[\x21-\x7e]{1,2000}", re.ASCII)
_MOST_INPUTS = 1000
_LAST_OUTPUT = 100_000  # a block has no room for more
_SIGHASHES = frozenset({0, 1, 2, 3, 129, 130, 131})


class SigningStep(Struct, frozen=True):
    """A PSBT to be signed at `indices` with `sighash`; `entry` is the whole step, sent back with the signed PSBT."""

    psbt: str
    indices: tuple[int, ...]
    sighash: int | None
    entry: Mapping[str, Any]

    def signed(self, psbt: str) -> dict[str, Any]:
        """Returns the step as it is submitted."""
        return {**self.entry, "psbtBase64": psbt}


def body(content: Mapping[str, Any]) -> bytes:
    """Encodes a write's body."""
    return json.dumps(content, ensure_ascii=False).encode()


def known_slug(slug: str) -> str | None:
    """Returns `slug` as ord.net writes it, or None for an impossible one, which would spoil the whole request."""
    lower = slug.lower()
    return lower if _SLUG.fullmatch(lower) else None


def needed_slug(slug: str | None) -> str:
    """Returns `slug` as ord.net writes it. Raises Refused if it can be none there."""
    found = None if slug is None else known_slug(slug)
    if found is None:
        raise Refused("bad_request", "which collection? ord.net's slugs have letters, digits, - and _ only")
    return found


def uuid(value: Any, what: str) -> str:
    """Reads an id of an offer, listing, binding or challenge."""
    if not isinstance(value, str) or not _UUID.fullmatch(value):
        raise Unreadable(f"{what}: not an id")
    return value


def venue_id(slug: str, offer_id: str) -> str:
    """Returns our name of an offer: its collection and its id, since a cancel needs both."""
    return f"{slug}:{offer_id}"


def parts(name: str) -> tuple[str, str]:
    """Returns collection and id from a name of `venue_id`. Raises Refused for other names."""
    slug, _, offer_id = name.partition(":")
    if _SLUG.fullmatch(slug) and _UUID.fullmatch(offer_id):
        return slug, offer_id
    raise Refused("bad_request", "that is no offer of ord.net")


def paging(cursor: Cursor) -> dict[str, str]:
    """Returns the query that asks for the page at `cursor`."""
    if cursor is None:
        return {"limit": str(PAGE_SIZE)}
    if not isinstance(cursor, str):
        raise TypeError("ord.net's pages have cursors")
    return {"limit": str(PAGE_SIZE), "cursor": cursor}


def following(answer: Mapping[str, Any]) -> str | None:
    """Reads the next page's cursor, None at the end."""
    pagination = parse.table(answer.get("pagination"), "pagination")
    if not parse.flag(pagination.get("hasNext"), "hasNext"):
        return None
    cursor = pagination.get("nextCursor")
    if not isinstance(cursor, str) or not _CURSOR.fullmatch(cursor):
        raise Unreadable("there is another page, and its cursor is none")
    return cursor


def target(trait: Trait | None) -> dict[str, Any]:
    """Returns a bid's target as ord.net writes it."""
    if trait is None:
        return {"kind": "all"}
    return {"kind": "traits", "traits": [{"type": trait[0], "values": [trait[1]]}]}


def targeted(value: Any) -> tuple[frozenset[Trait], ...] | None:
    """Reads the traits that an offer asks for: groups of alternatives, one of each must be met; none = the collection.

    None for a target that is neither the collection nor traits of it.
    """
    found = parse.table(value, "target")
    kind = parse.text(found.get("kind"), "kind of a target")
    if kind == "all":
        return ()
    if kind != "traits":
        return None
    groups = tuple(
        _group(parse.table(row, "trait of a target")) for row in parse.rows(found.get("traits"), "traits", most=100)
    )
    if not groups:
        raise Unreadable("a target on traits without a trait")
    return groups


def _group(entry: Mapping[str, Any]) -> frozenset[Trait]:
    name = parse.label(entry.get("type"), "type of a trait")
    values = parse.rows(entry.get("values"), "values of a trait", most=100)
    if not values:
        raise Unreadable("a trait without a value")
    return frozenset((name, parse.label(value, "value of a trait")) for value in values)


def step(value: Any, signer: str, what: str) -> SigningStep:
    """Reads a step that `signer` alone must sign, all its inputs in one way."""
    entry = parse.table(value, what)
    psbt = entry.get("psbtBase64")
    if not isinstance(psbt, str) or len(psbt) > LONGEST_PSBT or not _BASE64.fullmatch(psbt):
        raise Unreadable(f"{what}: a PSBT is not base64 of a fair length")
    if parse.address(entry.get("signerAddress"), f"{what}: signer") != signer:
        raise Unreadable(f"{what}: somebody else is to sign")
    inputs = [parse.table(row, f"{what}: input") for row in parse.rows(entry.get("inputsToSign"), f"{what}: inputs")]
    if any(parse.address(each.get("address"), f"{what}: input") != signer for each in inputs):
        raise Unreadable(f"{what}: an input of somebody else is to be signed")
    ways = {_sighash(each.get("sigHash")) for each in inputs}
    indices = [index for each in inputs for index in _indices(each.get("signingIndexes"), what)]
    if len(ways) != 1 or not indices or len(set(indices)) != len(indices):
        raise Unreadable(f"{what}: it is not clear which inputs are to be signed, and how")
    return SigningStep(psbt, tuple(sorted(indices)), ways.pop(), {**entry, "psbtBase64": ""})


def vout(value: Any, what: str) -> int:
    """Reads the number of an output, or of an input."""
    number = parse.whole(value, what)
    if number > _LAST_OUTPUT:
        raise Unreadable(f"{what}: {number} is the number of no output")
    return number


def _indices(value: Any, what: str) -> Sequence[int]:
    return [vout(index, f"{what}: index") for index in parse.rows(value, f"{what}: indexes", most=_MOST_INPUTS)]


def _sighash(value: Any) -> int | None:
    if value is None:
        return None
    found = parse.whole(value, "sigHash")
    if found not in _SIGHASHES:
        raise Unreadable(f"sigHash: {found} is none")
    return found


WINDOW_S = 60.0  # limits count in fixed windows of a minute, and a 429 does not say how much of it is left


class OrdNetHttp(Http):
    """A client with `token`, None for the requests that open a session. The token is in no error and no log."""

    def __init__(self, base: str, token: str | None = None) -> None:
        super().__init__(base, {} if token is None else {"Authorization": f"Bearer {token}"})
        self._has_session = token is not None

    def _raise_own(self, reply: Reply) -> None:
        if reply.status == 429:
            said = retry_after_s(reply)
            raise RateLimited(WINDOW_S if said is None else said)
        if is_page(reply):
            return
        if reply.status == 409:
            # The state has changed before anything was done; a stale PSBT must not be sent again.
            raise Refused("changed", words_of(reply) or "the venue says that things have changed")
        if reply.status == 401 and self._has_session:
            # With or without words: a session ends by itself, and another sign-in tells whether that is all.
            raise SignInNeeded("the venue has ended this session")


MARGIN_MS = 30_000  # a token that ends while a request is under way would be refused
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}", re.ASCII)
_MOST_BINDINGS = 100


class Binding(Struct, frozen=True):
    """A pair of addresses with the venue's ids of it."""

    id: str
    payment: str
    ordinals: str


class Session(WithSecrets, frozen=True):
    """An open session of `binding`; `bindings` are all of its profile. `token` is never shown."""

    hidden = frozenset({"token", "http"})

    binding: Binding
    bindings: tuple[Binding, ...]
    expires_ms: int
    token: str
    http: OrdNetHttp


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
    opened = parse.table(answer, "challenge")
    found: list[SignInText] = []
    for row in parse.rows(opened.get("challenges"), "challenges", most=2):
        entry = parse.table(row, "challenge")
        role = entry.get("role")
        signer = _of_role(str(role), pair)
        if signer is None or parse.address(entry.get("address"), "address of a challenge") != signer:
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
    opened = parse.table(answer, "session")
    token = opened.get("sessionToken")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise Unreadable("the session has no token")
    expires_ms = parse.moment(opened.get("expiresAt"), "end of the session")
    if expires_ms <= now_ms + MARGIN_MS:
        raise Unreadable("the session is over already: is this machine's clock right?")
    found = parse.rows(opened.get("walletBindings"), "wallet bindings", most=_MOST_BINDINGS)
    bindings = tuple(_binding(parse.table(row, "wallet binding")) for row in found)
    for binding in bindings:
        if (binding.payment, binding.ordinals) == (pair.payment, pair.ordinals):
            return Session(binding, bindings, expires_ms, token, OrdNetHttp(base, token))
    raise Unreadable("the session is of other addresses")


def _binding(entry: Mapping[str, Any]) -> Binding:
    return Binding(
        uuid(entry.get("walletBindingId"), "id of a wallet binding"),
        parse.address(entry.get("paymentAddress"), "payment address"),
        parse.address(entry.get("ordinalsAddress"), "ordinals address"),
    )
