"""Auto-list tasks as their users see them: the whole service, the practice market, its chain and its buyers."""

from __future__ import annotations

import secrets
from typing import Any

import pytest
import requests

from drills.faults.fleet import strike
from tests.databases import another
from tests.e2e.installation import Installation, Trader, until

pytestmark = pytest.mark.slow

# Words of a DELETE whose listing had not gone within ten seconds, and of one whose question was given up after five.
STILL_LISTED = "has not confirmed yet"
GIVEN_UP = ("could not be asked", "nobody here knows what it spends")


class Seller:
    """A trader with an inscription of `slug` in their vault, and what their one auto-list task does."""

    def __init__(self, service: Installation, slug: str, asks: list[int], **config: Any) -> None:
        self.service, self.slug = service, slug
        self.trader = Trader(service).sign_in()
        self.vault = self.trader.ok("GET", "/api/wallet")["vault"]
        self.inscription = f"{secrets.token_hex(32)}i0"
        service.put_collection(slug, asks)
        self.put_into(self.vault)
        self.config = {"inscriptionId": self.inscription, "collectionId": slug, "loopSeconds": 5, **config}
        self.make_task()

    def make_task(self) -> None:
        self.task = self.trader.ok("POST", "/api/autolist", self.config)["id"]

    def put_into(self, address: str, **item: Any) -> None:
        item = {"id": self.inscription, "collection": self.slug, "name": "one", **item}
        self.service.sim("PUT", f"/sim/wallets/{address}", {"inscriptions": [item]})

    def ask(self, method: str, verb: str = "", body: Any = None) -> Any:
        return self.trader.ok(method, f"/api/autolist/{self.task}{verb}", body)

    def end(self) -> None:
        """Deletes the task, and waits for the end of its listing if the answer did not."""
        answer = self.ask("DELETE")
        assert answer["success"] is True
        assert answer["listingCancelled"] or STILL_LISTED in answer.get("message", ""), answer
        until(lambda: self.market() == [], "the end of the listing")

    @property
    def listing(self) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET")["listing"] or {}
        return found

    def is_listed_at(self, price: int) -> bool:
        listing = self.listing  # asked for once: state and price are of one moment
        return (listing.get("state"), listing.get("price")) == ("live", price)

    def events(self) -> list[tuple[str, int]]:
        """Returns the market's events of listings of this inscription, oldest first."""
        history = self.service.history(kind="ask", slug=self.slug, maker=self.vault)
        return [(event["event"], event["price"]) for event in history]

    def market(self) -> list[int]:
        """Prices that buyers see for it, from the market itself: what the service tells may be some seconds old."""
        return [price for event, price in self.events()[-1:] if event == "accepted"]

    def workers(self) -> list[int]:
        return self.service.processes(f"bidkeeper: lister task {self.task} ")


# The mini cases: a grid of 1,000 sats.
@pytest.mark.parametrize(
    ("asks", "config", "price"),
    [
        ([100_000], {}, 105_000),
        ([60_000], {"minPriceSats": 70_000}, 70_000),
        ([20_000, 98_000, 99_000], {}, 103_000),
        ([100_000], {"priceMode": "fixed", "priceSats": 123_000}, 123_000),
        ([100_000, 104_000], {"priceMode": "undercut"}, 99_000),
        ([80_000], {"reference": "purchase", "costSats": 80_000, "minMargin": 0.2, "pricePercent": 1.1}, 96_000),
    ],
    ids=["percent", "least price", "bait", "fixed", "undercut", "cost guard"],
)
def test_it_is_listed_at_the_price(service: Installation, asks: list[int], config: dict[str, Any], price: int) -> None:
    seller = Seller(service, f"priced-{secrets.token_hex(4)}", asks, **config)
    seller.ask("POST", "/start")
    until(lambda: seller.is_listed_at(price), f"a listing at {price}")
    assert seller.market() == [price]
    assert seller.events() == [("accepted", price)]
    seller.ask("DELETE")


def test_what_is_not_in_the_vault_is_refused_and_told_where_to_go(service: Installation) -> None:
    seller = Seller(service, "elsewhere", [100_000])
    seller.service.sim("POST", "/sim/move", {"inscriptionId": seller.inscription, "address": seller.trader.address})

    def refusal() -> list[requests.Response]:
        answer = seller.trader.call("POST", f"/api/autolist/{seller.task}/start")
        if answer.status_code != 200:
            return [answer]
        seller.ask("POST", "/stop")  # a source that does not say within five seconds where it is does not object
        return []

    [answer] = until(refusal, "a refusal")
    assert answer.status_code == 409
    assert seller.vault in answer.text


