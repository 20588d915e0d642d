"""ord.net's collection offers from draft to book."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from simulator.bitcoin.chain import script_of
from simulator.calls import AFTER_THE_DEED, Fault, Operation
from simulator.dialects.ordnet.base import Bucket, OrdnetHandler
from simulator.dialects.ordnet.fields import life_hours, ordinals_key, payment_key, signed_step, step, utxo_row, utxos
from simulator.dialects.ordnet.offers import prices
from simulator.orders import Market, Order, Refusal
from simulator.ordnet.offers import MAX_COUNT, Draft, OfferAsk, draft, enter, signed_order, stale, unsigned_order
from simulator.ordnet.poison import another, indexes, spoiled
from simulator.ordnet.sessions import Session
from simulator.ordnet.targets import root, target_of
from simulator.wire import ApiError, bad, items, text, whole

# The preflight's fields that submit must repeat.
_REPEATED = ("ordinalsPublicKey", "paymentPublicKey", "target", "priceSats")


class OfferWrite(OrdnetHandler):
    """A step of placing an offer: the faults of `place` strike it."""

    operation: Operation = "place"
    bucket: Bucket = "write"
    method = "POST"

    def subject(self) -> str:
        return self.path_args[0][:200]


class OfferPreflight(OfferWrite):
    """`POST …/collection-offers/preflight`: the funding parents to sign. Changes nothing."""

    def draw_fault(self) -> Fault | None:
        faults = self.world.faults
        return faults.draw("draft") or faults.draw("place", but=AFTER_THE_DEED)

    def answer(self) -> Any:
        body = self.body()
        session, market = self.bound(body), self.market()
        ask = _ask(body, session)
        drafts, found = draft(self.world.engine, market, ask, session)
        criteria = ask.target.criteria(market.slug)
        asked = _asked(body, market)
        return {
            "criteriaCanonicalJson": criteria,
            "offerCriteriaHash": hashlib.sha256(criteria.encode()).hexdigest(),
            "eligibleRoot": root(found).hex(),
            "eligibleCount": len(found),
            "buyerReceiveScriptHex": script_of(session.ordinals).data.hex(),
            "offers": [self._row(each, ask, asked, session) for each in drafts],
        }

    def _row(self, made: Draft, ask: OfferAsk, asked: str, session: Session) -> dict[str, Any]:
        parent = made.parent
        poison = self.world.poison
        other = another(self.world.engine, session.payment, {coin.outpoint for coin in parent.coins})
        shown = spoiled(parent.to_sign(ask.payment_key), poison, parent.comes_back, other)
        own = [{"address": session.payment, "signingIndexes": indexes(list(range(len(parent.coins))), poison)}]
        return {
            "priceSats": parent.price,
            "offerAddress": str(parent.offer.script.address()),
            "offerScriptHex": parent.offer.leaf.hex(),
            "offerAuthSecretHash": hashlib.sha256(made.secret).hexdigest(),
            "selectedPaymentUtxos": [utxo_row(coin.outpoint, coin.value) for coin in parent.coins],
            "fundingParentFeeRateSatVb": 0,
            "fundingBroadcasted": False,
            "expectedFundingParentTxid": parent.txid,
            "fundingParentVout": 0,
            "preflightToken": self.desk.keep(session, asked, made),
            "fundingParentStep": step(0, session.payment, own, shown.encode()),
        }


class OfferSubmit(OfferWrite):
    """`POST …/collection-offers/submit`: takes the signed funding parents, all or none."""

    def answer(self) -> Any:
        body = self.body()
        session, market = self.bound(body), self.market()
        key = payment_key(body, session)
        rows = items(body.get("offers"), "offers", MAX_COUNT)
        if len(rows) != whole(body.get("offerCount", 1), "offerCount", 1, MAX_COUNT):
            raise bad("offers must have offerCount entries")
        asked, engine = _asked(body, market), self.world.engine
        orders = []
        for at, row in enumerate(rows):
            made: Draft = self.desk.draft(
                session, asked, text(row.get("preflightToken"), f"offers[{at}].preflightToken")
            )
            self._same(row, made, f"offers[{at}]")
            psbt = signed_step(row.get("signedFundingParentStep"), f"offers[{at}].signedFundingParentStep")
            orders.append(self._signed(market, made, session, psbt, key))
        for row in rows:
            self.desk.used(row["preflightToken"])
        taken = enter(engine, market, orders, self.visible_ms(), twice=self.mode == "accept_twice")
        self.desk.taken |= {order.order_id for order in taken}
        return {"status": "active", "offers": [_placed(order, row) for order, row in zip(orders, rows, strict=True)]}

    def _signed(self, market: Market, made: Draft, session: Session, psbt: str, key: bytes) -> Order:
        engine = self.world.engine
        reason, status = stale(engine, made), 409
        if not reason:
            try:
                return signed_order(engine, market, made, session, psbt, key)
            except Refusal as refusal:
                reason, status = str(refusal), 400
        engine.record("refused", unsigned_order(engine, market, made, session), reason)
        raise ApiError(status, reason)

    def _same(self, row: dict[str, Any], made: Draft, name: str) -> None:
        parent = made.parent
        named = [outpoint for outpoint, _ in utxos(row.get("selectedPaymentUtxos"), f"{name}.selectedPaymentUtxos")]
        told = (row.get("priceSats"), row.get("expectedFundingParentTxid"), row.get("fundingParentVout"))
        if told != (parent.price, parent.txid, 0) or named != [coin.outpoint for coin in parent.coins]:
            raise bad(f"{name} does not repeat what the preflight answered")


def _placed(order: Order, row: dict[str, Any]) -> dict[str, Any]:
    return {
        "offerId": order.order_id,
        "status": "active",
        "priceSats": order.price,
        "fundingParentTxid": row["expectedFundingParentTxid"],
        "fundingParentVout": 0,
        "fundingParentFeeRateSatVb": 0,
        "fundingBroadcasted": False,
    }


def _ask(body: dict[str, Any], session: Session) -> OfferAsk:
    price, count, ladder = prices(body)
    return OfferAsk(
        target=target_of(body.get("target")),
        price=price,
        count=count,
        step=ladder,
        hours=life_hours(body),
        ordinals_key=ordinals_key(body, session),
        payment_key=payment_key(body, session),
        spendable=utxos(body.get("spendableUtxos"), "spendableUtxos"),
    )


def _asked(body: dict[str, Any], market: Market) -> str:
    """Returns the fields that preflight and submit must have in common, as one text."""
    fields = {name: body.get(name) for name in _REPEATED}
    fields |= {
        "slug": market.slug,
        "offerCount": body.get("offerCount", 1),
        "ladderStepSats": body.get("ladderStepSats", 0),
        "validityHours": life_hours(body),
    }
    return json.dumps(fields, sort_keys=True, default=str)
