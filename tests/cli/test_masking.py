"""Replacements in a probe file: nothing that names a person or a key stays, and what parsers go by stays as it was."""

from __future__ import annotations

import base64
import html
import json
import re
import time
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import pytest
from embit import ec, script
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.doctor.questions import ADDRESS, FIRST_INSCRIPTION, About, Exchange, VenueAnswer
from cli.probe_masking import Masker
from cli.probe_questions import DRAFTED_AT, Subjects, written
from cli.venue import masked
from markets.http import Reply
from markets.parse import MAX_SATS
from tests.examples import part_of

KEY = "sk-live/7f3A+9c&QX2-b81d"
SLUG = "puppets"
SATS = st.integers(10_000, 10**11).filter(lambda sats: sats != DRAFTED_AT)
PRICES = ("price", "unitPrice", "priceSats", "satoshi_price", "floorPrice", "floor", "escrow_price", "balance")


def key(number: int) -> ec.PrivateKey:
    return ec.PrivateKey((number + 1).to_bytes(32))


def masker(salt: bytes = b"a salt of a test") -> Masker:
    return Masker(salt, [KEY], [ADDRESS, FIRST_INSCRIPTION, SLUG, "AAA•BBB"], [DRAFTED_AT])


def an_address(number: int, kind: int) -> str:
    public = key(number).get_public_key()
    made = [script.p2wpkh, script.p2tr, script.p2pkh, lambda each: script.p2sh(script.p2wpkh(each))][kind % 4]
    return str(made(public).address())


SECRETS = st.one_of(
    st.builds(an_address, st.integers(0, 10**9), st.integers(0, 3)),
    st.builds(lambda each: an_address(each, 0).upper(), st.integers(0, 10**9)),
    st.builds(bytes.hex, st.binary(min_size=32, max_size=32)),
    st.builds(lambda each: f"{each.hex()}i0", st.binary(min_size=32, max_size=32)),
    st.builds(lambda each: f"{each.hex()}:1", st.binary(min_size=32, max_size=32)),
    st.builds(lambda each: each.hex(), st.binary(min_size=33, max_size=80)),
    st.builds(lambda each: "70736274ff" + each.hex(), st.binary(min_size=40, max_size=80)),
    st.builds(lambda each: "cHNidP8" + base64.b64encode(each).decode(), st.binary(min_size=60, max_size=90)),
    st.uuids(version=4).map(str),
)
# Fields of marketplaces, and fields that nothing is known of.
NAMES = (
    "id _id owner address sellerAddress makerAddress slug collection title name outpoint location message error note "
    "extra psbt signature token sessionToken inscriptionId txid url image type status memo who"
)
FIELDS = st.sampled_from(NAMES.split(" "))
Planted = tuple[Any, str]


@st.composite
def planted(draw: st.DrawFn) -> Planted:
    """JSON with a secret somewhere in it, and the secret."""
    secret = draw(SECRETS)
    value: Any = draw(
        st.sampled_from(
            [secret, f"by {secret} at last", f"{secret},{secret}", f"https://a.example/{secret}?q={secret}"]
        )
    )
    for _ in range(draw(st.integers(1, 4))):
        name = draw(FIELDS)
        wrap = draw(st.sampled_from(["object", "list", "key"]))
        if wrap == "key" and isinstance(value, str):
            value = {value: 1}
        else:
            value = [value, 1] if wrap == "list" else {name: value, "price": 7}
    return value, secret


