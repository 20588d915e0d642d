"""Plans of withdrawals: the coins that they spend and the sats that arrive; and the check before a task's start.

A plan follows the signer's rules with facts from the gateway. The signer checks again with its own sources.

The signer composes the transaction itself. Only from a bidding wallet the marketplace drafts it, and the signer judges
the draft.

A user's sats and items are at the payment address, in the vault, and in a bidding wallet. Purchases are delivered to
the user's own ordinals address. Every withdrawal needs a mempool server and an index. A withdrawal from a bidding
wallet also needs a script that the signer signs for, which is known only from the marketplace's draft.

A start is not refused if a marketplace or a source does not respond, or if the wallet is empty.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from core.errors import BidkeeperError
from core.settings import Settings, dialect_of
from markets.base import AuthFailed, NotFound, NotSupported, Refused, TooManyLookups, Unavailable, Utxo, VenueError
from models.ledger import withdrawals
from models.users import User
from server import task_handler
from server.http.answers import ApiError, invalid
from server.http.base import SignedIn
from server.http.blocking import UserMarket
from server.http.services import Services
from wallet import withdrawal
from wallet.address import parse
from wallet.protocol import (
    LEAST_FEE_PER_KVB,
    MAX_COINS,
    MOST_FEE_PER_KVB,
    VIRTUAL_KB,
    PolicyRefused,
    Source,
    UserKeys,
    WithdrawalToSign,
    per_kvb,
)
from wallet.psbt.decode import decode_base64
from wallet.psbt.script import RECOVERY_BLOCKS, Escrow, escrow_at, script_of
from wallet.psbt.transaction import Outpoint, WireError
from wallet.signer.reading import FactsError, read_facts
from wallet.signer_client import SignerError, SignerRefused
from wallet.terms import all_terms, escrow_terms_of
from wallet.withdrawal import INPUT_VSIZE, Coin, CoinKind, Composed, send_inscription, send_sats

_AT_ONCE = 4
_FACTS_AGE_S = 10.0


class LeftOut(Struct, frozen=True):
    """A coin that is not spent, and why."""

    coin: Utxo
    reason: str


class Chosen(Struct, frozen=True):
    """Coins to be spent, and coins that were left out."""

    coins: tuple[Coin, ...]
    left_out: tuple[LeftOut, ...]


class Choosing:
    """Chooses coins at one of a user's addresses; `script` is the address's script.

    `kept` are the coins that must not be spent, each with the reason.
    """

    def __init__(
        self, ask: UserMarket, kind: CoinKind, script: bytes, kept: Mapping[str, str], fee_per_kvb: int
    ) -> None:
        self._ask = ask
        self._kind = kind
        self._script = script
        self._kept = kept
        self._least_value = -(-INPUT_VSIZE[kind] * fee_per_kvb // VIRTUAL_KB)

    async def choose(self, found: Sequence[Utxo], is_enough: Callable[[Sequence[Coin]], bool], most: int) -> Chosen:
        """Chooses coins, the largest first, until they are enough; at most `most` coins.

        If the user's limit of look-ups is reached, only the coins checked by then are chosen. Raises TooManyLookups if
        there are none.
        """
        coins: list[Coin] = []
        left_out: list[LeftOut] = []
        rest: list[Utxo] = []
        for coin in sorted(found, key=lambda each: -each.value):
            reason = self._plain_reason(coin)
            if reason is None:
                rest.append(coin)
            else:
                left_out.append(LeftOut(coin, reason))
        too_many: TooManyLookups | None = None
        while rest and too_many is None and len(coins) < most and not is_enough(coins):
            now, rest = rest[:_AT_ONCE], rest[_AT_ONCE:]
            for coin, judged in zip(now, await asyncio.gather(*map(self._judged, now)), strict=True):
                if isinstance(judged, TooManyLookups):
                    too_many = judged
                    left_out.append(LeftOut(coin, judged.message))
                elif isinstance(judged, str):
                    left_out.append(LeftOut(coin, judged))
                elif len(coins) < most and not is_enough(coins):
                    coins.append(judged)
                else:
                    rest.append(coin)
        if too_many is not None and not coins:
            raise too_many
        if not is_enough(coins):
            why = f"a withdrawal takes {MAX_COINS} coins at most: ask again for the rest"
            left_out += [LeftOut(coin, why if too_many is None else too_many.message) for coin in rest]
        return Chosen(tuple(coins), tuple(left_out))

    async def coin(self, outpoint: str, inscription_id: str, lock_blocks: int = 0) -> Coin:
        """Returns the coin of an inscription; `lock_blocks` is the relative lock of its script in blocks.

        Raises PolicyRefused if the coin has other contents, or that is unknown; TooManyLookups.
        """
        judged = await self._look_at(outpoint, (inscription_id,), lock_blocks)
        if isinstance(judged, TooManyLookups):
            raise judged
        if isinstance(judged, str):
            raise PolicyRefused("inputs-cardinal", judged)
        return judged

    def _plain_reason(self, coin: Utxo) -> str | None:
        if coin.outpoint in self._kept:
            return self._kept[coin.outpoint]
        if not coin.is_confirmed:
            return "it is not in a block yet"
        if coin.value <= self._least_value:
            return f"to spend it costs {self._least_value} sats"
        return None

    async def _judged(self, coin: Utxo) -> Coin | str | TooManyLookups:
        return await self._look_at(coin.outpoint, ())

    async def _look_at(
        self, outpoint: str, inscriptions: tuple[str, ...], lock_blocks: int = 0
    ) -> Coin | str | TooManyLookups:
        try:
            found = await self._ask(lambda market: market.outpoint(outpoint, _FACTS_AGE_S))
            facts = withdrawal.inputs_confirmed(outpoint, read_facts(outpoint, to_builtins(found)))
            spent = withdrawal.amount_proof(facts, self._script)
            withdrawal.inputs_cardinal(facts, inscriptions)
            if lock_blocks:
                withdrawal.timelock(facts, lock_blocks)
        except PolicyRefused as refused:
            return refused.message
        except TooManyLookups as refused:
            return refused
        except (VenueError, FactsError) as error:
            return f"nothing could be learned of it: {error}"
        return Coin(Outpoint.parse(outpoint), spent, self._kind)


NOTHING = "Nothing can be withdrawn"
UNCOVERED = "Open bids would not be covered"
DEFAULT_TIER = "halfHourFee"
_FEES_AGE_S = 30.0
Enough = Callable[[Sequence[Coin]], bool]


class CannotWithdraw(BidkeeperError):
    """A refusal: the withdrawal is impossible at present. `reason` is a short cause, `what_to_do` the remedy."""

    def __init__(self, reason: str, what_to_do: str) -> None:
        super().__init__(f"{reason}: {what_to_do}")
        self.reason = reason
        self.what_to_do = what_to_do


class InvalidWithdrawal(BidkeeperError):
    """A refusal: the request is not valid. `fault` reads `field: what is wrong`, `reason` is a heading."""

    def __init__(self, fault: str, reason: str = "Validation failed") -> None:
        super().__init__(fault)
        self.fault = fault
        self.reason = reason


class Wanted(NamedTuple):
    """A withdrawal as the caller requests it.

    Without `amount_sats` everything is withdrawn, minus the fee. `fee_rate` is a tier, or sat/vB.
    """

    source: Source
    amount_sats: int | None = None
    inscription_id: str = ""
    fee_rate: str | Decimal = ""
    dry_run: bool = False
    force: bool = False


class WithdrawalPlan(Struct, frozen=True):
    """All data to be signed except the intent, and the amounts; sats arrive at `destination`."""

    asked: WithdrawalToSign
    destination: str
    sent_sats: int
    fee_sats: int
    left_out: tuple[LeftOut, ...] = ()

    @property
    def coins(self) -> tuple[str, ...]:
        return (*self.asked.coins, *self.asked.fee_coins)


def script_at(address: str) -> bytes:
    """Returns the script of a user's own address, or of an address that the signer derived for a user."""
    script = script_of(parse(address))
    assert script is not None
    return script


