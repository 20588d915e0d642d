"""Texts that people paste: every spelling of a plain form reads to it, and nothing else does."""

from __future__ import annotations

import base64
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import fields
from core.fields import PasteError
from tests.examples import part_of

TXID = "6fb976ab49dcec017f1e201e84395983204ae1a7c2abf7ced0a85d692e442799"
READERS: list[Callable[[str], str]] = [
    *(
        fields.collection,
        fields.ticker,
        fields.inscription,
        fields.address,
        fields.signature,
        fields.public_key,
    )
]
AROUND = st.text(" \t\r\n\u00a0\u2009\u3000\u200b\u2060\ufeff", max_size=3)
EXAMPLES = settings(max_examples=part_of(300), deadline=None, derandomize=True, database=None)


@st.composite
def pasted_along(draw: st.DrawFn, text: str) -> str:
    """Draws `text` with blanks around it, and characters without width inside."""
    place = draw(st.integers(0, len(text)))
    inside = draw(st.sampled_from(["", "\u200b", "\ufeff", "\u00ad\u2060"]))
    return draw(AROUND) + text[:place] + inside + text[place:] + draw(AROUND)


@st.composite
def any_case(draw: st.DrawFn, text: str) -> str:
    return "".join(each.upper() if draw(st.booleans()) else each.lower() for each in text)


WORDS = st.lists(st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ", min_size=1, max_size=6), min_size=1, max_size=4)


@EXAMPLES
@given(st.data(), WORDS)
def test_every_spelling_of_a_ticker_reads_to_it(data: st.DataObject, words: list[str]) -> None:
    name = data.draw(any_case(words[0]))
    for word in words[1:]:
        spacers = [".", "\u00b7", "\u2022", " \u2022 ", ". "] + [" ", "\u00a0", "  "] * (len(words[-1]) > 1)
        name += data.draw(st.sampled_from(spacers)) + data.draw(any_case(word))
    symbol = data.draw(st.sampled_from(["", " \U0001f415", " \u29c9", " \u2764\ufe0f"]))
    text = data.draw(pasted_along(name + symbol))
    wanted = "\u2022".join(words)
    page = f"https://ordinals.com/rune/{quote(wanted)}"

    assert fields.ticker(text) == fields.ticker(page) == fields.slug("rune", text) == wanted


@EXAMPLES
@given(st.text("aZ\u212a\u0131\u00df \u2022.\u00b7-$\U0001f415\u200b", max_size=9))
def test_a_ticker_has_the_letters_that_were_pasted_and_no_others(text: str) -> None:
    try:
        found = fields.ticker(text)
    except PasteError:
        return
    if found.replace("\u2022", "").isalpha() and found.replace("\u2022", "").isascii():
        assert found.replace("\u2022", "") == "".join(each for each in text if each.isalpha()).upper()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("840000:3", "rune's id"),
        ("FOO\u2022BAR X", "single character after a blank"),
        ("DOG $", "single character after a blank"),
        ("FOO \u72ac", "single character after a blank"),
        ("https://ordinals.com/sat/5", "does not end in /rune/"),
        ("https://ordinals.com/rune/", "does not end in /rune/"),
    ],
)
def test_a_ticker_with_two_meanings_is_refused(text: str, words: str) -> None:
    with pytest.raises(PasteError, match=words):
        fields.ticker(text)


@EXAMPLES
@given(st.data(), st.from_regex(r"[a-z0-9][a-z0-9._-]{0,20}", fullmatch=True))
def test_every_spelling_of_a_slug_reads_to_it(data: st.DataObject, slug: str) -> None:
    form = data.draw(st.sampled_from(["{}", "https://x.io/collection/{}", "HTTP://a.x.io/en/Collection/{}/?a=b#c"]))
    text = data.draw(pasted_along(form.format(data.draw(any_case(slug)))))
    assert fields.collection(text) == fields.slug("ordinals", text) == slug


@pytest.mark.parametrize("text", ["https://x.io/item/cats", "https://x.io/collection/", "x.io/collection/a/b", "a/b"])
def test_an_address_of_another_page_is_no_slug(text: str) -> None:
    with pytest.raises(PasteError, match="such as bitcoin-puppets"):
        fields.collection(text)


@EXAMPLES
@given(st.data(), st.text("0123456789abcdef", min_size=64, max_size=64), st.integers(0, 2**32))
def test_every_spelling_of_an_inscription_reads_to_it(data: st.DataObject, txid: str, index: int) -> None:
    wanted = f"{txid}i{index}"
    pages = [
        "https://ordinals.com/inscription/{}",
        "ordinals.com/content/{}",
        "https://x.io/a/{}/b?c=1",
        "https://x.io/i?of={}",
    ]
    text = data.draw(st.sampled_from(["{}", *pages])).format(data.draw(any_case(wanted)))
    assert fields.inscription(data.draw(pasted_along(text))) == wanted


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *((number, "number, and its id is needed: .* 64 hex digits") for number in ("0", "#12,345,678", "-5")),
        (TXID, "transaction's id: add i"),
        (f"https://mempool.space/tx/{TXID}", "no id in it"),
        (f"https://x.io/{TXID}i0/child/{TXID}i1", "several ids in it"),
        (f"https://x.io/0{TXID}i0", "no id in it"),
        *((wrong, "is no inscription's id") for wrong in (f"{TXID}i", f"{TXID}i01", f"{TXID}i0 {TXID}i0", "")),
        (f"{TXID}\u01300", "is no inscription's id"),
    ],
)
def test_what_names_no_single_inscription_is_refused(text: str, words: str) -> None:
    with pytest.raises(PasteError, match=words):
        fields.inscription(text)