def test_a_whole_life(service: Installation) -> None:
    """List, reprice twice, the market forgets it, list again, sold."""
    seller = Seller(service, "whole-life", [100_000], minPriceSats=80_000)
    seller.ask("POST", "/start")
    until(lambda: seller.is_listed_at(105_000), "the listing")
    assert seller.ask("PUT", body={"pricePercent": 1.2})["config"]["pricePercent"] == 1.2
    until(lambda: seller.is_listed_at(120_000), "the first new price")
    service.put_collection(seller.slug, [110_000])
    seller.ask("PUT", body={"pricePercent": 1.3})
    until(lambda: seller.is_listed_at(143_000), "the second new price")
    assert seller.listing["lowestOutstanding"] == 105_000
    service.sim("POST", "/sim/delist", {"inscriptionId": seller.inscription})
    # Two reads have to agree that it is gone.
    until(lambda: seller.events().count(("accepted", 143_000)) == 2, "the listing anew")
    until(lambda: seller.is_listed_at(143_000), "its being known")
    service.sim("POST", "/sim/sell", {"inscriptionId": seller.inscription})
    until(lambda: not seller.ask("GET")["isRunning"], "the end of the task")
    assert (seller.listing["state"], seller.listing["closeReason"]) == ("closed", "sold")
    assert seller.listing["proceeds"] >= 143_000
    assert "sold" in seller.ask("GET")["lastCycle"]["action"]
    (fill,) = seller.trader.ok("GET", f"/api/fills?taskId={seller.task}")["fills"]
    assert (fill["side"], fill["price"], fill["venueFee"]) == ("sell", seller.listing["proceeds"], 0)
    assert fill["inscriptionId"] == seller.inscription and len(fill["txid"]) == 64
    (row,) = [row for row in seller.trader.ok("GET", "/api/pnl?groupBy=task")["rows"] if row["key"] == seller.task]
    assert (row["sold"]["sats"], row["unmatchedSales"]) == (fill["price"], 1)


def test_stop_leaves_the_listing_and_delete_takes_it_away(service: Installation) -> None:
    seller = Seller(service, "stop-and-delete", [100_000])
    seller.ask("POST", "/start")
    until(lambda: seller.is_listed_at(105_000), "the listing")
    stopped = seller.ask("POST", "/stop")
    assert stopped["isRunning"] is False
    assert stopped["listingCancelled"] is False
    assert seller.market() == [105_000]
    before = seller.ask("GET", "/cycles?limit=1")
    seller.ask("POST", "/start")
    until(lambda: seller.ask("GET", "/cycles?limit=1") != before, "a cycle")
    assert seller.events() == [("accepted", 105_000)], "what is there is adopted, not signed again"
    seller.end()
    assert seller.trader.call("GET", f"/api/autolist/{seller.task}").status_code == 404


def test_a_deleted_tasks_listing_is_cancelled_though_the_market_fails_at_first(service: Installation) -> None:
    seller = Seller(service, "delete-in-doubt", [100_000])
    seller.ask("POST", "/start")
    until(lambda: seller.is_listed_at(105_000), "the listing")
    service.sim("PUT", "/sim/faults", [{"operation": "cancel", "mode": "error_500", "count": 3}])
    answer = seller.ask("DELETE")
    assert answer["success"] is True
    until(lambda: ("cancelled", 105_000) in seller.events(), "the cancel")
    assert seller.market() == []


def test_a_listing_that_no_record_explains_is_cancelled_with_its_task(service: Installation) -> None:
    """As after a database was put back from before it was listed. The signer still knows what it signed."""
    seller = Seller(service, "forgotten", [100_000])
    seller.ask("POST", "/start")
    until(lambda: seller.is_listed_at(105_000), "the listing")
    seller.ask("PUT", body={"pricePercent": 1.2})
    until(lambda: seller.is_listed_at(120_000), "the new price")
    seller.ask("POST", "/stop")
    with another(service.database_url) as database:
        database.execute("DELETE FROM listings WHERE inscription_id = ? AND price_sats = 105000", (seller.inscription,))
    told = until(lambda: found if (found := seller.listing)["lowestNote"] is None else {}, "the signer's word")
    assert told["lowestOutstanding"] == 105_000
    with another(service.database_url) as database:
        database.execute("DELETE FROM listings WHERE inscription_id = ?", (seller.inscription,))
    assert seller.listing == {} and seller.market() == [120_000]

    def is_ended() -> bool:
        answer = seller.ask("DELETE")
        assert answer["success"] is True
        message = answer.get("message", "")
        if answer["listingCancelled"] or STILL_LISTED in message:
            return True
        assert any(words in message for words in GIVEN_UP), answer
        seller.make_task()  # which is deleted in its turn
        return False

    until(is_ended, "the end of what no record explains")
    until(lambda: seller.market() == [], "the end of the listing")