class WithdrawalPlanner:
    """Plans one withdrawal of `user`. Raises CannotWithdraw, InvalidWithdrawal, VenueError or SignerError."""

    def __init__(self, services: Services, user: User, wanted: Wanted, until: float) -> None:
        self._services = services
        self._ask = services.market_for(user.id, "look" if wanted.dry_run else "withdraw", until)
        self._wanted = wanted
        self._user = user
        self._address = user.address

    async def plan(self) -> WithdrawalPlan:
        keys = await self._services.signer(lambda signer: signer.addresses(self._address))
        if self._wanted.source == "bidding":
            settings, wanted = self._services.settings, self._wanted
            return await plan_from_bidding(settings, self._ask, self._user, wanted, keys.payment, keys.payment_pubkey)
        if self._wanted.source == "escrow":
            return await self._inscription(keys)
        if self._address in (keys.payment, keys.vault):
            text = "You sign in with one of these addresses, so their keys are in your own wallet: send from there."
            raise CannotWithdraw(NOTHING, text)
        if self._wanted.inscription_id:
            return await self._inscription(keys)
        if self._wanted.source == "payment":
            return await self._sats("payment", keys.payment, "p2wpkh")
        return await self._sats("vault", keys.vault, "p2tr")

    async def _sats(self, source: Source, address: str, kind: CoinKind) -> WithdrawalPlan:
        rate, amount = await self._fee_per_kvb(), self._wanted.amount_sats
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
        inscription_id = self._wanted.inscription_id
        self._refuse_listed(inscription_id)
        try:
            where = await self._ask(lambda market: market.whereabouts(inscription_id, 0.0))
        except NotFound:
            raise InvalidWithdrawal("inscriptionId: there is no such inscription in any block yet") from None
        escrow = self._escrow_at(where.address, keys)
        source: Source = "escrow" if self._wanted.source == "escrow" else "vault"
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
            item = await Choosing(self._ask, "p2tr", held_by, {}, rate).coin(
                where.outpoint, inscription_id, lock_blocks
            )
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
            inscription_id=inscription_id,
            fee_per_kvb=rate,
        )
        return WithdrawalPlan(asked, sent_to, made.sent_sats, made.fee_sats, chosen.left_out)

    def _escrow_at(self, address: str | None, keys: UserKeys) -> Escrow | None:
        """Returns the user's escrow at this address."""
        if address is None or address not in keys.escrows:
            return None
        # The key is x-only, so any parity byte will do.
        vault = b"\x02" + bytes.fromhex(keys.vault_pubkey)
        known = all_terms(escrow_terms_of(self._services.settings))
        return escrow_at(script_at(address), vault, [terms for _, terms in known])

    def _refuse_listed(self, inscription_id: str) -> None:
        kept = withdrawals.what_keeps(self._user.id, inscription_id)
        if kept.running_task is not None:
            text = f"Stop auto-list task {kept.running_task} first: it would list what is no longer there."
            raise CannotWithdraw("An auto-list task of this inscription is running", text)
        if kept.is_listed and not self._wanted.force:
            text = (
                "Delete its auto-list task first, which cancels the listing; or send force: true. Moving it makes "
                "every signature for a listing of it worthless, at once and for good."
            )
            raise CannotWithdraw("The inscription is listed", text)

    def _kept(self) -> dict[str, str]:
        """Returns the coins to keep, with reasons. They include coins of bids, because spending one ends its bid."""
        user_id = self._user.id
        behind = {} if self._wanted.force else withdrawals.coins_behind_bids(user_id)
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
        given = self._wanted.fee_rate or DEFAULT_TIER
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
    """Tells whether these coins are enough; also True if the signer refuses for a reason other than funds."""
    if not coins:
        return False
    try:
        composed(coins)
    except PolicyRefused as refused:
        return refused.tag != "funds"
    return True


