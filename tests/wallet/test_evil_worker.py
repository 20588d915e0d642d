"""A worker that was taken over, with every secret of three tasks, asks for ten thousand things over the real socket.

It may also ask what its user id lets it ask: for grants as wide as it likes, and for control states. Whatever it does,
the signer's own ceilings hold, and nothing leaves that is not one of the three kinds of text or PSBT that are signed.
`EVIL_REQUESTS` and `EVIL_SEED` in the environment ask for more requests, and for others.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from core.errors import PeerRefused
from tests.examples import part_of
from tests.shapes import asdict, replace
from tests.wallet.evil import Judge
from tests.wallet.listings import INSCRIPTION, PRICE, honest
from tests.wallet.proofs import OWNER, STRANGER, p2tr_address
from tests.wallet.psbt_mutants import mutant
from tests.wallet.test_evil_gateway import hostile_text
from tests.wallet.test_evil_venue import PLAIN
from tests.worlds.signer import (
    BID,
    GRANT,
    LIST_GRANT,
    OTHER_USER,
    SECURE_AT_PLAY,
    TASK,
    USER,
    fixed_keys,
    intent,
    listing,
    listing_of,
)
from tests.worlds.signer_process import House, facts_server, house, ok, wire
from wallet.protocol import Grant
from wallet.signer.audit import verify_chain
from wallet.terms import Ceilings, Rate

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unlogged")]

# In fewer not every reason comes about.
REQUESTS = max(2_500, part_of(int(os.environ.get("EVIL_REQUESTS", "10000")), dear=True))
SEED = int(os.environ.get("EVIL_SEED", "1"))
CEILINGS = Ceilings(
    outstanding_user=300_000,
    outstanding_host=450_000,
    sats_hour_host=1_500_000,
    task=Rate(60, 1_000),
    user=Rate(90, 1_500),
    host=Rate(120, 2_000),
    challenges_a_minute=60,
    brakes_of_user=5,
    brakes=8,
    secure_listings=SECURE_AT_PLAY,
)
FAR_MS = LIST_GRANT.expires_ms
GRANTS = [
    replace(GRANT, expires_ms=FAR_MS),
    replace(
        GRANT,
        task=18,
        slug="runestone",
        hardcap_sats=120_000,
        outstanding_task_sats=130_000,
        expires_ms=FAR_MS,
        to_vault=True,
    ),
    replace(
        GRANT, task=19, user=OTHER_USER, outstanding_sats=250_000, outstanding_task_sats=250_000, expires_ms=FAR_MS
    ),
    LIST_GRANT,
]
JUNK: list[Any] = [None, True, 0, -1, 1.5, "", "1", "x" * 300, [], {}, [[]], 2**63, 2**64, "\ud800", "é", 10**30]
OPS = [
    "status",
    "addresses",
    "controls",
    "was_signed",
    "lowest_listing",
    "judge",
    "rooms",
    "rooms_under",
    "revoke_place",
    "end_rights",
    "control",
    "unlock",
]


class EvilWorker:
    def __init__(self, opened: House, rng: random.Random) -> None:
        self.house, self.rng = opened, rng
        self.judge = Judge(CEILINGS)
        self.held: dict[int, tuple[Grant, str]] = {}
        self.tags: Counter[str] = Counter()
        self.sent: list[dict[str, Any]] = []
        for grant in GRANTS:
            self._take(grant)

    def act(self, number: int) -> None:
        rng = self.rng
        self.house.now_ms += rng.choice((0, 0, 1, 100, 5_000, 40_000, 400_000, -1_000, -30_000))
        self.house.steady_ms += rng.choice((0, 1, 100, 1_000, 5_000))
        request = rng.choices(
            [self._bid, self._challenge, self._brake, self._listing, self._again, self._junk, self._wider],
            weights=[50, 12, 12, 12, 12, 12, 2],
        )[0](number)
        if rng.random() < 0.06:
            request = self._spoilt(request)
        self.sent.append(request)
        self._ask(request)

    def _ask(self, request: dict[str, Any]) -> None:
        try:
            answer = self.house.ask(request)
        except PeerRefused as refused:
            assert refused.code != "internal", request
            self.tags[refused.code] += 1
            return
        op = request["op"]
        self.tags[f"answered {op}"] += 1
        if op == "sign_bid":
            self.judge.bid(request, answer, self.house.now_ms)
        elif op == "sign_challenge":
            self.judge.challenge(request, answer)
        elif op == "sign_brake":
            self.judge.brake(request, answer, self.house.steady_ms)
        elif op == "sign_listing":
            self.judge.listing(request, answer)
        else:
            assert not {"signature", "seed", "key"} & answer.keys()

    def _rights(self) -> dict[str, Any]:
        """Of a task, mostly with its own token and secret."""
        rng = self.rng
        grant, secret = rng.choice(list(self.held.values()))
        if rng.random() < 0.05:
            secret = rng.choice([other for _, other in self.held.values()])
        return {"task": grant.task, "token": grant.token + (rng.random() < 0.03), "secret": secret}

    def _bid(self, number: int) -> dict[str, Any]:
        rng, now, rights = self.rng, self.house.now_ms, self._rights()
        grant = self.held[rights["task"]][0]
        cap = min(grant.hardcap_sats, rng.randrange(1, 300_000))
        price = rng.choice([1, 1_000, cap, cap, cap, cap, cap, cap, grant.hardcap_sats, grant.hardcap_sats + 1, 2**50])
        if rng.random() < 0.05:
            price = rng.choice([0, -1, cap + 0.5, str(cap), None, True])
        most = grant.max_expiry_ms
        life = rng.choice([1, 1, 1, 1, 1_000, 1_000, 60_000, 900_000, 900_000, most, most + 1])
        if rng.random() < 0.05:
            life = rng.choice([0, -1, 2**52])
        bid = asdict(BID) | {"intent": intent(number), "price": price, "expires_ms": now + life, "timestamp_ms": now}
        bid["slug"] = grant.slug if rng.random() < 0.95 else rng.choice([BID.slug, "a:b", "", "runestone"])
        bid["receive"] = self._receive(grant)
        bid["quantity"] = rng.choice(["1"] * 60 + ["1000", "0.5", "0", "1e3", "01", "-1", "1:2", " 1"])
        return {"op": "sign_bid", **rights, "bid": bid}

    def _receive(self, grant: Grant) -> str:
        """Returns where the grant's goods go, and now and then somewhere else."""
        vault = fixed_keys(USER).secrets_of(grant.user).public.vault
        if self.rng.random() < 0.95:
            return vault if grant.to_vault else grant.receive
        return self.rng.choice([vault, grant.receive, p2tr_address(STRANGER), p2tr_address(OWNER).upper()])

    def _challenge(self, number: int) -> dict[str, Any]:
        request = {"op": "sign_challenge", **self._rights(), "challenge": hostile_text(self.rng)}
        signed = list(self.judge.answers.values())
        if signed and self.rng.random() < 0.2:
            request["challenge"] = self.rng.choice(signed[-50:]).get("message", "")
        return request | self.rng.choice([{}, {"key": "vault"}, {"key": "payment"}, {"key": "seed"}])

    def _brake(self, number: int) -> dict[str, Any]:
        """Returns a challenge without a grant, which bids are tried as, too."""
        rng = self.rng
        text, signed = hostile_text(rng), list(self.judge.answers.values())
        if signed and rng.random() < 0.2:
            text = rng.choice(signed[-50:]).get("message", "")
        user = rng.choice([USER, USER, USER.upper(), OTHER_USER, p2tr_address(STRANGER)])
        return {
            "op": "sign_brake",
            "user": user,
            "venue": rng.choice(["simulator"] * 9 + ["satflow"]),
            "challenge": text,
        }

    def _listing(self, number: int) -> dict[str, Any]:
        rng = self.rng
        rights = self._rights()
        if rng.random() < 0.8 and TASK in self.held:
            grant, secret = self.held[TASK]
            rights = {"task": TASK, "token": grant.token, "secret": secret}
        if rng.random() < 0.3:
            case = mutant(rng, ("p2tr",), PLAIN)
            case.intent = honest().intent
            return {"op": "sign_listing", **rights, "listing": listing_of(case, number)}
        price = rng.choice([PRICE, PRICE, PRICE - 1, 1, 199_999])
        return {"op": "sign_listing", **rights, "listing": listing(number) | {"price": price}}

    def _again(self, number: int) -> dict[str, Any]:
        """Returns something asked before, with one field of it changed now and then."""
        if not self.sent:
            return self._bid(number)
        request = dict(self.rng.choice(self.sent[-200:]))
        inner = "bid" if "bid" in request else "listing" if "listing" in request else None
        if inner and isinstance(request[inner], dict) and request[inner] and self.rng.random() < 0.5:
            changed = dict(request[inner])
            name = self.rng.choice(sorted(changed))
            changed[name] = changed[name] + 1 if type(changed[name]) is int else self.rng.choice(JUNK)
            request[inner] = changed
        return request

    def _junk(self, number: int) -> dict[str, Any]:
        rng = self.rng
        names = ["task", "token", "secret", "bid", "listing", "scope", "subject", "state", "intent", "user", "outpoint"]
        some = {name: rng.choice(JUNK) for name in rng.sample(names, rng.randrange(5))}
        return {"op": rng.choice([*OPS, "sign_bid", "sign_psbt", "export", None, 1, ["grant"]]), **some}

    def _wider(self, number: int) -> dict[str, Any]:
        """Returns a grant that allows everything, for itself."""
        former = self.rng.choice([grant for grant, _ in self.held.values()])
        self._take(
            replace(
                former,
                token=former.token + 1,
                operations=self.rng.choice([("bid", "cancel"), ("bid", "list", "cancel")]),
                slug=self.rng.choice(["frogs", "runestone"]),
                hardcap_sats=2**50,
                outstanding_sats=2**50,
                outstanding_task_sats=self.rng.choice([200_000, 2**50]),
                max_expiry_ms=2**52,
                receive=p2tr_address(STRANGER),
                to_vault=self.rng.random() < 0.5,
                inscription_id=INSCRIPTION,
                min_price_sats=self.rng.choice([200_000, PRICE]),
            )
        )
        return {"op": "control", "scope": "global", "subject": "", "state": self.rng.choice(["run"] * 9 + ["halt"])}

    def _take(self, grant: Grant) -> None:
        self.held[grant.task] = grant, self.house.client.grant(grant)
        self.judge.granted(grant)

    def _spoilt(self, request: dict[str, Any]) -> dict[str, Any]:
        rng = self.rng
        spoilt = {**request, rng.choice([*request, "more"]): rng.choice(JUNK)}
        if rng.random() < 0.3:
            del spoilt[rng.choice(list(spoilt))]
        return spoilt


