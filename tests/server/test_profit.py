"""Profit and exports over HTTP, and the trade loop from a fill to a cost."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from typing import Any

import pytest

from models.ledger import purchases
from models.ledger.fills import Fill, Place
from models.ledger.states import Order
from models.tasks import cycles, tasks
from models.tasks.tasks import Task
from server import profit
from server.autolist_preview import UNPROVED
from server.http.base import SignedIn
from server.profit import fills_until
from strategy.config.bid import load_bid_config
from tests.server.autolist_tasks import INSCRIPTION, VAULT, lies_at
from tests.server.driver import check
from tests.server.ledger_rows import MINUTE_MS, bought, open_order, proved, row, sold, started
from tests.server.test_autolist_running import market, new
from tests.shapes import replace
from tests.worlds.service import OWNER, START_MS, Answer, Service, with_settings

A, B = "aa" * 32 + "i0", "bb" * 32 + "i0"


def the_example(service: Service) -> None:
    """Buys A for 75,000 and B for 80,000, each with 600 of fees, and sells A for 105,000 less 2,100."""
    for minute, (item, price) in enumerate(((A, 75_000), (B, 80_000)), 1):
        bought(service.user_id, price, minute=minute, task_id=4, inscription_id=item, network_fee_sats=600)
    sold(service.user_id, 105_000, minute=3, inscription_id=A, venue_fee_sats=2_100, txid="cd" * 32)


async def rows(service: Service, query: str = "") -> list[dict[str, Any]]:
    answer = await service.ask("GET", f"/api/pnl{query}")
    assert answer.status == 200, answer.text
    return list(answer.json["rows"])


async def table(service: Service, query: str = "") -> list[dict[str, str]]:
    answer = await service.ask("GET", f"/api/trades.csv{query}")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/csv; charset=utf-8"), answer.text
    return list(csv.DictReader(io.StringIO(answer.text)))


async def test_the_worked_example_of_items(service: Service) -> None:
    the_example(service)
    cycles.record_reference("ordinals", "goosinals", "floor", Decimal("95000.7"), START_MS - MINUTE_MS)
    bought(service.user_id, 1, dry_run=True)
    bought(service.user_id + 1, 1)

    answer = await service.ask("GET", "/api/pnl")

    expected = {
        "key": None,
        "bought": {"count": 2, "sats": 155_000},
        "sold": {"count": 1, "sats": 105_000},
        "matched": 1,
        "realizedSats": 27_300,
        "feesSats": 2_700,
        "realizedPercent": Decimal("36.1"),
        "held": {"count": 1, "costSats": 80_600, "markSats": 95_000},
        "unmatchedSales": 0,
        "unknownFees": 0,
    }
    assert answer.json == {"method": "fifo", "rows": [expected]}
    assert await rows(service, "?groupBy=task") == [expected | {"key": 4}]
    assert await rows(service, "?groupBy=slug&method=average") == [expected | {"key": "goosinals"}]
    assert await rows(service, "?groupBy=month") == [expected | {"key": "2025-11"}]


@pytest.mark.parametrize(("method", "realized", "held"), [("fifo", 1_000, 1_500), ("average", 750, 1_250)])
async def test_the_worked_example_of_runes(
    service: Service, method: str, realized: int, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No task sells runes yet, so the sale is told by a ledger that has one."""
    for minute, price in ((1, 2_000), (2, 3_000)):
        bought(service.user_id, price, minute=minute, slug="DOG", quantity="1000", network_fee_sats=0)

    async def with_sale(handler: SignedIn, to_ms: int | None) -> list[Fill]:
        found = await fills_until(handler, to_ms)
        sale = replace(found[-1], place=Place(START_MS + 3 * MINUTE_MS, "sell", 1), price_sats=4_500)
        return [*found, replace(sale, quantity=Decimal(1_500), venue_fee_sats=0)]

    for module in (profit, profit):
        monkeypatch.setattr(module, "fills_until", with_sale)
    (row,) = await rows(service, f"?method={method}")
    assert (row["realizedSats"], row["held"]["costSats"], row["unmatchedSales"]) == (realized, held, 0)
    last = (await table(service, f"?method={method}"))[-1]
    assert (last["cost_sats"], last["profit_sats"], last["quantity"]) == (str(4_500 - realized), str(realized), "1500")


