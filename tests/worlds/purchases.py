"""Purchases on an honest chain: two venues' house, and a desk that lists what was bought.

What a sale really was is kept apart from the chain (`truth`), for a judge that shares no rule with the code under test.
"""

from __future__ import annotations

import asyncio
import hashlib
import struct
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

from embit import script as embit_script
from embit.ec import PrivateKey, PublicKey
from embit.hashes import tagged_hash
from msgspec import structs

from core.settings import Settings
from markets.base import Item, NotFound, OutpointFacts, TransactionFacts, Unavailable, Whereabouts
from markets.items import LocatedInscription
from models.leases.leases import EVERYBODY
from models.ledger.fills import Autolist, Wanted, newest
from models.ledger.states import Order
from models.tasks.tasks import Task
from models.users import User
from strategy.config.bid import BidConfig, OnFill
from strategy.config.listing import ListingConfig, dump_listing_config
from strategy.purchases import MadeOutput, Move, NotShown, SpentCoin
from tests.shapes import replace
from tests.wallet.listings import ORDINALS, PAYMENT, STRANGER, VAULT, VENUE, output, script_by, with_size
from tests.wallet.offers import Leaf
from tests.worlds.worker import CATS, KEYS, World
from wallet.protocol import UserKeys
from workers.manager.fill_lister import FillLister
from workers.manager.purchase_facts import Evidence, Found, PurchaseFacts, Standing

ITEM, OTHER = "ab" * 32 + "i0", "cd" * 32 + "i0"
MARGIN = ListingConfig(min_margin=Decimal("0.10"))
RULE = OnFill(dump_listing_config(MARGIN), start=True, max_open=1)
TO_VAULT = replace(CATS, bid_count=1, deliver_to="vault", on_fill=RULE)
HELD = LocatedInscription("held", "1" * 64 + ":0")
OTHER_WALLET = SpentCoin("9" * 64 + ":0", 10_000, "seller", "other")


class Desk:
    """A lister of fills over the world's database, with an index and a chain that say what they are told to.

    `left_sats` is what left our scripts for the item on the chain.
    """

    def __init__(self, world: World, crash: Any = lambda point: None) -> None:
        self.world, self.place, self.vault, self.reads = world, HELD, KEYS.vault, 0
        self.fault: str | None = None
        self.left_sats, self.shown, self.standing, self.came_from = 75_600, "", Standing(None, 1), OTHER_WALLET
        self.lister = FillLister(
            world.settings,
            5.0,
            world.clock,
            EVERYBODY,
            monotonic=lambda: world.clock.now_ms / 1000,
            find=self.find,
            read=self.read,
            check=lambda proof: self.standing,
            crash=crash,
        )

    def find(self, order: Order, user: User) -> Found:
        assert user.address == "bc1quser"
        self.reads += 1
        return Found(self.place, self.vault, self.fault)

    def read(self, order: Order, user: User, outpoint: str) -> Evidence:
        """A purchase in a transaction of the order's own, in a block of now."""
        if self.shown:
            raise NotShown(self.shown)
        txid, vout = outpoint.split(":")
        spent = (SpentCoin(f"{order.id:064x}:0", self.left_sats, "wallet", "backing"),)
        outputs = (MadeOutput(10_000, "vault", "receiver"),) * (int(vout) + 1)
        outputs = (*(MadeOutput(1, "", "other") for _ in outputs[1:]), outputs[0])
        now_s = self.world.clock.now_ms // 1000
        bought = Move(
            f"{order.id:064x}", "b" * 64, 900_000, now_s, self.came_from, 0, spent, (MadeOutput(1, "escrow", "other"),)
        )
        arrived = Move(
            txid,
            "c" * 64,
            900_000,
            now_s,
            SpentCoin(f"{order.id:064x}:0", 1, "escrow", "other"),
            int(vout),
            (),
            outputs,
        )
        return Evidence((arrived, bought), "vault", None)

    def look(self, *, after_s: float = 6.0, times: int = 1) -> Autolist | None:
        for _ in range(times):
            self.world.clock.advance(after_s)
            asyncio.run(self.lister.look())
        return newest(int(self.world.user.id), Wanted(side="buy"), 1)[0].autolist


