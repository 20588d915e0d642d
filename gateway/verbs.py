"""The gateway's verbs: from a request to an answer's text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from gateway import arguments as read
from gateway import listing_arguments, offer_arguments
from gateway.limits.errand import current
from gateway.limits.fence import Fences
from gateway.marketplace import Marketplaces
from gateway.quota_restraint import OF_RUNES, QuotaRestraint
from gateway.reads.chain_facts import ChainFacts
from gateway.reads.common import CommonReads
from gateway.reads.market_reads import MarketReads
from gateway.venue import Venue
from gateway.writes import Asker, Writes
from markets.base import Unavailable
from markets.codec import named, text

Verb = Callable[[Mapping[str, Any], Mapping[str, Any], Asker], Awaitable[str]]
WRITES = frozenset({"place", "cancel", "list_item", "delist", "submit_withdrawal", "broadcast"})


class VerbTable:
    """Answers requests `{"verb", "args", "venue"?, "max_age_s"?, "task"?, "token"?, "deadline_ms"?}`."""

    def __init__(self, table: Mapping[str, Verb]) -> None:
        self.stopping = False
        self._table = table

    async def answer(self, request: Mapping[str, Any], asker: Asker) -> str:
        """Returns the answer as JSON text. Raises VenueError leaves; Refused('bad_request') for a bad request."""
        if self.stopping:
            raise Unavailable("the gateway is stopping; nothing was sent")
        verb = self._table.get(str(request.get("verb")))
        args = request.get("args")
        if verb is None or not isinstance(args, dict):
            raise read.bad("no such verb, or its args are not an object")
        return await verb(request, args, asker)

    def remark(self, request: Mapping[str, Any]) -> str:
        """Returns further members of the answer's JSON object: ',"quota":{...}' or nothing."""
        return ""


