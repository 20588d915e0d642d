"""Proofs of ownership: honest ones are taken, everything else is refused and nothing raises."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from typing import Any

import pytest
from embit.ec import PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import part_of
from tests.vectors import load
from tests.wallet import proofs
from wallet import address as bech32
from wallet import bip322
from wallet.address import parse
from wallet.bip322 import self_test, verify_ownership
from wallet.keystore.keys import sign_message

TEXT = "Sign in to Bidkeeper at example.org\nNonce: 00"


def p2wpkh_proof(key: PrivateKey, message: str) -> str:
    return sign_message(key, "p2wpkh", message)


def p2tr_proof(key: PrivateKey, message: str) -> str:
    return sign_message(key, "p2tr", message)


KINDS: dict[str, tuple[Callable[[PrivateKey], str], Callable[[PrivateKey, str], str]]] = {
    "p2wpkh": (proofs.p2wpkh_address, p2wpkh_proof),
    "p2tr": (proofs.p2tr_address, p2tr_proof),
    "nested": (proofs.nested_address, proofs.nested_proof),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def proof(kind: str, message: str = TEXT, key: PrivateKey = proofs.OWNER) -> tuple[str, str]:
    address_of, sign = KINDS[kind]
    return address_of(key), sign(key, message)


def raw(signature: str) -> bytes:
    return base64.b64decode(signature)


def text(witness: bytes) -> str:
    return base64.b64encode(witness).decode()


def test_every_collected_vector_gets_its_verdict() -> None:
    vectors = load("bip322")["vectors"]
    wrong = [
        vector["id"]
        for vector in vectors
        if verify_ownership(vector["address"], vector["message"], vector["signature"])
        != (vector["policy_core"] == "accept")
    ]
    assert vectors
    assert wrong == []


def test_a_published_proof_is_made_byte_for_byte() -> None:
    key = PrivateKey.from_wif("L3VFeEujGtevx9w18HD1fhRbCH67Az2dpCymeRE1SoPK6XQtaN2k")
    made = sign_message(key, "p2wpkh", "Hello World")
    assert made == (
        "AkcwRAIgZRfIY3p7/DoVTty6YZbWS71bc5Vct9p9Fia83eRmw2QCICK/ENGfwLtptFluMGs2KsqoNSk89pO7F29zJLUx9a/s"
        "ASECx/EgAxlkQpQ9hYjgGu6EBCPMVPwVIVJqO4XCsMvViHI="
    )
    assert verify_ownership("bc1q9vza2e8x573nczrlzms0wvx3gsqjx7vavgkx0l", "Hello World", made)


@every_kind
def test_an_honest_proof_is_taken_bare_and_with_its_prefix(kind: str) -> None:
    address, signature = proof(kind)
    assert verify_ownership(address, TEXT, signature)
    assert verify_ownership(address, TEXT, "smp" + signature)


@settings(max_examples=part_of(100))
@given(st.sampled_from(list(KINDS)), st.text(max_size=300), st.integers(1, 2**200))
def test_what_any_key_signs_verifies_for_it_alone(kind: str, message: str, secret: int) -> None:
    key = PrivateKey(secret.to_bytes(32, "big"))
    address, signature = proof(kind, message, key)
    assert verify_ownership(address, message, signature)
    assert not verify_ownership(address, message + " ", signature)
    assert not verify_ownership(KINDS[kind][0](proofs.STRANGER), message, signature)


@every_kind
def test_a_strangers_proof_is_refused(kind: str) -> None:
    assert not verify_ownership(proof(kind)[0], TEXT, proof(kind, key=proofs.STRANGER)[1])


def test_forgeries_with_the_strangers_key_in_the_witness_are_refused() -> None:
    own, strange = proofs.p2wpkh_script(proofs.OWNER), proofs.p2wpkh_script(proofs.STRANGER)
    nested = parse(proofs.nested_address(proofs.OWNER))
    spent = type(own)(b"\xa9\x14" + nested.program + b"\x87")
    for code in (own, strange):
        assert not verify_ownership(
            proofs.p2wpkh_address(proofs.OWNER), TEXT, proofs.ecdsa_proof(proofs.STRANGER, own, code, TEXT)
        )
        assert not verify_ownership(nested.text, TEXT, proofs.ecdsa_proof(proofs.STRANGER, spent, code, TEXT))


def test_the_binding_check_refuses_a_forgery_without_the_librarys_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bip322.library, "verify_simple_encoded", lambda *arguments: None)
    own = proofs.p2wpkh_script(proofs.OWNER)
    assert not verify_ownership(
        proofs.p2wpkh_address(proofs.OWNER), TEXT, proofs.ecdsa_proof(proofs.STRANGER, own, own, TEXT)
    )
    assert not verify_ownership(proofs.nested_address(proofs.OWNER), TEXT, proofs.nested_proof(proofs.STRANGER, TEXT))


@every_kind
def test_bytes_after_the_witness_are_refused(kind: str) -> None:
    address, signature = proof(kind)
    assert not verify_ownership(address, TEXT, text(raw(signature) + b"\x00"))
    assert not verify_ownership(address, TEXT, text(raw(signature)[:-1]))


def test_a_second_item_or_annex_on_taproot_is_refused() -> None:
    address, signature = proof("p2tr")
    item = raw(signature)[2:]
    assert verify_ownership(address, TEXT, proofs.stack(item))
    assert not verify_ownership(address, TEXT, proofs.stack(item, b""))
    assert not verify_ownership(address, TEXT, proofs.stack(item, b"\x50\x01"))


def test_a_taproot_signature_with_a_sighash_byte_of_zero_is_refused() -> None:
    address, signature = proof("p2tr")
    assert not verify_ownership(address, TEXT, proofs.stack(raw(signature)[2:] + b"\x00"))


@every_kind
def test_long_lengths_and_counts_are_refused(kind: str) -> None:
    address, signature = proof(kind)
    body = raw(signature)
    for witness in (
        b"",
        b"\x00",
        b"\xff" * 9 + body,
        b"\xfd\x01\x00" + body[1:],
        body[:1] + b"\xfd" + body[1:2] + b"\x00" + body[2:],
    ):
        assert not verify_ownership(address, TEXT, text(witness))


@every_kind
def test_only_canonical_base64_is_taken(kind: str) -> None:
    address, signature = proof(kind)
    for rewritten in (
        signature.rstrip("=") + "=" * (3 - signature.count("=")),
        signature + "====",
        signature + "\n",
        " " + signature,
        signature[:8] + "\n" + signature[8:],
        raw(signature).hex(),
        "smpsmp" + signature,
        "ful" + signature,
        "pof" + signature,
        "SMP" + signature,
        "smp",
    ):
        assert not verify_ownership(address, TEXT, rewritten)


def test_unused_bits_in_the_last_letter_are_refused() -> None:
    address, signature = next(
        (address, signature)
        for address, signature in (proof("p2wpkh", TEXT), proof("p2tr", TEXT), proof("nested", TEXT))
        if signature.endswith("=")
    )
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    body, padding = signature.rstrip("="), signature.count("=")
    changed = body[:-1] + letters[letters.index(body[-1]) + 1] + "=" * padding
    assert raw(changed) == raw(signature)
    assert not verify_ownership(address, TEXT, changed)


def test_the_same_key_on_another_network_is_refused() -> None:
    for kind in ("p2wpkh", "p2tr"):
        address, signature = proof(kind)
        found = parse(address)
        for prefix in ("tb", "bcrt"):
            elsewhere = bech32.encode(prefix, int(kind == "p2tr"), found.program)
            assert not verify_ownership(elsewhere, TEXT, signature)


def test_upper_case_address_is_taken_and_mixed_case_refused() -> None:
    address, signature = proof("p2tr")
    assert verify_ownership(address.upper(), TEXT, signature)
    assert not verify_ownership(address.replace("bc1p", "bc1P"), TEXT, signature)


@pytest.mark.parametrize("message", ["", "a\r\nb", "\x00", "é", "e\u0301", "🟧", "x" * 8192, " blank "])
def test_a_message_is_taken_byte_for_byte(message: str) -> None:
    address, signature = proof("p2wpkh", message)
    assert verify_ownership(address, message, signature)
    assert not verify_ownership(address, message + "\n", signature)


@pytest.mark.parametrize("bad", ["\ud800", "\x00", "A" * 8192, "é", "", None, 7, b"bytes", ["list"]])
def test_hostile_values_anywhere_are_refused_and_never_raise(bad: Any) -> None:
    address, signature = proof("p2wpkh")
    assert not verify_ownership(bad, TEXT, signature)
    assert not verify_ownership(address, bad, signature)
    assert not verify_ownership(address, TEXT, bad)


@given(st.binary(max_size=190))
def test_any_bytes_as_a_signature_are_refused(witness: bytes) -> None:
    for address_of, _ in KINDS.values():
        assert not verify_ownership(address_of(proofs.OWNER), TEXT, text(witness))


class PanicException(BaseException):
    """Stands for pyo3's, which cannot be imported."""


