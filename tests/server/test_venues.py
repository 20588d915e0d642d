"""The venues of tasks, and routes that ask slow marketplaces."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from core.errors import PeerRefused
from markets.base import Item, Rune, Unavailable
from markets.orders import OwnListings
from markets.venues import VenueFacts, capabilities, facts
from models.tasks.tasks import Task
from server import withdraw as withdrawals
from server.http.base import SignedIn
from server.urls import ROUTES
from strategy.book import VenueProfile
from tests.server import autolist_tasks
from tests.server.autolist_tasks import INSCRIPTION
from tests.server.driver import OPERATIONS, Driver, responses
from tests.server.test_profile import proof
from tests.server.withdrawals.chain import Chain, coin
from tests.server.withdrawals.test_sending import bidding
from tests.worlds.service import OWNER, START_MS, Service, keys_of, with_settings

BIDS = {"slug": "goosinals", "hardcapSats": 100_000}
LISTING = {"inscriptionId": INSCRIPTION, "collectionId": "goosinals", "priceMode": "fixed", "priceSats": 50_000}
REAL: dict[str, Any] = {
    "market": "satflow",
    "satflow_url": "https://satflow.example/v1",
    "satflow_api_key": "key",
    "unisat_url": "https://unisat.example",
    "ordnet_url": "https://ord.example/api/v1",
    "mempool_url": "https://mempool.example",
}


def details(answer: Any) -> list[str]:
    assert answer.status == 400, answer.text
    return list(answer.json["details"])


async def test_a_task_is_where_it_was_created(service: Service) -> None:
    default = await service.ask("POST", "/api/tasks", BIDS)
    other = await service.ask("POST", "/api/tasks", BIDS | {"slug": "cats", "venue": "simulator-ordnet"})
    listing = await service.ask("POST", "/api/autolist", LISTING | {"venue": "simulator-unisat"})

    assert (default.json["venue"], other.json["venue"], listing.json["venue"]) == (
        "simulator",
        "simulator-ordnet",
        "simulator-unisat",
    )
    assert "venue" not in other.json["config"]
    listed = await service.ask("GET", "/api/tasks")
    assert [task["venue"] for task in listed.json] == ["simulator", "simulator-ordnet"]
    one = await service.ask("GET", f"/api/tasks/{other.json['id']}")
    assert one.json == other.json
    assert (await service.ask("GET", "/api/autolist")).json[0]["venue"] == "simulator-unisat"
    assert Task.get_by_id(default.json["id"]).venue == "simulator"  # stored, whatever the default is later


async def test_a_venue_cannot_be_changed(service: Service) -> None:
    task_id = await service.new_task()
    listing = (await service.ask("POST", "/api/autolist", LISTING)).json["id"]
    changed = {"venue": "simulator-ordnet"}

    for path in (f"/api/tasks/{task_id}", f"/api/autolist/{listing}"):
        assert details(await service.ask("PUT", path, changed)) == [
            "venue: cannot be changed; create another task",
        ]
        assert (await service.ask("PUT", path, {"venue": "simulator"})).status == 200


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"venue": "magiceden"}, "venue: there is no venue 'magiceden' here, but simulator, simulator-ordnet,"),
        ({"venue": "satflow"}, "venue: there is no venue 'satflow' here, but simulator"),  # never beside play money
        ({"venue": ""}, "venue: there is no venue '' here"),
        ({"venue": 5}, "venue: must be text"),
        ({"venue": None}, "venue: must be text"),
        ({"venue": "simulator-ordnet", "type": "rune"}, "type: Practice market, ord.net's dialect takes no bids of"),
        ({"venue": "simulator-unisat"}, "venue: Practice market, UniSat's dialect takes no bids"),
    ],
)
async def test_what_a_venue_cannot_do_is_refused_with_a_reason(
    service: Service, changed: dict[str, Any], said: str
) -> None:
    for path in ("/api/tasks", "/api/tasks/preview"):
        [detail] = details(await service.ask("POST", path, BIDS | changed))
        assert detail.startswith(said)
    assert (await service.ask("GET", "/api/tasks")).json == []


async def test_a_price_by_traits_that_a_venue_does_not_tell_is_refused(service: Service) -> None:
    by_trait = {"reference": "traitFloor", "traitType": "Hat", "traitValue": "Red"}
    floor = {"inscriptionId": INSCRIPTION, "collectionId": "goosinals"}
    said = ["reference: Practice market, Ordinals Wallet's dialect does not tell which traits its listings have"]
    venue = {"venue": "simulator-ordinalswallet"}

    assert details(await service.ask("POST", "/api/autolist", floor | by_trait | venue)) == said
    created = await service.ask("POST", "/api/autolist", floor | venue)
    assert details(await service.ask("PUT", f"/api/autolist/{created.json['id']}", by_trait)) == said
    await service.ask("DELETE", f"/api/autolist/{created.json['id']}")
    assert (await service.ask("POST", "/api/autolist", floor | by_trait)).status == 201


async def test_every_fault_is_told_at_once(service: Service) -> None:
    found = details(await service.ask("POST", "/api/tasks", BIDS | {"bidCount": 0, "venue": "nowhere"}))
    assert [detail.partition(":")[0] for detail in found] == ["bidCount", "venue"]


async def test_a_change_that_the_venue_cannot_do_is_refused(service: Service) -> None:
    created = await service.ask("POST", "/api/tasks", BIDS | {"venue": "simulator-ordnet"})

    answer = await service.ask("PUT", f"/api/tasks/{created.json['id']}", {"type": "rune", "slug": "DOG"})

    told = ["type: Practice market, ord.net's dialect takes no bids of type rune"]
    only = ["deliverTo: Practice market, ord.net's dialect delivers to the vault only"]
    assert details(answer) == ["deliverTo: must be ordinalsAddress for runes: they cannot be got out of the vault yet"]
    rune = {"type": "rune", "slug": "DOG", "deliverTo": "ordinalsAddress"}
    assert details(await service.ask("PUT", f"/api/tasks/{created.json['id']}", rune)) == told + only


@with_settings(**REAL)
async def test_real_venues_are_those_whose_address_is_set(service: Service) -> None:
    assert (await service.ask("POST", "/api/tasks", BIDS)).json["venue"] == "satflow"
    assert (await service.ask("POST", "/api/tasks", BIDS | {"slug": "b", "venue": "ordnet"})).status == 201
    for path, body in (("/api/tasks", BIDS | {"slug": "c"}), ("/api/autolist", LISTING)):
        unset = await service.ask("POST", path, body | {"venue": "ordinalswallet"})
        assert details(unset) == ["venue: not set up here: BIDKEEPER_ORDINALSWALLET_URL is not set"]
        play = await service.ask("POST", path, body | {"venue": "simulator"})
        assert details(play) == ["venue: there is no venue 'simulator' here, but satflow, ordnet, unisat"]


@with_settings(**REAL)
async def test_what_the_signer_does_not_sign_is_not_started(service: Service) -> None:
    bidding = await service.ask("POST", "/api/tasks", BIDS | {"venue": "ordnet"})

    told = details(await service.ask("POST", f"/api/tasks/{bidding.json['id']}/start"))
    assert told == [
        "venue: bids at ord.net are not signed until BIDKEEPER_ORDNET_CO_SIGNERS names the keys that can together "
        "take a bid's price (docs/custody.md)"
    ]
    assert service.manager.settled == []


@with_settings(**REAL, ordnet_co_signers=("11" * 32, "12" * 32, "13" * 32))
async def test_bids_at_ord_net_are_started_once_the_operator_named_the_co_signers(service: Service) -> None:
    bidding = await service.ask("POST", "/api/tasks", BIDS | {"venue": "ordnet"})

    assert (await service.ask("POST", f"/api/tasks/{bidding.json['id']}/start")).status == 200


@with_settings(**REAL)
@pytest.mark.parametrize("venue", ["satflow", "unisat", "ordnet"])
async def test_a_listing_is_started_at_a_real_venue(service: Service, venue: str) -> None:
    listing = await service.ask("POST", "/api/autolist", LISTING | {"venue": venue})

    assert (await service.ask("POST", f"/api/autolist/{listing.json['id']}/start")).status == 200


async def test_a_task_whose_venue_is_gone_is_not_started(service: Service) -> None:
    task_id = await service.new_task()
    Task.update(venue="ordnet").execute()

    answer = await service.ask("POST", f"/api/tasks/{task_id}/start")

    assert details(answer) == [f"venue: there is no venue 'ordnet' here, but {', '.join(service.settings.venues)}"]
    assert (await service.ask("GET", f"/api/tasks/{task_id}")).json["lastError"] == answer.json["details"][0]


async def test_lookups_ask_the_venue_that_is_meant(service: Service) -> None:
    created = await service.ask("POST", "/api/tasks", BIDS | {"venue": "simulator-ordnet"})
    service.gateway.answers["profile"] = VenueProfile("simulator-ordnet", 5_000, 10_000, 21_600, True, "per_bid")

    def asked_of() -> set[str]:
        found = {request.get("venue", "") for request in service.gateway.asked if request["verb"] != "fees"}
        service.gateway.asked.clear()
        return found

    assert (await service.ask("GET", f"/api/tasks/{created.json['id']}/bids")).status == 200
    assert asked_of() == {"simulator-ordnet"}
    assert (await service.ask("POST", "/api/tasks/preview", {"taskId": created.json["id"]})).status == 200
    assert asked_of() == {"simulator-ordnet"}
    named = BIDS | {"slug": "empty", "venue": "simulator-ordnet"}
    assert (await service.ask("POST", "/api/tasks/preview", named)).status == 200
    assert asked_of() == {"simulator-ordnet"}
    assert (await service.ask("GET", "/api/tasks/floor?slug=goosinals&venue=simulator-ordnet")).status == 200
    assert asked_of() == {"simulator-ordnet"}
    assert (await service.ask("GET", "/api/tasks/floor?slug=goosinals")).status == 200
    assert asked_of() == {"simulator"}
    assert details(await service.ask("GET", "/api/tasks/floor?slug=a&venue=nowhere"))[0].startswith("venue:")


async def test_the_venues_say_what_they_can_do(service: Service) -> None:
    def told() -> list[dict[str, Any]]:
        found = [facts(name, is_default=name == "simulator") for name in service.settings.venues]
        quota = {"limit": 1_000, "left": 7, "projected": 1_900, "ends_ms": 1_796_083_200_000}
        connection = {"paused_s": 1.2, "is_cut_off": False, "skew_s": -0.4}
        day = {"limit": 60, "left": 5, "projected": 70, "ends_ms": 1_796_083_200_000, "yours": {"used": 2, "share": 25}}
        told = quota | {"yours": {"used": 3, "share": 450}, "day": day}
        found[0] = VenueFacts(found[0].capabilities, found[0].profiles, True, told, connection)
        return [
            {
                "capabilities": {
                    name: getattr(each.capabilities, name) for name in each.capabilities.__struct_fields__
                },
                "profiles": each.profiles,
                "is_default": each.is_default,
                "quota": each.quota,
                "connection": each.connection,
            }
            for each in found
        ]

    service.gateway.answers["venues"] = told()
    answer = await service.ask("GET", "/api/venues")

    assert answer.status == 200
    assert [venue["name"] for venue in answer.json] == list(service.settings.venues)
    satflow, ordnet, unisat, ordinalswallet = answer.json
    assert [venue["isDefault"] for venue in answer.json] == [True, False, False, False]
    assert satflow["kinds"] == ["ordinals", "rune"] and satflow["bidTypes"] == ["collection", "trait"]
    assert satflow["bids"]["ordinals"] == {"tick": 1_000, "minBid": 10_000, "minDurationSeconds": 900}
    assert (satflow["quotaLeft"], satflow["limits"]["callsPerMonth"]) == (7, 1_000)
    assert satflow["quotaYours"] == {"used": 3, "share": 450} and service.gateway.asked[-1]["user"] == service.user_id
    assert (satflow["quotaProjected"], satflow["quotaEndsAt"]) == (1_900, "2026-12-01T00:00:00.000Z")
    assert (satflow["limits"]["callsPerDay"], satflow["quotaLeftToday"]) == (60, 5)
    assert satflow["quotaYoursToday"] == {"used": 2, "share": 25}
    assert (ordnet["limits"]["callsPerDay"], ordnet["quotaLeftToday"], ordnet["quotaYoursToday"]) == (None, None, None)
    assert satflow["connection"] == {"pausedSeconds": 2, "isCutOff": False, "clockSkewSeconds": Decimal("-0.4")}
    assert (ordnet["quotaProjected"], ordnet["connection"]) == (None, None)
    assert ordnet["bids"] == {"ordinals": {"tick": 5_000, "minBid": 10_000, "minDurationSeconds": 21_600}}
    assert (ordnet["needsSignIn"], ordnet["expiry"], ordnet["calls"]["place"]) == (True, "hours", 2)
    assert ordnet["limits"]["readsPerMinute"] == 60 and ordnet["limits"]["writesPerMinutePerWallet"] == 8
    assert (unisat["kinds"], unisat["listings"], unisat["quotaLeft"]) == ([], True, None)
    assert ordinalswallet["verified"] == "client code"


async def test_venues_are_told_without_the_gateway_but_for_their_quota(service: Service) -> None:
    service.gateway.down = True
    answer = await service.ask("GET", "/api/venues")
    assert [(venue["quotaLeft"], venue["quotaYours"]) for venue in answer.json] == [(None, None)] * 4


@with_settings(**REAL | {"satflow_monthly_calls": 1_000})
async def test_a_preview_counts_the_quota_of_its_venue(service: Service) -> None:
    short = await service.ask("POST", "/api/tasks/preview", BIDS)
    assert short.json["monthlyCalls"]["fits"] is False
    service.gateway.answers["profile"] = VenueProfile("ordnet", 5_000, 10_000, 3_600, True, "per_bid")
    ample = await service.ask("POST", "/api/tasks/preview", BIDS | {"venue": "ordnet"})
    assert ample.json["monthlyCalls"]["fits"] is True


def test_the_names_of_real_venues_are_never_those_of_play() -> None:
    assert [capabilities(name).name for name in ("ordnet", "simulator-ordnet")] == ["ordnet", "simulator-ordnet"]


@with_settings(**REAL | {"market": "ordnet", "ordinalswallet_url": "https://wallet.example", "satflow_url": None})
async def test_inscriptions_are_read_where_they_are_told(service: Service) -> None:
    """ord.net does not tell what lies at an address, and another's words for collections are not its own."""
    service.gateway.answers["wallet_contents"] = (("9" * 64 + "i0", None, "cats", None, None, False, None),)
    service.gateway.answers["item"] = Item(INSCRIPTION, listed=False, collection_id="cats")

    assert (await service.ask("GET", "/api/autolist/wallet/ordinals")).status == 200
    assert (await service.ask("GET", f"/api/autolist/item/{INSCRIPTION}")).status == 200

    asked = {request["verb"]: request["venue"] for request in service.gateway.asked}
    assert asked == {"wallet_contents": "ordinalswallet", "item": "ordinalswallet"}
    for venue, told in (("ordinalswallet", "cats"), ("ordnet", None)):
        fields = {"inscriptionId": INSCRIPTION, "venue": venue}
        created = await service.ask("POST", "/api/autolist", fields)
        assert created.json["collectionId"] == told
        await service.ask("DELETE", f"/api/autolist/{created.json['id']}")


