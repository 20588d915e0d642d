"""The rows that an adapter understands are read, whatever one other row of the answer is."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from markets.base import NotUnderstood
from tests.markets.contract.gate import reply
from tests.markets.contract.hostile import JSON
from tests.markets.contract.parties import HELD, PARTIES
from tests.markets.contract.town import Town, prepared
from tests.simulator.desk import PUPPETS

LISTS = ("asks", "bids", "sales", "own_bids", "own_listings", "wallet_contents")
BY_ROWS = [party for party in PARTIES if party.name in ("simulator-ordnet", "simulator-ordinalswallet")]
ORDNET = [party for party in BY_ROWS if party.name == "simulator-ordnet"]
OF_ANOTHER = {"slug": "goblins", "name": "Goblins", "kind": "gallery", "verificationStatus": "verified"}
OF_NONE = {"slug": None, "name": None, "kind": None, "verificationStatus": None}


def answer_with(town: Town, method: str, *odd: Any, is_first: bool = False) -> tuple[Any, Any]:
    """Returns what is read of the practice market's answer, and of the same one with rows added."""
    call = prepared(town, method)
    good = call()
    told = json.loads(town.gate.told[-1])
    rows = (
        told if isinstance(told, list) else told[next(name for name in ("listings", "sales", "rows") if name in told)]
    )
    added = [{**copy.deepcopy(rows[0]), **each} if isinstance(each, dict) else each for each in odd]
    rows[:] = [*added, *rows] if is_first else [*rows, *added]
    if "totalCount" in told:
        told["totalCount"] = len(rows)
    town.gate.answer = reply(json.dumps(told), headers=JSON)
    return good, call()


@pytest.mark.parametrize("party", BY_ROWS, ids=str, indirect=True)
@pytest.mark.parametrize("method", LISTS)
def test_odd_row_is_left_out_and_the_others_are_read(town: Town, method: str) -> None:
    if not town.has(method):
        pytest.skip("not at this venue")
    if method == "sales" and not town.has("place"):
        town.adapter.list_item(town.listing_order(600_000))
        town.practice.sim("POST", "sell", {"inscriptionId": HELD})
    for odd in (None, [], "row"):
        good, found = answer_with(town, method, odd)
        assert good.entries and found.entries == good.entries
        assert (len(found.unread), found.unread[0].key) == (1, "")


# V12
@pytest.mark.parametrize("party", ORDNET, ids=str, indirect=True)
@pytest.mark.parametrize("collection", [OF_ANOTHER, OF_NONE])
def test_bundle_of_another_collection_is_not_the_floor(town: Town, collection: Any) -> None:
    good, found = answer_with(town, "asks", {"collection": collection, "priceSats": 1_000}, is_first=True)
    assert found.entries == good.entries
    assert [each.is_foreign for each in found.unread] == [True]


@pytest.mark.parametrize("party", ORDNET, ids=str, indirect=True)
def test_sale_in_another_collection_may_hide_a_fill(town: Town) -> None:
    good, found = answer_with(town, "sales", {"collection": OF_NONE})
    assert found.entries == good.entries
    assert [(each.is_foreign, each.at_ms) for each in found.unread] == [(False, good.entries[0].sold_ms)]


# V13
@pytest.mark.parametrize("party", ORDNET, ids=str, indirect=True)
def test_sale_names_the_transaction_that_settled_it(town: Town) -> None:
    _, found = answer_with(town, "sales", {"saleId": "s2", "txid": "ab" * 32})
    assert found.entries[-1].txid == "ab" * 32


# V15
@pytest.mark.parametrize("party", [each for each in BY_ROWS if each not in ORDNET], ids=str, indirect=True)
def test_listings_that_may_have_been_cut_are_asked_for_again_from_their_end(town: Town) -> None:
    town.book(asks=[{"price": 900_000 + number} for number in range(60)], bids=[])
    first = town.adapter.asks(PUPPETS, None)
    town.gate.clear()
    assert town.adapter.asks(PUPPETS, first.following).entries == ()  # this market takes no offset and repeats them
    assert [each.path.partition("?")[2] for each in town.gate.seen] == ["offset=60&limit=5000"]


@pytest.mark.parametrize("party", BY_ROWS, ids=str, indirect=True)
def test_answer_of_odd_rows_is_not_understood_and_never_empty(town: Town) -> None:
    with pytest.raises(NotUnderstood):
        answer_with(town, "asks", None, [], "row", 7)
