"""The chain data that prove a bid's purchase, from the facts process, which marketplaces' answers never reach.

The gateway is asked only for the item's collection, which can only lead to a refusal. The transactions that last moved
the item are read from the chain and judged by our own keys, without any marketplace's data. A transaction's bytes hash
to its id. A coin's script comes from the transaction that made it, and the witness that spends the coin shows the keys
in that script.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from core.settings import Settings
from markets import items
from markets.base import NotFound, NotSupported, TransactionFacts, Unavailable, VenueError
from markets.client import MarketClient
from markets.items import LocatedInscription
from markets.venues import Backing, capabilities
from models.ledger.states import Order
from models.users import User
from strategy.purchases import MOST_MOVES, Holder, MadeOutput, Move, NotShown, NotYetShown, ProvenPurchase, SpentCoin
from strategy.reasons import Step
from wallet.address import AddressError, parse
from wallet.protocol import UserKeys
from wallet.psbt.script import (
    TAPSCRIPT,
    OfferLeaf,
    WalletScript,
    has_key,
    leaf_hash,
    output_script,
    p2wsh,
    read_leaf,
    redeem_script,
    script_of,
)
from wallet.psbt.transaction import Outpoint, Transaction, TxOutput, WireError, decode_unsigned
from wallet.signer_client import SignerClient, SignerError
from workers.context import Faults

MOST_READS = 40  # transactions for one item; a purchase needs a handful
_NO_TXID = bytes(32)  # the input of a block's reward
_CONTROL_BLOCK = 33  # bytes, plus 32 for each step

ReadTransaction = Callable[[str], TransactionFacts]


class Ours(Struct, frozen=True):
    """The user's scripts and keys. `keys` (33 bytes) are payment and vault; `payment` and `receivers` are scripts.

    `backing` is the venue's kind of coins behind a bid. `coins` (txid:vout) are those of this bid, `price_sats` and
    `receive` (a script) its terms.
    """

    keys: tuple[bytes, bytes]
    payment: bytes
    receivers: frozenset[bytes]
    backing: Backing
    coins: frozenset[str]
    price_sats: int
    receive: bytes


class _Read(NamedTuple):
    facts: TransactionFacts
    transaction: Transaction


class _Opened(NamedTuple):
    """The script that a witness shows for its coin; `paid_to` is the output's script that commits to it."""

    paid_to: bytes
    offer: OfferLeaf | None = None
    is_key_alone: bool = False


def scripts_of(addresses: Collection[str]) -> frozenset[bytes]:
    """Returns the scripts of these texts, except those that are not addresses."""
    return frozenset(script for script in map(script_at, addresses) if script is not None)


def script_at(address: str) -> bytes | None:
    """Returns the script of an address; None for another text, or a kind of address that is never paid here."""
    try:
        return script_of(parse(address))
    except AddressError:
        return None


def last_moves(read: ReadTransaction, outpoint: str, offset: int | None, ours: Ours) -> list[Move]:
    """Returns the item's moves up to the output `outpoint`, newest first, as far back as a purchase may be.

    `offset` is the item's place within that output, None if unknown. Raises NotShown, and VenueError if the chain does
    not answer.
    """
    return _Moves(read, ours).up_to(Outpoint.parse(outpoint), offset)


