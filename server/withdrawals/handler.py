"""The withdrawal of a user's own money and inscriptions."""

from __future__ import annotations

import asyncio
import contextlib

from markets.base import VenueError
from models.ledger import withdrawals
from models.ledger.withdrawals import CONFIRMED, SUBMITTED, CoinsTaken
from server.http import blocking
from server.http.api_errors import ApiError, invalid
from server.http.base import SignedIn
from server.schemas.withdrawals import WithdrawalBody, read_body
from server.withdrawals.as_json import left_out, quote, withdrawal_as_json
from server.withdrawals.plan import CannotWithdraw, InvalidWithdrawal, WithdrawalPlan
from server.withdrawals.planner import WithdrawalPlanner
from server.withdrawals.steps import carry_out, look_after, write_down
from wallet.signer_client import SignerError, SignerRefused

# More than a signature takes, which is waited for: a row is signed or refused before the answer.
_SENDS_S = 7.0
_LOOKS_S = 2.0
_COMES_OUT = "Nothing is lost: GET /api/wallet shows what becomes of it."


class WithdrawHandler(SignedIn):
    """POST /api/wallet/withdraw"""

    answers_s = 8.0  # a withdrawal of twenty coins asks about each

    async def post(self) -> None:
        body, details = read_body(self.json_object())
        if details:
            raise invalid(details)
        # A withdrawal on its way may have arrived: then its coins are spent, and others are there.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(look_after(self.services, withdrawals.open_of(self.user.id)), _LOOKS_S)
        plan = await self._planned(body)
        if body.dry_run:
            await self._judged(plan)
            self.answer(quote(plan))
            return
        self.require_signed_in()
        try:
            row = write_down(self.user.id, plan, self.now_ms)
        except CoinsTaken:
            raise ApiError(409, "Another withdrawal spends these coins", message=_COMES_OUT) from None
        try:
            with contextlib.suppress(TimeoutError):  # it goes on, and GET /api/wallet follows it
                await asyncio.wait_for(asyncio.shield(self._begun(row)), _SENDS_S)
        except SignerRefused as refused:
            raise _refused(refused) from None
        except SignerError as error:
            answer = blocking.answer_to(error)
            raise ApiError(answer.status_code, answer.error, message=f"{answer.message}. {_COMES_OUT}") from error
        row = withdrawals.again(row)
        if row.state == withdrawals.REFUSED:
            raise ApiError(409, "The withdrawal was refused", message=row.reason)
        is_sent = row.state in (SUBMITTED, CONFIRMED)
        self.answer(withdrawal_as_json(row) | {"leftOut": left_out(plan.left_out)}, 201 if is_sent else 202)

    def _begun(self, row: withdrawals.Withdrawal) -> asyncio.Future[None]:
        sending = asyncio.ensure_future(carry_out(self.services, row))
        sending.add_done_callback(lambda done: done.cancelled() or done.exception())  # also if nobody waits any more
        return sending

    async def _judged(self, plan: WithdrawalPlan) -> None:
        """Has the signer judge the plan as it would before a signature. Raises ApiError: 409, 503."""
        try:
            await self.services.signer(lambda signer: signer.judge_withdrawal(plan.asked))
        except SignerRefused as refused:
            raise _refused(refused) from None
        except SignerError as error:
            raise blocking.answer_to(error) from error

    async def _planned(self, body: WithdrawalBody) -> WithdrawalPlan:
        try:
            return await WithdrawalPlanner(self.services, self.user, body, self.until).plan()
        except CannotWithdraw as refused:
            raise ApiError(409, refused.reason, message=refused.what_to_do) from None
        except InvalidWithdrawal as wrong:
            raise invalid([wrong.fault], wrong.reason) from None
        except (VenueError, SignerError) as error:
            raise blocking.answer_to(error) from error


def _refused(refused: SignerRefused) -> ApiError:
    return ApiError(409, "The signer refused the withdrawal", message=f"{refused.tag}: {refused.message}")
