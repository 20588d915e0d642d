"""What proves a purchase, and what takes the proof back."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_type_hints

import pytest

from markets.base import Unavailable
from markets.items import LocatedInscription
from models.ledger import purchases
from models.ledger.states import Order
from models.tasks import tasks
from strategy.config.listing import dump_listing_config, load_listing_config
from strategy.purchases import BLOCK_CLOCK_S, Claim, NotShown, NotYetShown, ProvenPurchase, prove
from tests.shapes import replace
from tests.wallet.listings import PAYMENT, VAULT, VENUE, with_size
from tests.worlds.purchases import (
    BEGAN_S,
    BUYER,
    HELD,
    ITEM,
    MARGIN,
    ORDNET,
    OTHER,
    OTHER_WALLET,
    OWNER,
    OWNERS_SCRIPT,
    PAYMENT_SCRIPT,
    RULE,
    SATFLOW,
    SELLERS_SCRIPT,
    TO_VAULT,
    WALLETS,
    Desk,
    HouseFacts,
    PlayChain,
    autolists,
    buys,
)
from tests.worlds.worker import World
from workers.manager import purchase_facts
from workers.manager.purchase_facts import Standing

PROVEN, UNPROVEN = "ab" * 32 + "i0", "cd" * 32 + "i0"
USER: Any = SimpleNamespace(address=OWNER, ordinals_address=OWNER)


@pytest.fixture
def chain() -> PlayChain:
    return PlayChain()


def order(price: int = 75_000, *, venue: str = SATFLOW, coins: tuple[str, ...] = (), placed_s: int = BEGAN_S) -> Order:
    return Order(
        id=1, venue=venue, wallet=BUYER.payment, receive=BUYER.vault, price_sats=price, inscription_id=PROVEN,
        coins=" ".join(coins), created_ms=placed_s * 1000 + 900, slug="cats",
    )  # fmt: skip


def proof(chain: PlayChain, bid: Order) -> ProvenPurchase:
    evidence = HouseFacts(chain).evidence(bid, USER, chain.at[PROVEN])
    claim = Claim(bid.id, PROVEN, bid.price_sats, bid.created_ms, evidence.receive)
    return prove(claim, evidence.moves)


@pytest.mark.parametrize("forwards", [True, False])
@pytest.mark.parametrize("kind", ["2of2", "leaf"])
def test_a_sale_out_of_the_bidding_wallet_is_proved_at_what_left_it(
    chain: PlayChain, kind: str, forwards: bool
) -> None:
    txid = chain.bought_from_wallet(PROVEN, 1, 75_000, wallet=WALLETS[kind], forwards=forwards)
    found = proof(chain, order())
    assert (found.txid, found.cost_sats, found.outpoint) == (txid, 75_600, chain.at[PROVEN])
    assert found.block == chain.kept[txid].block


@pytest.mark.parametrize("key", [VAULT, PAYMENT], ids=["vault", "payment"])
def test_a_sale_out_of_the_escrow_of_a_bid_is_proved(chain: PlayChain, key: Any) -> None:
    coins = chain.coin(50_000, PAYMENT_SCRIPT), chain.coin(40_000, PAYMENT_SCRIPT)
    txid = chain.bought_from_escrow(PROVEN, 1, 75_000, coins, key=key)
    found = proof(chain, order(venue=ORDNET, coins=coins))
    assert (found.txid, found.cost_sats) == (txid, 75_000)


def test_a_sale_for_more_proves_at_its_own_cost_and_one_for_less_not_at_all(chain: PlayChain) -> None:
    """Two true sales out of one wallet, ascribed to the wrong bids."""
    chain.bought_from_wallet(PROVEN, 2, 100_000)
    assert proof(chain, order(75_000)).cost_sats == 100_600
    with pytest.raises(NotShown, match="only 100600 sats left our addresses for it, and the bid was 120000"):
        proof(chain, order(120_000))


def test_what_lay_in_the_vault_before_is_not_proved(chain: PlayChain) -> None:
    chain.deposit(PROVEN)
    with pytest.raises(NotShown, match="spends the coins behind this bid"):
        proof(chain, order())


def test_an_owners_deposit_is_not_proved_even_if_the_bidding_wallet_pays_for_it(chain: PlayChain) -> None:
    wallet = WALLETS["2of2"]
    chain.deposit(PROVEN, fee_from=wallet.paid_to, opened=wallet.witness)
    with pytest.raises(NotShown, match="an address of the user's own"):
        proof(chain, order(500))


def test_a_purchase_from_before_the_bid_is_not_proved(chain: PlayChain) -> None:
    chain.bought_from_wallet(PROVEN, None, 75_000)
    assert proof(chain, order(placed_s=BEGAN_S))
    with pytest.raises(NotShown, match="before this bid was placed"):
        proof(chain, order(placed_s=BEGAN_S + 1))


def test_an_escrow_that_is_newer_than_its_bid_is_proved_though_its_blocks_clock_is_slow(chain: PlayChain) -> None:
    coins = chain.coin(50_000, PAYMENT_SCRIPT), chain.coin(40_000, PAYMENT_SCRIPT)
    chain.bought_from_escrow(PROVEN, 1, 75_000, coins)
    slow = BEGAN_S + BLOCK_CLOCK_S
    assert proof(chain, order(venue=ORDNET, coins=coins, placed_s=slow)).cost_sats == 75_000
    with pytest.raises(NotShown, match="before this bid was placed"):
        proof(chain, order(venue=ORDNET, coins=coins, placed_s=slow + 1))


def test_an_escrow_without_all_of_its_bids_coins_may_be_older_than_the_bid(chain: PlayChain) -> None:
    """The signer looks only at coins that are spent, so one that was spent before may be among a bid's coins."""
    old, new = chain.coin(90_000, PAYMENT_SCRIPT), chain.coin(90_000, PAYMENT_SCRIPT)
    chain.bought_from_escrow(PROVEN, 2, 75_000, (old,))
    assert proof(chain, order(venue=ORDNET, coins=(old, new)))
    with pytest.raises(NotShown, match="before this bid was placed"):
        proof(chain, order(venue=ORDNET, coins=(old, new), placed_s=BEGAN_S + 1))