# drills/faults/test_listing_cells.py has each of fourteen ways.
@pytest.mark.parametrize(
    "mode",
    [
        "accept_then_timeout",
        "error_500",
        *(pytest.param(mode, marks=pytest.mark.faults) for mode in ("timeout", "cut", "accept_then_500", "refuse_400")),
    ],
)
def test_a_lost_answer_never_lists_twice(service: Installation, mode: str) -> None:
    seller = Seller(service, f"lost-{mode.replace('_', '-')}", [100_000])
    service.sim("PUT", "/sim/faults", [{"operation": "list", "mode": mode, "count": 1, "delaySeconds": 1}])
    seller.ask("POST", "/start")
    until(lambda: seller.is_listed_at(105_000), "the listing")
    assert seller.events().count(("accepted", 105_000)) == 1
    seller.ask("DELETE")


# The others die on a listing's way in test_trade_loop.py, too.
@pytest.mark.parametrize(
    "victims", [("facts",), pytest.param(("worker", "manager", "gateway", "signer"), marks=pytest.mark.faults)]
)
def test_whoever_is_killed_the_listing_stays_as_it_is(service: Installation, victims: tuple[str, ...]) -> None:
    seller = Seller(service, "killed", [100_000])
    seller.ask("POST", "/start")
    until(lambda: seller.is_listed_at(105_000), "the listing")
    for victim in victims:
        pids = seller.workers() if victim == "worker" else service.processes(f"cli.main {victim}")
        before = seller.ask("GET", "/cycles?limit=1")
        strike(pids, "kill")
        until(service.ready_again, f"every program after the end of the {victim}")
        until(lambda b=before: seller.ask("GET", "/cycles?limit=1") != b, "a cycle")  # type: ignore[misc]
        assert seller.market() == [105_000]
    assert seller.events() == [("accepted", 105_000)]
    seller.ask("DELETE")


def test_what_a_hostile_market_sends_is_not_signed(service: Installation) -> None:
    seller = Seller(service, "poisoned", [100_000])
    for mode in ("wrong_payout", "low_payout", "other_outpoint", "sighash_none", "two_inputs"):
        service.sim("PUT", "/sim/poison", {"mode": mode})
        seller.ask("POST", "/start")
        until(lambda: seller.ask("GET")["lastError"], f"the refusal of {mode}")
        seller.ask("POST", "/stop")
        assert seller.events() == []
    service.sim("PUT", "/sim/poison", {"mode": None})
    seller.ask("POST", "/start")
    until(lambda: seller.is_listed_at(105_000), "the listing, once the market is honest")
    seller.ask("DELETE")


def test_a_halt_signs_nothing_and_leaves_the_listing(service: Installation) -> None:
    seller = Seller(service, "halted", [100_000])
    seller.ask("POST", "/start")
    until(lambda: seller.is_listed_at(105_000), "the listing")
    seller.trader.ok("PUT", "/api/control", {"scope": "user", "state": "halt"})
    seller.ask("PUT", body={"pricePercent": 1.5})
    until(lambda: "halt" in (seller.ask("GET")["lastCycle"] or {"action": ""})["action"], "a cycle that says so")
    assert seller.market() == [105_000]
    seller.trader.ok("PUT", "/api/control", {"scope": "user", "state": "run"})
    until(lambda: seller.is_listed_at(150_000), "the new price")
    seller.ask("DELETE")


def test_a_dry_run_and_a_preview_tell_what_would_be_listed_and_list_nothing(service: Installation) -> None:
    seller = Seller(service, f"dry-{secrets.token_hex(4)}", [100_000], dryRun=True)

    def says(words: str) -> bool:
        return words in (seller.ask("GET")["lastCycle"] or {}).get("action", "")

    seller.ask("POST", "/start")
    would = "dry run: would list at 105,000: 1.05 x floor 100,000; the signer would sign it"
    until(lambda: says(would), "a judged draft")
    preview = seller.trader.ok("POST", "/api/autolist/preview", {"taskId": seller.task, "pricePercent": 2})
    assert (preview["action"], preview["price"], preview["draft"]["isSigned"]) == ("list", 200_000, True)
    assert any(line.endswith("<- covered") for line in preview["draft"]["forms"][0]["words"])
    assert seller.ask("GET")["listing"] is None and seller.events() == []

    service.sim("PUT", "/sim/poison", {"mode": "low_payout"})
    try:
        poisoned = seller.trader.ok("POST", "/api/autolist/preview", {"taskId": seller.task})
    finally:
        service.sim("PUT", "/sim/poison", {"mode": None})
    assert poisoned["draft"]["verdict"].startswith("the signer would refuse it (payout: the seller is paid 104999 sats")

    seller.ask("PUT", body={"dryRun": False})
    until(lambda: seller.is_listed_at(105_000), "the listing, once it is no dry run")
    assert seller.events() == [("accepted", 105_000)]
    seller.ask("DELETE")
