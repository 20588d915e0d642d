"""The signer's own withdrawals: to the sign-in address and nowhere else, from facts, once for each intent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.errors import PeerRefused
from tests.wallet.conftest import OTHER_USER, START_MS, USER
from tests.wallet.listings import INSCRIPTION, PAYMENT, TIP, script_by
from tests.wallet.proofs import OWNER, nested_address, p2tr_address, p2wpkh_address
from tests.wallet.withdrawal_attacks import ATTACKS
from tests.wallet.withdrawal_cases import (
    AMOUNT,
    COIN,
    COINS,
    FEE,
    ITEM,
    PAYMENT_SCRIPT,
    STRANGER_SCRIPT,
    VAULT_COINS,
    VAULT_SCRIPT,
    Desk,
    Leaf,
    coin,
    desk,
    facts_of,
    from_bidding,
    from_payment,
    intent,
    of_inscription,
    runs,
)
from wallet.address import parse
from wallet.ceilings import DAY_MS, Ceilings
from wallet.policy import Refused
from wallet.psbt.script import script_of
from wallet.psbt.transaction import Transaction, decode_network
from wallet.signer.audit import verify_chain
from wallet.signer.reconcile import require_agreement
from wallet.withdrawal import rules
from wallet.withdrawal.compose import vsize
from wallet.withdrawal.request import WithdrawalToSign, as_request, from_request

HOME = script_by("p2wpkh", OWNER)


@pytest.fixture
def signer(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path) as opened:
        yield opened


def made(answer: dict[str, Any]) -> Transaction:
    transaction = decode_network(bytes.fromhex(answer["transaction"]))
    assert transaction.txid()[::-1].hex() == answer["txid"]
    return transaction


def spent(signer: Desk, transaction: Transaction) -> list[tuple[int, bytes]]:
    known = [signer.facts[str(item.outpoint)] for item in transaction.inputs]
    return [(each.value_sats or 0, each.script or b"") for each in known]


def holds(signer: Desk, answer: dict[str, Any]) -> bool:
    """By btclib's consensus engine, every input; and not for another amount."""
    raw, prevouts = bytes.fromhex(answer["transaction"]), spent(signer, made(answer))
    wrong = [(value + 1, script) for value, script in prevouts]
    return runs(raw, prevouts) and not runs(raw, wrong)


def refusal(signer: Desk, asked: WithdrawalToSign) -> str:
    with pytest.raises(PeerRefused) as refused:
        signer.sign(asked)
    return refused.value.code


def test_all_coins_go_to_the_sign_in_address(signer: Desk) -> None:
    answer = signer.sign(from_payment())

    transaction = made(answer)
    assert [str(item.outpoint) for item in transaction.inputs] == list(COINS)
    assert [(output.value, output.script) for output in transaction.outputs] == [(answer["sent_sats"], HOME)]
    assert answer["sent_sats"] + answer["fee_sats"] == 2 * COIN + 25_000
    assert holds(signer, answer)