def test_another_bids_escrow_or_another_users_wallet_proves_nothing(chain: PlayChain) -> None:
    mine, others = chain.coin(90_000, PAYMENT_SCRIPT), chain.coin(90_000, PAYMENT_SCRIPT)
    chain.bought_from_escrow(PROVEN, 2, 75_000, (others,))
    for bid in (order(venue=ORDNET, coins=(mine,)), order(80_000, venue=ORDNET, coins=(others,)), order()):
        with pytest.raises(NotShown, match="spends the coins behind this bid"):
            proof(chain, bid)
    chain.bought_from_wallet(PROVEN, 2, 75_000, wallet=WALLETS["another user's"])
    with pytest.raises(NotShown, match="spends the coins behind this bid"):
        proof(chain, order())


@pytest.mark.parametrize("forwards", [True, False])
def test_a_transaction_that_brings_two_items_gives_neither_a_cost(chain: PlayChain, forwards: bool) -> None:
    chain.bought_from_wallet(PROVEN, 1, 75_000, with_item=UNPROVEN, forwards=forwards)
    with pytest.raises(NotShown, match="more than one item"):
        proof(chain, order())


def test_what_went_through_the_owners_wallet_is_not_proved(chain: PlayChain) -> None:
    chain.bought_from_wallet(PROVEN, 1, 75_000, receive=OWNERS_SCRIPT)
    chain.at[PROVEN] = (
        f"{chain.send([(chain.at[PROVEN], (bytes(64),))], [(10_000, purchase_facts.script_at(BUYER.vault) or b'')])}:0"
    )
    with pytest.raises(NotShown):
        proof(chain, order())


def test_facts_that_are_away_and_missing_blocks_rule_nothing_out(chain: PlayChain) -> None:
    txid = chain.bought_from_wallet(PROVEN, 1, 75_000)
    chain.unconfirms(txid)
    with pytest.raises(NotYetShown, match="in no block yet"):
        proof(chain, order())
    chain.is_away = True
    with pytest.raises(Unavailable):
        proof(chain, order())


def test_a_made_up_witness_proves_nothing(chain: PlayChain) -> None:
    """The witness names a script of our key, and the coin that it spends is another user's."""
    txid = chain.bought_from_wallet(PROVEN, 1, 75_000, wallet=WALLETS["another user's"], forwards=False)
    chain.kept[txid].witnesses = ((bytes(64),), WALLETS["2of2"].witness)
    with pytest.raises(Unavailable, match="does not open the output"):
        proof(chain, order())


def test_change_to_a_script_that_the_venue_opens_alone_lowers_no_cost(chain: PlayChain) -> None:
    """Our key is in it, and any witness of the venue's opens it."""
    script = with_size(PAYMENT.get_public_key().sec()) + b"\x75" + with_size(VENUE.get_public_key().sec()) + b"\xac"
    theirs = b"\x00\x20" + hashlib.sha256(script).digest()
    wallet, item = WALLETS["2of2"], chain.inscribed(PROVEN)
    coins = chain.coin(400_000, wallet.paid_to), chain.coin(1_000, theirs)
    spends = [(item, (bytes(64),)), (coins[0], wallet.witness), (coins[1], (b"", bytes(71), script))]
    paid = purchase_facts.script_at(BUYER.vault) or b""
    chain.at[PROVEN] = f"{chain.send(spends, [(10_000, paid), (75_000, SELLERS_SCRIPT), (325_000, theirs)])}:0"
    assert proof(chain, order(75_000)).cost_sats == 400_000


