"""The step from a caller's request to the signer's: coins, amounts, fee. Nothing is written or signed here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal

from markets.base import NotFound
from models.ledger import withdrawals
from models.users import User
from server.http.services import Services
from server.schemas.withdrawals import WithdrawalBody
from server.withdrawals.coins import Choosing, Chosen
from server.withdrawals.from_bidding_wallet import plan_from_bidding
from server.withdrawals.plan import NOTHING, CannotWithdraw, InvalidWithdrawal, WithdrawalPlan, script_at
from wallet.escrow_terms import all_terms, escrow_terms_of
from wallet.policy import PolicyRefused
from wallet.protocol import (
    LEAST_FEE_PER_KVB,
    MAX_COINS,
    MOST_FEE_PER_KVB,
    VIRTUAL_KB,
    Source,
    UserKeys,
    WithdrawalToSign,
    per_kvb,
)
from wallet.psbt.escrow import RECOVERY_BLOCKS, Escrow, escrow_at
from wallet.withdrawal.compose import Coin, CoinKind, Composed, send_inscription, send_sats

DEFAULT_TIER = "halfHourFee"
_FEES_AGE_S = 30.0
Enough = Callable[[Sequence[Coin]], bool]


class WithdrawalPlanner:
    """Plans one withdrawal of `user`. Raises CannotWithdraw, InvalidWithdrawal, VenueError or SignerError."""

    def __init__(self, services: Services, user: User, body: WithdrawalBody, until: float) -> None:
        self._services = services
        self._ask = services.market_for(user.id, "look" if body.dry_run else "withdraw", until)
        self._body = body
        self._user = user
        self._address = user.address

    async def plan(self) -> WithdrawalPlan:
        keys = await self._services.signer(lambda signer: signer.addresses(self._address))
        if self._body.from_ == "bidding":
            settings, body = self._services.settings, self._body
            return await plan_from_bidding(settings, self._ask, self._user, body, keys.payment, keys.payment_pubkey)
        if self._body.from_ == "escrow":
            return await self._inscription(keys)
        if self._address in (keys.payment, keys.vault):
            text = "You sign in with one of these addresses, so their keys are in your own wallet: send from there."
            raise CannotWithdraw(NOTHING, text)
        if self._body.inscription_id:
            return await self._inscription(keys)
        if self._body.from_ == "payment":
            return await self._sats("payment", keys.payment, "p2wpkh")
        return await self._sats("vault", keys.vault, "p2tr")

    async def _sats(self, source: Source, address: str, kind: CoinKind) -> WithdrawalPlan:
        rate, amount = await self._fee_per_kvb(), self._body.amount_sats
        destination = script_at(self._address)

        def composed(coins: Sequence[Coin]) -> Composed:
            return send_sats(coins, amount, destination, rate)

        chosen = await self._chosen(address, kind, rate, lambda coins: amount is not None and _pays(composed, coins))
        made = _composed(lambda: composed(chosen.coins), chosen, f"Withdraw less, or send sats to {address}.")
        asked = WithdrawalToSign(
            intent="",
            user=self._address,
            source=source,
            coins=tuple(str(coin.outpoint) for coin in chosen.coins),
            amount_sats=amount,
            fee_per_kvb=rate,
        )
        return WithdrawalPlan(asked, self._address, made.sent_sats, made.fee_sats, chosen.left_out)

    async def _inscription(self, keys: UserKeys) -> WithdrawalPlan:
        wanted = self._body.inscription_id
        self._refuse_listed(wanted)
        try:
            where = await self._ask(lambda market: market.whereabouts(wanted, 0.0))
        except NotFound:
            raise InvalidWithdrawal("inscriptionId: there is no such inscription in any block yet") from None
        escrow = self._escrow_at(where.address, keys)
        source: Source = "escrow" if self._body.from_ == "escrow" else "vault"
        if where.outpoint is None or (escrow is None and (source == "escrow" or where.address != keys.vault)):
            named = "an escrow of yours" if source == "escrow" else "the vault"
            raise CannotWithdraw(f"The inscription is not in {named}", f"It is at {where.address or 'no address'}.")
        sent_to = keys.vault if source == "escrow" else self._address
        rate, destination = await self._fee_per_kvb(), script_at(sent_to)
        if where.outpoint in withdrawals.taken_coins(self._user.id):
            raise CannotWithdraw("Another withdrawal moves it", "GET /api/wallet shows what becomes of it.")
        try:
            held_by = script_at(keys.vault) if escrow is None else escrow.script
            lock_blocks = RECOVERY_BLOCKS if escrow is not None and escrow.recovery is not None else 0
            item = await Choosing(self._ask, "p2tr", held_by, {}, rate).coin(where.outpoint, wanted, lock_blocks)
            if escrow is not None:
                item = replace(item, kind="recovery" if escrow.recovery else "p2tr", escrow=escrow)
        except PolicyRefused as refused:
            raise CannotWithdraw("The inscription cannot be moved", refused.message) from None

        def composed(coins: Sequence[Coin]) -> Composed:
            return send_inscription(item, coins, destination, rate)

        fund, most = f"Send sats for the fee to {keys.payment}.", MAX_COINS - 1
        chosen = await self._chosen(keys.payment, "p2wpkh", rate, lambda coins: _pays(composed, coins), most, fund)
        made = _composed(lambda: composed(chosen.coins), chosen, fund)
        asked = WithdrawalToSign(
            intent="",
            user=self._address,
            source=source,
            coins=(where.outpoint,),
            fee_coins=tuple(str(coin.outpoint) for coin in chosen.coins),
            inscription_id=wanted,
            fee_per_kvb=rate,
        )
        return WithdrawalPlan(asked, sent_to, made.sent_sats, made.fee_sats, chosen.left_out)

    def _escrow_at(self, address: str | None, keys: UserKeys) -> Escrow | None:
        """Returns the user's escrow at this address."""
        if address is None or address not in keys.escrows:
            return None
        # An x-only key: its parity is no part of an escrow.
        vault = b"\x02" + bytes.fromhex(keys.vault_pubkey)
        known = all_terms(escrow_terms_of(self._services.settings))
        return escrow_at(script_at(address), vault, [terms for _, terms in known])

    def _refuse_listed(self, inscription_id: str) -> None:
        kept = withdrawals.what_keeps(self._user.id, inscription_id)
        if kept.running_task is not None:
            text = f"Stop auto-list task {kept.running_task} first: it would list what is no longer there."
            raise CannotWithdraw("An auto-list task of this inscription is running", text)
        if kept.is_listed and not self._body.force:
            text = (
                "Delete its auto-list task first, which cancels the listing; or send force: true. Moving it makes "
                "every signature for a listing of it worthless, at once and for good."
            )
            raise CannotWithdraw("The inscription is listed", text)

    def _kept(self) -> dict[str, str]:
        """Returns the coins that stay, and why. A bid that is a transaction ends with the first of its coins."""
        user_id = self._user.id
        behind = {} if self._body.force else withdrawals.coins_behind_bids(user_id)
        bids = {
            coin: f"a bid at {venue} stands on it: stop the task, or send force: true" for coin, venue in behind.items()
        }
        return bids | dict.fromkeys(withdrawals.taken_coins(user_id), "another withdrawal spends it")

    async def _chosen(
        self, address: str, kind: CoinKind, rate: int, is_enough: Enough, most: int = MAX_COINS, fund: str = ""
    ) -> Chosen:
        found = await self._ask(lambda market: market.coins(address, 0.0))
        choosing = Choosing(self._ask, kind, script_at(address), self._kept(), rate)
        chosen = await choosing.choose(found, is_enough, most)
        if not chosen.coins:
            reasons = "; ".join(f"{each.coin.outpoint}: {each.reason}" for each in chosen.left_out[:5])
            text = f"There are no coins to send at {address}. {fund}".strip()
            raise CannotWithdraw(NOTHING, f"{text} {reasons}".strip())
        return chosen

    async def _fee_per_kvb(self) -> int:
        given = self._body.fee_rate or DEFAULT_TIER
        if isinstance(given, Decimal):
            return per_kvb(given)
        fees = await self._ask(lambda market: market.fees(_FEES_AGE_S))
        tiers = {
            "fastestFee": fees.fastest,
            "halfHourFee": fees.half_hour,
            "hourFee": fees.hour,
            "economyFee": fees.economy,
            "minimumFee": fees.minimum,
        }
        rate = max(per_kvb(tiers[given]), LEAST_FEE_PER_KVB)
        if rate > MOST_FEE_PER_KVB:
            most = MOST_FEE_PER_KVB // VIRTUAL_KB
            text = f"{given} is {tiers[given]} sat/vB at the moment, and {most} is the most that is paid here."
            raise CannotWithdraw("The network is too dear", text)
        return rate


def _pays(composed: Callable[[Sequence[Coin]], Composed], coins: Sequence[Coin]) -> bool:
    """Tells whether these coins are enough, so that more would not help."""
    if not coins:
        return False
    try:
        composed(coins)
    except PolicyRefused as refused:
        return refused.tag != "funds"
    return True


def _composed(compose: Callable[[], Composed], chosen: Chosen, what_to_do: str = "") -> Composed:
    """Returns the transaction that the signer will write. Raises CannotWithdraw for one that it would refuse."""
    try:
        return compose()
    except PolicyRefused as refused:
        text = f"{refused.message}. {what_to_do}".strip()
        if chosen.left_out:
            text += f" {len(chosen.left_out)} coins were left out; the first: {chosen.left_out[0].reason}."
        raise CannotWithdraw(NOTHING, text) from None
