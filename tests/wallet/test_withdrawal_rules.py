"""The rules of withdrawals: where to, from which coins, at what fee, how much; and that faults in them are noticed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.shapes import asdict, replace
from tests.wallet import withdrawal_cases as wd
from tests.wallet.listings import INSCRIPTION, TIP, script_by
from tests.wallet.proofs import OWNER, p2tr_address
from tests.worlds.signer import OTHER_USER, START_MS, USER, tag_of
from wallet import withdrawal
from wallet.protocol import LEAST_FEE_PER_KVB, MOST_FEE_PER_KVB, PolicyRefused
from wallet.psbt.transaction import Outpoint, TxOutput
from wallet.terms import DAY_MS, Ceilings
from wallet.withdrawal import Coin, send_inscription, vsize

HOME = script_by("p2wpkh", OWNER)


@pytest.fixture
def signer(tmp_path: Path) -> Iterator[wd.Desk]:
    with wd.desk(tmp_path) as opened:
        yield opened


# dest-allow


def test_nobody_whom_the_signer_does_not_know_is_paid(signer: wd.Desk) -> None:
    for user in (OTHER_USER, p2tr_address(OWNER)):
        assert tag_of(signer.sign, wd.from_payment(user=user)) == "dest-allow"
        assert tag_of(signer.sign, wd.from_bidding(user=user)) == "dest-allow"
        assert tag_of(signer.sign, wd.of_inscription(user=user)) == "dest-allow"
    assert signer.keys.users == (USER,), "and no keys were made for them"


@pytest.mark.parametrize(
    "user", ["", "bc1qnobody", USER.upper(), " " + USER, "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx", "1" * 30]
)
def test_what_is_no_sign_in_address_is_paid_nothing(signer: wd.Desk, user: str) -> None:
    assert tag_of(signer.sign, wd.from_payment(user=user)) == "bad-request"


@pytest.mark.parametrize("name", ["no address", "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"])
def test_a_user_whose_name_is_no_address_to_send_to_is_paid_nothing(name: str) -> None:
    with pytest.raises(PolicyRefused) as refused:
        withdrawal.destination(name, [name], frozenset())
    assert refused.value.tag == "dest-allow"


def test_a_draft_that_is_no_base64_is_not_signed(signer: wd.Desk) -> None:
    assert tag_of(signer.sign, wd.from_bidding(psbt="*")) == "psbt-strict"


def test_a_user_of_another_is_paid_from_their_own_coins_only(signer: wd.Desk) -> None:
    signer.keys.users = (USER, OTHER_USER)  # type: ignore[misc]
    assert tag_of(signer.sign, wd.from_payment(user=OTHER_USER)) == "inputs-own"
    assert tag_of(signer.sign, wd.of_inscription(user=OTHER_USER)) == "inputs-own"
    assert tag_of(signer.sign, wd.from_bidding(user=OTHER_USER)) == "inputs-own"


def test_a_wallet_that_is_the_payment_address_itself_has_nothing_to_withdraw() -> None:
    with pytest.raises(PolicyRefused, match="dest-allow"):
        withdrawal.destination(USER, [USER], frozenset({HOME}))
    assert withdrawal.destination(USER, [USER], frozenset({wd.PAYMENT_SCRIPT})) == HOME


def test_no_field_of_a_request_names_a_destination() -> None:
    assert set(asdict(wd.from_payment())) == {
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
        ({"script": wd.STRANGER_SCRIPT}, "inputs-own"),
        ({"script": wd.VAULT_SCRIPT}, "inputs-own"),
        ({"inscriptions": (INSCRIPTION,)}, "inputs-cardinal"),
        ({"inscriptions": None}, "inputs-cardinal"),
        ({"runes": ("DOG•GO",)}, "inputs-cardinal"),
        ({"runes": None}, "inputs-cardinal"),
        ({"tip_height": None}, "inputs-cardinal"),
        ({"index_height": None}, "inputs-cardinal"),
        ({"index_height": TIP - 2}, "inputs-cardinal"),
    ],
)
def test_a_payment_coin_in_doubt_is_not_spent(signer: wd.Desk, changes: dict[str, Any], tag: str) -> None:
    first = next(iter(wd.COINS))
    signer.facts[first] = replace(signer.facts[first], **changes)
    assert tag_of(signer.sign, wd.from_payment()) == tag
    assert tag_of(signer.sign, wd.of_inscription()) == tag, "nor as the fee of an inscription"


def test_an_index_one_block_behind_will_do(signer: wd.Desk) -> None:
    signer.facts = {each: replace(facts, index_height=TIP - 1) for each, facts in signer.facts.items()}
    assert signer.sign(wd.from_payment())["txid"]


def test_what_nothing_is_known_of_is_not_spent(signer: wd.Desk) -> None:
    for asked in (wd.from_payment(), wd.of_inscription(), wd.from_bidding()):
        known, signer.facts = signer.facts, {}
        assert tag_of(signer.sign, asked) == "inputs-confirmed"
        signer.facts = known


@pytest.mark.parametrize(
    "inscriptions", [(), None, (INSCRIPTION, "b" * 64 + "i0"), ("b" * 64 + "i0",), (INSCRIPTION, INSCRIPTION)]
)
def test_an_inscription_goes_alone_or_not_at_all(signer: wd.Desk, inscriptions: Any) -> None:
    signer.facts[wd.ITEM[0]] = replace(wd.ITEM[1], inscriptions=inscriptions)
    assert tag_of(signer.sign, wd.of_inscription()) == "inputs-cardinal"


def test_an_inscription_with_a_rune_beside_it_stays(signer: wd.Desk) -> None:
    signer.facts[wd.ITEM[0]] = replace(wd.ITEM[1], runes=("DOG•GO",))
    assert tag_of(signer.sign, wd.of_inscription()) == "inputs-cardinal"


def test_what_is_at_the_payment_address_is_no_item_of_the_vault(signer: wd.Desk) -> None:
    outpoint, facts = wd.coin(700, 10_000, wd.PAYMENT_SCRIPT, inscriptions=(INSCRIPTION,))
    signer.facts[outpoint] = facts
    assert tag_of(signer.sign, wd.of_inscription(coins=(outpoint,))) == "inputs-own"


def test_the_vaults_coins_are_not_the_payment_addresss(signer: wd.Desk) -> None:
    assert tag_of(signer.sign, wd.from_payment(coins=tuple(wd.VAULT_COINS))) == "inputs-own"
    assert tag_of(signer.sign, wd.from_payment(source="vault")) == "inputs-own"
    assert tag_of(signer.sign, wd.from_payment(source="vault", coins=(wd.ITEM[0],))) == "inputs-cardinal"


# fee-*, dust, funds


def test_fee_rate(signer: wd.Desk) -> None:
    for number, rate in enumerate((LEAST_FEE_PER_KVB, 100_000)):
        assert signer.sign(wd.from_payment(number, fee_per_kvb=rate, coins=tuple(wd.COINS)[:1]))["txid"]
    withdrawal.fee_rate(MOST_FEE_PER_KVB)
    for rate in (0, LEAST_FEE_PER_KVB - 1, MOST_FEE_PER_KVB + 1):
        assert tag_of(signer.sign, wd.from_payment(9, fee_per_kvb=rate)) == "fee-rate"
        assert tag_of(signer.sign, wd.of_inscription(9, fee_per_kvb=rate)) == "fee-rate"


def test_fee_rate_of_somebody_elses_transaction() -> None:
    withdrawal.fee_rate_of(300 * 200, 200)
    with pytest.raises(PolicyRefused, match="fee-rate"):
        withdrawal.fee_rate_of(300 * 200 + 1, 200)


def test_fee_abs() -> None:
    withdrawal.fee_abs(withdrawal.MOST_FEE)
    withdrawal.fee_abs(0)
    for fee in (withdrawal.MOST_FEE + 1, -1):
        with pytest.raises(PolicyRefused, match="fee-abs"):
            withdrawal.fee_abs(fee)


def test_fee_abs_of_many_coins(signer: wd.Desk) -> None:
    many = dict(wd.coin(1_000 + at, 10_000_000) for at in range(20))
    signer.facts |= many
    assert tag_of(signer.sign, wd.from_payment(coins=tuple(many), fee_per_kvb=300_000)) == "fee-abs"


def test_fee_share(signer: wd.Desk) -> None:
    withdrawal.fee_share(withdrawal.FEE_SHARE_FLOOR, 0)
    withdrawal.fee_share(50_000, 500_000)
    for fee, sent in ((withdrawal.FEE_SHARE_FLOOR + 1, 0), (50_001, 500_009)):
        with pytest.raises(PolicyRefused, match="fee-share"):
            withdrawal.fee_share(fee, sent)
    outpoint, facts = wd.coin(900, 70_000)
    signer.facts[outpoint] = facts
    assert tag_of(signer.sign, wd.from_payment(coins=(outpoint,), fee_per_kvb=300_000)) == "fee-share"


def test_dust_and_funds(signer: wd.Desk) -> None:
    one = vsize(["p2wpkh"], [HOME])
    for number, (value, tag) in enumerate(((one + 294, ""), (one + 293, "dust"), (one, "funds"), (one - 1, "funds"))):
        outpoint, facts = wd.coin(800 + number, value)
        signer.facts[outpoint] = facts
        asked = wd.from_payment(number, coins=(outpoint,), fee_per_kvb=1_000)
        assert tag_of(signer.sign, asked) == tag if tag else signer.sign(asked)["sent_sats"] == 294
    assert tag_of(signer.sign, wd.from_payment(20, amount_sats=10**9)) == "funds"
    assert tag_of(signer.sign, wd.from_payment(21, amount_sats=293)) == "dust"
    poor, facts = wd.coin(850, 200)
    signer.facts[poor] = facts
    assert tag_of(signer.sign, wd.of_inscription(22, fee_coins=(poor,))) == "funds"


def test_the_dust_limits_are_those_of_nodes() -> None:
    """Bitcoin Core: three times the least fee of output and spending input, 98 and 67 (witness) or 148 vbytes."""
    for script, spending in ((HOME, 67), (wd.VAULT_SCRIPT, 67), (script_by("p2sh-p2wpkh", OWNER), 148)):
        assert withdrawal.dust_limit(script) == 3 * (8 + 1 + len(script) + spending)


# velocity


def test_velocity_sats(tmp_path: Path) -> None:
    value = 2 * wd.COIN + 25_000
    with wd.desk(tmp_path, Ceilings(withdrawn_a_day=value)) as signer:
        first = signer.sign(wd.from_payment(1, coins=tuple(wd.COINS)[:2]))
        fee = vsize(["p2tr"] * 2, [HOME, wd.VAULT_SCRIPT]) * 10
        left = value - first["sent_sats"] - first["fee_sats"] - fee
        assert (
            tag_of(signer.sign, wd.from_payment(2, coins=tuple(wd.VAULT_COINS), source="vault", amount_sats=left + 1))
            == "velocity"
        ), "fees count as well"
        assert signer.sign(wd.from_payment(3, coins=tuple(wd.VAULT_COINS), source="vault", amount_sats=left))["txid"]
        assert signer.sign(wd.from_bidding(4))["txid"], "what stays with the user here is counted by itself"
        assert tag_of(signer.sign, wd.of_inscription(5)) == "velocity"
        signer.now_ms -= 10 * DAY_MS
        assert tag_of(signer.sign, wd.of_inscription(5)) == "velocity", "a clock that is set back refills nothing"
        signer.now_ms = START_MS + DAY_MS - 1
        assert tag_of(signer.sign, wd.of_inscription(5)) == "velocity"
        signer.now_ms = START_MS + DAY_MS
        assert signer.sign(wd.of_inscription(5))["txid"]


def test_velocity_of_the_bidding_wallet(tmp_path: Path) -> None:
    with wd.desk(tmp_path, Ceilings(withdrawn_a_day=wd.AMOUNT + wd.FEE)) as signer:
        assert signer.sign(wd.from_bidding(1))["sent_sats"] == wd.AMOUNT
        assert tag_of(signer.sign, wd.from_bidding(2)) == "velocity"
    (tmp_path / "less").mkdir()
    with wd.desk(tmp_path / "less", Ceilings(withdrawn_a_day=wd.AMOUNT + wd.FEE - 1)) as signer:
        assert tag_of(signer.sign, wd.from_bidding(1)) == "velocity"


def test_velocity_count_and_what_is_not_known() -> None:
    withdrawal.velocity(Ceilings(), withdrawal.MOST_A_DAY - 1, 10**15, 10**15)
    for count, sats in ((withdrawal.MOST_A_DAY, 0), (None, 0), (0, None)):
        with pytest.raises(PolicyRefused, match="velocity"):
            withdrawal.velocity(Ceilings(withdrawn_a_day=5), count, sats, 1)


# control, market, intents


@pytest.mark.parametrize("state", ["reduce", "halt"])
@pytest.mark.parametrize(("scope", "subject"), [("global", ""), ("user", USER)])
def test_no_control_state_keeps_money_in(signer: wd.Desk, scope: str, subject: str, state: str) -> None:
    signer.ask("control", scope=scope, subject=subject, state=state)
    assert signer.sign(wd.from_payment(1))["txid"]
    assert signer.sign(wd.from_bidding(2))["txid"]


def test_the_halt_file_stops_everything(signer: wd.Desk) -> None:
    signed = signer.sign(wd.from_payment(1))
    signer.has_halt_file = True
    for asked in (wd.from_payment(1), wd.from_payment(2), wd.of_inscription(3), wd.from_bidding(4)):
        assert tag_of(signer.sign, asked) == "control-state"
    signer.has_halt_file = False
    assert signer.sign(wd.from_payment(1)) == signed


def test_a_short_disk_stops_everything(signer: wd.Desk) -> None:
    signer.is_short = lambda: True
    for asked in (wd.from_payment(2), wd.of_inscription(3), wd.from_bidding(4)):
        assert tag_of(signer.sign, asked) == "disk-full"
    signer.is_short = lambda: False
    assert signer.sign(wd.from_payment(2))


def test_play_keys_empty_no_real_bidding_wallet_and_the_other_way_round(signer: wd.Desk) -> None:
    assert tag_of(signer.sign, wd.from_bidding(venue="satflow")) == "market"
    assert signer.sign(wd.from_bidding(1))["psbt"]
    signer.keys.is_play = False  # type: ignore[misc]
    assert tag_of(signer.sign, wd.from_bidding()) == "market"
    assert signer.sign(wd.from_bidding(3, venue="satflow"))["psbt"]


# planted: each rule's own test must fail when the rule lets one too many through, or everything


def nothing(*arguments: Any, **named: Any) -> Any:
    """A rule that refuses nothing."""
    return arguments[1] if len(arguments) > 1 else None


RIGHT = {name: getattr(withdrawal, name) for name in dir(withdrawal)}
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
    monkeypatch.setattr(withdrawal, name, fault)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test()


ON_DESK: dict[str, tuple[str, Callable[..., Any], Callable[[wd.Desk], None]]] = {
    "anything on a coin": ("inputs_cardinal", lambda *arguments: TIP, test_an_inscription_with_a_rune_beside_it_stays),
    "any coin": (
        "amount_proof",
        lambda facts, script: RIGHT["amount_proof"](replace(facts, script=script), script),
        test_the_vaults_coins_are_not_the_payment_addresss,
    ),
    "any user": ("destination", lambda *arguments: HOME, test_nobody_whom_the_signer_does_not_know_is_paid),
    "no halt file": ("halt_file", nothing, test_the_halt_file_stops_everything),
    "any rate": ("fee_rate", nothing, test_fee_rate),
    "any share": ("fee_share", nothing, test_fee_share),
    "facts in doubt": (
        "inputs_confirmed",
        lambda outpoint, facts: facts or wd.facts_of(outpoint, wd.COIN, wd.PAYMENT_SCRIPT),
        test_what_nothing_is_known_of_is_not_spent,
    ),
}


@pytest.mark.parametrize("planted", ON_DESK)
def test_a_fault_planted_in_the_signer_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    name, fault, test = ON_DESK[planted]
    monkeypatch.setattr(withdrawal, name, fault)
    with wd.desk(tmp_path) as signer, pytest.raises((AssertionError, pytest.fail.Exception)):
        test(signer)


def test_change_below_the_dust_limit_of_an_inscriptions_fee_coin_goes_to_the_fee() -> None:
    item = Coin(Outpoint(b"\x01" * 32, 0), TxOutput(546, wd.VAULT_SCRIPT), "p2tr")
    paying = Coin(Outpoint(b"\x02" * 32, 0), TxOutput(2_000, wd.PAYMENT_SCRIPT), "p2wpkh")

    made = send_inscription(item, [paying], HOME, 10_000)

    assert [(output.value, output.script) for output in made.transaction.outputs] == [(546, HOME)]
    assert (made.sent_sats, made.fee_sats) == (546, 2_000)
