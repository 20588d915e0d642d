"""The protocol of the signer: values, and their strict reading on the signer's side."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from core.errors import BidkeeperError

Operation = Literal["bid", "list", "cancel"]
SigningKey = Literal["payment", "vault"]

Scope = Literal["global", "user", "task"]
State = Literal["run", "reduce", "halt"]

OPERATIONS: tuple[Operation, ...] = ("bid", "list", "cancel")
SIGNING_KEYS: tuple[SigningKey, ...] = ("payment", "vault")
SCOPES: tuple[Scope, ...] = ("global", "user", "task")
STATES: tuple[State, ...] = ("run", "reduce", "halt")  # each stricter than the one before
MAX_SATS = 21_000_000 * 100_000_000
MAX_MS = 1 << 53
MAX_ID = (1 << 63) - 1
MAX_TEXT = 256
# How far a task's token may rise in one step: starts raise it by one.
TOKEN_JUMP = 1_000_000
# A PSBT is read up to 32 KiB, here in base64; and how many a venue may want signed beside the listing's own.
MAX_PSBT_TEXT = 4 * -(-32 * 1024 // 3)
MAX_SECURE = 4
LISTING_INTENT_DIGITS = 64
# PSBTs that pay for one offer, and coins that may be spent for it: each is looked up before it is signed.
MAX_OFFER_PSBTS = 4
MAX_COINS = 20
MAX_VENUE_TEXT = 512

DISK_FULL = "disk-full"  # the tag of what is refused for want of room on the signer's disk

_INSCRIPTION = re.compile(r"[0-9a-f]{64}i(?:0|[1-9][0-9]{0,9})")
_LEAF = re.compile(r"([0-9a-f]{2}){1,1000}")
_OUTPOINT = re.compile(r"[0-9a-f]{64}:(?:0|[1-9][0-9]{0,9})")


class RequestError(ValueError):
    """A request to the signer with a missing, unknown or misshapen field; the message names it."""


class PolicyRefused(BidkeeperError):
    """The refusal of a rule; `tag` names the rule.

    `highest` is the highest token seen for the task, where a new grant's is not above that.
    """

    def __init__(self, tag: str, message: str, highest: int | None = None) -> None:
        super().__init__(f"{tag}: {message}")
        self.tag = tag
        self.message = message
        self.highest = highest


@dataclass(frozen=True, slots=True)
class Grant:
    """The rights of one task at the signer until `expires_ms`.

    `user` is the sign-in address whose keys sign; bought goods go to `receive`, or with `to_vault` to the user's own
    vault and nowhere else. `hardcap_sats` bounds one bid, `outstanding_sats` the sum of this user's signed bids that
    have not expired and `outstanding_task_sats` that of this task's, under whatever token they were signed;
    `max_expiry_ms` bounds a bid's signed life.
    `inscription_id` (empty: none) may be listed, for `min_price_sats` at least; `slug` may then be empty.
    A grant replaces the task's former one; its `token` must be higher than any seen for the task.
    """

    task: int
    user: str
    token: int
    venue: str
    operations: tuple[Operation, ...]
    slug: str
    hardcap_sats: int
    outstanding_sats: int
    outstanding_task_sats: int
    receive: str
    max_expiry_ms: int
    expires_ms: int
    inscription_id: str = ""
    min_price_sats: int = 0
    to_vault: bool = False


@dataclass(frozen=True, slots=True)
class BidMessage:
    """One bid to be signed. `intent` is 32 hex digits and names the order for ever.

    `price` is the whole order's sats, `quantity` canonical decimal text as it stands in the signed message. `receive`
    is the address that the marketplace will be told; the grant says which one it must be.
    """

    intent: str
    price: int
    quantity: str
    expires_ms: int
    slug: str
    timestamp_ms: int
    receive: str


@dataclass(frozen=True, slots=True)
class SignedBid:
    """A signed bid: the text and its base64 BIP-322 signature by the user's payment address."""

    message: str
    signature: str


