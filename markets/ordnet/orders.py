"""Parses ord.net's offers on collections and traits, and drafts and submits our offers and listings.

An offer is off-chain: we sign the PSBT that would fund it; the venue keeps it and broadcasts it only at a sale.

A listing has three signed PSBTs; none is broadcast before the sale. The transfer moves the item into an escrow (sighash
DEFAULT), the settlement pays us out of it (SINGLE|ANYONECANPAY), and the recovery returns the item (ALL), so that no
signature is needed to end the listing.

Every function raises Unreadable for an answer that it does not understand.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from msgspec import Struct

from markets import parse
from markets.adapter import Latest, TraitedBid, any_base64, known_draft
from markets.base import BidOrder, NotSupported, OwnBid, Trait, Unavailable
from markets.orders import BidDraft, BidToDraft, Coin, DraftPsbt, ListingDraft, ListingOrder, ListingToDraft, OwnListing
from markets.ordnet.reads import needed_slug, uuid
from markets.parse import Best, Page, Unreadable
from strategy.book import Bid

FUNDING = "funding"  # the role of the one PSBT of an offer
_CLOSED = frozenset({"accepted", "rejected", "cancelled", "expired", "invalidated"})
_MOST_ROWS = 5000
_MOST_COINS = 50  # for one offer
_LONGEST_TOKEN = 20_000
_LONGEST_LEAF = 2_000  # hex digits
_MOST_DRAFTS = 500
_MOST_INPUTS = 1000
_LAST_OUTPUT = 100_000  # a block has no room for more
_SIGHASHES = frozenset({0, 1, 2, 3, 129, 130, 131})


class Binding(Struct, frozen=True):
    """A pair of addresses with the venue's id for it."""

    id: str
    payment: str
    ordinals: str


class SigningStep(Struct, frozen=True):
    """A PSBT to be signed at `indices` with `sighash`; `entry` is the whole step, sent back with the signed PSBT."""

    psbt: str
    indices: tuple[int, ...]
    sighash: int | None
    entry: Mapping[str, Any]

    def signed(self, psbt: str) -> dict[str, Any]:
        return {**self.entry, "psbtBase64": psbt}


def targeted(value: Any) -> tuple[frozenset[Trait], ...] | None:
    """Reads the traits that an offer asks for: groups of alternatives, of which an item needs one each.

    Returns () for the whole collection, None for a target that is neither the collection nor its traits.
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
    """Reads a step to be signed by `signer` only, all inputs with the same sighash."""
    entry = parse.table(value, what)
    psbt = any_base64(entry.get("psbtBase64"), what)
    if parse.address(entry.get("signerAddress"), f"{what}: signer") != signer:
        raise Unreadable(f"{what}: somebody else is to sign")
    inputs = [parse.table(row, f"{what}: input") for row in parse.rows(entry.get("inputsToSign"), f"{what}: inputs")]
    if any(parse.address(each.get("address"), f"{what}: input") != signer for each in inputs):
        raise Unreadable(f"{what}: an input of somebody else is to be signed")
    ways = {_sighash(each.get("sigHash")) for each in inputs}
    signed = [parse.rows(each.get("signingIndexes"), f"{what}: indexes", most=_MOST_INPUTS) for each in inputs]
    indices = [vout(index, f"{what}: index") for each in signed for index in each]
    if len(ways) != 1 or not indices or len(set(indices)) != len(indices):
        raise Unreadable(f"{what}: it is not clear which inputs are to be signed, and how")
    return SigningStep(psbt, tuple(sorted(indices)), ways.pop(), {**entry, "psbtBase64": ""})


def vout(value: Any, what: str) -> int:
    number = parse.whole(value, what)
    if number > _LAST_OUTPUT:
        raise Unreadable(f"{what}: {number} is the number of no output")
    return number


def _sighash(value: Any) -> int | None:
    if value is None:
        return None
    found = parse.whole(value, "sigHash")
    if found not in _SIGHASHES:
        raise Unreadable(f"sigHash: {found} is not a sighash")
    return found


class DraftedBid(Struct, frozen=True):
    """The answer to a bid's preflight, which the submit must repeat."""

    ask: BidToDraft
    coins: tuple[Coin, ...]
    parent: str
    vout: int
    token: str
    step: SigningStep
    leaf: str


