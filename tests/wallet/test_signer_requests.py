"""What the signer refuses to read: requests without a name, and bids, grants and ends that are misshapen."""

from __future__ import annotations

from typing import Any

import pytest

from tests.shapes import asdict
from tests.worlds.signer import GRANT, Bench, signer_answer, tag_of


@pytest.mark.parametrize("request_", [{}, {"op": "export_keys"}, {"op": None}, {"op": ["status"]}, {"op": "__init__"}])
def test_what_has_no_name_here_is_denied(request_: dict[str, Any], bench: Bench) -> None:
    assert tag_of(signer_answer, bench.signer, request_) == "default-deny"


BAD_WHOLE = [True, 1.0, "1", None, -1, 2**63, [], float("nan")]


@pytest.mark.parametrize("field", ["price", "expires_ms", "timestamp_ms"])
@pytest.mark.parametrize("value", BAD_WHOLE)
def test_a_bids_numbers_are_whole_numbers(field: str, value: Any, bench: Bench) -> None:
    assert tag_of(bench.sign_bid, bench.grant(), **{field: value}) == "bad-request"


@pytest.mark.parametrize(
    "change",
    [
        {"intent": "1"},
        {"intent": "G" * 32},
        {"intent": "A" * 32},
        {"intent": 1},
        {"quantity": 1},
        {"quantity": ""},
        {"slug": "\ud800"},
        {"slug": None},
        {"slug": "x" * 300},
        {"more": 1},
        {"op": "sign_bid"},
    ],
)
def test_a_misshapen_bid_is_refused(change: dict[str, Any], bench: Bench) -> None:
    assert tag_of(bench.sign_bid, bench.grant(), **change) == "bad-request"


@pytest.mark.parametrize(
    "change",
    [
        *[{field: value} for field in ("task", "token", "hardcap_sats", "expires_ms") for value in BAD_WHOLE],
        {"task": 0},
        {"token": 0},
        {"user": "nobody"},
        {"user": "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"},
        {"receive": "tb1q"},
        {"operations": []},
        {"operations": ["withdraw"]},
        {"operations": "bid"},
        {"operations": [["bid"]]},
        {"slug": "a:b"},
        {"venue": 1},
        {"more": 1},
    ],
)
def test_a_misshapen_grant_is_refused(change: dict[str, Any], bench: Bench) -> None:
    terms = asdict(GRANT) | {"operations": ["bid", "cancel"]} | change
    assert tag_of(bench.ask, "grant", grant=terms) == "bad-request"


@pytest.mark.parametrize("field", [*asdict(GRANT)])
def test_a_grant_without_one_of_its_fields_is_refused(field: str, bench: Bench) -> None:
    terms = asdict(GRANT) | {"operations": ["bid"]}
    del terms[field]
    assert tag_of(bench.ask, "grant", grant=terms) == "bad-request"


@pytest.mark.parametrize(
    "arguments",
    [{}, {"task": 17}, {"task": True, "token": 5}, {"task": 17, "token": "5"}, {"task": 17, "token": 5, "x": 1}],
)
@pytest.mark.parametrize("op", ["revoke_place", "end_rights"])
def test_misshapen_ends_are_refused(op: str, arguments: dict[str, Any], bench: Bench) -> None:
    assert tag_of(bench.ask, op, **arguments) == "bad-request"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"tokens": {"17": 5}},
        {"tokens": [17, 5]},
        {"tokens": [[17]]},
        {"tokens": [[17, 0]]},
        {"tokens": [["17", 5]]},
    ],
)
def test_misshapen_ends_of_many_are_refused(arguments: dict[str, Any], bench: Bench) -> None:
    assert tag_of(bench.ask, "end_all_rights", **arguments) == "bad-request"


@pytest.mark.parametrize("value", [None, [], "text", 1])
def test_a_grant_or_bid_that_is_no_object_is_refused(value: Any, bench: Bench) -> None:
    assert tag_of(bench.ask, "grant", grant=value) == "bad-request"
    secret = bench.grant()
    assert tag_of(bench.ask, "sign_bid", task=17, token=5, secret=secret, bid=value) == "bad-request"
