"""Ordinals Wallet's dialect: what it tells without a key, and how faults strike."""

from __future__ import annotations

from decimal import Decimal
from urllib.parse import quote

import pytest

from tests.simulator.desk import ANN, BOB, PUPPETS, RUNE, Desk
from tests.simulator.seller import (
    OTHER,
    OW,
    PUPPET,
    hex_signed,
    hold,
    listed,
    outpoint_of,
    ow_draft,
    ow_listed,
    ow_read,
    ow_submit,
    session,
    token,
)

pytestmark = pytest.mark.gen_test
RUNES = f"collection/{quote('rune-' + RUNE)}"


def _txid_vout(serialized: str) -> str:
    assert len(serialized) == 72
    return f"{bytes.fromhex(serialized[:64])[::-1].hex()}:{int.from_bytes(bytes.fromhex(serialized[64:]), 'little')}"


async def test_a_collection_and_its_numbers(desk: Desk) -> None:
    await hold(desk)
    await desk.list_puppets(2_000_000, 1_900_000, name="Puppets")

    collection = await ow_read(desk, f"collection/{PUPPETS}")
    stats = await ow_read(desk, f"collection/{PUPPETS}/stats")

    assert (collection["slug"], collection["name"], collection["total_supply"]) == (PUPPETS, "Puppets", 3)
    assert stats | {"id": ""} == {
        "id": "",
        "total_supply": None,
        "floor_price": 1_900_000,
        "floor_price_per": None,
        "volume_total": None,
        "volume_day": None,
        "listed": 2,
        "sales": 0,
        "owners": None,
    }
    for path in ("", "/stats", "/escrows", "/sold-escrows", "/sales"):
        status, answer = await desk.ask("GET", f"{OW}/collection/nothing{path}", headers={})
        assert (status, answer["error"]) == (404, True)


async def test_a_wallet_tells_everything_of_what_it_holds(desk: Desk) -> None:
    await hold(desk, PUPPET, OTHER)
    await desk.list_puppets(2_000_000)
    await ow_listed(desk)

    row, other = await ow_read(desk, f"wallet/{ANN.ordinals}/inscriptions")

    assert (row["id"], row["collection"]["slug"], row["collection"]["floor_price"]) == (PUPPET, PUPPETS, 924_974)
    assert row["meta"]["attributes"] == [{"trait_type": "Hat", "value": "Red", "percent": None}]
    assert _txid_vout(row["outpoint"]["outpoint"]) == await outpoint_of(desk)
    assert 546 <= row["outpoint"]["sats"] <= 10_000
    assert (row["escrow"]["satoshi_price"], row["escrow"]["seller_address"]) == (924_974, ANN.ordinals)
    assert (other["id"], other["escrow"]) == (OTHER, None)
    assert await ow_read(desk, f"wallet/{ANN.payment}/inscriptions") == []
    status, answer = await desk.ask("GET", f"{OW}/wallet/nowhere/inscriptions", headers={})
    assert (status, answer) == (400, {"error": True, "message": "Invalid Address"})


async def test_the_traits_of_a_collection_are_counted(desk: Desk) -> None:
    await hold(desk)
    asks = [{"price": 900_000, "traits": {"Hat": "Red", "Eyes": "Wide"}}, {"price": 800_000, "traits": {"Hat": "Blue"}}]
    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": asks, "bids": []})

    assert await ow_read(desk, f"collection/{PUPPETS}/attributes") == [
        {"trait_type": "Eyes", "values": [{"trait_type": "Eyes", "value": "Wide", "count": 1}]},
        {
            "trait_type": "Hat",
            "values": [
                {"trait_type": "Hat", "value": "Blue", "count": 1},
                {"trait_type": "Hat", "value": "Red", "count": 2},
            ],
        },
    ]


async def test_a_strangers_inscription_is_known_by_its_listing(desk: Desk) -> None:
    stranger = "ab" * 32 + "i0"
    asks = [{"price": 900_000, "inscriptionId": stranger, "traits": {"Hat": "Red"}}]
    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": asks, "bids": []})
    [listed] = await ow_read(desk, f"collection/{PUPPETS}/escrows")

    found = await ow_read(desk, f"inscription/{stranger}")
    where = await ow_read(desk, f"inscription/{stranger}/outpoint")

    assert (found["address"], found["collection"]["slug"]) == (listed["seller_address"], PUPPETS)
    assert found["meta"]["attributes"] == [{"trait_type": "Hat", "value": "Red", "percent": None}]
    assert found["escrow"]["satoshi_price"] == listed["satoshi_price"]
    assert _txid_vout(where["inscription"]["outpoint"]) == listed["outpoint"]
    status, _ = await desk.ask("GET", f"{OW}/inscription/{'cd' * 32}i0", headers={})
    assert status == 404