class Drafts:
    """The latest drafts, by their reference (the funding transaction's id). Thread-safe."""

    def __init__(self) -> None:
        self._kept: Latest[DraftedBid] = Latest(_MOST_DRAFTS)

    def keep(self, draft: DraftedBid) -> BidDraft:
        """Stores `draft`; returns its PSBTs to be signed."""
        self._kept.note(draft.parent, draft)
        found = draft.step
        return BidDraft(draft.parent, (DraftPsbt(FUNDING, found.psbt, found.indices, found.sighash),), draft.leaf)

    def of(self, order: BidOrder) -> DraftedBid:
        """Returns the draft of the signed `order`. Raises Refused if it is unknown or of another bid."""
        receive, psbts = order.receive, len(order.signed_psbts)
        signed = (order.price, order.slug, order.trait, order.payment, order.payment_pubkey, receive, psbts)

        def is_it(draft: DraftedBid) -> bool:
            ask = draft.ask
            return signed == (ask.price, ask.slug, ask.trait, ask.payment, ask.payment_pubkey, ask.ordinals, 1)

        return known_draft(self._kept.of(order.reference), is_it, "bid")


_HIGHEST: Best[TraitedBid] = Best(
    lambda offer: offer.bid.unit_price,
    lambda row: parse.asked_price(row.get("priceSats"), "price of an offer"),
    is_lowest=False,
    is_sorted=False,  # no order is documented
)


def bids(answer: Any, slug: str) -> Page[TraitedBid]:
    """Reads the offers on a collection and its traits in one page; skips other targets, which do not compete."""

    def name(entry: Mapping[str, Any]) -> str:
        return _name(entry, slug)

    def bid(entry: Mapping[str, Any]) -> TraitedBid | None:
        groups = targeted(entry.get("target")) if _is_live(entry) else None
        if groups is None:
            return None
        price = parse.sats(entry.get("priceSats"), "price of an offer", least=1)
        maker = parse.address(entry.get("makerAddress"), "maker of an offer")
        placed_ms = parse.moment_if_any(entry.get("createdAt"), "time of an offer")
        found = Bid(name(entry), price, Decimal(1), Decimal(price), maker, placed_ms)
        return TraitedBid(found, frozenset().union(*groups))

    read = parse.each_row(_rows(answer), "offer", bid, key=name, best=_HIGHEST)
    return read._replace(entries=tuple(sorted(read.entries, key=lambda offer: -offer.bid.price)))


def own_bids(answer: Any, slug: str, binding: Binding, all_bindings: Collection[Binding]) -> Page[OwnBid]:
    """Reads the offers of `binding` on a collection and its traits; the answer has those of all the profile's wallets.

    An offer in an unknown state or of an unknown wallet is unread, because it may be ours and live. An offer on several
    traits or values, which no task makes, gets an empty slug, like an offer on a single item.
    """

    def own(entry: Mapping[str, Any]) -> OwnBid | None:
        if not _is_live(entry) or not _is_of(entry, binding, all_bindings):
            return None
        groups = targeted(entry.get("target"))
        is_one = groups is not None and len(groups) == 1 and len(groups[0]) == 1
        trait = next(iter(groups[0])) if groups and is_one else None
        is_clear = groups == () or trait is not None
        price = parse.sats(entry.get("priceSats"), "price of an offer", least=1)
        return OwnBid(_name(entry, slug), slug if is_clear else "", "ordinals", price, Decimal(1), None, trait)

    return parse.each_row(_rows(answer), "offer", own, key=lambda row: _name(row, slug))


