"""Satflow's lists with one odd row each: verb by odd row, what is left of the answer.

    kept      the row is read like any other
    over      it is passed over and not counted: it is closed, or of an unconfirmed item
    foreign   it is left out and counted: it is about something else
    unread    it is left out and counted by its id, so what it is about is unknown
    nameless  it is left out and counted without an id, so whatever is missing is unknown
    refused   the whole answer is not understood

The odd row is the last of three. In a book it is tried as the first one, too, at the best price (after the slash).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import responses

from markets.base import Floor, NotUnderstood
from markets.parse import Page, Unread
from markets.satflow.adapter import Satflow
from tests.markets.satflow_examples import BASE

VAULT, PAYER, RIVAL = "bc1pvault", "bc1qpayer", "bc1prival"
WHEN, EPOCH = "2026-03-01T09:30:00.000Z", "1970-01-01T00:00:00.000Z"
END_FIELDS = ("cancelledAt", "canceledAt", "fillCompletedAt", "fillPendingAt", "invalidAt", "isPending", "pending")
Row = dict[str, Any]


def _order(number: int, side: str, price: int, **more: Any) -> Row:
    named = {"_id": f"{number:024x}", "orderType": side, "collectionSlug": "frogs", "createdAt": WHEN}
    return {**named, **dict.fromkeys(END_FIELDS), "price": price, **more}


def _listing(number: int) -> Row:
    return _order(number, "ask", 900_000 + number, sellerOrdAddress=RIVAL)


def _bid(number: int) -> Row:
    return _order(number, "bid", 900_000 - number, bidderAddress=RIVAL)


def _own_bid(number: int) -> Row:
    row = _order(number, "bid", 500_000, expiration=1_772_360_000_000, type="collection")
    return {"bid_id": row.pop("_id"), **row}


def _item(number: int) -> Row:
    listing = _order(number, "ask", 900_000, sellerOrdAddress=VAULT)
    del listing["collectionSlug"]
    return {"token": {"inscription_id": f"{number:064x}i0"}, "collection": {"id": "frogs"}, "listing": listing}


def _sale(number: int) -> Row:
    return _order(number, "ask", 900_000, inscriptionId=f"{number:064x}i0", timestamp=WHEN, fillOrdAddress=RIVAL)


def _floor(number: int) -> Row:
    return {"slug": f"{number:024x}", "price": 900_000, "listedCount": 3}


def _floors(satflow: Satflow) -> Page[Floor]:
    found = satflow.floors([f"{number:024x}" for number in (1, 2, 3)], "ordinals")
    unread = {slug: value for slug, value in found.items() if isinstance(value, Unread)}
    assert all(value.key in ("", slug) for slug, value in unread.items())
    return Page(tuple(value for value in found.values() if isinstance(value, Floor)), None, tuple(unread.values()))


@dataclass(frozen=True)
class Verb:
    """One read: the path, a good row by its number, the holder of the order in a row, the envelope."""

    path: str
    row: Callable[[int], Row]
    read: Callable[[Satflow], Page[Any]]
    wrap: Callable[[list[Any]], Any] = lambda rows: {"items": rows}
    holder: str | None = None
    price: str = "price"


def _contents(rows: list[Any]) -> Any:
    return {"results": {"ordinals": rows}, "nextCursor": None}


VERBS = {
    "listings": Verb("/activity/listings", _listing, lambda venue: venue.asks("frogs", 1)),
    "bids": Verb("/activity/bids", _bid, lambda venue: venue.bids("frogs", "ordinals", 1)),
    "own bids": Verb("/address/bids", _own_bid, lambda venue: venue.own_bids(PAYER), lambda rows: {"results": rows}),
    "own listings": Verb(
        "/address/wallet-contents", _item, lambda venue: venue.own_listings(VAULT, 0), _contents, "listing"
    ),
    "wallet": Verb(
        "/address/wallet-contents", _item, lambda venue: venue.wallet_contents(VAULT, 0), _contents, "listing"
    ),
    "sales": Verb("/activity/sales", _sale, lambda venue: venue.sales("frogs", "ordinals", 1)),
    "floors": Verb("/collection-stats/floors", _floor, _floors, lambda rows: rows, price="floor"),
}
BEST = {"listings": 1_000, "bids": 5_000_000}


def _change(**fields: Any) -> Callable[[Row], Any]:
    return lambda order: {**order, **fields}


def _without(order: Row) -> Row:
    return {name: value for name, value in order.items() if name not in ("_id", "bid_id", "slug", "token")}


ODD: dict[str, Callable[[Row], Any]] = {
    **{f"{field} {value!r}": _change(**{field: value}) for field in END_FIELDS for value in (EPOCH, 0, "0")},
    "cancelled": _change(cancelledAt=WHEN),
    "filled": _change(fillCompletedAt=WHEN),
    "invalid": _change(invalidAt=WHEN),
    "fill pending": _change(fillPendingAt=WHEN),
    "cancelled, in letters": _change(cancelledAt="soon"),
    "cancelled, in seconds": _change(cancelledAt=1_772_357_400),
    "cancelled in 9999": _change(cancelledAt="9999-12-31T23:59:59Z"),
    "of another collection": _change(collectionSlug="toads"),
    "of another side": lambda order: {**order, "orderType": "bid" if order.get("orderType") == "ask" else "ask"},
    "unknown orderType": _change(orderType="swap"),
    "unknown status": _change(status="paused"),
    "unknown type": _change(type="mystery"),
    "unconfirmed": _change(unconfirmed=True),
    "several items": lambda order: {**order, "unitPrice": order.get("price"), "quantity": 3},
    "huge price": _change(price=10**30),
    "no price": _change(price=None),
    "price in letters": _change(price="12x"),
    "negative price": _change(price=-1),
    "no id": _without,
    "maker a number": lambda order: {name: 7 if name.endswith("Address") else at for name, at in order.items()},
}
WHOLE: dict[str, Any] = {"null": None, "a list": [], "a number": 7, "empty": {}}

# One column per verb, in the order of VERBS. A dash: the verb's rows have no such field.
TABLE = """
                      | listings        | bids            | own bids | own listings | wallet   | sales    | floors
