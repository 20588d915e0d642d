"""The signer's answers to every attack that has a name, word for word."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.errors import PeerRefused
from tests.goldens.socket_files import hold
from tests.shapes import replace
from tests.wallet import (
    escrows,
    test_evil_venue,
    test_sign_escrows,
    withdrawal_cases,
)
from tests.wallet.attacks import escrow_attacks, listing_attacks, offer_attacks, withdrawal_attacks
from tests.wallet.listings import PAYMENT
from tests.worlds.signer import SECURE_AT_PLAY, asked_by, desk, facts_of, listing_of, offer_desk
from wallet.protocol import PolicyRefused
from wallet.terms import Ceilings

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unlogged")]
Row = dict[str, Any]


@pytest.fixture
def unlogged() -> Iterator[None]:
    """Does not keep a thousand refusals for a report."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def verdict(sign: Callable[[], bytes | tuple[bytes, ...]]) -> Row:
    """Returns the rules' answer. What is signed is the same bytes each time, so its hash is held, too."""
    try:
        signed = sign()
    except PolicyRefused as refused:
        return {"verdict": "refused", "rule": refused.tag, "text": refused.message}
    parts = signed if isinstance(signed, tuple) else (signed,)
    return {"verdict": "signed", "sha256": [hashlib.sha256(part).hexdigest() for part in parts]}


def row(family: str, name: str, answers: dict[str, Row]) -> Row:
    """Returns one line: the answer that most forms get is said once, and forms with another one have their own."""
    told = list(answers.values())
    most = max(told, key=told.count)
    others = {form: answer for form, answer in answers.items() if answer != most}
    found = {"family": family, "name": name, "forms": len(answers), **most}
    return found | ({"but": others} if others else {})


def of_the_rules() -> Iterator[Row]:
    for attack in listing_attacks.ATTACKS:
        answers = {f"{case.form}, {case.kind}": verdict(case.sign) for case in attack.cases()}
        yield row("listing", attack.name, answers)
    for offer_attack in offer_attacks.ATTACKS:
        yield row("offer", offer_attack.name, {each.form: verdict(each.sign) for each in offer_attack.cases()})
    for escrow_attack in escrow_attacks.ATTACKS + escrow_attacks.HARMLESS:
        yield row("escrow", escrow_attack.name, {case.form: verdict(case.sign) for case in escrow_attack.cases()})
    for withdrawal_attack in withdrawal_attacks.ATTACKS + withdrawal_attacks.HARMLESS:
        yield row("withdrawal", withdrawal_attack.name, {"": verdict(withdrawal_attack.cases()[0].sign)})


def refused_by(ask: Callable[[], object]) -> Row:
    """Returns the answer of a signer that gets the request whole: it must refuse."""
    with pytest.raises(PeerRefused) as refused:
        ask()
    return {"rule": refused.value.code, "text": refused.value.message}


@contextmanager
def subdirectory(directory: Path, name: str) -> Iterator[Path]:
    made = directory / name
    made.mkdir()
    yield made


def of_the_signer(directory: Path) -> Iterator[Row]:
    """Each attack that a marketplace or a worker can send, as a request."""
    with subdirectory(directory, "listing") as own, desk(own, Ceilings(secure_listings=SECURE_AT_PLAY)) as lister:
        for number, (name, case) in enumerate(test_evil_venue.by_name()):
            lister.facts = case.facts
            asked = listing_of(case, number)
            yield {"family": "listing", "name": name, "form": case.form} | refused_by(partial(lister.sign, asked))
    with subdirectory(directory, "escrow") as own, desk(own, test_sign_escrows.CEILINGS) as lister:
        token = 5
        for attack in escrow_attacks.ATTACKS:
            for escrow in attack.cases():
                right = escrows.honest(escrow.form)
                if (escrow.intent, escrow.owner, escrow.terms, escrow.key) != (
                    right.intent,
                    right.owner,
                    right.terms,
                    right.key,
                ):
                    continue  # only a venue's part can come over the socket: the rest is the signer's own
                token += 1
                lister.facts = escrow.facts
                asked, venue = test_sign_escrows.asked(escrow), test_sign_escrows.VENUE_OF[escrow.form]
                secret = lister.grant(venue=venue, token=token)
                told = refused_by(partial(lister.sign, asked, secret, token=token))
                yield {"family": "escrow", "name": attack.name, "form": escrow.form} | told
    with subdirectory(directory, "offer") as own, offer_desk(own) as buyer:
        for offer_attack in offer_attacks.ATTACKS:
            if offer_attack.tag == "max-bid" or offer_attack.name == "other keys were pinned":
                continue  # about the grant or the settings, which are the signer's own
            offer = offer_attack.cases()[0]
            buyer.facts = facts_of(offer)
            asked = asked_by(offer)
            yield {"family": "offer", "name": offer_attack.name} | refused_by(partial(buyer.sign, asked))
    with subdirectory(directory, "withdrawal") as own, withdrawal_cases.desk(own) as owner:
        for withdrawal_attack in withdrawal_attacks.ATTACKS:
            [taken] = withdrawal_attack.cases()
            if taken.key is not PAYMENT:
                continue  # of a key that no request can bring
            owner.facts = dict(taken.facts)
            wanted = withdrawal_cases.from_bidding(case=taken)
            if taken.coins:
                wanted = replace(wanted, coins=taken.coins)
            yield {"family": "withdrawal", "name": withdrawal_attack.name} | refused_by(partial(owner.sign, wanted))


def test_the_rules_answer_each_named_attack_word_for_word_as_before() -> None:
    rows = list(of_the_rules())
    assert sum(each["family"] == "listing" for each in rows) >= 267
    hold("signer_attacks.jsonl", rows)


def test_the_signer_refuses_each_attack_that_can_be_sent_word_for_word_as_before(tmp_path: Path) -> None:
    hold("signer_attack_requests.jsonl", of_the_signer(tmp_path))
