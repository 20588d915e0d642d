"""The play chain: real transactions that are never mined, outputs with inscriptions, and blocks by the clock."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from embit.script import Script, Witness, address_to_scriptpubkey
from embit.transaction import Transaction, TransactionInput, TransactionOutput
from msgspec import Struct, convert, field, to_builtins

from wallet import address

REPLACEABLE = 0xFFFFFFFD
_NO_OUTPUT = 0xFFFFFFFF


def script_of(owner: str) -> Script:
    """Returns the script that pays an address; a made-up name from a script gets its own script."""
    try:
        parsed = address.parse(owner)
    except address.AddressError:
        return Script(b"\x00\x20" + hashlib.sha256(f"play owner {owner}".encode()).digest())
    return address_to_scriptpubkey(parsed.text)


def address_of(script: Script) -> str | None:
    return str(script.address()) if script.script_type() else None


def spent_together(outpoints: list[str], outputs: list[TransactionOutput]) -> Transaction:
    """Spends outputs with zeros as signatures, because this chain does not have the owners' keys."""
    sources = [spend(each) for each in outpoints]
    for source in sources:
        source.witness = Witness([bytes(64)])
    return Transaction(2, sources, outputs)


def spend(outpoint: str) -> TransactionInput:
    """Returns the unsigned input that spends `txid:vout`."""
    txid, vout = outpoint.split(":")
    return TransactionInput(bytes.fromhex(txid), int(vout), sequence=REPLACEABLE)


def outpoint_of(source: TransactionInput) -> str:
    return f"{source.txid.hex()}:{source.vout}"


def parse(raw: str) -> Transaction:
    return Transaction.parse(bytes.fromhex(raw))


BLOCK_SECONDS = 600
# A known height and its time; later heights follow from one block every ten minutes.
KNOWN_HEIGHT, KNOWN_TIME = 900_000, 1_750_000_000
# The depth of coins that exist from the start.
OLD_BLOCKS = 120
# An unconfirmed transaction gets into the next block but one, so a block never confirms it in a test's first seconds.
UNCONFIRMED_BLOCKS = 2
# The range of sats on an inscription's output.
LEAST_POSTAGE, MOST_POSTAGE = 546, 10_000


class Coin(Struct):
    """One output: its sats, script in hex, indexed assets, and the input (txid, number) that spends it, if any.

    `runes` maps spaced names to (raw amount, divisibility).
    """

    outpoint: str
    value: int
    script: str
    inscriptions: tuple[str, ...] = ()
    runes: dict[str, tuple[int, int]] = field(default_factory=dict)
    spent_by: str | None = None
    spent_vin: int = 0

    @property
    def output(self) -> TransactionOutput:
        return TransactionOutput(self.value, Script(bytes.fromhex(self.script)))

    @property
    def address(self) -> str | None:
        return address_of(self.output.script_pubkey)

    @property
    def txid(self) -> str:
        return self.outpoint.split(":")[0]


class Recorded(Struct, frozen=True, array_like=True):
    raw: str
    height: int


