"""The table of answers at each venue: status and body, and the class of the fault that a read and a write get.

`tests/fault_classes.py` has the effect of each class on task, breaker and pause.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest

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
from tests.markets.contract.gate import reply
from tests.markets.contract.parties import having
from tests.markets.contract.town import Town, prepared

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
