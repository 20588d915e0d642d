"""Funding PSBTs changed at random: whatever is signed is judged by other code, and nothing wrong may have been signed.

`PSBT_MUTANTS` and `PSBT_SEED` in the environment ask for more of them, and for others.
"""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from tests.wallet.listings import PAYMENT, TIP, VAULT
from tests.wallet.offer_attacks import ATTACKS
from tests.wallet.offers import FORMS, PAYMENT_SCRIPT, PRICE, Offer, copied, honest
from tests.wallet.psbt_oracle import Unreadable, former_output, le, parse, sha, txout, verifies
from wallet.policy import PolicyRefused
from wallet.psbt import check_offer
from wallet.psbt.common import MOST_BLOCKS_BEHIND

pytestmark = pytest.mark.slow

MUTANTS = int(os.environ.get("PSBT_MUTANTS", "20000")) // 4
SEED = int(os.environ.get("PSBT_SEED", "1"))
KEY = PAYMENT.get_public_key().sec()


def mutant(rng: random.Random) -> Offer:
    """Makes an honest offer with up to three designed changes, and up to three random ones."""
    offer = honest(rng.choice(FORMS), rng.choice([(200_000, 90_000), (300_000,), (100_000, 90_000, 80_000)]))
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2, 3])):
        try:
            rng.choice(ATTACKS).change(offer)
        except (IndexError, KeyError, StopIteration, AssertionError, AttributeError, ValueError):
            continue  # what is to be changed is gone
    for _ in range(rng.choice([0, 0, 0, 0, 1, 2])):
        nudge(offer, rng)
    if rng.random() < 0.1:
        raw = bytearray(offer.draft.encode())
        for _ in range(rng.randint(1, 3)):
            if raw:
                raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        offer.draft.raw = bytes(raw)
    return offer


def nudge(offer: Offer, rng: random.Random) -> None:
    """A number or an order that is another one."""
    kind = rng.randrange(6)
    if kind == 0 and offer.draft.pays:
        pay = rng.choice(offer.draft.pays)
        pay.value = max(0, pay.value + rng.choice([-1, 1, -500, 500, 5_000, -5_000]))
    elif kind == 1:
        rng.shuffle(offer.draft.pays)
    elif kind == 2:
        rng.shuffle(offer.draft.spends)
    elif kind == 3 and offer.draft.pays:
        offer.change.value -= rng.randint(0, 1_000)  # the fees' three limits lie within this of the honest one
    elif kind == 4:
        offer.draft.version = rng.choice([1, 2, 3])
    elif offer.draft.spends:
        rng.choice(offer.draft.spends).sequence = rng.choice([0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD, 0xFFFFFFFC, 1])


def faults(offer: Offer, raw: bytes, answer: bytes) -> list[str]:
    """Returns the faults in having answered `raw` with `answer`, by own parsing, digests and curve arithmetic."""
    try:
        asked, given = parse(raw), parse(answer)
    except Unreadable as error:
        return [f"signed what cannot be read: {error}"]
    if dict(asked.maps[0])[b"\0"] != dict(given.maps[0])[b"\0"]:
        return ["another transaction was signed"]
    tx, wrong = asked.tx, []
    is_play = offer.form == "play"
    coins = {coin.txid + le(coin.vout, 4): facts for coin, facts in offer.facts.items() if facts.outpoint == coin}
    chosen = {coin.txid + le(coin.vout, 4) for coin in offer.intent.coins}
    prevouts = [prevout for prevout, _, _ in tx["ins"]]
    if not prevouts or len(set(prevouts)) < len(prevouts) or not set(prevouts) <= chosen & coins.keys():
        return ["it spends what was not chosen or is not known"]
    for facts in (coins[prevout] for prevout in prevouts):
        plain = (facts.is_unspent, facts.is_confirmed, facts.inscriptions, facts.runes, facts.script)
        if plain != (True, True, (), (), PAYMENT_SCRIPT):
            wrong.append(f"a coin that is none of ours or not plain: {plain}")
        if facts.tip_height is None or (facts.index_height or 0) < facts.tip_height - MOST_BLOCKS_BEHIND:
            wrong.append("by an index that is behind")
    values = [coins[prevout].value_sats or 0 for prevout in prevouts]
    fee = sum(values) - sum(value for value, _ in tx["outs"])
    if not 0 <= fee <= (0 if is_play else 2_000):
        wrong.append(f"a fee of {fee}")
    shape = list(tx["outs"])
    escrow, paid = shape.pop(0)
    if escrow != PRICE if is_play else not PRICE <= escrow <= PRICE + 5_000:
        wrong.append(f"{escrow} in escrow")
    if is_play:
        note, said = shape.pop(0) if shape else (0, b"")
        root = said[34:]
        key = VAULT.get_public_key()
        if note or said[:34] != b"\x6a\x40" + key.xonly() or paid != b"\x51\x20" + key.taproot_tweak(root).xonly():
            wrong.append("an escrow that the vault cannot take back")
    elif len(paid) != 34 or paid[:2] not in (b"\x51\x20", b"\x00\x20"):
        wrong.append("an escrow of another kind")
    if [script for _, script in shape] not in ([], [PAYMENT_SCRIPT]):
        wrong.append("an output more")
    if tx["version"] not in ((3,) if is_play else (1, 2)) or tx["locktime"] > TIP:
        wrong.append("version or locktime")
    if any(int.from_bytes(sequence, "little") < 0xFFFFFFFD or script for _, script, sequence in tx["ins"]):
        wrong.append("sequence or script_sig")
    return wrong + _about_signatures(asked, given, values)


