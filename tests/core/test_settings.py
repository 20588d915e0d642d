"""Addresses that users may have us connect to, and every spelling of one that they may not."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core import public_connection
from core.errors import SettingsError
from core.public_connection import (
    NotAllowed,
    addresses_of,
    is_ours,
    is_public,
    may_be_reached,
    own_host,
    public_url_problem,
    read,
)
from core.setting_values import HELD, networks
from core.settings import IN_FILES, MARKETS, OPTIONS, PLAY_MARKET, load

ROOT = Path(__file__).resolve().parents[2]


def problems(environment: dict[str, str]) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(environment)
    return caught.value.problems


def test_defaults_trade_on_the_simulator(tmp_path: Path) -> None:
    settings = load({"BIDKEEPER_DATA_DIR": str(tmp_path)})
    assert settings.market == "simulator"
    assert settings.venue_url("satflow") == "http://127.0.0.1:8890/satflow/v1"
    assert settings.venue_url("ord") == "http://127.0.0.1:8890/ord"
    assert settings.database_url == f"sqlite:///{tmp_path / 'bidkeeper.db'}"


def test_environment_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "bidkeeper.toml"
    file.write_text('port = 9000\nhost = "0.0.0.0"\nwhitelist = ["a", "b"]\n')
    settings = load({"BIDKEEPER_CONFIG": str(file), "BIDKEEPER_PORT": "9001"})
    assert (settings.port, settings.host, settings.whitelist) == (9001, "0.0.0.0", frozenset({"a", "b"}))


def test_a_secret_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("s3cret-key\n")
    settings = load({"BIDKEEPER_SATFLOW_API_KEY_FILE": str(tmp_path / "key")})
    assert settings.satflow_api_key == "s3cret-key"
    assert "s3cret" not in repr(settings)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://bot:pw@localhost:5433/bk",
        "postgresql://[::1]:5433/bk",
        "postgresql:///bk?host=/run/postgresql&user=bot",
        "postgresql://bot@%2Frun%2Fpostgresql/bk",
        "postgresql:///bk?host=/run/one,/run/two&port=5432,5433&target_session_attrs=read-write",
        "postgresql://%2Frun%2Fone,localhost:5433/bk?target_session_attrs=primary",
        "postgresql://db.example,db2.example/bk?sslmode=verify-full&target_session_attrs=read-write",
    ],
)
def test_a_database_may_be_postgresql_here_or_elsewhere_under_a_checked_certificate(url: str) -> None:
    assert load({"BIDKEEPER_DATABASE_URL": url}).database_url == url


def test_the_address_of_a_database_may_stand_in_a_file_and_is_in_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "address"
    environment = {"BIDKEEPER_DATABASE_URL_FILE": str(file)}
    assert len(problems(environment)) == 1
    file.write_text("postgresql://bot:hunter2@localhost/bk\n")
    settings = load(environment, secrets=())
    assert settings.database_url == "postgresql://bot:hunter2@localhost/bk"
    assert "hunter2" not in repr(settings)
    file.write_text("postgresql://bot:hunter2@db.example/bk\n")
    [fault] = problems(environment)
    assert "verify-full" in fault and "hunter2" not in fault


def test_a_secrets_file_that_is_no_text_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\xff\xfe")
    for name in ("SATFLOW_API_KEY", "DATABASE_URL"):
        variable = f"BIDKEEPER_{name}_FILE"
        [fault] = problems({variable: str(tmp_path / "key")})
        assert fault.endswith(f"in {tmp_path / 'key'} ({variable}) is UTF-16: save it as UTF-8")


def test_the_last_process_has_a_port_too() -> None:
    assert "ports to 65536" in problems({"BIDKEEPER_PORT": "65535", "BIDKEEPER_SERVER_PROCESSES": "2"})[0]


def test_only_who_needs_a_secret_opens_its_file(tmp_path: Path) -> None:
    key = tmp_path / "unisat"
    key.write_text("ours")
    both = {"BIDKEEPER_UNISAT_API_KEY_FILE": str(key), "BIDKEEPER_SATFLOW_API_KEY_FILE": str(tmp_path / "not-for-us")}
    settings = load(both, secrets=("unisat_api_key",))
    assert (settings.unisat_api_key, settings.satflow_api_key) == ("ours", HELD)
    environment = {"BIDKEEPER_SATFLOW_API_KEY_FILE": str(tmp_path / "not-for-us")}
    assert load(environment, secrets=()).satflow_api_key == HELD
    assert len(problems(environment)) == 1


def test_clients_are_users_by_name_or_number() -> None:
    given = {"SIGNER_CLIENTS": "root, 61100", "GATEWAY_CLIENTS": "0", "FACTS_CLIENTS": "61102"}
    settings = load({f"BIDKEEPER_{name}": users for name, users in given.items()})
    assert (settings.signer_clients, settings.gateway_clients) == (frozenset({0, 61100}), frozenset({0}))
    assert settings.facts_clients == frozenset({61102})


def test_a_mail_server_has_no_password_in_its_address_and_needs_a_sender() -> None:
    good = {"BIDKEEPER_SMTP_URL": "smtps://bot@mail.example:465", "BIDKEEPER_MAIL_FROM": "bot@mail.example"}
    assert load(good).smtp_url == "smtps://bot@mail.example:465"
    for url in ("https://mail.example", "smtps://bot:pw@mail.example", "smtp://", "smtp://mail.example/x"):
        assert len(problems(good | {"BIDKEEPER_SMTP_URL": url})) == 1, url
    assert len(problems({"BIDKEEPER_SMTP_URL": "smtps://mail.example"})) == 1


def test_co_signers_are_three_keys(tmp_path: Path) -> None:
    keys = ("11" * 32, "ab" * 32, "13" * 32)
    assert load({"BIDKEEPER_ORDNET_CO_SIGNERS": " , ".join(keys)}).ordnet_co_signers == keys
    file = tmp_path / "bidkeeper.toml"
    file.write_text(f"ordnet_co_signers = {list(keys)}\n")
    assert load({"BIDKEEPER_CONFIG": str(file)}).ordnet_co_signers == keys


def test_signer_and_gateway_may_live_elsewhere(tmp_path: Path) -> None:
    settings = load(
        {
            "BIDKEEPER_DATA_DIR": str(tmp_path),
            "BIDKEEPER_SIGNER_DIR": "/keys",
            "BIDKEEPER_SIGNER_RUN_DIR": "/s",
            "BIDKEEPER_GATEWAY_RUN_DIR": "/g",
        }
    )
    places = (settings.signer_files, settings.signer_socket, settings.gateway_socket, settings.manager_socket)
    assert list(map(str, places)) == ["/keys", "/s/signer.sock", "/g/gateway.sock", f"{tmp_path}/run/manager.sock"]
    assert str(settings.facts_socket) == "/g/facts.sock"


def test_every_fault_is_told_at_once() -> None:
    faults = problems({"BIDKEEPER_PORT": "x", "BIDKEEPER_MARKET": "magiceden", "BIDKEEPER_TOLERANCE": "1.5"})
    assert len(faults) == 3
    assert faults[0].startswith("BIDKEEPER_PORT ")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("PORT", "0", "from 1 to 65535"),
        ("PORT", "70000", "from 1 to 65535"),
        ("SATFLOW_URL", "ftp://x", "http"),
        ("SATFLOW_URL", "http://api.satflow.com/v1", "https"),
        ("SATFLOW_URL", "https://u:p@api.satflow.com/v1", "user name"),
        ("SATFLOW_BID_CHALLENGE", "challenge-id", "documents neither"),
        ("SATFLOW_BID_CHALLENGE", "uuid", "must be one of timestamp"),
        ("SATFLOW_RUNE_PRICE", "lot", "must be one of order, token"),
        ("UNISAT_URL", "https://open-api.unisat.io", "on this machine"),
        ("ORDNET_CO_SIGNERS", ",".join(["11" * 32, "12" * 32]), "three different keys"),
        ("ORDNET_CO_SIGNERS", ",".join(["11" * 32, "12" * 32, "11" * 32]), "three different keys"),
        ("ORDNET_CO_SIGNERS", ",".join(["11" * 32, "12" * 32, "02" + "13" * 32]), "three different keys"),
        ("ORDNET_CO_SIGNERS", ",".join(["11" * 32, "12" * 32, "AB" * 32]), "three different keys"),
        ("DATABASE_URL", "mysql://x", "sqlite:///"),
        ("DATABASE_URL", "postgresql://db.example/bk", "sslmode=verify-full"),
        ("DATABASE_URL", "postgresql://db.example/bk?sslmode=require", "sslmode=verify-full"),
        ("DATABASE_URL", "postgresql://127.0.0.1,10.0.0.1/bk", "sslmode=verify-full"),
        ("DATABASE_URL", "postgresql://localhost/bk?hostaddr=10.0.0.1", "sslmode=verify-full"),
        ("DATABASE_URL", "postgresql:///bk?host=/run/postgresql,db2.example", "sslmode=verify-full"),
        ("DATABASE_URL", "postgresql:///bk?host=/run/one,", "host"),
        ("DATABASE_URL", "postgresql://db.example,db2.example/bk?sslmode=verify-full,require", "sslmode=verify-full"),
        ("DATABASE_URL", "postgresql://localhost/bk?target_session_attrs=any", "read-write"),
        ("DATABASE_URL", "postgresql://localhost/bk?target_session_attrs=prefer-standby", "read-write"),
        ("DATABASE_URL", "postgresql:///bk", "host"),
        ("DATABASE_URL", "postgresql://bot:pw@/bk", "host"),
        ("DATABASE_URL", "postgresql://localhost", "the database itself"),
        ("DATABASE_URL", "postgresql://localhost/bk?service=other", "the database itself"),
        ("DATABASE_URL", "postgresql://[::1/bk", "cannot be read"),
        ("TRUSTED_PROXIES", "nginx", "IP addresses and networks"),
        ("TRUSTED_PROXIES", "172.17.0.1/16", "host bits"),
        ("TRUSTED_PROXIES", "10.0.0.1, ::/0", "every address"),
        ("SIMULATOR_PORT", "8888", "must differ"),
        ("SIMULATOR_BACKGROUND", "maybe", "true or false"),
        ("TOLERANCE", "NaN", "at least 0"),
        ("CONFIG", "/nonexistent.toml", "not there"),
        ("SIGNER_CLIENTS", "nobody-of-this-name", "not on this machine"),
        ("SIGNER_RUN_DIR", "/tmp/" + "x" * 100, "use a shorter"),
        ("DATA_DIR", "/tmp/" + "x" * 100, "use a shorter data directory"),
    ],
)
def test_a_bad_value_is_one_clear_line(name: str, value: str, words: str) -> None:
    faults = problems({f"BIDKEEPER_{name}": value})
    assert len(faults) == 1
    assert words in faults[0]


def test_a_real_market_needs_its_address_and_key() -> None:
    assert len(problems({"BIDKEEPER_MARKET": "satflow"})) == 2
    given = {
        "BIDKEEPER_MARKET": "satflow",
        "BIDKEEPER_SATFLOW_URL": "https://api.satflow.com/v1",
        "BIDKEEPER_SATFLOW_API_KEY": "k",
    }
    settings = load(given)
    assert (settings.venue_url("unisat"), settings.venue_url("ord")) == (None, None)


def test_unknown_names_in_the_file_are_faults(tmp_path: Path) -> None:
    file = tmp_path / "b.toml"
    file.write_text("prot = 1\n[plans.pro]\nname = 'Pro'\nmax_tasks = true\nmaxBids = 3\n")
    faults = problems({"BIDKEEPER_CONFIG": str(file)})
    assert any("unknown setting prot" in fault for fault in faults)
    assert any("plans.pro: unknown setting maxBids" in fault for fault in faults)
    assert any("max_tasks must be a whole number" in fault for fault in faults)


def test_plans_come_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "b.toml"
    file.write_text(
        "[plans.pro]\nname = 'Pro'\nmax_tasks = 100\nmax_bids_per_task = 50\n"
        "max_exposure = 900000000\nprice_sats = 100000\nduration_days = 30\n"
    )
    assert load({"BIDKEEPER_CONFIG": str(file)}).plans["pro"].max_tasks == 100
    assert load({"BIDKEEPER_CONFIG": str(file)}).plans["beta"].max_exposure == 50_000_000


def test_every_setting_is_documented() -> None:
    page = (ROOT / "docs" / "settings.md").read_text()
    names = [option.variable for option in OPTIONS] + [f"BIDKEEPER_{name.upper()}_FILE" for name in IN_FILES]
    assert [name for name in [*names, "BIDKEEPER_CONFIG"] if f"`{name}`" not in page] == []


def test_what_a_venue_keeps_is_known_on_the_practice_market_and_where_it_may_keep_nothing() -> None:
    settings = load({"BIDKEEPER_SIMULATOR_SELLER_FEE_PPM": "20000", "BIDKEEPER_SATFLOW_SELLER_FEE_PPM": "20000"})
    assert settings.known_seller_fee("simulator", 105_000) == 2_100
    assert settings.known_seller_fee("simulator-ordnet", 105_099) == 1_050
    assert settings.known_seller_fee("satflow", 105_000) is None
    assert settings.known_seller_fee("unisat", 105_000) == 0


def test_the_play_wallet_is_refused_wherever_money_is_real() -> None:
    assert load({}).has_play_wallet is False
    assert load({"BIDKEEPER_PLAY_WALLET": "true"}).has_play_wallet is True
    real = {"BIDKEEPER_SATFLOW_URL": "https://api.satflow.com/v1", "BIDKEEPER_SATFLOW_API_KEY": "k"}
    real |= {"BIDKEEPER_ORDNET_URL": "https://ord.net/api/v1", "BIDKEEPER_PLAY_WALLET": "true"}
    for market in set(MARKETS) - {PLAY_MARKET}:
        (problem,) = problems(real | {"BIDKEEPER_MARKET": market})
        assert "BIDKEEPER_PLAY_WALLET" in problem and market in problem


PUBLIC = "93.184.216.34"
# One or more of each entry of IANA's two registries of special-purpose addresses, as of 2025, then of what is reserved
# or of multicast, Azure's of a host's services, and other ways to write IPv4.
SPECIAL = """
0.0.0.0 0.1.2.3 10.1.2.3 100.64.0.1 127.0.0.1 127.255.255.254 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1
192.0.0.8 192.0.0.9 192.0.0.10 192.0.0.170 192.0.2.1 192.31.196.1 192.52.193.1 192.88.99.1 192.88.99.2 192.168.0.1
192.175.48.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 240.0.0.1 255.255.255.255 224.0.0.1 239.1.1.1
168.63.129.16
:: ::1 ::ffff:10.0.0.1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:192.88.99.1 64:ff9b::a00:1 64:ff9b::7f00:1
64:ff9b:1::1 64:ff9b:1::5db8:d822 100::1 100:0:0:1::1 2001::1 2001:0:4136:e378:8000:63bf:f5ff:fffe 2001:1::1 2001:1::2
2001:1::3 2001:2::1 2001:3::1 2001:4:112::1 2001:10::1 2001:20::1 2001:30::1 2001:1ff::1 2001:db8::1 2002:a00:1::
2002:5db8:d822::1 2620:4f:8000::1 3fff::1 3fff:fff::1 5f00::1 fc00::1 fd00::1 fe80::1 fe80::1%eth0 fec0::1 ff02::1
ff0e::1 ::127.0.0.1 ::93.184.216.34 ::ffff:0:127.0.0.1 ::ffff:0:93.184.216.34 1::1 4000::1 8000::1 e000::1
"""
OTHERS = """
168.63.129.15 168.63.129.17
93.184.216.34 1.1.1.1 192.0.1.1 192.88.98.1 223.255.255.255 2606:2800:220:1::1 2001:200::1 2a00:1450::1
::ffff:93.184.216.34 64:ff9b::5db8:d822
"""
NUMBERS = "2130706433 0x7f000001 0x7f.1 0177.0.0.1 127.1 127.0.1 0 0x 127.0.0.1. 017700000001"


@pytest.mark.parametrize("address", SPECIAL.split())
def test_an_address_of_a_special_purpose_is_not_public_however_it_is_written(address: str) -> None:
    assert not is_public(read(address))
    host = f"[{address}]" if ":" in address else address
    if "%" not in host:
        assert "must be public" in (public_url_problem(f"https://{host}/in", ()) or "")


@pytest.mark.parametrize("address", OTHERS.split())
def test_other_addresses_are_public(address: str) -> None:
    assert is_public(read(address))


@pytest.mark.parametrize("host", NUMBERS.split())
def test_a_host_written_as_a_number_is_refused(host: str) -> None:
    assert "must be public" in (public_url_problem(f"https://{host}/in", ()) or "")


@pytest.mark.parametrize(
    ("port", "may"), [(443, True), (8443, True), (1024, True), (65535, True), (0, False), (22, False)]
)
def test_only_web_ports_and_those_of_users_are_reached(port: int, may: bool) -> None:
    assert (public_url_problem(f"https://hooks.example:{port}/in", ()) is None) is may
    assert may_be_reached(read(PUBLIC), port, ()) is may
    allowed = networks("10.0.0.0/8")
    assert may_be_reached(read("10.0.0.1"), port, allowed)
    assert may_be_reached(read(PUBLIC), port, allowed) is may, "a network of the operator's opens no ports of others"


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.settimeout(0.1)
        yield made


def leading(monkeypatch: pytest.MonkeyPatch, **names: str) -> list[str]:
    """Has names lead to addresses (`_` is a dot); returns the names that are looked up."""
    asked: list[str] = []

    def getaddrinfo(host: str, port: int | None, **_: Any) -> list[Any]:
        asked.append(host)
        found = names.get(host.replace(".", "_"))
        if found is None:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (found, port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(public_connection, "_own", {})
    return asked


def test_an_address_of_an_interface_of_this_machine_is_ours(listener: socket.socket) -> None:
    assert is_ours(read("127.0.0.1"))
    assert not is_ours(read(PUBLIC))


def test_a_name_that_leads_to_an_own_interface_is_not_connected_to(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loopback address takes the part of a public one on an interface."""
    monkeypatch.setattr(public_connection, "is_public", lambda address: True)
    leading(monkeypatch, evil_example="127.0.0.1")
    port = listener.getsockname()[1]
    connection = public_connection.Connection("evil.example", port, is_tls=True, networks=(), ends_at=1e12)

    with pytest.raises(NotAllowed):
        connection.request("GET", "/")
    with pytest.raises(TimeoutError):
        listener.accept()
    assert "must be public" in (public_url_problem(f"https://127.0.0.1:{port}/", ()) or "")


