"""Where each program of an installation listens, and where it is asked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.demo import page_line
from core.errors import SettingsError
from core.setting_values import HostPort
from core.settings import load
from tests.core.test_settings import ROOT


def problems(**environment: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load({f"BIDKEEPER_{name.upper()}": value for name, value in environment.items()})
    return caught.value.problems


def test_a_program_on_other_hosts_is_asked_by_the_relay_and_listens_where_it_did(tmp_path: Path) -> None:
    environment = {
        "BIDKEEPER_DATA_DIR": str(tmp_path),
        "BIDKEEPER_TLS_DIR": "/tls",
        "BIDKEEPER_GATEWAY_HOSTS": "one.example:9701, [fd00::2]:9701",
        "BIDKEEPER_SIGNER_HOST": "10.0.0.9:9703",
    }
    settings = load(environment)
    assert settings.gateway_hosts == (HostPort("one.example", 9701), HostPort("fd00::2", 9701))
    assert list(map(str, settings.gateway_hosts)) == ["one.example:9701", "[fd00::2]:9701"]
    assert settings.gateway_socket == tmp_path / "relay" / "gateway.sock"
    assert settings.signer_socket == tmp_path / "relay" / "signer.sock"
    assert settings.facts_socket == settings.own_facts_socket == tmp_path / "run" / "facts.sock"
    assert settings.own_gateway_socket == tmp_path / "run" / "gateway.sock"
    settings = load(environment | {"BIDKEEPER_RELAY_DIR": "/r", "BIDKEEPER_FACTS_HOSTS": "one.example:9702"})
    assert str(settings.facts_socket) == "/r/facts.sock"


@pytest.mark.parametrize(
    "value",
    ["host", "host:", ":9701", "host:0", "host:65536", "fd00::2:9701", "a b:1", "h:1,x", "h;x:1", "https://h:1"],
)
def test_what_is_no_address_is_refused(value: str) -> None:
    for name in ("gateway_hosts", "signer_host", "gateway_listen"):
        (fault,) = problems(**{name: value, "tls_dir": "/tls"})
        assert fault.startswith(f"BIDKEEPER_{name.upper()} must be HOST:PORT")


@pytest.mark.parametrize("name", ["gateway_hosts", "facts_hosts", "signer_host", "manager_listen", "signer_listen"])
def test_nothing_goes_between_hosts_without_certificates(name: str) -> None:
    (fault,) = problems(**{name: "one.example:9701"})
    assert fault.startswith(f"BIDKEEPER_TLS_DIR is needed with BIDKEEPER_{name.upper()}")


def test_a_manager_names_an_address_that_others_can_use() -> None:
    for host in ("0.0.0.0", "[::]"):
        (fault,) = problems(manager_listen=f"{host}:9704", tls_dir="/tls")
        assert "must name this host" in fault
    assert load({"BIDKEEPER_GATEWAY_LISTEN": "0.0.0.0:9701", "BIDKEEPER_TLS_DIR": "/tls"}).gateway_listen


def test_the_relays_sockets_have_a_short_path() -> None:
    (fault,) = problems(relay_dir="/" + "x" * 100)
    assert fault.startswith("BIDKEEPER_RELAY_DIR: ") and "107" in fault


@pytest.mark.parametrize(
    ("written", "host", "shown", "nearby"),
    [
        ("127.0.0.1", "127.0.0.1", "127.0.0.1:8888", "http://127.0.0.1:8888"),
        ("127.0.0.2", "127.0.0.2", "127.0.0.2:8888", "http://127.0.0.2:8888"),
        ("0.0.0.0", "0.0.0.0", "0.0.0.0:8888", "http://127.0.0.1:8888"),
        ("::1", "::1", "[::1]:8888", "http://[::1]:8888"),
        ("[::1]", "::1", "[::1]:8888", "http://[::1]:8888"),
        ("::", "::", "[::]:8888", "http://[::1]:8888"),
        ("[::]", "::", "[::]:8888", "http://[::1]:8888"),
        ("0:0:0:0:0:0:0:1", "::1", "[::1]:8888", "http://[::1]:8888"),
        (" 10.0.0.9 ", "10.0.0.9", "10.0.0.9:8888", "http://10.0.0.9:8888"),
        ("keeper.example", "keeper.example", "keeper.example:8888", "http://keeper.example:8888"),
    ],
)
def test_host_and_port_are_joined_alike_wherever_they_are_shown(
    written: str, host: str, shown: str, nearby: str
) -> None:
    settings = load({"BIDKEEPER_HOST": written})
    assert settings.host == host
    assert (str(settings.server_at()), settings.server_at().url) == (shown, nearby)
    assert settings.sign_in_name == shown
    assert page_line(settings).startswith(f"Bidkeeper's page: {nearby}/ ")
    assert settings.simulator_url == "http://127.0.0.1:8890"


def test_one_function_joins_a_host_and_a_port() -> None:
    joined = re.compile(r"\{[^{}]*host[^{}]*\}:\{|\}:\{[^{}]*port[^{}]*\}", re.I)
    folders = ("cli", "core", "gateway", "hooks", "markets", "models", "server", "wallet", "workers")
    found = {
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        for line in path.read_text().splitlines()
        if joined.search(line) and "def " not in line
    }
    assert all(each.startswith("core/setting_values.py: return ") for each in found) and len(found) == 1, found
