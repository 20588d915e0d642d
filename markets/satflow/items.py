"""Satflow's offers on single inscriptions, which are PSBTs and not messages (API 1.1.4: intent/bid, bid/place).

An offer's slug is the inscription's id. They have no end. A bidder has one for each inscription: a new one replaces the
one before.
"""

from __future__ import annotations

import json
import re
from typing import Any

from markets.base import LONGEST_REFERENCE, BidOrder, Refused
from markets.orders import BidDraft, BidToDraft, DraftPsbt
from markets.psbt import in_base64
from markets.satflow.wire import payload
from markets.wire import first, table

_INSCRIPTION = re.compile(r"[0-9a-f]{64}i(0|[1-9][0-9]{0,9})", re.ASCII)


def is_item(slug: str) -> bool:
    """Tells whether a bid on `slug` is one on a single inscription."""
    return _INSCRIPTION.fullmatch(slug) is not None


def ask_body(ask: BidToDraft) -> dict[str, Any]:
    """Makes the body of POST /intent/bid. Raises Refused for an offer without named coins."""
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


def draft(answer: Any, ask: BidToDraft) -> BidDraft:
    """Reads the PSBT to be signed at the coins' inputs, which are not told. The coins go back with the signed one."""
    bidder = table(first(table(payload(answer), "draft"), "bidder"), "bidder")
    psbt = in_base64(first(bidder, "unsignedBiddingPSBTBase64", "unsignedBiddingPSBTHex"))
    drafted = DraftPsbt("bid", psbt, (), None)
    return BidDraft(",".join(coin.outpoint for coin in ask.coins), (drafted,))


def order_body(order: BidOrder) -> bytes:
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
