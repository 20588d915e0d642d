"""A gateway that lies in all that it hands to honest workers, ten thousand times.

Challenges that are bids or sign-ins, poisoned drafts, and prices out of thin air. `EVIL_REQUESTS` and `EVIL_SEED` as
for the venue.
"""

from __future__ import annotations

import base64
import os
import random
import string
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from core.errors import PeerRefused
from tests.examples import part_of
from tests.shapes import asdict, replace
from tests.wallet.evil import SIGN_IN, Judge
from tests.wallet.listings import PRICE, honest
from tests.wallet.psbt_mutants import mutant
from tests.wallet.test_evil_venue import PLAIN, refusal
from tests.worlds.signer import (
    BID,
    GRANT,
    LIST_GRANT,
    SECURE_AT_PLAY,
    TASK,
    USER,
    Desk,
    desk,
    draft_at,
    fixed_keys,
    intent,
    listing_of,
)
from wallet.signer.audit import verify_chain
from wallet.terms import Ceilings

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unlogged")]

REQUESTS = max(2_500, part_of(int(os.environ.get("EVIL_REQUESTS", "10000")), dear=True))
SEED = int(os.environ.get("EVIL_SEED", "1"))
CEILINGS = Ceilings(
    outstanding_user=300_000, outstanding_host=300_000, sats_hour_host=900_000, secure_listings=SECURE_AT_PLAY
)
KEYS = fixed_keys(USER).secrets_of(USER).public
BID_TEXT = ":".join([KEYS.payment, KEYS.payment_pubkey, GRANT.receive, "49999", "1", "1900000000000", "frogs", "1"])
LETTERS = string.ascii_letters + string.digits + " -_.:/\\\"'{}[]=+\n\r\t\0\x7f\x85\u2028\u200béКО\ud800\U0001f438"


def hostile_text(rng: random.Random) -> str:
    """Makes a challenge that is, nearly is, or hides a text worth signing to an attacker."""
    text = rng.choice(
        [
            "satflow challenge 5f2e",
            "x" * 512,
            "x" * 513,
            "Sign in to ord.net at noon",
            BID_TEXT.replace(":", "\n:"),
            BID_TEXT.partition(":")[2],
            BID_TEXT.replace("49999", "4.9e4"),
            "",
            BID_TEXT,
            BID_TEXT.replace(":", ""),
            BID_TEXT.replace(":", ";"),
            BID_TEXT.replace(":", "\uff1a"),
            BID_TEXT.replace(":", "\u02d0", 6),
            SIGN_IN.format(address=USER),
            SIGN_IN.format(address=USER).replace("\n", " "),
            SIGN_IN.format(address=USER).splitlines()[0],
            "sign in to b i d k e e p e r",
            "SIGN IN TO BID-KEEPER",
            "Sign in to B1dkeeper",
            "Sign in to Bidkeep\u0435r",
            "Sign in to other.example: 5f2e",
            f"{USER}:{'0f' * 16}",
        ]
    )
    for _ in range(rng.choice((0, 0, 1, 2, 5))):
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(LETTERS) + text[at + rng.randrange(2) :]
    return text


def odd_number(rng: random.Random) -> Any:
    """Returns a price as a lying book would make it."""
    cap = GRANT.hardcap_sats
    near = [0, 1, -1, cap - 1, cap, cap + 1, 2 * cap, 2**31, 2**53, 2**63, 21 * 10**14, cap / 2, "1", None, True]
    return rng.choice(near) if rng.random() < 0.4 else rng.randrange(2 * cap)


