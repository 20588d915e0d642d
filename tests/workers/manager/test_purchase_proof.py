"""The proof of a purchase by the chain: honest sales of every venue prove themselves, and nothing else does."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_type_hints

import pytest

from markets.base import Unavailable
from models.ledger import purchases
from models.ledger.states import Order
from strategy.purchases import BLOCK_CLOCK_S, Claim, NotShown, NotYetShown, ProvenPurchase, prove
from tests.shapes import replace
from tests.wallet.listings import PAYMENT, VAULT, VENUE, with_size
from tests.workers.manager.purchase_house import (
    BEGAN_S,
    KEYS,
    ORDNET,
    OWNER,
    OWNERS_SCRIPT,
    PAYMENT_SCRIPT,
    SATFLOW,
    SELLERS_SCRIPT,
    WALLETS,
    HouseFacts,
    PlayChain,
)
from workers.manager import purchase_facts

ITEM, OTHER = "ab" * 32 + "i0", "cd" * 32 + "i0"
USER: Any = SimpleNamespace(address=OWNER, ordinals_address=OWNER)


@pytest.fixture
def chain() -> PlayChain:
    return PlayChain()


def order(price: int = 75_000, *, venue: str = SATFLOW, coins: tuple[str, ...] = (), placed_s: int = BEGAN_S) -> Order:
    return Order(
        id=1, venue=venue, wallet=KEYS.payment, receive=KEYS.vault, price_sats=price, inscription_id=ITEM,
        coins=" ".join(coins), created_ms=placed_s * 1000 + 900, slug="cats",
    )  # fmt: skip


def proof(chain: PlayChain, bid: Order) -> ProvenPurchase:
    evidence = HouseFacts(chain).evidence(bid, USER, chain.at[ITEM])
    claim = Claim(bid.id, ITEM, bid.price_sats, bid.created_ms, evidence.receive)
    return prove(claim, evidence.moves)


@pytest.mark.parametrize("forwards", [True, False])
@pytest.mark.parametrize("kind", ["2of2", "leaf"])
def test_a_sale_out_of_the_bidding_wallet_is_proved_at_what_left_it(
    chain: PlayChain, kind: str, forwards: bool
) -> None:
    txid = chain.bought_from_wallet(ITEM, 1, 75_000, wallet=WALLETS[kind], forwards=forwards)
    found = proof(chain, order())
    assert (found.txid, found.cost_sats, found.outpoint) == (txid, 75_600, chain.at[ITEM])
    assert found.block == chain.kept[txid].block


@pytest.mark.parametrize("key", [VAULT, PAYMENT], ids=["vault", "payment"])
def test_a_sale_out_of_the_escrow_of_a_bid_is_proved(chain: PlayChain, key: Any) -> None:
    coins = chain.coin(50_000, PAYMENT_SCRIPT), chain.coin(40_000, PAYMENT_SCRIPT)
    txid = chain.bought_from_escrow(ITEM, 1, 75_000, coins, key=key)
    found = proof(chain, order(venue=ORDNET, coins=coins))
    assert (found.txid, found.cost_sats) == (txid, 75_000)


def test_a_sale_for_more_proves_at_its_own_cost_and_one_for_less_not_at_all(chain: PlayChain) -> None:
    """Two true sales out of one wallet, ascribed to the wrong bids."""
    chain.bought_from_wallet(ITEM, 2, 100_000)
    assert proof(chain, order(75_000)).cost_sats == 100_600
    with pytest.raises(NotShown, match="only 100600 sats left our addresses for it, and the bid was 120000"):
        proof(chain, order(120_000))


def test_what_lay_in_the_vault_before_is_not_proved(chain: PlayChain) -> None:
    chain.deposit(ITEM)
    with pytest.raises(NotShown, match="spends the coins behind this bid"):
        proof(chain, order())


def test_an_owners_deposit_is_not_proved_even_if_the_bidding_wallet_pays_for_it(chain: PlayChain) -> None:
    wallet = WALLETS["2of2"]
    chain.deposit(ITEM, fee_from=wallet.paid_to, opened=wallet.witness)
    with pytest.raises(NotShown, match="an address of the user's own"):
        proof(chain, order(500))


def test_a_purchase_from_before_the_bid_is_not_proved(chain: PlayChain) -> None:
    chain.bought_from_wallet(ITEM, None, 75_000)
    assert proof(chain, order(placed_s=BEGAN_S))
    with pytest.raises(NotShown, match="before this bid was placed"):
        proof(chain, order(placed_s=BEGAN_S + 1))


def test_an_escrow_that_is_newer_than_its_bid_is_proved_though_its_blocks_clock_is_slow(chain: PlayChain) -> None:
    coins = chain.coin(50_000, PAYMENT_SCRIPT), chain.coin(40_000, PAYMENT_SCRIPT)
    chain.bought_from_escrow(ITEM, 1, 75_000, coins)
    slow = BEGAN_S + BLOCK_CLOCK_S
    assert proof(chain, order(venue=ORDNET, coins=coins, placed_s=slow)).cost_sats == 75_000
    with pytest.raises(NotShown, match="before this bid was placed"):
        proof(chain, order(venue=ORDNET, coins=coins, placed_s=slow + 1))


def test_an_escrow_without_all_of_its_bids_coins_may_be_older_than_the_bid(chain: PlayChain) -> None:
    """The signer looks only at coins that are spent, so one that was spent before may be among a bid's coins."""
    old, new = chain.coin(90_000, PAYMENT_SCRIPT), chain.coin(90_000, PAYMENT_SCRIPT)
    chain.bought_from_escrow(ITEM, 2, 75_000, (old,))
    assert proof(chain, order(venue=ORDNET, coins=(old, new)))
    with pytest.raises(NotShown, match="before this bid was placed"):
        proof(chain, order(venue=ORDNET, coins=(old, new), placed_s=BEGAN_S + 1))


