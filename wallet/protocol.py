"""The protocol of the signer: each request with its answer, for both ends. Bounds are checked on reading.

A request must have each field of the bid, offer, listing, grant or withdrawal in it; defaults are for clients only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Annotated, Generic, Literal, TypeVar

from msgspec import Meta, field

from core.call import Request, Shape
from core.errors import BidkeeperError
from core.fields import MAX_ID, MAX_SATS, Id, Sats, text_of, within, words
from strategy.decision import SignedRoom

A = TypeVar("A")

Operation = Literal["bid", "list", "cancel"]
SigningKey = Literal["payment", "vault"]
Scope = Literal["global", "user", "task"]
State = Literal["run", "reduce", "halt"]
Source = Literal["bidding", "payment", "vault", "escrow"]
Form = Literal["plain", "secure", "transfer", "sale", "recovery"]

OPERATIONS: tuple[Operation, ...] = ("bid", "list", "cancel")
SCOPES: tuple[Scope, ...] = ("global", "user", "task")
STATES: tuple[State, ...] = ("run", "reduce", "halt")  # from the loosest to the strictest
SOURCES: tuple[Source, ...] = ("bidding", "payment", "vault", "escrow")
MAX_MS = 1 << 53
MAX_TEXT = 256
# The maximum step by which a task's token may rise; each start raises it by one.
TOKEN_JUMP = 1_000_000
# The maximum length of a PSBT in base64 (32 KiB), and of secure forms in addition to a listing's plain form.
MAX_PSBT_TEXT = 4 * -(-32 * 1024 // 3)
MAX_SECURE = 4
BID_INTENT_DIGITS, WITHDRAWAL_INTENT_DIGITS, LISTING_INTENT_DIGITS = 32, 40, 64
# The maximum number of PSBTs that pay for one offer, and of its coins: facts of each are read before signing.
MAX_OFFER_PSBTS = 4
MAX_COINS = 20
MAX_VENUE_TEXT = 512
MAX_FEE_PER_KVB = 10_000_000
VIRTUAL_KB = 1000
# Sats for 1000 vB. The minimum is the nodes' relay minimum; the maximum is above any lasting price of blocks.
LEAST_FEE_PER_KVB, MOST_FEE_PER_KVB = 1_000, 300_000

DISK_FULL = "disk-full"  # the tag of a refusal because the signer's disk is full


class RequestError(ValueError):
    """A request to the signer with contradictory fields; the message names them."""


class PolicyRefused(BidkeeperError):
    """The refusal of a rule; `tag` names the rule.

    `highest` is the task's highest token, if a new grant's token is not above it.
    """

    def __init__(self, tag: str, message: str, highest: int | None = None) -> None:
        super().__init__(f"{tag}: {message}")
        self.tag = tag
        self.message = message
        self.highest = highest


# The types of fields. `words` is the error text; {} becomes the field's name.
_INDEX = r"(0|[1-9][0-9]{0,9})"
# 0 to 4294967295, without leading zeros
_VOUT = (
    r"(0|[1-9][0-9]{0,8}|[1-3][0-9]{9}|4[01][0-9]{8}|42[0-8][0-9]{7}|429[0-3][0-9]{6}|4294[0-8][0-9]{5}"
    r"|42949[0-5][0-9]{4}|429496[0-6][0-9]{3}|4294967[01][0-9]{2}|42949672[0-8][0-9]|429496729[0-5])"
)
_ASCII = r"\A[\x00-\x7f]*\Z"
_BASE64 = words(f"{{}} must be base64 of at most {MAX_PSBT_TEXT} characters", max_length=MAX_PSBT_TEXT, pattern=_ASCII)
_MAYBE_TEXT = words(f"{{}} must be text of 1 to {MAX_TEXT} characters", max_length=MAX_TEXT)
_NOT_WRITTEN = "{} is not written as one"

Price = Annotated[int, within(1, MAX_SATS)]
Ms = Annotated[int, within(0, MAX_MS)]
Text = Annotated[str, text_of(1, MAX_TEXT)]
MaybeText = Annotated[str, _MAYBE_TEXT]
VenueText = Annotated[str, text_of(1, MAX_VENUE_TEXT)]
Psbt = Annotated[str, _BASE64, Meta(min_length=1)]
MaybePsbt = Annotated[str, _BASE64]
Outpoint = Annotated[str, words("outpoint is not written as one", pattern=rf"\A[0-9a-f]{{64}}:{_VOUT}\Z")]
InscriptionId = Annotated[str, words(_NOT_WRITTEN, pattern=rf"\A[0-9a-f]{{64}}i{_INDEX}\Z")]
MaybeInscriptionId = Annotated[str, words(_NOT_WRITTEN, pattern=rf"\A([0-9a-f]{{64}}i{_INDEX})?\Z")]
Leaf = Annotated[str, words(_NOT_WRITTEN, pattern=r"\A([0-9a-f]{2}){1,1000}\Z")]
Key = Annotated[SigningKey, words("{} must be payment or vault")]


def _hex(*digits: int) -> Meta:
    lengths = "|".join(f"[0-9a-f]{{{each}}}" for each in digits)
    return words(f"{{}} must be {digits[0]} lower-case hex digits", pattern=rf"\A({lengths})\Z")


BidIntent = Annotated[str, _hex(BID_INTENT_DIGITS)]
ListingIntent = Annotated[str, _hex(LISTING_INTENT_DIGITS)]
WithdrawalIntent = Annotated[str, _hex(WITHDRAWAL_INTENT_DIGITS)]
AnyIntent = Annotated[str, _hex(BID_INTENT_DIGITS, LISTING_INTENT_DIGITS, WITHDRAWAL_INTENT_DIGITS)]
Operations = Annotated[tuple[Operation, ...], words(f"{{}} must be a list of {' and '.join(OPERATIONS)}", min_length=1)]
OfferPsbts = Annotated[
    tuple[Psbt, ...],
    words(f"{{}} must be a list of 1 to {MAX_OFFER_PSBTS} PSBTs", min_length=1, max_length=MAX_OFFER_PSBTS),
]
OfferCoins = Annotated[
    tuple[Outpoint, ...],
    words(f"{{}} must be a list of 1 to {MAX_COINS} outpoints", min_length=1, max_length=MAX_COINS),
]
SecurePsbts = Annotated[
    tuple[Psbt, ...], words(f"{{}} must be a list of at most {MAX_SECURE} PSBTs", max_length=MAX_SECURE)
]
Coins = Annotated[tuple[Outpoint, ...], words("{} must be a list of outpoints")]
Trait = Annotated[tuple[Text, Text] | None, words("{} must be a type and a value")]
_OF_ID = f"must be a whole number from 1 to {MAX_ID}"
_TaskAndToken = tuple[Annotated[Id, words(f"task {_OF_ID}")], Annotated[Id, words(f"token {_OF_ID}")]]
Tokens = Annotated[tuple[_TaskAndToken, ...], words("tokens must be a list of pairs")]


class Grant(Shape, frozen=True):
    """The rights of one task at the signer until `expires_ms`.

    `user` is the sign-in address whose keys sign; bought goods go to `receive`, or with `to_vault` only to the
    user's own vault. `hardcap_sats` limits one bid, `outstanding_sats` the sum of this user's signed,
    unexpired bids and `outstanding_task_sats` that of this task's, under any token; `max_expiry_ms` limits a bid's
    signed lifetime. `inscription_id` (empty: none) may be listed, for at least `min_price_sats`; `slug` may then be
    empty. A grant replaces the task's former one; its `token` must be higher than all earlier tokens of the task.
    """

    task: Id
    user: Text
    token: Id
    venue: Text
    operations: Operations
    slug: MaybeText
    hardcap_sats: Sats
    outstanding_sats: Sats
    outstanding_task_sats: Sats
    receive: Text
    max_expiry_ms: Ms
    expires_ms: Ms
    inscription_id: MaybeInscriptionId = ""
    min_price_sats: Sats = 0
    to_vault: bool = False


class BidMessage(Shape, frozen=True):
    """One bid to be signed. `intent` is 32 hex digits and is used for this order only.

    `price` is the whole order's in sats, `quantity` canonical decimal text as in the signed message. `receive` is the
    delivery address, which must be the grant's.
    """

    intent: BidIntent
    price: Price
    quantity: Text
    expires_ms: Ms
    slug: Text
    timestamp_ms: Ms
    receive: Text


class SignedBid(Shape, frozen=True):
    """A signed bid: the text and its base64 BIP-322 signature by the user's payment address."""

    message: str
    signature: str


