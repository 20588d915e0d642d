"""The caller's profile and own ceilings, and the approval of changes that a bearer token alone must not make.

The sign-in address signs a text that states the whole change, so that the signature is valid for nothing else.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from core.fields import MAX_SATS, Address, Count, Sats, Time, iso, words
from markets.base import NotFound, VenueError
from models import accounts, users
from models.accounts import READ
from models.ledger import orders
from models.tasks import tasks
from models.tasks.tasks import BIDDING
from models.users import OwnCeilings, User, own_ceilings
from server.auth import TOO_OFTEN, Challenge, SignInCall, Unproven, proven
from server.control import heed_limits
from server.http import blocking
from server.http.answers import INVALID, SIGNER_AWAY, TOO_MANY_LOOKUPS, UNREADABLE, ApiError, invalid
from server.http.base import SignedIn, route
from server.http.shapes import Answer, AnyText, Body, Wrong, plain_text, read_by, shown_as, whole
from server.task_handler import venues_with_bidding_wallets
from wallet.address import AddressError, pasted_sign_in_address
from wallet.protocol import UserKeys

_MAX_NAME = 100
_FOREIGN = "signature: its challenge was not asked for with your bearer token; ask for one of this address with it"
_USED = "signature: its challenge was used meanwhile; ask for a new one and sign its text"
_UNPROVEN = "approvalSignature: its challenge does not approve this change; ask for one that does and sign its text"


def _display_name(value: Any) -> str:
    found = plain_text(value)
    if not 0 < len(found) <= _MAX_NAME:
        raise Wrong(f"must have 1 to {_MAX_NAME} characters, or be null")
    return found


def _ceiling(value: Any) -> int:
    found = whole(value)
    if not 1 <= found <= MAX_SATS:
        raise Wrong(f"must be a whole number from 1 to {MAX_SATS}, or null")
    return found


_Name = Annotated[str, Meta(min_length=1), read_by(_display_name)]
_Ceiling = Annotated[int, Meta(ge=1, le=MAX_SATS), read_by(_ceiling)]
_MaxExposure = Annotated[
    _Ceiling | UnsetType | None, words("Sats of all open orders together; null: what the plan allows.")
]
_MaxHardcap = Annotated[
    _Ceiling | UnsetType | None,
    words("Sats of one order, whatever its task's `hardcapSats`; null: no such ceiling."),
]


class Consent(Body, frozen=True, kw_only=True):
    """The approval of the change in the same body: its challenge's id, and the sign-in address's signature."""

    approval_id: AnyText | None = None
    approval_signature: AnyText | None = None


class ProfileBody(Consent, frozen=True, kw_only=True):
    """PATCH /api/auth/me"""

    display_name: _Name | UnsetType | None = UNSET
    ordinals_address: AnyText | None = None
    challenge_id: AnyText | None = None
    signature: AnyText | None = None


class ApprovalBody(Body, frozen=True, kw_only=True):
    """POST /api/auth/approval: the change that is to be approved, in the fields that make it."""

    max_exposure: _MaxExposure = UNSET
    max_hardcap: _MaxHardcap = UNSET
    ordinals_address: AnyText | None = None


class CeilingsBody(Consent, frozen=True, kw_only=True):
    """PUT /api/ceilings: lower ones need no approval."""

    max_exposure: _MaxExposure = UNSET
    max_hardcap: _MaxHardcap = UNSET


class PlanDetails(Answer, frozen=True, kw_only=True):
    """A plan's limits and price."""

    name: str
    max_tasks: int
    max_bids_per_task: int
    price_sats: int
    duration_days: int


class Subscription(Answer, frozen=True, kw_only=True):
    """The user's plan and its end."""

    plan: str
    expires_at: Time
    status: Literal["active", "expired"]


class Stats(Answer, frozen=True, kw_only=True):
    """The use of the plan."""

    task_count: int
    max_tasks: int
    exposure: Annotated[Count, words("Sats of all orders that are not closed.")]
    open_bids: Annotated[Count, words("All orders that are not closed; none of a dry run.")]
    max_exposure: int


class Profile(Answer, frozen=True, kw_only=True):
    """The caller's account."""

    id: int
    address: Address
    ordinals_address: Annotated[Address, words("Where bought inscriptions and runes go.")]
    display_name: str | None
    plan: str
    plan_details: PlanDetails
    is_admin: bool
    subscription: Subscription
    stats: Stats
    created_at: Time


class Ceilings(Answer, frozen=True, kw_only=True):
    """The user's own ceilings. They hold in every decision, reservation and signature."""

    max_exposure: Annotated[int | None, words("Sats of all open orders together; null: the plan's.")]
    max_hardcap: Annotated[int | None, words("Sats of one order; null: none.")]
    plan_max_exposure: Sats


