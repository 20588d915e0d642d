"""ord.net's listings: drafted, signed by the seller, submitted."""

from __future__ import annotations

import json
import uuid
from typing import Any

from simulator.bitcoin.taproot import SINGLE_ANYONECANPAY
from simulator.calls import AFTER_THE_DEED, Fault, Operation
from simulator.dialects.ordnet.base import Bucket, OrdnetHandler
from simulator.dialects.ordnet.fields import ordinals_key, signed_step, step
from simulator.dialects.satflow.base import peek
from simulator.listing.listings import Unlistable
from simulator.orders import Order, Refusal
from simulator.ordnet import listings
from simulator.ordnet.listings import LEAST_PRICE, Draft
from simulator.ordnet.offers import VENUE
from simulator.ordnet.poison import another, spoiled, spoiled_steps, stolen_escrows, stolen_recovery
from simulator.ordnet.sessions import Session
from simulator.wire import MAX_SATS, ApiError, bad, items, text, whole

MAX_ITEMS = 20
DAYS = (1, 7, 30, 90, 180)
DAY_MS = 86_400_000
# The evils of the step that moves the inscription; the others are of the step that sells it.
_OF_THE_TRANSFER = frozenset({"other_outpoint", "two_inputs", "extra_output"})


class ListingWrite(OrdnetHandler):
    operation: Operation = "list"
    bucket: Bucket = "write"
    method = "POST"

    def subject(self) -> str:
        return peek(self.request.body, "items", "inscriptionId")

    def wanted(self, body: dict[str, Any]) -> list[tuple[str, int]]:
        """Reads inscriptions and prices. Raises ApiError: 404 for one of another collection."""
        market = self.market()
        rows = items(body.get("items"), "items", MAX_ITEMS)
        found = [
            (
                text(row.get("inscriptionId"), f"items[{at}].inscriptionId"),
                whole(row.get("priceSats"), f"items[{at}].priceSats", LEAST_PRICE, MAX_SATS),
            )
            for at, row in enumerate(rows)
        ]
        if not found or len({inscription for inscription, _ in found}) < len(found):
            raise bad(f"items: 1 to {MAX_ITEMS} different inscriptions")
        for inscription, _ in found:
            holder = self.engine.wallets.holder_of(inscription)
            if holder is None or holder[1].collection != market.slug:
                raise ApiError(404, f"Inscription {inscription} not found in the collection")
        return found


class ListingPreflight(ListingWrite):
    """`POST /collection/:slug/listings/preflight`: the PSBTs to sign. Changes no book."""

    def draw_fault(self) -> Fault | None:
        faults = self.world.faults
        return faults.draw("draft") or faults.draw("list", but=AFTER_THE_DEED)

    def answer(self) -> Any:
        body = self.body()
        session = self.bound(body)
        key, wanted = ordinals_key(body, session), self.wanted(body)
        try:
            drafts = listings.draft(self.world.engine, session, key, wanted)
        except Unlistable as refusal:
            raise _unlistable(refusal) from None
        shown = stolen_escrows(drafts, self.world.poison)
        recovering = [{"address": session.ordinals, "signingIndexes": list(range(len(drafts))), "sigHash": 1}]
        return {
            "listings": [self._row(made, shown, session, _asked(body)) for made in shown],
            "recoveryPsbt": {
                "signerAddress": session.ordinals,
                "inputsToSign": recovering,
                "psbtBase64": stolen_recovery(listings.recovery_to_sign(shown), self.world.poison).encode(),
            },
        }

    def _row(self, made: Draft, drafts: list[Draft], session: Session, asked: str) -> dict[str, Any]:
        anchor = self.desk.keep(session, asked, (made, drafts), str(uuid.uuid4()))
        first: list[dict[str, Any]] = [{"address": session.ordinals, "signingIndexes": [0], "sigHash": 0}]
        second = [
            {
                "address": session.ordinals,
                "publicKey": made.passthrough.internal.hex(),
                "disableTweakSigner": True,
                "signingIndexes": [0],
                "sigHash": SINGLE_ANYONECANPAY,
            }
        ]
        transfer, settlement = made.transfer_to_sign(), made.settlement_to_sign()
        poison = self.world.poison
        if poison is not None:
            other = another(self.world.engine, session.ordinals, set())
            if poison in _OF_THE_TRANSFER:
                transfer = spoiled(transfer, poison, 0, other)
                first[0]["signingIndexes"] = [0, 2] if poison == "two_inputs" else [0]
            else:
                settlement = spoiled(settlement, poison, 0, other)
            transfer, settlement = spoiled_steps(transfer, settlement, poison)
        steps = [
            step(0, session.ordinals, first, transfer.encode()),
            step(1, session.ordinals, second, settlement.encode()),
        ]
        named = {"inscriptionId": made.item.id}
        return named | {"anchorUtxoId": anchor, "psbts": [named | each for each in steps]}