class OfferToSign(Shape, frozen=True):
    """One bid to be signed that PSBTs pay for. `intent` is 32 hex digits and is used for this order only.

    `price` is the whole order's in sats and `quantity` as in a bid's message. `psbts` are the venue's drafts in base64,
    `coins` (`txid:vout`) the only ones that they may spend. `leaf` is the script, in hex, by which the venue may spend
    the escrow that they pay to. `trait` is (type, value) for a bid on a trait.
    """

    intent: BidIntent
    price: Price
    quantity: Text
    expires_ms: Ms
    slug: Text
    psbts: OfferPsbts
    leaf: Leaf
    coins: OfferCoins
    trait: Trait = None


class SignedOffer(Shape, frozen=True):
    """The same PSBTs in base64 with the signatures of the user's payment address, not final, in their order."""

    psbts: tuple[str, ...]


class ListingToSign(Shape, frozen=True):
    """One listing to be signed. `intent` is 64 hex digits and is used for it only; `outpoint` is `txid:vout`.

    `price` in sats is the seller's, before the venue's fees. `psbt` and each of `secure` are the venue's drafts in
    base64: the plain form of its listing, and secure forms, whose signature covers all outputs. With a `transfer`,
    `psbt` sells the item out of the escrow that `transfer` moves it into; `recovery`, if the venue has one, returns it.
    """

    intent: ListingIntent
    inscription_id: InscriptionId
    outpoint: Outpoint
    price: Price
    psbt: Psbt
    secure: SecurePsbts = ()
    transfer: MaybePsbt = ""
    recovery: MaybePsbt = ""

    @property
    def drafts(self) -> tuple[str, ...]:
        """The plain form, then the secure forms."""
        return (self.psbt, *self.secure)

    @property
    def is_in_escrow(self) -> bool:
        """Whether the item moves into an escrow first."""
        return bool(self.transfer or self.recovery)


