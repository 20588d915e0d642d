"""Facts of outputs as the signer asks for them: over a real socket, and no doubt is ever taken for a fact."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.shapes import replace
from tests.wallet.listings import INSCRIPTION, PRICE, former, honest
from tests.worlds.signer import BID, FACTS, GRANT, LIST_GRANT, SECURE_AT_PLAY, START_MS, TASK, listing
from tests.worlds.signer_process import facts_server, house, ok, wire
from wallet.protocol import ListingToSign
from wallet.signer.audit import verify_chain
from wallet.signer.reading import FactsError, ask_facts, read_facts
from wallet.signer_client import SignerRefused
from wallet.terms import Ceilings

OUTPOINT = str(honest().intent.outpoint)
PATIENCE_S = 60.0  # of a test that must get its answer, on a busy machine, too


def to_sign(**changes: Any) -> ListingToSign:
    fields = listing(**changes)
    return ListingToSign(**fields | {"secure": tuple(fields["secure"])})


def test_facts_are_told_as_they_are(tmp_path: Path) -> None:
    with facts_server(tmp_path / "f", lambda request: ok(wire())) as came:
        assert ask_facts(tmp_path / "f", OUTPOINT, PATIENCE_S) == FACTS
    assert came == [{"verb": "outpoint", "args": {"outpoint": OUTPOINT, "with_transaction": True}, "max_age_s": 10}]


@pytest.mark.parametrize("name", ["value", "script", "is_unspent", "is_confirmed", "inscriptions", "runes"])
@pytest.mark.parametrize("value", [None, "", -1, True, 1.5, "zz", "abc", "ABCD", [1], {}, 2**63])
def test_what_is_not_as_agreed_is_not_known(name: str, value: Any) -> None:
    told = read_facts(OUTPOINT, wire() | {name: value})
    field = "value_sats" if name == "value" else name
    fine = {"is_unspent": [True], "is_confirmed": [True], "script": [""]}
    if value in fine.get(name, []):
        return
    assert getattr(told, field) is None
    assert replace(told, **{field: getattr(FACTS, field)}) == FACTS


@pytest.mark.parametrize("name", sorted(wire()))
def test_a_fact_that_is_left_out_is_not_known(name: str) -> None:
    told = wire()
    del told[name]
    if name == "outpoint":
        with pytest.raises(FactsError):
            read_facts(OUTPOINT, told)
    elif name not in ("spent_by", "is_spent_in_block", "transaction"):
        assert None in [getattr(read_facts(OUTPOINT, told), field) for field in FACTS.__struct_fields__]


MADE_BY = wire()["transaction"]


@pytest.mark.parametrize(
    "change",
    [
        {"value": FACTS.value_sats + 1},
        {"value": None},
        {"script": "5120" + "00" * 32},
        {"script": None},
        {"transaction": None},
        {"transaction": ""},
        {"transaction": MADE_BY[:-2]},
        {"transaction": MADE_BY[:-2] + "01"},
        {
            "transaction": former(FACTS.script, FACTS.value_sats + 1, 1, witness=False).hex(),
            "value": FACTS.value_sats + 1,
        },
        {"transaction": former(FACTS.script, FACTS.value_sats, 1).hex()},
    ],
)
def test_value_and_script_are_what_the_transaction_says(change: dict[str, Any], tmp_path: Path) -> None:
    with facts_server(tmp_path / "f", lambda request: ok(wire() | change)):
        assert ask_facts(tmp_path / "f", OUTPOINT, PATIENCE_S) == replace(FACTS, value_sats=None, script=None)


def test_an_output_that_its_transaction_has_not_has_no_value(tmp_path: Path) -> None:
    beyond = f"{OUTPOINT.partition(':')[0]}:2"
    with facts_server(tmp_path / "f", lambda request: ok(wire() | {"outpoint": beyond})):
        assert ask_facts(tmp_path / "f", beyond, PATIENCE_S).value_sats is None


@pytest.mark.parametrize(("told", "known"), [(True, True), (False, False), (None, False), (1, False), ("true", False)])
def test_a_spend_is_in_a_block_only_where_that_is_told(told: Any, known: bool) -> None:
    assert read_facts(OUTPOINT, wire() | {"is_spent_in_block": told}).is_spent_in_block is known


def test_heights_are_numbers() -> None:
    for value in (-1, True, "900000", 1.0, None):
        assert read_facts(OUTPOINT, wire() | {"tip_height": value}).tip_height is None
        assert read_facts(OUTPOINT, wire() | {"index_height": value}).index_height is None
    assert read_facts(OUTPOINT, wire() | {"tip_height": 0, "value": 0}).tip_height == 0


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b"[]",
        b'"ok"',
        b"{}",
        b'{"ok": null}',
        b'{"ok": []}',
        b'{"error": null}',
        b'{"error": {"kind": "unavailable"}}',
        b'{"error": {"kind": "unavailable", "message": "no index"}}',
        ok({}),
        ok(wire() | {"outpoint": "ab" * 32 + ":0"}),
    ],
)
def test_an_answer_without_facts_is_an_error(body: bytes, tmp_path: Path) -> None:
    with facts_server(tmp_path / "f", lambda request: body), pytest.raises(FactsError):
        ask_facts(tmp_path / "f", OUTPOINT)


def test_an_error_says_what_the_source_said(tmp_path: Path) -> None:
    body = json.dumps({"error": {"kind": "unavailable", "message": "ord is away"}}).encode()
    with facts_server(tmp_path / "f", lambda request: body), pytest.raises(FactsError, match="ord is away"):
        ask_facts(tmp_path / "f", OUTPOINT, PATIENCE_S)


def test_nobody_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FactsError, match="failed to ask"):
        ask_facts(tmp_path / "f", OUTPOINT)


def test_a_source_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    with (
        HeldBack() as (tell, _),
        facts_server(tmp_path / "f", tell),
        pytest.raises(FactsError, match="failed to ask"),
    ):
        ask_facts(tmp_path / "f", OUTPOINT, timeout_s=0.1)


class HeldBack:
    """A source that answers once it is let go, at the end at the latest."""

    def __enter__(self) -> tuple[Callable[[dict[str, Any]], bytes], threading.Event]:
        self._let_go = threading.Event()

        def tell(request: dict[str, Any]) -> bytes:
            self._let_go.wait(60)
            return ok(wire())

        return tell, self._let_go

    def __exit__(self, *_: object) -> None:
        self._let_go.set()


def test_a_listing_over_the_socket_is_signed_by_facts_over_the_other(tmp_path: Path) -> None:
    ceilings = Ceilings(secure_listings=SECURE_AT_PLAY)
    with house(tmp_path, ceilings) as opened, facts_server(opened.facts_socket, lambda request: ok(wire())) as came:
        secret = opened.client.grant(LIST_GRANT)
        signed = opened.client.sign_listing(TASK, 5, secret, to_sign())
        assert len(signed.secure) == 1
        assert opened.client.sign_listing(TASK, 5, secret, to_sign()) == signed
        assert len(came) == 1, "what was signed is not looked up again"
        assert opened.client.lowest_listing(OUTPOINT) == PRICE
        assert opened.client.lowest_listing("ab" * 32 + ":1") is None
        assert opened.client.was_signed(to_sign().intent)
        assert opened.client.sign_challenge(TASK, 5, secret, "c", key="vault")
        assert verify_chain(opened.audit_path) == 2


def test_nothing_is_looked_up_for_whoever_may_not_list(tmp_path: Path) -> None:
    with house(tmp_path) as opened, facts_server(opened.facts_socket, lambda request: ok(wire())) as came:
        opened.client.grant(LIST_GRANT)
        with pytest.raises(SignerRefused, match="grant-live"):
            opened.client.sign_listing(TASK, 5, "00" * 32, to_sign())
        assert came == []


@pytest.mark.parametrize(
    ("change", "tag"),
    [
        ({"value": 9_999}, "amount-proof"),
        ({"script": "5120" + "00" * 32}, "amount-proof"),
        ({"is_unspent": False}, "inputs-confirmed"),
        ({"is_unspent": None}, "inputs-confirmed"),
        ({"is_confirmed": False}, "inputs-confirmed"),
        ({"inscriptions": []}, "inputs-cardinal"),
        ({"inscriptions": [INSCRIPTION, "ab" * 32 + "i0"]}, "inputs-cardinal"),
        ({"inscriptions": None}, "inputs-cardinal"),
        ({"runes": ["UNCOMMON•GOODS"]}, "inputs-cardinal"),
        ({"runes": None}, "inputs-cardinal"),
        ({"index_height": 899_998}, "inputs-cardinal"),
        ({"tip_height": None}, "inputs-cardinal"),
        ({"outpoint": "ab" * 32 + ":0"}, "inputs-confirmed"),
    ],
)
def test_every_doubt_over_the_socket_is_a_refusal(change: dict[str, Any], tag: str, tmp_path: Path) -> None:
    with house(tmp_path) as opened, facts_server(opened.facts_socket, lambda request: ok(wire() | change)):
        secret = opened.client.grant(LIST_GRANT)
        with pytest.raises(SignerRefused) as refused:
            opened.client.sign_listing(TASK, 5, secret, to_sign())
        assert refused.value.tag == tag


def test_without_a_source_nothing_is_listed(tmp_path: Path) -> None:
    with house(tmp_path) as opened:
        secret = opened.client.grant(LIST_GRANT)
        with pytest.raises(SignerRefused) as refused:
            opened.client.sign_listing(TASK, 5, secret, to_sign())
        assert refused.value.tag == "inputs-confirmed"
        assert not opened.client.was_signed(to_sign().intent)


def test_bids_do_not_wait_for_slow_facts(tmp_path: Path) -> None:
    with house(tmp_path) as opened, HeldBack() as (tell, let_go), facts_server(opened.facts_socket, tell) as came:
        bidder = opened.client.grant(GRANT)
        lister = opened.client.grant(LIST_GRANT)
        signed: list[object] = []
        listers = [
            threading.Thread(
                target=lambda number: signed.append(
                    opened.client.sign_listing(TASK, 5, lister, to_sign(number=number))
                ),
                args=(number,),
            )
            for number in range(1, 4)
        ]
        for thread in listers:
            thread.start()
        while len(came) < len(listers):
            assert all(thread.is_alive() for thread in listers)
            time.sleep(0.01)
        assert opened.client.sign_bid(17, 5, bidder, BID).signature
        assert signed == []
        let_go.set()
        for thread in listers:
            thread.join()
        assert len(signed) == 3
        assert opened.now_ms == START_MS


def test_a_right_taken_back_while_facts_are_looked_up_holds(tmp_path: Path) -> None:
    with house(tmp_path) as opened, HeldBack() as (tell, let_go), facts_server(opened.facts_socket, tell) as came:
        secret = opened.client.grant(LIST_GRANT)
        tags: list[str] = []

        def list_it() -> None:
            try:
                opened.client.sign_listing(TASK, 5, secret, to_sign())
            except SignerRefused as refused:
                tags.append(refused.tag)

        thread = threading.Thread(target=list_it)
        thread.start()
        while not came:
            assert thread.is_alive()
            time.sleep(0.01)
        opened.client.revoke_place(TASK, 5)
        let_go.set()
        thread.join()
        assert tags == ["op-allowed"]
        assert not opened.client.was_signed(to_sign().intent)
