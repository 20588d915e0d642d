"""Profit and the export of trades over HTTP."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from typing import Any

import pytest

from models.ledger.fills import Fill, Place
from models.tasks import cycles
from server import profit
from server.http.base import SignedIn
from server.profit import fills_until
from tests.server.api import START_MS
from tests.server.conftest import Service
from tests.server.trades import MINUTE_MS, bought, sold
from tests.shapes import replace

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


async def test_wrong_questions_are_refused(service: Service) -> None:
    for path in ("pnl?groupBy=week&method=lifo&from=x", "trades.csv?format=pdf&method=lifo&to=x"):
        answer = await service.ask("GET", f"/api/{path}")
        assert (answer.status, len(answer.details)) == (400, 3)


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
