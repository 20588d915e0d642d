"""Requests are read strictly: each field is taken at its limits, refused one past them, and named when it is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import pytest
from msgspec import Struct
from msgspec.structs import fields

from core.call import Request
from core.errors import PeerRefused, PeerUnavailable
from core.fields import MAX_ID, MAX_SATS
from tests.shapes import asdict, replace
from tests.worlds.signer import BID, GRANT, VERBS, Bench, listing, read_request, tag_of
from wallet import protocol
from wallet.protocol import MAX_MS, ListingToSign, OfferToSign, SignedListing
from wallet.signer import reading
from wallet.signer_client import SignerClient, SignerError, SignerLocked, SignerRefused, SignerUnavailable

HEX = "0123456789abcdef"
INSCRIPTION = HEX * 4 + "i0"
OUTPOINT = HEX * 4 + ":0"
LONGEST_PSBT = "A" * 43_692  # 32 KiB in base64
LISTING = ListingToSign(HEX * 4, INSCRIPTION, OUTPOINT, 1, "QQ==", ("Qg==",))
OFFER = OfferToSign(HEX * 2, 1, "1", 0, "frogs", ("QQ==",), "ab" * 1000, (OUTPOINT,))
RIGHT = {"task": 17, "token": 5, "secret": "s"}


def as_sent(value: Any) -> dict[str, Any]:
    return {name: list(each) if isinstance(each, tuple) else each for name, each in asdict(value).items()}


# The operation, its object's name, and a faultless one.
WHOLE: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    ({"op": "grant"}, "grant", as_sent(GRANT)),
    ({"op": "sign_bid"} | RIGHT, "bid", as_sent(BID)),
    ({"op": "sign_listing"} | RIGHT, "listing", as_sent(LISTING)),
    ({"op": "sign_offer"} | RIGHT, "offer", as_sent(OFFER)),
]


def read(which: int, sent: Any) -> Any:
    request, name, _ = WHOLE[which]
    return getattr(read_request(request | {name: sent}), name)


def refusal(request: dict[str, Any]) -> str:
    """Returns the text of the refusal of a request, which comes before any rule."""
    with pytest.raises(PeerRefused) as refused:
        read_request(request)
    assert refused.value.code == "bad-request"
    return refused.value.message


# What reads it, its field, what is taken, what is not.
FIELDS: list[tuple[int, str, list[Any], list[Any]]] = [
    (0, "task", [1, MAX_ID], [0, -1, MAX_ID + 1, True, 1.0, "1", None]),
    (0, "token", [1, MAX_ID], [0, MAX_ID + 1, True]),
    (0, "user", ["a", "x" * 256, "é"], ["", "x" * 257, 7, None, "\ud800"]),
    (0, "venue", ["a"], ["", "x" * 257, None]),
    (0, "slug", ["", "a"], ["x" * 257, None, 0]),
    (0, "receive", ["a"], ["", "x" * 257]),
    (0, "operations", [["bid"], ["list", "cancel"]], [[], ["sell"], ["bid", None], [["bid"]], "bid", None]),
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
        [[], [f"{HEX * 4}:{at}" for at in range(21)], ["x"], OUTPOINT, None],
    ),
    (3, "leaf", ["51", "ab" * 1_000], ["", "5", "AB", "ab" * 1_001, "zz", 7, None]),
    (3, "trait", [None, ["Hat", "Red"]], [[], ["Hat"], ["Hat", "Red", "Blue"], ["", "Red"], ["Hat", None], "Hat"]),
]


@pytest.mark.parametrize(("which", "name", "right", "wrong"), FIELDS, ids=lambda value: str(value)[:20])
def test_each_field_is_taken_within_its_limits_only(which: int, name: str, right: list[Any], wrong: list[Any]) -> None:
    request, whole, sent = WHOLE[which]
    for value in right:
        found = getattr(read(which, sent | {name: value}), name)
        assert (list(found) if isinstance(found, tuple) else found) == value
    for value in wrong:
        refusal(request | {whole: sent | {name: value}})


def test_every_field_has_its_line_above() -> None:
    for which, (_, _, sent) in enumerate(WHOLE):
        assert {name for at, name, _, _ in FIELDS if at == which} == sent.keys()


@pytest.mark.parametrize("which", range(4), ids=["grant", "bid", "listing", "offer"])
def test_what_was_sent_comes_out_and_neither_more_nor_less_is_taken(which: int) -> None:
    request, whole, sent = WHOLE[which]
    assert as_sent(read(which, sent)) == sent
    for name in sent:
        lacking = {other: value for other, value in sent.items() if other != name}
        assert refusal(request | {whole: lacking}).startswith(f"{name} is missing: the two programs may be of")
    assert refusal(request | {whole: sent | {"more": 1}}).startswith("unknown field 'more': the two programs may be of")
    for other in (None, [], "{}", 7):
        assert refusal(request | {whole: other}) == f"{whole} must be an object"


@pytest.mark.parametrize("asked", [{}, {"op": "export_keys"}, {"op": None}, {"op": ["status"]}, {"op": "__init__"}])
def test_a_request_without_a_name_here_is_denied(asked: dict[str, Any]) -> None:
    assert tag_of(read_request, asked) == "default-deny"


@pytest.mark.parametrize("op", ["revoke_place", "end_rights"])
def test_an_end_of_rights_names_a_task_and_a_token_and_no_more(op: str) -> None:
    for given in ({}, {"task": 17}, {"task": True, "token": 5}, {"task": 17, "token": "5"}):
        refusal({"op": op} | given)
    refusal({"op": op, "task": 17, "token": 5, "x": 1})


def test_operations_are_kept_once_and_in_their_order(bench: Bench) -> None:
    bench.grant(operations=("cancel", "bid", "cancel"))
    held = bench.ledger.grant_of(17)
    assert held is not None and held.grant.operations == ("bid", "cancel")


def test_a_long_name_of_an_unknown_field_is_cut() -> None:
    assert refusal({"op": "status", "x" * 10_000: 1}).startswith(f"unknown field {'x' * 256!r}: ")


def test_a_field_that_is_missing_or_unknown_names_the_other_version() -> None:
    for request in ({"op": "status", "more": 1}, {"op": "revoke_place", "task": 17}):
        assert refusal(request).endswith(": the two programs may be of different versions: restart both")
    with pytest.raises(PeerRefused, match="different versions: restart both") as refused:
        read_request({"op": "export_keys"})
    assert refused.value.code == "default-deny"


def test_a_task_and_its_token_are_each_read() -> None:
    asked = read_request({"op": "end_all_rights", "tokens": [[1, MAX_ID]]})
    assert isinstance(asked, protocol.EndAllRights) and asked.tokens == ((1, MAX_ID),)
    for task, token in ((0, 1), (1, 0), (True, 1), (1, "1"), (MAX_ID + 1, 1), (1, MAX_ID + 1)):
        named = "token" if task == 1 and task is not True else "task"
        text = f"{named} must be a whole number from 1 to {MAX_ID}"
        assert refusal({"op": "end_rights", "task": task, "token": token}) == text
        assert refusal({"op": "end_all_rights", "tokens": [[1, 1], [task, token]]}) == text
    for wrong in (None, {}, [5], [[1]], [[1, 1, 1]]):
        assert refusal({"op": "end_all_rights", "tokens": wrong}) == "tokens must be a list of pairs"


def test_keys_that_sign_are_two() -> None:
    request = {"op": "sign_sign_in", "text": "x"} | RIGHT
    for right in ("payment", "vault"):
        assert read_request(request | {"key": right})
    for wrong in ("", "seed", None, 0, ["vault"]):
        assert refusal(request | {"key": wrong}) == "key must be payment or vault"


def test_a_sign_ins_text_has_512_characters_at_most() -> None:
    request = {"op": "sign_sign_in", "key": "payment"} | RIGHT
    for right in ("x", "x" * 512):
        assert read_request(request | {"text": right})
    for wrong in ("", "x" * 513, None, 7):
        assert refusal(request | {"text": wrong}) == "text must be text of 1 to 512 characters"


def test_an_output_of_a_number_beyond_the_largest_is_none() -> None:
    for at in (0, 9, 999_999_999, 3_999_999_999, 4_199_999_999, 4_289_999_999, 4_294_967_289, 4_294_967_295):
        assert read_request({"op": "lowest_listing", "outpoint": f"{HEX * 4}:{at}"})
    for wrong in ("00", "01", "-1", "1 ", "1\n", "4294967296", "4300000000", "9999999999", "١", ""):
        assert refusal({"op": "lowest_listing", "outpoint": f"{HEX * 4}:{wrong}"}) == "outpoint is not written as one"


GOOD = b'{"op": "was_signed", "intent": "' + HEX.encode() * 2 + b'"'
MALFORMED = {
    "a repeated field": (GOOD + b', "intent": "x"}', "is given more than once"),
    "a repeated verb": (GOOD + b', "op": "status"}', "is given more than once"),
    "deep": (GOOD + b', "x": ' + b"[" * 11 + b"]" * 11 + b"}", "nested too deeply"),
    "2,000 deep": (GOOD + b', "x": ' + b"[" * 2_000 + b"]" * 2_000 + b"}", "is not valid JSON|nested too deeply"),
    "too many fields": (json.dumps({str(at): at for at in range(101)}).encode(), "more than 100 fields"),
    "too many values": (b'{"op": "end_all_rights", "tokens": [' + b"1," * 100_000 + b"1]}", "more than 100000 values"),
    "NaN": (GOOD + b', "x": NaN}', "NaN is not a JSON number"),
    "half a character": (GOOD + b', "x": "\\ud800"}', "not valid Unicode"),
    "not UTF-8": (GOOD + b', "x": "\xff"}', "is not valid JSON"),
    "no object": (b"[]", "must be a JSON object"),
    "a number too large": (b'{"op": "revoke_place", "task": 1e999999999, "token": 1}', "task must be a whole number"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_line_is_refused_before_any_rule(name: str) -> None:
    line, text = MALFORMED[name]
    with pytest.raises(PeerRefused, match=text) as refused:
        VERBS.read(line)
    assert refused.value.code == "bad-request"


def parts(kind: Any, marks: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yields each scalar type inside a field's type, with its marks."""
    if get_origin(kind) is Annotated:
        yield from parts(kind.__origin__, kind.__metadata__)
    elif isinstance(kind, type) and issubclass(kind, Struct):
        for field in fields(kind):
            yield from parts(field.type)
    elif get_args(kind) and not all(isinstance(each, str) for each in get_args(kind)):
        for each in get_args(kind):
            yield from parts(each)
    else:
        yield kind, marks