async def test_a_time_bounds_the_rows_but_not_the_costs(service: Service) -> None:
    the_example(service)
    (row,) = await rows(service, "?from=2025-11-20T12:03:00Z")
    assert (row["bought"]["count"], row["realizedSats"], row["held"]["count"]) == (0, 27_300, 0)
    (row,) = await rows(service, "?to=2025-11-20T12:03:00Z")
    assert (row["bought"]["count"], row["sold"]["count"], row["held"]["costSats"]) == (2, 0, 156_200)
    assert row["realizedPercent"] is None
    assert [line["side"] for line in await table(service, "?from=2025-11-20T12:02:00Z")] == ["buy", "sell"]


async def test_what_is_not_known_is_told(service: Service) -> None:
    """A floor that no task looked at, one of another venue, and fees."""
    bought(service.user_id, 75_000, inscription_id=A, venue="ordnet")
    sold(service.user_id, 105_000, minute=1, inscription_id=B)
    cycles.record_reference("ordinals", "goosinals", "floor", Decimal(95_000), START_MS)
    (row,) = await rows(service)
    assert (row["held"]["markSats"], row["unknownFees"], row["unmatchedSales"], row["matched"]) == (None, 2, 1, 0)
    cycles.record_reference("ordinals", "goosinals", "floor at ordnet", Decimal(90_000), START_MS)
    assert (await rows(service))[0]["held"]["markSats"] == 90_000
    service.clock.now_ms += 61 * MINUTE_MS
    assert (await rows(service))[0]["held"]["markSats"] is None


async def test_the_plain_columns(service: Service) -> None:
    the_example(service)
    answer = await service.ask("GET", "/api/trades.csv")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="trades-plain.csv"'
    assert answer.text.splitlines() == [
        "date,side,slug,inscription_id,quantity,price_sats,network_fee_sats,venue_fee_sats,"
        "cost_sats,proceeds_sats,profit_sats,txid,venue,task",
        f"2025-11-20T12:01:00.000Z,buy,goosinals,{A},1,75000,600,,75600,,,,simulator,4",
        f"2025-11-20T12:02:00.000Z,buy,goosinals,{B},1,80000,600,,80600,,,,simulator,4",
        f"2025-11-20T12:03:00.000Z,sell,goosinals,{A},1,105000,,2100,75600,105000,27300,{'cd' * 32},simulator,2",
    ]


async def test_the_columns_of_cointracking_have_the_fees_in_the_amounts(service: Service) -> None:
    the_example(service)
    bought(service.user_id, 2_500, minute=4, slug="DO•G", quantity="1000.5")
    first, _, sale, rune = await table(service, "?format=cointracking")
    assert list(first)[:11] == [
        *("Type", "Buy Amount", "Buy Currency", "Sell Amount", "Sell Currency", "Fee", "Fee Currency", "Exchange"),
        *("Trade-Group", "Comment", "Date"),
    ]
    assert list(first.values())[:8] == ["Trade", "1", A, "0.000756", "BTC", "0.000006", "BTC", "simulator"]
    assert list(sale.values())[:7] == ["Trade", "0.001029", "BTC", "1", A, "0.000021", "BTC"]
    assert (sale["Date"], sale["Tx-ID"], first["Tx-ID"]) == ("2025-11-20 12:03:00", "cd" * 32, "buy-1")
    assert list(rune.values())[1:7] == ["1000.5", "DOG", "0.000025", "BTC", "", ""]


async def test_the_columns_of_koinly_have_the_fees_beside_the_amounts(service: Service) -> None:
    the_example(service)
    first, _, sale = await table(service, "?format=koinly")
    assert list(first) == [
        *("Date", "Sent Amount", "Sent Currency", "Received Amount", "Received Currency", "Fee Amount", "Fee Currency"),
        *("Net Worth Amount", "Net Worth Currency", "Label", "Description", "TxHash"),
    ]
    assert list(first.values())[:7] == ["2025-11-20 12:01:00", "0.00075000", "BTC", "1.0", A, "0.00000600", "BTC"]
    assert list(sale.values())[1:7] == ["1.0", A, "0.00105000", "BTC", "0.00002100", "BTC"]


