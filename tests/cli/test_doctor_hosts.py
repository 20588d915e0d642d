"""The doctor on the certificates between hosts, and on the hosts themselves."""

from __future__ import annotations

import contextlib
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.doctor import program_check
from cli.doctor.check import Check
from core import tls
from core.setting_values import HostPort
from core.settings import Settings
from tests.authority import Authority
from tests.ports import free_ports


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
