"""A lister's cycles with the real database, a fake venue and signer, and listings in escrow."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from msgspec import structs

from markets.base import Fees, Item, OutpointFacts, Sale, Sales, Unknown, Utxo, Whereabouts
from markets.orders import ListingDraft, ListingOrder, ListingToDraft, OwnListing, OwnListings, SecureDraft
from models.ledger import listings
from models.ledger.states import Listing
from models.tasks import tasks
from models.tasks.cycles import cycles_of
from models.tasks.tasks import RUNNING
from strategy.book import Ask
from strategy.config.listing import ListingConfig, dump_listing_config
from tests.shapes import replace
from tests.worlds.worker import KEYS, FakeMarket, FakeSigner, World, ask
from wallet.protocol import ListingToSign, SignedListing, SignedWithdrawal, UserKeys, WithdrawalToSign
from wallet.signer_client import SignerUnavailable
from workers.context import crashpoint
from workers.drains import ListingDrain
from workers.listing.lister import Lister

ITEM = "ab" * 32 + "i0"
FIRST, SECOND = "11" * 32 + ":0", "22" * 32 + ":1"
BUYER = "bc1pbuyer"


@dataclass
class ListingMarket(FakeMarket):
    """The gateway's client with one inscription in the vault. Scripts as in `FakeMarket`, for the verbs below."""

    listed: dict[str, OwnListing] = field(default_factory=dict)
    submitted: list[int] = field(default_factory=list)
    asked: list[tuple[str, float]] = field(default_factory=list)
    where: str | None = FIRST
    owner: str = KEYS.vault
    facts: dict[str, OutpointFacts] = field(default_factory=dict)
    collection: str | None = None  # what the venue says that the inscription is of
    shows_own_asks: bool = True
    # The ids of listings of the vault that cannot be read, "" without one; ours is not shown then.
    odd_listings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.chain(FIRST)

    def chain(self, outpoint: str, *, is_unspent: bool | None = True, is_confirmed: bool | None = True) -> None:
        self.facts[outpoint] = OutpointFacts(
            outpoint, 546, "5120", is_unspent, is_confirmed, (ITEM,), (), 9, 9, None if is_unspent else "33" * 32
        )

    def asks(self, slug: str, max_age_s: float, trait: tuple[str, str] | None = None) -> Any:
        book = super().asks(slug, max_age_s, trait)
        own = [Ask("own", found.price, Decimal(1), Decimal(found.price), found.owner) for found in self.listed.values()]
        return structs.replace(book, asks=(*book.asks, *own)) if self.shows_own_asks else book

    def own_listings(self, wallet: str, max_age_s: float) -> OwnListings:
        """`empty` shows none though there may be some."""
        self.asked.append(("own_listings", max_age_s))
        turn = self._turn("own_listings")
        is_empty = turn == "empty" or self.odd_listings
        return OwnListings(() if is_empty else tuple(self.listed.values()), self.clock(), self.odd_listings)

    def draft_listing(self, ask: ListingToDraft) -> ListingDraft:
        self._turn("draft")
        assert (ask.owner, ask.receive, ask.tap_internal_key) == (KEYS.vault, KEYS.payment, KEYS.vault_pubkey)
        return ListingDraft(f"draft at {ask.price}", (SecureDraft(f"secure draft at {ask.price}", (0,)),))

    def list_item(self, order: ListingOrder, *, task: int, token: int, deadline_ms: int) -> None:
        """`lost` accepts and loses the answer, `never` loses all."""
        turn = self._turn("list")
        self.submitted.append(order.ask.price)
        assert order.signed_psbt == f"signed draft at {order.ask.price}"
        assert order.signed_secure == (f"signed secure draft at {order.ask.price}",)
        if turn != "never":
            self.show(order.ask.price, order.ask.slug)
        if turn in ("lost", "never"):
            raise Unknown("timed out")

    def show(self, price: int, slug: str | None = "cats", owner: str = KEYS.vault) -> None:
        """The venue has our listing at this price."""
        self.listed[ITEM] = OwnListing(f"listing-{price}", ITEM, slug, price, owner)

    def delist(
        self, wallet: str, inscription_ids: Sequence[str], signature: str, *, task: int, token: int, deadline_ms: int
    ) -> bool:
        """`lie` says it is done and keeps the listing, `no` reports a failure, `lost` does it, loses the answer."""
        self.done.append(("delist", len(self.listed)))
        turn = self._turn("delist")
        assert (wallet, signature) == (KEYS.vault, "of the vault")
        if turn not in ("lie", "no"):
            for inscription_id in inscription_ids:
                self.listed.pop(inscription_id, None)
        if turn == "lost":
            raise Unknown("timed out")
        return bool(turn != "no")

    def sales(self, slug: str, kind: str, since_ms: int, max_age_s: float) -> Sales:
        """Returns earlier sales, too, like an answer made for another task."""
        self._turn("sales")
        return Sales(tuple(sale for sale in self.sales_ if sale.slug == slug), self.clock(), 0, self.unread_sales)

    def whereabouts(self, inscription_id: str, max_age_s: float) -> Whereabouts:
        self.asked.append(("whereabouts", max_age_s))
        self._turn("whereabouts")
        return Whereabouts(inscription_id, self.where, self.owner, 546, self.clock())

    def outpoint(self, outpoint: str, max_age_s: float) -> OutpointFacts:
        self._turn("outpoint")
        return self.facts[outpoint]

    def item(self, inscription_id: str, max_age_s: float) -> Item:
        self._turn("item")
        return Item(inscription_id, listed=False, collection_id=self.collection)

    def buy(self, price: int, *, is_told: bool = True) -> None:
        """Buys the listing, and mines the block."""
        self.listed.clear()
        self.chain(FIRST, is_unspent=False)
        self.chain(SECOND)
        self.where, self.owner = SECOND, BUYER
        if is_told:
            self.tell_sale(price)

    def tell_sale(self, price: int, inscription_id: str = ITEM) -> None:
        sale_id = f"sale-{len(self.sales_)}"
        self.sales_.append(Sale(sale_id, "cats", price, Decimal(1), BUYER, None, inscription_id, self.clock()))

    def move(self, address: str = KEYS.vault) -> None:
        """The inscription is sent elsewhere, and the block is mined."""
        self.chain(FIRST, is_unspent=False)
        self.chain(SECOND)
        self.where, self.owner = SECOND, address