@pytest.mark.parametrize("failure", [PanicException, RuntimeError, MemoryError])
def test_a_library_that_panics_is_a_refusal_and_logs_no_input(
    failure: type[BaseException], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def panic(*arguments: str) -> None:
        raise failure("".join(arguments))

    address, signature = proof("p2wpkh")
    monkeypatch.setattr(bip322.library, "verify_simple_encoded", panic)
    with caplog.at_level(logging.ERROR):
        assert verify_ownership(address, TEXT, signature) is False
    assert failure.__name__ in caplog.text
    assert signature not in caplog.text


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_the_end_of_the_process_is_no_refusal(end: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(*arguments: str) -> None:
        raise end

    address, signature = proof("p2wpkh")
    monkeypatch.setattr(bip322.library, "verify_simple_encoded", leave)
    with pytest.raises(end):
        verify_ownership(address, TEXT, signature)


def test_the_self_test_passes_here() -> None:
    self_test()


@pytest.mark.parametrize("answer", [None, True])
def test_the_self_test_sees_a_library_that_takes_everything(
    answer: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bip322.library, "verify_simple_encoded", lambda *arguments: answer)
    with pytest.raises(RuntimeError, match="self-test"):
        self_test()


def test_the_self_test_sees_a_library_that_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: str) -> None:
        raise bip322.library.VerificationError("no")

    monkeypatch.setattr(bip322.library, "verify_simple_encoded", refuse)
    with pytest.raises(RuntimeError, match="self-test"):
        self_test()
