"""UniSat's collection market: documented and recorded forms, listings and their end."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest

from simulator.venues.unisat.runes import PER_MONTH
from tests.simulator.desk import ANN, AS_SEEN, BOB, PUPPETS, RUNE, Desk
from tests.simulator.seller import (
    BEARER,
    OTHER,
    PUPPET,
    UNISAT,
    as_base64,
    hex_changed,
    hex_signed,
    hold,
    listed,
    outpoint_of,
    ow_listed,
    own_listings,
    put_on,
    unisat,
    unisat_book,
    unisat_listed,
)
from wallet.psbt.decode import decode
from wallet.psbt.script import own_script
from wallet.psbt.transaction import TxOutput, compact

pytestmark = pytest.mark.gen_test
RUNES = "/unisat/v3/market/runes/auction"


async def _listings(desk: Desk, sort: Any = None, start: int = 0, limit: int = 50, **more: Any) -> Any:
    body = {"filter": {"nftType": "collection"} | more, "sort": sort or {}, "start": start, "limit": limit}
    code, data = await unisat(desk, "list", **body)
    assert code == 0, data
    return data


async def _actions(desk: Desk, **wanted: Any) -> list[tuple[str, int]]:
    code, data = await unisat(desk, "actions", filter=wanted, start=0, limit=50)
    assert (code, data["total"]) == (0, len(data["list"]))
    return [(row["event"], row["price"]) for row in data["list"]]


@pytest.fixture
def plenty(desk: Desk) -> None:
    """More requests a second than the venue's own limit."""
    desk.world.limits.change(per_second=1_000, burst=1_000, monthly=1_000_000)


@pytest.mark.usefixtures("plenty")
async def test_the_numbers_of_a_collection(desk: Desk) -> None:
    await hold(desk)
    await desk.list_puppets(2_000_000, name="Puppets")
    await unisat_listed(desk)

    code, found = await unisat(desk, "collection_statistic", collectionId=PUPPETS)

    assert code == 0
    assert {name: found[name] for name in ("collectionId", "name", "floorPrice", "listed", "total", "btcValue")} == {
        "collectionId": PUPPETS,
        "name": "Puppets",
        "floorPrice": 900_000,
        "listed": 2,
        "total": 2,
        "btcValue": 0,
    }
    body = {"filter": {"timeType": "day1", "collections": [PUPPETS]}, "start": 0, "limit": 20}
    assert await unisat(desk, "collection_statistic_list", **body) == (0, {"list": [found], "total": 1})
    for wanted, count in (({"name": "upp"}, 1), ({"name": "cats"}, 0), ({"collections": ["cats"]}, 0)):
        _, some = await unisat(desk, "collection_statistic_list", **(body | {"filter": {"timeType": "day1"} | wanted}))
        assert some["total"] == count
    for bad in (body | {"limit": 21}, body | {"filter": {}}, {"filter": {"timeType": "day1"}}):
        status, answer = await desk.ask("POST", f"{UNISAT}/collection_statistic_list", bad, headers=BEARER)
        assert (status, answer["code"]) == (400, -1)
    status, answer = await desk.ask("POST", f"{UNISAT}/collection_statistic", {"collectionId": "x"}, headers=BEARER)
    assert (status, answer["code"]) == (404, -1)