@pytest.mark.parametrize(
    ("sats", "btc"),
    [
        (1, "0.00000001"),
        (100, "0.00000100"),
        (100_000_000, "1.00000000"),
        (2_099_999_999_999_999, "20999999.99999999"),
    ],
)
@pytest.mark.parametrize(
    ("quantity", "shown"),
    [("1", "1.0"), ("1000000", "1000000.0"), ("1E+7", "10000000.0"), ("0.00000001", "0.00000001")],
)
async def test_each_amount_for_koinly_has_a_decimal_point_and_nothing_but_digits(
    service: Service, sats: int, btc: str, quantity: str, shown: str
) -> None:
    bought(service.user_id, sats, slug="DO•G", quantity=quantity, network_fee_sats=sats)
    bought(service.user_id, sats, slug="DO•G", quantity=quantity, minute=1)
    row, unknown_fee = await table(service, "?format=koinly")
    assert [row[name] for name in ("Sent Amount", "Sent Currency")] == [btc, "BTC"]
    assert [row[name] for name in ("Received Amount", "Received Currency")] == [shown, "DOG"]
    assert [row[name] for name in ("Fee Amount", "Fee Currency")] == [btc, "BTC"]
    assert [unknown_fee[name] for name in ("Fee Amount", "Fee Currency")] == ["", ""]


@pytest.mark.parametrize("format", ["plain", "cointracking", "koinly"])
async def test_no_text_is_a_formula_to_a_spreadsheet_and_numbers_stay_numbers(service: Service, format: str) -> None:
    for number, slug in enumerate(("=1+1", "+x", "-x", "@x", "\tx", 'a,"b"\n')):
        sold(service.user_id, 5, minute=number, slug=slug, inscription_id=f"={number}", txid="@y")
    bought(service.user_id, 900, slug="-cats", inscription_id="=9", network_fee_sats=0)
    sold(service.user_id, 100, minute=9, slug="-cats", inscription_id="=9", venue_fee_sats=0)

    found = await table(service, f"?format={format}")

    cells = [cell for line in found for cell in line.values() if cell]
    assert [cell for cell in cells if cell[0] in "=+@\t\r"] == []
    assert [cell for cell in cells if cell[0] == "-"] == (["-800"] if format == "plain" else [])
    assert any(cell.startswith("'=9") for cell in cells) and len(found) == 8


RULE = {"autolist": {"minMargin": 0.1}, "start": True}
LISTING = {"inscriptionId": INSCRIPTION, "collectionId": "goosinals"}
TO_VAULT = {"slug": "goosinals", "hardcapSats": 100_000, "deliverTo": "vault"}
PERCENTS = {"minMargin": 0.1, "pricePercent": 1.05}


async def created(service: Service, **body: Any) -> Answer:
    answer: Answer = await service.ask("POST", "/api/tasks", TO_VAULT | body)
    check("createTask", answer)
    return answer


async def test_the_rule_comes_back_with_every_field_and_can_be_sent_again(service: Service) -> None:
    answer = await created(service, onFill=RULE)
    rule = answer.json["config"]["onFill"]
    assert answer.status == 201 and (rule["start"], rule["maxOpen"]) == (True, 10)
    assert (rule["autolist"]["priceMode"], float(rule["autolist"]["minMargin"])) == ("percent", 0.1)
    assert "costSats" not in rule["autolist"]
    stored = row(answer.json["id"]).config
    again = await service.ask("PUT", f"/api/tasks/{answer.json['id']}", json.loads(answer.text)["config"])
    assert (again.status, row(answer.json["id"]).config) == (200, stored)
    gone = await service.ask("PUT", f"/api/tasks/{answer.json['id']}", {"onFill": None})
    assert gone.json["config"]["onFill"] is None


async def test_a_rule_that_starts_needs_its_whole_trait(service: Service) -> None:
    rule = RULE | {"autolist": {"reference": "traitFloor", "traitType": "Hat"}}
    answer = await created(service, onFill=rule)
    told = "onFill: autolist.traitValue: is required when the reference is traitFloor"
    assert (answer.status, answer.json["details"]) == (400, [told])


async def test_a_rule_that_needs_no_start_may_have_gaps(service: Service) -> None:
    rule = {"autolist": {"reference": "traitFloor"}, "start": False}
    assert (await created(service, onFill=rule)).status == 201


