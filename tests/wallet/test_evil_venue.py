"""A marketplace that lies in its PSBTs, ten thousand times: each draft goes through the signer whole.

`EVIL_REQUESTS` and `EVIL_SEED` in the environment ask for more of them, and for others.
"""

from __future__ import annotations

import base64
import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import PeerRefused
from tests.examples import part_of
from tests.shapes import replace
from tests.wallet.attacks.listing_attacks import ATTACKS
from tests.wallet.attacks.listing_changes import is_harmless
from tests.wallet.evil import Judge
from tests.wallet.listings import PAYOUT_ADDRESS, PRICE, VAULT, Case, Form, honest
from tests.wallet.psbt_mutants import mutant
from tests.worlds.signer import LIST_GRANT, SECURE_AT_PLAY, TASK, Desk, desk, listing_of
from wallet.protocol import MAX_PSBT_TEXT
from wallet.signer.audit import verify_chain
from wallet.terms import Ceilings, Rate

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unlogged")]

REQUESTS = part_of(int(os.environ.get("EVIL_REQUESTS", "10000")), dear=True)
SEED = int(os.environ.get("EVIL_SEED", "1"))
PLAIN: tuple[Form, ...] = ("listing", "secure")
ANY = Rate(10**9, 10**9)


@pytest.fixture
def open_desk(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path, Ceilings(task=ANY, user=ANY, host=ANY, secure_listings=SECURE_AT_PLAY)) as opened:
        yield opened


def sent(case: Case) -> Case:
    """Returns the case as it is once only what a venue can change is changed: the rest is the signer's own."""
    fixed = replace(case.intent, min_price_sats=200_000, payout_address=PAYOUT_ADDRESS, seller_fee_ppm=0)
    return replace(case, intent=fixed)


def by_name() -> list[tuple[str, Case]]:
    """Returns every harmful attack that a venue can send: on our kind of key, and in no field that it never sees."""
    found = []
    for attack in ATTACKS:
        for case in attack.cases():
            own, right = case.owner, honest(case.kind, case.form)
            if case.kind != "p2tr" or case.form not in PLAIN or own != right.owner or case.key != VAULT:
                continue
            if sent(case).intent == case.intent and not is_harmless(attack.name, case):
                found.append((attack.name, case))
    return found


def refusal(opened: Desk, judge: Judge, case: Case, number: int) -> str:
    """Returns the tag that the case was refused with, or `signed` when the judge agrees that it is right."""
    opened.facts = case.facts
    request = {"task": TASK, "token": 5, "secret": opened.secret, "listing": listing_of(case, number)}
    try:
        answer = opened.ask("sign_listing", **request)
    except PeerRefused as refused:
        return refused.code
    judge.listing(request, answer, sent(case))
    return "signed"


def test_every_attack_by_name_is_refused_by_the_signer(open_desk: Desk) -> None:
    judge = Judge(Ceilings())
    judge.granted(LIST_GRANT)
    attacks = by_name()
    assert len(attacks) > 150
    for number, (name, case) in enumerate(attacks):
        assert refusal(open_desk, judge, case, number) != "signed", name
    assert verify_chain(open_desk.audit_path) == 0


@pytest.mark.sampled
def test_lies_of_a_venue(open_desk: Desk) -> None:
    rng = random.Random(f"venue {SEED}")
    judge, tags = Judge(Ceilings()), Counter[str]()
    judge.granted(LIST_GRANT)
    attacks = [case for _, case in by_name()]
    for number in range(REQUESTS):
        case = rng.choice(attacks) if rng.random() < 0.2 else mutant(rng, ("p2tr",), PLAIN)
        open_desk.now_ms += rng.randrange(60_000)
        tags[refusal(open_desk, judge, case, number)] += 1
    print(f"seed {SEED}: {dict(tags.most_common())}")
    assert tags["signed"] == judge.listings == verify_chain(open_desk.audit_path)
    assert tags["signed"] > REQUESTS // 50, "the lies were so wild that nothing was tried"
    assert len(tags) > 12, "the lies left rules alone"


def test_the_judge_is_not_blind(open_desk: Desk) -> None:
    """The judge must object to a signature on another payout than the listing's."""
    judge = Judge(Ceilings())
    judge.granted(LIST_GRANT)
    right = honest()
    request = {"task": TASK, "token": 5, "listing": listing_of(right, 1)}
    answer = open_desk.sign(request["listing"])
    judge.listing(request, answer, right)
    wrong = right.copy()
    wrong.payout.value = PRICE - 1
    lied = {**request, "listing": listing_of(wrong, 1)}
    with pytest.raises(AssertionError):
        judge.listing(lied, answer, wrong)
    flipped = bytearray(base64.b64decode(answer["psbt"]))
    flipped[-40] ^= 1
    with pytest.raises(AssertionError):
        judge.listing(request, {"psbt": base64.b64encode(flipped).decode(), "secure": []}, right)


def test_a_draft_of_the_largest_size_still_fits_through_the_socket() -> None:
    assert len(base64.b64encode(b"\0" * 32 * 1024)) == MAX_PSBT_TEXT