class Me(SignedIn):
    """The operations on the caller's profile."""

    tag = "sign-in"

    @route("GET /api/auth/me", READ, says="Profile, plan and its use.")
    def get_profile(self) -> Profile:
        """Who I am

        With the limits of the plan, and how much of them is used.
        """
        return self._shown(self.user)

    @route(
        "PATCH /api/auth/me",
        says="The profile as it is now.",
        errors={
            400: INVALID,
            409: "The ordinals address is in use: bids are open, a task runs, or the bidding wallet holds a balance.",
            429: TOO_MANY_LOOKUPS,
            502: UNREADABLE,
            503: SIGNER_AWAY,
        },
    )
    async def change_profile(self, given: ProfileBody) -> Profile:
        """Change the name or the ordinals address

        Another `ordinalsAddress` comes with `approvalId` and `approvalSignature` of an approval (openApproval), and
        with `challengeId` and `signature` of a challenge for that address unless it is the sign-in address.
        """
        if given.ordinals_address is not None:
            await self._move_to(ordinals_address(given.ordinals_address), given)
        elif {given.challenge_id, given.signature, given.approval_id, given.approval_signature} != {None}:
            raise invalid(["ordinalsAddress: is required with a proof"])
        if given.display_name is not UNSET:
            accounts.set_display_name(self.user.id, given.display_name)
        return self._shown(User.get_by_id(self.user.id))

    async def _move_to(self, address: str, given: ProfileBody) -> None:
        """Changes the ordinals address. Raises ApiError: 400, 409, or 502 when the balance cannot be read."""
        if address == self.user.ordinals_address:
            return
        # The sign-in address must approve each change, and another address must be proved to be the caller's.
        proofs = [] if address == self.user.address else [self._proof(address, given.challenge_id, given.signature)]
        proofs.append(consent_to(self, words_of_move(address), given))
        try:
            accounts.check_not_trading(self.user.id)
            await self._check_no_balance()
            accounts.set_ordinals_address(self.user.id, address, proofs, self.now_ms)
        except accounts.StillTrading as error:
            raise ApiError(409, "The ordinals address is in use", message=f"{error}; stop first") from None
        except accounts.ProofUsed:
            raise invalid([_USED]) from None

    def _proof(self, address: str, challenge_id: str | None, signature: str | None) -> str:
        given = {"challengeId": challenge_id, "signature": signature}
        if missing := [f"{name}: is required to prove the address" for name, value in given.items() if value is None]:
            raise invalid(missing)
        try:
            challenge = proven(challenge_id or "", address, signature or "", self.now_ms)
        except Unproven as error:
            raise invalid([error.detail("signature")]) from None
        if challenge.user_id != self.user.id:
            raise invalid([_FOREIGN])
        return str(challenge.id)

    async def _check_no_balance(self) -> None:
        """Raises ApiError while there is a balance, because the bidding wallet depends on both addresses."""
        keys = await self.ask_signer(lambda signer: signer.addresses(self.user.address))
        receive = self.user.ordinals_address
        for venue in venues_with_bidding_wallets(self.services.settings):
            await self._check_no_balance_at(venue, keys, receive)

    async def _check_no_balance_at(self, venue: str, keys: UserKeys, receive: str) -> None:
        try:
            balance = await self.act(
                lambda market: market.at(venue).balance(keys.payment, receive, keys.payment_pubkey, 0)
            )
        except NotFound:
            return
        except VenueError as error:
            raise blocking.answer_to(error) from error
        if balance.sats > 0:
            raise ApiError(
                409,
                "The bidding wallet is not empty",
                message=f"{balance.address} holds {balance.sats} sats and belongs to the old ordinals address.",
            )

    def _shown(self, user: User) -> Profile:
        subscription = users.subscription_of(user.id)
        key, plan = subscription.plan if subscription else "", self.plan
        expires_ms = subscription.expires_ms if subscription else 0
        return shown_as(
            Profile,
            user,
            plan=key,
            plan_details=shown_as(PlanDetails, plan),
            is_admin=self.services.entitlements.is_admin(user.address),
            subscription=Subscription(
                plan=key,
                expires_at=iso(expires_ms),
                status="active" if expires_ms > self.now_ms else "expired",
            ),
            stats=Stats(
                task_count=tasks.count(user.id, BIDDING),
                max_tasks=plan.max_tasks,
                exposure=orders.exposure(user.id),
                open_bids=orders.open_count(user.id),
                max_exposure=own_ceilings(user).plan(plan).max_exposure,
            ),
        )