async def test_an_inscription_and_where_it_lies(desk: Desk) -> None:
    await hold(desk)

    found = await ow_read(desk, f"inscription/{PUPPET}")
    where = await ow_read(desk, f"inscription/{PUPPET}/outpoint")

    assert (found["address"], found["satpoint"]) == (ANN.ordinals, f"{await outpoint_of(desk)}:0")
    assert (found["collection"]["slug"], found["escrow"]) == (PUPPETS, None)
    assert where == {
        "inscription": {
            "id": PUPPET,
            "sat_offset": 0,
            "outpoint": where["inscription"]["outpoint"],
            "address": ANN.ordinals,
            "sats": found["value"],
        },
        "owner": ANN.ordinals,
        "sats": found["value"],
        "escrow": None,
    }
    assert _txid_vout(where["inscription"]["outpoint"]) == await outpoint_of(desk)
    for path, wanted in ((f"inscription/{OTHER}", 404), ("inscription/x", 400), (f"market/escrow/{PUPPET}", 404)):
        assert (await desk.ask("GET", f"{OW}/{path}", headers={}))[0] == wanted


async def test_runes_are_collections_with_a_price_per_token(desk: Desk) -> None:
    asks = [{"tokens": 93_159.95, "unitPrice": 1.27976654}, {"tokens": 10, "unitPrice": 1.5}]
    await desk.list_rune(asks=asks)

    stats = await ow_read(desk, f"{RUNES}/stats")
    first, second = await ow_read(desk, f"{RUNES}/escrows")

    assert (stats["floor_price"], stats["floor_price_per"], stats["listed"]) == (119_223, "1.27976668", 2)
    assert (first["inscription_id"], first["satoshi_price"], first["amount"]) == (None, 119_223, "93159.95")
    assert (first["price_per"], second["price_per"], second["satoshi_price"]) == ("1.27976668", "1.5", 15)
    assert (await ow_read(desk, RUNES))["slug"] == f"rune-{RUNE}"


async def test_what_was_sold_here_and_everywhere(desk: Desk) -> None:
    await hold(desk, PUPPET, OTHER)
    await ow_listed(desk)
    await listed(desk, inscriptionId=OTHER)
    outpoint = await outpoint_of(desk)
    desk.clock.advance(700)
    here = await desk.sim("POST", "sell", {"inscriptionId": PUPPET})
    desk.clock.advance(700)
    there = await desk.sim("POST", "sell", {"inscriptionId": OTHER})

    (sold,) = await ow_read(desk, f"collection/{PUPPETS}/sold-escrows?limit=100")
    tape = await ow_read(desk, f"collection/{PUPPETS}/sales")

    assert (sold["inscription_id"], sold["purchase_txid"], sold["satoshi_price"]) == (PUPPET, here["txid"], 924_974)
    assert (sold["buyer_address"], sold["price_per"], sold["amount"]) == (here["buyer"], "924974", "1")
    assert sold["outpoint"] == outpoint
    newest, older = tape["sales"]
    assert (newest["txid"], newest["marketplace"], newest["price_sats"]) == (there["txid"], 2, 900_000)
    assert (older["txid"], older["marketplace"], older["price_sats"]) == (here["txid"], 1, 924_974)
    assert (older["old_satpoint"], older["new_satpoint"]) == (f"{outpoint}:0", f"{here['outpoint']}:0")
    assert (tape["has_more"], tape["matched_inscriptions"]) == (False, 2)
    page = await ow_read(desk, f"collection/{PUPPETS}/sales?limit=1")
    assert (page["sales"], page["has_more"]) == ([newest], True)
    before = newest["block_height"]
    assert (await ow_read(desk, f"collection/{PUPPETS}/sales?before_height={before}"))["sales"] == [older]


async def test_where_a_creator_takes_a_part_only_the_listing_itself_tells_the_sellers_price(desk: Desk) -> None:
    await hold(desk)
    creator = {"creator": BOB.ordinals}
    await desk.list_puppets(**creator)
    await ow_listed(desk)

    (row,) = await ow_read(desk, f"wallet/{ANN.ordinals}/inscriptions")
    (shown,) = await ow_read(desk, f"collection/{PUPPETS}/escrows")
    told = await ow_read(desk, f"market/escrow/{PUPPET}")

    assert (row["collection"]["creator_address"], shown["creator_address"]) == (BOB.ordinals, BOB.ordinals)
    assert (row["escrow"]["satoshi_price"], shown["satoshi_price"]) == (975_081, 975_081)
    assert "escrow_price" not in row["escrow"]
    assert (told["escrow_price"], told["satoshi_price"]) == (900_000, 975_081)
    assert (told["creator_address"], told["creator_royalty"], told["market_royalty"]) == (BOB.ordinals, 0.05, 0.027)
    await desk.list_puppets(2_000_000)  # the creator stays until the market forgets everything
    await desk.sim("POST", "sell", {"inscriptionId": PUPPET})
    (sold,) = await ow_read(desk, f"collection/{PUPPETS}/sold-escrows")
    assert (sold["satoshi_price"], sold["creator_address"]) == (975_081, BOB.ordinals)


