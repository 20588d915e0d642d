"""The control routes `/sim/...`, which set scenes and read the history. For tests and demos, never through nginx.

Times are milliseconds since the epoch, prices the whole order's sats, paths percent-encoded; docs/simulator.md lists
the routes. All rows are checked before anything changes. Rows may break the market's rules (price step, minimum),
because a test must be able to set any state.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple, cast

from simulator import holdings
from simulator.calls import BURST, PER_MONTH, PER_SECOND
from simulator.chain import Coin
from simulator.engine import Engine, Market, Order, Refusal, Sale, Side, unit_price
from simulator.fills import give_back, strand
from simulator.handler import JsonHandler
from simulator.poison import POISONS, Poison
from simulator.trades import buy_signed, sell
from simulator.venue_scripts import ORDNET
from simulator.wallets import KINDS, Item, Trait, name_of, number_of
from simulator.wire import (
    EXACT,
    MAX_SATS,
    MAX_WHOLE,
    ApiError,
    amount,
    bad,
    flag,
    items,
    loads,
    number,
    only,
    optional_text,
    text,
    whole,
)
from simulator.world import World
from wallet import address as addresses

log = logging.getLogger(__name__)

MAX_LIMIT, _MOST_COINS, _MOST_BLOCKS, _LONGEST_TEXT = 1_000_000, 200, 10_000, 2_000
Body = dict[str, Any]
Answer = Callable[..., Any]

_PATHS: dict[str, dict[str, Any]] = {"/healthz": {"get": lambda call: call.send({"status": "ok"})}}


def routes(world: World) -> list[tuple[Any, ...]]:
    return [(path, type("Control", (JsonHandler,), members), {"world": world}) for path, members in _PATHS.items()]


def _get(path: str) -> Callable[[Answer], Answer]:
    def declared(function: Answer) -> Answer:
        _PATHS.setdefault(f"/sim/{path}", {})["get"] = lambda call: call.send(function(call))
        return function

    return declared


def _change(method: str, path: str, *fields: str, may_be_empty: bool = False) -> Callable[[Answer], Answer]:
    """Registers the decorated function for calls with these body fields; without fields any body is accepted."""

    def declared(function: Answer) -> Answer:
        def answer(call: JsonHandler, *parts: str) -> None:
            if may_be_empty and not call.request.body:
                body: Any = {}
            else:
                body = call.body() if fields else loads(call.request.body)
                if fields:
                    only(body, frozenset(fields), "the body")
            call.send(function(call, body, *parts))
            call.engine.changes += 1

        _PATHS.setdefault(f"/sim/{path}", {})[method] = answer
        return function

    return declared


_get("faults")(lambda call: call.world.faults.rows())
_get("limits")(lambda call: call.world.limits.rows())
_get("windows")(lambda call: {"seconds": call.world.ordnet.windows.seconds})
_get("requests")(lambda call: call.world.counts.rows())
_get("scenes")(lambda call: call.world.scenes.as_json())
_get("poison")(lambda call: {"mode": call.world.poison})
_get("play-wallet")(lambda call: {"address": call.world.play_wallet.address})


@_change("post", "reset", "seed", "background", may_be_empty=True)
def reset(call: JsonHandler, body: Body) -> Body:
    """Deletes everything, including faults, counts and quotas."""
    seed = whole(body.get("seed", 0), "seed", -MAX_WHOLE, MAX_WHOLE)
    background = flag(body, "background", default=False)
    call.world.reset(seed, background=background)
    log.info("reset to seed %s, answers as %s, background traders %s", seed, call.world.shape, background)
    return {"seed": seed, "background": background, "shape": call.world.shape}


@_change("put", "faults")
def put_faults(call: JsonHandler, body: Any) -> list[Body]:
    """Replaces all faults with the rows `{operation, mode, count?|probability?, delaySeconds?}`."""
    call.world.faults.put(body, call.engine)
    return call.world.faults.rows()


@_change("put", "limits", "perSecond", "burst", "monthly", "daily")
def put_limits(call: JsonHandler, body: Body) -> dict[str, int]:
    """Sets the limits of each key until a reset; missing fields get the venue's own limits. `daily` is UniSat's."""
    call.world.limits.change(
        whole(body.get("perSecond", PER_SECOND), "perSecond", 1, MAX_LIMIT),
        whole(body.get("burst", BURST), "burst", 1, MAX_LIMIT),
        whole(body.get("monthly", PER_MONTH), "monthly", 0, MAX_WHOLE),
        whole(body.get("daily", 0), "daily", 0, MAX_WHOLE),
    )
    return call.world.limits.rows()


@_change("put", "windows", "seconds")
def put_windows(call: JsonHandler, body: Body) -> Body:
    call.world.ordnet.windows.seconds = whole(body.get("seconds"), "seconds", 1, 3600)
    return {"seconds": call.world.ordnet.windows.seconds}


@_get("history")
def history(call: JsonHandler) -> list[Body]:
    """Answers the events, oldest first; with `since` only later numbers, or 410 if some of those were deleted."""
    call.engine.expire()
    asked = call.get_query_argument("since", "")
    return call.engine.history.rows(call.query_whole("since", 0, 0, MAX_WHOLE) if asked else None)


@_get("state")
def state(call: JsonHandler) -> Body:
    world, engine = call.world, call.engine
    engine.expire()
    markets = engine.markets.values()
    return {
        "now": engine.now_ms(),
        "seed": world.seed,
        "shape": world.shape,
        "background": world.background,
        "collections": {m.slug: _summary(engine, m) for m in markets if m.kind == "ordinals"},
        "runes": {m.slug: _summary(engine, m) for m in markets if m.kind == "runes"},
        "faults": world.faults.rows(),
        "scenes": world.scenes.names,
    }


def _summary(engine: Engine, market: Market) -> Body:
    row: Body = {"slug": market.slug, "name": market.name, "floor": engine.floor(market)}
    row |= {"asks": len(market.asks), "bids": len(market.bids)}
    return row | {"divisibility": market.divisibility} if market.kind == "runes" else row


@_change("put", "scenes", "names", "ahead")
def put_scenes(call: JsonHandler, body: Body) -> Body:
    """Chooses the oddities in the venues' answers until a reset: a list of names, or "drawn" for the seed's own."""
    names, ahead = body.get("names"), flag(body, "ahead", default=False)
    if names == "drawn":
        call.world.scenes.draw()
    elif isinstance(names, list) and all(isinstance(name, str) for name in names):
        call.world.scenes.choose(names, ahead=ahead)
    else:
        raise bad('names must be a list of scenes or "drawn"')
    return call.world.scenes.as_json()


@_change("put", "scenes/sale_names_other_item", "inscriptionId")
def put_other_item(call: JsonHandler, body: Body) -> Body:
    """Makes all venues name this inscription in sales into bids; changes nothing else. `null` or a reset ends it."""
    call.engine.sales.other_item = optional_text(body, "inscriptionId")
    return {"inscriptionId": call.engine.sales.other_item}


@_change("put", "poison", "mode")
def put_poison(call: JsonHandler, body: Body) -> Body:
    mode = body.get("mode")
    if mode is not None and (not isinstance(mode, str) or mode not in POISONS):
        raise bad(f"mode must be null or one of {', '.join(sorted(POISONS))}")
    call.world.poison = cast("Poison | None", mode)
    return {"mode": call.world.poison}


class Row(NamedTuple):
    """One ask or bid of a script; `maker` None gets a new address, `placed_ms` None means now."""

    side: Side
    price: int
    quantity: Decimal
    unit: Decimal
    maker: str | None
    placed_ms: int | None
    traits: tuple[Trait, ...] = ()
    inscription: str | None = None


@_change("put", "collections/([^/]+)", "name", "listingTraits", "creator", "asks", "bids")
def put_collection(call: JsonHandler, body: Body, slug: str) -> Body:
    """Sets a collection's book.

    `listingTraits` false leaves traits out of listings, as the venue documents them, until a call says true. The
    address `creator` gets a part of each price at Ordinals Wallet.
    """
    slug = text(slug, "slug")
    name = text(body["name"], "name") if "name" in body else ""
    known = call.engine.market("ordinals", slug)
    listing_traits = flag(body, "listingTraits", default=known.listing_traits if known else True)
    creator = known_address(text(body["creator"], "creator")) if "creator" in body else ""
    rows = [_ask(row, f"asks[{at}]") for at, row in enumerate(items(body.get("asks", []), "asks"))]
    named = [row.inscription for row in rows if row.inscription]
    if len(named) != len(set(named)):
        raise bad("asks: an inscriptionId is repeated")
    rows += [_bid(row, f"bids[{at}]") for at, row in enumerate(items(body.get("bids", []), "bids"))]
    market = call.engine.open_market("ordinals", slug, name)
    market.listing_traits, market.creator = listing_traits, creator or market.creator
    return _written(call.engine, market, rows)


@_change("put", "runes/([^/]+)", "divisibility", "asks", "bids")
def put_rune(call: JsonHandler, body: Body, ticker: str) -> Body:
    ticker = text(ticker, "ticker")
    known = call.engine.market("runes", ticker)
    places = whole(body.get("divisibility", known.divisibility if known else 0), "divisibility", 0, 38)
    asks, bids = items(body.get("asks", []), "asks"), items(body.get("bids", []), "bids")
    rows = [_rune_ask(row, f"asks[{at}]", places) for at, row in enumerate(asks)]
    rows += [_rune_bid(row, f"bids[{at}]", places) for at, row in enumerate(bids)]
    return _written(call.engine, call.engine.open_market("runes", ticker, divisibility=places), rows)


def _written(engine: Engine, market: Market, rows: list[Row]) -> Body:
    """Replaces the orders of scripts and traders in `market`; returns its summary."""
    engine.replace_book(market)
    for row in rows:
        ask, inscription = row.side == "ask", row.inscription
        if ask and market.kind == "ordinals" and inscription is None:
            inscription = engine.new_inscription()
        maker = row.maker or engine.new_address("p2tr" if ask else "p2wpkh")
        about = {"unit": row.unit, "placed_ms": row.placed_ms, "traits": row.traits, "inscription": inscription}
        engine.add(market, row.side, maker, row.price, row.quantity, **cast(Any, about))
    return _summary(engine, market)


def _ask(row: Body, where: str) -> Row:
    only(row, frozenset({"price", "seller", "traits", "inscriptionId", "placedAt"}), where)
    price = whole(row.get("price"), f"{where}.price", 1)
    inscription = text(row["inscriptionId"], f"{where}.inscriptionId") if "inscriptionId" in row else None
    maker = _maker(row, "seller", where)
    found = traits(row.get("traits", {}), f"{where}.traits")
    return Row("ask", price, Decimal(1), Decimal(price), *maker, found, inscription)


def _bid(row: Body, where: str) -> Row:
    only(row, frozenset({"price", "bidder", "quantity", "placedAt", "trait"}), where)
    price = whole(row.get("price"), f"{where}.price", 1)
    quantity = Decimal(whole(row.get("quantity", 1), f"{where}.quantity", 1, 1_000_000))
    wanted = traits(row["trait"], f"{where}.trait") if row.get("trait") is not None else ()
    if len(wanted) > 1:
        raise bad(f"{where}.trait must be one trait")
    return Row("bid", price, quantity, unit_price(price, quantity), *_maker(row, "bidder", where), wanted)


def _rune_ask(row: Body, where: str, places: int) -> Row:
    only(row, frozenset({"tokens", "unitPrice", "seller", "placedAt"}), where)
    tokens = amount(row.get("tokens"), f"{where}.tokens", places)
    unit = amount(row.get("unitPrice"), f"{where}.unitPrice")
    return Row("ask", _total(tokens, unit, where), tokens, unit, *_maker(row, "seller", where))


def _rune_bid(row: Body, where: str, places: int) -> Row:
    only(row, frozenset({"tokens", "quantity", "unitPrice", "price", "bidder", "placedAt"}), where)
    if ("tokens" in row) == ("quantity" in row) or ("price" in row) == ("unitPrice" in row):
        raise bad(f"{where} takes one of tokens and quantity, and one of price and unitPrice")
    tokens = amount(row.get("tokens", row.get("quantity")), f"{where}.tokens", places)
    if "price" in row:
        price = whole(row["price"], f"{where}.price", 1)
        unit = unit_price(price, tokens)
    else:
        unit = amount(row["unitPrice"], f"{where}.unitPrice")
        price = _total(tokens, unit, where)
    return Row("bid", price, tokens, unit, *_maker(row, "bidder", where))


def _total(tokens: Decimal, unit: Decimal, where: str) -> int:
    """Returns the sats of the whole order, rounded and at least 1."""
    total = EXACT.multiply(tokens, unit).to_integral_value(context=EXACT)
    if total > MAX_SATS:
        raise bad(f"{where} costs more than {MAX_SATS} sats")
    return max(1, int(total))


def _maker(row: Body, name: str, where: str) -> tuple[str | None, int | None]:
    maker, placed = row.get(name), row.get("placedAt")
    return (
        None if maker is None else known_address(text(maker, f"{where}.{name}")),
        None if placed is None else whole(placed, f"{where}.placedAt", 0, MAX_WHOLE),
    )


def traits(value: Any, name: str) -> tuple[Trait, ...]:
    """Reads traits as `{"Hat": "Red"}` or as `[{"trait_type": "Hat", "value": "Red"}]`."""
    if isinstance(value, dict) and "value" not in value:
        pairs = list(value.items())
    elif isinstance(value, (list, dict)):
        rows = items([value] if isinstance(value, dict) else value, name, 100)
        pairs = [(row.get("trait_type", row.get("type")), row.get("value")) for row in rows]
    else:
        raise bad(f"{name} must be an object or a list of traits")
    if len(pairs) > 100:
        raise bad(f"{name}: at most 100 traits")
    return tuple((text(key, f"{name}: type"), text(kept, f"{name}: value")) for key, kept in pairs)


def known_address(value: str) -> str:
    """Returns the normal form of an address; keeps other texts, because scripts may name makers freely."""
    try:
        return addresses.parse(value).text
    except addresses.AddressError:
        return value


@_change("put", "wallets/([^/]+)", "balance", "inscriptions")
def put_wallet(call: JsonHandler, body: Body, address: str) -> Body:
    address, wallets = known_address(text(address, "address")), call.engine.wallets
    balance = whole(body["balance"], "balance") if "balance" in body else None
    held = _inscriptions(body["inscriptions"]) if "inscriptions" in body else None
    if balance is not None:
        wallets.set_balance(address, balance)
        holdings.follow(call.engine, address)
    if held is not None:
        holdings.hold(call.engine, address, held)
    kept = wallets.inscriptions.get(address, {})
    return {"address": address, "balance": wallets.balance(address), "inscriptions": len(kept)}


def _inscriptions(value: Any) -> list[Item]:
    made = []
    for at, row in enumerate(items(value, "inscriptions")):
        where = f"inscriptions[{at}]"
        only(row, frozenset({"id", "collection", "name", "traits"}), where)
        name = text(row["name"], f"{where}.name") if "name" in row else ""
        found = text(row.get("id"), f"{where}.id")
        slug = text(row.get("collection"), f"{where}.collection").lower()
        of_it = traits(row.get("traits", {}), f"{where}.traits")
        made.append(Item(found, slug, name or name_of(slug, found), of_it, number_of(found)))
    if len({item.id for item in made}) != len(made):
        raise bad("inscriptions: an id is repeated")
    return made


@_change("post", "play-wallet/sign", "message")
def play_wallet_sign(call: JsonHandler, body: Body) -> Body:
    """Signs a text by BIP-322; the text may have line feeds."""
    message = body.get("message")
    if not isinstance(message, str) or not 1 <= len(message) <= _LONGEST_TEXT:
        raise bad(f"message must be a text of 1 to {_LONGEST_TEXT} characters")
    if not message.replace("\n", "").isprintable():
        raise bad("message must be lines of printable characters")
    wallet = call.world.play_wallet
    return {"address": wallet.address, "signature": wallet.sign(message)}


@_change("put", "bidding-wallets", "kind")
def put_bidding_wallets(call: JsonHandler, body: Body) -> Body:
    """Sets the script of bidding wallets that are created from now on."""
    kinds = [kind for kind in KINDS if kind == body.get("kind")]
    if not kinds:
        raise bad(f"kind must be one of {', '.join(KINDS)}")
    call.engine.wallets.bidding_kind = kinds[0]
    return {"kind": kinds[0]}


@_change("put", "coins/([^/]+)", "values")
def put_coins(call: JsonHandler, body: Body, address: str) -> list[Body]:
    values = body.get("values")
    if not isinstance(values, list) or len(values) > _MOST_COINS:
        raise bad(f"values must be a list of at most {_MOST_COINS}")
    owner = known_address(text(address, "address"))
    coins = holdings.set_coins(call.engine, owner, [whole(value, "values", 1) for value in values])
    return [{"outpoint": coin.outpoint, "value": coin.value} for coin in coins]


@_change("put", "outputs/([^/]+)", "inscriptions", "runes")
def put_output(call: JsonHandler, body: Body, outpoint: str) -> Body:
    """Adds inscriptions and runes to an output, as if an index had found them; a rune's `amount` is raw."""
    coin = call.engine.chain.coins.get(outpoint)
    if coin is None:
        raise ApiError(404, "no such output", "NOT_FOUND")
    given, runes = body.get("inscriptions", []), body.get("runes", {})
    if not isinstance(given, list) or not isinstance(runes, dict) or len(given) + len(runes) > 100:
        raise bad("inscriptions must be a list and runes an object, of at most 100 together")
    extra = [text(each, "inscriptions") for each in given]
    found = {text(name, "runes"): _rune(row, f"runes.{name[:40]}") for name, row in runes.items()}
    call.engine.chain.add_to(coin, extra, found)
    return {"outpoint": coin.outpoint, "inscriptions": coin.inscriptions, "runes": runes}


