"""The doctor on quotas and the month's calls, on clocks, and on certificates and other hosts."""

from __future__ import annotations

import contextlib
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.doctor import program_check
from cli.doctor.check import Check
from core import tls
from core.setting_values import HostPort
from core.settings import Settings
from models import schema, users
from models.database import base
from models.tasks import tasks
from models.tasks.tasks import RUNNING
from strategy.config.bid import BidConfig, dump_bid_config, normal_slug
from strategy.config.listing import ListingConfig
from strategy.monthly import Bidding, Selling, Task
from tests.authority import Authority
from tests.cli.conftest import Examine
from tests.ports import free_ports
from tests.shapes import replace

CATS = BidConfig(slug="cats", hardcap_sats=100_000)
DOGS = replace(CATS, slug="dogs")
RUNE = BidConfig(slug="AAA•BBB", type="rune", hardcap_sats=100_000)
REAL = Settings(
    market="satflow",
    satflow_url="https://satflow.example/v1",
    ordnet_url="https://ordnet.example/api/v1",
    unisat_url="https://unisat.example",
)


def month(running: dict[str, list[Task]], **settings: Any) -> dict[str, Check]:
    return {check.name: check for check in program_check.examine_months(replace(REAL, **settings), running)}


def test_every_key_with_a_quota_has_a_line_and_no_other() -> None:
    assert set(month({})) == {"month at satflow", "day at unisat"}
    assert set(month({}, unisat_url=None)) == {"month at satflow"}
    assert set(month({}, satflow_monthly_calls=0)) == {"day at unisat"}
    assert list(program_check.examine_months(Settings(), {})) == [], "the practice market has none"
    assert list(program_check.examine_months(REAL, None)) == [], "nobody knows what runs"


def test_a_quota_that_nobody_uses() -> None:
    found = month({})
    assert found["month at satflow"].text == "no task makes calls there; the quota is enough for 31 bids of 16 minutes"
    assert found["day at unisat"].text == "no task makes calls there"


def test_what_fits() -> None:
    check = month({"satflow": [Bidding(CATS, 5, 1), Bidding(DOGS, 5, 1)]})["month at satflow"]
    assert check.status == "ok"
    # 2,880 rounds of 10 bids, two cancels of two calls and eight reads; two books and one wallet's bids.
    least = 2_880 * (10 + 4 + 8) + 3 * 4_320
    # Cycles of two minutes and three in four renewals: own bids, floors together, two books every ten minutes. A round
    # reads both, once more each, and the sales of both.
    each_cycle = 2_880 * 14 + 2 * (21_600 + 2_160) + 2 * 2_880 + 2 * 2_880 * 3
    assert check.text == (
        f"2 tasks with 10 bids take {each_cycle:,} calls in 30 days, {least:,} with reads ten minutes old: "
        "within 90,000 (90 % of the quota); the quota is enough for 31 bids of 16 minutes"
    )


def test_what_does_not_says_from_which_expiry_on_it_would() -> None:
    check = month({"satflow": [Bidding(CATS, 30, 1), Bidding(DOGS, 30, 1)]})["month at satflow"]
    assert check.status == "warn"
    assert "more than 90,000" in check.text
    assert check.remedy == (
        "set bidExpiryMinutes to at least 42 in every task, place fewer bids, or get a larger quota "
        "(BIDKEEPER_SATFLOW_MONTHLY_CALLS)"
    )


def test_what_never_fits() -> None:
    check = month({"satflow": [Bidding(CATS, 5, 1)]}, satflow_monthly_calls=5_000)["month at satflow"]
    assert check.status == "warn"
    assert "no bidExpiryMinutes is long enough" in check.remedy