def _name(entry: Mapping[str, Any], slug: str) -> str:
    # Our id of an offer includes its collection, because a cancel needs both.
    return f"{slug}:{uuid(entry.get('id'), 'id of an offer')}"


def _is_of(entry: Mapping[str, Any], binding: Binding, all_bindings: Collection[Binding]) -> bool:
    """Returns whether a profile's offer belongs to `binding`. Raises Unreadable for an offer of an unknown wallet."""
    acts = entry.get("actionBindingId")
    if acts is not None:
        found = [each for each in all_bindings if each.id == acts]
    else:
        maker = parse.address(entry.get("makerAddress"), "maker of an offer")
        found = [each for each in all_bindings if maker in (each.payment, each.ordinals)]
    if not found:
        raise Unreadable("an offer of ours is of no wallet that the session has")
    return binding in found


def _rows(answer: Any) -> Sequence[Any]:
    book = parse.table(answer, "offers")
    found = parse.rows(book.get("rows"), "offers", most=_MOST_ROWS)
    if parse.whole(book.get("totalCount"), "totalCount") > len(found):
        raise Unreadable("there are more offers than it shows")
    return found


def _is_live(entry: Mapping[str, Any]) -> bool:
    status = parse.text(entry.get("status"), "state of an offer")
    if status != "active" and status not in _CLOSED:
        raise Unreadable("an offer is in a state that is not known")
    return status == "active"


def bid_preflight(ask: BidToDraft, binding: Binding) -> dict[str, Any]:
    """Returns the body of POST /collection/{slug}/collection-offers/preflight. Raises NotSupported."""
    if ask.kind != "ordinals":
        raise NotSupported("ord.net takes no bids on runes")
    if ask.quantity != 1:
        raise NotSupported("one bid at ord.net is for one item")
    return _body(ask, binding) | {"spendableUtxos": [_utxo(coin) for coin in ask.coins]}


def _body(ask: BidToDraft, binding: Binding) -> dict[str, Any]:
    return {
        "walletBindingId": binding.id,
        "ordinalsPublicKey": ask.ordinals_pubkey,
        "paymentPublicKey": ask.payment_pubkey,
        "target": {"kind": "all"}
        if ask.trait is None
        else {"kind": "traits", "traits": [{"type": ask.trait[0], "values": [ask.trait[1]]}]},
        "priceSats": ask.price,
        "offerCount": 1,
        "ladderStepSats": 0,
        "validityHours": ask.valid_hours,
    }


def bid_draft(answer: Any, ask: BidToDraft) -> DraftedBid:
    """Reads the offer that was drafted for `ask`; it must be paid with coins of `ask`."""
    offers = parse.rows(parse.table(answer, "draft").get("offers"), "drafted offers", most=1)
    if not offers:
        raise Unreadable("nothing was drafted")
    entry = parse.table(offers[0], "drafted offer")
    if parse.sats(entry.get("priceSats"), "price of a draft") != ask.price:
        raise Unreadable("the draft is of another price")
    if parse.whole(entry.get("fundingParentFeeRateSatVb"), "fee of a draft") or parse.flag(
        entry.get("fundingBroadcasted"), "draft"
    ):
        raise Unreadable("the draft costs a fee, or is on its way already")
    chosen = parse.rows(entry.get("selectedPaymentUtxos"), "coins of a draft", most=_MOST_COINS)
    coins = tuple(_coin(parse.table(row, "coin of a draft")) for row in chosen)
    if not coins or not set(coins) <= set(ask.coins):
        raise Unreadable("the draft spends coins that were not given")
    return DraftedBid(
        ask,
        coins,
        parent=parse.txid(entry.get("expectedFundingParentTxid"), "funding of a draft"),
        vout=vout(entry.get("fundingParentVout"), "funding of a draft"),
        token=parse.text(entry.get("preflightToken"), "token of a draft", longest=_LONGEST_TOKEN),
        step=step(entry.get("fundingParentStep"), ask.payment, "funding of a draft"),
        leaf=parse.script(
            parse.text(entry.get("offerScriptHex"), "script of a draft", longest=_LONGEST_LEAF), "script of a draft"
        ),
    )


