"""The scripts of bidding wallets: a withdrawal needs the signature of its user, and of the market."""

from __future__ import annotations

import hashlib
from typing import Literal, NamedTuple

from embit import script
from embit.ec import PrivateKey, PublicKey
from embit.script import Script

from simulator.bitcoin.taproot import LeafOutput

WalletKind = Literal["2of2", "2of3", "leaf"]
KINDS: tuple[WalletKind, ...] = ("2of2", "2of3", "leaf")


class Pair(NamedTuple):
    """The owner of a bidding wallet: two addresses, and the key (hex) of the payment address."""

    payment: str
    ordinals: str
    public_key: str


def market_key(payment: str, ordinals: str, *, spare: bool = False) -> PrivateKey:
    """Derives the market's key, a different one for each pair of addresses; `spare` is its second one."""
    name = "spare of practice bidding wallet" if spare else "practice bidding wallet"
    return PrivateKey(hashlib.sha256(f"{name} {payment} {ordinals}".encode()).digest())


def witness_script(pair: Pair, kind: WalletKind) -> Script:
    """Returns the script of P2WSH: the user's key and the market's, and of three keys its spare one as well."""
    keys = [PublicKey.parse(bytes.fromhex(pair.public_key)), market_key(*pair[:2]).get_public_key()]
    if kind == "2of3":
        keys.append(market_key(*pair[:2], spare=True).get_public_key())
    return script.multisig(2, keys)


def leaf_output(pair: Pair) -> LeafOutput:
    """Returns the taproot output whose one leaf user and market must both sign for (BIP-342).

    The internal key is the market's spare one.
    """
    theirs, ours = bytes.fromhex(pair.public_key)[1:], market_key(*pair[:2]).get_public_key().xonly()
    code = b"\x20" + theirs + b"\xac\x20" + ours + b"\xba\x52\x9c"  # CHECKSIG, CHECKSIGADD, 2 NUMEQUAL
    return LeafOutput(market_key(*pair[:2], spare=True).get_public_key().xonly(), code)


def address_of(pair: Pair, kind: WalletKind) -> str:
    """Returns the address, always the same one for a pair and a kind."""
    if kind == "leaf":
        return str(leaf_output(pair).script.address())
    return str(script.p2wsh(witness_script(pair, kind)).address())


def kind_of(address: str, pair: Pair) -> WalletKind:
    """Returns the kind of the pair's wallet at this address."""
    return next(kind for kind in KINDS if address_of(pair, kind) == address)
