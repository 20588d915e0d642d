"""Sign-in by a wallet's signature, sessions, and API tokens."""

from __future__ import annotations

import base64
import secrets
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, structs

from core import fields
from core.errors import BidkeeperError
from core.fields import Address, Time, iso, text_of, within, words
from markets.base import VenueError
from markets.client import MarketClient
from models import accounts, users
from models.accounts import MAX_API_TOKENS, MAX_DAYS, SCOPES, ApiToken, NotAnyMore, TooManyApiTokens
from models.tasks import tasks
from models.tasks.tasks import BIDDING, LISTING
from models.users import DAY_MS, MAX_TRIES
from server.http import answers
from server.http.answers import (
    INVALID,
    NOT_YOURS,
    UNREADABLE,
    ApiError,
    Seconds,
    Success,
    invalid,
    not_found,
    too_many,
    unauthorized,
)
from server.http.base import MAX_ID, Handler, SignedIn, route
from server.http.blocking import answer_to, in_time
from server.http.gate import budget_key, client_of, hash_of
from server.http.shapes import Answer, AnyText, Body, Wrong, as_pasted, read_by, shown_as
from wallet.address import AddressError, pasted_sign_in_address
from wallet.bip322 import verify_ownership
from wallet.messages import compose_sign_in

Scope = Literal["read", "trade", "control"]


class SessionShown(Answer, frozen=True, kw_only=True):
    """A client that is signed in."""

    id: int
    client: Annotated[str, words("Browser and system, or the program's name, by its own word.")]
    created_at: Time
    used_at: Annotated[Time, words("To a minute.")]
    is_current: Annotated[bool, words("Whether it is the one that asks.")]