class House:
    """Three honest workers of one user, two bidding and one listing, who pass on what the gateway says."""

    def __init__(self, opened: Desk) -> None:
        self.desk = opened
        self.judge = Judge(CEILINGS)
        self.bidders = {}
        for task in (17, 19):
            bidding = replace(GRANT, task=task, outstanding_task_sats=150_000, expires_ms=LIST_GRANT.expires_ms)
            self.bidders[task] = opened.grant(**asdict(bidding))
            self.judge.granted(bidding)
        self.judge.granted(LIST_GRANT)

    def challenge(self, rng: random.Random) -> str:
        if rng.random() < 0.3:  # the manager's, for a halt
            self.desk.steady_ms += 2_000
            brake = {"user": USER, "venue": GRANT.venue, "challenge": hostile_text(rng)}
            return self.asked("sign_brake", brake)
        task, secret = rng.choice([*self.bidders.items(), (TASK, self.desk.secret)])
        request = {"task": task, "token": 5, "secret": secret, "challenge": hostile_text(rng)}
        if task == TASK:
            request["key"] = rng.choice(["payment", "vault"])
        return self.asked("sign_challenge", request)

    def bid(self, rng: random.Random, number: int) -> str:
        now = self.desk.now_ms
        bid = asdict(replace(BID, intent=intent(number), expires_ms=now + 900_000, timestamp_ms=now))
        bid["price"] = odd_number(rng)
        bid["slug"] = rng.choice([GRANT.slug] * 5 + ["bitcoin-frogs:1", "Bitcoin-Frogs", "bitcoin\u2022frogs", ""])
        task, secret = rng.choice(list(self.bidders.items()))
        return self.asked("sign_bid", {"task": task, "token": 5, "secret": secret, "bid": bid})

    def draft(self, rng: random.Random, number: int) -> str:
        case = mutant(rng, ("p2tr",), PLAIN)
        case.facts = honest().facts
        case.intent = honest().intent
        if rng.random() < 0.2:
            listed = listing_of(case, number) | {"psbt": draft_at(PRICE + rng.choice((-10_001, 0, 0)))}
            request = {"task": TASK, "token": 5, "secret": self.desk.secret, "listing": listed}
            self.desk.facts = case.facts
            return self.asked("sign_listing", request)
        return refusal(self.desk, self.judge, case, number)

    def asked(self, op: str, request: dict[str, Any]) -> str:
        try:
            answer = self.desk.ask(op, **request)
        except PeerRefused as refused:
            return refused.code
        if op == "sign_bid":
            self.judge.bid(request, answer, self.desk.now_ms)
        elif op == "sign_challenge":
            self.judge.challenge(request, answer)
        elif op == "sign_brake":
            self.judge.brake(request, answer, self.desk.steady_ms)
        elif len(request["listing"]["secure"]) == 0:
            self.judge.listing(request, answer)
        return f"signed {op}"


@pytest.mark.sampled
def test_lies_of_a_gateway(tmp_path: Path) -> None:
    rng, tags = random.Random(f"gateway {SEED}"), Counter[str]()
    with desk(tmp_path, CEILINGS) as opened:
        workers = House(opened)
        for number in range(REQUESTS):
            opened.now_ms += rng.randrange(20_000)
            way = rng.random()
            if way < 0.4:
                tags[workers.challenge(rng)] += 1
            elif way < 0.7:
                tags[workers.bid(rng, number)] += 1
            else:
                tags[workers.draft(rng, number)] += 1
        print(f"seed {SEED}: {dict(tags.most_common())}")
        judge = workers.judge
        assert len(judge.bids) > REQUESTS // 100 and judge.challenges > REQUESTS // 100
        assert judge.listings > REQUESTS // 200
        tried = {"msg-template", "max-bid", "outstanding-task", "outstanding-user", "bad-request", "payout"}
        assert tried <= tags.keys()
        assert verify_chain(opened.audit_path) > 0


def test_the_judge_is_not_blind(tmp_path: Path) -> None:
    judge = Judge(CEILINGS)
    judge.granted(GRANT)
    with desk(tmp_path) as opened:
        secret = opened.grant(**asdict(GRANT))
        request = {"task": 17, "token": 5, "secret": secret, "bid": asdict(BID)}
        answer = opened.ask("sign_bid", **request)
        judge.bid(request, answer, opened.now_ms)
        forged = base64.b64encode(base64.b64decode(answer["signature"])[:-1] + b"\0").decode()
        for wrong in ({"signature": forged}, {"message": answer["message"].replace(":40000:", ":50001:")}):
            with pytest.raises(AssertionError):
                Judge(CEILINGS, judge.grants).bid(request, answer | wrong, opened.now_ms)
        with pytest.raises(AssertionError):
            judge.bid(request, answer | {"signature": ""}, opened.now_ms)
        for text in (BID_TEXT, "Sign in to B-i-d-keeper", "a\tb", "é", "x" * 513, "a:1:2:3:c", "sign in to ORD.NET"):
            with pytest.raises(AssertionError):
                judge.challenge({"task": 17, "token": 5, "challenge": text}, {"signature": ""})
        small = Judge(replace(CEILINGS, outstanding_host=39_999), judge.grants)
        narrow = Judge(CEILINGS)
        narrow.granted(replace(GRANT, outstanding_task_sats=39_999))
        for strict in (small, narrow):
            with pytest.raises(AssertionError):
                strict.bid(request, answer, opened.now_ms)
