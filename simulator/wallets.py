"""Play money and play inscriptions by address, with their content; bidding wallets with their scripts; the play wallet.

Each address has its own balance. Only the first bidding wallet of a payment address starts with sats: as many as a new
address, or half of the payment address's balance if that was set.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from embit import script
from embit.ec import PrivateKey, PublicKey
from embit.script import Script
from msgspec import Struct, convert, to_builtins

from simulator.taproot import LeafOutput
from wallet.address import hash160, p2wpkh
from wallet.keystore.keys import sign_message

Trait = tuple[str, str]
_MOST = 10_000  # as many as the largest such collections have


def name_of(slug: str, inscription: str) -> str:
    """Returns for example "Bitcoin Puppets #4711", the same at each call."""
    number = int.from_bytes(hashlib.sha256(f"name {inscription}".encode()).digest()[:4]) % _MOST + 1
    title = " ".join(word.capitalize() for word in slug.removesuffix("-demo").replace("-", " ").split())
    return f"{title or 'Inscription'} #{number}"


def number_of(inscription: str) -> int:
    """Returns a practice inscription's number, the same at each call."""
    return int.from_bytes(inscription.encode()[:4]) % 90_000_000


WalletKind = Literal["2of2", "2of3", "leaf"]
KINDS: tuple[WalletKind, ...] = ("2of2", "2of3", "leaf")


class Pair(NamedTuple):
    """The owner of a bidding wallet: two addresses, and the payment address's key (hex)."""

    payment: str
    ordinals: str
    public_key: str


def market_key(payment: str, ordinals: str, *, spare: bool = False) -> PrivateKey:
    """Derives the market's key, a different one for each pair of addresses; `spare` is its second one."""
    name = "spare of practice bidding wallet" if spare else "practice bidding wallet"
    return PrivateKey(hashlib.sha256(f"{name} {payment} {ordinals}".encode()).digest())


def witness_script(pair: Pair, kind: WalletKind) -> Script:
    """Returns the P2WSH script: the user's key and the market's, and in the kind with three keys its spare one."""
    keys = [PublicKey.parse(bytes.fromhex(pair.public_key)), market_key(*pair[:2]).get_public_key()]
    if kind == "2of3":
        keys.append(market_key(*pair[:2], spare=True).get_public_key())
    return script.multisig(2, keys)


def leaf_output(pair: Pair) -> LeafOutput:
    """Returns the taproot output whose only leaf both user and market must sign (BIP-342).

    The internal key is the market's spare one.
    """
    theirs, ours = bytes.fromhex(pair.public_key)[1:], market_key(*pair[:2]).get_public_key().xonly()
    code = b"\x20" + theirs + b"\xac\x20" + ours + b"\xba\x52\x9c"  # CHECKSIG, CHECKSIGADD, 2 NUMEQUAL
    return LeafOutput(market_key(*pair[:2], spare=True).get_public_key().xonly(), code)


def bidding_address(pair: Pair, kind: WalletKind) -> str:
    """Returns the address, always the same one for a pair and a kind."""
    if kind == "leaf":
        return str(leaf_output(pair).script.address())
    return str(script.p2wsh(witness_script(pair, kind)).address())


def bidding_kind_of(address: str, pair: Pair) -> WalletKind:
    return next(kind for kind in KINDS if bidding_address(pair, kind) == address)


FRESH_BALANCE = 100_000_000


class Item(Struct, frozen=True):
    id: str
    collection: str
    name: str
    traits: tuple[Trait, ...] = ()
    number: int = 0