@dataclass(frozen=True, slots=True)
class OfferToSign:
    """One bid to be signed that PSBTs pay for. `intent` is 32 hex digits and names the order for ever.

    `price` is the whole order's sats and `quantity` as in a bid's message. `psbts` are the venue's drafts in base64,
    `coins` (`txid:vout`) all that they may spend. `leaf` is the script, in hex, by which the venue may spend the escrow
    that they pay to. `trait` is (type, value) for a bid on a trait.
    """

    intent: str
    price: int
    quantity: str
    expires_ms: int
    slug: str
    psbts: tuple[str, ...]
    leaf: str
    coins: tuple[str, ...]
    trait: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class SignedOffer:
    """The same PSBTs in base64 with the signatures of the user's payment address, not final, in their order."""

    psbts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListingToSign:
    """One listing to be signed. `intent` is 64 hex digits and names it for ever; `outpoint` is `txid:vout`.

    `price` in sats is the seller's before the venue's fees. `psbt` and each of `secure` are the venue's drafts in
    base64: the plain form of its listing, and the forms that bind more of the sale. With a `transfer`, `psbt` sells the
    item out of the escrow that `transfer` moves it into, and `recovery`, where the venue has one, brings it back.
    """

    intent: str
    inscription_id: str
    outpoint: str
    price: int
    psbt: str
    secure: tuple[str, ...] = ()
    transfer: str = ""
    recovery: str = ""

    @property
    def drafts(self) -> tuple[str, ...]:
        """The plain form and the secure ones, in the order in which their kinds are named."""
        return (self.psbt, *self.secure)

    @property
    def is_in_escrow(self) -> bool:
        """Whether the item moves into an escrow first."""
        return bool(self.transfer or self.recovery)


@dataclass(frozen=True, slots=True)
class SignedListing:
    """The same PSBTs in base64 with the signatures of the user's vault, not final, in the order of the drafts."""

    psbt: str
    secure: tuple[str, ...]
    transfer: str = ""
    recovery: str = ""


@dataclass(frozen=True, slots=True)
class UserKeys:
    """A user's own addresses: payment (P2WPKH), vault (P2TR). Keys in hex: compressed, and x-only internal.

    `escrows` are the addresses through which the vault's listed items pass, each with its venue; the vault's key opens
    them. A venue has two where the operator names another key than it publishes.
    """

    payment: str
    payment_pubkey: str
    vault: str
    vault_pubkey: str
    escrows: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SignerStatus:
    """The signer's state. `play`: its keys are play money's; `reason`: why it is not ready (else empty)."""

    state: Literal["ready", "reconciling", "locked"]
    play: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ControlState:
    """A switch for bids: for all (`subject` is empty), for a user (sign-in address) or a task (its id as text).

    Only in `run` they are; cancels are signed in every state.
    """

    scope: Scope
    subject: str
    state: State


def take(request: Mapping[str, Any], *names: str) -> list[Any]:
    """Returns the values of these fields; each must be there, and no other. Raises RequestError."""
    unknown = request.keys() - set(names)
    if unknown:
        raise RequestError(f"unknown field {min(unknown)[:MAX_TEXT]!r}")
    for name in names:
        if name not in request:
            raise RequestError(f"{name} is missing")
    return [request[name] for name in names]


def whole(name: str, value: Any, low: int, high: int) -> int:
    """Returns `value` if it is a whole number from `low` to `high` and no boolean. Raises RequestError."""
    if type(value) is not int or not low <= value <= high:
        raise RequestError(f"{name} must be a whole number from {low} to {high}")
    return value


def flag(name: str, value: Any) -> bool:
    """Returns `value` if it is true or false. Raises RequestError."""
    if type(value) is not bool:
        raise RequestError(f"{name} must be true or false")
    return value


