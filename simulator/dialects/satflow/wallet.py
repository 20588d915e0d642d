"""Satflow's reads of one wallet: challenge, contents, bidding wallet, own bids."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from simulator.bitcoin.chain import belongs_to
from simulator.calls import Operation
from simulator.dialects.satflow import seen
from simulator.dialects.satflow.base import VENUE, SatflowHandler, attribute, sign_in_address
from simulator.holdings import follow
from simulator.orders import Market, Order, ticker_key
from simulator.pictures import media_of
from simulator.wallets import Item
from simulator.wire import EXACT, ApiError, bad, iso

MAX_PAGE = 100


class Challenge(SatflowHandler):
    """`GET /challenge?address=`: the text to sign for cancels and other proofs."""

    operation: Operation = "challenge"

    def subject(self) -> str:
        return self.asked("address")

    def answer(self) -> Any:
        return {"success": True, **self.data()} if self.is_as_seen else super().answer()

    def data(self) -> dict[str, Any]:
        return {"challenge": self.world.challenges.issue(self.query_address())}


class VerifyChallenge(SatflowHandler):
    """`GET /challenge/verify?address=&signature=`."""

    operation: Operation = "challenge"

    def subject(self) -> str:
        return self.asked("address")

    def data(self) -> dict[str, Any]:
        address = self.query_address()
        # A base64 plus sign arrives as a blank when the client did not escape it.
        signature = self.query("signature").replace(" ", "+")
        valid = self.world.challenges.answered(address, signature)
        return {"validity": valid, "publicKey": _public_key(signature) if valid else None}


class BiddingWallet(SatflowHandler):
    """`GET /address/bidding-wallet`: the address to fund for collection and rune bids; as seen in `multiSig` alone."""

    operation: Operation = "balance"

    def subject(self) -> str:
        return self.asked("paymentAddress")

    def data(self) -> dict[str, Any]:
        payment = sign_in_address(self.query("paymentAddress"), "paymentAddress")
        ordinals = sign_in_address(self.query("ordinalsAddress"), "ordinalsAddress")
        public_key = self.query("paymentPubkey")
        if not belongs_to(public_key, payment):
            raise bad("paymentPubkey is not the key of paymentAddress")
        # The live market: a name learnt by a frozen copy would be lost with it.
        address = self.world.engine.wallets.bidding_wallet(payment, ordinals, public_key)
        follow(self.world.engine, payment)
        self.world.engine.changes += 1
        found = {"userPaymentAddress": payment, "multiSig": {"address": address}}
        return found if self.is_as_seen else found | {"address": address}


class WalletContents(SatflowHandler):
    """`GET /address/wallet-contents`: inscriptions and runes of an address, paged by cursor."""

    operation: Operation = "wallet"

    def subject(self) -> str:
        return self.asked("address")

    def data(self) -> dict[str, Any]:
        address = self.query_address()
        wanted = self.get_query_argument("itemType", "all")
        if wanted not in ("inscription", "rune", "all"):
            raise bad("itemType must be inscription, rune or all")
        cursor = self.query_whole("cursor", 0, 0, 10_000_000)
        limit = self.query_whole("limit", MAX_PAGE, 1, MAX_PAGE)
        ordinals = self._ordinals(address) if wanted != "rune" else []
        runes = self._runes(address) if wanted != "inscription" else []
        page, end = (ordinals + runes)[cursor : cursor + limit], cursor + limit
        items = [row for row in page if "rune_amount" not in row["token"]]
        is_listed = self.get_query_argument("listedOnly", "") == "true"
        return {
            "results": {
                "ordinals": self.staged("own_listings" if is_listed else "wallet", items, items),
                "runes": [row for row in page if "rune_amount" in row["token"]],
            },
            "pending_orders": [],
            "nextCursor": end if end < len(ordinals) + len(runes) else None,
        }

    def _ordinals(self, address: str) -> list[dict[str, Any]]:
        slug = self.get_query_argument("collection", "").lower()
        listed_only = self.get_query_argument("listedOnly", "") == "true"
        held = self.engine.wallets.inscriptions.get(address, {}).values()
        rows = [self._ordinal(item) for item in held if not slug or item.collection == slug]
        return [row for row in rows if row["listing"] or not listed_only]

    def _ordinal(self, item: Item) -> dict[str, Any]:
        ask = self.engine.listing_of(item.id, VENUE)
        market = self.engine.market("ordinals", item.collection)
        return {
            "collection": {"id": item.collection, "name": market.name if market else item.collection},
            "token": {
                "name": item.name,
                "inscription_id": item.id,
                "inscription_number": item.number,
                "image_url": f"https://ordinals.com/content/{item.id}",
                "content_type": media_of(item.id),
            },
            "listing": self._listing(ask),
            "market": None,
        }

    def _listing(self, ask: Order | None) -> dict[str, Any] | None:
        if self.is_as_seen:
            # Of one that is over something is still told.
            ended = {"price": "1000", "cancelledAt": iso(self.engine.now_ms())}
            return {"_id": ask.order_id, "price": str(ask.price), "cancelledAt": None} if ask else ended
        return {"price": ask.price, "secureListing": True} if ask else None

    def _runes(self, address: str) -> list[dict[str, Any]]:
        rows = []
        for ticker, tokens in sorted(self.engine.wallets.runes.get(address, {}).items()):
            market = self.engine.market("runes", ticker)
            places = market.divisibility if market else 0
            output = f"{ticker_key(ticker).encode().hex():0<64.64}:0"
            token = {
                "name": ticker,
                "rune_utxo_id": output,
                "rune_amount": str(int(tokens.scaleb(places, EXACT))),
                "rune_amount_formatted": tokens,
                "rune_divisibility": places,
                "rune_symbol": ticker[:1],
                "output": output,
            }
            rows.append({"token": token, "listing": None})
        return rows


class OwnBids(SatflowHandler):
    """`GET /address/bids?address=`: open bids of a payment address; 404 when there are none."""

    operation: Operation = "own_bids"

    def subject(self) -> str:
        return self.asked("address")

    def data(self) -> dict[str, Any]:
        bids = self.engine.bids_of(self.query_address(), venue=VENUE)
        if not bids:
            raise ApiError(404, "address not found or no bids", "NOT_FOUND")
        rows = [self._row(bid) for bid in bids]
        if self.is_as_seen:
            rows = [seen.own_bid(bid, row) for bid, row in zip(bids, rows, strict=True)]
        told = list(self.staged("own_bids", rows, bids))
        if self.is_as_seen:
            told.append(rows[0] | {"bid_id": {"$oid": "0" * 24}, "cancelledAt": iso(self.engine.now_ms())})
        return {"results": told}

    def _row(self, bid: Order) -> dict[str, Any]:
        market = self.engine.market(bid.kind, bid.slug)
        rune = bid.kind == "runes"
        return {
            "bid_id": bid.order_id,
            "inscription_id": None,
            "price": bid.price,
            "type": "rune" if rune else "collection",
            "isNonCustodial": False,
            "expiration": bid.expires_ms,
            "attribute": attribute(bid.trait),
            "inscription_metadata": None if rune else {"collection": {"id": bid.slug}},
            "runes_metadata": {"runes": [_rune(bid, market)]} if rune and market else None,
        }


def _rune(bid: Order, market: Market) -> dict[str, Any]:
    raw = int(bid.quantity.scaleb(market.divisibility, EXACT))
    return {"name": market.slug, "amount": str(raw), "divisibility": market.divisibility}


def _public_key(signature: str) -> str | None:
    """Returns the key that ends a P2WPKH witness; a taproot witness shows none."""
    try:
        witness = base64.b64decode(signature.removeprefix("smp"), validate=True)
    except (ValueError, binascii.Error):
        return None
    key = witness[-33:]
    return key.hex() if witness[:1] == b"\x02" and witness[-34:-33] == b"\x21" else None
