"""ord.net's offers for one inscription: drafts, submits, reads, cancels."""

from __future__ import annotations

import json
from typing import Any

from simulator.calls import AFTER_THE_DEED, Fault
from simulator.dialects.ordnet.fields import life_hours, payment_key, signed_step, step, utxo_row, utxos
from simulator.dialects.ordnet.offers import OfferCancel
from simulator.dialects.ordnet.placing import OfferWrite
from simulator.orders import Market, Order, Refusal
from simulator.ordnet import item_offers
from simulator.ordnet.item_offers import Draft
from simulator.ordnet.poison import another, indexes, spoiled
from simulator.wire import MAX_SATS, ApiError, bad, items, text, whole

MAX_ITEMS = 20
_REPEATED = ("paymentPublicKey", "inscriptionIds", "priceSats")


class ItemOfferPreflight(OfferWrite):
    """`POST /collection/:slug/offers/preflight`: the settlements to sign. Changes no book."""

    def draw_fault(self) -> Fault | None:
        faults = self.world.faults
        return faults.draw("draft") or faults.draw("place", but=AFTER_THE_DEED)

    def answer(self) -> Any:
        body = self.body()
        session, market = self.bound(body), self.market()
        payment_key(body, session)
        price = whole(body.get("priceSats"), "priceSats", 1, MAX_SATS)
        hours = life_hours(body)
        named = list(utxos(body.get("spendableUtxos"), "spendableUtxos"))
        drafts = item_offers.draft(self.world.engine, market, session, _inscriptions(body), price, hours, named)
        rows = [self._row(made, _asked(body, market)) for made in drafts]
        return {"selectedPaymentUtxos": [utxo_row(c.outpoint, c.value) for c in drafts[0].coins], "items": rows}

    def _row(self, made: Draft, asked: str) -> dict[str, Any]:
        session = self.session
        self.desk.keep(session, asked, made, made.txid)
        poison, engine = self.world.poison, self.world.engine
        other = another(engine, session.payment, {coin.outpoint for coin in made.coins})
        shown = spoiled(made.to_sign(), poison, 0, other)
        asked_of = indexes(list(range(1, 1 + len(made.coins))), poison)
        own = [{"address": session.payment, "signingIndexes": asked_of}]
        return {
            "inscriptionId": made.member.item.id,
            "priceSats": made.price,
            "buyerPayTotalSats": made.total,
            "expectedSettlementTxid": made.txid,
            "steps": [step(0, session.payment, own, shown.encode())],
        }


class ItemOfferSubmit(OfferWrite):
    """`POST /collection/:slug/offers/submit`: takes the signed settlements, all or none."""

    def answer(self) -> Any:
        body = self.body()
        session, market = self.bound(body), self.market()
        key, engine = payment_key(body, session), self.world.engine
        rows = items(body.get("signedItems"), "signedItems", MAX_ITEMS)
        if [row.get("inscriptionId") for row in rows] != _inscriptions(body):
            raise bad("signedItems must have one entry for each inscription, in the same order")
        told = [outpoint for outpoint, _ in utxos(body.get("selectedPaymentUtxos"), "selectedPaymentUtxos")]
        handles = [text(row.get("expectedSettlementTxid"), "expectedSettlementTxid") for row in rows]
        orders = []
        for handle, row in zip(handles, rows, strict=True):
            made: Draft = self.desk.draft(session, _asked(body, market), handle)
            steps = items(row.get("signedSteps"), "signedSteps", 1)
            if told != [coin.outpoint for coin in made.coins] or len(steps) != 1:
                raise bad("submit must repeat what the preflight answered, with one signed step for each item")
            orders.append(self._signed_item(market, made, signed_step(steps[0], "signedSteps[0]"), key))
        for handle in handles:
            self.desk.used(handle)
        visible_ms = self.visible_ms()
        for order in orders:
            order.visible_ms = visible_ms
            engine.enter(market, order)
            self.desk.taken.add(order.order_id)
        done = [{"inscriptionId": o.inscription, "offerId": o.order_id, "status": "active"} for o in orders]
        return {"items": done, "status": "active"}

    def _signed_item(self, market: Market, made: Draft, psbt: str, key: bytes) -> Order:
        engine = self.world.engine
        reason, status = item_offers.stale(engine, made), 409
        if not reason:
            try:
                return item_offers.signed_order(engine, market, made, psbt, key)
            except Refusal as refusal:
                reason, status = str(refusal), 400
        engine.record("refused", item_offers.unsigned_order(engine, market, made), reason)
        raise ApiError(status, reason)


class ItemOfferCancel(OfferCancel):
    """`POST /inscriptions/:id/offers/:offerId/cancel {walletBindingId}`."""

    def answer(self) -> Any:
        return self.cancelled(self.path_args[1], self.bound(self.body()))


def _inscriptions(body: dict[str, Any]) -> list[str]:
    given = body.get("inscriptionIds")
    if not isinstance(given, list) or not 1 <= len(given) <= MAX_ITEMS:
        raise bad(f"inscriptionIds must be a list of 1 to {MAX_ITEMS} ids")
    found = [text(each, "inscriptionIds") for each in given]
    if len(set(found)) < len(found):
        raise bad("inscriptionIds: an id stands twice")
    return found


def _asked(body: dict[str, Any], market: Market) -> str:
    fields = {name: body.get(name) for name in _REPEATED}
    fields |= {"slug": market.slug, "validityHours": life_hours(body)}
    return json.dumps(fields, sort_keys=True, default=str)