class SignedListing(Shape, frozen=True):
    """The same PSBTs in base64 with the signatures of the user's vault, not final, in the order of the drafts."""

    psbt: str
    secure: tuple[str, ...]
    transfer: str = ""
    recovery: str = ""


class WithdrawalToSign(Shape, frozen=True):
    """Coins of a user to be sent to their own address. `intent` is 40 hex digits and is used for it only.

    From `payment` or `vault` all of `coins` (`txid:vout`) are spent and `amount_sats` of them (None: all, less the fee)
    go to the address that `user` signs in with; the signer writes the transaction. With an `inscription_id` the one
    coin, of the vault or of an escrow of the vault's key, goes there whole, and `fee_coins` of the payment address pay
    for it. `fee_per_kvb` is sats for 1000 vB: 12.5 sat/vB are 12,500.

    From `escrow` the inscription goes back to the vault instead.

    From `bidding` `psbt` (base64) is `venue`'s draft that takes `amount_sats` out of its wallet to the payment address.
    """

    intent: WithdrawalIntent
    user: Text
    source: Annotated[Source, words(f"{{}} must be one of {', '.join(SOURCES)}")]
    coins: Coins
    fee_coins: Coins = ()
    inscription_id: MaybeInscriptionId = ""
    amount_sats: Price | None = None
    fee_per_kvb: Annotated[int, within(0, MAX_FEE_PER_KVB)] = 0
    venue: MaybeText = ""
    psbt: MaybePsbt = ""


class SignedWithdrawal(Shape, frozen=True):
    """A signed withdrawal: either `transaction` in hex, ready for the network, or a `psbt` that the venue completes.

    `sent_sats` arrive, `fee_sats` go to the network. Later signatures do not change `txid`.
    """

    txid: str
    transaction: str
    psbt: str
    sent_sats: int
    fee_sats: int


class Amounts(Shape, frozen=True):
    """The sats of a withdrawal that would arrive, and its network fee."""

    sent_sats: int
    fee_sats: int


class Finding(Shape, frozen=True):
    """A rule's finding. `holds` is None if it could not be judged; `why` is empty if it holds."""

    rule: str
    holds: bool | None
    why: str


class Side(Shape, frozen=True):
    """An input or output of the draft. `sats` is None if the draft does not have them. `address` may be empty.

    `outpoint` (`txid:vout`) is an input's.
    """

    sats: int | None
    script: str
    address: str
    is_ours: bool
    is_covered: bool
    outpoint: str = ""


class Judgement(Shape, frozen=True):
    """The judgement of one draft. `is_signed`: every rule holds, so that the draft would be signed now.

    `payout_sats` would be paid to us, `least_sats` is the minimum; None if an earlier rule fails.
    """

    form: Form
    is_signed: bool
    findings: tuple[Finding, ...]
    inputs: tuple[Side, ...]
    outputs: tuple[Side, ...]
    payout_sats: int | None
    least_sats: int | None