async def test_ord_net_delivers_to_the_vault_whatever_is_left_out(service: Service) -> None:
    body = {"slug": "goosinals", "hardcapSats": 100_000, "venue": "simulator-ordnet"}
    made = await service.ask("POST", "/api/tasks", body)
    assert made.json["config"]["deliverTo"] == "vault"
    said = await service.ask("POST", "/api/tasks", body | {"slug": "other", "deliverTo": "ordinalsAddress"})
    assert said.json["details"] == ["deliverTo: Practice market, ord.net's dialect delivers to the vault only"]
    assert (await service.ask("POST", "/api/tasks/preview", {"taskId": made.json["id"]})).status != 400
    elsewhere = await service.new_task(slug="cloned")
    moved = {"slug": "again", "venue": "simulator-ordnet"}
    clone = await service.ask("POST", f"/api/tasks/{elsewhere}/clone", moved)
    assert (clone.status, clone.json["config"]["deliverTo"]) == (201, "vault")


async def test_the_place_of_delivery_stays_while_orders_are_open(service: Service) -> None:
    task_id = await started(service)
    order = open_order(service, task_id)
    answer = await service.ask("PUT", f"/api/tasks/{task_id}", {"deliverTo": "vault"})
    assert answer.status == 409 and "open bids deliver to the former address" in answer.json["message"]
    check("changeTask", answer)
    assert not load_bid_config(row(task_id).config).to_vault
    assert (await service.ask("PUT", f"/api/tasks/{task_id}", {"bidCount": 3})).status == 200
    Order.update(state="closed", close_reason="cancelled").where(Order.id == order.id).execute()
    assert (await service.ask("PUT", f"/api/tasks/{task_id}", {"deliverTo": "vault"})).status == 200


async def test_the_wallet_says_which_task_delivers_where(service: Service) -> None:
    first, second = await service.new_task(slug="one"), (await created(service)).json["id"]
    answer = await service.ask("GET", "/api/wallet")
    check("getWallet", answer)
    assert answer.json["receives"] == [
        {"deliverTo": "ordinalsAddress", "address": OWNER, "tasks": [first]},
        {"deliverTo": "vault", "address": VAULT, "tasks": [second]},
    ]


async def test_a_cost_that_is_left_out_is_the_purchases_and_starts_by_it(service: Service) -> None:
    order = proved(bought(service.user_id, 75_000, inscription_id=INSCRIPTION), 75_600)
    bought(service.user_id, 90_000, inscription_id="d" * 64 + "i0")
    bought(service.user_id, 1_000, inscription_id=INSCRIPTION, dry_run=True)
    bought(service.user_id + 1, 1_000, inscription_id=INSCRIPTION)
    lies_at(service, VAULT)

    answer = await service.ask("POST", "/api/autolist", LISTING | {"reference": "purchase"})

    check("createAutolistTask", answer)
    assert (answer.status, answer.json["config"]["costSats"]) == (201, 75_600)
    assert (answer.json["costSource"], answer.json["sourceFillId"]) == ("fill", f"buy-{order.id}")
    assert "warnings" not in answer.json
    task = f"/api/autolist/{answer.json['id']}"
    assert (await service.ask("POST", f"{task}/start")).status == 200
    changed = await service.ask("PUT", task, {"costSats": 80_000})
    assert (changed.json["costSource"], changed.json["sourceFillId"]) == ("given", f"buy-{order.id}")
    assert (await service.ask("GET", "/api/autolist")).json[0]["costSource"] == "given"


async def test_a_claimed_purchase_gives_no_cost_and_says_so(service: Service) -> None:
    """The second way of a lie: an item lies in the vault, a sale names it as what a bid of 75,000 bought, and its owner
    lists it by hand.
    """
    order = bought(service.user_id, 75_000, inscription_id=INSCRIPTION, network_fee_sats=600)
    lies_at(service, VAULT)
    answer = await service.ask("POST", "/api/autolist", LISTING | {"reference": "purchase"})
    check("createAutolistTask", answer)
    assert (answer.json["config"]["costSats"], answer.json["costSource"]) == (None, "claimed")
    assert answer.json["sourceFillId"] == f"buy-{order.id}"
    assert UNPROVED in answer.json["warnings"]

    task = f"/api/autolist/{answer.json['id']}"
    start = await service.ask("POST", f"{task}/start")
    missing = "costSats: is required when the reference is purchase and no purchase of it is proved"
    assert (start.status, start.json["details"]) == (400, [missing])
    preview = await service.ask("POST", "/api/autolist/preview", LISTING | {"reference": "purchase"})
    assert (preview.status, preview.json["details"]) == (400, [missing])

    typed = await service.ask("PUT", task, {"costSats": 80_000})
    assert (typed.json["costSource"], typed.json["config"]["costSats"]) == ("given", 80_000)
    assert (await service.ask("POST", f"{task}/start")).status == 200