class _Moves:
    def __init__(self, read: ReadTransaction, ours: Ours) -> None:
        self._ask = read
        self._ours = ours
        self._found: dict[bytes, _Read] = {}

    def up_to(self, outpoint: Outpoint, offset: int | None) -> list[Move]:
        moves: list[Move] = []
        while len(moves) < MOST_MOVES:
            move, outpoint, offset = self._move(outpoint, offset)
            moves.append(move)
            if move.is_paid_by_backing or move.item_from.holder != "other" or outpoint.txid == _NO_TXID:
                break
        return moves

    def _move(self, outpoint: Outpoint, offset: int | None) -> tuple[Move, Outpoint, int | None]:
        """Returns the transaction that made an output, and the item's previous output with its place in it."""
        facts, transaction = self._read(outpoint.txid)
        at, place = self._source(transaction, outpoint.vout, offset)
        came_from = transaction.inputs[at].outpoint
        spent = [coin for each, coin in self._own_coins(facts, transaction) if each != at]
        is_in_block = facts.is_confirmed is True
        move = Move(
            txid=_hex(outpoint.txid),
            block=facts.block if is_in_block else None,
            height=facts.height if is_in_block else None,
            time_s=facts.time_s if is_in_block else None,
            item_from=self._item_coin(facts, transaction, at),
            item_to=outpoint.vout,
            spent=tuple(spent),
            outputs=tuple(map(self._output, transaction.outputs)),
        )
        return move, came_from, place

    def _source(self, transaction: Transaction, vout: int, offset: int | None) -> tuple[int, int | None]:
        """Returns the input by which the item arrived, and its place there; a transaction keeps the order of sats."""
        if vout >= len(transaction.outputs):
            raise NotShown("its output is not in its transaction")
        first = sum(each.value for each in transaction.outputs[:vout])
        last = first + (transaction.outputs[vout].value - 1 if offset is None else offset)
        first += offset or 0
        passed = 0
        for at, item in enumerate(transaction.inputs):
            if item.outpoint.txid == _NO_TXID:
                return at, None
            value = self._spent(item.outpoint).value
            if first < passed + value:
                if last >= passed + value:
                    raise NotShown("no index says by which input of its transaction it came")
                return at, None if offset is None else first - passed
            passed += value
        raise NotShown("it came out of the fee of a transaction")

    def _item_coin(self, facts: TransactionFacts, transaction: Transaction, at: int) -> SpentCoin:
        outpoint = transaction.inputs[at].outpoint
        if outpoint.txid == _NO_TXID:
            return SpentCoin(str(outpoint), 0, "", "other")
        spent = self._spent(outpoint)
        holder: Holder = "other"
        if spent.script == self._ours.payment or self._opened(facts.witnesses[at]):
            holder = "own"
        elif spent.script in self._ours.receivers:
            holder = "receiver"
        return SpentCoin(str(outpoint), spent.value, spent.script.hex(), holder)

    def _own_coins(self, facts: TransactionFacts, transaction: Transaction) -> Iterator[tuple[int, SpentCoin]]:
        for at, item in enumerate(transaction.inputs):
            opened = self._opened(facts.witnesses[at])
            if opened is None or item.outpoint.txid == _NO_TXID:
                continue
            spent = self._spent(item.outpoint)
            if spent.script != opened.paid_to:
                raise Unavailable("a witness does not open the output that it spends")
            yield at, self._own_coin(item.outpoint, spent, opened)

    def _own_coin(self, outpoint: Outpoint, spent: TxOutput, opened: _Opened) -> SpentCoin:
        """Judges our coin: whether it backs this bid, and how many sats left our scripts for it.

        The signer signs an offer only on unspent coins, which are among the bid's coins. So an escrow funded by all of
        the bid's coins is newer than the bid.
        """
        ours, is_backing, is_newer, sats = self._ours, False, False, spent.value
        if ours.backing == "bidding_wallet":
            is_backing = opened.offer is None and not opened.is_key_alone
        elif (offer := opened.offer) is not None:
            funding = self._read(outpoint.txid).transaction
            coins = {str(item.outpoint) for item in funding.inputs}
            is_meant = (offer.price_sats, offer.receive_script) == (ours.price_sats, ours.receive)
            is_backing = is_meant and coins <= ours.coins
            is_newer = is_backing and coins == ours.coins
            if is_backing:  # the coins chosen for this bid paid for it, and for the fee of its escrow
                change = sum(each.value for each in funding.outputs if each.script == ours.payment)
                sats = sum(self._spent(item.outpoint).value for item in funding.inputs) - change
        return SpentCoin(str(outpoint), sats, spent.script.hex(), "backing" if is_backing else "own", is_newer)

    def _opened(self, witness: Sequence[str]) -> _Opened | None:
        """Returns the script that a witness shows, if it has one of our keys, otherwise None."""
        items = [bytes.fromhex(item) for item in witness]
        payment = self._ours.keys[0]
        if len(items) == 2 and items[1] == payment:
            return _Opened(redeem_script(payment), is_key_alone=True)
        try:
            return _leaf(items, self._ours.keys) or _witness_script(items, payment)
        except WireError:
            return None

    def _output(self, output: TxOutput) -> MadeOutput:
        holder: Holder = "other"
        if output.script == self._ours.payment:
            holder = "own"
        elif output.script in self._ours.receivers:
            holder = "receiver"
        return MadeOutput(output.value, output.script.hex(), holder)

    def _spent(self, outpoint: Outpoint) -> TxOutput:
        made = self._read(outpoint.txid).transaction.outputs
        if outpoint.vout >= len(made):
            raise Unavailable("a transaction spends an output that there is not")
        return made[outpoint.vout]

    def _read(self, txid: bytes) -> _Read:
        found = self._found.get(txid)
        if found is None:
            if len(self._found) >= MOST_READS:
                raise NotShown("too many transactions would have to be read")
            facts = self._ask(_hex(txid))
            try:
                transaction = decode_unsigned(bytes.fromhex(facts.transaction))
            except ValueError as error:
                raise Unavailable(f"failed to understand a transaction: {error}") from error
            if transaction.txid() != txid or len(facts.witnesses) != len(transaction.inputs):
                raise Unavailable("a transaction is not the one that was asked for")
            found = self._found[txid] = _Read(facts, transaction)
        return found


