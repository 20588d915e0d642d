"""The signer's own withdrawals: to the sign-in address and nowhere else, from facts, once for each intent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from core.errors import PeerRefused
from tests.shapes import asdict, replace
from tests.wallet import withdrawal_cases as wd
from tests.wallet.attacks.withdrawal_attacks import ATTACKS
from tests.wallet.listings import INSCRIPTION, PAYMENT, script_by
from tests.wallet.proofs import OWNER, nested_address, p2tr_address, p2wpkh_address
from tests.worlds.signer import OTHER_USER, USER, outpoints_to_look_up, tag_of
from wallet.address import parse
from wallet.protocol import WithdrawalToSign
from wallet.psbt.script import script_of
from wallet.psbt.transaction import Transaction, decode_network
from wallet.signer.audit import verify_chain
from wallet.signer.signer_process import require_agreement
from wallet.withdrawal import vsize

HOME = script_by("p2wpkh", OWNER)


@pytest.fixture
def signer(tmp_path: Path) -> Iterator[wd.Desk]:
    with wd.desk(tmp_path) as opened:
        yield opened


def made(answer: dict[str, Any]) -> Transaction:
    transaction = decode_network(bytes.fromhex(answer["transaction"]))
    assert transaction.txid()[::-1].hex() == answer["txid"]
    return transaction


def spent(signer: wd.Desk, transaction: Transaction) -> list[tuple[int, bytes]]:
    known = [signer.facts[str(item.outpoint)] for item in transaction.inputs]
    return [(each.value_sats or 0, each.script or b"") for each in known]


def holds(signer: wd.Desk, answer: dict[str, Any]) -> bool:
    """By btclib's consensus engine, every input; and not for another amount."""
    raw, prevouts = bytes.fromhex(answer["transaction"]), spent(signer, made(answer))
    wrong = [(value + 1, script) for value, script in prevouts]
    return wd.runs(raw, prevouts) and not wd.runs(raw, wrong)


def test_all_coins_go_to_the_sign_in_address(signer: wd.Desk) -> None:
    answer = signer.sign(wd.from_payment())

    transaction = made(answer)
    assert [str(item.outpoint) for item in transaction.inputs] == list(wd.COINS)
    assert [(output.value, output.script) for output in transaction.outputs] == [(answer["sent_sats"], HOME)]
    assert answer["sent_sats"] + answer["fee_sats"] == 2 * wd.COIN + 25_000
    assert holds(signer, answer)


