"""The grammar of what is signed: no text of one kind passes as another."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shapes import replace
from tests.worlds.signer import BID, GRANT
from wallet import messages
from wallet.protocol import UserKeys

KEYS = UserKeys(payment="bc1qpayment", payment_pubkey="02" * 33, vault="bc1pvault", vault_pubkey="03" * 32)
NONCE = "0123456789abcdef" * 2


def test_a_bid_reads_as_the_venue_wants_it() -> None:
    text = messages.compose_bid(replace(BID, quantity="0.5", slug="DOG•GO•TO•THE•MOON"), KEYS, GRANT.receive)
    assert text == (
        f"bc1qpayment:{'02' * 33}:{GRANT.receive}:40000:0.5:{BID.expires_ms}:DOG•GO•TO•THE•MOON:{BID.timestamp_ms}"
    )


def test_a_bid_of_no_slug_or_no_quantity_is_not_composed() -> None:
    for change in ({"slug": "a:b"}, {"quantity": "1:1"}, {"price": 0}, {"expires_ms": 0}, {"timestamp_ms": 0}):
        with pytest.raises(messages.MessageError):
            messages.compose_bid(replace(BID, **change), KEYS, GRANT.receive)


def test_a_quantity_has_at_most_sixty_characters() -> None:
    messages.check_quantity("1" * 60)
    with pytest.raises(messages.MessageError):
        messages.check_quantity("1" * 61)


@pytest.mark.parametrize("slug", ["frogs", "a", "OMB_3.1", "bitcoin-frogs", "UNCOMMON•GOODS", "x" * 200])
def test_slugs_of_collections_and_runes_are_taken(slug: str) -> None:
    messages.check_slug(slug)


@pytest.mark.parametrize("slug", ["", "a:b", "a b", "a\n", "\x00", "é", "a/b", "a\u2028b", "x" * 201, "\ud800"])
def test_other_slugs_are_refused(slug: str) -> None:
    with pytest.raises(messages.MessageError):
        messages.check_slug(slug)


@pytest.mark.parametrize(
    "quantity", ["1", "1000", "0.5", "10.05", "0.00000001", "340282366920938463463374607431768211455"]
)
def test_canonical_quantities_are_taken(quantity: str) -> None:
    messages.check_quantity(quantity)


@pytest.mark.parametrize(
    "quantity",
    [
        "",
        "0",
        "0.0",
        "00",
        "01",
        "1.0",
        "1.",
        ".5",
        "0.50",
        "+1",
        "-1",
        "1e3",
        "1,000",
        " 1",
        "1\n",
        "NaN",
        "١",
        "1:1",
        "9" * 61,
    ],
)
def test_other_quantities_are_refused(quantity: str) -> None:
    with pytest.raises(messages.MessageError):
        messages.check_quantity(quantity)


@pytest.mark.parametrize(
    "change", [{"price": 0}, {"price": True}, {"price": 1.0}, {"expires_ms": -1}, {"timestamp_ms": 0}]
)
def test_a_bid_with_other_than_whole_positive_numbers_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(messages.MessageError):
        messages.compose_bid(replace(BID, **change), KEYS, GRANT.receive)


@pytest.mark.parametrize("receive", ["", "bc1q:1", "bc1q 1", "bc1q\n"])
def test_a_receiving_address_that_would_shift_the_fields_is_refused(receive: str) -> None:
    with pytest.raises(messages.MessageError):
        messages.compose_bid(BID, KEYS, receive)


@pytest.mark.parametrize(
    "challenge",
    [
        "x",
        "satflow login 66f0a1",
        "Challenge: 0a1b2c",
        "a" * 512,
        "two\nlines",
        "two\r\nlines\n",
        "a:b:c:d:e:f:g:h",
        "Sign in to Satflow\n\nNonce: 0a1b2c\nIssued At: 2026-11-22T18:00:00Z\nExpires: 2026-11-22T19:00:00Z",
        "satflow.com wants you to sign in\nURI: https://satflow.com:443\nVersion: 1\nChain: 0\nNonce: 17",
        f"{GRANT.user}:1766430000000:cancel",
        "at 18:00:00, of 12:30",
    ],
)
def test_a_harmless_challenge_is_taken(challenge: str) -> None:
    messages.check_challenge(challenge)


@pytest.mark.parametrize(
    "challenge",
    [
        "",
        "a" * 513,
        "tab\there",
        "carriage\rreturn",
        "nul\x00",
        "é",
        "a:b:c:49999:1:1900000000000:frogs:1",
        "a:b:c:49999:1:1900000000000",
        "49999:1:1900000000000:frogs",
        "a:b:c: 49999 : 1.5 :\n1900000000000 :frogs:1",
        "a:b:c:4.9e4:+1:0x1ba:frogs:1",
        "a:b:c:.5:-1:5_000:frogs",
        "Sign in to ord.net at noon",
        "x\nSIGN-IN TO ORD NET",
        "Sign in to Ordinals Wallet",
        messages.SIGN_IN_PHRASE,
        "please SIGN IN TO BIDKEEPER now",
        "bidkeeper",
        "Bid keeper",
        "b-i-d-k-e-e-p-e-r",
        "B\u0131dkeeper",
    ],
)
def test_a_challenge_that_could_be_something_else_is_refused(challenge: str) -> None:
    with pytest.raises(messages.MessageError):
        messages.check_challenge(challenge)


@given(st.integers(1, 10**15), st.from_regex(r"[A-Za-z0-9_.\u2022-]{1,40}", fullmatch=True))
def test_no_bid_and_no_sign_in_text_passes_as_a_challenge(price: int, slug: str) -> None:
    for text in (
        messages.compose_bid(replace(BID, price=price, slug=slug), KEYS, GRANT.receive),
        messages.compose_sign_in("example.org", GRANT.user, "2026-11-21T00:00:00Z", NONCE),
    ):
        with pytest.raises(messages.MessageError):
            messages.check_challenge(text)


DOCUMENTED = "Sign in to ord.net at 2026-05-08T18:00:00Z (nonce: 0123456789abcdef)"


@pytest.mark.parametrize(
    "text",
    [
        DOCUMENTED,
        "Sign in to ord.net\nPurpose: payment address\nNonce: 8bf1b1f09e2a4d4c",
        f"Sign in to ord.net with {GRANT.user}",
        f"Sign in to ord.net with {GRANT.user.upper()}\n",
        "Sign in to ord.net " + "x" * (512 - 19),
    ],
)
@pytest.mark.parametrize("venue", ["ordnet", "simulator-ordnet"])
def test_the_venues_sign_in_is_taken(text: str, venue: str) -> None:
    messages.check_sign_in(text, venue, GRANT.user)


def test_another_venues_sign_in_is_taken_there_alone() -> None:
    text = (
        "Sign in to Ordinals Wallet\n\nThis proves you own this address. It does not move funds or cost a fee.\n\n"
        f"Address: {GRANT.receive}\nNonce: {NONCE}\nIssued At: 1800000000000"
    )
    messages.check_sign_in(text, "ordinalswallet", GRANT.receive)
    messages.check_sign_in(text, "simulator-ordinalswallet", GRANT.receive)
    for there, signer in (("ordnet", GRANT.receive), ("ordinalswallet", GRANT.user)):
        with pytest.raises(messages.MessageError):
            messages.check_sign_in(text, there, signer)
    for was, is_now in (
        (NONCE, NONCE[:-1]),
        (NONCE, NONCE.upper()),
        ("1800000000000", "1800000000"),
        ("1800000000000", "01800000000000"),
        ("1800000000000", "1800000000000\n"),
        ("does not move funds", "moves funds"),
        (f"Address: {GRANT.receive}\n", ""),
        ("\n\nThis", "\nThis"),
        ("Issued At: ", "Issued At:"),
    ):
        assert was in text
        with pytest.raises(messages.MessageError, match="word for word"):
            messages.check_sign_in(text.replace(was, is_now), "ordinalswallet", GRANT.receive)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Sign in to ord.net",
        "Sign in to ord.network at noon",
        "Sign in to ord.net.example.org at noon",
        "Sign in to ord.net:8080 at noon",
        "sign in to ord.net at noon",
        " Sign in to ord.net at noon",
        "\nSign in to ord.net at noon",
        "Please Sign in to ord.net at noon",
        "Sign in to satflow.com at noon",
        "Sign in to ord.net\tat noon",
        "Sign in to ord.net\r\nat noon",
        "Sign in to ord.net \x00",
        "Sign in to ord.net \u00e9",
        "Sign in to ord.net \ufe0f",
        "Sign in to ord.net " + "x" * (512 - 18),
        "Sign in to ord.net\nSign in to Bidkeeper at example.org",
        "Sign in to ord.net and B i d-keeper",
        "Sign in to ord.net and BID\nKEEPER",
        f"Sign in to ord.net with {GRANT.receive}",
        f"Sign in to ord.net with {GRANT.user} or {GRANT.receive}",
        f"Sign in to ord.net with {GRANT.user}q",
    ],
)
def test_a_sign_in_that_could_be_another_is_refused(text: str) -> None:
    with pytest.raises(messages.MessageError):
        messages.check_sign_in(text, "ordnet", GRANT.user)


# The documented examples of each form; none of their keys is anybody's here.
FOREIGN = {
    "pay to public key hash": "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
    "pay to script hash": "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy",
    "testnet, key hash": "mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn",
    "testnet, script hash": "2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc",
    "segwit": "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
    "segwit in capitals": "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4",
    "segwit in mixed letters": "bC1Qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
    "testnet, segwit": "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx",
    "testnet, in capitals": "TB1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KXPJZSX",
    "regtest, segwit": "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080",
}


@pytest.mark.parametrize("foreign", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize(
    "frame", ["Address: {}", "({})", "a={}&b=1", "{}_1", "https://ord.net/{}/x", f"{GRANT.user} {{}}"]
)
def test_a_sign_in_for_somebody_elses_address_of_any_form_is_refused(foreign: str, frame: str) -> None:
    with pytest.raises(messages.MessageError, match="another address"):
        messages.check_sign_in(f"Sign in to ord.net\n{frame.format(foreign)}", "ordnet", GRANT.user)


@pytest.mark.parametrize(
    "nonce",
    [
        "1" * 34,
        "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLx",
        "mCA7Bs2bXq9rJv5nHkTdEwYzFgUoPi",
        "2f" * 16,
        "0b" * 32,
        "x" * 90 + "1",
    ],
)
def test_a_nonce_that_only_looks_like_an_address_is_taken(nonce: str) -> None:
    messages.check_sign_in(f"Sign in to ord.net\nNonce: {nonce}", "ordnet", GRANT.user)


@pytest.mark.parametrize("venue", messages.SIGN_IN_BEGINNINGS)
def test_the_beginning_of_no_venues_sign_in_passes_as_a_challenge(venue: str) -> None:
    beginning = messages.SIGN_IN_BEGINNINGS[venue]
    spellings = (
        beginning,
        beginning.upper(),
        beginning.replace(" ", "  "),
        beginning.replace(" ", "\n"),
        f"> {beginning}.",
    )
    for text in spellings:
        with pytest.raises(messages.MessageError, match="sign-in at a marketplace"):
            messages.check_challenge(f"{text} at 2026-05-08 (nonce 1)")


@pytest.mark.parametrize("venue", ["satflow", "simulator", "unisat", "", "ORDNET"])
def test_a_venue_whose_sign_in_is_not_known_gets_none(venue: str) -> None:
    with pytest.raises(messages.MessageError):
        messages.check_sign_in(DOCUMENTED, venue, GRANT.user)


@given(st.integers(1, 10**15), st.from_regex(r"[A-Za-z0-9_.\u2022-]{1,40}", fullmatch=True))
def test_no_bid_and_no_sign_in_here_passes_as_a_sign_in_there(price: int, slug: str) -> None:
    for text in (
        messages.compose_bid(replace(BID, price=price, slug=slug), KEYS, GRANT.receive),
        messages.compose_sign_in("ord.net", GRANT.user, "2026-11-21T00:00:00Z", NONCE),
    ):
        with pytest.raises(messages.MessageError):
            messages.check_sign_in(text, "ordnet", GRANT.user)


def test_the_sign_in_text_names_service_address_expiry_and_nonce_last() -> None:
    assert messages.compose_sign_in("127.0.0.1:8888", GRANT.user, "2026-11-21T00:05:00Z", NONCE) == (
        f"Sign in to Bidkeeper at 127.0.0.1:8888\nAddress: {GRANT.user}\nExpires: 2026-11-21T00:05:00Z\nNonce: {NONCE}"
    )


@pytest.mark.parametrize(
    ("name", "nonce"),
    [("", NONCE), (" a", NONCE), ("a\nb", NONCE), ("bücher.de", NONCE), ("a", NONCE[:-1]), ("a", NONCE.upper())],
)
def test_a_sign_in_text_that_a_wallet_could_fold_is_refused(name: str, nonce: str) -> None:
    with pytest.raises(messages.MessageError):
        messages.compose_sign_in(name, GRANT.user, "2026-11-21T00:05:00Z", nonce)