def _rune(row: Any, name: str) -> tuple[int, int]:
    if not isinstance(row, dict):
        raise bad(f"{name} must be an object")
    only(row, frozenset({"amount", "divisibility"}), name)
    raw = whole(row.get("amount"), f"{name}.amount", 1)
    return raw, whole(row.get("divisibility", 0), f"{name}.divisibility", 0, 38)


@_change("post", "confirm", "txid", may_be_empty=True)
def confirm(call: JsonHandler, body: Body) -> Body:
    """Puts this transaction, or every waiting one, into the newest block."""
    return {"confirmed": call.engine.chain.confirm(optional_text(body, "txid"))}


@_change("post", "reorganise", "txid")
def reorganise(call: JsonHandler, body: Body) -> Body:
    """Takes a transaction's block and all later ones off the chain; their transactions wait again."""
    chain, txid = call.engine.chain, text(body.get("txid"), "txid")
    if txid not in chain.transactions or not chain.confirmations(txid):
        raise bad("txid: is in no block")
    return {"waiting": chain.reorganise(txid)}


@_change("post", "blocks", "count")
def blocks(call: JsonHandler, body: Body) -> Body:
    """Adds blocks to those of the clock; a reset removes them."""
    call.engine.chain.mined += whole(body.get("count"), "count", 1, _MOST_BLOCKS)
    return {"height": call.engine.chain.height()}