@pytest.mark.usefixtures("plenty")
async def test_the_listings_in_pages(desk: Desk) -> None:
    await hold(desk)
    await desk.list_puppets(2_000_000, 1_500_000)
    desk.clock.advance(1)
    auction = await unisat_listed(desk)

    async def prices(**asked: Any) -> list[int]:
        return [row["price"] for row in (await _listings(desk, collectionId=PUPPETS, **asked))["list"]]

    assert await prices(sort={"unitPrice": 1}) == [900_000, 1_500_000, 2_000_000]
    assert await prices(sort={"initPrice": -1}) == [2_000_000, 1_500_000, 900_000]
    assert (await prices(sort={"onSaleTime": -1}))[0] == 900_000
    assert len(await prices(sort={"inscriptionNumber": 1})) == 3
    assert await prices(sort={"unitPrice": 1}, start=1, limit=1) == [1_500_000]
    assert await prices(minPrice=1_000_000, maxPrice=1_600_000) == [1_500_000]
    assert len(await prices(start=50, all=True)) == 3
    found = await _listings(desk, address=ANN.ordinals)
    (row,) = found["list"]
    assert (found["total"], found["timestamp"]) == (1, desk.clock.now_ms)
    assert (row["auctionId"], row["inscriptionId"], row["unitPrice"]) == (auction, PUPPET, 900_000)
    assert (row["collectionId"], row["marketType"], row["nftType"]) == (PUPPETS, "fixedPrice", "collection")
    assert (await _listings(desk, collectionId="nothing"))["total"] == 0
    base: dict[str, Any] = {"filter": {"nftType": "collection"}, "sort": {}, "start": 0, "limit": 10}
    for bad in ({"filter": {}}, {"sort": {"price": 1}}, {"sort": {"unitPrice": 2}}, {"limit": 100}, {"start": None}):
        assert (await desk.ask("POST", f"{UNISAT}/list", base | bad, headers=BEARER))[0] == 400


async def test_what_an_address_holds(desk: Desk) -> None:
    await desk.sim(
        "PUT",
        f"wallets/{ANN.ordinals}",
        {
            "inscriptions": [
                {"id": PUPPET, "collection": PUPPETS, "name": "Puppet #1"},
                {"id": OTHER, "collection": "cats"},
            ]
        },
    )
    await unisat_listed(desk)

    _, summary = await unisat(desk, "collection_summary", address=ANN.ordinals, firstCollectionId=PUPPETS)
    page = {"collectionId": PUPPETS, "address": ANN.ordinals, "start": 0, "limit": 10}
    _, held = await unisat(desk, "collection_inscriptions", **page)

    assert [(row["collectionId"], row["total"]) for row in summary["list"]] == [(PUPPETS, 1), ("cats", 1)]
    (row,) = held["list"]
    assert (held["total"], row["inscriptionId"], row["listed"]) == (1, PUPPET, True)
    assert row["collectionItemName"] == "Puppet #1"
    _, none = await unisat(desk, "collection_inscriptions", **(page | {"address": ANN.payment}))
    assert none == {"list": [], "total": 0}


async def test_single_inscriptions(desk: Desk) -> None:
    await hold(desk, PUPPET, OTHER)
    auction = await unisat_listed(desk)

    code, found = await unisat(desk, "inscription_info", inscriptionId=PUPPET)
    _, other = await unisat(desk, "inscription_info", inscriptionId=OTHER)
    _, both = await unisat(desk, "inscription_info_list", inscriptionIds=[PUPPET, OTHER, "c" * 64 + "i0"])
    _, own = await unisat(desk, "inscription_info_list", address=ANN.ordinals)

    assert code == 0
    assert (found["auctionId"], found["price"], found["address"]) == (auction, 900_000, ANN.ordinals)
    assert (found["collectionId"], found["nftType"], found["utxo"]) == (PUPPETS, "collection", {})
    assert (other["auctionId"], other["price"], other["marketType"]) == (None, None, None)
    assert [(row["inscriptionId"], row["auctionId"], row["status"]) for row in both["list"]] == [
        (PUPPET, auction, "listed"),
        (OTHER, None, None),
    ]
    assert own == both
    assert (await unisat(desk, "inscription_info", inscriptionId="c" * 64 + "i0"))[0] == -109