_ENDS_S = {path: handler.answers_s for path, handler in ROUTES}  # before a fixture makes them longer
_SOON_S, _LATE_S = 0.3, 20.0  # the wait of each route here, and what a busy machine may add to it
FIXED = {"priceMode": "fixed", "priceSats": 150_000}
SLOW_LISTING = {"inscriptionId": INSCRIPTION, **FIXED}
PICTURED: dict[str, object] = {"inscriptionId": "6" * 64 + "i0"}


class Slow(NamedTuple):
    """A call, and the status of its answer while no marketplace answers."""

    operation: str
    status: int
    body: Any = None
    path: str = ""  # what its {id} is: a task of this kind, else the inscription
    query: Any = None


# Whatever needs the marketplace is 504; what is known without it is answered.
CALLS = (
    Slow("getFloor", 504, query={"slug": "goosinals"}),
    Slow("getRuneMarket", 504, query={"ticker": "DOG"}),
    Slow("getBook", 504, query={"slug": "goosinals"}),
    Slow("listTraits", 504, query={"slug": "goosinals"}),
    Slow("previewTask", 504, {"slug": "goosinals", "hardcapSats": 50_000}),
    Slow("listBids", 504, path="bidding"),
    Slow("previewAutolistTask", 504, SLOW_LISTING),
    Slow("listInscriptions", 504, query={"refresh": "1"}),
    Slow("getInscription", 504, path="item", query={"refresh": "1"}),
    Slow("getInscriptionPicture", 504, path="picture"),
    Slow("withdraw", 504, {"from": "payment", "dryRun": True}),
    Slow("getPlayWallet", 504),
    Slow("signAsPlayWallet", 504, {"challengeId": "x"}),
    Slow("getWallet", 200),
    Slow("listVenues", 200),
    Slow("createTask", 201, {"slug": "SOME", "type": "rune", "hardcapSats": 50_000}),
    Slow("startTask", 200, path="bidding"),
    Slow("startAutolistTask", 200, path="listing"),
    Slow("deleteAutolistTask", 200, path="listing"),
)