ADDRESS = "bc1qlzrwcf49yrltr5graye452qeypxcrwk7l0wg75"


@pytest.mark.parametrize(
    "text",
    [
        f"bitcoin:{ADDRESS}",
        f"Bitcoin:{ADDRESS}?amount=0.5&label=a%20b&lightning=LNBC1",
        f" {ADDRESS}\r\n",
        f"\ufeff{ADDRESS[:9]}\u200b{ADDRESS[9:]}",
    ],
)
def test_an_address_is_taken_out_of_a_payment_request(text: str) -> None:
    assert fields.address(text) == ADDRESS
    assert fields.address(f"BITCOIN:{ADDRESS.upper()}?LABEL=X") == ADDRESS.upper()


@pytest.mark.parametrize("rest", ["?req-x=1", "?a=b&REQ-X=1", "?r%65q-x=1", "?bc=bc1qother", "?TB=x"])
def test_a_payment_request_with_a_condition_or_two_addresses_is_refused(rest: str) -> None:
    with pytest.raises(PasteError, match="paste"):
        fields.address(f"bitcoin:{ADDRESS}{rest}")
    with pytest.raises(PasteError, match="one address alone"):
        fields.address("bitcoin:?lno=x")


# A P2TR and a P2WPKH witness begin so, and a recoverable signature with its header.
STARTS = st.sampled_from([b"\x01\x40", b"\x01\x41", b"\x02\x47\x30", b"\x02\x48\x30", *map(bytes, zip(range(27, 43)))])


@EXAMPLES
@given(st.data(), STARTS, st.binary(min_size=62, max_size=110), st.sampled_from(["", "smp"]))
def test_every_spelling_of_a_signature_reads_to_it(data: st.DataObject, start: bytes, rest: bytes, prefix: str) -> None:
    raw = start + rest
    text = base64.b64encode(raw).decode()
    wrapped = "\r\n".join(text[at : at + 64] for at in range(0, len(text), 64))
    safe = base64.urlsafe_b64encode(raw).decode()
    spellings = [
        text,
        text.rstrip("="),
        wrapped,
        safe,
        safe.rstrip("="),
        raw.hex(),
        raw.hex().upper(),
        "0x" + raw.hex(),
    ]
    assert fields.signature(data.draw(pasted_along(prefix + data.draw(st.sampled_from(spellings))))) == prefix + text


@EXAMPLES
@given(st.from_regex(r"[A-Za-z0-9+/]{1,40}={0,2}", fullmatch=True))
def test_base64_keeps_all_its_bits(text: str) -> None:
    """So the verifier still sees, and refuses, bits that no encoder writes."""
    try:
        found = fields.signature(text)
    except PasteError:
        return
    is_hex = text.isalnum() and len(text) % 2 == 0 and all(each in "0123456789abcdefABCDEF" for each in text)
    assert is_hex or text[:2] in ("0x", "0X") or found.rstrip("=") == text.rstrip("=")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "neither base64 nor hex"),
        ("nonsense!", "neither base64 nor hex"),
        ("A===", "neither base64 nor hex"),
        ("AAAAA", "cut off"),
        ("AAAAA==", "cut off"),
        ("ful" + "AAAA" * 30, "simple kind"),
        ("pof" + "AAAA" * 30, "simple kind"),
        ("A" * 10_000, "longer than"),
    ],
)
def test_a_signature_that_cannot_be_read_is_refused(text: str, words: str) -> None:
    with pytest.raises(PasteError, match=words):
        fields.signature(text)


@pytest.mark.parametrize("text", ["02" + "AB" * 32, " 0x02" + "ab" * 32, "02 " + "ab " * 32 + "\n"])
def test_every_spelling_of_a_public_key_reads_to_it(text: str) -> None:
    assert fields.public_key(text) == "02" + "ab" * 32


HOSTILE = st.text(max_size=40) | st.sampled_from(
    [
        "\x00",
        "a\x00b",
        "\u202e" + ADDRESS,
        ADDRESS + "\u2066",
        "\ud800",
        "\x1b[31mx",
        "a" * 10_000,
        "\u200b" * 5,
        "//",
        "http://[/",
    ]
)


@EXAMPLES
@given(HOSTILE | st.text(st.characters(exclude_categories=()), max_size=20))
def test_hostile_text_is_plain_or_refused_in_plain_words(text: str) -> None:
    for read in READERS:
        try:
            found = read(text)
        except PasteError as error:
            assert str(error).isprintable() and len(str(error)) < 250
        else:
            assert found.isprintable() and "\u200b" not in found
            assert found.lower().startswith("bitcoin:") or read(found) == found


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
@pytest.mark.parametrize("bad", ["\x00", "\x1b", "\u202e", "\u2066", "\ud800", "\x85"])
def test_control_characters_are_refused_everywhere(read: Callable[[str], str], bad: str) -> None:
    for text in (bad + ADDRESS, ADDRESS + bad, ADDRESS[:9] + bad + ADDRESS[9:]):
        with pytest.raises(PasteError, match="control or invisible character"):
            read(text)