class FactsVerbs(VerbTable):
    """The facts process's verbs."""

    def __init__(self, market: str, facts: ChainFacts, venues: Sequence[Venue]) -> None:
        self._market = market
        self._facts = facts
        self._venues = venues
        super().__init__(
            {
                "outpoint": self._outpoint,
                "transaction": self._transaction,
                "whereabouts": self._whereabouts,
                "status": self._status,
            }
        )

    async def _outpoint(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        outpoint, max_age_s = listing_arguments.outpoint(args.get("outpoint")), read.max_age_s(request)
        return await self._facts.outpoint(outpoint, max_age_s, with_transaction=args.get("with_transaction") is True)

    async def _transaction(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        return await self._facts.transaction(listing_arguments.txid(args.get("txid")), read.max_age_s(request))

    async def _whereabouts(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        inscription = read.identifier(args.get("inscription_id"), "inscription_id")
        return await self._facts.whereabouts(inscription, read.max_age_s(request))

    async def _status(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        return json.dumps({"market": self._market, "venues": {venue.name: venue.status() for venue in self._venues}})


class Verbs(FactsVerbs):
    """The gateway's verbs."""

    def __init__(
        self,
        markets: Marketplaces,
        common: CommonReads,
        fences: Fences,
        venues: Sequence[Venue],
        runes: QuotaRestraint,
        others: Mapping[str, Verb],
    ) -> None:
        """Makes the table, with the verbs of `others`. `runes` is the scarcity of their provider's quota, for reads of
        runes.
        """
        super().__init__(markets.default, common.facts, venues)
        self._markets = markets
        self._common = common
        self._fences = fences
        self._runes = runes
        self._table = {
            **self._table,
            "profile": self._profile,
            "floors": self._floors,
            "asks": self._asks,
            "bids": self._bids,
            "rune_asks": self._rune_asks,
            "rune": self._rune,
            "traits": self._traits,
            "sales": self._sales,
            "own_bids": self._own_bids,
            "balance": self._balance,
            "fees": self._fees,
            "coins": self._coins,
            "wallet_contents": self._wallet_contents,
            "item": self._item,
            "challenge": self._challenge,
            "own_listings": self._own_listings,
            "draft_listing": self._draft_listing,
            "draft_delist": self._draft_delist,
            "place": self._place,
            "cancel": self._cancel,
            "list_item": self._list_item,
            "delist": self._delist,
            "draft_bid": self._draft_bid,
            "sign_in_texts": self._sign_in_texts,
            "sign_in": self._sign_in,
            "venues": self._venues_there,
            "fence": self._fence,
            "fence_all": self._fence_all,
            "hold": self._hold,
            **others,
        }

    async def answer(self, request: Mapping[str, Any], asker: Asker) -> str:
        if request.get("verb") in OF_RUNES:
            return await super().answer(self._runes.stretched(request), asker)
        market = self._markets.find(request)
        return await super().answer(market.scarcity.stretched(request) if market else request, asker)

    def remark(self, request: Mapping[str, Any]) -> str:
        market = self._markets.find(request)
        if market is None:
            return ""
        scarcity = self._runes if request.get("verb") in OF_RUNES else market.scarcity
        return scarcity.remark() + market.venue.skew.remark()

    def _reads_of(self, request: Mapping[str, Any]) -> MarketReads:
        return self._markets.of(request).reads

    def _writes_of(self, request: Mapping[str, Any]) -> Writes:
        return self._markets.of(request).writes

    async def _profile(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        return text(self._markets.of(request).adapter.profile(read.kind(args.get("kind"))))

    async def _floors(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        return await self._reads_of(request).floors(
            read.slugs(args.get("slugs")), read.kind(args.get("kind")), read.max_age_s(request)
        )

    async def _asks(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        slug, trait = read.slug(args.get("slug")), read.trait(args.get("trait"), "ordinals")
        by_floor = args.get("by_floor") is True
        return await self._reads_of(request).books.asks(slug, read.max_age_s(request), trait, by_floor=by_floor)

    async def _bids(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        slug, kind = read.slug(args.get("slug")), read.kind(args.get("kind"))
        return await self._reads_of(request).books.bids(
            slug, kind, read.max_age_s(request), read.trait(args.get("trait"), kind)
        )

    async def _rune_asks(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        return await self._common.rune_asks(read.slug(args.get("ticker"), "ticker"), read.max_age_s(request))

    async def _rune(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        return text(await self._common.tickers.rune(read.slug(args.get("ticker"), "ticker"), read.max_age_s(request)))

    async def _traits(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        return await self._reads_of(request).books.traits(read.slug(args.get("slug")), read.max_age_s(request))

    async def _sales(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        slug, kind, since_ms = read.slug(args.get("slug")), read.kind(args.get("kind")), read.whole(args, "since_ms")
        return await self._reads_of(request).sales(slug, kind, since_ms, read.max_age_s(request))

    async def _own_bids(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        slugs = read.slugs(args["slugs"]) if args.get("slugs") else []
        return await self._reads_of(request).own_bids(
            read.word(args.get("wallet"), "wallet"), slugs, read.max_age_s(request)
        )

    async def _balance(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        payment, receive, pubkey = (read.word(args.get(name), name) for name in ("payment", "receive", "pubkey"))
        return await self._reads_of(request).balance(payment, receive, pubkey, read.max_age_s(request))

    async def _fees(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        return await self._common.fees(read.max_age_s(request))

    async def _coins(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        return await self._common.coins(read.word(args.get("address"), "address"), read.max_age_s(request))

    async def _wallet_contents(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        return await self._reads_of(request).wallet_contents(
            read.word(args.get("address"), "address"), read.max_age_s(request)
        )

    async def _item(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        inscription = read.identifier(args.get("inscription_id"), "inscription_id")
        return await self._reads_of(request).item(inscription, read.max_age_s(request))

    async def _challenge(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        return await self._reads_of(request).challenge(read.word(args.get("wallet"), "wallet"))

    async def _place(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        order, fencing = read.order(args.get("order")), read.fencing(request)
        return json.dumps(await self._writes_of(request).place(order, fencing, asker))

    async def _cancel(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        wallet, ids = read.word(args.get("wallet"), "wallet"), read.identifiers(args.get("venue_ids"))
        signature = read.optional_signature(args.get("signature"))
        return json.dumps(await self._writes_of(request).cancel(wallet, ids, signature, read.fencing(request), asker))

    async def _own_listings(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        return await self._reads_of(request).listings.own(
            read.word(args.get("wallet"), "wallet"), read.max_age_s(request)
        )

    async def _draft_listing(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        return await self._reads_of(request).listings.draft(listing_arguments.ask(args.get("ask")))

    async def _draft_delist(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        wallet = read.word(args.get("wallet"), "wallet")
        inscription = read.identifier(args.get("inscription_id"), "inscription_id")
        return await self._reads_of(request).listings.draft_delist(wallet, inscription)

    async def _list_item(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        await self._writes_of(request).list_item(
            listing_arguments.listing_order(args.get("order")), read.fencing(request), asker
        )
        return "null"

    async def _delist(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        wallet, ids = (
            read.word(args.get("wallet"), "wallet"),
            listing_arguments.inscriptions(args.get("inscription_ids")),
        )
        signature = listing_arguments.delist_proof(args.get("signature"))
        return json.dumps(await self._writes_of(request).delist(wallet, ids, signature, read.fencing(request), asker))

    async def _draft_bid(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        return await self._markets.of(request).offers.draft_bid(offer_arguments.bid_ask(args.get("ask")))

    async def _sign_in_texts(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        return await self._markets.of(request).offers.sign_in_texts(offer_arguments.pair(args.get("pair")))

    async def _sign_in(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        return await self._markets.of(request).offers.sign_in(offer_arguments.sign_in_answer(args.get("answer")))

    async def _venues_there(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        found = []
        for market in self._markets.all():
            is_default = market.adapter.name == self._markets.default
            facts = market.facts(is_default=is_default, user=current().user)
            found.append(named(facts) | {"capabilities": named(facts.capabilities)})
        return json.dumps(found)

    async def _fence(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        return json.dumps(await self._fences.raise_to(read.whole(request, "task"), read.whole(request, "token")))

    async def _fence_all(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        tokens = read.tokens(args.get("tokens"))
        least = await asyncio.gather(*(self._fences.raise_to(task, token) for task, token in tokens))
        higher = [(task, seen) for (task, token), seen in zip(tokens, least, strict=True) if seen > token]
        return json.dumps(higher)

    async def _hold(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        await self._fences.hold(frozenset(read.tasks(args.get("tasks"))), read.hold_s(args.get("hold_s")))
        return "null"

    async def _status(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        status = json.loads(await super()._status(request, args, asker))
        return json.dumps(status | {"writes_under_way": len(self._fences)})