def test_the_asks_of_runes_are_unisats_wherever_they_are_bid_on() -> None:
    running: dict[str, list[Task]] = {
        "satflow": [Bidding(RUNE, 5, 1)],
        "unisat": [Selling(ListingConfig(), "cats", 1)],
    }
    check = month(running)["day at unisat"]
    assert check.text == (
        f"1 task with 0 bids, and the asks of runes, take {(2 * 86_400 + 21_600 + 2_160) // 30:,} calls a day, "
        f"{(3 * 4_320 + 2_880) // 30:,} with reads ten minutes old: within 1,800 (90 % of the quota)"
    )
    for smaller, name, variable in (
        ({"unisat_monthly_calls": 5_000}, "month at unisat", "BIDKEEPER_UNISAT_MONTHLY_CALLS"),
        ({"unisat_daily_calls": 100}, "day at unisat", "BIDKEEPER_UNISAT_DAILY_CALLS"),
    ):
        short = month(running, **smaller)[name]
        assert (short.status, "no bidExpiryMinutes" in short.remedy, variable in short.remedy) == ("warn", True, True)


def test_each_venue_is_reckoned_with_its_own_tasks() -> None:
    alone = month({"satflow": [Bidding(CATS, 5, 1)]})
    beside = month({"satflow": [Bidding(CATS, 5, 1)], "ordnet": [Bidding(CATS, 50, 1)]})
    assert alone == beside


def test_the_doctor_reads_them_from_the_database(examine: Examine, environment: dict[str, str]) -> None:
    base.connect(f"sqlite:///{environment['BIDKEEPER_DATA_DIR']}/bidkeeper.db")
    schema.migrate()
    user = users.find_or_create("bc1quser", dict(REAL.plans), 1)
    made = {slug: _task(user.id, replace(CATS, slug=slug)) for slug in ("cats", "dogs", "rats")}
    for slug in ("cats", "dogs"):
        tasks.set_desired(made[slug], RUNNING)
    base.close()

    assert "month at simulator" not in examine("programs"), "without a quota"
    environment["BIDKEEPER_SATFLOW_MONTHLY_CALLS"] = "20000"
    found = examine("programs")["month at simulator"]

    assert found.status == "warn"
    assert found.text.startswith("2 tasks with 10 bids take ")
    assert found.text.endswith("the quota is enough for 6 bids of 16 minutes")


def _task(user_id: int, config: BidConfig) -> tasks.Task:
    return tasks.create_bidding_task(
        user_id,
        type=config.type,
        slug=config.slug,
        slug_key=normal_slug(config.type, config.slug),
        config=dump_bid_config(config),
        venue="simulator",
        max_tasks=20,
        now_ms=1,
    )


@pytest.mark.parametrize(
    ("skew_s", "said"),
    [
        (None, None),
        (0.0, None),
        (-30.0, None),
        (61.2, "this machine's clock is 61 s ahead of the marketplace's (satflow)"),
        (-61.2, "this machine's clock is 61 s behind the marketplace's (satflow)"),
    ],
)
def test_a_clock_by_which_no_bid_is_placed(
    skew_s: float | None, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = {
        "market": "satflow",
        "venues": {"satflow": {"is_cut_off": False, "paused_s": 0, "skew_s": skew_s}},
    }
    monkeypatch.setattr(program_check.MarketClient, "status", lambda _: status)
    found = {check.name: check for check in program_check._gateway(REAL)}
    assert ("clock" in found) == (said is not None)
    if said is not None:
        assert found["clock"].status == "FAIL"
        assert found["clock"].text.startswith(said)
        assert found["clock"].remedy == "set the clock by NTP: timedatectl set-ntp true"


def test_rows_left_out_since_the_gateways_start_are_a_warning_by_venue(monkeypatch: pytest.MonkeyPatch) -> None:
    well = {"is_cut_off": False, "paused_s": 0, "skew_s": None, "unread_rows": {}}
    odd = well | {"unread_rows": {"sales": 1, "asks": 12}}
    status = {"market": "satflow", "venues": {"satflow": well, "ordnet": odd}}
    monkeypatch.setattr(program_check.MarketClient, "status", lambda _: status)
    (found,) = [check for check in program_check._gateway(REAL) if check.name == "gateway rows"]
    assert found.status == "warn"
    assert found.text == "ordnet: rows left out of its answers since the gateway's start: 12 of asks, 1 of sales"
    (practice,) = [check for check in program_check._gateway(Settings()) if check.name == "gateway rows"]
    assert "on purpose" in practice.remedy and "on purpose" not in found.remedy


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("authority") / "ours")
    made.certificate("trader", "trader")
    return made