class Wallets:
    """Balances in sats (a fresh address has FRESH_BALANCE), inscriptions and whole rune tokens of every address."""

    def __init__(self) -> None:
        self._balances: dict[str, int] = {}
        self._pair_of: dict[str, Pair] = {}
        self.bidding_kind: WalletKind = "2of2"  # the kind of new bidding wallets
        self.inscriptions: dict[str, dict[str, Item]] = {}
        self.runes: dict[str, dict[str, Decimal]] = {}

    def bidding_wallet(self, payment: str, ordinals: str, public_key: str) -> str:
        """Returns the address that holds the pair's money for bids; `public_key` (hex) is the payment address's."""
        pair = Pair(payment, ordinals, public_key)
        address = bidding_address(pair, self.bidding_kind)
        if address not in self._pair_of:
            self._pair_of[address] = pair
            self._fund(address, payment)
        return address

    def _fund(self, address: str, payment: str) -> None:
        if self.bidding_wallets(payment)[0] != address:
            self._balances.setdefault(address, 0)
        elif payment in self._balances and address not in self._balances:
            whole = self._balances[payment]
            self._balances[address] = whole // 2
            self._balances[payment] = whole - whole // 2

    def pair_of(self, bidding_wallet: str) -> Pair:
        return self._pair_of[bidding_wallet]

    def bidding_wallets(self, payment: str) -> list[str]:
        return [address for address, pair in self._pair_of.items() if pair.payment == payment]

    def backing(self, payment: str) -> int:
        """Returns the sats behind the bids of `payment`: its bidding wallets' balances, or its own without any."""
        return sum(map(self.balance, self.bidding_wallets(payment) or [payment]))

    def pay_from_backing(self, payment: str, sats: int) -> None:
        """Takes the cost of a bid of `payment` from the sats behind its bids."""
        for address in self.bidding_wallets(payment) or [payment]:
            part = min(sats, self.balance(address))
            self.debit(address, part)
            sats -= part

    def balance(self, address: str) -> int:
        return self._balances.get(address, FRESH_BALANCE)

    def set_balance(self, address: str, sats: int) -> None:
        self._balances[address] = sats

    def debit(self, address: str, sats: int) -> None:
        self.set_balance(address, max(0, self.balance(address) - sats))

    def credit(self, address: str, sats: int) -> None:
        self.set_balance(address, self.balance(address) + sats)

    def credit_rune(self, address: str, ticker: str, tokens: Decimal) -> None:
        held = self.runes.setdefault(address, {})
        held[ticker] = held.get(ticker, Decimal(0)) + tokens

    def holder_of(self, inscription: str) -> tuple[str, Item] | None:
        for address, held in self.inscriptions.items():
            if inscription in held:
                return address, held[inscription]
        return None

    def move(self, item: Item, to: str) -> None:
        """Gives `item` to the address `to`, taking it from its holder."""
        found = self.holder_of(item.id)
        if found:
            del self.inscriptions[found[0]][item.id]
        self.inscriptions.setdefault(to, {})[item.id] = item

    def dump(self) -> dict[str, Any]:
        return {
            "balances": dict(self._balances),
            "pair_of": dict(self._pair_of),
            "bidding_kind": self.bidding_kind,
            "inscriptions": to_builtins({address: list(held.values()) for address, held in self.inscriptions.items()}),
            "runes": to_builtins(self.runes),
        }

    def load(self, row: dict[str, Any]) -> None:
        self._balances = convert(row["balances"], dict[str, int])
        self._pair_of = convert(row["pair_of"], dict[str, Pair])
        self.bidding_kind = row["bidding_kind"]
        found = convert(row["inscriptions"], dict[str, list[Item]])
        self.inscriptions = {address: {item.id: item for item in held} for address, held in found.items()}
        self.runes = convert(row["runes"], dict[str, dict[str, Decimal]])


class PlayWallet:
    """One P2WPKH key for play money, made at its first use and kept, that signs any text for any caller."""

    def __init__(self, random_bytes: Callable[[int], bytes]) -> None:
        self._random_bytes = random_bytes
        self._secret: bytes | None = None

    @property
    def address(self) -> str:
        return p2wpkh(hash160(self._key().get_public_key().sec()))

    def sign(self, message: str) -> str:
        return sign_message(self._key(), "p2wpkh", message)

    def dump(self) -> str | None:
        return None if self._secret is None else self._secret.hex()

    def load(self, row: str | None) -> None:
        """Continues with a dumped key. Raises ValueError or TypeError if it is not a key."""
        secret = None if row is None else bytes.fromhex(row)
        if secret is not None and len(secret) != 32:
            raise ValueError("the play wallet's key has not 32 bytes")
        self._secret = secret

    def _key(self) -> PrivateKey:
        if self._secret is None:
            self._secret = self._random_bytes(32)
        return PrivateKey(self._secret)


Kind = Literal["picture", "svg", "text", "large"]
_OTHERS: tuple[Kind, ...] = ("svg", "text", "large")
_MEDIA: Mapping[Kind, str] = {"svg": "image/svg+xml", "text": "text/plain;charset=utf-8"}
_ONE_IN = 24  # one inscription in this many has no picture
_LARGE = 2_300_000
_SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10">'
    '<rect width="10" height="10" fill="#{}"/><circle cx="5" cy="5" r="3" fill="#fff"/></svg>'
)
# A picture's cells a side, the pixels of a cell's side, and its number of colours.
_SIDE, _CELL, _COLOURS = 12, 16, 4


class Content(NamedTuple):
    media: str
    data: bytes


def kind_of(inscription: str) -> Kind:
    drawn = int.from_bytes(hashlib.sha256(f"kind {inscription}".encode()).digest()[:4])
    if drawn % _ONE_IN:
        return "picture"
    return _OTHERS[drawn // _ONE_IN % len(_OTHERS)]


def media_of(inscription: str) -> str:
    return _MEDIA.get(kind_of(inscription), "image/png")


def content_of(item: Item) -> Content:
    kind = kind_of(item.id)
    if kind == "svg":
        return Content(_MEDIA[kind], _SVG.format(item.id[:6]).encode())
    if kind == "text":
        return Content(_MEDIA[kind], f"{item.name or 'gm'}\n".encode())
    # A large picture has extra bytes after its end, as some real inscriptions do.
    return Content("image/png", _picture(item.id) + bytes(_LARGE if kind == "large" else 0))


def _picture(inscription: str) -> bytes:
    """Returns a PNG of coloured cells, symmetric left to right, drawn from the inscription's id."""
    drawn = hashlib.shake_256(f"looks {inscription}".encode()).digest(3 * _COLOURS + _SIDE * _SIDE // 2)
    palette, cells = drawn[: 3 * _COLOURS], drawn[3 * _COLOURS :]
    lines = b""
    for at in range(0, len(cells), _SIDE // 2):
        half = [cell % _COLOURS for cell in cells[at : at + _SIDE // 2]]
        pixels = bytes(cell for cell in half + half[::-1] for _ in range(_CELL))
        lines += (b"\0" + pixels) * _CELL  # a line begins with its filter: none
    # Eight bits a pixel, each an index of a colour.
    head = struct.pack(">IIBBBBB", _SIDE * _CELL, _SIDE * _CELL, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", head), (b"PLTE", palette), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
