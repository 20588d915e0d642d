"""Ports that tests take are theirs alone, though nothing listens there yet."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import ports


def test_no_port_is_given_twice() -> None:
    given = ports.free_ports(300)
    assert len(set(given)) == 300
    assert not set(ports.free_ports(300)) & set(given)


def test_a_port_is_not_given_to_two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process takes one; here, where chance names that one first, it is passed over."""
    program = "from tests.ports import free_ports; print(free_ports(1)[0], flush=True); input()"
    other = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    taken = int(other.stdout.readline())
    (free,) = ports.free_ports(1)
    ports._kept.pop(free).close()
    named = iter([taken, taken, free])
    monkeypatch.setattr(ports.random.SystemRandom, "randrange", lambda *_: next(named))
    try:
        assert ports.free_ports(1) == [free]
    finally:
        other.communicate("\n", timeout=60)
    ports._kept.pop(free).close()
    named = iter([taken])
    assert ports.free_ports(1) == [taken], "the ended process's port can be had again"
