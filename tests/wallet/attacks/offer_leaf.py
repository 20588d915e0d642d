"""Attacks with the leaf of an offer, of which the escrow is the right one."""

from __future__ import annotations

from collections.abc import Callable

from simulator.venue_scripts import ENCLAVE, GATE, MARKET, xonly
from tests.wallet.attacks.offer_changes import Attack, Change, adding_to, of_intent, put
from tests.wallet.listings import ORDINALS, STRANGER, STRANGER_SCRIPT, VAULT, VENUE, script_by
from tests.wallet.offers import EXPIRES_S, OWNERS, PAYMENT_SCRIPT, PRICE, STRANGER_PAYMENT, VAULT_SCRIPT
from wallet.terms import CoSigners

ATTACKS: list[Attack] = []
attack = adding_to(ATTACKS)


def of_leaf(**values: object) -> Change:
    return lambda offer: (put(offer.leaf, **values), offer.fund(xonly(OWNERS[offer.form])))


def on_leaf(change: Callable[[bytes], bytes]) -> Change:
    return lambda offer: (put(offer.leaf, raw=change(offer.leaf.script())), offer.fund(xonly(OWNERS[offer.form])))


attack("a leaf of a sat less", "leaf-terms", of_leaf(price=PRICE - 1))
attack("a leaf of a sat more", "leaf-terms", of_leaf(price=PRICE + 1))
attack("a leaf of no price", "leaf-terms", of_leaf(price=0))
attack("a leaf of a price that wraps", "leaf-terms", of_leaf(price=2**63 + PRICE))
attack(
    "a leaf's price with its bytes turned",
    "leaf-terms",
    of_leaf(price=int.from_bytes(PRICE.to_bytes(8, "big"), "little")),
)
for _name, _script in {
    "a stranger's taproot": STRANGER_SCRIPT,
    "a stranger's P2WPKH": STRANGER_PAYMENT,
    "the venue's": script_by("p2tr", VENUE),
    "our payment address": PAYMENT_SCRIPT,
    "our ordinals wallet": script_by("p2tr", ORDINALS),
    "our untweaked key": b"\x51\x20" + xonly(VAULT),
    "our vault, and a byte": VAULT_SCRIPT + b"\x51",
    "our vault less a byte": VAULT_SCRIPT[:-1],
    "anyone": b"\x51",
}.items():
    attack(f"a leaf that sends the goods to: {_name}", "leaf-terms", of_leaf(receive=_script))
attack("a leaf that is good for a second too long", "leaf-terms", of_leaf(expires_s=EXPIRES_S + 3_601))
attack("a leaf that is good for a year", "leaf-terms", of_leaf(expires_s=EXPIRES_S + 365 * 86_400))
attack("a leaf that is good for ever", "leaf-terms", of_leaf(expires_s=2**64 - 1))
attack("a leaf whose end is in milliseconds", "leaf-terms", of_leaf(expires_s=EXPIRES_S * 1000))
attack("a leaf whose buyer is a stranger", "leaf-terms", of_leaf(buyer=xonly(STRANGER)))
attack("a leaf whose buyer is the market", "leaf-terms", of_leaf(buyer=xonly(MARKET)))
attack("a leaf whose buyer is our key as it is tweaked", "leaf-terms", of_leaf(buyer=VAULT_SCRIPT[2:]))
for _name in ("market", "gate", "enclave"):
    attack(f"a stranger in place of the {_name}", "leaf-keys", of_leaf(**{_name: xonly(STRANGER)}))
    attack(f"our key in place of the {_name}", "leaf-keys", of_leaf(**{_name: xonly(VAULT)}))
    attack(f"a key of a type that is not known in place of the {_name}", "leaf", of_leaf(**{_name: b"\x01"}))
    attack(f"no key in place of the {_name}", "leaf", of_leaf(**{_name: b""}))
    attack(f"a whole key in place of the {_name}", "leaf", of_leaf(**{_name: b"\x02" + xonly(STRANGER)}))