def test_every_number_and_text_of_a_request_is_bounded() -> None:
    found = [part for request in reading.REQUESTS for part in parts(request)]
    assert len(found) > 60
    for kind, marks in found:
        if kind is int:
            assert any(mark.ge is not None for mark in marks) and any(mark.le is not None for mark in marks)
        if kind is str:
            assert any(mark.max_length is not None or mark.pattern is not None for mark in marks)


def test_every_request_of_the_protocol_can_be_read() -> None:
    named = {each for each in vars(protocol).values() if isinstance(each, type) and issubclass(each, Request)}
    assert named - {Request, protocol.UnderGrant} == set(reading.REQUESTS)


@pytest.mark.parametrize(("scope", "subject"), [("global", ""), ("task", "1"), ("task", str(MAX_ID))])
@pytest.mark.parametrize("state", ["run", "reduce", "halt"])
def test_controls_are_of_a_scope_its_subject_and_a_state(bench: Bench, scope: Any, subject: str, state: Any) -> None:
    bench.control(state, scope, subject)
    assert bench.ledger.control_of(scope, subject) == state


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
        ("task", "+17", "halt"),
        ("task", "9" * 300, "halt"),
        ("user", "nobody", "halt"),
        ("task", "1.0", "halt"),
        ("task", "١", "halt"),
        ("task", str(MAX_ID + 1), "halt"),
        ("task", 17, "halt"),
        ("task", None, "halt"),
    ],
)
def test_other_controls_are_refused(bench: Bench, scope: Any, subject: Any, state: Any) -> None:
    assert tag_of(bench.ask, "control", scope=scope, subject=subject, state=state) == "bad-request"
    assert bench.ask("controls") == {"controls": [], "file": False}


