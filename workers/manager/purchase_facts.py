"""The facts that prove what a bid bought: from the process facts, which no marketplace's answers reach.

The gateway is asked for one thing alone, the item's collection, and can only refuse by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from core.settings import Settings
from markets.base import NotFound, NotSupported, VenueError
from markets.items import whereabouts
from markets.items.whereabouts import LocatedInscription
from markets.market_client import MarketClient
from markets.venues import capabilities
from models.ledger.states import Order
from models.users import User
from strategy.fault_codes import Step
from strategy.purchases import Move, NotShown, NotYetShown, ProvenPurchase
from wallet.protocol import UserKeys
from wallet.signer_client import SignerClient, SignerError
from workers.faults import Faults
from workers.manager.item_moves import Ours, last_moves, script_at, scripts_of

PATIENCE_S = 10.0  # for an answer of signer, facts or gateway
CHAIN_AGE_S = 2.0  # the oldest state of a transaction that counts here


@dataclass(frozen=True, slots=True)
class Found:
    """A bought inscription's place, its owner's vault, and the fault that kept them from being found."""

    located: LocatedInscription
    vault: str | None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """The item's last moves, newest first, the script (hex) of the order's address, and the collection if known."""

    moves: tuple[Move, ...]
    receive: str
    collection: str | None = None


class Standing(NamedTuple):
    """A proof's fate: the reason why it is void, or the depth of its blocks."""

    void: str | None
    depth: int


class PurchaseFacts:
    """Asks signer, facts and gateway about purchases. Called in threads, one call at a time."""

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
            found = whereabouts.locate(facts, item, place, None, 0.0, notes, frozenset(keys.escrows))
        return Found(found, keys.vault, notes.text)

    def evidence(self, order: Order, user: User, outpoint: str) -> Evidence:
        """Reads how the order's inscription came to `outpoint`. Raises NotShown, NotYetShown, and VenueError or
        SignerError where something does not answer.
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
        """Reads whether the proof's transactions are still in its blocks. Raises NotYetShown, and VenueError."""
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
    """Returns the user's scripts, and the coins behind the order. Raises NotShown where they are not known."""
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
