"""An ord server's facts of outputs and inscriptions: the shapes of its source, of its docs, and hostile ones."""

from __future__ import annotations

from typing import Any

import pytest
import responses

from markets.base import NotFound, NotUnderstood, RateLimited, Unavailable, VenueError
from markets.ord import IndexState, Ord

pytestmark = pytest.mark.usefixtures("no_network")

BASE = "http://127.0.0.1:8080"
TXID = "ab" * 32
OUTPOINT = f"{TXID}:3"
INSCRIPTION = "cd" * 32 + "i0"
STATUS = {
    "address_index": True,
    "blessed_inscriptions": 76_332_641,
    "chain": "mainnet",
    "height": 864_351,
    "initial_sync_time": {"secs": 59_213, "nanos": 979_632_000},
    "inscription_index": True,
    "minimum_rune_for_next_block": "PVHGFEDCAZZ",
    "rune_index": True,
    "unrecoverably_reorged": False,
}
OUTPUT = {
    "address": "bc1pvault",
    "confirmations": 6,
    "indexed": True,
    "inscriptions": [INSCRIPTION],
    "outpoint": OUTPOINT,
    "runes": {},
    "sat_ranges": None,
    "script_pubkey": "5120" + "11" * 32,
    "spent": False,
    "transaction": TXID,
    "value": 546,
}
FOUND = {
    "address": "bc1pvault",
    "charms": [],
    "id": INSCRIPTION,
    "number": -7,
    "satpoint": f"{OUTPOINT}:0",
    "timestamp": 1_700_000_000,
    "value": 546,
}
STATE = IndexState(864_351, True, True)


@pytest.fixture
def ord_() -> Ord:
    return Ord(BASE)


def test_the_state_of_the_index(ord_: Ord) -> None:
    responses.get(f"{BASE}/status", json=STATUS)
    assert ord_.status() == STATE
    assert responses.calls[0].request.headers["Accept"] == "application/json"


@pytest.mark.parametrize(
    ("changed", "state"),
    [
        ({"rune_index": False}, IndexState(864_351, True, False)),
        ({"inscription_index": False}, IndexState(864_351, False, True)),
        ({"height": None}, IndexState(None, True, True)),
        ({"unrecoverably_reorged": True}, IndexState(None, True, True)),
    ],
)
def test_an_index_that_lacks_something(ord_: Ord, changed: Any, state: IndexState) -> None:
    responses.get(f"{BASE}/status", json=STATUS | changed)
    assert ord_.status() == state


def test_what_the_state_does_not_name_is_not_there(ord_: Ord) -> None:
    responses.get(f"{BASE}/status", json={"height": 5})
    assert ord_.status() == IndexState(5, False, False)


@pytest.mark.parametrize(
    "changed",
    [
        {"chain": "signet"},
        {"height": "high"},
        {"height": -1},
        {"height": 10**8},
        {"height": True},
        {"height": 1.5},
        {"rune_index": "true"},
        {"inscription_index": 1},
        {"unrecoverably_reorged": None},
    ],
)
def test_a_strange_state_is_none(ord_: Ord, changed: Any) -> None:
    responses.get(f"{BASE}/status", json=STATUS | changed)
    with pytest.raises(Unavailable):
        ord_.status()


def test_an_output_in_the_shape_of_the_source(ord_: Ord) -> None:
    pile = {"amount": 340282366920938463463374607431768211455, "divisibility": 2, "symbol": None}
    runes = {"UNCOMMON•GOODS": pile, "A•B": pile}
    responses.get(f"{BASE}/output/{OUTPOINT}", json=OUTPUT | {"runes": runes})
    found = ord_.output(OUTPOINT, STATE)
    assert (found.value, found.script, found.height) == (546, "5120" + "11" * 32, 864_351)
    assert (found.is_confirmed, found.is_spent) == (True, False)
    assert (found.inscriptions, found.runes) == ((INSCRIPTION,), ("A•B", "UNCOMMON•GOODS"))


def test_a_script_in_words_as_in_the_docs_is_no_second_opinion(ord_: Ord) -> None:
    words = f"OP_PUSHNUM_1 OP_PUSHBYTES_32 {'11' * 32}"
    responses.get(f"{BASE}/output/{OUTPOINT}", json=OUTPUT | {"script_pubkey": words})
    assert ord_.output(OUTPOINT, STATE).script is None


