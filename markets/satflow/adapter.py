"""The adapter for Satflow (API 1.1.4) and for the practice market with its dialect. Each method is one HTTP request.

An offer on a single inscription is a PSBT, not a message; its slug is the inscription's id. Offers do not expire. A
bidder's new offer on an inscription replaces the earlier one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any

from core.settings import PLAY_MARKET
from markets import base, orders, parse
from markets.adapter import Adapter, TraitedAsk, TraitedBid, any_base64, in_base64
from markets.base import LONGEST_REFERENCE, Kind, NotFound, NotSupported, Refused, Unknown
from markets.http import Http, Permit, error_text, refusal
from markets.parse import Cursor, Page, Unread, Unreadable, number_of, of_read, of_write
from markets.satflow import books, items
from markets.satflow.books import PRACTICE, ReadBack, Units, payload
from strategy.book import plain

_MOST_INPUTS = 1000
_INSCRIPTION = re.compile(r"[0-9a-f]{64}i(0|[1-9][0-9]{0,9})", re.ASCII)


class Satflow(Adapter):
    """The venue's adapter; books and sales are numbered from page 1, wallets from cursor 0.

    `base` ends before the documented routes (`https://api.satflow.com/v1`). `rune_price` is the unit of a rune bid's
    price ("order" or "token"), which the documentation does not settle.
    """

    def __init__(self, base: str, api_key: str, name: str, rune_price: str | None = None) -> None:
        self.name = name
        is_play = name == PLAY_MARKET
        self._units = PRACTICE if is_play else Units("item", rune_price or "order")
        self._rune_price = "order" if is_play else rune_price
        self._read_back = ReadBack()
        self._http = Http(base, {"x-api-key": api_key})

    def floors(self, slugs: Sequence[str], kind: Kind) -> dict[str, base.Floor | Unread]:
        answer = self._http.read("/collection-stats/floors", {"type": kind, "slugs": ",".join(slugs)})
        return of_read(lambda: books.floors(answer, slugs, kind))

    def asks(self, slug: str, cursor: Cursor) -> Page[TraitedAsk]:
        page = number_of(cursor, 1)
        answer = self._http.read("/activity/listings", _book(slug, page, "asc"))
        return of_read(lambda: books.asks(answer, slug, page))

    def bids(self, slug: str, kind: Kind, cursor: Cursor) -> Page[TraitedBid]:
        page = number_of(cursor, 1)
        # Runes by unit price, because the best price per token may otherwise be beyond the last page that is read.
        by = "unitPrice" if kind == "runes" else "price"
        answer = self._http.read("/activity/bids", _book(slug, page, "desc", by))
        return of_read(lambda: books.bids(answer, slug, kind, page, self._units))

    def traits(self, slug: str) -> dict[str, dict[str, int]]:
        """Returns a collection's traits, {type: {value: count of items}}. Raises as `catalogue` does."""
        answer = self._http.read("/collection", {"collection_id": slug, "categoryAttributes": "true"})
        return of_read(lambda: items.catalogue(answer, slug))

    def sales(self, slug: str, kind: Kind, cursor: Cursor) -> Page[base.Sale]:
        """Reads a page of sales. It requests inactive orders, because a filled order is not active."""
        return self._sales(slug, kind, number_of(cursor, 1), {"active": "false"})

    def sales_unasked(self, slug: str, kind: Kind) -> Page[base.Sale]:
        """Reads the first page of sales without the filter of `sales`, to check whether that filter hides sales."""
        return self._sales(slug, kind, 1, {})

    def _sales(self, slug: str, kind: Kind, page: int, wanted: Mapping[str, str]) -> Page[base.Sale]:
        params = {"collectionSlug": slug, "sortBy": "fillCompletedAt", "sortDirection": "desc", **wanted}
        answer = self._http.read("/activity/sales", params | _page(page))
        return of_read(lambda: items.sales(answer, slug, kind, page))

    def own_bids(self, wallet: str, cursor: Cursor = None, slugs: Collection[str] = ()) -> Page[base.OwnBid]:
        """Returns all live bids in one page. The venue answers 404 for a wallet without bids."""
        try:
            answer = self._http.read("/address/bids", {"address": wallet})
        except NotFound:
            return Page((), None)
        found = of_read(lambda: books.own_bids(answer, self._units))
        return found._replace(entries=self._read_back.checked(wallet, found.entries))

    def challenge(self, address: str) -> str:
        answer = self._http.read("/challenge", {"address": address})

        def read() -> str:
            told = parse.table(payload(answer), "challenge").get("challenge")
            # Only the check ignores line breaks; the signer gets the text unchanged.
            flat = told.replace("\r\n", " ").replace("\n", " ") if isinstance(told, str) else told
            parse.text(flat, "challenge", longest=1000)
            return str(told)

        return of_read(read)

    def bidding_wallet(self, payment: str, receive: str, pubkey: str) -> str:
        params = {"ordinalsAddress": receive, "paymentAddress": payment, "paymentPubkey": pubkey}
        answer = self._http.read("/address/bidding-wallet", params)
        found = of_read(lambda: _bidding_wallet(answer))
        if found is None:
            raise NotFound("this address has no bidding wallet yet")
        return found

    def wallet_contents(self, address: str, cursor: Cursor) -> Page[base.WalletItem]:
        answer = self._contents(address, cursor)
        return of_read(lambda: items.wallet_items(answer, is_first=not cursor))

    def own_listings(self, owner: str, cursor: Cursor) -> Page[orders.OwnListing]:
        answer = self._contents(owner, cursor, listedOnly="true")
        return of_read(lambda: items.own_listings(answer, owner, is_first=not cursor))

    def _contents(self, address: str, cursor: Cursor, **wanted: str) -> Any:
        params = {"address": address, "itemType": "inscription", "cursor": str(number_of(cursor, 0)), "limit": "100"}
        return self._http.read("/address/wallet-contents", params | wanted)

    def draft_listing(self, ask: orders.ListingToDraft) -> orders.ListingDraft:
        body = _listing(ask) if ask.slug is None else _listing(ask) | {"collectionSlug": ask.slug}
        answer = self._http.read("/intent/sell", post=body)
        return of_read(lambda: _listing_draft(answer))

    def item(self, inscription_id: str) -> base.Item:
        params = {"inscriptionId": inscription_id, "metadata": "true", "bid": "true", "listing": "true"}
        answer = self._http.read("/item", params)
        return of_read(lambda: items.item(answer, inscription_id))

    def place(self, order: base.BidOrder, permit: Permit | None = None) -> None:
        """Submits a signed bid. The venue gives no id; find the bid among the own bids by its expiry.

        Rune bids are sent only if a setting states that their price is the whole order's, because Satflow's docs and
        its sample bot differ and a mistake would overpay a thousandfold. After a bid that reads back at another price,
        no more rune bids are sent.
        """
        if _is_item(order.slug):
            body = _signed_offer_body(order)
        else:
            if order.kind == "runes":
                self._check_runes()
                self._read_back.sent(order)
            body = _place_body(order)
        _accepted(self._http.write("/bid/place", body, permit))

    def draft_bid(self, order: orders.BidToDraft) -> orders.BidDraft:
        """Drafts an offer on one inscription, whose id is the slug. Raises NotSupported for other bids."""
        if not _is_item(order.slug):
            raise NotSupported(f"{self.name} drafts offers on single inscriptions only: its other bids are messages")
        answer = self._http.read("/intent/bid", post=_offer_body(order))
        return of_read(lambda: _offer_draft(answer, order))

    def _check_runes(self) -> None:
        if self._rune_price is None:
            raise NotSupported("rune bids are not sent to Satflow: the unit of their price there is not settled")
        if self._rune_price == "token":
            raise NotSupported("rune bids are not sent to Satflow: what is signed here has the whole order's price")
        if self._read_back.fault is not None:
            raise NotSupported(f"no more rune bids are sent to Satflow: {self._read_back.fault}")

    def cancel(self, wallet: str, venue_ids: Sequence[str], signature: str, permit: Permit | None = None) -> bool:
        body = {"makerAddress": wallet, "orderType": "bid", "signature": signature}
        answer = self._write("/cancel", body | {"_ids": list(venue_ids), "multiple": True}, permit)
        return of_write(lambda: _cancelled(answer, len(venue_ids)))

    def list_item(self, order: orders.ListingOrder, permit: Permit | None = None) -> None:
        payer = {"sellerPaymentAddress": order.payment, "sellerPaymentPublicKey": order.payment_pubkey}
        body = {
            "listings": [_listing(order.ask) | payer],
            "signedListingPSBT": order.signed_psbt,
            "unsignedListingPSBT": order.unsigned_psbt,
            "signedSecureListingPSBTs": list(order.signed_secure),
        }
        answer = self._write("/list", body, permit)
        of_write(lambda: _check_listed(answer, order.ask))

    def delist(self, owner: str, inscription_id: str, signature: str, permit: Permit | None = None) -> bool:
        """Cancels a listing by its inscription."""
        body = {"makerAddress": owner, "orderType": "ask", "signature": signature, "inscriptionId": inscription_id}
        answer = self._write("/cancel", body, permit)
        return of_write(lambda: _cancelled(answer, 1))

    def draft_withdrawal(self, payment: str, amount: int) -> str:
        answer = self._http.read("/intent/withdraw", post={"userAddress": payment, "amount": amount})
        return of_read(lambda: any_base64(parse.table(payload(answer), "draft").get("unsignedPSBTBase64"), "draft"))

    def submit_withdrawal(self, payment: str, psbt: str, permit: Permit | None = None) -> str:
        answer = self._write("/withdraw", {"signedWithdrawPSBT": psbt, "bidderPaymentAddress": payment}, permit)
        return of_write(lambda: parse.txid(parse.table(payload(answer), "withdrawal").get("txid"), "txid"))

    def _write(self, path: str, body: Mapping[str, Any], permit: Permit | None) -> Any:
        answer = self._http.write(path, json.dumps(body).encode(), permit)
        _accepted(answer)
        return answer