async def test_balances_and_fees(desk: Desk) -> None:
    await desk.list_rune()
    desk.world.engine.wallets.credit_rune(ANN.ordinals, RUNE, Decimal(1_000))

    (row,) = await ow_read(desk, f"wallet/{ANN.ordinals}/rune-balance")

    assert (row["name"], row["amount"], row["divisibility"]) == (RUNE, "1000", 2)
    assert row["collection"]["slug"] == f"rune-{RUNE}"
    assert (await ow_read(desk, "wallet/fee-estimates"))["halfHourFee"] == 8


async def test_requests_are_counted_by_what_they_ask_about(desk: Desk) -> None:
    await hold(desk)
    await desk.list_puppets(2_000_000)
    for path in ("", "/stats", "/escrows", "/sales"):
        await ow_read(desk, f"collection/{PUPPETS}{path}")
    await ow_read(desk, f"wallet/{ANN.ordinals}/inscriptions")
    await token(desk)
    await ow_listed(desk)

    counts = await desk.sim("GET", "requests")

    assert {name: counts[name] for name in ("collection", "floors", "book", "sales", "wallet", "challenge")} == {
        "collection": {PUPPETS: 1},
        "floors": {PUPPETS: 1},
        "book": {PUPPETS: 1},
        "sales": {PUPPETS: 1},
        "wallet": {ANN.ordinals: 1},
        "challenge": {ANN.ordinals: 1},
    }
    assert counts["list"] == {PUPPET: 2}


@pytest.mark.parametrize(
    ("operation", "path"),
    [
        ("floors", f"collection/{PUPPETS}/stats"),
        ("book", f"collection/{PUPPETS}/escrows"),
        ("fees", "wallet/fee-estimates"),
    ],
)
async def test_faults_strike_in_this_venues_words(desk: Desk, operation: str, path: str) -> None:
    await desk.list_puppets(2_000_000)
    for mode, wanted in (("error_500", 500), ("rate_429", 429), ("refuse_400", 400), ("auth_401", 401)):
        await desk.fault(operation, mode)
        answer = await desk.fetch("GET", f"{OW}/{path}", headers={})
        assert (answer.code, answer.body[:15]) == (wanted, b'{"error": true,')
        assert ("Retry-After" in answer.headers) == (mode == "rate_429")


async def test_faults_of_a_listing_follow_the_deed(desk: Desk) -> None:
    await hold(desk)
    await desk.fault("list", "accept_then_500", count=1)
    _, draft = await ow_draft(desk)

    status, _ = await ow_submit(desk, hex_signed(draft["psbt"]))

    rows = await ow_read(desk, f"collection/{PUPPETS}/escrows")
    assert (status, [row["inscription_id"] for row in rows]) == (500, [PUPPET])
    await desk.fault("draft", "refuse_400", count=1)
    assert (await ow_draft(desk))[0] == 400
    await desk.fault("cancel", "cancel_lie", count=1)
    body = {"inscription_id": PUPPET, "signature": await token(desk)}
    assert await desk.ask("POST", f"{OW}/market/cancel-escrow", body) == (200, {"success": True})
    assert await ow_read(desk, f"collection/{PUPPETS}/escrows") == rows
    await desk.fault("challenge", "error_500", count=1)
    assert (await session(desk))[0] == 500


async def test_a_late_listing_shows_later_and_a_late_end_comes_later(desk: Desk) -> None:
    await hold(desk)
    await desk.fault("list", "late", delaySeconds=3)
    await ow_listed(desk)

    async def shown() -> int:
        return len(await ow_read(desk, f"collection/{PUPPETS}/escrows"))

    assert await shown() == 0
    desk.clock.advance(3)
    assert await shown() == 1
    await desk.fault("cancel", "late", delaySeconds=3)
    body = {"inscription_id": PUPPET, "signature": await token(desk)}
    assert (await desk.ask("POST", f"{OW}/market/cancel-escrow", body))[0] == 200
    assert await shown() == 1
    desk.clock.advance(3)
    assert await shown() == 0


@pytest.mark.parametrize("mode", ["wrong_payout", "low_payout", "other_outpoint", "sighash_none", "extra_output"])
async def test_drafts_can_be_evil_here_too(desk: Desk, mode: str) -> None:
    await hold(desk)
    honest = (await ow_draft(desk))[1]["psbt"]
    await desk.sim("PUT", "poison", {"mode": mode})

    assert (await ow_draft(desk))[1]["psbt"] != honest