@pytest.mark.parametrize(
    ("changed", "state", "inscriptions", "runes"),
    [
        ({"indexed": False}, STATE, None, None),
        ({}, IndexState(None, True, True), None, None),
        ({}, IndexState(5, False, True), None, ()),
        ({}, IndexState(5, True, False), (INSCRIPTION,), None),
        ({"inscriptions": None, "runes": None}, STATE, None, None),
        ({"inscriptions": []}, STATE, (), ()),
    ],
)
def test_an_empty_list_is_a_fact_only_where_the_index_holds_such_things(
    ord_: Ord, changed: Any, state: IndexState, inscriptions: Any, runes: Any
) -> None:
    responses.get(f"{BASE}/output/{OUTPOINT}", json=OUTPUT | changed)
    found = ord_.output(OUTPOINT, state)
    assert (found.inscriptions, found.runes) == (inscriptions, runes)


@pytest.mark.parametrize(
    "changed",
    [
        {"outpoint": f"{TXID}:4"},
        {"outpoint": None},
        {"value": -1},
        {"value": 546.5},
        {"value": 22 * 10**14},
        {"value": True},
        {"value": None},
        {"spent": None},
        {"spent": "false"},
        {"indexed": 1},
        {"confirmations": None},
        {"script_pubkey": "51zz"},
        {"script_pubkey": "512"},
        {"script_pubkey": None},
        {"inscriptions": INSCRIPTION},
        {"inscriptions": [7]},
        {"inscriptions": [INSCRIPTION, None]},
        {"runes": {"UNCOMMON•GOODS": {"amount": 1}, "A": None}},
        {"inscriptions": ["../x"]},
        {"inscriptions": {}},
        {"inscriptions": [INSCRIPTION] * 1001},
        {"runes": []},
        {"runes": [["A", {"amount": 1}]]},
        {"runes": {"A": None}},
        {"runes": {"A": {"amount": -1}}},
        {"runes": {"": {"amount": 1}}},
        {"runes": "A"},
    ],
)
def test_a_strange_output_is_none(ord_: Ord, changed: Any) -> None:
    responses.get(f"{BASE}/output/{OUTPOINT}", json=OUTPUT | changed)
    with pytest.raises(NotUnderstood):
        ord_.output(OUTPOINT, STATE)


def test_where_an_inscription_is(ord_: Ord) -> None:
    responses.get(f"{BASE}/inscription/{INSCRIPTION}", json=FOUND)
    found = ord_.inscription(INSCRIPTION, 7)
    assert (found.outpoint, found.address, found.value, found.taken_ms) == (OUTPOINT, "bc1pvault", 546, 7)


def test_an_unbound_inscription_is_nowhere(ord_: Ord) -> None:
    nowhere = {"satpoint": "0" * 64 + ":0:12", "address": None, "value": None}
    responses.get(f"{BASE}/inscription/{INSCRIPTION}", json=FOUND | nowhere)
    found = ord_.inscription(INSCRIPTION, 7)
    assert (found.outpoint, found.address, found.value) == (None, None, None)


@pytest.mark.parametrize(
    "changed",
    [
        {"id": "ef" * 32 + "i0"},
        {"satpoint": OUTPOINT},
        {"satpoint": f"{OUTPOINT}:-1"},
        {"satpoint": f"{TXID}:03:0"},
        {"satpoint": f"{TXID.upper()}:3:0"},
        {"satpoint": f"{TXID}:4294967296:0"},
        {"satpoint": None},
        {"address": "<script>"},
        {"value": "much"},
    ],
)
def test_a_strange_inscription_is_none(ord_: Ord, changed: Any) -> None:
    responses.get(f"{BASE}/inscription/{INSCRIPTION}", json=FOUND | changed)
    with pytest.raises(Unavailable):
        ord_.inscription(INSCRIPTION, 7)


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (404, f"inscription {INSCRIPTION} not found", NotFound),
        (404, f"inscription {'ef' * 32}i0 not found", Unavailable),
        (404, "", Unavailable),
        (404, "<html>404 page not found</html>", Unavailable),
        (200, "<!doctype html><title>Inscription 0</title>", Unavailable),
        (200, '{"value": NaN}', Unavailable),
        (200, "[" * 100_000, Unavailable),
        (200, '"' + "x" * 2_000_001 + '"', Unavailable),
        (429, "", RateLimited),
        (500, "", Unavailable),
        (302, "", Unavailable),
    ],
)
def test_what_is_not_known_and_what_is_no_answer(ord_: Ord, status: int, body: str, error: type[VenueError]) -> None:
    responses.get(f"{BASE}/inscription/{INSCRIPTION}", body=body, status=status)
    with pytest.raises(VenueError) as raised:
        ord_.inscription(INSCRIPTION, 7)
    assert type(raised.value) is error
