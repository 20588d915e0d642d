"""Satflow's withdrawals from a bidding wallet: `/intent/withdraw` and `/withdraw`, as documented."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from simulator.bidding_wallets import draft, submit
from simulator.calls import AFTER_THE_DEED, Fault, Operation
from simulator.dialects.satflow.base import SatflowHandler, peek, sign_in_address
from simulator.orders import Refusal
from simulator.wire import bad, text, whole

_MAX_PSBT_TEXT = 100_000


class IntentWithdraw(SatflowHandler):
    """`POST /intent/withdraw {userAddress, amount}`: the PSBT that would take `amount` sats out."""

    operation: Operation = "withdraw"
    method = "POST"

    def subject(self) -> str:
        return peek(self.request.body, "userAddress")

    def draw_fault(self) -> Fault | None:
        return self.world.faults.draw(self.operation, but=AFTER_THE_DEED)

    def data(self) -> dict[str, Any]:
        body = self.body()
        payment = sign_in_address(body.get("userAddress"), "userAddress")
        amount = whole(body.get("amount"), "amount", 1)
        try:
            psbt, count = draft(self.world.engine, payment, amount, self.world.poison)
        except Refusal as refusal:
            raise bad(str(refusal)) from None
        return {
            "unsignedPSBTBase64": psbt,
            "unsignedPSBTHex": b64decode(psbt).hex(),
            "paymentUtxoCount": count,
        }


class SubmitWithdraw(SatflowHandler):
    """`POST /withdraw {signedWithdrawPSBT, bidderPaymentAddress}`: completes and sends the signed PSBT."""

    operation: Operation = "withdraw"
    method = "POST"

    def subject(self) -> str:
        return peek(self.request.body, "bidderPaymentAddress")

    def data(self) -> dict[str, Any]:
        body = self.body()
        payment = sign_in_address(body.get("bidderPaymentAddress"), "bidderPaymentAddress")
        signed = text(body.get("signedWithdrawPSBT"), "signedWithdrawPSBT", _MAX_PSBT_TEXT)
        try:
            return {"txid": submit(self.world.engine, payment, signed)}
        except Refusal as refusal:
            raise bad(str(refusal)) from None