def test_limits_are_what_bitcoin_and_json_have() -> None:
    assert (MAX_SATS, MAX_MS, MAX_ID) == (2_100_000_000_000_000, 9_007_199_254_740_992, 9_223_372_036_854_775_807)
    assert protocol.SignerStatus("ready", play=True).reason == ""
    assert (GRANT.inscription_id, GRANT.min_price_sats) == ("", 0), "what a bidder's grant does not name"


def test_a_fee_rate_is_rounded_up_to_the_sat_for_1000_vb() -> None:
    rates = [protocol.per_kvb(Decimal(rate)) for rate in ("12.5", "1", "1.0001", "0")]
    assert rates == [12_500, 1_000, 1_001, 0]


def test_a_wrong_flag_names_its_field() -> None:
    wrong = {"op": "grant", "grant": as_sent(GRANT) | {"to_vault": 1}}
    assert refusal(wrong) == "to_vault must be true or false"


def test_a_withdrawals_intent_has_40_digits_and_its_fee_a_limit() -> None:
    whole = as_sent(protocol.WithdrawalToSign("0f" * 20, "u", "payment", (OUTPOINT,)))
    assert whole["fee_per_kvb"] == 0
    for right in ({}, {"fee_per_kvb": 10_000_000}):
        assert read_request({"op": "sign_withdrawal", "withdrawal": whole | right})
    for wrong in ({"intent": "0f" * 20 + "0"}, {"fee_per_kvb": 10_000_001}, {"fee_per_kvb": -1}):
        refusal({"op": "judge_withdrawal", "withdrawal": whole | wrong})