def bid_submit(kept: DraftedBid, signed: str, binding: Binding) -> dict[str, Any]:
    """Returns the body of POST /collection/{slug}/collection-offers/submit: the preflight's and the signed PSBT."""
    offer = {
        "priceSats": kept.ask.price,
        "selectedPaymentUtxos": [_utxo(coin) for coin in kept.coins],
        "expectedFundingParentTxid": kept.parent,
        "fundingParentVout": kept.vout,
        "preflightToken": kept.token,
        "signedFundingParentStep": kept.step.signed(signed),
    }
    return _body(kept.ask, binding) | {"offers": [offer]}


def bid_submitted(answer: Any, kept: DraftedBid) -> str:
    """Returns our id of the new offer. Raises Unreadable unless it is the drafted offer and live."""
    offers = parse.rows(parse.table(answer, "submit").get("offers"), "offers", most=1)
    if not offers:
        raise Unreadable("no offer was made")
    entry = parse.table(offers[0], "offer")
    made = (entry.get("status"), parse.sats(entry.get("priceSats"), "price"), entry.get("fundingParentTxid"))
    if made != ("active", kept.ask.price, kept.parent):
        raise Unreadable("another offer than ours was made")
    return f"{needed_slug(kept.ask.slug)}:{uuid(entry.get('offerId'), 'id of an offer')}"


def cancelled(answer: Any, offer_id: str) -> bool:
    entry = parse.table(answer, "cancel")
    if uuid(entry.get("offerId"), "id of an offer") != offer_id:
        raise Unreadable("the answer is about another offer")
    return parse.text(entry.get("status"), "state of an offer") == "cancelled"


def _coin(entry: Mapping[str, Any]) -> Coin:
    place = f"{parse.txid(entry.get('txid'), 'coin')}:{vout(entry.get('vout'), 'coin')}"
    return Coin(place, parse.sats(entry.get("valueSats"), "value of a coin", least=1))


def _utxo(coin: Coin) -> dict[str, Any]:
    found, _, number = coin.outpoint.partition(":")
    return {"txid": found, "vout": int(number), "valueSats": coin.value}


# A listing's lifetime. The lister renews it, so no listing stays open longer than this after we stop.
_DURATION_DAYS = 30
_TRANSFER, _SETTLEMENT, _RECOVERY = 0, 131, 1  # their sighashes, as documented


class DraftedListing(Struct, frozen=True):
    """The answer to a listing's preflight, which the submit must repeat."""

    ask: ListingToDraft
    anchor: str
    transfer: SigningStep
    settlement: SigningStep
    recovery: SigningStep

    def is_of(self, order: ListingOrder) -> bool:
        """Returns whether `order` is the signed form of this draft."""
        is_whole = bool(order.signed_transfer and order.signed_recovery)
        return (order.ask, order.unsigned_psbt, is_whole) == (self.ask, self.settlement.psbt, True)

    def to_sign(self) -> ListingDraft:
        """Returns the three PSBTs, each to be signed at its first input."""
        return ListingDraft(self.settlement.psbt, (), self.transfer.psbt, self.recovery.psbt)


class ListingIds:
    """The listing of each inscription, because ending a listing takes its id and its collection's slug."""

    def __init__(self) -> None:
        self._latest: Latest[OwnListing] = Latest()
        self._made_of: Latest[str] = Latest()

    def note(self, listings: Iterable[OwnListing]) -> None:
        for listing in listings:
            self._latest.note(listing.inscription_id, listing)
            self._made_of.note(listing.listing_id, listing.inscription_id)

    def made_of(self, listing_id: str) -> str | None:
        """Returns the inscription of the listing with this id, or None."""
        return self._made_of.of(listing_id)

    def of(self, inscription_id: str, owner: str) -> OwnListing:
        """Returns the listing of this inscription by `owner`. Raises Unavailable if no read has shown it yet."""
        listing = self._latest.of(inscription_id)
        if listing is None or listing.owner != owner:
            raise Unavailable("which listing that is, is not known yet: read the listings first; nothing was sent")
        return listing


