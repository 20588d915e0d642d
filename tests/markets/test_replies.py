"""The words of refusals: which error they name, and which words are about something else."""

from __future__ import annotations

import pytest

from markets.base import BelowMinimum, InsufficientFunds, PriceGrid, RateLimited, Refused, VenueError
from markets.http import LONGEST_WORDS, Reply, refusal, write_fault


@pytest.mark.parametrize(
    ("said", "leaf"),
    [
        ("Insufficient balance in bidding wallet", InsufficientFunds),
        ("not enough confirmed sats", InsufficientFunds),
        ("bid exceeds your balance", InsufficientFunds),
        ("Balance of the wallet is too low", InsufficientFunds),
        ("insufficient permissions to see the balance", Refused),
        ("insufficient privileges", Refused),
        ("not enough confirmations of the coins", Refused),
        ("Not enough data", Refused),
        ("Price must be a multiple of 1000 sats", PriceGrid),
        ("must be a multiple of 1,000 sats", PriceGrid),
        ("Bids must be in increments of 1000", PriceGrid),
        ("Invalid tick", Refused),
        ("tick not found", Refused),
        ("quantity of a bid must be a multiple of 5", Refused),
        ("expiry must be in increments of 5 minutes", Refused),
        ("Price is below the minimum of 10000 sats", BelowMinimum),
        ("price below the minimum", BelowMinimum),
        ("The payment address must hold at least 100000 sats", Refused),
        ("outputs below 330 sats are dust", Refused),
        ("fee rate is below the minimum of 1 sat/vB", Refused),
        ("min relay fee of 200 sats not met, at least 300 sats", Refused),
        ("Rate limit exceeded", RateLimited),
        ("exceeds rate limit", RateLimited),
        ("Too many requests", RateLimited),
        ("Request was throttled.", RateLimited),
        ("fee rate limit is 500", Refused),
        ("unknown collection rate-limit", Refused),
        ("unknown collection throttle-punks", Refused),
        ("too many open bids", Refused),
    ],
)
def test_refusal_is_of_the_class_that_its_words_name(said: str, leaf: type[VenueError]) -> None:
    for words in (said, said.upper(), f"{said}."):
        assert type(refusal(words)) is leaf


def test_plain_text_of_a_refusal_is_cleaned_and_bounded() -> None:
    body = "Invalid\x00 price: \x1b[31m<b>\u202e é ".encode() + b"\xff" + b"x" * 10_000
    error = write_fault(Reply(400, {}, body), "/list")
    assert isinstance(error, Refused)
    assert error.message.startswith("Invalid  price:  [31m<b>  é")
    assert len(error.message) == LONGEST_WORDS and error.message.isprintable()


def test_servers_that_label_plain_text_as_html_are_heard() -> None:
    error = write_fault(Reply(400, {"Content-Type": "text/html"}, b"collection is closed"), "/list")
    assert (type(error), error.message) == (Refused, "collection is closed")
