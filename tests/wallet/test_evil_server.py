"""A server that was taken over asks for withdrawals as it likes; whatever is signed, the user's coins stay the user's.

What is signed is judged by other code: embit's reading of the transaction, and sums of its own.
"""

from __future__ import annotations

import base64
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from embit.psbt import PSBT
from embit.transaction import Transaction
from msgspec.json import encode

from core.errors import PeerRefused
from tests.shapes import replace
from tests.wallet.attacks.withdrawal_attacks import ATTACKS
from tests.wallet.listings import INSCRIPTION, TIP, key, script_by
from tests.wallet.proofs import OWNER, STRANGER
from tests.wallet.withdrawal_cases import (
    COINS,
    ITEM,
    PAYMENT_SCRIPT,
    VAULT_COINS,
    VAULT_SCRIPT,
    WALLET,
    Desk,
    coin,
    desk,
    from_bidding,
    from_payment,
    honest,
    intent,
    of_inscription,
    p2wsh,
)
from tests.worlds.signer import OTHER_USER, USER
from wallet.terms import Ceilings

pytestmark = pytest.mark.thorough

REQUESTS = 3_000
DAILY = 2_000_000
# Whose coins may go where: by the user's own keys, and the address that the user signs in with.
HOMES = {USER: script_by("p2wpkh", OWNER), OTHER_USER: script_by("p2wpkh", STRANGER)}
OWN = {
    USER: (PAYMENT_SCRIPT, VAULT_SCRIPT),
    OTHER_USER: (
        script_by("p2wpkh", key(f"payment of {OTHER_USER}")),
        script_by("p2tr", key(f"vault of {OTHER_USER}")),
    ),
}
DOUBT: list[dict[str, Any]] = [
    {"is_unspent": None},
    {"is_confirmed": False},
    {"inscriptions": None},
    {"inscriptions": ("c" * 64 + "i0",)},
    {"runes": ("DOG•GO",)},
    {"value_sats": None},
    {"index_height": TIP - 9},
]


class EvilServer:
    def __init__(self, signer: Desk, rng: random.Random) -> None:
        self.signer, self.rng = signer, rng
        self.tags: Counter[str] = Counter()
        self.answers: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        self.sent: Counter[tuple[str, bool]] = Counter()
        signer.keys.users = (USER, OTHER_USER)  # type: ignore[misc]
        for number in range(40):
            paid = rng.choice([*OWN[USER], *OWN[OTHER_USER]])
            changes = rng.choice(DOUBT) if rng.random() < 0.3 else {}
            outpoint, facts = coin(2_000 + number, rng.choice([300, 5_000, 60_000, 400_000, 10**9]), paid, **changes)
            signer.facts[outpoint] = facts

    def act(self, number: int) -> None:
        request = self._request(number)
        try:
            answer = self.signer.ask("sign_withdrawal", withdrawal=request)
        except PeerRefused as refused:
            assert refused.code != "internal", request
            self.tags[refused.code] += 1
            return
        self.tags[f"signed from {request['source']}"] += 1
        self._judge(request, answer)

    def _request(self, number: int) -> dict[str, Any]:
        rng = self.rng
        if self.answers and rng.random() < 0.1:
            request = dict(rng.choice(list(self.answers.values()))[0])
        else:
            request = json.loads(encode(self._fresh(number)))
        if rng.random() < 0.3:
            name = rng.choice(sorted(request))
            others = [None, "", [], 0, 1, -1, True, 2**70, OTHER_USER, "vault", INSCRIPTION, [ITEM[0]], list(COINS)]
            request[name] = rng.choice(others)
        return request

    def _fresh(self, number: int) -> Any:
        rng = self.rng
        name = intent(number) if rng.random() < 0.95 else intent(rng.randrange(number + 1))
        known = list(self.signer.facts)
        coins = tuple(rng.sample(known, rng.choice([1, 1, 2, 3])))
        plain = {"coins": coins} if rng.random() < 0.6 else {}
        rate = rng.choice([999, 1_000, 4_000, 60_000, 300_000, 300_001])
        amount = rng.choice([None, None, 293, 294, 20_000, 10**8])
        kind = rng.random()
        if kind < 0.45:
            asked = from_payment(fee_per_kvb=rate, amount_sats=amount, **plain)
        elif kind < 0.6:
            chosen = plain or {"coins": tuple(VAULT_COINS)}
            asked = from_payment(source="vault", fee_per_kvb=rate, amount_sats=amount, **chosen)
        elif kind < 0.75:
            asked = of_inscription(fee_per_kvb=rate, **({"fee_coins": coins} if plain else {}))
        else:
            case = rng.choice(ATTACKS).cases()[0] if rng.random() < 0.7 else honest()
            asked = from_bidding(case=case)
        return replace(asked, intent=name, user=rng.choice([USER, USER, USER, OTHER_USER]))

    def _judge(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        user, name = request["user"], request["intent"]
        before = self.answers.setdefault(name, (request, answer))
        assert before == (request, answer), "one intent is signed once"
        if request["source"] == "bidding":
            psbt = PSBT.parse(base64.b64decode(answer["psbt"]))
            tx, allowed = psbt.tx, {p2wsh(WALLET), OWN[user][0]}
            assert not answer["transaction"]
        else:
            tx = Transaction.parse(bytes.fromhex(answer["transaction"]))
            own = OWN[user][1] if request["source"] == "vault" and not request["fee_coins"] else OWN[user][0]
            allowed = {HOMES[user], own}
            assert tx.vout[0].script_pubkey.data == HOMES[user]
        assert tx.txid().hex() == answer["txid"]
        assert {output.script_pubkey.data for output in tx.vout} <= allowed
        spent = [self.signer.facts[f"{source.txid.hex()}:{source.vout}"] for source in tx.vin]
        for facts in spent:
            assert facts.script in (*OWN[user], p2wsh(WALLET))
            assert facts.inscriptions in ((), (request["inscription_id"],))
            assert facts.runes == ()
            assert facts.is_unspent and facts.is_confirmed
        fee = sum(facts.value_sats or 0 for facts in spent) - sum(output.value for output in tx.vout)
        assert 0 <= fee == answer["fee_sats"] <= 200_000
        if request["inscription_id"]:
            assert spent[0].inscriptions == (request["inscription_id"],)
            assert tx.vout[0].value == spent[0].value_sats
        if before[1] is answer:
            self.sent[user, request["source"] == "bidding"] += answer["sent_sats"]
            assert self.sent[user, request["source"] == "bidding"] <= DAILY


@pytest.mark.slow
def test_whatever_an_evil_server_asks_for_goes_to_its_owner(tmp_path: Path) -> None:
    with desk(tmp_path, Ceilings(withdrawn_a_day=DAILY)) as signer:
        evil = EvilServer(signer, random.Random(7))
        for number in range(REQUESTS):
            evil.act(number)
    for tag in (
        "dest-allow",
        "inputs-own",
        "inputs-cardinal",
        "inputs-confirmed",
        "fee-rate",
        "velocity",
        "bad-request",
    ):
        assert evil.tags[tag] > 5, (tag, evil.tags)
    assert all(evil.tags[f"signed from {source}"] > 10 for source in ("payment", "vault", "bidding")), evil.tags