def listing_preflight(ask: ListingToDraft, binding: Binding) -> dict[str, Any]:
    """Returns the body of POST /collection/{slug}/listings/preflight."""
    return {
        "walletBindingId": binding.id,
        "ordinalsPublicKey": ask.tap_internal_key,
        "items": [{"inscriptionId": ask.inscription_id, "priceSats": ask.price}],
    }


def listing_draft(answer: Any, ask: ListingToDraft) -> DraftedListing:
    """Reads the three drafted steps; all must be signed by the owner, with the documented sighashes."""
    found = parse.table(answer, "draft")
    entry = _only_row(found.get("listings"), ask.inscription_id, "drafted listing")
    steps = {}
    for row in parse.rows(entry.get("psbts"), "steps", most=2):
        if parse.table(row, "step").get("inscriptionId", ask.inscription_id) != ask.inscription_id:
            raise Unreadable("a step is of another inscription")
        steps[parse.whole(row.get("stepIndex"), "number of a step")] = step(row, ask.owner, "step of a listing")
    if set(steps) != {0, 1}:
        raise Unreadable("a listing has two steps, numbered 0 and 1")
    drafted = DraftedListing(
        ask,
        uuid(entry.get("anchorUtxoId"), "anchor of a listing"),
        steps[0],
        steps[1],
        step(found.get("recoveryPsbt"), ask.owner, "recovery of a listing"),
    )
    ways = (drafted.transfer.sighash or 0, drafted.settlement.sighash, drafted.recovery.sighash)
    if ways != (_TRANSFER, _SETTLEMENT, _RECOVERY) or any(
        each.indices != (0,) for each in (drafted.transfer, drafted.settlement, drafted.recovery)
    ):
        raise Unreadable("a listing is to be signed in another way than is documented")
    return drafted


def listing_submit(order: ListingOrder, drafted: DraftedListing, binding: Binding) -> dict[str, Any]:
    """Returns the body of POST /collection/{slug}/listings/submit: the preflight's and the signed PSBTs."""
    inscription_id = order.ask.inscription_id
    steps = (drafted.transfer.signed(order.signed_transfer), drafted.settlement.signed(order.signed_psbt))
    return listing_preflight(order.ask, binding) | {
        "durationDays": _DURATION_DAYS,
        "anchors": [{"inscriptionId": inscription_id, "anchorUtxoId": drafted.anchor}],
        "signed": [
            {"inscriptionId": inscription_id, "psbts": [{**each, "inscriptionId": inscription_id} for each in steps]}
        ],
        "signedRecoveryPsbt": drafted.recovery.signed(order.signed_recovery),
    }


def listing_submitted(answer: Any, ask: ListingToDraft) -> OwnListing:
    """Returns the new listing. Raises Unreadable unless it is of this inscription."""
    entry = _only_row(parse.table(answer, "submit").get("listings"), ask.inscription_id, "listing")
    listing_id = uuid(entry.get("listingId"), "id of a listing")
    return OwnListing(listing_id, ask.inscription_id, ask.slug, ask.price, ask.owner)


def delisted(answer: Any, listing: OwnListing) -> bool:
    """Returns whether the answer reports this listing as ended."""
    found = parse.rows(parse.table(answer, "delist").get("listings"), "listings", most=20)
    return any(
        uuid(parse.table(entry, "listing").get("listingId"), "id of a listing") == listing.listing_id
        and entry.get("inscriptionId") == listing.inscription_id
        for entry in found
    )


def _only_row(value: Any, inscription_id: str, what: str) -> Mapping[str, Any]:
    found = parse.rows(value, what, most=1)
    entry = parse.table(found[0] if found else None, what)
    if entry.get("inscriptionId") != inscription_id:
        raise Unreadable(f"{what}: it is of another inscription")
    return entry