async def test_what_happened(desk: Desk) -> None:
    await hold(desk, PUPPET)
    await desk.list_puppets(2_000_000)
    desk.clock.advance(1)
    auction = await unisat_listed(desk)
    desk.clock.advance(1)
    new = {"auctionId": auction, "initPrice": "800000", "unitPrice": "800000"}
    _, draft = await unisat(desk, "create_modify_price", **new)
    await unisat(desk, "confirm_modify_price", auctionId=auction, psbt=hex_signed(draft["psbt"]), fromBase64=False)
    desk.clock.advance(1)
    sold = await desk.sim("POST", "sell", {"inscriptionId": PUPPET})
    desk.clock.advance(1_200)

    assert await _actions(desk, nftType="collection", collectionId=PUPPETS) == [
        ("Sold", 800_000),
        ("Updated", 800_000),
        ("Listed", 900_000),
        ("Listed", 2_000_000),
    ]
    assert await _actions(desk, event="Sold") == [("Sold", 800_000)]
    assert await _actions(desk, inscriptionId=PUPPET, event="Listed") == [("Listed", 900_000)]
    assert await _actions(desk, address=sold["buyer"]) == [("Sold", 800_000)]
    assert await _actions(desk, event="Claim") == []
    _, data = await unisat(desk, "actions", filter={"event": "Sold"}, start=0, limit=1)
    (row,) = data["list"]
    assert (row["auctionId"], row["from"], row["to"]) == (auction, ANN.ordinals, sold["buyer"])
    assert row["attributes"] == [{"trait_type": "Hat", "value": "Red"}]
    status, _ = await desk.ask("POST", f"{UNISAT}/actions", {"filter": {"event": "x"}}, headers=BEARER)
    assert status == 400


async def test_an_end_without_a_sale_is_told(desk: Desk) -> None:
    await hold(desk)
    await unisat_listed(desk)
    desk.clock.advance(1)
    await desk.sim("POST", "delist", {"inscriptionId": PUPPET, "venue": "unisat"})

    assert await _actions(desk, collectionId=PUPPETS) == [("Cancel", 900_000), ("Listed", 900_000)]


async def test_runes_have_actions_too(desk: Desk) -> None:
    await desk.list_rune()
    body = {"filter": {"nftType": "runes", "tick": RUNE}, "start": 0, "limit": 10}

    status, answer = await desk.ask("POST", f"{RUNES}/actions", body, headers=BEARER)

    (row,) = answer["data"]["list"]
    assert (status, row["event"], row["tick"], row["amount"], row["unitPrice"]) == (200, "Listed", RUNE, 1_000, 2.5)
    assert row["price"] == 2_500


async def test_five_calls_a_second_after_a_burst(desk: Desk) -> None:
    body = {"nftType": "collection"}

    async def status() -> int:
        asked = {"filter": body, "sort": {}, "start": 0, "limit": 1}
        return (await desk.fetch("POST", f"{UNISAT}/list", asked, headers=BEARER)).code

    assert [await status() for _ in range(11)] == [200] * 10 + [429]
    desk.clock.advance(0.2)
    assert [await status(), await status()] == [200, 429]


async def test_a_key_is_needed_and_its_month_ends(desk: Desk) -> None:
    body = {"collectionId": PUPPETS}
    for headers in ({}, {"Authorization": "Basic practice"}):
        status, answer = await desk.ask("POST", f"{UNISAT}/collection_statistic", body, headers=headers)
        assert (status, answer["code"]) == (401, -1)
    desk.world.limits.load({"unisat practice": {"month": "2025-10", "used": PER_MONTH - 1, "day": "", "usedToday": 0}})
    assert (await unisat(desk, "list", filter={"nftType": "collection"}, sort={}, start=0, limit=1))[0] == 0
    status, answer = await desk.ask("POST", f"{UNISAT}/collection_statistic", body, headers=BEARER)
    assert (status, "60000 requests a month" in answer["msg"]) == (429, True)


