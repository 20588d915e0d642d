"""Requests are read strictly: each field is taken at its limits, refused one past them, and named when it is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from tests.wallet.conftest import BID, GRANT
from wallet import protocol
from wallet.protocol import MAX_ID, MAX_MS, MAX_SATS, ControlState, ListingToSign, OfferToSign, RequestError

HEX = "0123456789abcdef"
INSCRIPTION = HEX * 4 + "i0"
OUTPOINT = HEX * 4 + ":0"
LONGEST_PSBT = "A" * 43_692  # 32 KiB in base64
LISTING = ListingToSign(HEX * 4, INSCRIPTION, OUTPOINT, 1, "QQ==", ("Qg==",))
OFFER = OfferToSign(HEX * 2, 1, "1", 0, "frogs", ("QQ==",), "ab" * 1000, (OUTPOINT,))
Read = Callable[[Any], object]


def as_sent(value: Any) -> dict[str, Any]:
    return {name: list(each) if isinstance(each, tuple) else each for name, each in asdict(value).items()}


WHOLE: list[tuple[Read, dict[str, Any]]] = [
    (protocol.read_grant, as_sent(GRANT)),
    (protocol.read_bid, as_sent(BID)),
    (protocol.read_listing, as_sent(LISTING)),
    (protocol.read_offer, as_sent(OFFER)),
]

# What reads it, its field, what is taken, what is not.
FIELDS: list[tuple[int, str, list[Any], list[Any]]] = [
    (0, "task", [1, MAX_ID], [0, -1, MAX_ID + 1, True, 1.0, "1", None]),
    (0, "token", [1, MAX_ID], [0, MAX_ID + 1, True]),
    (0, "user", ["a", "x" * 256, "é"], ["", "x" * 257, 7, None, "\ud800"]),
    (0, "venue", ["a"], ["", "x" * 257, None]),
    (0, "slug", ["", "a"], ["x" * 257, None, 0]),
    (0, "receive", ["a"], ["", "x" * 257]),
    (0, "operations", [["bid"], ["list", "cancel"]], [[], ["sell"], ["bid", None], [["bid"]], "bid", None, ("bid",)]),
    (0, "hardcap_sats", [0, MAX_SATS], [-1, MAX_SATS + 1, True, 1.0]),
    (0, "outstanding_sats", [0, MAX_SATS], [-1, MAX_SATS + 1]),
    (0, "outstanding_task_sats", [0, MAX_SATS], [-1, MAX_SATS + 1, None]),
    (0, "max_expiry_ms", [0, MAX_MS], [-1, MAX_MS + 1]),
    (0, "expires_ms", [0, MAX_MS], [-1, MAX_MS + 1]),
    (0, "min_price_sats", [0, MAX_SATS], [-1, MAX_SATS + 1]),
    (0, "inscription_id", ["", INSCRIPTION], [INSCRIPTION[1:], INSCRIPTION.upper(), INSCRIPTION + " ", 0, None]),
    (0, "to_vault", [True, False], [0, 1, None, "true"]),
    (1, "intent", [HEX * 2], [HEX * 2 + "0", HEX[1:] * 2, (HEX * 2).upper(), "g" * 32, "", 7, None]),
    (1, "price", [1, MAX_SATS], [0, MAX_SATS + 1, True]),
    (1, "quantity", ["1"], ["", "1" * 257, 1]),
    (1, "expires_ms", [0, MAX_MS], [-1, MAX_MS + 1]),
    (1, "slug", ["a"], ["", None]),
    (1, "timestamp_ms", [0, MAX_MS], [-1, MAX_MS + 1]),
    (1, "receive", ["a"], ["", "x" * 257, None]),
    (2, "intent", [HEX * 4], [HEX * 2, "g" * 64]),
    (2, "inscription_id", [INSCRIPTION, HEX * 4 + "i9999999999"], ["", HEX * 4 + "i01", HEX * 4 + "i10000000000"]),
    (2, "outpoint", [OUTPOINT, HEX * 4 + ":4294967295"], [HEX * 4 + ":4294967296", HEX * 4 + ":01", "", 0, None]),
    (2, "price", [1, MAX_SATS], [0, MAX_SATS + 1]),
    (2, "psbt", ["A", LONGEST_PSBT], ["", LONGEST_PSBT + "A", "é", 7, None]),
    (2, "secure", [[], ["A"] * 4], [["A"] * 5, [""], ["A", None], "A", None]),
    (2, "transfer", ["", "A", LONGEST_PSBT], [LONGEST_PSBT + "A", "é", 7, None]),
    (2, "recovery", ["", "A", LONGEST_PSBT], [LONGEST_PSBT + "A", "é", 7, None]),
    (3, "intent", [HEX * 2], [HEX * 4]),
    (3, "price", [1, MAX_SATS], [0, MAX_SATS + 1]),
    (3, "quantity", ["1"], [""]),
    (3, "expires_ms", [0, MAX_MS], [-1, MAX_MS + 1]),
    (3, "slug", ["a"], [""]),
    (3, "psbts", [["A"], ["A"] * 4], [[], ["A"] * 5, [""], "A", None]),
    (
        3,
        "coins",
        [[OUTPOINT], [f"{HEX * 4}:{at}" for at in range(20)]],
        [[], [f"{HEX * 4}:{at}" for at in range(21)], [OUTPOINT, OUTPOINT], ["x"], OUTPOINT, None],
    ),
    (3, "leaf", ["51", "ab" * 1_000], ["", "5", "AB", "ab" * 1_001, "zz", 7, None]),
    (3, "trait", [None, ["Hat", "Red"]], [[], ["Hat"], ["Hat", "Red", "Blue"], ["", "Red"], ["Hat", None], "Hat"]),
]


@pytest.mark.parametrize(("which", "name", "right", "wrong"), FIELDS, ids=lambda value: str(value)[:20])
def test_each_field_is_taken_within_its_limits_only(which: int, name: str, right: list[Any], wrong: list[Any]) -> None:
    read, sent = WHOLE[which]
    for value in right:
        found = getattr(read(sent | {name: value}), name)
        assert (list(found) if isinstance(found, tuple) else found) == value
    for value in wrong:
        with pytest.raises(RequestError):
            read(sent | {name: value})


def test_every_field_has_its_line_above() -> None:
    for which, (_, sent) in enumerate(WHOLE):
        assert {name for at, name, _, _ in FIELDS if at == which} == sent.keys()


@pytest.mark.parametrize(("read", "sent"), WHOLE, ids=["grant", "bid", "listing", "offer"])
def test_what_was_sent_comes_out_and_neither_more_nor_less_is_taken(read: Read, sent: dict[str, Any]) -> None:
    assert as_sent(read(sent)) == sent
    for name in sent:
        with pytest.raises(RequestError, match=f"{name} is missing"):
            read({other: value for other, value in sent.items() if other != name})
    with pytest.raises(RequestError, match="unknown field 'more'"):
        read(sent | {"more": 1})
    others: tuple[object, ...] = (None, [], "{}", 7)
    for other in others:
        with pytest.raises(RequestError, match="must be an object"):
            read(other)


def test_operations_are_kept_once_and_in_their_order() -> None:
    sent = as_sent(GRANT) | {"operations": ["cancel", "bid", "cancel"]}
    assert protocol.read_grant(sent).operations == ("bid", "cancel")


def test_a_long_name_of_an_unknown_field_is_cut() -> None:
    with pytest.raises(RequestError) as error:
        protocol.take({"x" * 10_000: 1})
    assert str(error.value) == f"unknown field {'x' * 256!r}"


def test_a_task_and_its_token_are_each_read() -> None:
    assert protocol.task_and_token(1, MAX_ID) == (1, MAX_ID)
    for task, token in ((0, 1), (1, 0), (True, 1), (1, "1"), (MAX_ID + 1, 1), (1, MAX_ID + 1)):
        with pytest.raises(RequestError):
            protocol.task_and_token(task, token)


def test_keys_that_sign_are_two() -> None:
    assert [protocol.read_signing_key(key) for key in ("payment", "vault")] == ["payment", "vault"]
    for wrong in ("", "seed", None, 0, ["vault"]):
        with pytest.raises(RequestError, match="payment or vault"):
            protocol.read_signing_key(wrong)


def test_a_sign_ins_text_has_512_characters_at_most() -> None:
    for right in ("x", "x" * 512):
        assert protocol.venue_text("text", right) == right
    for wrong in ("", "x" * 513, None, 7, b"x"):
        with pytest.raises(RequestError):
            protocol.venue_text("text", wrong)


@pytest.mark.parametrize(
    ("scope", "subject"), [("global", ""), ("user", "bc1q"), ("user", "x" * 256), ("task", "1"), ("task", str(MAX_ID))]
)
@pytest.mark.parametrize("state", ["run", "reduce", "halt"])
def test_controls_are_of_a_scope_its_subject_and_a_state(scope: Any, subject: str, state: Any) -> None:
    assert protocol.read_control(scope, subject, state) == ControlState(scope, subject, state)


@pytest.mark.parametrize(
    ("scope", "subject", "state"),
    [
        ("all", "", "run"),
        (None, "", "run"),
        (["global"], "", "run"),
        ("global", "", "Halt"),
        ("global", "", None),
        ("global", "x", "halt"),
        ("global", None, "halt"),
        ("user", "", "halt"),
        ("user", "x" * 257, "halt"),
        ("user", 7, "halt"),
        ("task", "", "halt"),
        ("task", "0", "halt"),
        ("task", "-1", "halt"),
        ("task", "01", "halt"),
        ("task", "1.0", "halt"),
        ("task", "١", "halt"),
        ("task", str(MAX_ID + 1), "halt"),
        ("task", 17, "halt"),
        ("task", None, "halt"),
    ],
)
def test_other_controls_are_refused(scope: Any, subject: Any, state: Any) -> None:
    with pytest.raises(RequestError):
        protocol.read_control(scope, subject, state)


def test_limits_are_what_bitcoin_and_json_have() -> None:
    assert (MAX_SATS, MAX_MS, MAX_ID) == (2_100_000_000_000_000, 9_007_199_254_740_992, 9_223_372_036_854_775_807)
    assert protocol.SignerStatus("ready", play=True).reason == ""
    assert (GRANT.inscription_id, GRANT.min_price_sats) == ("", 0), "what a bidder's grant does not name"