def _composed(compose: Callable[[], Composed], chosen: Chosen, what_to_do: str = "") -> Composed:
    """Returns the transaction that the signer will compose. Raises CannotWithdraw if the signer would refuse it."""
    try:
        return compose()
    except PolicyRefused as refused:
        text = f"{refused.message}. {what_to_do}".strip()
        if chosen.left_out:
            text += f" {len(chosen.left_out)} coins were left out; the first: {chosen.left_out[0].reason}."
        raise CannotWithdraw(NOTHING, text) from None


async def plan_from_bidding(
    settings: Settings, ask: UserMarket, user: User, wanted: Wanted, payment: str, pubkey: str
) -> WithdrawalPlan:
    """Plans a withdrawal from the bidding wallet to the user's `payment` address, whose key is `pubkey`.

    Raises CannotWithdraw, InvalidWithdrawal or VenueError.
    """
    venue, receive = bidding_venue(settings), user.ordinals_address
    try:
        wallet = await ask(lambda market: market.at(venue).balance(payment, receive, pubkey, 0.0))
        coins = await ask(lambda market: market.coins(wallet.address, 0.0))
        amount = wanted.amount_sats or sum(coin.value for coin in coins if coin.is_confirmed)
        if not amount:
            raise CannotWithdraw(NOTHING, "The bidding wallet holds no confirmed sats.")
        _refuse_uncovered(user.id, wanted, venue, wallet.sats - amount)
        psbt = await ask(lambda market: market.at(venue).draft_withdrawal(payment, amount))
        transaction = decode_base64(psbt).transaction
    except NotFound:
        raise CannotWithdraw(NOTHING, "The marketplace has no bidding wallet for you yet.") from None
    except NotSupported as error:
        raise InvalidWithdrawal(f"from: {error.message}", "This cannot be done yet") from None
    except AuthFailed:
        raise
    except Refused as error:
        raise CannotWithdraw("The marketplace refused the withdrawal", error.message) from None
    except WireError as error:
        raise Unavailable(f"its draft is no PSBT: {error}") from None
    values = {coin.outpoint: coin.value for coin in coins}
    spent = tuple(str(each.outpoint) for each in transaction.inputs)
    sent = sum(output.value for output in transaction.outputs if output.script == script_at(payment))
    fee = sum(values.get(each, 0) for each in spent) - sum(output.value for output in transaction.outputs)
    asked = WithdrawalToSign(
        intent="", user=user.address, source="bidding", coins=spent, amount_sats=amount, venue=venue, psbt=psbt
    )
    return WithdrawalPlan(asked, payment, sent, max(fee, 0))


