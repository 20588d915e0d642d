"""Failures at every adapter: refused, unknown, hostile and odd answers.

`tests/fault_classes.py` has the effect of each class on task, breaker and pause.
"""

from __future__ import annotations

import copy
import json
import random
import re
import time
import tracemalloc
from typing import Any, NamedTuple

import pytest

from markets.adapter import AskAgain
from markets.base import (
    AuthFailed,
    NotFound,
    NotUnderstood,
    RateLimited,
    Refused,
    SignInNeeded,
    Unavailable,
    Unknown,
    VenueError,
)
from markets.http import Http
from markets.told import Told, telling
from tests.markets.contract.gate import CUT, SILENCE, reply
from tests.markets.contract.hostile import ANSWERS, JSON, assert_sane, spoilt
from tests.markets.contract.parties import HELD, PARTIES, each, having
from tests.markets.contract.town import NOTHING, READS, WRITES, Read, Town, prepared
from tests.simulator.desk import PUPPETS

HTML = "<html><body>Bad gateway</body></html>"
NO = '{"error": "no", "message": "no", "msg": "no"}'
LOST = {
    "cut": CUT,
    "half a head": b"HTTP/1.1 200 OK\r\nConte",
    "half a body": b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{",
    "no HTTP": b"hello\r\n\r\n",
    "500": reply(NO, 500),
    "502": reply(HTML, 502),
    "503": reply(NO, 503),
    "504": reply("", 504),
    "302": reply("", 302, {"Location": "http://127.0.0.1:1/"}),
    "204": reply("", 204),
    "418": reply(NO, 418),
}


def _call(town: Town, method: str, answer: bytes) -> Read:
    call = prepared(town, method)
    town.gate.answer = answer
    return call


def _failure(town: Town, method: str, answer: bytes) -> VenueError:
    with pytest.raises(VenueError) as caught:
        _call(town, method, answer)()
    assert len(town.gate.seen) == 1
    return caught.value


@each(READS)
def test_a_read_that_fails_changed_nothing(town: Town, method: str) -> None:
    found = {name: type(_failure(town, method, answer)) for name, answer in LOST.items()}
    assert set(found.values()) <= {Unavailable, AskAgain}, found


@each(WRITES)
def test_a_write_whose_answer_is_lost_may_have_been_taken(town: Town, method: str) -> None:
    found = {name: type(_failure(town, method, answer)) for name, answer in LOST.items()}
    assert set(found.values()) == {Unknown}, found


@pytest.mark.slow
@each(["floors", *WRITES])
def test_silence_is_waited_for_no_longer_than_it_takes(
    town: Town, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert town.adapter  # made with the usual patience
    call = _call(town, method, SILENCE)
    # Only now, for all that goes before is to be answered, however long that takes.
    monkeypatch.setattr(Http, "_timeout", property(lambda self: (3.0, 1.0)), raising=False)
    with pytest.raises(VenueError) as caught:
        call()
    assert type(caught.value) is (Unavailable if method == "floors" else Unknown)
    ends_at = time.monotonic() + 60
    while not town.gate.seen and time.monotonic() < ends_at:  # the gate has threads of its own
        time.sleep(0.01)
    assert len(town.gate.seen) == 1


@each([*READS, *WRITES])
def test_nobody_there_is_unavailable(town: Town, method: str) -> None:
    call = _call(town, method, SILENCE)
    town.gate.close()
    with pytest.raises(VenueError) as caught:
        call()
    assert type(caught.value) is Unavailable


@pytest.mark.parametrize("header, pause_s", [({"Retry-After": "7"}, {7.0}), ({}, {None, 60.0})], ids=["7 s", "silent"])
@each([*READS, *WRITES])
def test_too_many_requests(town: Town, method: str, header: dict[str, str], pause_s: set[float | None]) -> None:
    call = _call(town, method, reply(NO, 429, header))
    with pytest.raises(RateLimited) as caught:
        call()
    assert caught.value.retry_after_s in pause_s


@each([*READS, *WRITES])
def test_what_the_venue_says_no_to_has_not_happened(town: Town, method: str) -> None:
    for status in (400, 401, 403, 404, 405, 409, 410, 413, 415, 422):
        if status == 404 and method in town.party.empty_404:
            assert _call(town, method, reply(NO, status))() in ({}, NOTHING)
            continue
        error = _failure(town, method, reply(NO, status))
        assert isinstance(error, Refused), status
        if status == 404:
            assert type(error) is NotFound
        if status in (401, 403):
            assert isinstance(error, AuthFailed | SignInNeeded) or error.code == "bad_signature"
        town.sign_in()  # a 401 has ended the session


@each(READS)
def test_a_404_of_a_proxy_is_not_the_venues_word(town: Town, method: str) -> None:
    call = _call(town, method, reply(HTML, 404))
    with pytest.raises(VenueError) as caught:
        call()
    assert type(caught.value) is Unavailable


Class = type[VenueError]
PAGE = "<!DOCTYPE html>\n<html><title>Attention Required! | Firewall</title></html>"
TEXT = {"Content-Type": "text/plain"}


class Row(NamedTuple):
    """One answer, and the classes for a read and a write: at every venue, or `at` one, where `but` is another's."""

    status: int
    body: object
    read: Class
    write: Class
    but: dict[str, tuple[Class, Class]] = {}  # noqa: RUF012
    at: str = ""
    says: str = ""
    pause_s: float | None = None

    def __str__(self) -> str:
        body = self.body if isinstance(self.body, str) else json.dumps(self.body)
        return f"{self.status} {body[:50]!r} {self.at}"

    def answer(self) -> bytes:
        return reply(self.body if isinstance(self.body, str) else json.dumps(self.body), self.status, TEXT)


def _both(of: Class) -> tuple[Class, Class]:
    return of, of


TABLE = (
    # A proxy or a firewall writes pages.
    *(Row(status, PAGE, Unavailable, Unavailable) for status in (400, 401, 403, 404, 405, 409, 413, 422)),
    Row(429, PAGE, RateLimited, RateLimited),
    Row(502, PAGE, Unavailable, Unknown),
    Row(200, PAGE, Unavailable, Unknown),
    # No such thing, in the venue's own words, and not.
    Row(404, {"error": "collection not found"}, NotFound, NotFound),
    Row(404, "", Unavailable, Unavailable, {"ordinalswallet": (NotFound, Unavailable)}),
    Row(404, {}, Unavailable, Unavailable),
    Row(404, "404 page not found", Unavailable, Unavailable),
    Row(404, {"message": "Cannot POST /v1/x", "error": "Not Found", "statusCode": 404}, Unavailable, Unavailable),
    Row(404, {"message": "no Route matched with those values"}, Unavailable, Unavailable),
    # Credentials.
    Row(401, {"error": "bad key"}, AuthFailed, AuthFailed, {"ordnet": _both(SignInNeeded)}, says="bad key"),
    Row(401, "", AuthFailed, AuthFailed, {"ordnet": _both(SignInNeeded)}),
    Row(403, {"message": "this plan lacks the route"}, AuthFailed, AuthFailed, says="plan lacks"),
    Row(403, "Forbidden", AuthFailed, AuthFailed, says="Forbidden"),
    Row(403, {"error": "invalid signature"}, AuthFailed, Refused, says="invalid signature"),
    # Too many requests, whatever the status.
    Row(429, "", RateLimited, RateLimited, {}),
    Row(403, {"code": -2006, "msg": "exceeds rate limit"}, RateLimited, RateLimited),
    Row(403, "Rate limit exceeded", RateLimited, RateLimited),
    Row(400, {"error": "Too many requests, try again in 20 seconds"}, RateLimited, RateLimited, pause_s=20),
    Row(403, {"code": -2006, "msg": "no"}, RateLimited, RateLimited, at="unisat"),
    Row(500, {"code": -2006, "msg": "no"}, RateLimited, RateLimited, at="unisat"),
    Row(200, {"code": -2006, "msg": "no", "data": None}, RateLimited, RateLimited, at="unisat"),
    Row(200, {"code": -1, "msg": "exceeds rate limit"}, RateLimited, RateLimited, at="unisat"),
    Row(200, {"code": 1, "msg": "API key exceeds rate limit"}, RateLimited, RateLimited, at="unisat"),
    Row(200, {"success": False, "error": "rate limit exceeded"}, RateLimited, RateLimited, at="satflow"),
    Row(200, {"error": True, "message": "Too many requests"}, RateLimited, RateLimited, at="ordinalswallet"),
    # Refusals.
    Row(400, "Invalid URL: notanid\x00 invalid length: 7", Refused, Refused, says="Invalid URL: notanid  invalid"),
    Row(400, "x" * 5000, Refused, Refused, says="x" * 200),
    Row(402, {"error": "upgrade your plan"}, Refused, Refused, says="upgrade your plan"),
    Row(200, {"success": False, "error": "hidden"}, Refused, Refused, at="satflow", says="hidden"),
    Row(200, {"success": False, "message": "hidden"}, Refused, Refused, at="satflow", says="hidden"),
    Row(200, {"code": -1, "msg": "API key is invalid"}, AuthFailed, AuthFailed, at="unisat"),
    # Not clear.
    Row(500, {"error": "insufficient balance"}, Unavailable, Unknown),
    Row(503, {"code": -132, "msg": "too low"}, Unavailable, Unknown),
    Row(200, {"success": False}, NotUnderstood, Unknown, at="satflow"),
    Row(200, {"msg": "no"}, NotUnderstood, Unknown, at="unisat"),
)
DIALECTS = {"simulator": "satflow", "simulator-ordnet": "ordnet", "simulator-unisat": "unisat"}


def _dialect(town: Town) -> str:
    return DIALECTS.get(town.party.name, "ordinalswallet")


def _fault(town: Town, method: str, row: Row) -> VenueError:
    call = prepared(town, method)
    town.gate.answer = row.answer()
    with pytest.raises(VenueError) as caught:
        call()
    assert len(town.gate.seen) == 1
    town.gate.clear()
    town.sign_in()  # a 401 has ended the session
    return caught.value


def _check(town: Town, method: str, *, is_write: bool) -> None:
    wrong = []
    for row in TABLE:
        if row.at not in ("", _dialect(town)):
            continue
        wanted = row.but.get(_dialect(town), (row.read, row.write))[is_write]
        found = _fault(town, method, row)
        if type(found) is not wanted or (wanted is not SignInNeeded and row.says not in found.message):
            wrong.append((str(row), wanted.__name__, type(found).__name__, found.message))
        if isinstance(found, RateLimited):
            at_ordnet = 60.0 if _dialect(town) == "ordnet" and row.status == 429 else None
            assert found.retry_after_s == (row.pause_s or at_ordnet), row
        assert len(found.message) <= 400
    assert not wrong, wrong


@having("asks")
def test_read_gets_the_class_of_its_answer(town: Town) -> None:
    _check(town, "asks", is_write=False)


@having("list_item")
def test_write_gets_the_class_of_its_answer(town: Town) -> None:
    _check(town, "place" if town.has("place") else "list_item", is_write=True)


@having("own_listings")
def test_own_listings_are_never_empty_by_a_fault(town: Town) -> None:
    """Not by the empty 404 either, which elsewhere at Ordinals Wallet means that it knows no such thing."""
    for row in TABLE:
        if row.at in ("", _dialect(town)):
            _fault(town, "own_listings", row)
    (empty,) = (row for row in TABLE if (row.status, row.body) == (404, ""))
    assert type(_fault(town, "own_listings", empty)) is Unavailable


@having("own_bids")
def test_own_bids_are_empty_by_the_venues_own_404_alone(town: Town) -> None:
    empty = []
    for row in TABLE:
        if row.at not in ("", _dialect(town)):
            continue
        call = prepared(town, "own_bids")
        town.gate.answer = row.answer()
        try:
            assert call().entries == ()
            empty.append(row.body)
        except VenueError:
            pass
        town.gate.clear()
        town.sign_in()
    assert empty == ([{"error": "collection not found"}] if _dialect(town) == "satflow" else [])


@having("floors")
def test_unknown_slug_is_left_out_of_floors(town: Town) -> None:
    found = []
    for row in TABLE:
        if row.status == 404:
            call = prepared(town, "floors")
            town.gate.answer = row.answer()
            try:
                assert call() == {}
                found.append(row.body)
            except VenueError as error:
                assert isinstance(error, Unavailable | NotFound)
            town.gate.clear()
    said = {"error": "collection not found"}
    assert found == {"unisat": [said], "ordinalswallet": [said, ""]}.get(_dialect(town), [])


SECONDS = 8.0  # far more than any of it takes, far less than a worker waits
BYTES = 25_000_000
LEAVES_OF_A_READ = frozenset({"Unavailable", "NotUnderstood", "AskAgain", "NotFound", "NotSupported", "Refused"})


@each(READS)
def test_junk_tells_a_read_nothing(town: Town, method: str) -> None:
    call = prepared(town, method)
    for name, answer in ANSWERS.items():
        town.gate.answer = answer
        if name == "an empty list" and method in town.party.bare_lists:
            assert call() in ({}, NOTHING)
            continue
        error = _failed(call, name)
        assert isinstance(error, Unavailable), name
        assert len(error.message) < 400


@each(WRITES)
def test_junk_leaves_a_write_unknown(town: Town, method: str) -> None:
    for name, answer in ANSWERS.items():
        call = prepared(town, method)
        town.gate.answer = answer
        error = _failed(call, name)
        assert type(error) is Unknown, name
        assert len(error.message) < 400


@each(READS)
def test_a_good_answer_with_one_part_spoilt_is_read_right_or_not_at_all(town: Town, method: str) -> None:
    call = prepared(town, method)
    call()
    good = json.loads(town.gate.told[-1])
    for where, answer in spoilt(good, random.Random(method), 5):
        town.gate.answer = reply(json.dumps(answer), headers=JSON)
        names: list[Told] = []
        try:
            with telling(names.append):
                found = call()
        except VenueError as error:
            assert type(error).__name__ in LEAVES_OF_A_READ, (where, error)
            continue
        assert_sane(names, Any)
        assert all(len(each.slug) <= 200 and len(each.name or "") <= 200 for each in names), where
        if method != "item":  # its texts are as the venue wrote them
            assert_sane(found, Any)


@each(WRITES)
def test_a_good_answer_to_a_write_with_one_part_spoilt_is_never_a_refusal_of_ours(town: Town, method: str) -> None:
    call = prepared(town, method)
    call()
    good = json.loads(town.gate.told[-1])
    town.gate.clear()
    call = prepared(town, method)
    for where, answer in spoilt(good, random.Random(method), 8):
        town.gate.answer = reply(json.dumps(answer), headers=JSON)
        try:
            found = call()
        except VenueError as error:
            assert type(error) is Unknown or not _is_ours(error), (where, error)
            continue
        assert_sane(found, Any)


def _is_ours(error: VenueError) -> bool:
    return isinstance(error, Unavailable)


@each(["floors", "asks", "own_bids", "own_listings"])
def test_a_key_that_stands_twice_is_one_of_its_values_or_unreadable(town: Town, method: str) -> None:
    call = prepared(town, method)
    before = call()
    text = town.gate.told[-1].decode()
    doubled = re.sub(r'\{\s*("[^"]+")\s*:', r"{\1: null, \1:", text, count=1)
    assert doubled != text
    town.gate.answer = reply(doubled, headers=JSON)
    try:
        assert call() == before
    except VenueError as error:
        assert isinstance(error, Unavailable)


def _failed(call: Read, name: str) -> VenueError:
    """Returns the failure of `call`, which must stay within bounds of time and memory."""
    began = time.process_time()
    tracemalloc.start()
    try:
        found = call()
    except VenueError as error:
        return error
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < BYTES, (name, peak)
        assert time.process_time() - began < SECONDS, name
    raise AssertionError(f"{name} was taken for {found!r}")


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