@pytest.mark.parametrize(("operation", "name"), [("floors", "collection_statistic"), ("book", "list")])
async def test_faults_strike_with_the_common_code(desk: Desk, operation: str, name: str) -> None:
    await desk.list_puppets(2_000_000)
    for mode, wanted in (("error_500", 500), ("rate_429", 429), ("refuse_400", 400), ("auth_401", 401)):
        await desk.fault(operation, mode)
        status, answer = await desk.ask("POST", f"{UNISAT}/{name}", {}, headers=BEARER)
        assert (status, answer["code"], answer["data"]) == (wanted, -1, None)


DEFAULT = 0x00


async def test_a_draft_spends_the_inscription_and_pays_the_price_alone(desk: Desk) -> None:
    await hold(desk)

    code, draft = await put_on(desk)

    assert (code, set(draft), draft["signIndexes"]) == (0, {"auctionId", "psbt", "signIndexes"}, [0])
    psbt = decode(bytes.fromhex(draft["psbt"]))
    (source,), (payout,), (fields,) = psbt.transaction.inputs, psbt.transaction.outputs, psbt.inputs
    assert f"{source.outpoint.txid[::-1].hex()}:{source.outpoint.vout}" == await outpoint_of(desk)
    assert payout == TxOutput(900_000, own_script("p2wpkh", ANN.key.get_public_key().sec()))
    assert fields[compact(0x03)] == (0x83).to_bytes(4, "little")
    assert fields[compact(0x17)].hex() == ANN.pubkey[2:]
    assert (await unisat_book(desk), await desk.events()) == ({}, [])


async def test_without_a_btc_address_the_vault_is_paid(desk: Desk) -> None:
    await hold(desk)

    _, draft = await put_on(desk, btcAddress=None)

    (payout,) = decode(bytes.fromhex(draft["psbt"])).transaction.outputs
    assert payout.script == own_script("p2tr", ANN.key.get_public_key().sec())


@pytest.mark.parametrize("form", ["hex", "base64", "finalized"])
async def test_a_confirmed_listing_stands_here_only(desk: Desk, form: str) -> None:
    await hold(desk)
    _, draft = await put_on(desk)
    psbt = hex_signed(draft["psbt"], final=form == "finalized")
    sent: dict[str, Any] = {"psbt": as_base64(psbt), "fromBase64": True} if form == "base64" else {"psbt": psbt}

    assert await unisat(desk, "confirm_put_on", auctionId=draft["auctionId"], **sent) == (0, {})

    assert await unisat_book(desk) == {draft["auctionId"]: 900_000}
    assert await own_listings(desk) == {}
    (event,) = await desk.events()
    assert (event["event"], event["orderId"], event["venue"]) == ("accepted", draft["auctionId"], "unisat")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"inscriptionId": OTHER}, -109),
        ({"pubkey": BOB.pubkey}, -163),
        ({"pubkey": "ab"}, -156),
        ({"price": 999}, -132),
        ({"price": 2_100_000_000_000_001}, -133),
        ({"initPrice": 900_000}, -156),
        ({"unitPrice": "1"}, -156),
        ({"marketType": "auction"}, -156),
        ({"nftType": "runes"}, -107),
        ({"btcAddress": "nowhere"}, -156),
    ],
)
async def test_no_draft_for_what_cannot_be_listed(desk: Desk, changes: dict[str, Any], code: int) -> None:
    await hold(desk)

    found, said = await put_on(desk, **changes)

    assert (found, isinstance(said, str)) == (code, True)


async def test_no_draft_for_an_output_that_waits_or_holds_more(desk: Desk) -> None:
    await hold(desk)
    await desk.sim("POST", "move", {"inscriptionId": PUPPET, "address": ANN.ordinals, "confirmed": False})
    assert (await put_on(desk))[0] == -127
    desk.clock.advance(1_200)
    assert (await put_on(desk))[0] == 0
    await desk.sim("PUT", f"outputs/{await outpoint_of(desk)}", {"runes": {"AAA•BBB": {"amount": 5}}})
    assert (await put_on(desk))[0] == -126