async def test_a_cost_of_a_purchase_that_is_void_is_called_claimed(service: Service) -> None:
    order = proved(bought(service.user_id, 75_000, inscription_id=INSCRIPTION), 75_600)
    answer = await service.ask("POST", "/api/autolist", LISTING)
    proof = purchases.of_order(order.id)
    assert answer.json["costSource"] == "fill" and proof is not None
    purchases.void(proof, "a reorganisation", 1)
    assert (await service.ask("GET", "/api/autolist")).json[0]["costSource"] == "claimed"
    purchases.drop(order, "it is with another", 2)
    assert (await service.ask("GET", "/api/autolist")).json[0]["costSource"] == "claimed"


async def test_a_stopped_task_gets_the_cost_of_the_new_proof(service: Service) -> None:
    order = proved(bought(service.user_id, 75_000, inscription_id=INSCRIPTION), 75_600)
    await service.ask("POST", "/api/autolist", LISTING)
    proof = purchases.of_order(order.id)
    assert proof is not None
    purchases.void(proof, "a reorganisation", 1)
    proved(order, 80_000)
    (listing,) = (await service.ask("GET", "/api/autolist")).json
    assert (listing["costSource"], listing["config"]["costSats"]) == ("fill", 80_000)


@pytest.mark.parametrize("count", [0, 2])
async def test_a_cost_that_is_not_known_for_sure_is_not_made_up(service: Service, count: int) -> None:
    for price in (75_000, 80_000)[:count]:
        proved(bought(service.user_id, price, inscription_id=INSCRIPTION), price)
    answer = await service.ask("POST", "/api/autolist", LISTING | {"reference": "purchase"})
    assert (answer.json["config"]["costSats"], answer.json["costSource"]) == (None, None)
    start = await service.ask("POST", f"/api/autolist/{answer.json['id']}/start")
    assert start.json["details"] == [
        "costSats: is required when the reference is purchase and no purchase of it is proved"
    ]


async def test_a_cost_of_null_or_of_ones_own_stays(service: Service) -> None:
    proved(bought(service.user_id, 75_000, inscription_id=INSCRIPTION), 75_000)
    answer = await service.ask("POST", "/api/autolist", LISTING | {"costSats": None})
    assert (answer.json["config"]["costSats"], answer.json["costSource"]) == (None, None)
    assert (await service.ask("DELETE", f"/api/autolist/{answer.json['id']}")).status == 200
    own = await service.ask("POST", "/api/autolist", LISTING | {"costSats": 5})
    assert (own.json["config"]["costSats"], own.json["costSource"], own.json["sourceFillId"]) == (5, "given", None)


async def test_a_fill_tells_what_becomes_of_it(service: Service) -> None:
    bought(service.user_id, 75_000, autolist_state="waiting", autolist_reason="so")
    bought(service.user_id, 75_000, minute=1, autolist_state="listed", autolist_task=7)
    answer = await service.ask("GET", "/api/fills")
    check("listFills", answer)
    assert [fill["autolist"] for fill in answer.json["fills"]] == [
        {"state": "listed", "reason": None, "taskId": 7},
        {"state": "waiting", "reason": "so", "taskId": None},
    ]


@with_settings(simulator_seller_fee_ppm=20_000)
@pytest.mark.parametrize(("floor", "price", "reason"), [(100_000, 105_000, "list"), (60_000, 85_000, "at_min")])
async def test_the_worked_example_of_the_price(service: Service, floor: int, price: int, reason: str) -> None:
    """Bought for 75,000 + 600 at a fee of 2 %: 75,600 x 1.1 / 0.98 is 84,858, on the grid 85,000."""
    proved(bought(service.user_id, 75_000, inscription_id=INSCRIPTION), 75_600)
    market(service, floor)
    found = await new(service, **PERCENTS)
    assert (found["price"], found["reason"], found["leastPrice"]) == (price, reason, 85_000)


async def test_no_two_tasks_are_of_one_fill(service: Service) -> None:
    order = bought(service.user_id, 75_000, inscription_id=INSCRIPTION)
    await service.ask("POST", "/api/autolist", LISTING)
    with pytest.raises(tasks.TaskExists):
        tasks.create_autolist_task(
            service.user_id, inscription_id="d" * 64 + "i0", collection_id=None, config="{}", venue="simulator",
            now_ms=1, source_order=order.id,
        )  # fmt: skip
    assert Task.select().where(Task.kind == "listing").count() == 1
