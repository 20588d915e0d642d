"""The choice of an address's coins: confirmed, ours, and without assets; in doubt one is left out.

The same rules as the signer's, on facts from the gateway; the signer asks again, from sources of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from msgspec import to_builtins

from markets.base import TooManyLookups, VenueError
from markets.outpoint_facts import Utxo
from server.http.blocking import UserMarket
from wallet.facts_client import FactsError, read_facts
from wallet.protocol import MAX_COINS, VIRTUAL_KB, PolicyRefused
from wallet.psbt.transaction import Outpoint
from wallet.withdrawal import rules
from wallet.withdrawal.compose import INPUT_VSIZE, Coin, CoinKind

_AT_ONCE = 4
_FACTS_AGE_S = 10.0


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A coin that is not spent, and why."""

    coin: Utxo
    reason: str


@dataclass(frozen=True, slots=True)
class Chosen:
    """Coins to be spent, and those left out on the way."""

    coins: tuple[Coin, ...]
    left_out: tuple[LeftOut, ...]


class Choosing:
    """The choice among one of a user's addresses here; `script` is its script.

    `kept` are the coins that stay, each with the reason.
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
        """Chooses the largest coins, one after the other, until they are enough; `most` of them at most.

        Once the user may ask no more, those learned of by then are chosen. Raises TooManyLookups if there are none.
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
        """Returns the coin of an inscription. Raises PolicyRefused when it is not alone there, or that is not known;
        TooManyLookups.

        `lock_blocks` is how long its script keeps it there.
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
            facts = rules.inputs_confirmed(outpoint, read_facts(outpoint, to_builtins(found)))
            spent = rules.amount_proof(facts, self._script)
            rules.inputs_cardinal(facts, inscriptions)
            if lock_blocks:
                rules.timelock(facts, lock_blocks)
        except PolicyRefused as refused:
            return refused.message
        except TooManyLookups as refused:
            return refused
        except (VenueError, FactsError) as error:
            return f"nothing could be learned of it: {error}"
        return Coin(Outpoint.parse(outpoint), spent, self._kind)