def _refuse_uncovered(user_id: int, wanted: Wanted, venue: str, left: int) -> None:
    largest = withdrawals.largest_open_bid(user_id, venue)
    if largest and left < largest and not wanted.force:
        text = (
            f"{max(left, 0)} sats would be left, and a bid of {largest} is open: the marketplace cancels bids that "
            "are not covered. Stop the tasks first, withdraw less, or send force: true."
        )
        raise CannotWithdraw(UNCOVERED, text)


def bidding_venue(settings: Settings) -> str:
    """Returns the first marketplace with bidding wallets, else the default one."""
    return next((venue for venue in settings.venues if dialect_of(venue) == "satflow"), settings.market)


log = logging.getLogger(__name__)

PATIENCE_S = 5.0
_NOT_YET = "This cannot be started yet"
# Rules that a marketplace's draft breaks by its form, so that later drafts would break them too.
_OF_THE_FORM = frozenset(
    {
        "psbt-size",
        "psbt-strict",
        "inputs-own",
        "amount-proof",
        "dest-allow",
        "outputs-known",
        "sighash-allowed",
        "input-signed",
        "tx-form",
    }
)


def refuse_without_sources(settings: Settings) -> None:
    """Raises ApiError (400) if the settings make all withdrawals impossible."""
    if not settings.venue_url("mempool"):
        lacking = "no mempool server is set (BIDKEEPER_MEMPOOL_URL)"
    elif not (settings.venue_url("ord") or settings.venue_url("unisat")):
        lacking = "no index of inscriptions is set (BIDKEEPER_ORD_URL, or BIDKEEPER_UNISAT_URL)"
    else:
        return
    raise invalid([f"venue: nothing could be withdrawn again: {lacking} (docs/withdrawing.md)"], _NOT_YET)


async def refuse_without_way_out(handler: SignedIn, venue: str) -> None:
    """Raises ApiError (400) if sats that back bids at this venue could not be withdrawn."""
    settings = handler.services.settings
    refuse_without_sources(settings)
    if venue not in task_handler.venues_with_bidding_wallets(settings):
        return
    if (other := bidding_venue(settings)) != venue:
        raise invalid([f"venue: its bidding wallet could not be withdrawn from: that is done at {other}"], _NOT_YET)
    await _refuse_locked_wallet(handler, venue)


async def _refuse_locked_wallet(handler: SignedIn, venue: str) -> None:
    """Has a full withdrawal from the bidding wallet drafted and judged, once for each user. Raises ApiError (400)."""
    services, user = handler.services, handler.user
    about = (user.id, user.ordinals_address, venue)
    if about in services.ways_out:
        return
    try:
        await asyncio.wait_for(_judge(handler), PATIENCE_S)
    except CannotWithdraw:
        return  # the wallet is empty
    except (VenueError, TimeoutError) as error:
        # Logged for the operator, because the check is not repeated before the next start.
        text = "failed to check whether user %d could withdraw from the bidding wallet at %s before a start: %s"
        log.warning(text, user.id, venue, error or "no answer in time")
        return
    except InvalidWithdrawal as wrong:
        raise invalid([f"venue: its bidding wallet could not be withdrawn from: {wrong}"], _NOT_YET) from None
    except SignerRefused as refused:
        if refused.tag not in _OF_THE_FORM:
            return
        text = (
            f"venue: the signer would not sign a withdrawal from its bidding wallet: {refused.tag}: {refused.message}"
        )
        raise invalid([text], _NOT_YET) from None
    except (SignerError, ApiError):
        return
    services.ways_out.add(about)


async def _judge(handler: SignedIn) -> None:
    services, user = handler.services, handler.user
    keys = await services.signer(lambda signer: signer.addresses(user.address))
    wanted = Wanted("bidding", force=True)
    plan = await plan_from_bidding(services.settings, handler.act, user, wanted, keys.payment, keys.payment_pubkey)
    await services.signer(lambda signer: signer.judge_withdrawal(plan.asked))
