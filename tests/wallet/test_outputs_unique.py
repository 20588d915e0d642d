"""No payment satisfies the signatures of two listings: by pairs, through the whole signer.

A consensus engine confirms that two signatures over the same outputs are both valid, and two plain ones are not.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from core.errors import PeerRefused
from tests.shapes import asdict, replace
from tests.wallet.listings import ITEM_POSTAGE, PAYOUT_SCRIPT, VAULT_SCRIPT, Item, Pay
from tests.wallet.psbt_oracle import parse
from tests.wallet.test_psbt_sign import is_valid
from tests.worlds.signer import (
    LIST_GRANT,
    OTHER_USER,
    SECURE_AT_PLAY,
    START_MS,
    USER,
    fixed_keys,
    listing_intent,
    outpoints_to_look_up,
    signer_answer,
    text,
)
from wallet.psbt.transaction import LISTING, SECURE_LISTING, Transaction, TxInput, TxOutput
from wallet.signer.audit import AuditLog
from wallet.signer.ledger import Ledger, PayoutStore
from wallet.signer.listings import MOST_RIVALS
from wallet.signer.signer import Signer
from wallet.signer.withdrawals import with_witnesses
from wallet.terms import Ceilings

PRICE, TICK = 260_000, 1_000
CEILINGS = Ceilings(secure_listings=SECURE_AT_PLAY)
FIRST, SECOND, THIRD = Item(1), Item(2), Item(3)


class Desk:
    """A signer on its own files, which gets `facts` of all outputs that it asks about."""

    def __init__(self, ledger: Ledger, audit: AuditLog) -> None:
        self.ledger = ledger
        self.signer = Signer(ledger, audit, fixed_keys(USER), ceilings=CEILINGS, clock=lambda: START_MS)
        self.facts = {str(item.outpoint): item.facts for item in map(Item, range(20))}
        self.looked_up: tuple[str, ...] = ()
        self.count = 0

    def list(self, item: Item, *, price: int = PRICE, secure: bool = False, user: str = USER) -> dict[str, Any]:
        """Signs a plain listing, or a secure one beside a plain one that pays a sat more and so rivals nobody."""
        self.count += 1
        task = 100 + item.number
        grant = replace(LIST_GRANT, task=task, user=user, token=self.count, inscription_id=item.inscription_id)
        terms = asdict(replace(grant, min_price_sats=1))
        secret = signer_answer(self.signer, {"op": "grant", "grant": terms})["secret"]
        plain = item.draft(LISTING, [Pay(price + self.count if secure else price, PAYOUT_SCRIPT)])
        forms = [item.draft(SECURE_LISTING, [Pay(price, PAYOUT_SCRIPT)])] if secure else []
        listing = {
            "intent": listing_intent(self.count),
            "inscription_id": item.inscription_id,
            "outpoint": str(item.outpoint),
            "price": price,
            "psbt": text(plain.encode()),
            "secure": [text(draft.encode()) for draft in forms],
            "transfer": "",
            "recovery": "",
        }
        request = {"op": "sign_listing", "task": task, "token": self.count, "secret": secret, "listing": listing}
        self.looked_up = outpoints_to_look_up(self.signer, request)
        known = {outpoint: self.facts[outpoint] for outpoint in self.looked_up if outpoint in self.facts}
        answer: dict[str, Any] = signer_answer(self.signer, request, known)
        return answer

    def spent(self, item: Item, *, in_block: bool) -> None:
        self.facts[str(item.outpoint)] = replace(item.facts, is_unspent=False, is_spent_in_block=in_block)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with closing(AuditLog(tmp_path / "audit.jsonl")) as audit, closing(Ledger(tmp_path / "signer.db")) as ledger:
        yield Desk(ledger, audit)


def refusal(desk: Desk, item: Item, **how: Any) -> str:
    with pytest.raises(PeerRefused) as refused:
        desk.list(item, **how)
    assert refused.value.code != "outputs-unique" or "one tick" in refused.value.message
    return refused.value.code


@pytest.mark.parametrize(("first", "second"), [(True, True), (True, False), (False, True)])
def test_a_payout_that_another_listing_has_is_not_signed_where_one_covers_all(
    desk: Desk, first: bool, second: bool
) -> None:
    desk.list(FIRST, secure=first)
    assert refusal(desk, SECOND, secure=second) == "outputs-unique"
    assert desk.list(SECOND, secure=second, price=PRICE + TICK), "one tick apart is the way through"


def test_two_plain_ones_may_pay_the_same(desk: Desk) -> None:
    desk.list(FIRST)
    assert desk.list(SECOND)
    assert desk.looked_up == (str(SECOND.outpoint),)


def test_the_same_output_may_be_listed_for_the_same_again(desk: Desk) -> None:
    desk.list(FIRST, secure=True)
    assert desk.list(FIRST, secure=True) and desk.list(FIRST)


def test_a_former_price_counts_as_long_as_the_output_is_there(desk: Desk) -> None:
    desk.list(FIRST, secure=True)
    desk.list(FIRST, secure=True, price=PRICE + TICK)
    assert refusal(desk, SECOND) == "outputs-unique"


def test_another_users_listing_pays_another_user(desk: Desk) -> None:
    """The script is another one, so a payment to them satisfies only their own signatures."""
    store = desk.ledger.payouts
    payout = TxOutput(PRICE, PAYOUT_SCRIPT)
    store.put("ab" * 32 + ":0", payout, SECURE_LISTING, "ab" * 32 + ":0")
    theirs = b"\x00\x14" + fixed_keys(USER).secrets_of(OTHER_USER).payment.get_public_key().sec()[:20]
    assert store.rivals("cd" * 32 + ":0", payout, LISTING) == ["ab" * 32 + ":0"]
    assert store.rivals("cd" * 32 + ":0", TxOutput(PRICE, theirs), LISTING) == []


def test_what_is_spent_in_a_block_is_no_rival_and_is_forgotten(desk: Desk) -> None:
    desk.list(FIRST, secure=True)
    desk.spent(FIRST, in_block=False)
    assert refusal(desk, SECOND) == "outputs-unique", "another spend may take the place of one that is in no block"
    desk.spent(FIRST, in_block=True)
    assert desk.list(SECOND)
    assert desk.looked_up == (str(SECOND.outpoint), str(FIRST.outpoint))
    desk.list(THIRD)
    assert desk.looked_up == (str(THIRD.outpoint),)


@pytest.mark.parametrize("lost", [{"is_unspent": None}, {"is_unspent": True}, {"is_spent_in_block": False}])
def test_doubt_about_a_rival_is_a_refusal(desk: Desk, lost: dict[str, Any]) -> None:
    desk.list(FIRST, secure=True)
    desk.spent(FIRST, in_block=True)
    desk.facts[str(FIRST.outpoint)] = replace(desk.facts[str(FIRST.outpoint)], **lost)
    assert refusal(desk, SECOND, secure=True) == "outputs-unique"
    del desk.facts[str(FIRST.outpoint)]
    assert refusal(desk, SECOND, secure=True) == "outputs-unique"


def test_many_spent_rivals_are_forgotten_try_by_try(desk: Desk) -> None:
    for number in range(3, 3 + 2 * MOST_RIVALS + 1):
        desk.list(Item(number))
        desk.spent(Item(number), in_block=True)
    for _ in range(2):
        assert refusal(desk, FIRST, secure=True) == "outputs-unique"
        assert len(desk.looked_up) == 1 + MOST_RIVALS
    assert desk.list(FIRST, secure=True)
    assert len(desk.looked_up) == 2


def test_it_is_remembered_over_a_restart(tmp_path: Path) -> None:
    for secure in (True, False):
        with closing(AuditLog(tmp_path / "audit.jsonl")) as audit, closing(Ledger(tmp_path / "signer.db")) as ledger:
            opened = Desk(ledger, audit)
            opened.count = 10 * secure
            if secure:
                opened.list(FIRST, secure=True)
            else:
                opened.count = 50
                assert refusal(opened, SECOND) == "outputs-unique"


def test_a_payout_of_more_sats_than_there_are_has_no_rival(desk: Desk) -> None:
    assert desk.ledger.payouts.rivals("a" * 64 + ":0", TxOutput(2**64 - 1, PAYOUT_SCRIPT), SECURE_LISTING) == []


def test_what_is_refused_is_not_remembered(desk: Desk) -> None:
    desk.facts[str(FIRST.outpoint)] = replace(FIRST.facts, is_unspent=None)
    assert refusal(desk, FIRST, secure=True) == "inputs-confirmed"
    assert desk.list(SECOND, secure=True)


def bought_together(engine: Any, *answers: tuple[Item, str], pays: list[TxOutput]) -> list[bool]:
    """Asks a consensus engine about each signature in one transaction that spends all the items in this order."""
    signatures = [dict(parse(base64.b64decode(psbt)).maps[1])[b"\x13"] for _, psbt in answers]
    inputs = tuple(TxInput(item.outpoint, b"", 0xFFFFFFFD) for item, _ in answers)
    raw = with_witnesses(Transaction(2, inputs, tuple(pays), 0), [[signature] for signature in signatures])
    spent: list[TxOutput | None] = [TxOutput(ITEM_POSTAGE, VAULT_SCRIPT)] * len(inputs)
    return [is_valid(engine, raw, at, spent) for at in range(len(inputs))]


def test_what_an_engine_says_of_the_pairs(engine: Any, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows the need for the rule, and for no more of it."""
    pays = [TxOutput(PRICE, PAYOUT_SCRIPT)]
    plain = [(item, desk.list(item)["psbt"]) for item in (FIRST, SECOND)]
    assert bought_together(engine, *plain, pays=pays) == [True, False]
    assert bought_together(engine, *plain, pays=pays * 2) == [True, True]
    monkeypatch.setattr(PayoutStore, "rivals", lambda *given: [])
    secure = [(item, desk.list(item, secure=True)["secure"][0]) for item in (FIRST, SECOND)]
    assert bought_together(engine, *secure, pays=pays) == [True, True], "both items for one payment"
    assert bought_together(engine, *secure, pays=pays * 2) == [False, False]
    for mixed in ([plain[0], secure[1]], [plain[1], secure[0]]):
        assert bought_together(engine, *mixed, pays=pays) == [True, True], "both items for one payment"
    apart = (SECOND, desk.list(SECOND, secure=True, price=PRICE + TICK)["secure"][0])
    assert bought_together(engine, secure[0], apart, pays=pays) == [True, False]