class ListingSubmit(ListingWrite):
    """`POST /collection/:slug/listings/submit`: takes the signed listings, all or none."""

    def answer(self) -> Any:
        body = self.body()
        session = self.bound(body)
        wanted = self.wanted(body)
        if body.get("durationDays") not in DAYS:
            raise bad(f"durationDays must be one of {', '.join(map(str, DAYS))}")
        ids = [inscription for inscription, _ in wanted]
        anchors, signed = _by_item(body, "anchors", ids), _by_item(body, "signed", ids)
        recovery = signed_step(body.get("signedRecoveryPsbt"), "signedRecoveryPsbt")
        handles = [text(row.get("anchorUtxoId"), "anchors.anchorUtxoId") for row in anchors]
        made: list[tuple[Draft, list[Draft]]] = [self.desk.draft(session, _asked(body), each) for each in handles]
        orders = self._signed(made, signed, recovery)
        for handle in handles:
            self.desk.used(handle)
        self._take(orders, body["durationDays"])
        rows = [{"inscriptionId": order.inscription, "listingId": order.order_id} for order in orders]
        return {"listings": rows}

    def _signed(
        self, made: list[tuple[Draft, list[Draft]]], signed: list[dict[str, Any]], recovery: str
    ) -> list[Order]:
        engine = self.world.engine
        drafts = [each for each, _ in made]
        if any(listings.stale(engine, each) for each in drafts):
            raise ApiError(409, "An inscription has moved; start again")
        try:
            if drafts != made[0][1]:
                raise Refusal("anchors are not those of one preflight")
            back = listings.signed_recovery(drafts, recovery)
            orders = [
                listings.signed_order(engine, each, *_steps(row), back)
                for each, row in zip(drafts, signed, strict=True)
            ]
        except Refusal as refusal:
            market = engine.market("ordinals", drafts[0].item.collection) or self.market()
            engine.record("refused", listings.unsigned_order(engine, market, drafts[0]), str(refusal))
            raise bad(str(refusal)) from None
        return orders

    def _take(self, orders: list[Order], days: int) -> None:
        engine, visible_ms = self.world.engine, self.visible_ms()
        for order in orders:
            former = engine.ask_of(order.inscription or "", VENUE)
            if former is not None:
                engine.cancel(former, "listed again")
            market = engine.market("ordinals", order.slug)
            assert market is not None
            order.visible_ms, order.expires_ms = visible_ms, engine.now_ms() + days * DAY_MS
            engine.enter(market, order)
            self.desk.taken.add(order.order_id)


def _asked(body: dict[str, Any]) -> str:
    return json.dumps({name: body.get(name) for name in ("ordinalsPublicKey", "items")}, sort_keys=True, default=str)


def _by_item(body: dict[str, Any], name: str, ids: list[str]) -> list[dict[str, Any]]:
    """Reads a list with one entry for each item, in their order. Raises ApiError(400)."""
    rows = items(body.get(name), name, MAX_ITEMS)
    if [row.get("inscriptionId") for row in rows] != ids:
        raise bad(f"{name} must have one entry for each item, in the same order")
    return rows


def _steps(row: dict[str, Any]) -> tuple[str, str]:
    """Reads the two signed PSBTs of one listing. Raises ApiError(400)."""
    rows = items(row.get("psbts"), "signed.psbts", 2)
    if [each.get("stepIndex") for each in rows] != [0, 1]:
        raise bad("signed.psbts must have the steps 0 and 1")
    return signed_step(rows[0], "signed.psbts[0]"), signed_step(rows[1], "signed.psbts[1]")


def _unlistable(refusal: Unlistable) -> ApiError:
    return ApiError(403, "You do not hold this inscription") if refusal.cause == "holder" else bad(str(refusal))