class Judgements(Shape, frozen=True):
    """The judgements of a listing's drafts, the plain one first."""

    judgements: tuple[Judgement, ...]


class UserKeys(Shape, frozen=True):
    """A user's own addresses: payment (P2WPKH), vault (P2TR). Keys in hex: compressed, and x-only internal.

    `escrows` are the escrow addresses of the vault's listed items, each with its venue; the vault's key opens them. A
    venue has two if the operator set another key than the published one.
    """

    payment: str
    payment_pubkey: str
    vault: str
    vault_pubkey: str
    escrows: Mapping[str, str] = field(default_factory=dict)


class SignerStatus(Shape, frozen=True):
    """The signer's state. `play`: its keys are for play money; `reason`: why it is not ready (else empty)."""

    state: Literal["ready", "reconciling", "locked"]
    play: bool
    reason: str = ""


class ControlState(Shape, frozen=True):
    """A switch for bids and listings: of all (empty `subject`), of a user (sign-in address) or a task (its id as text).

    Bids and listings are signed in `run` only, cancels in every state.
    """

    scope: Scope
    subject: str
    state: State


class SignerControls(Shape, frozen=True, rename={"states": "controls", "has_halt_file": "file"}):
    """`states`: all states except `run`, in any order. `has_halt_file`: the operator's file stops all bids."""

    states: tuple[ControlState, ...]
    has_halt_file: bool


class Secret(Shape, frozen=True):
    secret: str


class Signature(Shape, frozen=True):
    signature: str


class SignedPsbt(Shape, frozen=True):
    psbt: str


class Higher(Shape, frozen=True):
    """The tasks that had a higher token than the given one, each with its token."""

    higher: tuple[tuple[int, int], ...]


class Rooms(Shape, frozen=True):
    rooms: tuple[SignedRoom, ...]


class LowestPrice(Shape, frozen=True):
    price: int | None


class WasSigned(Shape, frozen=True):
    signed: bool


class Unlock(Request[None], frozen=True, tag="unlock"):
    passphrase: Text


class AskStatus(Request[SignerStatus], frozen=True, tag="status"):
    """Needs no key."""


class AskAddresses(Request[UserKeys], frozen=True, tag="addresses"):
    user: Text


class GiveGrant(Request[Secret], frozen=True, tag="grant"):
    grant: Grant


class RevokePlace(Request[None], frozen=True, tag="revoke_place"):
    task: Id
    token: Id


class EndRights(Request[None], frozen=True, tag="end_rights"):
    task: Id
    token: Id


class EndAllRights(Request[Higher], frozen=True, tag="end_all_rights"):
    tokens: Tokens


_CONTROL = words(f"scope must be one of {', '.join(SCOPES)}, state one of {', '.join(STATES)}")


class SetControl(Request[None], frozen=True, tag="control"):
    scope: Annotated[Scope, _CONTROL]
    subject: MaybeText
    state: Annotated[State, _CONTROL]


class AskControls(Request[SignerControls], frozen=True, tag="controls"):
    """Needs no key."""


class UnderGrant(Request[A], Generic[A], frozen=True):
    """A task's request, with its grant's token and secret."""

    task: Id
    token: Id
    secret: Text


class AskRooms(UnderGrant[Rooms], frozen=True, tag="rooms"):
    """Asks for the use of the grant's ceilings."""


class AskRoomsUnder(Request[Rooms], frozen=True, tag="rooms_under"):
    task: Annotated[int, within(0, MAX_ID)]
    user: Text
    outstanding_task_sats: Sats
    outstanding_sats: Sats


class SignBid(UnderGrant[SignedBid], frozen=True, tag="sign_bid"):
    bid: BidMessage


class SignOffer(UnderGrant[SignedOffer], frozen=True, tag="sign_offer"):
    offer: OfferToSign


class SignListing(UnderGrant[SignedListing], frozen=True, tag="sign_listing"):
    listing: ListingToSign


class JudgeListing(Request[Judgements], frozen=True, tag="judge"):
    user: Text
    venue: Text
    min_price_sats: Sats
    listing: ListingToSign


class SignWithdrawal(Request[SignedWithdrawal], frozen=True, tag="sign_withdrawal"):
    withdrawal: WithdrawalToSign


class JudgeWithdrawal(Request[Amounts], frozen=True, tag="judge_withdrawal"):
    withdrawal: WithdrawalToSign


