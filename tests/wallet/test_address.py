"""Addresses: the lists of BIP-173 and BIP-350, base58check, and the one normal form."""

from __future__ import annotations

import hashlib

import pytest
from embit.script import address_to_scriptpubkey
from hypothesis import given
from hypothesis import strategies as st

from tests.wallet.proofs import OWNER, nested_address, p2tr_address, p2wpkh_address
from wallet import address
from wallet import address as module
from wallet.address import AddressError, hash160, own_ripemd160, parse, sign_in_address

P2WPKH = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
P2TR = "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0"
GENESIS = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"

# BIP-350: address, script, and what it is to us.
VALID = [
    (P2WPKH.upper(), "0014751e76e8199196d454941c45d1b3a323f1433bd6", "p2wpkh", "mainnet"),
    (
        "tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sl5k7",
        "00201863143c14c5166804bd19203356da136c985678cd4d27a1b8c6329604903262",
        "p2wsh",
        "testnet",
    ),
    (
        "bc1pw508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kt5nd6y",
        "5128751e76e8199196d454941c45d1b3a323f1433bd6751e76e8199196d454941c45d1b3a323f1433bd6",
        "witness",
        "mainnet",
    ),
    ("BC1SW50QGDZ25J", "6002751e", "witness", "mainnet"),
    ("bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs", "5210751e76e8199196d454941c45d1b3a323", "witness", "mainnet"),
    (
        "tb1qqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesrxh6hy",
        "0020000000c4a5cad46221b2a187905e5266362b99d5e91c6ce24d165dab93e86433",
        "p2wsh",
        "testnet",
    ),
    (
        "tb1pqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesf3hn0c",
        "5120000000c4a5cad46221b2a187905e5266362b99d5e91c6ce24d165dab93e86433",
        "p2tr",
        "testnet",
    ),
    (P2TR, "512079be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798", "p2tr", "mainnet"),
]

# BIP-350 and BIP-173: address and why it is none.
INVALID = [
    ("bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqh2y7hd", "checksum"),
    ("tb1z0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqglt7rf", "checksum"),
    ("BC1S0XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ54WELL", "checksum"),
    ("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kemeawh", "checksum"),
    ("tb1q0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq24jc47", "checksum"),
    ("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5", "checksum"),
    ("bc1p38j9r5y49hruaue7wxjce0updqjuyyx0kh56v8s25huc6995vvpql3jow4", "letter"),
    ("BC130XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ7ZWS8R", "witness program"),
    ("bc1pw5dgrnzv", "witness program"),
    ("bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v8n0nx0muaewav253zgeav", "witness program"),
    ("BC1QR508D6QEJXTDG4Y5R3ZARVARYV98GJ9P", "witness program"),
    ("tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq47Zagq", "mixes"),
    ("bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v07qwwzcrf", "padding"),
    ("tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vpggkg4j", "padding"),
    ("bc1gmk9yu", "too short"),
    ("tc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq5zuyut", "base58"),
    ("Bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "mixes"),
    ("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb", "checksum"),
    ("1111", "too short"),
    ("", "too short"),
    ("5KYZdUEo39z3FPrtuX2QbbwGnNP5zTd7yyr2SC1j299sBCnWjss", "known type"),
    ("bc1" + "q" * 88, "longer"),
    ("3" * 5000, "longer"),
]


@pytest.mark.parametrize(("text", "script", "kind", "network"), VALID)
def test_published_addresses_give_their_program(text: str, script: str, kind: str, network: str) -> None:
    found = parse(text)
    assert found.program.hex() == script[4:]
    assert (found.kind, found.network, found.text) == (kind, network, text.lower())


@pytest.mark.parametrize(("text", "reason"), INVALID)
def test_published_non_addresses_are_refused_for_their_reason(text: str, reason: str) -> None:
    with pytest.raises(AddressError, match=reason):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        f" {P2WPKH}",
        f"{P2WPKH}\n",
        f"{P2WPKH[:10]} {P2WPKH[10:]}",
        f"{P2WPKH}\x00",
        f"{P2WPKH}\u200b",
        f"\u00a0{P2WPKH}",
        P2WPKH.replace("k", "\u212a"),
        "\ud800",
        f"bitcoin:{P2WPKH}",
        "１A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
    ],
)
def test_blanks_controls_and_lookalikes_are_refused(text: str) -> None:
    with pytest.raises(AddressError):
        parse(text)


