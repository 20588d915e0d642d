"""The gateway's answers: one function for each verb of `markets/verbs.py`, from a call to the answer's text."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from gateway.limits.errand import current
from gateway.limits.fence import Fences
from gateway.marketplace import Marketplaces
from gateway.quota_restraint import QuotaRestraint
from gateway.reads.chain_facts import ChainFacts
from gateway.reads.common import CommonReads
from gateway.reads.market_reads import MarketReads
from gateway.venue import Venue
from gateway.writes import Asker, Fencing, Writes, given
from markets import verbs
from markets.base import Unavailable
from markets.verbs import Args, Request, text

Given = TypeVar("Given", bound=Args[Any])


@dataclass(frozen=True, slots=True)
class Call(Generic[Given]):
    """One request: its arguments, the rest of it, and who asks. `max_age_s` is as old as the quota lets answers be."""

    args: Given
    request: Request
    asker: Asker
    max_age_s: float


Answer = Callable[[Call[Any]], Awaitable[str]]
Method = TypeVar("Method", bound=Callable[..., Awaitable[str]])


def answers(kind: type[Args[Any]]) -> Callable[[Method], Method]:
    """Marks the method that answers the verb `kind`. It returns JSON text and raises VenueError leaves."""

    def mark(method: Method) -> Method:
        method.answers = kind  # type: ignore[attr-defined]
        return method

    return mark


def table(*holders: object) -> dict[type[Args[Any]], Answer]:
    """Returns the marked methods by the verbs that they answer; a subclass's goes before its base's."""
    found: dict[type[Args[Any]], Answer] = {}
    for holder in holders:
        for base in reversed(type(holder).__mro__):
            for name, method in vars(base).items():
                if kind := getattr(method, "answers", None):
                    found[kind] = getattr(holder, name)
    return found


class VerbTable:
    """Answers requests by the `table` of a subclass's methods and of those of `others`."""

    def __init__(self, *others: object) -> None:
        self.stopping = False
        self._table: Mapping[type[Args[Any]], Answer] = table(self, *others)

    async def answer(self, request: Request, asker: Asker) -> str:
        """Returns the answer as JSON text. Raises VenueError leaves; Refused('bad_request') for a bad request."""
        if self.stopping:
            raise Unavailable("the gateway is stopping; nothing was sent")
        kind = verbs.BY_NAME.get(request.verb)
        answer = None if kind is None else self._table.get(kind)
        if kind is None or answer is None:
            raise verbs.no_such_verb(request.verb)
        args = verbs.read_args(request, kind)
        return await answer(Call(args, request, asker, self.max_age_s(request, args)))

    def max_age_s(self, request: Request, args: Args[Any]) -> float:
        """Returns the age that an answer may have."""
        return request.max_age_s

    def remark(self, request: Request) -> str:
        """Returns further members of the answer's JSON object: ',"quota":{...}' or nothing."""
        return ""


class FactsVerbs(VerbTable):
    """The facts process's verbs."""

    def __init__(self, market: str, facts: ChainFacts, venues: Sequence[Venue], *others: object) -> None:
        self._market = market
        self._facts = facts
        self._venues = venues
        super().__init__(*others)

    @answers(verbs.Outpoint)
    async def _outpoint(self, call: Call[verbs.Outpoint]) -> str:
        return await self._facts.outpoint(
            call.args.outpoint, call.max_age_s, with_transaction=call.args.with_transaction
        )

    @answers(verbs.Transaction)
    async def _transaction(self, call: Call[verbs.Transaction]) -> str:
        return await self._facts.transaction(call.args.txid, call.max_age_s)

    @answers(verbs.Whereabouts)
    async def _whereabouts(self, call: Call[verbs.Whereabouts]) -> str:
        return await self._facts.whereabouts(call.args.inscription_id, call.max_age_s)

    @answers(verbs.Status)
    async def _status_told(self, call: Call[verbs.Status]) -> str:
        return text(self._status())

    def _status(self) -> dict[str, Any]:
        return {"market": self._market, "venues": {venue.name: venue.status() for venue in self._venues}}