@pytest.mark.parametrize("what", ["unsigned", "sighash", "altered", "another outpoint", "nonsense", "base64"])
async def test_a_wrong_signature_is_a_sign_error(desk: Desk, what: str) -> None:
    await hold(desk)
    _, draft = await put_on(desk)
    good = hex_signed(draft["psbt"])
    wrong = {
        "unsigned": draft["psbt"],
        "sighash": hex_signed(draft["psbt"], sighash=0x81),
        "altered": hex_changed(good, value=1_000_000),
        "another outpoint": hex_changed(good, txid="0" * 64),
        "nonsense": "00ff",
        "base64": as_base64(good),
    }

    code, said = await unisat(desk, "confirm_put_on", auctionId=draft["auctionId"], psbt=wrong[what])

    assert (code, said.startswith("Sign error")) == (-112, True)
    assert await unisat_book(desk) == {}


async def test_what_is_listed_is_not_listed_again(desk: Desk) -> None:
    await hold(desk)
    _, other = await put_on(desk)
    auction = await unisat_listed(desk)

    assert (await put_on(desk))[0] == -160
    for wanted, code in ((other["auctionId"], -160), (auction, -145), ("f" * 24, -100)):
        signed_psbt = hex_signed(other["psbt"])
        assert (await unisat(desk, "confirm_put_on", auctionId=wanted, psbt=signed_psbt))[0] == code
    assert await unisat_book(desk) == {auction: 900_000}


async def test_another_price_keeps_the_auction(desk: Desk) -> None:
    await hold(desk)
    auction = await unisat_listed(desk)
    new = {"auctionId": auction, "initPrice": "800000", "unitPrice": "800000"}

    code, draft = await unisat(desk, "create_modify_price", **new)
    assert (code, set(draft), draft["signIndexes"]) == (0, {"psbt", "signIndexes"}, [0])
    (output,) = decode(bytes.fromhex(draft["psbt"])).transaction.outputs
    assert output.value == 800_000
    assert await unisat_book(desk) == {auction: 900_000}
    confirm = {"auctionId": auction, "psbt": hex_signed(draft["psbt"]), "fromBase64": False}
    assert (await unisat(desk, "confirm_modify_price", **(confirm | {"fromBase64": None})))[0] == -156
    assert (await unisat(desk, "confirm_modify_price", **(confirm | {"psbt": draft["psbt"]})))[0] == -112
    assert await unisat(desk, "confirm_modify_price", **confirm) == (0, {})

    assert await unisat_book(desk) == {auction: 800_000}
    sold = await desk.sim("POST", "sell", {"inscriptionId": PUPPET})
    assert (sold["sold"]["price"], sold["sold"]["orderId"]) == (800_000, auction)
    assert (await unisat(desk, "create_modify_price", **new))[0] == -144


async def test_a_draft_of_an_older_price_is_refused(desk: Desk) -> None:
    await hold(desk)
    auction = await unisat_listed(desk)
    first = {"auctionId": auction, "initPrice": "800000", "unitPrice": "800000"}
    _, draft = await unisat(desk, "create_modify_price", **first)
    confirm = {"auctionId": auction, "psbt": hex_signed(draft["psbt"]), "fromBase64": False}
    desk.world.engine.reprice(desk.world.engine.ask_of(PUPPET, "unisat"), 700_000)  # type: ignore[arg-type]

    assert (await unisat(desk, "confirm_modify_price", **confirm))[0] == -139
    assert (await unisat(desk, "create_modify_price", **(first | {"auctionId": "f" * 24})))[0] == -100
    assert (await unisat(desk, "confirm_modify_price", **(confirm | {"auctionId": "f" * 24})))[0] == -100


async def _put_off(desk: Desk, auction: str, **changes: Any) -> tuple[int, Any]:
    return await unisat(desk, "create_put_off", **({"auctionId": auction, "offChain": True} | changes))