def test_what_the_public_name_leads_to_is_refused_under_any_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = leading(monkeypatch, bids_example=PUBLIC, evil_example=PUBLIC, good_example="93.184.216.35")
    public_name = "Bids.example:8443"

    for _ in range(3):
        assert addresses_of("good.example", 443, (), public_name) == ["93.184.216.35"]
        for name in ("evil.example", "bids.example"):
            with pytest.raises(NotAllowed, match="own"):
                addresses_of(name, 443, (), public_name)
    assert asked.count("bids.example") == 3 + 1, "its own addresses are kept for a while"
    assert addresses_of("evil.example", 443, networks(PUBLIC), public_name) == [PUBLIC], "the operator may allow it"
    assert "must be public" in (public_url_problem("https://BIDS.example./", (), own_host(public_name)) or "")


def test_the_last_known_own_addresses_hold_while_the_name_cannot_be_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_connection, "_OWN_S", 0.0)
    leading(monkeypatch, bids_example=PUBLIC, evil_example=PUBLIC)
    with pytest.raises(NotAllowed):
        addresses_of("evil.example", 443, (), "bids.example")
    known = public_connection._own
    leading(monkeypatch, evil_example=PUBLIC)
    monkeypatch.setattr(public_connection, "_own", known)
    with pytest.raises(NotAllowed):
        addresses_of("evil.example", 443, (), "bids.example")


@pytest.mark.parametrize(
    ("public_name", "host"),
    [
        ("bids.example", "bids.example"),
        (" Bids.example:8888 ", "bids.example"),
        ("bids.example.", "bids.example"),
        ("[2606:2800::1]:8888", "2606:2800::1"),
        ("My keeper", ""),
        ("[", ""),
        ("", ""),
    ],
)
def test_the_host_in_a_public_name_is_found(public_name: str, host: str) -> None:
    assert own_host(public_name) == host
