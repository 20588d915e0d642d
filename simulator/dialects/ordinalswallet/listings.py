"""Ordinals Wallet's writes: sign-in, listings in the standard form, and their return."""

from __future__ import annotations

import re
from base64 import b64decode
from typing import Any

from simulator.bitcoin.chain import address_of, outpoint_of
from simulator.calls import AFTER_THE_DEED, Fault, Operation
from simulator.dialects.ordinalswallet.base import VENUE, OrdinalsWalletHandler, escrow_id, mainnet_address
from simulator.dialects.satflow.base import peek
from simulator.listing.listings import AskTerms, Cause, Unlistable
from simulator.listing.plain_listings import base64_of, check_plain, draft_plain, list_plain
from simulator.listing.poison import poisoned
from simulator.listing.psbt import SignedSale, signed_sales
from simulator.orders import Order, Refusal
from simulator.wire import MAX_WHOLE, ApiError, bad, text, whole

# The smallest output that the network relays to any kind of address.
LEAST_PRICE = 546
MAX_ITEMS = 100
_MAX_PSBT_TEXT = 200_000
_NONCE = re.compile(r"[0-9a-f]{16,64}")
_KEY = re.compile(r"(?:0[23])?([0-9a-f]{64})")
_WORDS: dict[Cause, tuple[int, str, str]] = {
    "unknown": (404, "inscription_not_found", "Inscription not found"),
    "holder": (400, "not_the_owner", "The inscription is not in this wallet"),
    "unconfirmed": (400, "unconfirmed", "The inscription is not confirmed yet"),
    "crowded": (400, "multiple_inscriptions", "The output holds something else too"),
    "script": (400, "unsupported_address", "Only inscriptions at a taproot address can be listed here"),
    "key": (400, "invalid_public_key", "The public key is not that of the address"),
}


class Session(OrdinalsWalletHandler):
    """`POST /auth/session`: a token of 24 hours for a signed text with a fresh nonce."""

    operation: Operation = "challenge"
    method = "POST"

    def subject(self) -> str:
        return peek(self.request.body, "address")

    def answer(self) -> Any:
        body = self.body()
        address = text(body.get("address"), "address")
        nonce = text(body.get("nonce"), "nonce")
        if not _NONCE.fullmatch(nonce):
            raise bad("Invalid nonce")
        issued_ms = whole(body.get("issued_at"), "issued_at", 0, MAX_WHOLE)
        signature = text(body.get("signature"), "signature", 2_000)
        if mainnet_address(address) != address:
            raise bad("Invalid Address")
        found = self.world.wallet_sessions.open(address, nonce, issued_ms, signature)
        if found is None:
            raise ApiError(401, "Invalid wallet signature")
        return {"token": found[0], "address": address, "expires_at": found[1]}


class BuildEscrows(OrdinalsWalletHandler):
    """`POST /wallet/escrow-bulk`: the PSBT, in hex, that lists inscriptions of one wallet. Changes nothing."""

    operation: Operation = "list"
    method = "POST"

    def subject(self) -> str:
        try:
            ids = self.body().get("inscriptions")
        except ApiError:
            return "(unreadable)"
        return str(ids[0])[:200] if isinstance(ids, list) and ids else ""

    def draw_fault(self) -> Fault | None:
        faults = self.world.faults
        return faults.draw("draft") or faults.draw("list", but=AFTER_THE_DEED)

    def answer(self) -> Any:
        wanted = _wanted(self.body())
        try:
            draft = draft_plain(self.engine, wanted)
        except Unlistable as refusal:
            raise _said(refusal) from None
        draft = poisoned(draft, self.world.poison, self.engine, wanted[0])
        return {"psbt": b64decode(draft.encode()).hex()}