def buys(world: World, config: BidConfig = TO_VAULT, item: str | None = ITEM, fee: int = 600) -> int:
    """The task of a bid of 75,000 that was filled."""
    task, bidder = world.begun(config)
    world.later(30, bidder)
    world.clock.advance(10)
    world.market.sales_[-1:] = [structs.replace(world.market.sell(75_000, buyer=KEYS.vault), inscription_id=item)]
    world.market.balance_sats -= 75_000 + fee
    world.later(20, bidder)
    return task


def autolists() -> list[Task]:
    return list(Task.select().where(Task.kind == "listing").order_by(Task.id))


PAYMENT_SCRIPT, VAULT_SCRIPT = script_by("p2wpkh", PAYMENT), script_by("p2tr", VAULT)
OWNERS_SCRIPT, SELLERS_SCRIPT = script_by("p2tr", ORDINALS), script_by("p2tr", STRANGER)
VENUES_SCRIPT = script_by("p2tr", VENUE)
SIGNED, KEY_PATH = bytes(71), (bytes(64),)
POSTAGE = 10_000
TIP, BEGAN_S = 900_000, 1_790_000_000
SATFLOW, ORDNET = "simulator", "simulator-ordnet"


def address_of(paid: bytes) -> str:
    return str(embit_script.Script(paid).address())


OWNER = address_of(OWNERS_SCRIPT)
BUYER = UserKeys(
    payment=address_of(PAYMENT_SCRIPT),
    payment_pubkey=PAYMENT.get_public_key().sec().hex(),
    vault=address_of(VAULT_SCRIPT),
    vault_pubkey=VAULT.get_public_key().xonly().hex(),
)


@dataclass(frozen=True)
class Script:
    """A script of several keys; `witness` opens the output `paid_to`."""

    paid_to: bytes
    witness: tuple[bytes, ...]


def multisig(*keys: PrivateKey) -> Script:
    """The bidding wallet of Satflow: two of two, in P2WSH."""
    made = b"\x52" + b"".join(with_size(key.get_public_key().sec()) for key in keys) + b"\x52\xae"
    return Script(b"\x00\x20" + hashlib.sha256(made).digest(), (b"", SIGNED, SIGNED, made))


def leaf(made: bytes, internal: PrivateKey, *, before: tuple[bytes, ...]) -> Script:
    """A taproot output with one leaf, opened by it."""
    root = bytes(tagged_hash("TapLeaf", b"\xc0" + with_size(made)))
    key = internal.get_public_key().xonly()
    paid_to = b"\x51\x20" + bytes(PublicKey.from_xonly(key).taproot_tweak(root).xonly())
    return Script(paid_to, (*before, made, b"\xc0" + key))


def leaf_wallet() -> Script:
    keys = [key.get_public_key().xonly() for key in (PAYMENT, VENUE)]
    made = with_size(keys[0]) + b"\xac" + with_size(keys[1]) + b"\xba\x52\x9c"
    return leaf(made, VENUE, before=(bytes(64), bytes(64)))


WALLETS = {"2of2": multisig(PAYMENT, VENUE), "leaf": leaf_wallet(), "another user's": multisig(STRANGER, VENUE)}


@dataclass
class Kept:
    raw: bytes
    witnesses: tuple[tuple[bytes, ...], ...]
    time_s: int
    height: int
    block: str | None  # None: it waits


@dataclass(frozen=True)
class Truth:
    """What really brought an item: `order` is the bid that was sold into (None: no bid), `left` what it cost."""

    order: int | None
    left: int
    arrived_s: int
    is_alone: bool = True