attack("gate and enclave changed about", "leaf-keys", of_leaf(gate=xonly(ENCLAVE), enclave=xonly(GATE)))
attack("one key for all", "leaf-keys", of_leaf(gate=xonly(MARKET), enclave=xonly(MARKET)))
attack("three strangers", "leaf-keys", of_leaf(market=xonly(VENUE), gate=xonly(STRANGER), enclave=xonly(ORDINALS)))
attack("other keys were pinned", "leaf-keys", of_intent(co_signers=CoSigners(b"\x11" * 32, b"\x12" * 32, b"\x13" * 32)))
attack("a leaf of version 1", "leaf", of_leaf(version=b"ordnet-offer/v1"))
attack("a leaf of version 20", "leaf", of_leaf(version=b"ordnet-offer/v20"))
attack("a root of 31 bytes", "leaf", of_leaf(eligible=b"\x2d" * 31))
attack("criteria of 33 bytes", "leaf", of_leaf(criteria=b"\x2e" * 33))
attack("a secret of 20 bytes", "leaf", of_leaf(secret=b"\x2f" * 20))
attack("a receiver of nothing", "leaf", of_leaf(receive=b""))
attack("a receiver of 76 bytes, in one byte of length", "leaf", of_leaf(receive=b"\x51" * 76))
attack("no leaf", "leaf", of_leaf(raw=b""))
attack("a leaf that anyone can spend by", "leaf", of_leaf(raw=b"\x51"))
attack("a stranger's key as the leaf", "leaf", of_leaf(raw=b"\x20" + xonly(STRANGER) + b"\xac"))
attack("a leaf cut by a byte", "leaf", on_leaf(lambda leaf: leaf[:-1]))
attack("a leaf without its data", "leaf", on_leaf(lambda leaf: leaf[leaf.index(b"\x68\xa8") + 1 :]))
attack("a leaf that drops its result and takes any", "leaf", on_leaf(lambda leaf: leaf + b"\x75\x51"))
attack("a leaf with an OP_SUCCESS behind it", "leaf", on_leaf(lambda leaf: leaf + b"\x50"))
attack("a leaf with an OP_SUCCESS before it", "leaf", on_leaf(lambda leaf: b"\x50" + leaf))
attack("a leaf whose data are run", "leaf", on_leaf(lambda leaf: b"\x51" + leaf[1:]))
attack("a leaf with NOTIF", "leaf", on_leaf(lambda leaf: leaf[:1] + b"\x64" + leaf[2:]))
attack("a leaf with an ELSE", "leaf", on_leaf(lambda leaf: leaf.replace(b"\x68\xa8\x20", b"\x67\x68\xa8\x20")))
attack("a leaf that hashes otherwise", "leaf", on_leaf(lambda leaf: leaf.replace(b"\x68\xa8\x20", b"\x68\xa9\x20")))
attack("a leaf that compares and goes on", "leaf", on_leaf(lambda leaf: leaf.replace(b"\x88\x20", b"\x87\x20", 1)))
attack("none of two is enough", "leaf", on_leaf(lambda leaf: leaf.replace(b"\xba\x51\x9d", b"\xba\x00\x9d")))
attack("both of two are needed", "leaf", on_leaf(lambda leaf: leaf.replace(b"\xba\x51\x9d", b"\xba\x52\x9d")))
attack("any number of two", "leaf", on_leaf(lambda leaf: leaf.replace(b"\xba\x51\x9d", b"\xba\x51\x75")))
attack("a gate that is not asked", "leaf", on_leaf(lambda leaf: leaf.replace(b"\xad\x20", b"\x75\x20")))
attack("an enclave that may say no", "leaf", on_leaf(lambda leaf: leaf[:-1] + b"\x75"))
attack("a push the long way", "leaf", on_leaf(lambda leaf: leaf.replace(b"\x63\x0f", b"\x63\x4c\x0f")))
attack("the data twice", "leaf", on_leaf(lambda leaf: leaf[: leaf.index(b"\x68\xa8") + 1] + leaf))
attack(
    "an OP_CODESEPARATOR before the enclave",
    "leaf",
    on_leaf(lambda leaf: leaf.replace(b"\xad\x20", b"\xad\xab\x20")),
)