@contextlib.asynccontextmanager
async def silent(service: Service) -> AsyncIterator[None]:
    """Has the gateway answer nothing during the block, and each route wait for it for a moment only."""
    service.gateway.silence = asyncio.Event()
    with pytest.MonkeyPatch.context() as short:
        for _, handler in ROUTES:
            short.setattr(handler, "answers_s", _SOON_S)
        try:
            yield
        finally:
            service.gateway.silence.set()
            service.gateway.silence = None
            while len(service.app.settings["services"].seats):  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def ask_all(service: Service, drive: Driver, consent: dict[str, Any]) -> None:
    """Makes each call while no marketplace answers; `consent` proves another ordinals address."""
    bidding, listing = await service.new_task(slug="slow-cats"), await autolist_tasks.new_task(service, **SLOW_LISTING)
    paths: dict[str, dict[str, object]] = {
        "bidding": {"id": bidding},
        "listing": {"id": listing},
        "item": {"inscriptionId": INSCRIPTION},
        "picture": PICTURED,
    }
    for call in (*CALLS, Slow("changeProfile", 504, consent)):
        began = time.monotonic()
        async with silent(service):
            answer = await drive(call.operation, call.body, path=paths.get(call.path), query=call.query)
            took_s = time.monotonic() - began
        assert answer.status == call.status, (call.operation, answer.text)
        assert took_s < _LATE_S, (call.operation, took_s)
        if call.operation == "startTask":
            await drive("stopTask", path={"id": bidding})
    await drive("deleteTask", path={"id": bidding})


