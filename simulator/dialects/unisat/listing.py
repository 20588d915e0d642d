"""UniSat's writes: put on sale, change the price, put off sale, each drafted and then confirmed.

To put a listing off without the chain (`offChain`) its seller signs a transaction that is never sent: the whole listed
output back to the seller.
"""

from __future__ import annotations

import re
from typing import Any

from embit.transaction import TransactionOutput

from simulator.bitcoin.chain import script_of
from simulator.bitcoin.taproot import is_owner_signed
from simulator.dialects.unisat.actions import REPRICED
from simulator.dialects.unisat.base import VENUE, refused
from simulator.dialects.unisat.listing_base import (
    BAD_PARAMS,
    LISTED,
    PRICE_CHANGED,
    REPEATED,
    AuctionHandler,
    DraftHandler,
    hex_of,
    in_codes,
    mainnet,
    price_of,
    signed_psbt,
)
from simulator.listing.auctions import Asked
from simulator.listing.listings import AskTerms, Unlistable
from simulator.listing.plain_listings import draft_plain, list_plain
from simulator.listing.poison import poisoned
from simulator.listing.psbt import Draft, SignedSale, read, signature_of, signed_sales
from simulator.orders import Refusal
from simulator.wire import ApiError, text

_KEY = re.compile(r"(?:0[23])?([0-9a-f]{64})")
_DEFAULT = 0x00
# Virtual bytes of a key path spend with one input and one output.
_TX_SIZE = 111


class CreatePutOn(DraftHandler):
    """`POST .../create_put_on`: the PSBT that lists an inscription, in hex, and the id of its auction."""

    about = ("inscriptionId",)

    def data(self) -> dict[str, Any]:
        terms = self._terms(self.body())
        ask = self.world.engine.ask_of(terms.inscription, VENUE)
        if ask is not None and ask.outpoint:
            raise refused(LISTED, "Inscription is already listed on the market")
        with in_codes():
            draft = draft_plain(self.world.engine, [terms])
        auction_id = self.world.engine.new_id()
        self.world.auctions.ask(auction_id, "put_on", Asked(terms, draft))
        shown = poisoned(draft, self.world.poison, self.world.engine, terms)
        return {"auctionId": auction_id, "psbt": hex_of(shown), "signIndexes": list(shown.to_sign)}

    def _terms(self, body: dict[str, Any]) -> AskTerms:
        inscription = text(body.get("inscriptionId"), "inscriptionId")
        if body.get("nftType") not in (None, "collection"):
            raise refused(-107, "Invalid NFT")
        if body.get("marketType") != "fixedPrice":
            raise refused(BAD_PARAMS, "User params error: marketType must be fixedPrice here")
        key = _KEY.fullmatch(text(body.get("pubkey"), "pubkey"))
        if key is None:
            raise refused(BAD_PARAMS, "User params error: pubkey")
        price = price_of(body)
        with in_codes():
            holder = self.world.engine.wallets.holder_of(inscription)
            if holder is None:
                raise Unlistable("unknown", "inscription not found")
        receive = mainnet(body["btcAddress"], "btcAddress") if body.get("btcAddress") is not None else holder[0]
        return AskTerms(inscription, price, holder[0], receive, key[1], VENUE)


class ConfirmPutOn(AuctionHandler):
    """`POST .../confirm_put_on`: takes the signed PSBT of a draft."""

    def data(self) -> dict[str, Any]:
        body, engine = self.body(), self.world.engine
        auction_id = text(body.get("auctionId"), "auctionId")
        if engine.order(auction_id) is not None:
            raise refused(REPEATED, "Repeated operation")
        asked = self.drafted(auction_id)
        listed = engine.ask_of(asked.terms.inscription, VENUE)
        if listed is not None and listed.outpoint:
            raise refused(LISTED, "Inscription is already listed on the market")
        with in_codes():
            list_plain(engine, asked.terms, _half(body), order_id=auction_id, visible_ms=self.late_ms())
        self.world.auctions.place(auction_id, "put_on")
        return {}


