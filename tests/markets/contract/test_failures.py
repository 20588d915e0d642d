"""The meaning of a failed request, told by its type: nothing happened, or it is unknown, or the venue refused."""

from __future__ import annotations

import time

import pytest

from markets.adapter import AskAgain
from markets.base import AuthFailed, NotFound, RateLimited, Refused, SignInNeeded, Unavailable, Unknown, VenueError
from markets.http import Http
from tests.markets.contract.gate import CUT, SILENCE, reply
from tests.markets.contract.parties import each
from tests.markets.contract.town import NOTHING, READS, WRITES, Read, Town, prepared

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
