from __future__ import annotations

import logging

import pytest

from core.logs import _MaskingFormatter, mask


@pytest.mark.parametrize(
    "secret",
    [
        "Authorization: Bearer dGhpc2lzYXRva2VuZm9ydGVzdHM",
        "x-api-key: 0123456789abcdef",
        '"passphrase": "correct-horse"',
        "postgresql://bot:hunter2@localhost/bk",
        "L3VFeEujGtevx9w18HD1fhRbCH67Az2dpCymeRE1SoPK6XQtaN2k",
        "xprv9s21ZrQH143K3GJpoapnV8SFfukcVBSfeCficPSGfubmSFDxo1kuHnLisriDvSnRRuL2Qrg5ggqHKNVpxR86QEC8w35uxmGoggxtQTPvfUu",
        "AkcwRAIgVt/AEHdBWBnFAZlhAcRDqdo8Ca5sA6YVtbKdPSRYGygCIFdGRNAOpwXBhRAc0lyCSqO5mkQyrHVGPfVTqJnCdjSCASECx",
        "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD3q6Qh6v7ZHk=",
        "cHNidP8BAHUCAAAAASaBcTce3/KF6Tet7qSze3gADAVmy7OtZGQXE8pCFxv2AAAAAAD+////",
    ],
)
def test_secrets_are_masked(secret: str) -> None:
    masked = mask(f"before {secret} after")
    assert masked.startswith("before ") and masked.endswith(" after")
    assert secret.split()[-1] not in masked


def test_what_is_no_secret_stays() -> None:
    line = "task 17 placed 75000 sats on goosinals, order 64 at bc1q6rhpng9evdsfnn833a4f4vej0asu6dk5srld6x"
    assert mask(line) == line


def test_input_cannot_forge_a_line() -> None:
    record = logging.LogRecord("x", logging.INFO, "f", 1, "slug %s", ("a\n2026 INFO forged\x1b[2J",), None)
    assert "\n" not in _MaskingFormatter("%(message)s").format(record)
    assert "\x1b" not in _MaskingFormatter("%(message)s").format(record)


@pytest.mark.parametrize(
    "secret",
    [
        "bearer aaaaaaaa",
        "APIKEY=aaaaaaaa",
        "pa\u017f\u017fphrase=aaaaaaaa",  # (?i) takes these letters for s and k, too
        "to\u212aen: aaaaaaaa",
        "AUD" + "a" * 20,
        "5" + "a" * 50,
        "xprv" + "a" * 50,
    ],
)
def test_the_shortest_secret_of_each_kind_is_masked(secret: str) -> None:
    assert "aaaaaaaa" not in mask(f"1 {secret} 2")


def test_arguments_lose_their_line_breaks_and_the_record_keeps_them() -> None:
    record = logging.LogRecord("x", logging.INFO, "f", 1, "a\nb %s", ("c\nd",), None)
    assert _MaskingFormatter("%(message)s").format(record) == "a\\nb c\\nd"
    assert record.getMessage() == "a\nb c\nd"
