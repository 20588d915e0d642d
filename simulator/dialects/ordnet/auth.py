"""ord.net's sign-in: a challenge for each address of a wallet, and a bearer token for right answers."""

from __future__ import annotations

from typing import Any

from simulator.calls import Operation
from simulator.dialects.ordnet.base import OrdnetHandler, moment
from simulator.dialects.ordnet.fields import wallet_address
from simulator.dialects.satflow.base import peek
from simulator.holdings import coins
from simulator.ordnet.sessions import Session
from simulator.wire import ApiError, bad, items, text

BY_IP, BY_ADDRESS = 20, 5
# The confirmed sats that the payment address of a signed-in wallet must hold.
LEAST_CONFIRMED = 1_000_000
MAX_SIGNATURE = 8192


class AuthHandler(OrdnetHandler):
    """The base of sign-in routes: no bearer; limits by the caller and by the payment address."""

    operation: Operation = "challenge"
    method = "POST"

    def admit(self) -> None:
        self.desk.windows.admit(type(self).__name__, self.request.remote_ip or "", BY_IP)

    def limit(self, payment: str) -> None:
        self.desk.windows.admit(f"{type(self).__name__} address", payment, BY_ADDRESS)


class AuthChallenge(AuthHandler):
    """`POST /auth/challenge {ordinalsAddress, paymentAddress}`."""

    def subject(self) -> str:
        return peek(self.request.body, "paymentAddress")

    def answer(self) -> Any:
        body = self.body()
        ordinals = wallet_address(body.get("ordinalsAddress"), "ordinalsAddress")
        payment = wallet_address(body.get("paymentAddress"), "paymentAddress")
        self.limit(payment)
        flow = self.desk.sessions.begin(ordinals, payment)
        rows = [
            {"challengeId": c.challenge_id, "message": c.message, "address": c.address, "role": c.role}
            for c in flow.challenges
        ]
        return {"authRequestId": flow.request_id, "challenges": rows}


class AuthVerify(AuthHandler):
    """`POST /auth/verify {authRequestId, verifications}`."""

    def subject(self) -> str:
        return self.desk.sessions.payer(peek(self.request.body, "authRequestId")) or "(nobody)"

    def answer(self) -> Any:
        body = self.body()
        request_id = text(body.get("authRequestId"), "authRequestId")
        rows = items(body.get("verifications"), "verifications", 2)
        answers = {
            text(row.get("challengeId"), f"verifications[{at}].challengeId"): (
                wallet_address(row.get("address"), f"verifications[{at}].address"),
                text(row.get("signature"), f"verifications[{at}].signature", MAX_SIGNATURE),
            )
            for at, row in enumerate(rows)
        }
        if not answers or len(answers) < len(rows):
            raise bad("verifications: one entry for each challenge")
        flow = self.desk.sessions.flow(request_id)
        self.limit(flow.payment)
        self.desk.sessions.check(flow, answers)
        chain = self.engine.chain
        held = sum(coin.value for coin in coins(self.engine, flow.payment) if chain.confirmations(coin.txid))
        if held < LEAST_CONFIRMED:
            raise ApiError(403, "The payment address must hold at least 0.01 BTC confirmed")
        session = self.desk.sessions.open(flow)
        return _who(session) | {"sessionToken": session.token, "expiresAt": moment(session.ends_ms)}


class Me(OrdnetHandler):
    """`GET /me`: the signed-in wallet."""

    operation: Operation = "challenge"

    def subject(self) -> str:
        return self.own_address()

    def answer(self) -> Any:
        return _who(self.session)


def _who(session: Session) -> dict[str, Any]:
    profile = {
        "id": session.profile_id,
        "username": None,
        "displayName": None,
        "bio": None,
        "avatarUrl": None,
        "bannerUrl": None,
    }
    binding = {
        "walletBindingId": session.binding_id,
        "label": "Wallet",
        "provider": "unknown",
        "ordinalsAddress": session.ordinals,
        "paymentAddress": session.payment,
        "isPublic": False,
    }
    return {"profile": profile, "walletBindings": [binding]}