def _scopes(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or any(each not in SCOPES for each in value):
        raise Wrong(f"must be a list of {', '.join(SCOPES[:-1])} and {SCOPES[-1]}")
    return tuple(scope for scope in SCOPES if scope in value)


class ApiTokenBody(Body, frozen=True, kw_only=True):
    """A token for a program. Whatever its scopes, it withdraws nothing, makes no token and changes no profile."""

    name: Annotated[str, text_of(1, 100)]
    scopes: Annotated[
        tuple[Scope, ...],
        Meta(min_length=1),
        read_by(_scopes),
        words(
            "`read` sees; `trade` creates, changes, starts, stops, deletes tasks; `control` stops, and sets control."
        ),
    ]
    task_id: Annotated[int | None, words("Good for this task alone, of either kind; null: for all.")] = None
    expires_in_days: Annotated[int, within(1, MAX_DAYS)] = 90


class ApiTokenShown(Answer, frozen=True, kw_only=True):
    """An API token, without itself."""

    id: int
    name: str
    scopes: list[Scope]
    task_id: int | None
    created_at: Time
    used_at: Annotated[Time | None, words("To a minute; null: never.")]
    expires_at: Time


class NewApiToken(ApiTokenShown, frozen=True, kw_only=True):
    """An API token that was just made."""

    token: Annotated[str, words("The bearer token; it is not shown again.")]


class Sessions(SignedIn):
    """The operations on the caller's sessions and API tokens."""

    tag = "sessions"

    @route("GET /api/sessions", says="The sessions, the one used last first.")
    def list_sessions(self) -> list[SessionShown]:
        """Where I am signed in

        `client` and `usedAt` tell a session that is not yours; of the token only a hash is stored.
        """
        return [
            shown_as(SessionShown, row, is_current=row.token_hash == self.caller.token_hash)
            for row in users.sessions_of(self.user.id, self.now_ms)
        ]

    @route("DELETE /api/sessions", says="Nobody acts for the caller any more but the tasks that run.")
    def sign_out_everywhere(self) -> Success:
        """End all sessions and API tokens

        This session, too, and every challenge that could make another.
        """
        accounts.end_sessions(self.user.id)
        return Success()

    @route(
        "DELETE /api/sessions/{id}",
        says="Its token is void.",
        errors={404: "There is no such session, or it is somebody else's."},
    )
    def end_session(self, session_id: str) -> Success:
        """End one session

        Also one's own, as signOut does.
        """
        if not users.end_session_of(self.user.id, self.path_id(session_id)):
            raise not_found()
        return Success()

    @route("GET /api/tokens", says="Those that are not over, oldest first, without the tokens themselves.")
    def list_api_tokens(self) -> list[ApiTokenShown]:
        """My API tokens

        With their scopes, task, end and last use.
        """
        return [_shown(token) for token in accounts.tokens_of(self.user.id, self.now_ms)]

    @route(
        "POST /api/tokens",
        says="The token.",
        status=201,
        headers=("Location",),
        errors={400: INVALID, 403: "There are 20 already, or an API token asks.", 404: NOT_YOURS},
    )
    def create_api_token(self, given: ApiTokenBody) -> NewApiToken:
        """Make a token for a program

        It is sent as a session's is. Whatever its scopes, it cannot withdraw, make or end tokens and sessions, change
        the profile or the own ceilings, or act as an admin.
        """
        if given.task_id is not None:
            self._refuse_foreign(given.task_id)
        token, now_ms = secrets.token_urlsafe(32), self.now_ms
        try:
            row = accounts.add_token(
                hash_of(token),
                self.user.id,
                may_still=self.is_signed_in,
                name=given.name,
                scopes=" ".join(given.scopes),
                task=given.task_id,
                created_ms=now_ms,
                expires_ms=now_ms + given.expires_in_days * DAY_MS,
            )
        except TooManyApiTokens:
            raise ApiError(403, "Token limit reached", message=f"You may have {MAX_API_TOKENS} API tokens.") from None
        except NotAnyMore:
            raise unauthorized() from None
        self.set_header("Location", f"/api/tokens/{row.id}")
        return NewApiToken(token=token, **structs.asdict(_shown(row)))

    def _refuse_foreign(self, task_id: int) -> None:
        kinds = (BIDDING, LISTING) if 0 < task_id <= MAX_ID else ()
        if not any(tasks.own(self.user.id, kind, task_id) for kind in kinds):
            raise not_found()

    @route(
        "DELETE /api/tokens/{id}",
        says="It is void.",
        errors={404: "There is no such token, or it is somebody else's."},
    )
    def end_api_token(self, token_id: str) -> Success:
        """End an API token

        It holds for its next request already.
        """
        if not accounts.remove_token(self.user.id, self.path_id(token_id)):
            raise not_found()
        return Success()


def _shown(token: ApiToken) -> ApiTokenShown:
    return shown_as(ApiTokenShown, token, scopes=token.scopes.split())


TOO_OFTEN = "Too many sign-in calls; `Retry-After` says when to come back."
_BAD_ADDRESS = "Invalid Bitcoin address format"
_BAD_PROOF = "Invalid signature or expired challenge"
_NO_SIGN_IN = "This challenge proves an ordinals address. To sign in, ask for one without a bearer token."
_NOT_LISTED = "The address is not whitelisted."
_NOT_ITS_OWN = "challengeId: is no challenge of the play wallet's, or it is used or expired"
_ECDSA_BYTES, _ECDSA_HEADERS = 65, range(27, 43)  # a recoverable signature (BIP-137)

Value = TypeVar("Value")


class ChallengeBody(Body, frozen=True, kw_only=True):
    """POST /api/auth/challenge"""

    address: AnyText


class VerifyBody(Body, frozen=True, kw_only=True):
    """POST /api/auth/verify"""

    challenge_id: AnyText
    address: AnyText
    signature: Annotated[AnyText, words("BIP-322 (simple), in base64 or hex.")]
    # Only the form is checked, because a key sent by the caller proves nothing about the address.
    public_key: Annotated[
        Annotated[str, read_by(as_pasted(fields.public_key))] | None, words("64 or 66 hex digits.")
    ] = None


class PlayBody(Body, frozen=True, kw_only=True):
    """POST /api/auth/play"""

    challenge_id: AnyText


class Challenge(Answer, frozen=True, kw_only=True):
    """A text to sign."""

    challenge_id: Annotated[str, words("Goes back with the signature, as it is.")]
    message: Annotated[str, words("What the wallet signs, to the letter.")]
    expires_at: Seconds


class PlayWallet(Answer, frozen=True, kw_only=True):
    """The practice market's own user, whom everybody may sign in as."""

    address: Annotated[Address | None, words("Null where there is none, as on every real market.")]


class PlayProof(Answer, frozen=True, kw_only=True):
    """The play wallet's signature of a challenge of its own."""

    address: Address
    signature: Annotated[str, words("BIP-322 (simple), as signIn takes it.")]


class SessionUser(Answer, frozen=True, kw_only=True):
    """The user who has signed in."""

    id: int
    address: Address
    ordinals_address: Address
    plan: str
    is_admin: bool


class Session(Answer, frozen=True, kw_only=True):
    """A new session."""

    token: Annotated[str, words("The bearer token; it is not shown again.")]
    user: SessionUser


class Unproven(BidkeeperError):
    """A refused proof. The message follows the name of its `part` and says what to do.

    The message is the same for a challenge that is unknown, used, expired or out of tries, so that it reveals nothing.
    """

    def __init__(self, part: Literal["challenge", "address", "signature"], words: str) -> None:
        super().__init__(words)
        self.part = part

    def detail(self, field: str) -> str:
        """Returns the fault as a detail of `field`, which holds the signature."""
        return f"{field}: {self}" if self.part == "signature" else f"{field}: its {self.part} {self}"


_NO_CHALLENGE = f"is unknown, used, expired or had {MAX_TRIES} wrong proofs; ask for a new one and sign its text"


class SignInCall(Handler):
    """A call without sign-in, limited by a rate for each client."""

    def admit(self) -> None:
        super().admit()
        wait_s = self.services.budget.take(budget_key(self.client_ip))
        if wait_s:
            raise too_many("Too many sign-in calls", wait_s, "Wait, then try again.")

    def require_whitelisted(self, address: str) -> None:
        """Raises ApiError (403) unless `address` may sign in."""
        if not self.services.entitlements.may_sign_in(address):
            raise ApiError(
                403,
                "Address not whitelisted for beta access",
                message="This address is not approved for the beta. Please contact the admin to get access.",
            )

    def offer(self, address: str, user_id: int | None, name: str, approves: str | None = None) -> Challenge:
        """Returns a new challenge for `address`; its text calls the service `name`. Raises ApiError (429)."""
        expires_ms = self.now_ms + 1000 * self.services.settings.challenge_seconds
        challenge_id = str(uuid.uuid4())
        message = compose_sign_in(name, address, iso(expires_ms), secrets.token_hex(16))
        users.open_challenge(
            challenge_id,
            address,
            message,
            self.client_ip,
            now_ms=self.now_ms,
            expires_ms=expires_ms,
            user_id=user_id,
            approves=approves,
        )
        return Challenge(challenge_id=challenge_id, message=message, expires_at=answers.seconds(expires_ms))


class SignIn(SignInCall):
    """The operations that lead to a session."""

    tag = "sign-in"

    @route(
        "POST /api/auth/challenge",
        says="The text, to be signed before it expires.",
        errors={400: "Not a Bitcoin address that can sign in.", 403: _NOT_LISTED, 429: TOO_OFTEN},
        bad_body=_BAD_ADDRESS,
        is_open=True,
        may_sign_in=True,
    )
    def open_challenge(self, given: ChallengeBody) -> Challenge:
        """Ask for a text to sign

        With a bearer token and another address than one's own, the text only proves that address.
        """
        try:
            address = pasted_sign_in_address(given.address)
        except AddressError as error:
            raise invalid([f"address: {error}"], _BAD_ADDRESS) from None
        return self.offer(address, *self._purpose(address))

    def _purpose(self, address: str) -> tuple[int | None, str]:
        """Returns the user that the challenge is bound to, and the service's name in its text. Raises ApiError (403).

        A challenge of a signed-in user for another address proves an ordinals address and is not valid for sign-in.
        """
        name = self.services.settings.sign_in_name
        found = self.whoever_calls()
        if found is not None and found.api_token is None and found.user.address != address:
            return found.user.id, f"{name} (only to prove that this is an ordinals address of {found.user.address})"
        self.require_whitelisted(address)
        return None, name

    @route(
        "POST /api/auth/verify",
        says="Signed in.",
        errors={
            400: "Fields are missing or wrong.",
            401: "The signature is wrong, or the challenge is unknown, used or expired.",
            403: _NOT_LISTED,
            429: TOO_OFTEN,
        },
        bad_body="Missing or invalid fields",
        is_open=True,
    )
    def sign_in(self, given: VerifyBody) -> Session:
        """Give the signature, get a token

        The signature is BIP-322 (simple). `publicKey` is checked for its shape and never trusted.
        """
        try:
            challenge = proven(given.challenge_id, given.address, given.signature, self.now_ms)
        except Unproven as error:
            raise _refused(error) from None
        if challenge.user is not None:
            raise ApiError(401, _BAD_PROOF, message=_NO_SIGN_IN)
        self.require_whitelisted(challenge.address)  # it may have left the list since the challenge
        user = users.find_or_create(challenge.address, self.services.settings.plans, self.now_ms)
        token = secrets.token_urlsafe(32)
        client = client_of(self.request.headers.get("User-Agent", ""))
        if not users.open_session(hash_of(token), user.id, self.now_ms, client, proof=challenge.id):
            raise _refused(Unproven("challenge", _NO_CHALLENGE))
        subscription = users.subscription_of(user.id)
        return Session(
            token=token,
            user=shown_as(
                SessionUser,
                user,
                plan=subscription.plan if subscription else "",
                is_admin=self.services.entitlements.is_admin(user.address),
            ),
        )

    @route("GET /api/auth/play", says="Whether there is one.", errors={429: TOO_OFTEN, 502: UNREADABLE}, is_open=True)
    async def get_play_wallet(self) -> PlayWallet:
        """The play wallet's address

        The practice market's own user, whom everybody may sign in as: the money is play money.
        """
        # Not a 404, because each page requests this when it opens, and the browser's console would show an error.
        has_one = self.services.settings.has_play_wallet
        return PlayWallet(address=await self._ask(lambda market: market.play_address()) if has_one else None)

    @route(
        "POST /api/auth/play",
        says="The signature.",
        errors={
            400: "Not a challenge of the play wallet's, or it is used or expired.",
            404: "There is no play wallet here.",
            429: TOO_OFTEN,
            502: UNREADABLE,
        },
        body=PlayBody,
        is_open=True,
    )
    async def sign_as_play_wallet(self) -> PlayProof:
        """Have the play wallet sign

        Signs the text of a challenge of the play wallet's own address, for signIn.
        """
        if not self.services.settings.has_play_wallet:
            raise not_found()
        challenge_id = self.given(PlayBody).challenge_id
        address = await self._ask(lambda market: market.play_address())
        challenge = users.usable_challenge(challenge_id, self.now_ms)
        if challenge is None or challenge.address != address:
            raise invalid([_NOT_ITS_OWN])
        # The practice market holds the wallet and only signs our challenge; then an ordinary sign-in follows.
        signature = await self._ask(lambda market: market.play_signature(challenge.message))
        return PlayProof(address=address, signature=signature)

    async def _ask(self, question: Callable[[MarketClient], Value]) -> Value:
        try:
            return await in_time(self.services.market(question), self.until)
        except VenueError as error:
            raise answer_to(error) from error


class SignOut(SignedIn):
    """The operation that ends the caller's session."""

    tag = "sign-in"

    @route("POST /api/auth/logout", says="The token is void.")
    def sign_out(self) -> Success:
        """End this session

        Ends the session of the token that it is called with; others go on.
        """
        users.end_session(self.caller.token_hash)
        return Success()


def _refused(error: Unproven) -> ApiError:
    return ApiError(401, _BAD_PROOF, message=f"The {error.part} {error}.")


def proven(challenge_id: str, address: str, signature: str, now_ms: int) -> users.Challenge:
    """Returns the challenge of this id if it is valid, made for `address`, and signed by its key. Raises Unproven.

    Each failure counts as a bad try, whether the signature was well-formed or not. The caller of this function marks
    the challenge as used.
    """
    challenge = users.usable_challenge(challenge_id, now_ms) if len(challenge_id) <= 36 else None
    if challenge is None:
        raise Unproven("challenge", _NO_CHALLENGE)
    try:
        _verify(challenge, address, signature)
    except Unproven:
        users.count_bad_try(challenge.id)
        raise
    return challenge


def _verify(challenge: users.Challenge, address: str, signature: str) -> None:
    if not _same_address(address, challenge.address):
        raise Unproven("address", "is not the one of the challenge; request a new challenge for this address")
    try:
        read = fields.signature(signature)
    except fields.PasteError as error:
        raise Unproven("signature", str(error)) from None
    if not verify_ownership(challenge.address, challenge.message, read):
        raise Unproven("signature", _fault_of(read))


def _fault_of(signature: str) -> str:
    """Returns the fault of a refused signature. Many wallets sign by ECDSA by default, so that gets its own text."""
    raw = base64.b64decode(signature.removeprefix("smp"))
    if len(raw) == _ECDSA_BYTES and raw[0] in _ECDSA_HEADERS:
        return "is not BIP-322; ask the wallet for bip322-simple"
    return (
        "is not by this address over the challenge's text; sign that text, unchanged, with this address in the wallet"
    )


def _same_address(text: str, address: str) -> bool:
    try:
        return pasted_sign_in_address(text) == address
    except AddressError:
        return False