@_change("post", "move", "inscriptionId", "address", "confirmed")
def move(call: JsonHandler, body: Body) -> Body:
    """Moves an inscription and ends its listing; an unconfirmed move waits 10 to 20 minutes of the market's clock."""
    inscription = text(body.get("inscriptionId"), "inscriptionId")
    to = known_address(text(body.get("address"), "address"))
    confirmed = flag(body, "confirmed", default=True)
    holder, coin = call.engine.wallets.holder_of(inscription), call.engine.chain.coin_of(inscription)
    if holder is None or coin is None:
        raise ApiError(404, "no wallet holds this inscription", "NOT_FOUND")
    holdings.send(call.engine, holder[1], to, confirmed=confirmed)
    found = cast(Coin, call.engine.chain.coin_of(inscription))
    row = {"inscriptionId": inscription, "address": to, "from": coin.outpoint, "outpoint": found.outpoint}
    return row | {"txid": found.txid, "value": found.value, "confirmed": confirmed}


@_change("post", "delist", "inscriptionId", "venue")
def delist(call: JsonHandler, body: Body) -> Body:
    venue = optional_text(body, "venue")
    ask = call.engine.ask_of(text(body.get("inscriptionId"), "inscriptionId"), venue)
    if ask is None:
        raise ApiError(404, "not listed", "NOT_FOUND")
    call.engine.cancel(ask, "delisted by the venue")
    return {"orderId": ask.order_id, "inscriptionId": ask.inscription, "price": ask.price}