null                  | nameless        | nameless        | nameless | nameless     | nameless | nameless | nameless
a list                | nameless        | nameless        | nameless | nameless     | nameless | nameless | nameless
a number              | nameless        | nameless        | nameless | nameless     | nameless | nameless | nameless
empty                 | nameless        | nameless        | nameless | over         | nameless | nameless | nameless
END 0                 | kept/kept       | kept/kept       | kept     | kept         | kept     | kept     | -
cancelled             | over/over       | over/over       | over     | over         | kept     | over     | -
filled                | over/over       | over/over       | over     | over         | kept     | kept     | -
invalid               | over/over       | over/over       | kept     | kept         | kept     | over     | -
fill pending          | over/over       | over/over       | kept     | kept         | kept     | kept     | -
cancelled, in letters | unread/refused  | unread/refused  | unread   | unread       | kept     | unread   | -
cancelled, in seconds | unread/refused  | unread/refused  | unread   | unread       | kept     | unread   | -
cancelled in 9999     | unread/refused  | unread/refused  | unread   | unread       | kept     | unread   | -
of another collection | foreign/foreign | foreign/foreign | kept     | -            | -        | foreign  | -
of another side       | foreign/foreign | foreign/foreign | over     | -            | -        | kept     | -
unknown orderType     | unread/refused  | unread/refused  | unread   | -            | -        | kept     | -
unknown status        | unread/refused  | unread/refused  | kept     | kept         | kept     | kept     | -
unknown type          | kept/kept       | kept/kept       | unread   | kept         | kept     | kept     | -
unconfirmed           | over/over       | kept/kept       | kept     | kept         | kept     | kept     | -
several items         | kept/kept       | kept/kept       | kept     | kept         | kept     | kept     | -
huge price            | unread/unread   | unread/unread   | unread   | unread       | kept     | unread   | unread
no price              | unread/unread   | unread/unread   | unread   | unread       | kept     | unread   | kept
price in letters      | unread/refused  | unread/refused  | unread   | unread       | kept     | unread   | unread
negative price        | unread/refused  | unread/refused  | unread   | unread       | kept     | unread   | unread
no id                 | nameless/refused| nameless/refused| nameless | nameless     | nameless | nameless | nameless
maker a number        | kept/kept       | kept/kept       | kept     | unread       | kept     | kept     | -
"""


def _cases() -> list[Any]:
    head, *lines = (line.split("|") for line in TABLE.strip("\n").splitlines())
    verbs = [name.strip() for name in head[1:]]
    assert verbs == list(VERBS)
    ends = [name for name in ODD if name.split(" ")[0] in END_FIELDS]
    cases = []
    for name, *cells in ([cell.strip() for cell in line] for line in lines):
        for verb, said in zip(verbs, cells, strict=True):
            for odd in ends if name == "END 0" else [name]:
                if said != "-":
                    cases.append(pytest.param(verb, odd, said, id=f"{verb}-{odd}"))
    assert {case.values[1] for case in cases} == {*ODD, *WHOLE}
    return cases


def _odd_row(verb: Verb, odd: str, best: int | None) -> Any:
    if odd in WHOLE:
        return WHOLE[odd]
    row = verb.row(3)
    order = row if verb.holder is None or odd == "no id" else row[verb.holder]
    changed = ODD[odd](order if best is None else {**order, "price": best})
    return changed if order is row else {**row, verb.holder: changed}


def _outcome(satflow: Satflow, verb: Verb, rows: list[Any]) -> str:
    told = [{**row, verb.price: row["price"]} if isinstance(row, dict) and "price" in row else row for row in rows]
    with responses.RequestsMock() as answers:
        answers.get(BASE + verb.path, body=json.dumps({"success": True, "data": verb.wrap(told)}))
        try:
            page = verb.read(satflow)
        except NotUnderstood:
            return "refused"
    if len(page.entries) == 3:
        assert not page.unread
        return "kept"
    assert len(page.entries) == 2
    if not page.unread:
        return "over"
    (unread,) = page.unread
    if unread.is_foreign:
        return "foreign"
    assert unread.key in ("", f"{3:024x}", f"{3:064x}i0")
    return "unread" if unread.key else "nameless"


@pytest.mark.parametrize(("name", "odd", "said"), _cases())
def test_answer_with_one_odd_row_leaves(satflow: Satflow, name: str, odd: str, said: str) -> None:
    verb = VERBS[name]
    good = [verb.row(1), verb.row(2)]
    last, _, first = said.partition("/")
    assert _outcome(satflow, verb, [*good, _odd_row(verb, odd, None)]) == last
    if first:
        assert _outcome(satflow, verb, [_odd_row(verb, odd, BEST[name]), *good]) == first