async def test_a_listing_is_put_off_by_a_signature_that_moves_nothing(desk: Desk) -> None:
    await hold(desk)
    auction, outpoint = await unisat_listed(desk), await outpoint_of(desk)

    code, draft = await _put_off(desk, auction)

    assert (code, draft["btcSignIndexes"], draft["nftSignIndexes"]) == (0, [], [0])
    psbt = decode(bytes.fromhex(draft["psbt"]))
    (output,), value = psbt.transaction.outputs, (await desk.data("item", inscriptionId=PUPPET))["outputValue"]
    assert output == TxOutput(value, own_script("p2tr", ANN.key.get_public_key().sec()))
    confirm = {"auctionId": auction, "offChain": True, "psbt": hex_signed(draft["psbt"], sighash=DEFAULT)}
    for wrong in (draft["psbt"], hex_signed(draft["psbt"]), hex_changed(confirm["psbt"], value=value - 1)):
        assert (await unisat(desk, "confirm_put_off", **(confirm | {"psbt": wrong})))[0] == -112
    assert await unisat(desk, "confirm_put_off", **confirm) == (0, {"txid": ""})
    assert (await unisat_book(desk), await outpoint_of(desk)) == ({}, outpoint)
    assert (await _put_off(desk, auction))[0] == -144
    assert (await unisat(desk, "confirm_put_off", **confirm))[0] == -144


async def test_putting_off_on_the_chain_is_not_here(desk: Desk) -> None:
    await hold(desk)
    auction = await unisat_listed(desk)

    for name, body in (
        ("create_put_off", {"auctionId": auction}),
        ("confirm_put_off", {"auctionId": auction, "psbt": "00"}),
        ("create_bid", {"auctionId": auction}),
    ):
        status, answer = await desk.ask("POST", f"{UNISAT}/{name}", body, headers=BEARER)
        assert (status, answer["code"]) == (501, -1)


async def test_a_sale_elsewhere_ends_the_auction(desk: Desk) -> None:
    await hold(desk)
    auction = await unisat_listed(desk)
    await listed(desk)
    await ow_listed(desk)

    await desk.sim("POST", "sell", {"inscriptionId": PUPPET, "venue": "satflow"})

    assert await unisat_book(desk) == {}
    assert (await _put_off(desk, auction))[0] == -144
    assert {event["venue"] for event in await desk.events("cancelled")} == {"unisat", "ordinalswallet"}


@pytest.mark.parametrize("mode", ["wrong_payout", "low_payout", "extra_input", "sighash_none", "two_inputs"])
async def test_drafts_can_be_evil_here_too(desk: Desk, mode: str) -> None:
    await hold(desk, PUPPET, OTHER)
    auction = await unisat_listed(desk)
    new = {"auctionId": auction, "initPrice": "800000", "unitPrice": "800000"}
    honest = [await unisat(desk, "create_modify_price", **new), await _put_off(desk, auction)]
    await desk.sim("PUT", "poison", {"mode": mode})

    evil = [await unisat(desk, "create_modify_price", **new), await _put_off(desk, auction)]
    _, put = await put_on(desk, inscriptionId=OTHER)

    assert all(a[1]["psbt"] != b[1]["psbt"] for a, b in zip(honest, evil, strict=True))
    assert bytes.fromhex(put["psbt"])[:5] == b64decode("cHNidP8=")


async def test_faults_strike_a_listing_and_its_end(desk: Desk) -> None:
    await hold(desk)
    await desk.fault("list", "accept_then_500", count=1)
    _, draft = await put_on(desk)
    body = {"auctionId": draft["auctionId"], "psbt": hex_signed(draft["psbt"])}

    status, answer = await desk.ask("POST", f"{UNISAT}/confirm_put_on", body, headers=BEARER)

    assert (status, answer["code"]) == (500, -1)
    assert list(await unisat_book(desk)) == [draft["auctionId"]]
    await desk.fault("cancel", "cancel_lie", count=1)
    _, off = await _put_off(desk, draft["auctionId"])
    confirm = {"auctionId": draft["auctionId"], "offChain": True, "psbt": hex_signed(off["psbt"], sighash=DEFAULT)}
    assert await unisat(desk, "confirm_put_off", **confirm) == (0, {"txid": ""})
    assert list(await unisat_book(desk)) == [draft["auctionId"]]
    await desk.fault("cancel", "late", delaySeconds=3)
    assert (await unisat(desk, "confirm_put_off", **confirm))[0] == 0
    assert len(await unisat_book(desk)) == 1
    desk.clock.advance(3)
    assert await unisat_book(desk) == {}
    counts = await desk.sim("GET", "requests")
    assert counts["list"] == {PUPPET: 1, draft["auctionId"]: 1}
    assert counts["cancel"] == {draft["auctionId"]: 3}