def test_another_bids_escrow_or_another_users_wallet_proves_nothing(chain: PlayChain) -> None:
    mine, others = chain.coin(90_000, PAYMENT_SCRIPT), chain.coin(90_000, PAYMENT_SCRIPT)
    chain.bought_from_escrow(ITEM, 2, 75_000, (others,))
    for bid in (order(venue=ORDNET, coins=(mine,)), order(80_000, venue=ORDNET, coins=(others,)), order()):
        with pytest.raises(NotShown, match="spends the coins behind this bid"):
            proof(chain, bid)
    chain.bought_from_wallet(ITEM, 2, 75_000, wallet=WALLETS["another user's"])
    with pytest.raises(NotShown, match="spends the coins behind this bid"):
        proof(chain, order())


@pytest.mark.parametrize("forwards", [True, False])
def test_a_transaction_that_brings_two_items_gives_neither_a_cost(chain: PlayChain, forwards: bool) -> None:
    chain.bought_from_wallet(ITEM, 1, 75_000, with_item=OTHER, forwards=forwards)
    with pytest.raises(NotShown, match="more than one item"):
        proof(chain, order())


def test_what_went_through_the_owners_wallet_is_not_proved(chain: PlayChain) -> None:
    chain.bought_from_wallet(ITEM, 1, 75_000, receive=OWNERS_SCRIPT)
    chain.at[ITEM] = (
        f"{chain.send([(chain.at[ITEM], (bytes(64),))], [(10_000, purchase_facts.script_at(KEYS.vault) or b'')])}:0"
    )
    with pytest.raises(NotShown):
        proof(chain, order())


def test_facts_that_are_away_and_missing_blocks_rule_nothing_out(chain: PlayChain) -> None:
    txid = chain.bought_from_wallet(ITEM, 1, 75_000)
    chain.unconfirms(txid)
    with pytest.raises(NotYetShown, match="in no block yet"):
        proof(chain, order())
    chain.is_away = True
    with pytest.raises(Unavailable):
        proof(chain, order())