class CreateModifyPrice(DraftHandler):
    """`POST .../create_modify_price`: the PSBT that lists at another price."""

    def data(self) -> dict[str, Any]:
        body = self.body()
        auction_id, price = text(body.get("auctionId"), "auctionId"), price_of(body)
        ask = self.listing(auction_id)
        first = self.world.auctions.placed(auction_id)
        key = first.internal_key if first else ""
        terms = AskTerms(ask.inscription or "", price, ask.maker, ask.receive, key, VENUE)
        with in_codes():
            draft = draft_plain(self.world.engine, [terms])
        self.world.auctions.ask(auction_id, "modify_price", Asked(terms, draft, ask.price))
        shown = poisoned(draft, self.world.poison, self.world.engine, terms)
        return {"psbt": hex_of(shown), "signIndexes": list(shown.to_sign)}


class ConfirmModifyPrice(AuctionHandler):
    """`POST .../confirm_modify_price`: the auction goes on at its new price."""

    step = "modify_price"

    def data(self) -> dict[str, Any]:
        body = self.body()
        auction_id = text(body.get("auctionId"), "auctionId")
        ask, asked = self.listing(auction_id), self.drafted(auction_id)
        if ask.price != asked.former_price:
            raise refused(PRICE_CHANGED, "The price has updated by the seller. Please refresh the page and try again")
        if not isinstance(body.get("fromBase64"), bool):
            raise refused(BAD_PARAMS, "User params error: fromBase64 is required")
        with in_codes():
            late_ms = self.late_ms()
            list_plain(
                self.world.engine, asked.terms, _half(body), order_id=auction_id, visible_ms=late_ms, note=REPRICED
            )
        self.world.auctions.place(auction_id, "modify_price")
        return {}


class CreatePutOff(DraftHandler):
    """`POST .../create_put_off` with `offChain`: the PSBT to sign to take a listing back."""

    operation = "cancel"

    def data(self) -> dict[str, Any]:
        body = self.body()
        ask = self.listing(text(body.get("auctionId"), "auctionId"))
        _off_chain(body)
        home = mainnet(body["nftAddress"], "nftAddress") if body.get("nftAddress") is not None else ask.maker
        coin = self.world.engine.chain.coins[ask.outpoint]
        first = self.world.auctions.placed(ask.order_id)
        key = first.internal_key if first else ""
        terms = AskTerms(ask.inscription or "", ask.price, ask.maker, ask.receive, key, VENUE)
        draft = Draft((coin,), (TransactionOutput(coin.value, script_of(home)),), _DEFAULT, internal_key=key)
        self.world.auctions.ask(ask.order_id, "put_off", Asked(terms, draft))
        shown = poisoned(draft, self.world.poison, self.world.engine, terms)
        return {
            "psbt": hex_of(shown),
            "txSize": _TX_SIZE,
            "btcSignIndexes": [],
            "nftSignIndexes": list(shown.to_sign),
        }


class ConfirmPutOff(AuctionHandler):
    """`POST .../confirm_put_off` with `offChain`: the listing ends; no transaction is sent, so its txid is empty."""

    operation = "cancel"
    step = "put_off"

    def data(self) -> dict[str, Any]:
        body, engine = self.body(), self.world.engine
        ask = self.listing(text(body.get("auctionId"), "auctionId"))
        _off_chain(body)
        asked = self.drafted(ask.order_id)
        with in_codes():
            psbt = read(signed_psbt(body), "psbt")
            if psbt.tx.serialize() != asked.draft.transaction.serialize():
                raise Refusal("the PSBT is not that of the draft")
            if not is_owner_signed(psbt.tx, asked.draft.coins[0].output, signature_of(psbt.inputs[0])):
                raise Refusal("the PSBT is not signed by the seller")
        if self.late_ms():
            engine.cancel_at(ask, self.late_ms())
        elif self.mode != "cancel_lie":
            engine.cancel(ask)
            self.world.auctions.place(ask.order_id, "put_off")
        return {"txid": ""}


def _half(body: dict[str, Any]) -> SignedSale:
    """Reads the one signed half in a confirmation. Raises Refusal."""
    sales = signed_sales(signed_psbt(body), "psbt")
    if len(sales) != 1:
        raise Refusal("psbt must have one input and one output")
    return sales[0]


def _off_chain(body: dict[str, Any]) -> None:
    if body.get("offChain") is not True:
        raise ApiError(501, "only offChain is implemented by the practice market")
