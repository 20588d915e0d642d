"""A good call of every method of an adapter: what goes before it is done at once, the call itself when it is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from markets.http import Permit
from tests.markets.contract import signing
from tests.markets.contract.parties import HELD, LISTED
from tests.markets.contract.town import Town
from tests.simulator.desk import ANN, PUPPETS

Read = Callable[[], Any]
Write = Callable[[Permit | None], Any]


def _place(town: Town) -> Write:
    order = town.order()
    return lambda permit: town.adapter.place(order, permit)


def _cancel(town: Town) -> Write:
    if not town.has("cancel"):
        return lambda permit: town.adapter.cancel(ANN.payment, ["x"], "", permit)
    ids, signature = [town.placed()], town.signature(ANN.payment)
    return lambda permit: town.adapter.cancel(ANN.payment, ids, signature, permit)


def _list_item(town: Town) -> Write:
    order = town.listing_order()
    return lambda permit: town.adapter.list_item(order, permit)


def _delist(town: Town) -> Write:
    if not town.has("delist"):
        return lambda permit: town.adapter.delist(ANN.ordinals, HELD, "", permit)
    town.adapter.list_item(town.listing_order())
    town.own_listings()
    signature = town.signature(ANN.ordinals)
    return lambda permit: town.adapter.delist(ANN.ordinals, HELD, signature, permit)


def _sign_in(town: Town) -> Read:
    if not town.has("sign_in"):
        return lambda: town.adapter.sign_in(None)  # type: ignore[arg-type]
    answer = town.signed_in()
    return lambda: town.adapter.sign_in(answer)


def _sign_in_texts(town: Town) -> Read:
    return lambda: town.adapter.sign_in_texts(town.pair())


def _draft_bid(town: Town) -> Read:
    ask = town.bid_ask()
    return lambda: town.adapter.draft_bid(ask)


def _draft_listing(town: Town) -> Read:
    ask = town.listing_ask()
    return lambda: town.adapter.draft_listing(ask)


def _draft_delist(town: Town) -> Read:
    if town.has("draft_delist"):
        town.adapter.list_item(town.listing_order())
        town.own_listings()
    return lambda: town.adapter.draft_delist(ANN.ordinals, HELD)


def _own_bids(town: Town) -> Read:
    if town.has("place"):
        town.placed()
    return lambda: town.adapter.own_bids(ANN.payment, None, [PUPPETS])


def _own_listings(town: Town) -> Read:
    if town.has("list_item"):
        town.adapter.list_item(town.listing_order())
    return lambda: town.adapter.own_listings(ANN.ordinals, None)


def _sales(town: Town) -> Read:
    town.book(asks=[], bids=[{"price": 500_000}])
    town.practice.sim("POST", "sell", {"slug": PUPPETS})
    return lambda: town.adapter.sales(PUPPETS, "ordinals", None)


def _draft_withdrawal(town: Town) -> Read:
    town.fund()
    return lambda: town.adapter.draft_withdrawal(ANN.payment, 50_000)


def _submit_withdrawal(town: Town) -> Write:
    if not town.has("submit_withdrawal"):
        return lambda permit: town.adapter.submit_withdrawal(ANN.payment, "AAAA", permit)
    town.fund()
    psbt = signing.withdrawal(town.adapter.draft_withdrawal(ANN.payment, 50_000), ANN)
    return lambda permit: town.adapter.submit_withdrawal(ANN.payment, psbt, permit)


READS: dict[str, Callable[[Town], Read]] = {
    "floors": lambda town: lambda: town.adapter.floors([PUPPETS], "ordinals"),
    "asks": lambda town: lambda: town.adapter.asks(PUPPETS, None),
    "bids": lambda town: lambda: town.adapter.bids(PUPPETS, "ordinals", None),
    "traits": lambda town: lambda: town.adapter.traits(PUPPETS),
    "sales": _sales,
    "own_bids": _own_bids,
    "challenge": lambda town: lambda: town.adapter.challenge(ANN.payment),
    "bidding_wallet": lambda town: lambda: town.adapter.bidding_wallet(ANN.payment, ANN.ordinals, ANN.pubkey),
    "wallet_contents": lambda town: lambda: town.adapter.wallet_contents(ANN.ordinals, None),
    "item": lambda town: lambda: town.adapter.item(LISTED),
    "own_listings": _own_listings,
    "draft_bid": _draft_bid,
    "draft_listing": _draft_listing,
    "draft_delist": _draft_delist,
    "draft_withdrawal": _draft_withdrawal,
    "sign_in_texts": _sign_in_texts,
    "sign_in": _sign_in,
}
WRITES: dict[str, Callable[[Town], Write]] = {
    "place": _place,
    "cancel": _cancel,
    "list_item": _list_item,
    "delist": _delist,
    "submit_withdrawal": _submit_withdrawal,
}
METHODS = (*READS, *WRITES)


def prepared(town: Town, method: str) -> Read:
    """Returns the call of `method`, ready to be made; the gate has seen nothing yet. The venue's limits are full
    again.
    """
    town.practice.clock.ahead_s += 61
    town.gate.clear()
    write = WRITES.get(method)
    call = READS[method](town) if write is None else write(town)
    town.gate.clear()
    return call if write is None else lambda: call(None)  # type: ignore[call-arg]