RED = {"Hat": "Red"}


async def _rows(desk: Desk, sort: str, **wanted: Any) -> list[dict[str, Any]]:
    body = {"filter": {"nftType": "collection"} | wanted, "sort": {sort: 1}, "start": 0, "limit": 99}
    code, data = await unisat(desk, "list", **body)
    assert (code, data["total"]) == (0, len(data["list"]))
    found: list[dict[str, Any]] = data["list"]
    return found


@AS_SEEN
async def test_rows_have_traits_with_floors_and_one_is_below_those_of_its_own(desk: Desk) -> None:
    await desk.list_puppets(
        asks=[{"price": 900_000, "traits": RED}, {"price": 800_000}, {"price": 950_000, "traits": RED}]
    )

    moved, *others = await _rows(desk, "initPrice", collectionId=PUPPETS)

    red = {"traitType": "Hat", "value": "Red", "count": 2, "listingCount": 2, "floorPrice": 900_000}
    assert [(row["price"], row["attrs"]) for row in others] == [(800_000, []), (900_000, [red]), (950_000, [red])]
    assert (moved["price"], moved["attrs"]) == (450_000, [red])
    assert desk.clock.now_ms - moved["onSaleTime"] > 80 * 86_400_000
    assert len({row["inscriptionId"] for row in (moved, *others)}) == 4


@AS_SEEN
async def test_unit_price_may_be_ten_times_the_price_or_null(desk: Desk) -> None:
    await desk.list_puppets(*range(100_000, 112_000, 1_000))
    rows = await _rows(desk, "unitPrice", collectionId=PUPPETS)
    assert {row["unitPrice"] and row["unitPrice"] // row["price"] for row in rows} == {1, 10, None}
    assert [row["price"] for row in rows] != sorted(row["price"] for row in rows)
    by_price = [row["price"] for row in await _rows(desk, "initPrice", collectionId=PUPPETS)]
    assert by_price == sorted(by_price)


@AS_SEEN
@pytest.mark.parametrize(("slug", "wanted"), [(PUPPETS, 200), ("cats", 500)])
async def test_statistic_fails_for_some_collections_and_the_list_has_them(desk: Desk, slug: str, wanted: int) -> None:
    await desk.sim("PUT", f"collections/{slug}", {"asks": [{"price": 800_000}]})

    status, _ = await desk.ask("POST", f"{UNISAT}/collection_statistic", {"collectionId": slug}, headers=BEARER)

    assert status == wanted
    for time_type, floors in (("7d", [800_000]), ("day1", [])):
        body = {"filter": {"timeType": time_type, "collections": [slug]}, "start": 0, "limit": 20}
        _, data = await unisat(desk, "collection_statistic_list", **body)
        assert [row["floorPrice"] for row in data["list"]] == floors


@AS_SEEN
async def test_sale_has_its_transaction(desk: Desk) -> None:
    await hold(desk)
    await unisat_listed(desk)
    sold = await desk.sim("POST", "sell", {"inscriptionId": PUPPET})
    desk.clock.advance(1_200)
    _, data = await unisat(desk, "actions", filter={"event": "Sold"}, start=0, limit=10)
    assert [row["txid"] for row in data["list"]] == [sold["txid"]]