@dataclass
class ListingSigner(FakeSigner):
    """`listing_script` holds what the next signatures of listings do, as `script` for bids."""

    listing_script: list[Any] = field(default_factory=list)
    listings: dict[str, ListingToSign] = field(default_factory=dict)

    def sign_listing(self, task: int, token: int, secret: str, listing: ListingToSign) -> SignedListing:
        self._sign(self.listing_script, self.listings, listing)
        return SignedListing(f"signed {listing.psbt}", tuple(f"signed {psbt}" for psbt in listing.secure))

    def sign_challenge(self, task: int, token: int, secret: str, challenge: str, key: str = "payment") -> str:
        self._here()
        return f"of the {key}"

    def was_signed(self, intent: str) -> bool:
        return super().was_signed(intent) or intent in self.listings


@dataclass
class ListingWorld(World):
    """`task` gives the id of a wanted auto-list task."""

    signer: ListingSigner = field(default_factory=ListingSigner)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.market = ListingMarket(self.clock)
        self.wide_intents = (f"{number:064x}" for number in range(1, 10_000))

    def task(self, config: ListingConfig = ListingConfig(), collection: str | None = "cats") -> int:  # type: ignore[override]  # noqa: B008
        task = tasks.create_autolist_task(
            self.user.id,
            inscription_id=ITEM,
            collection_id=collection,
            config=dump_listing_config(config),
            venue=self.settings.market,
            now_ms=self.clock(),
        )
        tasks.set_desired(task, RUNNING)
        return task.id

    def lister(self, task_id: int, crash: Callable[[str], None] = crashpoint) -> Lister:
        return Lister(self.context(task_id, crash), rng=random.Random(1), new_intent=lambda: next(self.wide_intents))

    def begun(self, config: ListingConfig = ListingConfig(), **more: Any) -> tuple[int, Lister]:  # type: ignore[override]  # noqa: B008
        task_id = self.task(config, **more)
        lister = self.lister(task_id)
        lister.cycle()
        return task_id, lister

    def listing_drain(self, task_id: int, crash: Callable[[str], None] = crashpoint) -> ListingDrain:
        return ListingDrain(self.context(task_id, crash), rng=random.Random(1))

    def row(self, task_id: int) -> Any:
        found = tasks.with_owner(task_id)
        assert found is not None
        return found

    def change(self, task_id: int, config: ListingConfig) -> None:
        tasks.change_autolist_task(self.row(task_id), collection_id="cats", config=dump_listing_config(config))

    def rows(self) -> list[tuple[int, str, str | None]]:
        """(price, state, reason) of every listing there ever was."""
        return [(each.price_sats, each.state, each.close_reason) for each in Listing.select().order_by(Listing.id)]

    def open_row(self, task_id: int) -> Listing:
        found = listings.open_listing(task_id)
        assert found is not None
        return found

    def floor(self, *prices: int) -> None:
        self.market.asks_ = [ask(price) for price in prices]

    @property
    def prices(self) -> list[int]:
        """The prices that the venue shows of us."""
        return [found.price for found in self.market.listed.values()]

    def detail(self, task_id: int) -> Any:
        return json.loads(cycles_of(task_id, 1)[0].detail)

    def untracked_listings(self) -> list[int]:
        """Prices of our listings at the venue while no open row stands for the inscription's."""
        return [] if Listing.select().where(Listing.state != "closed").exists() else self.prices