def _book(slug: str, page: int, direction: str, by: str = "price") -> dict[str, str]:
    return {"collectionSlug": slug, "active": "true", "sortBy": by, "sortDirection": direction, **_page(page)}


def _page(page: int) -> dict[str, str]:
    return {"page": str(page), "pageSize": str(books.PAGE_SIZE)}


def _accepted(answer: Any) -> None:
    """Raises a Refused leaf for a refusal with status 200, Unknown for an unclear answer."""
    if not isinstance(answer, dict):
        raise Unknown("sent, but the answer is not understood: not an object")
    if answer.get("success") is True and "error" not in answer:
        return
    told = answer if answer.get("success") is False else {"error": answer.get("error")}
    if answer.get("success") is not True and (said := error_text(told)):
        raise refusal(said)
    raise Unknown("sent, but the answer does not say whether it was taken")


def _bidding_wallet(answer: Any) -> str | None:
    """Reads the address that funds the bids of a pair of addresses, or None if they have none yet."""
    data = parse.table(payload(answer), "bidding wallet")
    if not data.keys() & {"address", "multiSig", "multisig"}:
        raise Unreadable("the answer does not tell the bidding wallet")
    found = parse.first(data, "address", "multiSig.address", "multisig.address")
    return parse.if_told(parse.address, found, "bidding wallet")