class Verbs(FactsVerbs):
    """The gateway's verbs."""

    def __init__(
        self,
        markets: Marketplaces,
        common: CommonReads,
        fences: Fences,
        venues: Sequence[Venue],
        runes: QuotaRestraint,
        *others: object,
    ) -> None:
        """Makes the table, with the verbs of `others`. `runes` is the scarcity of their provider's quota, for reads of
        runes.
        """
        self._markets = markets
        self._common = common
        self._fences = fences
        self._runes = runes
        super().__init__(markets.default, common.facts, venues, *others)

    def max_age_s(self, request: Request, args: Args[Any]) -> float:
        scarcity = self._scarcity(request, type(args))
        return request.max_age_s if scarcity is None else scarcity.stretched_s(type(args), request.max_age_s)

    def remark(self, request: Request) -> str:
        market, scarcity = self._markets.find(request.venue), self._scarcity(request, verbs.BY_NAME[request.verb])
        return "" if market is None or scarcity is None else scarcity.remark() + market.venue.skew.remark()

    def _scarcity(self, request: Request, kind: type[Args[Any]]) -> QuotaRestraint | None:
        if kind.quota_of == "runes":
            return self._runes
        market = self._markets.find(request.venue)
        return None if market is None else market.scarcity

    def _reads_of(self, call: Call[Any]) -> MarketReads:
        return self._markets.of(call.request.venue).reads

    def _writes_of(self, call: Call[Any]) -> Writes:
        return self._markets.of(call.request.venue).writes

    @answers(verbs.Profile)
    async def _profile(self, call: Call[verbs.Profile]) -> str:
        return text(self._markets.of(call.request.venue).adapter.profile(call.args.kind))

    @answers(verbs.Floors)
    async def _floors(self, call: Call[verbs.Floors]) -> str:
        return await self._reads_of(call).floors(call.args.slugs, call.args.kind, call.max_age_s)

    @answers(verbs.Asks)
    async def _asks(self, call: Call[verbs.Asks]) -> str:
        args = call.args
        return await self._reads_of(call).books.asks(args.slug, call.max_age_s, args.trait, by_floor=args.by_floor)

    @answers(verbs.Bids)
    async def _bids(self, call: Call[verbs.Bids]) -> str:
        args = call.args
        return await self._reads_of(call).books.bids(args.slug, args.kind, call.max_age_s, args.trait)

    @answers(verbs.RuneAsks)
    async def _rune_asks(self, call: Call[verbs.RuneAsks]) -> str:
        return await self._common.rune_asks(call.args.ticker, call.max_age_s)

    @answers(verbs.Rune)
    async def _rune(self, call: Call[verbs.Rune]) -> str:
        return text(await self._common.tickers.rune(call.args.ticker, call.max_age_s))

    @answers(verbs.Traits)
    async def _traits(self, call: Call[verbs.Traits]) -> str:
        return await self._reads_of(call).books.traits(call.args.slug, call.max_age_s)

    @answers(verbs.Sales)
    async def _sales(self, call: Call[verbs.Sales]) -> str:
        return await self._reads_of(call).sales(call.args.slug, call.args.kind, call.args.since_ms, call.max_age_s)

    @answers(verbs.OwnBids)
    async def _own_bids(self, call: Call[verbs.OwnBids]) -> str:
        return await self._reads_of(call).own_bids(call.args.wallet, call.args.slugs, call.max_age_s)

    @answers(verbs.Balance)
    async def _balance(self, call: Call[verbs.Balance]) -> str:
        args = call.args
        return await self._reads_of(call).balance(args.payment, args.receive, args.pubkey, call.max_age_s)

    @answers(verbs.Fees)
    async def _fees(self, call: Call[verbs.Fees]) -> str:
        return await self._common.fees(call.max_age_s)

    @answers(verbs.Coins)
    async def _coins(self, call: Call[verbs.Coins]) -> str:
        return await self._common.coins(call.args.address, call.max_age_s)

    @answers(verbs.WalletContents)
    async def _wallet_contents(self, call: Call[verbs.WalletContents]) -> str:
        return await self._reads_of(call).wallet_contents(call.args.address, call.max_age_s)

    @answers(verbs.Item)
    async def _item(self, call: Call[verbs.Item]) -> str:
        return await self._reads_of(call).item(call.args.inscription_id, call.max_age_s)

    @answers(verbs.Challenge)
    async def _challenge(self, call: Call[verbs.Challenge]) -> str:
        return await self._reads_of(call).challenge(call.args.wallet)

    @answers(verbs.Place)
    async def _place(self, call: Call[verbs.Place]) -> str:
        return text(await self._writes_of(call).place(call.args.order, Fencing.of(call.request), call.asker))

    @answers(verbs.Cancel)
    async def _cancel(self, call: Call[verbs.Cancel]) -> str:
        args, right = call.args, Fencing.of(call.request)
        return text(await self._writes_of(call).cancel(args.wallet, args.venue_ids, args.signature, right, call.asker))

    @answers(verbs.OwnListings)
    async def _own_listings(self, call: Call[verbs.OwnListings]) -> str:
        return await self._reads_of(call).listings.own(call.args.wallet, call.max_age_s)

    @answers(verbs.DraftListing)
    async def _draft_listing(self, call: Call[verbs.DraftListing]) -> str:
        return await self._reads_of(call).listings.draft(call.args.ask)

    @answers(verbs.DraftDelist)
    async def _draft_delist(self, call: Call[verbs.DraftDelist]) -> str:
        return await self._reads_of(call).listings.draft_delist(call.args.wallet, call.args.inscription_id)

    @answers(verbs.ListItem)
    async def _list_item(self, call: Call[verbs.ListItem]) -> str:
        await self._writes_of(call).list_item(call.args.order, Fencing.of(call.request), call.asker)
        return "null"

    @answers(verbs.Delist)
    async def _delist(self, call: Call[verbs.Delist]) -> str:
        args, fencing = call.args, Fencing.of(call.request)
        return text(
            await self._writes_of(call).delist(args.wallet, args.inscription_ids, args.signature, fencing, call.asker)
        )

    @answers(verbs.DraftBid)
    async def _draft_bid(self, call: Call[verbs.DraftBid]) -> str:
        return await self._markets.of(call.request.venue).offers.draft_bid(call.args.ask)

    @answers(verbs.SignInTexts)
    async def _sign_in_texts(self, call: Call[verbs.SignInTexts]) -> str:
        return await self._markets.of(call.request.venue).offers.sign_in_texts(call.args.pair)

    @answers(verbs.SignIn)
    async def _sign_in(self, call: Call[verbs.SignIn]) -> str:
        return await self._markets.of(call.request.venue).offers.sign_in(call.args.answer)

    @answers(verbs.Venues)
    async def _venues_there(self, call: Call[verbs.Venues]) -> str:
        user, default = current().user, self._markets.default
        return text([each.facts(is_default=each.adapter.name == default, user=user) for each in self._markets.all()])

    @answers(verbs.Fence)
    async def _fence(self, call: Call[verbs.Fence]) -> str:
        task, token = given(call.request.task, "task"), given(call.request.token, "token")
        return text(await self._fences.raise_to(task, token))

    @answers(verbs.FenceAll)
    async def _fence_all(self, call: Call[verbs.FenceAll]) -> str:
        tokens = call.args.tokens
        least = await asyncio.gather(*(self._fences.raise_to(task, token) for task, token in tokens))
        return text([(task, seen) for (task, token), seen in zip(tokens, least, strict=True) if seen > token])

    @answers(verbs.Hold)
    async def _hold(self, call: Call[verbs.Hold]) -> str:
        await self._fences.hold(frozenset(call.args.tasks), call.args.hold_s)
        return "null"

    def _status(self) -> dict[str, Any]:
        return super()._status() | {"writes_under_way": len(self._fences)}