ESCROW, HOME, COIN = "bc1pescrow", "44" * 32 + ":0", "55" * 32 + ":2"
OWN = replace(KEYS, escrows={ESCROW: "simulator"})


@dataclass
class EscrowMarket(ListingMarket):
    """Knows one coin of the payment address, and the network's fees."""

    coins_: list[Utxo] = field(default_factory=lambda: [Utxo(COIN, 50_000, True)])
    rate: Decimal = Decimal("7.5")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.facts[COIN] = OutpointFacts(COIN, 50_000, "0014", True, True, (), (), 9, 9, None)

    def coins(self, address: str, max_age_s: float) -> tuple[Utxo, ...]:
        self._turn("coins")
        assert address == KEYS.payment
        return tuple(self.coins_)

    def fees(self, max_age_s: float) -> Fees:
        self._turn("fees")
        return Fees(Decimal(9), Decimal(8), self.rate, Decimal(2), Decimal(1), self.clock())

    def strand(self) -> None:
        """The venue sends the transfer, and no sale."""
        self.move(ESCROW)

    def come_home(self) -> None:
        """The way home gets into a block."""
        self.chain(SECOND, is_unspent=False)
        self.chain(HOME)
        self.where, self.owner = HOME, KEYS.vault
        self.listed.clear()


@dataclass
class EscrowSigner(ListingSigner):
    ways_home: dict[str, WithdrawalToSign] = field(default_factory=dict)
    home_script: list[Any] = field(default_factory=list)
    judge_script: list[Any] = field(default_factory=list)
    home_fee: int = 1_500
    is_lost: bool = False

    def addresses(self, user_address: str) -> UserKeys:
        self._here()
        if self.is_lost:
            raise SignerUnavailable("away")
        return OWN

    def judge_withdrawal(self, asked: WithdrawalToSign) -> tuple[int, int]:
        if self.judge_script:
            raise self.judge_script.pop(0)
        return 546, self.home_fee

    def sign_withdrawal(self, asked: WithdrawalToSign) -> SignedWithdrawal:
        if self.home_script:
            raise self.home_script.pop(0)
        self.ways_home[asked.intent] = asked
        return SignedWithdrawal("44" * 32, "00", "", 546, 1_500)