def text(name: str, value: Any) -> str:
    """Returns `value` if it is 1 to MAX_TEXT characters of valid Unicode. Raises RequestError."""
    if type(value) is not str or not 0 < len(value) <= MAX_TEXT:
        raise RequestError(f"{name} must be text of 1 to {MAX_TEXT} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise RequestError(f"{name} must be valid Unicode") from None
    return value


def venue_text(name: str, value: Any) -> str:
    """Returns `value` if it is text of a length that a venue's challenge or sign-in may have. Raises RequestError."""
    if type(value) is not str or not 0 < len(value) <= MAX_VENUE_TEXT:
        raise RequestError(f"{name} must be text of 1 to {MAX_VENUE_TEXT} characters")
    return value


def text_or_nothing(name: str, value: Any) -> str:
    """Returns `text`, or "". Raises RequestError."""
    return "" if value == "" else text(name, value)


def hex_text(name: str, value: Any, digits: int) -> str:
    """Returns `value` if it is `digits` lower-case hex digits. Raises RequestError."""
    if type(value) is not str or len(value) != digits or not set(value) <= set("0123456789abcdef"):
        raise RequestError(f"{name} must be {digits} lower-case hex digits")
    return value


def task_and_token(task: Any, token: Any) -> tuple[int, int]:
    """Returns a task's id and token, both at least 1. Raises RequestError."""
    return whole("task", task, 1, MAX_ID), whole("token", token, 1, MAX_ID)


def tasks_and_tokens(value: Any) -> list[tuple[int, int]]:
    """Returns many of them, from a list of pairs. Raises RequestError."""
    if not isinstance(value, list) or any(not isinstance(pair, list) or len(pair) != 2 for pair in value):
        raise RequestError("tokens must be a list of pairs")
    return [task_and_token(*pair) for pair in value]


def read_grant(value: Any) -> Grant:
    """Reads a grant as it came over the socket. Addresses and slug are checked by the signer. Raises RequestError."""
    if not isinstance(value, dict):
        raise RequestError("grant must be an object")
    fresh = dict(zip(_names(Grant), take(value, *_names(Grant)), strict=True))
    operations = fresh["operations"]
    if not isinstance(operations, list) or not operations or any(item not in OPERATIONS for item in operations):
        raise RequestError(f"operations must be a list of {' and '.join(OPERATIONS)}")
    task, token = task_and_token(fresh["task"], fresh["token"])
    return Grant(
        task=task,
        user=text("user", fresh["user"]),
        token=token,
        venue=text("venue", fresh["venue"]),
        operations=tuple(operation for operation in OPERATIONS if operation in operations),
        slug=text_or_nothing("slug", fresh["slug"]),
        hardcap_sats=whole("hardcap_sats", fresh["hardcap_sats"], 0, MAX_SATS),
        outstanding_sats=whole("outstanding_sats", fresh["outstanding_sats"], 0, MAX_SATS),
        outstanding_task_sats=whole("outstanding_task_sats", fresh["outstanding_task_sats"], 0, MAX_SATS),
        receive=text("receive", fresh["receive"]),
        max_expiry_ms=whole("max_expiry_ms", fresh["max_expiry_ms"], 0, MAX_MS),
        expires_ms=whole("expires_ms", fresh["expires_ms"], 0, MAX_MS),
        inscription_id=inscription_or_nothing(fresh["inscription_id"]),
        min_price_sats=whole("min_price_sats", fresh["min_price_sats"], 0, MAX_SATS),
        to_vault=flag("to_vault", fresh["to_vault"]),
    )


def read_bid(value: Any) -> BidMessage:
    """Reads a bid as it came over the socket; its slug and quantity are checked by the grammar. Raises RequestError."""
    if not isinstance(value, dict):
        raise RequestError("bid must be an object")
    fresh = dict(zip(_names(BidMessage), take(value, *_names(BidMessage)), strict=True))
    return BidMessage(
        intent=hex_text("intent", fresh["intent"], 32),
        price=whole("price", fresh["price"], 1, MAX_SATS),
        quantity=text("quantity", fresh["quantity"]),
        expires_ms=whole("expires_ms", fresh["expires_ms"], 0, MAX_MS),
        slug=text("slug", fresh["slug"]),
        timestamp_ms=whole("timestamp_ms", fresh["timestamp_ms"], 0, MAX_MS),
        receive=text("receive", fresh["receive"]),
    )


def read_offer(value: Any) -> OfferToSign:
    """Reads an offer as it came over the socket; its PSBTs are read by the checks. Raises RequestError."""
    if not isinstance(value, dict):
        raise RequestError("offer must be an object")
    fresh = dict(zip(_names(OfferToSign), take(value, *_names(OfferToSign)), strict=True))
    psbts, coins = fresh["psbts"], fresh["coins"]
    if not isinstance(psbts, list) or not 0 < len(psbts) <= MAX_OFFER_PSBTS:
        raise RequestError(f"psbts must be a list of 1 to {MAX_OFFER_PSBTS} PSBTs")
    if not isinstance(coins, list) or not 0 < len(coins) <= MAX_COINS:
        raise RequestError(f"coins must be a list of 1 to {MAX_COINS} outpoints")
    outpoints = tuple(read_outpoint(coin) for coin in coins)
    if len(set(outpoints)) != len(outpoints):
        raise RequestError("coins must be different ones")
    return OfferToSign(
        intent=hex_text("intent", fresh["intent"], 32),
        price=whole("price", fresh["price"], 1, MAX_SATS),
        quantity=text("quantity", fresh["quantity"]),
        expires_ms=whole("expires_ms", fresh["expires_ms"], 0, MAX_MS),
        slug=text("slug", fresh["slug"]),
        psbts=tuple(psbt_text("psbts", psbt) for psbt in psbts),
        leaf=_shaped("leaf", fresh["leaf"], _LEAF),
        coins=outpoints,
        trait=_trait_or_nothing(fresh["trait"]),
    )


def read_listing(value: Any) -> ListingToSign:
    """Reads a listing as it came over the socket; its PSBTs are read by the checks. Raises RequestError."""
    if not isinstance(value, dict):
        raise RequestError("listing must be an object")
    fresh = dict(zip(_names(ListingToSign), take(value, *_names(ListingToSign)), strict=True))
    secure = fresh["secure"]
    if not isinstance(secure, list) or len(secure) > MAX_SECURE:
        raise RequestError(f"secure must be a list of at most {MAX_SECURE} PSBTs")
    return ListingToSign(
        intent=hex_text("intent", fresh["intent"], LISTING_INTENT_DIGITS),
        inscription_id=_shaped("inscription_id", fresh["inscription_id"], _INSCRIPTION),
        outpoint=read_outpoint(fresh["outpoint"]),
        price=whole("price", fresh["price"], 1, MAX_SATS),
        psbt=psbt_text("psbt", fresh["psbt"]),
        secure=tuple(psbt_text("secure", psbt) for psbt in secure),
        transfer=_psbt_or_nothing("transfer", fresh["transfer"]),
        recovery=_psbt_or_nothing("recovery", fresh["recovery"]),
    )


def read_outpoint(value: Any) -> str:
    """Returns `txid:vout` as explorers write it, in its only spelling. Raises RequestError."""
    outpoint = _shaped("outpoint", value, _OUTPOINT)
    whole("outpoint", int(outpoint.partition(":")[2]), 0, 0xFFFFFFFF)
    return outpoint


def read_signing_key(value: Any) -> SigningKey:
    """Returns which of a user's keys is to sign. Raises RequestError."""
    if value not in SIGNING_KEYS:
        raise RequestError(f"key must be {' or '.join(SIGNING_KEYS)}")
    key: SigningKey = value
    return key


def read_control(scope: Any, subject: Any, state: Any) -> ControlState:
    """Reads a control as it came over the socket. A user's address is checked by the signer. Raises RequestError."""
    if scope not in SCOPES or state not in STATES:
        raise RequestError(f"scope must be one of {', '.join(SCOPES)}, state one of {', '.join(STATES)}")
    if scope == "global":
        if subject != "":
            raise RequestError("subject must be empty when the scope is global")
    elif scope == "task":
        number = text("subject", subject)
        if not number.isascii() or not number.isdecimal() or number != str(whole("subject", int(number), 1, MAX_ID)):
            raise RequestError("subject must be a task's id")
    return ControlState(scope, subject if scope != "user" else text("subject", subject), state)


def _trait_or_nothing(value: Any) -> tuple[str, str] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        raise RequestError("trait must be a type and a value")
    return text("trait", value[0]), text("trait", value[1])


def inscription_or_nothing(value: Any) -> str:
    """Returns an inscription's id, or "". Raises RequestError."""
    return "" if value == "" else _shaped("inscription_id", value, _INSCRIPTION)


def _shaped(name: str, value: Any, shape: re.Pattern[str]) -> str:
    if type(value) is not str or not shape.fullmatch(value):
        raise RequestError(f"{name} is not written as one")
    return value


def psbt_text(name: str, value: Any) -> str:
    """Returns `value` if its length allows it to be a PSBT in base64. Raises RequestError."""
    if type(value) is not str or not 0 < len(value) <= MAX_PSBT_TEXT or not value.isascii():
        raise RequestError(f"{name} must be base64 of at most {MAX_PSBT_TEXT} characters")
    return value


def _psbt_or_nothing(name: str, value: Any) -> str:
    return "" if value == "" else psbt_text(name, value)


def _names(kind: type[Grant] | type[BidMessage] | type[OfferToSign] | type[ListingToSign]) -> list[str]:
    return [field.name for field in fields(kind)]