ASKED = ListingToSign(**listing() | {"secure": tuple(listing()["secure"])})


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts an answer, or an error, in the place of the socket; gives back what is asked."""
    asked: list[dict[str, Any]] = []

    def put(answer: Any) -> list[dict[str, Any]]:
        def exchange(path: Path, peer: str, line: bytes, *, timeout: float) -> bytes:
            asked.append(json.loads(line) | {"timeout": timeout})
            if isinstance(answer, Exception):
                raise answer
            return json.dumps({"ok": answer}).encode() + b"\n"

        monkeypatch.setattr("core.call.exchange", exchange)
        return asked

    return put


CLIENT = SignerClient(Path("signer.sock"), timeout_s=2.0)


@pytest.mark.parametrize(
    "answer",
    [{}, {"psbt": 1, "secure": []}, {"psbt": "a"}, {"psbt": "a", "secure": [1]}, {"psbt": "a", "secure": None}],
)
def test_a_listings_answer_that_is_not_as_agreed_is_none(answer: dict[str, Any], answered: Any) -> None:
    answered(answer)
    with pytest.raises(SignerUnavailable, match="different versions"):
        CLIENT.sign_listing(1, 1, "s", ASKED)


@pytest.mark.parametrize("answer", [{}, {"rooms": None}, {"rooms": [{}]}, {"rooms": ["task"]}])
def test_rooms_that_are_not_as_agreed_are_none(answer: dict[str, Any], answered: Any) -> None:
    answered(answer)
    with pytest.raises(SignerUnavailable, match="different versions"):
        CLIENT.rooms(1, 1, "s")


def test_a_listings_answer_waits_for_the_facts_too(answered: Any) -> None:
    asked = answered({"psbt": "a", "secure": ["b"], "transfer": "t", "recovery": "r"})
    assert CLIENT.sign_listing(1, 2, "s", ASKED) == SignedListing("a", ("b",), "t", "r")
    assert asked[0]["timeout"] == 7.0
    assert asked[0]["listing"]["secure"] == list(ASKED.secure)
    answered({"signature": "s"})
    assert CLIENT.sign_challenge(1, 2, "s", "c") == "s"
    assert (asked[1]["timeout"], asked[1]["key"]) == (2.0, "payment")
    assert CLIENT.sign_brake("user", "venue", "c") == "s"
    assert asked[2] == {"op": "sign_brake", "user": "user", "venue": "venue", "challenge": "c", "timeout": 2.0}


@pytest.mark.parametrize("price", ["1", 1.0, True, []])
def test_a_price_that_is_no_whole_number_is_no_answer(price: Any, answered: Any) -> None:
    answered({"price": price})
    with pytest.raises(SignerUnavailable):
        CLIENT.lowest_listing("x")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PeerUnavailable("signer", "away"), SignerUnavailable),
        (PeerRefused("signer", "locked", "no keys"), SignerLocked),
        (PeerRefused("signer", "internal", "failed"), SignerUnavailable),
        (PeerRefused("signer", "unreadable", "what"), SignerUnavailable),
        (PeerRefused("signer", "list-min", "too low"), SignerRefused),
    ],
)
def test_only_a_rules_no_is_a_no(error: Exception, kind: type[SignerError], answered: Any) -> None:
    answered(error)
    for call in (
        lambda: CLIENT.sign_bid(1, 1, "s", BID),
        lambda: CLIENT.sign_listing(1, 1, "s", ASKED),
        lambda: CLIENT.sign_challenge(1, 1, "s", "c", key="vault"),
        lambda: CLIENT.sign_brake("user", "venue", "c"),
    ):
        with pytest.raises(SignerError) as raised:
            call()
        assert type(raised.value) is kind


def test_text_that_is_no_unicode_is_refused_before_it_is_sent(answered: Any) -> None:
    asked = answered({"message": "m", "signature": "s"})
    with pytest.raises(SignerRefused, match="sign_bid cannot be sent"):
        CLIENT.sign_bid(1, 1, "s", replace(BID, slug="\ud800"))
    assert asked == []