def test_a_worker_moves_no_delivery_to_the_vault_and_none_away_from_it(tmp_path: Path) -> None:
    with house(tmp_path, CEILINGS) as opened:
        vault = fixed_keys(USER).secrets_of(GRANT.user).public.vault
        for task, to_vault in ((17, False), (18, True)):
            secret = opened.client.grant(replace(GRANT, task=task, to_vault=to_vault, expires_ms=FAR_MS))
            rights, right = {"task": task, "token": GRANT.token, "secret": secret}, vault if to_vault else GRANT.receive
            wrong = GRANT.receive if to_vault else vault
            now = {"timestamp_ms": opened.now_ms, "expires_ms": opened.now_ms + 60_000, "intent": intent(task)}
            with pytest.raises(PeerRefused, match="the receiving address is not the grant's"):
                opened.ask({"op": "sign_bid", **rights, "bid": asdict(BID) | now | {"receive": wrong}})
            signed = opened.ask({"op": "sign_bid", **rights, "bid": asdict(BID) | now | {"receive": right}})
            assert signed["message"].split(":")[2] == right
        assert verify_chain(opened.audit_path) == 2


@pytest.mark.sampled
def test_requests_of_an_evil_worker(tmp_path: Path) -> None:
    rng = random.Random(f"worker {SEED}")
    with house(tmp_path, CEILINGS) as opened, facts_server(opened.facts_socket, lambda request: ok(wire())):
        worker = EvilWorker(opened, rng)
        for number in range(REQUESTS):
            worker.act(number)
        judge, tags = worker.judge, worker.tags
        print(f"seed {SEED}: {dict(tags.most_common())}")
        assert len(judge.bids) > REQUESTS // 20
        assert judge.challenges > REQUESTS // 100 and judge.listings > 0
        assert len(judge.brakes) > REQUESTS // 100
        assert judge.delivered == {True, False}
        tried = {
            "outstanding-task",
            "outstanding-user",
            "outstanding-host",
            "velocity",
            "max-bid",
            "expiry-max",
            "grant-live",
            "op-allowed",
            "market",
            "dest-allow",
        }
        assert tried | {"msg-template", "intent-conflict", "bad-request", "default-deny", "psbt-strict"} <= tags.keys()
        assert verify_chain(opened.audit_path) >= len(judge.bids) + judge.challenges + len(judge.brakes)