def test_base58_addresses_are_read_and_kept_in_their_case() -> None:
    assert (parse(GENESIS).kind, parse(GENESIS).text) == ("p2pkh", GENESIS)
    assert parse(nested_address(OWNER)).kind == "p2sh"
    assert parse("2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc").network == "testnet"
    with pytest.raises(AddressError):
        parse(GENESIS.swapcase())


def test_upper_case_is_the_same_sign_in_address() -> None:
    assert sign_in_address(P2TR.upper()) == sign_in_address(P2TR) == P2TR


@pytest.mark.parametrize("text", [P2WPKH, P2TR, nested_address(OWNER)])
def test_the_three_types_may_sign_in(text: str) -> None:
    assert sign_in_address(text) == text


@pytest.mark.parametrize(
    "text",
    [
        GENESIS,
        address.encode("bc", 0, bytes(32)),
        address.encode("bc", 2, bytes(32)),
        address.encode("bc", 1, bytes.fromhex("4e73")),
        address.encode("tb", 0, bytes(20)),
        address.encode("bcrt", 1, bytes(32)),
        "2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc",
    ],
)
def test_other_types_and_networks_may_not_sign_in(text: str) -> None:
    assert parse(text)
    with pytest.raises(AddressError):
        sign_in_address(text)


@given(st.sampled_from([0, 1]), st.binary(min_size=32, max_size=32))
def test_encoding_agrees_with_embit(version: int, program: bytes) -> None:
    program = program if version else program[:20]
    text = address.p2tr(program) if version else address.p2wpkh(program)
    assert address_to_scriptpubkey(text).data[2:] == program
    assert parse(text).program == program


@given(st.integers(0, 41), st.characters(codec="ascii"))
def test_one_changed_letter_is_no_address_or_the_same(place: int, letter: str) -> None:
    changed = P2WPKH[:place] + letter + P2WPKH[place + 1 :]
    try:
        assert parse(changed).text == P2WPKH
    except AddressError:
        assert changed != P2WPKH


def test_encoding_refuses_a_program_of_the_wrong_length() -> None:
    with pytest.raises(ValueError, match="20 bytes"):
        address.p2wpkh(bytes(32))
    with pytest.raises(ValueError, match="32 bytes"):
        address.p2tr(bytes(33))


def test_addresses_of_our_keys_are_of_their_kind() -> None:
    assert parse(p2wpkh_address(OWNER)).kind == "p2wpkh"
    assert parse(p2tr_address(OWNER)).kind == "p2tr"


# From the algorithm's authors (Dobbertin, Bosselaers, Preneel).
DIGESTS = [
    (b"", "9c1185a5c5e9fc54612808977ee8f548b2258d31"),
    (b"a", "0bdc9d2d256b3ee9daae347be6f4dc835a467ffe"),
    (b"abc", "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc"),
    (b"message digest", "5d0689ef49d2fae572b881b123a85ffa21595f36"),
    (b"abcdefghijklmnopqrstuvwxyz", "f71c27109c692c1b56bbdceb5b9d2865b3708dbc"),
    (b"1234567890" * 8, "9b752e45573d4b39f4dbd3323cab82bf63326bfb"),
]


@pytest.mark.parametrize(("data", "digest"), DIGESTS)
def test_known_digests(data: bytes, digest: str) -> None:
    assert own_ripemd160(data).hex() == digest


@pytest.mark.skipif(not module.OPENSSL_HAS_IT, reason="this OpenSSL has no RIPEMD-160 to compare with")
@pytest.mark.parametrize("length", [54, 55, 56, 57, 63, 64, 65, 119, 120, 128])
def test_lengths_around_a_block_agree_with_openssl(length: int) -> None:
    data = bytes(range(length))
    assert own_ripemd160(data) == hashlib.new("ripemd160", data).digest()


@pytest.mark.parametrize("openssl", [True, False])
def test_hash160_of_a_published_key(openssl: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OPENSSL_HAS_IT", openssl and module.OPENSSL_HAS_IT)
    generator = bytes.fromhex("0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798")
    assert hash160(generator).hex() == "751e76e8199196d454941c45d1b3a323f1433bd6"