@pytest.mark.parametrize("fee_per_kvb", [1_000, 1_001, 12_500, 77_777])
def test_the_fee_is_what_was_asked_for_by_the_size_that_it_really_has(signer: wd.Desk, fee_per_kvb: int) -> None:
    for number, asked in enumerate((wd.from_payment, wd.of_inscription)):
        answer = signer.sign(asked(number + 1, fee_per_kvb=fee_per_kvb))
        raw, bare = bytes.fromhex(answer["transaction"]), made(answer).encode()
        real = -(-(3 * len(bare) + len(raw)) // 4)
        # A signature is a byte shorter at times.
        assert 0 <= answer["fee_sats"] - -(-real * fee_per_kvb // 1000) <= -(-fee_per_kvb // 1000)


def test_a_part_leaves_the_rest_where_it_was(signer: wd.Desk) -> None:
    answer = signer.sign(wd.from_payment(amount_sats=70_000))

    outputs = made(answer).outputs
    assert [(output.value, output.script) for output in outputs] == [
        (70_000, HOME),
        (75_000 - answer["fee_sats"], wd.PAYMENT_SCRIPT),
    ]
    assert holds(signer, answer)


def test_change_that_nobody_would_carry_is_fee(signer: wd.Desk) -> None:
    coins = tuple(wd.COINS)[:1]
    with_change = vsize(["p2wpkh"], [HOME, wd.PAYMENT_SCRIPT]) * 10
    least = signer.sign(wd.from_payment(1, coins=coins, amount_sats=wd.COIN - with_change - 294))
    none = signer.sign(wd.from_payment(2, coins=coins, amount_sats=wd.COIN - with_change - 293))
    assert [len(made(each).outputs) for each in (least, none)] == [2, 1]
    assert (least["fee_sats"], none["fee_sats"]) == (with_change, with_change + 293)


def test_plain_sats_of_the_vault(signer: wd.Desk) -> None:
    answer = signer.sign(wd.from_payment(source="vault", coins=tuple(wd.VAULT_COINS), amount_sats=50_000))

    assert [output.script for output in made(answer).outputs] == [HOME, wd.VAULT_SCRIPT]
    assert holds(signer, answer)


def test_an_inscription_is_first_in_and_first_out_at_its_full_value(signer: wd.Desk) -> None:
    answer = signer.sign(wd.of_inscription())

    transaction = made(answer)
    assert [str(item.outpoint) for item in transaction.inputs] == [wd.ITEM[0], next(iter(wd.COINS))]
    assert (transaction.outputs[0].value, transaction.outputs[0].script) == (10_000, HOME)
    assert (transaction.outputs[1].value, transaction.outputs[1].script) == (
        wd.COIN - answer["fee_sats"],
        wd.PAYMENT_SCRIPT,
    )
    assert answer["sent_sats"] == 10_000
    assert holds(signer, answer)


@pytest.mark.parametrize(("address", "least"), [(nested_address(OWNER), 540), (p2tr_address(OWNER), 330)])
def test_an_inscription_on_less_than_its_destination_must_have_is_topped_up(
    signer: wd.Desk, address: str, least: int
) -> None:
    signer.keys.users = (USER, address)  # type: ignore[misc]
    signer.keys._user = address  # type: ignore[attr-defined]
    for number, value in enumerate((294, least - 1, least, least + 1)):
        outpoint, signer.facts[outpoint] = wd.coin(720 + number, value, wd.VAULT_SCRIPT, inscriptions=(INSCRIPTION,))
        answer = signer.sign(wd.of_inscription(number, user=address, coins=(outpoint,)))
        moved, change = made(answer).outputs
        assert (moved.value, answer["sent_sats"]) == (max(value, least),) * 2
        assert change.value == wd.COIN - answer["fee_sats"] - max(0, least - value)
        assert holds(signer, answer)


@pytest.mark.parametrize("address", [p2wpkh_address(OWNER), p2tr_address(OWNER), nested_address(OWNER)])
def test_every_kind_of_sign_in_address_is_paid(signer: wd.Desk, address: str) -> None:
    signer.keys.users = (USER, OTHER_USER, address)  # type: ignore[misc]
    signer.keys._user = address  # type: ignore[attr-defined]
    answer = signer.sign(wd.from_payment(user=address))
    assert [output.script for output in made(answer).outputs] == [script_of(parse(address))]
    assert holds(signer, answer)


def test_sats_come_out_of_the_bidding_wallet(signer: wd.Desk) -> None:
    answer = signer.sign(wd.from_bidding())
    assert (answer["transaction"], answer["sent_sats"], answer["fee_sats"]) == ("", wd.AMOUNT, wd.FEE)
    assert answer["psbt"]


def test_sats_come_out_of_a_taproot_leaf_too(signer: wd.Desk) -> None:
    case = wd.Leaf().honest()
    signer.facts |= case.facts
    answer = signer.sign(wd.from_bidding(case=case))
    assert (answer["sent_sats"], answer["fee_sats"]) == (wd.AMOUNT, wd.FEE)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_no_attack_is_signed_over_the_signers_own_door(signer: wd.Desk, attack: Any) -> None:
    [case] = attack.cases()
    if case.key is not PAYMENT:
        pytest.skip("of a key that no request can bring")
    signer.facts = dict(case.facts)
    asked = wd.from_bidding(case=case)
    if case.coins:
        asked = replace(asked, coins=case.coins)
    assert tag_of(signer.sign, asked) in (attack.tag, "bad-request")
    assert signer.ledger.withdrawals.find(asked.intent) is None


def judged(signer: wd.Desk, asked: WithdrawalToSign) -> dict[str, Any]:
    request = {"op": "judge_withdrawal", "withdrawal": asdict(asked)}
    assert set(outpoints_to_look_up(signer.signer, request)) == {*asked.coins, *asked.fee_coins}
    return signer.ask("judge_withdrawal", withdrawal=asdict(asked))


def test_a_judgement_tells_what_a_signature_would_and_makes_none(signer: wd.Desk) -> None:
    for asked in (wd.from_payment(1), wd.from_payment(2, amount_sats=70_000), wd.of_inscription(3), wd.from_bidding(4)):
        told = judged(signer, asked)
        assert signer.ask("was_signed", intent=asked.intent) == {"signed": False}
        signed = signer.sign(asked)
        assert told == {name: signed[name] for name in ("sent_sats", "fee_sats")}
        assert judged(signer, asked) == told
    assert len(signer.audit_path.read_text().splitlines()) == 4


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_a_judgement_refuses_an_attack_by_the_same_rule(signer: wd.Desk, attack: Any) -> None:
    [case] = attack.cases()
    signer.facts = dict(case.facts)
    asked = wd.from_bidding(case=case)
    if case.coins:
        asked = replace(asked, coins=case.coins)
    if case.key is PAYMENT:
        assert tag_of(signer.ask, "judge_withdrawal", withdrawal=asdict(asked)) == tag_of(signer.sign, asked)


def test_a_judgement_wants_facts_keys_and_no_halt_file(signer: wd.Desk) -> None:
    asked, known = wd.from_payment(1), signer.facts
    signer.facts = {}
    assert tag_of(judged, signer, asked) == "inputs-confirmed"
    signer.facts, signer.has_halt_file = known, True
    assert tag_of(signer.ask, "judge_withdrawal", withdrawal=asdict(asked)) == "control-state"
    signer.has_halt_file = False
    signer.signer._authority.keystore = None
    assert tag_of(signer.ask, "judge_withdrawal", withdrawal=asdict(asked)) == "locked"


# intents


def test_the_same_intent_gets_the_same_answer_also_when_the_coins_are_spent(signer: wd.Desk) -> None:
    for asked in (wd.from_payment(1), wd.of_inscription(2), wd.from_bidding(3)):
        first, known = signer.sign(asked), signer.facts
        signer.facts = {}
        assert signer.sign(asked) == first
        signer.facts = known


@pytest.mark.parametrize(
    "changes",
    [
        {"amount_sats": 50_000},
        {"fee_per_kvb": 10_001},
        {"coins": tuple(wd.COINS)[:2]},
        {"source": "vault"},
    ],
)
def test_an_intent_with_other_fields_is_refused(signer: wd.Desk, changes: dict[str, Any]) -> None:
    signer.sign(wd.from_payment(1))
    assert tag_of(signer.sign, wd.from_payment(1, **changes)) == "intent-conflict"


def test_was_signed(signer: wd.Desk) -> None:
    assert signer.ask("was_signed", intent=wd.intent(1)) == {"signed": False}
    signer.sign(wd.from_payment(1))
    assert signer.ask("was_signed", intent=wd.intent(1)) == {"signed": True}


def test_what_is_looked_up_and_when_nothing_is(signer: wd.Desk) -> None:
    def looked_up(asked: WithdrawalToSign) -> tuple[str, ...]:
        return outpoints_to_look_up(signer.signer, {"op": "sign_withdrawal", "withdrawal": asdict(asked)})

    assert looked_up(wd.from_payment()) == tuple(wd.COINS)
    assert looked_up(wd.of_inscription(2)) == (wd.ITEM[0], next(iter(wd.COINS)))
    assert looked_up(wd.from_bidding(3)) == wd.from_bidding(3).coins
    signer.sign(wd.from_payment())
    assert looked_up(wd.from_payment()) == ()
    with pytest.raises(PeerRefused):
        looked_up(wd.from_payment(user=OTHER_USER))


# the log


def test_every_withdrawal_is_a_line_before_it_leaves(signer: wd.Desk) -> None:
    answers = [signer.sign(asked) for asked in (wd.from_payment(1), wd.of_inscription(2), wd.from_bidding(3))]
    signer.sign(wd.from_payment(1))
    tag_of(signer.sign, wd.from_payment(4, coins=tuple(wd.VAULT_COINS)))

    lines = [json.loads(line) for line in signer.audit_path.read_text().splitlines()]
    assert [line["operation"] for line in lines] == ["withdraw"] * 3
    assert [(line["txid"], line["sent"], line["fee"]) for line in lines] == [
        (each["txid"], each["sent_sats"], each["fee_sats"]) for each in answers
    ]
    assert lines[1]["inputs"] == [wd.ITEM[0], next(iter(wd.COINS))]
    text = signer.audit_path.read_text()
    assert verify_chain(signer.audit_path) == 3
    assert not any(each["transaction"][:120] in text for each in answers if each["transaction"]), "no signatures"


def test_nothing_leaves_when_the_line_cannot_be_written(signer: wd.Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> None:
        raise OSError("no space")

    monkeypatch.setattr(signer.audit, "append", full)
    with pytest.raises(OSError, match="no space"):
        signer.sign(wd.from_payment(1))
    assert signer.ledger.withdrawals.find(wd.intent(1)) is None


def test_log_and_ledger_agree_after_withdrawals(signer: wd.Desk) -> None:
    for asked in (wd.from_payment(1), wd.of_inscription(2), wd.from_bidding(3)):
        signer.sign(asked)
    require_agreement(signer.audit_path, signer.ledger_path, signer.now_ms)
    with signer.ledger.transaction():
        found = signer.ledger.withdrawals.find(wd.intent(1))
        assert found is not None
        signer.ledger.withdrawals.put(replace(found, intent=wd.intent(9)))
    with pytest.raises(Exception, match="audit log does not have"):
        require_agreement(signer.audit_path, signer.ledger_path, signer.now_ms)


# requests


BAD: list[dict[str, Any]] = [
    {"intent": "1" * 39},
    {"intent": "1" * 64},
    {"intent": None},
    {"source": "ordinals"},
    {"source": None},
    {"coins": []},
    {"coins": ["x"]},
    {"coins": "x"},
    {"coins": [next(iter(wd.COINS))] * 2},
    {"coins": [f"{n:064x}:0" for n in range(21)]},
    {"fee_coins": [next(iter(wd.VAULT_COINS))]},
    {"fee_coins": None},
    {"inscription_id": INSCRIPTION},
    {"inscription_id": "x"},
    {"amount_sats": 0},
    {"amount_sats": True},
    {"amount_sats": "5"},
    {"amount_sats": 21 * 10**14 + 1},
    {"fee_per_kvb": -1},
    {"fee_per_kvb": 1.5},
    {"venue": "simulator"},
    {"psbt": "cHNidP8="},
    {"user": 5},
    {"user": USER.upper()},
    {"to": USER},
]


@pytest.mark.parametrize("changes", BAD, ids=repr)
def test_a_request_that_is_not_as_agreed(signer: wd.Desk, changes: dict[str, Any]) -> None:
    assert tag_of(signer.ask, "sign_withdrawal", withdrawal={**asdict(wd.from_payment()), **changes}) == "bad-request"


@pytest.mark.parametrize(
    "asked",
    [
        wd.from_bidding(amount_sats=None),
        wd.from_bidding(venue=""),
        wd.from_bidding(psbt=""),
        wd.from_bidding(fee_per_kvb=1_000),
        wd.from_bidding(inscription_id=INSCRIPTION),
        wd.of_inscription(amount_sats=5),
        wd.of_inscription(fee_coins=()),
        wd.of_inscription(coins=(wd.ITEM[0], *wd.VAULT_COINS)),
        wd.of_inscription(source="payment"),
    ],
)
def test_a_request_with_fields_of_another_source(signer: wd.Desk, asked: WithdrawalToSign) -> None:
    assert tag_of(signer.sign, asked) == "bad-request"


def test_a_request_without_a_field_or_with_none(signer: wd.Desk) -> None:
    whole = asdict(wd.from_payment())
    for name in whole:
        with pytest.raises(PeerRefused):
            signer.ask("sign_withdrawal", withdrawal={key: value for key, value in whole.items() if key != name})
    for value in (None, [], "x"):
        with pytest.raises(PeerRefused):
            signer.ask("sign_withdrawal", withdrawal=value)
    assert convert(json.loads(json.dumps(whole)), WithdrawalToSign) == wd.from_payment()