class Chain:
    """All coins and transactions ever made. `clock` gives ms since the epoch."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self.coins: dict[str, Coin] = {}
        self.transactions: dict[str, Recorded] = {}
        # The outpoints that have held each inscription, newest last.
        self._trails: dict[str, list[str]] = {}
        self.just_spent: list[str] = []  # until the engine has cancelled the orders that depend on them
        self.mined = 0  # blocks in addition to the clock's
        # The times of blocks that took a transaction immediately, because a block is not older than its content.
        self._times: dict[int, int] = {}
        self._forks: dict[int, int] = {}  # how often a height's block was reorganised

    # Blocks

    def height(self) -> int:
        """Returns the newest block's height; it grows by one every BLOCK_SECONDS."""
        return KNOWN_HEIGHT + (self._clock() // 1000 - KNOWN_TIME) // BLOCK_SECONDS + self.mined

    def confirmations(self, txid: str) -> int:
        """Counts the blocks from the transaction's own to the newest; 0 while it waits."""
        return max(0, self.height() - self.transactions[txid].height + 1)

    def confirm(self, txid: str | None) -> list[str]:
        """Puts one waiting transaction, or all, into the newest block; returns their txids."""
        waiting = [each for each in self.transactions if txid in (None, each) and not self.confirmations(each)]
        for each in waiting:
            self.transactions[each] = Recorded(self.transactions[each].raw, self._newest())
        return waiting

    def _newest(self) -> int:
        """Returns the newest block's height, and notes that a transaction enters that block now."""
        height = self.height()
        self._times[height] = self._clock() // 1000
        return height

    def block_time(self, height: int) -> int:
        return max(block_time(height), self._times.get(height, 0))

    def block_hash(self, height: int) -> str:
        return block_hash(height, self._forks.get(height, 0))

    def reorganise(self, txid: str) -> list[str]:
        """Takes a transaction's block and all later ones off the chain, so that their transactions wait again."""
        first = self.transactions[txid].height
        gone = [each for each, found in self.transactions.items() if first <= found.height <= self.height()]
        for height in range(first, self.height() + 1):
            self._forks[height] = self._forks.get(height, 0) + 1
        for each in gone:
            self.transactions[each] = Recorded(self.transactions[each].raw, self.height() + UNCONFIRMED_BLOCKS)
        return gone

    # Coins

    def coin_of(self, inscription: str) -> Coin | None:
        """Returns the output that holds an inscription, counting waiting transactions."""
        trail = self._trails.get(inscription)
        return self.coins[trail[-1]] if trail else None

    def confirmed_coin_of(self, inscription: str) -> Coin | None:
        """Returns the output that holds an inscription in the blocks, as an index sees it."""
        trail = self._trails.get(inscription, [])
        seen = (self.coins[outpoint] for outpoint in reversed(trail))
        return next((coin for coin in seen if self.confirmations(coin.txid)), None)

    def unspent(self, owner: str) -> Iterator[Coin]:
        """Yields the unspent outputs of an address, oldest first."""
        script = script_of(owner).data.hex()
        return (coin for coin in self.coins.values() if coin.script == script and coin.spent_by is None)

    # Changes

    def place(self, inscription: str, owner: str, *, confirmed: bool = True) -> Coin:
        """Puts an inscription alone on a new output of `owner`, moving or creating it."""
        former = self.coin_of(inscription)
        if former is not None:
            made = spent_together([former.outpoint], [TransactionOutput(former.value, script_of(owner))])
            txid = self.add(made, {0: (inscription,)}, confirmed=confirmed)
        else:
            txid = self.mint(f"inscription {inscription}", [(postage(inscription), owner)], {0: (inscription,)})
        return self.coins[f"{txid}:0"]

    def mint(self, tag: str, outputs: list[tuple[int, str]], inscriptions: dict[int, tuple[str, ...]]) -> str:
        """Makes old coins for each (sats, owner); returns the txid. Equal calls make different coins."""
        made = [TransactionOutput(value, script_of(owner)) for value, owner in outputs]
        for count in itertools.count():
            mark = hashlib.sha256(f"{tag} {count}".encode()).digest()
            source = TransactionInput(bytes(32), _NO_OUTPUT, Script(bytes([len(mark)]) + mark))
            coinbase = Transaction(2, [source], made)
            if coinbase.txid().hex() not in self.transactions:
                break
        return self.add(coinbase, inscriptions, height=self.height() - OLD_BLOCKS)

    def add(
        self,
        made: Transaction,
        inscriptions: dict[int, tuple[str, ...]],
        *,
        confirmed: bool = True,
        height: int | None = None,
    ) -> str:
        """Records a transaction; `inscriptions` maps output numbers to inscriptions. Returns the txid."""
        txid: str = made.txid().hex()
        if height is None:
            height = self._newest() if confirmed else self.height() + UNCONFIRMED_BLOCKS
        self.transactions[txid] = Recorded(made.serialize().hex(), height)
        for at, source in enumerate(made.vin):
            spent = self.coins.get(outpoint_of(source))
            if spent is not None:
                spent.spent_by, spent.spent_vin = txid, at
                self.just_spent.append(spent.outpoint)
        for at, output in enumerate(made.vout):
            held = inscriptions.get(at, ())
            coin = Coin(f"{txid}:{at}", output.value, output.script_pubkey.data.hex(), held)
            self.coins[coin.outpoint] = coin
            for inscription in held:
                self._trails.setdefault(inscription, []).append(coin.outpoint)
        return txid

    def add_to(self, coin: Coin, inscriptions: list[str], runes: dict[str, tuple[int, int]]) -> None:
        """Adds inscriptions and runes to an output, as if an index had found them there."""
        coin.inscriptions += tuple(each for each in inscriptions if each not in coin.inscriptions)
        coin.runes |= runes
        for inscription in inscriptions:
            self._trails.setdefault(inscription, [coin.outpoint])

    def forget(self, inscription: str) -> None:
        """Deletes an inscription, as if its outputs had never held it."""
        for outpoint in self._trails.pop(inscription, []):
            coin = self.coins[outpoint]
            coin.inscriptions = tuple(held for held in coin.inscriptions if held != inscription)

    def transaction(self, txid: str) -> Transaction | None:
        found = self.transactions.get(txid)
        return parse(found.raw) if found else None

    def dump(self) -> dict[str, Any]:
        return {
            "coins": to_builtins(list(self.coins.values())),
            "transactions": to_builtins(self.transactions),
            "trails": to_builtins(self._trails),
            "mined": self.mined,
            "times": to_builtins(self._times, str_keys=True),
            "forks": to_builtins(self._forks, str_keys=True),
        }

    def load(self, row: dict[str, Any]) -> None:
        self.coins = {coin.outpoint: coin for coin in convert(row["coins"], list[Coin])}
        self.just_spent = [coin.outpoint for coin in self.coins.values() if coin.spent_by is not None]
        self.transactions = convert(row["transactions"], dict[str, Recorded])
        self._trails = convert(row["trails"], dict[str, list[str]])
        self.mined = int(row["mined"])
        # A state file of an older version may lack both.
        counts = (convert(row.get(name, {}), dict[int, int], strict=False) for name in ("times", "forks"))
        self._times, self._forks = counts


def postage(inscription: str) -> int:
    """Returns the sats of an inscription's first output: a fixed number from LEAST_POSTAGE to MOST_POSTAGE."""
    digest = hashlib.sha256(f"postage {inscription}".encode()).digest()
    return LEAST_POSTAGE + int.from_bytes(digest[:4]) % (MOST_POSTAGE - LEAST_POSTAGE + 1)


def block_hash(height: int, fork: int = 0) -> str:
    return hashlib.sha256(f"play block {height}{' again' * fork}".encode()).hexdigest()


def block_time(height: int) -> int:
    return KNOWN_TIME + (height - KNOWN_HEIGHT) * BLOCK_SECONDS