class SignChallenge(UnderGrant[Signature], frozen=True, tag="sign_challenge"):
    challenge: VenueText
    key: Key = "payment"


class SignBrake(Request[Signature], frozen=True, tag="sign_brake"):
    user: Text
    venue: Text
    challenge: VenueText


class SignSignIn(UnderGrant[Signature], frozen=True, tag="sign_sign_in"):
    text: VenueText
    key: Key


class SignDelist(UnderGrant[SignedPsbt], frozen=True, tag="sign_delist"):
    outpoint: Outpoint
    psbt: Psbt


class AskLowestListing(Request[LowestPrice], frozen=True, tag="lowest_listing"):
    outpoint: Outpoint


class AskWasSigned(Request[WasSigned], frozen=True, tag="was_signed"):
    intent: AnyIntent


def per_kvb(rate: Decimal) -> int:
    """Converts a fee rate from sats per virtual byte to sats per 1000, rounded up."""
    return int((rate * VIRTUAL_KB).to_integral_value(ROUND_CEILING))


_NO_INTENT = "0" * LISTING_INTENT_DIGITS
_COVER: dict[Form, str] = {
    "plain": "input {at} and output {at}. Anybody can add inputs and outputs",
    "secure": "input {at} and all outputs. Anybody can add inputs",
    "transfer": "all inputs and outputs",
    "sale": "input {at} and output {at}. The venue, which must sign, too, can add inputs and outputs",
    "recovery": "all inputs and outputs",
}
_NAMES: dict[Form, str] = {
    "plain": "plain listing (SINGLE|ANYONECANPAY 0x83)",
    "secure": "secure listing (ALL|ANYONECANPAY 0x81)",
    "transfer": "transfer of a listing's item into its escrow (ALL or DEFAULT)",
    "sale": "sale out of that escrow (SINGLE|ANYONECANPAY 0x83, by its leaf)",
    "recovery": "recovery out of that escrow (ALL or DEFAULT)",
}


def to_judge(
    inscription_id: str,
    outpoint: str,
    price: int,
    psbt: str,
    secure: Iterable[str],
    transfer: str = "",
    recovery: str = "",
) -> ListingToSign:
    """Makes a listing that is only judged, and so uses no intent."""
    return ListingToSign(_NO_INTENT, inscription_id, outpoint, price, psbt, tuple(secure), transfer, recovery)


def verdict(judgements: Sequence[Judgement]) -> str:
    """Returns a line that says whether a listing would be signed, by the first judgement, its plain form's."""
    plain = judgements[0]
    wrong = [finding for finding in plain.findings if finding.holds is False]
    if plain.is_signed or not wrong:
        return "the signer would sign it" if plain.is_signed else "the signer cannot judge it"
    return f"the signer would refuse it ({wrong[0].rule}: {wrong[0].why})"


def in_words(judgement: Judgement) -> list[str]:
    """Returns lines for a human: inputs, outputs, the cover of a signature, and each rule that does not hold."""
    lines = [_NAMES[judgement.form]]
    ours = None
    for at, side in enumerate(judgement.inputs):
        lines.append(f"  input {at}   {_side(side, 'yours')}   {side.outpoint}")
        ours = at if side.is_covered and ours is None else ours
    for at, side in enumerate(judgement.outputs):
        mark = "   <- covered" if side.is_covered else ""
        lines.append(f"  output {at}  {_side(side, 'YOURS')}{mark}")
    if ours is not None:
        lines.append(f"  a signature would cover {_COVER[judgement.form].format(at=ours)}. It is good until")
        lines.append(f"  {judgement.inputs[ours].outpoint} is spent.")
    if judgement.least_sats is not None:
        lines.append(f"  you get {_sats(judgement.payout_sats)}, and must get {_sats(judgement.least_sats)} at least")
    lines += [
        f"  {finding.rule}: {'NO' if finding.holds is False else 'not judged'}: {finding.why}"
        for finding in judgement.findings
        if finding.holds is not True
    ]
    lines.append("  every rule holds: it would be signed" if judgement.is_signed else "  it would NOT be signed")
    return lines


def _side(side: Side, ours: str) -> str:
    whose = ours if side.is_ours else "somebody's"
    return f"{whose:<10} {side.address or side.script or 'an unknown script'}  {_sats(side.sats)}"


def _sats(sats: int | None) -> str:
    return "unknown sats" if sats is None else f"{sats:,} sats"
