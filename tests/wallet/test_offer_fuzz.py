"""Funding PSBTs changed at random: whatever is signed is judged by other code, and nothing wrong may have been signed.

`PSBT_MUTANTS` and `PSBT_SEED` in the environment ask for more of them, and for others.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter

import pytest
from embit.util import key as curve  # arithmetic in Python, not libsecp256k1

from simulator.venue_scripts import ENCLAVE, GATE, MARKET, xonly
from tests.examples import part_of
from tests.wallet.attacks.offer_attacks import ATTACKS
from tests.wallet.listings import PAYMENT, TIP, VAULT
from tests.wallet.offers import FORMS, OWNERS, PAYMENT_SCRIPT, PRICE, VAULT_SCRIPT, Offer, copied, honest
from tests.wallet.psbt_oracle import Unreadable, former_output, le, parse, sha, txout, verifies
from wallet.protocol import PolicyRefused
from wallet.psbt import check_offer
from wallet.psbt.common import MOST_BLOCKS_BEHIND

pytestmark = pytest.mark.slow

MUTANTS = part_of(int(os.environ.get("PSBT_MUTANTS", "20000")) // 4, dear=True)
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
    kind = rng.randrange(7)
    if kind == 0 and offer.draft.pays:
        pay = rng.choice(offer.draft.pays)
        pay.value = max(0, pay.value + rng.choice([-1, 1, -500, 500, 5_000, -5_000]))
    elif kind == 1:
        rng.shuffle(offer.draft.pays)
    elif kind == 2:
        rng.shuffle(offer.draft.spends)
    elif kind == 3 and offer.draft.pays:
        offer.change.value -= rng.choice([0, 0, 1, 1_000])
    elif kind == 4:
        offer.draft.version = rng.choice([2, 3, 3])
    elif kind == 5 and len(offer.draft.pays) > 1:
        leaf = bytearray(offer.leaf.script())
        if leaf:
            leaf[rng.randrange(len(leaf))] ^= 1 << rng.randrange(8)
        offer.leaf.raw = bytes(leaf)
        offer.fund(xonly(OWNERS[offer.form]))
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
    if sum(values) != sum(value for value, _ in tx["outs"]):
        wrong.append("a fee")
    wrong += _about_escrow(offer, tx["outs"])
    if tx["version"] != 3 or tx["locktime"] > TIP:
        wrong.append("version or locktime")
    if any(int.from_bytes(sequence, "little") < 0xFFFFFFFD or script for _, script, sequence in tx["ins"]):
        wrong.append("sequence or script_sig")
    return wrong + _about_signatures(asked, given, values)


def _about_signatures(asked, given, values: list[int]) -> list[str]:  # type: ignore[no-untyped-def]
    """Finds faults of the signatures: each input needs just one, ALL and ours, over all inputs and outputs."""
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


# 250,000 sats to our vault's script, by the practice market's three keys; what is free is the end, whom it is for, and
# the secret. The buyer is our vault or our payment key.
LEAF = re.compile(
    b"\\x00\\x63\\x0fordnet-offer/v2\\x08\\x90\\xd0\\x03\\x00\\x00\\x00\\x00\\x00\\x08(.{8})"
    + re.escape(b"\x22" + VAULT_SCRIPT)
    + b"\\x20.{32}\\x20.{32}\\x68\\xa8\\x20.{32}\\x88\\x20(%b|%b)\\xac"
    % (re.escape(xonly(VAULT)), re.escape(xonly(PAYMENT)))
    + re.escape(b"\x20" + xonly(MARKET) + b"\xba\x51\x9d\x20" + xonly(GATE) + b"\xad\x20" + xonly(ENCLAVE) + b"\xac"),
    re.DOTALL,
)


def _about_escrow(offer: Offer, outputs: list[tuple[int, bytes]]) -> list[str]:
    """Finds faults in what the outputs give away, by the leaf that was told."""
    script = offer.leaf.script()
    leaf = LEAF.fullmatch(script)
    if leaf is None:
        return ["a leaf that is not ours"]
    if int.from_bytes(leaf[1], "little") > 1_800_003_600 + 3_600:
        return ["a leaf that is good for too long"]
    root = curve.TaggedHash("TapLeaf", b"\xc0" + (b"" if len(script) < 253 else b"\xfd") + le(len(script), 2) + script)
    tweaked, _ = curve.tweak_add_pubkey(leaf[2], curve.TaggedHash("TapTweak", leaf[2] + root))
    due = Counter([(PRICE, b"\x51\x20" + tweaked), (0, b"\x6a\x40" + leaf[2] + root)])
    rest = Counter(outputs) - due
    if due - Counter(outputs):
        return ["no escrow of the price, or none that our key can find and take back"]
    if any(script != PAYMENT_SCRIPT for _, script in rest) or rest.total() > 1:
        return ["an output more"]
    return []


def outcome(offer: Offer) -> tuple[str, list[str]]:
    try:
        answer = offer.sign()
    except PolicyRefused as refused:
        return refused.tag, []
    return "signed", faults(offer, offer.draft.encode(), answer)


@pytest.mark.sampled
def test_nothing_is_signed_wrongly() -> None:
    rng = random.Random(SEED)
    tags: Counter[str] = Counter()
    for number in range(MUTANTS):
        offer = mutant(rng)
        tag, wrong = outcome(offer)
        assert not wrong, f"mutant {number}, seed {SEED}: {wrong}\n{offer.draft.encode().hex()}"
        tags[tag] += 1
    print(f"seed {SEED}: {dict(tags.most_common())}")
    # Else the mutants were so wild that nothing was tried, or left rules alone.
    assert tags["signed"] > MUTANTS // 50
    assert tags.keys() >= {attack.tag for attack in ATTACKS}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("rule", "slip"),
    [
        ("_inputs_confirmed", lambda outpoints, facts: [facts[each] for each in outpoints if each in facts]),
        ("_inputs_cardinal", lambda known: TIP),
        ("_leaf_terms", lambda *arguments: None),
        ("_outputs", lambda *arguments: 0),
        ("_sighash_allowed", lambda item: None),
        ("_no_fee", lambda *arguments: None),
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
