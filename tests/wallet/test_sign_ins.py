"""Sign-ins at a venue: whose text, by which key, how often, and what is kept of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.signer import OTHER_USER, USER, OfferDesk, fixed_keys, offer_desk, tag_of
from wallet.bip322 import verify_ownership
from wallet.signer.audit import verify_chain
from wallet.terms import Ceilings

TEXT = "Sign in to ord.net at 2026-05-08T18:00:00Z (nonce: 0123456789abcdef)"
KEYS = fixed_keys(USER).secrets_of(USER).public


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[OfferDesk]:
    with offer_desk(tmp_path) as opened:
        yield opened


def sign(desk: OfferDesk, text: Any = TEXT, key: Any = "payment", **changes: Any) -> str:
    asked = {"task": 17, "token": 5, "secret": desk.secret, "text": text, "key": key} | changes
    return str(desk.ask("sign_sign_in", **asked)["signature"])


def test_both_addresses_sign_in_and_it_is_written_down(desk: OfferDesk) -> None:
    for key, address in (("payment", KEYS.payment), ("vault", KEYS.vault)):
        assert verify_ownership(address, TEXT, sign(desk, key=key))
        entry = json.loads(desk.audit_path.read_text().splitlines()[-1])
        assert (entry["operation"], entry["address"]) == ("sign-in", address)
        assert entry["message_sha256"] == hashlib.sha256(TEXT.encode()).hexdigest()
    assert verify_chain(desk.audit_path) == 2


def test_a_text_names_no_other_address_than_the_signing_ones(desk: OfferDesk) -> None:
    text = f"Sign in to ord.net\nAddress: {KEYS.vault}"
    assert tag_of(sign, desk, text) == "msg-template"
    assert sign(desk, text, "vault")


def test_other_texts_are_not_signed(desk: OfferDesk) -> None:
    for text in (
        "Sign in to Bidkeeper at x",
        "Sign in to ord.net and Bidkeeper",
        "challenge 1f2e",
        "Sign in to ord.net",
    ):
        assert tag_of(sign, desk, text) == "msg-template"
    for wrong in ("", "x" * 513, 1, None, [TEXT]):
        assert tag_of(sign, desk, wrong) == "bad-request"
    for key in ("ordinals", "", None):
        assert tag_of(sign, desk, key=key) == "bad-request"
    assert tag_of(sign, desk, more=1) == "bad-request"
    assert desk.audit_path.read_bytes() == b""


def test_only_where_signing_in_is_known(desk: OfferDesk) -> None:
    for token, venue in enumerate(("simulator", "simulator-unisat"), 6):
        secret = desk.grant(venue=venue, token=token)
        assert tag_of(sign, desk, token=token, secret=secret) == "msg-template"


def test_it_needs_a_grant_of_ones_own_and_no_more_than_the_right_to_cancel(desk: OfferDesk) -> None:
    assert tag_of(sign, desk, secret="ab") == "grant-live"
    assert tag_of(sign, desk, task=18) == "grant-live"
    desk.ask("revoke_place", task=17, token=5)
    desk.ask("control", scope="global", subject="", state="halt")
    assert sign(desk)
    assert tag_of(sign, desk, secret=desk.grant(token=6, operations=("bid",)), token=6) == "op-allowed"
    desk.ask("end_rights", task=17, token=6)
    assert tag_of(sign, desk, token=6) == "grant-live"


def test_another_users_grant_signs_with_their_keys(desk: OfferDesk) -> None:
    signature = sign(desk, task=18, secret=desk.grant(task=18, user=OTHER_USER))
    assert not verify_ownership(KEYS.payment, TEXT, signature)
    assert verify_ownership(fixed_keys(USER).secrets_of(OTHER_USER).public.payment, TEXT, signature)


def test_the_number_in_a_minute_is_bounded(tmp_path: Path) -> None:
    with offer_desk(tmp_path, Ceilings(sign_ins_a_minute=1)) as opened:
        sign(opened)
        opened.ask("sign_challenge", task=17, token=5, secret=opened.secret, challenge="c")
        assert tag_of(sign, opened) == "velocity"
        opened.pass_time(60_001)
        assert sign(opened)