@pytest.mark.parametrize("fee_per_kvb", [1_000, 1_001, 12_500, 77_777])
def test_the_fee_is_what_was_asked_for_by_the_size_that_it_really_has(signer: Desk, fee_per_kvb: int) -> None:
    for number, asked in enumerate((from_payment, of_inscription)):
        answer = signer.sign(asked(number + 1, fee_per_kvb=fee_per_kvb))
        raw, bare = bytes.fromhex(answer["transaction"]), made(answer).encode()
        real = -(-(3 * len(bare) + len(raw)) // 4)
        # A signature is a byte shorter at times.
        assert 0 <= answer["fee_sats"] - -(-real * fee_per_kvb // 1000) <= -(-fee_per_kvb // 1000)


def test_a_part_leaves_the_rest_where_it_was(signer: Desk) -> None:
    answer = signer.sign(from_payment(amount_sats=70_000))

    outputs = made(answer).outputs
    assert [(output.value, output.script) for output in outputs] == [
        (70_000, HOME),
        (75_000 - answer["fee_sats"], PAYMENT_SCRIPT),
    ]
    assert holds(signer, answer)


def test_change_that_nobody_would_carry_is_fee(signer: Desk) -> None:
    coins = tuple(COINS)[:1]
    with_change = vsize(["p2wpkh"], [HOME, PAYMENT_SCRIPT]) * 10
    least = signer.sign(from_payment(1, coins=coins, amount_sats=COIN - with_change - 294))
    none = signer.sign(from_payment(2, coins=coins, amount_sats=COIN - with_change - 293))
    assert [len(made(each).outputs) for each in (least, none)] == [2, 1]
    assert (least["fee_sats"], none["fee_sats"]) == (with_change, with_change + 293)


def test_plain_sats_of_the_vault(signer: Desk) -> None:
    answer = signer.sign(from_payment(source="vault", coins=tuple(VAULT_COINS), amount_sats=50_000))

    assert [output.script for output in made(answer).outputs] == [HOME, VAULT_SCRIPT]
    assert holds(signer, answer)


def test_an_inscription_is_first_in_and_first_out_at_its_full_value(signer: Desk) -> None:
    answer = signer.sign(of_inscription())

    transaction = made(answer)
    assert [str(item.outpoint) for item in transaction.inputs] == [ITEM[0], next(iter(COINS))]
    assert (transaction.outputs[0].value, transaction.outputs[0].script) == (10_000, HOME)
    assert (transaction.outputs[1].value, transaction.outputs[1].script) == (COIN - answer["fee_sats"], PAYMENT_SCRIPT)
    assert answer["sent_sats"] == 10_000
    assert holds(signer, answer)


@pytest.mark.parametrize(("address", "least"), [(nested_address(OWNER), 540), (p2tr_address(OWNER), 330)])
def test_an_inscription_on_less_than_its_destination_must_have_is_topped_up(
    signer: Desk, address: str, least: int
) -> None:
    signer.keys.users = (USER, address)  # type: ignore[misc]
    signer.keys._user = address  # type: ignore[attr-defined]
    for number, value in enumerate((294, least - 1, least, least + 1)):
        outpoint, signer.facts[outpoint] = coin(720 + number, value, VAULT_SCRIPT, inscriptions=(INSCRIPTION,))
        answer = signer.sign(of_inscription(number, user=address, coins=(outpoint,)))
        moved, change = made(answer).outputs
        assert (moved.value, answer["sent_sats"]) == (max(value, least),) * 2
        assert change.value == COIN - answer["fee_sats"] - max(0, least - value)
        assert holds(signer, answer)


@pytest.mark.parametrize("address", [p2wpkh_address(OWNER), p2tr_address(OWNER), nested_address(OWNER)])
def test_every_kind_of_sign_in_address_is_paid(signer: Desk, address: str) -> None:
    signer.keys.users = (USER, OTHER_USER, address)  # type: ignore[misc]
    signer.keys._user = address  # type: ignore[attr-defined]
    answer = signer.sign(from_payment(user=address))
    assert [output.script for output in made(answer).outputs] == [script_of(parse(address))]
    assert holds(signer, answer)


def test_sats_come_out_of_the_bidding_wallet(signer: Desk) -> None:
    answer = signer.sign(from_bidding())
    assert (answer["transaction"], answer["sent_sats"], answer["fee_sats"]) == ("", AMOUNT, FEE)
    assert answer["psbt"]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_no_attack_is_signed_over_the_signers_own_door(signer: Desk, attack: Any) -> None:
    case = attack.make()
    if case.key is not PAYMENT:
        pytest.skip("of a key that no request can bring")
    signer.facts = dict(case.facts)
    asked = from_bidding(case=case)
    if case.coins:
        asked = replace(asked, coins=case.coins)
    assert refusal(signer, asked) in (attack.tag, "bad-request")
    assert signer.ledger.withdrawals.find(asked.intent) is None


# dest-allow


def test_nobody_whom_the_signer_does_not_know_is_paid(signer: Desk) -> None:
    for user in (OTHER_USER, p2tr_address(OWNER)):
        assert refusal(signer, from_payment(user=user)) == "dest-allow"
        assert refusal(signer, from_bidding(user=user)) == "dest-allow"
        assert refusal(signer, of_inscription(user=user)) == "dest-allow"
    assert signer.keys.users == (USER,), "and no keys were made for them"


@pytest.mark.parametrize(
    "user", ["", "bc1qnobody", USER.upper(), " " + USER, "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx", "1" * 30]
)
def test_what_is_no_sign_in_address_is_paid_nothing(signer: Desk, user: str) -> None:
    assert refusal(signer, from_payment(user=user)) == "bad-request"


def test_a_user_of_another_is_paid_from_their_own_coins_only(signer: Desk) -> None:
    signer.keys.users = (USER, OTHER_USER)  # type: ignore[misc]
    assert refusal(signer, from_payment(user=OTHER_USER)) == "inputs-own"
    assert refusal(signer, of_inscription(user=OTHER_USER)) == "inputs-own"
    assert refusal(signer, from_bidding(user=OTHER_USER)) == "inputs-own"


def test_a_wallet_that_is_the_payment_address_itself_has_nothing_to_withdraw() -> None:
    with pytest.raises(Refused, match="dest-allow"):
        rules.destination(USER, [USER], frozenset({HOME}))
    assert rules.destination(USER, [USER], frozenset({PAYMENT_SCRIPT})) == HOME


def test_no_field_of_a_request_names_a_destination() -> None:
    assert set(as_request(from_payment())) == {
        "intent",
        "user",
        "source",
        "coins",
        "fee_coins",
        "inscription_id",
        "amount_sats",
        "fee_per_kvb",
        "venue",
        "psbt",
    }


# inputs-*: at the limit, beyond it, and where something is not known


@pytest.mark.parametrize(
    ("changes", "tag"),
    [
        ({"is_unspent": False}, "inputs-confirmed"),
        ({"is_unspent": None}, "inputs-confirmed"),
        ({"is_confirmed": False}, "inputs-confirmed"),
        ({"is_confirmed": None}, "inputs-confirmed"),
        ({"value_sats": None}, "amount-proof"),
        ({"value_sats": 0}, "amount-proof"),
        ({"script": None}, "amount-proof"),
        ({"script": STRANGER_SCRIPT}, "inputs-own"),
        ({"script": VAULT_SCRIPT}, "inputs-own"),
        ({"inscriptions": (INSCRIPTION,)}, "inputs-cardinal"),
        ({"inscriptions": None}, "inputs-cardinal"),
        ({"runes": ("DOG•GO",)}, "inputs-cardinal"),
        ({"runes": None}, "inputs-cardinal"),
        ({"tip_height": None}, "inputs-cardinal"),
        ({"index_height": None}, "inputs-cardinal"),
        ({"index_height": TIP - 2}, "inputs-cardinal"),
    ],
)
def test_a_payment_coin_in_doubt_is_not_spent(signer: Desk, changes: dict[str, Any], tag: str) -> None:
    first = next(iter(COINS))
    signer.facts[first] = replace(signer.facts[first], **changes)
    assert refusal(signer, from_payment()) == tag
    assert refusal(signer, of_inscription()) == tag, "nor as the fee of an inscription"


def test_an_index_one_block_behind_will_do(signer: Desk) -> None:
    signer.facts = {each: replace(facts, index_height=TIP - 1) for each, facts in signer.facts.items()}
    assert signer.sign(from_payment())["txid"]


def test_what_nothing_is_known_of_is_not_spent(signer: Desk) -> None:
    for asked in (from_payment(), of_inscription(), from_bidding()):
        known, signer.facts = signer.facts, {}
        assert refusal(signer, asked) == "inputs-confirmed"
        signer.facts = known


@pytest.mark.parametrize(
    "inscriptions", [(), None, (INSCRIPTION, "b" * 64 + "i0"), ("b" * 64 + "i0",), (INSCRIPTION, INSCRIPTION)]
)
def test_an_inscription_goes_alone_or_not_at_all(signer: Desk, inscriptions: Any) -> None:
    signer.facts[ITEM[0]] = replace(ITEM[1], inscriptions=inscriptions)
    assert refusal(signer, of_inscription()) == "inputs-cardinal"


def test_an_inscription_with_a_rune_beside_it_stays(signer: Desk) -> None:
    signer.facts[ITEM[0]] = replace(ITEM[1], runes=("DOG•GO",))
    assert refusal(signer, of_inscription()) == "inputs-cardinal"


def test_what_is_at_the_payment_address_is_no_item_of_the_vault(signer: Desk) -> None:
    outpoint, facts = coin(700, 10_000, PAYMENT_SCRIPT, inscriptions=(INSCRIPTION,))
    signer.facts[outpoint] = facts
    assert refusal(signer, of_inscription(coins=(outpoint,))) == "inputs-own"


def test_the_vaults_coins_are_not_the_payment_addresss(signer: Desk) -> None:
    assert refusal(signer, from_payment(coins=tuple(VAULT_COINS))) == "inputs-own"
    assert refusal(signer, from_payment(source="vault")) == "inputs-own"
    assert refusal(signer, from_payment(source="vault", coins=(ITEM[0],))) == "inputs-cardinal"


# fee-*, dust, funds


def test_fee_rate(signer: Desk) -> None:
    for number, rate in enumerate((rules.LEAST_FEE_PER_KVB, 100_000)):
        assert signer.sign(from_payment(number, fee_per_kvb=rate, coins=tuple(COINS)[:1]))["txid"]
    rules.fee_rate(rules.MOST_FEE_PER_KVB)
    for rate in (0, rules.LEAST_FEE_PER_KVB - 1, rules.MOST_FEE_PER_KVB + 1):
        assert refusal(signer, from_payment(9, fee_per_kvb=rate)) == "fee-rate"
        assert refusal(signer, of_inscription(9, fee_per_kvb=rate)) == "fee-rate"


def test_fee_rate_of_somebody_elses_transaction() -> None:
    rules.fee_rate_of(300 * 200, 200)
    with pytest.raises(Refused, match="fee-rate"):
        rules.fee_rate_of(300 * 200 + 1, 200)


def test_fee_abs() -> None:
    rules.fee_abs(rules.MOST_FEE)
    rules.fee_abs(0)
    for fee in (rules.MOST_FEE + 1, -1):
        with pytest.raises(Refused, match="fee-abs"):
            rules.fee_abs(fee)


def test_fee_abs_of_many_coins(signer: Desk) -> None:
    many = dict(coin(1_000 + at, 10_000_000) for at in range(20))
    signer.facts |= many
    assert refusal(signer, from_payment(coins=tuple(many), fee_per_kvb=300_000)) == "fee-abs"


def test_fee_share(signer: Desk) -> None:
    rules.fee_share(rules.FEE_SHARE_FLOOR, 0)
    rules.fee_share(50_000, 500_000)
    for fee, sent in ((rules.FEE_SHARE_FLOOR + 1, 0), (50_001, 500_009)):
        with pytest.raises(Refused, match="fee-share"):
            rules.fee_share(fee, sent)
    outpoint, facts = coin(900, 70_000)
    signer.facts[outpoint] = facts
    assert refusal(signer, from_payment(coins=(outpoint,), fee_per_kvb=300_000)) == "fee-share"


def test_dust_and_funds(signer: Desk) -> None:
    one = vsize(["p2wpkh"], [HOME])
    for number, (value, tag) in enumerate(((one + 294, ""), (one + 293, "dust"), (one, "funds"), (one - 1, "funds"))):
        outpoint, facts = coin(800 + number, value)
        signer.facts[outpoint] = facts
        asked = from_payment(number, coins=(outpoint,), fee_per_kvb=1_000)
        assert refusal(signer, asked) == tag if tag else signer.sign(asked)["sent_sats"] == 294
    assert refusal(signer, from_payment(20, amount_sats=10**9)) == "funds"
    assert refusal(signer, from_payment(21, amount_sats=293)) == "dust"
    poor, facts = coin(850, 200)
    signer.facts[poor] = facts
    assert refusal(signer, of_inscription(22, fee_coins=(poor,))) == "funds"


def test_the_dust_limits_are_those_of_nodes() -> None:
    """Bitcoin Core: three times the least fee of output and spending input, 98 and 67 (witness) or 148 vbytes."""
    for script, spending in ((HOME, 67), (VAULT_SCRIPT, 67), (script_by("p2sh-p2wpkh", OWNER), 148)):
        assert rules.dust_limit(script) == 3 * (8 + 1 + len(script) + spending)


# velocity


def test_velocity_sats(tmp_path: Path) -> None:
    value = 2 * COIN + 25_000
    with desk(tmp_path, Ceilings(withdrawn_a_day=value)) as signer:
        first = signer.sign(from_payment(1, coins=tuple(COINS)[:2]))
        fee = vsize(["p2tr"] * 2, [HOME, VAULT_SCRIPT]) * 10
        left = value - first["sent_sats"] - first["fee_sats"] - fee
        assert (
            refusal(signer, from_payment(2, coins=tuple(VAULT_COINS), source="vault", amount_sats=left + 1))
            == "velocity"
        ), "fees count as well"
        assert signer.sign(from_payment(3, coins=tuple(VAULT_COINS), source="vault", amount_sats=left))["txid"]
        assert signer.sign(from_bidding(4))["txid"], "what stays with the user here is counted by itself"
        assert refusal(signer, of_inscription(5)) == "velocity"
        signer.now_ms -= 10 * DAY_MS
        assert refusal(signer, of_inscription(5)) == "velocity", "a clock that is set back refills nothing"
        signer.now_ms = START_MS + DAY_MS - 1
        assert refusal(signer, of_inscription(5)) == "velocity"
        signer.now_ms = START_MS + DAY_MS
        assert signer.sign(of_inscription(5))["txid"]


def test_velocity_of_the_bidding_wallet(tmp_path: Path) -> None:
    with desk(tmp_path, Ceilings(withdrawn_a_day=AMOUNT + FEE)) as signer:
        assert signer.sign(from_bidding(1))["sent_sats"] == AMOUNT
        assert refusal(signer, from_bidding(2)) == "velocity"
    (tmp_path / "less").mkdir()
    with desk(tmp_path / "less", Ceilings(withdrawn_a_day=AMOUNT + FEE - 1)) as signer:
        assert refusal(signer, from_bidding(1)) == "velocity"


def test_velocity_count_and_what_is_not_known() -> None:
    rules.velocity(Ceilings(), rules.MOST_A_DAY - 1, 10**15, 10**15)
    for count, sats in ((rules.MOST_A_DAY, 0), (None, 0), (0, None)):
        with pytest.raises(Refused, match="velocity"):
            rules.velocity(Ceilings(withdrawn_a_day=5), count, sats, 1)


# control, market, intents


@pytest.mark.parametrize("state", ["reduce", "halt"])
@pytest.mark.parametrize(("scope", "subject"), [("global", ""), ("user", USER)])
def test_no_control_state_keeps_money_in(signer: Desk, scope: str, subject: str, state: str) -> None:
    signer.ask("control", scope=scope, subject=subject, state=state)
    assert signer.sign(from_payment(1))["txid"]
    assert signer.sign(from_bidding(2))["txid"]


def test_the_halt_file_stops_everything(signer: Desk) -> None:
    signed = signer.sign(from_payment(1))
    signer.has_halt_file = True
    for asked in (from_payment(1), from_payment(2), of_inscription(3), from_bidding(4)):
        assert refusal(signer, asked) == "control-state"
    signer.has_halt_file = False
    assert signer.sign(from_payment(1)) == signed


def test_play_keys_empty_no_real_bidding_wallet_and_the_other_way_round(signer: Desk) -> None:
    assert refusal(signer, from_bidding(venue="satflow")) == "market"
    assert signer.sign(from_bidding(1))["psbt"]
    signer.keys.is_play = False  # type: ignore[misc]
    assert refusal(signer, from_bidding(2)) == "market"
    assert signer.sign(from_bidding(3, venue="satflow"))["psbt"]


def test_sats_come_out_of_a_taproot_leaf_too(signer: Desk) -> None:
    case = Leaf().honest()
    signer.facts |= case.facts
    answer = signer.sign(from_bidding(case=case))
    assert (answer["sent_sats"], answer["fee_sats"]) == (AMOUNT, FEE)


def test_the_same_intent_gets_the_same_answer_also_when_the_coins_are_spent(signer: Desk) -> None:
    for asked in (from_payment(1), of_inscription(2), from_bidding(3)):
        first, known = signer.sign(asked), signer.facts
        signer.facts = {}
        assert signer.sign(asked) == first
        signer.facts = known


@pytest.mark.parametrize(
    "changes",
    [
        {"amount_sats": 50_000},
        {"fee_per_kvb": 10_001},
        {"coins": tuple(COINS)[:2]},
        {"source": "vault"},
    ],
)
def test_an_intent_with_other_fields_is_refused(signer: Desk, changes: dict[str, Any]) -> None:
    signer.sign(from_payment(1))
    assert refusal(signer, from_payment(1, **changes)) == "intent-conflict"


def test_was_signed(signer: Desk) -> None:
    assert signer.ask("was_signed", intent=intent(1)) == {"signed": False}
    signer.sign(from_payment(1))
    assert signer.ask("was_signed", intent=intent(1)) == {"signed": True}


def test_what_is_looked_up_and_when_nothing_is(signer: Desk) -> None:
    def looked_up(asked: WithdrawalToSign) -> tuple[str, ...]:
        return signer.signer.outpoints_to_look_up({"op": "sign_withdrawal", "withdrawal": as_request(asked)})

    assert looked_up(from_payment()) == tuple(COINS)
    assert looked_up(of_inscription(2)) == (ITEM[0], next(iter(COINS)))
    assert looked_up(from_bidding(3)) == from_bidding(3).coins
    signer.sign(from_payment())
    assert looked_up(from_payment()) == ()
    with pytest.raises(PeerRefused):
        looked_up(from_payment(user=OTHER_USER))


# the log


def test_every_withdrawal_is_a_line_before_it_leaves(signer: Desk) -> None:
    answers = [signer.sign(asked) for asked in (from_payment(1), of_inscription(2), from_bidding(3))]
    signer.sign(from_payment(1))
    refusal(signer, from_payment(4, coins=tuple(VAULT_COINS)))

    lines = [json.loads(line) for line in signer.audit_path.read_text().splitlines()]
    assert [line["operation"] for line in lines] == ["withdraw"] * 3
    assert [(line["txid"], line["sent"], line["fee"]) for line in lines] == [
        (each["txid"], each["sent_sats"], each["fee_sats"]) for each in answers
    ]
    assert lines[1]["inputs"] == [ITEM[0], next(iter(COINS))]
    text = signer.audit_path.read_text()
    assert verify_chain(signer.audit_path) == 3
    assert not any(each["transaction"][:120] in text for each in answers if each["transaction"]), "no signatures"


def test_nothing_leaves_when_the_line_cannot_be_written(signer: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> None:
        raise OSError("no space")

    monkeypatch.setattr(signer.audit, "append", full)
    with pytest.raises(OSError, match="no space"):
        signer.sign(from_payment(1))
    assert signer.ledger.withdrawals.find(intent(1)) is None


def test_log_and_ledger_agree_after_withdrawals(signer: Desk) -> None:
    for asked in (from_payment(1), of_inscription(2), from_bidding(3)):
        signer.sign(asked)
    require_agreement(signer.audit_path, signer.ledger_path, signer.now_ms)
    with signer.ledger.transaction():
        found = signer.ledger.withdrawals.find(intent(1))
        assert found is not None
        signer.ledger.withdrawals.put(replace(found, intent=intent(9)))
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
    {"coins": [next(iter(COINS))] * 2},
    {"coins": [f"{n:064x}:0" for n in range(21)]},
    {"fee_coins": [next(iter(VAULT_COINS))]},
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
    {"to": USER},
]


@pytest.mark.parametrize("changes", BAD, ids=repr)
def test_a_request_that_is_not_as_agreed(signer: Desk, changes: dict[str, Any]) -> None:
    with pytest.raises(PeerRefused) as refused:
        signer.ask("sign_withdrawal", withdrawal={**as_request(from_payment()), **changes})
    assert refused.value.code == "bad-request"


@pytest.mark.parametrize(
    "asked",
    [
        from_bidding(amount_sats=None),
        from_bidding(venue=""),
        from_bidding(psbt=""),
        from_bidding(fee_per_kvb=1_000),
        from_bidding(inscription_id=INSCRIPTION),
        of_inscription(amount_sats=5),
        of_inscription(fee_coins=()),
        of_inscription(coins=(ITEM[0], *VAULT_COINS)),
        of_inscription(source="payment"),
    ],
)
def test_a_request_with_fields_of_another_source(signer: Desk, asked: WithdrawalToSign) -> None:
    assert refusal(signer, asked) == "bad-request"


def test_a_request_without_a_field_or_with_none(signer: Desk) -> None:
    whole = dict(as_request(from_payment()))
    for name in whole:
        with pytest.raises(PeerRefused):
            signer.ask("sign_withdrawal", withdrawal={key: value for key, value in whole.items() if key != name})
    for value in (None, [], "x"):
        with pytest.raises(PeerRefused):
            signer.ask("sign_withdrawal", withdrawal=value)
    assert from_request(json.loads(json.dumps(whole))) == from_payment()


# planted: each rule's own test must fail when the rule lets one too many through, or everything


def nothing(*arguments: Any, **named: Any) -> Any:
    """A rule that refuses nothing."""
    return arguments[1] if len(arguments) > 1 else None


RIGHT = {name: getattr(rules, name) for name in dir(rules)}
PLANTED: dict[str, tuple[str, Callable[..., Any], Callable[[], None]]] = {
    "fee a sat too high": ("fee_abs", lambda fee: RIGHT["fee_abs"](fee - 1 if fee > 0 else fee), test_fee_abs),
    "any fee": ("fee_abs", nothing, test_fee_abs),
    "rate a sat too high": (
        "fee_rate_of",
        lambda fee, size: RIGHT["fee_rate_of"](fee - 1, size),
        test_fee_rate_of_somebody_elses_transaction,
    ),
    "any count": ("velocity", nothing, test_velocity_count_and_what_is_not_known),
    "one withdrawal too many": (
        "velocity",
        lambda ceilings, count, sats, more: RIGHT["velocity"](ceilings, count and count - 1, sats, more),
        test_velocity_count_and_what_is_not_known,
    ),
    "any destination": (
        "destination",
        lambda *arguments: HOME,
        test_a_wallet_that_is_the_payment_address_itself_has_nothing_to_withdraw,
    ),
    "dust by a sat": (
        "dust_limit",
        lambda script: RIGHT["dust_limit"](script) - 1,
        test_the_dust_limits_are_those_of_nodes,
    ),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_fault_is_noticed(monkeypatch: pytest.MonkeyPatch, planted: str) -> None:
    name, fault, test = PLANTED[planted]
    test()
    monkeypatch.setattr(rules, name, fault)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test()


ON_DESK: dict[str, tuple[str, Callable[..., Any], Callable[[Desk], None]]] = {
    "anything on a coin": ("inputs_cardinal", lambda *arguments: TIP, test_an_inscription_with_a_rune_beside_it_stays),
    "any coin": (
        "amount_proof",
        lambda facts, script: RIGHT["amount_proof"](replace(facts, script=script), script),
        test_the_vaults_coins_are_not_the_payment_addresss,
    ),
    "any user": ("destination", lambda *arguments: HOME, test_nobody_whom_the_signer_does_not_know_is_paid),
    "no halt file": ("halt_file", nothing, test_the_halt_file_stops_everything),
    "any venue": ("venue_allowed", nothing, test_play_keys_empty_no_real_bidding_wallet_and_the_other_way_round),
    "any rate": ("fee_rate", nothing, test_fee_rate),
    "any share": ("fee_share", nothing, test_fee_share),
    "facts in doubt": (
        "inputs_confirmed",
        lambda outpoint, facts: facts or facts_of(outpoint, COIN, PAYMENT_SCRIPT),
        test_what_nothing_is_known_of_is_not_spent,
    ),
}


@pytest.mark.parametrize("planted", ON_DESK)
def test_a_fault_planted_in_the_signer_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    name, fault, test = ON_DESK[planted]
    monkeypatch.setattr(rules, name, fault)
    if name == "fee_share":
        monkeypatch.setattr("wallet.withdrawal.compose.fee_share", fault)
    with desk(tmp_path) as signer, pytest.raises((AssertionError, pytest.fail.Exception)):
        test(signer)