def _witness_script(items: Sequence[bytes], payment: bytes) -> _Opened | None:
    """Reads the witness of a P2WSH output that needs our payment key's signature and others; None for any other."""
    if len(items) < 3 or not items[-1]:
        return None
    found = WalletScript(items[-1], p2wsh(items[-1]))
    return _Opened(found.paid_to) if has_key(found, payment) else None


def _leaf(items: Sequence[bytes], keys: tuple[bytes, ...]) -> _Opened | None:
    """Reads the witness of a taproot leaf with one of our keys; None for any other."""
    *_, script, control_block = items if len(items) > 2 else [b"", b""]
    if len(control_block) % 32 != 1 or len(control_block) < _CONTROL_BLOCK or control_block[0] & 0xFE != TAPSCRIPT:
        return None
    found = WalletScript(script, output_script(leaf_hash(script), control_block), control_block)
    try:
        offer = read_leaf(script)
    except WireError:
        offer = None
    # An offer's buyer may be either key. Any other leaf is a bidding wallet's, if it has the payment key.
    is_ours = offer.buyer in {key[1:] for key in keys} if offer else has_key(found, keys[0])
    return _Opened(found.paid_to, offer) if is_ours else None


def _hex(txid: bytes) -> str:
    return txid[::-1].hex()


PATIENCE_S = 10.0  # for an answer of signer, facts or gateway
CHAIN_AGE_S = 2.0  # the maximum age of a transaction's state


class Found(Struct, frozen=True):
    """A bought inscription's place, its owner's vault, and the fault that prevented the search, if any."""

    located: LocatedInscription
    vault: str | None
    fault: str | None = None


class Evidence(Struct, frozen=True):
    """The item's last moves, newest first, the script (hex) of the order's address, and the collection if known."""

    moves: tuple[Move, ...]
    receive: str
    collection: str | None = None


class Standing(NamedTuple):
    """A proof's state: the reason why it is void, or the depth of its blocks."""

    void: str | None
    depth: int