def test_without_an_offset_the_whole_output_must_come_from_one_input(chain: PlayChain) -> None:
    chain.bought_from_wallet(PROVEN, 1, 75_000)
    chain.knows_offsets = False
    assert proof(chain, order()).cost_sats == 75_600
    both = chain.inscribed(UNPROVEN, sats=600), chain.coin(9_400, WALLETS["2of2"].paid_to)
    spends = [(both[0], (bytes(64),)), (both[1], WALLETS["2of2"].witness)]
    chain.at = {PROVEN: f"{chain.send(spends, [(10_000, purchase_facts.script_at(BUYER.vault) or b'')])}:0"}
    with pytest.raises(NotShown, match="no index says by which input"):
        proof(chain, order(9_000))
    chain.knows_offsets = True
    assert proof(chain, order(9_000)).cost_sats == 9_400


def test_a_venue_that_declares_no_backing_proves_nothing(chain: PlayChain) -> None:
    chain.bought_from_wallet(PROVEN, 1, 75_000)
    with pytest.raises(NotShown, match="purchases at simulator-unisat cannot be proved"):
        proof(chain, order(venue="simulator-unisat"))
    with pytest.raises(NotShown, match="not made by today's keys"):
        proof(chain, Order(**order().__data__ | {"wallet": "bc1qother"}))


def test_a_proof_holds_while_its_transactions_are_in_their_blocks(chain: PlayChain) -> None:
    txid = chain.bought_from_wallet(PROVEN, 1, 75_000)
    found, facts = proof(chain, order()), HouseFacts(chain)
    assert facts.standing(found) == (None, 1)
    chain.clock_s += 5 * 600
    assert facts.standing(found) == (None, 6)
    chain.moves_block(txid)
    assert "is in another block" in str(facts.standing(found).void)
    chain.unconfirms(chain.at[PROVEN].split(":")[0])
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


def test_one_transaction_proves_one_order(world: World) -> None:
    buys(world)
    desk = Desk(world)
    desk.look(times=2)
    row = Order.get().__data__ | {"id": 50, "intent": "x", "expires_ms": 5, "sale_id": "other"}
    Order.insert(row | {"autolist_state": "waiting", "autolist_task": None}).execute()
    first = Order.get()
    honest = desk.read
    desk.lister._read = lambda order, *about: honest(first, *about)  # another order's coins
    desk.look(times=2)
    assert Order.get_by_id(50).autolist_state == "dropped"
    assert Order.get_by_id(50).autolist_reason.endswith("its transaction has proved what another bid bought")
    assert len(autolists()) == 1


@pytest.mark.parametrize("is_stopped", [False, True], ids=["running", "stopped by its owner"])
def test_a_reorganisation_stops_the_task_until_the_purchase_is_proved_again(world: World, is_stopped: bool) -> None:
    buys(world)
    desk = Desk(world)
    listed = desk.look(times=2)
    (made,) = autolists()
    assert made.desired == "running"
    if is_stopped:
        tasks.set_desired(made, "stopped")

    desk.standing, desk.place = Standing("transaction 12 left its block", 0), LocatedInscription("pending")
    assert desk.look(after_s=40)
    reason = "the chain does not show its purchase any more: transaction 12 left its block"
    (made,) = autolists()
    assert (made.desired, made.last_error) == ("stopped", None if is_stopped else reason)
    assert isinstance(purchases.of_inscription(int(world.user.id), ITEM), purchases.ClaimedPurchase)
    assert Order.get().autolist_state == ("listed" if is_stopped else "waiting")

    desk.standing, desk.place, desk.left_sats = Standing(None, 1), HELD, 80_000
    assert desk.look(after_s=15, times=2) == listed
    (made,) = autolists()
    cost = load_listing_config(made.config).cost_sats
    assert (made.desired, cost) == ("stopped" if is_stopped else "running", 80_000)


@pytest.mark.parametrize("typed", [90_000, None])
def test_a_new_proof_keeps_a_cost_that_was_typed_after_the_void(world: World, typed: int | None) -> None:
    buys(world)
    desk = Desk(world)
    listed = desk.look(times=2)
    desk.standing, desk.place = Standing("transaction 12 left its block", 0), LocatedInscription("pending")
    desk.look(after_s=40)
    (made,) = autolists()
    config = dump_listing_config(replace(MARGIN, cost_sats=typed))
    tasks.change_autolist_task(made, collection_id=made.collection_id, config=config)

    desk.standing, desk.place, desk.left_sats = Standing(None, 1), HELD, 80_000
    assert desk.look(after_s=15, times=2) == listed
    (made,) = autolists()
    assert (made.desired, load_listing_config(made.config).cost_sats) == ("running", typed or 80_000)


