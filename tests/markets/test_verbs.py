"""The one table of the gateway's verbs: who asks and who answers each, and what no program takes of another."""

from __future__ import annotations

import inspect
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec import json, structs

from core.unix_http import UnixHttp
from markets import client, verbs
from markets.base import BidOrder, Refused, Unavailable, Unknown
from markets.client import MarketClient
from markets.orders import BidToDraft, Coin, ListingToDraft
from markets.parse import text_or_none

TXID, KEY = "ab" * 32, "02" + "cd" * 32
ORDER = BidOrder(500_000, Decimal(1), "cats", "ordinals", "bc1qa", KEY, "bc1pb", 2, 1, "AkcwRA==", "2.5")
ASK = BidToDraft(1, Decimal(1), "cats", "ordinals", None, "bc1qa", KEY, "bc1pb", TXID, 6, (Coin(f"{TXID}:0", 1),))
LISTING = ListingToDraft(1, f"{TXID}i0", "bc1pa", "bc1qb", TXID, None, f"{TXID}:0")


def _asked(verb: str, args: Any, **more: Any) -> verbs.Args[Any]:
    request = verbs.read(json.encode({"verb": verb, "args": args, **more}))
    return verbs.read_args(request, verbs.BY_NAME[verb])


def test_each_verb_is_asked_by_the_client_and_answered_in_one_place_of_the_gateway() -> None:
    gateway = "".join(path.read_text() for path in (Path(__file__).parents[2] / "gateway").rglob("*.py"))
    for kind, name in verbs.NAMES.items():
        assert f"verbs.{kind.__name__}(" in inspect.getsource(client), name
        assert len(re.findall(rf"@answers\([^)]*\bverbs\.{kind.__name__}\b[^)]*\)", gateway)) == 1, name


def test_writes_are_these() -> None:
    assert {"place", "cancel", "list_item", "delist", "submit_withdrawal", "broadcast"} == verbs.WRITES


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"verb": "venues", "args": {"of": 1}}, "unknown field `of`"),
        ({"verb": "venues", "args": {}, "haste": 1}, "unknown field `haste`"),
        ({"verb": "challenge", "args": {}}, "missing required field `wallet`"),
        ({"verb": "venues"}, "missing required field `args`"),
    ],
)
def test_what_another_version_asks_is_refused_with_what_to_do(body: dict[str, Any], says: str) -> None:
    with pytest.raises(Refused, match=f"{says}; restart both programs if one of them is of another version") as raised:
        request = verbs.read(json.encode(body))
        verbs.read_args(request, verbs.BY_NAME[request.verb])
    assert raised.value.code == "bad_request"
    assert str(verbs.no_such_verb("haggle")).endswith("of another version")


@pytest.mark.parametrize("answer", [b'{"ok":[["a",1,"1","1","m","more"],5]}', b'{"ok":{"asks":[]}}', b"[]", b"\xff"])
def test_what_another_version_answers_is_said_to_be_that(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UnixHttp, "post", lambda *_, **__: answer)
    client = MarketClient(Path("nowhere"))
    with pytest.raises(Unavailable, match="restart it if it is of another version"):
        client.asks("cats", 0)
    with pytest.raises(Unknown, match="restart it if it is of another version"):
        client.delist("bc1pa", [f"{TXID}i0"], "", task=1, token=1, deadline_ms=1)


@pytest.mark.parametrize("quantity", ["NaN", "Infinity", "-1", "0", "1e999999999", "1e39", "0.5", "x", "", None, [1]])
def test_a_quantity_that_no_bid_has_is_refused(quantity: Any) -> None:
    assert _asked("place", {"order": structs.asdict(ORDER)}) == verbs.Place(ORDER)
    for verb, name, value in (("place", "order", ORDER), ("draft_bid", "ask", ASK)):
        with pytest.raises(Refused, match="quantity"):
            _asked(verb, {name: structs.asdict(value) | {"quantity": quantity}})


@pytest.mark.parametrize(
    ("verb", "args"),
    [
        ("challenge", {"wallet": "bc1qa\n"}),
        ("transaction", {"txid": TXID + "\n"}),
        ("outpoint", {"outpoint": f"{TXID}:4294967296"}),
        ("outpoint", {"outpoint": f"{TXID}:00"}),
        ("outpoint", {"outpoint": f"{TXID}:0\n"}),
        ("draft_bid", {"ask": structs.replace(ASK, coins=(Coin(f"{TXID}:4294967296", 1),))}),
        ("draft_listing", {"ask": structs.replace(LISTING, outpoint=f"{TXID}:4294967296")}),
        ("draft_listing", {"ask": structs.replace(LISTING, slug="a\u202eb")}),
        ("floors", {"slugs": ["cats", "a\nb"], "kind": "ordinals"}),
        ("floors", {"slugs": [], "kind": "ordinals"}),
        ("rune", {"ticker": "\x7f"}),
        ("sales", {"slug": "a\tb", "kind": "runes", "since_ms": 0}),
        ("hold", {"tasks": [1 << 63], "hold_s": 1}),
        ("fence_all", {"tokens": [[1, 10**30]]}),
        ("place", {"order": structs.replace(ORDER, price=21_000_000 * 10**8 + 1)}),
        ("place", {"order": structs.replace(ORDER, price=True)}),
        ("place", {"order": structs.replace(ORDER, trait=("Hat", "a\nb"))}),
        ("place", {"order": structs.replace(ORDER, signed_psbts=("cHNidP8B",))}),
        ("place", {"order": structs.replace(ORDER, signature="", signed_psbts=("cHNidP8B",) * 9)}),
        ("broadcast", {"transaction": "ab" * 100_001}),
    ],
)
def test_an_argument_out_of_bounds_is_refused(verb: str, args: dict[str, Any]) -> None:
    with pytest.raises(Refused) as raised:
        _asked(verb, args)
    assert raised.value.code == "bad_request"


def test_a_request_that_no_json_can_hold_is_refused_before_it_is_sent() -> None:
    client = MarketClient(Path("nowhere"))
    for slug in ("\ud800", object()):
        with pytest.raises(Refused, match="cannot be sent"):
            client.asks(slug, 0)  # type: ignore[arg-type]


def test_half_a_surrogate_in_a_venues_text_hides_that_text_alone() -> None:
    assert text_or_none("a\ud800") is None
    assert text_or_none("a\U0001f3a9") == "a\U0001f3a9"