class PurchaseFacts:
    """Queries signer, facts and gateway about purchases. Called in threads, one call at a time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._signer = SignerClient(settings.signer_socket, PATIENCE_S)

    def find(self, order: Order, user: User) -> Found:
        """Looks for the order's inscription at the address that the order names."""
        notes = Faults()
        try:
            keys = self._signer.addresses(str(user.address))
        except SignerError as error:
            return Found(LocatedInscription("unknown"), None, f"failed to get the vault's address: {error}")
        with self._facts() as facts:
            item, place = str(order.inscription_id), str(order.receive)
            found = items.locate(facts, item, place, None, 0.0, notes, frozenset(keys.escrows))
        return Found(found, keys.vault, notes.text)

    def evidence(self, order: Order, user: User, outpoint: str) -> Evidence:
        """Reads how the order's inscription arrived at `outpoint`. Raises NotShown, NotYetShown, and VenueError or
        SignerError if a peer does not answer.
        """
        item, keys = str(order.inscription_id), self._signer.addresses(str(user.address))
        ours = _ours(order, user, keys)
        with self._facts() as facts:
            seen = facts.outpoint(outpoint, CHAIN_AGE_S)
            if seen.inscriptions is None:
                raise NotYetShown("no index says what else lies on its output")
            if seen.inscriptions != (item,):
                raise NotShown("it does not lie alone on its output")
            moves = last_moves(lambda txid: facts.transaction(txid, CHAIN_AGE_S), outpoint, seen.item_offset, ours)
        with self._market(str(order.venue)) as market:
            try:
                collection = market.item(item, CHAIN_AGE_S).collection_id
            except (NotFound, NotSupported):
                collection = None  # many marketplaces know it only while the item is for sale there
        return Evidence(tuple(moves), ours.receive.hex(), collection)

    def standing(self, proof: ProvenPurchase) -> Standing:
        """Reads whether the proof's transactions are still in its blocks. Raises NotYetShown and VenueError."""
        blocks = {proof.txid: proof.block, proof.outpoint.partition(":")[0]: proof.arrival_block}
        depths = []
        with self._facts() as facts:
            for txid, block in blocks.items():
                try:
                    now = facts.transaction(txid, CHAIN_AGE_S)
                except NotFound:
                    return Standing(f"transaction {txid} left the network", 0)
                if now.is_confirmed is False:
                    return Standing(f"transaction {txid} left its block", 0)
                if now.is_confirmed is None or now.block is None or now.height is None or now.tip_height is None:
                    raise NotYetShown("the chain does not say where its transaction is")
                if now.block != block:
                    return Standing(f"transaction {txid} is in another block", 0)
                depths.append(now.tip_height - now.height + 1)
        return Standing(None, min(depths))

    def _facts(self) -> MarketClient:
        return MarketClient(self._settings.facts_socket, PATIENCE_S)

    def _market(self, venue: str) -> MarketClient:
        return MarketClient(self._settings.gateway_socket, PATIENCE_S, venue)


def _ours(order: Order, user: User, keys: UserKeys) -> Ours:
    """Returns the user's scripts, and the coins behind the order. Raises NotShown if they are not known."""
    payment, receive = script_at(keys.payment), script_at(str(order.receive))
    try:
        backing = capabilities(order.venue).backing
    except VenueError:
        backing = None
    if backing is None:
        raise NotShown(f"purchases at {order.venue} cannot be proved")
    if payment is None or receive is None or str(order.wallet) != keys.payment:
        raise NotShown("the bid was not made by today's keys, or names no address")
    own = {str(user.address), str(user.ordinals_address), str(order.receive), keys.vault, *keys.escrows}
    vault_key = b"\x02" + bytes.fromhex(keys.vault_pubkey)
    return Ours(
        keys=(bytes.fromhex(keys.payment_pubkey), vault_key),
        payment=payment,
        receivers=scripts_of(own),
        backing=backing,
        coins=frozenset(str(order.coins).split()),
        price_sats=int(order.price_sats),
        receive=receive,
    )


def note_of(error: VenueError | SignerError) -> str:
    """Returns why facts are missing, in words for the fill's owner."""
    notes = Faults()
    notes.add(Step.FIND_ITEM, "read how it was bought", error)
    return notes.text or str(error)