@_change("post", "escrow", "inscriptionId", "back", "confirmed")
def escrow(call: JsonHandler, body: Body) -> Body:
    """Moves a listed item into its escrow without a sale; `back` moves it out again and ends the listing."""
    listed = call.engine.asks_of(text(body.get("inscriptionId"), "inscriptionId"))
    ask = next((each for each in listed if each.papers), None)
    if ask is None:
        raise ApiError(404, "not listed out of an escrow", "NOT_FOUND")
    confirmed = flag(body, "confirmed", default=True)
    try:
        if flag(body, "back", default=False):
            coin = give_back(call.engine, ask, confirmed=confirmed)
        else:
            coin = strand(call.engine, ask, confirmed=confirmed, ends=ask.venue != ORDNET)
    except Refusal as refusal:
        raise ApiError(409, str(refusal), "CONFLICT") from None
    return {"inscriptionId": ask.inscription, "outpoint": coin.outpoint, "address": coin.address}


@_change("post", "sell", "slug", "inscriptionId", "bidId", "fillQuantity", "confirmed", "venue", "networkFee")
def sell_now(call: JsonHandler, body: Body) -> Body:
    """Sells into the best bid or the given one; for a client's listing (at `venue`, or the oldest), buys it instead.

    Without `fillQuantity` it sells one inscription, or all tokens of a rune bid. The bidder pays `networkFee` on top.
    `remaining` is the quantity that the bid still asks for.
    """
    engine, fee = call.engine, whole(body.get("networkFee", 0), "networkFee", 0, MAX_WHOLE)
    names = ("slug", "inscriptionId", "bidId", "venue")
    slug, inscription, bid_id, venue = (optional_text(body, name) for name in names)
    ask = engine.ask_of(inscription, venue) if inscription and not slug and not bid_id else None
    if ask is not None and ask.outpoint:
        return _bought(engine, ask, confirmed=flag(body, "confirmed", default=True))
    wanted = amount(body["fillQuantity"], "fillQuantity") if body.get("fillQuantity") is not None else None
    bid, sales = sell(engine, slug, inscription, bid_id, wanted, fee)
    holdings.follow(engine, bid.maker)
    remaining = number(bid.quantity) if engine.order(bid.order_id) is not None else 0
    row = {"sold": _sold(bid, sales), "remaining": remaining, "inscriptionId": sales[0].inscription}
    return row | {"saleIds": [sale.sale_id for sale in sales], "txids": [sale.txid for sale in sales]}


def _bought(engine: Engine, ask: Order, *, confirmed: bool) -> Body:
    """Buys a signed listing; returns the answer. Raises ApiError(409) if it cannot be sold."""
    assert ask.inscription is not None
    try:
        sale, txid = buy_signed(engine, ask, confirmed=confirmed)
    except Refusal as refusal:
        raise ApiError(409, f"the listing was not sold and is cancelled: {refusal}", "CONFLICT") from None
    coin = engine.chain.coin_of(ask.inscription)
    row = {"sold": _sold(ask, [sale]), "remaining": 0, "inscriptionId": ask.inscription, "saleIds": [sale.sale_id]}
    return row | {"txid": txid, "buyer": sale.receive, "outpoint": coin.outpoint if coin else None}


def _sold(order: Order, sales: list[Sale]) -> Body:
    row: Body = {"orderId": order.order_id, "slug": order.slug, "maker": order.maker, "receive": order.receive}
    return row | {"price": sum(sale.price for sale in sales), "quantity": sum(sale.quantity for sale in sales)}
