"""Inscriptions out of the escrow that their listing went through: by our key alone, to the vault or to their owner."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.settings import Settings
from tests.shapes import replace
from tests.wallet.escrows import FORMS, THEIRS, tree_of
from tests.wallet.listings import INSCRIPTION, TIP, script_by
from tests.wallet.proofs import OWNER
from tests.wallet.test_sign_withdrawals import holds, made
from tests.wallet.withdrawal_cases import COINS, PAYMENT_SCRIPT, VAULT_SCRIPT, Desk, coin, desk, of_inscription
from tests.worlds.signer import OTHER_USER, USER, tag_of
from wallet import withdrawal
from wallet.protocol import PolicyRefused
from wallet.psbt.script import RECOVERY_BLOCKS
from wallet.signer.audit import verify_chain
from wallet.terms import ESCROW_TERMS, Ceilings, EscrowForm, EscrowTerms, escrow_terms_of

HOME, PRACTICE = script_by("p2wpkh", OWNER), "simulator-ordnet"
TERMS = {f"simulator-{form}": EscrowTerms(form, THEIRS, 330) for form in FORMS}
# Both have been there for so long that the next block may take them out.
HELD = {
    form: coin(700 + at, 10_000, tree_of(form).script, inscriptions=(INSCRIPTION,), height=TIP - RECOVERY_BLOCKS + 1)
    for at, form in enumerate(FORMS)
}


@pytest.fixture
def signer(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path, Ceilings(escrow_terms=TERMS)) as opened:
        opened.facts |= dict(HELD.values())
        yield opened


def out_of(form: EscrowForm, source: str, number: int = 1, **changes: Any) -> Any:
    return of_inscription(number, coins=(HELD[form][0],), source=source, **changes)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("source", "home"), [("escrow", VAULT_SCRIPT), ("vault", HOME)])
def test_it_comes_home_whole_by_our_key_alone(signer: Desk, form: EscrowForm, source: str, home: bytes) -> None:
    answer = signer.sign(out_of(form, source))
    first, change = made(answer).outputs
    assert (first.value, first.script, change.script) == (10_000, home, PAYMENT_SCRIPT)
    sequence = made(answer).inputs[0].sequence
    assert sequence == (0xFFFFFFFD if form == "ordnet" else RECOVERY_BLOCKS)
    assert holds(signer, answer)
    assert verify_chain(signer.audit_path) == 1


@pytest.mark.parametrize("form", FORMS)
def test_its_fee_is_what_was_asked_for_by_its_real_size(signer: Desk, form: EscrowForm) -> None:
    answer = signer.sign(out_of(form, "escrow"))
    raw, bare = bytes.fromhex(answer["transaction"]), made(answer).encode()
    real = -(-(3 * len(bare) + len(raw)) // 4)
    assert 0 <= answer["fee_sats"] - real * 10 <= 10


def test_back_to_the_vault_goes_only_what_is_in_an_escrow(signer: Desk) -> None:
    assert tag_of(signer.sign, of_inscription(source="escrow")) == "inputs-own"
    strange = tree_of("ordnet", b"\x02" * 32)
    signer.facts |= dict([coin(800, 10_000, strange.script, inscriptions=(INSCRIPTION,))])
    outpoint = next(each for each in signer.facts if signer.facts[each].script == strange.script)
    assert tag_of(signer.sign, of_inscription(source="escrow", coins=(outpoint,))) == "inputs-own"


def test_an_item_under_the_published_key_comes_home_though_another_key_is_set_since(tmp_path: Path) -> None:
    """Under a key that was set before another, it comes home once that one is set again."""
    published = ESCROW_TERMS["ordnet"].cosigner
    held = coin(900, 10_000, tree_of("ordnet", theirs=published).script, inscriptions=(INSCRIPTION,))
    terms = escrow_terms_of(Settings(ordnet_listing_key="11" * 32))
    with desk(tmp_path, Ceilings(escrow_terms=terms)) as opened:
        opened.facts |= dict([held, *HELD.values()])
        assert opened.sign(of_inscription(source="escrow", coins=(held[0],)))
        assert tag_of(opened.sign, out_of("ordnet", "escrow", 2)) == "inputs-own"
        escrows = opened.ask("addresses", user=USER)["escrows"]
        known = ["ordinalswallet", "ordnet", "ordnet", "simulator-ordinalswallet", PRACTICE]
        assert sorted(escrows.values()) == known


@pytest.mark.parametrize(
    ("changes", "tag"),
    [
        ({"is_unspent": False}, "inputs-confirmed"),
        ({"is_confirmed": False}, "inputs-confirmed"),
        ({"is_unspent": None}, "inputs-confirmed"),
        ({"value_sats": None}, "amount-proof"),
        ({"script": None}, "amount-proof"),
        ({"inscriptions": (INSCRIPTION, "cd" * 32 + "i0")}, "inputs-cardinal"),
        ({"inscriptions": None}, "inputs-cardinal"),
        ({"runes": ("A",)}, "inputs-cardinal"),
        ({"index_height": 1}, "inputs-cardinal"),
    ],
)
def test_in_doubt_it_stays(signer: Desk, changes: dict[str, Any], tag: str) -> None:
    outpoint, facts = HELD["ordnet"]
    signer.facts[outpoint] = replace(facts, **changes)
    assert tag_of(signer.sign, out_of("ordnet", "escrow")) == tag
    assert signer.audit_path.read_bytes() == b""


def test_what_nothing_is_known_of_is_not_called_anothers(signer: Desk) -> None:
    """A worker gives up what is not its own, and asks again about what is not known for now."""
    del signer.facts[HELD["ordnet"][0]]
    assert tag_of(signer.sign, out_of("ordnet", "escrow")) == "inputs-confirmed"


@pytest.mark.parametrize(
    "changes",
    [{"inscription_id": ""}, {"fee_coins": ()}, {"amount_sats": 5}, {"coins": (HELD["ordnet"][0], tuple(COINS)[2])}],
)
def test_only_one_inscription_goes_that_way_and_the_payment_address_pays(signer: Desk, changes: dict[str, Any]) -> None:
    assert tag_of(signer.sign, replace(out_of("ordnet", "escrow"), **changes)) == "bad-request"


@pytest.mark.parametrize(
    ("height", "tip", "is_signed"),
    [
        (TIP - RECOVERY_BLOCKS + 1, TIP, True),
        (TIP - RECOVERY_BLOCKS + 2, TIP, False),
        (TIP, TIP, False),
        (None, TIP, False),
        (TIP - RECOVERY_BLOCKS + 1, None, False),
    ],
)
def test_the_item_stays_until_its_lock_opens(
    signer: Desk, height: int | None, tip: int | None, is_signed: bool
) -> None:
    """At ord.net our key opens the escrow at once; at Ordinals Wallet 144 blocks lie between."""
    for form in FORMS:
        outpoint, facts = HELD[form]
        signer.facts[outpoint] = replace(facts, height=height, tip_height=tip)
    if tip is not None:
        assert signer.sign(out_of("ordnet", "escrow", 1))
    if is_signed:
        assert signer.sign(out_of("ordinalswallet", "escrow", 2))
    else:
        tag = "timelock" if tip is not None else "inputs-cardinal"
        assert tag_of(signer.sign, out_of("ordinalswallet", "escrow", 2)) == tag


def test_without_the_tip_nobody_knows_whether_the_lock_is_open() -> None:
    _, facts = HELD["ordinalswallet"]
    with pytest.raises(PolicyRefused) as refused:
        withdrawal.timelock(replace(facts, tip_height=None), RECOVERY_BLOCKS)
    assert refused.value.tag == "timelock"


@pytest.mark.parametrize(("passed", "told"), [(0, "24 hours"), (23, "20 hours"), (24, "20 hours"), (142, "an hour")])
def test_the_wait_is_told_in_hours(passed: int, told: str) -> None:
    _, facts = HELD["ordinalswallet"]
    with pytest.raises(PolicyRefused) as refused:
        withdrawal.timelock(replace(facts, height=TIP - passed), RECOVERY_BLOCKS)
    first = TIP - passed + RECOVERY_BLOCKS
    assert refused.value.message == f"its escrow keeps it until block {first}, about {told}"


def test_another_users_escrow_is_not_opened(signer: Desk) -> None:
    assert tag_of(signer.sign, out_of("ordnet", "escrow", user=OTHER_USER)) == "dest-allow"
