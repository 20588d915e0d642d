"""Any answer of a venue: an adapter gives a sane value or a VenueError leaf, within bounds of time and memory."""

from __future__ import annotations

import json
import random
import re
import time
import tracemalloc
from typing import Any

from markets.base import Unavailable, Unknown, VenueError
from tests.markets.contract.gate import reply
from tests.markets.contract.hostile import ANSWERS, JSON, spoilt
from tests.markets.contract.parties import each
from tests.markets.contract.sane import assert_sane
from tests.markets.contract.town import NOTHING, READS, WRITES, Read, Town, prepared

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
        try:
            found = call()
        except VenueError as error:
            assert type(error).__name__ in LEAVES_OF_A_READ, (where, error)
            continue
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