def _cancelled(answer: Any, asked: int) -> bool:
    data = parse.table(payload(answer), "cancel")
    failed, succeeded = data.get("failedCount"), data.get("successCount")
    if failed is None and succeeded is None and not isinstance(data.get("success"), bool):
        raise Unreadable("cancel: the answer does not say what happened")
    nothing_failed = failed is None or parse.whole(failed, "failedCount") == 0
    all_succeeded = succeeded is None or parse.whole(succeeded, "successCount") >= asked
    told = data.get("summary")
    each = told if isinstance(told, list) else [told]
    none_is_false = all(not isinstance(one, dict) or one.get("success") is not False for one in each)
    return nothing_failed and all_succeeded and none_is_false and data.get("success") is not False


def _place_body(order: base.BidOrder) -> bytes:
    """Returns the body of POST /bid/place; its numbers have the same digits as in the signed text."""
    body: dict[str, Any] = {
        "price": order.price,
        "collectionSlug": order.slug,
        "bidderAddress": order.payment,
        "bidderAddressPublicKey": order.payment_pubkey,
        "bidderTokenReceiveAddress": order.receive,
        "metaType": order.kind,
        "signedBiddingMessage": order.signature,
        "bidExpiry": order.expires_ms,
        "timestamp": order.timestamp_ms,
        "feeRate": order.fee_rate,
    }
    if order.trait is not None:
        body["attribute"] = {"trait_type": order.trait[0], "value": order.trait[1]}
    numbers = {"quantity": order.quantity}
    if order.fee_rate[:1].isdigit():
        del body["feeRate"]
        numbers["feeRate"] = Decimal(order.fee_rate)
    # Appended as text, because json can encode a Decimal as a number only through float.
    tail = "".join(f", {json.dumps(name)}: {plain(number)}" for name, number in numbers.items())
    return (json.dumps(body, ensure_ascii=False)[:-1] + tail + "}").encode()