def test_a_made_up_witness_proves_nothing(chain: PlayChain) -> None:
    """The witness names a script of our key, and the coin that it spends is another user's."""
    txid = chain.bought_from_wallet(ITEM, 1, 75_000, wallet=WALLETS["another user's"], forwards=False)
    chain.kept[txid].witnesses = ((bytes(64),), WALLETS["2of2"].witness)
    with pytest.raises(Unavailable, match="does not open the output"):
        proof(chain, order())


def test_change_to_a_script_that_the_venue_opens_alone_lowers_no_cost(chain: PlayChain) -> None:
    """Our key is in it, and any witness of the venue's opens it."""
    script = with_size(PAYMENT.get_public_key().sec()) + b"\x75" + with_size(VENUE.get_public_key().sec()) + b"\xac"
    theirs = b"\x00\x20" + hashlib.sha256(script).digest()
    wallet, item = WALLETS["2of2"], chain.inscribed(ITEM)
    coins = chain.coin(400_000, wallet.paid_to), chain.coin(1_000, theirs)
    spends = [(item, (bytes(64),)), (coins[0], wallet.witness), (coins[1], (b"", bytes(71), script))]
    paid = purchase_facts.script_at(KEYS.vault) or b""
    chain.at[ITEM] = f"{chain.send(spends, [(10_000, paid), (75_000, SELLERS_SCRIPT), (325_000, theirs)])}:0"
    assert proof(chain, order(75_000)).cost_sats == 400_000


def test_without_an_offset_the_whole_output_must_come_from_one_input(chain: PlayChain) -> None:
    chain.bought_from_wallet(ITEM, 1, 75_000)
    chain.knows_offsets = False
    assert proof(chain, order()).cost_sats == 75_600
    both = chain.inscribed(OTHER, sats=600), chain.coin(9_400, WALLETS["2of2"].paid_to)
    spends = [(both[0], (bytes(64),)), (both[1], WALLETS["2of2"].witness)]
    chain.at = {ITEM: f"{chain.send(spends, [(10_000, purchase_facts.script_at(KEYS.vault) or b'')])}:0"}
    with pytest.raises(NotShown, match="no index says by which input"):
        proof(chain, order(9_000))
    chain.knows_offsets = True
    assert proof(chain, order(9_000)).cost_sats == 9_400


def test_a_venue_that_declares_no_backing_proves_nothing(chain: PlayChain) -> None:
    chain.bought_from_wallet(ITEM, 1, 75_000)
    with pytest.raises(NotShown, match="purchases at simulator-unisat cannot be proved"):
        proof(chain, order(venue="simulator-unisat"))
    with pytest.raises(NotShown, match="not made by today's keys"):
        proof(chain, Order(**order().__data__ | {"wallet": "bc1qother"}))


def test_a_proof_holds_while_its_transactions_are_in_their_blocks(chain: PlayChain) -> None:
    txid = chain.bought_from_wallet(ITEM, 1, 75_000)
    found, facts = proof(chain, order()), HouseFacts(chain)
    assert facts.standing(found) == (None, 1)
    chain.clock_s += 5 * 600
    assert facts.standing(found) == (None, 6)
    chain.moves_block(txid)
    assert "is in another block" in str(facts.standing(found).void)
    chain.unconfirms(chain.at[ITEM].split(":")[0])
    assert facts.standing(found).void
    del chain.kept[txid]
    assert "left the network" in str(facts.standing(replace(found, outpoint=f"{txid}:0")).void)


def test_only_the_rule_and_the_ledger_make_proofs() -> None:
    """A third place cannot leave the proof out: without one there is neither a task of a fill nor a cost."""
    root = Path(purchases.__file__).parents[2]
    folders = ("cli", "core", "gateway", "hooks", "markets", "models", "server", "strategy", "wallet", "workers")
    paths = [path for folder in folders for path in (root / folder).rglob("*.py")]
    making = {path.relative_to(root).as_posix() for path in paths if "ProvenPurchase(" in path.read_text()}
    assert making == {"strategy/purchases.py", "models/ledger/purchases.py"}
    wanted = [get_type_hints(asked)["proof"] for asked in (purchases.make_task, purchases.cost)]
    assert wanted == [ProvenPurchase, ProvenPurchase]
