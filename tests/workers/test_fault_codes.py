"""The codes of a cycle's faults, and the values in their words."""

from __future__ import annotations

import json

import pytest

from markets.base import NotUnderstood, PriceGrid, RateLimited, Refused, Unavailable, Unknown
from models.outbox import error_columns
from strategy.reasons import FaultCode, Step
from wallet.signer_client import SignerRefused, SignerUnavailable
from workers.context import Faults


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RateLimited(4.0), FaultCode.VENUE_RATE_LIMITED),
        (NotUnderstood("failed to understand satflow"), FaultCode.VENUE_NOT_UNDERSTOOD),
        (Unavailable("away"), FaultCode.VENUE_UNAVAILABLE),
        (Unknown("late"), FaultCode.VENUE_UNKNOWN),
        (PriceGrid("odd"), FaultCode.PRICE_GRID),
        (Refused("quota", "short"), FaultCode.QUOTA),
        (Refused("a code of the venue's own", "no"), FaultCode.VENUE_REFUSED),
        (SignerRefused("price-cap", "no"), FaultCode.SIGNER_REFUSED),
        (SignerUnavailable("away"), FaultCode.SIGNER_AWAY),
        ("in words", FaultCode.OTHER),
    ],
)
def test_an_error_has_its_code(error: Exception, code: FaultCode) -> None:
    faults = Faults()
    faults.add(Step.PLACE, "place 75000", error, price_sats=75_000)  # type: ignore[arg-type]
    assert faults.first is not None and faults.first.code is code
    assert faults.first.params.items() >= {"step": "place", "priceSats": 75_000}.items()


def test_the_first_fault_stands_for_all_and_counts_the_others() -> None:
    faults = Faults()
    faults.add(Step.READ_ASKS, "read the asks", RateLimited(4.2))
    faults.add(Step.READ_ASKS, "read the asks", RateLimited(4.2))
    faults.add(Step.PLACE, "place", "spent", code=FaultCode.SPEND_CAP, mostSats=5)
    assert faults.first == (FaultCode.VENUE_RATE_LIMITED, {"step": "read_asks", "retryAfterSeconds": 4, "more": 1})
    assert faults.as_values[1] == {"code": "spend_cap", "step": "place", "mostSats": 5}


def test_words_without_a_code_are_of_another_kind_and_a_strange_code_is_refused() -> None:
    assert error_columns("no") == {"last_error": "no", "last_error_code": "other", "last_error_params": "{}"}
    assert set(error_columns(None).values()) == {None}
    assert json.loads(error_columns("no", ("spend_cap", {"mostSats": 5}))["last_error_params"] or "") == {"mostSats": 5}
    with pytest.raises(ValueError, match="strange"):
        error_columns("no", ("strange", {}))