def now_ms() -> int:
    return int(time.time() * 1000)


def findings(settings: Settings, at_ms: int | None = None) -> list[Check]:
    return list(program_check.examine_hosts(settings, lambda: at_ms or now_ms()))


def test_one_host_alone_needs_no_certificates() -> None:
    assert findings(Settings()) == []


def test_good_certificates_tell_how_long_they_are_good(authority: Authority) -> None:
    own, theirs = findings(Settings(tls_dir=authority.directory / "trader"))
    assert own.status == theirs.status == "ok"
    assert own.text in (
        "this host's (trader) is valid for 365 more days",
        "this host's (trader) is valid for 364 more days",
    )
    assert theirs.text.startswith("the authority's is valid for 3,6")


def test_a_certificate_is_renewed_in_its_last_month(authority: Authority) -> None:
    day = 86_400_000
    for days, status in ((334, "ok"), (336, "warn")):
        own, theirs = findings(Settings(tls_dir=authority.directory / "trader"), now_ms() + days * day)
        assert (own.status, theirs.status) == (status, "ok")
    (own, _) = findings(Settings(tls_dir=authority.certificate("trader", "short", days=29)))
    assert own.status == "warn" and "several-machines.md" in own.remedy


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("expired", "expired"),
        ("of another authority", "issuer"),
        ("role", "has no role"),
        ("loose", "chmod 600"),
        ("missing", "cannot be used"),
    ],
)
def test_each_fault_of_a_certificate_is_told(authority: Authority, tmp_path: Path, fault: str, words: str) -> None:
    role, days = ("other" if fault == "role" else "trader"), (-1 if fault == "expired" else 365)
    directory = authority.certificate(role, f"faulty-{fault}", days=days)
    if fault == "of another authority":
        directory = Authority(tmp_path / "theirs").certificate("trader", "trader")
        shutil.copy(authority.directory / "ca.pem", directory)
    if fault == "loose":
        (directory / "key.pem").chmod(0o640)
    if fault == "missing":
        (directory / "cert.pem").unlink()
    (found,) = findings(Settings(tls_dir=directory))
    assert found.status == "FAIL" and words in found.text, found


@contextlib.contextmanager
def answering(certificates: Path) -> Iterator[HostPort]:
    at = HostPort("127.0.0.1", *free_ports(1))
    context = tls.server_context(certificates)
    with socket.create_server(at) as listener:

        def shake_hands() -> None:
            with contextlib.suppress(OSError):
                context.wrap_socket(listener.accept()[0], server_side=True).close()

        thread = threading.Thread(target=shake_hands)
        thread.start()
        yield at
        thread.join(10)


def test_hosts_that_are_not_there_or_not_what_they_should_be_are_faults(authority: Authority) -> None:
    down = HostPort("127.0.0.1", *free_ports(1))
    directory = authority.directory / "trader"
    with answering(directory) as gateway, answering(directory) as false_signer:
        settings = Settings(
            tls_dir=directory, gateway_hosts=(gateway, down), facts_hosts=(down,), signer_host=false_signer
        )
        found = {check.name: check for check in findings(settings)}
    assert found[f"gateway at {gateway}"].status == "ok"
    assert found[f"gateway at {down}"].text == "refuses connections: it is on standby or down"
    assert found[f"facts at {down}"].line().startswith("FAIL facts at") and "refuses" in found[f"facts at {down}"].text
    assert found[f"signer at {false_signer}"].status == "FAIL"
    assert "ostname mismatch" in found[f"signer at {false_signer}"].text