class Approvals(SignedIn, SignInCall):
    """The operation that opens approvals."""

    tag = "sessions"

    @route(
        "POST /api/auth/approval",
        says="The text, to be signed by the sign-in address.",
        errors={400: INVALID, 429: TOO_OFTEN},
    )
    def open_approval(self, given: ApprovalBody) -> Challenge:
        """Ask for the text that approves a change

        What a stolen token must not do needs the sign-in address's signature each time. The text says the whole change
        and is good for nothing else. Its id and signature go into the change itself, as `approvalId` and
        `approvalSignature`.
        """
        ceilings = _changed(given, own_ceilings(self.user))
        if (given.ordinals_address is None) == (ceilings is None):
            raise invalid(["body: must have either ordinalsAddress, or maxExposure or maxHardcap"])
        if given.ordinals_address is not None:
            change = words_of_move(ordinals_address(given.ordinals_address))
        elif ceilings is not None:
            change = words_of_ceilings(ceilings)
        name = f"{self.services.settings.sign_in_name} (only to approve that {change})"
        return self.offer(self.user.address, self.user.id, name, change)


class Bounds(SignedIn):
    """The operations on the caller's own ceilings. Any session may lower them; raising needs the sign-in address."""

    tag = "sessions"

    @route("GET /api/ceilings", says="The ceilings.")
    def get_ceilings(self) -> Ceilings:
        """My own ceilings

        Null where none is set: then the plan alone holds.
        """
        return self._shown(self.user)

    @route("PUT /api/ceilings", says="The ceilings as they are now.", errors={400: INVALID})
    async def set_ceilings(self, given: CeilingsBody) -> Ceilings:
        """Lower my own ceilings, or raise them with a signature

        They hold in every decision, reservation and signature; workers are started anew with them. To raise or take
        away one needs an approval of exactly this change.
        """
        former = own_ceilings(self.user)
        wanted = _changed(given, former)
        if wanted is None:
            raise invalid(["body: must have maxExposure or maxHardcap"])
        consents = []
        if wanted.allows_more_than(former):
            consents.append(consent_to(self, words_of_ceilings(wanted), given))
        try:
            accounts.set_own_ceilings(self.user.id, wanted, consents, self.now_ms)
        except (accounts.ConsentMissing, accounts.ProofUsed):  # used by another request meanwhile
            raise invalid(["approvalId: is used, or the ceilings were changed at the same time"]) from None
        await heed_limits(self.services, self.user.id, self.now_ms)
        return self._shown(User.get_by_id(self.user.id))

    def _shown(self, user: User) -> Ceilings:
        return Ceilings(
            max_exposure=user.max_exposure, max_hardcap=user.max_hardcap, plan_max_exposure=self.plan.max_exposure
        )


def _changed(given: ApprovalBody | CeilingsBody, former: OwnCeilings) -> OwnCeilings | None:
    """Returns the ceilings after a change of `former`; omitted ones stay. None if the change names no ceiling."""
    if given.max_exposure is UNSET and given.max_hardcap is UNSET:
        return None
    return OwnCeilings(
        former.max_exposure if given.max_exposure is UNSET else given.max_exposure,
        former.max_hardcap if given.max_hardcap is UNSET else given.max_hardcap,
    )


def ordinals_address(text: str) -> str:
    """Reads an address into its stored form. Raises ApiError (400)."""
    try:
        return pasted_sign_in_address(text)
    except AddressError as error:
        raise invalid([f"ordinalsAddress: {error}"]) from None


def words_of_move(address: str) -> str:
    """Returns the text to sign for a change of the ordinals address to `address`."""
    return f"bought items go to {address}"


def words_of_ceilings(wanted: OwnCeilings) -> str:
    """Returns the text to sign for new ceilings; it states both."""
    total = "what the plan allows" if wanted.max_exposure is None else f"{wanted.max_exposure} sats"
    each = "any sum" if wanted.max_hardcap is None else f"{wanted.max_hardcap} sats"
    return f"bids may be up to {total} in all and {each} each"


def consent_to(handler: SignedIn, change: str, given: Consent) -> str:
    """Returns the id of the approval by which the sign-in address agrees to `change`. Raises ApiError (400)."""
    proof = {"approvalId": given.approval_id, "approvalSignature": given.approval_signature}
    if missing := [f"{name}: is required for this change" for name, value in proof.items() if value is None]:
        raise invalid(missing)
    user = handler.user
    try:
        challenge = proven(given.approval_id or "", user.address, given.approval_signature or "", handler.now_ms)
    except Unproven as error:
        raise invalid([error.detail("approvalSignature")]) from None
    if challenge.user_id != user.id or challenge.approves != change:
        raise invalid([_UNPROVEN])
    return str(challenge.id)
