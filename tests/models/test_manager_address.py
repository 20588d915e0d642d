"""A manager's address, as the server asks it: a socket here, elsewhere a host behind TLS, or nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import PeerUnavailable
from core.settings import Settings
from core.tls import FarAddress
from models.leases.manager_places import address_at
from tests.authority import Authority

ELSEWHERE = "10.0.0.7:9705"


def test_one_elsewhere_is_asked_with_our_certificate(tmp_path: Path) -> None:
    made = Authority(tmp_path / "authority").certificate("trader", "trader")
    found = address_at(Settings(tls_dir=made), ELSEWHERE)
    assert isinstance(found, FarAddress)
    assert (str(found), found.role) == (ELSEWHERE, "trader")


def test_without_certificates_none_elsewhere_can_be_asked(tmp_path: Path) -> None:
    assert address_at(Settings(), tmp_path / "manager.sock") == tmp_path / "manager.sock"
    for settings in (Settings(), Settings(tls_dir=tmp_path)):
        with pytest.raises(PeerUnavailable, match=ELSEWHERE):
            address_at(settings, ELSEWHERE)
    with pytest.raises(PeerUnavailable, match="nobody"):
        address_at(Settings(), PeerUnavailable("manager", "nobody keeps slot 1"))