def kept(value: Any, *, status: int = 200, params: dict[str, str] | None = None) -> str:
    """Returns the text of the file that keeps this answer."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    made = Exchange("GET", "/activity/listings", params or {}, None, 0, 0, Reply(status, {"Server": KEY}, body))
    answer = VenueAnswer("listings", "understood", None, "", (made,))
    return written(masked("satflow", 0, Subjects(About(SLUG, "AAA•BBB")), [answer], masker())).decode()


def core(secret: str) -> str:
    """Returns the part of a secret that names something."""
    return re.sub(r"(i0|:1)$", "", secret).removeprefix("70736274ff").removeprefix("cHNidP8")


@settings(max_examples=part_of(400), deadline=None)
@given(planted())
def test_address_id_or_psbt_survives_nowhere_in_an_answer(found: Planted) -> None:
    value, secret = found
    text = kept(value)
    assert core(secret).lower() not in text.lower()
    assert core(secret).lower() not in kept(b"<html>" + json.dumps(value).encode()).lower()
    assert core(secret).lower() not in kept(json.dumps(value).encode() + b"NaN").lower()


@settings(max_examples=part_of(200), deadline=None)
@given(SECRETS)
def test_address_or_id_survives_in_no_parameter(secret: str) -> None:
    text = kept({}, params={"address": secret, "slugs": secret, "q": f"a {secret}"})
    assert core(secret).lower() not in text.lower()


SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "url": lambda each: quote(each, safe=""),
    "url-lower": lambda each: quote(each, safe="").lower(),
    "path": quote,
    "lower": str.lower,
    "upper": str.upper,
    "hex": lambda each: each.encode().hex().upper(),
    "base64": lambda each: base64.b64encode(each.encode()).decode(),
    "base64url": lambda each: base64.urlsafe_b64encode(each.encode()).decode().rstrip("="),
    "base64-after-a-name": lambda each: base64.b64encode(f"ann:{each}".encode()).decode(),
    "base64-within": lambda each: base64.b64encode(f"me:{each}:x".encode()).decode(),
    "json": lambda each: json.dumps(each)[1:-1].replace('"', "'"),
    "html": html.escape,
    "beginning": lambda each: each[:-2],
}


@pytest.mark.parametrize("form", SPELLINGS)
@pytest.mark.parametrize("where", [{"error": "the key {}"}, {"{}": 1}, {"price": "{}"}, {"slug": ["{}"]}, "<p>{}</p>"])
def test_key_that_the_venue_repeats_survives_nowhere(form: str, where: Any) -> None:
    spelt = SPELLINGS[form](KEY)
    text = kept(json.dumps(where).replace("{}", spelt).encode())
    # What is left of an encoded name before the key, and of its last letters, is not the key.
    assert KEY not in text and spelt not in text and spelt[6:-5] not in text


@settings(max_examples=part_of(300), deadline=None)
@given(st.sampled_from(PRICES), SATS, st.booleans(), st.sampled_from([None, "ask", "escrow", "topBid"]))
def test_amount_survives_in_no_field_of_a_price(name: str, sats: int, as_text: bool, parent: str | None) -> None:
    row: dict[str, Any] = {name: str(sats) if as_text else sats}
    text = kept({"data": [row if parent is None else {parent: row}]})
    answer = json.loads(text)["questions"][0]["exchanges"][0]["answer"]["data"][0]
    found = (answer if parent is None else answer[parent])[name]
    assert type(found) is type(row[name]) and int(found) > sats
    assert str(sats) not in re.findall(r"\d+", json.dumps(answer))


AMOUNTS = (
    "1,234,567|1.234.567|1_234_567|1'234'567|1234567|-1234567|0.01234567|1234567sats|1.234567BTC|1 234 567|"
    "1\u202f234\u202f567"
)


@pytest.mark.parametrize("amount", AMOUNTS.split("|"))
@pytest.mark.parametrize("words", ["balance of {} is too low", "too low:{}:", "too low ({})"])
def test_amount_in_the_words_of_an_error_is_replaced(words: str, amount: str) -> None:
    saved = json.loads(kept({"error": words.replace("{}", amount)}, status=400))
    text = saved["questions"][0]["exchanges"][0]["answer"]["error"]
    assert "too low" in text and re.sub(r"\D", "", amount) not in re.sub(r"\D", "", text)


@pytest.mark.parametrize(
    "text", ["since 2026-09-21T10:00:00.123456Z", "on 2026-09-21", "at 1790000000000", "in 5 minutes"]
)
def test_time_in_the_words_of_an_error_stays(text: str) -> None:
    assert text in kept({"error": text}, status=400)


@pytest.mark.parametrize("value", [0.01234567, "0.01234567", "1.2345"])
@pytest.mark.parametrize("name", ["lastSale", "bid", "max", "q", "sat"])
def test_amount_in_btc_in_an_unknown_field_is_replaced(name: str, value: Any) -> None:
    assert str(value) not in kept({name: value}, params={name: str(value)})


@pytest.mark.parametrize("before", ["0x", "tx=0x", "("])
def test_txid_after_a_prefix_is_replaced(before: str) -> None:
    assert "ab12" * 16 not in kept({"error": f"no {before}{'ab12' * 16}"}, status=400)


@pytest.mark.parametrize("name", ["नमस्ते", "مُحَمَّد", "🦊🔥", "١٢٣٤٥٦٧", "Ann🦊"])
def test_name_in_another_script_is_replaced_with_each_of_its_letters(name: str) -> None:
    found = masker().value({"username": name})["username"]
    assert len(found) == len(name) and not set(found) & set(name)


def test_token_of_small_letters_and_holder_with_a_lone_name_are_replaced() -> None:
    token = "q7w8e9r0t1y2u3i4o5p6a7s8d9f0g1h2j3k4l5"
    assert token not in kept({"error": f"no session {token}"}, status=401)
    assert "Annabel" not in kept({"owner": "Annabel", "seller": "Annabel"})


@settings(max_examples=part_of(300), deadline=None)
@given(st.integers(1, 10**7), st.integers(1, 9999), st.integers(0, 3))
def test_price_stays_unit_price_times_quantity(unit: int, quantity: int, places: int) -> None:
    each = Decimal(unit).scaleb(-places)
    found = masker().value({"price": int(each * quantity) or 1, "unitPrice": each, "quantity": quantity})
    assert found["quantity"] == quantity
    assert found["unitPrice"].as_tuple().exponent == each.as_tuple().exponent
    total = found["unitPrice"] * quantity
    # To a sat of the original: its price is rounded, too.
    assert abs(found["price"] - total) <= max(Decimal(20_000), total / 1000)


@settings(max_examples=part_of(300), deadline=None)
@given(st.lists(st.integers(0, MAX_SATS), min_size=2, max_size=8))
def test_order_and_equality_of_amounts_stay_and_none_exceeds_all_sats(amounts: list[int]) -> None:
    found = [masker().value({"price": amount})["price"] for amount in amounts]
    for (left, shown), (right, other) in pairwise(zip(amounts, found, strict=True)):
        assert left == right or (shown <= other) == (left < right) or shown == other > 10**11
        assert left != right or shown == other
    assert all(0 <= each <= MAX_SATS for each in found)


@pytest.mark.parametrize("value", [0, None, True, False, "", "0", -0, 10**30, str(10**30), [], {}, 0.0])
def test_value_without_an_amount_stays_as_it_is(value: Any) -> None:
    found = masker().value({"price": Decimal(str(value)) if isinstance(value, float) else value})["price"]
    assert found == value and type(found) in (type(value), Decimal)


@pytest.mark.parametrize(
    ("value", "form"), [("5e5", r"\d+e\d+"), ("12 sats", r"\d+ sats"), (-5, r"-\d+"), ("-5", r"-\d+")]
)
def test_price_that_is_not_one_keeps_its_form(value: Any, form: str) -> None:
    found = masker().value({"price": value})["price"]
    assert type(found) is type(value) and re.fullmatch(form, str(found)) and found != value


def test_same_thing_gets_the_same_replacement_and_another_thing_another() -> None:
    one, other, txid = an_address(1, 1), an_address(2, 1), "ab" * 32
    rows = [{"owner": one, "id": f"{txid}i0"}, {"maker": one, "outpoint": f"{txid}:0"}, {"text": f"from {other}"}]
    first, second, third = masker().value(rows)
    assert first["owner"] == second["maker"] != one and first["owner"].startswith("bc1p")
    assert first["id"].removesuffix("i0") == second["outpoint"].removesuffix(":0") != txid
    assert third["text"] != first["owner"]
    assert masker(b"another salt").value(rows)[0] != first
    assert re.fullmatch("bc1p[qpzry9x8gf2tvdw0s3jn54khce6mua7l]{58}", first["owner"])
    assert re.fullmatch("[0-9a-f]{64}i0", first["id"])


def test_words_names_of_fields_slugs_and_times_stay() -> None:
    row = {
        "collectionSlug": "cats-of-9",
        "collection": {"id": "dogs", "slug": "dogs"},
        "status": "fill_pending",
        "createdAt": "2026-09-21T10:00:00.000Z",
        "placedAt": "1970-01-01T00:00:00.000Z",
        "timestamp": 1_790_000_000_000,
        "expiresAt": 1_790_000_000,
        "totalCount": 12345,
        "page": 3,
        "code": -2006,
        "msg": "exceeds rate limit, retry in 5 minutes",
        "runes_metadata": {"runes": [{"name": "DOG•GO", "amount": 1234500, "divisibility": 2}]},
        "tick": "DOG•GO",
        "pricePercent": 1250,
        "active": "true",
    }
    assert masker().value(row) == row


def test_texts_that_anyone_can_write_and_pictures_are_replaced() -> None:
    row = {
        "name": "Call +49 170 1234567",
        "description": "my wallet is at home",
        "image_url": "https://pictures.example/ann.png",
        "traits": [{"type": "Hat", "value": "Ann's own"}],
        "seller": {"username": "ann_of_bern", "note": "written by Ann on 1 May"},
        "Ann Example": 1,
    }
    text = json.dumps(masker().value(row))
    for each in ("1234567", "wallet", "pictures", "Hat", "Ann", "ann", "Bern", "bern"):
        assert each not in text, each
    assert "https://" in text and "image_url" in text


def test_addresses_of_machines_and_mail_are_replaced_in_a_page() -> None:
    page = b"<p>Your IP 203.0.113.77 (2a00:1450:4001:81b::200e) is blocked at 10:11:12; write to ann@bern.example"
    text = kept(page, status=403)
    for each in ("203.0.113.77", "2a00:1450", "ann@bern"):
        assert each not in text
    assert "192.0.2." in text and "is blocked at 10:11:12" in text


def test_id_that_a_field_names_is_replaced_in_words_as_well() -> None:
    text = kept({"error": "no auction p0q3x7yz81", "auctionId": "p0q3x7yz81"}, status=400)
    assert "p0q3x7yz81" not in text and "no auction" in text


def test_constants_of_the_probe_stay_so_that_the_draft_gives_no_amount_away() -> None:
    row = {"price": DRAFTED_AT, "sellerReceiveAddress": ADDRESS, "inscriptionId": FIRST_INSCRIPTION}
    assert masker().value(row) == row


def test_answer_that_would_make_the_file_too_large_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.venue.MOST_BYTES", 30_000)
    saved = json.loads(kept({"data": ["x" * 20_000]}))
    made = saved["questions"][0]["exchanges"][0]
    assert made["status"] == 200 and "answer" not in made and "text" not in made


def test_row_of_thousands_of_fields_is_replaced_in_time() -> None:
    row = {f"field{number}At": 0 for number in range(20_000)}
    started = time.process_time()
    assert masker().value(row) == row
    assert time.process_time() - started < 30