def waits_with_a_proof(world: World) -> Desk:
    """A fill whose purchase is proved, and which waits for its second read."""
    buys(world)
    desk = Desk(world)
    assert desk.look()[0] == "waiting" and purchases.of_order(Order.get().id)  # type: ignore[index]
    return desk


def test_an_item_that_its_owner_took_out_and_put_back_is_not_listed(world: World) -> None:
    desk = waits_with_a_proof(world)
    desk.place = replace(HELD, outpoint="2" * 64 + ":0")
    desk.came_from = replace(OTHER_WALLET, holder="receiver")
    dropped = desk.look(times=3)
    assert dropped and dropped.state == "dropped" and "it came from an address of the user's own" in str(dropped.reason)
    assert autolists() == [] and purchases.of_order(Order.get().id) is None


def test_a_replaced_transaction_is_proved_anew_before_it_is_listed(world: World) -> None:
    desk = waits_with_a_proof(world)
    desk.place, desk.left_sats = replace(HELD, outpoint="2" * 64 + ":0"), 80_000
    assert desk.look()[0] == "waiting"  # type: ignore[index]
    assert desk.look()[0] == "listed"  # type: ignore[index]
    assert [load_listing_config(made.config).cost_sats for made in autolists()] == [80_000]


@pytest.mark.parametrize("is_away", [False, True], ids=["void", "not known"])
def test_a_proof_is_checked_right_before_it_makes_a_task(world: World, is_away: bool) -> None:
    desk = waits_with_a_proof(world)
    proof = purchases.of_order(Order.get().id)

    def check(of: ProvenPurchase) -> Standing:
        if is_away:
            raise Unavailable("the server is down")
        return Standing("transaction 12 left its block", 0)

    desk.lister._check = check
    waits = desk.look()
    assert waits and waits.state == "waiting" and autolists() == []
    assert ("the server is down" if is_away else "transaction 12 left its block") in str(waits.reason)
    assert purchases.of_order(Order.get().id) == (proof if is_away else None)
    desk.lister._check = lambda of: Standing(None, 1)
    assert desk.look(after_s=12, times=3)[0] == "listed"  # type: ignore[index]


def test_a_purchase_that_a_reorganisation_undoes_stays_stopped(world: World) -> None:
    buys(world)
    desk = Desk(world)
    desk.look(times=2)
    desk.standing, desk.shown = Standing("transaction 12 left its block", 0), "it is with another"
    assert desk.look(after_s=40)[0] == "dropped"  # type: ignore[index]
    assert [made.desired for made in autolists()] == ["stopped"]
    order = Order.get().id
    assert purchases.claimed_costs([order])[order] >= {75_600}, "its cost is not called the owner's"


def test_a_proof_is_checked_until_its_block_is_deep(world: World) -> None:
    buys(world)
    desk, asked = Desk(world), []
    desk.lister._check = lambda proof: asked.append(proof) or desk.standing
    desk.look(times=2)
    assert len(asked) == 1, "right before its task is made"
    desk.look(after_s=31, times=3)
    assert len(asked) == 4
    desk.standing = Standing(None, 6)
    desk.look(after_s=31, times=3)
    assert len(asked) == 5 and isinstance(purchases.of_inscription(int(world.user.id), ITEM), ProvenPurchase)


def test_a_proof_that_cannot_be_checked_keeps_no_other_waiting(world: World) -> None:
    buys(world, replace(TO_VAULT, on_fill=replace(RULE, max_open=5)))
    desk = Desk(world)
    desk.look(times=2)
    row = Order.get().__data__ | {"id": 50, "intent": "x", "expires_ms": 5, "sale_id": "s", "inscription_id": OTHER}
    Order.insert(row | {"autolist_state": "waiting", "autolist_task": None}).execute()
    asked: list[int] = []

    def broken(proof: ProvenPurchase) -> Standing:
        asked.append(proof.order_id)
        if proof.order_id != 50:
            raise ZeroDivisionError
        return desk.standing

    desk.lister._check = broken
    desk.look(after_s=40, times=2)
    assert [made.inscription_id for made in autolists()] == [ITEM, OTHER]
    assert asked.count(50) >= 2, "in the round of checks, too, and right before its task is made"
    before = len(asked)
    desk.look(after_s=5, times=3)
    assert len(asked) == before, "the next round of checks is not due yet"