class SubmitEscrows(OrdinalsWalletHandler):
    """`POST /market/escrow-bulk {psbt}`: takes a signed PSBT with listings; listing again replaces."""

    operation: Operation = "list"
    method = "POST"

    def subject(self) -> str:
        try:
            coin = self.engine.chain.coins.get(outpoint_of(self._sales()[0].source))
        except (ApiError, Refusal):
            return "(unreadable)"
        return coin.inscriptions[0] if coin and coin.inscriptions else ""

    def _sales(self) -> list[SignedSale]:
        psbt = base64_of(text(self.body().get("psbt"), "psbt", _MAX_PSBT_TEXT), "the PSBT")
        return signed_sales(psbt, "the PSBT")

    def answer(self) -> Any:
        engine = self.world.engine
        late = self.fault.delay_seconds if self.fault and self.mode == "late" else 0
        visible_ms = engine.now_ms() + round(late * 1000) if late else 0
        try:
            found = [(self._terms(sale), sale) for sale in self._sales()]
            # All or none.
            for terms, sale in found:
                check_plain(engine, terms, sale)
            orders = [list_plain(engine, terms, sale, visible_ms=visible_ms) for terms, sale in found]
        except Unlistable as refusal:
            raise _said(refusal) from None
        except Refusal as refusal:
            raise bad(str(refusal)) from None
        answer: dict[str, Any] = {"success": True}
        return answer | {"escrow_id": escrow_id(orders[0].order_id)} if len(orders) == 1 else answer

    def _terms(self, sale: SignedSale) -> AskTerms:
        """Returns the terms that a half states itself: it has no other source."""
        engine = self.world.engine
        coin = engine.chain.coins.get(outpoint_of(sale.source))
        receive = address_of(sale.payout.script_pubkey)
        if coin is None or not coin.inscriptions or coin.address is None:
            raise Refusal("the PSBT spends no output with an inscription")
        if coin.spent_by is not None:
            raise Refusal("the inscription's output is spent")
        if receive is None or sale.payout.value < LEAST_PRICE:
            raise Refusal("the PSBT pays nobody, or too little")
        return AskTerms(coin.inscriptions[0], sale.payout.value, coin.address, receive, venue=VENUE)


class CancelEscrow(OrdinalsWalletHandler):
    """`POST /market/cancel-escrow`: takes back a listing of the session token's owner."""

    operation: Operation = "cancel"
    method = "POST"

    def subject(self) -> str:
        found = peek(self.request.body, "inscription_id")
        return peek(self.request.body, "outpoint") if found in ("", "(unreadable)") else found

    def answer(self) -> Any:
        body = self.body()
        names = [name for name in ("inscription_id", "outpoint") if body.get(name) is not None]
        if len(names) != 1:
            raise ApiError(400, "Give an inscription id or an outpoint", "listing_identifier_required")
        wanted = text(body[names[0]], names[0])
        owner = self.world.wallet_sessions.owner(text(body.get("signature"), "signature", _MAX_PSBT_TEXT))
        if owner is None:
            raise ApiError(401, "Invalid or expired session", "invalid_session")
        ask = self._listing(wanted, names[0], owner)
        if ask is None or (ask.papers and names[0] != "outpoint"):  # a protected one is known by its output
            raise ApiError(404, "This item is not listed", "listing_not_found")
        if ask.maker != owner:
            raise ApiError(401, "This wallet does not own this item", "not_the_owner")
        engine = self.world.engine
        if self.fault and self.mode == "late":
            engine.cancel_at(ask, engine.now_ms() + round(self.fault.delay_seconds * 1000))
        elif self.mode != "cancel_lie":
            engine.cancel(ask)
        if not ask.papers:
            return {"success": True}
        about = {"escrow_id": escrow_id(ask.order_id), "secure_v2": True, "previous_state": "listed"}
        return {"success": True, "transition": "cancelled", "listing": about | {"state": "cancelled"}}

    def _listing(self, wanted: str, by: str, owner: str) -> Order | None:
        engine = self.world.engine
        if by == "outpoint":
            coin = engine.chain.coins.get(wanted)
            return engine.ask_on(wanted, coin.address or owner, VENUE) if coin else None
        return next((ask for ask in engine.asks_of(wanted) if ask.venue == VENUE), None)


def _wanted(body: dict[str, Any]) -> list[AskTerms]:
    inscriptions, prices = body.get("inscriptions"), body.get("prices")
    if not isinstance(inscriptions, list) or not isinstance(prices, list) or len(inscriptions) != len(prices):
        raise bad("inscriptions and prices must be lists of one length")
    if not 1 <= len(inscriptions) <= MAX_ITEMS or len(set(map(str, inscriptions))) != len(inscriptions):
        raise bad(f"inscriptions: 1 to {MAX_ITEMS}, each once")
    seller = mainnet_address(text(body.get("from"), "from"))
    receive = body.get("receive_address")
    key = _KEY.fullmatch(text(body.get("public_key"), "public_key"))
    if key is None:
        raise ApiError(400, "Invalid public key", "invalid_public_key")
    paid_at = mainnet_address(text(receive, "receive_address")) if receive is not None else seller
    return [
        AskTerms(text(inscription, "inscriptions"), whole(price, "prices", LEAST_PRICE), seller, paid_at, key[1], VENUE)
        for inscription, price in zip(inscriptions, prices, strict=True)
    ]


def _said(refusal: Unlistable) -> ApiError:
    status, code, words = _WORDS[refusal.cause]
    return ApiError(status, words, code)