def _listing_draft(answer: Any) -> orders.ListingDraft:
    seller = parse.table(parse.first(parse.table(payload(answer), "draft"), "seller"), "seller")
    secure = parse.rows(seller.get("secureListingPSBTs") or [], "secure PSBTs", most=orders.MOST_SECURE)
    plain = parse.first(seller, "unsignedListingPSBTBase64", "unsignedListingPSBTHex")
    return orders.ListingDraft(in_base64(plain), tuple(map(_secure, secure)))


def _secure(value: Any) -> orders.SecureDraft:
    entry = parse.table(value, "secure PSBT")
    indices = parse.rows(entry.get("indicesToSign"), "indicesToSign", most=_MOST_INPUTS)
    return orders.SecureDraft(in_base64(parse.first(entry, "base64", "hex")), tuple(map(_index, indices)))


def _index(value: Any) -> int:
    found = parse.whole(value, "indicesToSign")
    if found >= _MOST_INPUTS:
        raise Unreadable("indicesToSign names an input that no such PSBT has")
    return found


def _listing(ask: orders.ListingToDraft) -> dict[str, Any]:
    # Documented with 66 digits; the parity byte does not matter. Omitted in a draft that needs no signature.
    key = {"tapInternalKey": "02" + ask.tap_internal_key} if ask.tap_internal_key else {}
    return {
        "price": ask.price,
        "inscriptionId": ask.inscription_id,
        "sellerOrdAddress": ask.owner,
        "sellerReceiveAddress": ask.receive,
        **key,
    }


def _check_listed(answer: Any, ask: orders.ListingToDraft) -> None:
    """Raises Unreadable if the answer to POST /list names listings, but not this one at this price."""
    told = parse.first(parse.table(payload(answer), "list"), "listings")
    if told is None:
        return
    for row in parse.rows(told, "listings"):
        if parse.first({"row": row}, "row.inscriptionId") == ask.inscription_id:
            if parse.sats(row.get("price"), "price") != ask.price:
                raise Unreadable("it is listed at another price")
            return
    raise Unreadable("it is not among the listings that were made")


def _is_item(slug: str) -> bool:
    return _INSCRIPTION.fullmatch(slug) is not None


def _offer_body(ask: orders.BidToDraft) -> dict[str, Any]:
    """Returns the body of POST /intent/bid. Raises Refused for an offer without coins or with too many."""
    outpoints = [coin.outpoint for coin in ask.coins]
    if not outpoints or len(",".join(outpoints)) > LONGEST_REFERENCE:
        raise Refused("coins", f"an offer names 1 to {LONGEST_REFERENCE // 70} coins that may pay for it")
    return {
        "price": ask.price,
        "inscriptionId": ask.slug,
        "bidderAddress": ask.payment,
        "bidderTokenReceiveAddress": ask.ordinals,
        "bidderPublicKey": ask.payment_pubkey,
        "allowedPaymentOutpoints": outpoints,
    }


def _offer_draft(answer: Any, ask: orders.BidToDraft) -> orders.BidDraft:
    """Reads the PSBT to be signed at the coins' inputs, which are not named. The coins are sent with the signed one."""
    bidder = parse.table(parse.first(parse.table(payload(answer), "draft"), "bidder"), "bidder")
    psbt = in_base64(parse.first(bidder, "unsignedBiddingPSBTBase64", "unsignedBiddingPSBTHex"))
    drafted = orders.DraftPsbt("bid", psbt, (), None)
    return orders.BidDraft(",".join(coin.outpoint for coin in ask.coins), (drafted,))


def _signed_offer_body(order: base.BidOrder) -> bytes:
    """Makes the body of POST /bid/place for an offer. Raises Refused for one that is not drafted and signed."""
    if len(order.signed_psbts) != 1 or not order.reference:
        raise Refused("not_drafted", "an offer on an inscription is one signed PSBT with the coins of its draft")
    body = {
        "price": order.price,
        "inscriptionId": order.slug,
        "bidderAddress": order.payment,
        "bidderTokenReceiveAddress": order.receive,
        "signedBiddingPSBT": order.signed_psbts[0],
        "allowedPaymentOutpoints": order.reference.split(","),
    }
    return json.dumps(body).encode()