def _about_signatures(asked, given, values: list[int]) -> list[str]:  # type: ignore[no-untyped-def]
    """Finds faults of the signatures: each input needs one, ALL and ours, over all inputs and outputs, and nothing
    else.
    """
    tx, wrong = asked.tx, []
    outputs = sha(sha(b"".join(txout(*out) for out in tx["outs"])))
    prevouts = sha(sha(b"".join(prevout for prevout, _, _ in tx["ins"])))
    sequences = sha(sha(b"".join(sequence for _, _, sequence in tx["ins"])))
    code = bytes.fromhex("1976a914") + PAYMENT_SCRIPT[2:] + bytes.fromhex("88ac")
    for at, (prevout, _, sequence) in enumerate(tx["ins"]):
        before, after = dict(asked.maps[at + 1]), dict(given.maps[at + 1])
        signature = after.pop(b"\x02" + KEY, b"")
        message = le(tx["version"], 4) + prevouts + sequences + prevout + code + le(values[at], 8) + sequence
        digest = sha(sha(message + outputs + le(tx["locktime"], 4) + le(1, 4)))
        if signature[-1:] != b"\x01" or not verifies("p2wpkh", KEY, digest, signature[:-1]):
            wrong.append("a signature that is not valid, or not ALL")
        if not after.items() <= before.items() or any(key[0] in (2, 4, 5, 7, 8, 0x13, 0x14, 0x15) for key in after):
            wrong.append("something else was added, or was there before")
        if before.get(b"\x03", le(1, 4)) != le(1, 4):
            wrong.append("another sighash was asked for")
        if b"\x01" in before and before[b"\x01"] != txout(values[at], PAYMENT_SCRIPT):
            wrong.append("the coin was said to be another")
        if b"\0" in before and former_output(before[b"\0"], prevout) != (values[at], PAYMENT_SCRIPT):
            wrong.append("another former transaction")
        if b"\0" not in before and b"\x01" not in before:
            wrong.append("nothing was said of the coin")
    return wrong


def outcome(offer: Offer) -> tuple[str, list[str]]:
    try:
        answer = offer.sign()
    except PolicyRefused as refused:
        return refused.tag, []
    return "signed", faults(offer, offer.draft.encode(), answer)


def test_nothing_is_signed_wrongly() -> None:
    rng = random.Random(SEED)
    tags: Counter[str] = Counter()
    for number in range(MUTANTS):
        offer = mutant(rng)
        tag, wrong = outcome(offer)
        if tag == "signed" and (offer.template is None or offer.intent.venue != offer.template.venue):
            wrong.append("for a venue without a template")
        assert not wrong, f"mutant {number}, seed {SEED}: {wrong}\n{offer.draft.encode().hex()}"
        tags[tag] += 1
    print(f"seed {SEED}: {dict(tags.most_common())}")
    # Else the mutants were so wild that nothing was tried, or left rules alone.
    assert tags["signed"] > MUTANTS // 50
    assert tags.keys() >= {attack.tag for attack in ATTACKS}


@pytest.mark.parametrize(
    ("rule", "slip"),
    [
        ("_inputs_confirmed", lambda outpoints, facts: [facts[each] for each in outpoints if each in facts]),
        ("_inputs_cardinal", lambda known: TIP),
        ("_announced", lambda outputs, vault_key: None),
        ("_sighash_allowed", lambda item: None),
        ("_fee", lambda *arguments: 0),
        ("tx_form", lambda *arguments, **named: None),
        ("input_unsigned", lambda *arguments: None),
        ("key_path", lambda *arguments: None),
    ],
)
def test_the_judge_notices_a_rule_that_does_nothing(rule: str, slip: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_offer, rule, slip)
    found = set()
    for attack in ATTACKS:
        for offer in attack.cases():
            try:
                _, wrong = outcome(copied(offer))
            except (ValueError, KeyError, IndexError):
                continue
            found |= {attack.name} if wrong else set()
    assert found