@dataclass
class PlayChain:
    """Transactions by txid, and the output that each item lies on."""

    clock_s: int = BEGAN_S
    kept: dict[str, Kept] = field(default_factory=dict)
    at: dict[str, str] = field(default_factory=dict)
    values: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    truth: dict[str, Truth] = field(default_factory=dict)
    collections: dict[str, str] = field(default_factory=dict)
    is_away: bool = False
    knows_offsets: bool = True
    number: int = 0

    def send(self, spends: list[tuple[str, tuple[bytes, ...]]], pays: list[tuple[int, bytes]]) -> str:
        """Puts a transaction into a block of now; returns its txid."""
        self.number += 1
        inputs = b"".join(
            bytes.fromhex(each.split(":")[0])[::-1] + struct.pack("<I", int(each.split(":")[1])) + b"\0" + b"\xff" * 4
            for each, _ in spends
        )
        outputs = b"".join(output(*pay) for pay in pays)
        raw = b"\x02\0\0\0" + bytes([len(spends)]) + inputs + bytes([len(pays)]) + outputs
        raw += struct.pack("<I", self.number)  # its locktime, which makes each transaction another one
        txid = hashlib.sha256(hashlib.sha256(raw).digest()).digest()[::-1].hex()
        height = TIP + (self.clock_s - BEGAN_S) // 600
        block = hashlib.sha256(f"block {height}".encode()).hexdigest()
        self.kept[txid] = Kept(raw, tuple(witness for _, witness in spends), self.clock_s, height, block)
        self.values |= {f"{txid}:{at}": pay for at, pay in enumerate(pays)}
        return txid

    def coin(self, sats: int, paid: bytes) -> str:
        """Makes a coin of an address from a block's reward."""
        return f"{self.send([('00' * 32 + ':4294967295', ())], [(sats, paid)])}:0"

    def inscribed(self, item: str, paid: bytes = SELLERS_SCRIPT, sats: int = POSTAGE) -> str:
        """Puts an item at an address."""
        self.at[item] = f"{self.send([(self.coin(sats, paid), KEY_PATH)], [(sats, paid)])}:0"
        return self.at[item]

    def deposit(self, item: str, *, fee_from: bytes = PAYMENT_SCRIPT, opened: tuple[bytes, ...] | None = None) -> None:
        """The owner brings an item of the owner's into the vault; `fee_from` pays the fee of it."""
        fee = self.coin(900_000, fee_from)
        witness = opened or (SIGNED, PAYMENT.get_public_key().sec())
        spends = [(self.inscribed(item, OWNERS_SCRIPT), KEY_PATH), (fee, witness)]
        txid = self.send(spends, [(POSTAGE, VAULT_SCRIPT), (899_000, fee_from)])
        self.at[item] = f"{txid}:0"
        self.truth[item] = Truth(None, 0, self.clock_s)

    def comes_back(self, item: str) -> None:
        """The owner takes an item out of the vault, and puts it back."""
        for paid in (OWNERS_SCRIPT, VAULT_SCRIPT):
            self.at[item] = f"{self.send([(self.at[item], KEY_PATH)], [(POSTAGE, paid)])}:0"
        self.truth[item] = Truth(None, 0, self.clock_s)

    def bought_from_wallet(
        self,
        item: str,
        order: int | None,
        price: int,
        *,
        fee: int = 600,
        wallet: Script = WALLETS["2of2"],
        receive: bytes = VAULT_SCRIPT,
        forwards: bool = True,
        with_item: str | None = None,
    ) -> str:
        """A sale into a bid at Satflow: through the market's script, or straight. Returns the buying txid.

        `with_item` is bought in the same transaction for the same price.
        """
        items = [item, *([with_item] if with_item else [])]
        coins = [self.inscribed(each) for each in items]
        paid, held = price * len(items), price * len(items) + 1_000_000
        money = self.coin(held + fee, wallet.paid_to)
        first = VENUES_SCRIPT if forwards else receive
        pays = [*((POSTAGE, first) for _ in items), (paid, SELLERS_SCRIPT), (held - paid, wallet.paid_to)]
        txid = self.send([*((coin, KEY_PATH) for coin in coins), (money, wallet.witness)], pays)
        for at, each in enumerate(items):
            self.at[each] = f"{txid}:{at}"
            if forwards:
                self.at[each] = f"{self.send([(self.at[each], KEY_PATH)], [(POSTAGE, receive)])}:0"
            self.truth[each] = Truth(order, price + fee, self.clock_s, is_alone=len(items) == 1)
        return txid

    def bought_from_escrow(
        self, item: str, order: int | None, price: int, coins: tuple[str, ...], *, key: PrivateKey = VAULT
    ) -> str:
        """A sale into a bid at ord.net, whose escrow the order's `coins` fund. Returns the buying txid."""
        made = Leaf(key.get_public_key().xonly(), price=price, receive=VAULT_SCRIPT).script()
        escrow = leaf(made, key, before=(bytes(64),) * 3 + (b"", b"\x2f" * 32))
        held = sum(self.values[coin][0] for coin in coins)
        signed = (SIGNED, PAYMENT.get_public_key().sec())
        funding = [(price, escrow.paid_to), (0, b"\x6a"), (held - price, PAYMENT_SCRIPT)]
        parent = self.send([(coin, signed) for coin in coins], funding)
        spends = [(self.inscribed(item), KEY_PATH), (f"{parent}:0", escrow.witness)]
        pays = [(POSTAGE, VAULT_SCRIPT), (price - 500, SELLERS_SCRIPT), (500, VENUES_SCRIPT)]
        txid = self.send(spends, pays)
        self.at[item] = f"{txid}:0"
        self.truth[item] = Truth(order, price, self.clock_s)
        return txid

    def moves_block(self, txid: str) -> None:
        """A reorganisation: the transaction is in another block from now on."""
        self.kept[txid].block = hashlib.sha256(f"other {self.kept[txid].block}".encode()).hexdigest()

    def unconfirms(self, txid: str) -> None:
        """A reorganisation: the transaction waits again."""
        self.kept[txid].block = None

    # The clients' questions

    def transaction(self, txid: str, max_age_s: float) -> TransactionFacts:
        self._here()
        found = self.kept.get(txid)
        if found is None:
            raise NotFound("Transaction not found")
        witnesses = tuple(tuple(item.hex() for item in witness) for witness in found.witnesses)
        in_block = (found.height, found.block, found.time_s) if found.block else (None, None, None)
        tip = TIP + (self.clock_s - BEGAN_S) // 600
        return TransactionFacts(found.raw.hex(), witnesses, found.block is not None, *in_block, tip)

    def outpoint(self, outpoint: str, max_age_s: float) -> OutpointFacts:
        self._here()
        held = tuple(sorted(item for item, at in self.at.items() if at == outpoint))
        facts = OutpointFacts(outpoint, *(None,) * 4, held, (), TIP, TIP, None)  # type: ignore[arg-type]
        is_there = self.kept[outpoint.split(":")[0]].block is not None
        return structs.replace(
            facts, is_unspent=True, is_confirmed=is_there, item_offset=0 if held and self.knows_offsets else None
        )

    def whereabouts(self, inscription_id: str, max_age_s: float) -> Whereabouts:
        self._here()
        at = self.at.get(inscription_id)
        if at is None:
            raise NotFound(f"inscription {inscription_id} not found")
        value, paid = self.values[at]
        return Whereabouts(inscription_id, at, address_of(paid), value, 1)

    def item(self, inscription_id: str, max_age_s: float) -> Item:
        if inscription_id not in self.collections:
            raise NotFound("not for sale here")
        return Item(inscription_id, listed=False, collection_id=self.collections[inscription_id])

    def _here(self) -> None:
        if self.is_away:
            raise Unavailable("the server does not answer")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class HouseFacts(PurchaseFacts):
    """The code's own questions, answered by the play chain."""

    def __init__(self, chain: PlayChain) -> None:
        super().__init__(Settings(data_dir=Path("unused")))
        self._signer: Any = SimpleNamespace(addresses=lambda address: BUYER)
        self.chain = chain

    def _facts(self) -> Any:
        return self.chain

    def _market(self, venue: str) -> Any:
        return self.chain