@with_settings(play_wallet=True)
async def test_each_route_ends_although_the_marketplace_never_answers(service: Service) -> None:
    drive = Driver(service)
    await ask_all(service, drive, await proof(service))
    described = {name for name in OPERATIONS if {502, 504} & set(responses(name))}
    assert {name for name, status in drive.seen if status == 504} == described
    wallet = await service.ask("GET", "/api/wallet")
    assert "balanceError" not in wallet.json and wallet.json["biddingWallet"] is not None


async def test_a_slow_wallet_says_what_is_known_and_what_is_not(service: Service) -> None:
    async with silent(service):
        answer = await service.ask("GET", "/api/wallet")
    assert answer.status == 200 and answer.json["payment"] and answer.json["signedSats"] is not None
    assert (answer.json["biddingWallet"], answer.json["paymentSats"]) == (None, None)
    assert answer.json["balanceError"].startswith("it has not answered in time")


async def test_a_withdrawal_is_signed_and_accepted_although_the_network_never_answers(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    Chain(service).put(keys_of(OWNER)["payment"], coin(1), coin(3))
    service.gateway.silence, service.gateway.silent = asyncio.Event(), ("broadcast",)
    monkeypatch.setattr(withdrawals, "_SENDS_S", _SOON_S)
    answer = await service.ask("POST", "/api/wallet/withdraw", {"from": "payment"})
    assert (answer.status, answer.json["state"]) == (202, "signed")
    service.gateway.silence.set()
    async with asyncio.timeout(_LATE_S):
        while (await service.ask("GET", "/api/wallet")).json["withdrawals"][0]["state"] == "signed":  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that have used up their time before their checks begin, as one does that waits for a task's lock."""
    begin = SignedIn.initialize

    def initialize(handler: SignedIn, *args: Any, **named: Any) -> None:
        begin(handler, *args, **named)
        handler.until = time.monotonic()

    monkeypatch.setattr(SignedIn, "initialize", initialize)


async def test_a_start_whose_time_is_used_up_still_checks_the_vault(service: Service, late: None) -> None:
    autolist_tasks.lies_at(service, OWNER)
    task = await autolist_tasks.new_task(service)
    answer = await autolist_tasks.call(service, "POST", task, "/start")
    assert (answer.status, service.manager.settled) == (409, [])


async def test_a_start_whose_time_is_used_up_still_checks_traits_and_spelling(service: Service, late: None) -> None:
    unknown = await service.new_task(slug="cats", bidType="trait", traitType="Hat", traitValue="Red")
    service.gateway.answers["rune"] = Unavailable()
    rune = await service.new_task(slug="examplerune", type="rune")
    service.gateway.answers |= {"traits": {"Hat": {"Blue": 1}}, "rune": Rune("EXAMPLE\u2022RUNE", 0, 1)}
    begun = await service.ask("POST", "/api/tasks/actions", {"action": "start", "ids": [unknown, rune]})
    assert [each["status"] for each in begun.json["results"]] == [400, 200]
    assert begun.json["results"][1]["body"]["slug"] == "EXAMPLE\u2022RUNE"


async def test_a_start_whose_time_is_used_up_still_checks_the_withdrawal(service: Service, late: None) -> None:
    bidding(service, Chain(service))
    service.signer.refuses_withdrawals = PeerRefused("signer", "inputs-own", "the script has none of our keys")
    task = await service.new_task()
    assert (await service.ask("POST", f"/api/tasks/{task}/start")).status == 400


async def test_a_delete_whose_time_is_used_up_still_asks_for_listings(service: Service, late: None) -> None:
    service.gateway.answers["own_listings"] = OwnListings((), START_MS)
    task = await autolist_tasks.new_task(service)
    deleted = await autolist_tasks.call(service, "DELETE", task)
    assert deleted.json == {"success": True, "listingCancelled": False}


async def test_a_withdrawal_that_cannot_be_checked_before_a_start_is_logged(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    bidding(service, Chain(service))
    service.gateway.answers["draft_withdrawal"] = Unavailable("away")
    task = await service.new_task()
    assert (await service.ask("POST", f"/api/tasks/{task}/start")).status == 200
    assert "failed to check whether user" in caplog.text


def test_no_route_waits_for_more_than_a_few_seconds() -> None:
    assert {path: ends_s for path, ends_s in _ENDS_S.items() if ends_s > 4.5} == {
        "/api/tasks/preview": 8.0,
        "/api/autolist/preview": 8.0,
        "/api/wallet/withdraw": 8.0,
        "/api/autolist/item/([^/]+)/image": 12.0,
        "/api/market/picture": 12.0,
    }
